"""What may be fetched next, and what was: `model.crawl_store.CrawlStore` on PostgreSQL. Its promises stand there.

Any number of processes on any machines. Times are the database's: `now` of the calls is not used, save by tests that hold the clock.
Reasons and figures: docs/decisions/0040.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import psycopg
from psycopg.rows import TupleRow

from periplus.model.frontier import Batch, Candidate, Errand, HostRow, Lease, ReadyHost, RunCounts, StoredRobots, Task, TrapMemory, TrapTally
from periplus.model.visit import Reason
from periplus.model.web import HostKey, Origin, SiteKey, Url, UrlId
from periplus.settings import Budget, Keeping
from periplus.store.postgres import hosts, inbox, moved, pages, pausing, reading, status, tasks
from periplus.store.postgres.address import Address
from periplus.store.postgres.bulk import cleaned
from periplus.store.postgres.committing import Commit
from periplus.store.postgres.connection import Connection
from periplus.store.postgres.hosts import Member
from periplus.store.postgres.inbox import AT_ONCE, Mail
from periplus.store.postgres.ledger import Ledger
from periplus.store.postgres.packing import Packer
from periplus.store.postgres.schema import shard_of
from periplus.store.postgres.session import Session
from periplus.store.processes import process_lives
from periplus.store.standing import BARRIER_POLL_S

MERGE_S = 0.5  # how often a worker looks into the inbox: a commit's interval, for what is merged sooner is not asked for sooner
READ_AT_ONCE = 10_000  # of the URLs that an earlier run left out: there may be millions
RENEW_S = 1.0  # how often a worker without hosts says that it is there: a transaction, and there may be a hundred such workers
_UNREADABLE = (psycopg.DataError, UnicodeEncodeError)  # a text that PostgreSQL does not take


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What tests say in the world's place. is_alive: whether a process of this machine exists; own_clock: the database's own, not the caller's;
    merge_s: how often the inbox is looked into."""

    is_alive: Callable[[int], bool] = process_lives
    own_clock: bool = True
    merge_s: float = MERGE_S


