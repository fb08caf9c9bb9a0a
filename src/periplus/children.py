"""Child processes: starting them with an order, reading their progress, ending them, and stopping when the parent dies.

Also the limit of file descriptors of this process.

A child detects the death of its parent by the end of a pipe that only the parent holds. With an order from
`start_child`, this is the child's standard input, which `Parent` reads. Commands may need their own standard input:
`Command` gives them two other pipes, one for progress and one to watch the parent, whose descriptors are in the
environment variable PIPES (used by `RunnerLink` and `stop_with_runner`).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from periplus.model.job import JobProgress
from periplus.values import PIPES, Place

TELL_EVERY_S = 0.5
AGAIN_S = 2.0  # before a signal without effect is sent again
_CHUNK_BYTES = 65_536  # capacity of a pipe
# descriptors that are not connections: the collection, the index, locks, pipes, modules being loaded
OTHER_DESCRIPTORS = 32
PER_REQUEST = 2  # each request's connection, and one that is kept for the next
INDEX_LOOK_S = 0.2
# for the indexing process: with more threads, spinning on small arrays took a third of all time
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
ENOUGH = 8_192  # descriptors for the greatest concurrency that can be set
_RUNNER_DIED = threading.Event()


def start_child(*words: str, order: object = None, **options: Any) -> subprocess.Popen[bytes]:
    """Starts `python WORDS` in a new session, so that Ctrl-C reaches only the parent.

    order: written as JSON to its standard input, which stays open; None: no standard input. options: of Popen.
    """
    stdin = subprocess.DEVNULL if order is None else subprocess.PIPE
    options = {"stdin": stdin, "start_new_session": True} | options
    child: subprocess.Popen[Any] = subprocess.Popen([sys.executable, "-P", *words], **options)
    if order is not None:
        send(child, order)
    return child


def send(child: subprocess.Popen[bytes], message: object) -> None:
    """Writes a JSON line to the child's standard input; does nothing if the child has ended."""
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(json.dumps(message).encode() + b"\n")
        child.stdin.flush()


def finish_child(child: subprocess.Popen[bytes], grace_s: float | None = None) -> None:
    """Waits until the child has ended; kills it after grace_s."""
    try:
        child.wait(grace_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # closing flushes data that the child did not read
                pipe.close()


def stop_child(child: subprocess.Popen[bytes], grace_s: float | None = None) -> None:
    """Sends SIGTERM, then waits as `finish_child`."""
    child.terminate()
    finish_child(child, grace_s)


class Parent:
    """The parent of this process, seen from the child.

    order: from `start_child`; ended: set when the parent has sent its second message or died; message: that message, or
    None if it died.
    """

    def __init__(self) -> None:
        line, self._rest = _read_line(b"")
        self.order: Any = json.loads(line)
        self.message: Any = None
        self.ended = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        line, _ = _read_line(self._rest)
        self.message = json.loads(line) if line else None
        self.ended.set()


def _read_line(text: bytes) -> tuple[bytes, bytes]:
    """(a line of standard input, bytes read after it). text: bytes read before.

    Does not use sys.stdin: a thread that waits there would hold its lock when the program ends.
    """
    while b"\n" not in text and (part := os.read(0, _CHUNK_BYTES)):
        text += part
    line, _, rest = text.partition(b"\n")
    return line, rest


class Command:
    """A Periplus command in a separate process, which stops as at Ctrl-C when this process dies.

    A context manager: at its end the command is stopped, and killed after grace_s.
    """

    def __init__(self, words: tuple[str, ...], grace_s: float = 0.0, **options: Any) -> None:
        """words: after `periplus`; options: of Popen."""
        self._grace_s = grace_s
        self._progress, progress_write = os.pipe()
        alive_read, self._alive = os.pipe()
        self._lines = ProgressLines(self._progress)
        pipes = (progress_write, alive_read)
        environment: Mapping[str, str] = options.pop("env", os.environ)
        try:
            self.process = start_child(
                "-m", "periplus", *words, pass_fds=pipes,
                env={**environment, PIPES: f"{progress_write},{alive_read}"}, **options,
            )  # fmt: skip
        finally:
            os.close(progress_write)
            os.close(alive_read)

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._alive)
        os.close(self._progress)
        finish_child(self.process, self._grace_s)

    def progress(self, last: JobProgress) -> JobProgress:
        """The newest progress since the previous call, or `last` without any."""
        return self._lines.newest(last)


