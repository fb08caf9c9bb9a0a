"""A fault-injecting proxy for S3 in front of moto.

`python moody_s3.py PORT_FILE LOG_FILE MOOD...`; a mood is `slow_s=`, `fail_every=` or `late_s=` with its number.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

NO_KEY = b"<Error><Code>NoSuchKey</Code><Message>It is not shown yet.</Message></Error>"
BUSY = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
BROKEN = b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"


class MoodyS3:
    """Forwards requests to moto.

    slow_s: additional time per request. fail_every: every n-th request fails, alternately before and after it is done.
    late_s: time until a written object is visible.
    """

    def __init__(self, moto: WSGIApplication, note: Callable[[str], object], **mood: float) -> None:
        self._moto, self._note = moto, note
        self._slow_s, self._late_s = mood.get("slow_s", 0.0), mood.get("late_s", 0.0)
        self._fail_every = int(mood.get("fail_every", 0))
        self._calls, self._written = itertools.count(1), dict[str, float]()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        time.sleep(self._slow_s)
        call, method, path = next(self._calls), environ["REQUEST_METHOD"], environ["PATH_INFO"]
        fails = bool(self._fail_every) and call % self._fail_every == 0
        is_done_first = fails and call // self._fail_every % 2 == 0
        self._note(f"{method} {path}?{environ['QUERY_STRING']}{' fails' * fails}{' when done' * is_done_first}")
        is_new = time.monotonic() - self._written.get(path, -self._late_s) < self._late_s
        if fails and not is_done_first:
            _read_all(environ)
            return _answered(method, start_response, "503 Slow Down", BUSY)
        if is_new and method in ("GET", "HEAD"):
            return _answered(method, start_response, "404 Not Found", NO_KEY)
        if method == "PUT":
            self._written.setdefault(path, time.monotonic())
        if is_done_first:
            b"".join(self._moto(environ, lambda *given: lambda data: None))
            return _answered(method, start_response, "500 Internal Server Error", BROKEN)
        return self._moto(environ, start_response)


def _read_all(environ: WSGIEnvironment) -> None:
    """Unread bytes would be parsed as the next request. Chunked bodies have no length."""
    if environ.get("wsgi.input_terminated"):
        environ["wsgi.input"].read()
    else:
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))


def _answered(method: str, start_response: StartResponse, status: str, text: bytes) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(text)))])
    return () if method == "HEAD" else (text,)


def main(port_file: Path, log_file: Path, moods: Iterable[str]) -> None:
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    lock = threading.Lock()
    with log_file.open("a", encoding="utf-8") as log:

        def note(line: str) -> None:
            with lock:
                print(line, file=log, flush=True)

        mood = {name: float(value) for name, _, value in (one.partition("=") for one in moods)}
        server = make_server(
            "127.0.0.1", 0, MoodyS3(DomainDispatcherApplication(create_backend_app), note, **mood), threaded=True
        )
        draft = port_file.with_suffix(".draft")
        draft.write_text(json.dumps({"port": server.port, "pid": os.getpid()}), "utf-8")
        draft.replace(port_file)
        server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
