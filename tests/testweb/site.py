"""A site: HTML pages, other answers, and their ground truth."""

from __future__ import annotations

import email.utils
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape

from periplus.model.page import Link, LinkKind, Position
from periplus.model.visit import Reason
from periplus.model.web import Url
from testweb.truth import PageTruth, Truth, merged
from testweb.wire import PORT, Answer, Asked, Handler, Reply, Routes

FIRST_DAY_S = 1_700_000_000  # Last-Modified of every page's version 0; each version is a day younger
UNFOLLOWED = frozenset({"nofollow", "ugc", "sponsored"})  # values of rel that crawlers do not follow


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link as written on the page, and its target."""

    href: str
    anchor: str
    position: Position = Position.MAIN
    rel: str = ""
    target: str = ""  # the URL without fragment; empty: href is a path of the same site


@dataclass(slots=True)
class Page:
    """An HTML page. `html`, if set, is the whole document, with the links in `known`."""

    path: str
    title: str
    paragraphs: tuple[str, ...] = ()
    links: list[PageLink] = field(default_factory=list)
    language: str = "en"
    charset: str = "utf-8"
    charset_in: str = "header"  # where it is declared: header, meta, both or none
    head: str = ""  # further elements of <head>
    headers: tuple[tuple[str, str], ...] = ()
    nofollow: bool = False  # `head` or `headers` forbid following: applies to every link in the ground truth
    validators: bool = True  # ETag and Last-Modified, and 304
    html: str = ""
    known: tuple[Link, ...] = ()  # links beyond `links`: in `head`, `headers` or `html`


class Site:
    """A host. Pages are added first; then it is served, and has its ground truth."""

    def __init__(self, host: str, *, latency_s: float = 0.0) -> None:
        self.host = host
        self.latency_s = latency_s  # before every answer
        self.pages: dict[str, Page] = {}
        self.routes = Routes()
        self.facts = Truth()  # facts of the added faults; `truth` adds the pages
        self.rendered: dict[tuple[str, int], bytes] = {}

    def url(self, path: str) -> str:
        return f"http://{self.host}:{PORT}{path}"

    def add(self, page: Page, linked_from: str | None = None) -> Page:
        """Adds a page, with a link from the page linked_from."""
        self.pages[page.path] = page
        self.routes.exact[page.path] = lambda asked: self.page_answer(page, asked)
        if linked_from is not None:
            self.link(linked_from, page.path, page.title)
        return page

    def answer(
        self, path: str, reply: Reply | Handler, expected: Reason | None = None, linked_from: str | None = "/"
    ) -> str:
        """Adds another answer at path, with the expected result of a crawl. Returns its URL."""
        self.routes.exact[path] = reply if callable(reply) else lambda asked: reply
        if linked_from is not None:
            self.link(linked_from, path, f"The page {path}")
        if expected is not None:
            self.facts.reasons[self.url(path)] = expected
        return self.url(path)

    def link(self, source: str, href: str, anchor: str, **more: str) -> None:
        """Adds a link to a page of this site; more: the other fields of PageLink."""
        self.pages[source].links.append(PageLink(href, anchor, **more))

    def expect(self, path: str, reason: Reason) -> None:
        self.facts.reasons[self.url(path)] = reason

    def reply(self, asked: Asked) -> Reply:
        """The answer of this site; 404 for unknown targets."""
        handler = self.routes.find(asked)
        return NOT_FOUND if handler is None else handler(asked)

    def render_all(self) -> None:
        """Renders all pages now, so that serving is cheap."""
        for page in self.pages.values():
            self.body(page, 0)

    def body(self, page: Page, version: int) -> bytes:
        key = (page.path, version)
        if key not in self.rendered:
            self.rendered[key] = render(page, self.host, version).encode(page.charset, "xmlcharrefreplace")
        return self.rendered[key]

    def page_answer(self, page: Page, asked: Asked) -> Answer:
        body = self.body(page, asked.version)
        media_type = "text/html" + (f"; charset={page.charset}" if page.charset_in in ("header", "both") else "")
        if not page.validators:
            return Answer(200, body, media_type, page.headers)
        etag = f'"{asked.version}-{hashlib.md5(body, usedforsecurity=False).hexdigest()[:12]}"'
        changed = email.utils.formatdate(FIRST_DAY_S + 86_400 * asked.version, usegmt=True)
        validators = (("ETag", etag), ("Last-Modified", changed))
        asked_etag = asked.headers.get("if-none-match")
        if asked_etag == etag or (asked_etag is None and asked.headers.get("if-modified-since") == changed):
            return Answer(304, b"", "", validators)
        return Answer(200, body, media_type, (*validators, *page.headers))

    @property
    def truth(self) -> Truth:
        """Ground truth of pages and faults, with PORT for the port."""
        told = Truth()
        for page in self.pages.values():
            url = self.url(page.path)
            told.pages[url] = PageTruth(
                url, page.title, page.title, "\n".join(page.paragraphs), page.language, page.charset
            )
            told.links[url] = tuple(self._links(page))
        return merged((told, self.facts))

    def _links(self, page: Page) -> Iterator[Link]:
        """The page's links, merged as in `model.page.Link`."""
        folded: dict[tuple[str, Position, bool], list[PageLink]] = {}
        for link in page.links:
            target = link.target or self.url(link.href.partition("#")[0] or page.path)
            unfollowed = page.nofollow or not UNFOLLOWED.isdisjoint(link.rel.lower().split())
            folded.setdefault((target, link.position, unfollowed), []).append(link)
        for (target, position, nofollow), group in folded.items():
            fragments = dict.fromkeys(link.href.partition("#")[2] for link in group if "#" in link.href)
            yield Link(Url(target), LinkKind.ANCHOR, position, group[0].anchor, nofollow, tuple(fragments), len(group))
        yield from page.known


