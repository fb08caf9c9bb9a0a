"""How far is work that takes long? Said on stderr, now and then."""

from __future__ import annotations

import time

import click

SAID_EVERY_S = 2.0


class Watch:
    """Called with what is being done, how much of it is done, and how much there is."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._said >= SAID_EVERY_S:
            self._said = now
            click.echo(f"{what}: {done:,} of {total:,}" if total else f"{what}: {done:,}" if done else what, err=True)
