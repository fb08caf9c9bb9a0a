"""The interface as an application, and the server that it runs in."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from periplus.errors import NoCollection, PeriplusError, StoreError, UsageError
from periplus.ui import rendering
from periplus.ui.monitoring import monitoring_routes
from periplus.ui.routes import routes
from periplus.ui.safety import LOGIN, Guard, RoleError, log_in, run_server
from periplus.ui.state import AppState, CopyPending, state_of

_STATIC = {"ui.css": "text/css", "ui.js": "text/javascript", "site.js": "text/javascript", "icon.svg": "image/svg+xml"}
_STATUS: dict[type[PeriplusError], int] = {
    RoleError: 403,
    NoCollection: 404,
    UsageError: 400,
    StoreError: 503,
}  # the first that fits


def application(state: AppState) -> Guard:
    """The interface as an ASGI application, guarded."""
    ours = [Route(LOGIN, _login, methods=["GET", "POST"]), Route("/static/{file}", _static)]
    ours += [*monitoring_routes(state.is_healthy, state.places.readable), *routes()]
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
    values = {"title": "Request failed", "status": status, "name": name, "detail": str(error)}
    if isinstance(error, CopyPending) and request.method == "GET" and not rendering.wants_json(request):
        return rendering.answer(request, "waiting.html", values | {"title": "Being copied"})
    return rendering.answer(request, "error.html", values, status)


def _missing(request: Request, error: Exception) -> Response:
    values = {"title": "Page not found", "status": 404, "detail": f"There is no page at {request.url.path}."}
    return rendering.answer(request, "error.html", values, 404)


def serve(state: AppState, port: int) -> bool:
    """Serves until Ctrl-C. False: it could not begin, most often because the port is taken."""
    return run_server(application(state), state.locks.host, port)
