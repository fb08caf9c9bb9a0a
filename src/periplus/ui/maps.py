"""A site's structure: as a tree that opens, as a picture, as files."""

from __future__ import annotations

import io
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from periplus.analyse.linkgraph import shortest_way
from periplus.api.functions import open_collection
from periplus.api.homes import full_place
from periplus.api.site import Site, layout_key, stored_graph
from periplus.errors import UsageError
from periplus.jobs.presets import choice, whole
from periplus.model.results import OTHER_PAGES, MapNode, PageColumns
from periplus.model.web import Url
from periplus.present.charts import COLOURS
from periplus.present.site_graph import SiteGraph
from periplus.present.wording import labels, without_site_name
from periplus.ui import rendering
from periplus.ui.state import place_read, state_of
from periplus.urls.scope import site_key
from periplus.values import frozen

NODES = 400  # of a tree at first; it opens branch by branch
MOST_NODES = 5_000  # 3 MB of HTML
MOST_SIBLINGS = 12  # siblings and pages below that are named
MOST_MATCHES = 200  # pages named that have a text
MEASURES = ("rank", "size", "pages")
VALUE_WORDS = {
    "pages": "pages in the branch",
    "size": "bytes in the branch",
    "score": "score of the page, 0 to 100",
    "inlinks": "pages that link to it",
    "status": "status",
}
USUAL = ("pages", "score")
READ_S = 5.0

FILES = ("svg", "xml", "xhtml", "pdf", "json", "gexf", "graphml", "net")
SITE_WAIT_S = 0.5  # for a layout; one of ten thousand pages takes some seconds
PREPARING = 202  # HTTP: accepted, and not there yet


@frozen
class TreeLine:
    """A line of the tree. step: open (its branch follows), leaf, or close."""

    step: str
    url: str = ""
    label: str = ""
    state: str = ""
    depth: int = 0
    pages: int = 0
    size_bytes: int = 0
    score: int = -1  # -1: of no page
    inlinks: int = 0
    status: int = 0


_CLOSE = TreeLine("close")


def site_map(request: Request) -> Response:
    """The tree, and the pages that have a text in title or address."""
    name, _ = place_read(request)
    asked = request.query_params
    sites, site = site_of(request)
    nodes, (by, colour) = whole(asked, "nodes", NODES, 1, MOST_NODES), _drawing_options(request)
    shown = [value for value in asked.getlist("show") if value in VALUE_WORDS] or list(USUAL)
    by_folder = asked.get("tree") == "folders"
    facts = replace(site.facts, title=without_site_name(site.facts.title))
    values: dict[str, object] = {
        "title": "Map", "name": name, "site": site.key, "sites": sites, "head": list(site.head()), "nodes": nodes,
        "show": shown, "by": by, "colour": colour,
        "colours": COLOURS if dict(facts.further).get("segment") else (),
        "places": list(folder_lines(site, nodes) if by_folder else lines(site.tree(max_nodes=nodes), facts)),
        "by_folder": by_folder,
        "results": list(_matches(facts, asked.get("find", "").strip())), "most": MOST_MATCHES,
        "choices": VALUE_WORDS, "measures": MEASURES, "files": FILES, "most_nodes": MOST_NODES,
    }  # fmt: skip
    return rendering.answer(request, "map.html", values)


def site_of(request: Request) -> tuple[list[str], Site]:
    """(sites of the starts, the map that is asked for)."""
    _, place = place_read(request)
    with open_collection(place, time_limit_s=READ_S) as collection:
        starts = [Url(start) for run in collection.runs() for start in run.starts]
    sites = list(dict.fromkeys(str(site_key(start)) for start in starts))
    site = request.query_params.get("site", "") or (sites[0] if len(sites) > 1 else "")
    return sites, state_of(request).maps.of(place, site)


def _drawing_options(request: Request) -> tuple[str, str]:
    """(meaning of heights, meaning of colours). Raises UsageError."""
    asked = request.query_params
    return choice(asked, "by", MEASURES, MEASURES[0]), choice(asked, "colour", COLOURS, COLOURS[0])


