"""One headless Chromium: its process, and the DevTools protocol over two pipes.

It has no network access: names do not resolve and its proxy is a closed port, so that every request not answered by the
`Fetch` domain (sockets of scripts, prefetching, the browser's own services) fails. See docs/decisions/0056.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from periplus.errors import InvalidUrl, UsageError
from periplus.model.visit import Purpose, Request
from periplus.urls.canonical import canonical

# headless builds first: a page of 200 KB of scripts took 104 ms of CPU and 173 MiB for all browsers; full Chromium took
# 580 ms and 490 MiB (156, load 12)
SHELLS = ("chromium-headless-shell", "chrome-headless-shell", "headless_shell")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "brave")
MAC_PROGRAMS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
PROFILE_PREFIX = "periplus-browser-"  # of profile folders in the system's temporary folder
PROFILE_AGE_S = 5.0  # a younger profile may not be locked yet by its process
CHUNK_BYTES = 1 << 20
MOST_READ_BYTES = 64 << 20  # per call of `receive`, so that the loop can do other work
MOST_POST_BYTES = 64 << 10  # per request; GraphQL queries have some 1 to 10 KB
# fields of a script's request that its answer may depend on
_REQUEST_FIELDS = {"accept": "Accept", "authorization": "Authorization", "x-requested-with": "X-Requested-With"}
_JSON = re.compile(r"application/(json|graphql(-response)?\+json)\s*(;[ -~]*)?", re.IGNORECASE)

_FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    # no network: names and addresses do not resolve, and the proxy is a closed port
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:1",
    "--proxy-bypass-list=<-loopback>",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--no-pings",
    # no requests by the browser itself: updates, reports, sync
    "--disable-background-networking",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-service-autorun",
    "--password-store=basic",
    "--use-mock-keychain",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,WebRtcHideLocalIpsWithMdns,"
    "PaintHolding,InterestFeedContentSuggestions,HttpsUpgrades,Prerender2,SpareRendererForSitePerProcess",
    # several pages are rendered at once, none of them in the foreground
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-hang-monitor",
    "--disable-popup-blocking",  # `rendering` closes pop-ups itself
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--mute-audio",
    "--hide-scrollbars",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
    "--js-flags=--max-old-space-size=512",  # MiB for the scripts of a page
)
# The protocol uses descriptors 3 and 4: the child copies the pipes to unused numbers first, then to these.
_LAUNCH = (
    "import fcntl, os, sys; read, write = (fcntl.fcntl(int(pipe), fcntl.F_DUPFD, 5) for pipe in sys.argv[1:3]);"
    "os.dup2(read, 3); os.dup2(write, 4); os.closerange(5, 256); os.execv(sys.argv[3], sys.argv[3:])"
)


def browser_program(named: str = "") -> str:
    """The path of the browser: `named`, or the first of the usual names that exists. Raises UsageError if none does."""
    if named:
        if (program := shutil.which(str(Path(named).expanduser()))) is not None:
            return program
        raise UsageError(f"--browser {named}: there is no such program")
    candidates = (shutil.which(name) for name in (*SHELLS, *NAMES, *MAC_PROGRAMS))
    program = next((path for path in candidates if path is not None), None)
    if program is None:
        raise UsageError(
            "rendering needs Chromium or Chrome, and none was found. Install it, for example with "
            "`sudo apt install chromium-headless-shell` (Debian), `sudo apt install chromium` or `brew install --cask "
            "chromium`; or give its path: --browser /PATH/TO/IT"
        )
    return program


class Chromium:
    """A running browser. No call blocks: `send` queues a command, `receive` returns the events received so far.

    `send` and `receive` raise BrokenPipeError once the browser has ended.
    """

    def __init__(self, program: str) -> None:
        clear_profiles()
        self._folder = tempfile.TemporaryDirectory(prefix=PROFILE_PREFIX, ignore_cleanup_errors=True)
        self._in_use = _lock_folder(Path(self._folder.name))
        its_read, self._write = os.pipe()
        self._read, its_write = os.pipe()
        flags = [*_FLAGS, f"--user-data-dir={self._folder.name}", *_sandbox_flags(), "about:blank"]
        words = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(its_read), str(its_write), program, *flags]
        try:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(its_read, its_write),
                start_new_session=True,
                env=_environment(self._folder.name),
            )
        finally:
            os.close(its_read)
            os.close(its_write)
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._unread, self._unsent = bytearray(), bytearray()
        self._number = 0
        self._answers: dict[int, Callable[[Mapping[str, Any]], None]] = {}

    @property
    def fd(self) -> int:
        """Becomes readable when the browser sends a message."""
        return self._read

    def send(
        self,
        method: str,
        parameters: Mapping[str, Any] | None = None,
        session: str = "",
        then: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        """Queues a command. then: called with the result, which is empty if the command failed."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        if then is not None:
            self._answers[self._number] = then
        self._unsent += json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode() + b"\0"
        self.flush()

    def flush(self) -> None:
        """Writes queued commands, as far as the pipe accepts them."""
        while self._unsent:
            try:
                count = os.write(self._write, self._unsent[:CHUNK_BYTES])
            except BlockingIOError:
                return
            del self._unsent[:count]

    def receive(self) -> list[Mapping[str, Any]]:
        """The events received; results of commands are passed to their callbacks."""
        self.flush()
        size, ended = 0, False
        while size < MOST_READ_BYTES:
            try:
                chunk = os.read(self._read, CHUNK_BYTES)
            except BlockingIOError:
                break
            if not chunk:
                ended = True
                break
            size += len(chunk)
            self._unread += chunk
        *lines, rest = self._unread.split(b"\0") if size else ([self._unread])
        self._unread = bytearray(rest)
        events: list[Mapping[str, Any]] = []
        for line in lines:
            message = json.loads(line)
            if "id" not in message:
                events.append(message)
            elif (then := self._answers.pop(message["id"], None)) is not None:
                then(message.get("result", {}))
        if ended:
            raise BrokenPipeError
        return events

    def close(self) -> None:
        """Ends the browser and all of its processes, and deletes its profile."""
        for pipe in (self._write, self._read):
            os.close(pipe)
        # killed at once: a regular exit takes a second, and nothing needs to be saved
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._in_use)
        self._folder.cleanup()
        for _ in range(20):  # its other processes were killed too, but may still write for a moment
            if not Path(self._folder.name).exists():
                break
            time.sleep(0.05)
            shutil.rmtree(self._folder.name, ignore_errors=True)

    def memory(self) -> list[tuple[int, int]]:
        """(private bytes, process id) of the browser's processes, largest first. Empty on systems other than Linux."""
        sizes = []
        for pid in _descendants(self.process.pid):
            with contextlib.suppress(OSError, ValueError, IndexError):
                resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
                sizes.append(((int(resident) - int(shared)) * _PAGE_BYTES, pid))
        return sorted(sizes, reverse=True)


