"""How does a map become a page for a browser: a tree that opens without script, with a filter where there is one?"""

from __future__ import annotations

from typing import BinaryIO

from periplus.model.results import About, PageColumns, SiteMap
from periplus.present.map_transform import SHOWN, Limits, transformed

# 50,000 pages: 3.2 s, 560 MB and a file of 28 MB, which a browser opens in 5 s; twice as many take 7 to 18 s and 1.1 GB.
# 80 layers: three elements a layer keep the page under the 256 nested elements of libxml2 and the 512 of browsers' HTML.
LIMITS = Limits("a page for a browser", pages=50_000, layers=80)


def write_map_xhtml(site_map: SiteMap, facts: PageColumns, about: About, out: BinaryIO, *, values: tuple[str, ...] = SHOWN, max_depth: int = -1) -> None:
    """One XHTML page in UTF-8 that needs nothing else and is read alike as XML (.xhtml) and as HTML (.html).

    values: which of VALUES stand beside each page; those that no page has take no room. max_depth: the last layer shown,
    -1: down to LIMITS.layers; what is cut is counted where it would stand. Bytes behind links are drawn as a small bar.
    Not streamed. Raises UsageError for an unknown value or more than LIMITS.pages.
    """
    transformed("map-xhtml.xsl", site_map, facts, about, LIMITS, (values, max_depth)).write_output(out)  # type: ignore[attr-defined]  # lxml-stubs lacks it
