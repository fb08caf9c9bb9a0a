"""The network of a survey's sites: drawn, as a matrix of shades, and as files for graph programs."""

from __future__ import annotations

import csv
import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TextIO

import numpy as np

from periplus.model.survey import CompanionClass
from periplus.model.webometrics import SurveyResults, UnitFigures
from periplus.present.drawing import FONT, PALETTE, SIGN, Circles, Points, label_spots, placed
from periplus.present.graphs import GEXF
from periplus.present.markup import attributes, characters, escaped
from periplus.present.tables import harmless
from periplus.present.wording import cells, count_of, fit, iso, number, visible
from periplus.settings import PRODUCT_TOKEN, VERSION

SHOWN_CLASSES = frozenset({CompanionClass.COMMUNICATOR, CompanionClass.STRONG, CompanionClass.WEAK})
TARGET = "target"


@dataclass(frozen=True, slots=True)
class NetworkSite:
    """One vertex. pages: fetched ones, or those that are cited of a site that was not fetched."""

    unit: int
    name: str
    short: str
    part: str  # target, or a companion class
    fetched: bool
    pages: int
    cited_by: int  # target units that link to it


@dataclass(frozen=True, slots=True)
class Network:
    """Sites, the target set first, and the links between them as (source, end, links) by place in sites,
    strongest first.
    """

    sites: tuple[NetworkSite, ...]
    arrows: tuple[tuple[int, int, int], ...]
    left_out: int  # companion sites that are not among the sites
    targets_left_out: int = 0  # sites of the target set that are not


def network_of(
    found: SurveyResults, max_sites: int = 200, classes: Collection[CompanionClass] = SHOWN_CLASSES
) -> Network:
    """The target set, of more than max_sites those of most links, and as far as there is room the companion sites of
    these classes that most units link to.
    """
    sites = [
        NetworkSite(
            figures.unit,
            found.units[figures.unit].name,
            found.units[figures.unit].short,
            TARGET,
            figures.fetched > 0,
            figures.fetched or figures.waiting,
            figures.in_units,
        )
        for figures in shown(found, max_sites)
    ]
    companions = [site for site in found.companions if site.kind in classes][: max(max_sites - len(sites), 0)]
    sites += [
        NetworkSite(
            site.unit,
            site.name,
            found.units[site.unit].short,
            site.kind.value,
            site.fetched > 0,
            site.fetched or site.documents,
            site.units,
        )
        for site in companions
    ]
    place = np.full(len(found.units), -1, np.int64)
    place[[site.unit for site in sites]] = np.arange(len(sites))
    source, end = place[found.matrix.sources], place[found.matrix.ends]
    kept = (source >= 0) & (end >= 0) & (source != end)
    rows = zip(source[kept].tolist(), end[kept].tolist(), found.matrix.counts[kept].tolist(), strict=True)
    arrows = sorted(rows, key=lambda arrow: (-arrow[2], arrow[0], arrow[1]))
    return Network(
        tuple(sites), tuple(arrows), len(found.companions) - len(companions), max(found.chosen - max_sites, 0)
    )


def shown(found: SurveyResults, most: int) -> list[UnitFigures]:
    """The target units of most links in and out, in their order."""
    ranked = sorted(found.figures, key=lambda row: (-(row.in_links + row.out_links), row.unit))[:most]
    return sorted(ranked, key=lambda row: row.unit)


ALL_LABELLED = 60  # sites: more of them, and labels are drawn only where they cover nothing
# more is a tangle in which no single arrow can be followed; the strongest are kept, and each site's own strongest
ARROWS = 280
ARROWS_A_SITE = 2.5  # of very many sites so many
LEAST_RADIUS = 4.0  # px: smaller circles would not be seen, so theirs say less than their areas
TOP = 118  # px for title and legend
EDGE = 24
LABEL = 16  # px of a line
NAME_SIGNS = 22

