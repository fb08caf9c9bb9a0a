"""Optimal yield within a budget of pages on sites on this disk, each crawled breadth first as in a campaign."""

from __future__ import annotations

import gzip
import mimetypes
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from serving import Site

sys.path.append(str(Path(__file__).parent.parent / "quality" / "bandits"))
from worlds import optimum

from periplus.document.media_types import may_be_read
from periplus.document.understand import understand
from periplus.model.page import FOLLOWED_KINDS, Document
from periplus.model.visit import Fetched, Headers
from periplus.model.web import Url
from periplus.urls.canonical import url_id
from periplus.urls.hosts import path_and_query
from periplus_studies.rules import CLICK_LINKS

# media types for which nginx differs from Python
TYPES = {".xhtml": "application/xhtml+xml", ".md": "application/octet-stream"}


def best(sites: Sequence[Site], pages: int) -> int:
    """New external links of the best choice of breadth-first prefixes with `pages` pages in total;
    a dead link costs a page, as in a crawl.
    """
    counts = np.full((1, len(sites), pages), -1, np.int32)
    for row, site in zip(counts[0], sites, strict=True):
        yields = breadth_first(site, pages)
        row[: len(yields)] = yields
    return int(optimum(counts, pages)[0])


def breadth_first(site: Site, most: int) -> list[int]:
    """New external links of each of the first `most` pages."""
    base = f"http://{site.name}"
    paths, known, seen, yields = [site.start], {site.start}, set[int](), list[int]()
    for path in paths:  # links are appended in order of discovery, so by depth
        if len(yields) >= most:
            break
        document = page(site, base, path)
        fresh = (
            {
                int(url_id(link.target))
                for link in document.links
                if link.kind in CLICK_LINKS and not link.target.startswith(base + "/")
            }
            if document
            else set()
        )
        yields.append(len(fresh - seen))
        seen |= fresh
        for link in document.links if document else ():
            if link.kind in FOLLOWED_KINDS and not link.nofollow and link.target.startswith(base + "/"):
                target = path_and_query(link.target)
                if target not in known:
                    known.add(target)
                    paths.append(target)
    return yields


def page(site: Site, base: str, path: str) -> Document | None:
    """The page that the server sends for a path; None: not parsed."""
    file = site.root / unquote(path.partition("?")[0]).lstrip("/")
    if file.is_dir():
        file = file / "index.html"
    # Debian compresses large pages, and the server sends the compressed file instead
    packed = file.with_name(file.name + ".gz")
    if not file.is_file() and not packed.is_file():
        return None
    body = gzip.decompress(packed.read_bytes()) if packed.is_file() else file.read_bytes()
    media_type = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    if not may_be_read(media_type, body[:4096]):
        return None
    return understand(Url(base + path), Fetched(200, Headers((("content-type", media_type),)), body))


if __name__ == "__main__":
    for name, root, start in (argument.split(",") for argument in sys.argv[1:]):
        yields = breadth_first(Site(name, Path(root), start), 1000)
        print(
            name,
            len(yields),
            sum(yields),
            sorted(((count, place) for place, count in enumerate(yields)), reverse=True)[:3],
        )
