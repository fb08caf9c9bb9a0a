"""Alphabets and letter trigram statistics, for encoding detection."""

from __future__ import annotations

import json
import unicodedata
import zlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from periplus.document.trigrams import Trigrams
from periplus.values import frozen

if TYPE_CHECKING:  # imports NumPy
    from periplus.model.arrays import Floats, Ints32, Unsigned8


# Each script has an alphabet of symbols: first the kinds of signs common to all scripts, then its lower-case letters.
# The table `letters.bin` is built by quality/charset/train.py, which documents its sources

# Kinds of signs; their index is their symbol. Below: how many signs outside ASCII share the probability of each kind
SPACE, DIGIT, MARK, LATIN, APOSTROPHE, QUOTE, DASH, NO_BREAK, SIGN, RARE, BOX, CONTROL, OTHER, FOREIGN = range(14)
KINDS = 14
_SHARES = (1, 1, 1, 26, 1, 5, 2, 1, 12, 60, 24, 1, 60, 100)
_KIND_OF = {
    **dict.fromkeys(" \t\n\r\f\v", SPACE),
    **dict.fromkeys("0123456789", DIGIT),
    **dict.fromkeys("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", MARK),
    **dict.fromkeys("„“”‚‘«»‹›「」『』", QUOTE),
    **dict.fromkeys("–—", DASH),
    **dict.fromkeys("…•·¶©®°§™€£±×½²³№→", SIGN),
    "\u2019": APOSTROPHE,
    "\xa0": NO_BREAK,
}

_TWINS = str.maketrans("șț", "şţ")  # old encodings of Romanian only have these
# script: (letters outside ASCII, languages). The order matters: letters.bin is numbered by it
SCRIPTS = {
    "latin": (
        "abcdefghijklmnopqrstuvwxyzáàâäãåăąāæćçčďđðéèêëěęēėíìîïīįıģğķĺľļłńñňņóòôöõőøœŕřśšşșťţțþúùûüůűūųýÿźżžßªº¿¡",
        "cs sk pl hu ro hr sl sq de nl en da sv nb fi is et lt lv fr es it pt ca tr id",
    ),
    "cyrillic": ("абвгдеёжзийклмнопрстуфхцчшщъыьэюяґєіїўђѓѕјљњћќџѐѝ", "ru uk bg be sr mk"),
    "greek": ("αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ", "el"),
    "hebrew": ("אבגדהוזחטיךכלםמןנסעףפץצקרשת", "he"),
    "arabic": ("ءآأؤإئابةتثجحخدذرزسشصضطظعغـفقكلمنهوىيپچژکگی،؛؟ًٌٍَُِّْ", "ar fa"),
    "thai": ("".join(chr(code) for code in (*range(0x0E01, 0x0E3B), *range(0x0E40, 0x0E50))), "th"),
}
STEP = 8  # steps of the tables per nat


@frozen
class Letters:
    """The letters of a script, and the languages written in it."""

    script: str
    languages: tuple[str, ...]
    symbols: dict[str, int]  # of each letter, in lower case

    @property
    def width(self) -> int:
        """The number of symbols."""
        return KINDS + len(self.symbols)

    def symbol_of(self, char: str) -> tuple[int, float]:
        """(symbol of a character, log-probability of the character among those with this symbol)."""
        kind = _KIND_OF.get(char)
        if kind is None:
            if symbol := self.symbols.get(char.lower().translate(_TWINS)):
                return symbol, 0.0
            kind = _kind_of_other(char, self.script)
        return kind, -_log(_SHARES[kind])


def _log(number: float) -> float:
    from math import log

    return log(number)


def _kind_of_other(char: str, script: str) -> int:
    if char.isascii() and char.isalpha():
        return LATIN
    category = unicodedata.category(char)
    if char == "\ufffd" or category in ("Cc", "Cn", "Co", "Cs"):
        return CONTROL
    if "\u2500" <= char <= "\u25ff" or "\u2320" <= char <= "\u2321":
        return BOX
    if category[0] == "L":
        return OTHER if script_of(char) == script else FOREIGN
    return RARE


def script_of(char: str) -> str:
    """The script of a letter, from its Unicode name: "latin", "cyrillic", ..."""
    return unicodedata.name(char, "").partition(" ")[0].lower()


@cache
def letters_of(script: str) -> Letters:
    """The letters and languages of a script."""
    alphabet, spoken = SCRIPTS[script]
    return Letters(script, tuple(spoken.split()), {letter: number for number, letter in enumerate(alphabet, KINDS)})


@cache
def _file() -> tuple[dict[str, int], dict[str, tuple[str, str]], bytes]:
    """(number of trigrams per script, frequent characters of East Asian languages, the tables)."""
    head, _, body = zlib.decompress(files("periplus.document").joinpath("letters.bin").read_bytes()).partition(b"\n")
    contents = json.loads(head)
    return {name: contents.pop(name) for name in SCRIPTS}, contents, body


@cache
def trigrams_of(script: str) -> Trigrams:
    """The trigram tables of a script."""
    counts, _, body = _file()
    start = 0
    for name, count in counts.items():
        letters = letters_of(name)
        end = start + 2 * letters.width**2 * len(letters.languages) + count * (4 + len(letters.languages))
        if name == script:
            return Trigrams(letters.width, len(letters.languages), count, body[start:end])
        start = end
    raise KeyError(script)


def log_chances(
    trigrams: Trigrams,
    first: Ints32,
    second: Ints32,
    third: Ints32,
    least: Ints32 | None = None,
) -> Floats:
    """Log-likelihood, in nats, of each third symbol given the two before it, summed over the last axis.

    [..., languages]

    least: lower bound for each place in all languages, in steps.
    """
    import numpy as np

    shape = (-1, trigrams.languages)
    threes, pairs, unseen = (
        np.asarray(table).reshape(shape) for table in (trigrams.threes, trigrams.pairs, trigrams.unseen)
    )
    before = first * trigrams.width + second
    rows = np.asarray(trigrams.rows)[before * trigrams.width + third]
    each = threes.take(rows, 0)
    nowhere = rows == 0
    each[nowhere] = pairs.take((second * trigrams.width + third)[nowhere], 0) + unseen.take(before[nowhere], 0)
    if least is not None:
        each = np.maximum(each, least[..., None])
    total = each.sum(-2, dtype=np.int32)
    return np.asarray(total / STEP)


@cache
def frequent_of(language: str) -> Unsigned8:
    """-log probability of each of 65,536 characters in an East Asian language, in quarters of a nat; 0 for ASCII."""
    import numpy as np

    chars, seldom = _file()[1][language]
    table = np.full(65536, 64, np.uint8)
    for start, end in ((0x3000, 0x3100), (0x4E00, 0xA000), (0xAC00, 0xD7A4), (0xFF01, 0xFF5F)):
        table[start:end] = 48
    table[np.frombuffer(chars.encode("utf-16-le"), np.uint16)] = np.frombuffer(seldom.encode("ascii"), np.uint8) - 48
    table[:128] = 0
    return table
