"""The links of a page as rows: resolved, classified, merged and counted.

Compiled if there is a C compiler; link_rows.pxd gives the types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import TypeAlias, TypeVar

from periplus.document.columns import NumberColumn
from periplus.document.guess import encoding_of
from periplus.document.page_rules import (
    ANCHOR_CHARS,
    ELEMENTS_MOST,
    FIRST_SVG_SOURCE,
    FRAGMENTS_MOST,
    HREF_CHARS,
    LONG,
    NOFOLLOW,
    PLAIN_IN_FRAGMENTS,
    SOURCES,
)
from periplus.document.reader import Reader
from periplus.errors import InvalidUrl
from periplus.model.page import (
    LINK_KIND_CODES,
    LINK_KINDS,
    NO_LINKS,
    POSITION_CODES,
    POSITIONS,
    BadLink,
    LinkKind,
    Links,
    Position,
)
from periplus.model.web import Url
from periplus.urls.canonical import identity, resolve, scheme_of_href

ROWS_MOST = 20_000  # distinct rows per page; further links are not recorded
BAD_ROWS_MOST = 2_000
BAD_TEXT_CHARS = 2_000  # as the model says
# Sort key of anchors: document, source, position on the page
DOCUMENT_SHIFT, RANK_SHIFT, LAST = 32, 24, 1 << 62
CACHED_CHARS, CACHED_MOST = 300, 16_384  # bounds each of the two caches below to about 10 MB

KIND_SHIFT, POSITION = 8, 0x7F  # layout of a place: the kind's code, seven bits of the position's code, nofollow

# For these kinds an empty href is the page itself, and `#x` an anchor in it
_PAGES = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FORM})
_PAGE_CODES = frozenset(map(LINK_KIND_CODES.__getitem__, _PAGES))
_NAMES = _PAGES | {LinkKind.REFRESH, LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.RELATED}
# in resources these schemes contain the content itself and are not links
_CONTENT_IN_PLACE = frozenset({"data", "about", "blob"})

C0_AND_SPACE = "".join(map(chr, range(0x21)))
_PLAIN_CHARS = bytes(code for code in range(256) if PLAIN_IN_FRAGMENTS[code])
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.~%-][^:\\\t\n\r]*")  # relative, but not just a query
_ANYWHERE = Url("http://localhost/")
_Element = TypeVar("_Element")


Place: TypeAlias = int
"""Kind, position and nofollow packed into one number, because one is created per link."""

_CANDIDATE = re.compile(r"[\s,]*([^\s,]\S*)")  # in a srcset: a URL, followed by its width or density
# For each source, the first source of its tag: links are recorded element by element
_FIRSTS = {(source.tag, place >= FIRST_SVG_SOURCE): place for place, source in reversed(list(enumerate(SOURCES)))}
_RANKS = [_FIRSTS[source.tag, place >= FIRST_SVG_SOURCE] for place, source in enumerate(SOURCES)]
_COUNTS = {"remembered": 0}


def place_of(kind: LinkKind, position: Position, nofollow: bool = False) -> Place:
    """The place of links of a kind in a part of a page."""
    return LINK_KIND_CODES[kind] << KIND_SHIFT | POSITION_CODES[position] << 1 | nofollow


def _parts_of(place: Place) -> tuple[LinkKind, Position]:
    return LINK_KINDS[place >> KIND_SHIFT], POSITIONS[place >> 1 & POSITION]


class GatheredLinks:
    """The rows of one page while they are collected."""

    def __init__(self, base: Url, nofollow: bool, charset: str = "utf-8") -> None:
        """base: base URL of relative links.

        nofollow: of the whole page. charset: for the queries of links.
        """
        self.resolve_against(base)
        self.nofollow = int(nofollow)
        self.charset = charset
        # by (identity of the target, place); the index of the row in the columns below
        self.rows: dict[tuple[Url, Place], int] = {}
        self.targets: list[Url] = []  # first spelling of each
        self.anchors: list[str] = []
        self.orders: list[int] = []  # sort key of the anchors: document, rank and position
        self.fragments: list[str] = []  # of rows with a single head, as in a canonical URL
        self.heads: dict[int, tuple[PageLinks, int]] = {}  # of rows with such fragments: their source
        self.pieces: dict[int, list[tuple[int, str]]] = {}  # of other rows: (position on the page, fragment as written)
        self.places = NumberColumn(64)
        self.counts = NumberColumn(64)
        self.bad: dict[tuple[str, Place, str], str] = {}
        self.bounds_met: dict[str, None] = {}
        self.documents = 0

    def first(self, elements: Sequence[_Element]) -> Sequence[_Element]:
        """The elements of one tag, up to the limit."""
        if len(elements) <= ELEMENTS_MOST:
            return elements
        self.meet_elements_most()
        return elements[:ELEMENTS_MOST]

    def meet_elements_most(self) -> None:
        """Records that the limit of elements of one kind was exceeded."""
        self.bounds_met[f"more than {ELEMENTS_MOST:,} elements of one kind with links"] = None

    def bounds(self) -> tuple[str, ...]:
        """The limits that were exceeded: links beyond them are missing."""
        for pieces in self.pieces.values():
            if len(pieces) > FRAGMENTS_MOST and len({text for _, text in pieces}) > FRAGMENTS_MOST:
                return (*self.bounds_met, f"more than {FRAGMENTS_MOST:,} places of one page linked to")
        return tuple(self.bounds_met)

    def next_document(self) -> int:
        """The number of the page, or of the next document embedded in it."""
        self.documents += 1
        return self.documents

    def resolve_against(self, base: Url) -> None:
        """Changes the base URL for the following links."""
        self.base = base
        self.folder = Url(base[: base.partition("?")[0].rindex("/") + 1])
        self.below = targets_below(self.folder)

    def add(self, href: str, place: Place, anchor: str = "", at: int = LAST) -> None:
        """Records a link with this href, if it is valid. at: see `add_head`."""
        href = href.strip(C0_AND_SPACE)
        head, _, fragment = href.partition("#")
        if len(href) > HREF_CHARS:
            self.add_bad(href, place, anchor)
            return
        try:
            row = self.add_head(head, place, 1, anchor[:ANCHOR_CHARS], at)
        except InvalidUrl:
            self.add_bad(href, place, anchor)
            return
        if fragment and row >= 0:
            self._add_pieces(row, [(at, fragment)])

    def add_head(self, head: str, place: Place, count: int, anchor: str, at: int) -> int:
        """Records links to a head: a href without surrounding spaces and fragment.

        Returns the row, or -1 if nothing is fetched for it or the limit is reached. Raises InvalidUrl.

        at: sort key of the anchor; the first anchor is kept.
        """
        targets = self.below.get(head)
        if targets is None:
            targets = self._targets_of(head, place)
            if targets is None:
                return -1
        place |= self.nofollow
        link = (targets[1], place)
        former = self.rows.get(link)
        if former is not None:
            row: int = former
            self.counts.values[row] += count
            if anchor and (not self.anchors[row] or at < self.orders[row]):
                self.anchors[row], self.orders[row] = anchor, at
            return row
        row = self.counts.size
        if row >= ROWS_MOST:
            self.bounds_met[f"more than {ROWS_MOST:,} distinct links"] = None
            return -1
        self.rows[link] = row
        self.targets.append(targets[0])
        self.anchors.append(anchor)
        self.orders.append(at)
        self.fragments.append("")
        self.places.add(place)
        self.counts.add(count)
        return row

    def _targets_of(self, head: str, place: Place) -> Targets | None:
        """(target of a href without fragment, its identity); None if nothing is fetched for it."""
        if not head:
            return _with_identity(self.base) if place >> KIND_SHIFT in _PAGE_CODES else None
        is_plain = head.isascii() and head.isprintable()
        written = head if is_plain else with_query_in(self.charset, head)
        targets = below(self.folder, written) if len(head) <= CACHED_CHARS else None
        if targets is None:
            # the `#` protects a trailing space, from which a fragment was cut
            return _with_identity(resolve(written + "#", self.base)[0])
        if is_plain:
            _count_cache_entry()
            self.below[head] = targets
        return targets

    def add_fragments(self, row: int, links: PageLinks, head: int) -> int:
        """Adds the fragments of one of a page's heads to a row."""
        fragments: str = links.fragments[head]
        if fragments and not self.fragments[row] and row not in self.pieces:
            self.fragments[row] = fragments
            self.heads[row] = links, head
        elif fragments or links.others[head]:
            self._add_pieces(row, links.pieces(head))
        return 0

    def _add_pieces(self, row: int, pieces: list[tuple[int, str]]) -> int:
        """Adds fragments to a row; they are sorted and encoded at the end."""
        if row not in self.pieces:
            self.pieces[row] = []
            if row in self.heads:
                links, head = self.heads[row]
                self.pieces[row] += links.pieces(head)
        self.pieces[row] += pieces
        return 0

    def add_bad(self, href: str, place: Place, anchor: str) -> None:
        """Records a href that is not a valid link."""
        place |= self.nofollow
        scheme = scheme_of_href(href)
        if scheme in _CONTENT_IN_PLACE and _parts_of(place)[0] not in _NAMES:
            return
        why = "malformed" if scheme in ("", "http", "https") else scheme
        key = (href[:BAD_TEXT_CHARS], place, why)
        if key in self.bad or len(self.bad) < BAD_ROWS_MOST:
            self.bad[key] = self.bad.get(key) or anchor
        else:
            self.bounds_met[f"more than {BAD_ROWS_MOST:,} distinct links that are none"] = None

    def links(self) -> Links:
        """The links, in order of first occurrence."""
        size = self.counts.size
        if not size:
            return NO_LINKS
        for row, pieces in self.pieces.items():
            self.fragments[row] = join_fragments(pieces)
        kinds, positions, nofollow = bytearray(size), bytearray(size), bytearray(size)
        for row in range(size):
            place = self.places.values[row]
            kinds[row], positions[row], nofollow[row] = place >> KIND_SHIFT, place >> 1 & POSITION, place & 1
        return Links(
            tuple(self.targets),
            bytes(kinds),
            bytes(positions),
            tuple(self.anchors),
            bytes(nofollow),
            tuple(self.fragments),
            self.counts.narrow(0, 0, 1, 0, -1),
        )

    def bad_links(self) -> tuple[BadLink, ...]:
        """Distinct invalid hrefs, in order."""
        rows = list[BadLink]()
        for (text, place, why), anchor in self.bad.items():
            rows.append(BadLink(text, *_parts_of(place), anchor[:ANCHOR_CHARS], why))
        return tuple(rows)