class PostgresCrawlStore:
    """One process's access to a collection's frontier and pages, within one run."""

    def __init__(self, address: Address, run_id: int, budget: Budget, keeping: Keeping, world: Surroundings = Surroundings()) -> None:
        self._session = Session(address)
        self._collection, self._budget, self._keeping = address.collection, budget, keeping
        self.is_alive, self._own_clock, self._merge_s = world.is_alive, world.own_clock, world.merge_s
        self._run = self._session.run(lambda connection: reading.run_of(connection, run_id))
        self._members: dict[str, Member] = {}
        self._batches: dict[str, int] = {}  # stored for each worker: tells a commit whose answer was lost from one that was not done
        self._renewed_at: dict[str, float] = {}  # when each worker last said that it is there, having nothing to lease
        self._commit = Commit(self._run, keeping)
        self._packer = Packer(self._session, keeping, *self._session.run(lambda connection: reading.segments_of(connection, run_id)))
        self._merged_at = 0.0
        self._shards: dict[int, int] = {}  # of hosts that `ready` named
        self.budget_spent = False

    def _given(self, now: float) -> float | None:
        return None if self._own_clock else now

    # workers and leases ----------------------------------------------------------------------------------------------

    def join(self, pid: int, now: float) -> str:
        given = self._given(now)

        def enter(connection: Connection) -> tuple[str, int]:
            moved.refuse(connection)
            self._bury_fallen(connection, given)
            return hosts.enter(connection, pid, self._keeping.lease_s, given)

        name, part = self._session.run(enter)
        self._members[name], self._batches[name] = Member(name, pid, part), 0
        return name

    def leave(self, worker: str, now: float) -> None:
        self._session.run(lambda connection: hosts.bury(connection, [worker], self.is_alive, self._given(now), leaving=True))

    def _bury_fallen(self, connection: Connection, given: float | None) -> None:
        if fallen := hosts.fallen(connection, self.is_alive, given):
            hosts.bury(connection, fallen, self.is_alive, given)

    def ready(self, most: int, horizon_s: float, now: float) -> Sequence[ReadyHost]:
        self._merge_if_due(now)
        given = self._given(now)
        if self._session.read(lambda connection: hosts.fallen(connection, self.is_alive, given)):
            self._session.run(lambda connection: self._bury_fallen(connection, given))  # here: who waits for a dead worker's hosts never comes to lease
        found = self._session.read(lambda connection: hosts.ready(connection, most, horizon_s, given))
        self._shards = {host.host_id: shard_of(host.site) for host in found}
        return found

    def lease(self, worker: str, host_ids: Sequence[int], now: float) -> Sequence[Lease]:
        given = self._given(now)
        if not host_ids and time.monotonic() - self._renewed_at.get(worker, -RENEW_S) < RENEW_S * self._own_clock:
            return ()

        def grab(connection: Connection) -> list[Lease]:
            self._bury_fallen(connection, given)
            hosts.renew(connection, self._members[worker], self._keeping.lease_s, self._batches[worker], given)
            known = [(self._shards[host_id], host_id) for host_id in host_ids if host_id in self._shards]
            others = [host_id for host_id in host_ids if host_id not in self._shards]
            wanted = known + (reading.shards(connection, others) if others else [])
            return hosts.grab(connection, worker, wanted, given) if wanted else []

        leases = self._session.run(grab)
        self._renewed_at[worker] = time.monotonic()
        return leases

    def fair_share(self, now: float) -> int:
        given = self._given(now)
        if dead := self._session.read(lambda connection: hosts.dead(connection, self.is_alive)):  # they would be counted until their lease ends
            self._session.run(lambda connection: hosts.bury(connection, dead, self.is_alive, given))
        return self._session.read(lambda connection: reading.fair_share(connection, given))

    def is_paused(self) -> bool:
        return self._session.read(pausing.is_paused)

    def idle(self, now: float) -> bool:
        return self._session.read(reading.is_idle)

    # tasks -----------------------------------------------------------------------------------------------------------

    def take(self, lease: Lease, most: int, in_hand: frozenset[tuple[int, int]], now: float) -> tuple[Sequence[Task], float | None]:
        ask = self._session.run if self._budget.max_pages else self._session.read
        taken = ask(lambda connection: self._take(connection, lease, most, in_hand, self._given(now)))
        if taken.stale:
            self._session.run(lambda connection: tasks.forget(connection, lease, taken.stale))
        return taken.tasks, taken.later_s

    def _take(self, connection: Connection, lease: Lease, most: int, in_hand: frozenset[tuple[int, int]], now: float | None) -> tasks.Taken:
        if not self._budget.max_pages:
            return tasks.take(connection, lease, most, in_hand, now)
        if not reading.is_held(connection, lease):
            return tasks.Taken((), None)
        allowed = tasks.allowance(connection, tasks.Limit(self._collection, self._run.id, self._budget), lease, len(in_hand), now)
        if allowed.pages <= 0:
            self.budget_spent |= allowed.is_spent
            return tasks.Taken((), BARRIER_POLL_S)
        taken = tasks.take(connection, lease, min(most, allowed.pages), in_hand, now)
        holder = "(SELECT lease_by FROM host WHERE shard = %s AND id = %s)"
        values = (len(taken.tasks), shard_of(lease.site), lease.host_id)
        connection.execute(f"UPDATE worker SET in_hand = in_hand + %s WHERE name = {holder}", values)
        return taken

    def robots(self, origin: Origin) -> StoredRobots | None:
        return self._session.read(lambda connection: reading.robots(connection, origin))

    def trap_memory(self, lease: Lease) -> TrapMemory:
        return self._session.read(lambda connection: reading.trap_memory(connection, lease))

    def known(self, lease: Lease, urls: Sequence[UrlId]) -> frozenset[UrlId]:
        return self._session.read(lambda connection: reading.known(connection, lease, urls))

    def texts(self, site: SiteKey, most: int) -> Iterator[tuple[Url, bytes]]:
        """(url, digest of its text) of the site's pages that were fetched, the latest `most`, oldest first."""
        yield from self._session.read(lambda connection: reading.texts(connection, site, most))

    def merge_twins(self) -> int:
        return self._session.run(pages.merge_twins)

    # writing ---------------------------------------------------------------------------------------------------------

    def offer(self, candidates: Iterable[Candidate], errands: Iterable[Errand], now: float, *, reopen: bool = False) -> int:
        wished, sent, fresh = list(candidates), list(errands), 0
        for start in range(0, max(1, len(wished)), AT_ONCE):
            mail = cleaned(Mail(tuple(wished[start : start + AT_ONCE]), tuple(sent) if start == 0 else ()))
            fresh += self._session.run(lambda connection, mail=mail: self._offer(connection, mail, self._given(now), reopen=reopen))  # type: ignore[misc]  # bound at once
        return fresh

    def _offer(self, connection: Connection, mail: Mail, now: float | None, *, reopen: bool) -> int:
        ledger = Ledger(connection, self._run, 0, hosts.time_now(connection, now))
        return inbox.enter_from_outside(connection, self._collection, ledger, mail, reopen=reopen)

    def commit(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        try:
            return self._store(worker, batch, now)
        except _UNREADABLE:
            return self._store(worker, cleaned(batch), now)

    def _store(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        parcels = self._packer.pack(batch)
        member, batches = self._members[worker], self._batches[worker]
        lost, sent_out = self._session.run(lambda connection: self._commit.store(connection, member, parcels, batches, self._given(now)))
        self._batches[worker] = batches + 1
        self._commit.settled(batch, lost)
        if sent_out:
            self._merge_if_due(now, part=member.part)
        return lost

    def _merge_if_due(self, now: float, part: int = 0) -> None:
        """Brings what stands in the inbox to its hosts, if it is time; part: in whose name the sums are kept."""
        if self._merged_at and time.monotonic() - self._merged_at < self._merge_s:
            return
        owner = part or max((member.part for member in self._members.values()), default=0)

        def merge(connection: Connection) -> int:
            return inbox.merge(connection, self._collection, lambda moment: Ledger(connection, self._run, owner, moment), self._given(now))

        while not self._session.read(inbox.is_empty) and self._session.run(merge) >= AT_ONCE:
            pass
        self._merged_at = time.monotonic()

    # reading ---------------------------------------------------------------------------------------------------------

    def counts(self) -> RunCounts:
        return self._session.read(lambda connection: reading.counts(connection, self._run))

    def is_running(self) -> bool:
        """Whether nobody has ended the run."""
        find = "SELECT 1 FROM run WHERE id = %s AND state = 'running'"
        return self._session.read(lambda connection: connection.execute(find, (self._run.id,)).fetchone()) is not None

    def traps(self) -> Sequence[TrapTally]:
        return self._session.read(status.traps)

    def standing(self, url: Url) -> tuple[Reason, str]:
        """How a known URL stands, and by which rule."""
        return self._session.read(lambda connection: reading.standing(connection, url))

    def never_asked(self, reasons: Sequence[Reason]) -> Iterator[tuple[Url, int | None, bool]]:
        """(url, layer, in sitemap) of the URLs that stand at one of these reasons, none of which means that they were fetched."""
        find = "SELECT shard, id, text, layer, in_sitemap FROM url WHERE (shard, id) > (%s, %s) AND reason = ANY(%s) ORDER BY shard, id LIMIT %s"
        names, last = [reason.value for reason in reasons], (-1, 0)
        while rows := self._session.read(partial(_fetched, find, (*last, names, READ_AT_ONCE))):
            for _, _, text, layer, in_sitemap in rows:
                yield Url(text), layer, bool(in_sitemap)
            last = rows[-1][:2]

    def busiest(self, most: int, now: float) -> Sequence[HostRow]:
        """Hosts with work, those with most waiting first."""
        find = (
            f"SELECT key, pending, fetched, next_at - {hosts.NOW}, waits_for, lease_by IS NOT NULL FROM host"
            " WHERE pending > 0 ORDER BY pending DESC LIMIT %(most)s"
        )
        values = {"most": most, "now": self._given(now)}
        rows = self._session.read(lambda connection: connection.execute(find, values).fetchall())
        return [HostRow(HostKey(key), pending, fetched, max(0.0, wait), why, leased) for key, pending, fetched, wait, why, leased in rows]

    def close(self) -> None:
        self._packer.close()
        self._session.close()


def _fetched(query: str, values: tuple[object, ...], connection: Connection) -> list[TupleRow]:
    return connection.execute(query, values).fetchall()
