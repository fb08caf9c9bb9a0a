"""`periplus topic crawl`: fetch what is about a topic, wherever it is, starting from a few pages."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from periplus.cli.options import (
    FOLDER,
    SETTINGS_FILE,
    collection_folder,
    collection_option,
    option,
    setting_options,
    store_option,
    verbose_option,
)
from periplus.cli.progress import Display, say, troubles
from periplus.errors import UsageError
from periplus.model.job import JobProgress
from periplus.present.wording import duration, size

if TYPE_CHECKING:
    from periplus.api.topical_run import TopicalEnd, TopicalProgress
    from periplus.settings import Settings

ORDERS = ("weighed", "breadth", "best-first", "parents", "shark", "site", "waits")  # of `schedule.topical.queue`


@click.command()
@click.argument("name")
@click.argument("seeds", nargs=-1, metavar="[URL]...")
@option(
    "-i --input lists",
    "File of seeds, one a line, # comments; - for stdin.",
    click.File("r", encoding="utf-8"),
    many=True,
)
@collection_option
@store_option
@option("--topic-from", "Collection that knows the topic, where this one does not.", FOLDER)
@option("--order", "Which page is next; waits: site by site, as published.", ORDERS, "weighed")
@option(
    "--least-harvest", "Stop when fewer of the last 500 pages are relevant. [0: never]", click.FloatRange(0, 1), 0.0
)
@option(
    "--known",
    "File of relevant pages known from elsewhere: how many were found is told.",
    click.File("r", encoding="utf-8"),
)
@option("--json as_json", "Write the end as JSON to stdout.", bool)
@option("-q --quiet", "No progress; only the end is told.", bool)
@verbose_option
@setting_options
def crawl(
    name: str,
    seeds: tuple[str, ...],
    lists: tuple[TextIO, ...],
    collection: Path | None,
    known: TextIO | None,
    **flags: Any,
) -> None:
    """Fetch what is about a topic, wherever it is, starting from a few pages.

    Each page is judged as it comes; which page is next is learned from that: by the pages that link to it, their words,
    its site, its directory. Politeness is that of any crawl: one request at a time to a host, robots.txt obeyed. Kill
    it whenever you like: the same command goes on. What a page was worth shows in `periplus topic judge NAME`.

    \b
    periplus crawl https://example.org/ -o ships.periplus --max-pages 500
    periplus topic train ships -p words:"harbour ship sailor" -c ships.periplus
    periplus topic crawl ships https://example.org/ -c ships.periplus --max-pages 5000 --least-harvest 0.1
    """
    from periplus.api.topical_run import TopicalOrder, crawl_topic
    from periplus.api.topics import judge_of
    from periplus.cli.crawl import EXIT, INTERRUPTED, StopOnSignal, configure_logs, lines_of, notice, start_urls

    starts = start_urls([*seeds, *(line for file in lists for line in lines_of(file))])
    if not starts:
        raise UsageError("no seed: name a few pages on the topic, or a file of them with -i")
    folder = collection_folder(collection)
    judge = judge_of(flags["topic_from"] or folder, name)
    settings = _settings(flags, folder)
    configure_logs(flags["verbose"])
    notice(settings)
    stopping, display = StopOnSignal(), Display(quiet=flags["quiet"], is_drawn=False)

    def watch(standing: TopicalProgress) -> bool:
        _show(display, standing)
        return stopping.asked

    listed = tuple(start_urls(lines_of(known))) if known else ()
    order = TopicalOrder(
        folder,
        tuple(starts),
        name,
        judge.judge,
        settings,
        flags["order"],
        flags["least_harvest"],
        listed,
        topic_folder=flags["topic_from"] or folder,
        store=flags["store"],
    )
    end = crawl_topic(order, watch)
    _tell(end, folder, name, flags["store"])
    if flags["as_json"]:
        click.echo(json.dumps(_as_json(end)))
    sys.exit(INTERRUPTED if stopping.asked else EXIT[end.end.state])


def _settings(flags: dict[str, Any], folder: Path) -> Settings:
    """A topical crawl's defaults, then the collection's periplus.toml, then the flags."""
    from periplus.api.topical_run import DEFAULTS
    from periplus.settings import read_settings, rows, settings_from

    given = {row.name: flags[row.name] for row in rows() if flags.get(row.name) not in (None, ())}
    return settings_from(given, read_settings(folder / SETTINGS_FILE, DEFAULTS))


def _show(display: Display, standing: TopicalProgress) -> None:
    progress, counts, gathered = standing.progress, standing.progress.counts, standing.gathered
    harvest = f"{gathered.lately:.0%} of the last {len(gathered.last):,} relevant"

    def line() -> str:
        parts = [
            duration(progress.elapsed_s),
            f"{counts.fetched:,} fetched",
            f"{gathered.relevant:,} relevant",
            harvest,
        ]
        return " · ".join([*parts, f"{counts.waiting:,} waiting", size(counts.wire_bytes), *troubles(progress)])

    display.show(JobProgress(counts.fetched, counts.fetched + counts.waiting, harvest), line)


def _tell(end: TopicalEnd, folder: Path, name: str, store: str) -> None:
    gathered, counts = end.gathered, end.end.counts
    say(
        f"{end.end.state.capitalize()}: {end.end.note} — after {duration(end.end.elapsed_s)}",
        "green" if end.end.state == "done" else "yellow",
    )
    say(f"{counts.fetched:,} fetched in this run ({size(counts.wire_bytes)}), {counts.waiting:,} waiting.")
    say(f"Of {gathered.pages:,} pages in all runs {gathered.relevant:,} are relevant ({gathered.harvest:.1%}), of the "
f"last {len(gathered.last):,} "
        f"{gathered.lately:.1%}.")  # fmt: skip
    if end.recall is not None:
        say(f"Of the known relevant pages {end.recall:.1%} were found.")
    if counts.waiting:
        say(f"To go on: {shlex.join(['periplus', *sys.argv[1:]])}")
    if store:
        from periplus.api.homes import home_of

        place = home_of(store)  # by its name a password is not shown
        say(f"Kept in {place} — next: periplus move '{place}' FOLDER, to judge and map it there")
        return
    say(f"Kept in {folder}/ — next: periplus topic judge {shlex.quote(name)} -c {shlex.quote(str(folder))}")


def _as_json(end: TopicalEnd) -> dict[str, object]:
    gathered, counts = end.gathered, end.end.counts
    return {
        "state": end.end.state,
        "stopped_because": end.end.note,
        "fetched": counts.fetched,
        "waiting": counts.waiting,
        "pages": gathered.pages,
        "relevant": gathered.relevant,
        "harvest": round(gathered.harvest, 4),
        "harvest_of_the_last": {"pages": len(gathered.last), "share": round(gathered.lately, 4)},
        "recall": end.recall,
        "elapsed_s": round(end.end.elapsed_s, 2),
    }
