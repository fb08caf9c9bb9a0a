"""How far is work that takes long? Said on stderr, now and then, and to the runner whose job it is."""

from __future__ import annotations

import time

import click

from periplus.cli.runner_link import RunnerLink
from periplus.model.job import JobProgress

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