def folder_lines(shown: Site, nodes: int) -> Iterator[TreeLine]:
    """The tree of the paths of fetched pages, the largest folders first, at most `nodes` of them."""
    sums, sizes = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for page in shown.graph.fetched.nonzero()[0].tolist():
        scheme, _, place = str(shown.facts.url[page]).partition("://")
        host, *steps = place.partition("?")[0].split("/")
        for end in range(max(len(steps), 1)):
            key = (f"{scheme}://{host}", *steps[:end])
            sums[key] += 1
            sizes[key] += int(shown.facts.size_bytes[page])
    best = sorted(sums, key=lambda key: (-sums[key], len(key), key))[:nodes]
    order = {key: tuple((-sums[key[:end]], key[end - 1]) for end in range(1, len(key) + 1)) for key in best}
    parents, depth = {key[:-1] for key in best}, 0
    for key in sorted(best, key=order.__getitem__):
        yield from [_CLOSE] * (depth - len(key) + 1)
        step, label = "open" if key in parents else "leaf", f"/{unquote(key[-1])}/" if key[1:] else key[0]
        yield TreeLine(step, "/".join(key) + "/", label, depth=len(key) - 1, pages=sums[key], size_bytes=sizes[key])
        depth = len(key) if step == "open" else len(key) - 1
    yield from [_CLOSE] * depth


def lines(tree: MapNode, facts: PageColumns) -> Iterator[TreeLine]:
    """The tree in the order of its lines; a chain of a thousand pages is no deeper call than one."""
    yield replace(_place(tree, facts, _names((tree,), facts, "")[0]), step="open")
    stack = [iter(_name_nodes(tree.children, facts, facts.title[tree.page]))]
    while stack:
        line = next(stack[-1], None)
        if line is None:
            stack.pop()
            yield _CLOSE
            continue
        node, label = line
        place = _place(node, facts, label)
        yield place
        if node.children:
            stack.append(iter(_name_nodes(node.children, facts, facts.title[node.page])))


def _name_nodes(nodes: Sequence[MapNode], facts: PageColumns, parent: str) -> list[tuple[MapNode, str]]:
    return list(zip(nodes, _names(nodes, facts, parent), strict=True))


def _names(nodes: Sequence[MapNode], facts: PageColumns, parent: str) -> list[str]:
    own = [node for node in nodes if node.page != OTHER_PAGES]
    names = iter(labels([facts.url[node.page] for node in own], [facts.title[node.page] for node in own], parent))
    return [f"and {node.pages:,} more" if node.page == OTHER_PAGES else next(names) for node in nodes]


def _place(node: MapNode, facts: PageColumns, label: str) -> TreeLine:
    step = "open" if node.children else "leaf"
    if node.page == OTHER_PAGES:
        return TreeLine("leaf", label=label, pages=node.pages, size_bytes=node.size_bytes)
    page = facts.page(node.page)
    return TreeLine(
        step,
        page.url,
        label,
        page.state.value,
        page.depth,
        node.pages,
        node.size_bytes,
        page.score,
        page.inlinks,
        page.status,
    )


def _matches(facts: PageColumns, text: str) -> Iterator[TreeLine]:
    """Pages with the text in title or URL, greatest rank first."""
    if not text:
        return
    low = text.lower()
    hits = [
        page for page in range(len(facts.url)) if low in facts.url[page].lower() or low in facts.title[page].lower()
    ]
    for page in sorted(hits, key=lambda page: -facts.rank[page])[:MOST_MATCHES]:
        page_facts = facts.page(page)
        yield TreeLine(
            "leaf",
            page_facts.url,
            page_facts.title or page_facts.url,
            page_facts.state.value,
            page_facts.depth,
            score=page_facts.score,
            inlinks=page_facts.inlinks,
            status=page_facts.status,
        )


def picture(request: Request) -> Response:
    """The map as areas, as an image."""
    return rendering.drawing(_write_map(request, "svg"))


def file(request: Request) -> Response:
    """The whole map as a file."""
    ending = request.path_params["ending"]
    if ending not in FILES:
        raise UsageError(f"there is no such file of a map: choose {', '.join(FILES)}")
    content = _write_map(request, ending)
    return rendering.drawing(content, f"{request.path_params['name']}-map.{ending}")


def _write_map(request: Request, ending: str) -> str | bytes:
    _, site = site_of(request)
    text, data = io.StringIO(newline=""), io.BytesIO()
    match ending:
        case "svg":
            by, colour = _drawing_options(request)
            site.write_svg(text, by=by, colour=colour)
        case "xml":
            site.write_xml(text)
        case "xhtml":
            site.write_xhtml(data)
        case "pdf":
            site.write_pdf(data)
        case "json":
            site.write_json(text)
        case _:
            site.write_graph(text, format=ending)
    return data.getvalue() or text.getvalue()


class Step(NamedTuple):
    """A page on the way, beside or below."""

    url: str
    label: str
    score: int  # 0 to 100
    below: int  # pages under it


