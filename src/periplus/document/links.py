"""The links of a page: of which kind, in which part of it, and as rows, resolved, judged, merged and counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, islice
from operator import itemgetter
from typing import TypeAlias, TypeVar
from urllib.parse import unquote

from periplus.document import headers, whitespace
from periplus.document.formats.content import Source
from periplus.document.guess import encoding_of
from periplus.document.metadata import Metadata
from periplus.document.page_rules import (
    ANCHOR_CHARS,
    ELEMENTS_MOST,
    FIRST_SVG_SOURCE,
    HREF_CHARS,
    LONG,
    NOFOLLOW,
    SOURCES,
)
from periplus.document.reader import Reader, is_unfollowed, names_of_places, read_page, tree_of
from periplus.document.tree import PageTree
from periplus.errors import InvalidUrl
from periplus.model.audit import FragmentVerdict
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
    narrow,
)
from periplus.model.web import Url
from periplus.urls.canonical import canonical, identity, resolve, scheme_of_href

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
# An import with or without `url(`, a `url(`, an `image-set(` with all that it holds, and strings elsewhere so that what
# they hold is passed over. Source: CSS Syntax Level 3, 4.3.4 to 4.3.6; CSS Cascading 5, 2; CSS Images 4, 2.4.
_STRING = r"""(?:"([^"\n]*)"|'([^'\n]*)')"""
_OTHER_STRING = r"""(?:"[^"\n]*"|'[^'\n]*')"""
_URL = re.compile(
    rf"""(@import\s+)?url\(\s*(?:{_STRING}|([^\s"'()]+))\s*\)|@import\s*{_STRING}"""
    rf"""|image-set\(((?:{_OTHER_STRING}|\((?:{_OTHER_STRING}|[^"'()])*\)|[^"'()])*+)|{_OTHER_STRING}""",
    re.IGNORECASE,
)
_OPTION = re.compile(rf"""(?:\A|,)\s*(?:{_STRING}|url\(\s*(?:{_STRING}|([^\s"'()]+)))|{_OTHER_STRING}""", re.IGNORECASE)


def urls(sheet: str) -> Iterator[tuple[str, bool]]:
    """Each URL as written, in order, and whether it is an imported sheet. Other strings and comments hold none."""
    plain = sheet.lower()
    if "url(" not in plain and "@import" not in plain and "image-set(" not in plain:
        return
    if "/*" in sheet:
        sheet = _COMMENT.sub(" ", sheet)
    for match in _URL.finditer(sheet):
        before, *named, first, second, options = match.groups("")
        for option in _OPTION.finditer(options):
            if text := "".join(option.groups("")):
                yield text, False
        if text := "".join(named):
            yield text, bool(before)
        elif text := first or second:
            yield text, True


DIRECTIVE = ":~:"  # Text Fragments, 3.3: what follows is for the browser, never for the page
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
# GitHub and GitLab write ids with this before them and leave the rest to a script: every such link would look broken.
_SCRIPTED_PREFIX = "user-content-"
_PART = re.compile(r"text=(?:([^&,]*)-,)?([^&,-][^&,]*)(?:,([^&,-][^&,]*))?(?:,-([^&,]*))?(?=&|\Z)")


def anchors_of(text: str) -> frozenset[str]:
    """`anchors` of HTML as text."""
    return anchors(tree_of(text))


def anchors(tree: PageTree) -> frozenset[str]:
    """The names of a page's places: every `id`, and the `name` of every `a`, as they are (case matters).

    Ids within `template` count too: a script may bring them to life, and a false alarm costs more than a missed one.
    Source: HTML Living Standard, 7.4.6.4, "find a potential indicated element".
    """
    return frozenset(names_of_places(tree))


def fragment_verdict(
    fragment: str, anchors: frozenset[str], *, text: str | None = None, media_type: str = "text/html"
) -> FragmentVerdict:
    """Whether a fragment (percent-encoded, without `#`) leads anywhere on a page.

    anchors: of the target. text: the target's visible text, to look for the words of a text fragment; None: not looked
    for. Exactly as written first, then percent-decoded; empty and `top` (any case) are always there. A fragment of
    another media type is that type's business (`#page=3`), and `#/way` or `#!way` that of a script; `#//` is no such
    way. Source: HTML Living Standard, 7.4.6.4; Text Fragments (WICG), 3.3 to 3.5.
    """
    if media_type not in _HTML_TYPES:
        return FragmentVerdict.UNKNOWN
    place, mark, directive = fragment.partition(DIRECTIVE)
    verdict = _of_place(place, anchors)
    if (
        verdict in (FragmentVerdict.FOUND, FragmentVerdict.TOP)
        and mark
        and text is not None
        and not _has_words(directive, text)
    ):
        return FragmentVerdict.TEXT_MISSING
    return verdict


