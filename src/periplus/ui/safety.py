"""Access control and headers. Every request passes here before a screen, and every answer after it.

Always: (1) a request for a foreign host name is refused, against DNS rebinding; (2) with a token or users, only the
login page and `/health` answer without a cookie, except feeds, which have their own key, and `/metrics`, which also
takes a token in the header; each route requires a role (see `routes`); (3) changes are POST requests with the form's
secret from our own pages; (4) an answer may run only our script, loads nothing from elsewhere, and cannot be framed. A
faulty screen cannot break these rules.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import ipaddress
import secrets
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
import uvicorn
from python_multipart.multipart import Field, File, FormParser, MultipartState, parse_options_header
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from periplus.errors import StoreError, UsageError
from periplus.ui.users import Role, Users
from periplus.values import frozen

COOKIE = "periplus"
LOGIN = "/login"
STATIC = "/static/"
FEEDS = "/feeds/"
HEALTH, METRICS = "/health", "/metrics"
FORM_BYTES = 65_536  # of a form: a thousand start URLs
FORM_FIELDS = 200
FILE_BYTES = 2_200_000  # of a form with a file: the largest is a portal's picture of 2 MB
# that an address waits for its next answer after one wrong token: nobody who mistypes minds; twice as
# long after each further one
WRONG_FIRST_S = 0.5
# who shares an address with a guesser (a proxy, an office) still gets in; a guesser tries 8,640
# tokens a day on one connection
WRONG_MOST_S = 10.0
WRONG_FORGOTTEN_S = 600.0  # after the last one
WRONG_ADDRESSES = 10_000  # remembered at once: 2 MB
LEAST_TOKEN = 8  # signs
_PARTS: Any = {"MAX_MEMORY_FILE_SIZE": FILE_BYTES}  # nothing is written to disk
METHODS = frozenset({"GET", "HEAD", "POST"})


class RoleError(UsageError):
    """A user's role does not let them do this."""


@frozen
class Locks:
    """Secrets and names of the server.

    token: the administrator's; empty: none; names: further host names of the server; users: each with a token and a
    role; host: the address that the server listens on; csrf_token: for forms of this process.
    """

    token: str = ""
    names: tuple[str, ...] = ()
    users: Users = field(default_factory=Users)
    host: str = "127.0.0.1"
    csrf_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    # by address: how many wrong tokens lately, and when the last; oldest first
    wrong: dict[str, tuple[int, float]] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep

    @property
    def session(self) -> str:
        """The cookie's value: derived from the token, so that sessions survive a restart, and does not reveal it."""
        return hmac.new(self.token.encode(), b"periplus session", hashlib.sha256).hexdigest()

    @property
    def feed_key(self) -> str:
        """Key of the feeds, and of nothing else, for readers that cannot log in; empty if none is needed."""
        secret = self.token or self.users.secret
        return hmac.new(secret.encode(), b"periplus feeds", hashlib.sha256).hexdigest()[:32] if secret else ""

    @property
    def are_shut(self) -> bool:
        """Whether one must log in."""
        return bool(self.token or self.users.all())

    @property
    def is_shared(self) -> bool:
        """Whether requests may come from other people or machines: every guard of what only the owner of this machine
        may do asks this. True with a token, users, a further name (a proxy), or an address that is not loopback.
        """
        return self.are_shut or bool(self.names) or needs_token(self.host)

    def role_of(self, cookie: str) -> Role | None:
        """Role of the owner of the cookie; None: no access."""
        if not self.are_shut:
            return Role.ADMINISTER
        if self.token and hmac.compare_digest(cookie.encode("utf-8", "replace"), self.session.encode()):
            return Role.ADMINISTER
        user = self.users.of_session(cookie)
        return user.role if user is not None else None

    def role_of_token(self, token: str) -> Role | None:
        """Role of the owner of the token; None: no access."""
        if not self.are_shut or self.opens(token):
            return Role.ADMINISTER
        user = self.users.of_token(token)
        return user.role if user is not None else None

    def session_of(self, token: str) -> str:
        """The cookie of a token's session; empty: an unknown token."""
        if self.opens(token):
            return self.session
        user = self.users.of_token(token)
        return user.session if user is not None else ""

    def opens(self, token: str) -> bool:
        """Whether this is the token, where there is one.

        Constant time for all values.
        """
        given, right = (hashlib.sha256(text.encode()).digest() for text in (token, self.token))
        return hmac.compare_digest(given, right) and bool(self.token)

    def wait_s(self, address: str, right: bool) -> float:
        """Seconds that the answer to a token waits; a wrong token delays the following answers to this address.

        A right token waits too, so that a delay does not reveal a wrong guess. IPv6 addresses count by their /64, the
        range of one client.
        """
        who, now = visitor(address), self.clock()
        count, last = self.wrong.get(who, (0, now))
        count = 0 if now - last > WRONG_FORGOTTEN_S else count
        if not right:
            self.wrong.pop(who, None)
            self.wrong[who] = (count + 1, now)
            if len(self.wrong) > WRONG_ADDRESSES:
                del self.wrong[next(iter(self.wrong))]
        return min(WRONG_MOST_S, WRONG_FIRST_S * 2.0 ** min(count - 1, 16)) if count else 0.0


