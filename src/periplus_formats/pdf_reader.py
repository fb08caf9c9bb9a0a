"""Reads PDF files in a child process, so that a crash of the parser does not end the crawl.

PDFium is a large C++ program that parses untrusted input. It runs in a child process with limited memory and without
core dumps, one file after another; a file that takes too long terminates that process, and the next file gets a new
one. The pipes carry length-prefixed messages: the bytes of a file, and back HTML and fault as JSON.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from typing import IO, TYPE_CHECKING

from periplus.children import finish_child, start_child
from periplus.document.conversion import Conversion, block, escape, is_absolute, page
from periplus.document.digest import fold_whitespace
from periplus.extras import absence, is_installed

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

# Address space: after a manual of 800 pages a reader uses 45 MB; a file may have 32 MB, and its text 20
MEMORY_BYTES = 1 << 30
FILE_S = 60.0  # per file: 2,000 pages take about 2 s
_LENGTH_BYTES = 8


def conversion_of(body: bytes) -> Conversion:
    """Total: files that cannot be opened, or exceed the limits, have a fault."""
    import pypdfium2 as pdfium

    try:
        document = pdfium.PdfDocument(body)
        try:
            return _whole(document)
        finally:
            document.close()
    except (pdfium.PdfiumError, ValueError) as error:
        reason = str(error).lower()
        return Conversion(
            page(()), "encrypted" if "password" in reason else f"damaged: {fold_whitespace(str(error))[:100]}"
        )


def _whole(document: PdfDocument) -> Conversion:
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


class PdfReader:
    """A child process that reads PDF files, started on first use and restarted after a crash.

    Thread-safe.
    """

    def __init__(self, words: tuple[str, ...] = ("-m", __name__), limit_s: float = FILE_S) -> None:
        self._words, self._limit_s = words, limit_s
        self._child: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    def html_of(self, body: bytes) -> Conversion:
        """Total: a file that crashes the reader has a fault."""
        with self._turn:
            child = self._ensure_child()
            with _kill_after(self._limit_s, child) as late:
                converted = _convert(child, body)
            if converted is not None:
                return converted
            self.close()
        return Conversion(
            page(()),
            f"its reader took longer than {self._limit_s:g} s" if late else "damaged: its reader did not survive it",
        )

    def _ensure_child(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self.close()
            self._child = start_child(*self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._child

    def close(self) -> None:
        """Ends the child, if there is one."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            finish_child(child)


@contextlib.contextmanager
def _kill_after(seconds: float, child: subprocess.Popen[bytes]) -> Iterator[list[bool]]:
    """Kills the child if the block takes longer; the list is then not empty."""
    late: list[bool] = []

    def end() -> None:
        late.append(True)
        child.kill()

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def _convert(child: subprocess.Popen[bytes], body: bytes) -> Conversion | None:
    """The child's result for a file; None if it died."""
    assert child.stdin is not None and child.stdout is not None
    try:
        _send(child.stdin, body)
        answer = _receive(child.stdout)
        return None if answer is None else Conversion(*json.loads(answer))
    except OSError:
        return None


def _send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(_LENGTH_BYTES, "little"))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    """The next message; None at the end of the stream, even within a message."""
    length = int.from_bytes(pipe.read(_LENGTH_BYTES), "little")
    data = pipe.read(length)
    return data if length and len(data) == length else None


@cache
def _reader() -> PdfReader:
    reader = PdfReader()
    atexit.register(reader.close)
    return reader


def html_of(body: bytes) -> Conversion:
    """Converts a PDF file to HTML. Total, with limited time and memory."""
    if not is_installed("pypdfium2"):
        return Conversion(page(()), absence("pypdfium2"))
    return _reader().html_of(body)


def _limit_resources() -> None:
    """Limits the resources of this process, where supported."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # a system with tighter limits, or without this one
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def main() -> None:
    """Main loop of the child: reads files until the parent exits."""
    _limit_resources()
    while (body := _receive(sys.stdin.buffer)) is not None:
        _send(sys.stdout.buffer, json.dumps(conversion_of(body)).encode())


if __name__ == "__main__":
    main()
