"""Read operations of a run beside leases and queues, in SQL for both databases."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

from periplus.model.frontier import (
    PRIORITY_WITHOUT_DEPTH,
    HostRow,
    Lease,
    PatternRecord,
    RunCounts,
    ShownLines,
    StoredRobots,
    TrapMemory,
    TrapTally,
)
from periplus.model.page import Blocks, Part
from periplus.model.tables import HAS_PAGE, any_of
from periplus.model.visit import FETCHED_REASONS, STATE_OF, Reason, State, StateTally
from periplus.model.web import HostKey, Origin, SiteKey, Url, UrlId
from periplus.store.bodies import BodyCodec, blocks_of, unpack_parts
from periplus.store.corruption import translate_errors
from periplus.store.notes import note
from periplus.store.statements import Dialect, Row, Statements
from periplus.urls.canonical import url_id

T = TypeVar("T")
STATES_AT_ONCE = 500  # URLs per statement; SQLite allows 32,766 values
READ_AT_ONCE = 10_000  # rows per statement; there may be millions
_FIRST_ID = -(1 << 63)  # the smallest possible id
# Duplicate queue entries: URLs known only from a sitemap or another site, to which a link of their own site led later.
# The worker that takes such an entry drops it.
_DOUBLES = """(SELECT count(*) FROM queue q JOIN url u ON {beside_url}u.id = q.url_id
    WHERE {beside_host}q.host_id = h.id AND q.priority = {priority} AND q.purpose = 'page'
    AND (u.reason <> 'waiting' OR u.depth IS NOT NULL))"""
_ROWS = (
    "SELECT v.id, v.run_id, coalesce(v.text, u.text, ''), v.purpose, v.started, v.took_s, v.outcome, "
    "v.status, v.detail, v.wire_bytes,"
    " coalesce(p.media_type, ''), u.depth FROM visit v LEFT JOIN url u ON u.id = v.url_id LEFT"
    " JOIN page p ON p.url_id = v.url_id"
)


class RunReads(Protocol):
    """The part of `model.ports.VisitReader` that is the same for every database."""

    @abstractmethod
    def read(self, action: Callable[[Statements], T]) -> T:
        """Runs an idempotent action without a transaction and returns its result. Raises StoreError."""

    def note(self, name: str) -> str:
        return self.read(lambda statements: note(statements, name))

    def waiting_by_host(self) -> dict[HostKey, int]:
        find = "SELECT key, pending FROM host WHERE pending > 0"
        return {HostKey(key): pending for key, pending in self.read(lambda statements: statements.rows(find))}

    def states(self, urls: Sequence[Url]) -> dict[Url, tuple[str, str]]:
        """Looks URLs up by id only: the hosts of a survey stay in their original shard."""
        ids = {int(url_id(url)): url for url in urls}
        rest = iter(ids)
        states: dict[Url, tuple[str, str]] = {}
        while block := list(islice(rest, STATES_AT_ONCE)):
            find = f"SELECT id, reason, rule FROM url WHERE id IN ({', '.join('?' * len(block))})"
            for identity, reason, rule in self.read(lambda statements: statements.rows(find, block)):  # noqa: B023 - at once
                states[ids[identity]] = (reason, rule)
        return states


class CrawlReads(RunReads, Protocol):
    """The read-only part of `model.ports.RunStore`. Subclasses execute the statements."""

    run_id: int

    @abstractmethod
    def moment(self, now: float) -> float:
        """The store's clock: the caller's time, or the database's own."""

    def robots(self, origin: Origin) -> StoredRobots | None:
        from periplus.store.ledger_tables import shard_of_origin  # only a crawl needs it, as the dates below

        def read(statements: Statements) -> StoredRobots | None:
            dialect = statements.dialect
            find = f"SELECT origin, status, cause, body, fetched, expires FROM robots WHERE {dialect.here}origin = ?"
            rows = statements.rows(find, dialect.shard_values(shard_of_origin(statements, origin), origin))
            return StoredRobots(*rows[0]) if rows else None

        return self.read(read)

    def trap_memory(self, lease: Lease) -> TrapMemory:
        def read(statements: Statements) -> TrapMemory:
            dialect, rows = statements.dialect, statements.rows
            here = f"WHERE {dialect.here}host_id = ?"
            host = dialect.shard_values(dialect.shard_of(lease.site), lease.host_id)
            records = rows(f"SELECT record FROM family {here} ORDER BY key", host)
            shown = rows(f"SELECT first, keys FROM shown {here} ORDER BY first", host)
            doubts = rows(f"SELECT url_id, doubt FROM doubtful {here} ORDER BY url_id", host)
            lines = ShownLines(shown[0][0], b"".join(keys for _, keys in shown)) if shown else ShownLines()
            patterns = tuple(PatternRecord(*json.loads(record)) for (record,) in records)
            return TrapMemory(patterns, lines, tuple((UrlId(url), doubt) for url, doubt in doubts))

        return self.read(read)

    def stored_urls(self, lease: Lease, urls: Sequence[UrlId]) -> frozenset[UrlId]:
        def read(statements: Statements) -> frozenset[UrlId]:
            shard = statements.dialect.shard_of(lease.site)
            return frozenset(UrlId(row[0]) for row in statements.at("id", "url", "id", [(shard, url) for url in urls]))

        return self.read(read)

    def stored_content(self, lease: Lease, url_id: UrlId) -> Sequence[str]:
        """Stored content of a page of the leased host: fields, text, and link targets, sorted."""

        def read(statements: Statements) -> list[str]:
            dialect = statements.dialect
            here = dialect.shard_values(dialect.shard_of(lease.site), url_id)
            page = (
                "SELECT media_type, language, title, description, h1, canonical, robots, text"
                f" FROM page LEFT JOIN body b ON {dialect.beside('b', 'page')}b.id = body_id"
                f" WHERE {dialect.here_of('page')}url_id = ?"
            )
            links = f"SELECT text FROM url WHERE id IN (SELECT target FROM link WHERE {dialect.here}source = ?)"
            *fields, text = next(iter(statements.rows(page, here)), [None])
            shown = BodyCodec().unpack(text, None).decode() if text else ""
            return [*fields, shown, *sorted(target for (target,) in statements.rows(links, here))]

        return self.read(read)

    def texts(self, site: SiteKey, most: int) -> Iterator[tuple[Url, bytes]]:
        """(URL, digest of its text) of the last `most` fetched pages of the site, oldest first."""

        def latest(statements: Statements) -> list[tuple[str, bytes]]:
            dialect = statements.dialect
            find = (
                f"SELECT u.text, p.text_digest FROM site s JOIN host h ON {dialect.beside('h', 's')}h.site_id = s.id"
                f" JOIN url u ON {dialect.beside('u', 'h')}u.host_id = h.id"
                f" JOIN page p ON {dialect.beside('p', 'u')}p.url_id = u.id"
                f" WHERE {dialect.here_of('s')}s.key = ? AND u.reason IN ('ok', 'noindex')"
                " ORDER BY p.fetched DESC, u.id LIMIT ?"
            )
            return statements.rows(find, (*dialect.shard_values(dialect.shard_of(site), site), most))

        for text, digest in reversed(self.read(latest)):
            yield Url(text), digest

    def counts(self) -> RunCounts:
        def read(statements: Statements) -> RunCounts:
            rows = statements.rows
            tallies = {name: int(value) for name, value in rows("SELECT name, sum(value) FROM tally GROUP BY name")}
            by_reason = {
                name.removeprefix("reason:"): value
                for name, value in tallies.items()
                if name.startswith("reason:") and value
            }
            of_run = "SELECT kind, fetched, wire_bytes FROM run WHERE id = ?"
            kind, fetched, wire_bytes = rows(of_run, (self.run_id,))[0]
            # PostgreSQL keeps the totals of a run in several rows
            of_parts = "SELECT name, sum(value) FROM run_count WHERE run_id = ? GROUP BY name"
            sums = {name: int(value) for name, value in rows(of_parts, (self.run_id,))}
            waiting = by_reason.get("waiting", 0)
            if kind == "refresh":  # refreshed URLs are queued without the reason `waiting`
                waiting = int(rows("SELECT coalesce(sum(pending), 0) FROM host WHERE pending > 0")[0][0])
            fetched, wire_bytes = fetched + sums.get("fetched", 0), wire_bytes + sums.get("wire_bytes", 0)
            return RunCounts(tallies.get("known", 0), waiting, fetched, wire_bytes, by_reason)

        return self.read(read)

    def unrequested_urls(self, reasons: Sequence[Reason]) -> Iterator[tuple[Url, int | None, bool]]:
        """(URL, depth, in sitemap) of the URLs with one of these reasons. The reasons must not be those of fetched
        URLs.
        """
        last: tuple[object, ...] = ()

        def following(statements: Statements) -> list[Row]:
            dialect = statements.dialect
            place = f"{dialect.shard}id"
            behind = last or dialect.shard_values(-1, _FIRST_ID)
            find = (
                f"SELECT {place}, text, depth, in_sitemap FROM url WHERE ({place}) > ({', '.join('?' * len(behind))})"
                f" AND reason IN ({', '.join('?' * len(reasons))}) ORDER BY {place} LIMIT {READ_AT_ONCE}"
            )
            return statements.rows(find, (*behind, *(reason.value for reason in reasons)))

        while rows := self.read(following):
            yield from ((Url(text), depth, bool(in_sitemap)) for *_, text, depth, in_sitemap in rows)
            last = rows[-1][:-3]

    def busiest(self, most: int, now: float) -> Sequence[HostRow]:
        """Hosts with queued tasks, most tasks first."""

        moment = self.moment(now)
        return self.read(lambda statements: hosts_at_work(statements, most, moment))

    def traps(self) -> Sequence[TrapTally]:
        """URL patterns that were skipped as endless series, largest first."""
        return self.read(traps)


