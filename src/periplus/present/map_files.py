"""A map in lines for a terminal, as JSON and as a sitemap, and its values as they are written into files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TextIO
from urllib.parse import urlsplit

import numpy as np

from periplus.document.sitemaps import MAX_ENTRIES, MAX_INFLATED_BYTES
from periplus.errors import UsageError
from periplus.model.page import MediaClass
from periplus.model.results import OTHER_PAGES, About, MapNode, PageColumns, PageOverview, SiteMap
from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus.present.markup import characters, escape_xml
from periplus.present.wording import EIGHTHS, REASON_WORDS, cells, count_of, fit, iso, labels, number, text_bar
from periplus.settings import PRODUCT_TOKEN, VERSION
from periplus.values import frozen

LINKED_BYTES = "linked"  # no single value, but bytes by class: a page's `linked_values`
VALUES = (
    "title",
    "state",
    "reason",
    "status",
    "media_type",
    "size",
    "depth",
    "rank",
    "score",
    "inlinks",
    "outlinks",
    LINKED_BYTES,
)
_NAME = re.compile("[A-Za-z][A-Za-z0-9_-]*")
READ_MEDIA = ("", "text/html", "application/xhtml+xml")  # what goes without saying
BAR_CELLS = 6
LEAST_LABEL = 24  # columns: deeper branches lose their outer lines before a name gets less
NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
MAX_BYTES = MAX_INFLATED_BYTES  # the protocol has 52,428,800; less is what our own reader takes, and it costs nothing
URL_CHARACTERS = 2047  # the protocol: less than 2,048


def sort_values(values: Iterable[str]) -> tuple[str, ...]:
    """The values, in the order of VALUES. Raises UsageError for an unknown one."""
    names = set(values)
    if unknown := names - set(VALUES):
        raise UsageError(f"a map has no value {', '.join(sorted(unknown))}: choose among {', '.join(VALUES)}")
    return tuple(name for name in VALUES if name in names)


def page_values(page: PageOverview, values: Sequence[str]) -> Iterator[tuple[str, str | int | float]]:
    """url, then the values that are not empty."""
    yield "url", characters(page.url)
    for name in values:
        if name == LINKED_BYTES:
            continue
        value = page.size_bytes if name == "size" else getattr(page, name)
        if isinstance(value, str):
            if value:
                yield name, characters(value)
        elif name == "rank":
            yield name, float(f"{value:.6g}")  # the scores of a million pages are known to about so many digits
        elif value or name != "status":
            yield name, value


def linked_values(page: PageOverview, values: Sequence[str]) -> list[tuple[str, int]]:
    """Bytes behind the page's links by class, and `unsized`, the links to what has no known size;
    nothing where LINKED is none of the values.
    """
    if LINKED_BYTES not in values or not page.linked:
        return []
    sizes = [*zip(MediaClass, page.linked, strict=True), ("unsized", page.unsized)]
    return [(str(name), value) for name, value in sizes if value]


def further_values(facts: PageColumns) -> list[tuple[str, Sequence[str | int | float]]]:
    """The results that enrich a map: name, one value a page. Raises UsageError for a name that XML does not take."""
    for name, _ in facts.further:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"a result cannot be called {name!r} in a map: take a letter, then letters, digits, - or _"
            )
    return list(facts.further)


def about_values(about: About, site_map: SiteMap) -> dict[str, str | int | float]:
    """Head of a map. Without a run it has no times, only values of the site."""
    values: dict[str, str | int | float] = {
        "program": f"{PRODUCT_TOKEN} {VERSION}",
        "run": characters(about.run),
        "start": characters(about.start),
        "created": iso(about.created),
        "damping": about.damping,
        "rounds": about.rounds,
        "ties": about.ties,
        "pages": len(site_map.order),
        "deepest": site_map.max_depth,
        "unreached": int(np.count_nonzero(site_map.depth < 0)),
    }
    return {name: value for name, value in values.items() if about.run or name not in ("run", "created")}


def parameters(about: About) -> list[tuple[str, str]]:
    """The run's settings, fit for a file."""
    return [(characters(name), characters(value)) for name, value in about.parameters]


