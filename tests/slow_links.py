"""The links of a page, asked of turbohtml's tree question by question: part of the slow twin of `document.reader`."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, repeat
from typing import TypeVar

import slow_html as html
from periplus.document import headers
from periplus.document.formats.content import Source
from periplus.document.link_rows import with_query_in
from periplus.document.links import urls
from periplus.document.metadata import Metadata
from periplus.errors import InvalidUrl
from periplus.model.page import (
    LINK_KIND_CODES,
    NO_LINKS,
    POSITION_CODES,
    BadLink,
    LinkKind,
    Links,
    Position,
    narrow,
)
from periplus.model.web import Url
from periplus.urls.canonical import canonical, identity, resolve, scheme_of_href

TITLE_CHARS, DESCRIPTION_CHARS, META_MOST = 2_000, 5_000, 500
Place = tuple[LinkKind, Position, bool]

TAGS = {
    "nav": Position.NAV,
    "main": Position.MAIN,
    "aside": Position.ASIDE,
    "header": Position.HEADER,
    "footer": Position.FOOTER,
}
ROLES = {
    "navigation": Position.NAV,
    "banner": Position.HEADER,
    "main": Position.MAIN,
    "complementary": Position.ASIDE,
    "contentinfo": Position.FOOTER,
}
SECTION_TAGS = frozenset({"article", "aside", "main", "nav", "section"})
_SECTIONS = ",".join(sorted(SECTION_TAGS))
_BODY = Position.BODY  # an enum's own look-up takes 0.2 us
_MOST = 64  # landmarks of one page that are heeded: real pages have 0 to 12, and more would make hostile ones dear
_FEW = 10**9  # elements whose ancestors are searched one by one: 0.4 us each, where each landmark costs 5

Landmarks = Sequence[tuple[html.Element, Position]]


def landmarks(tree: html.Tree, with_roles: Iterable[html.Element]) -> Landmarks:
    """The page's landmarks, outer before inner, its head among them. with_roles: all elements that have a role."""
    marks: dict[html.Element, Position] = dict.fromkeys(html.elements(tree, "head")[:1], Position.HEAD)
    for tag, position in TAGS.items():
        for element in html.elements(tree, tag)[:_MOST]:
            if tag not in ("header", "footer") or html.closest(element, _SECTIONS) is None:
                marks[element] = position
    for element in with_roles:
        role = ROLES.get(html.attribute(element, "role").strip().lower())
        if role is not None and len(marks) < _MOST:
            marks[element] = role
    return sorted(marks.items(), key=lambda item: html.depth(item[0])) if len(marks) > 1 else list(marks.items())


def positions(elements: Sequence[html.Element], tag: str, marks: Landmarks) -> Iterable[Position]:
    """The position of each element.

    elements: all of that tag, or the first of them, in the document's order.
    """
    if not marks:
        return repeat(Position.BODY, len(elements))
    if len(elements) <= _FEW:
        return _by_ancestors(elements, dict(marks))
    places = [Position.BODY] * len(elements)
    for element, position in marks:
        first = html.first(element, tag)
        if first is not None and first in elements:
            start = elements.index(first)
            # What a landmark holds follows in one piece, so its end is found by halving: 5 us where a
            # walk through it took 40.
            end = bisect_left(elements, True, start, key=lambda other: not html.is_within(other, element))
            places[start:end] = [position] * (end - start)
    return places


def _by_ancestors(elements: Sequence[html.Element], marks: dict[html.Element, Position]) -> list[Position]:
    selector = "head,nav,header,main,aside,footer,[role]"
    places = []
    for element in elements:
        around = html.closest(element, selector)
        while around is not None and around not in marks:
            around = html.closest_above(around, selector)
        places.append(_BODY if around is None else marks[around])
    return places


ROWS_MOST = 20_000  # distinct ones of one page; what is beyond is not recorded
# of one tag on one page; a reference of 421 pages has 30,000 links, and more than these take 3 s
ELEMENTS_MOST = 200_000
BAD_ROWS_MOST = 2_000
HREF_CHARS = 65_536  # a longer one is malformed: no server takes it
ANCHOR_CHARS = 1_000  # for an `a` around a whole card or article
BAD_TEXT_CHARS = 2_000  # as the model says
FRAGMENTS_MOST = 20_000  # of one row
_CACHED_CHARS = 300  # bounds the caches below to some 20 MB

