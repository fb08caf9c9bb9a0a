"""The ledger on PostgreSQL: its counters, and the inbox for hosts of other workers."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from periplus.model.frontier import Candidate, Completion, SideRequest
from periplus.model.visit import CHECKS, Purpose, Reason, Request
from periplus.model.web import HostKey, SiteKey, Url, UrlId
from periplus.store.ledger import HostRef, Ledger, Sums
from periplus.store.ledger_tables import LedgerTables
from periplus.store.statements import SHARDS, PageKey, shard_of
from periplus.urls.hosts import WebPart
from periplus_postgres import hosts
from periplus_postgres.connection import Connection, columns_of
from periplus_postgres.hosts import Change
from periplus_postgres.schema import LOCK_MERGE
from periplus_postgres.statements import PostgresStatements, copy_rows

RETRACT = "retract"  # instead of a purpose: a learned alias rule was refuted; queue the URLs skipped because of it
_LAST_CHECKS = """
SELECT v.text, v.purpose FROM unnest(%s::smallint[], %s::text[]) k(shard, text)
JOIN visit v ON v.shard = k.shard AND md5(v.text) = md5(k.text) AND v.text = k.text AND v.purpose IN ('head', 'check')
WHERE v.started >= (SELECT value::float8 FROM meta WHERE name = 'check_since')
"""  # (URL, purpose) requested by the current check
AT_ONCE = 2_000  # rows merged in one transaction: about 50 ms, during which the holders of the hosts wait


class InboxRow(NamedTuple):
    """A message for a host that the writer has not locked: a URL, a side request or a refuted alias rule."""

    shard: int
    host: str
    site: str
    url_id: int
    text: str  # the URL, or the alias rule
    reason: str  # for a URL, else empty
    priority: int | None  # for a URL its depth
    rule: str
    hops: int
    in_sitemap: int
    page_id: int | None
    learned: int
    purpose: str  # for a side request, or RETRACT, else empty
    about: str
    attempt: int
    in_s: float
    added: float

    def candidate(self) -> Candidate:
        return Candidate(
            Url(self.text), UrlId(self.url_id), HostKey(self.host), SiteKey(self.site), Reason(self.reason),
            self.priority, self.rule, self.hops, bool(self.in_sitemap),
            None if self.page_id is None else UrlId(self.page_id), bool(self.learned),
        )  # fmt: skip

    def side_request(self) -> SideRequest:
        purpose = Purpose(self.purpose)
        request = Request(Url(self.text), purpose, None, self.hops, self.attempt, self.about)
        return SideRequest(HostKey(self.host), SiteKey(self.site), request, self.priority or 0, self.in_s)


INBOX = ", ".join(InboxRow._fields)


def inbox_row(message: Candidate | SideRequest, now: float) -> InboxRow:
    place = (shard_of(message.site), message.host, message.site)
    if isinstance(message, Candidate):
        return InboxRow(
            *place, message.url_id, message.url, message.reason.value, message.depth, message.rule, message.hops,
            int(message.in_sitemap), message.page, int(message.learned), "", "", 0, 0.0, now,
        )  # fmt: skip
    request = message.request
    return InboxRow(
        *place, 0, request.url, "", message.priority, "", request.hops, 0, None, 0, request.purpose.value,
        request.about, request.attempt, message.in_s, now,
    )  # fmt: skip


def retract_row(site: SiteKey, finding: str, now: float) -> InboxRow:
    return InboxRow(shard_of(site), "", site, 0, finding, "", None, "", 0, 0, None, 0, RETRACT, "", 0, 0.0, now)


class LedgerRun(NamedTuple):
    """The run that makes the changes."""

    id: int
    started: float
    part: WebPart | None = None  # this collection's part of a split crawl


class DatabaseLedger:
    """The ledger of one transaction.

    To avoid lock contention, only hosts that the caller has locked and listed in `ledger.hosts` are changed. Changes of
    other hosts are inserted into `inbox` in the same transaction and merged later by any worker (`merge`). Counters
    have a row per writer (`part`), so that writers do not wait for each other.
    """

    def __init__(self, connection: Connection, run: LedgerRun, part: int, now: float) -> None:
        """part: row of the counters; now: by the database's clock."""
        self._connection, self._run, self._part, self.now = connection, run, part, now
        self.sums = Sums()
        self.ledger = Ledger(run.id, now, self.sums, run.part)
        self.tables = LedgerTables(PostgresStatements(connection), self.ledger, run.started)

    def load(
        self,
        candidates: Iterable[Candidate],
        side_requests: Sequence[SideRequest],
        completions: Sequence[Completion] = (),
    ) -> None:
        """Reads the rows that these may change, for locked hosts."""
        ours = self.ledger.hosts
        urls = [(ours[url.host].shard, url.url_id) for url in candidates if url.host in ours]
        self.tables.load(urls, completions)
        places = [(*ours[item.host], item.priority, item.request.url) for item in side_requests if item.host in ours]
        if places:
            find = (
                "SELECT q.host_id, q.priority, q.text, q.about, q.purpose"
                " FROM unnest(%s::smallint[], %s::bigint[], %s::bigint[], %s::text[]) k(shard, host, priority, text)"
                " JOIN queue q ON q.shard = k.shard AND q.host_id = k.host AND q.priority = k.priority"
                " AND q.text = k.text"
            )
            self.ledger.listed |= set(self._connection.execute(find, columns_of(places, 4)).fetchall())
        redirected = [
            (ours[item.host].shard, item.request.url)
            for item in side_requests
            if item.request.hops and item.request.purpose in CHECKS and item.host in ours
        ]
        if redirected:
            self.ledger.checked |= set(self._connection.execute(_LAST_CHECKS, columns_of(redirected, 2)).fetchall())

    def write(self) -> None:
        """Writes all changes except the counters, which the caller may still change."""
        self.tables.write()
        messages = [inbox_row(message, self.now) for message in self.ledger.outgoing]
        messages += [retract_row(site, finding, self.now) for site, finding in self.ledger.refuted]
        if messages:
            copy_rows(self._connection, "inbox", INBOX, messages)

    @property
    def has_sent_out(self) -> bool:
        """Whether messages were written to the inbox."""
        return bool(self.ledger.outgoing or self.ledger.refuted)

    def write_sums(self) -> None:
        """Writes counters of the collection and the run. Those of hosts are written by `hosts.change`."""
        tallies = sorted((self._part, name, count) for name, count in self.sums.tallies.items() if count)
        counts = sorted((self._run.id, self._part, name, count) for name, count in self.sums.counts.items() if count)
        if tallies:
            add = "ON CONFLICT (part, name) DO UPDATE SET value = tally.value + excluded.value"
            self._connection.execute(
                f"INSERT INTO tally SELECT * FROM unnest(%s::bigint[], %s::text[], %s::bigint[]) {add}",
                columns_of(tallies, 3),
            )
        if counts:
            add = "ON CONFLICT (run_id, part, name) DO UPDATE SET value = run_count.value + excluded.value"
            values = "unnest(%s::bigint[], %s::bigint[], %s::text[], %s::bigint[])"
            self._connection.execute(
                f"INSERT INTO run_count (run_id, part, name, value) SELECT * FROM {values} {add}", columns_of(counts, 4)
            )


