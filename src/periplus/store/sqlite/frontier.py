"""The crawl store on SQLite: `model.ports.CrawlStore` and `CrawlHome`."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from periplus.children import process_lives
from periplus.model.frontier import (
    ASKED_AGAIN,
    EARLY_SHARE,
    FIRST_INTERVAL_S,
    PRIORITY_CHECK,
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
from periplus.model.tables import any_of
from periplus.model.visit import Purpose, Request
from periplus.model.web import HostKey, SiteKey, Url
from periplus.settings import Budget, Settings, Storage
from periplus.store import aliases, notes, part_messages, runs
from periplus.store.crawl_reads import CrawlReads
from periplus.store.ledger import HostRef
from periplus.store.ledger_tables import forget_entries
from periplus.store.sqlite import reading, schema
from periplus.store.sqlite import runs as folder_runs
from periplus.store.sqlite.ledger import BodyWriter, FolderLedger, alias_ledger, stored_bodies
from periplus.store.statements import Statements
from periplus.store.url_state import (
    BARRIER_POLL_S,
    RIVAL_WAIT_S,
    StoredVersion,
    TaskQuery,
    TaskRow,
    choose_tasks,
    held_body,
)
from periplus.urls.canonical import url_id
from periplus.urls.parameters import rules_key, rules_of

# Implements `model.ports.CrawlStore`; its invariants are documented there.
#
# The write lock admits one writer at a time, so that URLs of other hosts are stored at once, without an inbox. A dead
# worker is recognised by its process id and loses its hosts at once; a silent one loses them when its lease expires.

T = TypeVar("T")
URLS_PER_BATCH = 2_000  # URLs whose rows are in memory at a time
# A check takes no pages: those still queued by a crawl that reached its limit stay in the queue.
_CHECKS_ONLY = f" AND (q.priority < 0 OR q.priority = {PRIORITY_CHECK})"
_HAS_CHECK = f"EXISTS (SELECT 1 FROM queue q WHERE q.host_id = h.id{_CHECKS_ONLY})"
_DUE = (
    "coalesce(f.checked, u.visited, 0) + coalesce(f.interval_s, :first) * :early <= :now OR "
    "u.id IN (SELECT url_id FROM start)"
)
_ENQUEUE = (
    "INSERT INTO queue (host_id, priority, seq, url_id, purpose)"
    " SELECT u.host_id, coalesce(u.depth, :none), :seq + row_number() OVER (ORDER BY u.depth IS NULL, "
    "u.depth, u.text), u.id, 'recheck'"
    " FROM url u LEFT JOIN freshness f ON f.url_id = u.id"
    f" WHERE u.reason IN {any_of(ASKED_AGAIN)} AND (:all OR {_DUE})"
    " AND u.id NOT IN (SELECT url_id FROM queue WHERE purpose = 'recheck')"
)


class SqliteCrawlStore(CrawlReads, part_messages.PartStore):
    """Access of one process to a collection's queue and pages, within one run."""

    def __init__(
        self,
        folder: Path,
        run_id: int,
        budget: Budget,
        storage: Storage,
        is_alive: Callable[[int], bool] = process_lives,
    ) -> None:
        """is_alive: whether a process with this id exists on this machine."""
        self._connection = schema.connect(folder)
        self._lock = schema.WriteLock(folder)
        self.run_id = run_id
        self._budget, self._storage, self._is_alive = budget, storage, is_alive
        self._pids: dict[str, int] = {}  # of workers that joined through this object
        self._bodies = BodyWriter(self._connection, storage)
        self._statements = schema.SqliteStatements(self._connection)
        self.budget_spent = False
        self.failovers = 0
        self._latest = 0.0  # latest `now` passed to this object
        kind = self._connection.execute("SELECT kind FROM run WHERE id = ?", (run_id,)).fetchone()[0]
        self._is_check = kind == "check"
        self._with_work = f"h.pending > 0 AND {_HAS_CHECK}" if self._is_check else "h.pending > 0"
        # a check requests link targets of all parts
        self._ledger = FolderLedger(
            self._connection, run_id, None if self._is_check else part_messages.part_in(self._statements)
        )

    def read(self, action: Callable[[Statements], T]) -> T:
        return action(self._statements)

    def change(self, action: Callable[[Statements], T]) -> T:
        with self._lock.transaction(self._connection):
            return action(self._statements)

    def moment(self, now: float) -> float:
        return now

    # workers ---------------------------------------------------------------------------------------------------------

    def join(self, pid: int, now: float) -> str:
        with self._transaction():
            self._remove_workers(self._expired_workers(now), now)
            serial = self._connection.execute("SELECT coalesce(max(rowid), 0) + 1 FROM worker").fetchone()[0]
            name = f"{pid}-{serial}-{now:.6f}"
            self._pids[name] = pid
            self._renew_lease(name, now)
        return name

    def _renew_lease(self, worker: str, now: float) -> None:
        """Registers a worker, or renews its lease.

        A worker that expired is registered again, without hosts.
        """
        upsert = (
            "INSERT INTO worker (name, pid, joined, lease_until, host) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET lease_until = excluded.lease_until"
        )
        self._connection.execute(
            upsert, (worker, self._pids[worker], now, now + self._storage.lease_s, os.uname().nodename)
        )

    def leave(self, worker: str, now: float) -> None:
        with self._transaction():
            self._remove_workers([worker], now)

    def _expired_workers(self, silent: float) -> list[str]:
        """Dead workers, and workers whose leases expired before `silent`."""
        workers = self._connection.execute("SELECT name, pid, lease_until FROM worker").fetchall()
        return [name for name, pid, until in workers if until < silent or not self._is_alive(pid)]

    def _remove_expired_workers(self, silent: float, now: float) -> None:
        if expired := self._expired_workers(silent):
            with self._transaction():
                self._remove_workers(expired, now)

    def _remove_workers(self, workers: Sequence[str], now: float) -> None:
        """Removes workers and frees their hosts.

        The hosts wait their delay, since the last request may have just been sent.
        """
        free = "UPDATE host SET lease_by = NULL, next_at = max(next_at, ? + delay_s / rate) WHERE lease_by = ?"
        for worker in workers:
            self._connection.execute(free, (now, worker))
            self._connection.execute("DELETE FROM worker WHERE name = ?", (worker,))

    # leases ----------------------------------------------------------------------------------------------------------

    def ready(self, most: int, horizon_s: float, now: float) -> Sequence[ReadyHost]:
        if now < self._latest - folder_runs.NOTICED_S:
            self._adjust_to_clock(now)
        self._latest = max(now, self._latest)
        self._remove_expired_workers(
            now, now
        )  # necessary here, since a worker that waits for these hosts never calls `lease`
        if self.is_paused():
            return ()
        find = (
            "SELECT h.id, h.key, s.key, h.pending, s.fetched, h.next_at - ?"
            " FROM host h INDEXED BY host_ready JOIN site s ON s.id = h.site_id"
            f" WHERE {self._with_work} AND h.lease_by IS NULL AND h.next_at <= ? ORDER BY h.next_at LIMIT ?"
        )
        rows = self._connection.execute(find, (now, now + horizon_s, most))
        return [
            ReadyHost(i, HostKey(key), SiteKey(site), pending, fetched, max(0.0, wait))
            for i, key, site, pending, fetched, wait in rows
        ]

    def _adjust_to_clock(self, now: float) -> None:
        """Handles a clock that was set back.

        Only one of several workers moves the stored times: after that the last lease renewal is not in the future.
        """
        back_s, self._latest = self._latest - now, now
        with self._transaction():
            renewed = self._connection.execute("SELECT max(lease_until) FROM worker").fetchone()[0]
            if renewed is not None and renewed - self._storage.lease_s - now > back_s / 2:
                folder_runs.follow(self._statements, back_s, now)

    def lease(self, worker: str, host_ids: Sequence[int], now: float) -> Sequence[Lease]:
        leases = []
        with self._transaction():
            self._remove_workers(self._expired_workers(now), now)
            self._renew_lease(worker, now)
            for host_id in () if self.is_paused() else host_ids:
                take = (
                    "UPDATE host SET lease_by = ?, epoch = epoch + 1 WHERE id = ? AND lease_by IS NULL AND pending > 0"
                )
                if self._connection.execute(take, (worker, host_id)).rowcount:
                    leases.append(self._lease_of(host_id, now))
        return leases

    def _lease_of(self, host_id: int, now: float) -> Lease:
        find = (
            "SELECT h.key, s.key, h.epoch, h.next_at, h.delay_s, h.rate, h.strikes, h.answered FROM host h"
            " JOIN site s ON s.id = h.site_id WHERE h.id = ?"
        )
        key, site, epoch, next_at, delay_s, rate, strikes, answered = self._connection.execute(
            find, (host_id,)
        ).fetchone()
        return Lease(
            host_id, HostKey(key), SiteKey(site), epoch, max(0.0, next_at - now), delay_s, rate, strikes, bool(answered)
        )

    def fair_share(self, now: float) -> int:
        # only dead workers: a worker with its full share calls nothing else, and would count them until they expire
        self._remove_expired_workers(-math.inf, now)
        if self.is_paused():
            return 0
        hosts = int(self._connection.execute(f"SELECT count(*) FROM host h WHERE {self._with_work}").fetchone()[0])
        workers = int(
            self._connection.execute("SELECT count(*) FROM worker WHERE lease_until >= ?", (now,)).fetchone()[0]
        )
        return max(1, -(-hosts // max(1, workers)))

    def is_paused(self) -> bool:
        return self.read(runs.is_paused)

    def idle(self, now: float) -> bool:
        return self._connection.execute(f"SELECT 1 FROM host h WHERE {self._with_work} LIMIT 1").fetchone() is None

    # tasks -----------------------------------------------------------------------------------------------------------

    def take(
        self, lease: Lease, most: int, in_hand: frozenset[tuple[int, int]], now: float, pages: Iterable[Url] = ()
    ) -> tuple[Sequence[Task], float | None]:
        if not self._holds(lease):
            return (), None
        # tasks that other hosts wait for are not pages, so the page budget does not apply
        if self._budget.max_pages and not self.urgent([lease.host_id]):
            with self._transaction():
                most, wait_s = self._within_budget(lease, most, len(in_hand), now)
                tasks, later_s = self._take(lease, most, in_hand, now, pages) if most > 0 else ((), wait_s)
                self._connection.execute(
                    "UPDATE worker SET in_hand = in_hand + ? WHERE name = (SELECT lease_by FROM host WHERE id = ?)",
                    (len(tasks), lease.host_id),
                )
            return tasks, later_s
        return self._take(lease, most, in_hand, now, pages)

    def urgent(self, host_ids: Sequence[int]) -> frozenset[int]:
        find = (
            "SELECT h.value FROM json_each(?) h"
            " WHERE EXISTS (SELECT 1 FROM queue q WHERE q.host_id = h.value AND q.priority < 0)"
        )
        return frozenset(row[0] for row in self._connection.execute(find, (json.dumps(list(host_ids)),)))

    def _first_of(
        self, lease: Lease, pages: Iterable[Url], in_hand: frozenset[tuple[int, int]], now: float
    ) -> Task | None:
        """First of the pages that is waiting, with any priority, and not in progress."""
        find = (
            "SELECT q.priority, q.seq, u.text, q.hops, q.attempt, u.depth, coalesce(d.doubt, 0) FROM queue q"
            " JOIN url u ON u.id = q.url_id"
            " LEFT JOIN doubtful d ON d.url_id = q.url_id"
            " WHERE q.host_id = ? AND q.url_id = ? AND q.purpose = 'page' AND q.not_before <= ?"
            " AND u.reason = 'waiting' ORDER BY q.priority, q.seq LIMIT 1"
        )
        for page in map(url_id, pages):
            row = self._connection.execute(find, (lease.host_id, page, now)).fetchone()
            if row is not None and row[:2] not in in_hand:
                priority, seq, text, hops, attempt, depth, doubt = row
                request = Request(Url(text), Purpose.PAGE, depth, hops, attempt)
                return Task(lease.host_id, priority, seq, page, request, doubt=doubt)
        return None

    def _holds(self, lease: Lease) -> bool:
        find = "SELECT 1 FROM host WHERE id = ? AND epoch = ? AND lease_by IS NOT NULL"
        return self._connection.execute(find, (lease.host_id, lease.epoch)).fetchone() is not None

    def _within_budget(self, lease: Lease, most: int, in_hand: int, now: float) -> tuple[int, float | None]:
        """(number of pages that the host may take now, seconds to wait): the rest of the budget, but at most a quantum
        ahead of the other sites.
        """
        fetched = self._connection.execute("SELECT fetched FROM run WHERE id = ?", (self.run_id,)).fetchone()[0]
        held = self._connection.execute("SELECT coalesce(sum(in_hand), 0) FROM worker").fetchone()[0]
        left = self._budget.max_pages - fetched - held
        if left <= 0:
            self.budget_spent = self._budget.max_pages <= fetched
            return 0, BARRIER_POLL_S
        own = self._connection.execute("SELECT fetched FROM site WHERE key = ?", (lease.site,)).fetchone()[0]
        if own + in_hand + min(most, left) > self._budget.quantum:  # else always within the quantum
            at_work = (
                "SELECT 1 FROM host h WHERE h.site_id = s.id AND h.pending > 0 AND h.strikes = 0 AND h.next_at <= ?"
            )
            rivals = f"SELECT min(s.fetched) FROM site s WHERE s.key <> ? AND EXISTS ({at_work})"
            least = self._connection.execute(rivals, (lease.site, now + RIVAL_WAIT_S)).fetchone()[0]
            if least is not None:
                left = min(left, least + self._budget.quantum - own - in_hand)
        return min(most, left), BARRIER_POLL_S

    def _take(
        self, lease: Lease, most: int, in_hand: frozenset[tuple[int, int]], now: float, pages: Iterable[Url]
    ) -> tuple[Sequence[Task], float | None]:
        least = f"SELECT min(priority) FROM queue q WHERE host_id = ?{_CHECKS_ONLY if self._is_check else ''}"
        own = self._connection.execute(least, (lease.host_id,)).fetchone()[0]
        if own is None:
            return (), None
        if own >= 0 and (task := self._first_of(lease, pages, in_hand, now)) is not None:
            return (task,), None
        if own >= 0 and not self._is_check and self._priority_of_site(lease.host_id) < own:
            return (), BARRIER_POLL_S
        find = (
            "SELECT q.priority, q.seq, q.url_id, coalesce(q.text, u.text), q.purpose, q.about, q.hops, q.attempt, "
            "q.not_before, u.depth, u.reason,"
            " coalesce(d.doubt, 0) FROM queue q LEFT JOIN url u ON u.id = q.url_id LEFT"
            " JOIN doubtful d ON d.url_id = q.url_id"
            " WHERE q.host_id = ? AND q.priority = ? ORDER BY q.seq LIMIT ?"
        )
        query = TaskQuery(lease.host_id, most, in_hand, self._twins_in_hand(lease.host_id, in_hand), now)
        entries = map(TaskRow._make, self._connection.execute(find, (lease.host_id, own, most + len(in_hand) + 64)))
        choice = choose_tasks(query, entries, self._stored_version)
        if choice.stale:
            with contextlib.nullcontext() if self._connection.in_transaction else self._transaction():
                forget_entries(self._statements, HostRef(0, lease.host_id), choice.stale)
        return choice.answer(bool(in_hand), now)

    def _stored_version(self, url_id: int, reason: str) -> StoredVersion:
        find = "SELECT body_digest, etag, last_modified_field, cut FROM page WHERE url_id = ?"
        return held_body(reason, self._connection.execute(find, (url_id,)).fetchone())

    def _twins_in_hand(self, host_id: int, in_hand: frozenset[tuple[int, int]]) -> set[int]:
        """URLs in progress or postponed through a sitemap entry. A link found later adds a second entry, which must not
        be fetched at the same time.
        """
        find = "SELECT url_id FROM queue WHERE host_id = ? AND priority = ? AND seq = ? AND url_id <> 0"
        entries = [(host_id, priority, seq) for priority, seq in in_hand if priority >= PRIORITY_WITHOUT_DEPTH]
        return {row[0] for entry in entries for row in self._connection.execute(find, entry)}

    def _priority_of_site(self, host_id: int) -> int:
        """Lowest queued priority of all hosts of the same site."""
        find = (
            "SELECT min((SELECT min(priority) FROM queue WHERE host_id = h.id AND priority >= 0))"
            " FROM host h INDEXED BY host_site"
            " WHERE h.site_id = (SELECT site_id FROM host WHERE id = ?) AND h.pending > 0"
        )
        least = self._connection.execute(find, (host_id,)).fetchone()[0]
        return 0 if least is None else int(least)

    # writing ---------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[FolderLedger]:
        """Takes the write lock, begins a transaction, and yields the ledger; its counters are written at the end."""
        with self._lock.transaction(self._connection):
            self._ledger.open()
            yield self._ledger
            self._ledger.close()

    def offer(
        self, candidates: Iterable[Candidate], side_requests: Iterable[SideRequest], now: float, *, reopen: bool = False
    ) -> int:
        with self._transaction() as ledger:
            rest = iter(candidates)
            fresh = 0
            while block := list(islice(rest, URLS_PER_BATCH)):
                fresh += ledger.offer(block, (), now, reopen=reopen)
            ledger.offer((), list(side_requests), now)
        return fresh

    def commit(self, worker: str, batch: Batch, now: float) -> frozenset[Lease]:
        learned = {
            site: self._bodies.learn_dictionary(site)
            for site in {completion.lease.site for completion in batch.completions}
        }
        packed = [self._bodies.pack(completion) for completion in batch.completions]
        with self._transaction() as ledger:
            held = dict(self._connection.execute("SELECT id, epoch FROM host WHERE lease_by = ?", (worker,)))
            # by identity: hashing all fields takes longer
            leases = {id(done.lease): done.lease for done in batch.completions}
            leases |= {id(state.lease): state.lease for state in batch.hosts}
            lost = frozenset(lease for lease in leases.values() if held.get(lease.host_id) != lease.epoch)
            stored = [at for at, done in enumerate(batch.completions) if not lost or done.lease not in lost]
            completions = [batch.completions[at] for at in stored]
            body_ids = stored_bodies(self._bodies, completions, [packed[at] for at in stored])
            hosts = tuple(state for state in batch.hosts if state.lease not in lost)
            ledger.enter(replace(batch, hosts=hosts), completions, body_ids, now)
            for site, data in learned.items():
                if data:
                    self._bodies.store_dictionary(site, data)
            notes.put_chosen_pages(self._statements, batch)
            renew = (
                "UPDATE worker SET lease_until = ?, in_hand = ?, commits = commits + (?4 > 0), pages = pages + ?3,"
                " commit_s = commit_s + ?4 WHERE name = ?5"
            )
            self._connection.execute(
                renew, (now + self._storage.lease_s, batch.in_hand, batch.pages, batch.commit_s, worker)
            )
        return lost

    def apply_batch(self, sender: int, number: int, messages: Sequence[str], now: float) -> bool:
        mail = part_messages.messages_read(messages)
        with self._transaction() as ledger:
            if is_next := part_messages.is_next(self._statements, sender, number):
                ledger.offer(mail.candidates, mail.side_requests, now)
                ledger.enter(Batch(robots=mail.robots), (), (), now)
        return is_next

    # reading ---------------------------------------------------------------------------------------------------------

    def merge_aliases(self) -> int:
        mergers, shards = aliases.alias_mergers(self._statements)
        if mergers:
            with self._transaction() as ledger:
                aliases.Reapplication(ledger, 0.0).merge(mergers, shards)
        return len(mergers)

    def visits(self, after: int, *, texts: bool = False) -> Iterator[PageVisit]:
        from periplus.store.sqlite import listing  # imports NumPy, which a plain crawl does not need

        return listing.visits(self._connection, after, texts=texts)

    def apply_scope(self, scope: CrawlScope) -> None:
        with self._lock.transaction(self._connection):
            folder_runs.apply_scope(self._connection, scope)

    def close(self) -> None:
        self._connection.close()
        self._lock.close()


def ask_again(folder: Path, now: float, *, due_only: bool) -> int:
    """Queues the URLs of a refresh; returns how many. robots.txt and sitemaps are fetched again too.

    due_only: only URLs that are due, and starts. Entries of an interrupted refresh stay in the queue.
    """
    with schema.writing(folder) as connection:
        seq = int(connection.execute("SELECT value FROM meta WHERE name = 'seq'").fetchone()[0])
        values = {
            "all": not due_only,
            "now": now,
            "first": FIRST_INTERVAL_S,
            "early": 1 - EARLY_SHARE,
            "none": PRIORITY_WITHOUT_DEPTH,
            "seq": seq,
        }
        added = connection.execute(_ENQUEUE, values).rowcount
        connection.execute("UPDATE meta SET value = ? WHERE name = 'seq'", (str(seq + added + 1),))
        of_host = "SELECT host_id, count(*) AS many FROM queue WHERE purpose = 'recheck' AND seq > ? GROUP BY host_id"
        connection.execute(
            f"UPDATE host SET pending = pending + n.many FROM ({of_host}) n WHERE n.host_id = host.id", (seq,)
        )
        connection.execute("DELETE FROM robots")
    return added


class FolderHome(runs.HomeRecords):
    """`model.ports.CrawlHome` of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: list[str] | None = None  # names in the folder before it was locked; None: it did not exist
        self._is_new = False

    def __str__(self) -> str:
        return f"{self._folder}/"

    def only_crawl(self) -> AbstractContextManager[None]:
        schema.refuse_network_disk(self._folder)
        self._before = folder_runs.names_in(self._folder)
        return folder_runs.only_crawl(self._folder)

    def prepare(self, rules: str, now: float) -> bool:
        self._is_new = not schema.exists(self._folder)
        if self._is_new:
            schema.create(self._folder)
        else:
            with self.alias_ledger() as ledger:
                aliases.reapply(ledger, rules_of(rules), rules_key(rules), now)
        return not self._is_new

    def rules_text(self) -> str:
        return ""

    def alias_ledger(self) -> AbstractContextManager[FolderLedger]:
        return alias_ledger(self._folder)

    def read(self, action: Callable[[Statements], T]) -> T:
        with reading.open_reader(self._folder) as connection:
            return action(schema.SqliteStatements(connection))

    def change(self, action: Callable[[Statements], T]) -> T:
        with schema.writing(self._folder) as connection:
            return action(schema.SqliteStatements(connection))

    def change_at(self, now: float, action: Callable[[Statements, float], T]) -> T:
        return self.change(lambda statements: action(statements, now))

    def is_crawled(self, statements: Statements, now: float) -> bool:
        workers = statements.rows("SELECT pid FROM worker WHERE lease_until >= ?", (now,))
        return any(process_lives(pid) for (pid,) in workers)

    def prepare_run(self, statements: Statements, now: float, *, is_watched: bool) -> None:
        folder_runs.follow(statements, folder_runs.latest_time_s(statements) - now, now)

    @contextlib.contextmanager
    def reader(self) -> Iterator[VisitReader]:
        from periplus.store.sqlite import listing

        with reading.moment(self._folder) as connection:
            yield listing.SqliteVisits(connection)

    def store(self, run_id: int, settings: Settings) -> SqliteCrawlStore:
        return SqliteCrawlStore(self._folder, run_id, settings.budget, settings.storage)

    def ask_again(self, now: float, *, due_only: bool) -> int:
        with self.alias_ledger() as ledger:
            aliases.Reapplication(ledger, now).part_aliases()
        return ask_again(self._folder, now, due_only=due_only)

    def discard(self) -> bool:
        return self._is_new and folder_runs.discard(self._folder, self._before)
