"""Graphs of links: as files for graph programs, and as a drawing of what is near a page, a directory or a site."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from periplus.errors import UsageError
from periplus.model.graph import LinkGraph
from periplus.model.results import About, PageColumns, PageOverview
from periplus.model.visit import State
from periplus.present.drawing import FONT, PALETTE, SIGN, Circles, Points, label_spots, placed
from periplus.present.markup import attributes, characters, escaped
from periplus.present.wording import cells, count_of, fit, iso, short, visible
from periplus.settings import PRODUCT_TOKEN, VERSION
from periplus.urls.hosts import host_name, is_ip

# What was learned from the readers: names of attributes that differ only by case are one to Gephi, edge ids that are no
# integers lose edges there, so none are written; parallel edges are merged (a LinkGraph has none) and no weight is 0.

GEXF = "http://gexf.net/1.3"
GRAPHML = "http://graphml.graphdrawing.org/xmlns"
# Type by name; `bytes` and `media_type`, since viewers keep `size` and `type` for their own. Both
# formats have these types.
COLUMNS = {
    "url": "string",
    "title": "string",
    "host": "string",
    "tld": "string",
    "fetched": "boolean",
    "state": "string",
    "reason": "string",
    "status": "int",
    "media_type": "string",
    "bytes": "long",
    "depth": "int",
    "pagerank": "double",
    "score": "int",
    "cited_by": "int",
    "links_out": "int",
}
_COLOURS = {
    State.INDEXED: (47, 127, 134),
    State.REGISTERED: (208, 168, 83),
    State.IGNORED: (185, 189, 184),
    State.INVALID: (189, 79, 60),
}
Weights = NDArray[np.float64] | NDArray[np.int64] | None


def write_gexf(graph: LinkGraph, facts: PageColumns, about: About, out: TextIO, *, weights: Weights = None) -> None:
    """GEXF 1.3, streamed: nodes are pages with COLUMNS, a colour by state and a size by score; edges are links.

    facts: in the order of graph.pages. weights: > 0, in the order of graph.targets; None: 1 each. out: UTF-8.
    Raises UsageError, before anything is written, for weights that Gephi would drop. Source: gexf.net, schema 1.3.
    """
    _check(graph, facts, weights)
    out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="{GEXF}" xmlns:viz="{GEXF}/viz" version="1.3">\n')
    out.write(f'<meta lastmodifieddate="{iso(about.created)[:10]}"><creator>{PRODUCT_TOKEN} {VERSION}</creator>')
    out.write(f"<description>{escaped(_origin(about))}</description></meta>\n")
    out.write('<graph mode="static" defaultedgetype="directed">\n<attributes class="node" mode="static">\n')
    for place, (name, kind) in enumerate(COLUMNS.items()):
        out.write(f'<attribute id="{place}" title="{name}" type="{"integer" if kind == "int" else kind}"/>\n')
    out.write(f'</attributes>\n<nodes count="{len(graph.pages)}">\n')
    for node in range(len(graph.pages)):
        page = facts.page(node)
        red, green, blue = _COLOURS[page.state]
        values = "".join([f'<attvalue for="{place}" value="{value}"/>' for place, value in enumerate(_written(page))])
        look = f'<viz:color r="{red}" g="{green}" b="{blue}"/><viz:size value="{4 + page.score * 0.36:.2f}"/>'
        out.write(
            f"<node{attributes([('id', node), ('label', _label(page))])}><attvalues>{values}</attvalues>{look}</node>\n"
        )
    out.write(f'</nodes>\n<edges count="{len(graph.targets)}">\n')
    for source, target, weight in _edges(graph, weights):
        out.write(f'<edge source="{source}" target="{target}" weight="{weight}"/>\n')
    out.write("</edges>\n</graph>\n</gexf>\n")


def write_graphml(graph: LinkGraph, facts: PageColumns, about: About, out: TextIO, *, weights: Weights = None) -> None:
    """GraphML with typed keys, streamed: the same graph and arguments as in `write_gexf`, `label` among the attributes.

    Source: graphml.graphdrawing.org, schema 1.0 with its attributes extension.
    """
    _check(graph, facts, weights)
    out.write(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="{GRAPHML}">\n<desc>{escaped(_origin(about))}</desc>\n'
    )
    for name, kind in {"label": "string", **COLUMNS}.items():
        out.write(f'<key id="{name}" for="node" attr.name="{name}" attr.type="{kind}"/>\n')
    out.write(
        '<key id="weight" for="edge" attr.name="weight" attr.type="double"/>\n<graph id="G" edgedefault="directed">\n'
    )
    for node in range(len(graph.pages)):
        page = facts.page(node)
        values = zip(("label", *COLUMNS), (escaped(_label(page)), *_written(page)), strict=True)
        data = "".join([f'<data key="{name}">{value}</data>' for name, value in values])
        out.write(f'<node id="n{node}">{data}</node>\n')
    for source, target, weight in _edges(graph, weights):
        out.write(f'<edge source="n{source}" target="n{target}"><data key="weight">{weight}</data></edge>\n')
    out.write("</graph>\n</graphml>\n")


def write_pajek(graph: LinkGraph, out: TextIO, *, weights: Weights = None) -> None:
    """Pajek's .net, streamed: vertices named by their URLs, arcs with weights.

    It has no attributes, and no way to write a quotation mark or a backslash in a name: both stand percent-encoded.
    """
    _check_weights(graph, weights)
    out.write(f"*Vertices {len(graph.pages)}\n")
    for node, url in enumerate(graph.pages, 1):
        out.write(f'{node} "{characters(url).replace(chr(34), "%22").replace(chr(92), "%5C")}"\n')
    out.write("*Arcs\n")
    for source, target, weight in _edges(graph, weights):
        out.write(f"{source + 1} {target + 1} {weight}\n")


def _check(graph: LinkGraph, facts: PageColumns, weights: Weights) -> None:
    if len(facts.url) != len(graph.pages):
        raise UsageError(
            f"facts of {len(facts.url)} pages do not fit a graph of {len(graph.pages)}: take both from one collection"
        )
    _check_weights(graph, weights)


def _check_weights(graph: LinkGraph, weights: Weights) -> None:
    if weights is not None and (
        len(weights) != len(graph.targets) or not bool(np.all((weights > 0) & np.isfinite(weights)))
    ):
        raise UsageError(
            "an edge's weight is a number greater than 0, one for each link: readers drop edges that weigh nothing"
        )


def _edges(graph: LinkGraph, weights: Weights) -> Iterator[tuple[int, int, int | float]]:
    """(source, target, weight) of every link, by source."""
    for source in range(len(graph.pages)):
        first, end = int(graph.offsets[source]), int(graph.offsets[source + 1])
        of_links = weights[first:end].tolist() if weights is not None else [1] * (end - first)
        for target, weight in zip(graph.targets[first:end].tolist(), of_links, strict=True):
            yield source, target, weight


def _written(page: PageOverview) -> list[str]:
    """The values of COLUMNS as XML text, escaped."""
    host = host_name(page.url)
    values = (
        page.url,
        page.title,
        host,
        "" if is_ip(host) or "." not in host else host.rpartition(".")[2],
        page.state is State.INDEXED,
        page.state,
        page.reason,
        page.status,
        page.media_type,
        page.size_bytes,
        page.depth,
        page.rank,
        page.score,
        page.links_in,
        page.links_out,
    )
    return [escaped(value) if isinstance(value, str) else str(value).lower() for value in values]


def _label(page: PageOverview) -> str:
    return visible(page.title) or visible(short(page.url))


def _origin(about: About) -> str:
    """Run, start, time and parameters as one text."""
    settings = "".join(f"; {name} = {value}" for name, value in about.parameters)
    return (
        f"run {about.run}, crawled from {about.start}, written {iso(about.created)}; PageRank damping "
        f"{about.damping:g}, {about.rounds} rounds{settings}"
    )


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
"""  # noqa: E501


