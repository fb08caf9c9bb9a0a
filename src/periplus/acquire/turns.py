"""Who of the hosts that are due gets the requests that may start now?"""

from __future__ import annotations

from collections.abc import Sequence

from periplus.acquire.held import HeldHost
from periplus.model.frontier import ReadyHost
from periplus.model.ports import Policy


def preferred(due: Sequence[HeldHost], policy: Policy, room: int, now: float) -> Sequence[HeldHost]:
    """At most `room` of them, by the policy."""
    by_id = {host.lease.host_id: host for host in due}
    ready = [ReadyHost(host.lease.host_id, host.lease.host, host.lease.site, len(host.tasks), 0, max(0.0, host.pace.not_before - now)) for host in due]
    return [by_id[host_id] for host_id in policy.choose(ready, room)]
