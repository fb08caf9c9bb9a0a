"""What is searched and what is found, as values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from periplus.model.page import BlockKind, Blocks, Part
from periplus.model.tables import SEEN
from periplus.model.web import SiteKey, Url, UrlId
from periplus.values import frozen


class Operator(NamedTuple):
    """What may be written in a query: words with signs, and what narrows it, as `name:value`."""

    names: tuple[str, ...]
    field: str  # what a name asks of: a field of the index, a time, or a column of pages
    example: str
    sentence: str


OPERATORS = (
    Operator((), "", "harbour lights", "in any of their forms: cities finds city; pages with all of them first"),
    Operator((), "", "os.path, C++", "names: as they are written first, then their parts"),
    Operator((), "", '"harbour lights"', "one after another"),
    Operator((), "", "harb*", "what begins so"),
    Operator((), "", "a OR b, -storm, ( )", "either; without it; a part of the query"),
    Operator((), "", "+cities", "not without it, and in this very form"),
    Operator(("site", "host"), "site", "site:example.org", "of a host or what lies below it"),
    Operator(("lang", "language"), "language", "lang:cs", "in a language"),
    Operator(("type", "filetype"), "type", "type:pdf", "of a media type: html, pdf, text/plain"),
    Operator(("after", "since"), "after", "after:2024", "published, else changed or fetched, on that date or later"),
    Operator(("before", "until"), "before", "before:2024-03-31", "the same, before that date"),
    Operator(("date", "during"), "date", "date:2024-03", "the same, on that day, in that month or year"),
    Operator(("intitle", "title"), "title", "intitle:tides", "with the word in the title"),
    Operator(("inurl", "url"), "url", "inurl:docs", "in the address"),
    Operator(("inheading",), "heading", "inheading:tides", "in a heading"),
    Operator(("intext",), "text", "intext:tides", "in the content below headings"),
    Operator(("inmenu",), "navigation", "inmenu:contact", "in menus, headers and footers"),
    Operator(("inanchor",), "anchor", "inanchor:tides", "in the words of links to the page"),
    Operator(("schema",), "types", "schema:Recipe", "that describe such a thing, by JSON-LD and Microdata"),
    Operator(("author",), "author", 'author:"Jane Doe"', "whose author has that in the name"),
    Operator(("segment",), "segment", "segment:manual", "of a segment of periplus.toml; other: of none"),
    Operator(("set", "class"), "set", "set:target", "of a survey's sites, or of companions: set:communicator, ..."),
    Operator(("is",), "is", "is:noindex", "that ask not to be found by search, which no other query finds"),
    Operator((), "", "depth:..2", "by any column of pages: text_chars:1000.. charset:windows-1252"),
)
"""What a query may be, with what each finds."""
FIELDS = {name: name for name in SEEN.names} | {name: one.field for one in OPERATORS for name in one.names}
"""What each operator asks of, by its name: those above, and the columns of pages."""


@frozen
class PageToIndex:
    """A page as the index takes it in."""

    url_id: UrlId
    url: Url
    site: SiteKey
    media_type: str
    language: str  # BCP 47; empty: not known
    title: str
    blocks: Blocks
    parts: Sequence[Part]  # one a block; empty: not marked yet
    anchors: Sequence[str]  # the words of links to it, each once
    when: float  # last modified by the server's word, else fetched; seconds since the epoch
    folded: bytes  # digest of the text without diacritics and case: pages that share it are one hit
    noindex: bool = False  # it asks not to be found by search


class Match(NamedTuple):
    """A page that answers a query, before anything is read of it."""

    url_id: UrlId
    score: float
    twins: tuple[UrlId, ...]  # pages with the same text, best first, folded into this one
    missing: tuple[str, ...] = ()  # words of the query that it lacks
    origin: int = 0  # of several indexes, which it is of


@frozen
class Facet:
    """How many pages among those that answer share a value: by `site`, `type`, `language` or `year`.

    Most pages first.
    """

    name: str
    values: tuple[tuple[str, int], ...]


@frozen
class Matches:
    """The answer of the index to a query."""

    total: int  # pages that answer, twins included
    matches: tuple[Match, ...]  # best first, those of the page asked for
    facets: tuple[Facet, ...]
    notes: tuple[str, ...]  # what of the query was left aside, and why
    suggestion: str  # a query that may have been meant; empty: none


@frozen
class Snippet:
    """The words of a page that answer, with what surrounds them."""

    text: str
    marks: tuple[tuple[int, int], ...]  # (start, end) of each word that answers, in the text
    kind: BlockKind  # of the block that it comes from


@frozen
class Hit:
    """A page found, as it is shown."""

    url: Url
    title: str
    title_marks: tuple[tuple[int, int], ...]
    snippet: Snippet | None  # None: nothing is kept of its text
    score: float
    site: SiteKey
    media_type: str
    language: str
    when: float  # last modified by the server's word, else fetched; seconds since the epoch
    twins: tuple[Url, ...]  # pages with the same text
    near: tuple[Url, ...] = ()  # pages with nearly the same content, of those that would be hits here, and their twins
    missing: tuple[str, ...] = ()  # words of the query that it lacks
    collection: str = ""  # of several, the name of the one that it is shown from


@frozen
class SearchResult:
    """What a search found."""

    query: str
    total: int  # pages that answer, twins included
    hits: tuple[Hit, ...]  # those of the page asked for
    facets: tuple[Facet, ...]
    notes: tuple[str, ...]  # what of the query was left aside; how far the index is behind
    suggestion: str  # a query that may have been meant; empty: none
    took_s: float


@frozen
class VectorNote:
    """The vectors of a collection: where they come from, and what they are."""

    source: str  # the file
    stamp: str  # differs when that has changed
    rows: int
    dimensions: int
    pages: int  # that they are of
    pages_here: int  # of these, that the collection has
    skipped: int  # rows without a page or a direction
