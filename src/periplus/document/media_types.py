"""Of which type is this body, when its server says so and when it does not?"""

from __future__ import annotations

import re
from collections.abc import Container

_HTML_START = re.compile(rb"\s*(?:(?><!--.*?-->)\s*)*+<(?:!doctype\s+html|html|head|body|title|script|style|table|div|p|a|h1|br|meta|iframe)[\s>]", re.I | re.S)
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_SNIFFED_BYTES = 1445  # MIME Sniffing Standard, 5.2
_UNSAID = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/x-download", "application/force-download", "application/download"})
_NOTHING_IN_PARTICULAR = "application/octet-stream"
_ZIP = b"PK\x03\x04"
_WORD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PACKAGE_BYTES = 8_192  # in which the first names of a zip archive stand
_BY_ENDING = {
    "text/plain": {"md": "text/markdown", "markdown": "text/markdown", "sgml": "text/sgml", "sgm": "text/sgml"},
}


_SIGNATURES = (  # with which no text begins. Source: MIME Sniffing Standard, 6.1, 6.2 and 6.4
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"), (b"\xff\xd8\xff", "image/jpeg"), (b"%PDF-", "application/pdf"),
    (b"\0\0\1\0", "image/x-icon"), (b"OggS\0", "application/ogg"), (b"\x1aE\xdf\xa3", "video/webm"), (b"\x1f\x8b\x08", "application/gzip"),
    (b"PK\x03\x04", "application/zip"), (b"Rar!\x1a\x07", "application/x-rar-compressed"), (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/msword"),
)  # fmt: skip


def binary_type(body: bytes) -> str:
    """The type of a body that is surely no text, whatever is declared; empty: it may be one."""
    if body[:4] == b"RIFF" and body[8:12] in (b"WEBP", b"WAVE", b"AVI "):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wave"}.get(body[8:12], "video/avi")
    if body[4:8] == b"ftyp" and body[:2] == b"\0\0":
        return "video/mp4"
    return next((media_type for start, media_type in _SIGNATURES if body.startswith(start)), "")


def media_type_of(declared: str, body: bytes, path: str = "") -> str:
    """The declared type, or what the bytes are where none is declared, or one that says nothing. path: of the URL, for Markdown and SGML."""
    if declared not in _UNSAID:
        return _by_ending(declared, path) if declared == "text/plain" else declared
    if declared and not body:
        return declared
    return _by_ending(sniffed_media_type(body), path)


def _by_ending(media_type: str, path: str) -> str:
    """Servers that do not know these types send them as plain text."""
    return _BY_ENDING.get(media_type, {}).get(path.rpartition("/")[2].rpartition(".")[2].lower(), media_type)


def says_nothing(declared: str) -> bool:
    """Whether a declared type leaves open what the body is."""
    return declared in _UNSAID


def could_be(start: bytes, readable: Container[str]) -> bool:
    """Whether a body that begins so may be of a readable type. start: some kB of it, as far as it has them."""
    return start.startswith(_WORD) or sniffed_media_type(start) in readable


def sniffed_media_type(body: bytes) -> str:
    """The type of a body whose server names none. Source: MIME Sniffing Standard, 7.1, as far as we read its types; and zip packages."""
    head = body[:_SNIFFED_BYTES]
    if head.startswith((b"\xfe\xff", b"\xff\xfe")):
        return "text/plain"
    head = head.removeprefix(b"\xef\xbb\xbf")
    if _HTML_START.match(head):
        return "text/html"
    if head.lstrip().startswith(b"<?xml"):
        return "text/xml"
    if head.startswith(b"%PDF-"):
        return "application/pdf"
    if head.startswith(b"{\\rtf"):
        return "application/rtf"
    if head.startswith(_ZIP):
        return _package_type(body[:_PACKAGE_BYTES])
    if head.startswith(_WORD):
        return "application/msword" if "WordDocument".encode("utf-16-le") in body else _NOTHING_IN_PARTICULAR
    return _NOTHING_IN_PARTICULAR if _BINARY.search(head) else "text/plain"


def _package_type(head: bytes) -> str:
    """Of a zip archive: OpenDocument and EPUB begin with a file that names their type, a DOCX has its files in folders of known names."""
    if head[30:38] == b"mimetype":
        name = re.match(rb"[a-z.+/-]{1,80}", head[38:])
        return name[0].decode().removesuffix("PK") if name else "application/zip"
    if b"word/" in head or b"[Content_Types].xml" in head:
        return "application/vnd.openxmlformats-officedocument.wordprocessingml.document" if b"word/" in head else "application/zip"
    return "application/zip"
