"""The frontier on PostgreSQL, `model.ports.CrawlStore` and `CrawlHome`: what may be fetched next, and what was."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import psycopg

from periplus.errors import StoreError, UsageError
from periplus.model.audit import FaultNote
from periplus.model.frontier import (
    ASKED_AGAIN,
    EARLY_SHARE,
    FIRST_INTERVAL_S,
    PRIORITY_NONE,
    Batch,
    Candidate,
    Lease,
    PageVisit,
    ReadyHost,
    RefreshFinding,
    SideRequest,
    Task,
)
from periplus.model.ports import CrawlScope, RunRecord, VisitReader
from periplus.model.visit import Purpose, Request
from periplus.model.web import SiteKey, Url, UrlId
from periplus.settings import Budget, Settings, Storage
from periplus.store import fault_notes, runs
from periplus.store.crawl_reads import CrawlReads, change_note, note
from periplus.store.dialect import Statements, shard_of
from periplus.store.ledger import HostRef
from periplus.store.ledger_tables import forget_entries
from periplus.store.postgres import committing, hosts, index_place, schema, survey
from periplus.store.postgres import ledger as ledgers
from periplus.store.postgres import pages as stored_pages
from periplus.store.postgres.address import Address
from periplus.store.postgres.committing import Commit
from periplus.store.postgres.connection import (
    FIRST_PATIENCE_S,
    PATIENCE_S,
    Connection,
    Session,
    cleaned,
    columns_of,
    connect,
    try_lock,
)
from periplus.store.postgres.hosts import CHECKS, NOW, Member
from periplus.store.postgres.ledger import AT_ONCE, DatabaseLedger, Mail, lock_number
from periplus.store.postgres.pages import Packer
from periplus.store.postgres.schema import LOCK_BUDGET
from periplus.store.postgres.statements import PostgresStatements
from periplus.store.processes import process_lives
from periplus.store.segments import object_storage
from periplus.store.url_state import BARRIER_POLL_S, RIVAL_WAIT_S, Held, TaskQuery, TaskRow, chosen, held_body
from periplus.urls.canonical import url_id
from periplus.urls.parameters import rules_key

T = TypeVar("T")
Stale = Sequence[tuple[int, int]]
_SPARE = 16  # entries read beyond those asked for, and as many again: some may be stale, or not yet due

# The lowest priority of the site's other hosts, and the first entries of the list.
_FIND = f"""
WITH held AS MATERIALIZED (SELECT {NOW} AS now, (
    SELECT min((SELECT min(q.priority) FROM queue q WHERE q.shard = o.shard AND q.host_id = o.id AND q.priority >= 0))
    FROM host o WHERE o.shard = h.shard AND o.site_id = h.site_id AND o.id <> h.id AND o.pending > 0) AS others
    FROM host h WHERE h.shard = %(shard)s AND h.id = %(host)s AND h.epoch = %(epoch)s AND h.lease_by IS NOT NULL)
SELECT held.now, held.others, q.priority, q.seq, q.url_id, coalesce(q.text, u.text), q.purpose, q.about, q.hops, q.attempt, q.not_before,
    u.depth, u.reason, coalesce(d.doubt, 0), p.body_md5, p.etag, p.last_modified_field, p.cut
FROM held CROSS JOIN LATERAL (
    SELECT * FROM queue WHERE shard = %(shard)s AND host_id = %(host)s{{}} ORDER BY priority, seq LIMIT %(most)s) q
    LEFT JOIN url u ON u.shard = q.shard AND u.id = q.url_id LEFT JOIN doubtful d ON d.shard = q.shard AND d.url_id = q.url_id
    LEFT JOIN page p ON p.shard = q.shard AND p.url_id = CASE WHEN q.purpose = 'recheck' THEN q.url_id END
ORDER BY q.priority, q.seq
"""  # noqa: E501
_FIND_IN = {False: _FIND.format(""), True: _FIND.format(f" AND {CHECKS}")}  # by whether the run is a check

_FIND_PAGE = f"""
SELECT q.priority, q.seq, u.text, q.hops, q.attempt, u.depth, coalesce(d.doubt, 0)
FROM queue q JOIN url u ON u.shard = q.shard AND u.id = q.url_id LEFT JOIN doubtful d ON d.shard = q.shard AND d.url_id = q.url_id
WHERE q.shard = %(shard)s AND q.host_id = %(host)s AND q.url_id = %(page)s AND q.purpose = 'page' AND u.reason = 'waiting'
    AND q.not_before <= {NOW} ORDER BY q.priority, q.seq LIMIT 1
