"""Reference implementation of `model.ports.CrawlStore`: lists, dictionaries, linear searches.

It does not store pages, except for the links of a document, for policies.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from periplus.acquire.politeness import may_pass
from periplus.model.frontier import (
    CHOSEN_NOTE,
    PRIORITY_CHECK,
    PRIORITY_WITHOUT_DEPTH,
    Lease,
    LinkSighting,
    PageVisit,
    ReadyHost,
    RunCounts,
    ShownLines,
    Task,
    TrapMemory,
)
from periplus.model.visit import Fetched, Reason, Redirected, Request, Skipped
from periplus.urls.canonical import url_id
from periplus.urls.hosts import origin_of

POLL_S = 0.2
RIVAL_WAIT_S = 2.0  # a site that fails, or must wait longer, does not block others
UNFOLLOWED = {Reason.NOFOLLOW, Reason.RESOURCE}
RAISED = UNFOLLOWED | {Reason.DEPTH}
REOPENED = RAISED | {
    Reason.SCOPE,
    Reason.TRAP,
    Reason.HOST_DOWN,
    Reason.ROBOTS,
    Reason.ROBOTS_UNREACHABLE,
    Reason.TLS,
    Reason.PRIVATE,
    Reason.ALIVE,
}


@dataclass
class Host:
    id: int
    key: str
    site: str
    next_at: float = 0.0
    delay_s: float = 0.5
    rate: float = 1.0
    strikes: int = 0
    answered: bool = False
    lease_by: str | None = None
    epoch: int = 0


@dataclass
class Known:
    reason: Reason
    depth: int | None
    in_sitemap: bool


@dataclass
class Entry:
    host_id: int
    priority: int
    seq: int
    url_id: int
    request: Request
    not_before: float = 0.0


@dataclass
class Worker:
    pid: int
    until: float
    in_hand: int = 0


@dataclass
class PlainStore:
    budget: object
    storage: object
    is_alive: object
    budget_spent: bool = False
    failovers: int = 0
    hosts: list[Host] = field(default_factory=list)
    urls: dict[int, Known] = field(default_factory=dict)
    queue: list[Entry] = field(default_factory=list)
    workers: dict[str, Worker] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)
    robots_of: dict[str, object] = field(default_factory=dict)
    patterns_of: dict[tuple[int, str], object] = field(default_factory=dict)
    lines_of: dict[int, list] = field(default_factory=dict)
    doubts: dict[int, tuple[int, int]] = field(default_factory=dict)
    site_fetched: Counter = field(default_factory=Counter)
    fetched: int = 0
    wire_bytes: int = 0
    seq: int = 0
    paused: bool = False
    is_check: bool = False
    visited: list[PageVisit] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)

    # workers and leases

    def join(self, pid, now):
        self._bury_fallen(now)
        name = f"{pid}-{len(self.pids)}-{now}"
        self.pids[name] = pid
        self.workers[name] = Worker(pid, now + self.storage.lease_s)
        return name

    def leave(self, worker, now):
        self.workers.pop(worker, None)
        for host in self.hosts:
            if host.lease_by == worker:
                host.lease_by, host.next_at = None, max(host.next_at, now + host.delay_s / host.rate)

    def _bury_fallen(self, now, *, silent=True):
        for name, worker in list(self.workers.items()):
            if (silent and worker.until < now) or not self.is_alive(worker.pid):
                self.leave(name, now)

    def _pending(self, host_id):
        return [entry for entry in self.queue if entry.host_id == host_id]

    def _work(self, host_id=None):
        """Entries for this run: a check does not change pages."""
        return [
            entry
            for entry in self.queue
            if host_id in (None, entry.host_id)
            and (not self.is_check or entry.priority < 0 or entry.priority == PRIORITY_CHECK)
        ]

    def ready(self, most, horizon_s, now):
        self._bury_fallen(now)
        if self.paused:
            return []
        free = [
            host
            for host in self.hosts
            if self._work(host.id) and host.lease_by is None and host.next_at <= now + horizon_s
        ]
        free.sort(key=lambda host: host.next_at)
        return [
            ReadyHost(
                host.id,
                host.key,
                host.site,
                len(self._pending(host.id)),
                self.site_fetched[host.site],
                max(0.0, host.next_at - now),
            )
            for host in free[:most]
        ]

    def lease(self, worker, host_ids, now):
        self._bury_fallen(now)
        self.workers.setdefault(worker, Worker(self.pids[worker], 0)).until = now + self.storage.lease_s
        leases = []
        for host in (self.hosts[host_id - 1] for host_id in ([] if self.paused else host_ids)):
            if host.lease_by is None and self._pending(host.id):
                host.lease_by, host.epoch = worker, host.epoch + 1
                wait_s = max(0.0, host.next_at - now)
                leases.append(
                    Lease(
                        host.id,
                        host.key,
                        host.site,
                        host.epoch,
                        wait_s,
                        host.delay_s,
                        host.rate,
                        host.strikes,
                        host.answered,
                    )
                )
        return leases

    def _holds(self, lease):
        host = self.hosts[lease.host_id - 1]
        return host.lease_by is not None and host.epoch == lease.epoch

    def fair_share(self, now):
        self._bury_fallen(now, silent=False)
        hosts = {entry.host_id for entry in self._work()}
        workers = [worker for worker in self.workers.values() if worker.until >= now]
        return 0 if self.paused else max(1, -(-len(hosts) // max(1, len(workers))))

    def is_paused(self):
        return self.paused

    def idle(self, now):
        return not self._work()

    # tasks

    def take(self, lease, most, in_hand, now, pages=()):
        if not self._holds(lease):
            return (), None
        if not self.budget.max_pages or self.urgent([lease.host_id]):
            return self._take(lease, most, in_hand, now, pages)
        most = min(most, self._allowance(lease, len(in_hand), now))
        tasks, later_s = self._take(lease, most, in_hand, now, pages) if most > 0 else ((), POLL_S)
        self.workers[self.hosts[lease.host_id - 1].lease_by].in_hand += len(tasks)
        return tasks, later_s

    def _allowance(self, lease, in_hand, now):
        left = self.budget.max_pages - self.fetched - sum(worker.in_hand for worker in self.workers.values())
        if left <= 0:
            self.budget_spent = self.fetched >= self.budget.max_pages
            return 0
        busy = {entry.host_id for entry in self.queue}
        rivals = {
            host.site
            for host in self.hosts
            if host.id in busy and host.strikes == 0 and host.next_at <= now + RIVAL_WAIT_S
        } - {lease.site}
        if rivals:
            left = min(
                left,
                min(self.site_fetched[site] for site in rivals)
                + self.budget.quantum
                - self.site_fetched[lease.site]
                - in_hand,
            )
        return left

    def urgent(self, host_ids):
        return frozenset(entry.host_id for entry in self.queue if entry.priority < 0) & frozenset(host_ids)

    def _take(self, lease, most, in_hand, now, pages):
        own = self._work(lease.host_id)
        if not own:
            return (), None
        priority = min(entry.priority for entry in own)
        for page in map(url_id, pages if priority >= 0 else ()):
            for entry in own:
                waits = entry.url_id == page and self.urls[page].reason is Reason.WAITING and entry.not_before <= now
                if waits and (entry.priority, entry.seq) not in in_hand:
                    return (self._task(entry),), None
        priorities_of_site = [
            entry.priority
            for entry in self.queue
            if self.hosts[entry.host_id - 1].site == lease.site and entry.priority >= 0
        ]
        if priority >= 0 and not self.is_check and min(priorities_of_site) < priority:
            return (), POLL_S
        held = {entry.url_id for entry in own if (entry.priority, entry.seq) in in_hand and entry.url_id}
        free = [
            entry
            for entry in own
            if entry.priority == priority and (entry.priority, entry.seq) not in in_hand and entry.url_id not in held
        ]
        stale = [entry for entry in free if entry.url_id and self.urls[entry.url_id].reason is not Reason.WAITING]
        self.queue = [entry for entry in self.queue if entry not in stale]
        free = [entry for entry in free if entry not in stale]
        tasks = [self._task(entry) for entry in free if entry.not_before <= now][:most]
        later = [entry.not_before - now for entry in free if entry.not_before > now]
        if tasks:
            return tasks, None
        if later:
            return (), min(later)
        return (), 0.0 if stale and not in_hand else None

    def _task(self, entry):
        request = replace(entry.request, depth=self.urls[entry.url_id].depth) if entry.url_id else entry.request
        return Task(
            entry.host_id,
            entry.priority,
            entry.seq,
            entry.url_id,
            request,
            doubt=self.doubts.get(entry.url_id, (0, 0))[1],
        )

    def robots(self, origin):
        return self.robots_of.get(origin)

    def trap_memory(self, lease):
        patterns = tuple(
            record for (host_id, _), record in sorted(self.patterns_of.items()) if host_id == lease.host_id
        )
        lines = self.lines_of.get(lease.host_id, [])
        doubts = tuple(
            sorted((url, doubt) for url, (host_id, doubt) in self.doubts.items() if host_id == lease.host_id)
        )
        return TrapMemory(
            patterns, ShownLines(lines[0].first, b"".join(one.keys for one in lines)) if lines else ShownLines(), doubts
        )

    def note(self, name):
        return self.notes.get(name, "")

    def stored_urls(self, lease, urls):
        return frozenset(url for url in urls if url in self.urls)

    # changes

    def _host(self, key, site):
        for host in self.hosts:
            if host.key == key:
                return host
        self.hosts.append(Host(len(self.hosts) + 1, key, site))
        return self.hosts[-1]

    def _enter(self, host_id, priority, url_id, request, not_before=0.0):
        self.queue.append(Entry(host_id, priority, self.seq, url_id, request, not_before))
        self.queue.sort(key=lambda entry: (entry.priority, entry.seq))
        self.seq += 1

    def offer(self, candidates, side_requests, now, *, reopen=False):
        fresh = sum([self._offer(candidate, reopen) for candidate in candidates])
        for side_request in side_requests:
            self._send(side_request)
        return fresh

    def _offer(self, candidate, reopen=False):
        host = self._host(candidate.host, candidate.site)
        known = self.urls.get(candidate.url_id)
        waits = candidate.reason is Reason.WAITING
        if known is None:
            known = self.urls[candidate.url_id] = Known(candidate.reason, candidate.depth, candidate.in_sitemap)
        else:
            known.in_sitemap |= candidate.in_sitemap
            if candidate.vouched and not reopen:
                self.doubts.pop(candidate.url_id, None)
            noted = known.reason in UNFOLLOWED
            if candidate.reason in UNFOLLOWED and not noted:
                return False
            only_sitemap = known.reason is Reason.WAITING and known.depth is None and candidate.depth is not None
            raised = waits and (
                known.reason in (REOPENED if reopen else RAISED) or (known.reason is Reason.TRAP and candidate.vouched)
            )
            if (
                (raised and noted)
                or known.depth is None
                or (candidate.depth is not None and candidate.depth < known.depth)
            ):
                known.depth = candidate.depth
            if raised:
                known.reason = Reason.WAITING
            waits = raised or (waits and only_sitemap)
        if waits:
            self._enter(
                host.id,
                PRIORITY_WITHOUT_DEPTH if known.depth is None else known.depth,
                candidate.url_id,
                Request(candidate.url, hops=candidate.hops),
            )
        return waits

    def _send(self, side_request):
        host, wanted = (
            self._host(side_request.host, side_request.site),
            (side_request.request.url, side_request.request.about),
        )
        if not any(
            (entry.request.url, entry.request.about) == wanted
            for entry in self._pending(host.id)
            if entry.priority == side_request.priority
        ):
            self._enter(host.id, side_request.priority, 0, side_request.request)

    def commit(self, worker, batch, now):
        lost = {
            part.lease
            for part in (*batch.completions, *batch.hosts)
            if not self._holds(part.lease) or self._holder(part.lease) != worker
        }
        for completion in batch.completions:
            if completion.lease not in lost:
                self._complete(completion, now)
        self.robots_of |= {robots.origin: robots for robots in batch.robots}
        for side_request in batch.side_requests:
            self._send(side_request)
        for state in batch.hosts:
            if state.lease not in lost:
                self._settle(state, now)
        if batch.chosen is not None:
            self.notes[CHOSEN_NOTE] = "\n".join(batch.chosen)
        if worker in self.workers:
            self.workers[worker].until, self.workers[worker].in_hand = now + self.storage.lease_s, batch.in_hand
        return frozenset(lost)

    def _holder(self, lease):
        return self.hosts[lease.host_id - 1].lease_by

    def _complete(self, completion, now):
        task = completion.task
        if task.url_id:
            self.visited.append(self._visit(completion))
        listed = [
            entry for entry in self._pending(task.host_id) if (entry.priority, entry.seq) == (task.priority, task.seq)
        ]
        self.queue = [entry for entry in self.queue if entry not in listed]
        asked = not isinstance(completion.visit.outcome, Skipped)
        if task.url_id and asked:
            self.fetched += 1
            self.wire_bytes += completion.visit.wire_bytes
            self.site_fetched[completion.lease.site] += 1
        if completion.reason is not None and task.url_id:
            self.urls[task.url_id].reason = completion.reason
        if completion.reason is None and listed:
            respelled = task.request.url != completion.visit.request.url
            again = replace(task.request, attempt=task.request.attempt + (asked and not respelled))
            priority = task.priority if completion.retry_priority is None else completion.retry_priority
            self._enter(task.host_id, priority, task.url_id, again, now + completion.retry_in_s)
        for candidate in completion.candidates:
            self._offer(candidate)

    def _visit(self, completion):
        outcome, request = completion.visit.outcome, completion.task.request
        read = isinstance(outcome, Fetched) and 200 <= outcome.status < 300
        links = completion.document.links if read and completion.document else ()
        return PageVisit(
            len(self.visited) + 1,
            completion.task.url_id,
            request.url,
            request.depth,
            completion.visit.took_s,
            not isinstance(outcome, Skipped),
            read,
            may_pass(outcome),
            outcome.target if isinstance(outcome, Redirected) else "",
            tuple(
                LinkSighting(link.target, link.kind.value, link.position.value, link.anchor, link.nofollow)
                for link in links
            ),
        )

    def visits(self, after, *, texts=False):
        return iter(self.visited[after:])

    def _settle(self, state, now):
        host = self.hosts[state.lease.host_id - 1]
        host.next_at, host.delay_s, host.rate = now + state.wait_s, state.delay_s, state.rate
        host.strikes, host.answered = state.strikes, state.answered
        self._keep_traps(host.id, state.traps)
        for given_up in state.given_up:
            dropped = [entry for entry in self._pending(host.id) if origin_of(entry.request.url) == given_up.origin]
            for entry in dropped:
                if entry.url_id and self.urls[entry.url_id].reason is Reason.WAITING:
                    self.urls[entry.url_id].reason = given_up.reason
            self.queue = [entry for entry in self.queue if entry not in dropped]
        if state.release:
            host.lease_by = None

    def _keep_traps(self, host_id, changes):
        self.patterns_of |= {(host_id, record.key): record for record in changes.patterns}
        if changes.lines.keys:
            lines = [*self.lines_of.get(host_id, []), changes.lines]
            self.lines_of[host_id] = [
                one for one in lines if one.first + len(one.keys) // 4 > changes.lines.needed_from
            ]
        for url, doubt in changes.doubts:
            self.doubts.pop(url, None)
            if doubt and url in self.urls:
                self.doubts[url] = (host_id, doubt)

    def counts(self):
        by_reason = Counter(known.reason.value for known in self.urls.values())
        return RunCounts(len(self.urls), by_reason["waiting"], self.fetched, self.wire_bytes, dict(by_reason))

    def close(self):
        pass
