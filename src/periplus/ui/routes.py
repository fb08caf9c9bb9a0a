"""The routes: screens, forms and files; the application of them, and the server that it runs in."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from periplus.api.overview import Overview
from periplus.errors import NoCollection, PeriplusError, StoreError, UsageError
from periplus.features import loaded
from periplus.jobs.presets import PERIODS
from periplus.masking import without_secrets
from periplus.model.audit import FaultNote, Severity
from periplus.model.collection import Deletion, DeletionPlan
from periplus.model.comparison import Comparison
from periplus.model.results import PageSummary
from periplus.model.tables import Column
from periplus.ui import deleting, graph, live, maps, pages, rendering, start, tables
from periplus.ui.description import TEXT, Handler, Routes, Screen, describe, enum, whole_number
from periplus.ui.monitoring import monitoring_routes
from periplus.ui.safety import LOGIN, Guard, RoleError, log_in, needing, run_server
from periplus.ui.state import AppState, state_of
from periplus.ui.users import Role
from periplus.values import JsonObject

_C = "/c/{name}"
_ROWS = list[JsonObject]
_SITE = {"site": (TEXT, "the site, if the collection has several")}
_WORDS = {"q": (TEXT, "words, in the query language of docs/search.md")}

_START = (
    start.start,
    {"collections": list[start.CollectionRow], "total": start.CollectionRow, "in_all": int,
        "states": dict[str, int], "chosen": dict[str, str], "periods": list[str], "line": str, "fault": str,
        "every": str, "works": bool, "base": str, "open_jobs": int},
    {"url": (TEXT, "start URLs; `line` is the command that fetches them"), "every": (enum(*PERIODS), "how often"),
        "named": (TEXT, "only collections with this in the name"), "state": (TEXT, "only in this state"),
        "sort": (TEXT, "a column; - reverses the order")},
)  # fmt: skip

SCREENS: tuple[Screen, ...] = (
    Screen("/", *_START),
    Screen("/new", *_START, take=start.begin, take_role=Role.WORK),
    Screen("/jobs", start.jobs, {"jobs": list[start.JobRow], "schedules": _ROWS, "works": bool, "base": str,
        "collections": list[str]}),
    Screen("/search", pages.search_all,
        {"query": str, "results": list[pages.PageSearch], "at": int, "per": int}, _WORDS),
    Screen(_C + "/live", live.live, {"name": str, "missing": str, "figures": list[tuple[str, int, str]],
        "failure": str, "read": int, "overview": Overview | None}),
    Screen(_C + "/settings", live.settings, {"name": str, "file": str}),
    Screen(
        _C + "/t/{table}", tables.table,
        {
            "name": str, "sentence": str, "table": str, "columns": list[Column], "rows": list[list[object]],
            "count": JsonObject, "facets": _ROWS, "conditions": list[list[str]],
        },
        {
            "q": (TEXT, "a text in URLs, titles or anchors"),
            "sort": (TEXT, "columns, separated by commas; - reverses the order of a column"),
            "columns": (TEXT, "columns of the answer, separated by commas"),
            "at": (whole_number(10_000_000), "number of the page"),
            "per": (whole_number(tables.ROWS[-1]), "rows of a page"),
        },
    ),
    Screen(
        _C + "/page", pages.page,
        {"name": str, "page": PageSummary, "view": str, "views": dict[str, str]},
        {"url!": (TEXT, "the page"), "view": (enum(*pages.VIEWS), "what to show of the page"),
            "line": (whole_number(10_000_000), "line of the source to highlight")},
    ),
    Screen(
        _C + "/fault", tables.fault,
        {"name": str, "code": str, "cause": str, "severity": Severity, "why": str, "remedy": str, "pages": int,
            "since": float | None, "note": FaultNote, "rows": list[list[str | int]], "total": int},
        {"code!": (TEXT, "the kind of fault"), "cause!": (TEXT, "the cause: a URL or words")},
        take=tables.decide,
    ),
    Screen(_C + "/map", maps.site_map, {"name": str}, _SITE | {"find": (TEXT, "a text in titles and addresses"),
        "tree": (enum("links", "folders"), "what hangs below what")}),
    Screen(
        _C + "/site", maps.site,
        {"name": str, "site": str, "sites": list[str], "under": str},
        _SITE | {"under": (TEXT, "only pages whose URLs begin with this")},
    ),
    Screen(_C + "/graph", graph.graph, {"name": str, "request": graph.NeighbourRequest, "graph": graph.Around | None},
        {"node": (TEXT, "page, directory or site in the centre")}),
    Screen(
        _C + "/search", pages.search_collection,
        {"name": str, "query": str, "results": list[pages.PageSearch], "at": int, "per": int},
        _WORDS | {"at": (whole_number(1000), "number of the page of hits")},
    ),
    Screen(
        _C + "/compare", tables.compare,
        {"name": str, "before": str, "after": str, "comparison": Comparison | None},
        _SITE | {"before": (TEXT, "a run’s number, last, last-1"), "after": (TEXT, "the same")},
    ),
    Screen(
        _C + "/delete", deleting.delete,
        {"name": str, "deleted": str, "plan": DeletionPlan | None, "request?": Deletion, "goes?": list[str],
            "stays?": list[str]},
        {"site": (TEXT, "all of it"), "run": (whole_number(999_999_999), "its record and its pages"),
            "page": (TEXT, "a page’s number, hexadecimal")},
        take=deleting.take, role=Role.ADMINISTER, take_role=Role.ADMINISTER,
    ),
)  # fmt: skip
FORMS: dict[str, tuple[Role, Handler]] = {  # by the role that it takes to send it
    "/presets/save": (Role.ADMINISTER, start.save_preset),
    "/jobs/change": (Role.WORK, start.change),
    _C + "/pause": (Role.WORK, live.pause),
    _C + "/stop": (Role.WORK, live.stop),
    _C + "/resume": (Role.WORK, live.resume),
    _C + "/again": (Role.WORK, live.again),
    _C + "/segments": (Role.ADMINISTER, live.name_segments),
    _C + "/login": (Role.ADMINISTER, live.sign_in),
}
FILES: dict[str, Handler] = {  # and streams, which all users may have
    _C + "/events": live.events,
    _C + "/as-it-was": pages.page_copy,
    _C + "/map.{ending}": maps.file,
    _C + "/picture.svg": maps.picture,
    _C + "/site.json": maps.site_values,
    _C + "/site-links.json": maps.site_links,
    _C + "/site-way.json": maps.site_way,
    _C + "/graph.{ending}": graph.file,
}

for _, _routes in loaded("routes", Routes).values():
    SCREENS += _routes.screens
    FORMS |= _routes.forms
    FILES |= _routes.files
    for _name, _screen in _routes.tables.items():
        (tables.SUBJECT_SCREENS if "{}" in _screen.home else tables.SCREENS)[_name] = _screen

_STATIC = {"ui.css": "text/css", "ui.js": "text/javascript", "site.js": "text/javascript", "icon.svg": "image/svg+xml"}
_STATUS: dict[type[PeriplusError], int] = {
    RoleError: 403,
    NoCollection: 404,
    UsageError: 400,
    StoreError: 503,
}  # the first that fits


def description(request: Request) -> Response:
    """The OpenAPI description."""
    state = state_of(request)
    choices = {"name": list(state.places.collections()), "table": list(tables.SCREENS)}
    return JSONResponse(describe(SCREENS, choices, locked=state.locks.are_shut))


def routes() -> list[Route]:
    """Files first: some have addresses that would be a screen's too."""
    shown = {
        "/openapi.json": (Role.LOOK, description),
        **{path: (Role.LOOK, handler) for path, handler in FILES.items()},
        **{screen.path: (screen.role, screen.show) for screen in SCREENS},
    }
    taken = FORMS | {screen.path: (screen.take_role, screen.take) for screen in SCREENS if screen.take is not None}
    return [
        *(Route(path, needing(role, handler)) for path, (role, handler) in shown.items()),
        *(Route(path, needing(role, handler), methods=["POST"]) for path, (role, handler) in taken.items()),
    ]


