"""Which language a text is in, by trigrams of letters."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
import zlib
from array import array
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from periplus.document.trigrams import Trigrams, count_units

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


@dataclass(frozen=True, slots=True)
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

    threes, pairs, unseen = (
        np.asarray(table).reshape(-1, trigrams.columns) for table in (trigrams.threes, trigrams.pairs, trigrams.unseen)
    )
    before = first * trigrams.width + second
    rows = np.asarray(trigrams.rows)[before * trigrams.width + third]
    costs = threes.take(rows, 0)
    nowhere = rows == 0
    costs[nowhere] = pairs.take((second * trigrams.width + third)[nowhere], 0) + unseen.take(before[nowhere], 0)
    each = -costs[..., : trigrams.languages].astype(np.int16)
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


# By its script where one language has it for itself, else by the trigrams of its letters.

_LEAST_LETTERS = 12  # of fewer nobody can tell; of ideographs and the like a third
_SAMPLES, _SAMPLE_CHARS = 4, 150  # from a long text, evenly: more tell no more (quality/charset)
_UNITS = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
_SURE = 1.5  # nats by which the likeliest language is ahead of the next: the closest pairs are told apart by as much
# nats a letter: what is less likely in all languages is in none of them, or in code; real texts are at -3.6 and up
_NONSENSE = -4.6
# A declared language is believed while the text is nearly as likely in it as in the likeliest, nats a letter ...
_CLOSE = 0.12
_STRANGE = -3.0  # ... and one whose letters we do not know, while the text is this unlikely in all that we know
_OTHER_NAMES = {
    "nb": "no",
    "nn": "no",
    "iw": "he",
    "in": "id",
    "cz": "cs",
    "gr": "el",
    "jp": "ja",
    "ua": "uk",
    "kr": "ko",
    "cn": "zh",
    "dk": "da",
}
_TAG = re.compile(r"[a-z]{2,3}(?![a-z])")
# first and last code point, what stands there: a script of those above, or the one language that we know in it
_RANGES = (
    *(
        (first, last, "latin")
        for first, last in ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x24F), (0x1E00, 0x1EFF))
    ),
    *((first, last, "greek") for first, last in ((0x386, 0x3FF), (0x1F00, 0x1FFF))),
    (0x400, 0x52F, "cyrillic"),
    (0x531, 0x58F, "hy"),
    (0x5D0, 0x5EA, "hebrew"),
    (0x620, 0x6FF, "arabic"),
    (0x904, 0x939, "hi"),
    (0x995, 0x9B9, "bn"),
    (0xB85, 0xBB9, "ta"),
    (0xE01, 0xE4F, "thai"),
    (0x10D0, 0x10FF, "ka"),
    (0x3041, 0x30FF, "ja"),
    (0x3400, 0x9FFF, "zh"),
    (0xAC00, 0xD7A3, "ko"),
)


def language_of(text: str) -> str:
    """Its BCP 47 primary tag; empty when it is too short to tell, or in none of the languages that we know."""
    return _likeliest(*_scores(text))


def _likeliest(scores: dict[str, float], letters: int) -> str:
    if not scores or letters < _LEAST_LETTERS:
        return ""
    best, *others = sorted(scores.values(), reverse=True)
    if others and (best - others[0] < _SURE or best < _NONSENSE * letters):
        return ""
    return max(scores, key=scores.__getitem__)


def page_language(declared: str, text: str) -> str:
    """The BCP 47 primary tag of a page that declares a language (empty: it does not) over this text.

    The text is believed where it tells plainly: pages copy their declaration from one another.
    """
    tag = _TAG.match(declared.strip().lower())
    tagged = _OTHER_NAMES.get(tag[0], tag[0]) if tag else ""
    scores, letters = _scores(text)
    if not tagged or not scores or letters < _LEAST_LETTERS:
        return tagged or _likeliest(scores, letters)
    best = max(scores, key=scores.__getitem__)
    if tagged in scores:
        return tagged if scores[best] - scores[tagged] <= _CLOSE * letters else best
    is_readable = tagged in _readable_languages()
    return best if is_readable or len(scores) == 1 or scores[best] > _STRANGE * letters else tagged


@cache
def _readable_languages() -> frozenset[str]:
    spoken = {language for _, languages in SCRIPTS.values() for language in languages.split()}
    return frozenset(
        {_OTHER_NAMES.get(language, language) for language in spoken} | {what for *_, what in _RANGES if len(what) == 2}
    )


def _scores(text: str) -> tuple[dict[str, float], int]:
    """The log chance of a sample in each language of its script, in nats, and how many letters of the script it has."""
    codes = memoryview(_sample(text).encode(_UNITS, "replace")).cast("H")
    names, places = _scripts()
    counts = array("i", bytes(4 * len(names)))
    count_units(codes, places, counts)
    counts[0] = 0
    counts[names.index("zh")] *= 3
    counts[names.index("ko")] *= 3
    counts[names.index("ja")] *= 6  # a Japanese text has other signs too, but no other text has its syllables
    letters = max(counts)
    script = names[counts.index(letters)]
    if script not in SCRIPTS:
        return ({script: 0.0} if script else {}), letters
    languages = letters_of(script).languages
    totals = array("i", bytes(4 * len(languages)))
    if not trigrams_of(script).add(codes, _symbols(script), KINDS, totals):
        return {}, 0
    return {
        _OTHER_NAMES.get(language, language): total / STEP for language, total in zip(languages, totals, strict=True)
    }, letters


def _sample(text: str) -> str:
    if len(text) <= _SAMPLES * _SAMPLE_CHARS:
        return f"  {text} "
    step = (len(text) - _SAMPLE_CHARS) // (_SAMPLES - 1)
    return "  " + " ".join(text[start : start + _SAMPLE_CHARS] for start in range(0, step * _SAMPLES, step)) + " "


@cache
def _scripts() -> tuple[list[str], bytes]:
    """Scripts and the like, and for each of 65,536 characters which it belongs to; 0: none."""
    names = ["", *dict.fromkeys(what for *_, what in _RANGES)]
    table = bytearray(65536)
    for first, last, what in _RANGES:
        table[first : last + 1] = bytes([names.index(what)]) * (last + 1 - first)
    table[0xD7] = table[0xF7] = 0
    return names, bytes(table)


@cache
def _symbols(script: str) -> bytes:
    """The symbol of each of 65,536 characters: letters of the script; all others are as spaces."""
    table = bytearray(65536)
    for letter, symbol in letters_of(script).symbols.items():
        for form in (letter, letter.upper()):
            if len(form) == 1:
                table[ord(form)] = symbol
    if script == "latin":
        for letter, twin in ("șş", "ȘŞ", "țţ", "ȚŢ"):
            table[ord(letter)] = table[ord(twin.lower())]
    return bytes(table)
