"""The links of a page with their kinds, and whether fragments exist on their target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import unquote

from periplus.document import headers
from periplus.document.conversion import Source
from periplus.document.digest import fold_whitespace
from periplus.document.link_rows import GatheredLinks, PageLinks, Place, of_srcset, parts_of, place_of, with_query_in
from periplus.document.metadata import Metadata
from periplus.document.page_rules import FIRST_SVG_SOURCE, SOURCES, is_unfollowed
from periplus.document.reader import Reader, names_of_places, read_page, tree_of
from periplus.document.tree import PageTree
from periplus.errors import InvalidUrl
from periplus.model.audit import FragmentVerdict
from periplus.model.page import HTML_TYPES, POSITIONS, LinkKind, Position
from periplus.model.web import Url
from periplus.urls.canonical import canonical, resolve

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
# An import with or without `url(`, a `url(`, an `image-set(` with its contents, and other strings, so that their
# contents are skipped. Source: CSS Syntax Level 3, 4.3.4 to 4.3.6; CSS Cascading 5, 2; CSS Images 4, 2.4
_STRING = r"""(?:"([^"\n]*)"|'([^'\n]*)')"""
_OTHER_STRING = r"""(?:"[^"\n]*"|'[^'\n]*')"""
_URL = re.compile(
    rf"""(@import\s+)?url\(\s*(?:{_STRING}|([^\s"'()]+))\s*\)|@import\s*{_STRING}"""
    rf"""|image-set\(((?:{_OTHER_STRING}|\((?:{_OTHER_STRING}|[^"'()])*\)|[^"'()])*+)|{_OTHER_STRING}""",
    re.IGNORECASE,
)
_OPTION = re.compile(rf"""(?:\A|,)\s*(?:{_STRING}|url\(\s*(?:{_STRING}|([^\s"'()]+)))|{_OTHER_STRING}""", re.IGNORECASE)
DIRECTIVE = ":~:"  # text Fragments, 3.3: what follows is for the browser and never visible to the page
_MARKDOWN_TYPES = frozenset({"text/markdown", "text/x-markdown"})
# GitHub and GitLab add this prefix to ids and resolve links by script: otherwise every such link would look broken
_SCRIPTED_PREFIX = "user-content-"
_PART = re.compile(r"text=(?:([^&,]*)-,)?([^&,-][^&,]*)(?:,([^&,-][^&,]*))?(?:,-([^&,]*))?(?=&|\Z)")
LANGUAGE_CHARS = 35  # RFC 5646, 4.4.1: longer than any real tag


def urls(sheet: str) -> Iterator[tuple[str, bool]]:
    """Each URL as written, in order, and whether it is an imported style sheet. Other strings and comments
    are skipped.
    """
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


def anchors_of(text: str) -> frozenset[str]:
    """`anchors` for HTML as text."""
    return anchors(tree_of(text))


def anchors(tree: PageTree) -> frozenset[str]:
    """The anchors of a page: every `id`, and the `name` of every `a`, unchanged (case-sensitive).

    Ids within `template` count too: a script may insert them, and a false alarm costs more than a missed broken link.
    Source: HTML Living Standard, 7.4.6.4, "find a potential indicated element".
    """
    return frozenset(names_of_places(tree))


def fragment_verdict(
    fragment: str, anchors: frozenset[str], *, text: str | None = None, media_type: str = "text/html"
) -> FragmentVerdict:
    """Whether a fragment (percent-encoded, without `#`) exists on a page.

    anchors: of the target. text: the target's visible text, for text fragments; None: not checked. Tries the fragment
    as written, then percent-decoded; for Markdown also in lower case, as GitHub does. Empty and `top` (any case) always
    exist. Fragments of other media types are defined by that type (`#page=3`), and `#/way` or `#!way` by a script;
    `#//` is not such a route. Source: HTML Living Standard, 7.4.6.4; Text Fragments (WICG), 3.3 to 3.5.
    """
    if media_type not in HTML_TYPES | _MARKDOWN_TYPES:
        return FragmentVerdict.UNKNOWN
    place, mark, directive = fragment.partition(DIRECTIVE)
    verdict = _of_place(place, anchors)
    if verdict is FragmentVerdict.MISSING and media_type in _MARKDOWN_TYPES:
        verdict = _of_place(unquote(place).lower(), anchors)
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
    """Whether any of the text directives matches the text; True if none can be parsed.

    Simplified: prefix, start, end and suffix must follow each other, with case and white space folded. Word boundaries
    are not checked, since they depend on the language; so everything that a browser finds is found here too.
    """
    directives = [tuple(_fold(unquote(part or "")) for part in match.groups()) for match in _PART.finditer(directive)]
    if not directives:
        return True
    folded = _fold(text)
    return any(_matches(folded, *parts) for parts in directives)


def _fold(text: str) -> str:
    return fold_whitespace(text).casefold()


