"""A site on one host: the pilot book of the Seven Lights coast, with deliberate faults (examples/README.md)."""

from __future__ import annotations

import hashlib
import re
import struct
import unicodedata
import zlib
from collections.abc import Iterator
from html import escape
from pathlib import Path

from periplus.values import frozen

HTML = "text/html; charset=utf-8"
# `/` has the same bytes as `/index.html`; both are listed, so that all hreflang links have return links.
HOMES = {"x-default": "/", "en": "/index.html"} | {
    language: f"/{language}/index.html" for language in ("cs", "de", "fr", "ru", "hu", "el", "pl")
}
NAV = {
    "en": (
        "index.html:Start en/ports/index.html:Harbours en/lights/index.html:Lights en/tides.html:Tides "
        "en/log/index.html:Log en/gallery.html:Pictures"
    ),
    "cs": "cs/index.html:Úvod cs/pristavy.html:Přístavy cs/majaky.html:Majáky index.html:English",
    "de": "de/index.html:Anfang de/haefen.html:Häfen de/leuchttuerme.html:Leuchttürme index.html:English",
    "fr": "fr/index.html:Accueil fr/ports.html:Ports fr/phares.html:Phares index.html:English",
    "ru": "ru/index.html:Начало ru/gavani.html:Гавани ru/mayaki.html:Маяки index.html:English",
    "hu": "hu/index.html:Kezdet hu/kikotok.html:Kikötők hu/vilagitotornyok.html:Tornyok index.html:English",
    "el": "el/index.html:Αρχή el/limania.html:Λιμάνια index.html:English",
    "pl": "pl/index.html:Początek pl/latarnie.html:Latarnie index.html:English",
}
FOOTER = (
    "en/about.html:About en/history.html:History en/glossary.html:Glossary en/knots.html:Knots "
    "en/weather.html:Weather en/notes.html:Notes "
    "en/large-chart.html:Chart private/ledger.html:Ledger"
)
REDIRECTS = {
    "/old/harbours.html": "/archive/harbours.html",
    "/archive/harbours.html": "/en/harbours/",
    "/en/harbours/": "/en/ports/index.html",
}
SVG_PICTURES = ("averby", "cape-thorn", "combs", "vellmouth", "kestrel")
PNG_PICTURES = ("port-lorne", "grey-skerry", "unnamed")
REPAIRS = {
    "/documents/register-1780.html": "The register of 1780",
    "/en/ports/old-quay-plan.html": "The plan of Old Quay",
}
ROBOTS = "User-agent: *\nDisallow: /private/\n\nSitemap: {base}/sitemap.xml\n"
STYLE = (
    b"body{font:17px/1.5 Georgia,serif;max-width:44rem;margin:auto;padding:1rem;background:#fbfaf5}nav a,footer "
    b"a{margin-right:1rem}td,th{padding:0 1rem 0 0}\n"
)
BERTHS = ("Averby, western wall", "Vellmouth, Rope Dock", "Port Lorne, pontoon", "Lorne Point, keeper's house")


def _menu(table: str) -> str:
    return " ".join(
        f'<a href="/{path}">{words}</a>' for path, _, words in (item.partition(":") for item in table.split())
    )


def _page(language: str, title: str, main: str, head: str = "") -> str:
    """The common template of all pages."""
    return f"""<!doctype html>
<html lang="{language}"><head>{head}{f"<title>{escape(title)}</title>" if title else ""}
<link rel="stylesheet" href="/style.css"></head>
<body><header><nav>{_menu(NAV[language])}</nav></header>
<main>
{main}
</main>
<footer><p>The Seven Lights harbour office, Customs House, Vellmouth. Not to be used for navigation.</p><p>{_menu(FOOTER)}</p></footer>
</body></html>
"""  # noqa: E501


def page_html(source: DemoPage) -> str:
    """A page of the sources as a document."""
    head = f'<meta charset="{source.charset}">' if source.declared in ("meta", "both") else ""
    head += f'<meta name="description" content="{escape(source.description)}">' if source.description else ""
    if source.path in HOMES.values():
        head += "".join(
            f'<link rel="alternate" hreflang="{language}" href="{path}">' for language, path in HOMES.items()
        )
    main = "\n".join(block_html(block) for block in source.blocks)
    if other := source.also or source.also_plain:
        main += f'\n<p><a href="{other}">{"To be printed" if source.also else "Bez diakritiky"}</a></p>'
    return _page(source.language, source.title, main, head)


