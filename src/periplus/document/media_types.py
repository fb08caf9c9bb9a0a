"""Selects the reader for a document's media type.

To add a format, name its media type and reader in the `formats` or `text_formats` of a feature. Markup is read by a
parser. Any other format is first converted to HTML, by a function of its text or bytes, so that links, metadata, blocks
and canonical XML have a single code path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import cast

from periplus.document import markup
from periplus.document.conversion import Content, Conversion, Source, html_of_text
from periplus.document.headers import binary_type, says_nothing, sniffed_media_type
from periplus.errors import ExtensionError
from periplus.features import FeaturePart, blame, parts, value_at

MARKUP: dict[str, Callable[[Source], Content]] = {
    "text/html": markup.read_html,
    "application/xhtml+xml": markup.read_xhtml,
    "application/xml": markup.read_xml,
    "text/xml": markup.read_xml,
    "application/rss+xml": markup.read_xml,
    "application/atom+xml": markup.read_xml,
    "application/rdf+xml": markup.read_xml,
    "image/svg+xml": markup.read_xml,
}
BINARY_WORD = "application/msword"  # of 1997 to 2003: unsupported, but DOCX and RTF with its media type are read
_SCRIPTS = ("javascript", "x-javascript", "ecmascript", "x-ecmascript")
_PARTS = frozenset(f"{group}/{name}" for group in ("text", "application") for name in _SCRIPTS) | {"text/css"}
_PART_GROUPS = ("image/", "font/", "application/font-", "application/x-font-", "application/vnd.ms-fontobject")
# Fonts, often sent as octet-stream. Source: MIME Sniffing Standard, 6.3
_FONTS = (b"wOFF", b"wOF2", b"OTTO", b"\0\1\0\0", b"ttcf")


@cache
def file_readers() -> Mapping[str, Callable[[bytes], Conversion]]:
    """The readers of files by media type, in lower case; features provide them."""
    return {name: partial(_read, part) for name, part in parts("formats").items() if not is_text(name)}


@cache
def text_readers() -> Mapping[str, Callable[[str, bool], Conversion]]:
    """The readers of texts by media type, functions of a text and of whether `[[page]]` in it is a link."""
    provided = {name: partial(_read, part) for name, part in parts("text_formats").items()}
    return {**provided, "text/plain": lambda text, wiki_links: html_of_text(text)}


def _read(part: FeaturePart, *document: object) -> Conversion:
    """Imports the reader on first use: lxml takes 0.2 s, PDFium 0.3 s.

    An error of another package becomes a fault of the document.
    """
    try:
        with blame(part.package):
            return cast("Conversion", value_at(part.place)(*document))
    except ExtensionError as error:
        return Conversion("", str(error))


def is_part(declared: str, start: bytes = b"") -> bool:
    """Whether a body of the declared type is a page resource: an image, a style sheet, a script, a font.

    start: its first bytes, used if the type is generic.
    """
    if says_nothing(declared):
        return start.startswith(_FONTS) or binary_type(start).startswith("image/")
    return declared.startswith(_PART_GROUPS) or declared in _PARTS


def is_text(media_type: str) -> bool:
    """Whether a document of this media type is markup or text."""
    return media_type in MARKUP or media_type in text_readers()


def is_read(media_type: str) -> bool:
    """Whether there is a reader for this media type."""
    return is_text(media_type) or media_type in file_readers()


def may_be_kept(declared: str, start: bytes = b"") -> bool:
    """As `may_be_read`, or a page resource."""
    return is_part(declared, start) or may_be_read(declared, start)


def may_be_read(declared: str, start: bytes = b"") -> bool:
    """Whether a body of the declared type may be readable.

    start: its first kB, used if the type is generic.
    """
    if binary_type(start) == BINARY_WORD:
        return False
    if not says_nothing(declared):
        return is_read(declared)
    return not start or is_read(sniffed_media_type(start))
