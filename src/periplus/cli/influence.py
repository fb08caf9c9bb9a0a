"""`periplus influence`: the few sites that one would read to see most of the news."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import collection_option, columns_of, draws_boxes, found_collection, opened, output_option
from periplus.cli.watching import Watch
from periplus.errors import UsageError

if TYPE_CHECKING:
    from periplus.model.story import Cascades

FORMATS = ("text", "json", "csv", "svg", "html")
SAID_ENTRIES = 20_000  # from which on the choice is not there at once
POSTS_SHARE = 0.1  # of all posts: what one reads by --cost posts when no budget is said


@click.command()
@collection_option
@click.option("-k", "--sites", type=click.IntRange(1), default=20, show_default=True, help="How many sites to read.")
@click.option("--objective", type=click.Choice(("dl", "dt", "pa")), default="dl", show_default=True, help="See stories at all; early; before most sites.")
@click.option("--cost", type=click.Choice(("unit", "posts")), default="unit", show_default=True, help="What reading a site costs: one, or its posts.")
@click.option("--budget", type=click.FloatRange(0, min_open=True), help="With --cost posts: posts to read, or their share below 1 (0.1).")
@click.option("--future", is_flag=True, help="Choose for the stories to come: newer ones count more, and the past is not fitted to the last.")
@click.option("--holdout", is_flag=True, help="Also choose by the earlier half of the stories and score on the later half.")
@click.option("--cascades", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="A file of cascades instead of a collection; see above.")
@click.option("--least-sites", type=click.IntRange(2), default=2, show_default=True, help="Sites that have to tell a story.")
@click.option("-f", "--format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as -f json.")
@output_option
def influence(collection: Path | None, format: str, output: Path | None, **flags: Any) -> None:
    """Choose the few sites that see most of the stories.

    A site detects a story when one of the story's pages is on it. The choice says what each site adds, how much any other choice could have
    at most, and which stories are missed. A file of cascades has a story a line: `site,hours site,hours ...` (plain or gzipped).

    \b
    periplus influence                          20 sites that detect the most
    periplus influence -k 40 --objective dt     40 that detect early
    periplus influence --cost posts --budget 0.1    as many sites as a tenth of all posts allows
    periplus influence --holdout -f html -o influence.html
    periplus influence --cascades cascades.txt.gz -k 100 --json
    """
    from periplus.api import stories as work
    from periplus.model.story import Objective
    from periplus.present.coverage_svg import influence_page, write_coverage_svg
    from periplus.present.influence_text import influence_lines, write_influence_csv, write_influence_json

    if flags["budget"] is not None and flags["cost"] == "unit":
        raise UsageError("--budget counts posts: it goes with --cost posts; -k says how many sites")
    if collection is not None and flags["cascades"] is not None:
        raise UsageError("cascades come from a file or from a collection: give --cascades or -c, not both")
    format = "json" if flags["as_json"] else format
    objective, by_posts = Objective(flags["objective"]), flags["cost"] == "posts"
    wish = work.ReadingWish(objective, (flags["budget"] or POSTS_SHARE) if by_posts else flags["sites"], by_posts, flags["future"])
    given = _cascades(collection, flags)
    if len(given.members) >= SAID_ENTRIES:
        click.echo(f"choosing among {len(given.sites):,} sites; exchanges and bounds take some seconds", err=True)
    found = work.influence(given, wish)
    ahead = work.holdout(given, wish) if flags["holdout"] else None
    with opened(output, exact=format != "text") as out:
        if format == "json":
            write_influence_json(given, found, objective, ahead, out)
        elif format == "csv":
            write_influence_csv(given, found, out)
        elif format == "svg":
            write_coverage_svg(given, found, objective, ahead, out)
        elif format == "html":
            out.write(influence_page(given, found, objective, ahead))
        else:
            plain = not draws_boxes(out)
            for line in influence_lines(given, found, objective, ahead, columns_of(out)):
                out.write((line.translate(_PLAIN) if plain else line) + "\n")


_PLAIN = str.maketrans(dict.fromkeys("▏▎▍▌▋▊▉", "") | {"█": "#", "…": "..."})


def _cascades(collection: Path | None, flags: dict[str, Any]) -> Cascades:
    """Of the file, or of the stories in the collection. Raises UsageError where there is none."""
    from periplus.api.stories import cascades_from, cascades_in

    if flags["cascades"] is not None:
        given = cascades_from(flags["cascades"])
        where = f"{flags['cascades']} holds no cascade: a story a line, as in example.org,338200.5 other.example,338214"
    else:
        given = cascades_in(found_collection(collection), least_sites=flags["least_sites"], watch=partial(Watch(), "reading pages"))
        where = "the collection holds no story that two sites tell, so there is nothing to choose by: crawl more sites of one subject"
    if len(given.offsets) < 2:
        raise UsageError(where)
    return given