class ProgressLines:
    """A child's progress, read from a pipe without waiting: JSON lines with the fields of `JobProgress`."""

    def __init__(self, pipe: int) -> None:
        self._pipe, self._unfinished = pipe, b""
        os.set_blocking(pipe, False)

    def newest(self, last: JobProgress) -> JobProgress:
        """The newest progress since the previous call, or `last` without any."""
        try:
            *lines, self._unfinished = (self._unfinished + os.read(self._pipe, _CHUNK_BYTES)).split(b"\n")
        except BlockingIOError:
            return last
        for line in reversed(lines):
            try:
                row = json.loads(line)
                return JobProgress(int(row["done"]), int(row["total"]), str(row["note"])[:500])
            except (ValueError, KeyError, TypeError):  # the command wrote something else into its pipe
                continue
        return last


class RunnerLink:
    """Reports progress: of a command to its job's runner (does nothing without a job), or of a child to its parent."""

    def __init__(self, pipe: int | None = None) -> None:
        """pipe: to write to; None: the runner's."""
        self._pipe = _pipe_numbers()[0] if pipe is None else pipe
        self._sent_at = 0.0

    def tell(self, progress: JobProgress) -> bool:
        """Writes the progress, at most every TELL_EVERY_S. Returns False if the pipe has no reader."""
        now = time.monotonic()
        if self._pipe < 0 or now - self._sent_at < TELL_EVERY_S:
            return self._pipe >= 0
        self._sent_at = now
        try:
            os.write(self._pipe, json.dumps(asdict(progress)).encode() + b"\n")
        except OSError:  # the runner has died; `stop_with_runner` handles that
            self._pipe = -1
        return self._pipe >= 0


def stop_with_runner() -> None:
    """Makes this process stop as at Ctrl-C when its runner dies."""
    alive = _pipe_numbers()[1]
    if alive >= 0:
        threading.Thread(target=_wait_for_end, args=(alive,), daemon=True).start()


def _pipe_numbers() -> tuple[int, int]:
    """(descriptor for progress, descriptor that ends with the runner); -1: none."""
    write, _, read = os.environ.get(PIPES, "-1,-1").partition(",")
    return int(write), int(read)


def _wait_for_end(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    _RUNNER_DIED.set()
    listens = False
    while not listens:  # a callback may swallow a KeyboardInterrupt that is raised during imports
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(AGAIN_S)
        listens = signal.getsignal(signal.SIGINT) is not signal.default_int_handler


def runner_has_died() -> bool:
    """Whether the runner has died, perhaps before this process could handle the signal."""
    return _RUNNER_DIED.is_set()


def process_lives(pid: int) -> bool:
    """Whether a process with this id exists, of any user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Files and folders created within are private to their owner: sets the umask, which child processes inherit."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def affordable(concurrency: int, descriptors: int | None) -> int:
    """The concurrency, reduced to what a limit of file descriptors allows, at least 1."""
    if descriptors is None:
        return concurrency
    return max(1, min(concurrency, (descriptors - OTHER_DESCRIPTORS) // PER_REQUEST))


def raised_limit() -> int | None:
    """Raises this process's limit of file descriptors as far as permitted, and returns it. None: no such limit."""
    try:
        import resource
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    target = max(soft, ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH))
    if target > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return target


def waited_s() -> float:
    """Seconds that this process waited for a processor; 0 where the system does not report it."""
    try:
        return int(Path("/proc/self/schedstat").read_text("ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def start_indexing(place: Place) -> subprocess.Popen[bytes]:
    """Starts a process that indexes pages during the crawl, see `api.search_index`. If it dies, the next search does
    its work.
    """
    words = ("-m", "periplus.api.search_index")
    order = str(place.absolute()) if isinstance(place, Path) else place
    return start_child(*words, order=order, env=os.environ | _ONE_THREAD, stdout=subprocess.PIPE)


def finish_indexing(child: subprocess.Popen[bytes], stop: Callable[[JobProgress], bool]) -> None:
    """Waits after the crawl until the process has indexed all pages, or stop returns True.

    stop: called with the indexing progress; 0 of 0 while the process reports none.
    """
    assert child.stdout is not None
    lines, indexing = ProgressLines(child.stdout.fileno()), JobProgress(note="indexing")
    send(child, "end")
    try:
        while not stop(indexing := lines.newest(indexing)) and child.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(INDEX_LOOK_S)
    finally:
        stop_child(child)  # nothing is lost: the next search does the rest
