"""The statements by which a database's ledger is loaded and written, and the inbox for hosts of other workers."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from operator import attrgetter, itemgetter
from typing import NamedTuple

from psycopg.rows import TupleRow

from periplus.model.frontier import Candidate, Completion, Finding, GivenUp, SideRequest, TrapChanges
from periplus.model.visit import CHECKS, Purpose, Reason, Request, Skipped, Unchanged, Visit
from periplus.model.web import HostKey, Origin, SiteKey, Url, UrlId
from periplus.store import rows
from periplus.store.ledger import AliasRow, HostRef, Ledger, PageLinks, QueueEntry, Sums, UrlRow, brings_content
from periplus.store.postgres import hosts
from periplus.store.postgres.connection import Connection, columns_of, copy_rows
from periplus.store.postgres.hosts import Change, Holding
from periplus.store.postgres.schema import LOCK_MERGE, SHARDS, shard_of
from periplus.store.rows import visit_row
from periplus.store.standing import FIELDS, RECHECK
from periplus.urls.scope import site_key

RETRACT = "retract"  # in place of a purpose: a learned finding fell, and what was skipped by it waits again
_URL = "shard, id, text, host_id, reason, depth, rule, status, in_sitemap, first_seen, visited"
_NEW_URL = attrgetter(*_URL.split(", "))
_PAST_URL = attrgetter("reason", "rule", "status", "depth")
_CHANGED_URL = attrgetter("shard", "id", "reason", "depth", "rule", "status", "in_sitemap", "visited")
_LINK_KEY = "source, target, kind, position, nofollow"
_LINK_KINDS = ("smallint", "bigint", "bigint", "text", "text", "smallint", "text", "text", "bigint", "float8", "float8")
_KEYS = "unnest(%s::smallint[], %s::bigint[]) k(shard, id)"


class InboxRow(NamedTuple):
    """A URL, a side request or a finding that fell, on its way to a host that the writer has not locked."""

    shard: int
    host: str
    site: str
    url_id: int
    text: str  # the URL; the finding
    reason: str  # of a URL; else empty
    priority: int | None  # of a URL its depth
    rule: str
    hops: int
    in_sitemap: int
    page_id: int | None
    learned: int
    purpose: str  # of a side request, or RETRACT; else empty
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
    """The run whose changes are written."""

    id: int
    started: float
    is_refresh: bool


class DatabaseLedger:
    """Loads and writes one transaction's ledger.

    The rule that keeps workers from standing in each other's way: only hosts that the caller has locked, and named in
    `ledger.hosts`, are touched; what concerns any other host goes to `inbox`, in the same transaction, and is merged by
    whoever comes to it (`merge`). Sums are kept by `part`, one of each writer, so that nobody waits for another over a
    number.
    """

    def __init__(self, connection: Connection, run: LedgerRun, part: int, now: float) -> None:
        """part: whose sums these are; now: by the database's clock."""
        self._connection, self._run, self._part, self.now = connection, run, part, now
        self.sums = Sums()
        self.ledger = Ledger(run.id, now, self.sums)
        self._past: dict[int, tuple[object, ...]] = {}  # of URLs, as stored

    # loading ---------------------------------------------------------------------------------------------------------

    def take(self, completions: Sequence[Completion]) -> None:
        """Takes the entries from their lists. One is not there if its host was given up while it was under way."""
        if not completions:
            return
        keys = [(shard_of(one.lease.site), one.task.host_id, one.task.priority, one.task.seq) for one in completions]
        drop = (
            "DELETE FROM queue q USING unnest(%s::smallint[], %s::bigint[], %s::bigint[], %s::bigint[])"
            " k(shard, host, priority, seq)"
            " WHERE q.shard = k.shard AND q.host_id = k.host AND q.priority = k.priority AND q.seq = k.seq"
            " RETURNING q.shard, q.host_id, q.priority, q.seq"
        )
        for shard, host_id, priority, seq in self._connection.execute(drop, columns_of(keys, 4)).fetchall():
            self.ledger.take(HostRef(shard, host_id), priority, seq)

    def load(self, candidates: Iterable[Candidate], side_requests: Sequence[SideRequest]) -> None:
        """Reads the rows that these may concern, as far as their hosts are ours."""
        ours = self.ledger.hosts
        self.load_urls({(ours[one.host].shard, int(one.url_id)) for one in candidates if one.host in ours})
        places = [(*ours[one.host], one.priority, one.request.url) for one in side_requests if one.host in ours]
        if places:
            find = (
                "SELECT q.host_id, q.priority, q.text, q.about, q.purpose"
                " FROM unnest(%s::smallint[], %s::bigint[], %s::bigint[], %s::text[]) k(shard, host, priority, text)"
                " JOIN queue q ON q.shard = k.shard AND q.host_id = k.host AND q.priority = k.priority"
                " AND q.text = k.text"
            )
            self.ledger.listed |= set(self._connection.execute(find, columns_of(places, 4)).fetchall())

    def load_urls(self, keys: Iterable[tuple[int, int]]) -> None:
        """keys: (shard, id)."""
        ordered = sorted(keys)
        names = ", ".join(f"u.{name}" for name in _URL.split(", "))
        find = f"SELECT {names} FROM {_KEYS} JOIN url u ON u.shard = k.shard AND u.id = k.id"
        for row in self._connection.execute(find, columns_of(ordered, 2)) if ordered else ():
            url = UrlRow(*row)
            if url.id not in self.ledger.urls:
                self.ledger.urls[url.id], self._past[url.id] = url, _PAST_URL(url)

    def load_pages(self, completions: Sequence[Completion]) -> None:
        """What is stored of the pages: of nearly all of a first crawl, nothing."""
        ledger, connection = self.ledger, self._connection
        self.load_urls({(shard_of(one.lease.site), int(one.task.url_id)) for one in completions if one.task.url_id})
        keys = [(shard_of(one.lease.site), int(one.task.url_id)) for one in completions if brings_content(one)]
        if keys:
            values = columns_of(keys, 2)
            of_page = ", ".join(f"p.{name}" for name in FIELDS)
            find = f"SELECT p.url_id, {of_page} FROM {_KEYS} JOIN page p ON p.shard = k.shard AND p.url_id = k.id"
            ledger.pages = {row[0]: row[1:] for row in connection.execute(find, values).fetchall()}
            find = (
                "SELECT l.source, l.target, l.kind, l.position, l.nofollow, l.last_seen"
                f" FROM {_KEYS} JOIN link l ON l.shard = k.shard AND l.source = k.id"
            )
            for source, *key, last_seen in connection.execute(find, values).fetchall():
                ledger.links.setdefault(source, {})[tuple(key)] = last_seen
        again = [
            (shard_of(one.lease.site), int(one.task.url_id))
            for one in completions
            if one.task.recheck or isinstance(one.visit.outcome, Unchanged)
        ]
        if again:
            find = (
                "SELECT f.url_id, f.interval_s, f.gone_since"
                f" FROM {_KEYS} JOIN freshness f ON f.shard = k.shard AND f.url_id = k.id"
            )
            for url_id, interval_s, gone_since in connection.execute(find, columns_of(again, 2)).fetchall():
                ledger.freshness[url_id] = (interval_s, gone_since)

    # writing ---------------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Enters all but the sums, of which the caller may have more to say."""
        ledger, connection = self.ledger, self._connection
        copy_rows(connection, "url", _URL, [_NEW_URL(url) for url in ledger.new_urls])
        self._update_urls(ledger.changed_urls)
        self._each(
            "UPDATE url SET text = %s WHERE shard = %s AND id = %s",
            [(text, *page) for page, text in ledger.respelled],
        )
        insert = f"INSERT INTO alias ({', '.join(AliasRow._fields)}) VALUES (%s, %s, %s, %s, %s, %s)"
        self._each(insert + " ON CONFLICT DO NOTHING", ledger.aliases)
        if ledger.vouched:
            clear = f"DELETE FROM doubtful d USING {_KEYS} WHERE d.shard = k.shard AND d.url_id = k.id"
            connection.execute(clear, columns_of(sorted(set(ledger.vouched)), 2))
        self._write_pages()
        copy_rows(connection, "queue", ", ".join(QueueEntry._fields), ledger.entries)
        copy_rows(connection, "visit", f"shard, {rows.VISIT_COLUMNS}", [(one.shard, *one.row) for one in ledger.visits])
        upsert = (
            "INSERT INTO robots VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (shard, origin) DO UPDATE"
            " SET status = excluded.status, cause = excluded.cause, body = excluded.body, fetched = excluded.fetched,"
            " expires = excluded.expires"
        )
        answers = sorted(ledger.robots, key=lambda answer: answer.origin)
        self._each(upsert, [(shard_of_origin(answer.origin), *astuple(answer)) for answer in answers])
        messages = [inbox_row(message, self.now) for message in ledger.outgoing]
        messages += [retract_row(site, finding, self.now) for site, finding in ledger.fallen]
        copy_rows(connection, "inbox", INBOX, messages)

    @property
    def has_sent_out(self) -> bool:
        """Whether something went to the inbox."""
        return bool(self.ledger.outgoing or self.ledger.fallen)

    def _each(self, statement: str, values: Sequence[Sequence[object]]) -> None:
        if values:
            self._connection.cursor().executemany(statement.encode(), values)

    def _update_urls(self, changed: Sequence[UrlRow]) -> None:
        if not changed:
            return
        past = [
            (url.shard, url.id, self._run.id, *self._past[url.id])
            for url in changed
            if url.first_seen < self._run.started and self._past[url.id][:3] != (url.reason, url.rule, url.status)
        ]
        history = "INSERT INTO url_history (shard, url_id, run_id, reason, rule, status, depth)"
        self._each(f"{history} VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING", past)
        update = (
            "UPDATE url u SET reason = v.reason, depth = v.depth, rule = v.rule, status = v.status,"
            " in_sitemap = v.in_sitemap, visited = v.visited"
            " FROM unnest(%s::smallint[], %s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::bigint[],"
            " %s::smallint[], %s::float8[])"
            " v(shard, id, reason, depth, rule, status, in_sitemap, visited) WHERE u.shard = v.shard AND u.id = v.id"
        )
        self._connection.execute(update, columns_of(map(_CHANGED_URL, changed), 8))

    def _write_pages(self) -> None:
        ledger, connection = self.ledger, self._connection
        if ledger.replaced:
            values = columns_of(ledger.replaced, 2)
            for table, column in (("page", "url_id"), ("bad_link", "source")):
                drop = f"DELETE FROM {table} t USING {_KEYS} WHERE t.shard = k.shard AND t.{column} = k.id"
                connection.execute(drop, values)
        pages = [(shard, *page) for shard, page in ledger.new_pages]
        copy_rows(connection, "page", f"shard, {rows.PAGE_COLUMNS}", pages)
        marks = ", ".join(["%s"] * (len(FIELDS) + 3))
        self._each(
            f"INSERT INTO page_history (shard, url_id, run_id, {', '.join(FIELDS)}) VALUES ({marks})"
            " ON CONFLICT DO NOTHING",
            [(*page, self._run.id, *fields) for page, fields in ledger.past_pages],
        )
        copy_rows(connection, "bad_link", f"shard, {rows.BAD_LINK_COLUMNS}", _with_shards(ledger.bad_links))
        self._write_links()
        for page in ledger.validators:
            update = f"UPDATE page SET {page.column} = %s WHERE shard = %s AND url_id = %s AND {page.column} <> %s"
            connection.execute(update.encode(), (page.value, page.shard, page.url_id, page.value))
        upsert = (
            "INSERT INTO freshness (shard, url_id, checked, interval_s, gone_since) VALUES (%s, %s, %s, %s, %s)"
            " ON CONFLICT (shard, url_id) DO UPDATE SET checked = excluded.checked,"
            " interval_s = excluded.interval_s, gone_since = excluded.gone_since"
        )
        self._each(upsert, ledger.fresh)

    def _write_links(self) -> None:
        ledger, connection = self.ledger, self._connection
        copy_rows(connection, "link", f"shard, {rows.LINK_COLUMNS}", _distinct(ledger.new_links))
        seen = _distinct(ledger.seen_links)
        if seen:
            upsert = (
                f"INSERT INTO link (shard, {rows.LINK_COLUMNS}) SELECT *"
                f" FROM unnest({', '.join(f'%s::{kind}[]' for kind in _LINK_KINDS)})"
                f" ON CONFLICT (shard, {_LINK_KEY}) DO UPDATE SET anchor = excluded.anchor,"
                " fragments = excluded.fragments, times = excluded.times, last_seen = excluded.last_seen"
            )
            connection.execute(upsert, columns_of(seen, len(_LINK_KINDS)))
        if not ledger.ended_links:
            return
        checked = "(SELECT checked FROM freshness f WHERE f.shard = e.shard AND f.url_id = e.source)"
        to_history = (
            "WITH e AS (DELETE FROM link l"
            " USING unnest(%s::smallint[], %s::bigint[], %s::text[]) k(shard, source, kind)"
            " WHERE l.shard = k.shard AND l.source = k.source AND l.last_seen < %s AND k.kind IN ('', l.kind)"
            " RETURNING l.*)"
            f" INSERT INTO link_history (shard, {_LINK_KEY}, run_id, anchor, times, first_seen, last_seen)"
            f" SELECT shard, {_LINK_KEY}, %s, anchor, times, first_seen, greatest(last_seen, coalesce({checked}, 0))"
            " FROM e ON CONFLICT DO NOTHING"
        )
        connection.execute(to_history, (*columns_of(ledger.ended_links, 3), self.now, self._run.id))

    def write_sums(self) -> None:
        """Of the collection and the run; those of hosts are written with their paces, by `hosts.change`."""
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

    # hosts -----------------------------------------------------------------------------------------------------------

    def store_traps(self, host: HostRef, changes: TrapChanges) -> None:
        """What a host's trap detector learned."""
        connection, lines, place = self._connection, changes.lines, tuple(host)
        upsert = (
            "INSERT INTO family VALUES (%s, %s, %s, %s) ON CONFLICT (shard, host_id, md5(key)) DO UPDATE"
            " SET record = excluded.record"
        )
        self._each(upsert, [(*place, record.key, json.dumps(astuple(record))) for record in changes.patterns])
        if changes.doubts:
            doubtful = (
                "INSERT INTO doubtful SELECT u.shard, u.id, u.host_id, k.doubt"
                " FROM unnest(%s::bigint[], %s::smallint[]) k(id, doubt)"
                " JOIN url u ON u.shard = %s AND u.id = k.id WHERE k.doubt > 0"
                " ON CONFLICT (shard, url_id) DO UPDATE SET doubt = excluded.doubt"
            )
            connection.execute(doubtful, (*columns_of(sorted(changes.doubts), 2), host.shard))
            certain = [url_id for url_id, doubt in changes.doubts if not doubt]
            connection.execute("DELETE FROM doubtful WHERE shard = %s AND url_id = ANY(%s)", (host.shard, certain))
        if lines.keys:
            connection.execute(
                "INSERT INTO shown VALUES (%s, %s, %s, %s) ON CONFLICT (shard, host_id, first)"
                " DO UPDATE SET keys = excluded.keys",
                (*place, lines.first, lines.keys),
            )
            passed = "DELETE FROM shown WHERE shard = %s AND host_id = %s AND first + length(keys) / 4 <= %s"
            connection.execute(passed, (*place, lines.needed_from))

    def drop(self, host: Holding, given_up: GivenUp) -> None:
        """The part of a list whose origin is given up is dropped, until a new run.

        The host is locked, and all else of the transaction is written but the sums. Origins of one host differ in their
        scheme.
        """
        connection, run, sums = self._connection, self._run, self.sums
        values = {
            "shard": host.shard,
            "host": host.id,
            "run": run.id,
            "started": run.started,
            "reason": given_up.reason.value,
            "rule": given_up.rule,
            "scheme": given_up.origin[:5],
        }
        text = "coalesce(text, (SELECT u.text FROM url u WHERE u.shard = queue.shard AND u.id = queue.url_id))"
        listed = f"FROM queue WHERE shard = %(shard)s AND host_id = %(host)s AND left({text}, 5) = %(scheme)s"
        pages = f"SELECT url_id {listed} AND purpose = 'page'"
        waiting = f"reason = 'waiting' AND shard = %(shard)s AND id IN ({pages})"
        connection.execute(
            "INSERT INTO url_history (shard, url_id, run_id, reason, rule, status, depth)"
            f" SELECT shard, id, %(run)s, reason, rule, status, depth FROM url WHERE {waiting}"
            " AND first_seen < %(started)s ON CONFLICT DO NOTHING",
            values,
        )
        update = f"UPDATE url SET reason = %(reason)s, rule = %(rule)s WHERE {waiting}"
        dropped = connection.execute(update, values).rowcount
        sums.tallies["reason:waiting"] -= dropped
        sums.tallies["reason:" + given_up.reason.value] += dropped
        entries = connection.execute(f"DELETE {listed} RETURNING purpose, text", values).fetchall()
        sums.counts[Finding.UNREACHED.value] += sum(purpose == RECHECK for purpose, _ in entries)
        # links' targets have no reason of their own: a visit says that they were not asked for
        outcome = Skipped(given_up.reason, given_up.rule)
        visits = [
            Visit(Request(Url(target), Purpose(purpose)), self.now, 0.0, outcome)
            for purpose, target in entries
            if purpose in CHECKS
        ]
        visit_rows = [(host.shard, *visit_row(run.id, 0, visit)) for visit in visits]
        copy_rows(connection, "visit", f"shard, {rows.VISIT_COLUMNS}", visit_rows)
        update = "UPDATE host SET pending = pending - %(gone)s WHERE shard = %(shard)s AND id = %(host)s"
        connection.execute(update, values | {"gone": len(entries)})


