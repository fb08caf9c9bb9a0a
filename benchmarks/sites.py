"""Real sites for benchmarks, with the expected results of a crawl.

These are computed without the product: files are read from disk with another HTML parser (selectolax), and URLs are
resolved by the standard library.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

from measure import table
from selectolax.lexbor import LexborHTMLParser
from serving import Site, compressed_copy

DOC = Path("/usr/share/doc")
MANUALS = (
    Site("postgresql.test", DOC / "postgresql-doc-15/html", "/index.html"),
    Site("sqlite.test", DOC / "sqlite3", "/index.html"),
    Site("python.test", DOC / "python3.11/html", "/index.html"),
    Site("cppreference.test", Path("/usr/share/cppreference/doc/html"), "/en/index.html"),
    Site("handbook.test", DOC / "debian-handbook/html", "/en-US/index.html"),
)
LINKS = "a[href], area[href], frame[src], iframe[src]"
PAGES = frozenset({".html", ".htm", ".xhtml"})
MARK = "http://truth.test"


@dataclass(frozen=True, slots=True)
class Truth:
    """Expected result of a complete crawl from the start page. depth: clicks from the start, which has 0."""

    files: int  # HTML files in the folder
    reached: int  # distinct HTML files among the pages
    pages: dict[str, int]  # address (path and query) of each page reachable by plain links -> depth
    others: frozenset[str]  # paths of linked files of other types
    dead: tuple[tuple[str, str], ...]  # distinct (page, target) with a missing target

    @property
    def depth(self) -> int:
        return max(self.pages.values(), default=-1)

    @property
    def dead_targets(self) -> frozenset[str]:
        return frozenset(target for _, target in self.dead)


def truth(root: Path, start: str) -> Truth:
    """Breadth-first search over the files from the start, by the links of LINKS, without fragments; addresses with
    different queries are different pages.

    A folder is its index.html, with a slash at the end of the path, as on the server. A file with two addresses is two
    pages and one reached file.
    """
    pages = {start: 0}
    others: set[str] = set()
    dead: dict[tuple[str, str], None] = {}
    depth = [start]
    while depth:
        found: list[str] = []
        for page in depth:
            for target in local_links(root, page):
                file = file_of(root, target)
                if file is None:
                    dead[page, target] = None
                elif file.suffix not in PAGES:
                    others.add(target)
                elif target not in pages:
                    pages[target] = pages[page] + 1
                    found.append(target)
        depth = found
    files = sum(1 for path in files_of(root) if path.suffix in PAGES)
    return Truth(files, len({file_of(root, page) for page in pages}), pages, frozenset(others), tuple(dead))


def files_of(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file())


def local_links(root: Path, page: str) -> list[str]:
    """Paths (with query) of the same site that the page links to, distinct, in order;
    folders end with a slash.
    """
    file = file_of(root, page)
    if file is None:
        return []
    tree = LexborHTMLParser(file.read_bytes())
    base = base_of(tree, page)
    found: dict[str, None] = {}
    for node in tree.css(LINKS):
        attributes = node.attributes
        local = local_target(root, base, attributes.get("href") if "href" in attributes else attributes.get("src"))
        if local is not None:
            found[local[0]] = None
    return list(found)


def base_of(tree: LexborHTMLParser, page: str) -> str:
    """Base URL of the page's links."""
    based = tree.css_first("base[href]")
    return urljoin(MARK + page, _address(based.attributes["href"])) if based else MARK + page


def local_target(root: Path, base: str, text: str | None) -> tuple[str, str] | None:
    """(path with query, fragment) of an attribute on the same site, folders with a slash;
    None: another site, or not a URL.
    """
    try:
        parts = urlsplit(urljoin(base, _address(text)))
    except ValueError:
        return None
    if f"{parts.scheme}://{parts.netloc}" != MARK:
        return None
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    if not path.endswith("/") and root.joinpath(unquote(path).lstrip("/")).is_dir():
        path += "/"
    return urlunsplit(("", "", path, parts.query, "")), parts.fragment


def _address(text: str | None) -> str:
    """An attribute's value normalised as in the URL standard: white space stripped, no line ends or tabs,
    \\ as / in the path.
    """
    whole = (text or "").strip(" \t\r\n\f").translate({9: None, 10: None, 13: None})
    before, mark, after = whole.partition("?" if "?" in whole.partition("#")[0] else "#")
    return before.replace("\\", "/") + mark + after


def file_of(root: Path, path: str) -> Path | None:
    """The file that the server sends for a path, or None."""
    try:
        file = root.joinpath(unquote(urlsplit(path).path).lstrip("/"))
        file = file / "index.html" if file.is_dir() else file
        return file if file.is_file() else None
    except (OSError, ValueError):
        return None


def installed() -> list[Site]:
    """The manuals installed on this machine."""
    return [site for site in MANUALS if site.root.is_dir()]


def prepared(sites: list[Site], cache: Path) -> list[Site]:
    """The same sites from copies with compressed files."""
    return [Site(site.name, compressed_copy(site.root, cache / site.name), site.start) for site in sites]


def main() -> None:
    parser = argparse.ArgumentParser(description="The truth about the manuals on this machine.")
    parser.add_argument("--dead", action="store_true", help="print the dead references too")
    options = parser.parse_args()
    rows = []
    for site in installed():
        known = truth(site.root, site.start)
        rows.append(
            (
                site.name,
                known.files,
                known.reached,
                len(known.pages),
                known.depth,
                len(known.dead),
                len(known.dead_targets),
            )
        )
        if options.dead:
            print(*(f"{site.name}{page} -> {target}" for page, target in known.dead), sep="\n")
    print(table(("site", "HTML files", "files reached", "addresses", "depth", "dead references", "dead targets"), rows))


if __name__ == "__main__":
    main()