# an empty href is the page itself, `#x` a place in it
_PAGES = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FORM})
_NAMES = _PAGES | {LinkKind.REFRESH, LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.RELATED}
_CONTENT_IN_PLACE = frozenset({"data", "about", "blob"})  # where a part is embedded these are its content, no link

_C0_AND_SPACE = "".join(map(chr, range(0x21)))
_PLAIN_FRAGMENTS = re.compile(r"[A-Za-z0-9_.:/()-]*")  # percent-encoding leaves it as it is
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.~%-][^:\\\t\n\r]*")  # relative, and not a mere query
_ANYWHERE = Url("http://localhost/")
_Element = TypeVar("_Element")


Place = tuple[LinkKind, Position, bool]
"""What tells links to one target apart: kind, position, nofollow. A plain tuple: one is made per link."""


@dataclass(slots=True)
class LinkDraft:
    """A Link in the making."""

    target: Url  # as it was met first
    anchor: str
    count: int
    fragments: dict[str, None]  # as written


class GatheredLinks:
    """The rows of one page while they are gathered."""

    def __init__(self, base: Url, nofollow: bool, charset: str = "utf-8") -> None:
        """base: what relative links are resolved against.

        nofollow: of the whole page. charset: of the links' queries.
        """
        self.resolve_against(base)
        self._nofollow = nofollow
        self._charset = charset
        self._rows: dict[tuple[Url, Place], LinkDraft] = {}
        self._bad: dict[tuple[str, Place, str], str] = {}
        self._bounds: dict[str, None] = {}

    def first(self, elements: Sequence[_Element]) -> Sequence[_Element]:
        """As many elements of one tag as are looked at."""
        if len(elements) <= ELEMENTS_MOST:
            return elements
        self._bounds[f"more than {ELEMENTS_MOST:,} elements of one kind with links"] = None
        return elements[:ELEMENTS_MOST]

    def bounds(self) -> tuple[str, ...]:
        """Which bounds were met: what lies behind them is not among the rows."""
        fragments = f"more than {FRAGMENTS_MOST:,} places of one page linked to"
        return (
            *self._bounds,
            *([fragments] if any(len(row.fragments) > FRAGMENTS_MOST for row in self._rows.values()) else ()),
        )

    def resolve_against(self, base: Url) -> None:
        """From now on."""
        self._base = base
        self._folder = Url(base[: base.partition("?")[0].rindex("/") + 1])

    def add(self, href: str, place: Place, anchor: str = "") -> LinkDraft | None:
        """Records one link that stood there as href. None when it is no link, or one too many."""
        href = href.strip(_C0_AND_SPACE)
        head, _, fragment = href.partition("#")
        if not head and place[0] not in _PAGES:
            return None
        if self._nofollow:
            place = (place[0], place[1], True)
        try:
            if len(href) > HREF_CHARS:
                raise InvalidUrl("longer than any server takes")
            target = self._target(head if head.isascii() and head.isprintable() else with_query_in(self._charset, head))
        except InvalidUrl:
            self._add_bad(href, place, anchor)
            return None
        key = identity(target), place
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= ROWS_MOST:
                self._bounds[f"more than {ROWS_MOST:,} distinct links"] = None
                return None
            row = self._rows[key] = LinkDraft(target, anchor, 1, {})
        else:
            row.count += 1
            row.anchor = row.anchor or anchor
        if fragment:
            row.fragments[fragment] = None
        return row

    def _target(self, head: str) -> Url:
        """What a href without its fragment leads to; most from the cache,
        since the menu of a site is on all its pages.
        """
        if not head:
            return self._base
        if len(head) <= _CACHED_CHARS and (target := _below(self._folder, head)):
            return target
        return resolve(head + "#", self._base)[0]  # the `#` guards a space at the end, which a fragment was cut from

    def _add_bad(self, href: str, place: Place, anchor: str) -> None:
        scheme = scheme_of_href(href)
        if scheme in _CONTENT_IN_PLACE and place[0] not in _NAMES:
            return
        why = "malformed" if scheme in ("", "http", "https") else scheme
        key = (href[:BAD_TEXT_CHARS], place, why)
        if key in self._bad or len(self._bad) < BAD_ROWS_MOST:
            self._bad[key] = self._bad.get(key) or anchor
        else:
            self._bounds[f"more than {BAD_ROWS_MOST:,} distinct links that are none"] = None

    def links(self) -> Links:
        """The links, in the order in which the first of each was added."""
        if not self._rows:
            return NO_LINKS
        kinds, positions, nofollow = zip(*[place for _, place in self._rows], strict=True)
        rows = self._rows.values()
        return Links(
            tuple([row.target for row in rows]),
            bytes(map(LINK_KIND_CODES.__getitem__, kinds)),
            bytes(map(POSITION_CODES.__getitem__, positions)),
            tuple([row.anchor[:ANCHOR_CHARS] for row in rows]),
            bytes(nofollow),
            tuple([" ".join(_encoded(row.fragments)) if row.fragments else "" for row in rows]),
            narrow([row.count for row in rows]),
        )

    def bad_links(self) -> tuple[BadLink, ...]:
        """Distinct texts that are no links, in order."""
        return tuple(
            BadLink(text, kind, position, anchor[:ANCHOR_CHARS], why)
            for (text, (kind, position, _), why), anchor in self._bad.items()
        )


