"""Serves folders as web sites on loopback with nginx, and reads its log."""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measure import SERVER_CORE, pinned, process_cpu_s

COMPRESSED = frozenset({".html", ".htm", ".txt", ".css", ".js", ".xml", ".svg"})
READY_S = 10.0
CERTIFICATE = "certificate.pem"

CONFIGURATION = """
daemon off; master_process off; worker_processes 1; pid {temp}/nginx.pid; error_log {temp}/error.log warn;
events {{ worker_connections 2048; }}
http {{
  include /etc/nginx/mime.types; default_type application/octet-stream;
  sendfile on; tcp_nopush on; keepalive_requests 1000000; keepalive_timeout 300; server_tokens off;
  gzip_static on; gzip_vary on; charset off; absolute_redirect on; port_in_redirect on;
  open_file_cache max={cached_files} inactive=600s; open_file_cache_valid 600s;
  add_header LinkChecker fast;  # lets LinkChecker crawl without a delay
  client_body_temp_path {temp}/body; proxy_temp_path {temp}/proxy; fastcgi_temp_path {temp}/fastcgi;
  uwsgi_temp_path {temp}/uwsgi; scgi_temp_path {temp}/scgi;
  log_format seen '$msec\\t$request_time\\t$host\\t$request\\t$status\\t$body_bytes_sent\\t$sent_http_content_type';
  {log}
{servers}
}}
"""
SERVER = (
    """  server {{ listen {address}:{port}{tls}; server_name {name} {address}; root "{root}"; index index.html; }}"""
)


@dataclass(frozen=True, slots=True)
class Site:
    """A folder as a host. Crawlers without a host table use its address."""

    name: str
    root: Path
    start: str = "/"  # path of the start page


@dataclass(frozen=True, slots=True)
class Host:
    """Where a site is served: each on a separate loopback address,
    so that crawlers treat them as different hosts.
    """

    site: Site
    address: str
    port: int
    scheme: str = "http"

    @property
    def by_name(self) -> str:
        return f"{self.scheme}://{self.site.name}:{self.port}{self.site.start}"

    @property
    def by_address(self) -> str:
        return f"{self.scheme}://{self.address}:{self.port}{self.site.start}"

    @property
    def resolve(self) -> str:
        return f"{self.site.name}:{self.port}:{self.address}"


@dataclass(frozen=True, slots=True)
class Hit:
    """A line of the server log. ended: time when the answer was sent, seconds since the epoch, to the millisecond."""

    ended: float
    host: str
    path: str
    status: int
    sent_bytes: int
    media_type: str


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    hosts: tuple[Host, ...]
    pid: int
    log: Path

    def cpu_s(self) -> float:
        return process_cpu_s(self.pid)

    def mark(self) -> int:
        """Position in the log, for hits(since)."""
        return self.log.stat().st_size if self.log.exists() else 0

    def hits(self, since: int = 0) -> list[Hit]:
        with self.log.open("rb") as file:
            file.seek(since)
            return [hit(line) for line in file.read().decode("utf-8", "replace").splitlines()]


def hit(line: str) -> Hit:
    """Parses a log line. An invalid request line (no method, no path) has an empty path."""
    ended, _took, host, request, status, sent, media_type = line.split("\t")
    words = request.split(" ")
    return Hit(
        float(ended), host, words[1] if len(words) > 1 else "", int(status), int(sent), media_type.partition(";")[0]
    )


def pages(hits: Sequence[Hit]) -> int:
    """Number of distinct HTML pages sent completely with status 200: the pages that count for a crawler."""
    return len({(one.host, one.path) for one in hits if one.status == 200 and one.media_type == "text/html"})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serve(
    sites: Sequence[Site], temp: Path, *, core: int | None = SERVER_CORE, log: bool = True, tls: bool = False
) -> Iterator[Server]:
    """Serves the sites with nginx, a child process. temp: an empty private folder.

    tls: over HTTPS, with one self-signed certificate for all sites, temp/CERTIFICATE.

    The child runs as the calling user, in one process, writes only to temp, and listens on loopback only.
    """
    port = free_port()
    hosts = tuple(
        Host(site, f"127.0.0.{number}", port, "https" if tls else "http") for number, site in enumerate(sites, 11)
    )
    certified = f" ssl; ssl_certificate {temp}/{CERTIFICATE}; ssl_certificate_key {temp}/key.pem" if tls else ""
    if tls:
        certify([one.site.name for one in hosts], temp)
    servers = "\n".join(
        SERVER.format(address=one.address, port=port, tls=certified, name=one.site.name, root=one.site.root)
        for one in hosts
    )
    where = temp / "access.log"
    logged = f"access_log {where} seen;" if log else "access_log off;"
    # nginx answers 500 when its cached files and connections reach the limit of descriptors
    cached_files = min(20_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
    written = CONFIGURATION.format(temp=temp, servers=servers, log=logged, cached_files=cached_files)
    (temp / "nginx.conf").write_text(written)
    child = subprocess.Popen(
        pinned(["/usr/sbin/nginx", "-p", str(temp), "-e", f"{temp}/error.log", "-c", f"{temp}/nginx.conf"], core)
    )
    try:
        _wait(hosts, child, temp / "error.log")
        yield Server(hosts, child.pid, where)
    finally:
        child.terminate()
        child.wait()


def certify(names: Sequence[str], folder: Path) -> None:
    """Writes a self-signed certificate for the names, and its key."""
    said = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={names[0]}",
    ]
    said += ["-addext", "subjectAltName=" + ",".join(f"DNS:{name}" for name in names)]
    subprocess.run(
        [*said, "-keyout", folder / "key.pem", "-out", folder / CERTIFICATE], check=True, capture_output=True
    )


def _wait(hosts: Sequence[Host], child: subprocess.Popen[bytes], errors: Path) -> None:
    until = time.monotonic() + READY_S
    while True:
        try:
            for one in hosts:
                socket.create_connection((one.address, one.port), timeout=1).close()
            return
        except OSError:
            if child.poll() is not None or time.monotonic() > until:
                raise SystemExit(
                    f"nginx did not start: {errors.read_text() if errors.exists() else 'no word'}"
                ) from None
            time.sleep(0.02)


def compressed_copy(source: Path, target: Path, only: Sequence[str] = ()) -> Path:
    """A copy of the folder with a .gz file for each text, so that the server does not compress during measurements.

    only: files and folders below source to copy; default: all. Symbolic links are followed. A finished copy is
    reused.
    """
    done = target / ".complete"
    if done.exists():
        return target
    shutil.rmtree(target, ignore_errors=True)
    for part in only or ("",):
        here = source / part
        if here.is_dir():
            shutil.copytree(here, target / part, dirs_exist_ok=True, ignore=_left_out)
        else:
            (target / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, target / part)
    compress(target)
    done.touch()
    return target


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Broken symbolic links, and pages that exist only compressed: the server would send the .gz files as pages."""
    return {name for name in names if not (Path(folder) / name).exists() or name.endswith(".html.gz")}


def compress(root: Path) -> None:
    """Writes a .gz file for each text of the folder, with the usual level 6."""
    files = [path for path in root.rglob("*") if path.suffix in COMPRESSED and path.is_file()]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_compress, files, chunksize=64))


def _compress(path: Path) -> None:
    Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes(), compresslevel=6, mtime=0))