"""  # noqa: E501


class Taken(NamedTuple):
    """What `take` answers, and what it found done by another entry."""

    tasks: Sequence[Task]
    later_s: float | None
    stale: Stale = ()


class HostQuery(NamedTuple):
    """What a worker asks of a host's list, and whether the run is a check, which leaves pages as they are."""

    most: int
    in_hand: frozenset[tuple[int, int]]
    now: float | None
    pages: Iterable[Url]
    is_check: bool


def take(connection: Connection, lease: Lease, query: HostQuery) -> Taken:
    """See `model.ports.CrawlStore.take`."""
    most, in_hand, now, pages, is_check = query
    shard = shard_of(lease.site)
    values = {"shard": shard, "host": lease.host_id, "epoch": lease.epoch, "now": now}
    values["most"] = 2 * most + len(in_hand) + _SPARE
    rows = connection.execute(_FIND_IN[is_check], values).fetchall()
    if not rows:  # the lease is lost, or its list is empty
        return Taken((), None)
    moment, of_others, own = rows[0][:3]
    for page in map(url_id, pages if own >= 0 else ()):
        row = connection.execute(_FIND_PAGE, values | {"page": page}).fetchone()
        if row is not None and row[:2] not in in_hand:
            request = Request(Url(row[2]), Purpose.PAGE, row[5], row[3], row[4])
            return Taken((Task(lease.host_id, row[0], row[1], page, request, doubt=row[6]),), None)
    if own >= 0 and not is_check and of_others is not None and of_others < own:
        return Taken((), BARRIER_POLL_S)
    bodies = {row[4]: row[14:] for row in rows if row[14] is not None}
    bodies = {row[5]: row[15:] for row in rows if row[15] is not None}

    def held(url_id: int, reason: str) -> Held:
        return held_body(reason, bodies.get(url_id))

    tasks = TaskQuery(lease.host_id, most, in_hand, _twins(connection, shard, lease.host_id, in_hand), moment)
    choice = chosen(tasks, (TaskRow(*row[2:14]) for row in rows if row[2] == own), held)
    return Taken(*choice.answer(bool(in_hand), moment), choice.stale)


def _twins(connection: Connection, shard: int, host_id: int, in_hand: frozenset[tuple[int, int]]) -> set[int]:
    """URLs in hand by their sitemap's entry, or put off: a link found meanwhile gave each a second one,
    which must not be fetched beside it.
    """
    entries = [entry for entry in in_hand if entry[0] >= PRIORITY_NONE]
    if not entries:
        return set()
    find = (
        "SELECT q.url_id FROM unnest(%s::bigint[], %s::bigint[]) k(priority, seq)"
        " JOIN queue q ON q.shard = %s AND q.host_id = %s AND q.priority = k.priority AND q.seq = k.seq"
        " WHERE q.url_id <> 0"
    )
    return {row[0] for row in connection.execute(find, (*columns_of(entries, 2), shard, host_id))}


def forget(connection: Connection, lease: Lease, stale: Stale) -> None:
    """Drops entries whose URL was done by way of another entry (a sitemap's, then a link's)."""
    shard = shard_of(lease.site)
    held = "SELECT 1 FROM host WHERE shard = %s AND id = %s AND epoch = %s AND lease_by IS NOT NULL FOR NO KEY UPDATE"
    if connection.execute(held, (shard, lease.host_id, lease.epoch)).fetchone() is None:
        return
    forget_entries(PostgresStatements(connection), HostRef(shard, lease.host_id), stale)


class Limit(NamedTuple):
    """A run's budget of pages."""

    collection: str
    run_id: int
    budget: Budget


class Allowance(NamedTuple):
    """How many pages a host may get now. is_spent: the budget's pages are fetched."""

    pages: int
    is_spent: bool


