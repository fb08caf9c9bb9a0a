"""Search queries and results, as values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from periplus.model.page import BlockKind, Blocks, Part
from periplus.model.tables import ALL_URLS
from periplus.model.web import SiteKey, Url, UrlId
from periplus.values import frozen


class Operator(NamedTuple):
    """An element of the query syntax: a form of words, or a filter `name:value`."""

    names: tuple[str, ...]
    field: str  # what the name refers to: a field of the index, a time, or a column of pages
    example: str
    sentence: str


OPERATORS = (
    Operator((), "", "harbour lights", "words in any form (cities finds city); pages with all of them first"),
    Operator((), "", "os.path, C++", "names: matched as written first, then by their parts"),
    Operator((), "", '"harbour lights"', "an exact phrase"),
    Operator((), "", "harb*", "words with this prefix"),
    Operator((), "", "a OR b, -storm, ( )", "alternatives; exclusion; grouping"),
    Operator((), "", "+cities", "required, in exactly this form"),
    Operator(("site", "host"), "site", "site:example.org", "on a host or its subdomains"),
    Operator(("lang", "language"), "language", "lang:cs", "in a language"),
    Operator(("type", "filetype"), "type", "type:pdf", "with a media type: html, pdf, text/plain"),
    Operator(("after", "since"), "after", "after:2024", "published (else changed or fetched) on or after the date"),
    Operator(("before", "until"), "before", "before:2024-03-31", "the same, before the date"),
    Operator(("date", "during"), "date", "date:2024-03", "the same, on that day, in that month or year"),
    Operator(("intitle", "title"), "title", "intitle:tides", "with the word in the title"),
    Operator(("inurl", "url"), "url", "inurl:docs", "in the address"),
    Operator(("inheading",), "heading", "inheading:tides", "in a heading"),
    Operator(("intext",), "text", "intext:tides", "in the content below headings"),
    Operator(("inmenu",), "navigation", "inmenu:contact", "in menus, headers and footers"),
    Operator(("inanchor",), "anchor", "inanchor:tides", "in the text of links to the page"),
    Operator(("schema",), "types", "schema:Recipe", "pages that describe this type in JSON-LD or Microdata"),
    Operator(("author",), "author", 'author:"Jane Doe"', "pages whose author's name contains this"),
    Operator(("segment",), "segment", "segment:manual", "in a segment of periplus.toml; `other`: in none"),
    Operator(("set", "class"), "set", "set:target", "on target or companion sites of a survey: set:communicator, ..."),
    Operator(("is",), "is", "is:noindex", "noindex pages, which no other query finds"),
    Operator((), "", "depth:..2", "by any column of the table of pages: text_chars:1000.. charset:windows-1252"),
)
"""The query syntax, with descriptions for users."""
FIELDS = {name: name for name in ALL_URLS.names} | {name: op.field for op in OPERATORS for name in op.names}
"""Field of each operator name: the operators above, and the columns of pages."""


@frozen
class PageToIndex:
    """A page as input of the search index."""

    url_id: UrlId
    url: Url
    site: SiteKey
    media_type: str
    language: str  # BCP 47; empty: unknown
    title: str
    blocks: Blocks
    parts: Sequence[Part]  # one per block; empty: not classified yet
    anchors: Sequence[str]  # distinct texts of links to it
    when: float  # last modified as declared by the server, else fetched; seconds since the epoch
    folded: bytes  # digest of the text without diacritics and case: pages with equal digests are one hit
    noindex: bool = False  # the page asks not to be indexed


class Match(NamedTuple):
    """A page that matches a query, without its content."""

    url_id: UrlId
    score: float
    twins: tuple[UrlId, ...]  # pages with the same text, best first, merged into this match
    missing: tuple[str, ...] = ()  # query words that the page lacks
    origin: int = 0  # index number, for searches in several indexes


@frozen
class Facet:
    """Values of one property (`site`, `type`, `language` or `year`) with the number of matching pages.

    Most pages first.
    """

    name: str
    values: tuple[tuple[str, int], ...]


@frozen
class Matches:
    """Result of a query on the index."""

    total: int  # matching pages, including twins
    matches: tuple[Match, ...]  # best first, only the requested page of results
    facets: tuple[Facet, ...]
    notes: tuple[str, ...]  # which parts of the query were ignored, and why
    suggestion: str  # suggested query, or empty


@frozen
class Snippet:
    """Matching words of a page, with context."""

    text: str
    marks: tuple[tuple[int, int], ...]  # (start, end) of each matching word in the text
    kind: BlockKind  # kind of its block


@frozen
class Hit:
    """A search result, as shown."""

    url: Url
    title: str
    title_marks: tuple[tuple[int, int], ...]
    snippet: Snippet | None  # None: no text is stored
    score: float
    site: SiteKey
    media_type: str
    language: str
    when: float  # last modified as declared by the server, else fetched; seconds since the epoch
    twins: tuple[Url, ...]  # pages with the same text
    near: tuple[Url, ...] = ()  # near duplicates among the hits, and their twins
    missing: tuple[str, ...] = ()  # query words that the page lacks
    collection: str = ""  # name of its collection, for searches in several collections


@frozen
class SearchResult:
    """Result of a search."""

    query: str
    total: int  # matching pages, including twins
    hits: tuple[Hit, ...]  # the requested page of results
    facets: tuple[Facet, ...]
    notes: tuple[str, ...]  # ignored parts of the query; how far the index is behind
    suggestion: str  # suggested query, or empty
    took_s: float


@frozen
class VectorNote:
    """Description of the page vectors of a collection."""

    source: str  # source file
    stamp: str  # changes when the file changes
    rows: int
    dimensions: int
    pages: int  # pages with a vector
    pages_here: int  # those in the collection
    skipped: int  # rows without a page, or with a zero vector
