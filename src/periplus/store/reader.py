"""Reads a collection: one interface, with the same statements for every database."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from periplus.errors import UsageError
from periplus.model.frontier import TrapTally, WorkerRow
from periplus.model.page import NO_BLOCKS, Blocks, Part
from periplus.model.ports import RunRecord
from periplus.model.tables import ALL_URLS, BAD_LINKS, HAS_PAGE, LINKS, PAGE, Row, Table, any_of, row_maker
from periplus.model.visit import FETCHED_REASONS, Headers, Reason, StateTally, UrlFacts
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store import runs
from periplus.store.bodies import BodyCodec, blocks_of, unpack_headers, unpack_original, unpack_parts
from periplus.store.corruption import translate_errors
from periplus.store.crawl_reads import Backlog, PageBlocks, backlog, page_of, pages_statement, state_tallies, traps
from periplus.store.notes import note
from periplus.store.statements import Dialect, Statements
from periplus.store.statements import Row as Values
from periplus.store.views import LinkFilter, PageFilter, by_key, link_conditions, order_by, page_conditions, select
from periplus.urls.canonical import canonical, url_id
from periplus.urls.user_patterns import user_pattern
from periplus.values import frozen

if TYPE_CHECKING:  # crawls do not load the values of reports, nor NumPy
    from periplus.model.arrays import Ints
    from periplus.model.results import SamePage, Segmentation

DUPLICATES_MOST = 50  # maximum listed
NO_LIMIT = 1 << 62
ROWS_AT_ONCE = 2_000  # a call per row would cost a third more
TEXTS_AT_ONCE = 100  # rows with packed texts: about 1 MB
_PLAIN = re.compile(r"[\w/:=&%~-]*")  # an expression that means itself


class Brief(NamedTuple):
    """Short description of a URL. Empty, 0 and -1: unknown."""

    id: int
    url: str
    title: str
    reason: str
    status: int
    media_type: str
    size: int
    depth: int


@frozen
class Activity:
    """What runs on a collection now. now: by the store's clock; size_bytes: on disk."""

    now: float
    is_running: bool
    size_bytes: int
    workers: int = 0  # database only: on all machines


class PageBody(NamedTuple):
    """A current page with its bytes, without content codings."""

    url_id: UrlId
    url: Url
    media_type: str
    charset: str  # charset that it is decoded with
    body: bytes


@frozen
class Answer:
    """Result of a query. columns: names; rows: streamed, bytes as hexadecimal text."""

    columns: Sequence[str]
    rows: Iterator[Values]


class CollectionWriter(NamedTuple):
    """A collection that nothing else changes. reader: its statements may also write, within a `transaction`."""

    reader: CollectionReader
    transaction: Callable[[], AbstractContextManager[object]]


class LinkIndex(Protocol):
    """An index of a collection's links, visits and texts, perhaps older than the collection."""

    def linking(self, reader: CollectionReader, target: int, most: int) -> tuple[int, list[int]]:
        """(number of other pages that link to a URL, ids of up to `most` of them, greatest rank first)."""

    def perhaps_same(self, reader: CollectionReader, folded_digest: bytes) -> list[int]:
        """Ids of candidate pages, which include all pages with this digest of the folded words."""

    def visits_of(self, reader: CollectionReader, url: Url) -> list[int]:
        """Ids of the visits that requested a URL, ascending."""