def _encoded(fragments: Iterable[str]) -> tuple[str, ...]:
    """Fragments as they stand in a canonical URL, distinct."""
    first = tuple(islice(fragments, FRAGMENTS_MOST))
    if _PLAIN_FRAGMENTS.fullmatch("".join(first)):
        return first
    return tuple(dict.fromkeys(filter(None, (resolve("#" + fragment, _ANYWHERE)[1] for fragment in first))))


@lru_cache(maxsize=16_384)
def _below(folder: Url, head: str) -> Url | None:
    """resolve, for heads that take nothing from a base but its folder; None for others. Raises InvalidUrl."""
    if head[-1] <= " ":
        return None
    if _PLAIN_PATH.fullmatch(head):
        return resolve(head, folder)[0]
    if head.startswith("/") and head[1:2] not in ("/", "\\", "\t", "\n", "\r"):
        return _anywhere(head, Url(folder[: folder.index("/", 8) + 1]))
    return _anywhere(head, _ANYWHERE) if head.startswith(("http://", "https://")) else None


@lru_cache(maxsize=16_384)
def _anywhere(head: str, base: Url) -> Url:
    """resolve, for heads that mean the same in each folder of a host."""
    return resolve(head, base)[0]


# What an element may name, by element. `a` and `link` have functions of their own.
_ANCHOR, _HEAD = LinkKind.ANCHOR, Position.HEAD  # an enum's own look-up takes 0.2 us
_IMAGE, _MEDIA, _OBJECT, _CITE, _FORM = LinkKind.IMAGE, LinkKind.MEDIA, LinkKind.OBJECT, LinkKind.CITE, LinkKind.FORM
_LAZY = ("src", "srcset", "data-src", "data-srcset", "data-original", "data-lazy-src")
_PARTS: dict[str, tuple[tuple[str, LinkKind], ...]] = {
    "area": (("href", LinkKind.AREA),),
    "frame": (("src", LinkKind.FRAME), ("longdesc", LinkKind.RELATED)),
    "iframe": (("src", LinkKind.IFRAME), ("data-src", LinkKind.IFRAME), ("longdesc", LinkKind.RELATED)),
    "form": (("action", _FORM),),
    "button": (("formaction", _FORM),),
    "input": (("formaction", _FORM), ("src", _IMAGE)),
    "img": (*((name, _IMAGE) for name in _LAZY), ("longdesc", LinkKind.RELATED)),
    "source": (("src", _MEDIA), ("srcset", _IMAGE), ("data-srcset", _IMAGE)),
    "video": (("src", _MEDIA), ("poster", _MEDIA)),
    "audio": (("src", _MEDIA),),
    "track": (("src", _MEDIA),),
    "bgsound": (("src", _MEDIA),),
    "embed": (("src", _OBJECT),),
    "object": (("data", _OBJECT),),
    "applet": (("code", _OBJECT), ("archive", _OBJECT)),
    "html": (("manifest", _OBJECT),),
    "script": (("src", LinkKind.SCRIPT),),
    "blockquote": (("cite", _CITE),),
    "q": (("cite", _CITE),),
    "ins": (("cite", _CITE),),
    "del": (("cite", _CITE),),
}
_SVG_PARTS: dict[str, tuple[tuple[str, LinkKind], ...]] = {
    "a": (("xlink:href", LinkKind.ANCHOR),),
    "image": (("href", _IMAGE), ("xlink:href", _IMAGE)),
    "use": (("href", _IMAGE), ("xlink:href", _IMAGE)),
    "feImage": (("href", _IMAGE), ("xlink:href", _IMAGE)),
    "script": (("href", LinkKind.SCRIPT), ("xlink:href", LinkKind.SCRIPT)),
}
# one walk for what may stand on any element
_ATTRIBUTES_OF_ANY = '[role],[background],[style*="url(" i],[style*="image-set(" i]'
_CANDIDATE = re.compile(r"[\s,]*([^\s,]\S*)")  # of a srcset: a URL before its width or density
_WITH_REL = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FORM})
_UNFOLLOWED = frozenset({"nofollow", "ugc", "sponsored"})


