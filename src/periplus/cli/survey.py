"""`periplus survey`: a campaign over many sites, how it stands while it runs, and what comes of it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import (
    SETTINGS_FILE,
    WholeNumber,
    collection_folder,
    collection_option,
    draws_boxes,
    opened,
    output_option,
    place_option,
    setting_options,
    store_option,
)
from periplus.errors import UsageError
from periplus.model.tables import SURVEY_LINKS
from periplus.present.tables import FORMATS as ROW_FORMATS
from periplus.present.wording import count_of

if TYPE_CHECKING:
    from periplus.model.survey import Unit
    from periplus.model.webometrics import SurveyResults
    from periplus.settings import Settings


# What comes of a survey: its tables of links, its report, its drawings and files.

# of present.survey_report
TABLES = ("sites", "companions", "colinks", "suffixes", "connectivity", "interlinking", "records")
# of api.webometrics.FORMATS
DRAWINGS = {"network": "svg, gexf", "matrix": "csv, svg", "yield": "svg", "fragment": "xml, json, svg"}


@click.command()
@click.option(
    "--kind",
    type=click.Choice(("internal", "external", "bad")),
    default="external",
    show_default=True,
    help="Which of the three tables.",
)
@click.option("--site", default="", metavar="NAME", help="Only of this site.")
@click.option("--page", default="", metavar="TEXT|REGEX", help="Only on pages whose address contains or matches this.")
@click.option("--to", "target", default="", metavar="TEXT|REGEX", help="Only to such addresses.")
@click.option("--anchor", default="", metavar="TEXT|REGEX", help="Only with such words in them.")
@click.option("-n", "--limit", type=WholeNumber(), default=None, help="At most so many rows.")
@click.option("-f", "--format", type=click.Choice(ROW_FORMATS), default="table", show_default=True)
@click.option("--delete", is_flag=True, help="Delete these links from the collection. Asks first.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@output_option
@collection_option
def links(collection: Path | None, format: str, output: Path | None, limit: int | None, **flags: Any) -> None:
    """List, filter and delete the links that a survey collected.

    internal: depth and whether the target was processed; external: anchor and surroundings; bad: what stood in
    an href and is no address.
    """
    from periplus.api import survey as surveys
    from periplus.present.tables import write_table

    folder = collection_folder(collection)
    sure, delete = flags.pop("yes"), flags.pop("delete")
    choice = surveys.LinkChoice(**flags, limit=-1 if limit is None else limit)
    if not delete:
        with opened(output, exact=format != "table") as out:
            write_table(SURVEY_LINKS[choice.kind].names, surveys.links(folder, choice), format, out)
        return
    many = sum(1 for _ in surveys.links(folder, choice))
    if not many:
        click.echo("There are no such links", err=True)
    elif sure or click.confirm(
        f"Delete {count_of(many, choice.kind + ' link')} from {folder}/? This cannot be undone.", err=True
    ):
        click.echo(f"Deleted {count_of(surveys.delete(folder, choice), 'link')}", err=True)


def _counting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How is counted; another choice needs no new reading of the sites."""
    for option in (
        click.option(
            "--model",
            type=click.Choice(("page", "directory", "host", "site")),
            default="page",
            show_default=True,
            help="What is one document.",
        ),
        click.option(
            "--met-by",
            type=click.Choice(("host", "domain")),
            default="host",
            show_default=True,
            help="How sites outside are told apart.",
        ),
        click.option(
            "--strong-least",
            type=click.IntRange(1),
            default=3,
            show_default=True,
            help="Sites of the survey that link to a strong companion.",
        ),
        click.option(
            "--strong-share",
            type=click.FloatRange(0, 1),
            default=0.05,
            show_default=True,
            help="The same as a share of the survey's sites.",
        ),
        click.option(
            "--back-least",
            type=click.IntRange(1),
            default=2,
            show_default=True,
            help="Sites that a communicator links back to.",
        ),
        click.option(
            "--global",
            "global_list",
            type=click.File("r", encoding="utf-8"),
            help="Domains that everybody links to, one a line; instead of ours.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@output_option
@_counting_options
@collection_option
def report(collection: Path | None, output: Path | None, **counting: Any) -> None:
    """Write one page: companion set with classes, indicators, matrix, drawings, completeness, and the method sheet."""
    from periplus.api.webometrics import write_survey

    results = _results(collection_folder(collection), counting)
    with opened(output, exact=True) as out:
        write_survey(results, "report", "html", out)


@click.command()
@click.argument("what", type=click.Choice((*TABLES, *DRAWINGS)))
@click.option(
    "-f",
    "--format",
    default="",
    help="Tables: csv, json, jsonl, table. "
    + "; ".join(f"{name}: {formats}" for name, formats in DRAWINGS.items())
    + ".",
)
@output_option
@_counting_options
@collection_option
def export(what: str, collection: Path | None, format: str, output: Path | None, **counting: Any) -> None:
    """Write a table or a drawing of a survey for other programs.

    \b
    periplus survey export sites -o sites.csv
    periplus survey export network -f gexf -o network.gexf
    periplus survey export fragment -f xml           the conceptual model of the web fragment
    """
    from periplus.api.webometrics import write_survey
    from periplus.present.survey_report import survey_table
    from periplus.present.tables import write_table

    ending = output.suffix.removeprefix(".") if output else ""
    results = _results(collection_folder(collection), counting)
    if what not in TABLES:
        with opened(output, exact=True) as out:
            write_survey(results, what, format or ending or DRAWINGS[what].partition(",")[0], out)
        return
    format = format or (ending if ending in ROW_FORMATS else "csv")
    if format not in ROW_FORMATS:
        raise UsageError(f"tables are written as {', '.join(ROW_FORMATS)}, not as {format}")
    table, rows = survey_table(results, what)
    with opened(output, exact=format != "table") as out:
        write_table(table.names, rows, format, out)


@click.command()
@click.argument("sites", nargs=-1, required=True, metavar="SITE...")
@click.option(
    "--status",
    type=click.Choice(("in", "out", "undecided", "discovered")),
    default="undecided",
    show_default=True,
    help="in: it is surveyed, too.",
)
@click.option("--tag", "tags", multiple=True, help="A word to remember it by; several are possible.")
@click.option(
    "--start", default="", help="Where the reading of a site that is taken in begins; by default its front page."
)
@collection_option
def mark(sites: tuple[str, ...], collection: Path | None, status: str, tags: tuple[str, ...], start: str) -> None:
    """Note what you think of sites: with --status in they join the survey, with any other they leave it.

    A site is named by its address (example.org, example.org/~ann, *.example.org), or as the survey names it.

    \b
    periplus survey mark academy.example --status in
    periplus survey mark shop.example ads.example --status out --tag advertising
    """
    from periplus.acquire.clock import SystemClock
    from periplus.api.survey import decide
    from periplus.model.survey import SiteStatus

    if start and (len(sites) > 1 or status != "in"):
        raise UsageError("--start goes with --status in and one site")
    prefixes = decide(
        collection_folder(collection), sites, SiteStatus(status), tags, start=start, now=SystemClock().now()
    )
    click.echo(f"Marked {', '.join(prefixes)}: {status}" + (f" ({', '.join(tags)})" if tags else ""), err=True)


def _results(folder: Path, counting: dict[str, Any]) -> SurveyResults:
    from periplus.api.survey import campaign_of
    from periplus.api.webometrics import SurveyOrder, survey_of
    from periplus.model.survey import GLOBAL_SITES, CompanionRules, DocumentModel
    from periplus.urls.units import UnitChoice

    campaign = campaign_of(folder)
    listed = counting["global_list"]
    domains = (
        tuple(line.strip() for line in listed if line.strip() and not line.startswith("#")) if listed else GLOBAL_SITES
    )
    rules = CompanionRules(counting["strong_least"], counting["strong_share"], counting["back_least"], domains)
    order = SurveyOrder(
        campaign.title, DocumentModel(counting["model"]), campaign.item, rules, UnitChoice(counting["met_by"])
    )
    return survey_of(folder, campaign.units, order)


# `periplus survey`: a campaign over many sites that looks for the most new external links in a budget of pages.

USUAL_FOLDER = Path("survey.periplus")
CHANGEABLE = ("rule", "within", "pages", "seed", "at_once", "patience_s")  # of a campaign, by `run` too


@click.group()
def survey() -> None:
    """Read many sites with a budget of pages, where they bring the most new external links.

    \b
    periplus survey create -i sites.csv --pages 2000    sites with names, starts and prefixes
    periplus survey run                                 go on until the pages are spent; kill it whenever you like
    periplus survey status                              sites, yields, the curve, how complete it is
    periplus survey report -o survey.html               companion set, indicators, matrix, drawings, method sheet
    """


def _campaign_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--patience",
            "patience_s",
            type=click.FloatRange(-1),
            help="Seconds that a favourite is waited for while others are ready.",
        ),
        click.option(
            "--at-once",
            type=click.IntRange(0),
            help="Pages under way at most. 1 (with --pages): each choice knows what the last page brought.",
        ),
        click.option("--seed", type=int, help="The same seed gives the same choices."),
        click.option(
            "--within",
            type=click.Choice(("breadth", "learned")),
            help="Which page of a site is next. By default learned, up to 1,000 sites.",
        ),
        click.option(
            "--rule",
            help="Which site is next: scout (ours), r1, r2:N, r3:M, quantum:N.",
        ),
        click.option(
            "--pages",
            type=click.IntRange(0),
            help="Pages to ask for in all runs together; 0: no limit (then --max-time is the budget).",
        ),
    ):
        command = option(command)
    return command


