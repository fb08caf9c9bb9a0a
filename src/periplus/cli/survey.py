"""`periplus survey`: a campaign over many sites that looks for the most new external links in a budget of pages."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli import survey_results
from periplus.cli.options import SETTINGS_FILE, collection_option, draws_boxes, found_collection, opened, output_option, setting_options
from periplus.errors import UsageError
from periplus.present.wording import count_of

if TYPE_CHECKING:
    from periplus.model.survey import Unit
    from periplus.settings import Settings

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
        click.option("--patience", "patience_s", type=click.FloatRange(-1), help="Seconds that a favourite is waited for while others are ready."),
        click.option("--at-once", type=click.IntRange(0), help="Pages under way at most. 1 (with --pages): each choice knows what the last page brought."),
        click.option("--seed", type=int, help="The same seed gives the same choices."),
        click.option("--within", type=click.Choice(("breadth", "learned")), help="Which page of a site is next. By default learned, up to 1,000 sites."),
        click.option("--rule", help="Which site is next: scout (ours), r1, r2:N, r3:M, quantum:N, ucb1-tuned, kl-ucb, thompson, gittins, raw-ucb, good-ucb."),
        click.option("--pages", type=click.IntRange(0), help="Pages to ask for in all runs together; 0: no limit (then --max-time is the budget)."),
    ):
        command = option(command)
    return command


def _list_option(command: Callable[..., Any]) -> Callable[..., Any]:
    text = "Sites: CSV with start, name, short, prefixes, bundle, official (only start is needed), or an address a line; - for stdin."
    return click.option("-i", "--input", "lists", multiple=True, type=click.File("r", encoding="utf-8"), help=text)(command)


@survey.command()
@click.argument("starts", nargs=-1, metavar="[ADDRESS]...")
@_list_option
@click.option("-c", "--collection", type=click.Path(path_type=Path, file_okay=False), default=USUAL_FOLDER, show_default=True, help="Folder to keep it in.")
@click.option("--title", default="", help="What the report is called.")
@click.option(
    "--item", type=click.Choice(("page", "host", "domain")), default="page", show_default=True, help="What is harvested: external pages, hosts, domains."
)
@_campaign_options
def create(starts: tuple[str, ...], lists: tuple[Any, ...], collection: Path, title: str, item: str, **flags: Any) -> None:
    """Say which sites are surveyed and how.

    Several hosts are one site where a unit's prefixes say so (`example.org *.example.org example.net/~ann`); `www.` never makes another one.
    """
    from periplus.api.survey_plan import create as begin
    from periplus.model.campaign import Campaign

    units = _units(starts, lists)
    begin(collection, dataclasses.replace(Campaign(title or f"Survey of {count_of(len(units), 'site')}", units, item=item), **_given(flags)))
    click.echo(f"A survey of {count_of(len(units), 'site')} in {collection}/ — next: periplus survey run -c {collection}", err=True)


@survey.command()
@click.argument("starts", nargs=-1, metavar="[ADDRESS]...")
@_list_option
@click.option("--name", default="", help="Of the one site that is added.")
@click.option("--short", default="", help="A short name, for drawings.")
@click.option("--prefix", "prefixes", multiple=True, help="What belongs to it: example.org, example.org/~ann, *.example.org.")
@click.option("--bundle", default="", help="The organisation that it belongs to.")
@click.option("--official/--not-official", default=True, help="Whether it is the organisation's official site.")
@collection_option
def add(starts: tuple[str, ...], lists: tuple[Any, ...], collection: Path | None, **flags: Any) -> None:
    """Add sites; a run that is at work takes them up within a second."""
    from periplus.analyse.units import unit_of
    from periplus.api.survey_plan import add_sites

    described = any(flags[name] for name in ("name", "short", "prefixes", "bundle")) or not flags["official"]
    if described and (len(starts) != 1 or lists):
        raise UsageError("--name, --short, --prefix, --bundle and --not-official describe one site: give one address, or a list with -i")
    official, bundle = flags.pop("official"), flags.pop("bundle")
    units = (unit_of(starts[0], **flags, bundle=bundle, official=official),) if described else _units(starts, lists)
    campaign = add_sites(found_collection(collection), units)
    click.echo(f"Added {count_of(len(units), 'site')}; there are {len(campaign.units):,}", err=True)


@survey.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@collection_option
def remove(names: tuple[str, ...], collection: Path | None) -> None:
    """Take sites out, by name, short name or prefix. What was fetched of them is kept; nothing more is."""
    from periplus.api.survey_plan import remove_sites

    campaign, gone = remove_sites(found_collection(collection), names)
    click.echo(f"Took out {', '.join(unit.name for unit in gone)}; there are {len(campaign.units):,}", err=True)


@survey.command()
@_campaign_options
@click.option("-q", "--quiet", is_flag=True, help="No progress; only the end is told.")
@click.option("-v", "--verbose", count=True, help="Log what happens; -vv: every request.")
@collection_option
@setting_options
def run(collection: Path | None, quiet: bool, verbose: int, **flags: Any) -> None:
    """Go on with a survey until its pages or its time are spent.

    Kill it whenever you like: no link is lost, and the rule knows again what it knew. One request at a time to a host, robots.txt is obeyed.
    Levels below the start are limited to 5 (--max-depth), and sitemaps are left alone, unless told otherwise.
    """
    from periplus.api.survey_plan import change
    from periplus.api.survey_run import run as go_on
    from periplus.cli.crawl import EXIT, INTERRUPTED, StopOnSignal, configure_logs, notice
    from periplus.cli.progress import say
    from periplus.cli.survey_display import CampaignDisplay

    if flags["max_pages"] is not None:
        raise UsageError("a survey's pages are counted over all its runs: say --pages, not --max-pages")
    folder = found_collection(collection)
    settings = _settings(flags, folder)
    if changes := _given(flags):
        change(folder, lambda before: dataclasses.replace(before, **changes))
    configure_logs(verbose)
    notice(settings)
    stopping = StopOnSignal()
    with CampaignDisplay(quiet=quiet) as display:

        def watch(watched: Any) -> bool:
            display.show(watched)
            return stopping.asked

        end = go_on(folder, settings, watch)
    say(f"{end.state.capitalize()}" + (f": {end.note}" if end.note else "") + f" — {end.counts.fetched:,} pages in this run, {end.elapsed_s:.1f} s")
    _show(folder, sys.stderr)
    sys.exit(INTERRUPTED if stopping.asked else EXIT[end.state])


@survey.command()
@collection_option
def stop(collection: Path | None) -> None:
    """Ask the run that is at work, in another terminal or job, to stop."""
    from periplus.api.survey_plan import campaign_of
    from periplus.api.survey_plan import stop as ask

    folder = found_collection(collection)
    campaign_of(folder)
    ask(folder)
    click.echo("Asked to stop; what is under way is stored first", err=True)


@survey.command()
@click.option("-f", "--format", type=click.Choice(("text", "json")), default="text", show_default=True, help="JSON has the curves too.")
@click.option("--json", "as_json", is_flag=True, help="The same as -f json.")
@click.option("--most", type=click.IntRange(-1), default=-1, help="Sites that are shown, best first; -1: all.")
@output_option
@collection_option
def status(collection: Path | None, format: str, as_json: bool, most: int, output: Path | None) -> None:
    """Show how a survey stands, while it runs too."""
    _show(found_collection(collection), output, most=most, as_json=as_json or format == "json")


def _show(folder: Path, output: Any, *, most: int = -1, as_json: bool = False) -> None:
    from periplus.api.survey_live import standing_of
    from periplus.present.campaign_text import standing_lines, write_standing_json

    found = standing_of(folder)
    if output is sys.stderr:
        for line in standing_lines(found, most=20, boxes=draws_boxes(sys.stderr)):
            click.echo(line, err=True)
        return
    with opened(output, exact=as_json) as out:
        if as_json:
            write_standing_json(found, out)
        else:
            out.writelines(line + "\n" for line in standing_lines(found, most=most, boxes=draws_boxes(out)))


def _units(starts: tuple[str, ...], lists: tuple[Any, ...]) -> tuple[Unit, ...]:
    from periplus.analyse.unit_list import unit_list
    from periplus.analyse.units import unit_of

    units = (*(unit_of(start) for start in starts), *(unit for file in lists for unit in unit_list(file.read())))
    if not units:
        raise UsageError("no site: give addresses, or a list of sites with -i")
    return units


def _given(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: flags[name] for name in CHANGEABLE if flags.get(name) is not None}


def _settings(flags: dict[str, Any], folder: Path) -> Settings:
    """A survey's defaults, then the collection's periplus.toml, then the flags."""
    from periplus.api.survey_run import DEFAULTS
    from periplus.settings import read_settings, rows, settings_from

    given = {row.name: flags[row.name] for row in rows() if flags.get(row.name) not in (None, ())}
    return settings_from(given, read_settings(folder / SETTINGS_FILE, DEFAULTS))


for _command in (survey_results.links, survey_results.mark, survey_results.report, survey_results.export):
    survey.add_command(_command)
