"""How do the sites of a survey hang together, at one look? A drawing: circles are sites, arrows are links."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from periplus.model.survey import CompanionClass
from periplus.present.labels import SIGN, Circles, label_spots
from periplus.present.layout import Points, placed
from periplus.present.lines import cells, fit, visible
from periplus.present.network import TARGET, Network, NetworkSite
from periplus.present.palette import FONT, PALETTE
from periplus.present.wording import count_of, number
from periplus.present.xml_text import escaped

ALL_LABELLED = 60  # sites: more of them, and labels are drawn only where they cover nothing
ARROWS = 280  # more is a tangle in which no single arrow can be followed; the strongest are kept, and each site's own strongest
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
"""
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

    A circle's area is the site's pages, an arrow's width the logarithm of its links; dashed: no page of the site was fetched, so the
    circle counts pages that others cite, and no arrow leaves it. The same values give the same bytes. out: UTF-8.
    """
    drawing, width, height = _drawing(network)
    width = max(width, 760)
    out.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n')
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
    largest = max(26.0, 44.0 - 8.0 * math.log10(max(size, 1)))  # of more sites each is smaller, so that a sheet holds them
    radius = np.maximum(largest * np.sqrt(pages / max(most, 1.0)), LEAST_RADIUS)
    named = size <= ALL_LABELLED
    half = np.array([SIGN * min(cells(visible(site.short)), NAME_SIGNS) / 2 for site in network.sites]) if named else radius + 12
    boxes = np.stack((np.maximum(radius, half), radius + (LABEL / 2 if named else 3.0)), axis=1) if size else np.zeros((0, 2))
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
        f'<g><title>{escaped(visible(name))}</title><path class="arrow{" out" if outward else ""}" stroke-width="{wide:.2f}" d="{line}"/>'
        f'<polygon class="head{" head-out" if outward else ""}" points="{point}"/></g>\n'
    )


def _unit(way: Points) -> Points:
    return way / (float(np.hypot(*way)) or 1.0)


def _circle(drawing: _Drawing, place: int) -> str:
    site = drawing.network.sites[place]
    x, y = drawing.position[place]
    kind = f"site {site.part}" + ("" if site.fetched else " cited")
    return f'<g><title>{escaped(_said(site))}</title><circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{drawing.radius[place]:.1f}"/></g>\n'


def _said(site: NetworkSite) -> str:
    what = count_of(site.pages, "page") + (" fetched" if site.fetched else " cited, none fetched")
    return f"{visible(site.name)}\n{_WORDS.get(site.part, site.part)}\n{what}\nlinked to by {count_of(site.cited_by, 'target site')}"


def _labels(drawing: _Drawing, width: int) -> Iterator[str]:
    """Those of the target set first, then of the largest circles; of many sites only names that cover nothing."""
    sites, radius = drawing.network.sites, drawing.radius
    order = sorted(range(len(sites)), key=lambda place: (sites[place].part != TARGET, -radius[place], -sites[place].cited_by, place))
    names = [fit(visible(site.short), min(cells(visible(site.short)), NAME_SIGNS)) for site in sites]
    circles = Circles(drawing.position, radius, names)
    for label in label_spots(circles, order, (width, TOP), every=len(sites) <= ALL_LABELLED):
        yield f'<text class="name" x="{label.x:.1f}" y="{label.y:.1f}">{escaped(label.name)}</text>\n'


def _legend(drawing: _Drawing, title: str, about: str, arrows: int) -> Iterator[str]:
    network = drawing.network
    yield f'<text class="title" x="14" y="28">{escaped(visible(title))}</text>\n<text class="soft" x="14" y="48">{escaped(visible(about))}</text>\n'
    x = 22.0
    for part, words in _WORDS.items():
        if any(site.part == part for site in network.sites):
            yield f'<circle class="site {part}" cx="{x}" cy="70" r="6"/><text class="soft" x="{x + 11}" y="74">{words}</text>\n'
            x += 36 + SIGN * len(words)
    if any(not site.fetched for site in network.sites):
        yield f'<circle class="site cited weak" cx="{x}" cy="70" r="6"/><text class="soft" x="{x + 11}" y="74">dashed: cited, not fetched</text>\n'
    yield f'<text class="soft" x="14" y="97">area: pages, the largest {number(drawing.most)}</text>\n'
    x = 14 + SIGN * len(f"area: pages, the largest {number(drawing.most)}") + 24
    yield f'<text class="soft" x="{x:.0f}" y="97">width: links</text>\n'
    x += SIGN * 12 + 8
    for links in sorted({1, max(round(math.sqrt(drawing.widest)), 1), drawing.widest}):
        yield f'<line class="arrow" stroke-width="{_width(drawing, links):.2f}" x1="{x:.0f}" y1="93" x2="{x + 26:.0f}" y2="93"/>'
        yield f'<text class="soft" x="{x + 31:.0f}" y="97">{number(links)}</text>\n'
        x += 44 + SIGN * len(number(links))
    omitted = [count_of(network.targets_left_out, "site") + " of the target set"] * bool(network.targets_left_out)
    omitted += [count_of(network.left_out, "companion site")] * bool(network.left_out)
    omitted += [count_of(len(network.arrows) - arrows, "weaker arrow")] * (len(network.arrows) > arrows)
    if omitted:
        yield f'<text class="soft" x="{x:.0f}" y="97">not drawn: {", ".join(omitted)}</text>\n'
