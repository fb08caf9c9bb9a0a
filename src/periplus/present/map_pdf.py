"""How does a map become a PDF: for paper, for a file of minutes, for those who want no browser?"""

from __future__ import annotations

from typing import BinaryIO

from periplus.model.results import About, PageColumns, SiteMap
from periplus.present.map_transform import SHOWN, Limits, transformed

# 10,000 pages, 160 sheets of paper: 6 s, 900 MB, a file of 20 MB; twice as many take 20 s and 1.7 GB. 80 layers: as on the page for
# a browser, and each costs the stylesheet a nested template, of which libxslt allows 3,000.
LIMITS = Limits("a PDF", pages=10_000, layers=80)


def typst_source(site_map: SiteMap, facts: PageColumns, about: About, *, values: tuple[str, ...] = SHOWN, max_depth: int = -1) -> str:
    """The map as a typst document, from which `write_map_pdf` sets the pages."""
    return str(transformed("map-typst.xsl", site_map, facts, about, LIMITS, (values, max_depth)))


def write_map_pdf(site_map: SiteMap, facts: PageColumns, about: About, out: BinaryIO, *, values: tuple[str, ...] = SHOWN, max_depth: int = -1) -> None:
    """A4 pages with a head, a legend, bookmarks of the branches in layer 1, and a row a page that links to it.

    values, max_depth: as in `write_map_xhtml`. The same map gives the same bytes on the same fonts. Latin, Greek and Cyrillic
    are in the fonts that typst brings; for other scripts (Chinese, Japanese, Arabic, ...) it takes the system's, and where
    there are none, boxes stand for the signs. Nothing is loaded from a network.
    Raises UsageError for an unknown value or more than LIMITS.pages.
    """
    import typst

    source = typst_source(site_map, facts, about, values=values, max_depth=max_depth)
    out.write(typst.compile(source.encode("utf-8"), format="pdf"))
