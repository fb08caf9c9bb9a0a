"""The links of a page, by queries of turbohtml's tree: part of the slow twin of `document.reader`."""

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
from periplus.document.conversion import Source
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
_BODY = Position.BODY  # the look-up in an enum takes 0.2 us
_MOST = 64  # limit of landmarks per page: real pages have 0 to 12, and hostile pages with more would be slow
_FEW = 10**9  # up to so many elements, ancestors are searched for each: 0.4 us per element, against 5 us per landmark

Landmarks = Sequence[tuple[html.Element, Position]]


def landmarks(tree: html.Tree, with_roles: Iterable[html.Element]) -> Landmarks:
    """The page's landmarks with its head, outer before inner. with_roles: all elements with a role attribute."""
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

    elements: all elements with that tag, or the first of them, in document order.
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
            # The elements inside a landmark are consecutive, so bisection finds its end: 5 us instead of 40 for a
            # walk.
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


ROWS_MOST = 20_000  # distinct links per page; further ones are not recorded
# elements of a tag per page; a reference of 421 pages has 30,000 links, and more than the limit would take 3 s
ELEMENTS_MOST = 200_000
BAD_ROWS_MOST = 2_000
HREF_CHARS = 65_536  # a longer URL is malformed: no server accepts it
ANCHOR_CHARS = 1_000  # an `a` may contain a whole card or article
BAD_TEXT_CHARS = 2_000  # as in the model
FRAGMENTS_MOST = 20_000  # per link
_CACHED_CHARS = 300  # limits the caches below to about 20 MB

# kinds for which an empty href is the page itself, and `#x` an anchor in it
_PAGES = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FORM})
_NAMES = _PAGES | {LinkKind.REFRESH, LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.RELATED}
_CONTENT_IN_PLACE = frozenset({"data", "about", "blob"})  # for embedded resources these URLs are content, not links

_C0_AND_SPACE = "".join(map(chr, range(0x21)))
_PLAIN_FRAGMENTS = re.compile(r"[A-Za-z0-9_.:/()-]*")  # percent-encoding does not change these
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.~%-][^:\\\t\n\r]*")  # relative, and not only a query
_ANYWHERE = Url("http://localhost/")
_Element = TypeVar("_Element")


Place = tuple[LinkKind, Position, bool]
"""Links to the same target are distinct if this differs: kind, position, nofollow. A plain tuple, for speed."""


@dataclass(slots=True)
class LinkDraft:
    """A link while its repetitions are merged."""

    target: Url  # as first written
    anchor: str
    count: int
    fragments: dict[str, None]  # as written


class GatheredLinks:
    """Collects the links of a page."""

    def __init__(self, base: Url, nofollow: bool, charset: str = "utf-8") -> None:
        """base: base URL of relative links.

        nofollow: whether it applies to the whole page. charset: for the queries of links.
        """
        self.resolve_against(base)
        self._nofollow = nofollow
        self._charset = charset
        self._rows: dict[tuple[Url, Place], LinkDraft] = {}
        self._bad: dict[tuple[str, Place, str], str] = {}
        self._bounds: dict[str, None] = {}

    def first(self, elements: Sequence[_Element]) -> Sequence[_Element]:
        """The first ELEMENTS_MOST elements."""
        if len(elements) <= ELEMENTS_MOST:
            return elements
        self._bounds[f"more than {ELEMENTS_MOST:,} elements of one kind with links"] = None
        return elements[:ELEMENTS_MOST]

    def bounds(self) -> tuple[str, ...]:
        """The limits that were reached. Links beyond them are missing."""
        fragments = f"more than {FRAGMENTS_MOST:,} places of one page linked to"
        return (
            *self._bounds,
            *([fragments] if any(len(row.fragments) > FRAGMENTS_MOST for row in self._rows.values()) else ()),
        )

    def resolve_against(self, base: Url) -> None:
        """Sets the base URL of the links that follow."""
        self._base = base
        self._folder = Url(base[: base.partition("?")[0].rindex("/") + 1])

    def add(self, href: str, place: Place, anchor: str = "") -> LinkDraft | None:
        """Records a link. Returns None if the href is not a link or a limit is reached."""
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
        """The target of a href without fragment, mostly from the cache: pages of a site share a menu."""
        if not head:
            return self._base
        if len(head) <= _CACHED_CHARS and (target := _below(self._folder, head)):
            return target
        return resolve(head + "#", self._base)[0]  # the `#` keeps a space that was followed by a fragment

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
        """The links, in the order of their first occurrence."""
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
        """Distinct href texts that are not links, in order."""
        return tuple(
            BadLink(text, kind, position, anchor[:ANCHOR_CHARS], why)
            for (text, (kind, position, _), why), anchor in self._bad.items()
        )


def _encoded(fragments: Iterable[str]) -> tuple[str, ...]:
    """The distinct fragments in canonical form."""
    first = tuple(islice(fragments, FRAGMENTS_MOST))
    if _PLAIN_FRAGMENTS.fullmatch("".join(first)):
        return first
    return tuple(dict.fromkeys(filter(None, (resolve("#" + fragment, _ANYWHERE)[1] for fragment in first))))


