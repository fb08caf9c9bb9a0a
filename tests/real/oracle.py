"""An independent reader of a site, with html.parser and http.client of the standard library.

It uses no code of Periplus. It requests each page reachable from the home page once, and each target of a link on the
same host.
"""

from __future__ import annotations

import hashlib
import html.parser
import http.client
import re
import string
from collections import deque
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

TIMEOUT_S = 30.0
NOT_DEAD = frozenset({401, 403})  # access refused, not a fault of the site
PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml"})
HREF_TAGS = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}
NO_PAGE_RELS = frozenset({
    "stylesheet", "icon", "shortcut", "mask-icon", "apple-touch-icon", "preload", "prefetch", "preconnect",
    "dns-prefetch", "modulepreload",
    "manifest", "search", "pingback", "schema.dc", "schema.dcterms", "profile", "nofollow", "noopener", "noreferrer",
})  # fmt: skip
UNFOLLOWED = frozenset({"nofollow", "ugc", "sponsored"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_META_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"""<\?xml[^>]+encoding\s*=\s*["']([\w-]+)""")
_REFRESH = re.compile(r"""\s*[\d.]+\s*[;,\s]\s*(?:url\s*=\s*)?["']?([^"']+)""", re.IGNORECASE)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_PLAIN = frozenset((string.ascii_letters + string.digits + "-._~").encode())


@dataclass(slots=True)
class PageRead:
    """An answer.

    links: (absolute URL without fragment, fragment), in the page's order; clicks: URLs that a visitor can click; names:
    anchors.
    """

    status: int
    is_page: bool = False
    moved_to: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)
    clicks: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    digest: bytes = b""  # of the body


@dataclass(frozen=True, slots=True)
class Sight:
    """A site as seen by a reader (the oracle or Periplus), all URLs in `normal` form."""

    depths: dict[str, int | None]  # of fetched pages: clicks from the home page; None: not reachable by clicks
    edges: frozenset[tuple[str, str]]  # (page, URL of the same host that it links to)
    dead: frozenset[tuple[str, str]]  # edges with a dead target
    fragments: frozenset[tuple[str, str, str]]  # (page, target page, missing anchor)
    digests: dict[str, bytes] = field(default_factory=dict)  # of the pages' bytes, if known


def normal(url: str) -> str:
    """One spelling for URLs that are equivalent by RFC 3986, 6.2.2, so that spelling does not count as a
    difference.
    """

    def one(match: re.Match[str]) -> str:
        value = int(match[1], 16)
        return chr(value) if value in _PLAIN else match[0].upper()

    return _ESCAPE.sub(one, url)


def read_site(root: str, start: str, port: int) -> Sight:
    """Reads a site. root: http://host:port; the host is not resolved: requests go to 127.0.0.1."""
    pages = _fetched(root, root + start, port)
    depths = _depths(pages, root + start)
    read = {url for url, page in pages.items() if page.is_page}
    edges = {(url, target) for url in read for target, _ in pages[url].links if target in pages and target != url}
    dead = {(url, target) for url, target in edges if _is_dead(pages, target)}
    lost = {
        (url, target, unquote(place))
        for url in read
        for target, place in pages[url].links
        if target in read and place and not _is_there(place, pages[target].names)
    }
    return Sight(
        {url: depths.get(url) for url in read},
        frozenset(edges),
        frozenset(dead),
        frozenset(lost),
        {url: pages[url].digest for url in read},
    )


def _is_dead(pages: dict[str, PageRead], url: str) -> bool:
    return pages[url].status >= 400 and pages[url].status not in NOT_DEAD


def _is_there(place: str, names: frozenset[str]) -> bool:
    """Source: HTML Living Standard, 7.4.6.4.

    Fragments that begin with / or ! (but not //) count as script routes, as in Periplus.
    """
    decoded = unquote(place)
    return (
        place in names
        or decoded in names
        or decoded.lower() == "top"
        or (decoded[:1] in ("", "/", "!") and decoded[:2] != "//")
    )


