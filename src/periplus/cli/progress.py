"""How does a crawl look while it runs? A live panel on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import time
from collections import deque

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from periplus.api.crawling import Progress

PLAIN_EVERY_S = 5.0  # between lines when stderr is no terminal
RATE_WINDOW_S = 5.0  # over which pages per second are averaged
HOSTS_SHOWN = 6
ERRORS = {
    "not-found": "not found", "refused": "refused to us", "server-error": "server errors", "unreachable": "unreachable", "tls": "TLS",
    "client-error": "client errors", "bad-answer": "bad answers", "truncated": "cut short", "robots": "robots.txt", "trap": "traps",
    "host-down": "hosts given up", "robots-unreachable": "robots.txt unreachable", "private-address": "private addresses", "bug": "our bugs",
}  # fmt: skip


def amount(size_bytes: float) -> str:
    """A number of bytes for people: 1.4 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} TB"


def duration(seconds: float) -> str:
    """A time for people: 42 s, 3:07, 2:14:09."""
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class ProgressDisplay:
    """Shows Progress values as they come. Use as a context; `show` costs nothing between two frames."""

    def __init__(self, console: Console, *, quiet: bool) -> None:
        self._console, self._quiet = console, quiet
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal and not quiet else None
        self._history: deque[tuple[float, int]] = deque()
        self._said_at = time.monotonic()

    def __enter__(self) -> ProgressDisplay:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, progress: Progress) -> None:
        self._history.append((progress.elapsed_s, progress.counts.fetched))
        while self._history[0][0] < progress.elapsed_s - RATE_WINDOW_S:
            self._history.popleft()
        if self._live:
            self._live.update(self._panel(progress))
        elif not self._quiet and time.monotonic() - self._said_at >= PLAIN_EVERY_S:
            self._said_at = time.monotonic()
            self._console.print(self._line(progress), highlight=False, soft_wrap=True)

    def _rate(self) -> float:
        (first_at, first), (last_at, last) = self._history[0], self._history[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else 0.0

    def _line(self, progress: Progress) -> str:
        counts = progress.counts
        parts = [f"{duration(progress.elapsed_s)}", f"{counts.fetched:,} fetched", f"{self._rate():.1f}/s", f"{counts.waiting:,} waiting"]
        parts += [f"{counts.known:,} known", amount(counts.wire_bytes), *_troubles(progress)]
        return " · ".join(parts)

    def _panel(self, progress: Progress) -> Group:
        counts = progress.counts
        head = Text.assemble(
            (f"{counts.fetched:,}", "bold"), " fetched   ", (f"{counts.waiting:,}", "bold"), " waiting   ", (f"{counts.known:,}", "bold"), " known   ",
            (f"{self._rate():.1f}", "bold"), " pages/s   ", amount(counts.wire_bytes), "   ", duration(progress.elapsed_s),
            f"   {progress.workers} workers" if progress.workers > 1 else "",
        )  # fmt: skip
        lines: list[Text | Table] = [head]
        troubles = _troubles(progress)
        if troubles:
            lines.append(Text(" · ".join(troubles), style="yellow"))
        if progress.hosts:
            lines.append(_hosts(progress))
        return Group(*lines)


def _troubles(progress: Progress) -> list[str]:
    """What went wrong so far, most frequent first."""
    found = [(count, ERRORS[reason]) for reason, count in progress.counts.by_reason.items() if reason in ERRORS]
    return [f"{count:,} {name}" for count, name in sorted(found, reverse=True)]


def _hosts(progress: Progress) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for host in progress.hosts[:HOSTS_SHOWN]:
        wait = f"waits {duration(host.wait_s)}: {host.waits_for}" if host.wait_s > 1 else "being asked" if host.leased else "ready"
        table.add_row(Text(host.host, style="cyan"), f"{host.fetched:,} fetched", f"{host.pending:,} waiting", Text(wait, style="dim"))
    return table
