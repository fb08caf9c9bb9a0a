"""`periplus map`, `report` and `diff`: the structure of a site, one page with what was found, and what changed."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import (
    FILE,
    PATH,
    PLACE,
    collection_option,
    collection_place,
    columns_of,
    draws_boxes,
    open_output,
    opened_bytes,
    opened_collection,
    option,
    output_option,
    place_option,
    site_option,
)
from periplus.errors import UsageError
from periplus.urls.folders import as_file_links
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.api.site import Site


# `periplus map`: the structure of a crawled site, as a tree to read or a file for programs.

FORMATS = ("text", "json", "xml", "xhtml", "pdf", "svg", "gexf", "graphml", "net", "sitemap")
MEASURES = ("rank", "size", "pages")  # of `present.charts`, the usual one first
COLOURS = ("folder", "segment")  # the same
CHART_NODES = 2_000  # of a chart; what is smaller than a pixel is not drawn anyway


@click.command("map")
@place_option
@option(
    "--site",
    "The site, if the collection has several: `example.org`, `localhost:8000`.",
    str,
    "",
    metavar="KEY",
)
@option("-f --format", "Text, or a file format; see above.", FORMATS, "text")
@option("-o --output", "The file to write instead of stdout; for sitemap, a folder.", PATH)
@option(
    "--max-nodes",
    "Pages named in text (60) and svg (2000); the rest is counted at its branch.",
    click.IntRange(1),
)
@option("--max-depth", "Last depth shown. Default: all; during a crawl the last complete depth.", click.IntRange(0))
@option("--scale", "Ranks that sum to 1 (the default), or PR >= 1-k as published.", ("normalised", "published"))
@option("--rounds", "Stop PageRank after this number of rounds, not at convergence.", click.IntRange(0, 1000))
@option(
    "--damping",
    "Probability of following a link (damping factor).",
    click.FloatRange(0, 1, min_open=True, max_open=True),
    0.85,
)
@option("--values", "Values of each page in json, xml, xhtml and pdf.", str, "", metavar="A,B,...")
@option("--by", "Meaning of heights in svg.", MEASURES, MEASURES[0])
@option("--colour", "Meaning of colours in svg: folders, or segments of periplus.toml.", COLOURS, COLOURS[0])
@option("--no-run", "Leave out the run, its settings and the time, so that equal sites give equal files.", bool)
def site_map(place: Place, format: str, output: Path | None, max_depth: int | None, **flags: Any) -> None:
    """Show the structure of a crawled site as a tree.

    The parent of a page is a page one click nearer to the home page; of several, the page with the greatest rank. Works
    during a crawl, too. The score is the rank as 0 to 100, on a logarithmic scale.

    \b
    text     a tree, folded to --max-nodes
    json xml the whole map for programs; xml is valid against present/map.xsd
    xhtml    one page for a browser, up to 50,000 pages
    pdf      for paper, up to 10,000 pages
    svg      an icicle: heights by --by, a column for each depth
    gexf graphml net      the graph of links, for Gephi, networkx, igraph, yEd, Pajek
    sitemap  sitemap.xml of the pages worth finding, into the folder of -o

    For a collection in PostgreSQL, the sizes of images and scripts found by a check are missing.
    """
    from periplus.present.map_files import sort_values

    values = tuple(part.strip() for part in flags["values"].split(",") if part.strip())
    sort_values(values)
    _refuse_terminal(format, output)
    if format == "sitemap":
        _write_sitemaps(place, output, flags["site"])
        return
    site = _make_site(place, flags)
    site = site.without_run() if flags["no_run"] else site
    if format == "text":
        _write_text(site, output, flags["max_nodes"] or 60, max_depth)
    elif format in ("xhtml", "pdf"):
        page = io.BytesIO()
        (site.write_xhtml if format == "xhtml" else site.write_pdf)(page, values=values, max_depth=max_depth)
        written = page.getvalue()
        if format == "xhtml" and (folders := site.folders()):
            written = as_file_links(folders, written.decode()).encode()
        with opened_bytes(output) as file:
            file.write(written)
    else:
        writers: dict[str, Callable[..., None]] = {
            "json": site.write_json,
            "xml": site.write_xml,
            "svg": site.write_svg,
        }
        options: dict[str, Any] = {"values": values, "max_depth": max_depth}
        if format == "svg":
            options = {
                "by": flags["by"],
                "colour": flags["colour"],
                "max_nodes": flags["max_nodes"] or CHART_NODES,
                "max_depth": max_depth,
            }
        elif format not in writers:
            writers, options = {format: site.write_graph}, {"format": format}
        with open_output(output, exact=True) as out:
            writers[format](out, **options)


def _make_site(place: Place, flags: dict[str, Any]) -> Site:
    from periplus.api.facts import RankOrder

    scale = flags["scale"] or ("normalised" if flags["rounds"] is None else "published")
    if scale == "normalised" and flags["rounds"] is not None:
        raise UsageError("--rounds counts on the published scale: leave out --scale, or use --scale published")
    order = RankOrder(scale, flags["damping"], flags["rounds"])
    with opened_collection(place) as collection:
        return collection.map(flags["site"], scale=order.scale, damping=order.damping, rounds=order.rounds)


def _write_sitemaps(place: Place, output: Path | None, site: str) -> None:
    assert output is not None  # _refuse_terminal
    with opened_collection(place) as collection:
        for path in collection.sitemaps(output, site):
            click.echo(path)


def _refuse_terminal(format: str, output: Path | None) -> None:
    """Before anything is computed."""
    if format == "sitemap":
        if output is None:
            raise UsageError("a sitemap may have several files: name their folder, as in -o sitemaps")
        if output.exists() and not output.is_dir():
            raise UsageError(f"{output} is a file; a sitemap may be several: name a folder")
    elif output is not None and output.is_dir():
        raise UsageError(f"{output} is a folder: name a file in it")
    elif format == "pdf" and output is None and sys.stdout.isatty():
        raise UsageError("a PDF cannot be shown on a terminal: name a file, as in -o map.pdf")


def _write_text(site: Site, output: Path | None, max_nodes: int, max_depth: int | None) -> None:
    with open_output(output) as out:
        plain = not draws_boxes(out)
        for line in site.text(width=columns_of(out), max_nodes=max_nodes, max_depth=max_depth, ascii_only=plain):
            out.write(line + "\n")


# `periplus report`: one HTML page with what was found.


@click.command()
@collection_option
@site_option
@option(
    "-o --output",
    "The file to write. Default report.html in the collection's folder; for a database, in the current folder.",
    FILE,
)
@option("--near/--no-near", "Compare texts for near duplicates; default: up to 20,000 pages.", bool)
def report(collection: Place | None, site: str, output: Path | None, near: bool | None) -> None:
    """Write a report as one page. For several sites it has sums, the worst sites and a row a site; --site chooses one.

    A self-contained HTML file: what to repair first, every finding with its pages, the map, broken links, redirects,
    duplicates, sizes, depth, links to other sites. Long tables can be paged, sorted and filtered. -o NAME.pdf writes a
    PDF for paper and mail, with the first causes of each kind. Overwrites an earlier report.
    """
    from periplus.api.collection import REPORT_FILE

    output = output or (Path(REPORT_FILE) if isinstance(collection, str) else None)
    with opened_collection(collection) as opened:
        try:
            path = opened.report(output, site, near=near)
        except OSError as error:
            raise UsageError(
                f"the report cannot be written to {error.filename}: {error.strerror}. Name another place with -o."
            ) from None
    click.echo(path)


# `periplus diff`: what changed between two runs.

DIFFERENT = 5  # with --exit-code: something differs


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN RUN]")
@collection_option
@option("--other", "The collection of the second run.", PLACE)
@site_option
@option("-f --format", "JSON has complete lists.", ("text", "json"), "text")
@output_option
@option("--links", "List each added and removed link, not only their number a page.", bool)
@option("--most", "Entries of each list in the text; -1: all.", click.IntRange(-1), 20)
@option("--exit-code", f"End with {DIFFERENT} when anything differs.", bool)
def diff(
    runs: tuple[str, ...], collection: Place | None, other: Place | None, format: str, output: Path | None, **flags: Any
) -> None:
    """Compare two runs: pages, links, the map, issues. Differences are listed site by site.

    A run is named by its number, or as last, last-1 and so on; by default the last two are compared, with --other the
    last of each collection. `periplus status` lists the runs. Compares only issues that follow from the pages' own
    fields and links.
    """
    from periplus.api.comparison import compare_sites
    from periplus.present.diff import diff_lines, sites_lines, write_diff_json

    if len(runs) not in (0, 2):
        raise UsageError("name two runs, or none for the last two: periplus diff last-1 last")
    place = collection_place(collection)
    before, after = runs or (("last", "last") if other else ("last-1", "last"))
    other_place = collection_place(other) if other else None
    sites = list(compare_sites(place, before, after, other=other_place, site=flags["site"]))
    comparison, alone = sites[0][1], len(sites) == 1
    shown = {"most": flags["most"], "links": flags["links"]}
    with open_output(output, exact=format != "text") as out:
        if format == "json":
            write_diff_json(sites, out)
        else:
            lines = diff_lines(comparison, **shown) if alone else sites_lines(sites, **shown)
            out.writelines(line + "\n" for line in lines)
    if flags["exit_code"] and not all(changes.is_empty for _, changes in sites):
        sys.exit(DIFFERENT)