class OutsideLedger:
    """`store.aliases.AliasLedger` of a transaction that has locked all hosts, while no worker runs."""

    def __init__(self, connection: Connection, collection: str, run: LedgerRun, now: float) -> None:
        self.statements = PostgresStatements(connection)
        self._connection, self._collection = connection, collection
        self._make = partial(DatabaseLedger, connection, run, 0, now)
        self._counters = self._make()

    @property
    def sums(self) -> Sums:
        return self._counters.sums

    def offer(self, candidates: Sequence[Candidate], side_requests: Sequence[SideRequest], now: float) -> int:
        mail = Mail(candidates, side_requests)
        return enter_from_outside(self._connection, self._collection, self._make(), mail, reopen=False)

    def await_again(self, pages: Sequence[PageKey]) -> None:
        entries = self._make()
        entries.tables.await_again(pages)
        entries.write()
        self.sums.pending.update(entries.sums.pending)
        self.sums.tallies.update(entries.sums.tallies)

    def close(self) -> None:
        self._counters.write_sums()
        _change_hosts(self._connection, self._counters)


# Only here hosts are created, and only here are changes applied to hosts that another worker may hold: under the
# shard's advisory lock, then the locks of the hosts, in order. Commits take no advisory lock: no deadlock can occur.

MakeLedger = Callable[[float], DatabaseLedger]


class Mail(NamedTuple):
    """Messages for hosts. findings: refuted alias rules, each with its site."""

    candidates: Sequence[Candidate]
    side_requests: Sequence[SideRequest] = ()
    findings: Sequence[tuple[SiteKey, str]] = ()