def write_map_json(
    site_map: SiteMap,
    facts: PageColumns,
    about: About,
    out: TextIO,
    *,
    values: tuple[str, ...] = VALUES,
    max_depth: int = -1,
) -> None:
    """{"map": {run, start, ...}, "home": {url, ..., "children": [...]}}; streamed, a page a line, without recursion.

    values: keys of VALUES beside the URL; empty values are left out. max_depth: the last depth written, -1: all;
    "omitted" is the number of pages cut off below a page. out: UTF-8. Raises UsageError for an unknown value. Many
    readers refuse JSON nested deeper than some 1,000 depths: set max_depth.
    """
    values = sort_values(values)
    further = further_values(facts)
    head = {**about_values(about, site_map), "parameters": dict(parameters(about))}
    out.write(f'{{"map": {json.dumps(head, ensure_ascii=False)},\n"home":\n')
    previous = -1
    for page, depth, below in site_map.walk(max_depth):
        if depth <= previous:  # the page before had no children written: close lists up to its and our common parent
            out.write("]}" * (previous - depth) + ",\n")
        previous = depth
        overview = facts.page(page)
        shown: dict[str, object] = dict(page_values(overview, values))
        if behind := linked_values(overview, values):
            shown[LINKED_BYTES] = dict(behind)
        if results := {name: _plain(column[page]) for name, column in further if column[page] != ""}:
            shown["results"] = results
        if below and depth == max_depth:
            shown["omitted"] = below
        text = json.dumps(shown, ensure_ascii=False)
        out.write(text[:-1] + ', "children": [\n' if below and depth != max_depth else text)
    out.write("]}" * previous + "}\n")


def _plain(value: str | int | float) -> str | int | float:
    return characters(value) if isinstance(value, str) else value


@frozen
class _Signs:
    """Characters of the tree."""

    child: str
    last: str
    through: str
    parts: str  # of a bar's last cell, from nothing to full
    more: str


def map_text(tree: MapNode, facts: PageColumns, *, width: int = 100, ascii_only: bool = False) -> Iterator[str]:
    """The map's lines, without colours or line ends: name and what is odd about the page, link score,
    pages in the branch.

    tree: folded by analyse.linkgraph.map_tree. width: columns of the terminal; under 60 the bars are left out.
    ascii_only: for outputs that cannot carry box-drawing signs; names are then written with `?` for other signs.
    """
    signs = _Signs(*(("|- ", "`- ", "|  ", " #", "~") if ascii_only else ("├─ ", "└─ ", "│  ", EIGHTHS, "…")))
    bar_cells = BAR_CELLS if width >= 60 else 0
    score_cells = bar_cells + 5
    count_cells = max(5, len(number(tree.pages)))
    left = max(width - score_cells - count_cells - 4, LEAST_LABEL)
    yield (
        f"{fit(urlsplit(facts.url[tree.page]).netloc, left, more=signs.more)}  "
        f"{'score':>{score_cells}}  {'pages':>{count_cells}}"
    )
    stack = [(tree, labels([facts.url[tree.page]], [facts.title[tree.page]])[0], "", "")]
    while stack:
        node, name, lead, lead_below = stack.pop()
        if node.page == OTHER_PAGES:
            line = _left(lead, f"{signs.more} {count_of(node.pages, 'more page')}", _unread(node), left, signs)
        else:
            page = facts.page(node.page)
            count = number(node.pages) if node.pages > 1 else ""
            bar = text_bar(page.score / 100, bar_cells, signs.parts).ljust(bar_cells)
            line = f"{_left(lead, name, _remark(page), left, signs)}  {bar}{page.score:>5}  {count:>{count_cells}}"
            stack.extend(_rows_below(node, facts, lead_below, signs))
        yield (line.encode("ascii", "replace").decode("ascii") if ascii_only else line).rstrip()


def child_names(node: MapNode, facts: PageColumns) -> list[str]:
    """The names of the children, without that of the others."""
    pages = [child.page for child in node.children if child.page != OTHER_PAGES]
    return labels([facts.url[page] for page in pages], [facts.title[page] for page in pages], facts.title[node.page])


def _rows_below(node: MapNode, facts: PageColumns, below: str, signs: _Signs) -> list[tuple[MapNode, str, str, str]]:
    """(node, name, lead of its line, lead of what is under it) of the children, the last first."""
    names = child_names(node, facts)
    rows = []
    for place, child in enumerate(node.children):
        last = place == len(node.children) - 1
        name = names[place] if place < len(names) else ""
        rows.append(
            (child, name, below + (signs.last if last else signs.child), below + ("   " if last else signs.through))
        )
    return rows[::-1]


