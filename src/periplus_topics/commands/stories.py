"""`periplus keywords`, `stories` and `influence`: analyses of texts of several sites."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.crawl import Period
from periplus.cli.options import (
    FOLDER,
    collection_option,
    collection_place,
    columns_of,
    draws_boxes,
    format_option,
    open_output,
    option,
    options,
    output_option,
    place_option,
    place_word,
    write_output,
)
from periplus.cli.progress import Watch, say
from periplus.errors import UsageError
from periplus.present.tables import json_text
from periplus.present.wording import count_of, number, utc, visible
from periplus.values import Place

if TYPE_CHECKING:
    from periplus_topics.model import Cascades, Edition, KeywordList, Portal


# `periplus keywords`: what pages, sites and answers are about, at a glance.

KEYWORD_METHODS = ("learnt", "singlerank")
INFLUENCE_FORMATS = ("text", "json", "csv", "svg")
SAID_ENTRIES = 20_000  # from which on the choice is not there at once
POSTS_SHARE = 0.1  # share of all posts that --cost posts reads without a budget
_PLAIN = str.maketrans(dict.fromkeys("▏▎▍▌▋▊▉", "") | {"█": "#", "…": "..."})
WIDEST = 120  # columns
INDENT = " " * 10  # under an entry's key


@click.command()
@click.argument("target", nargs=-1, metavar="[URL... | SITE]")
@option("--site", "A site of the collection: the same as SITE.", str, "", metavar="SITE")
@option("--query", "The results of `periplus search WORDS`, compared with all other pages.", metavar="WORDS")
@option("-n --most", "How many keywords.", click.IntRange(1, 200), 10)
@option("--method", "docs/keywords.md describes and compares them.", KEYWORD_METHODS, "learnt")
@option("--json as_json", "JSON with scores, frequencies and numbers of pages.", bool)
@collection_option
@output_option
def keywords(
    target: tuple[str, ...], site: str, as_json: bool, collection: Place | None, output: Path | None, **flags: Any
) -> None:
    """List keywords of a page, several pages, a site or the results of a query.

    Words and phrases in the text's own spelling, each stem once. Without a target: the collection's
    only site, or all of it.

    \b
    periplus keywords https://example.org/news/storm      of one page
    periplus keywords URL URL URL                         of several as one: a story
    periplus keywords example.org                         of a site; beside other sites, what sets it apart
    periplus keywords --query 'harbour lights' -n 20      what goes with these words
    periplus keywords --method singlerank --json URL      as published, for programs
    """
    from periplus_topics.api import keywords as api_keywords

    target += (site,) if site else ()
    if target and flags["query"] is not None:
        raise UsageError("give either pages or a site, or --query")
    watch = Watch()
    place = collection_place(collection)
    result = api_keywords.keywords(place, *target, watch=lambda pages: watch("pages read", pages, 0), **flags)
    values = asdict(result) | {"keywords": [keyword._asdict() for keyword in result.keywords]}
    write_output(output, keyword_lines(result), values if as_json else None)


def keyword_lines(keywords: KeywordList) -> list[str]:
    """One keyword a line, best first."""
    facts = [
        visible(keywords.subject),
        count_of(keywords.pages, "page"),
        f"beside {count_of(keywords.compared_with, 'page')} of the collection",
    ]
    heading = click.style(", ".join(facts), dim=True)
    several = keywords.pages > 1
    width = max((len(keyword.text) for keyword in keywords.keywords), default=0)
    rows = [
        f"{click.style(visible(keyword.text).ljust(width), bold=True)}  {number(keyword.times)}x"
        + (f" on {count_of(keyword.pages, 'page')}" if several else "")
        for keyword in keywords.keywords
    ]
    return [heading, *(rows or ["No keyword: there is too little text."])]


# `periplus stories`: stories on several sites, their first source, and how they spread.


@click.command()
@collection_option
@option("-n --most", "Stories in the list; -1: all.", click.IntRange(-1), 20)
@option("--story", "Show this story of the list, page by page.", click.IntRange(1), metavar="NUMBER")
@option("--least-sites", "Minimum number of sites of a story.", click.IntRange(2), 2)
@format_option(("text", "json", "svg"), "svg draws one story's cascade.")
@option("--keep", "Store them in the collection: `periplus serve` shows them.", bool)
@output_option
def stories(collection: Place | None, format: str, output: Path | None, **flags: Any) -> None:
    """Find stories that several sites published, and how they spread.

    Pages that share text (reprints, cut and edited) are one story, and so are pages that link to it from other sites;
    menus, blogrolls and weekly digests do not glue stories together. A story's pages are sorted by their dates, then by
    the direction of links, then by when they were first seen.

    \b
    periplus stories                       the weightiest, most sites first
    periplus stories --story 3             one story: when each site had it, and from where
    periplus stories --story 3 -f svg -o cascade.svg
    periplus stories --json -o stories.json
    """
    from periplus_topics.api.stories import store_stories, stories_of
    from periplus_topics.present.stories import cascade_lines, stories_lines, write_cascade_svg, write_stories_json

    story = flags["story"]
    if format == "svg" and story is None:
        raise UsageError("svg draws one story: name it, as in --story 1")
    if format == "json" and story is not None:
        raise UsageError("JSON has all stories: leave out --story")
    place = collection_place(collection)
    latest = stories_of(place, least_sites=flags["least_sites"], watch=Watch())
    if flags["keep"]:
        store_stories(place, latest)
    if story is not None and story > len(latest.stories):
        raise UsageError(f"there is no story {story}: {len(latest.stories)} were found")
    with open_output(output, exact=format != "text") as out:
        if format == "json":
            write_stories_json(latest, out)
        elif story is not None and format == "svg":
            write_cascade_svg(latest.stories[story - 1], out)
        elif story is not None:
            out.writelines(line + "\n" for line in cascade_lines(latest.stories[story - 1], columns_of(out)))
        else:
            out.writelines(line + "\n" for line in stories_lines(latest, columns_of(out), flags["most"]))


# `periplus influence`: the few sites that one would read to see most of the news.


@click.command()
@collection_option
@option("-k --sites", "Number of sites to choose.", click.IntRange(1), 20)
@option("--objective", "Detect stories: at all, early, or before most sites.", ("dl", "dt", "pa"), "dl")
@option("--cost", "Cost of reading a site: 1, or its number of posts.", ("unit", "posts"), "unit")
@option("--budget", "With --cost posts: number of posts, or a share below 1 (0.1).", click.FloatRange(0, min_open=True))
@option("--future", "Choose for future stories, with the method that saw most of the later half of these.", bool)
@option("--holdout", "Also choose for the future by the earlier half of the stories and score on the later half.", bool)
@option(
    "--cascades",
    "Cascades from a file instead of a collection; see above.",
    click.Path(path_type=Path, dir_okay=False, exists=True),
)
@option("--least-sites", "Minimum number of sites of a story.", click.IntRange(2), 2)
@format_option(INFLUENCE_FORMATS)
@output_option
def influence(collection: Place | None, format: str, output: Path | None, **flags: Any) -> None:
    """Choose the few sites that see most of the stories.

    A site detects a story if one of the story's pages is on it. Prints what each site adds, an upper bound for any
    other choice, and the stories that are missed. A file of cascades has a story a line: `site,hours site,hours ...`
    (plain or gzipped).

    \b
    periplus influence                          20 sites that detect the most
    periplus influence -k 40 --objective dt     40 that detect early
    periplus influence --cost posts --budget 0.1    as many sites as a tenth of all posts allows
    periplus influence --holdout -f svg -o influence.svg
    periplus influence --cascades cascades.txt.gz -k 100 --json
    """
    from periplus_topics.api import stories as api_stories
    from periplus_topics.model import Objective
    from periplus_topics.present.stories import (
        influence_lines,
        write_coverage_svg,
        write_influence_csv,
        write_influence_json,
    )

    if flags["budget"] is not None and flags["cost"] == "unit":
        raise UsageError("--budget counts posts and needs --cost posts; -k is the number of sites")
    if collection is not None and flags["cascades"] is not None:
        raise UsageError("cascades come from a file or from a collection: give --cascades or -c, not both")
    objective, by_posts = Objective(flags["objective"]), flags["cost"] == "posts"
    request = api_stories.ReadingRequest(
        objective, (flags["budget"] or POSTS_SHARE) if by_posts else flags["sites"], by_posts, flags["future"]
    )
    given = _cascades(collection, flags)
    if len(given.members) >= SAID_ENTRIES:
        click.echo(f"choosing among {len(given.sites):,} sites; exchanges and bounds take some seconds", err=True)
    choice = api_stories.choose_sites(given, request)
    ahead = api_stories.holdout(given, request) if flags["holdout"] else None
    with open_output(output, exact=format != "text") as out:
        if format == "json":
            write_influence_json(given, choice, objective, ahead, out)
        elif format == "csv":
            write_influence_csv(given, choice, out)
        elif format == "svg":
            write_coverage_svg(given, choice, objective, ahead, out)
        else:
            plain = not draws_boxes(out)
            for line in influence_lines(given, choice, objective, ahead, columns_of(out)):
                out.write((line.translate(_PLAIN) if plain else line) + "\n")


def _cascades(collection: Place | None, flags: dict[str, Any]) -> Cascades:
    """Cascades of the file, or of the stories in the collection. Raises UsageError without any."""
    from periplus_topics.api.stories import cascades_from, stories_of
    from periplus_topics.model import cascades_of_stories

    if flags["cascades"] is not None:
        given = cascades_from(flags["cascades"])
        where = f"{flags['cascades']} has no cascade: a story a line, as in example.org,338200.5 other.example,338214"
    else:
        watch = Watch()
        given = cascades_of_stories(
            stories_of(collection_place(collection), least_sites=flags["least_sites"], watch=watch)
        )
        where = (
            "the collection has no story that two sites published, so there is nothing to choose by: crawl "
            "more sites of one subject"
        )
    if len(given.offsets) < 2:
        raise UsageError(where)
    return given


# what a portal is to be: for `create` and `change`
_portal_options = options(
    place_option,
    option("--title", "Default: the name."),
    option("--lead", "A sentence below the title."),
    option("--topic", "Only stories of this topic (`periplus topic`).", metavar="NAME"),
    option("--period period_s", "How often it is rebuilt: 24h, 90m, 7d.", Period()),
    option("--approve/--no-approve", "Publish only approved entries.", bool),
    option("--address", "URL where it will be published, for absolute addresses in feeds.", metavar="URL"),
    option("--stories", "Stories on the front page.  [default: 12]", click.IntRange(1, 200)),
    option("--sites", "Most sites chosen, without pinned sites.  [default: 20]", click.IntRange(0, 1000)),
)
_portal_option = option("-p --portal", "The portal; not needed if there is only one.", str, "", metavar="NAME")


def _name_argument(function: Callable[..., None]) -> Callable[..., None]:
    """Takes the portal's name as an argument or with -p, and hands it on as `name`; empty: none was given."""

    @click.argument("name", default="")
    @_portal_option
    @functools.wraps(function)
    def run_with_name(name: str, portal: str, **fields: Any) -> None:
        if name and portal and name != portal:
            raise UsageError(f"two portals are named, {name} and {portal}: one at a time")
        function(name=name or portal, **fields)

    return run_with_name


