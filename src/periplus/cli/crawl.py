"""`periplus crawl` and `periplus refresh`: start, continue and update a collection."""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import click

from periplus.acquire.folders import starts_of
from periplus.children import runner_has_died
from periplus.cli.options import (
    LongCommand,
    chosen_settings,
    option,
    place_flag,
    place_option,
    setting_options,
    settings_of,
    verbose_option,
)
from periplus.cli.progress import crawl_display, say
from periplus.errors import NoCollection, UsageError
from periplus.features import service
from periplus.logs import configure
from periplus.masking import masked_command
from periplus.model.visit import FETCHED_REASONS
from periplus.present.wording import duration, job_remedy, size, traps_left
from periplus.settings import DELAY_FLOOR_S, SUFFIX, Settings
from periplus.urls.scope import site_name
from periplus.values import IN_DOUBT, PIPES, Place

# `periplus crawl`: starts, continues or restarts a collection.

EXIT = {"done": 0, "stopped": 0, "suspicious": 6, "failed": 4}
EXIT_INTERRUPT = 130
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PERIOD = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*([smhd]?)")
SHORTEST_PERIOD_S = 60.0  # of --every: below it the runs would only wait for one another


@click.command(cls=LongCommand)
@click.argument("starts", nargs=-1, metavar="[URL|FOLDER]...")
@option(
    "-i --input lists",
    "File of start URLs, one a line, # comments; - for stdin.",
    click.File("r", encoding="utf-8"),
    many=True,
)
@place_flag(
    "-o -c --collection",
    "The collection: a folder, or postgresql://USER@HOST/DATABASE?collection=NAME&segments=PLACE. Default "
    f"SITE{SUFFIX} here.",
)
@option(
    "--on",
    "For a collection in a database: run the workers on a Spark cluster, spark://HOST:7077; --workers: how many.",
    str,
    "",
    metavar="MASTER",
)
@option(
    "--part",
    "This collection is part K of N of one web, divided by registered domain: it fetches no other hosts. Remembered.",
    str,
    "",
    metavar="K/N",
)
@option(
    "--exchange",
    "Folder or URL of object storage (s3://BUCKET/FOLDER) where parts exchange URLs. Remembered.",
    str,
    "",
    metavar="PLACE",
)
@option("--until-all-done", "With --part: continue until no part has work left.", bool)
@option("--fresh", "Delete the collection's content first and start over. Prints what it deletes.", bool)
@option("-q --quiet", "No progress, only the result.", bool)
@option("--no-progress", "The same as -q.", bool)
@verbose_option
@setting_options
def crawl(
    starts: tuple[str, ...],
    lists: tuple[Any, ...],
    collection: Place | None,
    fresh: bool,
    **flags: Any,
) -> None:
    """Fetch a site politely and store it.

    A local folder or file (./docs, index.html) is read without a server.

    Stays on the start's site, sends one request at a time with 0.5 s between them, and obeys robots.txt. You can kill
    it at any time: the same command continues where it stopped. Afterwards: `periplus map`, `periplus report`.
    """
    from periplus.api.crawling import CrawlOrder, check_order
    from periplus.api.crawling import crawl as run

    urls, local = starts_of([*starts, *(line for file in lists for line in lines_of(file))])
    flags |= with_folders(flags, local)
    if not urls and flags["from_archive"]:
        urls = service("archive starts")(flags["from_archive"])
    if not urls:
        raise UsageError("no start: give a URL, or a file of URLs with -i")
    place = collection or Path(site_name(urls[0]) + SUFFIX)
    settings = settings_of(flags, place if isinstance(place, Path) else Path())
    sharing = {name: flags[name] for name in ("part", "exchange", "until_all_done")}
    order = CrawlOrder(place, urls, settings, **sharing)
    check_order(order)
    configure_logs(flags["verbose"])
    notice(settings)
    if fresh:
        _clear_store(place) if isinstance(place, str) else _delete(place)
    stopping = StopOnSignal()
    with crawl_display(lambda: stopping.asked, quiet=flags["quiet"] or flags["no_progress"]) as watch:
        if flags["on"]:
            end = service("crawl on a cluster")(order, flags["on"], watch)
        else:
            end = run(order, watch)
    summary(
        end,
        str(order.home),
        f"periplus {'status' if isinstance(place, str) else 'map'} -c {shlex.quote(str(order.home).removesuffix('/'))}",
    )
    sys.exit(EXIT_INTERRUPT if stopping.asked else exit_code(end))