@frozen
class MapPlace:
    """way: from the home page to the page itself; empty: no link reaches it.

    beside, below: the greatest by rank; siblings, children: how many there are.
    """

    site: str
    pages: int  # of the map
    depth: int
    rank: float  # share of a surfer's time
    score: int
    better: int  # pages of greater rank
    way: tuple[Step, ...]
    beside: tuple[Step, ...]
    siblings: int
    below: tuple[Step, ...]
    children: int


def place_of(site: Site, url: Url) -> MapPlace | None:
    """Position of the page in the map; None: its site has no such page."""
    pages = site.facts.url
    page = bisect_left(pages, url)
    if page == len(pages) or pages[page] != url:
        return None
    rank, parent = site.facts.rank, site.site_map.parent
    way = [page] if site.site_map.depth[page] >= 0 else []
    while way and parent[way[-1]] >= 0:
        way.append(int(parent[way[-1]]))
    beside = np.flatnonzero(parent == parent[page]) if len(way) > 1 else np.zeros(0, np.int64)
    below = np.flatnonzero(parent == page)
    best = [
        group[np.argsort(-rank[group], kind="stable")][:MOST_SIBLINGS].tolist()
        for group in (beside[beside != page], below)
    ]
    return MapPlace(
        str(site.key), len(site.site_map.order), int(site.site_map.depth[page]), float(rank[page]),
        int(site.facts.score[page]), int((rank > rank[page]).sum()),
        _steps(site, way[::-1]), _steps(site, best[0]), max(len(beside) - 1, 0), _steps(site, best[1]), len(below),
    )  # fmt: skip


def _steps(site: Site, pages: list[int]) -> tuple[Step, ...]:
    urls = [site.facts.url[page] for page in pages]
    names = labels(urls, without_site_name([site.facts.title[page] for page in pages]))
    return tuple(
        Step(url, name, int(site.facts.score[page]), int(site.site_map.below[page]))
        for url, name, page in zip(urls, names, pages, strict=True)
    )


def site(request: Request) -> Response:
    """The screen; the drawing follows as JSON."""
    name, _ = place_read(request)
    asked = request.query_params
    sites, shown = site_of(request)
    query = rendering.query({}, site=asked.get("site", ""), under=asked.get("under", "")) + "&"
    made = {"title": "The whole site", "name": name, "site": shown.key, "sites": sites, "under": asked.get("under", "")}
    if not rendering.wants_json(request):
        made["query"] = query.rstrip("&") if query != "?&" else "?"
    return rendering.answer(request, "site.html", made)


def _site_graph(request: Request, wait_s: float | None) -> SiteGraph | None:
    """The drawing; None: it takes longer. wait_s: None: as long as it takes."""
    _, place = place_read(request)
    state, under = state_of(request), request.query_params.get("under", "")
    _, shown = site_of(request)
    key = (full_place(place), *layout_key(place, shown.key, under))
    return state.layouts.of(key, lambda: stored_graph(place, shown, under), wait_s)


def site_values(request: Request) -> Response:
    """The drawing as columns; 202 while its layout is computed."""
    graph = _site_graph(request, SITE_WAIT_S)
    if graph is None:
        return JSONResponse({}, PREPARING)
    return Response(json.dumps(rendering.plain(graph), separators=(",", ":")), media_type="application/json")


def site_links(request: Request) -> Response:
    """Which pages a page links to, and which link to it."""
    _, shown = site_of(request)
    graph, page = shown.graph, _site_page(shown, request.query_params.get("url", ""))
    out = graph.targets[graph.offsets[page] : graph.offsets[page + 1]].tolist()
    into = (graph.targets == page).nonzero()[0]
    sources = graph.offsets.searchsorted(into, "right") - 1
    ends = {*out, *sources.tolist()}
    return JSONResponse({"out": len(out), "in": len(sources), "ends": [str(graph.pages[end]) for end in sorted(ends)]})


def site_way(request: Request) -> Response:
    """The shortest way by links from one page to another; empty: there is none."""
    _, shown = site_of(request)
    asked = request.query_params
    pages = shortest_way(shown.graph, _site_page(shown, asked.get("from", "")), _site_page(shown, asked.get("to", "")))
    return JSONResponse({"way": [str(shown.graph.pages[page]) for page in pages]})


def _site_page(shown: Site, text: str) -> int:
    """The place of a page that is named by its address, or by its path alone. Raises UsageError."""
    origin = "/".join(str(shown.graph.pages[shown.site_map.home]).split("/")[:3])
    url = Url(origin + text if text.startswith("/") else text.strip())
    page = bisect_left(shown.graph.pages, url)
    if page == len(shown.graph.pages) or shown.graph.pages[page] != url:
        raise UsageError(f"{text[:200]!r} is not a page of this map")
    return page
