"""Digests of a page's bytes and words, 16 bytes each.

Equal body digests: the same bytes. Equal text digests: the same words, whatever the markup and encoding around them.
Equal folded digests: the same words but for diacritics and case, as when a page is offered in us-ascii too.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from hashlib import md5

from xxhash import xxh3_128_digest

from periplus.document.folding import Folding
from periplus.model.page import Digests

# Latin, Greek, Cyrillic, Hebrew, Arabic, Indic, punctuation; ligatures; full-width forms. The rest
# has no diacritics to lose.
_FOLDED = (range(0x80, 0x2200), range(0xFB00, 0xFB50), range(0xFF01, 0xFF5F))
_REPLACED_AT_MOST = 64  # distinct characters: up to here one pass each is quicker than looking up every character

# What looks the same without its mark but does not decompose, and the marks that a typewriter lacks.
UNMARKED = {"đ": "d", "ħ": "h", "ı": "i", "ł": "l", "ø": "o", "ŧ": "t", "æ": "ae", "œ": "oe"}
_LOOKALIKES = str.maketrans(
    UNMARKED
    | {"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'}
    | {"‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-", "−": "-", "\u00ad": ""}
)


def digests(body: bytes, words: bytes) -> Digests:
    """body: as received, inflated.

    words: the text in UTF-8, white space folded; a page without text has its body's MD5 as that of its text.
    """
    whole = body_digest(body)
    if not words:
        instead = _digest(body)
        return Digests(whole, instead, instead)
    return Digests(whole, _digest(words), _digest(_folding().fold(words)))


def body_digest(body: bytes) -> bytes:
    """Of the bytes as received, inflated. MD5 of 64 kB took 100 us, this 4; whoever must be sure compares the bytes."""
    return xxh3_128_digest(body)


def _digest(written: bytes) -> bytes:
    return md5(written, usedforsecurity=False).digest()


@cache
def _folding() -> Folding:
    """What `without_marks` makes of each character, in UTF-8: of those that pages have, without a table of all."""
    return Folding(_without_mark)


def _without_mark(char: str) -> str:
    return "".join([_plain(one) if any(ord(one) in codes for codes in _FOLDED) else one for one in char.lower()])


def without_marks(text: str) -> str:
    """The text in lower case, letters without diacritics (NFKD),
    typographic quotes and dashes as a typewriter has them.
    """
    text = text.lower()
    if text.isascii():
        return text
    pattern, table = _foldings()
    place = 0
    for _ in range(_REPLACED_AT_MOST):
        match = pattern.search(text, place)
        if match is None:
            return text
        place = match.start()
        text = text.replace(match[0], table[ord(match[0])])
    return text.translate(table)


@lru_cache(maxsize=1)
def _foldings() -> tuple[re.Pattern[str], dict[int, str]]:
    """The characters that change, as a pattern and as a table. 10 ms, once, with the first text that is not ASCII."""
    table = {code: plain for codes in _FOLDED for code in codes if (plain := _plain(chr(code))) != chr(code)}
    return re.compile("[" + "".join(map(chr, table)) + "]"), table


def _plain(char: str) -> str:
    parts = unicodedata.normalize("NFKD", char.casefold().translate(_LOOKALIKES))
    return "".join(part for part in parts if not unicodedata.combining(part)).casefold().translate(_LOOKALIKES)
