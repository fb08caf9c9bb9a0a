"""`periplus sql`: one question to a collection, which is only read, with a time limit."""

from __future__ import annotations

from pathlib import Path

import click

from periplus.cli.options import WholeNumber, collection_option, found_collection, opened, output_option
from periplus.present.tables import FORMATS, write_table

TIME_LIMIT_S = 10.0  # a question of a person at a terminal; a count over ten million links takes some 3 s


@click.command()
@click.argument("question", metavar="SELECT...")
@click.option("-f", "--format", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("-n", "--limit", type=WholeNumber(), default=None, help="At most so many rows.")
@click.option(
    "--time-limit", type=click.FloatRange(0), default=TIME_LIMIT_S, show_default=True, metavar="SECONDS", help="Longest time for the answer; 0: no limit."
)
@output_option
@collection_option
def sql(question: str, collection: Path | None, format: str, limit: int | None, time_limit: float, output: Path | None) -> None:
    """Ask a collection a question in SQL.

    It is only read. The views urls, pages, links, redirects, visits, hosts, sites and runs are described in docs/sql.md; the file
    collection.db may as well be opened with any program that reads SQLite, such as Datasette or DuckDB.

    \b
    periplus sql "SELECT reason, count(*) FROM urls GROUP BY reason"
    periplus sql "SELECT target_url, count(*) n FROM links WHERE target_status = 404 GROUP BY 1 ORDER BY n DESC" -n 20
    """
    from periplus.api.asking import asked

    with asked(found_collection(collection), question, time_limit, -1 if limit is None else limit) as answer, opened(output, exact=format != "table") as out:
        write_table(answer.columns, answer.rows, format, out)