@click.group()
def portal() -> None:
    """Make a site of the most important stories of a collection, with their sources, and feeds.

    \b
    periplus portal create coast --title "The Seven Lights" --topic harbours --period 24h --approve
    periplus portal show                       entries and sites, with your decisions
    periplus portal approve k3vq7m2a           by key, or by how it begins
    periplus portal edit k3vq --words "..."    your own words, a picture
    periplus portal build -o public/           pages, archive by weeks, Atom, OPML

    Only `build` publishes anything. To update a portal regularly, put two jobs into the queue and run a worker:

    \b
    periplus jobs add --every 24h refresh -c coast.periplus
    periplus jobs add --every 24h portal build -c coast.periplus -o public/
    periplus worker
    """


@portal.command()
@_name_argument
@_portal_options
def create(name: str, place: Place, **fields: Any) -> None:
    """Begin a portal in a collection. It is kept there with all that its editor decides."""
    from periplus_topics.api import portal as portals
    from periplus_topics.model import Portal

    if not name:
        raise UsageError("a portal needs a name: periplus portal create NAME")
    given = {"title": name} | {field: value for field, value in fields.items() if value is not None}
    made = Portal(name=name, created=float(int(time.time())), **given)
    portals.create(place, made)
    _say_renewal(made, place)
    say(f"Portal {name} begun. `periplus portal build {name} -c {place_word(place)}` makes it.")