class PageLinks:
    """The links of a page's elements as counted by the reader: grouped by target without fragment."""

    def __init__(self, rows: GatheredLinks, page: Reader) -> None:
        # no reference to rows, which refers to this: a cycle would keep a page's columns until the garbage collector
        # runs
        self.page = page
        self.first = rows.next_document()
        self.first <<= DOCUMENT_SHIFT  # as 64 bits in C
        self.heads, owners, self.counts, self.anchor_places, self.anchors = self.page.links_by_head()
        self.fragments, self.others = self.page.fragments_by_head()
        self.parts = list(map(_part, owners))
        self.by_rank = list(range(len(owners)))
        if any(owners):  # otherwise all are of the first source and in no landmark
            self.by_rank.sort(key=list(map(_rank, owners)).__getitem__)

    def add(self, rows: GatheredLinks, first: int, end: int) -> None:
        """Records the links with these ranks, rank by rank."""
        bad = list[tuple[int, int]]()
        for link in self.by_rank:
            rank, place, split, is_long = self.parts[link]
            if rank < first:
                continue
            if rank >= end:
                break
            order = self.first | rank << RANK_SHIFT | self.anchor_places[link]
            if split is not None:
                for text in split(self.heads[link]):
                    for _ in range(self.counts[link]):
                        rows.add(text, place, self.anchors[link], order)
                continue
            try:
                row = (
                    -2
                    if is_long
                    else rows.add_head(self.heads[link], place, self.counts[link], self.anchors[link], order)
                )
            except InvalidUrl:
                row = -2
            if row >= 0:
                rows.add_fragments(row, self, link)
            elif row == -2:
                bad.append((rank, link))
        if bad:
            self._add_bad(rows, bad)

    def _add_bad(self, rows: GatheredLinks, bad: list[tuple[int, int]]) -> None:
        """Records invalid links, rank by rank, once per distinct spelling."""
        texts = [(rank, *text, link) for rank, link in bad for text in self.page.fragments_of(link)]
        for _, _, fragment, anchor, link in sorted(texts):
            rows.add_bad(self.heads[link] + fragment, self.parts[link][1], anchor)

    def pieces(self, head: int) -> list[tuple[int, str]]:
        """(position on the page, fragment as written without `#`) of each fragment of a head."""
        return [(self.first + at, text[1:]) for at, text, _ in self.page.fragments_of(head) if len(text) > 1]