def application(state: AppState) -> Guard:
    """The interface as an ASGI application, guarded."""
    ours = [Route(LOGIN, _login, methods=["GET", "POST"]), Route("/static/{file}", _static)]
    ours += [*monitoring_routes(state.is_healthy, state.places.collections), *routes()]
    app = Starlette(routes=ours, exception_handlers={PeriplusError: _error_response, 404: _missing})
    app.state.periplus = state
    return Guard(app, state.locks)


def _static(request: Request) -> Response:
    name = request.path_params["file"]
    if name not in _STATIC:
        return PlainTextResponse("There is no such file.", 404)
    content = rendering.style_sheet() if name == "ui.css" else rendering.static(name)
    return Response(content, media_type=_STATIC[name], headers={"cache-control": "no-cache"})


async def _login(request: Request) -> Response:
    locks = state_of(request).locks
    if not locks.are_shut:
        return RedirectResponse("/", 303)
    if request.method == "POST":
        return await log_in(request, locks) or rendering.answer(
            request, "login.html", {"title": "Log in", "wrong": True}, 403
        )
    return rendering.answer(request, "login.html", {"title": "Log in", "wrong": False})


def _error_response(request: Request, error: Exception) -> Response:
    """Why a request cannot be granted, in a sentence."""
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
    # the collection's screens stay cached
    name = request.path_params.get("name", "")
    name = name if name in state_of(request).places.collections() else ""
    values = {"title": "Request failed", "status": status, "name": name, "detail": without_secrets(str(error))}
    return rendering.answer(request, "error.html", values, status)


def _missing(request: Request, error: Exception) -> Response:
    values = {"title": "Page not found", "status": 404, "detail": f"There is no page at {request.url.path}."}
    return rendering.answer(request, "error.html", values, 404)


def serve(state: AppState, port: int) -> bool:
    """Serves until Ctrl-C. False: it could not begin, most often because the port is taken."""
    return run_server(application(state), state.locks.host, port)
