"""`periplus duplicates`, `template`, `analyse`, `keywords`, `stories` and `influence`: analyses of texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import (
    PATH,
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
from periplus.model.duplicates import PUBLISHED_RULES, TemplateRules
from periplus.present.wording import count_of, number, visible
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.api.templates import Templates
    from periplus.model.story import Cascades
    from periplus.model.topic import KeywordList


# `periplus duplicates`: pages with the same text as others.

FORMATS = ("text", "json", "csv")


@click.command()
@click.argument("site", default="", metavar="[SITE]")
@collection_option
@option(
    "--near",
    "Share of common runs of five words from which pages are near duplicates; 1: only equal texts.",
    click.FloatRange(0.3, 1),
    0.8,
)
@format_option(FORMATS)
@click.option("--csv", "format", flag_value="csv", help="The same as -f csv: a row a page.")
@option("--most", "Pages of a group, and ten times as many groups, in text; -1: all.", click.IntRange(-1), 10)
@output_option
def duplicates(site: str, collection: Place | None, near: float, format: str, most: int, output: Path | None) -> None:
    """List pages with the same or nearly the same text.

    Prints groups, each with its representative and the reason: first the version with diacritics, then the page that
    others name as canonical, then the page nearest to the start, then the shortest URL. Encoding and markup do not
    count. SITE: only this site.

    \b
    periplus duplicates                          groups, the largest first
    periplus duplicates --near 1                 only pages of the very same text
    periplus duplicates example.org --near 0.6   less alike, too
    periplus duplicates --csv -o same.csv        a row a page, for a spreadsheet
    """
    from periplus.api.collection import Collection
    from periplus.present.tables import write_table
    from periplus.present.text import COLUMNS, duplicate_lines, duplicate_rows, write_duplicate_json

    with Collection(collection_folder(collection)) as reader:
        duplicate_groups = reader.duplicates(site, near=near, watch=Watch())
    with open_output(output, exact=format != "text") as out:
        if format == "json":
            write_duplicate_json(duplicate_groups, out)
        elif format == "csv":
            write_table(COLUMNS, duplicate_rows(duplicate_groups), "csv", out)
        else:
            out.writelines(line + "\n" for line in duplicate_lines(duplicate_groups, most=most))


# `periplus template`: which pages of a site one template made, and what of them is navigation.

METHODS = ("site", "shorkin")  # of `api.templates`
SAMPLE_PAGES = 25  # of each template in --html: to judge by eye, more are not looked at


@click.command()
@click.argument("site", default="", metavar="[SITE]")
@option("--site one_site", "The same as SITE.", str, "", metavar="KEY")
@collection_option
@option("--method", "The marks stored with the pages (default, if there are any), or Shorkin's rules.", METHODS)
@option("--html", "Write pages with coloured parts, for inspection.", PATH, metavar="FOLDER")
@option("--pages", "Pages of each template in --html; -1: all.", click.IntRange(-1), SAMPLE_PAGES)
@option("--text", "Write the text of every page without its navigation.", PATH, metavar="FOLDER")
@option(
    "--remove", "Write the source of every page without its navigation (by Shorkin's rules).", PATH, metavar="FOLDER"
)
@option(
    "--min-fragmenters-chain", "Tags and texts of a chain.", click.IntRange(1), PUBLISHED_RULES.min_fragmenters_chain
)
@option(
    "--duplicates",
    "Pages that share more than this (%) start no template.",
    click.IntRange(1, 100),
    PUBLISHED_RULES.duplicates,
)
@option(
    "--min-nav-length",
    "Shared part that joins a page to a template (%).",
    click.IntRange(1, 100),
    PUBLISHED_RULES.min_nav_length,
)
@option("--least-nav-length", "Its last value.", click.IntRange(1, 100), PUBLISHED_RULES.least_nav_length)
@option("--nav-length-step", "In such steps.", click.IntRange(1, 100), PUBLISHED_RULES.nav_length_step)
@option("--cluster-pages", "Pages of the smallest template.", click.IntRange(2), PUBLISHED_RULES.cluster_pages)
@format_option(("text", "json"), "JSON names every page.")
@option("--most", "Pages without a template in the list; -1: all.", click.IntRange(-1), 20)
@output_option
def template(
    site: str, one_site: str, collection: Place | None, method: str | None, output: Path | None, **flags: Any
) -> None:
    """Separate navigation from content, by what a site's pages share.

    Finds pages made by the same template, and the navigation of each page: menus, headers, footers, boxes. In a
    collection with several sites each site is analysed separately; SITE chooses one. Files of several sites are written
    into one folder each.

    \b
    periplus template                            the templates, with sizes and a page of each
    periplus template --html look                the pages, navigation coloured: open look/index.html
    periplus template --text plain               what remains of each page, as text
    periplus template --remove bare              the pages' own source without navigation; their scripts are theirs
    """
    from periplus.api.collection import Collection
    from periplus.present.tables import json_text
    from periplus.present.template import template_lines, template_values

    if flags["remove"] and method == "site":
        raise UsageError("marks belong to a page's text, not to its source: --remove needs --method shorkin")
    method = method or ("shorkin" if flags["remove"] else "")
    rules = TemplateRules(**{name: flags[name] for name in TemplateRules.__annotations__})
    if rules.least_nav_length > rules.min_nav_length:
        raise UsageError(
            f"--least-nav-length {rules.least_nav_length} is above --min-nav-length {rules.min_nav_length}: it is the "
            "value that the other falls to"
        )
    folders = [folder for folder in (flags["html"], flags["text"], flags["remove"]) if folder is not None]
    for folder in folders:
        _require_empty(folder)
    if len(set(folders)) < len(folders):
        raise UsageError("--html, --text and --remove need a folder each")
    with Collection(collection_folder(collection)) as reader:
        site = site or one_site
        sites, values = [site] if site else reader.sites() or [""], []
        with open_output(output, exact=flags["format"] == "json") as out:
            for place, name in enumerate(sites):
                templates = reader.templates(name, method=method, rules=rules, watch=Watch())
                if flags["format"] == "json":
                    values.append(template_values(templates.found))
                else:
                    lines = template_lines(templates.found, width=columns_of(out), most=flags["most"])
                    out.writelines(line + "\n" for line in chain([""] * bool(place), lines))
                _write_folders(
                    templates, flags, re.sub(r"[^a-z0-9.-]+", "-", name).strip("-.") if len(sites) > 1 else ""
                )
            if values:
                out.write(json_text(values[0] if len(values) == 1 else {"sites": values}))


def _folder_name(site: str) -> str:
    return re.sub(r"[^a-z0-9.-]+", "-", site).strip("-.")


def _require_empty(folder: Path) -> None:
    """Before anything is computed: nothing is written over."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty: name a new folder, or empty it first")