def hosts_at_work(statements: Statements, most: int, now: float, *, doubles: bool = True) -> list[HostRow]:
    """Hosts with queued tasks, longest queues first. doubles: whether duplicate entries count; leaving them out takes a
    few microseconds per URL that only a sitemap or another site links to.
    """
    dialect = statements.dialect
    less = _DOUBLES.format(
        beside_url=dialect.beside("u", "q"), beside_host=dialect.beside("q", "h"), priority=PRIORITY_WITHOUT_DEPTH
    )
    find = (
        f"SELECT key, pending - {0 if doubles else less}, fetched, next_at, waits_for, lease_by IS NOT NULL"
        " FROM (SELECT * FROM host WHERE pending > 0 ORDER BY pending DESC, key LIMIT ?) h ORDER BY pending DESC, key"
    )
    return [
        HostRow(HostKey(key), pending, fetched, max(0.0, next_at - now), why, bool(leased))
        for key, pending, fetched, next_at, why, leased in statements.rows(find, (most,))
    ]


def traps(statements: Statements) -> list[TrapTally]:
    """URL patterns skipped as endless series, largest first. Scans all URLs if there are any."""
    if not statements.rows("SELECT 1 FROM tally WHERE name = 'reason:trap' GROUP BY name HAVING sum(value) > 0"):
        return []
    end = f"{statements.dialect.position}(rule, ': ')"
    pattern = f"CASE WHEN {end} > 0 THEN substr(rule, 1, {end} - 1) ELSE rule END"
    find = f"SELECT {pattern}, count(*) FROM url WHERE reason = 'trap' GROUP BY 1 ORDER BY 2 DESC, 1"
    return [TrapTally(name, urls) for name, urls in statements.rows(find)]