def visitor(address: str) -> str:
    """Key of a client for the count of failures: an IPv6 address by its /64."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # a name, or a proxy's replacement of it
        return address
    return str(ip) if ip.version == 4 or ip.ipv4_mapped else str(ipaddress.ip_network((ip, 64), strict=False))


def needs_token(host: str) -> bool:
    """Whether a server on this address can be reached from other machines."""
    if host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


def require_locks(locks: Locks) -> None:
    """Refuses to listen for others without a token of LEAST_TOKEN signs or users. Raises UsageError, StoreError."""
    if needs_token(locks.host) and len(locks.token) < LEAST_TOKEN and not (locks.users.all() and not locks.token):
        raise UsageError(
            f"{locks.host} can be reached by others: give a --token of at least {LEAST_TOKEN} signs, add users "
            "(`periplus serve --add-user NAME`), or listen on 127.0.0.1"
        )


def is_ours(host: str, names: tuple[str, ...]) -> bool:
    """Whether a Host header (name, and perhaps a port) names this server: by a literal address, which no name server
    can bind to another one, or by one of its names.
    """
    try:
        parts = urlsplit(f"//{host}")
        name = parts.hostname or ""
        if parts.netloc != host or "@" in host or parts.port == 0:  # reading the port raises for what is none
            return False
    except ValueError:
        return False
    if name == "localhost" or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_own_origin(headers: Headers, scheme: str, names: tuple[str, ...]) -> bool:
    """Whether Origin is the server's own: the same scheme, host and port.

    A request without Origin passes: no page of a browser sent it. With further names TLS may end at a proxy, so that
    https:// is accepted beside the scheme of the connection.
    """
    origin, host = headers.get("origin", ""), headers.get("host", "")
    own = {"", f"{scheme}://{host}", *([f"https://{host}"] if names else [])}
    return origin in own and headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Yields the body that was read already, then the rest."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


async def body_of(request: Request, most_bytes: int, most_s: float | None = None) -> bytes | Response:
    """The complete body of a request, or an error response."""
    body = bytearray()
    try:
        with anyio.fail_after(most_s):
            async for part in request.stream():
                body += part
                if len(body) > most_bytes:
                    return PlainTextResponse("This request is too long.", 413)
    except TimeoutError:
        return PlainTextResponse("This request took too long to arrive.", 408)
    except ClientDisconnect:
        return PlainTextResponse("", 400)
    return bytes(body)


class Guard:
    """The four promises above, around an application."""

    def __init__(self, app: ASGIApp, locks: Locks) -> None:
        self.app, self._locks = app, locks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":  # a websocket: nothing here speaks it
            return
        nonce = secrets.token_urlsafe(16)
        scope["periplus"] = {
            "nonce": nonce,
            "csrf_token": self._locks.csrf_token,
            "form": {},
            "files": {},
            "role": None,
        }

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                set_headers(MutableHeaders(scope=message), nonce)
            await send(message)

        outcome = await self._read_body(scope, Request(scope, receive))
        if isinstance(outcome, bytes):
            await self.app(scope, _replay_body(outcome, receive), send_with_headers)
        else:
            await outcome(scope, receive, send_with_headers)

    async def _read_body(self, scope: Scope, request: Request) -> bytes | Response:
        """The body of a request, or the response that refuses it."""
        refusal = self._refusal(scope)
        if refusal is None and scope["path"] == METRICS and scope["periplus"]["role"] is None:
            refusal = await self._authorize(scope)
        return refusal or await self._form(scope, request)

    async def _authorize(self, scope: Scope) -> Response | None:
        """Stores the role of the token in the Authorization header; returns a response if there is none.

        Waits after wrong tokens.
        """
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        try:
            is_shut, role = self._locks.are_shut, self._locks.role_of_token(token)
        except StoreError as error:  # the list of users is unknown
            return PlainTextResponse(str(error), 503)
        if is_shut and token:  # a request without a token is not a guess
            await self._locks.sleep(self._locks.wait_s(client_address(scope), role is not None))
        scope["periplus"]["role"] = role
        if role is not None:
            return None
        challenge = 'Bearer realm="periplus"' + (', error="invalid_token"' if token else "")
        return PlainTextResponse(
            "A token is required: Authorization: Bearer TOKEN", 401, {"www-authenticate": challenge}
        )

    def _refusal(self, scope: Scope) -> Response | None:
        """Why this is not answered at all; None: it is."""
        headers = Headers(scope=scope)
        if not is_ours(headers.get("host", ""), self._locks.names):
            return PlainTextResponse("Unknown host name. `periplus serve --name NAME` adds it.", 421)
        if scope["method"] not in METHODS:
            return PlainTextResponse("Only GET, HEAD and POST are allowed.", 405)
        if scope["path"] in (LOGIN, HEALTH) or scope["path"].startswith(STATIC):
            return None
        try:
            role = self._locks.role_of(Request(scope).cookies.get(COOKIE, ""))
        except StoreError as error:  # the list of users is unknown
            return PlainTextResponse(str(error), 503)
        scope["periplus"]["role"] = role
        if role is not None or scope["path"] == METRICS:
            return None
        if scope["path"].startswith(FEEDS) and hmac.compare_digest(
            Request(scope).query_params.get("key", "").encode(), self._locks.feed_key.encode()
        ):
            scope["periplus"]["role"] = Role.LOOK
            return None
        return RedirectResponse(LOGIN, 303) if scope["method"] == "GET" else PlainTextResponse("Log in first.", 403)

    async def _form(self, scope: Scope, request: Request) -> bytes | Response:
        """Reads a POST's form for the screens. Returns as `_read_body`."""
        if scope["method"] != "POST":
            return b""
        headers = Headers(scope=scope)
        if not is_own_origin(headers, scope["scheme"], self._locks.names):
            return PlainTextResponse("This form came from another site.", 403)
        has_files = headers.get("content-type", "").lower().startswith("multipart/form-data")
        body = await body_of(request, FILE_BYTES if has_files else FORM_BYTES)
        if not isinstance(body, bytes):
            return body
        files: dict[str, bytes] = {}
        try:
            if has_files:
                form, files = parts_of_form(headers["content-type"], body)
            else:
                text = body.decode()
                form = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=FORM_FIELDS, errors="strict"))
        except ValueError:  # UnicodeDecodeError is one
            return PlainTextResponse("This is not a form.", 400)
        if not hmac.compare_digest(form.pop("csrf_token", "").encode(), self._locks.csrf_token.encode()):
            return PlainTextResponse(
                ("The server was restarted since this page was loaded: go back, reload it, and send the form again."),
                403,
            )
        scope["periplus"] |= {"form": form, "files": files}
        return body


