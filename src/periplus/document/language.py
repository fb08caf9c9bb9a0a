"""Which language is a text in?

By its script where one language has it for itself, else by the trigrams of its letters.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from periplus.document.letters import KINDS, SCRIPTS, letters_of, log_chances

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEAST_LETTERS = 12  # of fewer nobody can tell; of ideographs and the like a third
_SAMPLES, _SAMPLE_CHARS = 4, 150  # from a long text, evenly: more tell no more (quality/charset)
_SURE = 1.5  # nats by which the likeliest language is ahead of the next: the closest pairs are told apart by as much
_NONSENSE = -4.6  # nats a letter: what is less likely in all languages is in none of them, or in code; real texts are at -3.6 and up
# A declared language is believed while the text is nearly as likely in it as in the likeliest, nats a letter ...
_CLOSE = 0.12
_STRANGE = -3.0  # ... and one whose letters we do not know, while the text is this unlikely in all that we know
_OTHER_NAMES = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "cz": "cs", "gr": "el", "jp": "ja", "ua": "uk", "kr": "ko", "cn": "zh", "dk": "da"}
_TAG = re.compile(r"[a-z]{2,3}(?![a-z])")
# first and last code point, what stands there: a script of letters.py, or the one language that we know in it
_RANGES = (
    *((first, last, "latin") for first, last in ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x24F), (0x1E00, 0x1EFF))),
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
    return max(scores, key=lambda language: scores[language])


def page_language(declared: str, text: str) -> str:
    """The BCP 47 primary tag of a page that declares a language (empty: it does not) over this text.

    The text is believed where it tells plainly: pages copy their declaration from one another.
    """
    tag = _TAG.match(declared.strip().lower())
    said = _OTHER_NAMES.get(tag[0], tag[0]) if tag else ""
    scores, letters = _scores(text)
    if not said or not scores or letters < _LEAST_LETTERS:
        return said or _likeliest(scores, letters)
    best = max(scores, key=lambda language: scores[language])
    if said in scores:
        return said if scores[best] - scores[said] <= _CLOSE * letters else best
    known = said in _known()
    return best if known or len(scores) == 1 or scores[best] > _STRANGE * letters else said


@cache
def _known() -> frozenset[str]:
    spoken = {language for _, languages in SCRIPTS.values() for language in languages.split()}
    return frozenset({_OTHER_NAMES.get(language, language) for language in spoken} | {what for *_, what in _RANGES if len(what) == 2})


def _scores(text: str) -> tuple[dict[str, float], int]:
    """The log chance of a sample in each language of its script, in nats, and how many letters of the script it has."""
    import numpy as np

    codes = np.frombuffer(_sample(text).encode("utf-16-le", "replace"), np.uint16)
    names, places = _scripts()
    counts = np.bincount(places[codes], minlength=len(names))
    counts[0] = 0
    counts[names.index("zh")] *= 3
    counts[names.index("ko")] *= 3
    counts[names.index("ja")] *= 6  # a Japanese text has other signs too, but no other text has its syllables
    script = names[int(counts.argmax())]
    letters = int(counts.max())
    if script not in SCRIPTS:
        return ({script: 0.0} if script else {}), letters
    known = letters_of(script)
    symbols = _symbols(script)[codes]
    third = symbols[2:]
    ends = third >= KINDS
    if not ends.any():
        return {}, 0
    chances = log_chances(known, symbols[:-2][ends], symbols[1:-1][ends], third[ends])
    return {_OTHER_NAMES.get(language, language): float(score) for language, score in zip(known.languages, chances, strict=True)}, letters


def _sample(text: str) -> str:
    if len(text) <= _SAMPLES * _SAMPLE_CHARS:
        return f"  {text} "
    step = (len(text) - _SAMPLE_CHARS) // (_SAMPLES - 1)
    return "  " + " ".join(text[start : start + _SAMPLE_CHARS] for start in range(0, step * _SAMPLES, step)) + " "


@cache
def _scripts() -> tuple[list[str], NDArray[np.uint8]]:
    """Scripts and the like, and for each of 65,536 characters which it belongs to; 0: none."""
    import numpy as np

    names = ["", *dict.fromkeys(what for *_, what in _RANGES)]
    table = np.zeros(65536, np.uint8)
    for first, last, what in _RANGES:
        table[first : last + 1] = names.index(what)
    table[[0xD7, 0xF7]] = 0
    return names, table


@cache
def _symbols(script: str) -> NDArray[np.int32]:
    """The symbol of each of 65,536 characters: letters of the script; all others are as spaces."""
    import numpy as np

    table = np.zeros(65536, np.int32)
    for letter, symbol in letters_of(script).symbols.items():
        for form in (letter, letter.upper()):
            if len(form) == 1:
                table[ord(form)] = symbol
    if script == "latin":
        table[[ord("ș"), ord("Ș")]], table[[ord("ț"), ord("Ț")]] = table[ord("ş")], table[ord("ţ")]
    return table
