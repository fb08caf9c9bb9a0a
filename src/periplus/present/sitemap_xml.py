"""How does a site tell others of its pages? As sitemap.xml, with an index above it where one file is not enough."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from periplus.document.sitemaps import MAX_ENTRIES, MAX_INFLATED_BYTES
from periplus.model.web import Url
from periplus.present.wording import iso
from periplus.present.xml_text import escaped

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
MAX_BYTES = MAX_INFLATED_BYTES  # the protocol has 52,428,800; less is what our own reader takes, and it costs nothing
URL_CHARACTERS = 2047  # the protocol: less than 2,048


@dataclass(frozen=True, slots=True)
class SitemapFile:
    """One file, to be put at `origin` + `/` + `name`: only there may it speak of the origin's pages."""

    origin: str  # scheme://host, as the URLs write it
    name: str  # sitemap.xml, or sitemap-1.xml and so on below the index sitemap.xml; with .gz where asked
    entries: int
    left_out: int  # addresses too long for the protocol, said in the last file of an origin
    body: bytes


@dataclass(slots=True)
class _Part:
    """A file in the making."""

    lines: list[str] = field(default_factory=list)
    bytes_so_far: int = 0
    newest: float = 0.0

    def has_room(self, line: str, max_urls: int) -> bool:
        return len(self.lines) < max_urls and self.bytes_so_far + len(line.encode("utf-8")) <= MAX_BYTES - 500  # 500: head and end

    def add(self, line: str, lastmod: float) -> None:
        self.lines.append(line)
        self.bytes_so_far += len(line.encode("utf-8"))
        self.newest = max(self.newest, lastmod)


def sitemap_files(pages: Iterable[tuple[Url, float]], *, compressed: bool = False, max_urls: int = MAX_ENTRIES) -> Iterator[SitemapFile]:
    """The sitemaps of the pages, origin by origin, each index after its parts. Holds two files in memory at most.

    pages: (URL, when its content last changed, in seconds since the epoch, or 0.0 where that is not known), each once and an
    origin's pages together, as in the order of URLs. Which pages are worth naming the caller decides: fetched, not noindex, not
    a duplicate. Neither priority nor changefreq is written: nobody observed them. compressed: gzip, with `.gz` to the names.
    Source: sitemaps.org protocol 0.9: UTF-8, one host a file, 50,000 URLs and 50 MB a file, an index above.
    """
    ending = ".xml.gz" if compressed else ".xml"
    for origin, group in groupby(pages, lambda page: page[0][: page[0].index("/", 8)]):
        listed: list[tuple[str, float]] = []
        part, left_out = _Part(), 0
        for url, lastmod in group:
            if len(url) > URL_CHARACTERS:
                left_out += 1
                continue
            line = _entry("url", url, lastmod)
            if not part.has_room(line, max_urls):
                listed.append((f"sitemap-{len(listed) + 1}{ending}", part.newest))
                yield SitemapFile(origin, listed[-1][0], len(part.lines), 0, _body("urlset", part.lines, compressed))
                part = _Part()
            part.add(line, lastmod)
        if not listed:
            yield SitemapFile(origin, "sitemap" + ending, len(part.lines), left_out, _body("urlset", part.lines, compressed))
            continue
        listed.append((f"sitemap-{len(listed) + 1}{ending}", part.newest))
        yield SitemapFile(origin, listed[-1][0], len(part.lines), 0, _body("urlset", part.lines, compressed))
        index = [_entry("sitemap", f"{origin}/{name}", newest) for name, newest in listed]
        yield SitemapFile(origin, "sitemap" + ending, len(index), left_out, _body("sitemapindex", index, compressed))


def _entry(element: str, url: str, lastmod: float) -> str:
    when = f"<lastmod>{iso(lastmod)}</lastmod>" if lastmod > 0 else ""
    return f"<{element}><loc>{escaped(url)}</loc>{when}</{element}>\n"


def _body(root: str, lines: list[str], compressed: bool) -> bytes:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{NAMESPACE}">\n{"".join(lines)}</{root}>\n'.encode()
    return gzip.compress(text, mtime=0) if compressed else text  # mtime: the same pages give the same bytes