def _list_option(command: Callable[..., Any]) -> Callable[..., Any]:
    text = (
        "Sites: CSV with start, name, short, prefixes, bundle, official (only start is needed), or an "
        "address a line; - for stdin."
    )
    return click.option("-i", "--input", "lists", multiple=True, type=click.File("r", encoding="utf-8"), help=text)(
        command
    )


@survey.command()
@click.argument("starts", nargs=-1, metavar="[ADDRESS]...")
@_list_option
@click.option(
    "-c",
    "--collection",
    type=click.Path(path_type=Path, file_okay=False),
    default=USUAL_FOLDER,
    show_default=True,
    help="Folder to keep it in.",
)
@click.option("--title", default="", help="What the report is called.")
@click.option(
    "--item",
    type=click.Choice(("page", "host", "domain")),
    default="page",
    show_default=True,
    help="What is harvested: external pages, hosts, domains.",
)
@store_option
@_campaign_options
def create(starts: tuple[str, ...], lists: tuple[Any, ...], collection: Path, store: str, **flags: Any) -> None:
    """Say which sites are surveyed and how.

    Several hosts are one site where a unit's prefixes say so (`example.org *.example.org example.net/~ann`); `www.`
    never makes another one.
    """
    from periplus.api.homes import home_of
    from periplus.api.survey import create as begin
    from periplus.model.webometrics import Campaign

    units = _units(starts, lists)
    begin(
        store or collection,
        dataclasses.replace(
            Campaign(flags["title"] or f"Survey of {count_of(len(units), 'site')}", units, item=flags["item"]),
            **_given(flags),
        ),
    )
    place = home_of(store or collection)  # by its name a password is not shown
    named = f"--store '{place}'" if store else f"-c {collection}"
    click.echo(f"A survey of {count_of(len(units), 'site')} in {place} — next: periplus survey run {named}", err=True)


