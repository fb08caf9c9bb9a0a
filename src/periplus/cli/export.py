"""`periplus export` and `periplus sql`: whole tables as files, the pages as an archive,
and answers to questions in SQL.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import (
    FILE,
    WholeNumber,
    choose_parts,
    collection_folder,
    collection_option,
    format_option,
    open_output,
    option,
    options,
    output_option,
    parts_options,
    place_option,
    segment_option,
)
from periplus.errors import UsageError
from periplus.model.tables import EXPORTS
from periplus.present.tables import FORMATS, write_table
from periplus.present.wording import count_of, number
from periplus.present.writers import WRITERS, find_writer, writers
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.api.texts import TextExport

# `periplus export`: whole tables as files, and the pages as an archive.


@click.group()
def export() -> None:
    """Write tables for other programs, or the pages as a WARC or WACZ archive.

    docs/exports.md describes every column. Tables are streamed: a million links need no more memory than a thousand.
    For a collection in PostgreSQL, redirects, issues, and pages without --no-rank are read from its local copy:
    docs/postgresql.md.
    """


_FORMAT_SENTENCE = (
    f"{', '.join(WRITERS)}, or one of an installed package; by default as the output's name ends, else csv."
)


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
        option("-f --format", _FORMAT_SENTENCE, metavar="FORMAT"),
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
    with export_rows(place, name, ranks=ranks, segment=segment) as exported, open_output(output, exact=True) as out:
        write_table(exported.table.names, exported.rows, format, out)


@export.command()
@option("-o --output", "By default the collection's name with .warc.gz, here.", FILE)
@option("--cdxj", "Write an index beside it, for pywb: the same name with .cdxj.", bool)
@option("--file-bytes", "Start a new file at this size; 0: never.", click.IntRange(0), 1_000_000_000)
@option("--with-xml", "Add a conversion record to each page: the page as canonical XML.", bool)
@place_option
def warc(place: Place, output: Path | None, cdxj: bool, file_bytes: int, with_xml: bool) -> None:
    """All answers, as WARC 1.1: one gzip member a record.

    Bodies are written decompressed; header fields about their coding are renamed to X-Crawler-...; equal bodies are
    revisit records.
    """
    from periplus.api.archives import export_warc
    from periplus.api.homes import name_of

    path = output or Path(name_of(place).removesuffix(".periplus") + ".warc.gz")
    index = path.with_name(path.name.removesuffix(".gz").removesuffix(".warc") + ".cdxj") if cdxj else None
    folder = collection_folder(place)
    done = export_warc(folder, path, file_bytes=file_bytes, index=index, with_xml=with_xml)
    counts = (
        f"{count_of(done.responses, 'response')}, {done.revisits} repeated, {done.failures} without an answer, "
        f"{number(done.size_bytes)} bytes"
    )
    counts += f", {count_of(done.conversions, 'page')} as XML" if with_xml else ""
    click.echo(f"Written to {', '.join(map(str, done.files))}: {counts}", err=True)


@export.command()
@option("-o --output", "By default the collection's name with .wacz, here.", FILE)
@place_option
def wacz(place: Place, output: Path | None) -> None:
    """All answers as one WACZ 1.1.1 file: the WARC, its index, and the pages with their texts.

    ReplayWeb.page and pywb show the file; its manifest has a digest of each part. Its records are the same as in
    `periplus export warc`.
    """
    from periplus.api.archives import export_wacz
    from periplus.api.homes import name_of

    path = output or Path(name_of(place).removesuffix(".periplus") + ".wacz")
    folder = collection_folder(place)
    done = export_wacz(folder, path, time.time())
    counts = f"{count_of(done.responses, 'response')}, {done.revisits} repeated, {number(done.size_bytes)} bytes"
    click.echo(f"Written to {path}: {counts}", err=True)


@export.command()
@click.argument("target", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False))
@option("--no-scripts", "Remove scripts: elements, attributes, javascript: links and files.", bool)
@place_option
def site(place: Place, target: Path, no_scripts: bool) -> None:
    """A copy in a FOLDER that any browser reads without a server.

    Links, images, styles and scripts point to the copied files; file names are valid on every file system. A link to
    something that was not kept keeps its web address, and not-kept.html lists it. A Content-Security-Policy in each
    page blocks its scripts from the network; scripts are removed from SVG and XML.

    \b
    periplus export site copy -c example.org.periplus --no-scripts
    periplus check ./copy
    """
    from periplus.api.site_copy import export_site
    from periplus.cli.progress import Watch

    watch = Watch()
    folder = collection_folder(place)
    done = export_site(
        folder, target, lambda files, count: watch("Writing files", files, count), scripts=not no_scripts
    )
    counts = f"{count_of(done.pages, 'page')}, {count_of(done.parts, 'part')}, {number(done.size_bytes)} bytes"
    click.echo(f"Written to {target}: {counts}", err=True)
    if done.not_kept:
        count = count_of(done.not_kept, "address", "addresses")
        click.echo(f"Not in it: {count} that its pages lead to, listed in {target / 'not-kept.html'}", err=True)
    if done.with_scripts:
        count = count_of(done.with_scripts, "page")
        click.echo(f"Warning: {count} of it may run scripts of the site; --no-scripts leaves them out", err=True)


@export.command()
@click.argument("target", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False))
@parts_options
@place_option
def markdown(place: Place, target: Path, parts: str, whole: bool) -> None:
    """The pages as a FOLDER of Markdown files, their facts in front matter.

    Of pages with the same text only one is written. File names are valid on every file system.
    """
    from periplus.api.texts import export_markdown
    from periplus.cli.progress import Watch

    watch = Watch()
    done = export_markdown(
        place,
        target,
        parts=choose_parts(parts, whole),
        watch=lambda pages, count: watch("Writing pages", pages, count),
    )
    _say_texts(target, done)


@export.command()
@click.argument("target", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False))
@place_option
def llms(place: Place, target: Path) -> None:
    """llms.txt and llms-full.txt of the collection, in a FOLDER.

    The first lists the pages by section, the second holds their contents as Markdown (llmstxt.org).
    """
    from periplus.api.texts import export_llms
    from periplus.cli.progress import Watch

    watch = Watch()
    _say_texts(target, export_llms(place, target, watch=lambda pages, count: watch("Writing pages", pages, count)))


@export.command("chunks")
@option("-o --output", "By default the collection's name with .chunks.jsonl, here.", FILE)
@option("-f --format", _FORMAT_SENTENCE.replace("else csv", "else jsonl"), str, "", metavar="FORMAT")
@option("--words", "Most words in a chunk.", click.IntRange(20, 100_000), 300)
@parts_options
@place_option
def chunks_command(place: Place, output: Path | None, format: str, words: int, parts: str, whole: bool) -> None:
    """The pages in chunks by their headings, for indexes of vectors and language models.

    A chunk belongs to one section; a sentence, code block, list item or row is split only if it alone is too long. Each
    chunk has an id, its page's URL and title, the headings above it and its position in the page.

    \b
    periplus export chunks -o chunks.parquet --words 200
    """
    from periplus.api.homes import name_of
    from periplus.api.texts import export_chunks
    from periplus.cli.progress import Watch

    watch = Watch()
    name = name_of(place).removesuffix(".periplus")
    path = output or Path(f"{name}.chunks.{format or 'jsonl'}")
    done = export_chunks(
        place,
        path,
        format=format,
        words=words,
        parts=choose_parts(parts, whole),
        watch=lambda pages, count: watch("Cutting pages", pages, count),
    )
    _say_texts(path, done)


def _say_texts(target: Path, done: TextExport) -> None:
    counts = f"{count_of(done.pages, 'page')}, {number(done.size_bytes)} bytes"
    counts += f"; {count_of(done.same, 'page')} with the text of another left out" if done.same else ""
    click.echo(f"Written to {target}: {counts}", err=True)


@export.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@option("--texts", "Also export the pages' texts, with marks of content.", bool)
@option("--parts", "Files of each table; default: one for each million URLs.", click.IntRange(1), metavar="N")
@option("--workers", "Number of writing processes.", click.IntRange(1), 1, metavar="N")
@place_option
def parquet(place: Place, folder: Path, texts: bool, parts: int | None, workers: int) -> None:
    """Everything as a FOLDER of Parquet tables for engines, URLs as numbers.

    For DuckDB, pandas, Spark and `periplus` itself; docs/parquet.md describes the tables. Needs pyarrow: pip
    install 'periplus[parquet]'. Killed, the same command goes on with the parts that are missing.

    \b
    periplus export parquet graph -c example.org.periplus
    periplus export parquet web -c 'postgresql://me@db/crawls?collection=web' --parts 64 --workers 8
    duckdb -c "SELECT count(*) FROM 'graph/links/*.parquet'"
    """
    from periplus.api.datasets import export_dataset
    from periplus.cli.progress import Watch

    watch = Watch()
    done = export_dataset(
        place,
        folder,
        time.time(),
        with_texts=texts,
        parts=(parts or 0, workers),
        watch=lambda table, rows: watch(f"Writing {table}", rows, 0),
    )
    counts = ", ".join(f"{note.name} {number(note.rows)}" for note in done.tables)
    moments = done.inputs["moments"]
    went_on = f"; read at {len(moments)} moments" if isinstance(moments, list) and len(moments) > 1 else ""
    click.echo(f"Written to {folder}: {counts}{went_on}", err=True)


for _name in EXPORTS:
    export.add_command(_table_command(_name))


# `periplus sql`: one question to a collection, which is only read, with a time limit.

TIME_LIMIT_S = 10.0  # a question of a person at a terminal; a count over ten million links takes some 3 s


@click.command()
@click.argument("question", metavar="SELECT...")
@format_option(FORMATS)
@option("-n --limit", "Most rows.", WholeNumber())
@option("--time-limit", "Time limit of the query; 0: none.", click.FloatRange(0), TIME_LIMIT_S, metavar="SECONDS")
@output_option
@collection_option
def sql(
    question: str, collection: Place | None, format: str, limit: int | None, time_limit: float, output: Path | None
) -> None:
    """Ask a collection a question in SQL.

    The collection is opened read-only. docs/sql.md describes the views urls, pages, links, redirects, visits, hosts,
    sites and runs. Any program that reads SQLite, for example Datasette or DuckDB, can open the file collection.db.

    \b
    periplus sql "SELECT reason, count(*) FROM urls GROUP BY reason"
    periplus sql "SELECT target, count(*) n FROM links WHERE target_status = 404 GROUP BY 1 ORDER BY n DESC" -n 20
    """
    from periplus.api.exporting import run_query

    with (
        run_query(collection_folder(collection), question, time_limit, -1 if limit is None else limit) as answer,
        open_output(output, exact=format != "table") as out,
    ):
        write_table(answer.columns, answer.rows, format, out)