_LEFT = """
SELECT (SELECT fetched FROM run WHERE id = %(run)s) + coalesce((SELECT sum(value) FROM run_count WHERE run_id = %(run)s AND name = 'fetched'), 0)::bigint,
    coalesce((SELECT sum(in_hand) FROM worker), 0)::bigint
"""  # noqa: E501
_OWN = """
SELECT coalesce(sum(o.fetched), 0)::bigint FROM host h JOIN host o ON o.shard = h.shard AND o.site_id = h.site_id
WHERE h.shard = %s AND h.id = %s
"""
_RIVALS = f"""
SELECT min(fetched)::bigint, min(own)::bigint FROM (
    SELECT sum(o.fetched) FILTER (WHERE s.key <> %(site)s) AS fetched, sum(o.fetched) FILTER (WHERE s.key = %(site)s) AS own
    FROM site s JOIN host o ON o.shard = s.shard AND o.site_id = s.id
    WHERE s.key = %(site)s OR (s.shard, s.id) IN (
        SELECT h.shard, h.site_id FROM host h WHERE h.pending > 0 AND h.strikes = 0 AND h.next_at <= {NOW} + {RIVAL_WAIT_S})
    GROUP BY s.shard, s.id) v
"""  # noqa: E501


def allowance(connection: Connection, limit: Limit, lease: Lease, in_hand: int, now: float | None) -> Allowance:
    """What the budget leaves, and no more than a quantum ahead of the other sites.

    One worker at a time, until its transaction ends.
    """
    connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK_BUDGET, lock_number(limit.collection)))
    row = connection.execute(_LEFT, {"run": limit.run_id}).fetchone()
    assert row is not None
    fetched, held = row
    left = limit.budget.max_pages - fetched - held
    if left <= 0:
        return Allowance(0, limit.budget.max_pages <= fetched)
    own = connection.execute(_OWN, (shard_of(lease.site), lease.host_id)).fetchone()
    if own is not None and own[0] + in_hand + left <= limit.budget.quantum:
        return Allowance(left, False)  # no rival, however far behind, can hold it up
    rivals = connection.execute(_RIVALS, {"site": lease.site, "now": now}).fetchone()
    if rivals is not None and rivals[0] is not None:
        left = min(left, rivals[0] + limit.budget.quantum - (rivals[1] or 0) - in_hand)
    return Allowance(left, False)


# What may be fetched next, and what was: `model.ports.CrawlStore` on PostgreSQL. Its promises stand there.
#
# Any number of processes on any machines. Times are the database's: `now` of the calls is not used, save by tests that
# hold the clock. Reasons and figures: docs/decisions/0040.

