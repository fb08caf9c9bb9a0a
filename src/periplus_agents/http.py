"""Serves the tools over HTTP, behind a guard that checks every request first.

Invariants: (1) requests for other host names or from pages of other origins are refused (DNS rebinding); (2) with a
token or users, every request needs a valid token; (3) size and time of requests are limited, and the number of requests
per client address. The server is stateless: there are no sessions that could be hijacked or left behind.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Scope

from periplus.ui.safety import (
    Guard,
    Locks,
    body_of,
    client_address,
    is_ours,
    is_own_origin,
    run_server,
    visitor,
)

PATH = "/mcp"
BODY_BYTES = 262_144  # of a request; without vectors, the longest requests to the tools have some 10,000
BODY_S = 10.0  # timeout for receiving a request
CONNECTIONS = 64  # at once; further ones are answered with 503
AT_FIRST, PER_S = 100, 5.0  # requests per address (burst, rate): a model sends some ten at once, then reads the answers
ADDRESSES = 10_000  # remembered: 2 MB


@dataclass(slots=True)
class QuestionRate:
    """A token bucket for each client address: AT_FIRST requests, refilled by PER_S per second."""

    clock: Callable[[], float] = time.monotonic
    # by address: number of requests left, and when; least recent first
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)

    def wait_s(self, address: str) -> float:
        """Counts a request. Seconds to wait; 0: it is allowed now."""
        client, now = visitor(address), self.clock()
        left, then = self._left.pop(client, (float(AT_FIRST), now))
        left = min(AT_FIRST, left + (now - then) * PER_S)
        self._left[client] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > ADDRESSES:
            del self._left[next(iter(self._left))]
        return 0.0 if left >= 1 else (1 - left) / PER_S


class Gate(Guard):
    """ASGI middleware that enforces the invariants above."""

    def __init__(self, app: ASGIApp, locks: Locks, rate: QuestionRate | None = None) -> None:
        super().__init__(app, locks)
        self._rate = rate or QuestionRate()

    async def _read_body(self, scope: Scope, request: Request) -> bytes | Response:
        refusal = self._foreign(scope) or self._too_often(scope) or await self._authorize(scope)
        return refusal or await body_of(request, BODY_BYTES, BODY_S)

    def _foreign(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not is_ours(headers.get("host", ""), self._locks.names):
            return PlainTextResponse("Unknown host name. `periplus mcp --name NAME` adds it.", 421)
        if not is_own_origin(headers, scope["scheme"], self._locks.names):
            return PlainTextResponse("This request came from a page of another origin.", 403)
        if scope["path"].rstrip("/") != PATH:
            return PlainTextResponse(f"The tools are at {PATH}.", 404)
        if scope["method"] != "POST":
            return PlainTextResponse("Only POST is supported: there are no sessions.", 405, {"allow": "POST"})
        return None

    def _too_often(self, scope: Scope) -> Response | None:
        wait_s = self._rate.wait_s(client_address(scope))
        if not wait_s:
            return None
        return PlainTextResponse(
            "Too many requests: try again later.", 429, {"retry-after": str(max(1, round(wait_s)))}
        )


def application(server: Server[Any], locks: Locks, rate: QuestionRate | None = None) -> Gate:
    """The server of the tools as an ASGI application, guarded. An answer is one JSON document, not a stream."""
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=BODY_BYTES)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Gate(Starlette(routes=[Mount("/", manager.handle_request)], lifespan=lifespan), locks, rate)


def serve_http(server: Server[Any], locks: Locks, port: int) -> bool:
    """Serves until Ctrl-C. False: it could not start, usually because the port is in use."""
    return run_server(application(server, locks), locks.host, port, CONNECTIONS)
