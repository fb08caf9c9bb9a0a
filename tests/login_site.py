"""A site behind a login: a form with a token, sessions that expire, a bearer token, links that log out or delete."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

USER, PASSWORD, TOKEN = "ada", "correct horse battery staple", "tok-5f0e9c2b7a"
FORM = """<title>Sign in</title><form method=post action="/login?next=/">
<input type=hidden name=csrf value="{token}"><input name=username><input type=password name=password>
<input type=checkbox name=keep value=1 checked><button name=go value=in>Sign in</button></form>"""


@dataclass
class Asked:
    """A request as the server received it."""

    at: float
    method: str
    path: str
    cookie: str
    authorization: str
    body: str = ""


@dataclass
class LoginSite:
    """pages: number of pages, all linked from the home page. lasts: requests before a session expires; 0: unlimited."""

    pages: int = 12
    lasts: int = 0
    robots: str = "User-agent: *\nDisallow:\n"
    door: str = "redirect"  # answer without a session: "redirect" to the form, the "form", "401", or "open": the page
    sign_on_pages: bool = True
    goes_to: str = ""  # URL of another site that each page links to
    data: dict[str, str] = field(default_factory=dict)  # JSON by path
    markup: dict[str, str] = field(default_factory=dict)  # further pages by path, linked from the home page
    asked: list[Asked] = field(default_factory=list)
    sessions: dict[str, int] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=lambda: [PASSWORD, TOKEN])
    url: str = ""
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _tokens: set[str] = field(default_factory=set)

    def session_of(self, cookie: str) -> str:
        """The valid session among the cookies, or an empty string. Uses up a request of the session."""
        for pair in cookie.split("; "):
            name, _, value = pair.partition("=")
            if name == "sid" and self.sessions.get(value, 0) > 0:
                self.sessions[value] -= 1
                return value
        return ""

    def enter(self, body: str) -> str:
        """The new session for a submitted form, or an empty string if a field is wrong."""
        fields = {name: values[0] for name, values in parse_qs(body).items()}
        wanted = {"username": USER, "password": PASSWORD, "keep": "1", "go": "in"}
        if fields.get("csrf") not in self._tokens or any(fields.get(name) != value for name, value in wanted.items()):
            return ""
        session = f"sid-{next(self._numbers)}-91c7d3aa"
        self.secrets.append(session)
        self.sessions[session] = self.lasts or 10**9
        return session

    def form(self) -> str:
        token = f"csrf-{next(self._numbers)}"
        self._tokens.add(token)
        return FORM.format(token=token)

    def page(self, path: str) -> str | None:
        """The page for a logged-in user, or None if it does not exist."""
        greeting = "<p>Signed in as ada.</p>" if self.sign_on_pages or path == "/" else ""
        links = '<a href="/logout">Log out</a> <a href="/item/3/delete">Delete</a> <a href="/Special:UserLogout">x</a>'
        if path == "/":
            many = "".join(f'<a href="/p/{number}">page {number}</a> ' for number in range(self.pages))
            more = "".join(f'<a href="{path}">{path}</a> ' for path in self.markup)
            return f"<title>Home</title>{greeting}{links}{many}{more}"
        if path in self.markup:
            return self.markup[path]
        if path.startswith("/p/") and path[3:].isdigit():
            away = f'<a href="{self.goes_to}">away</a><a href="/away">away too</a>' if self.goes_to else ""
            return f"<title>{path}</title>{greeting}{links}<p>Secret matter number {path[3:]} of the house.</p>{away}"
        return None

    def paths(self, method: str = "GET") -> list[str]:
        return [request.path for request in self.asked if request.method == method]


def _handler(site: LoginSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None:
            pass

        def answer(self, status: int, body: str, *headers: tuple[str, str], media_type: str = "text/html") -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body.encode())))
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def note(self, body: str = "") -> Asked:
            asked = Asked(
                time.monotonic(), self.command, self.path, self.headers.get("Cookie", ""),
                self.headers.get("Authorization", ""), body,
            )  # fmt: skip
            site.asked.append(asked)
            return asked

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            self.note(body)
            session = site.enter(body) if self.path.startswith("/login") else ""
            if session:
                self.answer(303, "", ("Location", "/"), ("Set-Cookie", f"sid={session}; Path=/; HttpOnly"))
            else:
                self.answer(200, "<p>Wrong name or password.</p>" + site.form())

        def do_GET(self) -> None:
            asked = self.note()
            if self.path == "/robots.txt":
                self.answer(200, site.robots, media_type="text/plain")
            elif self.path.startswith("/login"):
                self.answer(200, site.form(), ("Set-Cookie", "visitor=1; Path=/"))
            elif site.door != "open" and not (
                site.session_of(asked.cookie) or asked.authorization == f"Bearer {TOKEN}"
            ):
                if site.door == "redirect":
                    self.answer(302, "", ("Location", f"/login?next={self.path}"))
                else:
                    self.answer(*((401, "who are you?") if site.door == "401" else (200, site.form())))
            elif self.path in ("/logout", "/Special:UserLogout", "/item/3/delete"):
                site.sessions.clear()
                self.answer(200, "<p>gone")
            elif self.path == "/away":
                self.answer(302, "", ("Location", site.goes_to))
            elif self.path in site.data:
                self.answer(200, site.data[self.path], media_type="application/json")
            elif (page := site.page(self.path)) is not None:
                self.answer(200, page, ("Set-Cookie", f"seen={len(site.asked)}-5eenv41ue; Path=/"))
            else:
                self.answer(404, "<p>nothing here")

        def do_HEAD(self) -> None:
            self.do_GET()

    return Handler


@contextlib.contextmanager
def served(site: LoginSite) -> Iterator[LoginSite]:
    """Serves the site on loopback until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