def state_tallies(statements: Statements, site: SiteKey | None = None) -> list[StateTally]:
    """Number of URLs by state and reason, in the order of State, most URLs first; for the collection or for one site.
    The latter scans the URLs of the site.
    """
    dialect = statements.dialect
    if site is None:
        rows = statements.rows(
            "SELECT substr(name, 8), sum(value) FROM tally WHERE name LIKE 'reason:%'"
            " GROUP BY name HAVING sum(value) > 0"
        )
    else:
        rows = statements.rows(
            f"SELECT u.reason, count(*) FROM site s JOIN host h ON {dialect.beside('h', 's')}h.site_id = s.id"
            f" JOIN url u ON {dialect.beside('u', 'h')}u.host_id = h.id WHERE s.key = ? GROUP BY u.reason",
            (site,),
        )
    tallies = [StateTally(STATE_OF[Reason(name)], Reason(name), int(urls)) for name, urls in rows]
    states = list(State)
    return sorted(tallies, key=lambda tally: (states.index(tally.state), -tally.urls, tally.reason))


class Backlog(NamedTuple):
    """Queued work of a collection."""

    hosts: int  # known
    hosts_waiting: int
    to_fetch: int  # distinct pages, robots.txt, sitemaps and links to check
    busiest: tuple[HostRow, ...]  # most queued tasks first
    lag_s: float  # how long ago a host without a worker could have been requested again, at most


def backlog(statements: Statements, most: int, now: float) -> Backlog:
    """Counts the queues in 40 ms per million entries. most: maximum number of busiest hosts."""
    find = (
        "SELECT count(*), count(*) FILTER (WHERE pending > 0), coalesce(sum(pending), 0),"
        " coalesce(max(? - next_at) FILTER (WHERE pending > 0 AND lease_by IS NULL AND next_at BETWEEN 1 AND ?), 0)"
        " FROM host"
    )
    ((hosts, waiting, entries, lag_s),) = statements.rows(find, (now, now))
    pages = "SELECT coalesce(sum(value), 0) FROM tally WHERE name = 'reason:waiting'"
    others = "SELECT count(*) FROM queue WHERE purpose <> 'page'"
    to_fetch = sum(int(statements.rows(count)[0][0]) for count in (pages, others))
    busiest = hosts_at_work(statements, most, now, doubles=to_fetch == entries)
    busiest.sort(key=lambda host: (-host.pending, host.host))
    return Backlog(int(hosts), int(waiting), to_fetch, tuple(busiest), lag_s)


