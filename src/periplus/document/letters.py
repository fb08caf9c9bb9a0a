"""Alphabets, and how likely each letter is after two others: what the encoding of a text is told by."""

from __future__ import annotations

import json
import unicodedata
import zlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from periplus.document.trigrams import Trigrams
from periplus.values import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# A script has its alphabet of symbols: first the kinds of signs that all scripts share, then its letters in lower case.
# The table `letters.bin` is made by quality/charset/train.py, which says from what.

# Kinds of signs; their number is their symbol. A sign outside ASCII shares its kind's chance with that many others.
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

_TWINS = str.maketrans("șț", "şţ")  # old encodings of Romanian have only these
# script: its letters outside ASCII, its languages. Order counts: letters.bin numbers by it.
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
STEP = 8  # steps of the tables to a nat


@frozen
class Letters:
    """What a script is written with, and the languages that are written in it."""

    script: str
    languages: tuple[str, ...]
    symbols: dict[str, int]  # of each letter, in lower case

    @property
    def width(self) -> int:
        """How many symbols there are."""
        return KINDS + len(self.symbols)

    def symbol_of(self, char: str) -> tuple[int, float]:
        """The symbol of a character, and the log chance of the character among those that share it."""
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
    """Which script a letter belongs to, by its name: "latin", "cyrillic", ..."""
    return unicodedata.name(char, "").partition(" ")[0].lower()


@cache
def letters_of(script: str) -> Letters:
    """The letters and languages of a script."""
    alphabet, spoken = SCRIPTS[script]
    return Letters(script, tuple(spoken.split()), {letter: number for number, letter in enumerate(alphabet, KINDS)})


@cache
def _file() -> tuple[dict[str, int], dict[str, tuple[str, str]], bytes]:
    """How many trigrams each script has, the frequent signs of the East Asian languages, and the tables."""
    head, _, body = zlib.decompress(files("periplus.document").joinpath("letters.bin").read_bytes()).partition(b"\n")
    contents = json.loads(head)
    return {name: contents.pop(name) for name in SCRIPTS}, contents, body


@cache
def trigrams_of(script: str) -> Trigrams:
    """The tables of a script."""
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
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    third: NDArray[np.int32],
    least: NDArray[np.int32] | None = None,
) -> NDArray[np.float64]:
    """How likely the third of each three symbols is after the two before it, summed over the last axis,
    in nats. [..., languages]

    least: of each place, in steps: a sign is never less likely in any language.
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
def frequent_of(language: str) -> NDArray[np.uint8]:
    """How seldom each of 65,536 characters stands in an East Asian language: -log chance,
    in quarters of a nat; ASCII: 0.
    """
    import numpy as np

    chars, seldom = _file()[1][language]
    table = np.full(65536, 64, np.uint8)
    for start, end in ((0x3000, 0x3100), (0x4E00, 0xA000), (0xAC00, 0xD7A4), (0xFF01, 0xFF5F)):
        table[start:end] = 48
    table[np.frombuffer(chars.encode("utf-16-le"), np.uint16)] = np.frombuffer(seldom.encode("ascii"), np.uint8) - 48
    table[:128] = 0
    return table