def _of_place(place: str, anchors: frozenset[str]) -> FragmentVerdict:
    if not place:
        return FragmentVerdict.TOP
    decoded = unquote(place)
    if place in anchors or decoded in anchors:
        return FragmentVerdict.FOUND
    if decoded.lower() == "top":
        return FragmentVerdict.TOP
    if decoded[0] in "/!" and not decoded.startswith("//"):
        return FragmentVerdict.UNKNOWN
    return FragmentVerdict.FOUND if _SCRIPTED_PREFIX + decoded in anchors else FragmentVerdict.MISSING


def _has_words(directive: str, text: str) -> bool:
    """Whether any of the text directives is in the text; true also where none is understood.

    The simple form: prefix, start, end and suffix follow one another, case and white space folded. Word boundaries are
    not asked for: they depend on the language, and what a browser finds is then found here as well.
    """
    directives = [tuple(_folded(unquote(part or "")) for part in match.groups()) for match in _PART.finditer(directive)]
    if not directives:
        return True
    folded = _folded(text)
    return any(_matches(folded, *parts) for parts in directives)


def _folded(text: str) -> str:
    return whitespace.folded(text).casefold()


def _matches(text: str, prefix: str, start: str, end: str, suffix: str) -> bool:
    """Whether prefix start ...

    end suffix stands in the text; empty ones are not asked for. Linear for each occurrence of start.
    """
    place = text.find(start)
    while place >= 0:
        after = place + len(start)
        if not prefix or text[max(place - len(prefix) - 1, 0) : place].rstrip().endswith(prefix):
            if not end:
                if not suffix or text[after : after + len(suffix) + 1].lstrip().startswith(suffix):
                    return True
            else:
                return _ends(text, after, end, suffix)
        place = text.find(start, place + 1)
    return False


def _ends(text: str, after: int, end: str, suffix: str) -> bool:
    place = text.find(end, after)
    while place >= 0:
        behind = place + len(end)
        if not suffix or text[behind : behind + len(suffix) + 1].lstrip().startswith(suffix):
            return True
        place = text.find(end, place + 1)
    return False


ROWS_MOST = 20_000  # distinct ones of one page; what is beyond is not recorded
BAD_ROWS_MOST = 2_000
BAD_TEXT_CHARS = 2_000  # as the model says
FRAGMENTS_MOST = 20_000  # of one row
_DOCUMENT_SHIFT, _RANK_SHIFT, _LAST = 32, 24, 1 << 62  # the order of anchors: document, source, place on the page
_CACHED_CHARS = 300  # bounds the caches below to some 20 MB

_KIND_SHIFT, _POSITION = 8, 0x7F  # of a place: the kind's code, then seven bits of the position's, then nofollow

# an empty href is the page itself, `#x` a place in it
_PAGES = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FORM})
_PAGE_CODES = frozenset(map(LINK_KIND_CODES.__getitem__, _PAGES))
_NAMES = _PAGES | {LinkKind.REFRESH, LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.RELATED}
_CONTENT_IN_PLACE = frozenset({"data", "about", "blob"})  # where a part is embedded these are its content, no link

_C0_AND_SPACE = "".join(map(chr, range(0x21)))
# percent-encoding leaves them as they are
_PLAIN_FRAGMENTS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/()-"
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.~%-][^:\\\t\n\r]*")  # relative, and not a mere query
_ANYWHERE = Url("http://localhost/")
_Element = TypeVar("_Element")


Place: TypeAlias = int
"""What tells links to one target apart: kind, position and nofollow in one number, since one is made per link."""


def place_of(kind: LinkKind, position: Position, nofollow: bool = False) -> Place:
    """Of links of that kind, in that part of a page."""
    return LINK_KIND_CODES[kind] << _KIND_SHIFT | POSITION_CODES[position] << 1 | nofollow


