"""A site's templates in lines, as JSON, and as pages with their navigation in colour."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple, TextIO
from urllib.parse import urlsplit

from periplus.model.duplicates import MarkedBlock, MarkedPage, SiteTemplates, TemplatePage, TextRun
from periplus.model.page import BlockKind, Part
from periplus.present.markup import Html, document, link, table, text
from periplus.present.wording import count_of, fit, number, short, size, visible

METHOD_WORDS = {"shorkin": "Shorkin's rules", "site": "the marks stored with the pages"}


def summary(found: SiteTemplates) -> str:
    """How many of how many pages have a template."""
    taken = sum(len(template.pages) for template in found.templates)
    total = taken + len(found.others)
    return (
        f"{count_of(len(found.templates), 'template')} for {number(taken)} of {count_of(total, 'page')}, by "
        f"{METHOD_WORDS[found.method]}"
    )


def template_lines(found: SiteTemplates, *, width: int = 100, most: int = 20) -> Iterator[str]:
    """A line a template: its pages, how much of them is navigation, a page of it; then the pages that none took.

    most: of these; -1: all.
    """
    yield f"{visible(found.site)}: {summary(found)}"
    if found.templates:
        yield ""
        yield f"{'':>4}{'pages':>8}  {'navigation':>10}  {'a page':>9}  one of them"
    for place, template in enumerate(found.templates, 1):
        mean = sum(page.size_bytes for page in template.pages) // len(template.pages)
        head = f"{place:>4}{number(len(template.pages)):>8}  {template.share:>10.0%}  {size(mean):>9}  "
        yield (head + fit(visible(template.pages[0].url), max(width - len(head), 20))).rstrip()
    if found.others:
        yield ""
        yield f"Pages that no template took: {number(len(found.others))}"
        shown = found.others if most < 0 else found.others[:most]
        yield from (f"    {fit(visible(page.url), width - 4)}".rstrip() for page in shown)
        if len(shown) < len(found.others):
            yield f"    and {number(len(found.others) - len(shown))} more; --most -1 names all"


def write_template_json(found: SiteTemplates, out: TextIO) -> None:
    """Everything, in the order in which pages joined their templates."""
    value = {
        "site": found.site,
        "method": found.method,
        "rules": {name: getattr(found.rules, name) for name in found.rules.__slots__},
        "templates": [
            {
                "pages": len(template.pages),
                "navigation_share": round(template.share, 4),
                "navigation_chain_bytes": template.chain_bytes,
                "members": [_page(page) for page in template.pages],
            }
            for template in found.templates
        ],
        "others": [_page(page) for page in found.others],
    }
    json.dump(value, out, ensure_ascii=False, indent=1)
    out.write("\n")


def _page(page: TemplatePage) -> dict[str, object]:
    return {
        "url": page.url,
        "title": page.title,
        "size_bytes": page.size_bytes,
        "navigation_bytes": page.navigation_bytes,
    }


HUE_STEP = 137.5  # degrees, the golden angle: neighbours in the list are far apart on the circle of colours
FIRST_HUE = 205.0
NAME_CHARS = 40  # of a file's name that tell its page
INDEX = "index.html"
_SPACE = re.compile(r"([ \t\n]+)")
_UNFIT = re.compile(r"[^a-z0-9]+")


class Shown(NamedTuple):
    """A page that was written, for the index."""

    page: TemplatePage
    template: int  # -1: none took it
    file: str


def file_name(number: int, url: str, suffix: str) -> str:
    """`0007-about-us.html`: unique by its number, safe on any disk, and it says which page it is."""
    parts = urlsplit(url)
    said = _UNFIT.sub("-", f"{parts.path} {parts.query}".lower()).strip("-")
    return f"{number:04}-{said[-NAME_CHARS:].strip('-') or 'home'}{suffix}"


def marked_page(marked: MarkedPage, before: str, after: str) -> str:
    """One page: content plain, navigation coloured.

    before, after: files of its neighbours, empty where there is none.
    """
    page = marked.page
    crumbs = [
        f'<a href="{INDEX}">All templates</a>',
        *(f'<a href="{text(file)}">{name}</a>' for file, name in ((before, "← before"), (after, "next →")) if file),
    ]
    name = f"Template {marked.template + 1}" if marked.template >= 0 else "No template took it"
    body = "\n".join(_grouped(marked))
    return _document(
        page.title or short(page.url),
        f"""<p class="crumbs">{"".join(crumbs)}</p>
