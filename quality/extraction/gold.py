"""Which pages have been labelled, and what do they say is their content?

Files of the folder that CORPORA names (`extraction-*.jsonl.gz`), when it is set; the project's own made sites always.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SETS = ("daniel", "dragnet", "cleanportal", "debdocs", "wcxb-dev350", "scrapinghub", "cleaneval")
# scored over all their pages; the others over sites of LEAST_PAGES and more
SINGLE = frozenset({"wcxb-dev350", "scrapinghub", "cleaneval"})
POOLED = ("daniel", "dragnet", "cleanportal")
FIVE = ("daniel", "dragnet", "cleanportal", "debdocs", "wcxb-dev350")
LEAST_PAGES = 4


class GoldPage(NamedTuple):
    """A page with the text that people took for its content."""

    site: str  # one's own name where the set knows none
    html: str
    gold: str
    kind: str = ""  # of page, where the set knows it: article, documentation, forum, ...


def folder() -> Path | None:
    """Where the labelled files lie, when the environment says so."""
    named = os.environ.get("CORPORA")
    return Path(named) if named else None


def read(name: str) -> list[GoldPage]:
    """All pages of a set; none when it is not there."""
    place = folder()
    path = place / f"extraction-{name}.jsonl.gz" if place else None
    return list(_lines(path)) if path and path.exists() else []


def _lines(path: Path) -> Iterator[GoldPage]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file):
            row = json.loads(line)
            yield GoldPage(row["site"] or f"page {number}", row["html"], row["gold"], row.get("kind") or "")


def by_site(pages: list[GoldPage]) -> dict[str, list[GoldPage]]:
    """A set's pages, site by site."""
    sites: dict[str, list[GoldPage]] = defaultdict(list)
    for page in pages:
        sites[page.site].append(page)
    return dict(sites)


_FAMILIES = ("gimp-help", "debian-handbook", "lo-help", "aptitude")  # manuals in several languages, of one template


def source(site: str) -> str:
    """What is left out together when a site is held out: the site, or all languages of a manual."""
    return next((family for family in _FAMILIES if site.startswith(family)), site)


def counts(name: str, site: list[GoldPage]) -> bool:
    """Whether a site's pages are scored."""
    return name in SINGLE or len(site) >= LEAST_PAGES


def digest(pages: list[GoldPage]) -> str:
    """Names the data that a score was measured on."""
    found = hashlib.sha256()
    for page in pages:
        found.update("\0".join((page.site, page.html, page.gold)).encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:16]
