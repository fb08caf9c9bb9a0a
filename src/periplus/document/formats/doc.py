"""What does a Word file of 1997 to 2003 hold, told as HTML? Its text and links; not which paragraphs are headings.

Source: [MS-CFB] 2 (the file as a small file system) and [MS-DOC] 2.4.1 (the table of pieces that the text consists of).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from periplus.document.formats.converted import Converted, escape, link, page

TEXT_CHARS = 5_000_000
_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LAST_SECTOR = 0xFFFFFFFA  # numbers from here on are marks, not places
_ENTRY_BYTES = 128
_IN_TABLE_1, _ENCRYPTED = 0x0200, 0x0100
_ODD_CHARACTERS = dict(zip(range(0x80, 0xA0), bytes(range(0x80, 0xA0)).decode("cp1252", "replace"), strict=True))
_FIELD = re.compile("\x13([^\x13\x14\x15]*)(?:\x14([^\x13\x14\x15]*))?\x15")
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+"([^"]+)"', re.I)
_FIELDS_DEEP = 5
_MARKS = re.compile("[\x01-\x06\x08\x0e-\x12\x13-\x1c\x1f\ud800-\udfff]")


class _Broken(Exception):
    """The file is not what it should be; says where."""


class _Streams:
    """The streams of a compound file by name."""

    def __init__(self, body: bytes) -> None:
        if not body.startswith(_MAGIC) or len(body) < 512:
            raise _Broken("no compound file")
        self._body = body
        shift = struct.unpack_from("<H", body, 30)[0]
        if shift not in (9, 12):
            raise _Broken("no compound file")
        self._size = 1 << shift
        directory, self._cutoff, small_table, _, more, _ = struct.unpack_from("<I4xIIIII", body, 48)
        self._next = self._table_of(struct.unpack_from("<109I", body, 76), more)
        entries = self._chain(directory, len(body))
        self._entries = {name: (start, size) for name, start, size in _entries(entries)}
        start, size = self._entries.get("Root Entry", (0, 0))
        self._small = self._chain(start, size)
        table = self._chain(small_table, len(body))
        self._small_next = struct.unpack(f"<{len(table) // 4}I", table[: len(table) // 4 * 4])

    def _sector(self, number: int) -> bytes:
        return self._body[(number + 1) * self._size : (number + 2) * self._size]

    def _table_of(self, first: tuple[int, ...], more: int) -> tuple[int, ...]:
        """Which sector follows which."""
        places, seen = [number for number in first if number < _LAST_SECTOR], set[int]()
        while more < _LAST_SECTOR and more not in seen and len(self._sector(more)) >= 4:
            seen.add(more)
            sector = self._sector(more)
            numbers = struct.unpack(f"<{len(sector) // 4}I", sector[: len(sector) // 4 * 4])
            places += [number for number in numbers[:-1] if number < _LAST_SECTOR]
            more = numbers[-1]
        most = len(self._body) // self._size + 1
        data = b"".join(map(self._sector, places[:most]))
        return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])

    def _chain(self, start: int, size: int) -> bytes:
        parts, left = [], min(size, len(self._body))
        while start < len(self._next) and left > 0:
            parts.append(self._sector(start))
            left -= self._size
            start = self._next[start]
        return b"".join(parts)[:size]

    def stream(self, name: str) -> bytes:
        if name not in self._entries:
            raise _Broken(f"no stream {name}")
        start, size = self._entries[name]
        if size >= self._cutoff:
            return self._chain(start, size)
        parts, left = [], min(size, len(self._small))
        while start < len(self._small_next) and left > 0:
            parts.append(self._small[start * 64 : start * 64 + 64])
            left -= 64
            start = self._small_next[start]
        return b"".join(parts)[:size]


def _entries(directory: bytes) -> Iterator[tuple[str, int, int]]:
    for at in range(0, len(directory) - _ENTRY_BYTES + 1, _ENTRY_BYTES):
        length = min(struct.unpack_from("<H", directory, at + 64)[0], 64)
        name = directory[at : at + max(length - 2, 0)].decode("utf-16-le", "replace")
        yield name, *struct.unpack_from("<II", directory, at + 116)


def _text(streams: _Streams) -> str:
    """The main text: pieces in their order, of one byte a character (Windows-1252) or of two."""
    head = streams.stream("WordDocument")
    flags = struct.unpack_from("<H", head, 10)[0]
    if flags & _ENCRYPTED:
        raise _Broken("encrypted")
    length = struct.unpack_from("<i", head, 0x4C)[0]
    place, size = struct.unpack_from("<II", head, 0x01A2)
    table = streams.stream("1Table" if flags & _IN_TABLE_1 else "0Table")[place : place + size]
    at = 0
    while table[at : at + 1] == b"\x01":  # properties of paragraphs that pieces name
        at += 3 + struct.unpack_from("<H", table, at + 1)[0]
    if table[at : at + 1] != b"\x02":
        raise _Broken("no table of pieces")
    pieces = table[at + 5 : at + 5 + struct.unpack_from("<I", table, at + 1)[0]]
    count = (len(pieces) - 4) // 12
    ends = struct.unpack_from(f"<{count + 1}I", pieces, 0)
    parts, room = [], min(max(length, 0), TEXT_CHARS)
    for number in range(count):
        chars = min(ends[number + 1] - ends[number], room)
        where = struct.unpack_from("<I", pieces, 4 * (count + 1) + 8 * number + 2)[0]
        if chars <= 0:
            break
        if where & 0x40000000:
            start = (where & 0x3FFFFFFF) // 2
            parts.append(head[start : start + chars].decode("latin-1").translate(_ODD_CHARACTERS))
        else:
            parts.append(head[where : where + 2 * chars].decode("utf-16-le", "replace"))
        room -= chars
    return "".join(parts)


def _shown(field: re.Match[str]) -> str:
    """A field by its result. A link's address is put between two signs that no text has, for `_paragraph` to find."""
    found = _FIELD_LINK.match(field[1])
    return f"\x1d{found[1]}\x1e{field[2] or ''}\x1d\x1e" if found else field[2] or ""


def _paragraph(text: str) -> str:
    parts = text.split("\x1d")
    pieces, target = [escape(_MARKS.sub("", parts[0]), quote=False)], ""
    for part in parts[1:]:
        target, _, words = part.partition("\x1e")
        words = escape(_MARKS.sub("", words), quote=False)
        pieces.append(link(_MARKS.sub("", target), words) if target else words)
    return "".join(pieces).replace("\x0b", "<br>")


def _blocks(text: str) -> Iterator[str]:
    text = text.translate({0x1D: None, 0x1E: "-", 0x1F: None})
    for _ in range(_FIELDS_DEEP):
        text, count = _FIELD.subn(_shown, text)
        if not count:
            break
    parts = re.split("([\r\x07\x0c])", text)
    for part, end in zip(parts[::2], [*parts[1::2], ""], strict=True):
        words = _paragraph(part)
        if words and not words.isspace():
            yield f"<table><tr><td>{words}</td></tr></table>\n" if end == "\x07" else f"<p>{words}</p>\n"


def html_of(body: bytes) -> Converted:
    """Total: what is no such file has a fault."""
    try:
        text = _text(_Streams(body))
        return Converted(
            page(_blocks(text)), f"long: {TEXT_CHARS:,} characters were read" if len(text) >= TEXT_CHARS else ""
        )
    except _Broken as error:
        return Converted(page(()), "encrypted" if str(error) == "encrypted" else f"damaged: {error}")
    except struct.error:
        return Converted(page(()), "damaged: cut off")
