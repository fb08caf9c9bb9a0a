"""`periplus page`: one page as it was kept, or what is known of it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from periplus.cli.options import collection_option, found_collection, opened, opened_bytes, output_option
from periplus.errors import InvalidUrl, UsageError

if TYPE_CHECKING:
    from periplus.api.page import Page

FORMS = ("xml", "text", "blocks", "source", "headers")
_BYTES = ("xml", "source")


@click.command()
@click.argument("url")
@click.option("--as", "form", type=click.Choice(FORMS), help="The page itself: as canonical XML, text, blocks, the bytes received, the header.")
@click.option("-f", "--format", type=click.Choice(("text", "json")), default="text", show_default=True, help="Of the summary, the blocks or the header.")
@click.option("--json", "as_json", is_flag=True, help="The same as -f json.")
@output_option
@collection_option
def page(url: str, collection: Path | None, form: str | None, format: str, as_json: bool, output: Path | None) -> None:
    """Show one page as it was kept, or what is known of it.

    Canonical XML is well-formed for every page; it is made when asked for, unless the crawl kept it (--keep-xml). docs/formats.md says what
    is read of which format.

    \b
    periplus page https://example.org/                       state, title, charset and why, digests, links, duplicates
    periplus page https://example.org/ --as text             its text, a block a line
    periplus page https://example.org/ --as blocks           headings, paragraphs, items, cells; and links to it
    periplus page https://example.org/a.pdf --as xml | xmllint --xpath '//*[local-name()="h1"]' -
    """
    from periplus.api.collection import open_collection

    as_json = as_json or format == "json"
    if as_json and form in ("xml", "text", "source"):
        raise UsageError(f"--as {form} is written as it is: leave --json out")
    with open_collection(found_collection(collection)) as kept:
        try:
            found = kept.page(url)
        except InvalidUrl:
            raise InvalidUrl(f"{url!r} is no URL; write it in full, like https://example.org/page") from None
        if form in _BYTES:
            data = found.source() if form == "source" else found.xml()[0]
            with opened_bytes(output) as out:
                out.write(data)
            return
        text = _written(found, form or "", as_json, on_terminal=output is None and sys.stdout.isatty())
        with opened(output, exact=as_json or form == "text") as out:
            out.write(text)


def _written(found: Page, form: str, as_json: bool, *, on_terminal: bool = False) -> str:
    """What is no bytes, whole: errors come before the first character is written."""
    import io

    from periplus.present import page_text
    from periplus.present.lines import visible, without_controls

    out = io.StringIO()
    if form == "text":
        text = found.text()
        out.write(("\n".join(map(visible, text.split("\n"))) if on_terminal else without_controls(text)) + "\n")  # a pipe may end on a terminal too
    elif form == "blocks":
        blocks, parts = found.blocks(), found.parts()
        links = [[getattr(link, name) for name in page_text.INLINK_COLUMNS] for link in found.inlinks()]
        if as_json:
            out.write(page_text.blocks_json(found.url, blocks, parts, links) + "\n")
        else:
            page_text.write_blocks(blocks, parts, links, out)
    elif form == "headers":
        status, headers = found.headers()
        fields = [[name, value] for name, value in headers.fields]
        if as_json:
            out.write(
                json.dumps({"url": found.url, "status": status, "status_line": headers.status_line, "fields": fields}, ensure_ascii=False, indent=1) + "\n"
            )
        else:
            out.writelines(line + "\n" for line in page_text.header_lines(status, headers))
    elif as_json:
        out.write(json.dumps(asdict(found.summary()), ensure_ascii=False, indent=1) + "\n")
    else:
        out.writelines(line + "\n" for line in page_text.summary_lines(found.summary()))
    return out.getvalue()
