"""How far work is: of a crawl a live panel on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Self, TextIO, cast

import click

from periplus.children import RunnerLink
from periplus.extras import is_installed
from periplus.logs import is_json
from periplus.model.job import JobProgress
from periplus.present.wording import duration, size

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

    from periplus.api.crawling import Progress

MOST_HOSTS = 6  # on the panel
NO_PROGRESS = "PERIPLUS_NO_PROGRESS"  # variable of the environment
PLAIN_EVERY_S = 5.0  # between lines when stderr is no terminal
WATCH_EVERY_S = 2.0  # between lines of other work
DRAWN_EVERY_S = 0.25
SILENCE_S, PULSE_EVERY_S = 1.8, 0.2  # a command that answers within two seconds shows no progress
SHARE = 0.05  # of the time that may go into showing: a survey's estimates over a million links take seconds
RATE_WINDOW_S = 5.0  # over which pages per second are averaged
ERRORS = {
    "not-found": "not found", "refused": "refused to us", "server-error": "server errors", "unreachable": "unreachable",
    "bot-wall": "bot walls",
    "tls": "TLS",
    "client-error": "client errors", "bad-answer": "bad answers", "truncated": "cut short", "robots": "robots.txt",
    "trap": "traps",
    "host-down": "hosts given up", "robots-unreachable": "robots.txt unreachable",
    "private-address": "private addresses", "bug": "our bugs",
}  # fmt: skip


def say(text: str, color: str = "", level: int = logging.INFO) -> None:
    """A line on stderr; its color is dropped when stderr is no terminal. level: used if log lines are JSON."""
    if is_json():
        logging.getLogger("periplus.cli").log(level, "%s", click.unstyle(text))
    else:
        click.secho(text, err=True, fg=color or None)


class Display:
    """Progress on stderr: redrawn on a terminal, elsewhere a line now and then.

    Also reports to the runner of the job. A context manager. Output takes at most SHARE of the time.
    """

    def __init__(self, *, quiet: bool = False, is_drawn: bool = True, every_s: float = 0.0) -> None:
        """every_s: between two lines; 0: PLAIN_EVERY_S."""
        self._quiet, self._runner = quiet or NO_PROGRESS in os.environ, RunnerLink()
        self._live: Live | None = None
        if is_drawn and not self._quiet and sys.stderr.isatty() and is_installed("rich"):
            # loaded here: its 50 ms are nothing that a crawl from cron need spend
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True, highlight=False), refresh_per_second=4, transient=True)
        self._every_s = DRAWN_EVERY_S if self._live else every_s or PLAIN_EVERY_S
        self._due = time.monotonic() + self._every_s

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._live.stop()

    def show(
        self, job: JobProgress, line: Callable[[], str], drawing: Callable[[], RenderableType] | None = None
    ) -> None:
        """line, drawing: made when they are due."""
        self._runner.tell(job)
        begun = time.monotonic()
        if self._quiet or begun < self._due:
            return
        if self._live and drawing:
            self._live.update(drawing())
        else:
            say(line())
        now = time.monotonic()
        self._due = now + max(self._every_s, (now - begun) / SHARE)

    def show_indexing(self, indexing: JobProgress, *, stopped: bool) -> None:
        """Work at the end of a crawl. stopped: the user does not wait, and the note names what becomes of the rest."""
        if stopped:
            self.__exit__()
            at = f" at {indexing.done:,} of {indexing.total:,} pages" if indexing.total else ""
            say(f"Indexing stopped{at}: `periplus index` does the rest, or the next search.")
            return

        def drawing() -> RenderableType:
            from rich.text import Text

            return Text(indexing_text(indexing))

        self.show(indexing, lambda: indexing_text(indexing), drawing)


def indexing_text(indexing: JobProgress) -> str:
    return f"indexing, {indexing.done:,} of {indexing.total:,} pages" if indexing.total else "indexing"


@contextlib.contextmanager
def crawl_display(stopped: Callable[[], bool], *, quiet: bool) -> Iterator[Callable[[Progress], bool]]:
    """Watcher of a crawl: shows its progress, and returns whether the user stopped it."""
    history: deque[tuple[float, int]] = deque()

    def watch(progress: Progress) -> bool:
        if progress.indexing is not None:
            display.show_indexing(progress.indexing, stopped=(is_stopped := stopped()))
            return is_stopped
        counts = progress.counts
        history.append((progress.elapsed_s, counts.fetched))
        while history[0][0] < progress.elapsed_s - RATE_WINDOW_S:
            history.popleft()
        (first_at, first), (last_at, last) = history[0], history[-1]
        rate = (last - first) / (last_at - first_at) if last_at > first_at else 0.0
        note = "paused" if progress.paused else f"{rate:.1f} pages a second"
        job = JobProgress(counts.fetched, counts.fetched + counts.waiting, note)
        display.show(job, lambda: _line(progress, rate), lambda: _panel(progress, rate))
        return stopped()

    with Display(quiet=quiet) as display:
        yield watch


def _line(progress: Progress, pages_per_s: float) -> str:
    counts = progress.counts
    parts = [duration(progress.elapsed_s), f"{counts.fetched:,} fetched", f"{pages_per_s:.1f}/s"]
    parts += [f"{counts.waiting:,} waiting", f"{counts.known:,} known", size(counts.wire_bytes)]
    return " · ".join([*parts, *troubles(progress)])


def _panel(progress: Progress, pages_per_s: float) -> RenderableType:
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
    if wrong := troubles(progress):
        lines.append(Text(" · ".join(wrong), style="yellow"))
    if progress.hosts:
        lines.append(_hosts(progress))
    return Group(*lines)


def _hosts(progress: Progress) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for host in progress.hosts[:MOST_HOSTS]:
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


def troubles(progress: Progress) -> list[str]:
    """Failures so far, most frequent first, after the note of a pause."""
    counts = [(count, ERRORS[reason]) for reason, count in progress.counts.by_reason.items() if reason in ERRORS]
    return ["paused"] * progress.paused + [f"{count:,} {name}" for count, name in sorted(counts, reverse=True)]


class Pulse:
    """On a terminal, a line with the running command, its step and its duration, after two seconds of silence; any
    other output removes it. A context manager: standard output and standard error pass through it.

    Nothing is drawn after a text without a line end, which is a question to the user, and nothing more once bytes are
    written directly.
    """

    def __init__(self, command: Callable[[], str]) -> None:
        """command: its name, once that is known; empty: it waits for requests and stays silent."""
        self._command, self._what = command, ""
        self._began = self._written = time.monotonic()
        self._is_drawn = self._is_asking = self._is_over = False
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._streams: tuple[TextIO, TextIO] = sys.stdout, sys.stderr

    def __enter__(self) -> Self:
        if self._streams[1].isatty():
            sys.stdout, sys.stderr = (cast(TextIO, _Through(stream, self)) for stream in self._streams)
            self._token = _PULSE.set(self)
            threading.Thread(target=self._beat, daemon=True).start()
        else:
            self._ended.set()
        return self

    def __exit__(self, *error: object) -> None:
        if not self._ended.is_set():
            self._ended.set()
            _PULSE.reset(self._token)
            with self._lock:
                self._clear()
            sys.stdout, sys.stderr = self._streams

    def note(self, what: str) -> None:
        """What is being done, and how far it is."""
        self._what = what

    def pass_on(self, stream: TextIO, text: str) -> int:
        """Writes a text of the command to the terminal, after removing our own line."""
        with self._lock:
            if text:
                self._clear()
                self._written, self._is_asking = time.monotonic(), self._is_over or not text.endswith("\n")
            return stream.write(text)

    def end(self) -> None:
        """Draws nothing from now on."""
        with self._lock:
            self._clear()
            self._is_over = self._is_asking = True

    def _clear(self) -> None:
        if self._is_drawn:
            self._streams[1].write("\r\x1b[K")
            self._streams[1].flush()
            self._is_drawn = False

    def _beat(self) -> None:
        while not self._ended.wait(PULSE_EVERY_S):
            now = time.monotonic()
            with self._lock:
                if not self._ended.is_set() and not self._is_asking and now - self._written >= SILENCE_S:
                    if not (command := self._command()):
                        return
                    text = f"{self._what or command} · {duration(now - self._began)}"
                    self._streams[1].write("\r\x1b[K" + text[: shutil.get_terminal_size().columns - 1])
                    self._streams[1].flush()
                    self._is_drawn = True


class _Through:
    """A stream whose texts go by way of a pulse."""

    def __init__(self, stream: TextIO, pulse: Pulse) -> None:
        self._stream, self._pulse = stream, pulse

    def write(self, text: str) -> int:
        return self._pulse.pass_on(self._stream, text)

    def __getattr__(self, name: str) -> object:
        if name == "buffer":
            self._pulse.end()
        return getattr(self._stream, name)


_PULSE: ContextVar[Pulse | None] = ContextVar("pulse", default=None)


class Watch:
    """Called with what is being done, how much of it is done, and how much there is."""

    def __init__(self) -> None:
        self._display = Display(is_drawn=False, every_s=WATCH_EVERY_S)

    def __call__(self, what: str, done: int, total: int) -> None:
        line = f"{what}: {done:,} of {total:,}" if total else f"{what}: {done:,}" if done else what
        if pulse := _PULSE.get():
            pulse.note(line)
        else:
            self._display.show(JobProgress(done, total, what), lambda: line)