class CollectionReader(Protocol):
    """Answers questions about one collection, in whatever database it is stored; also during a crawl.

    Implementations execute statements; every question is written here once. Bodies raise StoreError if damaged.
    """

    statements: Statements
    codec: BodyCodec
    with_marks: Callable[[PageBlocks], PageBlocks] | None = None
    """Adds the marks of a page's blocks that are not stored in the collection."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def limit_reads(self, limit_s: float, cpu_s: Callable[[], float] = thread_time) -> AbstractContextManager[None]:
        """Stops reads within the context after limit_s seconds, 0: never; translates errors. SQLite counts the CPU time
        that cpu_s returns. Raises OutOfTime.
        """

    @abstractmethod
    def snapshot(self, of: str = "") -> AbstractContextManager[None]:
        """Gives all reads within the context the same snapshot. of: a `moment` of another process."""

    @abstractmethod
    def activity(self, now: float) -> Activity: ...

    @abstractmethod
    def stream(self, find: str, values: Sequence[object] = (), at_once: int = ROWS_AT_ONCE) -> Iterator[Values]:
        """Yields the rows of a statement that may read whole tables. at_once: rows fetched at a time."""

    @abstractmethod
    def whole(self, table: Table) -> Iterator[Values]:
        """All rows of a stored table, in storage order."""

    @abstractmethod
    def name_segments(self, segments: Segmentation) -> None:
        """Defines segment_of(id) for the next statements, see `with_segments`."""

    @abstractmethod
    def ask(self, question: str, limit_s: float, most: int = -1) -> Answer:
        """Executes one read-only statement of a user, in the database's SQL, over the tables of `VIEWS`.

        most: maximum number of rows, -1: all. limit_s: for the statement and for reading its rows; 0: none. Raises
        UsageError for invalid statements and statements that do more than read; StoreError when the time is over, also
        while rows are read.
        """

    @abstractmethod
    def body_in_segment(self, segment: str, start: int, length: int) -> bytes: ...

    # runs and totals

    def runs(self) -> list[RunRecord]:
        """All runs, oldest first."""
        return runs.records(self.statements)

    def counts(self, site: SiteKey | None = None) -> list[StateTally]:
        """Number of URLs by state and reason; see `state_tallies`."""
        return state_tallies(self.statements, site)

    def backlog(self, most: int, now: float) -> Backlog:
        return backlog(self.statements, most, now)

    def workers(self, now: float) -> tuple[WorkerRow, ...]:
        """Registered workers, in the order of their registration."""
        find = (
            "SELECT w.host, w.pid, w.lease_until - ?, (SELECT count(*) FROM host h WHERE h.lease_by = w.name),"
            " w.commits, w.pages, w.commit_s FROM worker w ORDER BY w.joined, w.name"
        )
        return tuple(WorkerRow(*row) for row in self.statements.rows(find, (now,)))

    def version(self) -> tuple[int, int]:
        """(last run id, last visit id): computed results are valid while these are unchanged."""
        rows = self.statements.rows(
            "SELECT coalesce(max(id), 0) FROM run UNION ALL SELECT coalesce(max(id), 0) FROM visit"
        )
        return int(rows[0][0]), int(rows[1][0])

    def traps(self) -> list[TrapTally]:
        return traps(self.statements)

    def is_paused(self) -> bool:
        return runs.is_paused(self.statements)

    def note(self, name: str) -> str:
        """Value of a note of the collection, or empty."""
        return note(self.statements, name)

    def count_urls(self) -> int:
        """Number of URLs of the collection."""
        return sum(tally.urls for tally in self.counts())

    # URLs

    def is_known(self, url: Url) -> bool:
        return self.text_of(url_id(url)) is not None

    def text_of(self, url_id: int) -> str | None:
        text: str | None = self._value("text", url_id)
        return text

    def first_seen_s(self, url_id: int) -> float | None:
        """Time when a URL was first seen, in seconds since the epoch, or None."""
        moment: float | None = self._value("first_seen", url_id)
        return moment

    def _value(self, column: str, url_id: int) -> Any:
        return self._value_of(f"u.{column} FROM url u WHERE {self._dialect.anywhere('u')}u.id = ?", url_id)

    def _value_of(self, find: str, *values: object) -> Any:
        """First value of the first row, or None."""
        return next((row[0] for row in self.statements.rows(f"SELECT {find}", values)), None)

    @property
    def _dialect(self) -> Dialect:
        return self.statements.dialect

    def resolve_url(self, text: str) -> Url:
        """The URL that a user means. Without a scheme: the known one of https and http, else https.

        A path such as `/a/b.html` is resolved against the start URLs: the first on which it is known. Raises
        InvalidUrl.
        """
        if "://" in text:
            return canonical(text)
        if text.startswith("/") and not text.startswith("//"):
            starts = dict.fromkeys(start for run in self.runs() for start in run.starts)
            urls = [canonical(text, Url(start)) for start in starts]
            if urls:
                return next((url for url in urls if self.is_known(url)), urls[0])
        secure, plain = canonical(f"https://{text}"), canonical(f"http://{text}")
        return plain if self.is_known(plain) and not self.is_known(secure) else secure

    def pages(self, where: PageFilter, columns: Sequence[str] = (), table: Table = ALL_URLS) -> Iterator[Values]:
        """URLs that match a filter, by depth and URL, those without a depth last.

        columns: of the table, which is ALL_URLS, perhaps with segments; empty: all. Raises UsageError for an invalid
        filter or column.
        """
        conditions, values = page_conditions(where)
        if where.url:
            condition, parameter = self.matching(where.url)
            conditions, values = [*conditions, condition], [*values, parameter]
        order = order_by(table, table.order, self._dialect)
        find = f"{select(table, columns, conditions, order, self._dialect)} LIMIT ?"
        return self.stream(find, (*values, where.limit if where.limit >= 0 else NO_LIMIT))

    def matching(self, pattern: str) -> tuple[str, object]:
        """Condition on the text of a URL `u`, and its parameter. Databases have no RE2: matching URLs come first."""
        if _PLAIN.fullmatch(pattern):
            return f"{self._dialect.position}(u.text, ?) > 0", pattern
        texts = self.stream("SELECT u.id, u.text FROM url u")
        return f"u.id {self._dialect.among}", self._dialect.list_value(
            row[0] for row in texts if matches(row[1], pattern)
        )

    def briefs(self, ids: Sequence[int]) -> list[Brief]:
        """Short descriptions of URLs, in the order given; of a deleted URL only the id."""
        dialect = self._dialect
        find = (
            "SELECT u.id, u.text, coalesce(p.title, ''), u.reason, coalesce(u.status, 0), "
            "coalesce(p.media_type, ''), coalesce(p.size, 0), coalesce(u.depth, -1)"
            f" FROM url u LEFT JOIN page p ON {dialect.beside('p', 'u')}p.url_id = u.id"
            f" WHERE {dialect.anywhere('u')}u.id {dialect.among}"
        )
        by_id = {row[0]: Brief(*row) for row in self.statements.rows(find, (dialect.list_value(ids),))}
        return [by_id.get(identity, Brief(identity, "", "", Reason.WAITING.value, 0, "", 0, -1)) for identity in ids]

    def page_blocks(
        self, ids: Iterable[UrlId], which: str = HAS_PAGE, site: SiteKey | None = None
    ) -> Iterator[PageBlocks]:
        """Current pages among the URLs with their texts, in the order given. which: SQL condition for them; site: of
        all of them, if it is known.
        """
        dialect = self._dialect
        find = f"{pages_statement(dialect, which)} AND {dialect.anywhere('p', site)}p.url_id {dialect.among}"
        rest = iter(ids)
        while lot := list(islice(rest, TEXTS_AT_ONCE)):
            by_id = {row[0]: row for row in self.statements.rows(find, (self._dialect.list_value(lot),))}
            yield from (self._page_of(by_id[url_id]) for url_id in lot if url_id in by_id)

    def _page_of(self, row: Values) -> PageBlocks:
        page = page_of(row, self.codec)
        return self.with_marks(page) if self.with_marks else page

    def site_blocks(self, site_id: int, most: int = -1) -> Iterator[PageBlocks]:
        """Streams the site's pages by id. most: maximum pages, -1: all; the first ids (hashes) are a random sample."""
        hosts = "SELECT id FROM host WHERE site_id = ?"
        find = f"{pages_statement(self._dialect)} AND u.host_id IN ({hosts}) ORDER BY p.url_id LIMIT ?"
        rows = self.stream(find, (site_id, most if most >= 0 else NO_LIMIT), TEXTS_AT_ONCE)
        return map(self._page_of, rows)

    def site_of(self, url_id: int) -> SiteKey | None:
        """Site of a known URL, or None."""
        dialect = self._dialect
        find = (
            f"s.key FROM url u JOIN host h ON {dialect.beside('h', 'u')}h.id = u.host_id"
            f" JOIN site s ON {dialect.beside('s', 'h')}s.id = h.site_id WHERE {dialect.anywhere('u')}u.id = ?"
        )
        site: SiteKey | None = self._value_of(find, url_id)
        return site

    def site_names(self, ids: Iterable[int] | None = None) -> dict[int, SiteKey]:
        """Site keys by id. ids: only these; None: all."""
        where = "" if ids is None else f" WHERE {self._dialect.anywhere('s')}s.id {self._dialect.among}"
        values = () if ids is None else (self._dialect.list_value(ids),)
        return dict(self.statements.rows(f"SELECT s.id, s.key FROM site s{where}", values))

    def url_facts(self, url_id: int) -> UrlFacts | None:
        find = f"SELECT u.text, u.reason, u.status, u.rule FROM url u WHERE {self._dialect.anywhere('u')}u.id = ?"
        rows = self.statements.rows(find, (url_id,))
        return next((UrlFacts(text, Reason(reason), status or 0, rule) for text, reason, status, rule in rows), None)

    def statuses_of(self, ids: Iterable[int]) -> dict[int, int]:
        """Last HTTP status by id, of the URLs that have one."""
        dialect = self._dialect
        find = f"SELECT u.id, u.status FROM url u WHERE {dialect.anywhere('u')}u.id {dialect.among} AND u.status > 0"
        return dict(self.statements.rows(find, (dialect.list_value(ids),)))

    def titles_of(self, ids: Sequence[UrlId]) -> dict[UrlId, str]:
        """Titles of pages, without pages that have none."""
        return {url_id: title for url_id, title in self._of_pages("p.url_id, p.title", ids) if title}

    def title_of(self, url_id: int) -> str:
        """A page's title, or empty."""
        return str(self._cell("p.title", url_id) or "")

    def of_site(self, site: SiteKey) -> str:
        """SQL condition: URL u belongs to the site. Numbers are part of the text, since COPY takes no parameters."""
        dialect, shard = self._dialect, self._dialect.shard_of(site)
        find = f"SELECT s.id FROM site s WHERE {dialect.here_of('s')}s.key = ?"
        numbers = [row[0] for row in self.statements.rows(find, dialect.shard_values(shard, site))]
        of_url, of_host = (f"{name}.shard = {shard} AND " if dialect.has_shards else "" for name in ("u", "h"))
        hosts = f"SELECT h.id FROM host h WHERE {of_host}h.site_id = {numbers[0] if numbers else -1}"
        return f"{of_url}u.host_id IN ({hosts})"

    @abstractmethod
    def numbers(self, find: str, width: int) -> Iterator[Ints]:
        """Yields the rows of a statement without parameters on integers without NULL as int64[rows, width]."""

    def make_tables(self, tables: Iterable[str]) -> None:
        """Creates temporary tables for the statements of this reader. tables: see `Dialect.temporary`."""
        for table in tables:
            self.statements.change(self._dialect.temporary(table))

    @abstractmethod
    def plan(self, *, scans: bool) -> None:
        """Plans the next statements of a snapshot for scans of whole tables, or for look-ups in tables of any size."""

    # links

    def links(self, where: LinkFilter, columns: Sequence[str] = (), table: Table = LINKS) -> Iterator[Values]:
        """Links that match a filter, by source and target if one of them is given; else in storage order.

        columns: of the table, which is LINKS, perhaps with segments; empty: all. Raises UsageError for an invalid
        filter or column.
        """
        dialect = self._dialect
        conditions, values = link_conditions(where, dialect)
        if where.target and dialect.has_shards:  # first, so that the planner knows how few pages there are
            find = "SELECT DISTINCT shard, source FROM page_links WHERE targets @> ARRAY[?::bigint]"
            pages = self.statements.rows(find, (url_id(Url(where.target)),))
            conditions.append("l.shard = ANY(?) AND l.source = ANY(?)")
            values += [[shard for shard, _ in pages], [source for _, source in pages]]
        values.append(where.limit if where.limit >= 0 else NO_LIMIT)
        if not (where.source or where.target):
            return self.stream(f"{select(table, columns, conditions, '', dialect)} LIMIT ?", values)
        order = order_by(table, ("source", "target", "kind", "position"), dialect)
        find = f"{select(by_key(table, dialect), columns, conditions, order, dialect)} LIMIT ?"
        return iter(self.statements.rows(find, values))

    def links_between(self, sources: Sequence[int], target: int) -> Iterator[Values]:
        """Rows of LINKS from these URLs to one URL, in the order of the sources."""
        dialect = self._dialect
        conditions = (f"{dialect.anywhere('l')}l.source = ?", "l.target = ?")
        find = select(by_key(LINKS, dialect), where=conditions, dialect=dialect)
        for source in sources:
            yield from self.statements.rows(find, (source, target))

    def bad_links(self, source: str = "", limit: int = -1) -> Iterator[Values]:
        """Rows of BAD_LINKS, grouped by page. source: only of this page."""
        dialect, values = self._dialect, [url_id(Url(source))] if source else []
        conditions = (f"{dialect.anywhere('b')}b.source = ?",) if source else ()
        find = f"{select(by_key(BAD_LINKS, dialect), where=conditions, dialect=dialect)} LIMIT ?"
        return self.stream(find, (*values, limit if limit >= 0 else NO_LIMIT))

    def linking_pages(self, url_id: UrlId, most: int) -> list[int]:
        """Ids of up to `most` pages whose links may lead to a URL."""
        find = f"SELECT DISTINCT source FROM {self._dialect.linking} l LIMIT ?"
        return [row[0] for row in self.statements.rows(find, (url_id, most))]

    def count_inlinks(self, url_id: UrlId) -> int:
        """Number of pages that link to it, without itself. Reads the targets of all links once."""
        exact = "target = ? AND " * (not self._dialect.has_shards)
        find = f"count(DISTINCT source) FROM link WHERE {exact}source IN {self._dialect.linking} AND source <> ?"
        if self._dialect.has_shards:
            find = f"count(DISTINCT source) FROM {self._dialect.linking} l WHERE source <> ?"
        return int(self._value_of(find, *[url_id] * find.count("?")))

    def count_outlinks(self, url_id: UrlId) -> int:
        """Number of URLs that it links to, without itself."""
        find = f"count(DISTINCT target) FROM link l WHERE {self._dialect.anywhere('l')}l.source = ? AND l.target <> ?"
        return int(self._value_of(find, url_id, url_id))

    # one page

    def page_row(self, url_id: UrlId) -> Row | None:
        """A row of PAGE, or None if the URL is unknown."""
        dialect = self._dialect
        find = select(by_key(PAGE, dialect), where=(f"{dialect.anywhere('u')}u.id = ?",), dialect=dialect)
        return next(map(row_maker(PAGE.names), self.statements.rows(find, (url_id,))), None)

    def read_as(self, url_id: UrlId) -> tuple[str, str] | None:
        """(media type, charset) used to parse a page, may be empty; None if it is not a page."""
        row = self._of_page("p.media_type, p.charset", url_id)
        return (row[0] or "", row[1] or "") if row else None

    def _of_page(self, columns: str, url_id: int) -> Values | None:
        """Columns of a page, its body, rendering or canonical XML."""
        return next(iter(self._of_pages(columns, [url_id])), None)

    def _of_pages(self, columns: str, ids: Sequence[int], site: SiteKey | None = None) -> list[Values]:
        dialect = self._dialect
        find = (
            f"SELECT {columns} FROM page p LEFT JOIN body b ON {dialect.beside('b', 'p')}b.id = p.body_id"
            f" LEFT JOIN rendering g ON {dialect.beside('g', 'p')}g.url_id = p.url_id"
            f" LEFT JOIN xml x ON {dialect.beside('x', 'p')}x.body_id = p.body_id"
            f" WHERE {dialect.anywhere('p', site)}p.url_id {dialect.among}"
        )
        return self.statements.rows(find, (dialect.list_value(ids),))

    def _cell(self, column: str, url_id: int) -> Any:
        """The same of one column."""
        return (self._of_page(column, url_id) or (None,))[0]

    def answer(self, url_id: UrlId, among: Sequence[int] | None = None) -> tuple[int, Headers] | None:
        """Status and headers of the response with the page's body, else of the last response; None if there is none.

        among: visit ids to consider; None: all.
        """
        dialect = self._dialect
        here = f"v.shard = (SELECT u.shard FROM url u WHERE {dialect.anywhere('u')}u.id = v.url_id) AND "
        find = (
            f"SELECT v.status, v.head FROM visit v WHERE {here * dialect.has_shards}v.url_id = ? AND v.purpose = 'page'"
            f" AND v.head IS NOT NULL{self._in_list('v.id', among)}"
            " ORDER BY v.outcome = 'fetched' AND v.status BETWEEN 200 AND 299 DESC, v.id DESC LIMIT 1"
        )
        rows = self.statements.rows(find, (url_id, *self._list_values(among)))
        return next(((status, unpack_headers(head)) for status, head in rows), None)

    def _in_list(self, column: str, among: Sequence[int] | None) -> str:
        return "" if among is None else f" AND {column} {self._dialect.among}"

    def _list_values(self, among: Sequence[int] | None) -> tuple[object, ...]:
        return () if among is None else (self._dialect.list_value(among),)

    def leads_to(self, url_id: UrlId) -> str | None:
        """Target of a redirect, or page of an alias, or None."""
        dialect = self._dialect
        find = (
            f"coalesce(l.target, a.page_id) FROM url u LEFT JOIN alias a ON {dialect.beside('a', 'u')}a.url_id = u.id"
            f" LEFT JOIN link l ON {dialect.beside('l', 'u')}l.source = u.id AND l.kind = 'redirect'"
            f" WHERE {dialect.anywhere('u')}u.id = ? AND u.reason IN ('redirect', 'alias')"
            " ORDER BY l.last_seen DESC LIMIT 1"
        )
        target = self._value_of(find, url_id)
        return None if target is None else self.text_of(target)

    def is_shown(self, url_id: UrlId) -> bool:
        """Whether its bytes are stored, or it leads to another URL."""
        row = self.page_row(url_id)
        return row is not None and bool(row.reason in (Reason.REDIRECT, Reason.ALIAS) or row.has_bytes)

    def folded_digest(self, url_id: UrlId) -> bytes:
        """Digest of the page's folded words. The page must exist."""
        return bytes(self._cell("p.folded_digest", url_id))

    def duplicates(self, url_id: UrlId, among: Sequence[int] | None = None) -> tuple[SamePage, ...]:
        """Pages with the same words, most similar first, at most DUPLICATES_MOST.

        among: page ids to consider; None: all.
        """
        dialect = self._dialect
        find = (
            "SELECT u.text, CASE WHEN o.body_digest = p.body_digest THEN 'bytes' WHEN o.text_digest = p.text_digest "
            "THEN 'words' ELSE 'folded' END AS same"
            " FROM page p JOIN page o ON o.folded_digest = p.folded_digest AND o.url_id <> p.url_id"
            f" JOIN url u ON {dialect.beside('u', 'o')}u.id = o.url_id"
            f" WHERE {dialect.anywhere('p')}p.url_id = ?{self._in_list('o.url_id', among)}"
            f" ORDER BY o.body_digest <> p.body_digest, o.text_digest <> p.text_digest,"
            f" u.text{dialect.text_order} LIMIT ?"
        )
        values = (url_id, *self._list_values(among), DUPLICATES_MOST)
        from periplus.model.results import SamePage  # crawls do not load the values of reports

        return tuple(SamePage._make(row) for row in self.statements.rows(find, values))

    def body(self, url_id: UrlId) -> bytes | None:
        """The page's bytes, without content codings; None if not stored."""
        return self.bodies([url_id]).get(url_id)

    def bodies(self, ids: Sequence[int], site: SiteKey | None = None) -> dict[int, bytes]:
        """The same of several pages; without those whose bytes are not stored. site: of all of them, if it is known."""
        segment = "b.segment, b.start, b.length" if self._dialect.has_shards else "NULL, NULL, NULL"
        rows = self._of_pages(f"p.url_id, b.data, b.dictionary_id, b.text, {segment}", ids, site)
        bodies: dict[int, bytes] = {}
        for page, data, dictionary_id, text, *place in rows:
            if place[0] is not None:
                bodies[page] = self.body_in_segment(*place)
            elif data:
                bodies[page] = self.restore(data, dictionary_id, text)
        return bodies

    def pages_with_body(self, ids: Sequence[int]) -> set[int]:
        """Those of the pages whose bytes are stored."""
        return {page for page, body in self._of_pages("p.url_id, p.body_id", ids) if body is not None}

    def stored_pages(self) -> Iterator[PageBody]:
        """Current pages with stored bytes, sorted by URL; streamed."""
        order = f"u.reason IN {any_of(FETCHED_REASONS)} ORDER BY u.text{self._dialect.text_order}"
        rows = self.stream(
            f"SELECT u.id, u.text, p.media_type, p.charset FROM page p JOIN url u ON u.id = p.url_id WHERE {order}"
        )
        while lot := list(islice(rows, TEXTS_AT_ONCE)):
            bodies = self.bodies([row[0] for row in lot])
            yield from (PageBody._make((*row, bodies[row[0]])) for row in lot if bodies.get(row[0]))

    def original_body(self, url_id: UrlId) -> bytes | None:
        """Original bytes of a rendered page; None if it is not rendered or they are not stored."""
        packed = self._cell("g.sent", url_id)
        return packed and (unpack_original(packed) or None)

    def screenshot(self, url_id: UrlId) -> bytes | None:
        """Screenshot of a rendered page, as WebP, or None."""
        picture: bytes | None = self._cell("g.screenshot", url_id)
        return picture

    def text(self, url_id: UrlId) -> str | None:
        """The page's text; None if there is none or it is not stored."""
        packed = self._cell("b.text", url_id)
        return None if packed is None else self._decode(packed)

    def title_and_text(self, url_id: UrlId) -> tuple[str, str]:
        """(title, text) of a page, which may be given by an alias; empty if there is none or it is not stored."""
        alias = f"a.page_id FROM alias a WHERE {self._dialect.anywhere('a')}a.url_id = ? AND a.moved <> ''"
        row = self._of_page("p.title, b.text", self._value_of(alias, url_id) or url_id)
        return (row[0], "" if row[1] is None else self._decode(row[1])) if row else ("", "")

    def _decode(self, packed_text: bytes) -> str:
        with translate_errors():
            return self.codec.unpack(packed_text, None).decode()

    def blocks(self, url_id: UrlId) -> Blocks:
        """The page's blocks.

        If only the text is stored, each line is a block; no blocks if there is no text.
        """
        row = self._of_page("b.text, b.blocks", url_id)
        return self.blocks_of(*row) if row else NO_BLOCKS

    def blocks_of(self, packed_text: bytes | None, packed_blocks: bytes | None) -> Blocks:
        """Blocks from the columns `text` and `blocks` of a body."""
        return blocks_of("" if packed_text is None else self._decode(packed_text), packed_blocks)

    def parts(self, url_id: UrlId) -> tuple[Part, ...] | None:
        """Part of each of the page's blocks; None if they are not classified yet."""
        packed = self._cell("p.parts", url_id)
        return None if packed is None else unpack_parts(packed)

    def xml(self, url_id: UrlId) -> tuple[bytes, str] | None:
        """(canonical XML, media type) of the page, or None."""
        row = self._of_page("x.data, x.media_type", url_id)
        return (self.codec.unpack(row[0], None), row[1]) if row and row[0] is not None else None

    def restore(self, data: bytes, dictionary_id: int | None, text: bytes | None) -> bytes:
        """Decompresses a body from the columns `data`, `dictionary_id` and `text`."""
        if dictionary_id is not None:
            self.learn(dictionary_id)
        return self.codec.unpack_body(data, dictionary_id, text)

    def learn(self, dictionary_id: int) -> None:
        """Loads a stored dictionary into the codec."""
        if not self.codec.knows(dictionary_id):
            find = f"d.data FROM dictionary d WHERE {self._dialect.anywhere('d')}d.id = ?"
            self.codec.add(dictionary_id, self._value_of(find, dictionary_id) or b"")


def matches(text: str, pattern: str) -> bool:
    """Whether text contains pattern or matches it as a regular expression. `page?id=1` is found literally."""
    if pattern in text:
        return True
    try:
        return user_pattern(pattern, "url").is_in(text)
    except UsageError:
        return False
