"""`periplus keywords`, `stories` and `influence`: analyses of texts of several sites."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import (
    collection_folder,
    collection_option,
    columns_of,
    draws_boxes,
    format_option,
    open_output,
    option,
    output_option,
    write_output,
)
from periplus.cli.progress import Watch
from periplus.errors import UsageError
from periplus.present.wording import count_of, number, visible
from periplus.values import Place

if TYPE_CHECKING:
    from periplus_topics.model import Cascades, KeywordList

# `periplus keywords`: what pages, sites and answers are about, at a glance.

KEYWORD_METHODS = (
    "learnt",
    "tfidf",
    "kpminer",
    "textrank",
    "singlerank",
    "positionrank",
    "topicrank",
    "multipartiterank",
)


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
    from periplus_topics.api import functions

    target += (site,) if site else ()
    if target and flags["query"] is not None:
        raise UsageError("give either pages or a site, or --query")
    watch = Watch()
    folder = collection_folder(collection)
    result = functions.keywords(folder, *target, watch=lambda pages: watch("pages read", pages, 0), **flags)
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
    from periplus_topics.api.results import store_stories
    from periplus_topics.api.stories import stories_of
    from periplus_topics.present.stories import cascade_lines, stories_lines, write_cascade_svg, write_stories_json

    story = flags["story"]
    if format == "svg" and story is None:
        raise UsageError("svg draws one story: name it, as in --story 1")
    if format == "json" and story is not None:
        raise UsageError("JSON has all stories: leave out --story")
    folder = collection_folder(collection)
    latest = stories_of(folder, least_sites=flags["least_sites"], watch=Watch())
    if flags["keep"]:
        store_stories(folder, latest)
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

INFLUENCE_FORMATS = ("text", "json", "csv", "svg", "html")
SAID_ENTRIES = 20_000  # from which on the choice is not there at once
POSTS_SHARE = 0.1  # share of all posts that --cost posts reads without a budget


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
    periplus influence --holdout -f html -o influence.html
    periplus influence --cascades cascades.txt.gz -k 100 --json
    """
    from periplus_topics.api import stories as api_stories
    from periplus_topics.model import Objective
    from periplus_topics.present.influence import (
        influence_lines,
        influence_page,
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
    choice = api_stories.influence(given, request)
    ahead = api_stories.holdout(given, request) if flags["holdout"] else None
    with open_output(output, exact=format != "text") as out:
        if format == "json":
            write_influence_json(given, choice, objective, ahead, out)
        elif format == "csv":
            write_influence_csv(given, choice, out)
        elif format == "svg":
            write_coverage_svg(given, choice, objective, ahead, out)
        elif format == "html":
            out.write(influence_page(given, choice, objective, ahead))
        else:
            plain = not draws_boxes(out)
            for line in influence_lines(given, choice, objective, ahead, columns_of(out)):
                out.write((line.translate(_PLAIN) if plain else line) + "\n")


_PLAIN = str.maketrans(dict.fromkeys("▏▎▍▌▋▊▉", "") | {"█": "#", "…": "..."})


def _cascades(collection: Place | None, flags: dict[str, Any]) -> Cascades:
    """Cascades of the file, or of the stories in the collection. Raises UsageError without any."""
    from periplus_topics.analyse.cascades import cascades_of_stories
    from periplus_topics.api.stories import cascades_from, stories_of

    if flags["cascades"] is not None:
        given = cascades_from(flags["cascades"])
        where = f"{flags['cascades']} has no cascade: a story a line, as in example.org,338200.5 other.example,338214"
    else:
        watch = Watch()
        given = cascades_of_stories(
            stories_of(collection_folder(collection), least_sites=flags["least_sites"], watch=watch)
        )
        where = (
            "the collection has no story that two sites published, so there is nothing to choose by: crawl "
            "more sites of one subject"
        )
    if len(given.offsets) < 2:
        raise UsageError(where)
    return given