def _with_shards(pages: Iterable[PageLinks]) -> list[tuple[object, ...]]:
    return [(page.shard, *row) for page in pages for row in page.rows]


def _distinct(pages: Iterable[PageLinks]) -> list[tuple[object, ...]]:
    """A page's links behind its shard, each once: COPY and one upsert bear no two."""
    return list({(page.shard, *row[:5]): (page.shard, *row) for page in pages for row in page.rows}.values())


def shard_of_origin(origin: Origin) -> int:
    return shard_of(site_key(Url(f"{origin}/")))


# Only here hosts are made, and only here is anything entered for a host that somebody else may hold: under
# the shard's advisory lock, then the hosts' own, in order. Completing transactions take no advisory lock,
# so nobody waits in a circle.

AT_ONCE = 2_000  # rows merged in one transaction: some 50 ms, in which their hosts' holders wait
MakeLedger = Callable[[float], DatabaseLedger]


class Mail(NamedTuple):
    """What is to be brought to its hosts. findings: learned ones that fell, each with its site."""

    candidates: Sequence[Candidate]
    side_requests: Sequence[SideRequest] = ()
    findings: Sequence[tuple[SiteKey, str]] = ()


def lock_number(collection: str, shard: int = 0) -> int:
    """The number of a collection's advisory lock: 31 bits,
    for two collections of one database not to wait for each other.
    """
    return (zlib.crc32(collection.encode()) % (2**31 // SHARDS)) * SHARDS + shard


def is_empty(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM inbox LIMIT 1").fetchone() is None


def merge(connection: Connection, collection: str, make: MakeLedger, now: float | None) -> int:
    """Brings up to AT_ONCE rows to their hosts, of shards that nobody else is merging; returns how many.

    Within a transaction.
    """
    shards = _lock_free_shards(connection, collection)
    if not shards:
        return 0
    some = "SELECT shard, id FROM inbox WHERE shard = ANY(%s) ORDER BY shard, id LIMIT %s"
    columns = ", ".join(f"i.{name}" for name in InboxRow._fields)
    take = f"DELETE FROM inbox i USING ({some}) w WHERE i.shard = w.shard AND i.id = w.id RETURNING i.id, {columns}"
    numbered = connection.execute(take, (shards, AT_ONCE)).fetchall()
    messages = [InboxRow(*row[1:]) for row in sorted(numbered, key=itemgetter(0))]  # as they came, whatever their shard
    if messages:
        findings = [(SiteKey(row.site), row.text) for row in messages if row.purpose == RETRACT]
        candidates = [row.candidate() for row in messages if row.reason]
        side_requests = [row.side_request() for row in messages if row.purpose not in ("", RETRACT)]
        _enter(connection, make(hosts.time_now(connection, now)), Mail(candidates, side_requests, findings))
    return len(messages)


def _lock_free_shards(connection: Connection, collection: str) -> list[int]:
    """Shards with something in the inbox, now locked by us.

    The rows are read by a later statement, which sees what others did before.
    """
    shards = {
        lock_number(collection, shard): shard
        for (shard,) in connection.execute("SELECT DISTINCT shard FROM inbox").fetchall()
    }
    lock = "SELECT n FROM unnest(%s::int[]) n WHERE pg_try_advisory_xact_lock(%s, n)"
    return [shards[number] for (number,) in connection.execute(lock, (list(shards), LOCK_MERGE)).fetchall()]


def enter_from_outside(
    connection: Connection, collection: str, tables: DatabaseLedger, mail: Mail, *, reopen: bool
) -> int:
    """Starts and lists, which nobody found on a page; returns how many wait newly. Waits for others who are merging."""
    for shard in sorted({shard_of(site) for site in _places(mail).values()}):
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK_MERGE, lock_number(collection, shard)))
    return _enter(connection, tables, mail, reopen=reopen)


def _enter(connection: Connection, tables: DatabaseLedger, mail: Mail, *, reopen: bool = False) -> int:
    """All of it, under the shards' locks. Returns how many URLs wait newly."""
    ledger, places = tables.ledger, _places(mail)
    _make_hosts(connection, places)
    ledger.hosts = _lock_hosts(connection, places, [site for site, _ in mail.findings])
    tables.load(mail.candidates, mail.side_requests)
    fresh = sum([ledger.offer(candidate, reopen=reopen) for candidate in mail.candidates])
    for side_request in mail.side_requests:
        ledger.send(side_request)
    for site, finding in mail.findings:
        _retract(connection, tables, site, finding)
    tables.write()
    tables.write_sums()
    changes = [Change(*host, change, 0, None) for host, change in tables.sums.pending.items()]
    hosts.change(connection, changes, tables.now)
    return fresh


def _places(mail: Mail) -> dict[HostKey, SiteKey]:
    return {one.host: one.site for one in mail.candidates} | {one.host: one.site for one in mail.side_requests}


def _make_hosts(connection: Connection, keys: dict[HostKey, SiteKey]) -> None:
    """Hosts and sites that nobody has met before. The numbers of what is there already are not used up."""
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
    """The hosts that are concerned, locked in the one order."""
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


def _retract(connection: Connection, tables: DatabaseLedger, site: SiteKey, finding: str) -> None:
    """What was skipped because of a learned finding waits again."""
    find = (
        "DELETE FROM alias a USING url u, host h, site s WHERE a.shard = %(shard)s AND a.learned = 1"
        " AND u.shard = a.shard AND u.id = a.url_id"
        " AND h.shard = u.shard AND h.id = u.host_id AND s.shard = h.shard AND s.id = h.site_id AND s.key = %(site)s"
        " AND position('; ' || %(finding)s || '; ' IN '; ' || a.rule || '; ') > 0 RETURNING a.shard, a.url_id"
    )
    keys: list[TupleRow] = connection.execute(
        find, {"shard": shard_of(site), "site": site, "finding": finding}
    ).fetchall()
    tables.load_urls(keys)
    for _, url_id in sorted(keys):
        url = tables.ledger.urls[url_id]
        tables.ledger.restate(url, Reason.WAITING.value, "")
        tables.ledger.await_again(url)
