"""`periplus delete`: lists what it will delete, asks, and deletes pages, a site, a run, or a whole collection."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.children import RunnerLink
from periplus.cli.crawl import EXIT_INTERRUPT, StopOnSignal
from periplus.cli.options import (
    WholeNumber,
    collection_option,
    collection_place,
    format_option,
    option,
    output_option,
    write_output,
)
from periplus.cli.progress import say
from periplus.errors import UsageError
from periplus.model.job import JobProgress
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.model.collection import Deletion, DeletionPlan


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@collection_option
@option("-i --input listed", "Pages to delete, one URL a line; - for stdin.", click.File("r", encoding="utf-8"))
@option("--site", "All of a site: its pages, requests and derived data.", str, "", metavar="SITE")
@option("--run run_id", "A run: its record, and the pages that no other run fetched.", WholeNumber(), 0, metavar="RUN")
@option("--keep-pages", "With --run: only the record; its pages stay.", bool)
@option(
    "--links-to/--keep-links-to links_to",
    "Delete also other pages' links to deleted pages.  [default: keep them]",
    bool,
    False,
)
@option(
    "--again",
    "Queue deleted URLs that other pages link to; otherwise they are fetched again only if a crawl names them.",
    bool,
)
@option(
    "--everything",
    "The whole collection with its folder or tables; NAME, of the folder or collection, confirms it.",
    str,
    "",
    metavar="NAME",
)
@option("--shrink", "Return the space to the disk: rewrites the file or the tables.", bool)
@option("-n --dry-run", "Only list what would be deleted.", bool)
@option("-y --yes", "Do not ask.", bool)
@format_option(("text", "json"))
@output_option
def delete(urls: tuple[str, ...], collection: Place | None, format: str, output: Path | None, **flags: Any) -> None:
    """Delete pages, a site, a run or a whole collection.

    Lists first what it will delete: pages, visits, links, bodies, texts, marks, entries of the search index, bytes.
    Deleted data is overwritten in the file. Nothing is deleted while a crawl is running. If it is interrupted, the same
    command does the rest.

    \b
    periplus delete https://example.org/private/a
    periplus pages --status 404 -f csv | tail -n +2 | cut -d, -f1 | periplus delete -i - --dry-run
    periplus delete --site ads.example.net --links-to
    periplus delete --run 3
    periplus delete --everything example.org.periplus -c example.org.periplus
    """
    from periplus.api import deleting
    from periplus.model.collection import Deletion
    from periplus.model.web import SiteKey

    place = collection_place(collection)
    if flags["everything"]:
        _remove(place, flags["everything"], yes=flags["yes"], dry_run=flags["dry_run"])
        return
    if flags["keep_pages"] and not flags["run_id"]:
        raise UsageError("--keep-pages goes with --run")
    pages = [line.strip().strip('"') for line in (*urls, *(flags["listed"] or ())) if line.strip()]
    site = SiteKey(flags["site"]) if flags["site"] else None
    deletion = Deletion(
        deleting.ids_of(place, pages),
        site,
        flags["run_id"],
        links_to=flags["links_to"],
        again=flags["again"],
        run_pages=not flags["keep_pages"],
    )
    plan = deleting.plan(place, deletion)
    values = {"request": _words(deletion), "plan": asdict(plan)}
    write_output(output, lines(plan, deletion), values if format == "json" else None)
    if flags["dry_run"] or plan.is_empty:
        return
    if not flags["yes"] and not _confirm():
        say("Nothing was deleted.")
        sys.exit(1)
    stopping, link = StopOnSignal(), RunnerLink()

    def watch(done: int, total: int) -> bool:
        link.tell(JobProgress(done, total, "deleting"))
        if done < total:
            say(f"{done:,} of {total:,} addresses deleted")
        return stopping.asked

    deleting.delete(place, deletion, watch, shrink=flags["shrink"])
    if stopping.asked:
        say("Stopped. The same command deletes the rest.")
        sys.exit(EXIT_INTERRUPT)
    say("Deleted.")


def _words(deletion: Deletion) -> dict[str, object]:
    return asdict(deletion) | {"pages": len(deletion.pages)}


def lines(plan: DeletionPlan, deletion: Deletion) -> Iterator[str]:
    """Lines of what will be deleted, without empty kinds."""
    from periplus.present.text import plan_lines

    if plan.is_empty:
        yield "There is nothing to delete."
        return
    yield "This goes:"
    goes, stays = plan_lines(plan, deletion)
    yield from (f"  {line}" for line in goes)
    if stays:
        yield "This stays:"
        yield from (f"  {line}" for line in stays)


def _confirm() -> bool:
    if not sys.stdin.isatty():
        raise UsageError(
            "no terminal to ask on: --yes deletes without asking, --dry-run only lists what would be deleted"
        )
    return click.confirm("Delete it?", err=True)


def _remove(place: Place, name: str, *, yes: bool, dry_run: bool) -> None:
    from periplus.api import deleting
    from periplus.api.functions import open_collection
    from periplus.present.wording import count_of, size

    if isinstance(place, str):
        with open_collection(place) as stored:
            status = stored.status()
        click.echo(f"All of {status.store} goes, with its jobs: {size(status.size_bytes)}")
    else:
        plan = deleting.folder_plan(place)
        click.echo(
            f"The whole folder {place} goes: {count_of(plan.files, 'file')}, "
            f"{size(plan.size_bytes)}: {', '.join(plan.names)}"
        )
    if dry_run:
        return
    if not yes and not _confirm():
        say("Nothing was deleted.")
        sys.exit(1)
    deleting.remove_collection(place, name)
    say("Deleted.")
