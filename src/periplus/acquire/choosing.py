"""What policies decide in a worker: the turns of sites by default, and pages that are chosen ahead of their hosts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from periplus.acquire.leases import EVERY_HOST, ChosenPage, Commits, Leases, WorkerDeps
from periplus.model.frontier import CHOSEN_NOTE, PageVisit, ReadyHost
from periplus.model.web import HostKey, Url
from periplus.urls.hosts import host_key
from periplus.values import frozen


@frozen
class SiteTurns:
    """`model.ports.Policy`: sites with fewer fetched quanta of pages go first; within a quantum, hosts by due time.

    The store orders the pages within a site, by depth.
    """

    quantum: int  # pages
    window: None = None
    most_hosts: int = 0
    reads_text: bool = False
    mark: int = 0

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        turns = sorted(ready, key=lambda host: (host.site_fetched // self.quantum, host.wait_s, host.host))
        return [host.host_id for host in turns[:most]]

    def next(self, host: HostKey) -> Iterator[Url]:
        return iter(())

    def learn(self, visits: Iterable[PageVisit]) -> None:
        """Does nothing: turns do not depend on the content of pages."""


class PagesAhead:
    """Pages that a policy with a window chooses in sequence, each from the results of those before the window.

    Answers are committed in the order of choice, so choices do not depend on the order in which responses arrive.
    """

    def __init__(self, deps: WorkerDeps, commits: Commits, leases: Leases) -> None:
        self._store, self._clock, self._policy = deps.store, deps.clock, deps.policy
        self._commits, self._leases, self._hosts = commits, leases, commits.hosts
        self._window = deps.policy.window or 0
        self._is_all_chosen = False  # no further page can be chosen until the next commit

    def restore(self) -> None:
        """Chooses again the pages that an earlier process chose but did not commit."""
        for page in map(Url, self._store.note(CHOSEN_NOTE).split()):
            hosts = [host.host_id for host in self._hosts_with_work() if host.host == host_key(page)]
            if not (hosts and self._pick(hosts[0], (page,))):
                self._commits.choices.append(ChosenPage(page, is_done=True))  # keeps its place in the order

    def advance(self) -> None:
        """Commits answers in the order of choice, and chooses further pages after each commit."""
        chosen = self._commits.choices
        while True:
            picked: bool | None = not self._is_all_chosen
            while picked and len(chosen) < self._window:
                picked = self._choose()
            self._is_all_chosen = picked is False
            if picked is None or not chosen or not chosen[0].is_done:
                return
            if (answer := chosen.popleft().answer) is not None:
                self._commits.done.append(answer)
            self._commits.commit()
            self._is_all_chosen = False

    def run_errands(self) -> None:
        """Takes the requests that other hosts wait for, without a choice."""
        if self._commits.has_errands:
            hosts = self._store.urgent([host.host_id for host in self._hosts_with_work()])
            for host_id in hosts:
                self._pick(host_id)
            self._commits.has_errands = bool(hosts)

    def _choose(self) -> bool | None:
        """Chooses a page, even if its host's delay still runs. False: no page is left; None: not known yet."""
        is_paused = not self._store.fair_share(self._clock.now())
        if not is_paused:
            if self._commits.done:  # their hosts cannot continue before the commit
                self._commits.commit()
            busy = {choice.entry[0] for choice in self._commits.choices}
            hosts = [host for host in self._hosts_with_work() if host.host_id not in busy]
            for host_id in self._policy.choose(hosts, len(hosts)):
                if self._pick(host_id):
                    return True
                if host_id in self._hosts.by_id and self._hosts.by_id[host_id].has_errand:
                    return None
                if self._store.budget_spent:
                    break
        if not self._commits.choices:
            self._commits.release(self._hosts.idle())
        return None if is_paused else False

    def _hosts_with_work(self) -> list[ReadyHost]:
        """Hosts that have tasks, as far as the store knows without a request."""
        held = [host.as_ready() for host in self._hosts.by_id.values() if not host.exhausted]
        return [*held, *self._store.ready(EVERY_HOST, math.inf, self._clock.now())]

    def _pick(self, host_id: int, pages: Iterable[Url] | None = None) -> bool:
        """Chooses a page of the host, from `pages` or by the policy. Returns whether a page was chosen."""
        held = self._hosts.by_id
        if host_id not in held:
            if len(held) >= self._policy.most_hosts:
                self._commits.release(self._hosts.idle())
            self._leases.lease([host_id])
        host = held.get(host_id)
        if host is None or host.has_errand or not self._leases.refill(host, pages):
            return False
        self._hosts.schedule(host)
        task = host.tasks[-1]
        if task.priority < 0:
            host.tasks.rotate()  # before the host's page, which may itself wait for other hosts
            return False
        self._commits.choices.append(ChosenPage(task.request.url, (host_id, task.priority, task.seq)))
        return True
