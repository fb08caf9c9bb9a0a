"""How are a site's templates told in lines, and to programs?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TextIO

from periplus.model.template import SiteTemplates, TemplatePage
from periplus.present.lines import fit, visible
from periplus.present.wording import count_of, number, size

METHOD_WORDS = {"shorkin": "Shorkin's rules", "site": "the marks stored with the pages"}


def summary(found: SiteTemplates) -> str:
    """How many of how many pages have a template."""
    taken = sum(len(template.pages) for template in found.templates)
    total = taken + len(found.others)
    return f"{count_of(len(found.templates), 'template')} for {number(taken)} of {count_of(total, 'page')}, by {METHOD_WORDS[found.method]}"


def template_lines(found: SiteTemplates, *, width: int = 100, most: int = 20) -> Iterator[str]:
    """A line a template: its pages, how much of them is navigation, a page of it; then the pages that none took. most: of these; -1: all."""
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
    return {"url": page.url, "title": page.title, "size_bytes": page.size_bytes, "navigation_bytes": page.navigation_bytes}
