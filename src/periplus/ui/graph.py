"""What is near a page, its directory or its site by links: drawn, as a table, as files?"""

from __future__ import annotations

import io
from collections.abc import Mapping
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from periplus.api.neighbours import Around, Grouping, NeighbourRequest, drawn, look, write_neighbours
from periplus.errors import UsageError
from periplus.present.network import write_ego_svg
from periplus.ui import rendering
from periplus.ui.rendering import folder_of, house_of, now

MOST = (30, 60, 120, 200)  # of more no name could be read
USUAL = 60
GROUPINGS = {Grouping.PAGE: "pages", Grouping.DIRECTORY: "directories", Grouping.SITE: "sites"}
FILES = {"svg": "image/svg+xml", "gexf": "application/xml"}
SANDBOX = "default-src 'none'; style-src 'unsafe-inline'; sandbox"  # for what we draw of a site's own words


def graph(request: Request) -> Response:
    """The drawing, with each circle a link to its own neighbourhood, and the same as a table."""
    name, folder = folder_of(request)
    asked = request.query_params
    wish = _wish(asked)
    found = look(folder, wish, house_of(request).browser.books)
    values: dict[str, object] = {"title": "Link graph", "name": name, "wish": wish, "found": found}
    if not rendering.wants_json(request):
        values |= {"groupings": GROUPINGS, "sizes": MOST, "files": list(FILES)}
        if found is not None:
            # what it shows of the web was escaped as it was written
            values["drawing"] = Markup(_svg(found, dict(asked)))
    return rendering.answer(request, "graph.html", values)


def _wish(asked: Mapping[str, str]) -> NeighbourRequest:
    """Raises UsageError."""
    by, steps, menus, most = (
        asked.get("by", "page"),
        asked.get("steps", "1"),
        asked.get("menus", ""),
        asked.get("most", str(USUAL)),
    )
    if by not in [one.value for one in Grouping]:
        raise UsageError(f"a link graph is by {', '.join(one.value for one in Grouping)}")
    if steps not in ("1", "2"):
        raise UsageError("steps are 1 or 2")
    if menus not in ("", "hide"):
        raise UsageError("menus=hide leaves links of menus out; nothing else can be done with them")
    if not (most.isascii() and most.isdigit() and 1 <= int(most[:6]) <= MOST[-1]):
        raise UsageError(f"most is a number from 1 to {MOST[-1]}")
    return NeighbourRequest(asked.get("node", "").strip(), Grouping(by), int(steps), menus != "hide", int(most))


def _svg(found: Around, asked: Mapping[str, str] | None = None) -> str:
    """asked: the address whose node each circle changes; None: for a file."""
    out = io.StringIO()
    kept = {key: text for key, text in (asked or {}).items() if key not in ("node", "format")}
    link = None if asked is None else (lambda url: "?" + urlencode({"node": url} | kept))
    write_ego_svg(drawn(found), found.limit, out, link=link)
    return out.getvalue()


def file(request: Request) -> Response:
    """The neighbourhood as SVG or GEXF."""
    name, folder = folder_of(request)
    ending = request.path_params["ending"]
    if ending not in FILES:
        raise UsageError(f"there is no such file of a link graph: choose {', '.join(FILES)}")
    found = look(folder, _wish(request.query_params), house_of(request).browser.books)
    if found is None:
        raise UsageError("the links of this large collection are being put in order: ask again in a minute")
    if ending == "svg":
        text = _svg(found)
    else:
        out = io.StringIO()
        write_neighbours(found, now(), out)
        text = out.getvalue()
    headers = rendering.file_named(f"{name}-links.{ending}", {"content-security-policy": SANDBOX})
    return Response(text.encode("utf-8", "replace"), media_type=FILES[ending], headers=headers)