def _matches(text: str, prefix: str, start: str, end: str, suffix: str) -> bool:
    """Whether "prefix start ... end suffix" is in the text; empty parts are optional.

    Linear for each occurrence of start.
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


_IMAGE, _HEAD = LinkKind.IMAGE, Position.HEAD
_REFRESH, _IMAGE_IN_HEAD, _SHEET = (place_of(kind, _HEAD) for kind in (LinkKind.REFRESH, _IMAGE, LinkKind.STYLE))


def rows_of(page: Reader, source: Source, metadata: Metadata) -> GatheredLinks:
    """The links of an HTML page, merged, and the invalid ones: in the order of the table, then of the page."""
    rows = GatheredLinks(source.url, metadata.nofollow, source.charset)
    add_document(rows, page, source.url, metadata.refreshes)
    for inner in page.frames.strings("\0"):
        # documents nested deeper are skipped: each would be read once per level
        if inner:
            add_document(rows, read_page(inner), _base(page, source.url))
    add_headers(rows, source)
    return rows


def add_document(rows: GatheredLinks, page: Reader, url: Url, refreshes: Iterable[str] = ()) -> None:
    """Adds the links of an HTML document at url. refreshes: targets of meta refresh, as written."""
    rows.resolve_against(_base(page, url))
    if page.too_many:
        rows.meet_elements_most()
    links = PageLinks(rows, page)
    links.add(rows, 0, 1)
    _add_link_elements(rows, page)
    for target in refreshes:
        rows.add(target, _REFRESH)
    links.add(rows, 1, len(SOURCES) if page.svg_count else FIRST_SVG_SOURCE)
    _add_styles(rows, page)


def translations_of(page: Reader, source: Source) -> tuple[tuple[str, Url], ...]:
    """(hreflang as written, target) of the `link rel=alternate` elements with a language."""
    translations = []
    for rel, href, language, *_ in _link_elements(page):
        if language and "alternate" in rel.lower().split():
            try:
                href_sent = with_query_in(source.charset, href)
                translations.append((language.strip()[:LANGUAGE_CHARS], canonical(href_sent, _base(page, source.url))))
            except InvalidUrl:
                continue  # reported as an invalid link
    return tuple(dict.fromkeys(translations))


def _base(page: Reader, url: Url) -> Url:
    """The first base element with a valid href, else url. Source: HTML Living Standard, 4.2.3."""
    if page.base:
        try:
            return canonical(page.base, url)
        except InvalidUrl:
            pass
    return url


def _link_elements(page: Reader) -> Iterable[tuple[str, ...]]:
    """(rel, href, hreflang, as, title, imagesrcset) of each `link`."""
    return zip(*[iter(page.links.strings("\0"))] * 6, strict=True)


def _add_link_elements(rows: GatheredLinks, page: Reader) -> None:
    for element in _link_elements(page):
        for parts, place, title in _links_of_element(*element):
            rows.add_parts(*parts, place, title)


@lru_cache(maxsize=256)  # most link elements of a site are on all of its pages
def _links_of_element(
    rel: str, href: str, _: str, loaded_as: str, title: str, srcset: str
) -> tuple[tuple[tuple[str, bytes, str], Place, str], ...]:
    """(parts of the href, place, title) of each link of a `link` element."""
    links = [(parts_of(text), _IMAGE_IN_HEAD, "") for text in of_srcset(srcset)]
    if href:
        nofollow = is_unfollowed(rel.encode("utf-8", "surrogatepass"))
        for kind in headers.kinds_of_rel(rel, loaded_as if "fetch" in rel or "load" in rel else ""):
            links.append((parts_of(href), place_of(kind, _HEAD, nofollow), title))
    return tuple(links)


def _add_styles(rows: GatheredLinks, page: Reader) -> None:
    """Adds the links in style elements, style attributes and the obsolete background attribute."""
    for sheet in page.sheets.strings("\0"):
        add_sheet(rows, sheet)
    values = iter(page.styles.strings("\0"))
    for position, style, background in zip(values, values, values, strict=True):
        texts = [text for text, _ in urls(style)]
        for text in (*texts, background) if background else texts:
            rows.add(text, place_of(_IMAGE, POSITIONS[int(position)]))


def add_sheet(rows: GatheredLinks, sheet: str) -> None:
    """Adds the resources of a style sheet: other sheets, images and fonts."""
    for text, imported in urls(sheet):
        rows.add(text, _SHEET if imported else _IMAGE_IN_HEAD)


def add_headers(rows: GatheredLinks, source: Source) -> None:
    """Adds the Link and Refresh headers, resolved against the page's URL: a base element does not apply to headers."""
    for text, kind in headers.links(source.headers):
        try:
            whole = "#".join(resolve(text, source.url))
        except InvalidUrl:
            whole = text  # rows will record the reason
        rows.add(whole, place_of(kind, _HEAD))