def _left(lead: str, name: str, remark: str, width: int, signs: _Signs) -> str:
    """A line's left side in exactly width columns.

    What does not fit is cut from the lead's outer end, then from the name.
    """
    spare = width - LEAST_LABEL
    if len(lead) > spare:
        lead = f"{signs.more} {lead[len(lead) - max(spare - 2, 3) :]}"
    free = width - len(lead)
    if cells(name) + len(remark) > free and len(remark) < free - 8:
        name = fit(name, free - len(remark), more=signs.more)
    return lead + fit(name + remark, free, more=signs.more)


def _remark(page: PageOverview) -> str:
    """Remarks on a page that was not simply fetched and read."""
    if page.reason is not Reason.OK:
        return f"  [{REASON_WORDS[page.reason]}]"
    if page.media_type not in READ_MEDIA:
        return f"  [{page.media_type.rpartition('/')[2]}]"
    return ""


def _unread(node: MapNode) -> str:
    missing = node.pages - node.fetched
    return f", {number(missing)} not fetched" if missing else ""


@frozen
class SitemapFile:
    """One file, to be put at `origin` + `/` + `name`: only there may it speak of the origin's pages."""

    origin: str  # scheme://host, as the URLs write it
    name: str  # sitemap.xml, or sitemap-1.xml and so on below the index sitemap.xml
    entries: int
    left_out: int  # URLs too long for the protocol, counted in the last file of an origin
    body: bytes


@dataclass(slots=True)
class _Part:
    """A file in the making."""

    lines: list[str] = field(default_factory=list)
    bytes_so_far: int = 0
    newest: float = 0.0

    def has_room(self, line: str, max_urls: int) -> bool:
        # 500: head and end
        return len(self.lines) < max_urls and self.bytes_so_far + len(line.encode("utf-8")) <= MAX_BYTES - 500

    def add(self, line: str, lastmod: float) -> None:
        self.lines.append(line)
        self.bytes_so_far += len(line.encode("utf-8"))
        self.newest = max(self.newest, lastmod)


def sitemap_files(pages: Iterable[tuple[Url, float]], *, max_urls: int = MAX_ENTRIES) -> Iterator[SitemapFile]:
    """The sitemaps of the pages, origin by origin, each index after its parts. Holds two files in memory at most.

    pages: (URL, when its content last changed, in seconds since the epoch, or 0.0 where that is not known), each once
    and an origin's pages together, as in the order of URLs. The caller chooses the pages: fetched, not noindex, not a
    duplicate. Neither priority nor changefreq is written: they are not observed. Source: sitemaps.org protocol 0.9:
    UTF-8, one host a file, 50,000 URLs and 50 MB a file, an index above.
    """
    for origin, group in groupby(pages, lambda page: page[0][: page[0].index("/", 8)]):
        listed: list[tuple[str, float]] = []
        part, left_out = _Part(), 0
        for url, lastmod in group:
            if len(url) > URL_CHARACTERS:
                left_out += 1
                continue
            line = _entry("url", url, lastmod)
            if not part.has_room(line, max_urls):
                listed.append((f"sitemap-{len(listed) + 1}.xml", part.newest))
                yield SitemapFile(origin, listed[-1][0], len(part.lines), 0, _body("urlset", part.lines))
                part = _Part()
            part.add(line, lastmod)
        root, lines = "urlset", part.lines
        if listed:
            listed.append((f"sitemap-{len(listed) + 1}.xml", part.newest))
            yield SitemapFile(origin, listed[-1][0], len(lines), 0, _body(root, lines))
            root, lines = "sitemapindex", [_entry("sitemap", f"{origin}/{name}", newest) for name, newest in listed]
        yield SitemapFile(origin, "sitemap.xml", len(lines), left_out, _body(root, lines))


def _entry(element: str, url: str, lastmod: float) -> str:
    when = f"<lastmod>{iso(lastmod)}</lastmod>" if lastmod > 0 else ""
    return f"<{element}><loc>{escape_xml(url)}</loc>{when}</{element}>\n"


def _body(root: str, lines: list[str]) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{NAMESPACE}">\n{"".join(lines)}</{root}>\n'.encode()
