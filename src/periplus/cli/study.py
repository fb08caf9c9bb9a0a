"""`periplus duplicates`, and `template`: pages that share text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import (
    PATH,
    collection_option,
    columns_of,
    format_option,
    open_output,
    opened_collection,
    option,
    output_option,
)
from periplus.cli.progress import Watch
from periplus.errors import UsageError
from periplus.model.duplicates import PUBLISHED_RULES, TemplateRules
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.api.templates import Templates


# `periplus duplicates`: pages with the same text as others.

FORMATS = ("text", "json", "csv")
METHODS = ("site", "shorkin")  # of `api.templates`
SAMPLE_PAGES = 25  # of each template in --html: to judge by eye, more are not looked at


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
    periplus duplicates -f csv -o same.csv       a row a page, for a spreadsheet
    """
    from periplus.present.tables import write_table
    from periplus.present.text import COLUMNS, duplicate_lines, duplicate_rows, write_duplicate_json

    with opened_collection(collection) as reader:
        duplicate_groups = reader.duplicates(site, near=near, watch=Watch())
    with open_output(output, exact=format != "text") as out:
        if format == "json":
            write_duplicate_json(duplicate_groups, out)
        elif format == "csv":
            write_table(COLUMNS, duplicate_rows(duplicate_groups), "csv", out)
        else:
            out.writelines(line + "\n" for line in duplicate_lines(duplicate_groups, most=most))


# `periplus template`: which pages of a site one template made, and what of them is navigation.


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
    with opened_collection(collection) as reader:
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
                _write_folders(templates, flags, _folder_name(name) if len(sites) > 1 else "")
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