_STYLE = (
    PALETTE
    + FONT
    + """
text { font-size: 11.5px; } .name { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; text-anchor: middle; }
.title { font-size: 18px; font-weight: 600; } .soft { fill: var(--soft); }
.arrow { fill: none; stroke: var(--edge); stroke-opacity: .5; } .head { fill: var(--edge); fill-opacity: .8; }
.out { stroke: var(--edge-out); } .head-out { fill: var(--edge-out); fill-opacity: .8; }
.site { stroke-width: 1.6; } .cited { fill: var(--paper); stroke-dasharray: 3 2.5; }
.target { fill: var(--teal); stroke: var(--teal-line); } .strong { fill: var(--amber); stroke: var(--amber-line); }
.communicator { fill: var(--red); stroke: var(--red-line); } .weak { fill: var(--grey); stroke: var(--grey-line); }
.private { fill: var(--grey); stroke: var(--grey-line); } .global { fill: var(--blue); stroke: var(--blue-line); }
circle.cited { fill: var(--paper); } g:hover > circle { filter: brightness(1.1); } g:hover > .arrow { stroke-opacity: 1; }
"""  # noqa: E501
)
_WORDS = {
    TARGET: "target set",
    CompanionClass.COMMUNICATOR: "communicator",
    CompanionClass.STRONG: "strong companion",
    CompanionClass.WEAK: "weak companion",
    CompanionClass.PRIVATE: "private companion",
    CompanionClass.GLOBAL: "global site",
}


@dataclass(frozen=True, slots=True)
class _Drawing:
    network: Network
    radius: Points
    position: Points
    widest: int  # links of the widest arrow
    most: int  # pages of the largest circle


def write_network_svg(network: Network, title: str, about: str, out: TextIO) -> None:
    """The network as SVG that needs nothing else, light and dark as the reader's system.

    A circle's area is the site's pages, an arrow's width the logarithm of its links; dashed: no page of the
    site was fetched, so the circle counts pages that others cite, and no arrow leaves it. The same values give
    the same bytes. out: UTF-8.
    """
    drawing, width, height = _drawing(network)
    width = max(width, 760)
    out.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">\n'
    )
    out.write(f"<title>{escaped(visible(title))}: links between sites</title>\n<style>{_STYLE}</style>\n")
    out.write(f'<rect class="paper" width="{width}" height="{height}"/>\n')
    arrows = _kept(network)
    out.writelines(_legend(drawing, title, about, len(arrows)))
    for arrow in reversed(arrows):
        out.write(_arrow(drawing, arrow))
    order = sorted(range(len(network.sites)), key=lambda place: -drawing.radius[place])
    for place in order:
        out.write(_circle(drawing, place))
    out.writelines(_labels(drawing, width))
    out.write("</svg>\n")


def _drawing(network: Network) -> tuple[_Drawing, int, int]:
    """The circles in place, and the sheet's size in px."""
    size = len(network.sites)
    pages = np.array([max(site.pages, 0) for site in network.sites], np.float64)
    most = float(pages.max()) if size else 1.0
    # of more sites each is smaller, so that a sheet holds them
    largest = max(26.0, 44.0 - 8.0 * math.log10(max(size, 1)))
    radius = np.maximum(largest * np.sqrt(pages / max(most, 1.0)), LEAST_RADIUS)
    named = size <= ALL_LABELLED
    half = (
        np.array([SIGN * min(cells(visible(site.short)), NAME_SIGNS) / 2 for site in network.sites])
        if named
        else radius + 12
    )
    boxes = (
        np.stack((np.maximum(radius, half), radius + (LABEL / 2 if named else 3.0)), axis=1)
        if size
        else np.zeros((0, 2))
    )
    source = np.array([arrow[0] for arrow in network.arrows], np.int64)
    end = np.array([arrow[1] for arrow in network.arrows], np.int64)
    weight = np.log1p(np.array([arrow[2] for arrow in network.arrows], np.float64))
    position = placed(boxes, source, end, weight)
    low = (position - boxes).min(axis=0) if size else np.zeros(2)
    position = position - low + np.array([EDGE, TOP + EDGE])
    far = (position + boxes).max(axis=0) if size else np.array([0.0, TOP])
    widest = max((arrow[2] for arrow in network.arrows), default=1)
    width, height = math.ceil(far[0]) + EDGE, math.ceil(far[1]) + EDGE
    if width < 760:  # the legend's width
        position[:, 0] += (760 - width) / 2
    return _Drawing(network, radius, position, widest, int(most)), width, height


def _kept(network: Network) -> list[tuple[int, int, int]]:
    """The arrows that are drawn, strongest first: each site's strongest out and in, then the strongest of all."""
    most = max(ARROWS, round(ARROWS_A_SITE * len(network.sites)))
    if len(network.arrows) <= most:
        return list(network.arrows)
    first: set[tuple[int, int, int]] = set()
    left, came = set(), set()
    for arrow in network.arrows:
        if arrow[0] not in left or arrow[1] not in came:
            first.add(arrow)
        left.add(arrow[0])
        came.add(arrow[1])
    for arrow in network.arrows:
        if len(first) >= most:
            break
        first.add(arrow)
    return [arrow for arrow in network.arrows if arrow in first]