@lru_cache(maxsize=16_384)
def _below(folder: Url, head: str) -> Url | None:
    """`resolve` for hrefs that depend only on the folder of the base; None for others. Raises InvalidUrl."""
    if head[-1] <= " ":
        return None
    if _PLAIN_PATH.fullmatch(head):
        return resolve(head, folder)[0]
    if head.startswith("/") and head[1:2] not in ("/", "\\", "\t", "\n", "\r"):
        return _anywhere(head, Url(folder[: folder.index("/", 8) + 1]))
    return _anywhere(head, _ANYWHERE) if head.startswith(("http://", "https://")) else None


@lru_cache(maxsize=16_384)
def _anywhere(head: str, base: Url) -> Url:
    """`resolve` for hrefs that are the same in each folder of a host."""
    return resolve(head, base)[0]


# Attributes with URLs by element. `a` and `link` have their own functions.
_ANCHOR, _HEAD = LinkKind.ANCHOR, Position.HEAD  # the look-up in an enum takes 0.2 us
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
# attributes that any element may have, found in a single walk
_ATTRIBUTES_OF_ANY = '[role],[background],[style*="url(" i],[style*="image-set(" i]'
_CANDIDATE = re.compile(r"[\s,]*([^\s,]\S*)")  # of a srcset: a URL before its width or density
_WITH_REL = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FORM})
_UNFOLLOWED = frozenset({"nofollow", "ugc", "sponsored"})


def rows_of(tree: html.Tree, source: Source, metadata: Metadata) -> GatheredLinks:
    """The merged links and the bad links of an HTML page, in the order of the table, then of the page."""
    rows = GatheredLinks(source.url, metadata.nofollow, source.charset)
    add_document(rows, tree, source.url, metadata.refreshes)
    for frame in rows.first(html.elements(tree, "iframe")):
        # nested srcdoc documents are skipped: each would be read again for every level around it
        if inner := frame.attr("srcdoc"):
            add_document(rows, html.parse(inner), _base(tree, source.url))
    add_headers(rows, source)
    return rows


def add_document(rows: GatheredLinks, tree: html.Tree, url: Url, refreshes: Iterable[str] = ()) -> None:
    """Adds the links of the HTML tree at url. refreshes: targets of meta refresh, as written."""
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
    """(hreflang as written, URL) of each `link rel=alternate` with a language."""
    elements = html.elements(tree, "link")[:ELEMENTS_MOST]
    translations = []
    for element, language in zip(elements, html.attributes(elements, "hreflang"), strict=True):
        if language and "alternate" in html.attribute(element, "rel").lower().split():
            try:
                href = with_query_in(source.charset, html.attribute(element, "href"))
                translations.append((language.strip()[:35], canonical(href, _base(tree, source.url))))
            except InvalidUrl:
                continue  # reported as a bad link
    return tuple(dict.fromkeys(translations))


def _base(tree: html.Tree, url: Url) -> Url:
    """The first base element with href, unless its URL is invalid. Source: HTML Living Standard, 4.2.3."""
    for element in html.elements(tree, "base"):
        if href := element.attr("href"):
            try:
                return canonical(href, url)
            except InvalidUrl:
                return url
    return url


def _add_anchors(rows: GatheredLinks, tree: html.Tree, marks: Landmarks) -> None:
    """Adds the links of `a`. A page has hundreds with few distinct targets, so the work per element is minimal."""
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
        if not row.anchor:  # the first link may be an icon, a later one has words
            row.anchor = html.words_of(element)


def _nofollow(rel: str | None) -> bool:
    return bool(rel) and not _UNFOLLOWED.isdisjoint((rel or "").lower().split())


def _add_parts(
    rows: GatheredLinks, elements: Sequence[html.Element], parts: tuple[tuple[str, LinkKind], ...], marks: Landmarks
) -> None:
    """Adds the URLs of elements with the same tag. elements: all, or the first. parts: their attributes with URLs."""
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
    """The URLs in the value of an attribute: several in a srcset and an archive, otherwise one."""
    if attribute.endswith("srcset"):
        return _of_srcset(value)
    if attribute == "archive":
        return (part for part in value.split(","))
    return (value,)


def _of_srcset(value: str) -> Iterator[str]:
    """The URLs of a srcset (HTML Living Standard, 4.8.4.3.4). They may contain commas, but not at their ends."""
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
    """Adds the URLs of style elements, style attributes and the obsolete background attribute."""
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
    """Adds the Link and Refresh headers. They are resolved against the page's URL: a base element does not apply."""
    for text, kind in headers.links(source.headers):
        try:
            whole = "#".join(resolve(text, source.url))
        except InvalidUrl:
            whole = text  # reported as a bad link
        rows.add(whole, (kind, Position.HEAD, False))