def rows_of(tree: html.Tree, source: Source, metadata: Metadata) -> GatheredLinks:
    """The links of an HTML page, merged, and what is no link: in the order of the table, then of the page."""
    rows = GatheredLinks(source.url, metadata.nofollow, source.charset)
    add_document(rows, tree, source.url, metadata.refreshes)
    for frame in rows.first(html.elements(tree, "iframe")):
        # documents within that one are left out: each would be read once more for each that it is in
        if inner := frame.attr("srcdoc"):
            add_document(rows, html.parse(inner), _base(tree, source.url))
    add_headers(rows, source)
    return rows


def add_document(rows: GatheredLinks, tree: html.Tree, url: Url, refreshes: Iterable[str] = ()) -> None:
    """The links of a tree of HTML that is found at url. refreshes: targets of meta refresh, as written."""
    rows.resolve_against(_base(tree, url))
    special = rows.first(html.select(tree, _ATTRIBUTES_OF_ANY))
    marks = landmarks(tree, special)
    _add_anchors(rows, tree, marks)
    _add_link_elements(rows, tree)
    for target in refreshes:
        rows.add(target, (LinkKind.REFRESH, Position.HEAD, False))
    for table in (_PARTS, _SVG_PARTS) if html.elements(tree, "svg") else (_PARTS,):
        for tag, parts in table.items():
            if elements := html.elements(tree, tag):
                _add_parts(rows, rows.first(elements), parts, marks)
    _add_styles(rows, tree, special, marks)


def translations_of(tree: html.Tree, source: Source) -> tuple[tuple[str, Url], ...]:
    """(hreflang as written, where its page is) of the `link rel=alternate` elements that name a language."""
    elements = html.elements(tree, "link")[:ELEMENTS_MOST]
    translations = []
    for element, language in zip(elements, html.attributes(elements, "hreflang"), strict=True):
        if language and "alternate" in html.attribute(element, "rel").lower().split():
            try:
                href = with_query_in(source.charset, html.attribute(element, "href"))
                translations.append((language.strip()[:35], canonical(href, _base(tree, source.url))))
            except InvalidUrl:
                continue  # a bad link, and told there
    return tuple(dict.fromkeys(translations))


def _base(tree: html.Tree, url: Url) -> Url:
    """Source: HTML Living Standard, 4.2.3: the first base element with href, unless its URL cannot be used."""
    for element in html.elements(tree, "base"):
        if href := element.attr("href"):
            try:
                return canonical(href, url)
            except InvalidUrl:
                return url
    return url


