"""`periplus status`, `pause` and `resume`: what a collection holds, how its runs ended,
and whether its crawl goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from periplus.cli.options import (
    collection_option,
    collection_place,
    format_option,
    open_output,
    output_option,
    place_option,
    write_output,
)
from periplus.cli.progress import say
from periplus.errors import UsageError
from periplus.model.visit import Reason
from periplus.present.tables import FORMATS, write_table
from periplus.present.wording import REASON_WORDS, count_of, number, size, traps_left, utc, visible, why_waits
from periplus.settings import SUFFIX
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.api.collection import Status
    from periplus.model.ports import RunRecord


# `periplus status`: what a collection holds, how its runs ended, and what it waits for.

MOST_RUNS = 5


@click.command()
@place_option
@format_option(("text", "json"))
@output_option
def status(place: Place, format: str, output: Path | None) -> None:
    """Show what a collection contains and how its runs ended."""
    from periplus.api.functions import open_collection

    with open_collection(place) as reader:
        report = reader.status()
    write_output(output, lines(report), as_json(report) if format == "json" else None)


@click.command()
@collection_option
@format_option((*FORMATS, "svg"))
@output_option
def trends(collection: Place | None, format: str, output: Path | None) -> None:
    """Show how a collection changed over all of its runs.

    One row a run, oldest first: pages fetched and URLs failed so far, what the run fetched, its deepest page and mean
    response time; after a check, pages with an error and a score from 0 to 100 in each field. svg: curves.
    """
    from periplus.api.grading import trends as points_of
    from periplus.api.homes import name_of
    from periplus.model.audit import GradedField

    place = collection_place(collection)
    points = points_of(place)
    with open_output(output, exact=format != "table") as out:
        if format == "svg":
            from periplus.present.diff import write_trends

            write_trends(points, name_of(place).removesuffix(SUFFIX), out)
            return
        rows = []
        for point in points:
            scores = {grade.field: grade.score for grade in point.grades}
            response_s = None if point.response_s is None else round(point.response_s, 4)
            rows.append(
                (
                    point.run_id,
                    point.kind,
                    utc(point.started, "%Y-%m-%dT%H:%M:%SZ"),
                    point.pages,
                    point.failed,
                    point.urls,
                    point.fetched,
                    point.bytes,
                    point.depth,
                    response_s,
                    point.pages_with_errors,
                    *(scores.get(field) for field in GradedField),
                )
            )
        names = (
            "run",
            "kind",
            "started",
            "pages",
            "failed",
            "urls",
            "fetched",
            "bytes",
            "depth",
            "response_s",
            "pages_with_errors",
        )
        write_table((*names, *(field.value for field in GradedField)), rows, format, out)


def lines(report: Status) -> Iterator[str]:
    """The status for reading."""
    urls = sum(tally.urls for tally in report.counts)
    yield (
        f"{report.store or report.folder}: {count_of(urls, 'URL')} on {count_of(report.hosts, 'host')}, "
        f"{size(report.size_bytes)} on disk"
    )
    yield from _counts(report)
    yield from (f"\n{line}" for line in traps_left(report.traps))
    yield from _runs(report)
    yield from _waiting(report)


def _counts(report: Status) -> Iterator[str]:
    rows: list[tuple[str, int]] = []
    for state, tallies in groupby(report.counts, key=lambda tally: tally.state):
        group = list(tallies)
        rows.append((state.value, sum(tally.urls for tally in group)))
        rows += [(f"  {REASON_WORDS[tally.reason]}", tally.urls) for tally in group]
    if rows:
        yield ""
    wide = max((len(number(count)) for _, count in rows), default=0)
    for name, count in rows:
        yield f"{number(count):>{wide}}  {name}"


def _runs(report: Status) -> Iterator[str]:
    if not report.runs:
        yield "\nNo run yet: `periplus crawl URL` begins one."
        return
    yield f"\n{count_of(len(report.runs), 'run')}" + (
        f", the last {MOST_RUNS}:" if len(report.runs) > MOST_RUNS else ":"
    )
    state = "paused: `periplus resume` continues it" if report.paused else "running"
    state += f" with {count_of(report.workers, 'worker')}" if report.workers else ""
    for run in report.runs[-MOST_RUNS:]:
        ended = state if report.running and run is report.runs[-1] else _run_end(run)
        yield (
            f"  {run.id}  {utc(run.started, '%d %b %Y %H:%M UTC')}  {count_of(run.fetched, 'page')} fetched, "
            f"{size(run.wire_bytes)}{(run.http2 and f', {run.http2 / run.fetched:.0%} over HTTP/2') or ''}  {ended}"
        )
    yield f"  from {', '.join(visible(start) for start in report.runs[-1].starts[:3])}" + (
        " and others" if len(report.runs[-1].starts) > 3 else ""
    )


def _run_end(run: RunRecord) -> str:
    if run.state == "running":
        return "killed before its end; the same crawl command continues it"
    took = f" after {max(0, (run.ended or run.started) - run.started):.0f} s"
    return run.state + took + (f": {visible(run.note)}" if run.note else "")


def _waiting(report: Status) -> Iterator[str]:
    if not report.hosts_waiting:
        return
    pages = sum(tally.urls for tally in report.counts if tally.reason is Reason.WAITING)
    others = report.entries_waiting - pages  # after a refresh that was interrupted: its pages too
    yield (
        f"\n{count_of(report.hosts_waiting, 'host')} with work waiting, {number(report.entries_waiting)} to fetch"
        + (
            f", {number(others)} of them robots.txt, sitemaps, links to check or pages asked for again:"
            if others
            else ":"
        )
    )
    for host in report.busiest:
        yield (
            f"  {visible(host.host)}  {number(host.pending)} waiting, {number(host.fetched)} fetched; "
            f"{why_waits(host, report.state)}"
        )
    if report.hosts_waiting > len(report.busiest):
        yield f"  and {count_of(report.hosts_waiting - len(report.busiest), 'more host')}"


def as_json(report: Status) -> dict[str, object]:
    """The status for programs; times are seconds since the epoch."""
    return {
        **({"store": report.store, "workers": report.workers} if report.store else {"folder": str(report.folder)}),
        "size_bytes": report.size_bytes,
        "time": time.time(),
        "running": report.running,
        "paused": report.state == "paused",
        "urls": sum(tally.urls for tally in report.counts),
        "traps": [{"pattern": tally.pattern, "urls": tally.urls} for tally in report.traps],
        "counts": [{"state": tally.state.value, "reason": tally.reason.value,
                "urls": tally.urls} for tally in report.counts],
        "runs": [
            {
                "id": run.id, "kind": run.kind, "starts": run.starts, "started": run.started, "ended": run.ended,
                "state": run.state,
                "note": run.note, "fetched": run.fetched, "wire_bytes": run.wire_bytes,
                "http2": run.http2,
            }
            for run in report.runs
        ],
        "hosts": report.hosts,
        "hosts_waiting": report.hosts_waiting,
        "entries_waiting": report.entries_waiting,
        "busiest": [
            {"host": host.host, "waiting": host.pending, "fetched": host.fetched, "wait_s": host.wait_s,
                "waits_for": host.waits_for, "leased": host.leased}
            for host in report.busiest
        ],
    }  # fmt: skip


# `periplus pause` and `periplus resume`: a crawl that goes on asks for nothing more, until it may again.


@click.command()
@place_option
def pause(place: Place) -> None:
    """Pause a running crawl until `periplus resume`.

    Works for a crawl in another terminal, of a job or on other machines, and for a refresh, a check, a survey or a
    topical crawl. After about two seconds no request starts; answers to running requests are stored. The workers wait
    and may be killed during the pause, and hosts keep their delays.

    The pause ends with `periplus resume`, with the end of the crawl (Ctrl-C and Stop still end it at once), and when
    another crawl, refresh or check of the collection starts. It does not count against --max-time, except in a survey.

    \b
    periplus pause
    periplus pause -c example.org.periplus
    periplus pause -c postgresql://me@db/crawls?collection=press
    """
    from periplus.api.homes import home_of

    home = home_of(place)
    if not home.pause(time.time()):
        raise UsageError(f"no crawl is running in {home}: there is nothing to pause")
    say(f"Paused: {home}. `periplus resume` continues it.")


@click.command()
@place_option
def resume(place: Place) -> None:
    """Resume a paused crawl, within a second.

    A stopped or killed crawl is not paused: `periplus crawl` continues it.

    \b
    periplus resume
    periplus resume -c example.org.periplus
    """
    from periplus.api.homes import home_of

    home = home_of(place)
    if not home.resume(time.time()):
        raise UsageError(
            f"no crawl is paused in {home}. The original `periplus crawl` command continues a stopped or killed crawl."
        )
    say(f"Resumed: {home}.")
