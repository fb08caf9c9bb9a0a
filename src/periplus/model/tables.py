"""The catalogue of tables: columns, types, descriptions, and the SQL that a database computes them with.

SQL views, lists, screens, exports and their documentation are all built from it. To add a column, add it here.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from periplus.errors import UsageError
from periplus.model.visit import FETCHED_REASONS, REASONS_OF, Reason, State
from periplus.values import frozen

EMPTY = "-"  # in a filter: the column has no value
SEGMENT_OTHER = "other"  # segment of pages that match no rule
_SURROGATES = re.compile("[\ud800-\udfff]")
_URL = "url u LEFT JOIN host h ON h.id = u.host_id LEFT JOIN site s ON s.id = h.site_id"
_IF_RENDERED = "; empty if the page was not rendered or waited for its host"
_ALIASES = "(SELECT url_id FROM alias)"  # an alias has the same links as its page
# PostgreSQL workers count in rows of their own, so that they do not all wait for the lock on the run's row
_WORKERS_COUNT = (
    "run.{0} + (SELECT coalesce(sum(c.value), 0)::bigint FROM run_count c WHERE c.run_id = run.id AND c.name = '{0}')"
)


class ColumnKind(StrEnum):
    """Type of a column's values."""

    TEXT = "text"
    INTEGER = "integer"  # 64 bits
    REAL = "real"
    BOOLEAN = "boolean"  # 0 or 1 in SQL
    TIME = "time"  # text, ISO 8601, UTC, to the second: 2026-06-01T12:00:00Z
    BYTES = "bytes"  # only in results of analysis engines


@frozen
class Column:
    """One column of a table. A missing value (SQL NULL, empty cell) means unknown or not applicable.

    sql: SQL expression over the table's `source`; a TIME is in seconds since the epoch, 0 or NULL if unknown; empty if
    an analysis computes the value. postgres: the expression for PostgreSQL, if it differs.
    """

    name: str
    kind: ColumnKind
    sentence: str  # description shown to users, with the unit
    sql: str = ""
    postgres: str = ""
    unit: str = ""  # `bytes` or `s`, for numbers that are shown with their unit
    searched: bool = False  # full-text filter in the interface
    facet: bool = False  # the interface shows its values with counts
    wide: bool = False  # may hold long text
    url_id: str = ""  # for a URL: expression of its id, so that a lookup need not scan the texts
    of_target: str = ""  # for a property of a link's target: condition on `url`, evaluated once and not for each link

    @property
    def wraps(self) -> bool:
        """Whether its text is wrapped when shown."""
        return self.wide or self.searched


def _null_if_empty(expression: str) -> str:
    """SQL expression: the text, or NULL if it is empty."""
    return f"nullif({expression}, '')"


def columns_of(text: str) -> tuple[Column, ...]:
    """Parses columns, one per line: `name kind [searched] [facet] [wide] [unit=UNIT] [url_id=EXPRESSION]: description
    [| sql]`. The flag `filled` turns empty text into NULL.
    """
    columns = []
    for line in text.strip().splitlines():
        head, _, rest = line.partition(": ")
        sentence, _, sql = " ".join(rest.split()).partition(" | ")
        name, kind, *words = head.split()
        flags: dict[str, Any] = {flag: value or True for flag, _, value in (word.partition("=") for word in words)}
        expression = _null_if_empty(sql) if flags.pop("filled", False) else sql
        columns.append(Column(name, ColumnKind(kind), sentence, expression, **flags))
    return tuple(columns)


