"""What comes of a survey: its tables of links, its report, its drawings and files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import WholeNumber, collection_option, found_collection, opened, output_option
from periplus.errors import UsageError
from periplus.present.tables import FORMATS as ROW_FORMATS
from periplus.present.wording import count_of

if TYPE_CHECKING:
    from periplus.model.webometrics import SurveyResults

TABLES = ("sites", "companions", "colinks", "suffixes", "connectivity", "interlinking", "records")  # of present.survey_tables
DRAWINGS = {"network": "svg, gexf", "matrix": "csv, pajek, svg", "yield": "svg", "fragment": "xml, json, svg"}  # of api.webometrics.FORMATS


@click.command()
@click.option("--kind", type=click.Choice(("internal", "external", "bad")), default="external", show_default=True, help="Which of the three tables.")
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

    internal: level and whether the target was processed; external: anchor and surroundings; bad: what stood in an href and is no address.
    """
    from periplus.api import survey_links
    from periplus.present.tables import write_table

    folder = found_collection(collection)
    sure, delete = flags.pop("yes"), flags.pop("delete")
    wanted = survey_links.LinkChoice(**flags, limit=-1 if limit is None else limit)
    if not delete:
        with opened(output, exact=format != "table") as out:
            write_table(survey_links.KINDS[wanted.kind], survey_links.links(folder, wanted), format, out)
        return
    many = sum(1 for _ in survey_links.links(folder, wanted))
    if not many:
        click.echo("There are no such links", err=True)
    elif sure or click.confirm(f"Delete {count_of(many, wanted.kind + ' link')} from {folder}/? This cannot be undone.", err=True):
        click.echo(f"Deleted {count_of(survey_links.delete(folder, wanted), 'link')}", err=True)


def _counting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How is counted; another choice needs no new reading of the sites."""
    for option in (
        click.option("--model", type=click.Choice(("page", "directory", "host", "site")), default="page", show_default=True, help="What is one document."),
        click.option("--met-by", type=click.Choice(("host", "domain")), default="host", show_default=True, help="How sites outside are told apart."),
        click.option("--strong-least", type=click.IntRange(1), default=3, show_default=True, help="Sites of the survey that link to a strong companion."),
        click.option("--strong-share", type=click.FloatRange(0, 1), default=0.05, show_default=True, help="The same as a share of the survey's sites."),
        click.option("--back-least", type=click.IntRange(1), default=2, show_default=True, help="Sites that a communicator links back to."),
        click.option("--global", "global_list", type=click.File("r", encoding="utf-8"), help="Domains that everybody links to, one a line; instead of ours."),
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

    found = _results(found_collection(collection), counting)
    with opened(output, exact=True) as out:
        write_survey(found, "report", "html", out)


@click.command()
@click.argument("what", type=click.Choice((*TABLES, *DRAWINGS)))
@click.option(
    "-f", "--format", default="", help="Tables: csv, json, jsonl, table. " + "; ".join(f"{name}: {formats}" for name, formats in DRAWINGS.items()) + "."
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
    from periplus.present.survey_tables import survey_table
    from periplus.present.tables import write_table

    ending = output.suffix.removeprefix(".") if output else ""
    found = _results(found_collection(collection), counting)
    if what not in TABLES:
        with opened(output, exact=True) as out:
            write_survey(found, what, format or ending or DRAWINGS[what].partition(",")[0], out)
        return
    format = format or (ending if ending in ROW_FORMATS else "csv")
    if format not in ROW_FORMATS:
        raise UsageError(f"tables are written as {', '.join(ROW_FORMATS)}, not as {format}")
    columns, rows = survey_table(found, what)
    with opened(output, exact=format != "table") as out:
        write_table([column.name for column in columns], rows, format, out)


@click.command()
@click.argument("sites", nargs=-1, required=True, metavar="SITE...")
@click.option("--status", type=click.Choice(("in", "out", "undecided", "discovered")), default="undecided", show_default=True, help="in: it is surveyed, too.")
@click.option("--tag", "tags", multiple=True, help="A word to remember it by; several are possible.")
@click.option("--start", default="", help="Where the reading of a site that is taken in begins; by default its front page.")
@collection_option
def mark(sites: tuple[str, ...], collection: Path | None, status: str, tags: tuple[str, ...], start: str) -> None:
    """Note what you think of sites: with --status in they join the survey, with any other they leave it.

    A site is named by its address (example.org, example.org/~ann, *.example.org), or as the survey names it.

    \b
    periplus survey mark academy.example --status in
    periplus survey mark shop.example ads.example --status out --tag advertising
    """
    from periplus.acquire.clock import SystemClock
    from periplus.api.survey_curation import decide
    from periplus.model.survey import SiteStatus

    if start and (len(sites) > 1 or status != "in"):
        raise UsageError("--start goes with --status in and one site")
    prefixes = decide(found_collection(collection), sites, SiteStatus(status), tags, start=start, now=SystemClock().now())
    click.echo(f"Marked {', '.join(prefixes)}: {status}" + (f" ({', '.join(tags)})" if tags else ""), err=True)


def _results(folder: Path, counting: dict[str, Any]) -> SurveyResults:
    from periplus.analyse.units import UnitChoice
    from periplus.api.survey_plan import campaign_of
    from periplus.api.webometrics import SurveyOrder, survey_of
    from periplus.model.survey import GLOBAL_SITES, CompanionRules, DocumentModel

    campaign = campaign_of(folder)
    listed = counting["global_list"]
    domains = tuple(line.strip() for line in listed if line.strip() and not line.startswith("#")) if listed else GLOBAL_SITES
    rules = CompanionRules(counting["strong_least"], counting["strong_share"], counting["back_least"], domains)
    order = SurveyOrder(campaign.title, DocumentModel(counting["model"]), campaign.item, rules, UnitChoice(counting["met_by"]))
    return survey_of(folder, campaign.units, order)
