"""The network of a survey's sites as circles and arrows and as GEXF, and its matrix of links."""

from __future__ import annotations

import csv
import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TextIO

import numpy as np

from periplus.present.draw import (
    Circles,
    Key,
    caption,
    element,
    heading,
    legend,
    scope_rules,
    short_names,
    text_px,
    write_sheet,
)
from periplus.present.graphs import GexfFile, GexfNode
from periplus.present.tables import harmless
from periplus.present.wording import count_of, iso, number, visible
from periplus.values import frozen
from periplus_studies.model import CompanionClass, SurveyResults, UnitFigures

SHOWN_CLASSES = frozenset({CompanionClass.COMMUNICATOR, CompanionClass.STRONG, CompanionClass.WEAK})
TARGET = "target"
# more is a tangle in which no single arrow can be followed; the strongest are kept, and each site's own strongest
ARROWS = 280
ARROWS_A_SITE = 2.5  # of very many sites so many
LEAST_RADIUS = 4.0  # px: smaller circles would be invisible, so below it areas are not exact
TOP = 118.0  # px for title and legend
LEAST_WIDTH = 760.0  # px of a sheet
NAME_SIGNS = 22
PARTS = {  # of a network: words and colour
    TARGET: ("target set", "teal"),
    CompanionClass.COMMUNICATOR: ("communicator", "red"),
    CompanionClass.STRONG: ("strong companion", "amber"),
    CompanionClass.WEAK: ("weak companion", "grey"),
    CompanionClass.PRIVATE: ("private companion", "grey"),
    CompanionClass.GLOBAL: ("global site", "blue"),
}
STEPS = 7  # shades that can be distinguished on a screen
MOST_WITH_NUMBERS = 24  # sites: of more, the cells are too small to be read
MOST_WITH_NAMES = 120  # sites: of more, the picture would be wider than a screen if a line of text had room in a row
CELLS = 4, 12, 34  # px: the least side of a cell, the least beside which a name has room, the largest
MATRIX_NAME_SIGNS = 20
MATRIX_TOP = 84
_SHADES = ("#d8e8e5", "#bfdcd9", "#a6cfcd", "#7db8b9", "#529da1", "#2f7f86", "#175b63")
_DARK_SHADES = ("#1d2d31", "#22404a", "#27555c", "#2f6d72", "#43898c", "#6aabab", "#a5d5d2")
_MATRIX_STYLE = (
    scope_rules(
        "rect:hover { stroke: var(--ink); } text.on { fill: #ffffff; } "
        ".self { fill: none; stroke: var(--soft); stroke-width: .8; stroke-dasharray: 2 2; }"
        + "".join(f".s{step} {{ fill: {shade}; }} " for step, shade in enumerate(_SHADES, 1))
    )
    + "@media (prefers-color-scheme: dark) {\n"
    + scope_rules(
        "text.on { fill: #10181a; } "
        + "".join(f".s{step} {{ fill: {shade}; }} " for step, shade in enumerate(_DARK_SHADES, 1))
    )
    + "}\n"
)
_SITE_COLUMNS = {
    "name": "string",
    "set": "string",
    "fetched": "boolean",
    "pages": "long",
    "cited_by": "int",
    "prefix": "string",
    "tld": "string",
}
_SITE_COLOURS = {
    TARGET: (47, 127, 134),
    "communicator": (180, 81, 63),
    "strong": (208, 168, 83),
    "global": (91, 127, 174),
}
_OTHER_SITE = (141, 147, 143)


@frozen
class NetworkSite:
    """One vertex. pages: number of fetched pages, or of cited pages of a site that was not fetched."""

    unit: int
    name: str
    short: str
    part: str  # target, or a companion class
    fetched: bool
    pages: int
    cited_by: int  # target units that link to it


@frozen
class Network:
    """Sites, the target set first, and the links between them as (source, end, links) by place in sites,
    strongest first.
    """

    sites: tuple[NetworkSite, ...]
    arrows: tuple[tuple[int, int, int], ...]
    left_out: int  # companion sites that are not among the sites
    targets_left_out: int = 0  # sites of the target set that are not
    mutual: bool = False  # arrows are pairs without direction, and links the number of sites that link to both