@frozen
class Table:
    """One table.

    source: the FROM clause; every join is a LEFT JOIN to at most one row, so that the database can drop joins of
    unused columns; empty if an analysis computes the rows. where, group: the WHERE and GROUP BY clauses. key: an
    expression that identifies a row, or empty. order: default sort columns; a leading `-` means descending.
    """

    name: str
    sentence: str
    columns: tuple[Column, ...]
    source: str = ""
    where: str = ""
    group: str = ""
    key: str = ""
    order: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Returns the named column. Raises UsageError if it does not exist."""
        return self.select((name,))[0]

    def select(self, names: Sequence[str]) -> tuple[Column, ...]:
        """Returns the named columns in the order given, or all columns if `names` is empty.

        Raises UsageError for an unknown column.
        """
        by_name = {column.name: column for column in self.columns}
        if unknown := [name for name in names if name not in by_name]:
            raise UsageError(f"{self.name}: there is no column {', '.join(unknown)}: choose among {', '.join(by_name)}")
        return tuple(by_name[name] for name in names) or self.columns

    def with_columns(self, columns: Iterable[Column]) -> Table:
        """The table with further columns."""
        return replace(self, columns=(*self.columns, *columns))


def without_surrogates(text: str) -> str:
    """Replaces lone surrogates, which cannot be encoded as UTF-8."""
    return text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


class Row(tuple[Any, ...]):
    """A row of a table: a named tuple. The column `x:price` becomes the attribute `x_price`."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


@cache
def row_maker(columns: tuple[str, ...]) -> Callable[[Iterable[object]], Row]:
    """Returns a function that turns values into a row with these columns."""
    row_class: Callable[..., Any] = namedtuple  # hides the dynamic names from the type checker
    make: Callable[[Iterable[object]], Row] = row_class("Row", [name.replace(":", "_") for name in columns])._make
    return make


TEXT, INTEGER, REAL, BOOLEAN, TIME, BYTES = ColumnKind


def any_of(words: Iterable[str]) -> str:
    """Sorted SQL list of words. Only for constants of ours: nothing is escaped."""
    return "({})".format(", ".join(f"'{word}'" for word in sorted(words)))


def _state(reason: str) -> str:
    """SQL expression: the state that a reason belongs to."""
    cases = (f"WHEN {reason} IN {any_of(REASONS_OF[state])} THEN '{state.value}'" for state in State)
    return f"CASE {' '.join(cases)} END"


def _digest(of: str, sentence: str) -> Column:
    sql, postgres = f"lower(hex(p.{of}_digest))", f"encode(p.{of}_digest, 'hex')"
    return Column(f"{of}_digest", ColumnKind.TEXT, sentence, _null_if_empty(sql), _null_if_empty(postgres))


def _with_source(name: str, sentence: str, others: str) -> tuple[Column, Column]:
    """What a page says of its making, and where; others: places beside those for machines."""
    sources = f"source in the page: json-ld, meta, microdata (RDFa too), {others}"
    return (
        Column(name, TEXT, sentence, _null_if_empty(f"p.{name}"), searched=name == "author"),
        Column(f"{name}_source", TEXT, sources, _null_if_empty(f"p.{name}_source")),
    )


HAS_PAGE = f"u.reason IN {any_of(FETCHED_REASONS)}"
"""Condition: the stored page is the URL's current content."""
_READ = f"page p ON p.url_id = u.id AND {HAS_PAGE}"

