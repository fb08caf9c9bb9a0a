"""Converts PDF files to HTML.

Text in page order, headings by the outline, and links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from periplus.document.formats.converted import Conversion, block, escape, is_absolute, page
from periplus.document.whitespace import fold_whitespace

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

PAGES_MOST = 2_000  # about 2 s: PDFium reads a thousand pages a second
TEXT_CHARS = 5_000_000
PAGE_CHARS = 200_000  # per page: a full one has 5,000
LINKS_MOST = 2_000
TITLES_MOST = 5_000  # in the outline
URL_BYTES = 4_096
ANCHOR_CHARS = 500
_BULLET = re.compile(r"^[•‣▪◦●○■–*-]\s+")
_SENTENCE_END = (".", "!", "?", ":", "…", "”", "。", "؟")
_SHORT = 0.8  # a line shorter than this share of the page's usual width ends a paragraph, if it ends a sentence


def html_of(body: bytes) -> Conversion:
    """Total: files that cannot be opened, or exceed the limits, have a fault."""
    import pypdfium2 as pdfium

    try:
        document = pdfium.PdfDocument(body)
        try:
            return _convert(document)
        finally:
            document.close()
    except (pdfium.PdfiumError, ValueError) as error:
        reason = str(error).lower()
        return Conversion(
            page(()), "encrypted" if "password" in reason else f"damaged: {fold_whitespace(str(error))[:100]}"
        )


def _convert(document: PdfDocument) -> Conversion:
    levels = _outline(document)
    pages = len(document)
    parts: list[str] = []
    links: dict[str, str] = {}
    room, read = TEXT_CHARS, 0
    for number in range(min(pages, PAGES_MOST)):
        text = _page_text(document, number, links)
        room -= len(text)
        if room < 0:
            break
        parts += _blocks(text, levels)
        read += 1
    parts += [f'<a href="{escape(target)}" title="{escape(words)}"></a>' for target, words in links.items()]
    facts = {name: _clean(value) for name, value in document.get_metadata_dict(skip_empty=True).items()}
    fault = f"long: {read} of {pages} pages were read" if read < pages else ""
    return Conversion(page(parts, facts.get("Title", ""), description=facts.get("Subject", "")), fault)


def _page_text(document: PdfDocument, number: int, links: dict[str, str]) -> str:
    """One page's text; a damaged page does not affect the rest."""
    import pypdfium2 as pdfium

    try:
        sheet = document[number]
        try:
            text_page = sheet.get_textpage()
            try:
                count = text_page.count_chars()
                text = text_page.get_text_range(0, min(count, PAGE_CHARS)) if count > 0 else ""
                _add_links(document, sheet, text_page, links)
                return _clean(text)
            finally:
                text_page.close()
        finally:
            sheet.close()
    except (pdfium.PdfiumError, ValueError):
        return ""


def _add_links(document: PdfDocument, sheet: PdfPage, text_page: PdfTextPage, links: dict[str, str]) -> None:
    """Adds the links of a page to external targets, with the text that they cover."""
    import ctypes

    from pypdfium2 import raw

    place, link, box = ctypes.c_int(0), raw.FPDF_LINK(), raw.FS_RECTF()
    while len(links) < LINKS_MOST and raw.FPDFLink_Enumerate(sheet.raw, place, link):
        action = raw.FPDFLink_GetAction(link)
        length = raw.FPDFAction_GetURIPath(document.raw, action, None, 0) if action else 0
        if 1 < length <= URL_BYTES:
            held = ctypes.create_string_buffer(length)
            raw.FPDFAction_GetURIPath(document.raw, action, held, length)
            target = held.raw[: length - 1].decode("utf-8", "replace")
            if is_absolute(target) and target not in links:
                on = raw.FPDFLink_GetAnnotRect(link, box)
                links[target] = (
                    fold_whitespace(_clean(text_page.get_text_bounded(box.left, box.bottom, box.right, box.top)))[
                        :ANCHOR_CHARS
                    ]
                    if on
                    else ""
                )


def _outline(document: PdfDocument) -> dict[str, int]:
    """The level of each title in the outline, from 1."""
    levels: dict[str, int] = {}
    for mark in document.get_toc(max_depth=6):
        levels.setdefault(fold_whitespace(_clean(mark.get_title())), min(mark.level + 1, 6))
        if len(levels) >= TITLES_MOST:
            break
    levels.pop("", None)
    return levels


def _blocks(text: str, levels: dict[str, int]) -> Iterator[str]:
    """A page's lines as headings, items and paragraphs.

    Paragraphs that continue on the next page are split.
    """
    lines = [fold_whitespace(line) for line in text.splitlines()]
    usual = sorted(len(line) for line in lines)[int(len(lines) * 0.9)] if lines else 0
    pending, tag = "", "p"
    for line in lines:
        level = levels.get(line, 0)
        bullet = _BULLET.match(line)
        if not line or level or bullet:
            yield _block_html(tag, pending)
            pending, tag = "", "p"
        if level:
            yield block(f"h{level}", line)
            continue
        words = line
        if bullet:
            words, tag = line[bullet.end() :], "li"
        pending = pending[:-1] + words if _is_hyphenated(pending, words) else f"{pending} {words}"
        if len(line) < usual * _SHORT and line.endswith(_SENTENCE_END):
            yield _block_html(tag, pending)
            pending, tag = "", "p"
    yield _block_html(tag, pending)


def _is_hyphenated(before: str, after: str) -> bool:
    """Whether a word was hyphenated at the line end: a letter and a hyphen, then a lower-case letter."""
    return before[-1:] in ("-", "\xad", "\x02") and before[-2:-1].isalpha() and after[:1].islower()


def _block_html(tag: str, text: str) -> str:
    text = text.strip()
    return f"<ul>{block('li', text)}</ul>" if tag == "li" and text else block("p", text)


def _clean(text: str) -> str:
    """PDFium marks hyphens of divided words with U+0002, and characters without mapping with U+FFFE."""
    return text.replace("\ufffe", "-").replace("\x00", "")