def plain(text: str) -> str:
    """Text without diacritics."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))


def svg(name: str) -> bytes:
    """A lighthouse on a rock, its colours taken from the name."""
    hue = zlib.crc32(name.encode()) % 360
    parts = (
        f'<rect width="160" height="100" fill="hsl({hue},40%,80%)"/><path d="M0 75h160v25H0z" '
        f'fill="hsl({hue},45%,45%)"/>'
    )
    parts += (
        f'<path d="M{40 + hue % 70} 75l5-50h10l5 50z" fill="#fff"/><circle '
        f'cx="{50 + hue % 70}" cy="20" r="6" fill="#fc3"/>'
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 100">{parts}</svg>'.encode()


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
    near = "".join(
        f'<a href="/calendar/{m // 12:04d}/{m % 12 + 1:02d}.html">{m // 12:04d}-{m % 12 + 1:02d}</a> '
        for m in (months - 1, months + 1)
    )
    main = (
        f"<h1>Sailings in {year}-{month}</h1><p>The ferries sail at 7, 12 and 18 hours, every day "
        f"of the month.</p><p>{near}</p>"
    )
    return WebAnswer(200, HTML, _page("en", f"Sailings in {year}-{month}", main).encode())


def _booking(path: str, serial: int) -> WebAnswer | None:
    """Five pages whose links have a session id, a different one at each request."""
    sid = hashlib.md5(str(serial).encode(), usedforsecurity=False).hexdigest()
    name = path.removeprefix("/booking/").removesuffix(".html")
    if name == "index":
        links = "".join(
            f'<li><a href="/booking/{number}.html?sid={sid}">{berth}</a></li>' for number, berth in enumerate(BERTHS)
        )
        main = f"<h1>Berths to be booked</h1><p>Choose a place; the office answers by post.</p><ul>{links}</ul>"
        return WebAnswer(200, HTML, _page("en", "Book a berth", main).encode())
    if not name.isdecimal() or int(name) >= len(BERTHS):
        return None
    main = (
        f"<h1>{BERTHS[int(name)]}</h1><p>Free from the first of the month. <a "
        f'href="/booking/index.html?sid={sid}">All berths</a></p>'
    )
    return WebAnswer(200, HTML, _page("en", f"Berth: {BERTHS[int(name)]}", main).encode())


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
        self.fixed["/documents/rules.txt"] = WebAnswer(
            200, "text/plain; charset=utf-8", (folder / "documents/rules.txt").read_bytes()
        )
        self.fixed["/documents/saltworks.xml"] = WebAnswer(
            200, "application/xml", (folder / "documents/saltworks.xml").read_bytes()
        )
        for source in self.sources:
            self._add(source)
        self.fixed["/"] = self.fixed["/index.html"]
        if repaired:
            for path, title in REPAIRS.items():
                text = (
                    f"<h1>{title}</h1><p>Back from the binder.</p><p><a href='/en/ports/old-quay.html'>Old Quay</a></p>"
                )
                self.fixed[path] = WebAnswer(200, HTML, _page("en", title, text).encode())

    def _add(self, source: DemoPage) -> None:
        text = page_html(source)
        media_type = f"text/html; charset={source.charset}" if source.declared in ("header", "both") else "text/html"
        answer = WebAnswer(200, media_type, text.encode(source.charset, "xmlcharrefreplace"), wait_s=source.slow_s)
        self.fixed[source.path] = answer
        if source.also:
            self.fixed[source.also] = answer
        if source.also_plain:
            self.fixed[source.also_plain] = WebAnswer(
                200, "text/html", plain(text).encode("ascii", "xmlcharrefreplace")
            )

    def sitemap(self, base: str) -> bytes:
        """All pages except the private one, with the orphan page."""
        locations = "".join(
            f"<url><loc>{base}{source.path}</loc></url>\n"
            for source in self.sources
            if not source.path.startswith("/private/")
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<urlset '
            f'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{locations}</urlset>\n'
        ).encode()

    def answer(self, path: str, base: str, serial: int) -> WebAnswer:
        """The answer to a path without its query.

        base: the site's own origin; serial: a number that differs per request.
        """
        if path == "/robots.txt":
            return WebAnswer(200, "text/plain; charset=utf-8", ROBOTS.format(base=base).encode())
        if path == "/sitemap.xml":
            return WebAnswer(200, "application/xml", self.sitemap(base))
        made = (
            _calendar(path)
            if path.startswith("/calendar/")
            else _booking(path, serial)
            if path.startswith("/booking/")
            else self.fixed.get(path)
        )
        if made is None and path.startswith("/en/pilots/"):
            return WebAnswer(
                200,
                HTML,
                _page("en", "Page not found", "<h1>Page not found</h1><p>We have no pilot of that name.</p>").encode(),
            )
        return made or WebAnswer(
            404, HTML, _page("en", "Not found", "<h1>Not found</h1><p>This page has sunk.</p>").encode()
        )


# Reads the pages of the pilot book, which are UTF-8 files in a small markup language.
#
# `=== /path.html` begins a page; then lines `key: value` (title, charset, description, slow, orphan, also, also-plain);
# then blocks, separated by empty lines: `# ` and `## ` headings, `| a | b |` rows of a table (the first is its header),
# `- ` list items, `![alt](src)` an image (`![words](src) no alt`: the words are only its caption), anything else a
# paragraph. In text, `[words](href)` is a link and `*words*` is emphasis.


@frozen
class WebAnswer:
    """A response. media_type empty: no Content-Type is sent; wait_s: delay before it is sent, seconds."""

    status: int
    media_type: str
    body: bytes
    location: str = ""
    wait_s: float = 0.0


@frozen
class DemoPage:
    """The source of a page."""

    path: str
    title: str
    description: str
    charset: str
    declared: str  # where the charset is declared: header, meta, both or none
    slow_s: float
    orphan: bool  # only in the sitemap
    also: str  # a second path with the same bytes
    also_plain: str  # a second path with the text without diacritics
    blocks: tuple[str, ...]

    @property
    def language(self) -> str:
        """The first segment of the path; English for the home page."""
        first = self.path.split("/")[1]
        return first if len(first) == 2 else "en"


def read_sources(folder: Path) -> list[DemoPage]:
    """Every page of every file, in the order of file names."""
    return [source for file in sorted(folder.glob("*.txt")) for source in _pages(file.read_text("utf-8"))]


def _pages(text: str) -> Iterator[DemoPage]:
    for part in text.split("=== ")[1:]:
        path, _, rest = part.partition("\n")
        head, _, body = rest.partition("\n#")
        keys = dict(line.split(":", 1) for line in head.splitlines() if ":" in line)
        values = {key: value.strip() for key, value in keys.items()}
        charset, _, declared = values.get("charset", "utf-8 header").partition(" ")
        yield DemoPage(
            path.strip(),
            values.get("title", ""),
            values.get("description", ""),
            charset,
            declared,
            float(values.get("slow", "0")),
            "orphan" in values,
            values.get("also", ""),
            values.get("also-plain", ""),
            tuple(block.strip() for block in re.split(r"\n\s*\n", "#" + body) if block.strip()),
        )


def slug(heading: str) -> str:
    """The id of a heading: `The winter on the skerry` -> `the-winter-on-the-skerry`."""
    return re.sub(r"\W+", "-", heading.lower()).strip("-")


def inline(text: str) -> str:
    """A line of text as HTML, with its links and emphasis."""
    text = re.sub(r"\[([^]]*)\]\(([^)]*\(\)|[^)]*)\)", r'<a href="\2">\1</a>', escape(text, quote=False))
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def block_html(block: str) -> str:
    """One block as HTML."""
    if block.startswith("# "):
        return f"<h1>{inline(block[2:])}</h1>"
    if block.startswith("## "):
        return f'<h2 id="{slug(block[3:])}">{inline(block[3:])}</h2>'
    if block.startswith("!["):
        picture = re.fullmatch(r"!\[([^]]*)\]\(([^)]*)\)( no alt)?", block)
        assert picture, block
        words, src, bare = picture.groups()
        alt = "" if bare else f' alt="{escape(words)}"'
        return (
            f'<figure><img src="{src}"{alt} width="160" height="100"><figcaption>{escape(words)}</figcaption></figure>'
        )
    if block.startswith("- "):
        return "<ul>" + "".join(f"<li>{inline(line[2:])}</li>" for line in block.splitlines()) + "</ul>"
    if block.startswith("|"):
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
        cells = [("th" if number == 0 else "td", row) for number, row in enumerate(rows)]
        return (
            "<table>"
            + "".join(
                "<tr>" + "".join(f"<{tag}>{inline(cell)}</{tag}>" for cell in row) + "</tr>\n" for tag, row in cells
            )
            + "</table>"
        )
    return f"<p>{inline(' '.join(block.splitlines()))}</p>"