@portal.command()
@_name_argument
@_portal_options
def change(name: str, place: Place, **fields: Any) -> None:
    """Change the definition of a portal. Decisions are kept; `build` shows the change."""
    from periplus_topics.api import portal as portals

    made = replace(
        portals.find_portal(place, name),
        **{field: value for field, value in fields.items() if value is not None},
    )
    portals.change(place, made)
    if fields["period_s"]:
        _say_renewal(made, place)


def _say_renewal(made: Portal, place: Place) -> None:
    if made.period_s:
        hours, where = f"{made.period_s / 3600:g}h", place_word(place)
        say("To update it regularly, queue a refresh and a build, and run `periplus worker`:")
        say(f"  periplus jobs add --every {hours} refresh -c {where}")
        say(f"  periplus jobs add --every {hours} portal build {made.name} -c {where}")


@portal.command()
@_name_argument
@place_option
@option("-o --output", "Folder to publish into; else portals/NAME in the collection, or in your cache.", FOLDER)
def build(name: str, place: Place, output: Path | None) -> None:
    """Rebuild the portal's pages and feeds.

    Files appear complete, only changed files are written, and pages no longer published are removed. Other files in the
    folder are not touched.
    """
    from periplus_topics.api import portal as portals

    edition, done = portals.build(place, name, output, time.time(), Watch())
    say(
        f"{count_of(len(edition.entries), 'story', 'stories')} published"
        + _waiting(edition)
        + f", {count_of(len(edition.sites), 'source')}."
    )
    say(f"{number(done.written)} files written, {number(done.unchanged)} unchanged, {number(done.removed)} removed.")
    if not edition.entries:
        say("Note: `periplus stories` lists what several sites published, `periplus portal show` what waits.", "yellow")
    for lack in edition.lacks:
        say(f"Note: {lack}", "yellow")
    click.echo(done.folder / "index.html")


