"""What is near a page, a directory or a site, at one look? A drawing: the middle is ringed, circles are neighbours, arrows are links."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from periplus.present.labels import SIGN, Circles, label_spots
from periplus.present.layout import Points, placed
from periplus.present.lines import cells, fit, visible
from periplus.present.palette import FONT, PALETTE
from periplus.present.wording import count_of
from periplus.present.xml_text import attributes, escaped

ARROWS = 240  # more is a tangle in which none can be followed; those of the middle are kept, then those of most links
ALL_LABELLED = 90  # circles: of more, names are drawn only where they cover nothing
LARGEST, LEAST = 30.0, 6.0  # px: radii by rank; under 6 a finger does not meet them
COLOURS = ("teal", "amber", "blue", "red")  # of the commonest parts; others are grey
NAME_SIGNS = 26
WIDTH = 760  # px at least: the legend's
TOP = 92  # px for the legend
EDGE = 22

STYLE = """
svg.ego text { font-size: 11.5px; fill: var(--ink); }
svg.ego .name { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; text-anchor: middle; }
svg.ego text.soft { fill: var(--soft); }
svg.ego .arrow { fill: none; stroke: var(--soft); stroke-opacity: .38; } svg.ego .head { fill: var(--soft); fill-opacity: .55; }
svg.ego .arrow.own { stroke: var(--ink); stroke-opacity: .5; } svg.ego .head.own { fill: var(--ink); fill-opacity: .75; }
svg.ego .near { stroke-width: 1.6; } svg.ego .teal { fill: #8cc4c3; stroke: #2f7f86; } svg.ego .amber { fill: #edd08f; stroke: #b98e2f; }
svg.ego .blue { fill: #b7c9e0; stroke: #5b7fae; } svg.ego .red { fill: #e6a495; stroke: #b4513f; } svg.ego .grey { fill: #dcdfda; stroke: #8d938f; }
svg.ego .cited { fill: var(--paper); stroke-dasharray: 3 2.5; } svg.ego .middle { fill: none; stroke: var(--ink); stroke-width: 1.6; }
svg.ego a:hover .near, svg.ego a:focus-visible .near { stroke: var(--ink); stroke-width: 3; } svg.ego a:focus-visible { outline: none; }
svg.ego a:focus-visible .name { text-decoration: underline; font-weight: 600; }
@media (prefers-color-scheme: dark) {
  svg.ego .teal { fill: #2c5f64; stroke: #63b3b6; } svg.ego .amber { fill: #72592a; stroke: #d0a853; } svg.ego .blue { fill: #34496a; stroke: #85a8d8; }
  svg.ego .red { fill: #7d3b2f; stroke: #dd8672; } svg.ego .grey { fill: #333b3e; stroke: #838c8b; } svg.ego .cited { fill: var(--paper); }
}
"""


@dataclass(frozen=True, slots=True)
class EgoNode:
    """A circle. part: what its colour stands for; rank: of all its pages; fetched: of pages; said: further words for who points at it."""

    url: str
    name: str
    part: str
    rank: float
    pages: int
    fetched: int
    said: str = ""


@dataclass(frozen=True, slots=True)
class Ego:
    """The middle first; links as (source, end, links) by place in nodes, most links first."""

    nodes: tuple[EgoNode, ...]
    links: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Drawing:
    ego: Ego
    position: Points
    radius: Points
    colour: dict[str, str]  # of parts
    arrows: list[tuple[int, int, int]]


def write_ego_svg(ego: Ego, about: str, out: TextIO, *, link: Callable[[str], str] | None = None) -> None:
    """The neighbourhood as SVG, light and dark as the reader's system; the same values give the same bytes. out: UTF-8.

    link: the address that a circle leads to, by its URL, for a page that has STYLE in its style sheet; None: a drawing that needs nothing else.
    """
    drawing, width, height = _drawing(ego)
    name = f"Links around {visible(ego.nodes[0].name)}"
    out.write(f'<svg xmlns="http://www.w3.org/2000/svg" class="ego" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="group"')
    out.write(f"{attributes([('aria-label', name)])}>\n")
    if link is None:
        out.write(f'<title>{escaped(name)}</title>\n<style>{PALETTE}{FONT}{STYLE}</style>\n<rect class="paper" width="{width}" height="{height}"/>\n')
    out.writelines(_legend(drawing, about))
    out.writelines(_arrow(drawing, arrow) for arrow in reversed(drawing.arrows))
    names = [fit(visible(node.name), min(cells(visible(node.name)), NAME_SIGNS)) for node in ego.nodes]
    order = sorted(range(len(names)), key=lambda place: (place > 0, -drawing.radius[place], place))
    circles = Circles(drawing.position, drawing.radius, names)
    labels = {label.place: label for label in label_spots(circles, order, (width, TOP), every=len(names) <= ALL_LABELLED)}
    for place, node in enumerate(ego.nodes):
        shown = _circle(drawing, place)
        if place in labels:
            shown += f'<text class="name" x="{labels[place].x:.1f}" y="{labels[place].y:.1f}">{escaped(names[place])}</text>'
        said = _said(node, middle=place == 0)
        if link is None:
            out.write(f"<g><title>{escaped(said)}</title>{shown}</g>\n")
        else:
            out.write(f"<a{attributes([('href', link(node.url)), ('aria-label', said)])}><title>{escaped(said)}</title>{shown}</a>\n")
    out.write("</svg>\n")


def _drawing(ego: Ego) -> tuple[_Drawing, int, int]:
    """The circles in place, and the sheet's size in px."""
    rank = np.array([max(node.rank, 0.0) for node in ego.nodes])
    radius = np.maximum(LARGEST * np.sqrt(rank / max(float(rank.max()), 1e-30)), LEAST)
    radius[0] += 4  # its ring
    half = np.array([SIGN * min(cells(visible(node.name)), NAME_SIGNS) / 2 for node in ego.nodes])
    boxes = np.stack((np.maximum(radius, half), radius + 9), axis=1) if len(rank) <= ALL_LABELLED else np.stack((radius + 14, radius + 4), axis=1)
    source, end, many = (np.array([link[part] for link in ego.links], np.int64) for part in range(3))
    position = placed(boxes, source, end, np.log1p(many.astype(np.float64)))
    position = position - (position - boxes).min(axis=0) + np.array([EDGE, TOP + EDGE])
    width, height = (math.ceil(far) + EDGE for far in (position + boxes).max(axis=0))
    if width < WIDTH:
        position[:, 0] += (WIDTH - width) / 2
    parts = Counter(node.part for node in ego.nodes)
    common = sorted(parts, key=lambda part: (part != ego.nodes[0].part, -parts[part], part))[: len(COLOURS)]
    arrows = sorted(ego.links, key=lambda arrow: (0 not in arrow[:2], -arrow[2], arrow))[:ARROWS]
    return _Drawing(ego, position, radius, dict(zip(common, COLOURS, strict=False)), arrows), max(width, WIDTH), height


def _unit(way: Points) -> Points:
    return way / (float(np.hypot(*way)) or 1.0)


def _arrow(drawing: _Drawing, arrow: tuple[int, int, int]) -> str:
    """Bent a little to its left, so that the way back lies apart."""
    source, end, many = arrow
    a, b = drawing.position[source], drawing.position[end]
    way = b - a
    middle = (a + b) / 2 + np.array([way[1], -way[0]]) * 0.09
    wide = 0.8 + 0.5 * math.log1p(many - 1)
    size = 4.5 + wide
    a = a + _unit(middle - a) * drawing.radius[source]
    tip = b + _unit(middle - b) * (drawing.radius[end] + 1.5)
    back = _unit(middle - tip)
    foot = tip + back * size
    side = np.array([back[1], -back[0]]) * size * 0.4
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, foot + side, foot - side))
    line = f"M{a[0]:.1f} {a[1]:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {foot[0]:.1f} {foot[1]:.1f}"
    own = " own" if 0 in (source, end) else ""
    return f'<path class="arrow{own}" stroke-width="{wide:.2f}" d="{line}"/><polygon class="head{own}" points="{points}"/>\n'


def _circle(drawing: _Drawing, place: int) -> str:
    node, (x, y), radius = drawing.ego.nodes[place], drawing.position[place], float(drawing.radius[place])
    kind = f"near {drawing.colour.get(node.part, 'grey')}" + ("" if node.fetched else " cited")
    ring = f'<circle class="middle" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>' if place == 0 else ""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius - (4 if ring else 0):.1f}"/>{ring}'


def _said(node: EgoNode, *, middle: bool) -> str:
    kept = count_of(node.fetched, "page") + " fetched" if node.pages > 1 and node.fetched else "fetched" if node.fetched else "cited, not fetched"
    return visible(f"{node.name}: {kept}{', ' + node.said if node.said else ''}{', in the middle' if middle else ''}")


def _legend(drawing: _Drawing, about: str) -> Iterator[str]:
    """What was drawn and what not, then colours, then outlines."""
    undrawn = len(drawing.ego.links) - len(drawing.arrows)
    told = visible(about) + (f"; {count_of(undrawn, 'link')} among them not drawn" if undrawn else "")
    yield f'<text class="soft" x="14" y="22">{escaped(told)}</text>\n'
    x = 22.0
    others = any(node.part not in drawing.colour for node in drawing.ego.nodes)
    for part, colour in [*drawing.colour.items(), *([("others", "grey")] if others else [])]:
        words = fit(visible(part), min(cells(visible(part)), NAME_SIGNS))
        yield f'<circle class="near {colour}" cx="{x:.0f}" cy="46" r="6"/><text class="soft" x="{x + 11:.0f}" y="50">{escaped(words)}</text>\n'
        x += 34 + SIGN * cells(words)
    x = 22.0
    for outline, words in (("", "fetched"), (" cited", "dashed: cited, not fetched")):
        yield f'<circle class="near grey{outline}" cx="{x:.0f}" cy="72" r="6"/><text class="soft" x="{x + 11:.0f}" y="76">{words}</text>\n'
        x += 34 + SIGN * len(words)
    yield f'<text class="soft" x="{x:.0f}" y="76">area: rank · width: links</text>\n'