def _add_anchors(rows: GatheredLinks, tree: html.Tree, marks: Landmarks) -> None:
    """The links of `a`: hundreds on a page, few of them different, so what is asked of each is kept to a minimum."""
    elements = rows.first(html.elements(tree, "a"))
    rels: Iterable[str | None] = html.attributes(elements, "rel") if html.any_match(tree, "a[rel]") else repeat(None)
    seen: dict[tuple[str, str | None, Position], LinkDraft] = {}
    for element, href, rel, position in zip(
        elements, html.attributes(elements, "href"), rels, positions(elements, "a", marks), strict=False
    ):
        if href is None:
            continue
        head, _, fragment = href.partition("#")
        row = seen.get((head, rel, position))
        if row is None:
            row = rows.add(href, (_ANCHOR, position, _nofollow(rel)), html.words_of(element))
            if row is not None and (not head or head[-1] > " "):  # `x #a` leads to `x%20`, and `x ` to `x`
                seen[head, rel, position] = row
            continue
        row.count += 1
        if fragment:
            row.fragments[fragment] = None
        if not row.anchor:  # an icon first, the words later
            row.anchor = html.words_of(element)


def _nofollow(rel: str | None) -> bool:
    return bool(rel) and not _UNFOLLOWED.isdisjoint((rel or "").lower().split())


def _add_parts(
    rows: GatheredLinks, elements: Sequence[html.Element], parts: tuple[tuple[str, LinkKind], ...], marks: Landmarks
) -> None:
    """What elements of one tag name. elements: all of them, or the first. parts: their attributes that hold URLs."""
    named = [
        (element, kind, name, value) for element in elements for name, kind in parts if (value := element.attr(name))
    ]
    if not named:
        return
    places = dict(zip(elements, positions(elements, html.tag_of(elements[0]), marks), strict=True))
    for element, kind, name, value in named:
        words = html.words_of(element) if kind is _ANCHOR else html.label_of(element)
        place = (kind, places[element], kind in _WITH_REL and _nofollow(element.attr("rel")))
        for text in _texts(name, value):
            rows.add(text, place, words)


def _texts(attribute: str, value: str) -> Iterable[str]:
    """The URLs that an attribute's value holds: several in a srcset and an archive, else one."""
    if attribute.endswith("srcset"):
        return _of_srcset(value)
    if attribute == "archive":
        return (part for part in value.split(","))
    return (value,)


def _of_srcset(value: str) -> Iterator[str]:
    """Source: HTML Living Standard, 4.8.4.3.4. A URL may hold commas, but neither begin nor end with one."""
    place = 0
    while place >= 0 and (match := _CANDIDATE.match(value, place)):
        text = match[1].rstrip(",")
        yield text
        place = match.end() if text != match[1] else value.find(",", match.end())


def _add_link_elements(rows: GatheredLinks, tree: html.Tree) -> None:
    for element in rows.first(html.elements(tree, "link")):
        for text in _of_srcset(element.attr("imagesrcset") or ""):
            rows.add(text, (_IMAGE, _HEAD, False))
        href = element.attr("href")
        if href:
            rel, title = html.attribute(element, "rel"), html.attribute(element, "title")
            for kind in headers.kinds_of_rel(
                rel, html.attribute(element, "as") if "fetch" in rel or "load" in rel else ""
            ):
                rows.add(href, (kind, _HEAD, _nofollow(rel)), title)


def _add_styles(rows: GatheredLinks, tree: html.Tree, special: Sequence[html.Element], marks: Landmarks) -> None:
    """Style elements, style attributes and the background attribute of old."""
    for sheet in rows.first(html.elements(tree, "style")):
        for text, imported in urls(sheet.text):
            rows.add(text, (LinkKind.STYLE if imported else LinkKind.IMAGE, Position.HEAD, False))
    for element in special:
        style = html.attribute(element, "style")
        texts = [text for text, _ in urls(style)] if style else []
        if background := html.attribute(element, "background"):
            texts.append(background)
        if texts:
            (position,) = positions([element], html.tag_of(element), marks)
            for text in texts:
                rows.add(text, (LinkKind.IMAGE, position, False))


def add_headers(rows: GatheredLinks, source: Source) -> None:
    """The Link and Refresh headers, resolved against the page itself: a base element is the document's,
    not the server's.
    """
    for text, kind in headers.links(source.headers):
        try:
            whole = "#".join(resolve(text, source.url))
        except InvalidUrl:
            whole = text  # rows will say why
        rows.add(whole, (kind, Position.HEAD, False))
