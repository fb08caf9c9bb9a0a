"""`periplus survey`: a campaign over many sites, its progress and its results."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import (
    LongCommand,
    WholeNumber,
    draws_boxes,
    format_option,
    open_output,
    option,
    options,
    output_option,
    place_flag,
    place_option,
    place_word,
    setting_options,
    settings_of,
    verbose_option,
)
from periplus.cli.progress import Display, troubles
from periplus.errors import UsageError
from periplus.model.job import JobProgress
from periplus.present.tables import FORMATS as ROW_FORMATS
from periplus.present.wording import count_of, duration
from periplus.values import Place
from periplus_studies.model import SURVEY_LINKS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from periplus_studies.api import RunProgress
    from periplus_studies.model import OutsideColumn, SurveyResults, Unit


# Results of a survey: its tables of links, its report, its drawings and files.

# of `report`
TABLES = (
    *("sites", "companions", "colinks", "suffixes", "connectivity", "interlinking", "records", "correlations"),
    *("changes", "linkchanges"),
)
# of `results.FORMATS`
_GRAPHS = "svg, gexf, graphml, net"
DRAWINGS = {
    "network": _GRAPHS, "targets": _GRAPHS, "colinks": _GRAPHS,
    "matrix": "csv, svg", "yield": "svg", "fragment": "xml, svg",
}  # fmt: skip
USUAL_FOLDER = Path("survey.periplus")
CHANGEABLE = (
    "rule",
    "within",
    "pages",
    "seed",
    "at_once",
    "least_pages",
    "read_companions",
)  # of a campaign, by `run` too
MOST_SITES = 15


@click.command()
@option("--kind", "Which of the three tables.", ("internal", "external", "bad"), "external")
@option("--site", "Only of this site.", str, "", metavar="NAME")
@option("--page", "Only on pages whose address contains or matches this.", str, "", metavar="TEXT|REGEX")
@option("--to target", "Only links to such URLs.", str, "", metavar="TEXT|REGEX")
@option("--anchor", "Only links with such words.", str, "", metavar="TEXT|REGEX")
@option("-n --limit", "At most so many rows.", WholeNumber())
@format_option(ROW_FORMATS)
@option("--delete", "Delete these links from the collection. Asks first.", bool)
@option("-y --yes", "Do not ask.", bool)
@output_option
@place_option
def links(place: Place, format: str, output: Path | None, limit: int | None, **flags: Any) -> None:
    """List, filter and delete the links that a survey collected.

    internal: depth and whether the target was processed; external: anchor and surroundings; bad: href values that are
    not URLs.
    """
    from periplus.api.homes import home_of
    from periplus.present.tables import write_table
    from periplus_studies import api as surveys

    sure, delete = flags.pop("yes"), flags.pop("delete")
    choice = surveys.LinkChoice(**flags, limit=-1 if limit is None else limit)
    if not delete:
        with open_output(output, exact=format != "table") as out:
            write_table(SURVEY_LINKS[choice.kind].names, surveys.links(place, choice), format, out)
        return
    many = sum(1 for _ in surveys.links(place, choice))
    if not many:
        click.echo("There are no such links", err=True)
    elif sure or click.confirm(
        f"Delete {count_of(many, choice.kind + ' link')} from {home_of(place)}? This cannot be undone.", err=True
    ):
        click.echo(f"Deleted {count_of(surveys.delete(place, choice), 'link')}", err=True)


# how is counted; another choice needs no new reading of the sites
_counting_options = options(
    option(
        "--global global_list",
        "File of global domains, one a line, instead of the built-in list.",
        click.File("r", encoding="utf-8"),
    ),
    option("--back-least", "Sites that a communicator links back to.", click.IntRange(1), 2),
    option("--strong-share", "The same as a share of the survey's sites.", click.FloatRange(0, 1), 0.05),
    option("--strong-least", "Sites of the survey that link to a strong companion.", click.IntRange(1), 3),
    option(
        "--before",
        "Collection of an earlier survey to compare with: sites and links that came or went, changes of rank.",
        click.Path(path_type=Path),
    ),
    option(
        "--with outside",
        "CSV with `site` and columns of numbers (a ranking, a size) to correlate the figures with.",
        click.File("r", encoding="utf-8"),
        many=True,
    ),
    option("--met-by", "How sites outside the survey are distinguished.", ("host", "domain"), "host"),
    option("--model", "Definition of a document.", ("page", "directory", "host", "site"), "page"),
)


@click.command()
@output_option
@_counting_options
@place_option
def report(place: Place, output: Path | None, **counting: Any) -> None:
    """Write one page: companion set with classes, indicators, matrix, drawings, completeness, and the method sheet."""
    from periplus_studies.results import write_survey

    results = _results(place, counting)
    with open_output(output, exact=True) as out:
        write_survey(results, "report", "html", out)


@click.command()
@click.argument("what", type=click.Choice(tuple(dict.fromkeys((*TABLES, *DRAWINGS)))))
@option(
    "-f --format",
    "Tables: csv, json, jsonl, table. " + "; ".join(f"{name}: {formats}" for name, formats in DRAWINGS.items()) + ".",
    str,
    "",
)
@output_option
@_counting_options
@place_option
def export(what: str, place: Place, format: str, output: Path | None, **counting: Any) -> None:
    """Write a table or a drawing of a survey for other programs.

    \b
    periplus survey export sites -o sites.csv
    periplus survey export network -o network.gexf   all sites; .graphml, .net (Pajek), .svg: a drawing of 200
    periplus survey export targets -o targets.net    the surveyed sites alone
    periplus survey export colinks -o colinks.svg    pairs of sites that the same sites link to
    periplus survey export fragment -f xml           the conceptual model of the web fragment
    periplus survey export correlations --with ranking.csv      rank correlations with a ranking or a size
    periplus survey export changes --before 2020.periplus       sites that came, went, rose or fell
    """
    from periplus.present.tables import write_table
    from periplus_studies.report import survey_table
    from periplus_studies.results import write_survey

    ending = output.suffix.removeprefix(".") if output else ""
    results = _results(place, counting)
    if what not in TABLES or (format or ending or "csv") in DRAWINGS.get(what, "").split(", "):
        with open_output(output, exact=True) as out:
            write_survey(results, what, format or ending or DRAWINGS[what].partition(",")[0], out)
        return
    format = format or (ending if ending in ROW_FORMATS else "csv")
    if format not in ROW_FORMATS:
        raise UsageError(f"tables are written as {', '.join(ROW_FORMATS)}, not as {format}")
    table, rows = survey_table(results, what)
    with open_output(output, exact=format != "table") as out:
        write_table(table.names, rows, format, out)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@_counting_options
@place_option
def paper(folder: Path, place: Place, **counting: Any) -> None:
    """Write all that a paper needs into FOLDER: tables, figures, networks, the method as text, and checksums.

    A collection that does not change gives the same bytes each time; `sha256sum -c SHA256SUMS` checks the files.
    """
    from periplus_studies.results import CHECKSUMS, write_paper

    checksum = write_paper(_results(place, counting), folder)
    click.echo(f"Written to {folder}; SHA-256 of {CHECKSUMS}: {checksum}", err=True)


@click.command()
@click.argument("sites", nargs=-1, required=True, metavar="SITE...")
@option("--status", "in: the site is surveyed too.", ("in", "out", "undecided", "discovered"), "undecided")
@option("--tag tags", "A tag; can be repeated.", many=True)
@option("--start", "Start page of an included site; default: its front page.", str, "")
@place_option
def mark(sites: tuple[str, ...], place: Place, status: str, tags: tuple[str, ...], start: str) -> None:
    """Note what you think of sites: with --status in they join the survey, with any other they leave it.

    A site is named by its address (example.org, example.org/~ann, *.example.org), or as the survey names it.

    \b
    periplus survey mark academy.example --status in
    periplus survey mark shop.example ads.example --status out --tag advertising
    """
    from periplus.acquire.clock import SystemClock
    from periplus_studies.api import decide
    from periplus_studies.model import SiteStatus

    if start and (len(sites) > 1 or status != "in"):
        raise UsageError("--start goes with --status in and one site")
    prefixes = decide(place, sites, SiteStatus(status), tags, start=start, now=SystemClock().now())
    click.echo(f"Marked {', '.join(prefixes)}: {status}" + (f" ({', '.join(tags)})" if tags else ""), err=True)


def _results(place: Place, counting: dict[str, Any]) -> SurveyResults:
    from periplus_studies.api import campaign_of
    from periplus_studies.model import GLOBAL_SITES, CompanionRules, DocumentModel
    from periplus_studies.results import SurveyOrder, survey_of
    from periplus_studies.units import UnitChoice

    campaign = campaign_of(place)
    listed = counting["global_list"]
    domains = (
        tuple(line.strip() for line in listed if line.strip() and not line.startswith("#")) if listed else GLOBAL_SITES
    )
    rules = CompanionRules(counting["strong_least"], counting["strong_share"], counting["back_least"], domains)
    order = SurveyOrder(
        campaign.title, DocumentModel(counting["model"]), campaign.item, rules, UnitChoice(counting["met_by"])
    )
    results = survey_of(place, campaign.units, order)
    columns = tuple(column for file in counting["outside"] for column in _outside(file, results))
    earlier = counting["before"]
    before = survey_of(earlier, campaign_of(earlier).units, order) if earlier else None
    return dataclasses.replace(results, outside=columns, earlier=before)


def _outside(file: Any, results: SurveyResults) -> tuple[OutsideColumn, ...]:
    """The columns of a file; what is not used of it is written to stderr."""
    from periplus_studies.statistics import outside_columns

    try:
        columns, sentences = outside_columns(file.read(), results.units[: results.chosen])
    except UsageError as error:
        raise UsageError(f"{file.name}: {error}") from None
    for sentence in sentences:
        click.echo(f"{file.name}: {sentence}", err=True)
    return columns


# `periplus survey`: a campaign over many sites that looks for the most new external links in a budget of pages.


@click.group()
def survey() -> None:
    """Crawl many sites with a budget of pages, where most new external links are found.

    \b
    periplus survey create -i sites.csv --pages 2000    sites with names, starts and prefixes
    periplus survey run                                 continue until the budget is spent; you can kill it at any time
    periplus survey status                              sites, yields, the curve, how complete it is
    periplus survey report -o survey.html               companion set, indicators, matrix, drawings, method sheet
    """


_campaign_options = options(
    option(
        "--pages",
        "Page budget of all runs together; 0: no limit (then --max-time is the budget).",
        click.IntRange(0),
    ),
    option("--rule", "Rule that chooses the next site: scout (ours), r1, r2:N, r3:M, raw-ucb, quantum:N."),
    option("--within", "Order of the pages of a site. Default: learned, up to 1,000 sites.", ("breadth", "learned")),
    option("--seed", "The same seed gives the same choices.", int),
    option(
        "--at-once",
        "Most pages in progress at once. With 1 (and --pages) each choice uses the result of the previous page.",
        click.IntRange(0),
    ),
    option("--least-pages", "Pages of each site fetched before the rule chooses.", click.IntRange(0)),
    option(
        "--read-companions",
        "Part of --pages kept for strong companions (outside sites that several sites of the survey link "
        "to), to find which of them link back.",
        click.IntRange(0),
    ),
)


def _list_option(command: Callable[..., Any]) -> Callable[..., Any]:
    text = (
        "Sites: CSV with start, name, short, prefixes, bundle, official (only start is needed), or an "
        "address a line; - for stdin."
    )
    return option("-i --input lists", text, click.File("r", encoding="utf-8"), many=True)(command)


@survey.command()
@click.argument("starts", nargs=-1, metavar="[ADDRESS]...")
@_list_option
@place_flag("-c --collection", f"The collection: a folder, or an address. [default: {USUAL_FOLDER}]", USUAL_FOLDER)
@option("--title", "Title of the report.", str, "")
@option("--item", "Items to find: external pages, hosts or domains.", ("page", "host", "domain"), "page")
@_campaign_options
def create(starts: tuple[str, ...], lists: tuple[Any, ...], collection: Place, **flags: Any) -> None:
    """Define the sites of a survey and its method.

    Several hosts are one site if the unit's prefixes include them (`example.org *.example.org example.net/~ann`);
    `www.` never makes a separate site.
    """
    from periplus.api.homes import home_of
    from periplus_studies.api import create as begin
    from periplus_studies.model import Campaign

    units = _units(starts, lists)
    begin(
        collection,
        dataclasses.replace(
            Campaign(flags["title"] or f"Survey of {count_of(len(units), 'site')}", units, item=flags["item"]),
            **_changes(flags),
        ),
    )
    click.echo(
        f"A survey of {count_of(len(units), 'site')} in {home_of(collection)} — next: "
        f"periplus survey run -c {place_word(collection)}",
        err=True,
    )


@survey.command()
@click.argument("starts", nargs=-1, metavar="[ADDRESS]...")
@_list_option
@option("--name", "Start page of the added site.", str, "")
@option("--short", "A short name, for drawings.", str, "")
@option("--prefix prefixes", "URLs that belong to it: example.org, example.org/~ann, *.example.org.", many=True)
@option("--bundle", "The organisation that it belongs to.", str, "")
@click.option("--official/--not-official", default=True, help="Whether it is the organisation's official site.")
@place_option
def add(starts: tuple[str, ...], lists: tuple[Any, ...], place: Place, **flags: Any) -> None:
    """Add sites; a run that is at work takes them up within a second."""
    from periplus_studies.api import add_sites
    from periplus_studies.units import unit_of

    described = any(flags[name] for name in ("name", "short", "prefixes", "bundle")) or not flags["official"]
    if described and (len(starts) != 1 or lists):
        raise UsageError(
            "--name, --short, --prefix, --bundle and --not-official describe one site: give "
            "one address, or a list with -i"
        )
    official, bundle = flags.pop("official"), flags.pop("bundle")
    units = (unit_of(starts[0], **flags, bundle=bundle, official=official),) if described else _units(starts, lists)
    campaign = add_sites(place, units)
    click.echo(f"Added {count_of(len(units), 'site')}; there are {len(campaign.units):,}", err=True)


@survey.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@place_option
def remove(names: tuple[str, ...], place: Place) -> None:
    """Remove sites, by name, short name or prefix. Fetched pages are kept; no more are fetched."""
    from periplus_studies.api import remove_sites

    campaign, gone = remove_sites(place, names)
    click.echo(f"Took out {', '.join(unit.name for unit in gone)}; there are {len(campaign.units):,}", err=True)


@survey.command(cls=LongCommand)
@_campaign_options
@option("-q --quiet", "No progress, only the result.", bool)
@verbose_option
@place_option
@setting_options
def run(place: Place, quiet: bool, verbose: int, **flags: Any) -> None:
    """Run a survey until its page or time budget is spent.

    You can kill it at any time: no link is lost, and the rule's state is restored. One request at a time to a host;
    robots.txt is obeyed. By default depth below the start is limited to 5 (--max-depth), and sitemaps are not read.
    """
    from periplus.cli.crawl import EXIT, EXIT_INTERRUPT, StopOnSignal, configure_logs, notice, say_end
    from periplus_studies.api import DEFAULTS, change
    from periplus_studies.api import run as go_on

    if flags["max_pages"] is not None:
        raise UsageError("a survey counts pages over all its runs: use --pages, not --max-pages")
    settings = settings_of(flags, Path() if isinstance(place, str) else place, DEFAULTS)
    if changes := _changes(flags):
        change(place, lambda before: dataclasses.replace(before, **changes))
    configure_logs(verbose)
    notice(settings)
    stopping = StopOnSignal()
    with campaign_display(lambda: stopping.asked, quiet=quiet) as watch:
        end = go_on(place, settings, watch)
    say_end(end)
    _show(place, sys.stderr)
    sys.exit(EXIT_INTERRUPT if stopping.asked else EXIT[end.state])


@survey.command()
@place_option
def stop(place: Place) -> None:
    """Ask the run that is at work, in another terminal or job, to stop."""
    from periplus_studies.api import campaign_of
    from periplus_studies.api import stop as ask

    campaign_of(place)
    ask(place)
    click.echo("Stopping; running requests are stored first", err=True)


@survey.command()
@option("-f --format", "JSON has the curves too.", ("text", "json"), "text")
@option("--json as_json", "The same as -f json.", bool)
@click.option("--most", type=click.IntRange(-1), default=-1, help="Sites that are shown, best first; -1: all.")
@output_option
@place_option
def status(place: Place, format: str, as_json: bool, most: int, output: Path | None) -> None:
    """Show the progress of a survey, also while it runs."""
    _show(place, output, most=most, as_json=as_json or format == "json")


def _show(place: Place, output: Any, *, most: int = -1, as_json: bool = False) -> None:
    from periplus_studies.api import standing_of
    from periplus_studies.harvest import standing_lines, write_standing_json

    standing = standing_of(place)
    if output is sys.stderr:
        for line in standing_lines(standing, most=20, boxes=draws_boxes(sys.stderr)):
            click.echo(line, err=True)
        return
    with open_output(output, exact=as_json) as out:
        if as_json:
            write_standing_json(standing, out)
        else:
            out.writelines(line + "\n" for line in standing_lines(standing, most=most, boxes=draws_boxes(out)))


def _units(starts: tuple[str, ...], lists: tuple[Any, ...]) -> tuple[Unit, ...]:
    from periplus_studies.units import unit_list, unit_of, without_repetitions

    named = (*(unit_of(start) for start in starts), *(unit for file in lists for unit in unit_list(file.read())))
    units, sentences = without_repetitions(named)
    for sentence in sentences:
        click.echo(sentence, err=True)
    if not units:
        raise UsageError("no site: give addresses, or a list of sites with -i")
    return units


def _changes(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: flags[name] for name in CHANGEABLE if flags.get(name) is not None}


for _command in (links, mark, report, export, paper):
    survey.add_command(_command)


@contextlib.contextmanager
def campaign_display(stopped: Callable[[], bool], *, quiet: bool) -> Iterator[Callable[[RunProgress], bool]]:
    """Watcher of a survey: shows its sites on a terminal, its harvest elsewhere, and returns whether the user stopped
    it.
    """
    from periplus_studies.harvest import completeness_text, standing_lines

    def watch(watched: RunProgress) -> bool:
        progress, counts = watched.progress, watched.progress.counts
        if progress.indexing is not None:
            display.show_indexing(progress.indexing, stopped=(is_stopped := stopped()))
            return is_stopped
        rate = counts.fetched / progress.elapsed_s if progress.elapsed_s else 0.0
        parts = [duration(progress.elapsed_s), f"{watched.pages:,} pages in all", f"{rate:.1f}/s"]
        head = " · ".join([*parts, *troubles(progress)])

        def line() -> str:
            harvest = watched.standing().harvest
            return (
                f"{head} · {harvest.total.found[-1]:,.0f} external {harvest.item}s, {harvest.recent:.2f} a page "
                f"lately; complete: {completeness_text(harvest)}"
            )

        def drawing() -> RenderableType:
            from rich.text import Text

            return Text("\n".join([head, "", *standing_lines(watched.standing(), most=MOST_SITES)]))

        job = JobProgress(counts.fetched, counts.fetched + counts.waiting, f"{rate:.1f} pages a second")
        display.show(job, line, drawing)
        return stopped()

    with Display(quiet=quiet) as display:
        yield watch
