"""Who may ask, and what may an answer do? Every request passes here before any screen, and every answer after it.

Always: (1) a request that names a host which is not ours is refused, so that no foreign name can be bound to our address (DNS
rebinding); (2) where there is a token, nothing but the login page answers without its cookie, feeds apart, which have a key of their
own; (3) what changes things is a POST that carries the form's secret and comes from our own pages; (4) no answer may run a script but the
one that we serve, load anything from elsewhere, or be framed. Whatever the screens do wrong, these hold.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import deque
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "periplus"
LOGIN = "/login"
STATIC = "/static/"
FEEDS = "/feeds/"
FORM_BYTES = 65_536  # of a form: a thousand start URLs
FORM_FIELDS = 200
TRIES = 10  # wrong tokens in TRIES_S, from all visitors together; then the door stays shut for as long
TRIES_S = 60.0
METHODS = frozenset({"GET", "HEAD", "POST"})


@dataclass(frozen=True, slots=True)
class Locks:
    """What the doors are shut with. token: empty, none is needed; names: further host names that are ours; seal: of this process's forms."""

    token: str = ""
    names: tuple[str, ...] = ()
    seal: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    wrong: deque[float] = field(default_factory=deque)  # when a wrong token was tried

    @property
    def session(self) -> str:
        """The cookie's value: made of the token, so that a restart logs nobody out, and does not tell it."""
        return hmac.new(self.token.encode(), b"periplus session", hashlib.sha256).hexdigest()

    @property
    def feed_key(self) -> str:
        """What opens the feeds for readers that cannot log in, and nothing else; empty where none is needed."""
        return hmac.new(self.token.encode(), b"periplus feeds", hashlib.sha256).hexdigest()[:32] if self.token else ""

    def opens(self, token: str) -> bool:
        """Whether this is the token. Raises nothing; too many wrong ones make it False for a time."""
        now = time.monotonic()
        while self.wrong and self.wrong[0] < now - TRIES_S:
            self.wrong.popleft()
        right = len(self.wrong) < TRIES and hmac.compare_digest(token.encode(), self.token.encode())
        if not right:
            self.wrong.append(now)
        return right


def needs_token(host: str) -> bool:
    """Whether who binds to this address can be reached by others."""
    if host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


def is_ours(host: str, names: tuple[str, ...]) -> bool:
    """Whether a Host header names us: as a literal address, which no name server can turn into another, or by a name of ours."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """The four promises above, around an application."""

    def __init__(self, app: ASGIApp, locks: Locks) -> None:
        self._app, self._locks = app, locks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a websocket: nothing here speaks it
            return
        nonce = secrets.token_urlsafe(16)
        scope["periplus"] = {"nonce": nonce, "seal": self._locks.seal, "form": {}, "open": not self._locks.token}

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                seal_headers(MutableHeaders(scope=message), nonce)
            await send(message)

        refusal = self._refusal(scope) or await self._refused_form(scope, receive)
        await (refusal or self._app)(scope, receive, sealed)

    def _refusal(self, scope: Scope) -> Response | None:
        """Why this is not answered at all; None: it is."""
        headers = Headers(scope=scope)
        if not is_ours(headers.get("host", ""), self._locks.names):
            return PlainTextResponse("This address is not known here. `periplus serve --name NAME` makes it known.", 421)
        if scope["method"] not in METHODS:
            return PlainTextResponse("Only GET, HEAD and POST are understood.", 405)
        if not self._locks.token or scope["path"] == LOGIN or scope["path"].startswith(STATIC):
            return None
        if scope["path"].startswith(FEEDS) and hmac.compare_digest(Request(scope).query_params.get("key", "").encode(), self._locks.feed_key.encode()):
            return None
        given = Request(scope).cookies.get(COOKIE, "")
        if hmac.compare_digest(given.encode(), self._locks.session.encode()):
            return None
        return RedirectResponse(LOGIN, 303) if scope["method"] == "GET" else PlainTextResponse("Log in first.", 403)

    async def _refused_form(self, scope: Scope, receive: Receive) -> Response | None:
        """Reads a POST's form for the screens; says why it is refused, where it is."""
        if scope["method"] != "POST":
            return None
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") or (origin and urlsplit(origin).netloc != headers.get("host")):
            return PlainTextResponse("This form came from another place.", 403)
        body = b""
        async for part in Request(scope, receive).stream():
            body += part
            if len(body) > FORM_BYTES:
                return PlainTextResponse("This form is too long.", 413)
        try:
            form = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FORM_FIELDS, errors="strict"))
        except ValueError:  # UnicodeDecodeError is one
            return PlainTextResponse("This is no form.", 400)
        if not hmac.compare_digest(form.pop("seal", "").encode(), self._locks.seal.encode()):
            return PlainTextResponse("This page is older than the server that it asks: go back, load it again, and send the form once more.", 403)
        scope["periplus"]["form"] = form
        return None


def seal_headers(headers: MutableHeaders, nonce: str) -> None:
    """What every answer says, whoever made it. One that shows foreign drawings says more of its own."""
    headers.setdefault(
        "content-security-policy",
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
        " frame-ancestors 'none'; base-uri 'none'",
    )
    headers["x-content-type-options"] = "nosniff"
    headers["referrer-policy"] = "same-origin"  # to ourselves the whole address, to others nothing
    headers["x-frame-options"] = "DENY"
    headers["cross-origin-opener-policy"] = "same-origin"
    headers["cross-origin-resource-policy"] = "same-origin"
    headers.setdefault("cache-control", "no-store")


def form_of(request: Request) -> dict[str, str]:
    """The fields of a POST that passed; of several of one name the last."""
    form: dict[str, str] = request.scope["periplus"]["form"]
    return form


def log_in(request: Request, locks: Locks) -> Response | None:
    """The answer to a login form: onward with the cookie; None: the token is wrong."""
    if not locks.opens(form_of(request).get("token", "")):
        return None
    answer = RedirectResponse("/", 303)
    answer.set_cookie(COOKIE, locks.session, httponly=True, samesite="strict", secure=request.url.scheme == "https", max_age=30 * 86_400)
    return answer