URLS = Table(
    "urls",
    "Every known URL, fetched or not.",
    (
        *columns_of("""
        id integer: 64-bit hash of the URL; the same in every collection | u.id
        url text searched url_id=u.id: the URL in canonical form | u.text
        host text wide: host name and port | h.key
        site text: the site that the host belongs to | s.key
    """),
        Column("state", TEXT, "fetched, discovered, excluded or failed", _state("u.reason"), facet=True),
        *columns_of("""
        reason text facet: why the URL is in this state | u.reason
        rule text filled wide: the rule, limit, failure or target behind the reason | u.rule
        status integer facet: HTTP status of the last answer | nullif(u.status, 0)
        depth integer facet: clicks from the start; empty if no link leads there | u.depth
        in_sitemap boolean: whether a sitemap names it | u.in_sitemap
        first_seen time: when it was first seen | u.first_seen
        visited time: when it was last asked for | u.visited
    """),
    ),
    _URL,
    key="u.id",
    order=("depth", "url"),
)
PAGES = Table(
    "pages",
    "Every requested URL and the result: fetched pages, failed URLs, redirects, further addresses of a page. "
    "`periplus status` also counts the known URLs that were never requested; table `urls` has all of them.",
    (
        *URLS.columns,
        *columns_of("""
        media_type text filled facet: media type without parameters | p.media_type
        charset text filled: encoding that the page was read with | p.charset
        charset_source text filled: on whose word: bom, header, meta, xml, statistics, default; browser: it was \
            rendered | p.charset_source
        rendered boolean: whether a browser made it of its scripts | p.charset_source = 'browser'
        language text facet: language (BCP 47) of its words, else as declared | \
            coalesce(nullif(p.language_found, ''), nullif(p.language, ''))
        declared_language text filled: language as declared (BCP 47) | p.language
        size integer unit=bytes: bytes, after decompression | p.size
        wire_bytes integer unit=bytes: bytes of the body as transferred | p.wire_bytes
        cut text filled: why it is truncated; empty if complete | p.cut
        title text filled searched: the title | p.title
        description text filled wide: the meta description | p.description
        h1 text filled wide: the first main heading | p.h1
        canonical text filled wide: the canonical URL that the page declares | p.canonical
        robots text filled: noindex, nofollow, or both: from meta robots and X-Robots-Tag | p.robots
    """),
        *_with_source("author", "author; `; ` between names", "rel, class, text"),
        *_with_source("date_published", "when it was published: a day or a time (ISO 8601)", "time, class, url, text"),
        *_with_source("date_modified", "when it was last changed, by the page", "time, class, text"),
        Column("types", TEXT, "what it describes, by JSON-LD and Microdata", _null_if_empty("p.types"), facet=True),
        Column("text_chars", INTEGER, "characters of text", "p.text_chars"),
        _digest("body", "128-bit xxh3 of the bytes, hexadecimal"),
        _digest("text", "128-bit xxh3 of the text with white space normalised; equal for duplicates"),
        _digest("folded", "128-bit xxh3 of the text without diacritics and case"),
        Column("response_s", REAL, "seconds from the request to the last byte", "p.took_s", unit="s"),
        Column("paint_s", REAL, f"seconds to the largest contentful paint (LCP){_IF_RENDERED}", "g.paint_s", unit="s"),
        Column("shift", REAL, f"cumulative layout shift (CLS){_IF_RENDERED}", "g.shift"),
        *columns_of("""
        fetched_at time: when this page was fetched | p.fetched
        last_modified time: by the server or the page | p.last_modified
        etag text filled: the ETag as sent | p.etag
    """),
    ),
    f"{_URL} LEFT JOIN {_READ} LEFT JOIN rendering g ON g.url_id = p.url_id",
    where="u.visited IS NOT NULL",
    key="u.id",
    order=("depth", "url"),
)
ALL_URLS = replace(PAGES, sentence="Every known URL with all of its properties.", where="")
"""The table behind `periplus pages` and the list of pages in the interface."""
PAGE = replace(
    ALL_URLS,
    name="page",
    sentence="Everything known about one URL; if it is gone, with its last content.",
    columns=(
        *ALL_URLS.columns,
        *columns_of("""
        other_charset text filled: declared encoding that was not used | p.other_charset
    """),
        Column(
            "has_bytes",
            BOOLEAN,
            "whether its bytes are stored",
            "coalesce(length(b.data) > 0, 0)",
            "coalesce(length(b.data) > 0 OR b.segment IS NOT NULL, false)",
        ),
        *columns_of("""
        has_text boolean: whether its text is stored | b.text IS NOT NULL
        has_xml boolean: whether its canonical XML is stored | x.body_id IS NOT NULL
        has_screenshot boolean: whether a screenshot is stored | g.screenshot IS NOT NULL
    """),
    ),
    source=f"{_URL} LEFT JOIN page p ON p.url_id = u.id LEFT JOIN body b ON b.id = p.body_id"
    " LEFT JOIN xml x ON x.body_id = p.body_id LEFT JOIN rendering g ON g.url_id = u.id",
)
RANKED_PAGES = replace(
    PAGES,
    sentence="Every requested URL and the result, with its links, rank and score.",
    columns=(
        *PAGES.columns,
        *columns_of("""
        final_url text wide: where the redirects from this URL end; the URL itself if it does not redirect; empty \
            for a loop
        inlinks integer: pages of the site that link to it, each counted once, redirects followed
        outlinks integer: pages of the site that it links to, each counted once, redirects followed
        rank real: PageRank: share of a random surfer's time, summing to 1 over the pages of the site; empty for \
            URLs outside the start's site
        score integer: PageRank on a logarithmic scale from 0 to 100
    """),
    ),
)
"""PAGES with the values that are computed for each page of a start's site."""
LINKS = Table(
    "links",
    "Links. Repeated links of a page (same target, kind, position and nofollow) are one row. Other addresses of a page"
    " have no rows.",
    (
        *columns_of("""
        source text searched url_id=l.source: the page with the link | a.text
        target text searched url_id=l.target: the URL that it leads to | b.text
        anchor text searched: text of the first of these links that has text; for images the alt text | l.anchor
        kind text facet: a, image, canonical, redirect, ... | l.kind
        position text facet: nav, header, main, aside, footer, body or head | l.position
        nofollow boolean: whether it is marked nofollow | l.nofollow
        internal boolean facet: whether source and target are on the same site | g.site_id = h.site_id
        source_site text: the site of the page | s.key
    """),
        Column(
            "target_site",
            TEXT,
            "the site of the target",
            "t.key",
            of_target="host_id IN (SELECT h.id FROM host h JOIN site s ON s.id = h.site_id WHERE s.key = ?)",
        ),
        Column(
            "target_state",
            TEXT,
            "fetched, discovered, excluded or failed",
            _state("b.reason"),
            facet=True,
            of_target="reason IN (SELECT name FROM reason WHERE state = ?)",
        ),
        Column("target_reason", TEXT, "reason of the target's state", "b.reason", facet=True, of_target="reason = ?"),
        Column(
            "target_status",
            INTEGER,
            "HTTP status of the target's last answer",
            "nullif(b.status, 0)",
            of_target="status = ?",
        ),
        *columns_of("""
        fragments text filled: fragments (after #), separated by blanks | l.fragments
        times integer: how many such links the page has | l.times
        first_seen time: when the page first had it | l.first_seen
        last_seen time: when the page last had it | CASE WHEN f.checked > l.last_seen THEN f.checked ELSE \
            l.last_seen END
    """),
    ),
    "link l LEFT JOIN url a ON a.id = l.source LEFT JOIN url b ON b.id = l.target"
    " LEFT JOIN host g ON g.id = a.host_id LEFT JOIN host h ON h.id = b.host_id"
    " LEFT JOIN site s ON s.id = g.site_id LEFT JOIN site t ON t.id = h.site_id"
    " LEFT JOIN freshness f ON f.url_id = l.source AND f.gone_since IS NULL",
    where=f"l.source NOT IN {_ALIASES}",
)
BAD_LINKS = Table(
    "bad",
    "Links that cannot be fetched: mailto:, javascript:, malformed URLs.",
    columns_of("""
        source text searched: the page with the link | a.text
        text text searched: the URL as written | b.text
        why text facet: its scheme, or malformed | b.why
        anchor text searched: link text | b.anchor
        kind text: a, image, ... | b.kind
        position text facet: the part of the page | b.position
    """),
    "bad_link b LEFT JOIN url a ON a.id = b.source",
    where=f"b.source NOT IN {_ALIASES}",
    key="b.rowid",
)
REDIRECTS = Table(
    "redirects",
    "URLs that redirect, one row per hop.",
    columns_of("""
        url text searched: the URL that redirects | u.text
        target text searched: the URL that it redirects to | u.rule
        status integer facet: 301, 302, 303, 307 or 308 | u.status
        permanent boolean facet: whether it is permanent: links should be changed | u.status IN (301, 308)
        visited time: when it was last requested | u.visited
    """),
    "url u",
    where="u.reason = 'redirect'",
)
CHAINS = Table(
    "redirects",
    "Chains of redirects, one row per hop.",
    columns_of("""
        chain_id integer: id of the first URL of the chain; the same in every run
        order integer: place in the chain, from 0
        url text wide: the URL
        status integer: its HTTP status; 0: not asked
        role text: requested, intermediate, final, or loop: it is in the chain already
    """),
)
VISITS = Table(
    "visits",
    "Every attempt to fetch a URL, including robots.txt and sitemaps, and URLs skipped without a request.",
    columns_of("""
        id integer: ascending number | v.id
        run_id integer: the run | v.run_id
        url text searched: the URL | coalesce(v.text, u.text)
        purpose text facet: page, robots, sitemap, ... | v.purpose
        started time: when it was requested | v.started
        response_s real unit=s: seconds from the request to the last byte | v.took_s
        outcome text facet: fetched, redirected, unchanged, failed, or skipped (not requested) | v.outcome
        status integer facet: HTTP status | nullif(v.status, 0)
        detail text filled searched: redirect target, failure, or why it was truncated or skipped | v.detail
        wire_bytes integer unit=bytes: bytes of the body as transferred | v.wire_bytes
        address text filled: IP address that answered | v.address
    """),
    "visit v LEFT JOIN url u ON u.id = v.url_id",
    order=("-id",),
)
HOSTS = Table(
    "hosts",
    "Every known host.",
    columns_of("""
        id integer: ascending number | h.id
        host text searched: host name and port | h.key
        site text facet: its site | s.key
        fetched integer: pages requested, in all runs | h.fetched
        waiting integer: URLs in its queue | h.pending
        delay_s real unit=s: seconds between the starts of two requests | h.delay_s
        strikes integer: consecutive suspensions | h.strikes
        waits_for text filled facet wide: why it cannot be requested yet | h.waits_for
    """),
    "host h LEFT JOIN site s ON s.id = h.site_id",
    order=("-fetched", "host"),
)
SITES = Table(
    "sites",
    "Every known site, with sums over its URLs.",
    (
        Column("id", INTEGER, "ascending number", "s.id"),
        Column("name", TEXT, "host name without www.", "s.key", searched=True),
        Column(
            "home_page",
            TEXT,
            "its start URL; empty for a site found through links",
            "min(u.text) FILTER (WHERE b.url_id IS NOT NULL)",
            'min(u.text COLLATE "C") FILTER (WHERE b.url_id IS NOT NULL)',
            wide=True,
        ),
        Column("hosts", INTEGER, "hosts that belong to it", "count(DISTINCT h.id)"),
        Column(
            "pages_total",
            INTEGER,
            "known pages",
            f"count(*) FILTER (WHERE u.reason NOT IN {any_of({*REASONS_OF[State.EXCLUDED], Reason.RESOURCE})})",
        ),
        Column("pages_fetched", INTEGER, "fetched pages", "count(p.url_id)"),
        Column(
            "pages_failed",
            INTEGER,
            "failed URLs",
            f"count(*) FILTER (WHERE u.reason IN {any_of(REASONS_OF[State.FAILED])})",
        ),
        *columns_of("""
        size integer unit=bytes: bytes of its pages | CAST(coalesce(sum(p.size), 0) AS bigint)
        first_seen time: when it was first seen | min(u.first_seen)
        visited time: when it was last asked | max(u.visited)
    """),
    ),
    "site s JOIN host h ON h.site_id = s.id JOIN url u ON u.host_id = h.id LEFT JOIN start b ON b.url_id = u.id"
    f" LEFT JOIN {_READ}",
    group="s.id, s.key",
    order=("-pages_fetched", "name"),
)
RUNS = Table(
    "runs",
    "Every run of the collection.",
    (
        *columns_of("""
        id integer: ascending number | id
        kind text facet: crawl, import, ... | kind
        state text facet: running, done, stopped, suspicious or failed | state
        note text filled searched: why it ended in this state | note
        started time: when it started | started
        ended time: when it ended | ended
    """),
        Column("fetched", INTEGER, "pages requested", "fetched", _WORKERS_COUNT.format("fetched")),
        Column(
            "wire_bytes", INTEGER, "bytes of bodies", "wire_bytes", _WORKERS_COUNT.format("wire_bytes"), unit="bytes"
        ),
        Column(
            "http2",
            INTEGER,
            "of the fetched, answers over HTTP/2",
            "(SELECT CAST(coalesce(sum(c.value), 0) AS bigint) FROM run_count c"
            " WHERE c.run_id = run.id AND c.name = 'http2')",
        ),
        Column("start_urls", TEXT, "JSON list", "starts", searched=True),
        Column("settings", TEXT, "JSON object of all settings, without passwords", "settings", wide=True),
    ),
    "run",
    order=("-id",),
)
RENDERINGS = Table(
    "renderings",
    "Pages rendered in a browser, and the cost of rendering.",
    columns_of("""
        url text searched url_id=u.id: the page | u.text
        took_s real unit=s: seconds until it was read, waits for its parts included | g.took_s
        requests integer: of its scripts and styles, and of its scripts | g.requests
        refused integer: of them not answered | g.refused
        part_bytes text: their bytes, by kind, as JSON | g.part_bytes
        bounds text filled facet: bounds that it reached | g.bounds
        paint_s real: seconds to its largest part (LCP); none where it waited for a host | g.paint_s
        shift real: how much of it moved (CLS); likewise | g.shift
        sent_size integer unit=bytes: bytes as the server sent them | g.sent_size
    """),
    "rendering g JOIN url u ON u.id = g.url_id",
)
VIEWS = {table.name: table for table in (URLS, PAGES, LINKS, REDIRECTS, VISITS, HOSTS, SITES, RUNS, RENDERINGS)}
"""Tables that any user may query with SQL, by name."""

