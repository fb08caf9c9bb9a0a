"""Serves the tools over HTTP, behind a guard that checks every request before the protocol reads it.

Always: (1) a request for a foreign host name, or from a page of another origin, is refused (DNS rebinding); (2) with a
token or users, every request needs one of their tokens; (3) bytes and time of a request are limited, and the number of
requests for each address. There are no sessions: each request is complete, so that none can be hijacked, and no state
stays after a client is gone.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from periplus.errors import StoreError
from periplus.mcp.server import ROLE
from periplus.ui.safety import Locks, is_ours, is_own_origin, serve_until_stopped, visitor

PATH = "/mcp"
BODY_BYTES = 262_144  # of a question; the longest that the tools take, a vector of numbers apart, has some 10,000
BODY_S = 10.0  # in which a question must have come
CONNECTIONS = 64  # at once; more are answered with 503
AT_FIRST, PER_S = 100, 5.0  # questions of one address: a model asks some ten at once, and reads before it asks again
ADDRESSES = 10_000  # remembered at once: 2 MB


@dataclass(slots=True)
class QuestionRate:
    """How many questions each address has left: AT_FIRST, of which PER_S come back each second."""

    clock: Callable[[], float] = time.monotonic
    # by address: number of requests left, and when; least recent first
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)

    def wait_s(self, address: str) -> float:
        """Takes one. How many seconds it must wait where there is none; 0: it may be asked now."""
        who, now = visitor(address), self.clock()
        left, then = self._left.pop(who, (float(AT_FIRST), now))
        left = min(AT_FIRST, left + (now - then) * PER_S)
        self._left[who] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > ADDRESSES:
            del self._left[next(iter(self._left))]
        return 0.0 if left >= 1 else (1 - left) / PER_S


class Gate:
    """The three promises above, around an application."""

    def __init__(self, app: ASGIApp, locks: Locks, rate: QuestionRate | None = None) -> None:
        self._app, self._locks, self._rate = app, locks, rate or QuestionRate()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"] = "nosniff"
                headers["cache-control"] = "no-store"
            await send(message)

        body = b""
        refusal = self._foreign(scope) or self._too_often(scope) or await self._stranger(scope)
        if refusal is None:
            taken = await _body(Request(scope, receive))
            body, refusal = (taken, None) if isinstance(taken, bytes) else (b"", taken)
        await (refusal or self._app)(scope, _replayed(body, receive), send_guarded)

    def _foreign(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not is_ours(headers.get("host", ""), self._locks.names):
            return PlainTextResponse("Unknown host name. `periplus mcp --name NAME` adds it.", 421)
        if not is_own_origin(headers, scope["scheme"], self._locks.names):
            return PlainTextResponse("This question came from a page of another place.", 403)
        if scope["path"].rstrip("/") != PATH:
            return PlainTextResponse(f"The tools are at {PATH}.", 404)
        if scope["method"] != "POST":
            return PlainTextResponse("Only POST is understood: there are no sessions.", 405, {"allow": "POST"})
        return None

    def _too_often(self, scope: Scope) -> Response | None:
        wait_s = self._rate.wait_s(_address(scope))
        if not wait_s:
            return None
        return PlainTextResponse(
            "Too many questions: ask again later.", 429, {"retry-after": str(max(1, round(wait_s)))}
        )

    async def _stranger(self, scope: Scope) -> Response | None:
        """Notes what the sender may do; why this is not answered, where that is nothing."""
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        try:
            is_shut, role = self._locks.are_shut, self._locks.role_of_token(token)
        except StoreError as error:  # the list of users is unknown
            return PlainTextResponse(str(error), 503)
        if is_shut and token:  # a request without a token is not a guess
            await self._locks.sleep(self._locks.wait_s(_address(scope), role is not None))
        if role is None:
            challenge = 'Bearer realm="periplus"' + (', error="invalid_token"' if token else "")
            return PlainTextResponse("A token is needed: Authorization: Bearer TOKEN", 401, {
                "www-authenticate": challenge
            })  # fmt: skip
        scope[ROLE] = role
        return None


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


async def _body(request: Request) -> bytes | Response:
    """All of a question, or why it is not taken."""
    body = bytearray()
    try:
        with anyio.fail_after(BODY_S):
            async for part in request.stream():
                body += part
                if len(body) > BODY_BYTES:
                    return PlainTextResponse("This question is too long.", 413)
    except TimeoutError:
        return PlainTextResponse("This question takes too long to come.", 408)
    except ClientDisconnect:
        return PlainTextResponse("", 400)
    return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Yields the body that was read already, then the rest."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def application(server: Server[Any], locks: Locks, rate: QuestionRate | None = None) -> Gate:
    """The server of the tools as an ASGI application, guarded. An answer is one JSON document, not a stream."""
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=BODY_BYTES)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Gate(Starlette(routes=[Mount("/", manager.handle_request)], lifespan=lifespan), locks, rate)


def serve_http(server: Server[Any], locks: Locks, port: int) -> bool:
    """Serves until Ctrl-C. False: it could not begin, most often because the port is taken."""
    return serve_until_stopped(application(server, locks), locks.host, port, CONNECTIONS)