def _fetched(root: str, start: str, port: int) -> dict[str, PageRead]:
    """All pages of the host reachable by links and redirects."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    pages: dict[str, PageRead] = {}
    queue = deque([start])
    while queue:
        url = queue.popleft()
        if url in pages:
            continue
        page = pages[url] = _answer(connection, root, url)
        onward = [page.moved_to] if page.moved_to else [target for target, _ in page.links]
        queue.extend(
            target for target in dict.fromkeys(onward) if target not in pages and target.startswith(root + "/")
        )
    connection.close()
    return pages


def _answer(connection: http.client.HTTPConnection, root: str, url: str) -> PageRead:
    connection.request(
        "GET", url.removeprefix(root), headers={"Host": urlsplit(root).netloc, "Connection": "keep-alive"}
    )
    answer = connection.getresponse()
    media_type, _, parameters = (answer.getheader("Content-Type") or "").partition(";")
    where = answer.getheader("Location")
    body = answer.read()
    unsaid = media_type.strip().lower() in ("", "application/octet-stream") and body[:200].lstrip().lower().startswith(
        (b"<!doctype html", b"<html")
    )
    is_page = answer.status == 200 and (unsaid or media_type.strip().lower() in PAGE_TYPES)
    if where and 300 <= answer.status < 400:
        return PageRead(answer.status, moved_to=normal((absolute(where, url) or ("", ""))[0]))
    return _read(body, parameters, url) if is_page else PageRead(answer.status)


def _read(body: bytes, parameters: str, url: str) -> PageRead:
    reader = Reader()
    reader.feed(_text(body, parameters))
    reader.close()
    base = (absolute(reader.base, url) or (url, ""))[0] if reader.base else url
    found = [(*where, is_click) for href, is_click in reader.hrefs if (where := absolute(href, base))]
    return PageRead(
        200,
        True,
        "",
        [(normal(target), place) for target, place, _ in found],
        frozenset(normal(target) for target, _, is_click in found if is_click),
        frozenset(reader.names),
        hashlib.sha256(body).digest(),
    )


def _text(body: bytes, parameters: str) -> str:
    said = re.search(r"charset=\"?([\w-]+)", parameters, re.IGNORECASE)
    named = _META_CHARSET.search(body[:4096]) or _XML_CHARSET.match(body[:200])
    for charset in (said[1] if said else "", named[1].decode() if named else "", "utf-8"):
        with_other_name = {"iso-8859-1": "cp1252", "us-ascii": "cp1252", "latin1": "cp1252"}.get(
            charset.lower(), charset
        )
        try:
            if charset:
                return body.decode(with_other_name)
        except (UnicodeDecodeError, LookupError):
            continue
    return body.decode("cp1252", "replace")


def _depths(pages: dict[str, PageRead], start: str) -> dict[str, int]:
    """Clicks from start; a redirect is not a click. Shortest paths with steps of length 0 or 1."""
    depths, done = {start: 0}, set()
    queue = deque([start])
    while queue:
        url = queue.popleft()
        if url in done:
            continue
        done.add(url)
        page = pages[url]
        step = 0 if page.moved_to else 1
        for target in [page.moved_to] if page.moved_to else page.clicks:
            if target in pages and depths[url] + step < depths.get(target, 1 << 30):
                depths[target] = depths[url] + step
                queue.append(target) if step else queue.appendleft(target)
    return depths


class Reader(html.parser.HTMLParser):
    """Collects hrefs of links to pages, as written and with whether they can be clicked, and anchors.

    A link element to an anchor of its own page is skipped, as in Periplus: readers cannot follow it.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.base = ""
        self.hrefs: list[tuple[str, bool]] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: dict[str, str] = {}
        for name, value in attrs:
            given.setdefault(name, value or "")
        self.names.update(filter(None, (given.get("id"), given.get("name") if tag == "a" else "")))
        rel = set(given.get("rel", "").lower().split())
        if tag in HREF_TAGS and HREF_TAGS[tag] in given:
            if not (rel & UNFOLLOWED and tag in ("a", "area")):
                self.hrefs.append((given[HREF_TAGS[tag]], True))
        elif (
            tag == "link"
            and given.get("href", "#")[:1] != "#"
            and rel
            and "stylesheet" not in rel
            and rel - NO_PAGE_RELS
        ):
            self.hrefs.append((given["href"], False))
        elif tag == "base" and not self.base:
            self.base = given.get("href", "")
        elif (
            tag == "meta"
            and given.get("http-equiv", "").lower() == "refresh"
            and (match := _REFRESH.match(given.get("content", "")))
        ):
            self.hrefs.append((match[1], True))


def absolute(href: str, base: str) -> tuple[str, str] | None:
    """(URL without fragment, fragment) of a reference on a page; None if it is not a web page.

    Source: RFC 3986, 5.2, with the extensions of browsers: blanks at the ends and line ends are dropped, backslashes
    are slashes. Not urllib.parse.urljoin, which collapses `//` within a path.
    """
    written = "".join(href.strip("".join(map(chr, range(33)))).split("\n")).replace("\t", "").replace("\r", "")
    written, mark, place = written.partition("#")
    written = written if mark or written else ""
    scheme = _SCHEME.match(written)
    if scheme and scheme[1].lower() not in ("http", "https"):
        return None
    head, query_mark, query = written.partition("?")
    head = head.replace("\\", "/")
    parts = urlsplit(base)
    origin, folder = f"{parts.scheme}://{parts.netloc}", parts.path.rpartition("/")[0]
    # `http:x` is relative on an http page: URL Standard, 4.4
    if scheme and scheme[1].lower() == parts.scheme and head[len(scheme[0]) :][:1] != "/":
        head, scheme = head[len(scheme[0]) :], None
    if scheme:
        whole, rest = head.partition(":")[0].lower(), head.partition(":")[2].lstrip("/")
        host, slash, path = rest.partition("/")
        origin, path = f"{whole}://{host.lower()}", slash + path
        origin = origin.removesuffix(":80") if whole == "http" else origin.removesuffix(":443")
    elif head.startswith("//"):
        host, slash, path = head[2:].partition("/")
        origin, path = f"{parts.scheme}://{host.lower()}", slash + path
    elif not head:
        path, query_mark, query = (
            parts.path,
            query_mark or ("?" if parts.query else ""),
            query if query_mark else parts.query,
        )
    else:
        path = head if head.startswith("/") else f"{folder}/{head}"
    return origin + _quoted(_without_dots(path or "/"), ' "<>`{}^') + (
        query_mark + _quoted(query, " \"<>'") if query_mark else ""
    ), place


def _without_dots(path: str) -> str:
    """Source: RFC 3986, 5.2.4. Also with dots written %2e, as browsers do."""
    steps = path.split("/")[1:]
    out: list[str] = []
    for number, step in enumerate(steps):
        plain = step.lower().replace("%2e", ".")
        if plain in (".", ".."):
            if plain == "..":
                del out[-1:]
            if number == len(steps) - 1:
                out.append("")
        else:
            out.append(step)
    return "/" + "/".join(out)


def _quoted(text: str, special: str) -> str:
    """Percent-encodes characters that a URL cannot contain; existing escapes are kept."""
    return "".join(
        char if " " < char < "\x7f" and char not in special else "".join(f"%{byte:02X}" for byte in char.encode())
        for char in text
    )