# Tables that analyses compute.

_SEVERITY = Column("severity", TEXT, "error, warning or notice", facet=True)
_MESSAGE = Column("message", TEXT, "the kind of issue in a few words", wide=True)
_CATEGORY = Column("category", TEXT, "links, redirects, titles, indexing, ...", facet=True)
_CODE = Column("code", TEXT, "stable code of the kind of issue", facet=True)
ISSUES = Table(
    "issues",
    "Issues of each page, from all crawls and checks.",
    (
        Column("url", TEXT, "the page to fix", searched=True),
        _SEVERITY,
        _CATEGORY,
        _CODE,
        _MESSAGE,
        *columns_of("""
        detail text searched: this issue in words
        related_url text wide: the other URL that it is about: a link's target, the page with the same title
        anchor text wide: of a link: its words
        position text facet: of a link: its part of the page
        cause text searched: what is to be mended once for all issues of one code with the same cause: a URL or \
            words
        line integer: of its tag in the page's decoded source, from 1; empty: not in it
        column integer: in characters, from 1; a tab is one
    """),
    ),
)
STRUCTURED_DATA = Table(
    "structured",
    "Structured data of each page: JSON-LD, Microdata, RDFa, Open Graph, Twitter cards, hreflang; one row per value.",
    columns_of("""
        url text searched: the page
        syntax text facet: json-ld, microdata, rdfa, opengraph, twitter or hreflang
        item integer: number of the outermost item on the page, from 1
        type text facet: type of the item with the value; without the prefix for schema.org
        path text searched: property path from the outermost item: offers.price, itemListElement[2].name; the \
            language for hreflang
        value text searched: as written, white space normalised; an absolute URL for hreflang
    """),
)
EXPORTS = VIEWS | {table.name: table for table in (RANKED_PAGES, CHAINS, ISSUES, STRUCTURED_DATA)}
"""Tables that `periplus export` writes, by name."""
CHUNKS = Table(
    "chunks",
    "Pages split into chunks; no chunk spans two sections.",
    columns_of("""
        chunk text: id of the chunk: the page's id and the chunk's number
        url text: the page
        title text: its title
        headings text: headings above the chunk, outermost first, separated by >
        number integer: number of the chunk within the page, from 1
        first_piece integer: number of its first block (paragraph, list, table, ...) within the page, from 0
        last_piece integer: number of its last block
        words integer: number of words
        text text: Markdown
        language text: language of the page
        last_modified time: as declared by the server
        fetched_at time: when the page was fetched
    """),
)
"""The table that `periplus export chunks` writes."""
FAULTS = Table(
    "faults",
    "Issues grouped by cause, from all crawls and checks. The number of pages links to the pages.",
    (
        _SEVERITY,
        _MESSAGE,
        *columns_of("""
        cause text searched: what to fix: a URL or text
        detail text searched: description, if all of its issues share it
        pages integer: number of affected pages
        issues integer: number of issues; a page may have several
        url text searched: the first of these pages
    """),
        _CATEGORY,
        _CODE,
        *columns_of("""
        since time: start of the first check that found it; empty if no check did
        decision text facet: accepted or ignored by a user and no longer counted; empty: open
        assignee text facet: person who fixes it
        note text searched: note of a user
    """),
    ),
)
