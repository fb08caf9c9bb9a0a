"""A site on one host: the pilot book of the Seven Lights coast, with deliberate faults (examples/README.md)."""

from __future__ import annotations

import hashlib
import struct
import unicodedata
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from periplus.values import frozen

HTML = "text/html; charset=utf-8"
REDIRECTS = {
    "/old/harbours.html": "/archive/harbours.html",
    "/archive/harbours.html": "/en/harbours/",
    "/en/harbours/": "/en/ports/index.html",
}
SVG_PICTURES = ("averby", "cape-thorn", "combs", "vellmouth", "kestrel")
PNG_PICTURES = ("port-lorne", "grey-skerry", "unnamed")
ROBOTS = "User-agent: *\nDisallow: /private/\n\nSitemap: {base}/sitemap.xml\n"
STYLE = (
    b"body{font:17px/1.5 Georgia,serif;max-width:44rem;margin:auto;padding:1rem;background:#fbfaf5}nav a,footer "
    b"a{margin-right:1rem}td,th{padding:0 1rem 0 0}\n"
)
BERTHS = 4
_NO_PILOT = "<h1>Page not found</h1><p>We have no pilot of that name.</p>"
_SUNK = "<h1>Not found</h1><p>This page has sunk.</p>"


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(loader=jinja2.PackageLoader("periplus_demo"), autoescape=True)


def render(template: str, **values: object) -> str:
    """A template of this package; values are escaped, except Markup."""
    return _templates().get_template(template).render(values)


@frozen
class WebAnswer:
    """A response. media_type empty: no Content-Type is sent; wait_s: delay before it is sent, seconds."""

    status: int
    media_type: str
    body: bytes
    location: str = ""
    wait_s: float = 0.0


def page(template: str, status: int = 200, **values: object) -> WebAnswer:
    """An English page of the site."""
    return WebAnswer(status, HTML, render(template, language="en", **values).encode() + b"\n")


