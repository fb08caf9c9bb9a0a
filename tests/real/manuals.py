"""Real sites for tests: manuals of Debian packages, fetched once by `apt-get download`, unpacked, served on loopback.

Nothing is installed. The cache is ~/.cache/periplus-real; a folder of it can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CACHE = Path.home() / ".cache" / "periplus-real"
DOWNLOAD_S = 300.0
START_S = 120.0  # time limit for a server to start


@dataclass(frozen=True, slots=True)
class Manual:
    """One site.

    folder: within the package, the site's root; start: the path of its home page; flags: options
    that a user would give its crawl.
    """

    name: str
    package: str
    folder: str
    generator: str
    start: str = "/index.html"
    flags: tuple[str, ...] = ()


MANUALS = {
    manual.name: manual
    for manual in (
        Manual("vim", "vim-doc", "doc/vim/html", "vim2html"),
        Manual("git", "git-doc", "doc/git-doc", "AsciiDoc"),
        Manual("handbook", "debian-handbook", "doc/debian-handbook/html", "Publican", "/en-US/index.html"),
        Manual("gtk", "libgtk-3-doc", "gtk-doc/html", "gtk-doc", "/gtk3/index.html"),
        Manual("glib", "libglib2.0-doc", "gtk-doc/html", "gtk-doc", "/glib/index.html"),
        Manual("python", "python3.11-doc", "doc/python3.11/html", "Sphinx"),
        Manual("django", "python-django-doc", "doc/python-django-doc/html", "Sphinx"),
        Manual("gimp", "gimp-help-en", "gimp/2.0/help/en", "DocBook"),
        Manual("postgresql", "postgresql-doc-15", "doc/postgresql-doc-15/html", "DocBook"),
        Manual("apache", "apache2-doc", "doc/apache2-doc/manual", "XSLT", "/en/index.html"),
        Manual("erlang", "erlang-doc", "doc/erlang-doc", "erl_docgen", "/doc/index.html"),
        Manual("eigen", "libeigen3-doc", "doc/libeigen3-dev/html", "Doxygen"),
        Manual("libstdcxx", "libstdc++-12-doc", "doc/gcc-12-base/libstdc++", "DocBook and Doxygen"),
        Manual("lilypond", "lilypond-doc-html", "doc/lilypond/html", "Texinfo"),
        # a page of 13 MB
        Manual("ghc", "ghc-doc", "doc/ghc-doc/html", "Haddock and Sphinx", flags=("--body-bytes", "33554432")),
        Manual("boost", "libboost1.74-doc", "doc/libboost1.74-doc", "BoostBook", "/doc/html/index.html"),
        Manual("cppreference", "cppreference-doc-en-html", "cppreference/doc/html", "MediaWiki", "/en/index.html"),
        Manual("openjdk", "openjdk-17-doc", "doc/openjdk-17-jre-headless/api", "Javadoc"),
        Manual("rust", "rust-doc", "doc/rust-doc/html", "rustdoc and mdBook"),
    )
}


class Unavailable(Exception):  # this machine cannot get the package
    pass


def unpacked(manual: Manual) -> Path:
    """Root folder of the site; fetches and unpacks the package if necessary."""
    target = CACHE / manual.package
    if not target.exists():
        target.mkdir(parents=True)
        try:
            _get(manual.package, target)
        except BaseException:
            shutil.rmtree(target)
            raise
    return target / "usr" / "share" / manual.folder


def _get(package: str, target: Path) -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Unavailable("manuals are Debian packages: this needs apt-get and dpkg-deb")
    fetch = subprocess.run(
        ["apt-get", "download", "-q", package],
        cwd=target,
        capture_output=True,
        text=True,
        timeout=DOWNLOAD_S,
        check=False,
    )
    archives = list(target.glob("*.deb"))
    if fetch.returncode or not archives:
        raise Unavailable(f"apt-get download {package}: {fetch.stderr.strip()[-300:]}")
    subprocess.run(["dpkg-deb", "-x", archives[0], target], check=True, timeout=DOWNLOAD_S)
    archives[0].unlink()
    for packed in target.rglob("*.html.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()


@dataclass(frozen=True, slots=True)
class Served:
    """A folder under http://HOST:PORT/.

    The host is an invented name, resolved by `resolve`.
    """

    host: str
    port: int
    log: Path

    @property
    def root(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def resolve(self) -> str:
        return f"{self.host}:{self.port}:127.0.0.1"

    def requests(self) -> int:
        """Number of answered requests so far."""
        with self.log.open("rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


@contextlib.contextmanager
def served(folder: Path, host: str, work: Path) -> Iterator[Served]:
    """Serves with nginx if installed, otherwise with http.server. work: folder for the server's files."""
    work.mkdir(parents=True, exist_ok=True)
    log = work / "requests.log"
    log.touch()
    program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    with _nginx(program, folder, log) if program else _python(folder, log) as port:
        yield Served(host, port, log)


_NGINX = """
daemon off; worker_processes 1; pid {work}/nginx.pid; error_log {work}/error.log; {user}
events {{ worker_connections 256; }}
http {{
    log_format short "$status $request_uri"; access_log {log} short;
    client_body_temp_path {work}/t; proxy_temp_path {work}/t; fastcgi_temp_path {work}/t; uwsgi_temp_path {work}/t; scgi_temp_path {work}/t;
    types {{
        text/html html htm; application/xhtml+xml xhtml; text/css css; text/xml xml; text/plain txt; application/javascript js;
        image/svg+xml svg; image/png png; image/gif gif; image/jpeg jpg jpeg; application/pdf pdf; application/json json;
    }}
    default_type application/octet-stream; sendfile on; keepalive_requests 100000; absolute_redirect off;
    server {{ listen 127.0.0.1:{port}; root "{folder}"; index index.html; }}
}}
"""  # noqa: E501


@contextlib.contextmanager
def _nginx(program: str, folder: Path, log: Path) -> Iterator[int]:
    work, port = log.parent, _free_port()
    config = work / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""  # its workers must be able to read root's folders
    config.write_text(_NGINX.format(work=work, log=log, port=port, folder=folder, user=user), "utf-8")
    server = subprocess.Popen([program, "-p", str(work), "-c", str(config)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_S
        while not _listens(port):
            assert server.poll() is None, (work / "error.log").read_text("utf-8")
            assert time.monotonic() < deadline, "nginx does not listen"
            time.sleep(0.02)
        yield port
    finally:
        server.terminate()
        server.wait(START_S)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class _Files(http.server.SimpleHTTPRequestHandler):
    """Sends files like nginx: no listing of a folder without index."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # header and body are two writes, and the second would wait for an acknowledgement

    def __init__(self, *given: object, log: Path, **more: object) -> None:
        self._log = log
        super().__init__(*given, **more)

    def list_directory(self, path: str) -> None:
        self.send_error(403)

    def log_message(self, *said: object) -> None:
        with self._log.open("a", encoding="utf-8") as file:
            file.write(f"{self.path}\n")


@contextlib.contextmanager
def _python(folder: Path, log: Path) -> Iterator[int]:
    handler = functools.partial(_Files, directory=str(folder), log=log)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(START_S)
