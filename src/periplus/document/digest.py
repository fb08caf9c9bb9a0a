"""Digests of a page's bytes and words: 128-bit xxh3, a twentieth of the time of MD5.

Equal body digests: the same bytes. Equal text digests: the same words, regardless of markup and encoding. Equal folded
digests: the same words except for diacritics and case, for example if a page is also offered in us-ascii.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

from xxhash import xxh3_128_digest

from periplus.document.folding import Folding
from periplus.model.page import Digests

# Latin, Greek, Cyrillic, Hebrew, Arabic, Indic, punctuation; ligatures; full-width forms. Other scripts have no
# diacritics to remove
_FOLDABLE_RANGES = (range(0x80, 0x2200), range(0xFB00, 0xFB50), range(0xFF01, 0xFF5F))
_MOST_REPLACE_PASSES = (
    64  # distinct characters: up to this number one pass each is faster than looking up every character
)

# Letters that do not decompose but look like a base letter, and typographic punctuation
BASE_LETTERS = {"đ": "d", "ħ": "h", "ı": "i", "ł": "l", "ø": "o", "ŧ": "t", "æ": "ae", "œ": "oe"}
_LOOKALIKES = str.maketrans(
    BASE_LETTERS
    | {"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'}
    | {"‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-", "−": "-", "\u00ad": ""}
)


def fold_whitespace(text: str) -> str:
    """A single line: runs of white space become one space, none at the ends."""
    return " ".join(text.split())


def digests(body: bytes, words: bytes) -> Digests:
    """Computes the digests. body: as received, decompressed.

    words: the text in UTF-8, white space folded; for a page without text, its body is used instead.
    """
    whole = xxh3_128_digest(body)
    if not words:
        return Digests(whole, whole, whole)
    return Digests(whole, xxh3_128_digest(words), xxh3_128_digest(_folding().fold(words)))


@cache
def _folding() -> Folding:
    """`without_marks` for single characters in UTF-8, filled on demand instead of with a table of all."""
    return Folding(_without_mark)


def _without_mark(char: str) -> str:
    return "".join(
        [
            _plain(letter) if any(ord(letter) in codes for codes in _FOLDABLE_RANGES) else letter
            for letter in char.lower()
        ]
    )


def without_marks(text: str) -> str:
    """The text in lower case, without diacritics (NFKD), with ASCII quotes and dashes."""
    text = text.lower()
    if text.isascii():
        return text
    pattern, table = _foldings()
    place = 0
    for _ in range(_MOST_REPLACE_PASSES):
        match = pattern.search(text, place)
        if match is None:
            return text
        place = match.start()
        text = text.replace(match[0], table[ord(match[0])])
    return text.translate(table)


@lru_cache(maxsize=1)
def _foldings() -> tuple[re.Pattern[str], dict[int, str]]:
    """The characters that change, as a pattern and a table. 10 ms, once, for the first text that is not ASCII."""
    table = {code: plain for codes in _FOLDABLE_RANGES for code in codes if (plain := _plain(chr(code))) != chr(code)}
    return re.compile("[" + "".join(map(chr, table)) + "]"), table


def _plain(char: str) -> str:
    parts = unicodedata.normalize("NFKD", char.casefold().translate(_LOOKALIKES))
    return "".join(part for part in parts if not unicodedata.combining(part)).casefold().translate(_LOOKALIKES)
