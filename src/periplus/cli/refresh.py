"""`periplus refresh`: brings a collection up to date, once or every so often."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from periplus.cli.crawl import EXIT, INTERRUPTED, StopOnSignal, checked_store, configure_logs, notice, traps_left
from periplus.cli.options import collection_option, found_collection, setting_options
from periplus.cli.progress import ProgressDisplay, amount, duration, say
from periplus.errors import PeriplusError, UsageError
from periplus.present.wording import utc
from periplus.settings import rows

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PERIOD = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*([smhd]?)")
SHORTEST_PERIOD_S = 60.0  # of --every: below it the runs would only wait for one another
NAP_S = 1.0  # how soon Ctrl-C is heard between two runs


class Period(click.ParamType[float]):
    """A time like 24h, 90m, 7d; a bare number means hours."""

    name = "PERIOD"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = _PERIOD.fullmatch(str(value).strip().lower())
        seconds = float(match[1]) * _UNITS_S[match[2] or "h"] if match else 0.0
        if seconds < SHORTEST_PERIOD_S:
            self.fail(f"{value!r} is no period of a minute or longer: write 24h, 90m or 7d", param, ctx)
        return seconds


@click.command()
@collection_option
@click.option("--store", default="", metavar="ADDRESS", help="A collection in PostgreSQL, in place of a folder.")
@click.option("--all/--due", "everything", default=True, show_default=True, help="Ask for every page, or only for those whose own interval is over.")
@click.option("--every", type=Period(), help="Again and again, begun so often: 24h, 90m, 7d. Ctrl-C ends it.")
@click.option("-q", "--quiet", is_flag=True, help="No progress; only the end is told.")
@click.option("--no-progress", is_flag=True, help="The same as -q.")
@click.option("-v", "--verbose", count=True, help="Log what happens; -vv: every request.")
@setting_options
def refresh(collection: Path | None, store: str, everything: bool, every: float | None, **flags: Any) -> None:
    """Bring a collection up to date: fetch again only what changed.

    Asks each page's server whether it changed, by the settings of the last crawl or refresh; follows new links, closes those that vanished, keeps what
    was. A page found unchanged is due less often, one that changed more often. Afterwards: `periplus diff`.
    """
    from periplus.api.crawling import check_order
    from periplus.api.refreshing import refresh as run
    from periplus.api.refreshing import refresh_order

    place = checked_store(store) or found_collection(collection)
    given = {row.name: flags[row.name] for row in rows() if flags.get(row.name) not in (None, ())}
    order = refresh_order(place, given, due_only=not everything)
    check_order(order)
    configure_logs(flags["verbose"])
    notice(order.settings)
    stopping = StopOnSignal()

    def once(every_s: float = 0.0) -> str:
        next_at = time.time() + every_s
        with ProgressDisplay(quiet=flags["quiet"] or flags["no_progress"]) as display:

            def watch(progress: Any) -> bool:
                display.show(progress)
                return stopping.asked

            done = run(order, watch)
        _summary(done, f"--store '{order.home}'" if store else f"-c {shlex.quote(str(place))}", in_database=bool(store))
        if every_s and not stopping.asked:
            say(f"The next begins {utc(max(next_at, time.time()))}; Ctrl-C ends it.")
        return str(done.end.state)

    if every is None:
        state = once()
    else:
        state = repeat(lambda: _unless_busy(lambda: once(every)), every, lambda: stopping.asked, (time.time, time.sleep))
    sys.exit(INTERRUPTED if stopping.asked else EXIT[state])


def repeat(once: Callable[[], str], every_s: float, stopped: Callable[[], bool], time_s: tuple[Callable[[], float], Callable[[float], None]]) -> str:
    """Begins a run every every_s seconds until stopped; returns the last one's state. A run that lasts longer is followed at once by the next.

    time_s: (now, sleep), given by the caller so that tests need not wait. By the wall clock: a laptop that slept is late, not lost.
    """
    now, sleep = time_s
    while True:
        began = now()
        state = once()
        while not stopped() and now() < began + every_s:
            sleep(min(NAP_S, max(0.0, began + every_s - now())))
        if stopped():
            return state


def _unless_busy(once: Callable[[], str]) -> str:
    """One run of many: what keeps this one from running (a crawl at work, a full disk) is said, and the next is tried."""
    try:
        return once()
    except UsageError:
        raise
    except PeriplusError as error:
        say(f"No refresh this time: {error}", "yellow")
        return "failed"


def _summary(done: Any, place: str, *, in_database: bool) -> None:
    """place: as a flag of a command."""
    end, counts = done.end, done.end.counts
    style = {"done": "green", "stopped": "yellow"}.get(end.state, "red")
    say(click.style(end.state.capitalize(), fg=style) + (f": {end.note}" if end.note else "") + f" — after {duration(end.elapsed_s)}")
    say(", ".join(f"{count:,} {finding.value}" for finding, count in done.found.items() if count or finding.value in ("unchanged", "changed")) + ".")
    say(f"{counts.fetched:,} asked for in this run ({amount(counts.wire_bytes)}).")
    for line in traps_left(end.traps):
        say(line)
    if counts.waiting:
        say(f"{counts.waiting:,} are left. To go on: periplus refresh {place}")
    if not in_database:
        say(f"What changed: periplus diff {place}")