@dataclass(frozen=True, slots=True)
class EgoNode:
    """A circle.

    part: what its colour stands for; rank: of all its pages; fetched: of pages; said: further
    words for who points at it.
    """

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

    link: the address that a circle leads to, by its URL, for a page that has STYLE in its style sheet; None: a drawing
    that needs nothing else.
    """
    drawing, width, height = _drawing(ego)
    name = f"Links around {visible(ego.nodes[0].name)}"
    out.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ego" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="group"'
    )
    out.write(f"{attributes([('aria-label', name)])}>\n")
    if link is None:
        out.write(
            f'<title>{escaped(name)}</title>\n<style>{PALETTE}{FONT}{STYLE}</style>\n<rect class="paper" '
            f'width="{width}" height="{height}"/>\n'
        )
    out.writelines(_legend(drawing, about))
    out.writelines(_arrow(drawing, arrow) for arrow in reversed(drawing.arrows))
    names = [fit(visible(node.name), min(cells(visible(node.name)), NAME_SIGNS)) for node in ego.nodes]
    order = sorted(range(len(names)), key=lambda place: (place > 0, -drawing.radius[place], place))
    circles = Circles(drawing.position, drawing.radius, names)
    labels = {
        label.place: label for label in label_spots(circles, order, (width, TOP), every=len(names) <= ALL_LABELLED)
    }
    for place, node in enumerate(ego.nodes):
        shown = _circle(drawing, place)
        if place in labels:
            shown += (
                f'<text class="name" x="{labels[place].x:.1f}" y="{labels[place].y:.1f}">{escaped(names[place])}</text>'
            )
        said = _said(node, middle=place == 0)
        if link is None:
            out.write(f"<g><title>{escaped(said)}</title>{shown}</g>\n")
        else:
            out.write(
                f"<a{attributes([('href', link(node.url)), ('aria-label', said)])}><title>"
                f"{escaped(said)}</title>{shown}</a>\n"
            )
    out.write("</svg>\n")


def _drawing(ego: Ego) -> tuple[_Drawing, int, int]:
    """The circles in place, and the sheet's size in px."""
    rank = np.array([max(node.rank, 0.0) for node in ego.nodes])
    radius = np.maximum(LARGEST * np.sqrt(rank / max(float(rank.max()), 1e-30)), LEAST)
    radius[0] += 4  # its ring
    half = np.array([SIGN * min(cells(visible(node.name)), NAME_SIGNS) / 2 for node in ego.nodes])
    boxes = (
        np.stack((np.maximum(radius, half), radius + 9), axis=1)
        if len(rank) <= ALL_LABELLED
        else np.stack((radius + 14, radius + 4), axis=1)
    )
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
    return (
        f'<path class="arrow{own}" stroke-width="{wide:.2f}" d="{line}"/><polygon '
        f'class="head{own}" points="{points}"/>\n'
    )


