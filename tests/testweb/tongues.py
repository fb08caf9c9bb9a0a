"""Sentences about the coast in several languages, written for these tests, with their encodings."""

from __future__ import annotations

import json
from pathlib import Path

# language: paragraphs. Each can be written in every encoding of ENCODINGS. Source: written for this project.
TEXTS: dict[str, list[str]] = json.loads((Path(__file__).parent.parent / "tables/tongues.json").read_text("utf-8"))

_WEST = ("windows-1252", "iso-8859-15", "macintosh", "ibm850")
_CENTRE = ("windows-1250", "iso-8859-2", "x-mac-ce", "ibm852")
# language: encodings besides UTF-8 in which its pages occur
ENCODINGS = {
    **dict.fromkeys(("cs", "sk"), (*_CENTRE, "kamenicky")),
    **dict.fromkeys(("hu", "pl"), _CENTRE),
    **dict.fromkeys(("ro", "hr"), ("windows-1250", "iso-8859-2", "ibm852")),
    "ru": ("windows-1251", "koi8-r", "iso-8859-5", "ibm866", "x-mac-cyrillic"),
    "uk": ("windows-1251", "koi8-u", "iso-8859-5", "x-mac-cyrillic", "cp1125"),
    "bg": ("windows-1251", "iso-8859-5", "ibm855", "x-mac-cyrillic"),
    "el": ("windows-1253", "iso-8859-7", "ibm737"),
    "tr": ("windows-1254", "ibm857"),
    "he": ("windows-1255", "iso-8859-8", "ibm862"),
    "ar": ("windows-1256", "iso-8859-6"),
    "th": ("windows-874",),
    "ja": ("shift_jis", "euc-jp", "iso-2022-jp"),
    "ko": ("euc-kr",),
    "zh": ("gb18030",),
    "zh-hant": ("big5", "gb18030"),
    "lt": ("windows-1257", "iso-8859-13", "ibm775"),
    **dict.fromkeys(("de", "en", "fr", "es", "it", "pt", "nl", "da", "sv", "no", "fi"), _WEST),
}
_KAMENICKY = (  # the upper half of code page 895
    "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ¼§«»" + bytes(range(0xB0, 0x100)).decode("cp437")
)
_CODECS = {
    "windows-874": "cp874",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "big5": "big5hkscs",
    "macintosh": "mac-roman",
    "x-mac-ce": "mac-latin2",
    "x-mac-cyrillic": "mac-cyrillic",
}


def written(text: str, encoding: str) -> bytes:
    """The text in an encoding of ENCODINGS, or UTF-8. Raises UnicodeEncodeError or ValueError if it lacks one."""
    if encoding == "kamenicky":
        return bytes(ord(char) if char < "\x80" else 128 + _KAMENICKY.index(char) for char in text)
    if encoding.startswith("ibm"):
        return text.encode("cp" + encoding.removeprefix("ibm"))
    return text.encode(_CODECS.get(encoding, encoding))
