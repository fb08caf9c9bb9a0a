"""The crawl store on PostgreSQL: `model.ports.CrawlStore` and `CrawlHome`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import psycopg

from periplus.children import process_lives
from periplus.errors import StoreError, UsageError
from periplus.model.frontier import (
    ASKED_AGAIN,
    EARLY_SHARE,
    FIRST_INTERVAL_S,
    PRIORITY_WITHOUT_DEPTH,
    Batch,
    Candidate,
    Lease,
    PageVisit,
    ReadyHost,
    SideRequest,
    Task,
)
from periplus.model.ports import CrawlScope, VisitReader
from periplus.model.web import Url
from periplus.settings import Budget, Settings, Storage
from periplus.store import notes, part_messages, runs
from periplus.store.aliases import history_run
from periplus.store.crawl_reads import CrawlReads
from periplus.store.statements import Statements, shard_of
from periplus.store.url_state import BARRIER_POLL_S
from periplus.urls.parameters import rules_key
from periplus_postgres import committing, copying, hosts, index_place, lists, schema, visits
from periplus_postgres import ledger as ledgers
from periplus_postgres import pages as stored_pages
from periplus_postgres.address import Address, address_of
from periplus_postgres.committing import Commit
from periplus_postgres.connection import (
    FIRST_PATIENCE_S,
    PATIENCE_S,
    Connection,
    Session,
    clean_text,
    connect,
    try_lock,
)
from periplus_postgres.hosts import Member
from periplus_postgres.ledger import AT_ONCE, DatabaseLedger, LedgerRun, Mail, OutsideLedger, lock_number
from periplus_postgres.pages import Packer
from periplus_postgres.segments import object_storage
from periplus_postgres.statements import PostgresStatements

T = TypeVar("T")
# Implements `model.ports.CrawlStore`; its invariants are documented there. Any number of processes on any machines can
# use it. Times come from the database; the `now` of calls is only used by tests. Measurements: docs/decisions/0040.

# interval of merging the inbox: the interval of commits, since merging sooner does not lead to earlier requests
MERGE_S = 0.5
# interval of renewing the lease of a worker without hosts: it takes a transaction, and there may be a hundred of them
RENEW_S = 1.0
_READ_AHEAD = 64  # hosts whose queues are read at a time: a few ms of the server
_UNREADABLE = (psycopg.DataError, UnicodeEncodeError)  # a text that PostgreSQL does not accept
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


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Replacements for tests.

    is_alive: whether a process of this machine exists; own_clock: use the database's clock and not the caller's;
    merge_s: interval of merging the inbox.
    """

    is_alive: Callable[[int], bool] = process_lives
    own_clock: bool = True
    merge_s: float = MERGE_S