def _parts_of(place: Place) -> tuple[LinkKind, Position]:
    return LINK_KINDS[place >> _KIND_SHIFT], POSITIONS[place >> 1 & _POSITION]


class GatheredLinks:
    """The rows of one page while they are gathered."""

    def __init__(self, base: Url, nofollow: bool, charset: str = "utf-8") -> None:
        """base: what relative links are resolved against.

        nofollow: of the whole page. charset: of the links' queries.
        """
        self.resolve_against(base)
        self._nofollow = nofollow
        self._charset = charset
        self._rows: dict[tuple[Url, Place], int] = {}  # by the target's identity; the row's place in the lists below
        self._targets: list[Url] = []  # as each was met first
        self._anchors: list[str] = []
        self._orders: list[int] = []  # of the anchors: see add_head
        self._counts: list[int] = []
        self._fragments: list[dict[str, int]] = []  # as written, each with its place on the page
        self._merged: set[int] = set()  # rows of several hrefs, fragments aside
        self._bad: dict[tuple[str, Place, str], str] = {}
        self._bounds: dict[str, None] = {}
        self._documents = 0

    def first(self, elements: Sequence[_Element]) -> Sequence[_Element]:
        """As many elements of one tag as are looked at."""
        if len(elements) <= ELEMENTS_MOST:
            return elements
        self.meet_elements_most()
        return elements[:ELEMENTS_MOST]

    def meet_elements_most(self) -> None:
        """Records that not all elements of one kind were looked at."""
        self._bounds[f"more than {ELEMENTS_MOST:,} elements of one kind with links"] = None

    def next_document(self) -> int:
        """The number of the document whose links are added now: an embedded one comes after its page."""
        self._documents += 1
        return self._documents

    def bounds(self) -> tuple[str, ...]:
        """Which bounds were met: what lies behind them is not among the rows."""
        fragments = f"more than {FRAGMENTS_MOST:,} places of one page linked to"
        return (
            *self._bounds,
            *([fragments] if max(map(len, self._fragments), default=0) > FRAGMENTS_MOST else ()),
        )

    def resolve_against(self, base: Url) -> None:
        """From now on."""
        self._base = base
        self._folder = Url(base[: base.partition("?")[0].rindex("/") + 1])

    def add(self, href: str, place: Place, anchor: str = "", at: int = _LAST) -> None:
        """Records one link that stood there as href, if it is one. at: as below."""
        href = href.strip(_C0_AND_SPACE)
        head, _, fragment = href.partition("#")
        if len(href) > HREF_CHARS or not self.add_head(head, place, 1, anchor, at, {fragment: at} if fragment else {}):
            self.add_bad(href, place, anchor)

    def add_head(self, head: str, place: Place, count: int, anchor: str, at: int, fragments: dict[str, int]) -> bool:
        """Records links to one head, a href without spaces around and without fragment. False: they are bad ones.

        at: the anchor's place among all, of which the first counts. fragments: with their places, in their order;
        without `#`, none empty. They become the row's.
        """
        if not head and place >> _KIND_SHIFT not in _PAGE_CODES:
            return True  # nothing is fetched for it
        try:
            if not head.isascii() or not head.isprintable():
                head = with_query_in(self._charset, head)
            # most from the cache, since the menu of a site is on all its pages
            targets = _below(self._folder, head) if head and len(head) <= _CACHED_CHARS else None
            target, key = targets or self._target(head)
        except InvalidUrl:
            return False
        link = key, place | self._nofollow
        row = self._rows.get(link)
        if row is None:
            row = len(self._targets)
            if row >= ROWS_MOST:
                self._bounds[f"more than {ROWS_MOST:,} distinct links"] = None
                return True
            self._rows[link] = row
            self._targets.append(target)
            self._anchors.append(anchor)
            self._orders.append(at)
            self._counts.append(count)
            self._fragments.append(fragments)
        else:
            self._merge(row, count, anchor, at, fragments)
        return True

    def _merge(self, row: int, count: int, anchor: str, at: int, fragments: dict[str, int]) -> None:
        """More links of a row."""
        self._counts[row] += count
        self._merged.add(row)
        if anchor and (not self._anchors[row] or at < self._orders[row]):
            self._anchors[row], self._orders[row] = anchor, at
        former = self._fragments[row]
        for fragment, order in fragments.items():
            if former.get(fragment, order) >= order:
                former[fragment] = order

    def _target(self, head: str) -> tuple[Url, Url]:
        """What a href without its fragment leads to, and its identity."""
        # the `#` guards a space at the end, which a fragment was cut from
        return _with_identity(resolve(head + "#", self._base)[0] if head else self._base)

    def add_bad(self, href: str, place: Place, anchor: str) -> None:
        """Records what stood there as href and is no link."""
        place |= self._nofollow
        scheme = scheme_of_href(href)
        if scheme in _CONTENT_IN_PLACE and _parts_of(place)[0] not in _NAMES:
            return
        why = "malformed" if scheme in ("", "http", "https") else scheme
        key = (href[:BAD_TEXT_CHARS], place, why)
        if key in self._bad or len(self._bad) < BAD_ROWS_MOST:
            self._bad[key] = self._bad.get(key) or anchor
        else:
            self._bounds[f"more than {BAD_ROWS_MOST:,} distinct links that are none"] = None

    def links(self) -> Links:
        """The links, in the order in which the first of each was added."""
        if not self._targets:
            return NO_LINKS
        places = [place for _, place in self._rows]
        return Links(
            tuple(self._targets),
            bytes([place >> _KIND_SHIFT for place in places]),
            bytes([place >> 1 & _POSITION for place in places]),
            tuple([anchor[:ANCHOR_CHARS] for anchor in self._anchors]),
            bytes([place & 1 for place in places]),
            self._fragments_encoded(),
            narrow(self._counts),
        )

    def _fragments_encoded(self) -> tuple[tuple[str, ...], ...]:
        """Those of each row as they stand in a canonical URL, distinct, in the order of the page."""
        fragments = self._fragments
        if self._merged:
            fragments = [
                dict(sorted(row.items(), key=itemgetter(1))) if place in self._merged else row
                for place, row in enumerate(fragments)
            ]
        if max(map(len, fragments)) <= FRAGMENTS_MOST and _are_plain("".join(chain.from_iterable(fragments))):
            return tuple(map(tuple, fragments))
        return tuple(map(_encoded, fragments))

    def bad_links(self) -> tuple[BadLink, ...]:
        """Distinct texts that are no links, in order."""
        return tuple(
            BadLink(text, *_parts_of(place), anchor[:ANCHOR_CHARS], why)
            for (text, place, why), anchor in self._bad.items()
        )


