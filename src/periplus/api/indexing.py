"""How does a crawl have its pages indexed meanwhile? By a process of its own; see `api.search_index`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

END = b"end\n"  # the crawl is over: take in the rest, settle, and end
AFTER_S = 2.0  # of a shorter crawl the first search takes the pages in: a process costs half a second to start
_LOOK_S = 0.2
# more spin beside small arrays: a third of all
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def start(folder: Path) -> subprocess.Popen[bytes]:
    """A process that follows the crawl of the collection."""
    child = subprocess.Popen(
        [sys.executable, "-m", "periplus.api.search_index"],
        stdin=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | _ONE_THREAD,
    )
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it died: the next search does its work
        child.stdin.write(os.fsencode(folder.absolute()) + b"\n")
        child.stdin.flush()
    return child


def finish(child: subprocess.Popen[bytes], stop: Callable[[], bool]) -> None:
    """The crawl is over: waits until the process has taken in the rest, or stop says that nobody wants to wait."""
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(END)
        child.stdin.close()
    while child.poll() is None:
        if stop():
            end(child)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_LOOK_S)


def end(child: subprocess.Popen[bytes]) -> None:
    """At once: nothing is lost by it, and the next search does the rest."""
    child.terminate()
    child.wait()
    if child.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