class PostgresCrawlStore(CrawlReads, part_messages.PartStore):
    """Access of one process to a collection's queue and pages, within one run."""

    def __init__(
        self, address: Address, run_id: int, budget: Budget, storage: Storage, world: Surroundings = Surroundings()
    ) -> None:
        self.session = Session(address, on_failover=self._handle_failover)
        self._collection, self._budget, self._storage = address.collection, budget, storage
        self.is_alive, self._own_clock, self._merge_s = world.is_alive, world.own_clock, world.merge_s
        self.run_id = run_id
        self._run = self.session.run(lambda connection: committing.run_of(connection, run_id))
        self._members: dict[str, Member] = {}
        # workers whose state may be newer than the database after a failover
        self._outdated: set[str] = set()
        # number of stored batches of each worker: shows whether a commit with a lost response succeeded
        self._batches: dict[str, int] = {}
        self._renewed_at: dict[str, float] = {}  # last renewal of each worker
        self._commit = Commit(self._run, storage)
        self._packer = Packer(
            self.session, storage, *self.session.run(lambda connection: committing.segments_of(connection, run_id))
        )
        self._is_check = self.session.read(lambda connection: committing.is_check(connection, run_id))
        self._latest_visits: set[int] = set()  # ids of the last visits read, see `visits.LATE`
        self._merged_at = 0.0
        self._shards: dict[int, int] = {}  # shards of the hosts returned by `ready`
        self.budget_spent = False
        self.failovers = 0
        # read in advance, by host and epoch, for one `take` each: see `_read_ahead`
        self._heads: dict[tuple[int, int], lists.ListHead] = {}
        self._empty_leases: dict[int, Lease] = {}  # hosts without tasks since the last commit
        self._entries = 0  # number of entries in the last query

    def read(self, action: Callable[[Statements], T]) -> T:
        return self.session.read(lambda connection: action(PostgresStatements(connection)))

    def change(self, action: Callable[[Statements], T]) -> T:
        return self.session.run(lambda connection: action(PostgresStatements(connection)))

    def moment(self, now: float) -> float:
        return self.session.read(lambda connection: hosts.time_now(connection, self._given_time(now)))

    def _given_time(self, now: float) -> float | None:
        return None if self._own_clock else now

    def _handle_failover(self, connection: Connection) -> None:
        """Handles a failover. The new server may lack the last commits: pages are waiting again or unknown, hosts are
        free.

        Each worker loses its leases at its next commit, which stores nothing, so that it resets the state of its hosts.
        It sends no request before: a host that it leased last may be free here and soon leased by another worker.
        """
        hosts.delay_free_hosts(connection)
        self.failovers += 1
        self._outdated.update(self._members)

    # workers and leases ----------------------------------------------------------------------------------------------

    def join(self, pid: int, now: float) -> str:
        given = self._given_time(now)

        def register(connection: Connection) -> tuple[str, int]:
            runs.refuse(PostgresStatements(connection))
            self._remove_expired_workers(connection, given)
            return hosts.register_worker(connection, pid, self._storage.lease_s, given)

        name, part = self.session.run(register)
        self._members[name], self._batches[name] = Member(name, pid, part), 0
        return name

    def leave(self, worker: str, now: float) -> None:
        self.session.run(
            lambda connection: hosts.remove_workers(
                connection, [worker], self.is_alive, self._given_time(now), leaving=True
            )
        )

    def _remove_expired_workers(self, connection: Connection, given: float | None) -> None:
        if expired := hosts.expired_workers(connection, self.is_alive, given):
            hosts.remove_workers(connection, expired, self.is_alive, given)

    def ready(self, most: int, horizon_s: float, now: float) -> Sequence[ReadyHost]:
        self._merge_if_due(now)
        given = self._given_time(now)
        if self.session.read(lambda connection: hosts.expired_workers(connection, self.is_alive, given)):
            # necessary here, since a worker that waits for these hosts never calls `lease`
            self.session.run(lambda connection: self._remove_expired_workers(connection, given))
        ready_hosts = self.session.read(
            lambda connection: hosts.ready(connection, most, horizon_s, given, checks=self._is_check)
        )
        self._shards = {host.host_id: shard_of(host.site) for host in ready_hosts}
        return ready_hosts

    def lease(self, worker: str, host_ids: Sequence[int], now: float) -> Sequence[Lease]:
        given = self._given_time(now)
        if not host_ids and time.monotonic() - self._renewed_at.get(worker, -RENEW_S) < RENEW_S * self._own_clock:
            return ()

        def lease_hosts(connection: Connection) -> list[Lease]:
            self._remove_expired_workers(connection, given)
            hosts.renew_lease(connection, self._members[worker], self._storage.lease_s, self._batches[worker], given)
            named = [(self._shards[host_id], host_id) for host_id in host_ids if host_id in self._shards]
            others = [host_id for host_id in host_ids if host_id not in self._shards]
            places = named + (committing.shards(connection, others) if others else [])
            return hosts.lease_hosts(connection, worker, places, given) if places else []

        leases = self.session.run(lease_hosts)
        self._renewed_at[worker] = time.monotonic()
        self._read_ahead(leases, given)
        return leases

    def fair_share(self, now: float) -> int:
        self._merge_if_due(now)  # the inbox may contain tasks of hosts that have no other
        given = self._given_time(now)
        # dead workers would count until their leases expire
        if dead := self.session.read(lambda connection: hosts.dead_workers(connection, self.is_alive)):
            self.session.run(lambda connection: hosts.remove_workers(connection, dead, self.is_alive, given))
        return self.session.read(lambda connection: committing.fair_share(connection, given, checks=self._is_check))

    def is_paused(self) -> bool:
        return self.read(runs.is_paused)

    def idle(self, now: float) -> bool:
        return self.session.read(lambda connection: committing.is_idle(connection, checks=self._is_check))

    # tasks -----------------------------------------------------------------------------------------------------------

    def take(
        self, lease: Lease, most: int, in_hand: frozenset[tuple[int, int]], now: float, pages: Iterable[Url] = ()
    ) -> tuple[Sequence[Task], float | None]:
        ask = self.session.run if self._budget.max_pages else self.session.read
        query = lists.HostQuery(most, in_hand, self._given_time(now), pages, self._is_check)
        taken = ask(lambda connection: self._take(connection, lease, query))
        self._heads.pop((lease.host_id, lease.epoch), None)
        self._entries = query.entries
        if not taken.tasks:
            self._empty_leases[lease.host_id] = lease
        if taken.stale:
            self.session.run(lambda connection: lists.forget(connection, lease, taken.stale))
        return taken.tasks, taken.later_s

    def _read_ahead(self, leases: Sequence[Lease], now: float | None) -> None:
        """Reads the queues of the hosts that will be needed next, in one statement: a statement costs the server four
        times as much as its rows.
        """
        if self._budget.max_pages or not self._entries:
            return
        first_leases = leases[:_READ_AHEAD]
        read = partial(lists.heads, leases=first_leases, most=self._entries, now=now, is_check=self._is_check)
        for lease, head in zip(first_leases, self.session.read(read) if first_leases else (), strict=True):
            self._heads[lease.host_id, lease.epoch] = head

    def _take(self, connection: Connection, lease: Lease, query: lists.HostQuery) -> lists.TakenTasks:
        # tasks that other hosts wait for are not pages, so the page budget does not apply
        if not self._budget.max_pages or visits.urgent(connection, [lease.host_id]):
            return lists.take(connection, lease, query, self._heads.get((lease.host_id, lease.epoch)))
        if not committing.is_held(connection, lease):
            return lists.TakenTasks((), None)
        limit = lists.Limit(self._collection, self._run.id, self._budget)
        allowed = lists.allowance(connection, limit, lease, len(query.in_hand), query.now)
        if allowed.pages <= 0:
            self.budget_spent |= allowed.is_spent
            return lists.TakenTasks((), BARRIER_POLL_S)
        taken = lists.take(connection, lease, query._replace(most=min(query.most, allowed.pages)))
        holder = "(SELECT lease_by FROM host WHERE shard = %s AND id = %s)"
        values = (len(taken.tasks), shard_of(lease.site), lease.host_id)
        connection.execute(f"UPDATE worker SET in_hand = in_hand + %s WHERE name = {holder}", values)
        return taken

    def urgent(self, host_ids: Sequence[int]) -> frozenset[int]:
        return self.session.read(lambda connection: visits.urgent(connection, host_ids))

    def merge_aliases(self) -> int:
        return self.session.run(stored_pages.merge_aliases)

    # writing ---------------------------------------------------------------------------------------------------------

    def offer(
        self, candidates: Iterable[Candidate], side_requests: Iterable[SideRequest], now: float, *, reopen: bool = False
    ) -> int:
        urls, requests, fresh = list(candidates), list(side_requests), 0
        for start in range(0, max(1, len(urls)), AT_ONCE):
            mail = clean_text(Mail(tuple(urls[start : start + AT_ONCE]), tuple(requests) if start == 0 else ()))
            # the lambda is called in this iteration
            fresh += self.session.run(
                lambda connection, mail=mail: self._offer(connection, mail, self._given_time(now), reopen=reopen)  # type: ignore[misc]
            )  # fmt: skip
        return fresh

    def _offer(self, connection: Connection, mail: Mail, now: float | None, *, reopen: bool) -> int:
        ledger = DatabaseLedger(connection, self._run, 0, hosts.time_now(connection, now))
        return ledgers.enter_from_outside(connection, self._collection, ledger, mail, reopen=reopen)

    def apply_batch(self, sender: int, number: int, messages: Sequence[str], now: float) -> bool:
        candidates, side_requests, robots = clean_text(part_messages.messages_read(messages))

        def apply(connection: Connection) -> bool:
            if not part_messages.is_next(PostgresStatements(connection), sender, number):
                return False
            entries = DatabaseLedger(connection, self._run, 0, hosts.time_now(connection, self._given_time(now)))
            entries.ledger.enter_robots(robots)
            mail = Mail(candidates, side_requests)
            ledgers.enter_from_outside(connection, self._collection, entries, mail, reopen=False)
            return True

        return self.session.run(apply)

    def commit(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        try:
            return self._store(worker, batch, now)
        except _UNREADABLE:
            return self._store(worker, clean_text(batch), now)

    def _store(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        parcels = self._packer.pack(batch)
        member, batches = self._members[worker], self._batches[worker]

        leases = frozenset(completion.lease for completion in batch.completions) | {
            state.lease for state in batch.hosts
        }

        def commit(connection: Connection) -> tuple[frozenset[Lease], bool]:
            if worker in self._outdated:
                hosts.remove_workers(connection, [worker], self.is_alive, self._given_time(now), leaving=True)
                return leases, False
            return self._commit.store(connection, member, parcels, batches, self._given_time(now))

        lost, sent_out = self.session.run(commit)
        self._batches[worker] = batches + 1
        if worker in self._outdated:
            self._outdated.discard(worker)
            self._commit = Commit(self._run, self._storage)
            self._packer.forget()
            return lost
        self._commit.update_cache(batch, lost)
        if sent_out:
            if batch.chosen is not None:  # the next choice must not depend on the time of merging
                self._merged_at = 0.0
            self._merge_if_due(now, part=member.part)
        gone = {lease.host_id for lease in lost} | {state.lease.host_id for state in batch.hosts if state.release}
        asking = [lease for host_id, lease in self._empty_leases.items() if host_id not in gone]
        self._heads.clear()
        self._empty_leases.clear()
        self._read_ahead(asking, self._given_time(now))
        return lost

    def _merge_if_due(self, now: float, part: int = 0) -> None:
        """Merges the inbox into the queues if it is due. part: row of the counters."""
        if self._merged_at and time.monotonic() - self._merged_at < self._merge_s:
            return
        owner = part or max((member.part for member in self._members.values()), default=0)

        def merge(connection: Connection) -> int:
            return ledgers.merge(
                connection,
                self._collection,
                lambda moment: DatabaseLedger(connection, self._run, owner, moment),
                self._given_time(now),
            )

        while not self.session.read(ledgers.is_empty) and self.session.run(merge) >= AT_ONCE:
            pass
        self._merged_at = time.monotonic()

    # reading ---------------------------------------------------------------------------------------------------------

    def is_running(self) -> bool:
        """Whether the run has not ended."""
        find = "SELECT 1 FROM run WHERE id = %s AND state = 'running'"
        return self.session.read(lambda connection: connection.execute(find, (self._run.id,)).fetchone()) is not None

    def visits(self, after: int, *, texts: bool = False) -> Iterator[PageVisit]:
        """Reads the last LATE ids again, since ids are assigned before their transactions commit."""
        after -= visits.LATE if self._latest_visits else 0
        while block := self.session.read(partial(visits.visits, after=after, texts=texts, but=self._latest_visits)):
            after = block[-1].id
            ids = self._latest_visits.union(visit.id for visit in block)
            late = max(ids) - visits.LATE
            self._latest_visits = {visit for visit in ids if visit > late}
            yield from block

    def apply_scope(self, scope: CrawlScope) -> None:
        self._merge_if_due(0.0)
        self.session.run(lambda connection: visits.apply_scope(connection, scope))

    def close(self) -> None:
        self._packer.close()
        self.session.close()


def ask_again(connection: Connection, *, due_only: bool) -> int:
    """Queues the URLs of a refresh; returns how many. robots.txt and sitemaps are fetched again too.

    due_only: only URLs that are due, and starts. Entries of an interrupted refresh stay in the queue. Call it within a
    transaction.
    """
    connection.execute("SET LOCAL statement_timeout = 0")  # scans all URLs
    connection.execute("SELECT 1 FROM host ORDER BY shard, id FOR NO KEY UPDATE")
    stored_pages.part_aliases(connection)  # each URL is requested; aliases are merged again if they are still equal
    reasons = [reason.value for reason in ASKED_AGAIN]
    values = {
        "all": not due_only,
        "first": FIRST_INTERVAL_S,
        "early": 1 - EARLY_SHARE,
        "none": PRIORITY_WITHOUT_DEPTH,
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


class DatabaseHome(runs.HomeRecords):
    """`model.ports.CrawlHome` of a collection in a database."""

    def __init__(self, address: Address | str) -> None:
        self.address = address_of(address)
        self._patience_s = FIRST_PATIENCE_S
        self._is_new = False

    def __str__(self) -> str:
        return str(self.address)

    def _connect(self) -> contextlib.closing[Connection]:
        connection = connect(self.address, patience_s=self._patience_s)
        self._patience_s = PATIENCE_S
        return contextlib.closing(connection)

    def _do(self, action: Callable[[Connection], T]) -> T:
        with self._connect() as connection:
            schema.check(connection, self.address.collection)
            with connection.transaction():
                return action(connection)

    @contextlib.contextmanager
    def only_crawl(self) -> Iterator[None]:
        """Locks the collection. The server releases the lock when the connection of a killed process ends.

        Additional workers need no lock.
        """
        lock = (schema.LOCK_CRAWL, lock_number(self.address.collection))
        with self._connect() as connection, try_lock(connection, lock) as is_held:
            if not is_held:
                raise StoreError(
                    f"another crawl is running on {self}. Join it by `periplus worker -c ADDRESS`, wait for its "
                    "end, or use another collection."
                )
            yield

    def prepare(self, rules: str, now: float) -> bool:
        """The rules of the first crawl stay in force until others are applied in a copy: `api.rules.apply_now`."""
        with self._connect() as connection:
            self._is_new = not schema.exists(connection)
            schema.create(connection, self.address.collection)
            self._agree_on_segments(connection)
            index_place.remember(connection, self.address.index)
            went_on = connection.execute("SELECT 1 FROM run LIMIT 1").fetchone() is not None
            statements = PostgresStatements(connection)
            if went_on and notes.note(statements, "rules") != rules_key(rules):
                raise UsageError(
                    f"{self} was crawled with other URL rules: `periplus rules apply -c ADDRESS` updates the stored "
                    "URLs to the rules of the periplus.toml here"
                )
            if not went_on:
                notes.put_note(statements, "rules", rules_key(rules))
                notes.put_note(statements, "rules_text", rules)
            return went_on

    def _agree_on_segments(self, connection: Connection) -> None:
        """Stores the place of segments, which workers on other machines read from here."""
        place = self.address.segments
        if not place:
            return
        before = notes.note(PostgresStatements(connection), "segments")
        if before and before != place:
            raise UsageError(
                f"{self} stores its pages' bytes with segments={before}, not {place}: remove segments= from the address"
            )
        if not before and connection.execute("SELECT 1 FROM body LIMIT 1").fetchone():
            raise UsageError(
                f"{self} already stores its pages' bytes in the database: remove segments= from the address"
            )
        object_storage(place).close()  # checks that it is reachable
        notes.put_note(PostgresStatements(connection), "segments", place)

    def rules_text(self) -> str:
        with self._connect() as connection:
            return notes.note(PostgresStatements(connection), "rules_text") if schema.exists(connection) else ""

    def change_at(self, now: float, action: Callable[[Statements, float], T]) -> T:
        return self._do(lambda connection: action(PostgresStatements(connection), hosts.time_now(connection, None)))

    def prepare_run(self, statements: Statements, now: float, *, is_watched: bool) -> None:
        for statement in visits.INDEXES if is_watched else ():
            statements.change(statement)

    def change(self, action: Callable[[Statements], T]) -> T:
        return self._do(lambda connection: action(PostgresStatements(connection)))

    read = change

    @contextlib.contextmanager
    def reader(self) -> Iterator[VisitReader]:
        with self._connect() as connection:
            schema.check(connection, self.address.collection)
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield visits.DatabaseVisits(connection)

    @contextlib.contextmanager
    def alias_ledger(self) -> Iterator[OutsideLedger]:
        with self._connect() as connection, copying.translate_errors():
            schema.check(connection, self.address.collection)
            copying.only_caller(connection, self.address)
            with connection.transaction():
                connection.execute("SELECT 1 FROM host ORDER BY shard, id FOR NO KEY UPDATE")
                run = LedgerRun(*history_run(PostgresStatements(connection)))
                ledger = OutsideLedger(connection, self.address.collection, run, hosts.time_now(connection, None))
                yield ledger
                ledger.close()
                notes.count_change(ledger.statements)

    def store(self, run_id: int, settings: Settings) -> PostgresCrawlStore:
        return PostgresCrawlStore(self.address, run_id, settings.budget, settings.storage)

    def ask_again(self, now: float, *, due_only: bool) -> int:
        return self._do(lambda connection: ask_again(connection, due_only=due_only))

    def discard(self) -> bool:
        """Keeps a collection with jobs, a survey, live workers or a shared index."""
        find = (
            "SELECT EXISTS (SELECT 1 FROM page) OR EXISTS (SELECT 1 FROM job)"
            " OR EXISTS (SELECT 1 FROM meta WHERE name = 'survey')"
            " OR EXISTS (SELECT 1 FROM worker WHERE lease_until >= extract(epoch FROM clock_timestamp()))"
        )

        def drop(connection: Connection) -> bool:
            is_unused = connection.execute(find).fetchone() == (False,)
            if is_unused:
                schema.drop(connection, self.address.collection)
            return is_unused

        return self._is_new and not self.address.index and self._do(drop)