def _width(drawing: _Drawing, links: int) -> float:
    return 0.6 + 4.0 * math.log1p(links) / math.log1p(drawing.widest) if drawing.widest > 1 else 1.4


def _arrow(drawing: _Drawing, arrow: tuple[int, int, int]) -> str:
    """Bent to its left, so that the way back lies apart."""
    source, end, links = arrow
    a, b = drawing.position[source], drawing.position[end]
    way = b - a
    length = float(np.hypot(*way)) or 1.0
    across = np.array([way[1], -way[0]]) / length
    middle = (a + b) / 2 + across * min(0.14 * length, 60.0)
    wide = _width(drawing, links)
    head = 4.0 + 1.3 * wide
    a = a + _unit(middle - a) * drawing.radius[source]
    tip = b + _unit(middle - b) * (drawing.radius[end] + 1.5)
    back = _unit(middle - tip)
    foot = tip + back * head
    side = np.array([back[1], -back[0]]) * head * 0.42
    name = f"{drawing.network.sites[source].name} to {drawing.network.sites[end].name}: {count_of(links, 'link')}"
    outward = drawing.network.sites[end].part != TARGET or drawing.network.sites[source].part != TARGET
    line = f"M{a[0]:.1f} {a[1]:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {foot[0]:.1f} {foot[1]:.1f}"
    point = " ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, foot + side, foot - side))
    return (
        f'<g><title>{escaped(visible(name))}</title><path class="arrow{" out" if outward else ""}" '
        f'stroke-width="{wide:.2f}" d="{line}"/>'
        f'<polygon class="head{" head-out" if outward else ""}" points="{point}"/></g>\n'
    )


def _unit(way: Points) -> Points:
    return way / (float(np.hypot(*way)) or 1.0)


def _circle(drawing: _Drawing, place: int) -> str:
    site = drawing.network.sites[place]
    x, y = drawing.position[place]
    kind = f"site {site.part}" + ("" if site.fetched else " cited")
    return (
        f'<g><title>{escaped(_said(site))}</title><circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" '
        f'r="{drawing.radius[place]:.1f}"/></g>\n'
    )


def _said(site: NetworkSite) -> str:
    what = count_of(site.pages, "page") + (" fetched" if site.fetched else " cited, none fetched")
    return (
        f"{visible(site.name)}\n{_WORDS.get(site.part, site.part)}\n{what}\nlinked to by "
        f"{count_of(site.cited_by, 'target site')}"
    )


def _labels(drawing: _Drawing, width: int) -> Iterator[str]:
    """Those of the target set first, then of the largest circles; of many sites only names that cover nothing."""
    sites, radius = drawing.network.sites, drawing.radius
    order = sorted(
        range(len(sites)),
        key=lambda place: (sites[place].part != TARGET, -radius[place], -sites[place].cited_by, place),
    )
    names = [fit(visible(site.short), min(cells(visible(site.short)), NAME_SIGNS)) for site in sites]
    circles = Circles(drawing.position, radius, names)
    for label in label_spots(circles, order, (width, TOP), every=len(sites) <= ALL_LABELLED):
        yield f'<text class="name" x="{label.x:.1f}" y="{label.y:.1f}">{escaped(label.name)}</text>\n'


