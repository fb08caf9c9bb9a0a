"""The links of a page as rows: resolved, judged, merged and counted.

Compiled where there is a C compiler; link_rows.pxd gives the types.
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

ROWS_MOST = 20_000  # distinct ones of one page; what is beyond is not recorded
BAD_ROWS_MOST = 2_000
BAD_TEXT_CHARS = 2_000  # as the model says
# the order of anchors: document, source, place on the page
DOCUMENT_SHIFT, RANK_SHIFT, LAST = 32, 24, 1 << 62
CACHED_CHARS, CACHED_MOST = 300, 16_384  # bounds each of the two caches below to some 10 MB

KIND_SHIFT, POSITION = 8, 0x7F  # of a place: the kind's code, then seven bits of the position's, then nofollow

# an empty href is the page itself, `#x` a place in it
_PAGES = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FORM})
_PAGE_CODES = frozenset(map(LINK_KIND_CODES.__getitem__, _PAGES))
_NAMES = _PAGES | {LinkKind.REFRESH, LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.RELATED}
_CONTENT_IN_PLACE = frozenset({"data", "about", "blob"})  # where a part is embedded these are its content, no link

C0_AND_SPACE = "".join(map(chr, range(0x21)))
_PLAIN_CHARS = bytes(code for code in range(256) if PLAIN_IN_FRAGMENTS[code])
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.~%-][^:\\\t\n\r]*")  # relative, and not a mere query
_ANYWHERE = Url("http://localhost/")
_Element = TypeVar("_Element")


Place: TypeAlias = int
"""What tells links to one target apart: kind, position and nofollow in one number, since one is made per link."""


def place_of(kind: LinkKind, position: Position, nofollow: bool = False) -> Place:
    """Of links of that kind, in that part of a page."""
    return LINK_KIND_CODES[kind] << KIND_SHIFT | POSITION_CODES[position] << 1 | nofollow


def _parts_of(place: Place) -> tuple[LinkKind, Position]:
    return LINK_KINDS[place >> KIND_SHIFT], POSITIONS[place >> 1 & POSITION]


class GatheredLinks:
    """The rows of one page while they are gathered."""

    def __init__(self, base: Url, nofollow: bool, charset: str = "utf-8") -> None:
        """base: what relative links are resolved against.

        nofollow: of the whole page. charset: of the links' queries.
        """
        self.resolve_against(base)
        self.nofollow = int(nofollow)
        self.charset = charset
        self.rows: dict[tuple[Url, Place], int] = {}  # by the target's identity; the row's place in the columns below
        self.targets: list[Url] = []  # as each was met first
        self.anchors: list[str] = []
        self.orders: list[int] = []  # of the anchors: document, rank and place
        self.fragments: list[str] = []  # of rows with one head, as they stand in a canonical URL
        self.heads: dict[int, tuple[PageLinks, int]] = {}  # of rows with such fragments: where they are from
        self.pieces: dict[int, list[tuple[int, str]]] = {}  # of other rows: their places on the page, as written
        self.places = NumberColumn(64)
        self.counts = NumberColumn(64)
        self.bad: dict[tuple[str, Place, str], str] = {}
        self.bounds_met: dict[str, None] = {}
        self.documents = 0

    def first(self, elements: Sequence[_Element]) -> Sequence[_Element]:
        """As many elements of one tag as are looked at."""
        if len(elements) <= ELEMENTS_MOST:
            return elements
        self.meet_elements_most()
        return elements[:ELEMENTS_MOST]

    def meet_elements_most(self) -> None:
        """Records that not all elements of one kind were looked at."""
        self.bounds_met[f"more than {ELEMENTS_MOST:,} elements of one kind with links"] = None

    def bounds(self) -> tuple[str, ...]:
        """Which bounds were met: what lies behind them is not among the rows."""
        for pieces in self.pieces.values():
            if len(pieces) > FRAGMENTS_MOST and len({text for _, text in pieces}) > FRAGMENTS_MOST:
                return (*self.bounds_met, f"more than {FRAGMENTS_MOST:,} places of one page linked to")
        return tuple(self.bounds_met)

    def next_document(self) -> int:
        """The number of the page, or of the next one embedded in it, which comes after it."""
        self.documents += 1
        return self.documents

    def resolve_against(self, base: Url) -> None:
        """From now on."""
        self.base = base
        self.folder = Url(base[: base.partition("?")[0].rindex("/") + 1])
        self.below = targets_below(self.folder)

    def add(self, href: str, place: Place, anchor: str = "", at: int = LAST) -> None:
        """Records one link that stood there as href, if it is one. at: as `add_head` has it."""
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
        """Records links to one head, a href without spaces around and without fragment; returns their row, -1 where
        nothing is fetched for them or there is no room. Raises InvalidUrl.

        at: the anchor's place among all, of which the first counts.
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
        """What a href without its fragment leads to, and its identity; None: nothing is fetched for it."""
        if not head:
            return _with_identity(self.base) if place >> KIND_SHIFT in _PAGE_CODES else None
        is_plain = head.isascii() and head.isprintable()
        written = head if is_plain else with_query_in(self.charset, head)
        targets = below(self.folder, written) if len(head) <= CACHED_CHARS else None
        if targets is None:
            # the `#` guards a space at the end, which a fragment was cut from
            return _with_identity(resolve(written + "#", self.base)[0])
        if is_plain:
            _count_remembered()
            self.below[head] = targets
        return targets

    def add_fragments(self, row: int, links: PageLinks, head: int) -> int:
        """Gives a row the fragments of one of a page's heads."""
        fragments: str = links.fragments[head]
        if fragments and not self.fragments[row] and row not in self.pieces:
            self.fragments[row] = fragments
            self.heads[row] = links, head
        elif fragments or links.others[head]:
            self._add_pieces(row, links.pieces(head))
        return 0

    def _add_pieces(self, row: int, pieces: list[tuple[int, str]]) -> int:
        """More fragments of a row, which are brought into order and encoded in the end."""
        if row not in self.pieces:
            self.pieces[row] = []
            if row in self.heads:
                links, head = self.heads[row]
                self.pieces[row] += links.pieces(head)
        self.pieces[row] += pieces
        return 0

    def add_bad(self, href: str, place: Place, anchor: str) -> None:
        """Records what stood there as href and is no link."""
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
        """The links, in the order in which the first of each was added."""
        size = self.counts.size
        if not size:
            return NO_LINKS
        for row, pieces in self.pieces.items():
            self.fragments[row] = joined(pieces)
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
        """Distinct texts that are no links, in order."""
        rows = list[BadLink]()
        for (text, place, why), anchor in self.bad.items():
            rows.append(BadLink(text, *_parts_of(place), anchor[:ANCHOR_CHARS], why))
        return tuple(rows)


