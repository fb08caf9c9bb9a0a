"""What is near a page, its directory or its site by links: drawn, as a table, as files."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TextIO
from urllib.parse import urlencode

import numpy as np
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from periplus.analyse.ego import Grouping, Neighbourhood, Web, neighbourhood
from periplus.analyse.pagerank import link_score
from periplus.api.homes import open_reader
from periplus.api.inlink_index import InlinkIndexes
from periplus.errors import UsageError
from periplus.jobs.presets import choice, whole
from periplus.model.graph import LinkGraph
from periplus.model.results import About, PageColumns
from periplus.model.visit import STATE_OF, Reason
from periplus.model.web import Url
from periplus.present.graphs import write_graph
from periplus.present.site_graph import EgoNode, write_ego_svg
from periplus.present.wording import count_of, labels, short, without_site_name
from periplus.store import inlinks
from periplus.store.inlinks import StoredInlinkIndex
from periplus.store.reader import Brief, CollectionReader
from periplus.ui import rendering
from periplus.ui.state import now, place_read, state_of
from periplus.urls.canonical import url_id
from periplus.urls.scope import site_key
from periplus.values import Place, frozen

MOST = (30, 60, 120, 200)  # of more no name could be read
USUAL = 60
GROUPINGS = {Grouping.PAGE: "pages", Grouping.DIRECTORY: "directories", Grouping.SITE: "sites"}
FILES = ("svg", "gexf")
READ_S = 10.0


def graph(request: Request) -> Response:
    """The drawing, with each circle a link to its own neighbourhood, and the same as a table."""
    name, place = place_read(request)
    asked = request.query_params
    graph_request = _graph_request(asked)
    around = look(place, graph_request, state_of(request).browser.indexes)
    values: dict[str, object] = {"title": "Link graph", "name": name, "request": graph_request, "graph": around}
    if not rendering.wants_json(request):
        values |= {"groupings": GROUPINGS, "sizes": MOST, "files": FILES}
        if around is not None:
            # what it shows of the web was escaped as it was written
            values["drawing"] = Markup(_svg(around, dict(asked)))
    return rendering.answer(request, "graph.html", values)


def _graph_request(asked: Mapping[str, str]) -> NeighbourRequest:
    """Raises UsageError."""
    menus = choice(asked, "menus", ("", "hide"))  # hide: leaves links of menus out
    return NeighbourRequest(
        asked.get("node", "").strip(),
        Grouping(choice(asked, "by", [grouping.value for grouping in Grouping], Grouping.PAGE.value)),
        whole(asked, "steps", 1, 1, 2),
        menus != "hide",
        whole(asked, "most", USUAL, 1, MOST[-1]),
    )


def _svg(around: Around, asked: Mapping[str, str] | None = None) -> str:
    """asked: the address whose node each circle changes; None: for a file."""
    out = io.StringIO()
    others = {key: text for key, text in (asked or {}).items() if key not in ("node", "format")}
    link = None if asked is None else (lambda url: "?" + urlencode({"node": url} | others))
    write_ego_svg(around.nodes, around.ranks, around.links, around.limit, out, link=link)
    return out.getvalue()


def file(request: Request) -> Response:
    """The neighbourhood as SVG or GEXF."""
    name, place = place_read(request)
    ending = request.path_params["ending"]
    if ending not in FILES:
        raise UsageError(f"there is no such file of a link graph: choose {', '.join(FILES)}")
    around = look(place, _graph_request(request.query_params), state_of(request).browser.indexes)
    if around is None:
        raise UsageError("the links of this large collection are being sorted: try again in a minute")
    if ending == "svg":
        text = _svg(around)
    else:
        out = io.StringIO()
        write_neighbours(around, now(), out)
        text = out.getvalue()
    return rendering.drawing(text, f"{name}-links.{ending}")


@frozen
class NeighbourRequest:
    """A neighbourhood. url: of the middle, or of any page in it; steps: 1 or 2; most: neighbours that are named."""

    url: str
    grouping: Grouping = Grouping.PAGE
    steps: int = 1
    menus: bool = True
    most: int = 60


@frozen
class Around:
    """The middle first, then its neighbours by step and rank.

    links: (source, end, links) by place; ranks: of the nodes; briefs: of their URLs. missed: visits that the
    index does not know as yet.
    """

    nodes: tuple[EgoNode, ...]
    links: tuple[tuple[int, int, int], ...]
    neighbours: int
    bounded: bool
    ranks: tuple[float, ...]
    briefs: tuple[Brief, ...]
    missed: int

    @property
    def limit(self) -> str:
        """How many of how many are shown."""
        shown, least = len(self.nodes) - 1, "more than " if self.bounded else ""
        if shown == self.neighbours and not self.bounded:
            return count_of(shown, "neighbour")
        return f"{shown:,} of {least}{count_of(self.neighbours, 'neighbour')}, by rank"


def look(place: Place, request: NeighbourRequest, indexes: InlinkIndexes) -> Around | None:
    """The neighbourhood; None: the collection is large, and its index is still being made.

    An empty URL is the first start's.

    Raises UsageError for a URL that the index does not know; NoCollection, StoreError.
    """
    with open_reader(place, READ_S) as reader:
        if not request.url:
            starts = [start for run in reader.runs() for start in run.starts]
            if not starts:
                raise UsageError("the collection has no run yet, so it has no links")
            request = replace(request, url=starts[0])
        index = indexes.of(place, reader)
        if index is None:
            return None
        return neighbours_of(reader, index, indexes.web(place, index, request.grouping, menus=request.menus), request)


def neighbours_of(reader: CollectionReader, index: StoredInlinkIndex, web: Web, request: NeighbourRequest) -> Around:
    """The neighbourhood.

    web: of the request's grouping. Raises UsageError for a URL that the index does not know.
    """
    url = reader.resolve_url(request.url)
    place = inlinks.place_of(index, url_id(url))
    if place < 0:
        raise UsageError(
            f"the collection's links do not name {url} as yet. The table of pages finds URLs that contain a text."
        )
    near = neighbourhood(web, int(web.groups[place]), request.steps, request.most)
    ids = index.links.ids[[node.place for node in near.nodes]].tolist()
    if request.grouping is Grouping.PAGE:
        ids[0] = url_id(url)
    briefs = reader.briefs(ids)
    missed = inlinks.moment_of(reader).visit - index.moment.visit
    nodes, ranks = _neighbours(near, briefs, request.grouping, web), tuple(node.rank for node in near.nodes)
    return Around(nodes, near.links, near.neighbours, near.bounded, ranks, tuple(briefs), missed)


def _neighbours(near: Neighbourhood, briefs: Sequence[Brief], grouping: Grouping, web: Web) -> tuple[EgoNode, ...]:
    names = _names(briefs, grouping)
    weights = web.weight[web.weight > 0]
    least, most = (float(weights.min()), float(weights.max())) if len(weights) else (1.0, 1.0)
    scores = link_score(np.array([least, most, *(max(node.rank, least) for node in near.nodes)]))[2:].tolist()
    rows = zip(near.nodes, briefs, names, scores, strict=True)
    home = _site(briefs[0].url)
    return tuple(
        EgoNode(
            brief.url,
            name,
            _part(brief.url, grouping, home),
            STATE_OF[Reason(brief.reason)],
            node.step,
            node.pages,
            node.fetched,
            score,
            node.links_here,
            node.linked,
        )
        for node, brief, name, score in rows
    )


def _names(briefs: Sequence[Brief], grouping: Grouping) -> list[str]:
    if grouping is Grouping.PAGE:
        return labels([brief.url for brief in briefs], without_site_name([brief.title for brief in briefs]))
    if grouping is Grouping.SITE:
        return [_site(brief.url) for brief in briefs]
    folders = [inlinks.directory(brief.url) for brief in briefs]
    home = _site(briefs[0].url)
    return [
        short(folder) if _site(folder) == home and folder.count("/") > 3 else folder.partition("://")[2].rstrip("/")
        for folder in folders
    ]


def _site(url: str) -> str:
    return str(site_key(Url(url))) if url else ""


def _part(url: str, grouping: Grouping, home: str) -> str:
    """Meaning of a node's colour: the directory of a page on the middle's site, else the site."""
    if grouping is Grouping.PAGE and _site(url) == home:
        folder = inlinks.directory(url)
        return "/" + folder.split("/", 3)[3]
    return "other sites" if grouping is Grouping.PAGE else _site(url) if grouping is Grouping.DIRECTORY else "sites"


def write_neighbours(around: Around, created: float, out: TextIO) -> None:
    """The neighbourhood as GEXF; of directories and sites a node is named by its page of greatest rank. out: UTF-8."""
    count = len(around.nodes)
    links = sorted(around.links)
    source = np.array([link[0] for link in links], np.int64)
    targets = np.array([link[1] for link in links], np.int32)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(source, minlength=count)))).astype(np.int64)
    urls = [Url(node.url) for node in around.nodes]
    depths = np.array([brief.depth for brief in around.briefs], np.int32)
    graph = LinkGraph(urls, offsets, targets, np.array([node.fetched > 0 for node in around.nodes], np.bool_), depths)
    facts = PageColumns(
        url=urls,
        title=[node.name for node in around.nodes],
        state=[node.state for node in around.nodes],
        reason=[Reason(brief.reason) for brief in around.briefs],
        status=np.array([min(brief.status, 999) for brief in around.briefs], np.int16),
        media_type=[brief.media_type for brief in around.briefs],
        size_bytes=np.array([brief.size for brief in around.briefs], np.int64),
        depth=depths,
        rank=np.array(around.ranks),
        score=np.array([node.score for node in around.nodes], np.uint8),
        inlinks=np.bincount(targets, minlength=count).astype(np.int64),
        outlinks=np.diff(offsets),
    )
    parameters = (("shown", around.limit),)
    about = About("links around " + around.nodes[0].url, urls[0], created, 0.85, 0, parameters=parameters)
    write_graph(graph, facts, about, out, weights=np.array([link[2] for link in links], np.int64) if links else None)