def exit_code(end: Any) -> int:
    """Of a crawl, or a part of it, that was not interrupted."""
    return IN_DOUBT if end.state == "done" and end.doubtful else EXIT[end.state]


def with_folders(flags: dict[str, Any], local: Sequence[str]) -> dict[str, Any]:
    """Settings for local starts: the folders, and a scope limited to them."""
    if not local:
        return {}
    return {"folders": (*flags["folders"], *local), "scope": flags["scope"] or "prefix"}


def lines_of(file: Iterable[str]) -> list[str]:
    """The URLs of a list, one a line, without comments and empty lines."""
    return [line.strip() for line in file if line.strip() and not line.lstrip().startswith("#")]


def notice(settings: Settings) -> None:
    politeness = settings.politeness
    if politeness.delay_s < DELAY_FLOOR_S and not politeness.mine:
        say(
            f"A delay under {DELAY_FLOOR_S} s is for hosts of your own (--mine HOST); others get {DELAY_FLOOR_S} s.",
            "yellow",
        )
    if settings.identity.insecure:
        say("Certificates are not verified (--insecure): answers may be forged.", "yellow")


def configure_logs(verbose: int) -> None:
    configure((logging.ERROR, logging.INFO, logging.DEBUG)[min(verbose, 2)])


def _delete(folder: Path) -> None:
    """--fresh: deletes only the files of a collection, and lists them first."""
    from periplus.store.sqlite.runs import contents, delete, only_crawl

    parts = contents(folder)
    if not parts:
        return
    with only_crawl(folder):  # never while another crawl is running
        total = sum(path.stat().st_size for path in parts)
        say(
            (
                f"--fresh: deleting the collection in {folder}/ "
                f"({', '.join(path.name for path in parts)}; {size(total)})"
            ),
            "yellow",
        )
        delete(parts)


def _clear_store(store: str) -> None:
    """--fresh of a collection in a database."""
    from periplus.api.functions import open_collection
    from periplus.api.homes import database_at

    try:
        with open_collection(store) as stored:
            status = stored.status()
    except NoCollection:
        return
    if status.runs:
        urls = sum(tally.urls for tally in status.counts)
        say(f"--fresh: deleting what {status.store} holds ({urls:,} URLs; {size(status.size_bytes)})", "yellow")
        database_at(store).clear(store)


class StopOnSignal:
    """Ctrl-C and SIGTERM ask for a clean end; a second Ctrl-C ends at once and loses only requests in progress."""

    def __init__(self) -> None:
        self.asked = False
        self.polled = time.monotonic()
        signal.signal(signal.SIGINT, self._ask)
        signal.signal(signal.SIGTERM, self._ask)
        self.asked = self.asked or runner_has_died()  # before anybody listened

    def poll(self) -> bool:
        """Whether a stop was requested. Called in each turn of the command's loop, which `polled` shows to be alive."""
        self.polled = time.monotonic()
        return self.asked

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        say("Stopping: storing running requests. Press Ctrl-C again to stop at once.", "yellow")


