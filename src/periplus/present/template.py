"""A site's templates in lines, as JSON, and as pages with their navigation in colour."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.resources import files
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from periplus.model.duplicates import MarkedBlock, MarkedPage, SiteTemplates, TemplatePage
from periplus.model.page import Part
from periplus.present.markup import Html, document, macros, text
from periplus.present.tables import align
from periplus.present.wording import count_of, fit, number, short, size, visible
from periplus.values import JsonObject

METHOD_WORDS = {"shorkin": "Shorkin's rules", "site": "the marks stored with the pages"}
NAME_CHARS = 40  # characters of a file's name for its page
INDEX = "index.html"
_UNFIT = re.compile(r"[^a-z0-9]+")


def summary(site: SiteTemplates) -> str:
    """How many of how many pages have a template."""
    pages = sum(len(template.pages) for template in site.templates)
    total = pages + len(site.others)
    return (
        f"{count_of(len(site.templates), 'template')} for {number(pages)} of {count_of(total, 'page')}, by "
        f"{METHOD_WORDS[site.method]}"
    )


def template_lines(site: SiteTemplates, *, width: int = 100, most: int = 20) -> Iterator[str]:
    """A line a template: its pages, how much of them is navigation, a page of it; then the pages that none took.

    most: of these; -1: all.
    """
    yield f"{visible(site.site)}: {summary(site)}"
    rows = [("", "pages", "navigation", "of a page", "example")] * bool(site.templates)
    for place, template in enumerate(site.templates, 1):
        mean = sum(page.size_bytes for page in template.pages) // len(template.pages)
        counts = (number(len(template.pages)), f"{template.share:.0%}", size(mean))
        rows.append((f"  {place}", *counts, visible(template.pages[0].url)))
    yield from ([""] if rows else [])
    yield from (fit(line, width).rstrip() for line in align(rows, range(4)))
    if site.others:
        yield ""
        yield f"Pages without a template: {number(len(site.others))}"
        shown = site.others if most < 0 else site.others[:most]
        yield from (f"    {fit(visible(page.url), width - 4)}".rstrip() for page in shown)
        if len(shown) < len(site.others):
            yield f"    and {number(len(site.others) - len(shown))} more; --most -1 names all"


def template_values(site: SiteTemplates) -> JsonObject:
    """Everything, for JSON, in the order in which pages joined their templates."""
    return {
        "site": site.site,
        "method": site.method,
        "rules": asdict(site.rules),
        "templates": [
            {
                "pages": len(template.pages),
                "navigation_share": round(template.share, 4),
                "navigation_chain_bytes": template.chain_bytes,
                "members": [_page(page) for page in template.pages],
            }
            for template in site.templates
        ],
        "others": [_page(page) for page in site.others],
    }


def _page(page: TemplatePage) -> JsonObject:
    return {
        "url": page.url,
        "title": page.title,
        "size_bytes": page.size_bytes,
        "navigation_bytes": page.navigation_bytes,
    }


class IndexEntry(NamedTuple):
    """A page that was written, for the index."""

    page: TemplatePage
    template: int  # -1: none took it
    file: str


def file_name(number: int, url: str, suffix: str) -> str:
    """`0007-about-us.html`: unique by its number, safe on any file system, and readable."""
    parts = urlsplit(url)
    words = _UNFIT.sub("-", f"{parts.path} {parts.query}".lower()).strip("-")
    return f"{number:04}-{words[-NAME_CHARS:].strip('-') or 'home'}{suffix}"


def marked_page(marked: MarkedPage, before: str, after: str) -> str:
    """One page: content plain, navigation coloured.

    before, after: files of its neighbours, empty where there is none.
    """
    html: Any = macros("marks.html")
    groups = [(is_navigation, list(blocks)) for is_navigation, blocks in groupby(marked.blocks, key=_is_navigation)]
    title = text(marked.page.title or short(marked.page.url))
    return _document(title, html.marked_head(marked, before, after), html.marked_page(marked.template, groups))


def _is_navigation(block: MarkedBlock) -> bool:
    return not any(run.part is Part.CONTENT and run.text.strip() for run in block.runs)


def template_index(site: SiteTemplates, shown: Sequence[IndexEntry]) -> str:
    """The templates with their sizes, and the pages that were written."""
    html: Any = macros("marks.html")
    title = text(f"{site.site}: templates")
    pages = [(template, list(group)) for template, group in groupby(shown, key=lambda page: page.template)]
    head = f'<h1>{title}</h1>\n<p class="soft">{text(summary(site))}.</p>'
    return _document(title, head, html.index(list(enumerate(site.templates)), pages))


def _document(title: Html, head: Html, body: Html) -> Html:
    return document(title, head, body, rules=files("periplus.present").joinpath("template.css").read_text("utf-8"))
