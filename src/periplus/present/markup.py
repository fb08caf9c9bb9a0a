"""Writes values as HTML and XML, so that crawled text stays text, and long tables on one page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from html import escape
from importlib.resources import files
from itertools import islice
from operator import attrgetter
from textwrap import TextWrapper
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from periplus.present.wording import REASON_WORDS, count_of, fit, number, short, size, utc, visible
from periplus.values import frozen

if TYPE_CHECKING:
    import jinja2
    import jinja2.environment

# What XML 1.0 has no place for (section 2.2), surrogates among it; JSON in UTF-8 has none for surrogates either
_NO_CHAR = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPECIAL = re.compile("[&<>\"'\t\r\n]")
_ENTITIES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
    "\t": "&#9;",
    "\r": "&#13;",
    "\n": "&#10;",
}
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
OWN = "periplus.present"
_PARAGRAPH = TextWrapper(100, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
ROWS_PER_PAGE = 200  # rows of one page of a table, and on paper: some six sheets
MOST_ROWS = 100_000  # rows in the page at most: 10 to 20 MB, which a browser opens in under 2 s


def characters(text: str) -> str:
    """The text without what is no character in XML."""
    return _NO_CHAR.sub("", text)


def escape_xml(text: str) -> str:
    """Safe as content and between quotes; white space as references, else a reader folds it (XML 1.0, 3.3.3)."""
    return _SPECIAL.sub(lambda sign: _ENTITIES[sign[0]], characters(text))


def attributes(values: Iterable[tuple[str, str | int | float]]) -> str:
    """` name="value"` for each, in this order."""
    return "".join([f' {name}="{escape_xml(value) if isinstance(value, str) else value}"' for name, value in values])


Html = str  # made by the functions and templates here; everything else is escaped on its way in


def text(value: str) -> Html:
    """Any text as HTML: escaped, without control and bidi signs."""
    return escape(visible(value))


def link(url: str, name: str = "") -> Html:
    """A link to a crawled page, which learns nothing of us;
    the bare name where the URL is none that browsers should open.
    """
    if not url.startswith(("http://", "https://")):
        return text(name or url)
    return f'<a href="{text(url)}" rel="noopener noreferrer nofollow">{text(name or url)}</a>'


def bar(parts: Iterable[tuple[str, float]], whole: float, kind: str = "") -> Html:
    """Parts of a whole side by side, (class, amount), as SVG that takes any width; what is not nothing is seen."""
    rects, left = [], 0.0
    for name, amount in parts:
        width = max(100 * amount / whole, 0.4) if amount and whole else 0.0
        if width:
            rects.append(f'<rect class="{name}" x="{left:.2f}" width="{width:.2f}" height="10"/>')
        left += width
    return (
        f'<svg class="{kind}" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{"".join(rects)}</svg>'
    )


def environment(package: str = OWN, **filters: Callable[..., object]) -> jinja2.Environment:
    """Renders the templates of a package and of this one: every value is escaped and without control and bidi
    characters.

    filters: beside those for all templates.
    """
    import jinja2
    from markupsafe import Markup

    def clean(value: object) -> object:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in dict.fromkeys((package, OWN))]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": number,
        "size": size,
        "count_of": count_of,
        "utc": utc,
        "short": short,
        "link": lambda url, name="": Markup(link(url, name)),
        "bar": lambda parts, whole, kind="": Markup(bar(parts, whole, kind)),
        "paged": lambda table: Markup(page_table(table)),
        "at_home": at_home,
        "path": lambda url: urlsplit(url).path,
        "reason_words": REASON_WORDS.__getitem__,
        "spaced": _spaced_text,
        "cut": lambda text, most: text if len(text) <= most else text[: most - 1] + "…",
    }
    made.filters |= filters
    return made


@cache
def _plain_environment(package: str) -> jinja2.Environment:
    from markupsafe import Markup

    made = environment(package).overlay(autoescape=False)
    made.filters = made.filters | {
        "visible": visible,
        "fit": lambda value, width: Markup(fit(visible(value), width)),
        "row": lambda value, width: Markup(fit(value, width)),
        "right": lambda value, width: Markup(f"{value:>{width}}"),
        "paragraph": lambda value: Markup("\n".join(_PARAGRAPH.wrap(visible(value)))),
    }
    return made


def text_lines(template: str, package: str, **values: object) -> list[str]:
    """The lines of a template for a terminal: values without control characters, lines without blanks at their ends.

    Filters besides those of `environment`: `fit` and `row`, exactly so many columns; `right`; `paragraph`.
    """
    text = _plain_environment(package).get_template(template).render(values)
    return [line.rstrip() for line in text.removesuffix("\n").split("\n")]


def _spaced_text(value: str) -> Html:
    """Any text as HTML, its white space as it is: around a mark it parts words, in code it is what is shown."""
    from markupsafe import Markup

    parts = re.split(r"([ \t\n]+)", value)
    return Markup("".join(text(part) if at % 2 == 0 else part for at, part in enumerate(parts)))


@cache
def macros(template: str, package: str = OWN) -> jinja2.environment.TemplateModule:
    """The macros of a template, which return HTML."""
    return environment(package).get_template(template).module


def make_sections(sections: Iterable[tuple[str, str, Html]]) -> tuple[Html, Html]:
    """(links to the sections, the sections): each (id, heading, content); what has no content is left out."""
    shown = [(name, head, content.strip()) for name, head, content in sections if content.strip()]
    nav = "".join(f'<a href="#{name}">{head}</a>' for name, head, _ in shown)
    body = "\n".join(f'<section id="{name}"><h2>{head}</h2>\n{content}\n</section>' for name, head, content in shown)
    return f"<nav>{nav}</nav>", body


# around a script: comments to HTML, a section to XML
_AS_HTML, _AS_XML = ("//<![CDATA[\n", "\n//]]>"), ("//\n", "\n//")


def document(title: Html, head: Html, body: Html, *, foot: Html = "", rules: str = "") -> Html:
    """A page that needs nothing else: light and dark, fit for paper, no script but our own for long tables.

    Browsers take it as HTML and, where its parts are well formed, as XML. rules: CSS after the report's.
    """
    style = files("periplus.present").joinpath("report.css").read_text("utf-8") + rules
    code, script, may = files("periplus.present").joinpath("paged.js").read_text("utf-8"), "", ""
    if "data-table=" in body:
        script = f"<script>{_AS_HTML[0]}{code}{_AS_HTML[1]}</script>"
        may = f"; script-src {_digest(code, _AS_HTML)} {_digest(code, _AS_XML)}"
    if 'src="data:' in body:
        may += "; img-src data:"
    return f"""<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en"><head><meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'{may}"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/><meta name="referrer" content="no-referrer"/>
