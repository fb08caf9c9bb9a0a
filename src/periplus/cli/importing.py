"""`periplus import`: a collection of an archive, without fetching."""

from __future__ import annotations

import time
from pathlib import Path

import click

from periplus.cli.options import SUFFIX, collection_option, found_place, store_option
from periplus.errors import StoreError
from periplus.present.wording import count_of
from periplus.settings import Settings


@click.group("import")
def imports() -> None:
    """Make a collection of what was archived, or bring back what engines computed; nothing is fetched."""


@imports.command("warc")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=None, help=f"The new collection. By default SITE{SUFFIX} here.")
@click.option("--start", "starts", multiple=True, metavar="URL", help="Where the site begins. By default as the archive says, else its first page.")
@click.option("--scope", type=click.Choice(["site", "domain", "prefix", "any"]), default=None, help="What belongs to the site; see `periplus settings`.")
def warc(files: tuple[Path, ...], output: Path | None, starts: tuple[str, ...], scope: str | None) -> None:
    """Make a collection of WARC files (1.0 and 1.1; gzip, zstd or plain).

    Every answer is read as if it had just been fetched, so that maps, reports and exports work. What pages link to and the archive
    does not hold is registered as not-in-archive. A file that is cut off gives what comes before.
    """
    from periplus.api.importing import ImportOrder, import_archives, whole
    from periplus.settings import settings_from
    from periplus.urls.canonical import canonical
    from periplus.urls.scope import site_key

    given = tuple(canonical(text if "://" in text else f"https://{text}") for text in starts)
    settings: Settings | None = settings_from({"scope": scope}) if scope else None
    order = whole(ImportOrder(output or Path(), files, given, settings))
    if output is None:
        order = ImportOrder(Path(site_key(order.starts[0]).replace(":", "-").strip("[]") + SUFFIX), files, order.starts, order.settings)
    done = import_archives(order)
    for damage in done.damages:
        click.echo(f"periplus: {damage}", err=True)
    click.echo(f"{order.folder}: {count_of(done.answers, 'answer')} from {count_of(done.records, 'record')}, {done.failures} without an answer", err=True)
    if done.left_out:
        click.echo(f"Left out: {count_of(done.left_out, 'record')} without a usable answer, URL or date", err=True)
    if done.state == "failed":
        raise StoreError(done.note)


@imports.command("results")
@click.argument("dataset", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("-r", "--results", type=click.Path(path_type=Path, file_okay=False), default=None, help="Where they are; by default DATASET.results.")
@collection_option
@store_option
def results(collection: Path | None, store: str, dataset: Path, results: Path | None) -> None:
    """Load what `periplus analyse DATASET` computed into the collection, as tables for `periplus sql`; into a database for psql.

    Tables are named result_ANALYSIS; result_url leads from their numbers to the ids of URLs, result_site to sites. All of them enter
    in one transaction, in place of earlier ones. A dataset of another collection is refused.

    \b
    periplus import results site.dataset -c example.org.periplus
    periplus import results web.dataset --store 'postgresql://me@db/crawls?collection=web'
    periplus sql "SELECT u.url, r.rank FROM result_ranks r JOIN result_url n ON n.url = r.url JOIN urls u ON u.id = n.id ORDER BY 2 DESC LIMIT 9"
    """
    from periplus.api.computed import load_results
    from periplus.cli.watching import Watch

    watch = Watch()
    place = results or dataset.with_name(dataset.name + ".results")
    rows = load_results(found_place(collection, store), place, dataset, time.time(), lambda table: watch(f"Loading {table}", 0, 0))
    click.echo("Loaded: " + ", ".join(f"{name} {count:,}" for name, count in rows.items()), err=True)