def network_of(results: SurveyResults, max_sites: int | None = 200, what: str = "network") -> Network:
    """The target set (at most max_sites, by links), and up to the limit the companion sites of SHOWN_CLASSES that most
    units link to. max_sites: None: all sites of all classes, for data. what: network; or, of the target set alone,
    targets, or colinks: pairs weighed by the number of sites that link to both.
    """
    most = len(results.units) if max_sites is None else max_sites
    rows = [
        (row.unit, TARGET, row.fetched, row.fetched or row.waiting, row.in_units) for row in top_units(results, most)
    ]
    companions = results.companions if what == "network" else ()
    others = [site for site in companions if max_sites is None or site.kind in SHOWN_CLASSES]
    others = others[: max(most - len(rows), 0)]
    rows += [(site.unit, site.kind.value, site.fetched, site.fetched or site.documents, site.units) for site in others]
    place = np.full(len(results.units), -1, np.int64)
    place[[unit for unit, *_ in rows]] = np.arange(len(rows))
    links = results.matrix
    pairs: Iterable[tuple[int, int, int]] = results.co_inlinks
    if what != "colinks":
        pairs = zip(links.sources.tolist(), links.ends.tolist(), links.counts.tolist(), strict=True)
    at = place.tolist()
    arrows = [(at[source], at[end], count) for source, end, count in pairs if source != end]
    return Network(
        tuple(
            NetworkSite(unit, results.units[unit].name, results.units[unit].short, part, fetched > 0, pages, cited_by)
            for unit, part, fetched, pages, cited_by in rows
        ),
        tuple(sorted((arrow for arrow in arrows if min(arrow) >= 0), key=lambda arrow: (-arrow[2], *arrow[:2]))),
        len(companions) - len(others),
        max(results.chosen - most, 0),
        mutual=what == "colinks",
    )


def top_units(results: SurveyResults, most: int) -> list[UnitFigures]:
    """The target units of most links in and out, in their order."""
    ranked = sorted(results.figures, key=lambda row: (-(row.in_links + row.out_links), row.unit))[:most]
    return sorted(ranked, key=lambda row: row.unit)


def write_network_svg(network: Network, title: str, about: str, out: TextIO) -> None:
    """The network as SVG that needs nothing else, light and dark as the reader's system.

    A circle's area is the site's pages, an arrow's width the logarithm of its links; dashed: no page of the
    site was fetched, so the circle counts pages that others cite, and no arrow leaves it. The same values give
    the same bytes. out: UTF-8.
    """
    sites = network.sites
    pages = np.array([max(site.pages, 0) for site in sites], np.float64)
    most, widest = max(pages, default=1.0), max((links for _, _, links in network.arrows), default=1)
    # of more sites each is smaller, so that a sheet holds them
    largest = max(26.0, 44.0 - 8.0 * math.log10(max(len(sites), 1)))
    radius = np.maximum(largest * np.sqrt(pages / max(most, 1.0)), LEAST_RADIUS)
    names = short_names([site.short for site in sites], NAME_SIGNS)
    arrows = _strongest(network)
    keys, width = _network_legend(network, int(most), widest, len(arrows))
    circles, size = Circles.arrange(radius, names, network.arrows, (max(width, text_px(about) + 28), TOP))
    marks = [heading(title, about), *keys]
    for source, target, links in reversed(arrows):
        hint = f"{sites[source].name} to {sites[target].name}: {count_of(links, 'link')}"
        if network.mutual:
            hint = f"{sites[source].name} and {sites[target].name}: {count_of(links, 'site')} linking to both"
        kind = "" if sites[source].part == sites[target].part == TARGET else "out"
        arrow = circles.arrow(source, target, _width(links, widest), kind, head=not network.mutual)
        marks.append(element("g", "", arrow, visible(hint)))
    for place in sorted(range(len(sites)), key=lambda place: -radius[place]):
        marks.append(element("g", "", circles.circle(place, _look(sites[place])), _site_hint(sites[place])))
    order = sorted(
        range(len(sites)),
        key=lambda place: (sites[place].part != TARGET, -radius[place], -sites[place].cited_by, place),
    )
    marks += circles.labels(order, (size[0], TOP)).values()
    write_sheet(out, size, f"{title}: {'co-links of' if network.mutual else 'links between'} sites", marks)


def _strongest(network: Network) -> list[tuple[int, int, int]]:
    """The arrows that are drawn, strongest first: each site's strongest out and in, then the strongest of all."""
    arrows = network.arrows
    drawn = {arrow for end in (0, 1) for arrow in {arrow[end]: arrow for arrow in reversed(arrows)}.values()}
    most = max(ARROWS, round(ARROWS_A_SITE * len(network.sites)), len(drawn))
    drawn.update([arrow for arrow in arrows if arrow not in drawn][: most - len(drawn)])
    return [arrow for arrow in arrows if arrow in drawn]


