"""How far work that takes long is: said on stderr now and then, and to the runner whose job it is."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import asdict

import click

from periplus.model.job import PIPES, JobProgress

TELL_EVERY_S = 0.5
AGAIN_S = 2.0  # before a signal that nobody took is sent again
_RUNNER_DIED = threading.Event()


class RunnerLink:
    """The two pipes of `periplus.jobs.runner`; outside of a job nothing happens."""

    def __init__(self) -> None:
        said = os.environ.get(PIPES, "")
        self._write = int(said.partition(",")[0]) if said else -1
        self._told_at = 0.0

    def tell(self, progress: JobProgress) -> None:
        """Costs nothing between two words; a runner that does not listen loses them."""
        now = time.monotonic()
        if self._write < 0 or now - self._told_at < TELL_EVERY_S:
            return
        self._told_at = now
        try:
            os.write(self._write, json.dumps(asdict(progress)).encode() + b"\n")
        except OSError:  # the runner is gone; `stop_with_runner` sees to the rest
            self._write = -1


def stop_with_runner() -> None:
    """Has this process stop as at Ctrl-C when its runner dies."""
    said = os.environ.get(PIPES, "")
    if said:
        threading.Thread(target=_wait_for_end, args=(int(said.partition(",")[2]),), daemon=True).start()


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


SAID_EVERY_S = 2.0


class Watch:
    """Called with what is being done, how much of it is done, and how much there is."""

    def __init__(self) -> None:
        self._said = time.monotonic()
        self._runner = RunnerLink()

    def __call__(self, what: str, done: int, total: int) -> None:
        self._runner.tell(JobProgress(done, total, what))
        now = time.monotonic()
        if now - self._said >= SAID_EVERY_S:
            self._said = now
            click.echo(f"{what}: {done:,} of {total:,}" if total else f"{what}: {done:,}" if done else what, err=True)
