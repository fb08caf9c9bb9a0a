"""`periplus pages`, `links` and `page`: rows of URLs and links, and one stored page."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import (
    WholeNumber,
    choose_parts,
    collection_option,
    format_option,
    open_output,
    opened_bytes,
    opened_collection,
    option,
    options,
    output_option,
    parts_options,
    segment_option,
)
from periplus.errors import InvalidUrl, UsageError
from periplus.model.page import TEXT_PARTS, LinkKind, Part, Position
from periplus.model.visit import Reason, State
from periplus.present.tables import FORMATS, json_text, write_table
from periplus.values import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from periplus.api.collection import Collection
    from periplus.api.page import Page
    from periplus.model.tables import Row


# `periplus pages` and `periplus links`: rows, streamed as a table, CSV or JSON lines.

PAGE_COLUMNS = ("status", "reason", "depth", "size", "media_type", "url", "title")
LINK_COLUMNS = ("source", "target", "anchor", "kind", "position", "nofollow", "target_reason", "target_status")


# what both lists share
_row_options = options(
    collection_option,
    segment_option,
    option("-n --limit", "Most rows.", WholeNumber()),
    option("--columns", "Columns, in this order; `all` for every column.", str, "", metavar="A,B,..."),
    format_option(FORMATS),
    output_option,
)
FORMS = ("markdown", "xml", "text", "blocks", "source", "rendered", "screenshot", "headers")
_BYTES = ("xml", "source", "rendered", "screenshot")


@click.command()
@option(
    "--state",
    "Only URLs in this state: fetched; discovered (linked to, not fetched); excluded; failed.",
    [state.value for state in State],
)
@option(
    "--reason",
    "Only URLs with this reason for their state; `periplus status` lists the reasons.",
    [reason.value for reason in Reason],
    metavar="REASON",
)
@option("--status", "Status code of the answer.", metavar="404|4xx")
@option("--media-type", "`text/html`, or `image/` for all images.", metavar="TYPE")
@option("--depth", "Clicks from the start.", WholeNumber())
@option("--url", "Part of the URL, or a regular expression.", metavar="TEXT|REGEX")
@option("--host", "With or without its port.")
@_row_options
def pages(
    collection: Place | None, format: str, columns: str, limit: int | None, output: Path | None, **filters: Any
) -> None:
    """List URLs with their state, status, title and more, by depth and URL.

    The list has every URL that was ever seen; `--state fetched` limits it to fetched pages.
    """
    given = {name: value for name, value in filters.items() if value is not None}
    with opened_collection(collection) as reader, open_output(output, exact=format != "table") as out:
        most = -1 if limit is None else limit
        rows = reader.pages(**given, limit=most, columns=_columns(columns, PAGE_COLUMNS))
        write_table(rows.columns, _shorten_paths(reader, rows, format), format, out)


@click.command()
@option("--from source", "Links on this page.", str, "", metavar="URL")
@option("--to target", "Links to this URL, with their pages.", str, "", metavar="URL")
@option(
    "--kind",
    "Kind of the link: a, image, canonical, redirect, ...",
    [kind.value for kind in LinkKind],
    metavar="KIND",
)
@option("--position", "Part of the page that contains it.", [position.value for position in Position])
@option("--nofollow", "Only nofollow links.", bool)
@option("--broken", "Only broken links.", bool)
@option("--external", "Only links to other sites.", bool)
@option(
    "--bad",
    "href values that cannot be fetched: mailto:, javascript:, malformed. With --from: of that page.",
    bool,
)
@_row_options
def links(
    collection: Place | None, format: str, columns: str, limit: int | None, output: Path | None, **filters: Any
) -> None:
    """List links, with anchors and positions.

    A page's links that agree in target, kind and position are one row (`times` counts them). Rows are ordered
    with --from or --to only.
    """
    most = -1 if limit is None else limit
    bad = filters.pop("bad")
    given = sorted(name for name, value in filters.items() if value and name != "source")
    if bad and (given or columns):
        raise UsageError("--bad goes with --from, --limit, --format and -o only")
    with opened_collection(collection) as reader, open_output(output, exact=format != "table") as out:
        for way in ("source", "target"):
            filters[way] = reader.address_of(filters[way])
        chosen = {name: value for name, value in filters.items() if value}
        if bad:
            rows = reader.bad_links(source=filters["source"], limit=most)
        else:
            rows = reader.links(**chosen, limit=most, columns=_columns(columns, LINK_COLUMNS))
        write_table(rows.columns, _shorten_paths(reader, rows, format), format, out)


def _shorten_paths(reader: Collection, rows: Iterable[Row], format: str) -> Iterable[Sequence[object]]:
    """For people local files by their paths; for programs every URL is the key that other tables have."""
    if format != "table" or not reader.folders():
        return rows
    shown = reader.path_shortener()
    return (tuple(shown(value) if isinstance(value, str) else value for value in row) for row in rows)


def _columns(given: str, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The columns asked for, none for all of them. Unknown names are refused where the rows are read."""
    if given == "all":
        return ()
    return tuple(part.strip() for part in given.split(",") if part.strip()) or usual


