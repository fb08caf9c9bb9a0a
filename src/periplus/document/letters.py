"""Alphabets and letter trigram statistics, for encoding detection."""

from __future__ import annotations

import json
import math
import re
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
# nats for each ASCII letter next to such a character: usually it is half of another encoding's letter
_BESIDE_ASCII = 4.0
_BESIDE = re.compile("(?<=[A-Za-z])[^\0-\x7f]|[^\0-\x7f](?=[A-Za-z])")
STEP = 8  # steps of the tables per nat
# The training texts have few curly quotes and dashes, and English ones little else outside ASCII. So a typographic sign
# in its usual context has at least this log-likelihood in every language, in nats. Contexts are classes of three
# characters: those below, a letter, 1 digit, . punctuation, x other, ? any of them.
_SIGN_CLASSES = "a1.x_=',\"-*s"
_PRINT_SIGNS = {
    "_": " ",
    "=": "\xa0",
    "'": "\u2019",
    '"': "“”‘",
    ",": "„‚",
    "-": "–—",
    "*": "…™®",
    "s": "•·§©°£€±×½²³¶",
}
SIGNS_BESIDE_WORDS = tuple(map(_SIGN_CLASSES.index, '",*s'))
_PRINT_SCORES = """
?a' -4 / ?1' -5 / ?.' -6 / a'a -2.5 / a'_ -2 / a'. -3 / 1'a -3 / 'aa -3.5 / 'a_ -2 / 'a. -3 / '_a -3
?_' -7 / _'a -3.5 / _'1 -3
?_" -3.5 / ?." -4 / ?a" -4 / ?1" -5 / _"a -3 / _"1 -4 / ."a -3 / a"_ -1 / a". -2 / ."_ -1 / 1"_ -1.5 / "aa -3.5 / "_a -3
?_, -3.5 / ?., -4 / _,a -3 / .,a -3 / _,1 -4 / ,aa -3.5
?_- -3.5 / ?a- -4 / ?1- -4 / ?.- -5 / _-_ -0.5 / a-a -4.5 / 1-1 -2.5 / a-_ -1.5 / _-a -4 / _-1 -3 / -aa -3.5 / -_a -3
?a= -5 / ?.= -4 / ?1= -4 / ?_= -5 / ?== -3 / a=a -7 / _=a -7 / _=1 -3 / 1=a -3 / 1=1 -3 / .=a -5 / ==a -3 / ==1 -3
?a* -4.5 / ?_* -4.5 / ?1* -5 / ?.* -5 / _*_ -1 / a*_ -1 / a*. -2 / _*a -4 / *_a -3 / *aa -4
?_s -4.5 / _s_ -1 / _s1 -3 / s_a -3 / s11 -3
"""


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
        return kind, -math.log(_SHARES[kind])


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


def sign_class(char: str) -> int:
    """The class of a character in _SIGN_CLASSES."""
    sign = next((sign for sign, chars in _PRINT_SIGNS.items() if char in chars), "")
    if not sign:
        sign = "a" if char.isalpha() else "1" if char.isdigit() else "." if char.isascii() else "x"
    return _SIGN_CLASSES.index(sign)


@cache
def least_chances() -> Ints32:
    """In steps, by the classes of three characters."""
    import numpy as np

    least = np.full((len(_SIGN_CLASSES),) * 3, -1000, np.int32)
    for entry in _PRINT_SCORES.replace("\n", " / ").strip(" /").split(" / "):
        signs, nats = entry.split()
        at = tuple(slice(None) if sign == "?" else _SIGN_CLASSES.index(sign) for sign in signs)
        least[at] = round(float(nats) * STEP)
    return least


def east_asian_scores(text: str, language: str) -> tuple[float, float]:
    """(log-likelihood of the characters outside ASCII in an East Asian language, share of its most common
    characters).
    """
    import numpy as np

    chars = np.frombuffer(text.encode("utf-16-le", "replace"), np.uint16)
    counts = np.bincount(chars, minlength=65536)
    counts[:128] = 0
    seldom = frequent_of(language)
    common = float(counts[seldom < 48].sum() / max(1, counts.sum()))
    return -float(counts @ seldom) / 4 - _BESIDE_ASCII * len(_BESIDE.findall(text)), common
