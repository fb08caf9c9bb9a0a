"""Source positions of audit issues: line and column of the tag concerned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple
from urllib.parse import unquote

from periplus.document import html
from periplus.document.decode import decode
from periplus.document.digest import fold_whitespace
from periplus.document.link_rows import split_of_attribute, with_query_in
from periplus.document.links import urls
from periplus.document.media_types import text_readers
from periplus.document.page_rules import ROLES, SOURCES
from periplus.document.static_checks import StaticNote, name_of, noted_elements
from periplus.errors import InvalidUrl
from periplus.model.audit import Issue
from periplus.model.page import HTML_TYPES, POSITIONS, Position
from periplus.model.web import Url
from periplus.urls.canonical import identity, resolve

LineColumn = tuple[int, int]
"""Both from 1, in the decoded source: CR, LF and CRLF end a line; a column is one character, also a tab."""

_SHEET = "text/css"
_C0_AND_SPACE = "".join(map(chr, range(0x21)))
_LINK_ATTRIBUTES: dict[str, list[str]] = {"link": ["href", "imagesrcset"]}
for _source in SOURCES:
    _LINK_ATTRIBUTES.setdefault(_source.tag, []).append(_source.attribute)
_LINK_SELECTOR = ",".join(
    (*(f"{tag}[{name.replace(':', chr(92) + ':')}]" for tag, names in _LINK_ATTRIBUTES.items() for name in names),
     "meta[http-equiv=refresh i]", "style", "[style]", "[background]")
)  # fmt: skip
_REFRESH = re.compile(r"[\d.\s]*[;,]?\s*(?:url\s*=\s*)?[\"']?([^\"']*)", re.IGNORECASE)
_FRAGMENTS = frozenset({"broken-fragment", "missing-text"})
_PLAIN_FRAGMENT = re.compile(r"[A-Za-z0-9_.-]*")  # is not written otherwise when the link is resolved
_NO_URLS = frozenset({"malformed-link", "bad-mailto"})  # their detail begins with the written text
_ONLY = {  # for issues with a related URL that concern only certain elements
    "canonical": "link[rel~=canonical i]", "hreflang": "link[hreflang]", "insecure-form": "form,button,input",
}  # fmt: skip
# (selector, index among the matches); if something is missing, the element that lacks it
ISSUE_SELECTORS = {
    "title-long": ("title", 0), "title-duplicate": ("title", 0), "title-missing": ("head", 0),
    "description-long": ("meta[name=description i]", 0), "description-duplicate": ("meta[name=description i]", 0),
    "description-missing": ("head", 0), "h1-several": ("h1", 1), "h1-missing": ("body", 0), "main-missing": ("body", 0),
    "viewport-missing": ("head", 0), "preview-incomplete": ('meta[property^="og:" i]', 0),
    "language-missing": ("html", 0), "image-without-alt": ("img:not([alt])", 0),
    "charset-mismatch": ("meta[charset],meta[http-equiv=content-type i]", 0),
    "noindex-in-sitemap": ("meta[name=robots i]", 0), "nofollow-inside": ("a[rel~=nofollow i]", 0),
    "canonical-in-sitemap": ("link[rel~=canonical i]", 0),
}  # fmt: skip
_MARKS = "head,nav,main,aside,header,footer,[role]"


class PageSource(NamedTuple):
    """A stored page. charset: its encoding."""

    url: Url
    body: bytes
    media_type: str
    charset: str


class _LinkSource(NamedTuple):
    """A link as written in a page. element: None in a style sheet."""

    element: html.Element | None
    text: str


def positions_of(page: PageSource, issues: Sequence[Issue]) -> list[LineColumn | None]:
    """The position of each issue of a page, or None if it has none or is unknown.

    If something is missing, the position of the element that lacks it. Documents in frames' `srcdoc` are skipped.
    """
    text, _ = decode(page.body, page.charset, page.media_type)
    convert = text_readers().get(page.media_type)
    if page.media_type == _SHEET:
        links = _Links([_LinkSource(None, url) for url, _ in urls(text)], page.url, page)
        return [_in_text(text, link.text) if (link := links.of(issue)) else None for issue in issues]
    if convert is None and page.media_type not in HTML_TYPES:
        return [None for _ in issues]
    markup = text if convert is None else convert(text, True).html
    tree = html.parse_with_positions(markup)
    # links and notes take two thirds of the time, and are computed only if needed
    of_links = [issue for issue in issues if is_of_link(issue)]
    written = _link_sources(tree) if of_links else iter(())
    if all(issue.code in _FRAGMENTS for issue in of_links):
        fragments = {_fragment_of(issue) for issue in of_links}
        written = (link for link in written if _may_have(link.text, fragments))
    links = _Links(written, _base(tree, page.url), page)
    of_issues = [links.of(issue) for issue in issues]
    if convert is not None:
        return [_in_text(text, link.text) if link else None for link in of_issues]
    pairs = list(zip(issues, of_issues, strict=True))
    needs_notes = any(link is None and issue.code not in ISSUE_SELECTORS for issue, link in pairs)
    noted = _first_elements(noted_elements(markup, tree) if needs_notes else [])
    elements = (
        link.element if link else noted.get(issue.code) or _issue_element(tree, issue.code) for issue, link in pairs
    )
    return [html.position(element) if element is not None else None for element in elements]


def note_positions(tree: html.Tree, notes: Iterable[tuple[StaticNote, html.Element | None]]) -> dict[str, LineColumn]:
    """The positions of all issues that are not of links, by code. notes: `noted_elements` of the tree, which was parsed
    with positions.
    """
    elements = {code: element for code in ISSUE_SELECTORS if (element := _issue_element(tree, code)) is not None}
    elements |= {code: element for code, element in _first_elements(notes).items() if element}
    places = ((code, html.position(element)) for code, element in elements.items())
    return {code: place for code, place in places if place is not None}


def _first_elements(notes: Iterable[tuple[StaticNote, html.Element | None]]) -> dict[str, html.Element]:
    return {note.code: element for note, element in notes if element is not None}


def _issue_element(tree: html.Tree, code: str) -> html.Element | None:
    selector, which = ISSUE_SELECTORS.get(code, ("", 0))
    return next(iter(html.select(tree, selector)[which:]), None) if selector else None


def _base(tree: html.Tree, url: Url) -> Url:
    for element in html.select(tree, "base[href]")[:1]:
        try:
            return resolve(html.attribute(element, "href"), url)[0]
        except InvalidUrl:
            break
    return url


def _link_sources(tree: html.Tree) -> Iterator[_LinkSource]:
    """The links of a page's elements, in page order."""
    for element in html.select(tree, _LINK_SELECTOR):
        tag, values = html.tag_of(element), html.attributes(element)
        for name in _LINK_ATTRIBUTES.get(tag, ()):
            if value := values.get(name):
                yield from (_LinkSource(element, text) for text in split_of_attribute(name, value))
        if tag == "meta" and (match := _REFRESH.match(values.get("content") or "")):
            yield _LinkSource(element, match[1])
        if sheet := element.text if tag == "style" else values.get("style"):
            yield from (_LinkSource(element, text) for text, _ in urls(sheet))
        if background := values.get("background"):
            yield _LinkSource(element, background)