def _width(links: int, widest: int) -> float:
    return 0.6 + 4.0 * math.log1p(links) / math.log1p(widest) if widest > 1 else 1.4


def _look(site: NetworkSite) -> str:
    return PARTS[site.part][1] + ("" if site.fetched else " cited")


def _site_hint(site: NetworkSite) -> str:
    pages = count_of(site.pages, "page") + (" fetched" if site.fetched else " cited, none fetched")
    return (
        f"{visible(site.name)}\n{PARTS[site.part][0]}\n{pages}\nlinked to by {count_of(site.cited_by, 'target site')}"
    )


def _network_legend(network: Network, most: int, widest: int, arrows: int) -> tuple[list[str], float]:
    """(its rows, the least width of a sheet that holds them)"""
    parts = {site.part for site in network.sites}
    keys = [Key(words, "circle", hue) for part, (words, hue) in PARTS.items() if part in parts]
    if not all(site.fetched for site in network.sites):
        keys.append(Key("dashed: cited, not fetched", "circle", "grey cited"))
    parts_row, parts_end = legend(keys, 16, 74)
    undrawn = [
        (network.targets_left_out, "site of the target set", "sites of the target set"),
        (network.left_out, "companion site", ""),
        (len(network.arrows) - arrows, "weaker pair" if network.mutual else "weaker arrow", ""),
    ]
    omitted = ", ".join(count_of(many, one, more) for many, one, more in undrawn if many)
    widths = sorted({1, max(round(math.sqrt(widest)), 1), widest})
    keys = [
        Key(f"area: pages, the largest {number(most)}"),
        Key("width: sites that link to both" if network.mutual else "width: links"),
        *(Key(number(links), "line", "arrow", _width(links, widest)) for links in widths),
        *([Key(f"not drawn: {omitted}")] if omitted else []),
    ]
    row, end = legend(keys, 14, 97)
    return [parts_row, row], max(parts_end, end, LEAST_WIDTH)


def survey_caption(results: SurveyResults) -> str:
    """Caption of every figure: run, unit, model, share of pages read."""
    fetched = sum(figures.fetched for figures in results.figures)
    pages = fetched + sum(figures.waiting for figures in results.figures)
    share = f"{100 * fetched / pages:.0f} % of {pages:,} known pages fetched" if pages else "no page known"
    return (
        f"{results.method.run}, {iso(results.method.created)[:10]}; links between sites by "
        f"{results.method.model.value}; {share}"
    )


def matrix_of(results: SurveyResults) -> list[list[int]]:
    """The interlinking matrix of the target set: row = source, self-links on the diagonal."""
    return list(matrix_rows(results))


def matrix_rows(results: SurveyResults) -> Iterator[list[int]]:
    """The same row by row: of 10,000 sites it would be a hundred million numbers at once."""
    links = results.matrix
    bounds = np.searchsorted(links.sources, np.arange(results.chosen + 1))
    for first, past in pairwise(bounds.tolist()):
        row = [0] * results.chosen
        for end, count in zip(links.ends[first:past].tolist(), links.counts[first:past].tolist(), strict=True):
            if end < results.chosen:
                row[end] = count
        yield row