def clear_profiles() -> None:
    """Removes the profiles that killed crawls of this user left behind: those that no process has locked."""
    for folder in Path(tempfile.gettempdir()).glob(PROFILE_PREFIX + "*"):
        with contextlib.suppress(OSError):  # another user's, in use, or deleted
            if time.time() - folder.lstat().st_mtime < PROFILE_AGE_S or folder.is_symlink():
                continue
            lock = _lock_folder(folder)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock_folder(folder: Path) -> int:
    """Locks a folder. Returns a descriptor that holds the lock until it is closed. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def _sandbox_flags() -> list[str]:
    """Chromium refuses to run as root with its sandbox, so root runs it without."""
    return ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


def _environment(folder: str) -> dict[str, str]:
    """An environment without the user's settings, keys and proxies."""
    names = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "FONTCONFIG_PATH", "FONTCONFIG_FILE", "SYSTEMROOT")
    passed = {name: os.environ[name] for name in names if name in os.environ}
    return passed | {"HOME": folder, "TMPDIR": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}


def _descendants(pid: int) -> list[int]:
    pids = [pid]
    for parent in pids:
        with contextlib.suppress(OSError, ValueError):
            pids += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
    return pids


def preflight(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Header fields of a CORS preflight answer that allow the request."""
    given = {name.lower(): value for name, value in headers.items()}
    return (
        ("access-control-allow-origin", given.get("origin", "*")),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-headers", given.get("access-control-request-headers", "*")),
        ("access-control-allow-methods", "GET, HEAD"),
    )


def request_of(asked: Mapping[str, Any]) -> Request | None:
    """A browser's request as a crawl request; None: it is refused. A POST must have a short JSON body."""
    body = _json_body(asked) if asked["method"] == "POST" else b""
    if asked["method"] not in ("GET", "POST") or (asked["method"] == "POST" and not body):
        return None
    try:
        url = canonical(asked["url"])
    except InvalidUrl:
        return None
    if not url.startswith(("http://", "https://")):
        return None
    headers = {name.lower(): value for name, value in asked["headers"].items()}
    if "sec-purpose" in headers or headers.get("accept") == "text/event-stream":
        return None  # prefetching, and event streams, which never end
    fields = [
        f"{shown}: {headers[name]}" for name, shown in _REQUEST_FIELDS.items() if headers.get(name, "*/*") != "*/*"
    ]
    if "origin" in headers:
        fields.append(f"Origin: {headers['origin']}")
    if body:
        fields.append(f"Content-Type: {headers['content-type']}")
    return Request(url, Purpose.PART, fields=tuple(fields), body=body)


def _json_body(asked: Mapping[str, Any]) -> bytes:
    """The JSON body of a request; empty if it is not JSON or too long."""
    given = next((value for name, value in asked["headers"].items() if name.lower() == "content-type"), "")
    body = b"".join(base64.b64decode(entry.get("bytes", "")) for entry in asked.get("postDataEntries", ()))
    return body if _JSON.fullmatch(given) and len(body) <= MOST_POST_BYTES else b""