<h1>{text(page.title or short(page.url))}</h1>
<p class="soft">{link(page.url)}</p>
<p>{_swatch(marked.template)} {name}: {_share(page)} of {size(page.size_bytes)} is navigation, shown in this colour.</p>""",  # noqa: E501
        f'<article class="page {_dress(marked.template)}>\n{body or "<p>No text.</p>"}\n</article>',
    )


def template_index(found: SiteTemplates, shown: Sequence[Shown]) -> str:
    """The templates with their sizes, and the pages that were written."""
    rows = [
        (
            _swatch(at),
            number(len(template.pages)),
            f'<span class="meter {_dress(at)}><i style="width:{100 * template.share:.1f}%"></i></span>',
            f"{template.share:.0%}",
            (
                f"{link(template.pages[0].url, template.pages[0].title or short(template.pages[0].url))}<br><small>"
                f"{text(template.pages[0].url)}</small>"
            ),
        )
        for at, template in enumerate(found.templates)
    ]
    overview = (
        table(["", "pages", "navigation", "share", "a page of it"], rows, ["w", "n", "meters", "n", ""]) if rows else ""
    )
    sections = "\n".join(
        _listed(template, list(pages)) for template, pages in groupby(shown, key=lambda one: one.template)
    )
    title = f"{found.site}: templates"
    return _document(
        title,
        f'<h1>{text(title)}</h1>\n<p class="soft">{text(summary(found))}.</p>',
        (
            f'{overview}\n<p class="note">Share: of the bytes of a page’s source, the mean over the '
            f"template’s pages.</p>\n{sections}"
        ),
    )


def _listed(template: int, shown: Sequence[Shown]) -> Html:
    rows = [
        (
            (
                f'<a href="{text(one.file)}">{text(one.page.title or short(one.page.url))}</a><br><small>'
                f"{text(one.page.url)}</small>"
            ),
            _share(one.page),
        )
        for one in shown
    ]
    head = f"Template {template + 1}" if template >= 0 else "No template took them"
    return (
        f"<section><h2>{_swatch(template)} {head}</h2>"
        f'<p class="note">{count_of(len(shown), "page")} to look '
        f"at.</p>{table(['page', 'navigation'], rows, ['', 'n'])}</section>"
    )


def _document(title: str, head: Html, body: Html) -> Html:
    return document(
        text(title), head, body, rules=files("periplus.present").joinpath("template.css").read_text("utf-8")
    )


def _dress(template: int) -> Html:
    """The end of a class attribute, and the colour of a template: `shared" style="--hue:205"`."""
    return f'shared" style="--hue:{(FIRST_HUE + HUE_STEP * template) % 360:g}"' if template >= 0 else 'shared none"'


def _swatch(template: int) -> Html:
    return f'<span class="swatch {_dress(template)}>{template + 1 if template >= 0 else "–"}</span>'


def _share(page: TemplatePage) -> str:
    return f"{page.navigation_bytes / page.size_bytes:.0%}" if page.size_bytes else "nothing"


def _grouped(marked: MarkedPage) -> list[Html]:
    """Blocks of navigation in a row make one box; the others stand for themselves."""
    found: list[Html] = []
    for is_navigation, blocks in groupby(marked.blocks, key=_is_navigation):
        if is_navigation:
            found.append('<div class="box">' + " ".join(map(_in_box, blocks)) + "</div>")
        else:
            found += map(_block, blocks)
    return found


def _is_navigation(block: MarkedBlock) -> bool:
    return not any(run.part is Part.CONTENT and run.text.strip() for run in block.runs)


def _in_box(block: MarkedBlock) -> Html:
    words = text(" ".join("".join(run.text for run in block.runs).split()))
    return f'<span class="h">{words}</span>' if block.kind is BlockKind.HEADING else f"<span>{words}</span>"


def _block(block: MarkedBlock) -> Html:
    inner = "".join(map(_run, block.runs))
    if block.kind is BlockKind.HEADING:
        return f'<h3 class="h{block.level}">{inner}</h3>'
    if block.kind is BlockKind.CODE:
        return f"<pre>{inner}</pre>"
    return f'<p class="{block.kind.value}">{inner}</p>'


def _run(run: TextRun) -> Html:
    """Its white space stays: around a mark it parts words, in code it is what is shown."""
    inner = "".join(text(word) if at % 2 == 0 else word for at, word in enumerate(_SPACE.split(run.text)))
    return f"<mark>{inner}</mark>" if run.part is Part.NAVIGATION and run.text.strip() else inner