def of_srcset(value: str) -> Iterator[str]:
    """Source: HTML Living Standard, 4.8.4.3.4. A URL may contain commas, but not begin or end with one."""
    place = 0
    while place >= 0 and (match := _CANDIDATE.match(value, place)):
        text = match[1].rstrip(",")
        yield text
        place = match.end() if text != match[1] else value.find(",", match.end())


def _of_archive(value: str) -> Iterable[str]:
    return value.split(",")


def split_of_attribute(name: str, value: str) -> Iterable[str]:
    """The URLs in an attribute; several in a srcset or archive."""
    return of_srcset(value) if name.endswith("srcset") else _of_archive(value) if name == "archive" else (value,)


_HOW: list[tuple[LinkKind, Callable[[str], Iterable[str]] | None]] = [
    (
        source.kind,
        of_srcset if source.attribute.endswith("srcset") else _of_archive if source.attribute == "archive" else None,
    )
    for source in SOURCES
]
"""For each source, the kind of its links, and the function that splits lists of URLs."""


@cache
def _part(owner: int) -> tuple[int, Place, Callable[[str], Iterable[str]] | None, bool]:
    """For the links of an owner (source, position, rel, length, as numbered by the reader): rank, place, splitting
    function, and whether they are too long.
    """
    source = owner & 0xFF
    kind, split = _HOW[source]
    return _RANKS[source], place_of(kind, POSITIONS[owner >> 8 & 7], bool(owner & NOFOLLOW)), split, bool(owner & LONG)