<meta name="robots" content="noindex"/><title>{title}</title>
<style>
{style}</style></head><body>
<header>{head}</header>
<main>
{body}
</main>
{foot}{script}</body></html>
"""


def _digest(code: str, around: tuple[str, str]) -> str:
    """Hashes for a Content-Security-Policy: of the script as seen by the HTML and the XML parser."""
    script = f"{around[0]}{code}{around[1]}".encode()
    return f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode('ascii')}'"


# The first rows are HTML, for readers without script and for paper; all rows are beside them as
# data, which is not parsed until the reader sorts, filters or turns the page (`page_table.js`). Text from
# the web is text there too.

Cell = str | int | tuple[str, str]  # a text, a number, or a link as (URL, name); an empty name: the URL itself


@frozen
class HtmlColumn:
    """value: of an item of the table. kind: `text`; `link`, a URL with a name; `n`, a number; `bytes`, a size.
    wide: left out on a telephone.
    """

    head: str
    value: Callable[[Any], Cell]
    kind: str = "text"
    wide: bool = False

    @property
    def classes(self) -> str:
        kinds = ["n"] if self.kind in ("n", "bytes") else []
        return " ".join(kinds + ["wide"] * self.wide)


Value = Callable[[Any], Cell]  # of an item of a table


def html_columns(
    lines: str, values: Mapping[str, Value] = MappingProxyType({}), getter: Callable[[str], Value] = attrgetter
) -> list[HtmlColumn]:
    """Parses columns, one per line: `head: name [kind] [wide]`. Values: by name, else those of the getter."""
    columns = []
    for line in lines.strip().splitlines():
        head, _, rest = line.strip().rpartition(": ")
        name, *kinds = rest.split()
        kind = next((kind for kind in kinds if kind != "wide"), "text")
        value = partial(_link, getter(name)) if kind == "link" else getter(name)
        columns.append(HtmlColumn(head, values.get(name, value), kind, "wide" in kinds))
    return columns


def _link(url_of: Value, item: Any) -> Cell:
    return str(url_of(item)), ""


@frozen
class PagedTable:
    """items: one a row, of any type that the columns know. total: how many there are, if these are only the first."""

    name: str  # of the element: unique on the page
    columns: Sequence[HtmlColumn]
    items: Iterable[Any]
    total: int
    origin: str = ""  # scheme://host of the site itself, which its URLs are shown without
    elsewhere: str = ""  # where the rest is to be had: "`periplus pages` lists all"


def page_table(table: PagedTable) -> Html:
    """The table's HTML; with its data where it has more rows than are shown. Nothing for no rows."""
    rest = ([column.value(item) for column in table.columns] for item in islice(table.items, MOST_ROWS))
    first = list(islice(rest, ROWS_PER_PAGE))
    if not first:
        return ""
    head = "".join(f'<th class="{column.classes}">{text(column.head)}</th>' for column in table.columns)
    body = "\n".join(_row(row, table) for row in first)
    kinds = " ".join(f"{column.kind}{'-wide' if column.wide else ''}" for column in table.columns)
    out = (
        f'<div class="scroll" tabindex="0"><table id="{table.name}" data-kinds="{kinds}" '
        f'data-origin="{text(table.origin)}"><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'
    )
    lines = [*map(_json_row, rest)]
    carried = len(first) + len(lines)
    if lines or table.total > len(first):
        more = f" {text(table.elsewhere)}" if table.elsewhere and table.total > carried else ""
        out += f'<p class="note cut">The first {number(len(first))} of {number(table.total)}.{more}</p>'
    if lines:
        data = ",\n".join([*map(_json_row, first), *lines])
        for letter in "<>&":  # an HTML or XML parser would read them
            data = data.replace(letter, f"\\u{ord(letter):04x}")
        elsewhere = f"; {table.elsewhere}" if table.elsewhere else ""
        note = f" of {number(table.total)} (the first {number(carried)} are here{elsewhere})"
        out += (
            f'<script type="application/json" data-table="{table.name}" data-rows="{carried}" '
            f'data-more="{text(note) if table.total > carried else ""}">[{data}]</script>'
        )
    return out


def _row(row: Sequence[Cell], table: PagedTable) -> Html:
    cells = (
        f'<td class="{column.classes}">{_cell(value, column, table.origin)}</td>'
        for value, column in zip(row, table.columns, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def at_home(url: str, origin: str) -> str:
    """A URL for display: URLs of the site itself by their path."""
    return url.removeprefix(origin) if origin and url.startswith(origin + "/") else url


def _cell(value: Cell, column: HtmlColumn, origin: str) -> Html:
    if isinstance(value, tuple):
        url, name = value
        shown = at_home(url, origin)
        return f"{link(url, name)}<br><small>{text(shown)}</small>" if name else link(url, shown)
    if isinstance(value, int):
        return size(value) if column.kind == "bytes" else number(value)
    return text(value)


def _json_row(row: Sequence[Cell]) -> str:
    return _encode(
        [
            [*map(visible, value)] if isinstance(value, tuple) else visible(value) if isinstance(value, str) else value
            for value in row
        ]
    )


def page_cell(url: str, title: str) -> tuple[str, str]:
    """A page as a cell: its title, or the end of its URL."""
    return url, title or short(url)