@survey.command()
@click.argument("starts", nargs=-1, metavar="[ADDRESS]...")
@_list_option
@click.option("--name", default="", help="Of the one site that is added.")
@click.option("--short", default="", help="A short name, for drawings.")
@click.option(
    "--prefix", "prefixes", multiple=True, help="What belongs to it: example.org, example.org/~ann, *.example.org."
)
@click.option("--bundle", default="", help="The organisation that it belongs to.")
@click.option("--official/--not-official", default=True, help="Whether it is the organisation's official site.")
@place_option
def add(starts: tuple[str, ...], lists: tuple[Any, ...], place: Path | str, **flags: Any) -> None:
    """Add sites; a run that is at work takes them up within a second."""
    from periplus.api.survey import add_sites
    from periplus.urls.units import unit_of

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
def remove(names: tuple[str, ...], place: Path | str) -> None:
    """Take sites out, by name, short name or prefix. What was fetched of them is kept; nothing more is."""
    from periplus.api.survey import remove_sites

    campaign, gone = remove_sites(place, names)
    click.echo(f"Took out {', '.join(unit.name for unit in gone)}; there are {len(campaign.units):,}", err=True)


@survey.command()
@_campaign_options
@click.option("-q", "--quiet", is_flag=True, help="No progress; only the end is told.")
@click.option("-v", "--verbose", count=True, help="Log what happens; -vv: every request.")
@place_option
@setting_options
def run(place: Path | str, quiet: bool, verbose: int, **flags: Any) -> None:
    """Go on with a survey until its pages or its time are spent.

    Kill it whenever you like: no link is lost, and the rule knows again what it knew. One request at a time to
    a host, robots.txt is obeyed. Depth below the start is limited to 5 (--max-depth), and sitemaps are left
    alone, unless told otherwise.
    """
    from periplus.api.survey import change
    from periplus.api.survey import run as go_on
    from periplus.cli.crawl import EXIT, INTERRUPTED, StopOnSignal, configure_logs, notice
    from periplus.cli.progress import campaign_display, say

    if flags["max_pages"] is not None:
        raise UsageError("a survey's pages are counted over all its runs: say --pages, not --max-pages")
    settings = _settings(flags, place)
    if changes := _given(flags):
        change(place, lambda before: dataclasses.replace(before, **changes))
    configure_logs(verbose)
    notice(settings)
    stopping = StopOnSignal()
    with campaign_display(quiet=quiet) as show:

        def watch(watched: Any) -> bool:
            show(watched)
            return stopping.asked

        end = go_on(place, settings, watch)
    say(
        f"{end.state.capitalize()}"
        + (f": {end.note}" if end.note else "")
        + f" — {end.counts.fetched:,} pages in this run, {end.elapsed_s:.1f} s"
    )
    _show(place, sys.stderr)
    sys.exit(INTERRUPTED if stopping.asked else EXIT[end.state])


