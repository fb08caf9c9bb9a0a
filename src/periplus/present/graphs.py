"""How does the graph of links reach Gephi, networkx, igraph, yEd or Pajek without losing a node, an edge or an attribute?

What was learned from the readers: names of attributes that differ only by case are one to Gephi, edge ids that are no
integers lose edges there, so none are written; parallel edges are merged (a LinkGraph has none) and no weight is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from periplus.errors import UsageError
from periplus.model.graph import LinkGraph
from periplus.model.results import About, PageColumns, PageFacts
from periplus.model.visit import State
from periplus.present.lines import visible
from periplus.present.wording import iso, short
from periplus.present.xml_text import attributes, characters, escaped
from periplus.settings import PRODUCT_TOKEN, VERSION
from periplus.urls.hosts import host_name, is_ip

GEXF = "http://gexf.net/1.3"
GRAPHML = "http://graphml.graphdrawing.org/xmlns"
# Type by name; `bytes` and `media_type`, since viewers keep `size` and `type` for their own. Both formats have these types.
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
    "layer": "int",
    "pagerank": "double",
    "score": "int",
    "cited_by": "int",
    "links_out": "int",
}
_COLOURS = {State.INDEXED: (47, 127, 134), State.REGISTERED: (208, 168, 83), State.IGNORED: (185, 189, 184), State.INVALID: (189, 79, 60)}
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
        out.write(f"<node{attributes([('id', node), ('label', _label(page))])}><attvalues>{values}</attvalues>{look}</node>\n")
    out.write(f'</nodes>\n<edges count="{len(graph.targets)}">\n')
    for source, target, weight in _edges(graph, weights):
        out.write(f'<edge source="{source}" target="{target}" weight="{weight}"/>\n')
    out.write("</edges>\n</graph>\n</gexf>\n")


def write_graphml(graph: LinkGraph, facts: PageColumns, about: About, out: TextIO, *, weights: Weights = None) -> None:
    """GraphML with typed keys, streamed: the same graph and arguments as in `write_gexf`, `label` among the attributes.

    Source: graphml.graphdrawing.org, schema 1.0 with its attributes extension.
    """
    _check(graph, facts, weights)
    out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="{GRAPHML}">\n<desc>{escaped(_origin(about))}</desc>\n')
    for name, kind in {"label": "string", **COLUMNS}.items():
        out.write(f'<key id="{name}" for="node" attr.name="{name}" attr.type="{kind}"/>\n')
    out.write('<key id="weight" for="edge" attr.name="weight" attr.type="double"/>\n<graph id="G" edgedefault="directed">\n')
    for node in range(len(graph.pages)):
        page = facts.page(node)
        values = zip(("label", *COLUMNS), (escaped(_label(page)), *_written(page)), strict=True)
        data = "".join([f'<data key="{name}">{value}</data>' for name, value in values])
        out.write(f'<node id="n{node}">{data}</node>\n')
    for source, target, weight in _edges(graph, weights):
        out.write(f'<edge source="n{source}" target="n{target}"><data key="weight">{weight}</data></edge>\n')
    out.write("</graph>\n</graphml>\n")


def write_pajek(graph: LinkGraph, out: TextIO, *, weights: Weights = None) -> None:
    """Pajek's .net, streamed: vertices named by their URLs, arcs with weights. It has no attributes, and no way to write a
    quotation mark or a backslash in a name: both stand percent-encoded."""
    _check_weights(graph, weights)
    out.write(f"*Vertices {len(graph.pages)}\n")
    for node, url in enumerate(graph.pages, 1):
        out.write(f'{node} "{characters(url).replace(chr(34), "%22").replace(chr(92), "%5C")}"\n')
    out.write("*Arcs\n")
    for source, target, weight in _edges(graph, weights):
        out.write(f"{source + 1} {target + 1} {weight}\n")


def _check(graph: LinkGraph, facts: PageColumns, weights: Weights) -> None:
    if len(facts.url) != len(graph.pages):
        raise UsageError(f"facts of {len(facts.url)} pages do not fit a graph of {len(graph.pages)}: take both from one collection")
    _check_weights(graph, weights)


def _check_weights(graph: LinkGraph, weights: Weights) -> None:
    if weights is not None and (len(weights) != len(graph.targets) or not bool(np.all((weights > 0) & np.isfinite(weights)))):
        raise UsageError("an edge's weight is a number greater than 0, one for each link: readers drop edges that weigh nothing")


def _edges(graph: LinkGraph, weights: Weights) -> Iterator[tuple[int, int, int | float]]:
    """(source, target, weight) of every link, by source."""
    for source in range(len(graph.pages)):
        first, end = int(graph.offsets[source]), int(graph.offsets[source + 1])
        of_links = weights[first:end].tolist() if weights is not None else [1] * (end - first)
        for target, weight in zip(graph.targets[first:end].tolist(), of_links, strict=True):
            yield source, target, weight


def _written(page: PageFacts) -> list[str]:
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
        page.layer,
        page.rank,
        page.score,
        page.links_in,
        page.links_out,
    )
    return [escaped(value) if isinstance(value, str) else str(value).lower() for value in values]


def _label(page: PageFacts) -> str:
    return visible(page.title) or visible(short(page.url))


def _origin(about: About) -> str:
    """Run, start, time and parameters as one text."""
    settings = "".join(f"; {name} = {value}" for name, value in about.parameters)
    return f"run {about.run}, crawled from {about.start}, written {iso(about.created)}; PageRank damping {about.damping:g}, {about.rounds} rounds{settings}"
