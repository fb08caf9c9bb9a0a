"""Who of a worker's hosts gets the requests that may start now, and who of them goes to other workers?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from periplus.acquire.held import HeldHost
from periplus.model.frontier import ReadyHost
from periplus.model.ports import Policy


def preferred(hosts: Sequence[HeldHost], policy: Policy, room: int, now: float) -> tuple[list[HeldHost], list[HeldHost]]:
    """Those that start now, at most `room` by the policy, and the others. Who is preferred and must still wait keeps its room free; not who
    waits for the others themselves: nobody can say for how long."""
    by_id = {host.lease.host_id: host for host in hosts}
    ready = [ReadyHost(host.lease.host_id, host.lease.host, host.lease.site, len(host.tasks), 0, _wait_s(host, now)) for host in hosts]
    starting = [host_id for host_id in policy.choose(ready, room) if by_id[host_id].pace.not_before <= now]
    return [by_id[host_id] for host_id in starting], [host for host_id, host in by_id.items() if host_id not in starting]


def _wait_s(host: HeldHost, now: float) -> float:
    wait_s = max(0.0, host.pace.not_before - now)
    return math.inf if wait_s and host.polls else wait_s


def surplus_hosts(hosts: Sequence[HeldHost], surplus: int, late_at: float) -> tuple[list[HeldHost], list[HeldHost]]:
    """(quiet hosts to be released now, busy ones to be released when they are quiet), `surplus` together if there are so many; who waits
    longest goes first. late_at: who is due later goes in any case; monotonic."""
    quiet = sorted((host for host in hosts if host.is_quiet), key=lambda host: -host.pace.not_before)
    leaving = [host for at, host in enumerate(quiet) if at < surplus or host.pace.not_before > late_at]
    return leaving, [host for host in hosts if not host.is_quiet][: max(0, surplus - len(leaving))]