def _write_folders(templates: Templates, flags: dict[str, Any], below: str) -> None:
    """below: the folder of the site, of several."""
    from periplus.present.template import INDEX

    writers: dict[str, Callable[[Path], None]] = {
        "html": lambda folder: _write_marked_pages(templates, folder, flags["pages"]),
        "text": lambda folder: _write_plain(((page.url, left) for page, left in templates.texts()), folder, ".txt"),
        "remove": lambda folder: _write_plain(
            ((page.url, left) for page, left in templates.sources()), folder, ".html"
        ),
    }
    for name, write in writers.items():
        if flags[name] is None:
            continue
        folder = flags[name] / below
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write(folder)
        except OSError as error:
            raise UsageError(f"{error.filename} cannot be written: {error.strerror}") from None
        click.echo(f"Written to {folder / INDEX if name == 'html' else folder}", err=True)


def _write_marked_pages(templates: Templates, folder: Path, most: int) -> None:
    from periplus.present.template import INDEX, IndexEntry, file_name, marked_page, template_index

    chosen = templates.numbered_pages(most)
    names = [file_name(at, page.url, ".html") for at, (page, _) in enumerate(chosen, 1)]
    for at, marked in enumerate(templates.marked_pages(most)):
        before, after = names[at - 1] if at else "", names[at + 1] if at + 1 < len(names) else ""
        (folder / names[at]).write_text(marked_page(marked, before, after), "utf-8", errors="replace")
    shown = [IndexEntry(page, template, name) for (page, template), name in zip(chosen, names, strict=True)]
    (folder / INDEX).write_text(template_index(templates.found, shown), "utf-8", errors="replace")


def _write_plain(pages: Iterable[tuple[str, str]], folder: Path, suffix: str) -> None:
    """A file a page, and `pages.tsv`: which file is which URL."""
    from periplus.present.template import file_name

    with (folder / "pages.tsv").open("w", encoding="utf-8") as listed:
        listed.write("file\turl\n")
        for at, (url, content) in enumerate(pages, 1):
            name = file_name(at, url, suffix)
            (folder / name).write_text(content + "\n", "utf-8", errors="replace")
            listed.write(f"{name}\t{url}\n")


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
    from periplus.api import functions

    target += (site,) if site else ()
    if target and flags["query"] is not None:
        raise UsageError("give either pages or a site, or --query")
    watch = Watch()
    folder = collection_folder(collection)
    result = functions.keywords(folder, *target, watch=lambda pages: watch("pages read", pages, 0), **flags)
    values = asdict(result) | {"keywords": [keyword._asdict() for keyword in result.keywords]}
    write_output(output, lines(result), values if as_json else None)


def lines(keywords: KeywordList) -> list[str]:
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
    from periplus.api.results import store_stories
    from periplus.api.stories import stories_of
    from periplus.present.stories import cascade_lines, stories_lines, write_cascade_svg, write_stories_json

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
    from periplus.api import stories as work
    from periplus.model.story import Objective
    from periplus.present.influence import (
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
    request = work.ReadingRequest(
        objective, (flags["budget"] or POSTS_SHARE) if by_posts else flags["sites"], by_posts, flags["future"]
    )
    given = _cascades(collection, flags)
    if len(given.members) >= SAID_ENTRIES:
        click.echo(f"choosing among {len(given.sites):,} sites; exchanges and bounds take some seconds", err=True)
    choice = work.influence(given, request)
    ahead = work.holdout(given, request) if flags["holdout"] else None
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
    from periplus.analyse.cascades import cascades_of_stories
    from periplus.api.stories import cascades_from, stories_of

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