def matrix_part(results: SurveyResults, most: int) -> tuple[list[str], list[list[int]]]:
    """(short names, matrix) of the `most` sites of most links in and out, in the order of the target set."""
    chosen = [row.unit for row in top_units(results, most)]
    place = np.full(len(results.units), -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    part = np.zeros((len(chosen), len(chosen)), np.int64)
    links = results.matrix
    inside = (place[links.sources] >= 0) & (place[links.ends] >= 0)
    part[place[links.sources[inside]], place[links.ends[inside]]] = links.counts[inside]
    return [results.units[unit].short for unit in chosen], part.tolist()


def write_matrix_csv(results: SurveyResults, out: TextIO) -> None:
    """The interlinking matrix, sites by name in the first row and column; row = source. out: UTF-8, newline=""."""
    names = [harmless(visible(unit.name)) for unit in results.units[: results.chosen]]
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([f"{results.method.model.value} links from / to", *names])
    writer.writerows([name, *row] for name, row in zip(names, matrix_rows(results), strict=True))


def write_heat_map(names: Sequence[str], table: Sequence[Sequence[int]], title: str, about: str, out: TextIO) -> None:
    """The matrix as SVG, row = source, logarithmic shades; the diagonal, self-links,
    is framed and has no shade of its own.

    names: as short as may be. Light and dark as the reader's system. out: UTF-8.
    """
    size, named = len(names), len(names) <= MOST_WITH_NAMES
    cell = min(max(1000 // max(size, 1), CELLS[named]), CELLS[2])
    short = short_names(names, MATRIX_NAME_SIGNS) if named else []
    room = max((text_px(name) for name in short), default=-8.0) + 24
    left, top = room, MATRIX_TOP + room * 0.82
    width, height = max(int(left + cell * size + 60 + room * 0.5), 560), int(top + cell * size + 20)
    most = max((count for row, counts in enumerate(table) for end, count in enumerate(counts) if row != end), default=0)
    marks = [
        element("style", "", _MATRIX_STYLE),
        heading(title, about),
        legend(_matrix_keys(most), 14, 68)[0],
        element("rect", "none", x=left, y=top, width=cell * size, height=cell * size),
    ]
    for row, counts in enumerate(table):
        for end, count in enumerate(counts):
            if count:
                hint = f"{names[row]} to {names[end] if row != end else 'itself'}: {number(count)}"
                step = shade(count, most) if row != end else 0
                marks.append(_cell(step, (left + end * cell, top + row * cell, cell), visible(hint)))
                if size <= MOST_WITH_NUMBERS:
                    kind = "small mid" + (" on" if step >= 5 else "" if step else " soft")
                    x, y = left + end * cell + cell / 2, top + row * cell + cell / 2
                    marks.append(caption(x, y + 4, _short(count), kind))
    for place, name in enumerate(short):
        middle = place * cell + cell / 2
        marks.append(caption(left - 6, top + middle + 4, name, "end"))
        turned = f"translate({left + middle + 4:.1f} {top - 6:.1f}) rotate(-52)"
        marks.append(element("g", "", caption(0, 0, name), transform=turned))
    write_sheet(out, (width, height), f"{title}: interlinking matrix", marks, kind="matrix")


def shade(count: int, most: int) -> int:
    """1 to STEPS, by the logarithm."""
    if most <= 1:
        return STEPS // 2
    return 1 + min(int(STEPS * math.log(count) / math.log(most)), STEPS - 1) if count > 1 else 1


def _cell(step: int, place: tuple[float, float, int], hint: str) -> str:
    """step: its shade, 0: a site's links to itself."""
    x, y, side = place
    gap = 1.0 if side > 8 else 0.3
    kind = f"s{step}" if step else "self"
    return element("rect", kind, "", hint, x=x + gap / 2, y=y + gap / 2, width=side - gap, height=side - gap)


def _short(count: int) -> str:
    if count < 10_000:
        return str(count)
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def _matrix_keys(most: int) -> Iterator[Key]:
    yield Key("rows link to columns")
    counts = range(1, most + 1)
    lows = [1 + bisect_left(counts, step, key=lambda count: shade(count, most)) for step in range(1, STEPS + 2)]
    for step, (low, past) in enumerate(pairwise(lows), 1):
        if low < past:
            yield Key(number(low) if low == past - 1 else f"{number(low)}–{number(past - 1)}", "rect", f"s{step}")
    yield Key("self-links", "rect", "self")


def write_network_gexf(results: SurveyResults, network: Network, out: TextIO, format: str = "gexf") -> None:
    """A file of the network: nodes are sites with their set, size by pages, colour by set; edges weigh their links."""
    most = max((site.pages for site in network.sites), default=1) or 1
    nodes = []
    for site in network.sites:
        prefix = results.units[site.unit].prefixes[0]
        host = prefix.partition("/")[0].partition(":")[0]
        domain = host.rpartition(".")[2] if "." in host else ""
        counts = (str(site.fetched).lower(), str(site.pages), str(site.cited_by))
        values = (site.name, site.part, *counts, prefix, domain)
        size = 4 + 36 * (site.pages / most) ** 0.5
        nodes.append(GexfNode(visible(site.short), values, _SITE_COLOURS.get(site.part, _OTHER_SITE), size))
    caption = survey_caption(results)
    way = "undirected" if network.mutual else "directed"
    head = GexfFile(results.method.created, caption, _SITE_COLUMNS, len(nodes), len(network.arrows), way)
    head.write_as(format, nodes, network.arrows, out)
