"""`periplus template`: which pages of a site one template made, and what of them is navigation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import collection_option, columns_of, found_collection, opened, output_option
from periplus.cli.watching import Watch
from periplus.errors import UsageError
from periplus.model.template import PUBLISHED, TemplateRules

if TYPE_CHECKING:
    from periplus.api.templates import Templates

METHODS = ("site", "shorkin")  # of `api.template_methods`
SAMPLE_PAGES = 25  # of each template in --html: to judge by eye, more are not looked at


@click.command()
@click.argument("site", default="", metavar="[SITE]")
@collection_option
@click.option("--method", type=click.Choice(METHODS), help="The marks stored with the pages (the default where there are any), or Shorkin's rules.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FOLDER", help="Write pages with their parts coloured, to judge by eye.")
@click.option("--pages", type=click.IntRange(-1), default=SAMPLE_PAGES, show_default=True, help="Pages of each template in --html; -1: all.")
@click.option("--text", type=click.Path(path_type=Path), metavar="FOLDER", help="Write the text of every page without its navigation.")
@click.option("--remove", type=click.Path(path_type=Path), metavar="FOLDER", help="Write the source of every page without its navigation (by Shorkin's rules).")
@click.option("--min-fragmenters-chain", type=click.IntRange(1), default=PUBLISHED.min_fragmenters_chain, show_default=True, help="Tags and texts of a chain.")
@click.option("--duplicates", type=click.IntRange(1, 100), default=PUBLISHED.duplicates, show_default=True, help="Pages that share more (%) begin no template.")
@click.option("--min-nav-length", type=click.IntRange(1, 100), default=PUBLISHED.min_nav_length, show_default=True, help="What a page shares to join (%).")
@click.option("--least-nav-length", type=click.IntRange(1, 100), default=PUBLISHED.least_nav_length, show_default=True, help="The last value it falls to.")
@click.option("--nav-length-step", type=click.IntRange(1, 100), default=PUBLISHED.nav_length_step, show_default=True, help="In such steps.")
@click.option("--cluster-pages", type=click.IntRange(2), default=PUBLISHED.cluster_pages, show_default=True, help="Pages of the smallest template.")
@click.option("-f", "--format", type=click.Choice(("text", "json")), default="text", show_default=True, help="JSON names every page.")
@click.option("--json", "as_json", is_flag=True, help="The same as -f json.")
@click.option("--most", type=click.IntRange(-1), default=20, show_default=True, help="Pages without a template that are named; -1: all.")
@output_option
def template(site: str, collection: Path | None, method: str | None, output: Path | None, **flags: Any) -> None:
    """Tell navigation from content, by what a site's pages share.

    Finds which pages of a site one template made, and what of each is navigation: menus, headers, footers, boxes. SITE is needed where the
    collection holds several.

    \b
    periplus template                            the templates, with sizes and a page of each
    periplus template --html look                the pages, navigation coloured: open look/index.html
    periplus template --text plain               what remains of each page, as text
    periplus template --remove bare              the pages' own source without navigation; their scripts are theirs
    """
    from periplus.api.collection import open_collection
    from periplus.present.template_text import template_lines, write_template_json

    if flags["remove"] and method == "site":
        raise UsageError("marks are of a page's text, not of its source: --remove goes with --method shorkin")
    method = method or ("shorkin" if flags["remove"] else "")
    rules = TemplateRules(**{name: flags[name] for name in TemplateRules.__slots__})
    if rules.least_nav_length > rules.min_nav_length:
        raise UsageError(
            f"--least-nav-length {rules.least_nav_length} is above --min-nav-length {rules.min_nav_length}: it is the value that the other falls to"
        )
    folders = [folder for folder in (flags["html"], flags["text"], flags["remove"]) if folder is not None]
    for folder in folders:
        _refuse_filled(folder)
    if len(set(folders)) < len(folders):
        raise UsageError("--html, --text and --remove need a folder each")
    with open_collection(found_collection(collection)) as kept:
        templates = kept.templates(site, method=method, rules=rules, watch=Watch())
        with opened(output, exact=flags["as_json"] or flags["format"] == "json") as out:
            if flags["as_json"] or flags["format"] == "json":
                write_template_json(templates.found, out)
            else:
                out.writelines(line + "\n" for line in template_lines(templates.found, width=columns_of(out), most=flags["most"]))
        _write_folders(templates, flags)


def _refuse_filled(folder: Path) -> None:
    """Before anything is computed: nothing is written over."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty: name a new folder, or empty it first")


def _write_folders(templates: Templates, flags: dict[str, Any]) -> None:
    from periplus.present.template_pages import INDEX

    writers: dict[str, Callable[[Path], None]] = {
        "html": lambda folder: _write_marked(templates, folder, flags["pages"]),
        "text": lambda folder: _write_plain(((page.url, left) for page, left in templates.texts()), folder, ".txt"),
        "remove": lambda folder: _write_plain(((page.url, left) for page, left in templates.sources()), folder, ".html"),
    }
    for name, write in writers.items():
        if (folder := flags[name]) is None:
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write(folder)
        except OSError as error:
            raise UsageError(f"{error.filename} cannot be written: {error.strerror}") from None
        click.echo(f"Written to {folder / INDEX if name == 'html' else folder}", err=True)


def _write_marked(templates: Templates, folder: Path, most: int) -> None:
    from periplus.present.template_pages import INDEX, Shown, file_name, marked_page, template_index

    chosen = templates.chosen(most)
    names = [file_name(at, page.url, ".html") for at, (page, _) in enumerate(chosen, 1)]
    for at, marked in enumerate(templates.marked(most)):
        before, after = names[at - 1] if at else "", names[at + 1] if at + 1 < len(names) else ""
        (folder / names[at]).write_text(marked_page(marked, before, after), "utf-8", errors="replace")
    shown = [Shown(page, template, name) for (page, template), name in zip(chosen, names, strict=True)]
    (folder / INDEX).write_text(template_index(templates.found, shown), "utf-8", errors="replace")


def _write_plain(pages: Iterable[tuple[str, str]], folder: Path, suffix: str) -> None:
    """A file a page, and `pages.tsv`: which file is which URL."""
    from periplus.present.template_pages import file_name

    with (folder / "pages.tsv").open("w", encoding="utf-8") as listed:
        listed.write("file\turl\n")
        for at, (url, content) in enumerate(pages, 1):
            name = file_name(at, url, suffix)
            (folder / name).write_text(content + "\n", "utf-8", errors="replace")
            listed.write(f"{name}\t{url}\n")
