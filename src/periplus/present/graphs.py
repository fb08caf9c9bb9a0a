"""Graphs of links as files for graph programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TextIO

import numpy as np

from periplus.errors import UsageError
from periplus.model.arrays import Floats, Ints
from periplus.model.graph import LinkGraph
from periplus.model.results import About, PageColumns, PageOverview
from periplus.model.visit import State
from periplus.present.markup import attributes, escape_xml
from periplus.present.wording import iso, short, visible
from periplus.settings import PRODUCT_TOKEN, VERSION
from periplus.urls.hosts import host_name, is_ip
from periplus.values import frozen

# Limits of the readers: names of attributes that differ only by case are one to Gephi, edge ids that are no
# integers lose edges there, so none are written; parallel edges are merged (a LinkGraph has none) and no weight is 0.

GEXF = "http://gexf.net/1.3"
GRAPH_FORMATS = ("gexf", "graphml", "net")  # Gephi; networkx, igraph, yEd; Pajek
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
    "rank": "double",
    "score": "int",
    "inlinks": "int",
    "outlinks": "int",
}
_COLOURS = {
    State.FETCHED: (47, 127, 134),
    State.DISCOVERED: (208, 168, 83),
    State.EXCLUDED: (185, 189, 184),
    State.FAILED: (189, 79, 60),
}
Weights = Floats | Ints | None
Edges = Iterable[tuple[int, int, int | float]]
"""(source, target, weight) by place in nodes."""


class GexfNode(NamedTuple):
    """values: of the file's columns, in their order; colour: red, green, blue; size: in Gephi's units."""

    label: str
    values: Sequence[str]
    colour: tuple[int, int, int]
    size: float


@frozen
class GexfFile:
    """A graph's head. columns: GraphML type by name; nodes, edges: their numbers."""

    created: float  # seconds since the epoch
    description: str
    columns: Mapping[str, str]
    nodes: int
    edges: int
    way: str = "directed"  # or undirected

    def write_as(self, format: str, nodes: Iterable[GexfNode], edges: Edges, out: TextIO) -> None:
        """The whole graph, streamed. format: of GRAPH_FORMATS; edges: see `write`."""
        {"gexf": self.write, "graphml": self._write_graphml, "net": self._write_pajek}[format](nodes, edges, out)

    def _write_graphml(self, nodes: Iterable[GexfNode], edges: Edges, out: TextIO) -> None:
        """GraphML with typed keys, `label` among the attributes.

        Source: graphml.graphdrawing.org, schema 1.0 with its attributes extension.
        """
        out.write(
            f'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="{GRAPHML}">\n'
            f"<desc>{escape_xml(self.description)}</desc>\n"
        )
        for name, kind in {"label": "string", **self.columns}.items():
            out.write(f'<key id="{name}" for="node" attr.name="{name}" attr.type="{kind}"/>\n')
        out.write(
            '<key id="weight" for="edge" attr.name="weight" attr.type="double"/>\n'
            f'<graph id="G" edgedefault="{self.way}">\n'
        )
        for number, node in enumerate(nodes):
            values = zip(("label", *self.columns), map(escape_xml, (node.label, *node.values)), strict=True)
            data = "".join([f'<data key="{name}">{value}</data>' for name, value in values])
            out.write(f'<node id="n{number}">{data}</node>\n')
        for source, target, weight in edges:
            out.write(f'<edge source="n{source}" target="n{target}"><data key="weight">{weight}</data></edge>\n')
        out.write("</graph>\n</graphml>\n")

    def _write_pajek(self, nodes: Iterable[GexfNode], edges: Edges, out: TextIO) -> None:
        """A Pajek network: the vertices' first column, as labels are not unique, and weighted arcs or edges.

        Source: Pajek reference manual 5, 4.
        """
        out.write(f"*Vertices {self.nodes}\n")
        for number, node in enumerate(nodes, 1):
            name = visible(node.values[0]).replace('"', "'")
            out.write(f'{number} "{name}"\n')
        out.write("*Arcs\n" if self.way == "directed" else "*Edges\n")
        out.writelines(f"{source + 1} {target + 1} {weight}\n" for source, target, weight in edges)

    def write(self, nodes: Iterable[GexfNode], edges: Edges, out: TextIO) -> None:
        """GEXF 1.3, streamed. edges: (source, target, weight) by place in nodes. out: UTF-8.

        Source: gexf.net, schema 1.3.
        """
        out.write(
            f'<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="{GEXF}" xmlns:viz="{GEXF}/viz" version="1.3">\n'
        )
        out.write(f'<meta lastmodifieddate="{iso(self.created)[:10]}"><creator>{PRODUCT_TOKEN} {VERSION}</creator>')
        out.write(f"<description>{escape_xml(self.description)}</description></meta>\n")
        out.write(f'<graph mode="static" defaultedgetype="{self.way}">\n<attributes class="node" mode="static">\n')
        for place, (name, kind) in enumerate(self.columns.items()):
            out.write(f'<attribute id="{place}" title="{name}" type="{"integer" if kind == "int" else kind}"/>\n')
        out.write(f'</attributes>\n<nodes count="{self.nodes}">\n')
        for number, node in enumerate(nodes):
            values = "".join(
                [f'<attvalue for="{place}" value="{escape_xml(text)}"/>' for place, text in enumerate(node.values)]
            )
            red, green, blue = node.colour
            look = f'<viz:color r="{red}" g="{green}" b="{blue}"/><viz:size value="{node.size:.2f}"/>'
            named = attributes([("id", number), ("label", node.label)])
            out.write(f"<node{named}><attvalues>{values}</attvalues>{look}</node>\n")
        out.write(f'</nodes>\n<edges count="{self.edges}">\n')
        for source, target, weight in edges:
            out.write(f'<edge source="{source}" target="{target}" weight="{weight}"/>\n')
        out.write("</edges>\n</graph>\n</gexf>\n")