class PageBlocks(NamedTuple):
    """A page and its text.

    body_id: 0 if nothing is stored; parts: None if not classified yet; times since the epoch in s, 0.0 if unknown.
    """

    url_id: UrlId
    url: Url
    site_id: int
    reason: str
    body_id: int
    blocks: Blocks
    parts: tuple[Part, ...] | None
    title: str
    language: str  # as declared
    language_found: str  # detected from the text
    media_type: str
    last_modified: float
    fetched: float
    text_digest: bytes
    folded_digest: bytes
    author: str  # declared authors, separated by `; `; declared dates in ISO 8601
    date_published: str
    date_modified: str
    charset: str  # that its bytes are decoded with; may be empty

    @property
    def when(self) -> float:
        """Declared date of publication or last change; else last modified by the server, or date of fetching."""
        from periplus.document.dates import machine_date

        date = machine_date(self.date_published or self.date_modified)
        return date.when if date else self.last_modified or self.fetched


def pages_statement(dialect: Dialect, which: str = HAS_PAGE) -> str:
    """SELECT statement of the current pages, for `page_of`; conditions can be appended."""
    return (
        "SELECT u.id, u.text, h.site_id, u.reason, coalesce(p.body_id, 0), b.text, b.blocks, p.parts, p.title,"
        " p.language, p.language_found, p.media_type, p.last_modified, p.fetched, p.text_digest, p.folded_digest,"
        " p.author, p.date_published, p.date_modified, coalesce(p.charset, '')"
        f" FROM page p JOIN url u ON {dialect.beside('u', 'p')}u.id = p.url_id"
        f" JOIN host h ON {dialect.beside('h', 'u')}h.id = u.host_id"
        f" LEFT JOIN body b ON {dialect.beside('b', 'p')}b.id = p.body_id WHERE {which}"
    )


def page_of(row: Row, codec: BodyCodec) -> PageBlocks:
    """Converts a row of `pages_statement`. Raises StoreError if the text is damaged."""
    url_id, url, site_id, reason, body_id, packed_text, packed_blocks, parts, *fields = row
    with translate_errors():
        text = "" if packed_text is None else codec.unpack(packed_text, None).decode()
    blocks = blocks_of(text, packed_blocks)
    return PageBlocks(
        url_id, url, site_id, reason, body_id, blocks, None if parts is None else unpack_parts(parts), *fields
    )


class RecentVisit(NamedTuple):
    """A completed request. media_type: of the stored page, or empty."""

    id: int
    run_id: int
    url: str
    purpose: str
    started: float
    took_s: float
    outcome: str
    status: int
    detail: str
    wire_bytes: int
    media_type: str
    depth: int | None


def before_run(statements: Statements, run_id: int) -> int:
    """Id of the last visit before a run, by binary search, since ids grow with runs."""
    low, high = 0, int(statements.rows("SELECT coalesce(max(id), 0) FROM visit")[0][0])
    while low < high:
        middle = (low + high + 1) // 2
        row = statements.rows("SELECT run_id FROM visit WHERE id >= ? ORDER BY id LIMIT 1", (middle,))[0]
        if row[0] < run_id:
            low = middle
        else:
            high = middle - 1
    return low


def visits_after(statements: Statements, after: int, most: int) -> list[RecentVisit]:
    """The next visits, of any run."""
    return [
        RecentVisit._make(row)
        for row in statements.rows(f"{_ROWS} WHERE v.id > ? ORDER BY v.id LIMIT ?", (after, most))
    ]


def newest(statements: Statements, run_id: int, most: int) -> list[RecentVisit]:
    """Latest page requests of a run, last first."""
    find = f"{_ROWS} WHERE v.run_id = ? AND v.purpose = 'page' AND v.outcome <> 'skipped' ORDER BY v.id DESC LIMIT ?"
    return [RecentVisit._make(row) for row in statements.rows(find, (run_id, most))]


def pages_before(statements: Statements, started: float, most: int) -> list[tuple[str, int | None]] | None:
    """(URL, depth) of pages last fetched before a run began; None if the collection has more than `most` URLs."""
    urls_seen = statements.rows("SELECT coalesce(sum(value), 0) FROM tally WHERE name LIKE 'reason:%'")[0][0]
    if urls_seen > most:
        return None
    find = f"SELECT text, depth FROM url WHERE reason IN {any_of(FETCHED_REASONS)} AND visited < ?"
    return [(text, depth) for text, depth in statements.rows(find, (started,))]