class PageLinks:
    """The links of a page's elements, as the reader counted them: by what they lead to, fragments aside."""

    def __init__(self, rows: GatheredLinks, page: Reader) -> None:
        self.page = page  # and not the rows, which hold this: a circle keeps a page's columns until Python looks for it
        self.first = rows.next_document()
        self.first <<= DOCUMENT_SHIFT  # in the 64 bits that C has for it
        self.heads, owners, self.counts, self.anchor_places, self.anchors = self.page.links_by_head()
        self.fragments, self.others = self.page.fragments_by_head()
        self.parts = list(map(_part, owners))
        self.by_rank = list(range(len(owners)))
        if any(owners):  # else all are of the first source, in no landmark
            self.by_rank.sort(key=list(map(_rank, owners)).__getitem__)

    def add(self, rows: GatheredLinks, first: int, end: int) -> None:
        """Records those of some ranks, rank by rank."""
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
        """Records what is no link, rank by rank, each as often as it stands there differently."""
        texts = [(rank, *text, link) for rank, link in bad for text in self.page.fragments_of(link)]
        for _, _, fragment, anchor, link in sorted(texts):
            rows.add_bad(self.heads[link] + fragment, self.parts[link][1], anchor)

    def pieces(self, head: int) -> list[tuple[int, str]]:
        """(place on the page, as written, without `#`) of each fragment of a head."""
        return [(self.first + at, text[1:]) for at, text, _ in self.page.fragments_of(head) if len(text) > 1]


_CANDIDATE = re.compile(r"[\s,]*([^\s,]\S*)")  # of a srcset: a URL before its width or density


def of_srcset(value: str) -> Iterator[str]:
    """Source: HTML Living Standard, 4.8.4.3.4. A URL may hold commas, but neither begin nor end with one."""
    place = 0
    while place >= 0 and (match := _CANDIDATE.match(value, place)):
        text = match[1].rstrip(",")
        yield text
        place = match.end() if text != match[1] else value.find(",", match.end())


