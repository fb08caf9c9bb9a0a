"""What does a server say? The questions and answers of the synthetic web, honest ones and misbehaving ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

PORT = "@PORT@"  # stands for the server's port wherever a site writes an absolute URL; the server fills it in
TLS_PORT = "@TLSPORT@"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    method: str
    host: str  # of the Host header, lower case, without port
    target: str  # path and query, as written
    headers: Mapping[str, str]  # names in lower case
    times: int  # earlier requests for this host and target
    serial: int  # earlier requests of this server, all hosts
    version: int  # how often `Server.bump` (or a BUMP request) was called for this host and path

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    @property
    def parameters(self) -> dict[str, str]:
        """The query's parameters; of one given twice the last."""
        return dict(parse_qsl(self.query, keep_blank_values=True))


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole, well-formed answer. The server adds Content-Length (or chunks) and Date."""

    status: int = 200
    body: bytes = b""
    media_type: str = "text/html; charset=utf-8"  # empty: no Content-Type
    headers: tuple[tuple[str, str], ...] = ()
    chunked: bool = False
    gzip: bool = True  # compressed for those who accept it
    wait_s: float = 0.0  # before the first byte


@dataclass(frozen=True, slots=True)
class Pause:
    """A step of a Raw answer: nothing for a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reset:
    """A step of a Raw answer: the connection is reset (RST), not closed."""


Step = bytes | Pause | Reset


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes and pauses exactly as scripted; then the connection closes."""

    steps: Callable[[], Iterable[Step]]
    status: int = 0  # for the log only: what the bytes claim


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
    """Which handler answers which target of one site. Filled while a site is built."""

    exact: dict[str, Handler] = field(default_factory=dict)  # by path, or by path with query
    prefixes: dict[str, Handler] = field(default_factory=dict)  # by the path's beginning; the longest wins

    def find(self, asked: Asked) -> Handler | None:
        """The target with its query, else the path alone, else the longest prefix."""
        handler = self.exact.get(asked.target) or self.exact.get(asked.path)
        if handler is not None:
            return handler
        best = max((prefix for prefix in self.prefixes if asked.path.startswith(prefix)), key=len, default=None)
        return None if best is None else self.prefixes[best]
