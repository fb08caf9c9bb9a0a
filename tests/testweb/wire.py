"""Requests and answers of the synthetic web, correct and misbehaving."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

PORT = "@PORT@"  # placeholder for the server's port in absolute URLs; replaced by the server
TLS_PORT = "@TLSPORT@"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    method: str
    host: str  # of the Host header, lower case, without port
    target: str  # path and query, as written
    headers: Mapping[str, str]  # names in lower case
    times: int  # earlier requests for this host and target
    serial: int  # earlier requests of this server, all hosts
    version: int  # number of calls of `Server.bump` (or BUMP requests) for this host and path

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    @property
    def parameters(self) -> dict[str, str]:
        """The query's parameters; the last value of repeated ones."""
        return dict(parse_qsl(self.query, keep_blank_values=True))


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete, valid answer. The server adds Content-Length (or chunks) and Date."""

    status: int = 200
    body: bytes = b""
    media_type: str = "text/html; charset=utf-8"  # empty: no Content-Type
    headers: tuple[tuple[str, str], ...] = ()
    chunked: bool = False
    gzip: bool = True  # compressed if the client accepts it
    wait_s: float = 0.0  # before the first byte


@dataclass(frozen=True, slots=True)
class Pause:
    """A step of a Raw answer: a pause."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reset:
    """A step of a Raw answer: resets the connection (RST)."""


Step = bytes | Pause | Reset


@dataclass(frozen=True, slots=True)
class Raw:
    """A scripted sequence of bytes and pauses; then the connection closes."""

    steps: Callable[[], Iterable[Step]]
    status: int = 0  # for the log only: the status in the bytes


Reply = Answer | Raw
Handler = Callable[[Asked], Reply]


def raw(*steps: Step, status: int = 0) -> Raw:
    """A Raw answer of a few fixed steps."""
    return Raw(lambda: steps, status)


def head(status: int = 200, *fields: tuple[str, str], media_type: str = "text/html; charset=utf-8") -> bytes:
    """A response header as bytes, with the empty line at its end."""
    lines = [
        f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}",
        f"Content-Type: {media_type}",
        *(f"{name}: {value}" for name, value in fields),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


REASONS: Mapping[int, str] = {
    200: "OK",
    301: "Moved Permanently",
    302: "Found",
    303: "See Other",
    304: "Not Modified",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    410: "Gone",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Routes:
    """Handlers of a site by target. Filled while the site is built."""

    exact: dict[str, Handler] = field(default_factory=dict)  # by path, or by path with query
    prefixes: dict[str, Handler] = field(default_factory=dict)  # by prefix of the path; the longest wins

    def find(self, asked: Asked) -> Handler | None:
        """Handler of the target with its query, else of the path, else of the longest prefix."""
        handler = self.exact.get(asked.target) or self.exact.get(asked.path)
        if handler is not None:
            return handler
        best = max((prefix for prefix in self.prefixes if asked.path.startswith(prefix)), key=len, default=None)
        return None if best is None else self.prefixes[best]
