"""`periplus export` and `periplus sql`: whole tables as files, the pages as an archive,
and answers to questions in SQL.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from periplus.cli.options import (
    WholeNumber,
    collection_option,
    collection_place,
    format_option,
    open_output,
    option,
    options,
    output_option,
    place_option,
    segment_option,
)
from periplus.errors import UsageError
from periplus.features import service
from periplus.model.tables import EXPORTS
from periplus.present.tables import FORMATS, write_table
from periplus.present.writers import WRITERS, find_writer, writers
from periplus.values import Place

# `periplus import`: a collection of an archive, without fetching.

FORMAT_SENTENCE = (
    f"{', '.join(WRITERS)}, or one of an installed package; by default as the output's name ends, else csv."
)
TIME_LIMIT_S = 10.0  # a question of a person at a terminal; a count over ten million links takes some 3 s


@click.group("import")
def imports() -> None:
    """Make a collection from a web archive; nothing is fetched."""


# `periplus export`: whole tables as files, and the pages as an archive.


@click.group()
def export() -> None:
    """Write tables for other programs, or the pages as a WARC or WACZ archive.

    docs/exports.md describes every column. Tables are streamed: a million links need no more memory than a thousand.
    """


def _table_command(name: str) -> click.Command:
    def write(place: Place, format: str | None, output: Path | None, **flags: Any) -> None:
        export_table(
            place,
            name,
            format or _format_of(output),
            output,
            ranks=not flags.get("no_rank", False),
            segment=flags["segment"],
        )

    add = options(
        place_option,
        output_option,
        *[option("--no-rank", "Without final_url, inlinks, outlinks, rank and score: faster.", bool)]
        * (name == "pages"),
        segment_option,
        option("-f --format", FORMAT_SENTENCE, metavar="FORMAT"),
    )
    return click.command(name, help=EXPORTS[name].sentence)(add(write))


def _format_of(output: Path | None) -> str:
    """Raises UsageError for an ending that no format has."""
    ending = output.suffix.removeprefix(".").lower() if output else ""
    if ending and ending not in writers():
        raise UsageError(f"no format is called {ending!r}: name one with -f ({', '.join(writers())})")
    return ending or "csv"


def export_table(place: Place, name: str, format: str, output: Path | None, *, ranks: bool, segment: str = "") -> None:
    """Writes one table of a collection in a folder, or at an address, to a file or, as text, to stdout.

    Raises UsageError.
    """
    from periplus.api.exporting import export_file, export_rows

    if output is not None:
        note = export_file(place, name, output, format=format, ranks=ranks, segment=segment)
        click.echo(f"Written to {': '.join(filter(None, [str(output), note]))}", err=True)
        return
    find_writer(format)
    if format not in FORMATS:
        raise UsageError(f"a {format} file needs a name: -o {name}.{format}")
    with (
        export_rows(place, name, ranks=ranks, segment=segment) as (table, rows),
        open_output(output, exact=True) as out,
    ):
        write_table(table.names, rows, format, out)


for _name in EXPORTS:
    export.add_command(_table_command(_name))


# `periplus sql`: one question to a collection, which is only read, with a time limit.


@click.command()
@click.argument("question", metavar="SELECT...")
@format_option(FORMATS)
@option("-n --limit", "Most rows.", WholeNumber())
@option("--time-limit", "Time limit of the query; 0: none.", click.FloatRange(0), TIME_LIMIT_S, metavar="SECONDS")
@option("--snapshot", "Ask the tables of docs/parquet.md in its snapshot, by DuckDB; for large collections.", bool)
@output_option
@collection_option
def sql(
    question: str, collection: Place | None, format: str, limit: int | None, output: Path | None, **flags: Any
) -> None:
    """Ask a collection a question in SQL.

    The collection is opened read-only. docs/sql.md describes the views urls, pages, links, redirects, visits, hosts,
    sites and runs. Any program that reads SQLite, for example Datasette or DuckDB, can open the file collection.db. For
    a collection in a database the statement is PostgreSQL's. With --snapshot other tables are asked, as
    `periplus snapshot` wrote them, and results of `periplus analyse` as result_ANALYSIS; nothing else is read of the
    collection, which may be a large one in a database.

    \b
    periplus sql "SELECT reason, count(*) FROM urls GROUP BY reason"
    periplus sql "SELECT target, count(*) n FROM links WHERE target_status = 404 GROUP BY 1 ORDER BY n DESC" -n 20
    """
    from periplus.api.exporting import run_query

    ask: Any = service("snapshot query") if flags["snapshot"] else run_query
    with (
        ask(collection_place(collection), question, flags["time_limit"], -1 if limit is None else limit) as answer,
        open_output(output, exact=format != "table") as out,
    ):
        write_table(answer.columns, answer.rows, format, out)
