"""`periplus move`, `split` and `segments`: collections between folders and databases; and workers that join a crawl."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from periplus.cli.crawl import EXIT_INTERRUPT, StopOnSignal, exit_code, summary
from periplus.cli.options import (
    PLACE,
    collection_option,
    collection_place,
    format_option,
    option,
    output_option,
    write_output,
)
from periplus.cli.progress import Watch, crawl_display, say
from periplus.present.wording import count_of, number
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.model.collection import SegmentState


# `periplus move`: a collection from a folder into a database, or back.


@click.command()
@click.argument("source")
@click.argument("target")
def move(source: str, target: str) -> None:
    """Move a collection from SOURCE to TARGET, from a folder to PostgreSQL or back. A stopped crawl can continue there.

    TARGET is compared with SOURCE, and no command opens it before it is complete. If it is stopped, the same command
    continues. SOURCE can still be read, and has a note of where it went; crawls there are refused. With segments=PLACE
    in the address the bodies of pages are stored as WARC files there. Moved back into a folder, a collection can be
    searched and analysed.

    \b
    periplus move example.org.periplus 'postgresql://me@db/crawls?collection=example&segments=s3://bucket/example'
    periplus crawl -o 'postgresql://me@db/crawls?collection=example' https://example.org
    periplus move 'postgresql://me@db/crawls?collection=example' example.org.2.periplus
    """
    from periplus_postgres.moving import move as moved

    watch = Watch()
    done = moved(source, target, lambda what, rows: watch(what, rows, 0))
    tables = ", ".join(
        f"{name} {number(rows)}"
        for name, rows in done.rows.items()
        if name in ("url", "page", "link", "visit", "queue", "body")
    )
    click.echo(f"Moved to {done.place}: {tables}. Every table was compared.", err=True)


@click.command()
@click.argument("source")
@click.argument("targets", nargs=-1, metavar="TARGET TARGET...")
@option(
    "--exchange",
    "Where the parts will exchange URLs; see `periplus help crawl`.",
    str,
    "",
    metavar="PLACE",
)
def split(source: str, targets: tuple[str, ...], exchange: str) -> None:
    """Split the collection SOURCE into one part for each TARGET, by registered domain. Folders and databases.

    Each part has the pages, links, visits and lists of its own domains. Its crawl fetches no host of another part, and
    hands over the URLs it finds there. Every table is compared after the copy. If it is stopped, the same command
    continues: a part is complete or does not exist. SOURCE can still be read; crawls there are refused. Every part has
    all runs and all decisions of users.

    \b
    periplus split web.periplus web1.periplus web2.periplus --exchange /shared/exchange
    periplus crawl -i starts.txt -o web1.periplus --until-all-done
    """
    from periplus_postgres.splitting import split as split_up

    watch = Watch()
    parts = split_up(source, targets, exchange, lambda what, rows: watch(what, rows, 0))
    for part, rows in parts.items():
        tables = ", ".join(f"{name} {number(rows[name])}" for name in ("url", "page", "visit", "queue", "body"))
        click.echo(f"{part}: {tables}. Every table was compared.", err=True)


@click.command()
@click.argument("address", type=PLACE, required=False)
@collection_option
@option("--delete", "Delete segments without any page; refused while workers are running.", bool)
@format_option(("text", "json"))
@output_option
def segments(address: Place | None, collection: Place | None, delete: bool, format: str, output: Path | None) -> None:
    """Read all segments of the collection at ADDRESS or of -c, and report their faults.

    An orphan is a record without a page: a worker was killed between writing and committing it. It only takes space, as
    does an incomplete last record. A page whose bytes are lost is an error, and the exit code is 1.

    \b
    periplus segments postgresql://me@db/crawls?collection=press
    periplus segments postgresql://me@db/crawls?collection=press --delete
    """
    from periplus_postgres.collection import check_segments

    watch = Watch()
    place = str(collection_place(address or collection))
    states = check_segments(place, delete=delete, watch=lambda name: watch(f"Read {name}", 0, 0))
    lost = sum(state.lost for state in states)
    lines = (
        f"{state.name}  {_segment_facts(state)}{'  deleted' if delete and state.is_unused else ''}" for state in states
    )
    values = [asdict(state) | {"deleted": delete and state.is_unused} for state in states]
    write_output(output, lines, values if format == "json" else None)
    total = f"{count_of(len(states), 'segment')}, {number(sum(state.size_bytes for state in states))} bytes"
    orphans = (
        f"{count_of(sum(state.orphans for state in states), 'orphan')} of "
        f"{number(sum(state.orphan_bytes for state in states))} bytes"
    )
    click.echo(f"{total}; {orphans}; {count_of(lost, 'page')} without bytes", err=True)
    sys.exit(1 if lost else 0)


def _segment_facts(state: SegmentState) -> str:
    parts = [f"{number(state.size_bytes)} bytes", count_of(state.records, "record")]
    if state.orphans:
        parts.append(f"{count_of(state.orphans, 'orphan')} of {number(state.orphan_bytes)} bytes")
    if state.torn_bytes:
        parts.append(f"torn tail of {number(state.torn_bytes)} bytes")
    if state.lost:
        parts.append(f"LOST: the bytes of {count_of(state.lost, 'page')}")
    return ", ".join(parts)


def help_with_crawl(store: str, auth: str, stopping: StopOnSignal, *, quiet: bool) -> None:
    """Joins the crawl that goes on in the database, and ends the program with it; returns where none goes on."""
    from periplus.api.homes import home_of
    from periplus_postgres.joining import join, run_in_progress, settings_of_run

    home = home_of(store)
    record = run_in_progress(store)
    if record is None:
        return
    settings = settings_of_run(record, auth)
    say(
        f"Joining run {record.id} of {home}: "
        f"{', '.join(record.starts[:3])}{' and others' if len(record.starts) > 3 else ''}. Ctrl-C leaves it."
    )
    with crawl_display(stopping.poll, quiet=quiet) as watch:
        end = join(store, record, settings, watch)
    summary(end, str(home), f"periplus status -c '{home}'")
    sys.exit(EXIT_INTERRUPT if stopping.asked else exit_code(end))