def client_address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def parts_of_form(content_type: str, body: bytes) -> tuple[dict[str, str], dict[str, bytes]]:
    """Fields and files of a `multipart/form-data` body by their names; the last of equal names.

    A file that was not chosen (sent without name and bytes) is left out. Raises ValueError for another body. Source:
    RFC 7578.
    """
    parts: list[Field | File] = []
    boundary = parse_options_header(content_type)[1].get(b"boundary")
    parser = FormParser("multipart/form-data", parts.append, parts.append, boundary=boundary, config=_PARTS)
    parser.write(body)
    if len(parts) > FORM_FIELDS or getattr(parser.parser, "state", None) != MultipartState.END:
        raise ValueError("a form that is cut, or too long")
    fields: dict[str, str] = {}
    files: dict[str, bytes] = {}
    for part in parts:
        name = (part.field_name or b"").decode()
        if isinstance(part, Field):
            fields[name] = (part.value or b"").decode()
        else:
            part.file_object.seek(0)
            if (content := part.file_object.read()) or part.file_name:
                files[name] = content
    return fields, files


def set_headers(headers: MutableHeaders, nonce: str) -> None:
    """What every answer says, whoever made it. One that shows foreign drawings says more of its own."""
    headers.setdefault(
        "content-security-policy",
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self';"
        " frame-ancestors 'none'; base-uri 'none'",
    )
    headers["x-content-type-options"] = "nosniff"
    headers["referrer-policy"] = "same-origin"  # to ourselves the whole address, to others nothing
    headers["x-frame-options"] = "DENY"
    headers["cross-origin-opener-policy"] = "same-origin"
    headers["cross-origin-resource-policy"] = "same-origin"
    headers.setdefault("cache-control", "no-store")