def write_graph(
    graph: LinkGraph, facts: PageColumns, about: About, out: TextIO, *, format: str = "gexf", weights: Weights = None
) -> None:
    """The graph as one of GRAPH_FORMATS: nodes are pages with COLUMNS, a colour by state and a size by score; edges are
    links.

    facts: in the order of graph.pages. weights: > 0, in the order of graph.targets; None: 1 each. out: UTF-8.
    Raises UsageError, before anything is written, for weights that Gephi would drop.
    """
    _check(graph, facts, weights)
    pages = map(facts.page, range(len(graph.pages)))
    nodes = (GexfNode(_label(page), _values(page), _COLOURS[page.state], 4 + page.score * 0.36) for page in pages)
    head = GexfFile(about.created, _origin(about), COLUMNS, len(graph.pages), len(graph.targets))
    head.write_as(format, nodes, _edges(graph, weights), out)


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


def _edges(graph: LinkGraph, weights: Weights) -> Edges:
    """(source, target, weight) of every link, by source."""
    for source in range(len(graph.pages)):
        first, end = int(graph.offsets[source]), int(graph.offsets[source + 1])
        of_links = weights[first:end].tolist() if weights is not None else [1] * (end - first)
        for target, weight in zip(graph.targets[first:end].tolist(), of_links, strict=True):
            yield source, target, weight


def _values(page: PageOverview) -> list[str]:
    """The values of COLUMNS as text."""
    host = host_name(page.url)
    values = (
        page.url,
        page.title,
        host,
        "" if is_ip(host) or "." not in host else host.rpartition(".")[2],
        page.state is State.FETCHED,
        page.state,
        page.reason,
        page.status,
        page.media_type,
        page.size_bytes,
        page.depth,
        page.rank,
        page.score,
        page.inlinks,
        page.outlinks,
    )
    return [value if isinstance(value, str) else str(value).lower() for value in values]


def _label(page: PageOverview) -> str:
    return visible(page.title) or visible(short(page.url))


def _origin(about: About) -> str:
    """Run, start, time and parameters as one text."""
    settings = "".join(f"; {name} = {value}" for name, value in about.parameters)
    return (
        f"run {about.run}, crawled from {about.start}, written {iso(about.created)}; PageRank damping "
        f"{about.damping:g}, {about.rounds} rounds{settings}"
    )
