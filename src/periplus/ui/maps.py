"""How is a site's structure seen: as a tree that opens, as a picture, as files?"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response

from periplus.api.collection import open_collection
from periplus.api.site import Site
from periplus.errors import UsageError
from periplus.model.results import OTHERS, MapNode, PageColumns
from periplus.model.web import Url
from periplus.present.charts import FORMS
from periplus.present.wording import labels, without_site_name
from periplus.ui import rendering
from periplus.ui.rendering import folder_of, house_of
from periplus.urls.scope import site_key

NODES = 400  # of a tree at first; it opens branch by branch
MOST_NODES = 5_000  # 3 MB of HTML
OPEN_DEPTHS = 1  # whose branches are open at first
FOUND = 200  # pages named that have a text
MEASURES = ("rank", "size", "pages")
SHOWN = {
    "pages": "pages in the branch",
    "size": "bytes in the branch",
    "score": "score of the page, 0 to 100",
    "inlinks": "pages that link to it",
    "status": "status",
}
USUAL = ("pages", "score")
READ_S = 5.0
SANDBOX = "default-src 'none'; style-src 'unsafe-inline'; sandbox"  # for what we draw of a site's own words


@dataclass(frozen=True, slots=True)
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
    name, folder = folder_of(request)
    asked = request.query_params
    sites = _sites(request)
    site = house_of(request).maps.of(folder, asked.get("site", "") or (sites[0] if len(sites) > 1 else ""))
    nodes = _nodes(asked.get("nodes", ""))
    shown = [value for value in asked.getlist("show") if value in SHOWN] or list(USUAL)
    facts = replace(site.facts, title=without_site_name(site.facts.title))
    text = asked.get("find", "").strip()
    values: dict[str, object] = {
        "title": "Map", "name": name, "site": site.key, "sites": sites, "head": list(site.head()), "nodes": nodes,
        "show": shown, "by": _measure(request),
        "form": _form(request),
        "places": list(lines(site.tree(max_nodes=nodes), facts)), "found": list(_found(facts, text)), "most": FOUND,
    }  # fmt: skip
    return rendering.answer(
        request,
        "map.html",
        values
        | {"choices": SHOWN, "measures": MEASURES, "forms": FORMS, "files": list(FILES), "most_nodes": MOST_NODES},
    )


def _sites(request: Request) -> list[str]:
    _, folder = folder_of(request)
    with open_collection(folder, time_limit_s=READ_S) as kept:
        return list(dict.fromkeys(str(site_key(Url(start))) for run in kept.runs() for start in run.starts))


def _nodes(text: str) -> int:
    if text and not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_NODES):
        raise UsageError(f"nodes is a number from 1 to {MOST_NODES:,}")
    return int(text or NODES)


def _measure(request: Request) -> str:
    by = request.query_params.get("by", MEASURES[0])
    if by not in MEASURES:
        raise UsageError(f"a picture of a map is by {', '.join(MEASURES)}")
    return by


def _form(request: Request) -> str:
    form = request.query_params.get("form", next(iter(FORMS)))
    if form not in FORMS:
        raise UsageError(f"a picture of a map is one of {', '.join(FORMS)}")
    return form


def lines(tree: MapNode, facts: PageColumns) -> Iterator[TreeLine]:
    """The tree in the order of its lines; a chain of a thousand pages is no deeper call than one."""
    yield replace(_place(tree, facts, _names((tree,), facts, "")[0]), step="open")
    stack = [iter(_named(tree.children, facts, facts.title[tree.page]))]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
            yield _CLOSE
            continue
        node, label = found
        place = _place(node, facts, label)
        yield place
        if node.children:
            stack.append(iter(_named(node.children, facts, facts.title[node.page])))


def _named(nodes: Sequence[MapNode], facts: PageColumns, parent: str) -> list[tuple[MapNode, str]]:
    return list(zip(nodes, _names(nodes, facts, parent), strict=True))


def _names(nodes: Sequence[MapNode], facts: PageColumns, parent: str) -> list[str]:
    own = [node for node in nodes if node.page != OTHERS]
    names = iter(labels([facts.url[node.page] for node in own], [facts.title[node.page] for node in own], parent))
    return [f"and {node.pages:,} more" if node.page == OTHERS else next(names) for node in nodes]


def _place(node: MapNode, facts: PageColumns, label: str) -> TreeLine:
    step = "open" if node.children else "leaf"
    if node.page == OTHERS:
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


def _found(facts: PageColumns, text: str) -> Iterator[TreeLine]:
    """Pages with the text in title or URL, greatest rank first."""
    if not text:
        return
    low = text.lower()
    hits = [
        page for page in range(len(facts.url)) if low in facts.url[page].lower() or low in facts.title[page].lower()
    ]
    for page in sorted(hits, key=lambda page: -facts.rank[page])[:FOUND]:
        one = facts.page(page)
        yield TreeLine(
            "leaf",
            one.url,
            one.title or one.url,
            one.state.value,
            one.depth,
            score=one.score,
            inlinks=one.inlinks,
            status=one.status,
        )


def picture(request: Request) -> Response:
    """Where the weight lies, as an image."""
    return _written(request, "svg", attached=False)


def file(request: Request) -> Response:
    """The whole map as a file."""
    ending = request.path_params["ending"]
    if ending not in FILES:
        raise UsageError(f"there is no such file of a map: choose {', '.join(FILES)}")
    return _written(request, ending, attached=True)


def _written(request: Request, ending: str, *, attached: bool) -> Response:
    name, folder = folder_of(request)
    sites = _sites(request)
    site = house_of(request).maps.of(
        folder, request.query_params.get("site", "") or (sites[0] if len(sites) > 1 else "")
    )
    media_type, write = FILES[ending]
    headers = {"content-security-policy": SANDBOX}
    if attached:
        headers = rendering.file_named(f"{name}-map.{ending}", headers)
    return Response(write(site, request), media_type=media_type, headers=headers)


def _text(write: Callable[[Site, io.StringIO, Request], None]) -> Callable[[Site, Request], bytes]:
    def written(site: Site, request: Request) -> bytes:
        out = io.StringIO(newline="")
        write(site, out, request)
        return out.getvalue().encode("utf-8", "replace")

    return written


def _bytes(write: Callable[[Site, io.BytesIO], None]) -> Callable[[Site, Request], bytes]:
    def written(site: Site, request: Request) -> bytes:
        out = io.BytesIO()
        write(site, out)
        return out.getvalue()

    return written


FILES: dict[str, tuple[str, Callable[[Site, Request], bytes]]] = {
    "svg": (
        "image/svg+xml",
        _text(lambda site, out, request: site.write_svg(out, by=_measure(request), form=_form(request))),
    ),
    "xml": ("application/xml", _text(lambda site, out, request: site.write_xml(out))),
    "xhtml": ("application/xhtml+xml", _bytes(lambda site, out: site.write_xhtml(out))),
    "pdf": ("application/pdf", _bytes(lambda site, out: site.write_pdf(out))),
    "json": ("application/json", _text(lambda site, out, request: site.write_json(out))),
    "gexf": ("application/xml", _text(lambda site, out, request: site.write_graph(out, format="gexf"))),
    "graphml": ("application/xml", _text(lambda site, out, request: site.write_graph(out, format="graphml"))),
}
