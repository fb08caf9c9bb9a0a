"""`periplus analyse` and `export parquet`: datasets, and analyses by the engine that fits."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import FOLDER, option, output_option, place_option, write_output
from periplus.errors import UsageError
from periplus.present.tables import align
from periplus.present.wording import count_of, number, utc
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.store.reader import Answer
    from periplus_spark.snapshots import Snapshot

_NAMES = ("ranks", "web-ranks", "map", "links", "duplicates", "near", "interlinking", "cascades")


@click.command()
@click.argument("given", nargs=-1, required=True, metavar="DATASET... [ANALYSIS]...")
@option("-r --results", "Folder for results; by default DATASET.results.", FOLDER)
@option("--combined", "With several datasets: the folder of the combined dataset; default combined.dataset.", FOLDER)
@option(
    "--engine",
    "stream: on this machine, with links read from disk; spark: on a cluster; auto: the faster one that fits "
    "the dataset.",
    str,
    "auto",
    metavar="NAME",
)
@option(
    "--on",
    "Spark master: spark://host:7077, yarn, local[*]. Without it auto never chooses spark.",
    str,
    "",
    metavar="MASTER",
)
@option("--memory", "Memory limit; 0: half of the free memory.", click.FloatRange(0), 0.0, metavar="GB")
@option("--damping", "", click.FloatRange(0, 1, min_open=True, max_open=True), 0.85)
@option("--tolerance", "Ranks: change below which the iteration stops.", click.FloatRange(0, min_open=True), 1e-10)
@option(
    "--near", "Share of equal MinHash values from which texts count as nearly the same.", click.FloatRange(0.3, 1), 0.8
)
@option("--json as_json", "Print the results and their folders as JSON.", bool)
@output_option
def analyse(
    given: tuple[str, ...],
    results: Path | None,
    combined: Path | None,
    as_json: bool,
    output: Path | None,
    **options: Any,
) -> None:
    """Compute analyses of a dataset, which `periplus export parquet` makes: here, from disk, or on a cluster.

    Several datasets, of collections that are parts of one web, are analysed together: --combined is the folder for
    their combined tables, which are written once.

    ANALYSIS: ranks, web-ranks, map, links, duplicates, near, interlinking, cascades; by default all for
    which there are tables. Results are Parquet tables, each in a folder of its own with a manifest, which is written
    last. A finished stage is not computed again, even by another engine: after a crash the same command continues with
    the interrupted stage.

    \b
    periplus analyse site.dataset                      everything, by the engine that fits
    periplus analyse site.dataset ranks map --json     two analyses, and where their tables are
    periplus analyse web.dataset --on spark://host:7077 --engine spark
    periplus analyse a.dataset b.dataset c.dataset ranks
    periplus analyse web.periplus ranks                the collection's snapshot (`periplus snapshot`)
    """
    from periplus.cli.progress import Watch
    from periplus_spark.api import EngineRequest, analyse_dataset, one_dataset
    from periplus_spark.files import StageParameters

    request = EngineRequest(options["engine"], options["on"], int(options["memory"] * 1e9))
    parameters = StageParameters(options["damping"], options["tolerance"], near=options["near"])
    datasets = [_dataset_at(name) for name in (given[0], *(name for name in given[1:] if name not in _NAMES))]
    if unknown := [path for path in datasets[1:] if not path.is_dir()]:
        raise UsageError(f"{str(unknown[0])!r} is neither a dataset nor an analysis: choose among {', '.join(_NAMES)}")
    analyses = [name for name in given[1:] if name in _NAMES]
    dataset = one_dataset(datasets, combined or Path("combined.dataset"), time.time())
    done = analyse_dataset(dataset, analyses, results, parameters=parameters, request=request, watch=Watch())
    rows = [asdict(stage) | {"folder": str(stage.folder)} for stage in done.stages]
    values = {"engine": done.choice.engine, "why": done.choice.why, "stages": rows}
    write_output(output, computed_lines(done.choice.engine, done.choice.why, rows), values if as_json else None)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@option("--texts", "Also export the pages' texts, with marks of content.", bool)
@option("--parts", "Files of each table; default: one for each million URLs.", click.IntRange(1), metavar="N")
@option("--workers", "Number of writing processes.", click.IntRange(1), 1, metavar="N")
@option("--after", "An earlier export: write only what changed since.", FOLDER, metavar="FOLDER")
@place_option
def parquet(place: Place, folder: Path, texts: bool, parts: int | None, workers: int, after: Path | None) -> None:
    """Everything as a FOLDER of Parquet tables for engines, URLs as numbers.

    For DuckDB, pandas, Spark and `periplus` itself; docs/parquet.md describes the tables. Needs pyarrow: pip
    install 'periplus[parquet]'. Killed, the same command goes on with the parts that are missing. With --after URLs
    keep their numbers, unchanged parts are links to files of the earlier export, and new URLs get parts of their own.

    \b
    periplus export parquet graph -c example.org.periplus
    periplus export parquet web -c 'postgresql://me@db/crawls?collection=web' --parts 64 --workers 8
    duckdb -c "SELECT count(*) FROM 'graph/links/*.parquet'"
    """
    from periplus.cli.progress import Watch
    from periplus_spark.datasets import ExportParts, export_dataset

    watch = Watch()
    done = export_dataset(
        place,
        folder,
        time.time(),
        with_texts=texts,
        parts=ExportParts(parts or 0, workers, after),
        watch=lambda table, rows: watch(f"Writing {table}", rows, 0),
    )
    counts = ", ".join(f"{note.name} {number(note.rows)}" for note in done.tables)
    moments = done.inputs["moments"]
    went_on = f"; read at {len(moments)} moments" if isinstance(moments, list) and len(moments) > 1 else ""
    click.echo(f"Written to {folder}: {counts}{went_on}", err=True)


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@option("--texts", "Also the pages' texts, now and in later snapshots.", bool)
@option("--workers", "Number of writing processes.", click.IntRange(1), 1, metavar="N")
@place_option
def snapshot(place: Place, folder: Path | None, texts: bool, workers: int) -> None:
    """Write a snapshot of a collection for `analyse` and `sql --snapshot`: Parquet tables that all its readers share.

    FOLDER is noted in the collection, so that it is named once. A later snapshot writes only the parts that changed and
    links the others to those of the one before; older snapshots can be deleted. Killed, the same command goes on.
    Results of `analyse` are beside the snapshot, where others with the same parameters find them.

    \b
    periplus snapshot /shared/web -c 'postgresql://me@db/crawls?collection=web' --texts --workers 4
    periplus snapshot -c 'postgresql://me@db/crawls?collection=web'             what changed since
    periplus analyse 'postgresql://me@db/crawls?collection=web' ranks near
    periplus sql --snapshot -c 'postgresql://me@db/crawls?collection=web' "SELECT state, count(*) FROM urls GROUP BY 1"
    """
    from periplus.cli.progress import Watch
    from periplus_spark.snapshots import find_snapshot, write_snapshot

    watch = Watch()
    write_snapshot(
        place,
        folder,
        time.time(),
        with_texts=texts,
        workers=workers,
        watch=lambda table, rows: watch(f"Writing {table}", rows, 0),
    )
    click.echo(freshness(find_snapshot(place)), err=True)


def freshness(newest: Snapshot) -> str:
    """How old a snapshot is."""
    newer = f"the collection has {count_of(newest.newer, 'newer page')}" if newest.newer else "nothing is newer"
    deleted = "; URLs were deleted since: write one into another folder" if newest.has_deleted else ""
    return f"Snapshot {newest.folder} of {utc(newest.made)}, change {number(newest.fetched)}: {newer}{deleted}."


def _dataset_at(name: str) -> Path:
    """A folder of tables, or that of the newest snapshot of a collection."""
    from periplus.api.homes import collections_at, place_at

    place = place_at(name)
    if isinstance(place, Path) and place not in collections_at([place], Path()).values():
        return place
    from periplus_spark.snapshots import find_snapshot

    newest = find_snapshot(place)
    click.echo(freshness(newest), err=True)
    return newest.folder


@contextlib.contextmanager
def asked_snapshot(place: Place, question: str, limit_s: float, most: int) -> Iterator[Answer]:
    """Runs a query over the snapshot of a collection, and prints how old it is. Raises as `snapshots.ask_snapshot`."""
    from periplus_spark.snapshots import ask_snapshot, find_snapshot

    newest = find_snapshot(place)
    click.echo(freshness(newest), err=True)
    with ask_snapshot(newest, question, limit_s, most) as answer:
        yield answer


def computed_lines(engine: str, why: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line per stage. rows: fields of `StageResult`, with its folder as text."""
    yield f"Engine {engine}: {why}."
    yield from align(
        [
            (
                f"  {row['stage']}",
                f"there already, by {row['engine']}" if row["was_there"] else f"{row['took_s']:.1f} s",
                ", ".join(f"{name} {number(count)}" for name, count in row["rows"].items()),
                str(row["folder"]),
            )
            for row in rows
        ],
        {1},
    )
    made = sum(not row["was_there"] for row in rows)
    yield f"{count_of(made, 'stage')} computed, {number(len(rows) - made)} there already."