def _legend(drawing: _Drawing, title: str, about: str, arrows: int) -> Iterator[str]:
    network = drawing.network
    yield (
        f'<text class="title" x="14" y="28">{escaped(visible(title))}</text>\n<text class="soft" x="14" '
        f'y="48">{escaped(visible(about))}</text>\n'
    )
    x = 22.0
    for part, words in _WORDS.items():
        if any(site.part == part for site in network.sites):
            yield (
                f'<circle class="site {part}" cx="{x}" cy="70" r="6"/><text class="soft" '
                f'x="{x + 11}" y="74">{words}</text>\n'
            )
            x += 36 + SIGN * len(words)
    if any(not site.fetched for site in network.sites):
        yield (
            f'<circle class="site cited weak" cx="{x}" cy="70" r="6"/><text class="soft" x="{x + 11}" '
            'y="74">dashed: cited, not fetched</text>\n'
        )
    yield f'<text class="soft" x="14" y="97">area: pages, the largest {number(drawing.most)}</text>\n'
    x = 14 + SIGN * len(f"area: pages, the largest {number(drawing.most)}") + 24
    yield f'<text class="soft" x="{x:.0f}" y="97">width: links</text>\n'
    x += SIGN * 12 + 8
    for links in sorted({1, max(round(math.sqrt(drawing.widest)), 1), drawing.widest}):
        yield (
            f'<line class="arrow" stroke-width="{_width(drawing, links):.2f}" x1="{x:.0f}" y1="93" '
            f'x2="{x + 26:.0f}" y2="93"/>'
        )
        yield f'<text class="soft" x="{x + 31:.0f}" y="97">{number(links)}</text>\n'
        x += 44 + SIGN * len(number(links))
    omitted = [count_of(network.targets_left_out, "site") + " of the target set"] * bool(network.targets_left_out)
    omitted += [count_of(network.left_out, "companion site")] * bool(network.left_out)
    omitted += [count_of(len(network.arrows) - arrows, "weaker arrow")] * (len(network.arrows) > arrows)
    if omitted:
        yield f'<text class="soft" x="{x:.0f}" y="97">not drawn: {", ".join(omitted)}</text>\n'


_COLUMNS = {
    "name": "string",
    "set": "string",
    "fetched": "boolean",
    "pages": "long",
    "cited_by": "integer",
    "prefix": "string",
    "tld": "string",
}
_COLOURS = {TARGET: (47, 127, 134), "communicator": (180, 81, 63), "strong": (208, 168, 83), "global": (91, 127, 174)}
_OTHER = (141, 147, 143)


def write_network_gexf(found: SurveyResults, network: Network, out: TextIO) -> None:
    """GEXF 1.3 of the network: nodes are sites with their set, size by pages, colour by set; edges weigh their links.

    out: UTF-8.
    """
    method = found.method
    out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="{GEXF}" xmlns:viz="{GEXF}/viz" version="1.3">\n')
    out.write(f'<meta lastmodifieddate="{iso(method.created)[:10]}"><creator>{PRODUCT_TOKEN} {VERSION}</creator>')
    out.write(f"<description>{escaped(said_of(found))}</description></meta>\n")
    out.write('<graph mode="static" defaultedgetype="directed">\n<attributes class="node" mode="static">\n')
    for place, (name, kind) in enumerate(_COLUMNS.items()):
        out.write(f'<attribute id="{place}" title="{name}" type="{kind}"/>\n')
    out.write(f'</attributes>\n<nodes count="{len(network.sites)}">\n')
    most = max((site.pages for site in network.sites), default=1) or 1
    for node, site in enumerate(network.sites):
        prefix = found.units[site.unit].prefixes[0]
        host = prefix.partition("/")[0].partition(":")[0]
        written: tuple[str | int, ...] = (
            site.name,
            site.part,
            str(site.fetched).lower(),
            site.pages,
            site.cited_by,
            prefix,
            host.rpartition(".")[2] if "." in host else "",
        )
        values = "".join(
            f"<attvalue{attributes((('for', place), ('value', value)))}/>" for place, value in enumerate(written)
        )
        red, green, blue = _COLOURS.get(site.part, _OTHER)
        look = (
            f'<viz:color r="{red}" g="{green}" b="{blue}"/><viz:size '
            f'value="{4 + 36 * (site.pages / most) ** 0.5:.2f}"/>'
        )
        out.write(
            f"<node{attributes([('id', node), ('label', visible(site.short))])}><attvalues>"
            f"{values}</attvalues>{look}</node>\n"
        )
    out.write(f'</nodes>\n<edges count="{len(network.arrows)}">\n')
    for source, end, links in network.arrows:
        out.write(f'<edge source="{source}" target="{end}" weight="{links}"/>\n')
    out.write("</edges>\n</graph>\n</gexf>\n")


def said_of(found: SurveyResults) -> str:
    """What every figure needs beside it: run, unit, model, how much was read."""
    fetched = sum(figures.fetched for figures in found.figures)
    known = fetched + sum(figures.waiting for figures in found.figures)
    share = f"{100 * fetched / known:.0f} % of {known:,} known pages fetched" if known else "no page known"
    return (
        f"{found.method.run}, {iso(found.method.created)[:10]}; links between sites by "
        f"{found.method.model.value}; {share}"
    )


def matrix_of(found: SurveyResults) -> list[list[int]]:
    """The interlinking matrix of the target set: row = source, self-links on the diagonal."""
    return list(matrix_rows(found))


