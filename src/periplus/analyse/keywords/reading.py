"""Of which words does a text consist, and where may no phrase go on?"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from periplus.document.words import folded, plain, table

Bits = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]

MOST_WORDS = 20_000  # of one text: what a page has to say, it says before
PARTED, JOINED, PAUSE, END, LINE = range(5)  # what stands between two words: blanks; a hyphen; a comma or bracket; a full stop; a line's end
_WIDE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_HAS_WIDE = re.compile(f"[{_WIDE}]")
_GAPS = re.compile(r"(\W+)")
_WIDE_GAPS = re.compile(rf"(\W+|(?<=[{_WIDE}])(?=\w)|(?<=\w)(?=[{_WIDE}]))")  # an ideograph is a word
_JOINTS = frozenset("-‐‑‒–'’`´\u00ad·&")
_PARTICLE = re.compile(r"[\u3040-\u309f]")  # hiragana: endings and particles


class Reading(NamedTuple):
    """A text as its words. The arrays have an item for each word."""

    language: str  # BCP 47 primary tag; empty: not known
    words: list[str]  # as written
    gaps: list[str]  # what stands after each word
    kinds: npt.NDArray[np.int8]  # of the gap after each word: PARTED and the like
    keys: Keys  # of the stem; even
    stops: Bits  # function words, numbers and single letters: no keyword begins or ends with one
    chunks: npt.NDArray[np.int32]  # words without a pause between them share a number
    sentences: npt.NDArray[np.int32]
    capitals: Bits  # begins with one
    loud: Bits  # all capitals, two and more
    lengths: npt.NDArray[np.int32]  # in characters
    digits: Bits  # has one, or another sign that is no letter
    paragraphs: int

    def written(self, start: int, count: int) -> str:
        """Words as they stand in the text, on one line."""
        pieces = [piece for at in range(start, start + count) for piece in (self.words[at], self.gaps[at])]
        return " ".join("".join(pieces[:-1]).split())


class _Keys(dict[str, int]):
    """Forms of a language with the key of their stem; odd ones are function words."""

    def __init__(self, language: str) -> None:
        self._terms = table(language)
        self._stops = function_words(language)

    def __missing__(self, form: str) -> int:
        if len(self) > 500_000:  # words of real languages are fewer by far within one run; what is more is noise
            self.clear()
        stop = form in self._stops or (len(form) == 1 and form < "\u3400") or form.isdigit() or _PARTICLE.match(form) is not None
        self[form] = key = xxhash.xxh3_64_intdigest(self._terms[form].encode("utf-8", "surrogatepass")) & ~1 | stop
        return key


@cache
def _keys_of(language: str) -> _Keys:
    return _Keys(language)


@cache
def _lists() -> dict[str, frozenset[str]]:
    """Function words by language, as forms."""
    stored = json.loads((files("periplus.analyse.keywords") / "function_words.json").read_text(encoding="utf-8"))
    return {language: frozenset(plain(words).split()) for language, words in stored.items()}


def function_words(language: str) -> frozenset[str]:
    """Words that bind and say nothing by themselves, with diacritics and without. Of a language that we have no list of: English ones."""
    words = _lists().get(language, _lists()["en"])
    return words | {folded(word) for word in words}


class _Kinds(dict[str, int]):
    """What stands between words, by what it means for phrases."""

    def __missing__(self, gap: str) -> int:
        self[gap[:16]] = kind = _kind(gap)
        return kind


def _kind(gap: str) -> int:
    if not gap:
        return JOINED
    if "\n\n" in gap or any(sign in gap for sign in ".!?…。！？։؟|•\t"):
        return END
    if gap.isspace():
        return LINE if "\n" in gap else PARTED
    if all(sign in _JOINTS for sign in gap):
        return JOINED
    return PAUSE


_KINDS = _Kinds()


def read(text: str, language: str) -> Reading:
    """language: BCP 47 primary tag; empty: not known, then words are compared as they are written, case and diacritics apart."""
    pieces = (_WIDE_GAPS if _HAS_WIDE.search(text) else _GAPS).split(text.replace("_", " "))
    words, gaps = pieces[0 : 2 * MOST_WORDS : 2], [*pieces[1 : 2 * MOST_WORDS : 2]]
    if words and not words[0]:
        words, gaps = words[1:], gaps[1:]
    if words and not words[-1]:
        words.pop()
    gaps = [*gaps[: len(words) - 1], "\n\n"] if words else []
    return _arranged(language, words, gaps, _keys(words, language))


def _keys(words: Sequence[str], language: str) -> Keys:
    forms = plain("\n".join(words)).split("\n")
    if len(forms) != len(words):  # a word that falls apart in lower case
        forms = [plain(word) for word in words]
    return np.fromiter(map(_keys_of(language).__getitem__, forms), np.uint64, len(forms))


def _arranged(language: str, words: list[str], gaps: list[str], keys: Keys) -> Reading:
    count = len(words)
    capitals = np.fromiter(map(str.isupper, [word[0] for word in words]), bool, count)
    kinds = np.fromiter(map(_KINDS.__getitem__, gaps), np.int8, count)
    follows = np.append(capitals[1:], True) if count else capitals
    pauses = (kinds == PAUSE) | (kinds == END) | ((kinds == LINE) & follows)  # a wrapped line goes on in lower case
    ends = (kinds == END) | ((kinds == LINE) & follows)
    lengths = np.fromiter(map(len, words), np.int32, count)
    return Reading(
        language=language,
        words=words,
        gaps=gaps,
        kinds=kinds,
        keys=keys & ~np.uint64(1),
        stops=(keys & np.uint64(1)).astype(bool),
        chunks=_numbered(pauses),
        sentences=_numbered(ends),
        capitals=capitals,
        loud=np.fromiter(map(str.isupper, words), bool, count) & (lengths > 1),
        lengths=lengths,
        paragraphs=sum("\n" in gap and (capital or "\n\n" in gap) for gap, capital in zip(gaps, follows.tolist(), strict=True)),
        digits=~np.fromiter(map(str.isalpha, words), bool, count),
    )


def _numbered(ends: Bits) -> npt.NDArray[np.int32]:
    """Which stretch each word is in, where `ends` says that one ends after it."""
    numbers = np.cumsum(ends, dtype=np.int32)
    return numbers - ends