NOT_FOUND = Answer(404, b"<!doctype html><title>Not found</title><h1>Not found</h1><p>There is no such page here.</p>")


class Web:
    """Several sites behind one port."""

    def __init__(self, sites: Iterable[Site] = ()) -> None:
        self.sites = {site.host: site for site in sites}

    def site(self, host: str) -> Site:
        """The site of that name, created if missing."""
        return self.sites.setdefault(host, Site(host))

    @property
    def truth(self) -> Truth:
        return merged(site.truth for site in self.sites.values())


def _anchors(links: Iterable[PageLink]) -> str:
    return "\n".join(_anchor(link) for link in links)


def _anchor(link: PageLink) -> str:
    rel = f' rel="{escape(link.rel)}"' if link.rel else ""
    return f'<li><a href="{escape(link.href)}"{rel}>{escape(link.anchor)}</a></li>'


def render(page: Page, host: str, version: int = 0) -> str:
    """The page as HTML, with header, navigation and footer of the site."""
    if page.html:
        return page.html
    at = {position: [link for link in page.links if link.position is position] for position in Position}
    meta = f'<meta charset="{page.charset}">' if page.charset_in in ("meta", "both") else ""
    paragraphs = (*page.paragraphs, f"Revision {version} of this page.") if version else page.paragraphs
    own = _woven(paragraphs, at[Position.MAIN])
    aside = f"<aside><h2>See also</h2><ul>{_anchors(at[Position.ASIDE])}</ul></aside>" if at[Position.ASIDE] else ""
    return f"""<!doctype html>
<html lang="{page.language}">
<head>{meta}<title>{escape(page.title)}</title>
{page.head}</head>
<body>
<header class="masthead"><p class="brand">{escape(host)}: a pilot book</p>
<nav class="menu"><ul>
{_anchors(at[Position.NAV])}
</ul></nav></header>
<main id="content"><h1>{escape(page.title)}</h1>
{own}
</main>
{aside}<footer><p>Kept by the harbour office of {escape(host)}. Not to be used for navigation.</p><ul>
{_anchors(at[Position.FOOTER])}
</ul></footer>
</body>
</html>
"""


def _woven(paragraphs: Iterable[str], links: list[PageLink]) -> str:
    """Paragraphs with the links in small lists between them."""
    texts = list(paragraphs) or [""]
    share = -(-len(links) // len(texts))  # links after each paragraph, rounded up
    parts = []
    for number, text in enumerate(texts):
        parts.append(f"<p>{escape(text)}</p>")
        if group := links[number * share : (number + 1) * share]:
            parts.append(f"<ul>\n{_anchors(group)}\n</ul>")
    return "\n".join(parts)
