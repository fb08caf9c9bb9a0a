"""`periplus import`, `move`, `split` and `segments`: moves collections between archives, folders and databases."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import (
    FOLDER,
    PLACE,
    collection_option,
    collection_place,
    format_option,
    option,
    output_option,
    place_flag,
    place_option,
    write_output,
)
from periplus.cli.progress import Watch
from periplus.errors import StoreError
from periplus.present.wording import count_of, number
from periplus.settings import SUFFIX, Settings
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.model.collection import SegmentState


# `periplus move`: a collection from a folder into a database, or back.


@click.command()
@click.argument("source")
@click.argument("target")
def move(source: str, target: str) -> None:
    """Move a collection from SOURCE to TARGET, from a folder to PostgreSQL or back. A stopped crawl can continue there.

    The copy is one transaction and is compared with the source, so TARGET is complete or empty. SOURCE can still be
    read, and has a note of where it went; crawls there are refused. With segments=PLACE in the address the bodies of
    pages are stored as WARC files there. Moved back into a folder, a collection can be searched and analysed.

    \b
    periplus move example.org.periplus 'postgresql://me@db/crawls?collection=example&segments=s3://bucket/example'
    periplus crawl -o 'postgresql://me@db/crawls?collection=example' https://example.org
    periplus move 'postgresql://me@db/crawls?collection=example' example.org.2.periplus
    """
    from periplus.api.moving import move as moved

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
    from periplus.api.splitting import split as split_up

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
    from periplus.api.database import check_segments

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


# `periplus import`: a collection of an archive, without fetching.


@click.group("import")
def imports() -> None:
    """Make a collection from a web archive, or load the results of `periplus analyse`; nothing is fetched."""


@imports.command("warc")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@place_flag(
    "-o --output -c --collection", f"The new collection: a folder, or an address. By default SITE{SUFFIX} here."
)
@option(
    "--start starts",
    "Start page of the site. Default: as recorded in the archive, else its first page.",
    metavar="URL",
    many=True,
)
@option("--scope", "Which URLs belong to the site; see `periplus settings`.", ["site", "domain", "prefix", "any"])
@option("--keep-parts", "Keep images, styles, scripts and fonts too.", bool)
@option(
    "--gap",
    "Files further apart in time become separate runs, by date.",
    click.FloatRange(0),
    1.0,
    metavar="DAYS",
)
@option(
    "--at",
    "The site at that time: later answers are not read. 2019-05-31 means the end of that day, UTC.",
    str,
    "",
    metavar="DATE",
)
def warc(files: tuple[Path, ...], collection: Place | None, starts: tuple[str, ...], **flags: Any) -> None:
    """Make a collection of WARC, ARC or WACZ files (gzip, zstd or plain).

    Every answer is read as if it had just been fetched, so that maps, reports and exports work. A link's
    target that is not in the archive is `discovered`, with the reason not-in-archive. A file that is cut off is read
    up to there.

    Files of different times become runs, each with its date, so that `periplus diff` and `trends` show what changed
    between them.

    \b
    periplus import warc crawl-00001.warc.gz crawl-00002.warc.gz -o crawl.periplus
    periplus import warc 2024.wacz 2025.wacz 2026.wacz -o years.periplus
    periplus import warc all.warc.gz --at 2019-05-31 -o may.periplus
    """
    from periplus.acquire.archived import end_of
    from periplus.api.archives import ImportTimes, import_archives, origin_of_archives
    from periplus.api.homes import home_of
    from periplus.settings import settings_from
    from periplus.urls.canonical import start_urls
    from periplus.urls.scope import site_name

    settings: Settings | None = settings_from({"scope": flags["scope"]}) if flags["scope"] else None
    begin, settings = origin_of_archives(files, start_urls(starts), settings)
    settings = replace(settings, storage=replace(settings.storage, keep_parts=flags["keep_parts"]))
    times = ImportTimes(flags["gap"] * 86_400, end_of(flags["at"]))
    place = collection or Path(site_name(begin[0]) + SUFFIX)
    if isinstance(place, str):
        from periplus.api.moving import import_into_database

        done = import_into_database(place, lambda draft: import_archives(draft, files, begin, settings, times=times))
    else:
        done = import_archives(place, files, begin, settings, times=times)
    for damage in done.damages:
        click.echo(f"periplus: {damage}", err=True)
    counts = (
        f"{count_of(done.answers, 'answer')} from {count_of(done.records, 'record')}, {done.failures} without an answer"
    )
    click.echo(
        f"{str(home_of(place)).removesuffix('/')}: {counts}{f', in {done.runs} runs' if done.runs > 1 else ''}",
        err=True,
    )
    if done.left_out:
        click.echo(f"Left out: {count_of(done.left_out, 'record')} without a usable answer, URL or date", err=True)
    if done.state == "failed":
        raise StoreError(f"{done.note}. No collection was made: name archives that hold answers of the site.")


@imports.command("results")
@click.argument("dataset", type=click.Path(path_type=Path, exists=True, file_okay=False))
@option("-r --results", "Folder of the results; default DATASET.results.", FOLDER)
@place_option
def results(place: Place, dataset: Path, results: Path | None) -> None:
    """Load the results of `periplus analyse DATASET` into the collection, as tables for `periplus sql` or psql.

    Tables are named result_ANALYSIS; result_url maps their numbers to the ids of URLs, result_site to sites. All are
    replaced in one transaction. A dataset of another collection is refused.

    \b
    periplus import results site.dataset -c example.org.periplus
    periplus import results web.dataset -c 'postgresql://me@db/crawls?collection=web'
    periplus sql "SELECT u.url, r.rank FROM result_ranks r JOIN result_url n ON n.url = r.url JOIN urls u ON u.id = n.id ORDER BY 2 DESC LIMIT 9"
    """  # noqa: E501
    from periplus.api.datasets import load_results
    from periplus.cli.progress import Watch

    watch = Watch()
    computed = results or dataset.with_name(dataset.name + ".results")
    rows = load_results(place, computed, dataset, time.time(), lambda table: watch(f"Loading {table}", 0, 0))
    click.echo("Loaded: " + ", ".join(f"{name} {count:,}" for name, count in rows.items()), err=True)
