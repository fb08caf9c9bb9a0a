"""The catalogue of tables: what each holds, column by column, and where a database has it.

SQL views, lists, screens, exports, their files and their documents are made of these values: a column is added here and
nowhere else.
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
from periplus.model.visit import FETCHED, REASONS_OF, Reason, State
from periplus.values import frozen


class ColumnKind(StrEnum):
    """What stands in a column."""

    TEXT = "text"
    INTEGER = "integer"  # 64 bits
    REAL = "real"
    BOOLEAN = "boolean"  # in SQL 0 or 1
    TIME = "time"  # text, ISO 8601, UTC, to the second: 2026-06-01T12:00:00Z
    BYTES = "bytes"  # in results of engines only


@frozen
class Column:
    """One column of a table. Without a value (SQL's NULL, an empty cell): not known, or not applicable.

    sql: the expression that a database computes it with, over the table's `source`; of a TIME seconds since the epoch,
    0 or NULL where there is none; empty: its value is computed by an analysis. postgres: the same where PostgreSQL
    needs another.
    """

    name: str
    kind: ColumnKind
    sentence: str  # what it says, with its unit
    sql: str = ""
    postgres: str = ""
    unit: str = ""  # `bytes` or `s`; of numbers that people read better with it
    searched: bool = False  # the interface looks for text in it
    facet: bool = False  # the interface counts its values
    wide: bool = False  # its texts may be long
    url_id: str = ""  # of a URL: the expression of its id, by which it is found without looking at every text
    of_target: str = ""  # of what is said of a link's target: the condition on `url`, which is asked once, not per link

    @property
    def wraps(self) -> bool:
        """Whether its texts are broken into lines: those that may be long, and those that are searched."""
        return self.wide or self.searched


def _filled(expression: str) -> str:
    """A text, none where it is empty."""
    return f"nullif({expression}, '')"


def columns_of(text: str) -> tuple[Column, ...]:
    """Columns, one a line: `name kind [searched] [facet] [wide] [unit=UNIT] [url_id=EXPRESSION]: sentence [| sql]`.

    filled: an empty text is NULL.
    """
    columns = []
    for line in text.strip().splitlines():
        head, _, rest = line.partition(": ")
        sentence, _, sql = " ".join(rest.split()).partition(" | ")
        name, kind, *words = head.split()
        flags: dict[str, Any] = {flag: value or True for flag, _, value in (word.partition("=") for word in words)}
        expression = _filled(sql) if flags.pop("filled", False) else sql
        columns.append(Column(name, ColumnKind(kind), sentence, expression, **flags))
    return tuple(columns)


@frozen
class Table:
    """One table.

    source: what stands after FROM, every join a LEFT JOIN to one row at most, so that a database leaves out those that
    no column asks for; empty: its rows are computed by an analysis. where: which rows of the source there are; group:
    what stands after GROUP BY. key: an expression that names a row, empty where none does; order: of the rows where
    none is asked for, a leading - turns a column round.
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
        """Of its columns."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Raises UsageError for a column that there is not."""
        return self.select((name,))[0]

    def select(self, names: Sequence[str]) -> tuple[Column, ...]:
        """The columns of these names, in their order; all columns where none is named.

        Raises UsageError for a column that there is not.
        """
        by_name = {column.name: column for column in self.columns}
        if unknown := [name for name in names if name not in by_name]:
            raise UsageError(f"{self.name} have no column {', '.join(unknown)}: choose among {', '.join(by_name)}")
        return tuple(by_name[name] for name in names) or self.columns


EMPTY = "-"  # in a condition on a column: it says nothing
SEGMENT_OTHER = "other"  # the segment of what no rule fits
_SURROGATES = re.compile("[\ud800-\udfff]")


def sound(text: str) -> str:
    """Without halves of characters, which no UTF-8 file can hold."""
    return text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


class Row(tuple[Any, ...]):
    """A row of a table: a named tuple of its values, each an attribute of its column's name; of `x:price` x_price."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


@cache
def row_maker(columns: tuple[str, ...]) -> Callable[[Iterable[object]], Row]:
    """Makes rows of values in the columns of these names."""
    row_class: Callable[..., Any] = namedtuple  # the names are not known to type checkers
    make: Callable[[Iterable[object]], Row] = row_class("Row", [name.replace(":", "_") for name in columns])._make
    return make


TEXT, INTEGER, REAL, BOOLEAN, TIME, BYTES = ColumnKind


def any_of(words: Iterable[str]) -> str:
    """Words as an SQL list, in their order; our own words, so nothing needs escaping."""
    return "({})".format(", ".join(f"'{word}'" for word in sorted(words)))


def _state(reason: str) -> str:
    """The state that follows from a reason."""
    cases = (f"WHEN {reason} IN {any_of(REASONS_OF[state])} THEN '{state.value}'" for state in State)
    return f"CASE {' '.join(cases)} END"


def _digest(of: str, sentence: str) -> Column:
    sql, postgres = f"lower(hex(p.{of}_md5))", f"encode(p.{of}_md5, 'hex')"
    return Column(f"{of}_digest", ColumnKind.TEXT, sentence, _filled(sql), _filled(postgres))


def _with_source(name: str, sentence: str, others: str) -> tuple[Column, Column]:
    """What a page says of its making, and where; others: places beside those for machines."""
    sources = f"source in the page: json-ld, meta, microdata (RDFa too), {others}"
    return (
        Column(name, TEXT, sentence, _filled(f"p.{name}"), searched=name == "author"),
        Column(f"{name}_source", TEXT, sources, _filled(f"p.{name}_source")),
    )


_URL = "url u LEFT JOIN host h ON h.id = u.host_id LEFT JOIN site s ON s.id = h.site_id"
HAS_PAGE = f"u.reason IN {any_of(FETCHED)}"
"""That the page that was read last is what a URL answers with now."""
_READ = f"page p ON p.url_id = u.id AND {HAS_PAGE}"

URLS = Table(
    "urls",
    "Every URL that was ever seen, fetched or not.",
    (
        *columns_of("""
        id integer: 64-bit hash of the URL; the same in every collection | u.id
        url text searched url_id=u.id: the URL in canonical form | u.text
        host text wide: host name and port | h.key
        site text: the site that the host belongs to | s.key
    """),
        Column("state", TEXT, "fetched, discovered, excluded or failed", _state("u.reason"), facet=True),
        *columns_of("""
        reason text facet: why it is in its state | u.reason
        rule text filled wide: the rule, limit, failure or target behind the reason | u.rule
        status integer facet: HTTP status of the last answer | nullif(u.status, 0)
        depth integer facet: clicks from the start; none where no link leads | u.depth
        in_sitemap boolean: whether a sitemap names it | u.in_sitemap
        first_seen time: when it was first seen | u.first_seen
        visited time: when it was last asked for | u.visited
    """),
    ),
    _URL,
    key="u.id",
    order=("depth", "url"),
)
_MEASURED = "; none where it was not rendered, or waited for its host"
PAGES = Table(
    "pages",
    "Every URL that was asked for, with what came of it.",
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
        wire_bytes integer unit=bytes: bytes of the body as they travelled | p.wire_bytes
        cut text filled: why it was not read to its end; none for a whole page | p.cut
        title text filled searched: the title | p.title
        description text filled wide: the meta description | p.description
        h1 text filled wide: the first main heading | p.h1
        canonical text filled wide: the canonical URL that the page names | p.canonical
        robots text filled: noindex, nofollow, or both: from meta robots and X-Robots-Tag | p.robots
    """),
        *_with_source("author", "author; `; ` between names", "rel, class, text"),
        *_with_source("date_published", "when it was published: a day or a time (ISO 8601)", "time, class, url, text"),
        *_with_source("date_modified", "when it was last changed, by the page", "time, class, text"),
        Column("types", TEXT, "what it describes, by JSON-LD and Microdata", _filled("p.types"), facet=True),
        Column("text_chars", INTEGER, "characters of text", "p.text_chars"),
        _digest("body", "128-bit xxh3 of the bytes, hexadecimal"),
        _digest("text", "MD5 of the text, white space folded; equal for duplicates"),
        _digest("folded", "MD5 of the text without diacritics and case"),
        Column("response_s", REAL, "seconds from the request to the last byte", "p.took_s", unit="s"),
        Column("paint_s", REAL, f"seconds to its largest part in a browser (LCP){_MEASURED}", "g.paint_s", unit="s"),
        Column("shift", REAL, f"how much it moved in a browser (CLS){_MEASURED}", "g.shift"),
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
SEEN = replace(PAGES, sentence="Every URL that was ever seen, with what is known of it.", where="")
"""What `periplus pages` and the interface list as pages."""
PAGE = replace(
    SEEN,
    name="page",
    sentence="What is known of one URL; of one that is gone, with what was read of it last.",
    columns=(
        *SEEN.columns,
        *columns_of("""
        other_charset text filled: encoding that was declared and not taken | p.other_charset
        has_bytes boolean: whether its bytes were kept | coalesce(length(b.data) > 0, 0)
        has_text boolean: whether its text was kept | b.text IS NOT NULL
        has_xml boolean: whether it was kept as canonical XML | x.body_id IS NOT NULL
        has_screenshot boolean: whether there is a picture of it | g.screenshot IS NOT NULL
    """),
    ),
    source=f"{_URL} LEFT JOIN page p ON p.url_id = u.id LEFT JOIN body b ON b.id = p.body_id"
    " LEFT JOIN xml x ON x.body_id = p.body_id LEFT JOIN rendering g ON g.url_id = u.id",
)
RANKED_PAGES = replace(
    PAGES,
    sentence="Every URL that was asked for, with what came of it, its links, rank and score.",
    columns=(
        *PAGES.columns,
        *columns_of("""
        final_url text wide: where the redirects end that begin here; the URL itself where there are none; none for \
            a loop
        inlinks integer: pages of the site that link to it, each counted once, redirects followed
        outlinks integer: pages of the site that it links to, each counted once, redirects followed
        rank real: share of a random surfer's time, summing to 1 over the site's pages (PageRank); none for what is \
            no page of a start's site
        score integer: the same on a logarithmic scale from 0 to 100
    """),
    ),
)
"""With what is computed for each page of a start's site."""
_ALIASES = "(SELECT url_id FROM alias)"  # their links are those of their pages
LINKS = Table(
    "links",
    "Links. Repeated links of a page (same target, kind, position and nofollow) are one row. Other addresses of a page"
    " have no rows.",
    (
        *columns_of("""
        source text searched url_id=l.source: the page with the link | a.text
        target text searched url_id=l.target: where it leads | b.text
        anchor text searched: the words of the first of these links that has words; for images their alt | l.anchor
        kind text facet: a, image, canonical, redirect, ... | l.kind
        position text facet: nav, header, main, aside, footer, body or head | l.position
        nofollow boolean: whether it asks not to be followed | l.nofollow
        internal boolean facet: whether it stays on its site | g.site_id = h.site_id
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
        Column("target_reason", TEXT, "what became of the target", "b.reason", facet=True, of_target="reason = ?"),
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
    "What stands where a link belongs and is none: mailto:, javascript:, malformed.",
    columns_of("""
        source text searched: the page that it stands on | a.text
        text text searched: as it was written | b.text
        why text facet: its scheme, or malformed | b.why
        anchor text searched: its words | b.anchor
        kind text: a, image, ... | b.kind
        position text facet: the part of the page | b.position
    """),
    "bad_link b LEFT JOIN url a ON a.id = b.source",
    where=f"b.source NOT IN {_ALIASES}",
    key="b.rowid",
)
REDIRECTS = Table(
    "redirects",
    "URLs that redirect, one hop a row.",
    columns_of("""
        url text searched: the URL that redirects | u.text
        target text searched: where it leads | u.rule
        status integer facet: 301, 302, 303, 307 or 308 | u.status
        permanent boolean facet: whether links should be changed | u.status IN (301, 308)
        visited time: when it was last asked for | u.visited
    """),
    "url u",
    where="u.reason = 'redirect'",
)
CHAINS = Table(
    "redirects",
    "Chains of redirects, one row a hop.",
    columns_of("""
        chain_id integer: the id of the URL that begins the chain; the same in every run
        order integer: place in the chain, from 0
        url text wide: the URL
        status integer: its HTTP status; 0: not asked
        role text: requested, intermediate, final, or loop: it is in the chain already
    """),
)
VISITS = Table(
    "visits",
    "Every attempt to fetch a URL, robots.txt and sitemaps included; and what was left without asking.",
    columns_of("""
        id integer: counts up | v.id
        run_id integer: the run | v.run_id
        url text searched: the URL | coalesce(v.text, u.text)
        purpose text facet: page, robots, sitemap, ... | v.purpose
        started time: when it was asked for | v.started
        response_s real unit=s: seconds from the request to the last byte | v.took_s
        outcome text facet: fetched, redirected, unchanged, failed, or skipped (not asked for) | v.outcome
        status integer facet: HTTP status | nullif(v.status, 0)
        detail text filled searched: redirect target, failure, or why it was cut or skipped | v.detail
        wire_bytes integer unit=bytes: bytes of the body as they travelled | v.wire_bytes
        address text filled: IP address that answered | v.address
    """),
    "visit v LEFT JOIN url u ON u.id = v.url_id",
    order=("-id",),
)
HOSTS = Table(
    "hosts",
    "Every known host.",
    columns_of("""
        id integer: counts up | h.id
        host text searched: host name and port | h.key
        site text facet: its site | s.key
        fetched integer: pages asked for, in all runs | h.fetched
        waiting integer: entries of its to-do list | h.pending
        delay_s real unit=s: seconds between the starts of two requests | h.delay_s
        strikes integer: suspensions in a row | h.strikes
        waits_for text filled facet wide: why it may not be asked yet | h.waits_for
    """),
    "host h LEFT JOIN site s ON s.id = h.site_id",
    order=("-fetched", "host"),
)
SITES = Table(
    "sites",
    "Every known site, with sums over its URLs.",
    (
        Column("id", INTEGER, "counts up", "s.id"),
        Column("name", TEXT, "host name without www.", "s.key", searched=True),
        Column(
            "home_page",
            TEXT,
            "the start on it; none for a site that links led to",
            "min(u.text) FILTER (WHERE b.url_id IS NOT NULL)",
            'min(u.text COLLATE "C") FILTER (WHERE b.url_id IS NOT NULL)',
            wide=True,
        ),
        Column("hosts", INTEGER, "hosts that belong to it", "count(DISTINCT h.id)"),
        Column(
            "pages_total",
            INTEGER,
            "its pages known",
            f"count(*) FILTER (WHERE u.reason NOT IN {any_of({*REASONS_OF[State.EXCLUDED], Reason.RESOURCE})})",
        ),
        Column("pages_fetched", INTEGER, "of them fetched", "count(p.url_id)"),
        Column(
            "pages_failed",
            INTEGER,
            "of them failed",
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
# PostgreSQL adds what its workers count beside the run's row, which all of them would wait for
_WORKERS_COUNT = (
    "run.{0} + (SELECT coalesce(sum(c.value), 0)::bigint FROM run_count c WHERE c.run_id = run.id AND c.name = '{0}')"
)
RUNS = Table(
    "runs",
    "Every run of the collection.",
    (
        *columns_of("""
        id integer: counts up | id
        kind text facet: crawl, import, ... | kind
        state text facet: running, done, stopped, suspicious or failed | state
        note text filled searched: why it ended so | note
        started time: when it began | started
        ended time: when it ended | ended
    """),
        Column("fetched", INTEGER, "pages asked for", "fetched", _WORKERS_COUNT.format("fetched")),
        Column(
            "wire_bytes",
            INTEGER,
            "bytes received as bodies",
            "wire_bytes",
            _WORKERS_COUNT.format("wire_bytes"),
            unit="bytes",
        ),
        Column("start_urls", TEXT, "JSON list", "starts", searched=True),
        Column("settings", TEXT, "JSON object of every setting; passwords are not kept", "settings", wide=True),
    ),
    "run",
    order=("-id",),
)
RENDERINGS = Table(
    "renderings",
    "Pages that a browser made of their scripts, and what that took.",
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
"""Those that anybody may read with SQL, by name."""

# Tables that analyses compute.

_SEVERITY = Column("severity", TEXT, "error, warning or notice", facet=True)
_MESSAGE = Column("message", TEXT, "the kind of issue in a few words", wide=True)
_CATEGORY = Column("category", TEXT, "links, redirects, titles, indexing, ...", facet=True)
_CODE = Column("code", TEXT, "the kind of issue; stable", facet=True)
ISSUES = Table(
    "issues",
    "What is wrong with each page, by all that was seen in crawls and checks.",
    (
        Column("url", TEXT, "the page to mend", searched=True),
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
STRUCTURED = Table(
    "structured",
    "What each page says to machines: JSON-LD, Microdata, RDFa, Open Graph, Twitter cards, hreflang; a value a row.",
    columns_of("""
        url text searched: the page
        syntax text facet: json-ld, microdata, rdfa, opengraph, twitter or hreflang
        item integer: number of the outermost thing that the page describes, from 1
        type text facet: type of the thing that has the value, of schema.org without its address
        path text searched: the property, from the outermost thing: offers.price, itemListElement[2].name; of \
            hreflang the language
        value text searched: as written, white space folded; of hreflang the absolute address
    """),
)
EXPORTS = VIEWS | {table.name: table for table in (RANKED_PAGES, CHAINS, ISSUES, STRUCTURED)}
"""Those that `periplus export` writes, by name."""
CHUNKS = Table(
    "chunks",
    "Pages in chunks, each of one section.",
    columns_of("""
        chunk text: of the chunk: the page's id and the chunk's number
        url text: the page
        title text: its title
        headings text: above the chunk, outermost first, parted by >
        number integer: of the chunk in its page, from 1
        first_piece integer: of the page's pieces (paragraphs, lists, tables, ...) the first in it, from 0
        last_piece integer: the last in it
        words integer: in it
        text text: Markdown
        language text: of the page
        last_modified time: by the server's word
        fetched_at time: when it was read
    """),
)
"""What `periplus export chunks` writes."""
FAULTS = Table(
    "faults",
    "What is wrong, by cause, by all that was seen in crawls and checks; the number of pages leads to them.",
    (
        _SEVERITY,
        _MESSAGE,
        *columns_of("""
        cause text searched: what is to be mended: a URL or words
        detail text searched: what all of its issues say
        pages integer: pages on which it is met
        issues integer: issues of this cause: a page may have several
        url text searched: the first of these pages
    """),
        _CATEGORY,
        _CODE,
        *columns_of("""
        since time: when the first check that saw it began; empty: no check did
        decision text facet: accepted or ignored by a person, and counted no more; empty: open
        assignee text facet: who mends it
        note text searched: what a person noted on it
    """),
    ),
)
STORIES = Table(
    "stories",
    "What several sites tell, the weightiest first.",
    columns_of("""
        story integer: its number, the weightiest first
        title text searched: of its first page that has one
        sites integer facet: that tell it
        pages integer: that tell it
        first time: when its first page was published
        last time: when its last page was
        first_site text facet: the site that had it first
        url text searched: its first page
        language text facet: of the first page
        ordered text facet: the weakest word on which a page stands where it stands: dates, links, first seen
        told_by text searched: sites, in order
    """),
)
STORY_PAGES = Table(
    "story-pages",
    "Each page of each story, in order.",
    columns_of("""
        story integer: number of its story
        place integer: in the story, from 1
        url text searched: the address
        site text facet: the site
        title text searched: without the site's name
        date time: when it was published
        after text: the first page: how much later
        dated_by text facet: on whose word it is dated
        placed_by text facet: what decided its place: dates, links, first seen
    """),
)
JUDGED = Table(
    "judged",
    "How likely each page belongs to the topic, as it was judged last.",
    columns_of("""
        url text searched: the address
        title text searched: the title
        site text facet: the site
        probability real: that it belongs to the topic, 0 to 1
        relevant boolean facet: whether it belongs rather than not
        label text facet: what a person said: relevant, not
        beginning text searched: of its content
    """),
)
WORDS = Table(
    "words",
    "The words that tell the topic’s pages from others most.",
    columns_of("""
        word text searched: the word, folded
        speaks text facet: for the topic, or against it
        weight real: above 0: for it
        positive_share real: of positive examples that have it
        negative_share real: of negative examples that have it
    """),
)
ENTRIES = Table(
    "entries",
    "What the portal may show, as it was gathered last, with what was decided since.",
    columns_of("""
        key text: of the entry
        kind text facet: what becomes of it: published, waiting, hidden
        verdict text facet: what the editor decided
        title text searched: of the story
        published time: when the first page was
        sites integer facet: that tell it
        pages integer: that tell it
        weight real: telling sites, each counted less the older
        relevance real: to the portal's topic, 0 to 1
        sentence text searched: with which its content begins
        keywords text searched: what it is about
        url text searched: its first page
    """),
)
PORTAL_SITES = Table(
    "sources",
    "Sites that tell the portal’s stories.",
    columns_of("""
        site text searched: the site
        chosen boolean facet: whether the portal follows it
        verdict text facet: what the editor decided: pinned, banned
        stories integer: that it tells
        gain real: share of the stories that it has and none before it
        relevance real: of its pages to the portal's topic, 0 to 1
    """),
)
_SEGMENT = Column("segment", TEXT, "the first segment of periplus.toml that the page fits, else other", facet=True)
_TARGET_SEGMENT = replace(_SEGMENT, name="target_segment", sentence="the same of the target")
_SEGMENTED = {
    "urls": ("u.id",), "pages": ("u.id",), "links": ("l.source", "l.target"), "bad": ("b.source",),
    "redirects": ("u.id",), "visits": ("v.url_id",),
}  # fmt: skip
"""Of tables with pages the ids of these, as a store has them."""


def with_segments(table: Table) -> Table:
    """The table with the segment of each row's page; of links, with that of the target too. A table that has no page in
    its rows stays as it is. Stores compute the columns with a function segment_of(id).
    """
    ids = _SEGMENTED.get(table.name, ("",) * ("url" in table.names)) if table.name != FAULTS.name else ()
    columns = (
        replace(column, sql=f"segment_of({expression})" if table.source else "")
        for column, expression in zip((_SEGMENT, _TARGET_SEGMENT), ids, strict=False)
    )
    return replace(table, columns=(*table.columns, *columns)) if ids else table