def with_query_in(charset: str, href: str) -> str:
    """A href, its query as a browser sends it from a page in that charset: `?q=č` of windows-1250 is `?q=%E8`."""
    address, sharp, fragment = href.partition("#")
    head, mark, query = address.partition("?")
    encoding = encoding_of(charset) if query else None
    return head + mark + encoding.url_query(query) + sharp + fragment if encoding else href


def _are_plain(fragments: str) -> bool:
    """Whether they stand in a canonical URL as they are."""
    return fragments.isascii() and not fragments.encode().translate(None, _PLAIN_FRAGMENTS)


def _encoded(fragments: Iterable[str]) -> tuple[str, ...]:
    first = tuple(islice(fragments, FRAGMENTS_MOST))
    if _are_plain("".join(first)):
        return first
    return tuple(dict.fromkeys(filter(None, (resolve("#" + fragment, _ANYWHERE)[1] for fragment in first))))


@lru_cache(maxsize=16_384)
def _below(folder: Url, head: str) -> tuple[Url, Url] | None:
    """resolve, with the target's identity, for heads that take nothing from a base but its folder; None for others.
    Raises InvalidUrl."""
    if head[-1] <= " ":
        return None
    if _PLAIN_PATH.fullmatch(head):
        return _with_identity(resolve(head, folder)[0])
    if head.startswith("/") and head[1:2] not in ("/", "\\", "\t", "\n", "\r"):
        return _anywhere(head, Url(folder[: folder.index("/", 8) + 1]))
    return _anywhere(head, _ANYWHERE) if head.startswith(("http://", "https://")) else None


@lru_cache(maxsize=16_384)
def _anywhere(head: str, base: Url) -> tuple[Url, Url]:
    """resolve, with the target's identity, for heads that mean the same in each folder of a host."""
    return _with_identity(resolve(head, base)[0])


def _with_identity(target: Url) -> tuple[Url, Url]:
    return target, identity(target)