def plain(text: str) -> str:
    """Text without diacritics."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))


def svg(name: str) -> bytes:
    """A lighthouse on a rock, its colours taken from the name."""
    return render("picture.html", hue=zlib.crc32(name.encode()) % 360).encode()


def png(name: str) -> bytes:
    """Sky above sea, 160 by 100 pixels, with colours derived from the name."""
    seed = zlib.crc32(name.encode())
    rows = b"".join(
        b"\0"
        + (bytes((150, 180 + seed % 40, 220 - line // 2)) if line < 70 else bytes((20, 60 + seed % 50, 120))) * 160
        for line in range(100)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 160, 100, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def _calendar(path: str) -> WebAnswer | None:
    """/calendar/2026/05.html, with links to the neighbouring months, without end."""
    year, _, month = path.removeprefix("/calendar/").removesuffix(".html").partition("/")
    if not (year.isdecimal() and month.isdecimal() and 1 <= int(month) <= 12 and len(year) <= 4):
        return None
    months = int(year) * 12 + int(month) - 1
    near = [(number // 12, number % 12 + 1) for number in (months - 1, months + 1)]
    return page("calendar.html", month=f"{year}-{month}", near=near)


def _booking(path: str, serial: int) -> WebAnswer | None:
    """Five pages whose links have a session id, a different one at each request."""
    sid = hashlib.md5(str(serial).encode(), usedforsecurity=False).hexdigest()
    name = path.removeprefix("/booking/").removesuffix(".html")
    if name == "index":
        return page("booking.html", sid=sid, berth=None)
    return page("booking.html", sid=sid, berth=int(name)) if name.isdecimal() and int(name) < BERTHS else None


class Harbours:
    """The answers of the site: all in memory, except for its endless parts."""

    def __init__(self, folder: Path, *, repaired: bool = False) -> None:
        """repaired: with the two pages to which the broken links lead."""
        self.sources = read_sources(folder / "pages")
        self.fixed: dict[str, WebAnswer] = {"/style.css": WebAnswer(200, "text/css", STYLE)}
        self.fixed |= {
            path: WebAnswer(301, HTML, b"<title>Moved</title>", target) for path, target in REDIRECTS.items()
        }
        self.fixed |= {f"/images/{name}.svg": WebAnswer(200, "image/svg+xml", svg(name)) for name in SVG_PICTURES}
        self.fixed |= {f"/images/{name}.png": WebAnswer(200, "image/png", png(name)) for name in PNG_PICTURES}
        for name, kind in (("rules.txt", "text/plain; charset=utf-8"), ("saltworks.xml", "application/xml")):
            self.fixed[f"/documents/{name}"] = WebAnswer(200, kind, (folder / "documents" / name).read_bytes())
        for source in self.sources + (read_sources(folder / "repairs") if repaired else []):
            self._add(source)
        self.fixed["/"] = self.fixed["/index.html"]

    def _add(self, source: BookPage) -> None:
        text = render("source.html", source=source, language=source.language, title=source.title) + "\n"
        media_type = f"text/html; charset={source.charset}" if source.declared in ("header", "both") else "text/html"
        answer = WebAnswer(200, media_type, text.encode(source.charset, "xmlcharrefreplace"), wait_s=source.slow_s)
        self.fixed[source.path] = answer
        if source.also:
            self.fixed[source.also] = answer
        if source.also_plain:
            self.fixed[source.also_plain] = WebAnswer(
                200, "text/html", plain(text).encode("ascii", "xmlcharrefreplace")
            )

    def answer(self, path: str, base: str, serial: int) -> WebAnswer:
        """The answer to a path without its query.

        base: the site's own origin; serial: a number that differs per request.
        """
        if path == "/robots.txt":
            return WebAnswer(200, "text/plain; charset=utf-8", ROBOTS.format(base=base).encode())
        if path == "/sitemap.xml":  # all pages except the private one, with the orphan page
            sitemap = render("sitemap.xml", sources=self.sources, base=base) + "\n"
            return WebAnswer(200, "application/xml", sitemap.encode())
        made = (
            _calendar(path)
            if path.startswith("/calendar/")
            else _booking(path, serial)
            if path.startswith("/booking/")
            else self.fixed.get(path)
        )
        if made is None and path.startswith("/en/pilots/"):
            return page("page.html", title="Page not found", main=Markup(_NO_PILOT))
        return made or page("page.html", 404, title="Not found", main=Markup(_SUNK))


# The pages of the pilot book are in UTF-8 files: `=== /path.html` begins a page; then lines `key: value` (title,
# charset, description, slow, orphan, also, also-plain); then an empty line and the HTML of its text.


@frozen
class BookPage:
    """A page in the files."""

    path: str
    title: str
    description: str
    charset: str
    declared: str  # where the charset is declared: header, meta, both or none
    slow_s: float
    also: str  # a second path with the same bytes
    also_plain: str  # a second path with the text without diacritics
    main: Markup

    @property
    def language(self) -> str:
        """The first segment of the path; English for the home page."""
        first = self.path.split("/")[1]
        return first if len(first) == 2 else "en"


def read_sources(folder: Path) -> list[BookPage]:
    """Every page of every file, in the order of file names."""
    return [source for file in sorted(folder.glob("*.txt")) for source in _pages(file.read_text("utf-8"))]


def sections(text: str) -> list[tuple[str, str]]:
    """(head, text below it) of each section: a head follows `=== `."""
    parts = [part.partition("\n") for part in text.split("=== ")[1:]]
    return [(head.strip(), below.strip()) for head, _, below in parts]


def _pages(text: str) -> Iterator[BookPage]:
    for path, rest in sections(text):
        head, _, main = rest.partition("\n\n")
        keys = dict(line.split(":", 1) for line in head.splitlines())
        values = {key: value.strip() for key, value in keys.items()}
        charset, _, declared = values.get("charset", "utf-8 header").partition(" ")
        yield BookPage(
            path,
            values.get("title", ""),
            values.get("description", ""),
            charset,
            declared,
            float(values.get("slow", "0")),
            values.get("also", ""),
            values.get("also-plain", ""),
            Markup(main),
        )
