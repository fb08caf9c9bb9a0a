"""How is one page shown: to a reader at a terminal, and to a program?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from periplus.model.page import Block, BlockKind, Part
from periplus.present.lines import visible
from periplus.present.tables import write_table
from periplus.present.wording import REASON_WORDS, count_of, size

if TYPE_CHECKING:
    from periplus.model.page_view import PageSummary
    from periplus.model.visit import Headers

BLOCK_COLUMNS = ("n", "kind", "level", "part", "position", "language", "text")
INLINK_COLUMNS = ("anchor", "source", "kind", "position", "nofollow", "times")
TEXT_CHARS = 160  # of a block in the table for reading
_CHARSET_WORDS = {
    "bom": "its first bytes say so", "header": "the HTTP header says so", "meta": "its meta element says so", "xml": "its XML declaration says so",
    "statistics": "the statistics of its letters speak for it", "default": "nothing says otherwise", "text": "its text speaks against what is declared",
}  # fmt: skip
_SAME_WORDS = {"bytes": "the same bytes", "words": "the same words", "folded": "the same words but for diacritics and case"}


def summary_lines(said: PageSummary) -> Iterator[str]:
    """What is known of a URL, a fact a line."""
    yield visible(said.url)
    for name, value in _facts(said):
        if value:
            yield f"  {name + ':' if name else '':<14}{visible(value)}"
    if said.duplicates:
        yield f"  {'duplicates:':<14}{count_of(len(said.duplicates), 'page')}"
        for same_page in said.duplicates:
            yield f"    {_SAME_WORDS[same_page.same]}: {visible(same_page.url)}"


def _facts(said: PageSummary) -> Iterator[tuple[str, str]]:
    why = f" ({said.why})" if said.why else ""
    yield "state", f"{REASON_WORDS[said.reason]}{why}"
    yield "status", str(said.status or "")
    yield "layer", "" if said.layer is None else str(said.layer)
    page = said.page
    if page is not None:
        yield "fetched", page.fetched
        yield "type", f"{page.media_type}, {size(page.size)}{', cut: ' + page.cut if page.cut else ''}"
        yield "not read", said.fault
        yield "title", page.title
        yield "description", page.description
        yield "heading", page.h1
        yield "language", _language(page.language, page.language_found)
        yield "charset", _charset(page.charset, page.charset_source, page.other_charset)
        yield "canonical", page.canonical
        yield "robots", page.robots
        yield "text", f"{count_of(page.text_chars, 'character')}" if page.text_chars else "none"
        yield "kept", ", ".join(page.kept) or "nothing of its contents"
        yield "digests", f"bytes {page.body_digest}"
        yield "", f"words {page.text_digest}"
        yield "", f"folded {page.folded_digest}"
    yield "links", f"from {count_of(said.links_in, 'page')}, to {count_of(said.links_out, 'URL')}"


def _language(declared: str, found: str) -> str:
    if not declared or not found or declared.partition("-")[0] == found.partition("-")[0]:
        return declared or (f"{found} (by its words; it does not say)" if found else "")
    return f"{declared} declared, {found} by its words"


def _charset(name: str, source: str, other: str) -> str:
    if not name:
        return ""
    return f"{name}: {_CHARSET_WORDS.get(source, source)}{f'; the document says {other}' if other else ''}"


def write_blocks(blocks: Sequence[Block], parts: Sequence[Part] | None, inlinks: Iterable[Sequence[object]], out: TextIO) -> None:
    """Two tables: the blocks with their marks, and the anchors of links to the page."""
    rows = [(*row[:-1], row[-1] if len(str(row[-1])) <= TEXT_CHARS else str(row[-1])[: TEXT_CHARS - 1] + "…") for row in block_rows(blocks, parts)]
    write_table(BLOCK_COLUMNS, [[visible(cell) if isinstance(cell, str) else cell for cell in row] for row in rows], "table", out)
    found = list(inlinks)
    if found:
        out.write("\nLinks to it:\n")
        write_table(INLINK_COLUMNS, found, "table", out)


def block_rows(blocks: Sequence[Block], parts: Sequence[Part] | None) -> Iterator[tuple[object, ...]]:
    """The values of BLOCK_COLUMNS, a block a row."""
    marks: Sequence[Part | None] = parts if parts is not None else [None] * len(blocks)
    for place, (block, part) in enumerate(zip(blocks, marks, strict=True), 1):
        level = block.level if block.kind is BlockKind.HEADING else None
        yield place, block.kind.value, level, part.value if part else None, block.position.value, block.language or None, block.text


def blocks_json(url: str, blocks: Sequence[Block], parts: Sequence[Part] | None, inlinks: Iterable[Sequence[object]]) -> str:
    """The same for programs, with each block's path and its characters in links."""
    rows = [
        dict(zip(BLOCK_COLUMNS, row, strict=True)) | {"path": block.path, "link_chars": block.link_chars}
        for row, block in zip(block_rows(blocks, parts), blocks, strict=True)
    ]
    links = [dict(zip(INLINK_COLUMNS, row, strict=True)) for row in inlinks]
    return json.dumps({"url": url, "blocks": rows, "inlinks": links}, ensure_ascii=False, indent=1)


def header_lines(status: int, headers: Headers) -> Iterator[str]:
    """The answer's header as HTTP writes it. An answer over HTTP/2 or 3 has no status line of its own."""
    yield headers.status_line or f"HTTP {status}"
    for name, value in headers.fields:
        yield f"{name}: {visible(value)}"
