"""The links of a page: of which kind, in which part of it, and as rows, resolved, judged, merged and counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, repeat
from typing import TypeAlias, TypeVar
from urllib.parse import unquote

from periplus.document import headers, html, whitespace
from periplus.document.blocks import Landmarks, landmarks, positions
from periplus.document.formats.content import Source
from periplus.document.guess import encoding_of
from periplus.document.metadata import Metadata
from periplus.errors import InvalidUrl
from periplus.model.audit import FragmentVerdict
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
    return anchors(html.parse(text))


def anchors(tree: html.Tree) -> frozenset[str]:
    """The names of a page's places: every `id`, and the `name` of every `a`, as they are (case matters).

    Ids within `template` count too: a script may bring them to life, and a false alarm costs more than a missed one.
    Source: HTML Living Standard, 7.4.6.4, "find a potential indicated element".
    """
    names = {*html.attributes(html.select(tree, "[id]"), "id"), *html.attributes(html.select(tree, "a[name]"), "name")}
    return frozenset(name for name in names if name)


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


Place: TypeAlias = tuple[LinkKind, Position, bool]
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
            tuple([_encoded(row.fragments) if row.fragments else () for row in rows]),
            narrow([row.count for row in rows]),
        )

    def bad_links(self) -> tuple[BadLink, ...]:
        """Distinct texts that are no links, in order."""
        return tuple(
            BadLink(text, kind, position, anchor[:ANCHOR_CHARS], why)
            for (text, (kind, position, _), why), anchor in self._bad.items()
        )


def with_query_in(charset: str, href: str) -> str:
    """A href, its query as a browser sends it from a page in that charset: `?q=č` of windows-1250 is `?q=%E8`."""
    address, sharp, fragment = href.partition("#")
    head, mark, query = address.partition("?")
    encoding = encoding_of(charset) if query else None
    return head + mark + encoding.url_query(query) + sharp + fragment if encoding else href


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


#     ANCHOR     a href, svg a href and xlink:href          FORM     form action; button and input formaction
#     AREA       area href IMAGE img src, srcset, data-src, data-srcset and their like;
#     FRAME      frame src                                           source srcset; input src; svg image and use;
#     IFRAME     iframe src, data-src background; url(), image-set() in CSS; link imagesrcset
#     REFRESH    meta refresh, Refresh header               STYLE    link rel=stylesheet, @import, <?xml-stylesheet?>
#     CANONICAL  link rel=canonical                         SCRIPT   script src; svg script href and xlink:href
#     ALTERNATE  link rel=alternate MEDIA video src, poster; audio src; source src; track src; bgsound
#     RELATED    link rel=next, prev, up, help, ...; OBJECT object data, embed src, applet code
#                and archive, html manifest,
#                longdesc                                            link rel=manifest, preload, search, pingback, ...
#     CITE       cite of blockquote, q, ins, del;           ICON     link rel=icon and its like
#                link rel=profile, schema.*                 SITEMAP  link rel=sitemap
# The Link header counts as a link element. Contents of noscript, template and iframe srcdoc count, comments and scripts
# do not. `base href` is obeyed, the first one only; HTTP headers are resolved against the page itself. A query is sent
# in the page's charset. Left out, because nothing is fetched for them: empty src, fragments of the page itself in a
# part of it (`<use href="#x">`), data: and about: where a part is embedded, preconnect and dns-prefetch.

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
                translations.append((language.strip()[:LANGUAGE_CHARS], canonical(href, _base(tree, source.url))))
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