def _rank(owner: int) -> int:
    return _RANKS[owner & 0xFF]


def with_query_in(charset: str, href: str) -> str:
    """A href with its query encoded as a browser does on a page in that charset: `?q=č` in windows-1250 is `?q=%E8`."""
    address, sharp, fragment = href.partition("#")
    head, mark, query = address.partition("?")
    encoding = encoding_of(charset) if query else None
    return head + mark + encoding.url_query(query) + sharp + fragment if encoding else href


def join_fragments(pieces: list[tuple[int, str]]) -> str:
    """Distinct fragments as in a canonical URL, in page order, separated by blanks."""
    pieces.sort(key=_place)
    texts = dict.fromkeys([text for _, text in pieces])
    first = list(islice(texts, FRAGMENTS_MOST))
    whole = "".join(first)
    if whole.isascii() and not whole.encode().translate(None, _PLAIN_CHARS):
        return " ".join(first)
    return " ".join(dict.fromkeys(filter(None, [resolve("#" + fragment, _ANYWHERE)[1] for fragment in first])))


def _place(piece: tuple[int, str]) -> int:
    return piece[0]


Targets: TypeAlias = tuple[Url, Url]  # (target of a head, its identity)
_BELOW: dict[Url, dict[str, Targets]] = {}  # cache of plain heads, by folder: a site's menu is on all its pages


def targets_below(folder: Url) -> dict[str, Targets]:
    """Cached targets of plain heads on pages of that folder."""
    heads = _BELOW.get(folder)
    if heads is None:
        _count_cache_entry()
        heads = _BELOW[folder] = {}
    return heads


def _count_cache_entry() -> None:
    """Clears the cache when it is full, which is cheaper than tracking the last use."""
    _COUNTS["remembered"] += 1
    if _COUNTS["remembered"] > CACHED_MOST:
        _BELOW.clear()
        _COUNTS["remembered"] = 0


def below(folder: Url, head: str) -> Targets | None:
    """As `resolve`, with the target's identity, for heads that depend only on the base's folder; None for others.

    Raises InvalidUrl.
    """
    if head[len(head) - 1 :] <= " ":
        return None
    if _PLAIN_PATH.fullmatch(head):
        return _with_identity(resolve(head, folder)[0])
    if head.startswith("/") and head[1:2] not in ("/", "\\", "\t", "\n", "\r"):
        return _anywhere(head, Url(folder[: folder.index("/", 8) + 1]))
    return _anywhere(head, _ANYWHERE) if head.startswith(("http://", "https://")) else None


@lru_cache(maxsize=CACHED_MOST)
def _anywhere(head: str, base: Url) -> Targets:
    """As `resolve`, with the target's identity, for heads with the same meaning in each folder of a host."""
    return _with_identity(resolve(head, base)[0])


def _with_identity(target: Url) -> Targets:
    return target, identity(target)
