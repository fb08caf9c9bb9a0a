"""How many new external links do pages of real documentation sites have, in breadth-first order?

The sites are HTML manuals of Debian packages, read from disk with the project's own document code. A cache outside
the project stores only numbers and addresses (which page has which links), no pages.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from periplus.document.understand import understand
from periplus.model.page import LinkKind
from periplus.model.visit import Fetched, Headers
from periplus.model.web import Url
from periplus.urls.canonical import url_id
from periplus.urls.hosts import path_and_query

MOST_PAGES = 6000  # read per site: three times the budget of a campaign
CACHE = Path("/tmp/periplus-quality/manuals")
EDITION = 1  # version of the cached data, part of each file's name
CLICKED = frozenset({LinkKind.ANCHOR, LinkKind.AREA})
FOLLOWED = CLICKED | {LinkKind.FRAME, LinkKind.IFRAME, LinkKind.REFRESH}
PAGES = frozenset({".html", ".htm", ".xhtml"})

SITES = {  # name: folder, start
    "apache": ("usr/share/doc/apache2-doc/manual", "/en/index.html"),
    "bind": ("usr/share/doc/bind9-doc/arm", "/index.html"),
    "boost": ("usr/share/doc/libboost1.74-doc", "/doc/html/index.html"),
    "cppreference": ("usr/share/cppreference/doc/html", "/en/index.html"),
    "django": ("usr/share/doc/python-django-doc/html", "/index.html"),
    "erlang": ("usr/share/doc/erlang-doc", "/doc/index.html"),
    "exim": ("usr/share/doc/exim4-doc-html/spec_html", "/index.html"),
    "ghc": ("usr/share/doc/ghc-doc/html", "/index.html"),
    "git": ("usr/share/doc/git-doc", "/index.html"),
    "handbook": ("usr/share/doc/debian-handbook/html", "/en-US/index.html"),
    "lilypond": ("usr/share/doc/lilypond/html", "/index.html"),
    "policy": ("usr/share/doc/debian-policy/policy.html", "/index.html"),
    "postgresql": ("usr/share/doc/postgresql-doc-15/html", "/index.html"),
    "python": ("usr/share/doc/python3.11/html", "/index.html"),
    "qt": ("usr/share/qt5/doc", "/qtcore/qtcore-index.html"),
    "r": ("usr/share/R/doc", "/manual/R-intro.html"),
    "scipy": ("usr/share/doc/python-scipy-doc/html", "/index.html"),
    "sphinx": ("usr/share/doc/sphinx-doc/html", "/index.html"),
    "sqlite": ("usr/share/doc/sqlite3", "/index.html"),
    "nodejs": ("usr/share/doc/nodejs/api", "/index.html"),
    "valgrind": ("usr/share/doc/valgrind/html", "/index.html"),
    "libxslt": ("usr/share/doc/libxslt1-dev/html", "/index.html"),
}


@dataclass(frozen=True, slots=True)
class Manual:
    """One site.

    Pages are in breadth-first order; links of page i: (page, anchor, position); external: ids of
    target URLs, each once per page.
    """

    name: str
    paths: list[str]
    links: list[list[tuple[int, str, str]]]
    external: list[list[int]]

    def yields(self) -> list[int]:
        """New external links of each page, in breadth-first order."""
        seen: set[int] = set()
        counts = []
        for targets in self.external:
            fresh = set(targets) - seen
            seen |= fresh
            counts.append(len(fresh))
        return counts


def read(name: str, root: Path) -> Manual:
    """Breadth first from the start, as a crawl would see it; addresses without a file are skipped."""
    folder, start = SITES[name]
    base = f"http://{name}.test"
    number = {start: 0}
    paths, links, external = [start], [], []
    for path in paths:
        file = root / folder / unquote(path.partition("?")[0]).lstrip("/")
        document = understand(
            Url(base + path), Fetched(200, Headers((("content-type", "text/html"),)), file.read_bytes())
        )
        inner, outer = [], []
        for link in document.links:
            if link.target.startswith(base + "/"):
                target = path_and_query(link.target)
                if link.kind not in FOLLOWED or not is_page(root / folder, target):
                    continue
                if target not in number:
                    if len(paths) >= MOST_PAGES:
                        continue
                    number[target] = len(paths)
                    paths.append(target)
                inner.append((number[target], link.anchor[:80], str(link.position)))
            elif link.kind in CLICKED and link.target.startswith(("http://", "https://")):
                outer.append(int(url_id(link.target)))
        links.append(inner)
        external.append(sorted(set(outer)))
    return Manual(name, paths, links, external)


def is_page(folder: Path, target: str) -> bool:
    file = folder / unquote(target.partition("?")[0]).lstrip("/")
    return file.suffix in PAGES and "?" not in target and file.is_file()


def manual(name: str, root: Path, cache: Path = CACHE) -> Manual | None:
    """From the cache, or read and cached; None if the package is not installed."""
    kept = cache / f"{name}-{EDITION}.json"
    if kept.exists():
        found = json.loads(kept.read_text("utf-8"))
        return Manual(name, found["paths"], found["links"], found["external"])
    if not (root / SITES[name][0] / SITES[name][1].lstrip("/")).is_file():
        return None
    made = read(name, root)
    cache.mkdir(parents=True, exist_ok=True)
    part = kept.with_suffix(".part")
    part.write_text(json.dumps({"paths": made.paths, "links": made.links, "external": made.external}), "utf-8")
    part.replace(kept)
    return made


def manuals(root: Path, cache: Path = CACHE) -> list[Manual]:
    return [found for name in SITES if (found := manual(name, root, cache)) is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path("/"), help="where the packages are unpacked")
    for site in manuals(parser.parse_args().root):
        counts = site.yields()
        print(
            f"{site.name:14} {len(counts):6} pages {sum(counts):6} new external links, "
            f"{sum(1 for count in counts if count):5} pages with any"
        )


if __name__ == "__main__":
    main()
