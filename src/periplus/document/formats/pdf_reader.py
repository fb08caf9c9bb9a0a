"""Reads PDF files in a child process, so that a crash of the parser does not end the crawl.

PDFium is a large C++ program that parses untrusted input. It runs in a child process with limited memory and without
core dumps, one file after another; a file that takes too long terminates that process, and the next file gets a new
one. The pipes carry length-prefixed messages: the bytes of a file, and back HTML and fault as JSON.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from typing import IO

from periplus.children import finish_child, start_child
from periplus.document.formats.converted import Conversion, page
from periplus.extras import absence, is_installed

# Address space: after a manual of 800 pages a reader uses 45 MB; a file may have 32 MB, and its text 20
MEMORY_BYTES = 1 << 30
FILE_S = 60.0  # per file: 2,000 pages take about 2 s
_LENGTH_BYTES = 8


class PdfReader:
    """A child process that reads PDF files, started on first use and restarted after a crash.

    Thread-safe.
    """

    def __init__(self, words: tuple[str, ...] = ("-m", __name__), limit_s: float = FILE_S) -> None:
        self._words, self._limit_s = words, limit_s
        self._child: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    def html_of(self, body: bytes) -> Conversion:
        """Total: a file that crashes the reader has a fault."""
        with self._turn:
            child = self._ensure_child()
            with _kill_after(self._limit_s, child) as late:
                converted = _convert(child, body)
            if converted is not None:
                return converted
            self.close()
        return Conversion(
            page(()),
            f"its reader took longer than {self._limit_s:g} s" if late else "damaged: its reader did not survive it",
        )

    def _ensure_child(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self.close()
            self._child = start_child(*self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._child

    def close(self) -> None:
        """Ends the child, if there is one."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            finish_child(child)


@contextlib.contextmanager
def _kill_after(seconds: float, child: subprocess.Popen[bytes]) -> Iterator[list[bool]]:
    """Kills the child if the block takes longer; the list is then not empty."""
    late: list[bool] = []

    def end() -> None:
        late.append(True)
        child.kill()

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def _convert(child: subprocess.Popen[bytes], body: bytes) -> Conversion | None:
    """The child's result for a file; None if it died."""
    assert child.stdin is not None and child.stdout is not None
    try:
        _send(child.stdin, body)
        answer = _receive(child.stdout)
        return None if answer is None else Conversion(*json.loads(answer))
    except OSError:
        return None


def _send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(_LENGTH_BYTES, "little"))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    """The next message; None at the end of the stream, even within a message."""
    length = int.from_bytes(pipe.read(_LENGTH_BYTES), "little")
    data = pipe.read(length)
    return data if length and len(data) == length else None


@cache
def _reader() -> PdfReader:
    reader = PdfReader()
    atexit.register(reader.close)
    return reader


def html_of(body: bytes) -> Conversion:
    """Converts a PDF file to HTML. Total, with limited time and memory."""
    if not is_installed("pypdfium2"):
        return Conversion(page(()), absence("pypdfium2"))
    return _reader().html_of(body)


def _limit_resources() -> None:
    """Limits the resources of this process, where supported."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # a system with tighter limits, or without this one
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def main() -> None:
    """Main loop of the child: reads files until the parent exits."""
    from periplus.document.formats import pdf

    _limit_resources()
    while (body := _receive(sys.stdin.buffer)) is not None:
        _send(sys.stdout.buffer, json.dumps(pdf.html_of(body)).encode())


if __name__ == "__main__":
    main()
