"""`periplus import warc`, and `periplus export` of pages as archives and as files."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from periplus.cli.options import FILE, option, place_flag, place_option
from periplus.errors import StoreError
from periplus.present.wording import count_of, number
from periplus.settings import SUFFIX, Settings
from periplus.values import Place


@click.command()
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
    from periplus.api.homes import name_of
    from periplus_archives.api import export_warc

    path = output or Path(name_of(place).removesuffix(".periplus") + ".warc.gz")
    index = path.with_name(path.name.removesuffix(".gz").removesuffix(".warc") + ".cdxj") if cdxj else None
    done = export_warc(place, path, file_bytes=file_bytes, index=index, with_xml=with_xml)
    counts = (
        f"{count_of(done.responses, 'response')}, {done.revisits} repeated, {done.failures} without an answer, "
        f"{number(done.size_bytes)} bytes"
    )
    counts += f", {count_of(done.conversions, 'page')} as XML" if with_xml else ""
    click.echo(f"Written to {', '.join(map(str, done.files))}: {counts}", err=True)


@click.command()
@option("-o --output", "By default the collection's name with .wacz, here.", FILE)
@place_option
def wacz(place: Place, output: Path | None) -> None:
    """All answers as one WACZ 1.1.1 file: the WARC, its index, and the pages with their texts.

    ReplayWeb.page and pywb show the file; its manifest has a digest of each part. Its records are the same as in
    `periplus export warc`.
    """
    from periplus.api.homes import name_of
    from periplus_archives.api import export_wacz

    path = output or Path(name_of(place).removesuffix(".periplus") + ".wacz")
    done = export_wacz(place, path, time.time())
    counts = f"{count_of(done.responses, 'response')}, {done.revisits} repeated, {number(done.size_bytes)} bytes"
    click.echo(f"Written to {path}: {counts}", err=True)


@click.command()
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
    from periplus.cli.progress import Watch
    from periplus_archives.site_copy import export_site

    watch = Watch()
    done = export_site(place, target, lambda files, count: watch("Writing files", files, count), scripts=not no_scripts)
    counts = f"{count_of(done.pages, 'page')}, {count_of(done.parts, 'part')}, {number(done.size_bytes)} bytes"
    click.echo(f"Written to {target}: {counts}", err=True)
    if done.not_kept:
        count = count_of(done.not_kept, "address", "addresses")
        click.echo(f"Not in it: {count} that its pages lead to, listed in {target / 'not-kept.html'}", err=True)
    if done.with_scripts:
        count = count_of(done.with_scripts, "page")
        click.echo(f"Warning: {count} of it may run scripts of the site; --no-scripts leaves them out", err=True)


@click.command("warc")
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
def import_warc(files: tuple[Path, ...], collection: Place | None, starts: tuple[str, ...], **flags: Any) -> None:
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
    from periplus.api.homes import database_at, home_of
    from periplus.settings import settings_from
    from periplus.urls.canonical import start_urls
    from periplus.urls.scope import site_name
    from periplus_archives.api import ImportTimes, import_archives, origin_of_archives
    from periplus_archives.replay import end_of

    settings: Settings | None = settings_from({"scope": flags["scope"]}) if flags["scope"] else None
    begin, settings = origin_of_archives(files, start_urls(starts), settings)
    settings = replace(settings, storage=replace(settings.storage, keep_parts=flags["keep_parts"]))
    times = ImportTimes(flags["gap"] * 86_400, end_of(flags["at"]))
    place = collection or Path(site_name(begin[0]) + SUFFIX)
    if isinstance(place, str):
        done = database_at(place).take_in(
            place, lambda draft: import_archives(draft, files, begin, settings, times=times)
        )
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
