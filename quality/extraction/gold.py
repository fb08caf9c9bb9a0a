"""Labelled pages with their content.

Files `extraction-*.jsonl.gz` of the folder CORPORA, if it is set; the project's own generated sites always.
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
# scored on all pages; other sets only on sites with at least LEAST_PAGES pages
SINGLE = frozenset({"wcxb-dev350", "scrapinghub", "cleaneval"})
POOLED = ("daniel", "dragnet", "cleanportal")
FIVE = ("daniel", "dragnet", "cleanportal", "debdocs", "wcxb-dev350")
LEAST_PAGES = 4


class GoldPage(NamedTuple):
    """A page with the text that annotators labelled as content."""

    site: str  # unique if the set names no site
    html: str
    gold: str
    kind: str = ""  # of page, if the set has it: article, documentation, forum, ...


def folder() -> Path | None:
    """The folder of labelled files, if the environment names one."""
    named = os.environ.get("CORPORA")
    return Path(named) if named else None


def read(name: str) -> list[GoldPage]:
    """All pages of a set; empty if it is missing."""
    place = folder()
    path = place / f"extraction-{name}.jsonl.gz" if place else None
    return list(_lines(path)) if path and path.exists() else []


def _lines(path: Path) -> Iterator[GoldPage]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file):
            row = json.loads(line)
            yield GoldPage(row["site"] or f"page {number}", row["html"], row["gold"], row.get("kind") or "")


def by_site(pages: list[GoldPage]) -> dict[str, list[GoldPage]]:
    """The pages of a set by site."""
    sites: dict[str, list[GoldPage]] = defaultdict(list)
    for page in pages:
        sites[page.site].append(page)
    return dict(sites)


_FAMILIES = ("gimp-help", "debian-handbook", "lo-help", "aptitude")  # manuals in several languages with one template


def source(site: str) -> str:
    """The unit that is held out: the site, or all languages of a manual."""
    return next((family for family in _FAMILIES if site.startswith(family)), site)


def counts(name: str, site: list[GoldPage]) -> bool:
    """Whether the pages of a site are scored."""
    return name in SINGLE or len(site) >= LEAST_PAGES


def digest(pages: list[GoldPage]) -> str:
    """Digest of the data that a score was measured on."""
    found = hashlib.sha256()
    for page in pages:
        found.update("\0".join((page.site, page.html, page.gold)).encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:16]
