"""Child processes: started with an order, watched by their progress, ended in time, and gone when their parent is.

A child learns that its parent has died from the end of a pipe that the parent alone holds. Of a process that
`start_child` gave an order, that is its standard input (`Parent` reads it there). A command of the program may read its
own input: `Command` gives it two other pipes, one to tell its progress and one to watch, whose numbers stand in the
variable PIPES (`RunnerLink` and `stop_with_runner` use them there).
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
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from periplus.model.job import JobProgress
from periplus.values import PIPES

TELL_EVERY_S = 0.5
AGAIN_S = 2.0  # before a signal that nobody took is sent again
_CHUNK_BYTES = 65_536  # what a pipe holds
_RUNNER_DIED = threading.Event()


def start_child(*words: str, order: object = None, **options: Any) -> subprocess.Popen[bytes]:
    """Starts `python WORDS`, in a session of its own: Ctrl-C reaches the parent alone.

    order: written as JSON to its standard input, which stays open; without one it has none. options: of Popen.
    """
    stdin = subprocess.DEVNULL if order is None else subprocess.PIPE
    options = {"stdin": stdin, "start_new_session": True} | options
    child: subprocess.Popen[Any] = subprocess.Popen([sys.executable, "-P", *words], **options)
    if order is not None:
        send(child, order)
    return child


def send(child: subprocess.Popen[bytes], message: object) -> None:
    """Writes a JSON line to the child's standard input; one that has died gets nothing."""
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(json.dumps(message).encode() + b"\n")
        child.stdin.flush()


def finish_child(child: subprocess.Popen[bytes], grace_s: float | None = None) -> None:
    """Waits until the child has ended; one that takes longer than grace_s is killed."""
    try:
        child.wait(grace_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what it has not taken
                pipe.close()


def stop_child(child: subprocess.Popen[bytes], grace_s: float | None = None) -> None:
    """Sends SIGTERM and waits as `finish_child` does."""
    child.terminate()
    finish_child(child, grace_s)


class Parent:
    """The process that started this one with an order, as this one sees it.

    order: what `start_child` was given; ended: set when the parent has sent its one further message, or died; message:
    that one, None where it died.
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
    """(a line of standard input, what was read after it). text: what was read before.

    Not through sys.stdin: a thread that waits there would hold its lock when the program ends.
    """
    while b"\n" not in text and (part := os.read(0, _CHUNK_BYTES)):
        text += part
    line, _, rest = text.partition(b"\n")
    return line, rest


class Command:
    """A command of the program in a process of its own, which stops as at Ctrl-C when this one dies.

    A context; at its end the command is told to stop, and killed if it takes longer than grace_s.
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
                "-m", "periplus.cli", *words, pass_fds=pipes,
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
        """What the command told since it was asked before, the newest; else the last."""
        return self._lines.newest(last)


class ProgressLines:
    """A child's progress, read from a pipe without waiting: JSON lines with the fields of `JobProgress`."""

    def __init__(self, pipe: int) -> None:
        self._pipe, self._unfinished = pipe, b""
        os.set_blocking(pipe, False)

    def newest(self, last: JobProgress) -> JobProgress:
        """What was written since it was asked before; last where nothing was."""
        try:
            *lines, self._unfinished = (self._unfinished + os.read(self._pipe, _CHUNK_BYTES)).split(b"\n")
        except BlockingIOError:
            return last
        for line in reversed(lines):
            try:
                row = json.loads(line)
                return JobProgress(int(row["done"]), int(row["total"]), str(row["note"])[:500])
            except (ValueError, KeyError, TypeError):  # a command that prints something else into its pipe
                continue
        return last


class RunnerLink:
    """What a process tells of its progress: a command to the runner whose job it is (outside of a job nothing happens),
    a child to its parent.
    """

    def __init__(self, pipe: int | None = None) -> None:
        """pipe: to write to; None: the runner's."""
        self._pipe = _pipe_numbers()[0] if pipe is None else pipe
        self._sent_at = 0.0

    def tell(self, progress: JobProgress) -> bool:
        """Writes the progress, at most each TELL_EVERY_S. Returns False once nobody reads it."""
        now = time.monotonic()
        if self._pipe < 0 or now - self._sent_at < TELL_EVERY_S:
            return self._pipe >= 0
        self._sent_at = now
        try:
            os.write(self._pipe, json.dumps(asdict(progress)).encode() + b"\n")
        except OSError:  # the runner is gone; `stop_with_runner` sees to the rest
            self._pipe = -1
        return self._pipe >= 0


def stop_with_runner() -> None:
    """Has this process stop as at Ctrl-C when its runner dies."""
    alive = _pipe_numbers()[1]
    if alive >= 0:
        threading.Thread(target=_wait_for_end, args=(alive,), daemon=True).start()


def _pipe_numbers() -> tuple[int, int]:
    """(for progress, the runner's life); -1: there is none."""
    write, _, read = os.environ.get(PIPES, "-1,-1").partition(",")
    return int(write), int(read)


def _wait_for_end(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    _RUNNER_DIED.set()
    listens = False
    while not listens:  # a KeyboardInterrupt that is raised while modules are imported may be swallowed by a callback
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(AGAIN_S)
        listens = signal.getsignal(signal.SIGINT) is not signal.default_int_handler


def runner_has_died() -> bool:
    """Whether this process was told to stop already, perhaps before it could listen."""
    return _RUNNER_DIED.is_set()


def process_lives(pid: int) -> bool:
    """Whether a process of this id exists here, whoever's it is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Files and folders made within are their owner's alone: the umask of this process, which children inherit."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
