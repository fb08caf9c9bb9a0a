"""Which links does a page have, of which kind, and in which part of it?

    ANCHOR     a href, svg a href and xlink:href          FORM     form action; button and input formaction
    AREA       area href                                  IMAGE    img src, srcset, data-src, data-srcset and their like;
    FRAME      frame src                                           source srcset; input src; svg image and use;
    IFRAME     iframe src, data-src                                background; url(), image-set() in CSS; link imagesrcset
    REFRESH    meta refresh, Refresh header               STYLE    link rel=stylesheet, @import, <?xml-stylesheet?>
    CANONICAL  link rel=canonical                         SCRIPT   script src; svg script href and xlink:href
    ALTERNATE  link rel=alternate                         MEDIA    video src, poster; audio src; source src; track src; bgsound
    RELATED    link rel=next, prev, up, help, ...;        OBJECT   object data, embed src, applet code and archive, html manifest,
               longdesc                                            link rel=manifest, preload, search, pingback, ...
    CITE       cite of blockquote, q, ins, del;           ICON     link rel=icon and its like
               link rel=profile, schema.*                 SITEMAP  link rel=sitemap
The Link header counts as a link element. Contents of noscript, template and iframe srcdoc count, comments and scripts do not. `base href`
is obeyed, the first one only; HTTP headers are resolved against the page itself. A query is sent in the page's charset. Left out, because nothing
is fetched for them: empty src, fragments of the page itself in a part of it (`<use href="#x">`), data: and about: where a part is embedded,
preconnect and dns-prefetch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

from periplus.document import css, headers, html
from periplus.document.landmarks import Landmarks, landmarks, positions
from periplus.document.rows import ELEMENTS_MOST, Row, Rows, with_query_in
from periplus.errors import InvalidUrl
from periplus.model.page import LinkKind, Position
from periplus.model.visit import Headers
from periplus.model.web import Url
from periplus.urls.canonical import canonical, resolve

LANGUAGE_CHARS = 35  # RFC 5646, 4.4.1: more than any sensible tag has

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
_ATTRIBUTES_OF_ANY = '[role],[background],[style*="url(" i],[style*="image-set(" i]'  # one walk for what may stand on any element
_CANDIDATE = re.compile(r"[\s,]*([^\s,]\S*)")  # of a srcset: a URL before its width or density
_WITH_REL = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FORM})
_UNFOLLOWED = frozenset({"nofollow", "ugc", "sponsored"})


@dataclass(frozen=True, slots=True)
class Setting:
    """What surrounds the links of one document."""

    url: Url
    headers: Headers
    refreshes: tuple[str, ...] = ()  # targets of meta refresh, as written
    nofollow: bool = False  # of the whole page
    charset: str = "utf-8"  # that the document is read in


def rows_of(tree: html.Tree, setting: Setting) -> Rows:
    """The links of an HTML page, merged, and what is no link: in the order of the table, then of the page."""
    rows = Rows(setting.url, setting.nofollow, setting.charset)
    add_document(rows, tree, setting.url, setting.refreshes)
    for frame in rows.first(html.elements(tree, "iframe")):
        if source := frame.attr("srcdoc"):  # documents within that one are left out: each would be read once more for each that it is in
            add_document(rows, html.parse(source), _base(tree, setting.url))
    add_headers(rows, setting)
    return rows


def add_document(rows: Rows, tree: html.Tree, url: Url, refreshes: Iterable[str] = ()) -> None:
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
            if found := html.elements(tree, tag):
                _add_parts(rows, rows.first(found), parts, marks)
    _add_styles(rows, tree, special, marks)


def translations_of(tree: html.Tree, setting: Setting) -> tuple[tuple[str, Url], ...]:
    """(hreflang as written, where its page is) of the `link rel=alternate` elements that name a language."""
    elements = html.elements(tree, "link")[:ELEMENTS_MOST]
    found = []
    for element, language in zip(elements, html.attributes(elements, "hreflang"), strict=True):
        if language and "alternate" in html.attribute(element, "rel").lower().split():
            try:
                href = with_query_in(setting.charset, html.attribute(element, "href"))
                found.append((language.strip()[:LANGUAGE_CHARS], canonical(href, _base(tree, setting.url))))
            except InvalidUrl:
                continue  # a bad link, and told there
    return tuple(dict.fromkeys(found))


def rows_of_headers(setting: Setting) -> Rows:
    """What the HTTP header links to: all there is for a document that we do not read."""
    rows = Rows(setting.url, setting.nofollow)
    add_headers(rows, setting)
    return rows


def _base(tree: html.Tree, url: Url) -> Url:
    """Source: HTML Living Standard, 4.2.3: the first base element with href, unless its URL cannot be used."""
    for element in html.elements(tree, "base"):
        if href := element.attr("href"):
            try:
                return canonical(href, url)
            except InvalidUrl:
                return url
    return url


def _add_anchors(rows: Rows, tree: html.Tree, marks: Landmarks) -> None:
    """The links of `a`: hundreds on a page, few of them different, so what is asked of each is kept to a minimum."""
    found = rows.first(html.elements(tree, "a"))
    rels: Iterable[str | None] = html.attributes(found, "rel") if html.any_match(tree, "a[rel]") else repeat(None)
    seen: dict[tuple[str, str | None, Position], Row] = {}
    for element, href, rel, position in zip(found, html.attributes(found, "href"), rels, positions(found, "a", marks), strict=False):
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


def _add_parts(rows: Rows, found: Sequence[html.Element], parts: tuple[tuple[str, LinkKind], ...], marks: Landmarks) -> None:
    """What elements of one tag name. found: all of them, or the first. parts: their attributes that hold URLs."""
    named = [(element, kind, name, value) for element in found for name, kind in parts if (value := element.attr(name))]
    if not named:
        return
    places = dict(zip(found, positions(found, html.tag_of(found[0]), marks), strict=True))
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


def _add_link_elements(rows: Rows, tree: html.Tree) -> None:
    for element in rows.first(html.elements(tree, "link")):
        for text in _of_srcset(element.attr("imagesrcset") or ""):
            rows.add(text, (_IMAGE, _HEAD, False))
        href = element.attr("href")
        if href:
            rel, title = html.attribute(element, "rel"), html.attribute(element, "title")
            for kind in headers.kinds_of_rel(rel, html.attribute(element, "as") if "fetch" in rel or "load" in rel else ""):
                rows.add(href, (kind, _HEAD, _nofollow(rel)), title)


def _add_styles(rows: Rows, tree: html.Tree, special: Sequence[html.Element], marks: Landmarks) -> None:
    """Style elements, style attributes and the background attribute of old."""
    for sheet in rows.first(html.elements(tree, "style")):
        for text, imported in css.urls(sheet.text):
            rows.add(text, (LinkKind.STYLE if imported else LinkKind.IMAGE, Position.HEAD, False))
    for element in special:
        style = html.attribute(element, "style")
        texts = [text for text, _ in css.urls(style)] if style else []
        if background := html.attribute(element, "background"):
            texts.append(background)
        if texts:
            (position,) = positions([element], html.tag_of(element), marks)
            for text in texts:
                rows.add(text, (LinkKind.IMAGE, position, False))


def add_headers(rows: Rows, setting: Setting) -> None:
    """The Link and Refresh headers, resolved against the page itself: a base element is the document's, not the server's."""
    for text, kind in headers.links(setting.headers):
        try:
            whole = "#".join(resolve(text, setting.url))
        except InvalidUrl:
            whole = text  # rows will say why
        rows.add(whole, (kind, Position.HEAD, False))