LANGUAGE_CHARS = 35  # RFC 5646, 4.4.1: more than any sensible tag has
_IMAGE, _HEAD = LinkKind.IMAGE, Position.HEAD
_REFRESH, _IMAGE_IN_HEAD, _SHEET = (place_of(kind, _HEAD) for kind in (LinkKind.REFRESH, _IMAGE, LinkKind.STYLE))
# of each source the first one of its tag: links are recorded element by element
_FIRSTS = {(source.tag, place >= FIRST_SVG_SOURCE): place for place, source in reversed(list(enumerate(SOURCES)))}
_RANKS = [_FIRSTS[source.tag, place >= FIRST_SVG_SOURCE] for place, source in enumerate(SOURCES)]
_CANDIDATE = re.compile(r"[\s,]*([^\s,]\S*)")  # of a srcset: a URL before its width or density


def rows_of(page: Reader, source: Source, metadata: Metadata) -> GatheredLinks:
    """The links of an HTML page, merged, and what is no link: in the order of the table, then of the page."""
    rows = GatheredLinks(source.url, metadata.nofollow, source.charset)
    add_document(rows, page, source.url, metadata.refreshes)
    for inner in page.frames.strings("\0"):
        # documents within that one are left out: each would be read once more for each that it is in
        if inner:
            add_document(rows, read_page(inner), _base(page, source.url))
    add_headers(rows, source)
    return rows


def add_document(rows: GatheredLinks, page: Reader, url: Url, refreshes: Iterable[str] = ()) -> None:
    """The links of a page of HTML that is found at url. refreshes: targets of meta refresh, as written."""
    rows.resolve_against(_base(page, url))
    if page.too_many:
        rows.meet_elements_most()
    links = _PageLinks(rows, page)
    links.add(0, 1)
    _add_link_elements(rows, page)
    for target in refreshes:
        rows.add(target, _REFRESH)
    links.add(1, len(SOURCES) if page.svg_count else FIRST_SVG_SOURCE)
    _add_styles(rows, page)


class _PageLinks:
    """The links of a page's elements, as the reader counted them: by what they lead to, fragments aside."""

    def __init__(self, rows: GatheredLinks, page: Reader) -> None:
        self.rows = rows
        self.first = rows.next_document() << _DOCUMENT_SHIFT
        self.heads, self.owners, self.counts, self.anchor_places, self.anchors = page.links_by_head()
        self.parts = list(map(_part, self.owners))
        self.fragments: dict[int, dict[str, int]] = {}  # without `#`, by the number of their head, from 1 on
        self.texts, self.text_heads, self.own_anchors = page.fragments()
        number, of_head = 0, dict[str, int]()
        for order, (text, other) in enumerate(zip(self.texts, self.text_heads, strict=True), self.first):
            if len(text) > 1:
                if other != number:  # those of one head mostly follow one another
                    number, of_head = other, self.fragments.setdefault(other, {})
                of_head[text[1:]] = order

    def add(self, first: int, end: int) -> None:
        """Records those of some ranks, rank by rank."""
        parts, bad, rows = self.parts, dict[int, int](), self.rows
        heads, counts, places, anchors, fragments = (
            self.heads,
            self.counts,
            self.anchor_places,
            self.anchors,
            self.fragments,
        )
        chosen = [link for link, part in enumerate(parts) if first <= part[0] < end]
        if end - first > 1:
            chosen.sort(key=lambda link: parts[link][0])
        for link in chosen:
            rank, place, split, is_long = parts[link]
            at = places[link]
            order = self.first | rank << _RANK_SHIFT | at
            anchor = anchors[at - 1] if at else ""
            if split is not None:
                for text in split(heads[link]):
                    for _ in range(counts[link]):
                        rows.add(text, place, anchor, order)
            elif is_long or not rows.add_head(
                heads[link], place, counts[link], anchor, order, fragments.get(link + 1) or {}
            ):
                bad[link + 1] = rank
        if bad:
            self._add_bad(bad)

    def _add_bad(self, ranks: dict[int, int]) -> None:
        """Records what is no link, by number from 1 on, rank by rank, each as often as it stands there differently."""
        texts = enumerate(zip(self.texts, self.text_heads, strict=True))
        for _, entry, number, fragment in sorted(
            (ranks[number], entry, number, text) for entry, (text, number) in texts if number in ranks
        ):
            at = self.own_anchors[entry]
            anchor = self.anchors[at - 1] if at else ""
            self.rows.add_bad(self.heads[number - 1] + fragment, self.parts[number - 1][1], anchor)


