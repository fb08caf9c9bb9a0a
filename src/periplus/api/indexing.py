"""Has the pages of a crawl indexed meanwhile, by a process of its own; see `api.search_index`."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from periplus.children import finish_child, send, start_child, stop_child

END = "end"  # the crawl is over: take in the rest, settle, and end
AFTER_S = 2.0  # of a shorter crawl the first search takes the pages in: a process costs half a second to start
_LOOK_S = 0.2
# more spin beside small arrays: a third of all
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def start(folder: Path) -> subprocess.Popen[bytes]:
    """A process that follows the crawl of the collection. Where it dies, the next search does its work."""
    words = ("-m", "periplus.api.search_index")
    return start_child(*words, order=str(folder.absolute()), env=os.environ | _ONE_THREAD)


def finish(child: subprocess.Popen[bytes], stop: Callable[[], bool]) -> None:
    """The crawl is over: waits until the process has taken in the rest, or stop says that nobody wants to wait."""
    send(child, END)
    while child.poll() is None:
        if stop():
            stop_child(child)  # nothing is lost by it
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_LOOK_S)
    finish_child(child)