def needing(role: Role, handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """The handler for users with the role; other users get an error that names the role."""

    @functools.wraps(handler)
    def answer(request: Request) -> Response:
        own = request.scope["periplus"]["role"]
        if own is None or not own.allows(role):
            raise RoleError(f"this takes the role {role}; yours is {own or 'none'}. An administrator may change it.")
        return handler(request)

    return answer


def files_of(request: Request) -> dict[str, bytes]:
    """The files of a POST that passed, by the names of their fields."""
    files: dict[str, bytes] = request.scope["periplus"]["files"]
    return files


def form_of(request: Request) -> dict[str, str]:
    """The fields of a POST that passed; the last of equal names."""
    form: dict[str, str] = request.scope["periplus"]["form"]
    return form


async def log_in(request: Request, locks: Locks) -> Response | None:
    """The answer to a login form: a redirect with the cookie; None: the token is wrong.

    Waits after earlier wrong tokens.
    """
    session = locks.session_of(form_of(request).get("token", ""))
    right = bool(session)
    await locks.sleep(locks.wait_s(client_address(request.scope), right))
    if not right:
        return None
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        COOKIE,
        session,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        max_age=30 * 86_400,
    )
    return answer


STOP_S = 2  # for open answers when the server stops: streams never end on their own


def run_server(
    application: ASGIApp, host: str, port: int, connections: int | None = None, *, in_thread: bool = False
) -> bool:
    """Serves an application until Ctrl-C, or in a thread for as long as the process runs.

    connections: at once, more are answered with 503; None: any number. False: it could not begin, most often because
    the port is taken.
    """
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=STOP_S,
        server_header=False,
        ws="none",
        limit_concurrency=connections,
    )
    server = uvicorn.Server(config)
    try:
        if in_thread:
            threading.Thread(target=server.run, args=([config.bind_socket()],), daemon=True).start()
            return True
        server.run()
    except SystemExit:  # uvicorn's exit code if it cannot listen
        return False
    return server.started
