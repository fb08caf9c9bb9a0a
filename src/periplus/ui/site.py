"""A whole site as a graph: a canvas that zooms, its files, the links of a page, and the way between two."""

from __future__ import annotations

import json
from bisect import bisect_left

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from periplus.analyse.linkgraph import shortest_way
from periplus.api.site import Site, layout_key, stored_graph
from periplus.errors import UsageError
from periplus.model.web import Url
from periplus.present.site_graph import SiteGraph, site_svg
from periplus.ui import rendering
from periplus.ui.maps import site_of
from periplus.ui.state import folder_of, state_of

WAIT_S = 0.5  # for a layout; one of ten thousand pages takes some seconds
PREPARING = 202  # HTTP: accepted, and not there yet


def site(request: Request) -> Response:
    """The screen; the drawing follows as JSON."""
    name, _ = folder_of(request)
    asked = request.query_params
    sites, shown = site_of(request)
    query = rendering.query({}, site=asked.get("site", ""), under=asked.get("under", "")) + "&"
    made = {"title": "The whole site", "name": name, "site": shown.key, "sites": sites, "under": asked.get("under", "")}
    if not rendering.wants_json(request):
        made["query"] = query.rstrip("&") if query != "?&" else "?"
    return rendering.answer(request, "site.html", made)


def _graph(request: Request, wait_s: float | None) -> SiteGraph | None:
    """The drawing; None: it takes longer. wait_s: None: as long as it takes."""
    _, folder = folder_of(request)
    state, under = state_of(request), request.query_params.get("under", "")
    _, shown = site_of(request)
    key = (folder.resolve(), *layout_key(folder, shown.key, under))
    return state.layouts.of(key, lambda: stored_graph(folder, shown, under), wait_s)


def values(request: Request) -> Response:
    """The drawing as columns; 202 while its layout is computed."""
    graph = _graph(request, WAIT_S)
    if graph is None:
        return JSONResponse({}, PREPARING)
    return Response(json.dumps(rendering.plain(graph), separators=(",", ":")), media_type="application/json")


def file(request: Request) -> Response:
    """The drawing as SVG."""
    graph = _graph(request, None)
    assert graph is not None  # waited for
    return rendering.drawing(site_svg(graph), f"{request.path_params['name']}-site.svg")


def links(request: Request) -> Response:
    """Which pages a page links to, and which link to it."""
    _, shown = site_of(request)
    graph, page = shown.graph, _page(shown, request.query_params.get("url", ""))
    out = graph.targets[graph.offsets[page] : graph.offsets[page + 1]].tolist()
    into = (graph.targets == page).nonzero()[0]
    sources = graph.offsets.searchsorted(into, "right") - 1
    ends = {*out, *sources.tolist()}
    return JSONResponse({"out": len(out), "in": len(sources), "ends": [str(graph.pages[end]) for end in sorted(ends)]})


def way(request: Request) -> Response:
    """The shortest way by links from one page to another; empty: there is none."""
    _, shown = site_of(request)
    asked = request.query_params
    pages = shortest_way(shown.graph, _page(shown, asked.get("from", "")), _page(shown, asked.get("to", "")))
    return JSONResponse({"way": [str(shown.graph.pages[page]) for page in pages]})


def _page(shown: Site, text: str) -> int:
    """The place of a page that is named by its address, or by its path alone. Raises UsageError."""
    origin = "/".join(str(shown.graph.pages[shown.site_map.home]).split("/")[:3])
    url = Url(origin + text if text.startswith("/") else text.strip())
    page = bisect_left(shown.graph.pages, url)
    if page == len(shown.graph.pages) or shown.graph.pages[page] != url:
        raise UsageError(f"{text[:200]!r} is not a page of this map")
    return page