def _of_archive(value: str) -> Iterable[str]:
    return value.split(",")


def split_of_attribute(name: str, value: str) -> Iterable[str]:
    """The URLs that an attribute names: of a srcset or an archive several."""
    return of_srcset(value) if name.endswith("srcset") else _of_archive(value) if name == "archive" else (value,)


# of each source the first one of its tag: links are recorded element by element
_FIRSTS = {(source.tag, place >= FIRST_SVG_SOURCE): place for place, source in reversed(list(enumerate(SOURCES)))}
_RANKS = [_FIRSTS[source.tag, place >= FIRST_SVG_SOURCE] for place, source in enumerate(SOURCES)]
_HOW: list[tuple[LinkKind, Callable[[str], Iterable[str]] | None]] = [
    (
        source.kind,
        of_srcset if source.attribute.endswith("srcset") else _of_archive if source.attribute == "archive" else None,
    )
    for source in SOURCES
]
"""Of each source, the kind of its links, and what splits a list of them."""


@cache
def _part(owner: int) -> tuple[int, Place, Callable[[str], Iterable[str]] | None, bool]:
    """Of links of one owner (source, position, rel, length, as the reader numbers them): their rank, their place, what
    splits a list of them, and whether they are too long to be links."""
    source = owner & 0xFF
    kind, split = _HOW[source]
    return _RANKS[source], place_of(kind, POSITIONS[owner >> 8 & 7], bool(owner & NOFOLLOW)), split, bool(owner & LONG)


def _rank(owner: int) -> int:
    return _RANKS[owner & 0xFF]


def with_query_in(charset: str, href: str) -> str:
    """A href, its query as a browser sends it from a page in that charset: `?q=č` of windows-1250 is `?q=%E8`."""
    address, sharp, fragment = href.partition("#")
    head, mark, query = address.partition("?")
    encoding = encoding_of(charset) if query else None
    return head + mark + encoding.url_query(query) + sharp + fragment if encoding else href


def joined(pieces: list[tuple[int, str]]) -> str:
    """Fragments as they stand in a canonical URL, distinct, in the order of the page, with blanks between."""
    pieces.sort(key=_place)
    texts = dict.fromkeys([text for _, text in pieces])
    first = list(islice(texts, FRAGMENTS_MOST))
    whole = "".join(first)
    if whole.isascii() and not whole.encode().translate(None, _PLAIN_CHARS):
        return " ".join(first)
    return " ".join(dict.fromkeys(filter(None, [resolve("#" + fragment, _ANYWHERE)[1] for fragment in first])))


def _place(piece: tuple[int, str]) -> int:
    return piece[0]


Targets: TypeAlias = tuple[Url, Url]  # what a head leads to, and its identity
_BELOW: dict[Url, dict[str, Targets]] = {}  # of plain heads, by folder: a site's menu is on all its pages
_COUNTS = {"remembered": 0}


def targets_below(folder: Url) -> dict[str, Targets]:
    """What plain heads on pages of that folder lead to, as far as they were met."""
    heads = _BELOW.get(folder)
    if heads is None:
        _count_remembered()
        heads = _BELOW[folder] = {}
    return heads


def _count_remembered() -> None:
    """Now and then all is forgotten, which costs less than to note what was used last."""
    _COUNTS["remembered"] += 1
    if _COUNTS["remembered"] > CACHED_MOST:
        _BELOW.clear()
        _COUNTS["remembered"] = 0


def below(folder: Url, head: str) -> Targets | None:
    """resolve, with the target's identity, for heads that take nothing from a base but its folder; None for others.
    Raises InvalidUrl."""
    if head[len(head) - 1 :] <= " ":
        return None
    if _PLAIN_PATH.fullmatch(head):
        return _with_identity(resolve(head, folder)[0])
    if head.startswith("/") and head[1:2] not in ("/", "\\", "\t", "\n", "\r"):
        return _anywhere(head, Url(folder[: folder.index("/", 8) + 1]))
    return _anywhere(head, _ANYWHERE) if head.startswith(("http://", "https://")) else None


@lru_cache(maxsize=CACHED_MOST)
def _anywhere(head: str, base: Url) -> Targets:
    """resolve, with the target's identity, for heads that mean the same in each folder of a host."""
    return _with_identity(resolve(head, base)[0])


def _with_identity(target: Url) -> Targets:
    return target, identity(target)
