"""Which address shows which screen."""

from __future__ import annotations

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from periplus.errors import NoCollection, PeriplusError, StoreError, UsageError
from periplus.ui import (
    deleting,
    description,
    graph,
    live,
    maps,
    notices,
    pages,
    portals,
    rendering,
    start,
    stories,
    surveys,
    tables,
    topics,
)
from periplus.ui.places import Places
from periplus.ui.rendering import AppState, house_of
from periplus.ui.safety import LOGIN, Guard, Locks, log_in


def collection_routes() -> list[BaseRoute]:
    return [
        Route("/search", pages.in_all),
        Route("/c/{name}/t/{table}", tables.table),
        Route("/c/{name}/page", pages.page),
        Route("/c/{name}/map", maps.site_map),
        Route("/c/{name}/map.{ending}", maps.file),
        Route("/c/{name}/picture.svg", maps.picture),
        Route("/c/{name}/graph", graph.graph),
        Route("/c/{name}/graph.{ending}", graph.file),
        Route("/c/{name}/search", pages.in_one),
        Route("/c/{name}/compare", tables.compare),
        Route("/surveys", surveys.surveys),
        Route("/surveys/new", surveys.create, methods=["POST"]),
        Route("/c/{name}/survey", surveys.survey),
        Route("/c/{name}/survey/create", surveys.create, methods=["POST"]),
        Route("/c/{name}/survey/change", surveys.change, methods=["POST"]),
        Route("/c/{name}/survey/events", surveys.events),
        Route("/c/{name}/survey/t/{table}.{ending}", surveys.table_file),
        Route("/c/{name}/survey/picture/{what}.svg", surveys.picture),
        Route("/c/{name}/survey/file/{what}.{ending}", surveys.file),
        Route("/c/{name}/survey/{view}", surveys.view),
        Route("/c/{name}/delete", deleting.delete, methods=["GET", "POST"]),
    ]


_STATIC = {"ui.css": "text/css", "ui.js": "text/javascript", "icon.svg": "image/svg+xml"}
STOP_S = 2  # for answers under way when the server is told to stop: streams would never end by themselves


def application(house: AppState) -> Guard:
    """The interface as an ASGI application, guarded."""
    routes: list[BaseRoute] = [
        Route(LOGIN, _login, methods=["GET", "POST"]),
        Route("/static/{file}", _static),
        Route("/", start.start),
        Route("/new", start.begin, methods=["POST"]),
        Route("/jobs", start.jobs),
        Route("/jobs/change", start.change, methods=["POST"]),
        Route("/c/{name}/live", live.live),
        Route("/c/{name}/events", live.events),
        Route("/c/{name}/pause", live.pause, methods=["POST"]),
        Route("/c/{name}/stop", live.stop, methods=["POST"]),
        Route("/c/{name}/resume", live.resume, methods=["POST"]),
        Route("/openapi.json", description.description),
        Route("/notices", notices.notices),
        Route("/notices/change", notices.change, methods=["POST"]),
        Route("/feeds/{name}.atom", notices.feed),
        *collection_routes(),
        *topics.routes(),
        *portals.routes(),
        *stories.routes(),
    ]
    app = Starlette(routes=routes, exception_handlers={PeriplusError: _refused, 404: _missing})
    app.state.house = house
    return Guard(app, house.locks)


def _static(request: Request) -> Response:
    name = request.path_params["file"]
    if name not in _STATIC:
        return PlainTextResponse("There is no such file.", 404)
    content = rendering.style_sheet() if name == "ui.css" else rendering.static(name)
    return Response(content, media_type=_STATIC[name], headers={"cache-control": "no-cache"})


async def _login(request: Request) -> Response:
    locks = house_of(request).locks
    if not locks.token:
        return RedirectResponse("/", 303)
    if request.method == "POST":
        return await log_in(request, locks) or rendering.answer(
            request, "login.html", {"title": "Log in", "wrong": True}, 403
        )
    return rendering.answer(request, "login.html", {"title": "Log in", "wrong": False})


def _refused(request: Request, error: Exception) -> Response:
    """A wish that cannot be granted, in a sentence."""
    status = (
        404
        if isinstance(error, NoCollection)
        else 400
        if isinstance(error, UsageError)
        else 503
        if isinstance(error, StoreError)
        else 500
    )
    # the collection's screens stay at hand
    name = "" if isinstance(error, NoCollection) else request.path_params.get("name", "")
    return rendering.answer(
        request, "error.html", {"title": "This cannot be shown", "name": name, "said": str(error)}, status
    )


def _missing(request: Request, error: Exception) -> Response:
    return rendering.answer(
        request, "error.html", {"title": "There is no such page", "said": f"Nothing lies at {request.url.path}."}, 404
    )


def serve(house: AppState, host: str, port: int) -> bool:
    """Serves until Ctrl-C. False: it could not begin, most often because the port is taken."""
    config = uvicorn.Config(
        application(house),
        host=host,
        port=port,
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=STOP_S,
        server_header=False,
        ws="none",
    )
    server = uvicorn.Server(config)
    try:
        server.run()
    except SystemExit:  # how uvicorn says that it cannot listen
        return False
    return server.started


def house_at(places: Places, token: str, names: tuple[str, ...], commands: frozenset[str], *, works: bool) -> AppState:
    return AppState(places, Locks(token, names), commands, works)