@portal.command("list")
@collection_option
@format_option(("text", "json"))
@output_option
def list_portals(collection: Place | None, format: str, output: Path | None) -> None:
    """List the collection's portals."""
    from periplus_topics.api import portal as portals

    rows = portals.portals(collection_place(collection))
    with open_output(output, exact=format == "json") as out:
        if format == "json":
            out.write(json_text([asdict(portal_row) | {"built": built} for portal_row, built in rows]))
            return
        if not rows:
            out.write("No portal: `periplus portal create NAME` begins one.\n")
        for portal_row, built in rows:
            facts = [
                f"topic {portal_row.topic}" if portal_row.topic else "",
                f"every {portal_row.period_s / 3600:g} h" if portal_row.period_s else "",
                "approved entries only" * portal_row.approve,
            ]
            facts.append(f"built {utc(built)}" if built else "never built")
            out.write(
                f"{portal_row.name:<16} {visible(portal_row.title)}  ({', '.join(fact for fact in facts if fact)})\n"
            )


@portal.command()
@_name_argument
@place_option
@option("--waiting", "Only entries that wait for approval.", bool)
@option("-n --limit", "Entries of each kind.", click.IntRange(1), 30)
@format_option(("text", "json"))
@output_option
def show(name: str, place: Place, waiting: bool, limit: int, format: str, output: Path | None) -> None:
    """Show the next edition without publishing it: entries with their keys, and the chosen sites."""
    from periplus_topics.api import portal as portals
    from periplus_topics.present.stories import edition_values

    edition = portals.edition_of(place, portals.find_portal(place, name), time.time(), Watch())
    with open_output(output, exact=format == "json") as out:
        if format == "json":
            out.write(json_text(edition_values(edition, limit, waiting)))
        else:
            for line in edition_lines(edition, limit, waiting, min(columns_of(out), WIDEST)):
                click.echo(line, file=out)  # which omits colours where the output is not a terminal