def _circle(drawing: _Drawing, place: int) -> str:
    node, (x, y), radius = drawing.ego.nodes[place], drawing.position[place], float(drawing.radius[place])
    kind = f"near {drawing.colour.get(node.part, 'grey')}" + ("" if node.fetched else " cited")
    ring = f'<circle class="middle" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>' if place == 0 else ""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius - (4 if ring else 0):.1f}"/>{ring}'


def _said(node: EgoNode, *, middle: bool) -> str:
    kept = (
        count_of(node.fetched, "page") + " fetched"
        if node.pages > 1 and node.fetched
        else "fetched"
        if node.fetched
        else "cited, not fetched"
    )
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
        yield (
            f'<circle class="near {colour}" cx="{x:.0f}" cy="46" r="6"/><text class="soft" x="{x + 11:.0f}" '
            f'y="50">{escaped(words)}</text>\n'
        )
        x += 34 + SIGN * cells(words)
    x = 22.0
    for outline, words in (("", "fetched"), (" cited", "dashed: cited, not fetched")):
        yield (
            f'<circle class="near grey{outline}" cx="{x:.0f}" cy="72" r="6"/><text class="soft" '
            f'x="{x + 11:.0f}" y="76">{words}</text>\n'
        )
        x += 34 + SIGN * len(words)
    yield f'<text class="soft" x="{x:.0f}" y="76">area: rank · width: links</text>\n'
