"""Converts RTF to HTML. Source: Rich Text Format Specification 1.9.1."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from periplus.document.conversion import Conversion, escape, is_absolute, page

TEXT_CHARS = 5_000_000
GROUPS_MOST = 2_000  # nesting depth; no writer needs more
_TOKEN = re.compile(r"\\(?:([a-zA-Z]{1,32})(-?\d{1,9})? ?|'([0-9a-fA-F]{2})|([^a-zA-Z]))|([{}])|[\r\n]+|([^\\{}\r\n]+)")
_SIGNS = {
    "tab": " ", "line": "\n", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "endash": "–",
    "emdash": "—", "bullet": "•",
    "enspace": " ", "emspace": " ", "qmspace": " ",
}  # fmt: skip
_DESTINATIONS = {
    "fonttbl": "fonts", "stylesheet": "styles", "info": "", "title": "title", "subject": "subject", "fldinst": "field",
    "fldrslt": "body",
}  # fmt: skip
_SYMBOLS = {"~": "\xa0", "_": "-", "{": "{", "}": "}", "\\": "\\", "\n": "\n", "\r": "\n"}
_UNREAD = frozenset({
    "colortbl", "pict", "objdata", "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf",
    "listtable", "listoverridetable", "revtbl", "rsidtbl", "generator", "xmlnstbl", "themedata", "colorschememapping",
    "datastore", "latentstyles", "pntext",
    "listtext", "nonshppict", "bkmkstart", "bkmkend", "filetbl", "mmathPr", "pgptbl", "fldtype",
})  # fmt: skip
_CODECS = {code: f"cp{code}" for code in (437, 850, 852, 855, 857, *range(860, 867), 874, 932, 949, 950)}
_CODECS |= {code: f"cp{code}" for code in range(1250, 1259)}
_CODECS |= {708: "iso8859_6", 710: "mac_roman", 936: "gb18030", 1361: "johab", 10000: "mac_roman", 65001: "utf-8"}
_FONT_CODECS = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gb18030", 136: "cp950", 161: "cp1253",
    162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874",
    238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
_PARAGRAPH_WORDS = frozenset(
    {"par", "sect", "page", "row", "cell", "nestcell", "pard", "s", "outlinelevel", "ls", "pnlvlblt", "pnlvlbody"}
)
_OPTIONAL_DESTINATIONS = frozenset({"shptxt", "shppict", "cs", "ds"})
_HALVES = re.compile("[\ud800-\udfff]")
_HIGH = frozenset(map(chr, range(0xD800, 0xDC00)))
_HEADING_STYLE = re.compile(r"heading\s*([1-6])\b", re.I)
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+"([^"]+)"', re.I)


@dataclass(slots=True)
class _Group:
    """State of a group, inherited by groups within it."""

    into: str = "body"  # destination of its text; empty: ignored
    codec: str = ""  # of its font; empty: the document's
    fallback: int = 1  # characters after a \\u for readers without Unicode support
    hidden: bool = False
    target: str = ""  # of the link, if the group is one


@dataclass(slots=True)
class _Paragraph:
    """State of the current paragraph."""

    inline: list[str] = field(default_factory=list)  # HTML
    style: int = 0
    level: int = 0
    item: bool = False
    cell: bool = False


class _Reader:
    """Reads a document token by token. Bytes are buffered until other input follows, since a character may have two."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.words: dict[str, list[str]] = {name: [] for name in ("title", "subject", "field", "fonts", "styles")}
        self._codec, self._fonts, self._levels = "cp1252", dict[int, str](), dict[int, int]()
        self._group, self._outer = _Group(), list[_Group]()
        self._paragraph, self._bytes = _Paragraph(), bytearray()
        self._font = self._style = self._skip = 0
        self._optional = False
        self._target = ""  # of the field whose result follows

    def read(self, text: str) -> bool:
        """Returns False if a limit was exceeded; the rest is then missing."""
        place, room = 0, TEXT_CHARS
        while room > 0 and len(self._outer) <= GROUPS_MOST and (match := _TOKEN.match(text, place)):
            place = match.end()
            word, number, code, symbol, brace, plain = match.groups()
            if code:
                self._add_bytes(bytes((int(code, 16),)))
            elif plain:
                room -= len(plain)
                self._add_bytes(plain.encode("latin-1"))
            elif word == "bin":  # this many bytes of binary data follow
                place += max(0, int(number or 0))
            else:
                self._flush()
                if brace:
                    self._begin() if brace == "{" else self._end()
                elif word:
                    self._control(word, int(number) if number else None)
                elif symbol == "*":
                    self._optional = True
                elif symbol:
                    self._add(_SYMBOLS.get(symbol, ""))
        self._flush()
        self._end_paragraph()
        return room > 0 and len(self._outer) <= GROUPS_MOST

    def _begin(self) -> None:
        self._outer.append(self._group)
        self._group = replace(self._group, target="")
        self._skip, self._optional = 0, False

    def _end(self) -> None:
        ended, self._skip = self._group, 0
        if ended.target:
            self._paragraph.inline.append("</a>")
        if self._outer:
            self._group = self._outer.pop()
        if ended.into == "styles" != self._group.into or (ended.into == "styles" and self.words["styles"]):
            if match := _HEADING_STYLE.match("".join(self.words["styles"]).strip()):
                self._levels[self._style] = int(match[1])
            self.words["styles"].clear()
        elif ended.into == "field" != self._group.into:
            match = _FIELD_LINK.match("".join(self.words["field"]))
            self._target = match[1].strip() if match else ""
            self.words["field"].clear()

    def _control(self, word: str, number: int | None) -> None:
        group, optional, self._optional = self._group, self._optional, False
        if self._skip and word != "u":
            self._skip = 0
        if word in _DESTINATIONS:
            group.into = _DESTINATIONS[word]
            if word == "fldrslt" and self._target:
                if is_absolute(self._target):
                    group.target = self._target
                    self._paragraph.inline.append(f'<a href="{escape(self._target)}">')
                self._target = ""
        elif word in _UNREAD or (optional and word not in _OPTIONAL_DESTINATIONS):
            group.into = ""
        elif word in _SIGNS:
            self._add(_SIGNS[word])
        elif word == "u" and number is not None:
            self._add_unicode(number)
        elif group.into == "body" and word in _PARAGRAPH_WORDS:
            self._set_paragraph(word, number or 0)
        else:
            self._set_letters(word, number)

    def _set_letters(self, word: str, number: int | None) -> None:
        """Handles words that affect how text is read."""
        group = self._group
        if word == "uc":
            group.fallback = min(max(number or 0, 0), 64)
        elif word == "v":
            group.hidden = number != 0
        elif word == "ansicpg" and number:
            self._codec = _CODECS.get(number, self._codec)
        elif word in ("mac", "pc", "pca"):
            self._codec = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]
        elif word == "f" and number is not None:
            self._font = number
            group.codec = self._fonts.get(number, "")
        elif word == "fcharset" and number is not None and group.into == "fonts":
            self._fonts[self._font] = _FONT_CODECS.get(number, "") if number > 1 else ""
        elif word == "plain":
            group.codec, group.hidden = "", False
        elif word == "s" and number is not None and group.into == "styles":
            self._style = number

    def _set_paragraph(self, word: str, number: int) -> None:
        paragraph = self._paragraph
        if word in ("par", "sect", "page", "row"):
            self._end_paragraph()
        elif word in ("cell", "nestcell"):
            paragraph.cell = True
            self._end_paragraph()
        elif word == "pard":
            paragraph.style, paragraph.level, paragraph.item = 0, 0, False
        elif word == "s":
            paragraph.style = number
        elif word == "outlinelevel":
            paragraph.level = number + 1 if 0 <= number < 6 else 0
        else:
            paragraph.item = True

    def _add_unicode(self, number: int) -> None:
        self._skip = self._group.fallback
        code = number % 65536
        if (
            0xDC00 <= code < 0xE000
            and self._group.into == "body"
            and self._paragraph.inline
            and (high := self._paragraph.inline[-1])
            and high[-1:] in _HIGH
        ):
            whole = 0x10000 + ((ord(high[-1]) - 0xD800) << 10) + (code - 0xDC00)
            self._paragraph.inline[-1] = high[:-1] + chr(whole)
        else:
            self._add(chr(code))

    def _add_bytes(self, data: bytes) -> None:
        rest = data[self._skip :]
        self._skip -= len(data) - len(rest)
        self._bytes += rest
        if rest:
            self._optional = False

    def _flush(self) -> None:
        if self._bytes:
            self._add(self._bytes.decode(self._group.codec or self._codec, "replace"))
            self._bytes.clear()

    def _add(self, text: str) -> None:
        into = self._group.into
        if into == "body" and not self._group.hidden:
            self._paragraph.inline.append(escape(text, quote=False))
        elif into in self.words:
            self.words[into].append(text)

    def _end_paragraph(self) -> None:
        paragraph = self._paragraph
        self._paragraph = _Paragraph(style=paragraph.style, level=paragraph.level, item=paragraph.item)
        level = paragraph.level or self._levels.get(paragraph.style, 0)
        text = _HALVES.sub("\ufffd", "".join(paragraph.inline)).strip()
        if not text:
            return
        if paragraph.cell:
            self.parts.append(f"<table><tr><td>{text}</td></tr></table>\n")
        elif paragraph.item and not level:
            self.parts.append(f"<ul><li>{text}</li></ul>\n")
        else:
            self.parts.append(f"<h{level}>{text}</h{level}>\n" if level else f"<p>{text}</p>\n")


def html_of(body: bytes) -> Conversion:
    """Total: other input has a fault."""
    if not body.lstrip()[:5].startswith(b"{\\rtf"):
        return Conversion(page(()), "damaged: no RTF text")
    reader = _Reader()
    is_whole = reader.read(body.decode("latin-1"))
    title, subject = (_HALVES.sub("\ufffd", "".join(reader.words[name])).strip() for name in ("title", "subject"))
    return Conversion(
        page(reader.parts, title, description=subject),
        "" if is_whole else f"long: more than {TEXT_CHARS:,} characters, or {GROUPS_MOST:,} groups",
    )