def _verb(verb: str, sentence: str) -> None:
    """The subcommand of an editor's verb."""

    @portal.command(verb, help=sentence)
    @click.argument("subjects", nargs=-1, required=True, metavar="ENTRY|SITE...")
    @place_option
    @_portal_option
    def decide_entries(subjects: tuple[str, ...], place: Place, portal: str) -> None:
        from periplus_topics.api import portal as portals

        if (
            not portal
            and len(subjects) > 1
            and any(known_portal.name == subjects[0] for known_portal, _ in portals.portals(place))
        ):
            portal, subjects = (
                subjects[0],
                subjects[1:],
            )  # as the other commands are given it: `portal approve coast KEY`
        chosen = portals.find_portal(place, portal)
        names = portals.decide(place, chosen, verb, subjects, time.time())
        say(f"{verb}: {', '.join(names)}. `periplus portal build` shows it.")


for _name, _sentence in (
    ("approve", "Publish entries: with --approve nothing else is."),
    ("hide", "Keep entries off the portal."),
    ("pin", "Approve entries and put them first; or always follow sites."),
    ("unpin", "Take pins back; entries stay approved."),
    ("ban", "Exclude sites: their pages take no part in stories."),
    ("reset", "Forget what was decided of entries or sites."),
):
    _verb(_name, _sentence)


@portal.command()
@click.argument("arguments", nargs=-1, required=True, metavar="[NAME] KEY")
@_portal_option
@place_option
@option("--words", "Text in place of the first page's first sentence; '' removes it.", metavar="TEXT")
@option("--picture", "PNG, JPEG, GIF or WebP, at most 2 MB, published with the portal; '' removes it.", metavar="FILE")
@option("--alt", "Alternative text of the picture; required with a picture.", metavar="TEXT")
def edit(
    arguments: tuple[str, ...],
    portal: str,
    place: Place,
    words: str | None,
    picture: str | None,
    alt: str | None,
) -> None:
    """Give an entry your own words and a picture.

    \b
    periplus portal edit k3vq --words "The buoy is back." --picture buoy.jpg --alt "A buoy on deck"
    """
    from periplus_topics.api import portal as portals

    if len(arguments) > 2 or (portal and len(arguments) > 1):
        raise UsageError("one entry at a time: periplus portal edit [NAME] KEY")
    if words is None and picture is None and alt is None:
        raise UsageError("nothing to edit: use --words TEXT, --picture FILE or --alt TEXT")
    chosen = portals.find_portal(place, portal or (arguments[0] if len(arguments) == 2 else ""))
    key = portals.edit(place, chosen, arguments[-1], portals.Edit(words, _picture(picture), alt), time.time())
    say(f"edit: {key}. `periplus portal build` shows it.")


def _picture(path: str | None) -> bytes | None:
    """None: not given; empty: remove the present picture."""
    if not path:
        return None if path is None else b""
    if "://" in path:
        raise UsageError("a portal loads nothing from other servers: save the picture, and name the file")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


@portal.command()
@_name_argument
@place_option
@option("--yes", "Do not ask.", bool)
def remove(name: str, place: Place, yes: bool) -> None:
    """Forget a portal and what its editor decided. Published files stay."""
    from periplus_topics.api import portal as portals

    if not name:
        raise UsageError("name the portal: periplus portal remove NAME")
    portals.find_portal(place, name)
    if not yes and not click.confirm(f"Forget the portal {name} with its decisions?", err=True):
        raise UsageError("nothing was removed")
    portals.remove(place, name)


def _waiting(edition: Edition) -> str:
    return f", {number(len(edition.waiting))} waiting for approval" if edition.portal.approve else ""


def edition_lines(edition: Edition, limit: int, waiting: bool, width: int) -> list[str]:
    """The edition for reading."""
    from markupsafe import Markup

    from periplus.present.markup import text_lines
    from periplus_topics.present.stories import OWN, kinds

    return text_lines(
        "edition.txt", OWN, edition=edition, kinds=kinds(edition, waiting), limit=limit, waiting=waiting, width=width,
        style=lambda text, **look: Markup(click.style(text, **look)),
    )  # fmt: skip
