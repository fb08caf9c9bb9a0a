"""The links of a page as rows: resolved, classified, merged and counted.

Compiled if there is a C compiler; link_rows.pxd gives the types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from threading import local
from typing import TypeAlias, TypeVar

from periplus.document.columns import Names, NumberColumn, stands_at
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
    SOURCE_IS_LIST,
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
from periplus.urls.canonical import identity, resolve, scheme_of_href, url_id
from periplus.urls.hosts import root_of

ROWS_MOST = 20_000  # distinct rows per page; further links are not recorded
BAD_ROWS_MOST = 2_000
BAD_TEXT_CHARS = 2_000  # as the model says
# Sort key of anchors: document, source, position on the page
DOCUMENT_SHIFT, RANK_SHIFT, LAST = 32, 24, 1 << 62
CACHED_BYTES, ADDRESSES_MOST = 300, 32_768  # bounds a table of addresses to about 15 MB
SLASH, BACKSLASH, SPACE = b"/\\ "
NOTHING, INVALID, UNKNOWN = -1, -2, -3  # instead of the number of a target

# Layout of a place: the kind's code, seven bits of the position's code, nofollow
KIND_SHIFT, POSITION, PLACE_BITS = 8, 0x7F, 16

# For these kinds an empty href is the page itself, and `#x` an anchor in it
_PAGES = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FORM})
_PAGE_CODES = frozenset(map(LINK_KIND_CODES.__getitem__, _PAGES))
_NAMES = _PAGES | {LinkKind.REFRESH, LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.RELATED}
# in resources these schemes contain the content itself and are not links
_CONTENT_IN_PLACE = frozenset({"data", "about", "blob"})

C0_AND_SPACE = "".join(map(chr, range(0x21)))
_PLAIN_CHARS = bytes(code for code in range(256) if PLAIN_IN_FRAGMENTS[code])
# Heads that depend only on the base's folder, its server or nothing: no query alone, no scheme without slashes
_FOLDER_HEAD = re.compile(r"[A-Za-z0-9_.~%-][^:\\\t\n\r]*\Z|/(?![/\\\t\n\r])|https?://")
HTTP, HTTPS = b"http://", b"https://"
_ANYWHERE = Url("http://localhost/")
_Element = TypeVar("_Element")


Place: TypeAlias = int
"""Kind, position and nofollow packed into one number, because one is created per link."""

_CANDIDATE = re.compile(r"[\s,]*([^\s,]\S*)")  # in a srcset: a URL, followed by its width or density
# For each source, the first source of its tag: links are recorded element by element
_FIRSTS = {(source.tag, place >= FIRST_SVG_SOURCE): place for place, source in reversed(list(enumerate(SOURCES)))}
RANKS = bytes(_FIRSTS[source.tag, place >= FIRST_SVG_SOURCE] for place, source in enumerate(SOURCES))
KIND_CODES = bytes(LINK_KIND_CODES[source.kind] for source in SOURCES)


def place_of(kind: LinkKind, position: Position, nofollow: bool = False) -> Place:
    """The place of links of a kind in a part of a page."""
    return LINK_KIND_CODES[kind] << KIND_SHIFT | POSITION_CODES[position] << 1 | nofollow


def _parts_of(place: Place) -> tuple[LinkKind, Position]:
    return LINK_KINDS[place >> KIND_SHIFT], POSITIONS[place >> 1 & POSITION]


class Addresses:
    """The targets of the heads that a worker has read, numbered: a head that it has read before is not made a text."""

    def __init__(self) -> None:
        self.folders: dict[str, int] = {}
        self.heads = Names(4096)  # the owner is the number of the folder that a head is relative to
        self.targets = NumberColumn(4096)  # of the heads; UNKNOWN for heads that are resolved each time
        self.numbers: dict[Url, int] = {}
        self.urls: list[Url] = []
        self.identities = NumberColumn(4096)  # of the targets: the first with the same identity
        self.room = 4096
        self.ids = memoryview(bytearray(8 * self.room)).cast("q")  # of the targets

    def number_of(self, url: Url) -> int:
        """The number of a target."""
        former = self.numbers.get(url)
        if former is not None:
            return former
        number = self.numbers[url] = len(self.urls)
        self.urls.append(url)
        self.identities.add(number)
        if number == self.room:
            self.room *= 2
            ids = memoryview(bytearray(8 * self.room)).cast("q")
            ids[:number] = self.ids
            self.ids = ids
        self.ids[number] = url_id(url)
        main = identity(url)
        if main != url:
            self.identities.values[number] = self.number_of(main)
        return number

    def is_full(self) -> bool:
        """Whether another table must be used for the next page."""
        return self.heads.count + len(self.urls) + len(self.folders) > ADDRESSES_MOST

    def folder(self, url: str) -> int:
        """The number of a folder; 0 is for heads with a host."""
        return self.folders.setdefault(url, len(self.folders) + 1)


_THREAD = local()


def _addresses() -> Addresses:
    """The table of this thread. A full table is replaced, which is cheaper than tracking the last use."""
    table: Addresses | None = getattr(_THREAD, "addresses", None)
    if table is None or table.is_full():
        table = _THREAD.addresses = Addresses()
    return table


class GatheredLinks:
    """The rows of one page while they are collected."""

    def __init__(self, base: Url, nofollow: bool, charset: str = "utf-8") -> None:
        """base: base URL of relative links.

        nofollow: of the whole page. charset: for the queries of links.
        """
        self.addresses = _addresses()
        self.resolve_against(base)
        self.nofollow = int(nofollow)
        self.charset = charset
        # by identity of the target and place; the index of the row in the columns below
        self.rows: dict[int, int] = {}
        self.targets = NumberColumn(64)  # first spelling of each
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
        self.folder_number = self.addresses.folder(self.folder)
        self.root_number = self.addresses.folder(root_of(base))

    def add(self, href: str, place: Place, anchor: str = "", at: int = LAST) -> None:
        """Records a link with this href, if it is valid. at: see `add_row`."""
        self.add_parts(*parts_of(href), place, anchor, at)

    def add_parts(self, href: str, head: bytes, fragment: str, place: Place, anchor: str, at: int = LAST) -> None:
        """As `add`, for the results of `parts_of`."""
        target = INVALID if len(href) > HREF_CHARS else self.target_at(head, 0, len(head), place)
        if target == INVALID:
            self.add_bad(href, place, anchor)
        elif target != NOTHING:
            row = self.add_row(target, place, 1, anchor[:ANCHOR_CHARS], at)
            if fragment and row >= 0:
                self._add_pieces(row, [(at, fragment)])

    def add_row(self, target: int, place: Place, count: int, anchor: str, at: int) -> int:
        """Records links to a target. Returns the row, or -1 if the limit is reached.

        at: sort key of the anchor; the first anchor is kept.
        """
        place |= self.nofollow
        link = self.addresses.identities.values[target]
        link = link << PLACE_BITS | place
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
        self.targets.add(target)
        self.anchors.append(anchor)
        self.orders.append(at)
        self.fragments.append("")
        self.places.add(place)
        self.counts.add(count)
        return row

    def target_at(self, chars: bytes | memoryview, start: int, end: int, place: Place) -> int:
        """The number of the target of a head: a href without surrounding spaces and fragment.

        NOTHING: nothing is fetched for it. INVALID: it is no link.
        """
        size = end - start
        if not size or size > CACHED_BYTES:
            return self._resolve(_text(chars, start, end), place)
        folder, addresses = self.folder_number, self.addresses
        if chars[start] == SLASH and (size == 1 or chars[start + 1] != SLASH):
            folder = self.root_number
        elif size > 8 and (stands_at(chars, start, HTTP, 0, 7) or stands_at(chars, start, HTTPS, 0, 8)):
            folder = 0
        number = addresses.heads.number(folder, chars, start, end)
        if number < 0:
            number = -number
            addresses.targets.add(UNKNOWN)
        target = addresses.targets.values[number - 1]
        if target == UNKNOWN:
            head = _text(chars, start, end)
            target = self._resolve(head, place)
            if (
                _FOLDER_HEAD.match(head)
                and head[len(head) - 1] > " "
                and ("?" not in head or (head.isascii() and head.isprintable()))
            ):
                addresses.targets.values[number - 1] = target
        return target

    def _resolve(self, head: str, place: Place) -> int:
        """As `target_at`."""
        if not head:
            return self.addresses.number_of(self.base) if place >> KIND_SHIFT in _PAGE_CODES else NOTHING
        written = head if head.isascii() and head.isprintable() else with_query_in(self.charset, head)
        try:
            # the `#` protects a trailing space, from which a fragment was cut
            return self.addresses.number_of(resolve(written + "#", self.base)[0])
        except InvalidUrl:
            return INVALID

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
        addresses, targets = self.addresses, list[Url]()
        buffer = memoryview(bytearray(8 * size)).cast("q")
        ids = buffer
        for row in range(size):
            place, target = self.places.values[row], self.targets.values[row]
            targets.append(addresses.urls[target])
            ids[row] = addresses.ids[target]
            kinds[row], positions[row], nofollow[row] = place >> KIND_SHIFT, place >> 1 & POSITION, place & 1
        return Links(
            tuple(targets),
            bytes(kinds),
            bytes(positions),
            tuple(self.anchors),
            bytes(nofollow),
            tuple(self.fragments),
            self.counts.narrow(0, 0, 1, 0, -1),
            buffer.toreadonly(),
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
        self.heads, self.rows = self.page.heads, self.page.head_rows
        self.anchors = self.page.anchors_by_head()
        self.fragments, self.others = self.page.fragments_by_head()
        self.ranks = bytearray(len(SOURCES))  # 1 for those that have links
        for link in range(self.heads.count):
            self.ranks[RANKS[self.heads.owner(link + 1) & 0xFF]] = 1

    def add(self, rows: GatheredLinks, first: int, end: int) -> None:
        """Records the links with these ranks, rank by rank."""
        bad = list[tuple[int, int]]()
        for rank in range(first, end):
            if self.ranks[rank]:
                self._add_rank(rows, rank, bad)
        if bad:
            self._add_bad(rows, bad)

    def _add_rank(self, rows: GatheredLinks, rank: int, bad: list[tuple[int, int]]) -> int:
        heads = self.heads
        for link in range(heads.count):
            owner = heads.owner(link + 1)
            source = owner & 0xFF
            if RANKS[source] != rank:
                continue
            place = _place_of_owner(owner)
            count, order = self.rows.values[link * 2], self.first
            order |= rank << RANK_SHIFT | self.rows.values[link * 2 + 1]
            if SOURCE_IS_LIST[source]:
                for text in split_of_attribute(SOURCES[source].attribute, self.head(link)):
                    for _ in range(count):
                        rows.add(text, place, self.anchors[link], order)
                continue
            target = INVALID
            if not owner & LONG:
                target = rows.target_at(heads.text.chars, heads.start(link + 1), heads.end(link + 1), place)
            if target == INVALID:
                bad.append((rank, link))
            elif target != NOTHING:
                row = rows.add_row(target, place, count, self.anchors[link], order)
                if row >= 0:
                    rows.add_fragments(row, self, link)
        return 0

    def _add_bad(self, rows: GatheredLinks, bad: list[tuple[int, int]]) -> int:
        """Records invalid links, rank by rank, once per distinct spelling."""
        texts = [(rank, *text, link) for rank, link in bad for text in self.page.fragments_of(link)]
        for _, _, fragment, anchor, link in sorted(texts):
            rows.add_bad(self.head(link) + fragment, _place_of_owner(self.heads.owner(link + 1)), anchor)
        return 0

    def head(self, link: int) -> str:
        """The head of a link as text."""
        return _text(self.heads.text.chars, self.heads.start(link + 1), self.heads.end(link + 1))

    def pieces(self, head: int) -> list[tuple[int, str]]:
        """(position on the page, fragment as written without `#`) of each fragment of a head."""
        return [(self.first + at, text[1:]) for at, text, _ in self.page.fragments_of(head) if len(text) > 1]


def parts_of(href: str) -> tuple[str, bytes, str]:
    """(href without surrounding spaces, its head in UTF-8, its fragment)."""
    href = href.strip(C0_AND_SPACE)
    head, _, fragment = href.partition("#")
    return href, head.encode("utf-8", "surrogatepass"), fragment


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


def _text(chars: bytes | memoryview, start: int, end: int) -> str:
    return str(chars[start:end], "utf-8", "surrogatepass")


def _place_of_owner(owner: int) -> Place:
    """The place of the links of an owner: source, position, rel and length, as numbered by the reader."""
    place: Place = KIND_CODES[owner & 0xFF] << KIND_SHIFT | (owner >> 8 & 7) << 1 | (owner & NOFOLLOW > 0)
    return place


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