@survey.command()
@place_option
def stop(place: Path | str) -> None:
    """Ask the run that is at work, in another terminal or job, to stop."""
    from periplus.api.survey import campaign_of
    from periplus.api.survey import stop as ask

    campaign_of(place)
    ask(place)
    click.echo("Asked to stop; what is under way is stored first", err=True)


@survey.command()
@click.option(
    "-f",
    "--format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="JSON has the curves too.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as -f json.")
@click.option("--most", type=click.IntRange(-1), default=-1, help="Sites that are shown, best first; -1: all.")
@output_option
@place_option
def status(place: Path | str, format: str, as_json: bool, most: int, output: Path | None) -> None:
    """Show how a survey stands, while it runs too."""
    _show(place, output, most=most, as_json=as_json or format == "json")


def _show(place: Path | str, output: Any, *, most: int = -1, as_json: bool = False) -> None:
    from periplus.api.survey import standing_of
    from periplus.present.harvest import standing_lines, write_standing_json

    standing = standing_of(place)
    if output is sys.stderr:
        for line in standing_lines(standing, most=20, boxes=draws_boxes(sys.stderr)):
            click.echo(line, err=True)
        return
    with opened(output, exact=as_json) as out:
        if as_json:
            write_standing_json(standing, out)
        else:
            out.writelines(line + "\n" for line in standing_lines(standing, most=most, boxes=draws_boxes(out)))


def _units(starts: tuple[str, ...], lists: tuple[Any, ...]) -> tuple[Unit, ...]:
    from periplus.urls.units import unit_list, unit_of

    units = (*(unit_of(start) for start in starts), *(unit for file in lists for unit in unit_list(file.read())))
    if not units:
        raise UsageError("no site: give addresses, or a list of sites with -i")
    return units


def _given(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: flags[name] for name in CHANGEABLE if flags.get(name) is not None}


def _settings(flags: dict[str, Any], place: Path | str) -> Settings:
    """A survey's defaults, then the collection's periplus.toml (of a database: that of this folder), then the flags."""
    from periplus.api.survey import DEFAULTS
    from periplus.settings import read_settings, rows, settings_from

    given = {row.name: flags[row.name] for row in rows() if flags.get(row.name) not in (None, ())}
    folder = Path() if isinstance(place, str) else place
    return settings_from(given, read_settings(folder / SETTINGS_FILE, DEFAULTS))


for _command in (links, mark, report, export):
    survey.add_command(_command)