def _fragment_of(issue: Issue) -> str:
    return issue.cause.removeprefix(issue.related)[1:] if issue.code in _FRAGMENTS else ""


def _may_have(text: str, fragments: Set[str]) -> bool:
    """Whether a link as written may have one of these fragments. Resolving a link takes ten times as long."""
    _, mark, fragment = text.partition("#")
    return bool(mark) and (fragment in fragments or _PLAIN_FRAGMENT.fullmatch(fragment) is None)


def is_of_link(issue: Issue) -> bool:
    """Whether the position of an issue is that of a link; if not, `note_positions` has it."""
    return issue.code in _NO_URLS or bool(issue.related and issue.code not in ISSUE_SELECTORS)


class _Links:
    """The links of a page, to look up those of issues."""

    def __init__(self, links: Iterable[_LinkSource], base: Url, page: PageSource) -> None:
        self._by_text: dict[str, _LinkSource] = {}
        self._by_target: dict[Url, list[tuple[_LinkSource, str]]] = {}  # with their fragments
        same: dict[str, Url] = {}  # an index links to thousands of places on few pages
        for link in links:
            text = link.text.strip(_C0_AND_SPACE)
            self._by_text.setdefault(text[:200], link)
            before, _, fragment = text.partition("#")
            is_plain = _PLAIN_FRAGMENT.fullmatch(fragment) is not None
            if (target := same.get(before) if is_plain else None) is None:
                try:
                    resolved, fragment = resolve(with_query_in(page.charset, text), base)
                except InvalidUrl:
                    continue
                target = identity(resolved)
                if is_plain:
                    same[before] = target
            self._by_target.setdefault(target, []).append((link, fragment))

    def of(self, issue: Issue) -> _LinkSource | None:
        """The first link that matches an issue, preferably in the same part of the page and with the same text."""
        if not is_of_link(issue):
            return None
        if issue.code in _NO_URLS:
            starts = (text for text in self._by_text if issue.detail == text or issue.detail.startswith(f"{text}: "))
            return self._by_text.get(max(starts, key=len, default=""))
        links = self._by_target.get(identity(Url(issue.related)), [])
        fragment = _fragment_of(issue)
        only = next((selector for start, selector in _ONLY.items() if issue.code.startswith(start)), "")
        chosen = [
            link
            for link, own in links
            if (not fragment or own == fragment)
            and (not only or (link.element is not None and html.closest(link.element, only) is not None))
        ]
        return min(chosen, key=lambda link: _unlikeness(link.element, issue), default=None)


def _unlikeness(element: html.Element | None, issue: Issue) -> tuple[bool, bool]:
    if element is None:
        return False, False
    words = bool(issue.anchor) and fold_whitespace(name_of(element))[: len(issue.anchor)] != issue.anchor
    return bool(issue.position) and _part_of(element).value != issue.position, words


def _part_of(element: html.Element) -> Position:
    """The part of the page by the innermost landmark, as in the page reader."""
    mark = html.closest(element, _MARKS)
    while mark is not None:
        tag, role = html.tag_of(mark), html.attribute(mark, "role").strip().lower()
        if role in ROLES:
            return POSITIONS[ROLES[role]]
        inner = tag in ("header", "footer") and html.closest_above(mark, "article,aside,main,nav,section") is not None
        if tag in ("head", "nav", "main", "aside", "header", "footer") and not inner:
            return Position(tag)
        mark = html.closest_above(mark, _MARKS)
    return Position.BODY


def _in_text(text: str, link: str) -> LineColumn | None:
    """The first position of a link in a document that is not HTML: Markdown, a style sheet. text: decoded."""
    page = re.escape(unquote(link.partition("#")[0]))
    # the second alternative is a wiki link
    words = rf"(?<![\w/.#?=-]){re.escape(link)}(?![\w/#?=-])|\[\[{page}(?=[]|#])"
    match = re.search(words, text) if link else None
    if match is None:
        return None
    before = re.split(r"\r\n|\r|\n", text[: match.start()])
    return len(before), len(before[-1]) + 1