def matrix_rows(found: SurveyResults) -> Iterator[list[int]]:
    """The same row by row: of 10,000 sites it would be a hundred million numbers at once."""
    links = found.matrix
    bounds = np.searchsorted(links.sources, np.arange(found.chosen + 1))
    for first, past in pairwise(bounds.tolist()):
        row = [0] * found.chosen
        for end, count in zip(links.ends[first:past].tolist(), links.counts[first:past].tolist(), strict=True):
            if end < found.chosen:
                row[end] = count
        yield row


def matrix_part(found: SurveyResults, most: int) -> tuple[list[str], list[list[int]]]:
    """(short names, matrix) of the `most` sites of most links in and out, in the order of the target set."""
    kept = [row.unit for row in shown(found, most)]
    place = np.full(len(found.units), -1, np.int64)
    place[kept] = np.arange(len(kept))
    part = np.zeros((len(kept), len(kept)), np.int64)
    links = found.matrix
    inside = (place[links.sources] >= 0) & (place[links.ends] >= 0)
    part[place[links.sources[inside]], place[links.ends[inside]]] = links.counts[inside]
    return [found.units[unit].short for unit in kept], [list(map(int, row)) for row in part]


def write_matrix_csv(found: SurveyResults, out: TextIO) -> None:
    """The interlinking matrix, sites by name in the first row and column; row = source. out: UTF-8, newline=""."""
    names = [harmless(visible(unit.name)) for unit in found.units[: found.chosen]]
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([f"{found.method.model.value} links from / to", *names])
    writer.writerows([name, *row] for name, row in zip(names, matrix_rows(found), strict=True))


def write_matrix_pajek(found: SurveyResults, out: TextIO) -> None:
    """The same as Pajek's .net: vertices by name, arcs with links for weights, loops are self-links."""
    out.write(f"*Vertices {found.chosen}\n")
    for place, unit in enumerate(found.units[: found.chosen], 1):
        name = characters(visible(unit.name)).replace('"', "'").replace("\\", "/")
        out.write(f'{place} "{name}"\n')
    out.write("*Arcs\n")
    links = found.matrix
    for source, end, count in zip(links.sources.tolist(), links.ends.tolist(), links.counts.tolist(), strict=True):
        if source < found.chosen and end < found.chosen:
            out.write(f"{source + 1} {end + 1} {count}\n")


STEPS = 7  # shades that eyes tell apart on a screen
WITH_NUMBERS = 24  # sites: of more, the cells are too small to be read
WITH_NAMES = 120  # sites: of more, a line of text is higher than a row
MATRIX_SIGN = 7.0
MATRIX_NAME_SIGNS = 20
MATRIX_TOP = 74

_MATRIX_STYLE = (
    PALETTE
    + FONT
    + """
svg { --s1: #d8e8e5; --s2: #bfdcd9; --s3: #a6cfcd; --s4: #7db8b9; --s5: #529da1; --s6: #2f7f86; --s7: #175b63; --light: #ffffff; }
@media (prefers-color-scheme: dark) {
  svg { --s1: #1d2d31; --s2: #22404a; --s3: #27555c; --s4: #2f6d72; --s5: #43898c; --s6: #6aabab; --s7: #a5d5d2; --light: #10181a; }
}
.title { font-size: 18px; font-weight: 600; } .soft { fill: var(--soft); } .none { fill: var(--card); } .end { text-anchor: end; }
.s1 { fill: var(--s1); } .s2 { fill: var(--s2); } .s3 { fill: var(--s3); } .s4 { fill: var(--s4); } .s5 { fill: var(--s5); }
.s6 { fill: var(--s6); } .s7 { fill: var(--s7); } .n { text-anchor: middle; font-size: 10px; } .n.on { fill: var(--light); }
.own { fill: none; stroke: var(--soft); stroke-width: .8; stroke-dasharray: 2 2; } rect[class^="s"]:hover { stroke: var(--ink); }
"""  # noqa: E501
)


