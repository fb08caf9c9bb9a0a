"""Does `periplus check` find every dead reference and broken fragment of real manuals, and nothing else?

The expected results come from a separate scan: the files on disk, another HTML parser, and whether a file exists.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit

import corpora
import product
from measure import Cost, run, table
from selectolax.lexbor import LexborHTMLParser
from serving import Host, Server, Site, serve
from sites import DOC, MANUALS, PAGES, base_of, file_of, files_of, local_target, prepared

# the English tree: other trees are only checked, not crawled
APACHE = Site("apache.test", DOC / "apache2-doc/manual", "/en/index.html")
READ_BELOW = {APACHE.name: "/en/"}
IN_PLACE = {
    "python.test": "https://docs.python.org/python3.11/html/",
    "cppreference.test": "http://en.cppreference.com/",
}
LINKS = "a[href], area[href]"
PARTS = 'img[src], script[src], frame[src], iframe[src], link[rel~="stylesheet" i][href], link[rel~="icon" i][href]'
RECHECK_S = 1.0  # delay before a recheck: nothing on this server recovers


@dataclass(slots=True)
class Found:
    """Faults of a site. Each reference counts once per page and target, with its query."""

    links: set[tuple[str, str]] = field(default_factory=set)  # (page, dead target)
    parts: set[tuple[str, str]] = field(default_factory=set)  # the same for images, scripts, styles, icons and frames
    fragments: set[tuple[str, str, str]] = field(default_factory=set)  # (page, target, missing fragment, decoded)

    def sizes(self) -> tuple[int, ...]:
        """Dead links, their targets, dead parts, their targets, broken fragments."""
        counts = (
            number
            for pairs in (self.links, self.parts)
            for number in (len(pairs), len({target for _, target in pairs}))
        )
        return (*counts, len(self.fragments))

    def without(self, other: Found) -> list[tuple[str, ...]]:
        """Faults of this that the other lacks."""
        return sorted([*(self.links - other.links), *(self.parts - other.parts), *(self.fragments - other.fragments)])


@dataclass(frozen=True, slots=True)
class _Page:
    """Links and anchors of a page."""

    links: frozenset[tuple[str, str]]  # (path with query, fragment)
    parts: frozenset[str]
    frames: frozenset[str]
    names: frozenset[str]  # of anchors


def read(root: Path, page: str, file: Path) -> _Page:
    tree = LexborHTMLParser(file.read_bytes())
    base = base_of(tree, page)

    def targets(selector: str) -> Iterator[tuple[str, str]]:
        for node in tree.css(selector):
            written = node.attributes.get("href") if "href" in node.attributes else node.attributes.get("src")
            local = local_target(root, base, written)
            if local is not None:
                yield local

    names = {node.attributes.get("id") or "" for node in tree.css("[id]")} | {
        node.attributes.get("name") or "" for node in tree.css("a[name]")
    }
    pictures = [
        one.split()[0]
        for node in tree.css("img[srcset]")
        for one in (node.attributes.get("srcset") or "").split(",")
        if one.split()
    ]
    larger = {local[0] for one in pictures if (local := local_target(root, base, one))}
    parts, frames = ({path for path, _ in targets(selector)} for selector in (PARTS, "frame[src], iframe[src]"))
    return _Page(frozenset(targets(LINKS)), frozenset(parts | larger), frozenset(frames), frozenset(names))


def scan(site: Site, below: str = "/") -> tuple[Found, int]:
    """Faults of the pages reachable from the start with paths that begin with `below`, and their number."""
    known: dict[str, _Page] = {}

    def page_at(path: str, file: Path) -> _Page:
        if path not in known:
            known[path] = read(site.root, path, file)
        return known[path]

    found, seen, todo = Found(), {site.start}, [site.start]
    while todo:
        page = todo.pop()
        here = page_at(page, file_of(site.root, page) or Path())
        found.parts |= {(page, target) for target in here.parts if file_of(site.root, target) is None}
        for target, fragment in here.links | {(frame, "") for frame in here.frames}:
            file = file_of(site.root, target)
            if file is None:
                if target not in here.frames:
                    found.links.add((page, target))
            elif file.suffix in PAGES:
                if fragment and not _leads(fragment, page_at(target, file).names):
                    found.fragments.add((page, target, unquote(fragment)))
                if target not in seen and urlsplit(target).path.startswith(below):
                    seen.add(target)
                    todo.append(target)
    return found, len(seen)


def _leads(fragment: str, names: frozenset[str]) -> bool:
    """Whether browsers find the fragment: as written, then decoded; `top` always exists."""
    return fragment in names or unquote(fragment) in names or unquote(fragment).lower() == "top"


def checked(host: Host, folder: Path, below: str = "/") -> tuple[Found, Cost]:
    """Faults that the command reports, from its list."""
    crawl = product.by_name([host], folder / "kept")
    kept, issues = folder / "kept", folder / "issues.jsonl"
    more = [
        "--no-external",
        "--no-near",
        "--recheck-wait",
        f"{RECHECK_S:g}",
        "--format",
        "jsonl",
        "--output",
        str(issues),
    ]
    cost = run(
        [*product.check_command(crawl, kept), *more, *(["--scope", "prefix"] if below != "/" else [])], cwd=folder
    )
    if not issues.exists():
        raise SystemExit(f"check ended with {cost.exit_code}: {cost.said[-500:]}")
    found = Found()
    for line in issues.read_text("utf-8").splitlines():
        issue = json.loads(line)
        page, target = (_path(issue[name]) for name in ("url", "related"))
        if issue["code"] == "broken-link":
            found.links.add((page, target))
        elif issue["code"] == "broken-resource":
            found.parts.add((page, target))
        elif issue["code"] == "broken-fragment":
            found.fragments.add((page, target, unquote(issue["detail"].removeprefix("no #"))))
    return found, cost


def _path(url: str) -> str:
    """Path in the form of the expected results: urljoin drops empty segments, as the server does."""
    parts = urlsplit(url)
    return re.sub("/{2,}", "/", parts.path) + (f"?{parts.query}" if parts.query else "")


def audit(server: Server, host: Host, site: Site) -> tuple[list[object], list[str]]:
    """A row of the table, and the differences."""
    below = READ_BELOW.get(site.name, "/")
    truth, pages = scan(site, below)
    with tempfile.TemporaryDirectory(prefix="periplus-bench-") as folder:
        mark = server.mark()
        found, cost = checked(host, Path(folder), below)
        requests = len(server.hits(mark))
    missed, extra = truth.without(found), found.without(truth)
    row: list[object] = [
        site.name,
        pages,
        *(f"{there:,} / {seen:,}" for there, seen in zip(truth.sizes(), found.sizes(), strict=True)),
    ]
    said = [f"  missed: {' -> '.join(one)}" for one in missed[:5]] + [
        f"  extra: {' -> '.join(one)}" for one in extra[:5]
    ]
    return [*row, len(missed), len(extra), requests, cost.cpu_s, cost.wall_s], said


def in_place(site: Site, base: str) -> tuple[int, int]:
    """(dead links of `a`, each occurrence; their targets) of all files as if they were served at base:
    links to the site's own name count too.
    """
    home, dead = urlsplit(base), []
    for file in files_of(site.root):
        if file.suffix in PAGES:
            page = urljoin(base, quote(str(file.relative_to(site.root))))
            for node in LexborHTMLParser(file.read_bytes()).css("a[href]"):
                try:
                    parts = urlsplit(urljoin(page, node.attributes["href"] or ""))
                except ValueError:
                    continue
                inside = (
                    parts.path.startswith(home.path) and file_of(site.root, parts.path[len(home.path) :]) is not None
                )
                if parts.netloc == home.netloc and not inside:
                    dead.append((parts.path or "/", parts.query))
    return len(dead), len(set(dead))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        metavar="SITE",
        help="postgresql, sqlite, python, cppreference, handbook, apache",
    )
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="only count what would be dead if two manuals were served under their own names; nothing is crawled",
    )
    options = parser.parse_args()
    if options.in_place:
        print(
            table(
                ("as", "dead links", "their targets"),
                [(base, *in_place(site, base)) for site in MANUALS if (base := IN_PLACE.get(site.name))],
            )
        )
        return
    there = [site for site in (*MANUALS, APACHE) if site.root.is_dir()]
    chosen = [site for site in there if not options.only or site.name.partition(".")[0] in options.only]
    copies = prepared(chosen, corpora.CACHE)
    rows, said = [], []
    with tempfile.TemporaryDirectory(prefix="periplus-nginx-") as temp, serve(copies, Path(temp)) as server:
        for host, site in zip(server.hosts, chosen, strict=True):
            row, more = audit(server, host, site)
            rows.append(row)
            said += [f"\n{site.name}", *more] if more else []
    heads = (
        "site",
        "pages",
        "dead links",
        "their targets",
        "dead parts",
        "their targets",
        "broken fragments",
        "missed",
        "extra",
        "requests",
        "CPU s",
        "wall s",
    )
    print(table(heads, rows), *said, sep="\n")


if __name__ == "__main__":
    main()
