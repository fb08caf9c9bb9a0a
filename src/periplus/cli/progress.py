"""How far work is: of a crawl a live panel on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from periplus.children import RunnerLink
from periplus.model.job import JobProgress
from periplus.present.wording import duration, size

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from periplus.api.crawling import Progress

HOSTS_SHOWN = 6  # on the panel
PLAIN_EVERY_S = 5.0  # between lines when stderr is no terminal
WATCH_EVERY_S = 2.0  # between lines of other work
RATE_WINDOW_S = 5.0  # over which pages per second are averaged
ERRORS = {
    "not-found": "not found", "refused": "refused to us", "server-error": "server errors", "unreachable": "unreachable",
    "tls": "TLS",
    "client-error": "client errors", "bad-answer": "bad answers", "truncated": "cut short", "robots": "robots.txt",
    "trap": "traps",
    "host-down": "hosts given up", "robots-unreachable": "robots.txt unreachable",
    "private-address": "private addresses", "bug": "our bugs",
}  # fmt: skip


def say(text: str, color: str = "") -> None:
    """A line on stderr; its color is dropped when stderr is no terminal."""
    click.secho(text, err=True, fg=color or None)


# rich is loaded where the panel is made, since its 50 ms are nothing that a crawl from cron need spend
class Panel:
    """A few lines on a terminal's stderr that are drawn anew four times a second; gone when it stops."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True, highlight=False), refresh_per_second=4, transient=True)

    def start(self) -> None:
        self._live.start()

    def stop(self) -> None:
        self._live.stop()

    def show(self, progress: Progress, pages_per_s: float, troubles: Sequence[str]) -> None:
        from rich.console import Group
        from rich.text import Text

        counts = progress.counts
        head = Text.assemble(
            (f"{counts.fetched:,}", "bold"), " fetched   ", (f"{counts.waiting:,}", "bold"), " waiting   ",
            (f"{counts.known:,}", "bold"), " known   ",
            (f"{pages_per_s:.1f}", "bold"), " pages/s   ", size(counts.wire_bytes), "   ",
            duration(progress.elapsed_s),
            f"   {progress.workers} workers" if progress.workers > 1 else "",
        )  # fmt: skip
        lines: list[RenderableType] = [head]
        if troubles:
            lines.append(Text(" · ".join(troubles), style="yellow"))
        if progress.hosts:
            lines.append(_hosts(progress))
        self._live.update(Group(*lines))


def _hosts(progress: Progress) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for host in progress.hosts[:HOSTS_SHOWN]:
        wait = (
            f"waits {duration(host.wait_s)}: {host.waits_for}"
            if host.wait_s > 1
            else "being asked"
            if host.leased
            else "ready"
        )
        table.add_row(
            Text(host.host, style="cyan"),
            f"{host.fetched:,} fetched",
            f"{host.pending:,} waiting",
            Text(wait, style="dim"),
        )
    return table


class ProgressDisplay:
    """Shows Progress values as they come. Use as a context; `show` costs nothing between two frames."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._panel: Panel | None = None
        if sys.stderr.isatty() and not quiet:
            self._panel = Panel()
        self._runner = RunnerLink()
        self._history: deque[tuple[float, int]] = deque()
        self._shown_at = time.monotonic()

    def __enter__(self) -> ProgressDisplay:
        if self._panel:
            self._panel.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._panel:
            self._panel.stop()

    def show(self, progress: Progress) -> None:
        self._history.append((progress.elapsed_s, progress.counts.fetched))
        while self._history[0][0] < progress.elapsed_s - RATE_WINDOW_S:
            self._history.popleft()
        counts = progress.counts
        self._runner.tell(
            JobProgress(
                counts.fetched,
                counts.fetched + counts.waiting,
                "paused" if progress.paused else f"{self._rate():.1f} pages a second",
            )
        )
        if self._panel:
            self._panel.show(progress, self._rate(), troubles(progress))
        elif not self._quiet and time.monotonic() - self._shown_at >= PLAIN_EVERY_S:
            self._shown_at = time.monotonic()
            say(self._line(progress))

    def _rate(self) -> float:
        (first_at, first), (last_at, last) = self._history[0], self._history[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else 0.0

    def _line(self, progress: Progress) -> str:
        counts = progress.counts
        parts = [
            f"{duration(progress.elapsed_s)}",
            f"{counts.fetched:,} fetched",
            f"{self._rate():.1f}/s",
            f"{counts.waiting:,} waiting",
        ]
        parts += [f"{counts.known:,} known", size(counts.wire_bytes), *troubles(progress)]
        return " · ".join(parts)


def troubles(progress: Progress) -> list[str]:
    """What went wrong so far, most frequent first; before all that it is paused."""
    counts = [(count, ERRORS[reason]) for reason, count in progress.counts.by_reason.items() if reason in ERRORS]
    return ["paused"] * progress.paused + [f"{count:,} {name}" for count, name in sorted(counts, reverse=True)]


class Watch:
    """Called with what is being done, how much of it is done, and how much there is."""

    def __init__(self) -> None:
        self._shown_at = time.monotonic()
        self._runner = RunnerLink()

    def __call__(self, what: str, done: int, total: int) -> None:
        self._runner.tell(JobProgress(done, total, what))
        now = time.monotonic()
        if now - self._shown_at >= WATCH_EVERY_S:
            self._shown_at = now
            click.echo(f"{what}: {done:,} of {total:,}" if total else f"{what}: {done:,}" if done else what, err=True)