def summary(end: Any, place: str, following: str) -> None:
    """How a crawl ended. place: where it is kept; following: the command to go on with."""
    counts = end.counts
    say_end(end)
    if not end.is_kept:
        say(f"Nothing was stored, so {place} was not kept.")
        return
    read = sum(counts.by_reason.get(reason, 0) for reason in FETCHED_REASONS)
    say(
        f"{counts.fetched:,} fetched in this run ({size(counts.wire_bytes)}); in all {read:,} read, "
        f"{counts.known:,} known, {counts.waiting:,} waiting."
    )
    for line in traps_left(end.traps):
        say(line)
    if end.went_on and read and not counts.fetched and not counts.waiting:
        say("This crawl is already complete; --fresh starts over.")
    if end.part and not counts.waiting:
        say(
            f"This is part {end.part} of its web, and has no work until other parts send URLs: the same "
            f"command continues with these; with --until-all-done it waits for them."
        )
    if counts.waiting:
        command = shlex.join(["periplus", *masked_command(sys.argv[1:])])
        say(f"To continue: {command}".replace(" --fresh", ""))
    say(f"Kept in {place} — next: {following if read else following.replace('periplus map ', 'periplus status ')}")


def say_end(end: Any) -> None:
    """How a run ended, and after a failure what to do."""
    style = {"done": "green", "stopped": "yellow"}.get(end.state, "red")
    note = f": {end.note}" if end.note else ""
    say(f"{click.style(end.state.capitalize(), fg=style)}{note} — after {duration(end.elapsed_s)}")
    if end.state == "failed":
        say(advice(end.note))


def advice(note: str) -> str:
    """Advice after a failed run."""
    return job_remedy(note, "--allow-private", "--mine HOST --ignore-robots") or "The same command tries it again."


# `periplus refresh`: updates a collection, once or periodically.


class Period(click.ParamType[float]):
    """A time like 24h, 90m, 7d; a bare number means hours."""

    name = "PERIOD"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = _PERIOD.fullmatch(str(value).strip().lower())
        seconds = float(match[1]) * _UNITS_S[match[2] or "h"] if match else 0.0
        if seconds < SHORTEST_PERIOD_S:
            self.fail(f"{value!r} is not a period of at least a minute: write 24h, 90m or 7d", param, ctx)
        return seconds


@click.command(cls=LongCommand)
@place_option
@option("--all/--due everything", "Request every page, or only pages whose interval is over.", bool, True)
@option("-q --quiet", "No progress, only the result.", bool)
@option("--no-progress", "The same as -q.", bool)
@verbose_option
@setting_options
def refresh(place: Place, everything: bool, **flags: Any) -> None:
    """Update a collection: fetch again only what changed.

    Sends conditional requests with the settings of the last crawl or refresh, follows new links and closes links that
    are gone. Earlier versions are kept. Unchanged pages are requested less often, changed pages more often. If a page
    differs only in numbers or tokens, it is requested twice: differences between the two answers (session ids, clocks,
    counters) do not count as changes. Afterwards: `periplus diff`. To repeat it: `periplus jobs add --every 24h
    refresh`.
    """
    from periplus.api.crawling import check_order, refresh_order
    from periplus.api.crawling import refresh as run

    values = chosen_settings(flags, place if isinstance(place, Path) else Path())
    order = refresh_order(place, values, due_only=not everything)
    order = replace(order, index=PIPES not in os.environ)
    check_order(order)
    configure_logs(flags["verbose"])
    notice(order.settings)
    stopping = StopOnSignal()

    with crawl_display(lambda: stopping.asked, quiet=flags["quiet"] or flags["no_progress"]) as watch:
        done = run(order, watch)
    _summary(done, f"-c {shlex.quote(str(order.home).removesuffix('/'))}", in_database=isinstance(place, str))
    sys.exit(EXIT_INTERRUPT if stopping.asked else EXIT[str(done.end.state)])


def _summary(done: Any, place: str, *, in_database: bool) -> None:
    """place: as a flag of a command."""
    end, counts = done.end, done.end.counts
    say_end(end)
    say(
        ", ".join(
            f"{count:,} {finding.value}"
            for finding, count in done.findings.items()
            if count or finding.value in ("unchanged", "changed")
        )
        + "."
    )
    say(f"{counts.fetched:,} requested in this run ({size(counts.wire_bytes)}).")
    for line in traps_left(end.traps):
        say(line)
    if counts.waiting:
        say(f"{counts.waiting:,} are left. To continue: periplus refresh {place}")
    if not in_database:
        say(f"What changed: periplus diff {place}")