def write_heat_map(names: Sequence[str], table: Sequence[Sequence[int]], title: str, about: str, out: TextIO) -> None:
    """The matrix as SVG, row = source, logarithmic shades; the diagonal, self-links,
    is framed and has no shade of its own.

    names: as short as may be. Light and dark as the reader's system. out: UTF-8.
    """
    size = len(names)
    cell = max(4, min(34, 1000 // max(size, 1)))
    named = size <= WITH_NAMES
    font = min(12.0, max(cell - 1.0, 7.0))
    room = (
        MATRIX_SIGN * font / 12 * min(max((cells(visible(name)) for name in names), default=0), MATRIX_NAME_SIGNS) + 24
        if named
        else 16
    )
    left, top = room, MATRIX_TOP + 10 + room * 0.82
    width, height = max(int(left + cell * size + 60 + room * 0.5), 560), int(top + cell * size + 20)
    most = max((count for row, counts in enumerate(table) for end, count in enumerate(counts) if row != end), default=0)
    out.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">\n'
    )
    out.write(f"<title>{escaped(visible(title))}: interlinking matrix</title>\n<style>{_MATRIX_STYLE}</style>\n")
    out.write(f'<rect class="paper" width="{width}" height="{height}"/>\n')
    out.write(
        f'<text class="title" x="14" y="28">{escaped(visible(title))}</text>\n<text class="soft" x="14" '
        f'y="48">{escaped(visible(about))}</text>\n'
    )
    out.writelines(_matrix_legend(most))
    out.write(f'<rect class="none" x="{left:.1f}" y="{top:.1f}" width="{cell * size}" height="{cell * size}"/>\n')
    for row, counts in enumerate(table):
        for end, count in enumerate(counts):
            if count:
                out.write(_cell((row, end, count), (left + end * cell, top + row * cell, cell), names, most))
    if named:
        out.writelines(_names(names, (left, top, cell), font))
    out.write("</svg>\n")


def shade(count: int, most: int) -> int:
    """1 to STEPS, by the logarithm."""
    if most <= 1:
        return STEPS // 2
    return 1 + min(int(STEPS * math.log(count) / math.log(most)), STEPS - 1) if count > 1 else 1


def _cell(entry: tuple[int, int, int], place: tuple[float, float, int], names: Sequence[str], most: int) -> str:
    (row, end, count), (x, y, cell) = entry, place
    said = (
        f"{names[row]} to {names[end]}: {number(count)}" if row != end else f"{names[row]} to itself: {number(count)}"
    )
    step = shade(count, most)
    gap = 1.0 if cell > 8 else 0.3
    kind = f"s{step}" if row != end else "own"
    box = (
        f'<rect class="{kind}" x="{x + gap / 2:.1f}" y="{y + gap / 2:.1f}" '
        f'width="{cell - gap:.1f}" height="{cell - gap:.1f}">'
    )
    out = f"{box}<title>{escaped(visible(said))}</title></rect>"
    if len(names) <= WITH_NUMBERS:
        on = " on" if row != end and step >= 5 else ""
        out += (
            f'<text class="n{on}{" soft" if row == end else ""}" x="{x + cell / 2:.1f}" '
            f'y="{y + cell / 2 + 3.5:.1f}">{_short(count)}</text>'
        )
    return out + "\n"


def _short(count: int) -> str:
    if count < 10_000:
        return str(count)
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def _names(names: Sequence[str], place: tuple[float, float, int], font: float) -> Iterator[str]:
    left, top, cell = place
    for number_, name in enumerate(names):
        said = escaped(fit(visible(name), min(cells(visible(name)), MATRIX_NAME_SIGNS)))
        middle = number_ * cell + cell / 2
        look = f'style="font-size: {font:.1f}px"'
        yield f'<text class="end" {look} x="{left - 6:.1f}" y="{top + middle + font * 0.36:.1f}">{said}</text>'
        x, y = left + middle + font * 0.3, top - 6
        yield f'<text {look} transform="translate({x:.1f} {y:.1f}) rotate(-52)">{said}</text>\n'


def _matrix_legend(most: int) -> Iterator[str]:
    yield '<text class="soft" x="14" y="68">rows link to columns</text>\n'
    x = 150
    counts = range(1, most + 1)
    lows = [1 + bisect_left(counts, step, key=lambda count: shade(count, most)) for step in range(1, STEPS + 2)]
    for step, (low, past) in enumerate(pairwise(lows), 1):
        if low == past:
            continue
        said = number(low) if low == past - 1 else f"{number(low)}–{number(past - 1)}"
        yield (
            f'<rect class="s{step}" x="{x}" y="58" width="12" height="12"/><text class="soft" '
            f'x="{x + 17}" y="68">{said}</text>\n'
        )
        x += 32 + int(MATRIX_SIGN * len(said))
    yield (
        f'<rect class="own" x="{x}" y="58" width="12" height="12"/><text class="soft" '
        f'x="{x + 17}" y="68">self-links</text>\n'
    )