# `periplus page`: one stored page, or its metadata.


@click.command()
@click.argument("url")
@option(
    "--as form",
    "Form of the page: Markdown, canonical XML, text, blocks, the bytes received, the HTML after rendering, "
    "a screenshot (WebP), the header.",
    FORMS,
)
@options(*(click.option(f"--{form}", "form", flag_value=form, hidden=True) for form in FORMS))
@parts_options
@option("-f --format", "JSON of the summary, the blocks or the header fields.", ("text", "json"), "text")
@option("--json as_json", "The same as -f json.", bool)
@output_option
@collection_option
def page(url: str, collection: Place | None, format: str, as_json: bool, output: Path | None, **flags: Any) -> None:
    """Show one stored page, or its metadata.

    Canonical XML is well-formed for every page; it is computed on demand, unless the crawl stored it (--keep-xml).
    docs/formats.md lists what is read from each format.

    \b
    periplus page https://example.org/                       state, title, charset and why, digests, links, duplicates
    periplus page /docs/intro.html                           a path on the site where the crawl began
    periplus page https://example.org/ --as text             its text, a block a line, without menus and comments
    periplus page https://example.org/ --as markdown         the same as Markdown; --whole with all that the page has
    periplus page https://example.org/ --as text --parts headline,byline,date,comments
    periplus page https://example.org/ --as blocks           headings, paragraphs, items, cells; and links to it
    periplus page https://example.org/a.pdf --as xml | xmllint --xpath '//*[local-name()="h1"]' -
    """
    as_json = as_json or format == "json"
    form, parts = flags["form"], choose_parts(flags["parts"], flags["whole"])
    if (flags["parts"] or flags["whole"]) and form not in ("markdown", "text"):
        raise UsageError("--parts and --whole go with --as text and --as markdown")
    if as_json and form not in (None, "blocks", "headers"):
        raise UsageError(f"--as {form} is not JSON: leave out --json")
    with opened_collection(collection) as reader:
        try:
            stored_page = reader.page(reader.address_of(url))
        except InvalidUrl:
            raise InvalidUrl(f"{url!r} is no URL; write it in full, like https://example.org/page") from None
        if form in _BYTES:
            data = _bytes_of(stored_page, form)
            with opened_bytes(output) as out:
                out.write(data)
            return
        text = _format_page(
            stored_page, form or "", as_json, on_terminal=output is None and sys.stdout.isatty(), parts=parts
        )
        text = text if as_json or form else reader.path_shortener()(text)
        with open_output(output, exact=as_json or form in ("text", "markdown")) as out:
            out.write(text)


def _bytes_of(page: Page, form: str) -> bytes:
    match form:
        case "source":
            return page.source()
        case "rendered":
            return page.parsed_body()
        case "screenshot":
            return page.screenshot()
        case _:
            return page.xml()[0]


def _format_page(
    page: Page, form: str, as_json: bool, *, on_terminal: bool = False, parts: frozenset[Part] = TEXT_PARTS
) -> str:
    """What is no bytes, whole: errors come before the first character is written."""
    import io

    from periplus.present import text as present_text
    from periplus.present.wording import visible, without_controls

    out = io.StringIO()
    if form == "markdown":
        out.write(page.markdown(parts))
    elif form == "text":
        text = page.text(parts)
        # a pipe may end on a terminal too
        out.write(("\n".join(map(visible, text.split("\n"))) if on_terminal else without_controls(text)) + "\n")
    elif form == "blocks":
        blocks, marks = page.blocks(), page.parts()
        links = [[getattr(link, name) for name in present_text.INLINK_COLUMNS] for link in page.inlinks()]
        if as_json:
            out.write(present_text.blocks_json(page.url, blocks, marks, links))
        else:
            present_text.write_blocks(blocks, marks, links, out)
    elif form == "headers":
        status, headers = page.headers()
        fields = [[name, value] for name, value in headers.fields]
        if as_json:
            line = headers.status_line
            out.write(json_text({"url": page.url, "status": status, "status_line": line, "fields": fields}))
        else:
            out.writelines(line + "\n" for line in present_text.header_lines(status, headers))
    elif as_json:
        out.write(json_text(asdict(page.summary())))
    else:
        out.writelines(line + "\n" for line in present_text.summary_lines(page.summary()))
    return out.getvalue()