@cache
def _part(owner: int) -> tuple[int, Place, Callable[[str], Iterable[str]] | None, bool]:
    """Of links of one owner (source, position, rel, length, as the reader numbers them): their rank, their place, what
    splits a list of them, and whether they are too long to be links."""
    source = owner & 0xFF
    kind, split = _HOW[source]
    return _RANKS[source], place_of(kind, POSITIONS[owner >> 8 & 7], bool(owner & NOFOLLOW)), split, bool(owner & LONG)


def translations_of(page: Reader, source: Source) -> tuple[tuple[str, Url], ...]:
    """(hreflang as written, where its page is) of the `link rel=alternate` elements that name a language."""
    translations = []
    for rel, href, language, *_ in _link_elements(page):
        if language and "alternate" in rel.lower().split():
            try:
                href_sent = with_query_in(source.charset, href)
                translations.append((language.strip()[:LANGUAGE_CHARS], canonical(href_sent, _base(page, source.url))))
            except InvalidUrl:
                continue  # a bad link, and told there
    return tuple(dict.fromkeys(translations))


def _base(page: Reader, url: Url) -> Url:
    """Source: HTML Living Standard, 4.2.3: the first base element with href, unless its URL cannot be used."""
    if page.base:
        try:
            return canonical(page.base, url)
        except InvalidUrl:
            pass
    return url


def _link_elements(page: Reader) -> Iterable[tuple[str, ...]]:
    """(rel, href, hreflang, as, title, imagesrcset) of each `link`."""
    values = iter(page.links.strings("\0"))
    return zip(values, values, values, values, values, values, strict=True)


def _add_link_elements(rows: GatheredLinks, page: Reader) -> None:
    for rel, href, _, loaded_as, title, srcset in _link_elements(page):
        if srcset:
            for text in _of_srcset(srcset):
                rows.add(text, _IMAGE_IN_HEAD)
        if href:
            for place in _places_of_rel(rel, loaded_as if "fetch" in rel or "load" in rel else ""):
                rows.add(href, place, title)


@lru_cache(maxsize=256)
def _places_of_rel(rel: str, loaded_as: str) -> tuple[Place, ...]:
    nofollow = is_unfollowed(rel.encode("utf-8", "surrogatepass"))
    return tuple([place_of(kind, _HEAD, nofollow) for kind in headers.kinds_of_rel(rel, loaded_as)])


def _add_styles(rows: GatheredLinks, page: Reader) -> None:
    """Style elements, style attributes and the background attribute of old."""
    for sheet in page.sheets.strings("\0"):
        for text, imported in urls(sheet):
            rows.add(text, _SHEET if imported else _IMAGE_IN_HEAD)
    values = iter(page.styles.strings("\0"))
    for position, style, background in zip(values, values, values, strict=True):
        texts = [text for text, _ in urls(style)]
        for text in (*texts, background) if background else texts:
            rows.add(text, place_of(_IMAGE, POSITIONS[int(position)]))


def _of_srcset(value: str) -> Iterator[str]:
    """Source: HTML Living Standard, 4.8.4.3.4. A URL may hold commas, but neither begin nor end with one."""
    place = 0
    while place >= 0 and (match := _CANDIDATE.match(value, place)):
        text = match[1].rstrip(",")
        yield text
        place = match.end() if text != match[1] else value.find(",", match.end())


def _of_archive(value: str) -> Iterable[str]:
    return value.split(",")


_HOW: list[tuple[LinkKind, Callable[[str], Iterable[str]] | None]] = [
    (
        source.kind,
        _of_srcset if source.attribute.endswith("srcset") else _of_archive if source.attribute == "archive" else None,
    )
    for source in SOURCES
]
"""Of each source, the kind of its links, and what splits a list of them."""


def add_headers(rows: GatheredLinks, source: Source) -> None:
    """The Link and Refresh headers, resolved against the page itself: a base element is the document's,
    not the server's.
    """
    for text, kind in headers.links(source.headers):
        try:
            whole = "#".join(resolve(text, source.url))
        except InvalidUrl:
            whole = text  # rows will say why
        rows.add(whole, place_of(kind, _HEAD))