def lock_number(collection: str, shard: int = 0) -> int:
    """Key of an advisory lock of a collection: 31 bits, so that collections of a database rarely share one."""
    return (zlib.crc32(collection.encode()) % (2**31 // SHARDS)) * SHARDS + shard


def is_empty(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM inbox LIMIT 1").fetchone() is None


def merge(connection: Connection, collection: str, make: MakeLedger, now: float | None) -> int:
    """Merges up to AT_ONCE messages into the queues, for shards that nobody else is merging; returns how many.

    Call it within a transaction.
    """
    shards = _lock_free_shards(connection, collection)
    if not shards:
        return 0
    first = "SELECT shard, id FROM inbox WHERE shard = ANY(%s) ORDER BY shard, id LIMIT %s"
    columns = ", ".join(f"i.{name}" for name in InboxRow._fields)
    take = f"DELETE FROM inbox i USING ({first}) w WHERE i.shard = w.shard AND i.id = w.id RETURNING i.id, {columns}"
    numbered = connection.execute(take, (shards, AT_ONCE)).fetchall()
    messages = [InboxRow(*row[1:]) for row in sorted(numbered, key=itemgetter(0))]  # in order of arrival
    if messages:
        findings = [(SiteKey(row.site), row.text) for row in messages if row.purpose == RETRACT]
        candidates = [row.candidate() for row in messages if row.reason]
        side_requests = [row.side_request() for row in messages if row.purpose not in ("", RETRACT)]
        _enter(connection, make(hosts.time_now(connection, now)), Mail(candidates, side_requests, findings))
    return len(messages)


def _lock_free_shards(connection: Connection, collection: str) -> list[int]:
    """Locks shards with messages in the inbox and returns them.

    The rows are read by a later statement, so that it sees earlier commits.
    """
    shards = {
        lock_number(collection, shard): shard
        for (shard,) in connection.execute("SELECT DISTINCT shard FROM inbox").fetchall()
    }
    lock = "SELECT n FROM unnest(%s::int[]) n WHERE pg_try_advisory_xact_lock(%s, n)"
    return [shards[number] for (number,) in connection.execute(lock, (list(shards), LOCK_MERGE)).fetchall()]


def enter_from_outside(
    connection: Connection, collection: str, entries: DatabaseLedger, mail: Mail, *, reopen: bool
) -> int:
    """Stores URLs that are not from pages (starts, lists); returns how many are newly waiting. Waits for merges."""
    for shard in sorted({shard_of(site) for site in _places(mail).values()}):
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK_MERGE, lock_number(collection, shard)))
    return _enter(connection, entries, mail, reopen=reopen)


def _enter(connection: Connection, entries: DatabaseLedger, mail: Mail, *, reopen: bool = False) -> int:
    """Applies messages under the locks of their shards. Returns how many URLs are newly waiting."""
    ledger, places = entries.ledger, _places(mail)
    _make_hosts(connection, places)
    ledger.hosts = _lock_hosts(connection, places, [site for site, _ in mail.findings])
    entries.load(mail.candidates, mail.side_requests)
    fresh = sum([ledger.offer(candidate, reopen=reopen) for candidate in mail.candidates])
    for side_request in mail.side_requests:
        ledger.send(side_request)
    for site, finding in mail.findings:
        entries.tables.retract(site, finding)
    entries.write()
    entries.write_sums()
    _change_hosts(connection, entries)
    return fresh


def _change_hosts(connection: Connection, entries: DatabaseLedger) -> None:
    changes = [Change(*host, change, 0, None) for host, change in entries.sums.pending.items()]
    hosts.change(connection, changes, entries.now)


def _places(mail: Mail) -> dict[HostKey, SiteKey]:
    return {item.host: item.site for item in mail.candidates} | {item.host: item.site for item in mail.side_requests}


def _make_hosts(connection: Connection, keys: dict[HostKey, SiteKey]) -> None:
    """Inserts new hosts and sites, without using up ids for existing ones."""
    shards = columns_of([(shard_of(site), host) for host, site in keys.items()], 2)
    pairs = "unnest(%s::smallint[], %s::text[]) k(shard, key)"
    find = f"SELECT h.key FROM {pairs} JOIN host h ON h.shard = k.shard AND h.key = k.key"
    present = {key for (key,) in connection.execute(find, shards)}
    fresh = {host: site for host, site in keys.items() if host not in present}
    if not fresh:
        return
    sites = columns_of([(shard_of(site), site) for site in dict.fromkeys(fresh.values())], 2)
    absent = "NOT EXISTS (SELECT 1 FROM site s WHERE s.shard = k.shard AND s.key = k.key)"
    connection.execute(f"INSERT INTO site (shard, key) SELECT k.shard, k.key FROM {pairs} WHERE {absent}", sites)
    rows = columns_of([(shard_of(site), host, site) for host, site in fresh.items()], 3)
    triples = (
        "unnest(%s::smallint[], %s::text[], %s::text[]) WITH ORDINALITY k(shard, key, site, place)"
        " JOIN site s ON s.shard = k.shard AND s.key = k.site"
    )
    connection.execute(
        f"INSERT INTO host (shard, key, site_id) SELECT k.shard, k.key, s.id FROM {triples} ORDER BY k.place", rows
    )


def _lock_hosts(
    connection: Connection, places: dict[HostKey, SiteKey], sites: Sequence[SiteKey]
) -> dict[HostKey, HostRef]:
    """Locks the affected hosts in key order."""
    keys = columns_of(sorted({(shard_of(site), host) for host, site in places.items()}), 2)
    concerned = (
        "(h.shard, h.key) IN (SELECT * FROM unnest(%s::smallint[], %s::text[]))"
        " OR (h.shard, h.site_id) IN (SELECT s.shard, s.id FROM site s WHERE (s.shard, s.key) IN (SELECT *"
        " FROM unnest(%s::smallint[], %s::text[])))"
    )
    if not sites:
        concerned = "(h.shard, h.key) IN (SELECT * FROM unnest(%s::smallint[], %s::text[]))"
    values = [*keys, *(columns_of([(shard_of(site), site) for site in sites], 2) if sites else ())]
    find = f"SELECT h.key, h.shard, h.id FROM host h WHERE {concerned} ORDER BY h.shard, h.id FOR NO KEY UPDATE"
    return {HostKey(key): HostRef(*host) for key, *host in connection.execute(find, values).fetchall()}