# how often a worker looks into the inbox: a commit's interval, for what is merged sooner is not asked for sooner
MERGE_S = 0.5
# how often a worker without hosts says that it is there: a transaction, and there may be a hundred such workers
RENEW_S = 1.0
_UNREADABLE = (psycopg.DataError, UnicodeEncodeError)  # a text that PostgreSQL does not take


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What tests say in the world's place.

    is_alive: whether a process of this machine exists; own_clock: the database's own, not the caller's; merge_s: how
    often the inbox is looked into.
    """

    is_alive: Callable[[int], bool] = process_lives
    own_clock: bool = True
    merge_s: float = MERGE_S


class PostgresCrawlStore(CrawlReads):
    """One process's access to a collection's frontier and pages, within one run."""

    def __init__(
        self, address: Address, run_id: int, budget: Budget, storage: Storage, world: Surroundings = Surroundings()
    ) -> None:
        self._session = Session(address, succeeded=self._succeeded)
        self._collection, self._budget, self._storage = address.collection, budget, storage
        self.is_alive, self._own_clock, self._merge_s = world.is_alive, world.own_clock, world.merge_s
        self.run_id = run_id
        self._run = self._session.run(lambda connection: committing.run_of(connection, run_id))
        self._members: dict[str, Member] = {}
        # those that remember what a server that took another's place may lack
        self._misled: set[str] = set()
        # stored for each worker: tells a commit whose answer was lost from one that was not done
        self._batches: dict[str, int] = {}
        self._renewed_at: dict[str, float] = {}  # when each worker last said that it is there, having nothing to lease
        self._commit = Commit(self._run, storage)
        self._packer = Packer(
            self._session, storage, *self._session.run(lambda connection: committing.segments_of(connection, run_id))
        )
        self._is_check = self._session.read(lambda connection: committing.is_check(connection, run_id))
        self._latest_visits: set[int] = set()  # ids of the last that were read, see `survey.LATE`
        self._merged_at = 0.0
        self._shards: dict[int, int] = {}  # of hosts that `ready` named
        self.budget_spent = False

    def read(self, action: Callable[[Statements], T]) -> T:
        return self._session.read(lambda connection: action(PostgresStatements(connection)))

    def moment(self, now: float) -> float:
        return self._session.read(lambda connection: hosts.time_now(connection, self._given(now)))

    def _given(self, now: float) -> float | None:
        return None if self._own_clock else now

    def _succeeded(self, connection: Connection) -> None:
        """A standby took over, which may lack what was stored last: pages wait again or are not known, hosts are free.

        Each worker loses its leases at its next commit, of which nothing is stored: so it forgets what it knew of its
        hosts.
        """
        hosts.hold_off(connection, None)
        self._misled.update(self._members)

    # workers and leases ----------------------------------------------------------------------------------------------

    def join(self, pid: int, now: float) -> str:
        given = self._given(now)

        def enter(connection: Connection) -> tuple[str, int]:
            runs.refuse(PostgresStatements(connection))
            self._bury_fallen(connection, given)
            return hosts.enter(connection, pid, self._storage.lease_s, given)

        name, part = self._session.run(enter)
        self._members[name], self._batches[name] = Member(name, pid, part), 0
        return name

    def leave(self, worker: str, now: float) -> None:
        self._session.run(
            lambda connection: hosts.bury(connection, [worker], self.is_alive, self._given(now), leaving=True)
        )

    def _bury_fallen(self, connection: Connection, given: float | None) -> None:
        if fallen := hosts.fallen(connection, self.is_alive, given):
            hosts.bury(connection, fallen, self.is_alive, given)

    def ready(self, most: int, horizon_s: float, now: float) -> Sequence[ReadyHost]:
        self._merge_if_due(now)
        given = self._given(now)
        if self._session.read(lambda connection: hosts.fallen(connection, self.is_alive, given)):
            # here: who waits for a dead worker's hosts never comes to lease
            self._session.run(lambda connection: self._bury_fallen(connection, given))
        ready_hosts = self._session.read(
            lambda connection: hosts.ready(connection, most, horizon_s, given, checks=self._is_check)
        )
        self._shards = {host.host_id: shard_of(host.site) for host in ready_hosts}
        return ready_hosts

    def lease(self, worker: str, host_ids: Sequence[int], now: float) -> Sequence[Lease]:
        given = self._given(now)
        if not host_ids and time.monotonic() - self._renewed_at.get(worker, -RENEW_S) < RENEW_S * self._own_clock:
            return ()

        def grab(connection: Connection) -> list[Lease]:
            self._bury_fallen(connection, given)
            hosts.renew(connection, self._members[worker], self._storage.lease_s, self._batches[worker], given)
            named = [(self._shards[host_id], host_id) for host_id in host_ids if host_id in self._shards]
            others = [host_id for host_id in host_ids if host_id not in self._shards]
            places = named + (committing.shards(connection, others) if others else [])
            return hosts.grab(connection, worker, places, given) if places else []

        leases = self._session.run(grab)
        self._renewed_at[worker] = time.monotonic()
        return leases

    def fair_share(self, now: float) -> int:
        self._merge_if_due(now)  # what waits in the inbox may be for hosts that have no other work
        given = self._given(now)
        # they would be counted until their lease ends
        if dead := self._session.read(lambda connection: hosts.dead(connection, self.is_alive)):
            self._session.run(lambda connection: hosts.bury(connection, dead, self.is_alive, given))
        return self._session.read(lambda connection: committing.fair_share(connection, given, checks=self._is_check))

    def is_paused(self) -> bool:
        return self.read(runs.is_paused)

    def idle(self, now: float) -> bool:
        return self._session.read(lambda connection: committing.is_idle(connection, checks=self._is_check))

    # tasks -----------------------------------------------------------------------------------------------------------

    def take(
        self, lease: Lease, most: int, in_hand: frozenset[tuple[int, int]], now: float, pages: Iterable[Url] = ()
    ) -> tuple[Sequence[Task], float | None]:
        ask = self._session.run if self._budget.max_pages else self._session.read
        query = HostQuery(most, in_hand, self._given(now), pages, self._is_check)
        taken = ask(lambda connection: self._take(connection, lease, query))
        if taken.stale:
            self._session.run(lambda connection: forget(connection, lease, taken.stale))
        return taken.tasks, taken.later_s

    def _take(self, connection: Connection, lease: Lease, query: HostQuery) -> Taken:
        if not self._budget.max_pages:
            return take(connection, lease, query)
        if not committing.is_held(connection, lease):
            return Taken((), None)
        limit = Limit(self._collection, self._run.id, self._budget)
        allowed = allowance(connection, limit, lease, len(query.in_hand), query.now)
        if allowed.pages <= 0:
            self.budget_spent |= allowed.is_spent
            return Taken((), BARRIER_POLL_S)
        taken = take(connection, lease, query._replace(most=min(query.most, allowed.pages)))
        holder = "(SELECT lease_by FROM host WHERE shard = %s AND id = %s)"
        values = (len(taken.tasks), shard_of(lease.site), lease.host_id)
        connection.execute(f"UPDATE worker SET in_hand = in_hand + %s WHERE name = {holder}", values)
        return taken

    def urgent(self, host_ids: Sequence[int]) -> frozenset[int]:
        return self._session.read(lambda connection: survey.urgent(connection, host_ids))

    def merge_aliases(self) -> int:
        return self._session.run(stored_pages.merge_aliases)

    # writing ---------------------------------------------------------------------------------------------------------

    def offer(
        self, candidates: Iterable[Candidate], side_requests: Iterable[SideRequest], now: float, *, reopen: bool = False
    ) -> int:
        urls, requests, fresh = list(candidates), list(side_requests), 0
        for start in range(0, max(1, len(urls)), AT_ONCE):
            mail = cleaned(Mail(tuple(urls[start : start + AT_ONCE]), tuple(requests) if start == 0 else ()))
            # bound at once
            fresh += self._session.run(
                lambda connection, mail=mail: self._offer(connection, mail, self._given(now), reopen=reopen)  # type: ignore[misc]
            )  # fmt: skip
        return fresh

    def _offer(self, connection: Connection, mail: Mail, now: float | None, *, reopen: bool) -> int:
        ledger = DatabaseLedger(connection, self._run, 0, hosts.time_now(connection, now))
        return ledgers.enter_from_outside(connection, self._collection, ledger, mail, reopen=reopen)

    def commit(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        try:
            return self._store(worker, batch, now)
        except _UNREADABLE:
            return self._store(worker, cleaned(batch), now)

    def _store(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        parcels = self._packer.pack(batch)
        member, batches = self._members[worker], self._batches[worker]

        leases = frozenset(one.lease for one in batch.completions) | {state.lease for state in batch.hosts}

        def stored(connection: Connection) -> tuple[frozenset[Lease], bool]:
            if leases and worker in self._misled:
                hosts.bury(connection, [worker], self.is_alive, self._given(now), leaving=True)
                return leases, False
            return self._commit.store(connection, member, parcels, batches, self._given(now))

        lost, sent_out = self._session.run(stored)
        self._batches[worker] = batches + 1
        if leases and worker in self._misled:
            self._misled.discard(worker)
            self._commit = Commit(self._run, self._storage)
            self._packer.forget()
            return lost
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
            return ledgers.merge(
                connection,
                self._collection,
                lambda moment: DatabaseLedger(connection, self._run, owner, moment),
                self._given(now),
            )

        while not self._session.read(ledgers.is_empty) and self._session.run(merge) >= AT_ONCE:
            pass
        self._merged_at = time.monotonic()

    # reading ---------------------------------------------------------------------------------------------------------

    def is_running(self) -> bool:
        """Whether nobody has ended the run."""
        find = "SELECT 1 FROM run WHERE id = %s AND state = 'running'"
        return self._session.read(lambda connection: connection.execute(find, (self._run.id,)).fetchone()) is not None

    def visits(self, after: int, *, texts: bool = False) -> Iterator[PageVisit]:
        """Ids are given before their commits end: the last LATE are looked at again."""
        after -= survey.LATE if self._latest_visits else 0
        while block := self._session.read(partial(survey.visits, after=after, texts=texts, but=self._latest_visits)):
            after = block[-1].id
            ids = self._latest_visits.union(visit.id for visit in block)
            late = max(ids) - survey.LATE
            self._latest_visits = {visit for visit in ids if visit > late}
            yield from block

    def bring_in_line(self, scope: CrawlScope) -> None:
        self._merge_if_due(0.0)
        self._session.run(lambda connection: survey.bring_in_line(connection, scope))

    def close(self) -> None:
        self._packer.close()
        self._session.close()


_NOW = "extract(epoch FROM clock_timestamp())"
_DUE = (
    f"coalesce(f.checked, u.visited, 0) + coalesce(f.interval_s, %(first)s) * %(early)s <= {_NOW}"
    " OR EXISTS (SELECT 1 FROM start s WHERE s.shard = u.shard AND s.url_id = u.id)"
)
_ENQUEUE = (
    "INSERT INTO queue (shard, host_id, priority, url_id, purpose)"
    " SELECT u.shard, u.host_id, coalesce(u.depth, %(none)s), u.id, 'recheck' FROM url u LEFT"
    " JOIN freshness f ON f.shard = u.shard AND f.url_id = u.id"
    f" WHERE u.reason = ANY(%(reasons)s) AND (%(all)s OR {_DUE})"
    " AND NOT EXISTS (SELECT 1 FROM queue q WHERE q.shard = u.shard AND q.host_id = u.host_id"
    " AND q.url_id = u.id AND q.purpose = 'recheck')"
    ' ORDER BY u.depth NULLS LAST, u.text COLLATE "C"'
)


def ask_again(connection: Connection, *, due_only: bool) -> int:
    """Enters what is to be asked for again into the to-do lists; returns how many.

    robots.txt, and with it the sitemaps, are read anew.

    due_only: only what its own interval says, and the starts. What an interrupted refresh left stands there
    already. Within a transaction.
    """
    connection.execute("SET LOCAL statement_timeout = 0")  # every URL is looked at
    connection.execute("SELECT 1 FROM host ORDER BY shard, id FOR NO KEY UPDATE")
    stored_pages.part_aliases(connection)  # each address is asked for; they are merged again if they are still the same
    reasons = [reason.value for reason in ASKED_AGAIN]
    values = {
        "all": not due_only,
        "first": FIRST_INTERVAL_S,
        "early": 1 - EARLY_SHARE,
        "none": PRIORITY_NONE,
        "reasons": reasons,
    }
    added = connection.execute(_ENQUEUE, values).rowcount
    lists = "SELECT shard, host_id, count(*) AS many FROM queue GROUP BY shard, host_id"
    connection.execute(
        f"UPDATE host h SET pending = n.many FROM ({lists}) n WHERE n.shard = h.shard"
        " AND n.host_id = h.id AND h.pending <> n.many"
    )
    connection.execute("DELETE FROM robots")
    return added


_MEANT = "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class DatabaseHome:
    """One collection in a database. See the protocol."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._patience_s = FIRST_PATIENCE_S

    def __str__(self) -> str:
        return str(self.address)

    def _connected(self) -> contextlib.closing[Connection]:
        connection = connect(self.address, patience_s=self._patience_s)
        self._patience_s = PATIENCE_S
        return contextlib.closing(connection)

    def _do(self, action: Callable[[Connection], T]) -> T:
        with self._connected() as connection:
            schema.check(connection, self.address.collection)
            with connection.transaction():
                return action(connection)

    def _do_at(self, action: Callable[[Statements, float], None]) -> None:
        """The action by shared statements, at the database's time."""
        self._do(lambda connection: action(PostgresStatements(connection), hosts.time_now(connection, None)))

    @contextlib.contextmanager
    def only_crawl(self) -> Iterator[None]:
        """Freed before this returns; of a process that was killed the server frees it when it sees the connection end.

        Workers that join need no such hold.
        """
        lock = (schema.LOCK_CRAWL, lock_number(self.address.collection))
        with self._connected() as connection, try_lock(connection, lock) as is_held:
            if not is_held:
                raise StoreError(
                    f"another crawl is at work on {self}. `periplus worker -c ADDRESS` joins it; or wait for its "
                    "end, or name another collection."
                )
            yield

    def prepare(self, rules: str, now: float) -> bool:
        """The first crawl's rules hold until others are applied, which takes a copy: `api.changing.apply_now`."""
        with self._connected() as connection:
            is_new = schema.create(connection, self.address.collection)
            self._agree_on_segments(connection, is_new=is_new)
            index_place.remember(connection, self.address.index)
            went_on = connection.execute("SELECT 1 FROM run LIMIT 1").fetchone() is not None
            row = connection.execute("SELECT value FROM meta WHERE name = 'rules'").fetchone()
            if went_on and (row[0] if row else "") != rules_key(rules):
                raise UsageError(
                    f"{self} was crawled with other rules for its URLs: `periplus rules apply -c ADDRESS` brings what "
                    "is stored into accord with those of the periplus.toml here"
                )
            if not went_on:
                connection.execute(_MEANT, ("rules", rules_key(rules)))
                connection.execute(_MEANT, ("rules_text", rules))
            return went_on

    def _agree_on_segments(self, connection: Connection, *, is_new: bool) -> None:
        """Where the bytes of pages are kept is said once: workers on other machines take it from here."""
        place = self.address.segments
        if not place:
            return
        row = connection.execute("SELECT value FROM meta WHERE name = 'segments'").fetchone()
        if row is not None and row[0] != place:
            raise UsageError(
                f"{self} keeps its pages' bytes with segments={row[0]}, not {place}: leave segments= out of the address"
            )
        if row is None and not is_new and connection.execute("SELECT 1 FROM body LIMIT 1").fetchone():
            raise UsageError(
                f"{self} keeps its pages' bytes in the database already: leave segments= out of the address"
            )
        object_storage(place).close()  # it can be reached
        connection.execute(_MEANT, ("segments", place))

    def rules_text(self) -> str:
        with self._connected() as connection:
            if not schema.exists(connection):
                return ""
            row = connection.execute("SELECT value FROM meta WHERE name = 'rules_text'").fetchone()
            return str(row[0]) if row else ""

    def begin_run(
        self,
        kind: str,
        starts: Sequence[Url],
        settings: Settings,
        now: float,
        further: Mapping[str, object] | None = None,
    ) -> int:
        def begun(connection: Connection) -> int:
            if further is not None:
                connection.execute(survey.INDEXES)
            now = hosts.time_now(connection, None)
            return runs.begin(PostgresStatements(connection), kind, starts, settings, now, further)

        return self._do(begun)

    def note(self, name: str) -> str:
        return self._do(lambda connection: note(PostgresStatements(connection), name))

    def change_note(self, name: str, changed: Callable[[str], str]) -> str:
        return self._do(lambda connection: change_note(PostgresStatements(connection), name, changed))

    @contextlib.contextmanager
    def reader(self) -> Iterator[VisitReader]:
        with self._connected() as connection:
            schema.check(connection, self.address.collection)
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield survey.DatabaseVisits(connection)

    def store(self, run_id: int, settings: Settings) -> PostgresCrawlStore:
        return PostgresCrawlStore(self.address, run_id, settings.budget, settings.storage)

    def ask_again(self, now: float, *, due_only: bool) -> int:
        return self._do(lambda connection: ask_again(connection, due_only=due_only))

    def add_starts(self, starts: Sequence[UrlId], sites: Sequence[SiteKey], now: float) -> None:
        self._do_at(lambda statements, moment: runs.add_starts(statements, starts, sites, moment))

    def end_run(self, run_id: int, state: str, note: str, now: float) -> None:
        self._do_at(lambda statements, moment: runs.end(statements, run_id, state, note, moment))

    def pause(self, now: float) -> bool:
        def paused(connection: Connection) -> bool:
            goes_on = hosts.workers_with_lease(connection) > 0
            if goes_on:
                runs.pause(PostgresStatements(connection), hosts.time_now(connection, None))
            return goes_on

        return self._do(paused)

    def resume(self, now: float) -> bool:
        return self._do(
            lambda connection: runs.resume(PostgresStatements(connection)) and hosts.workers_with_lease(connection) > 0
        )

    def note_fault(self, note: FaultNote) -> None:
        self._do(lambda connection: fault_notes.put(PostgresStatements(connection), note))

    def fault_notes(self) -> tuple[FaultNote, ...]:
        return self._do(lambda connection: fault_notes.notes(PostgresStatements(connection)))

    def runs(self) -> Sequence[RunRecord]:
        return self._do(lambda connection: runs.records(PostgresStatements(connection)))

    def findings(self, run_id: int) -> Mapping[RefreshFinding, int]:
        return self._do(lambda connection: runs.findings(PostgresStatements(connection), run_id))
