"""Splits a text into words, keyword candidates and tags, and counts candidates in a collection."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from periplus.document.dates import months
from periplus.document.language import is_beyond_latin
from periplus.document.words import fold_form, plain, script_languages, table

Bits = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]

MOST_WORDS = 20_000  # per text: later words add nothing
# Kinds of gaps between words: blanks; a hyphen; a comma or bracket; a full stop; a line break
PARTED, JOINED, PAUSE, END, LINE = range(5)
_WIDE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_HAS_WIDE = re.compile(f"[{_WIDE}]")
_GAPS = re.compile(r"(\W+)")
_WIDE_GAPS = re.compile(rf"(\W+|(?<=[{_WIDE}])(?=\w)|(?<=\w)(?=[{_WIDE}]))")  # each ideograph is a word
_JOINTS = frozenset("-‐‑‒–'’`´\u00ad·&")
_PARTICLE = re.compile(r"[\u3040-\u309f]")  # hiragana: inflections and particles
# Keywords that are published: without dates, counts and the boilerplate words of pages
# Most words of a keyword that is not a name, and of a keyword that contains a function word: longer ones are sentence
# fragments
WORDS_MOST, WORDS_BOUND = 4, 3
FRAME_SHARE = 0.5  # a block on this share of a site's pages is boilerplate
FRAME_PAGES = 3  # with fewer pages boilerplate cannot be detected
_WORD = re.compile(r"\w+")
_SHORT_MONTHS = ("may", "mai", "maj", "май")  # other three-letter forms are words of their own: led, sie, lip
# Function words in any language: untranslated parts of pages are in English, and these have no meaning in others
_ENGLISH = frozenset({"the", "of", "and", "with", "from", "this", "that", "which"})
MOST = 5  # words; one in forty of the authors' keywords in quality/keywords is longer
LONG = 300  # words: in a longer text ...
# ... a longer phrase counts only if it is repeated. Half of all candidates are not, and are hardly ever keywords
ONCE = 3
_STEP = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplication is invertible
# held while counting; then keys of a single text so far are dropped, and their count restarts at zero
MOST_KEYS = 4_000_000
NAMES = ("tag_begin", "tag_end", "tag_mean", "tag_least", "tag_before", "tag_after", "tag_sum")
OUTSIDE = -3.0  # log-odds of the positions before the first and after the last word
SCALE = 100  # weights are stored as integers


class Reading(NamedTuple):
    """A text as words. The arrays have one item per word."""

    language: str  # BCP 47 primary tag; empty: unknown
    words: list[str]  # as written
    gaps: list[str]  # the text after each word
    kinds: npt.NDArray[np.int8]  # kind of the gap after each word: PARTED etc.
    keys: Keys  # hash of the stem, always even
    stops: Bits  # function words, numbers and single letters: no keyword begins or ends with one
    chunks: npt.NDArray[np.int32]  # words without a pause between them have the same number
    sentences: npt.NDArray[np.int32]
    capitals: Bits  # begins with a capital
    loud: Bits  # at least two characters, all capitals
    lengths: npt.NDArray[np.int32]  # in characters
    digits: Bits  # contains a digit or another non-letter
    paragraphs: int

    def original_words(self, start: int, count: int) -> str:
        """Words as in the text, on one line."""
        pieces = [piece for at in range(start, start + count) for piece in (self.words[at], self.gaps[at])]
        return " ".join("".join(pieces[:-1]).split())


class _Keys(dict[str, int]):
    """Cache from forms of a language to the hash of the stem; odd hashes mark function words.

    Words in another script are stemmed in the main language of that script: half of a translated manual is in English.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._terms = table(language)
        self._stops = function_words(language)

    def __missing__(self, form: str) -> int:
        if len(self) > 500_000:  # far more than the vocabulary of a run; the excess is noise
            self.clear()
        others = script_languages(form)
        if self._language and others and ("en" in others) == is_beyond_latin(self._language):
            self[form] = key = _keys_of(others[0])[form]
            return key
        stop = (
            form in self._stops
            or (len(form) == 1 and form < "\u3400")
            or form.isdigit()
            or _PARTICLE.match(form) is not None
        )
        self[form] = key = xxhash.xxh3_64_intdigest(self._terms[form].encode("utf-8", "surrogatepass")) & ~1 | stop
        return key


@cache
def _keys_of(language: str) -> _Keys:
    return _Keys(language)


@cache
def _lists() -> dict[str, frozenset[str]]:
    """Function words by language, normalised."""
    stored = json.loads((files("periplus_topics.analyse") / "function_words.json").read_text(encoding="utf-8"))
    return {language: frozenset(plain(words).split()) for language, words in stored.items()}


@cache
def function_words(language: str) -> frozenset[str]:
    """Function words of a language, with and without diacritics; English words if it has no list."""
    words = _lists().get(language, _lists()["en"]) | _ENGLISH
    return words | {fold_form(word) for word in words}


class _Kinds(dict[str, int]):
    """Cache: kind of each gap."""

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
    """Splits a text.

    language: BCP 47 primary tag; empty: unknown, words are then compared without stemming, ignoring case and
    diacritics.
    """
    pieces = (_WIDE_GAPS if _HAS_WIDE.search(text) else _GAPS).split(text.replace("_", " "))
    words, gaps = pieces[0 : 2 * MOST_WORDS : 2], [*pieces[1 : 2 * MOST_WORDS : 2]]
    if words and not words[0]:
        words, gaps = words[1:], gaps[1:]
    if words and not words[-1]:
        words.pop()
    gaps = [*gaps[: len(words) - 1], "\n\n"] if words else []
    return _build_reading(language, words, gaps, _keys(words, language))


def _keys(words: Sequence[str], language: str) -> Keys:
    forms = plain("\n".join(words)).split("\n")
    if len(forms) != len(words):  # a word that is split when lower-cased
        forms = [plain(word) for word in words]
    return np.fromiter(map(_keys_of(language).__getitem__, forms), np.uint64, len(forms))


def _build_reading(language: str, words: list[str], gaps: list[str], keys: Keys) -> Reading:
    count = len(words)
    capitals = np.fromiter(map(str.isupper, [word[0] for word in words]), bool, count)
    kinds = np.fromiter(map(_KINDS.__getitem__, gaps), np.int8, count)
    follows = np.append(capitals[1:], True) if count else capitals
    pauses = (kinds == PAUSE) | (kinds == END) | ((kinds == LINE) & follows)  # a wrapped line continues in lower case
    ends = (kinds == END) | ((kinds == LINE) & follows)
    lengths = np.fromiter(map(len, words), np.int32, count)
    return Reading(
        language=language,
        words=words,
        gaps=gaps,
        kinds=kinds,
        keys=keys & ~np.uint64(1),
        stops=(keys & np.uint64(1)).astype(bool),
        chunks=_stretch_numbers(pauses),
        sentences=_stretch_numbers(ends),
        capitals=capitals,
        loud=np.fromiter(map(str.isupper, words), bool, count) & (lengths > 1),
        lengths=lengths,
        paragraphs=sum(
            "\n" in gap and (capital or "\n\n" in gap) for gap, capital in zip(gaps, follows.tolist(), strict=True)
        ),
        digits=~np.fromiter(map(str.isalpha, words), bool, count),
    )


def _stretch_numbers(ends: Bits) -> npt.NDArray[np.int32]:
    """Number of the stretch of each word; `ends` marks the last word of each stretch."""
    numbers = np.cumsum(ends, dtype=np.int32)
    return numbers - ends


Ints = npt.NDArray[np.intp]


class Candidates(NamedTuple):
    """Distinct phrases of a text (by stems), and their occurrences."""

    keys: Keys  # [n] ascending; for a single word, the word's key
    first: Ints  # [n] first occurrence, as an index into `places`
    times: Ints  # [n]
    sizes: Ints  # [n] words
    places: Ints  # [m] index of the first word
    counts: Ints  # [m] number of words
    owner: Ints  # [m] index of the phrase, 0 to n - 1


def candidates(text: Reading) -> Candidates:
    """Candidates: phrases that neither begin nor end with a function word."""
    places, counts, keys = _occurrences(text)
    phrases = _group_candidates(places, counts, keys)
    if len(text.words) <= LONG:
        return phrases
    return _select(phrases, (phrases.times > 1) | (phrases.sizes <= ONCE))


def _group_candidates(places: Ints, counts: Ints, keys: Keys) -> Candidates:
    distinct, first, owner, times = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    return Candidates(distinct, first, times, counts[first], places, counts, owner)


def _select(phrases: Candidates, chosen: npt.NDArray[np.bool_]) -> Candidates:
    """The selected candidates."""
    at = chosen[phrases.owner]
    number, place = np.cumsum(chosen) - 1, np.cumsum(at) - 1
    return Candidates(
        phrases.keys[chosen],
        place[phrases.first[chosen]],
        phrases.times[chosen],
        phrases.sizes[chosen],
        phrases.places[at],
        phrases.counts[at],
        number[phrases.owner[at]],
    )


def _occurrences(text: Reading) -> tuple[Ints, Ints, Keys]:
    """(first word, words, key) of each occurrence, by number of words, then in text order.

    So the first occurrence of a key is the earliest.
    """
    free = np.flatnonzero(~text.stops)
    places, counts, keys = [], [], []
    begins, key = free, text.keys[free]
    for count in range(1, MOST + 1):
        if count > 1:
            inside = begins + count - 1 < len(text.words)
            begins, key = begins[inside], key[inside]
            last = begins + count - 1
            whole = text.chunks[last] == text.chunks[begins]
            begins, last, key = begins[whole], last[whole], key[whole]
            key = key * _STEP + text.keys[last]
        ends = ~text.stops[begins + count - 1]
        places.append(begins[ends])
        counts.append(np.full(len(places[-1]), count, np.intp))
        keys.append(key[ends])
    return np.concatenate(places), np.concatenate(counts), np.concatenate(keys)


Floats = npt.NDArray[np.float64]


class Counts(NamedTuple):
    """Document frequencies of phrases, by key (ascending); phrases of a single text are left out."""

    texts: int
    keys: Keys
    numbers: npt.NDArray[np.int64]

    def of(self, keys: Keys) -> Floats:
        """Document frequency of each key; at least 1, because each key comes from a text."""
        if not len(self.keys):
            return np.ones(len(keys))
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.numbers[at], 1).astype(np.float64)


NOTHING = Counts(0, np.zeros(0, np.uint64), np.zeros(0, np.int64))


def count_texts(texts: Iterable[Reading]) -> Counts:
    """Counts all words and candidates of the texts."""
    keys, numbers = NOTHING.keys, NOTHING.numbers
    waiting: list[Keys] = []
    number = size = 0
    for text in texts:
        number += 1
        waiting.append(np.unique(np.concatenate((candidates(text).keys, text.keys))))
        size += len(waiting[-1])
        if size > MOST_KEYS:
            keys, numbers = _merge_counts(keys, numbers, waiting)
            waiting, size = [], 0
    keys, numbers = _merge_counts(keys, numbers, waiting)
    return Counts(number, keys, numbers)


def together(first: Counts, other: Counts) -> Counts:
    """Merges the counts of two disjoint sets of texts."""
    keys, owner = np.unique(np.concatenate((first.keys, other.keys)), return_inverse=True)
    numbers = np.bincount(owner, np.concatenate((first.numbers, other.numbers)), len(keys)).astype(np.int64)
    return Counts(first.texts + other.texts, keys, numbers)


def _merge_counts(
    before: Keys, numbers: npt.NDArray[np.int64], waiting: list[Keys]
) -> tuple[Keys, npt.NDArray[np.int64]]:
    keys, owner = np.unique(np.concatenate((before, *waiting)), return_inverse=True)
    weights = np.ones(len(owner), np.int64)
    weights[: len(before)] = numbers
    totals = np.bincount(owner, weights, len(keys)).astype(np.int64)
    return keys[totals > 1], totals[totals > 1]


# A linear model of the word, its suffixes and its neighbours, trained by quality/keywords/train.py and shipped as
# `tags.json`.

TagScores = npt.NDArray[np.float32]

BEGIN, FINISH, WITHIN = range(3)  # columns of the result of `tag_words`


@cache
def _weights(language: str) -> tuple[dict[str, int], TagScores]:
    """(row of each trait, float32[rows, 3]); the last row is for unknown traits."""
    stored = json.loads((files("periplus_topics.analyse") / "tags.json").read_text(encoding="utf-8")).get(language, {})
    rows = {trait: row for row, trait in enumerate(stored)}
    return rows, np.array([*stored.values(), [0, 0, 0]], np.float32) / np.float32(SCALE)


def traits(text: Reading) -> list[list[str]]:
    """Traits of each word; every word has the trait `*`."""
    kinds = text.kinds.tolist()
    words = ["", *[word.lower() for word in text.words], ""]
    paused = [True, *[kind in (PAUSE, END) for kind in kinds[:-1]], True]
    rows = []
    for at, word in enumerate(words[1:-1]):
        before = "|" if paused[at] else words[at]
        after = "|" if paused[at + 1] else words[at + 2]
        end = word[-3:]
        seen = [
            "*", "w " + word, "2 " + word[-2:], "3 " + end, "4 " + word[-4:], "b " + before, "a " + after,
            "b3 " + before[-3:], "a3 " + after[-3:], "bw " + before[-3:] + " " + end, "wa " + end + " " + after[-3:],
        ]  # fmt: skip
        if text.capitals[at]:
            seen.append("loud" if text.loud[at] else "capital")
        if text.digits[at]:
            seen.append("digit")
        rows.append(seen)
    return rows


def tag_words(text: Reading) -> TagScores | None:
    """float32[words, 3]: log-odds that a keyword begins at, ends at, contains the word.

    None if there is no model of the language.
    """
    rows, weights = _weights(text.language)
    if not rows or not text.words:
        return None
    seen = traits(text)
    unknown = len(weights) - 1
    flat = np.fromiter((rows.get(trait, unknown) for word in seen for trait in word), np.intp)
    bounds = np.cumsum([0, *map(len, seen)])
    return np.add.reduceat(weights[flat], bounds[:-1], axis=0)


def tag_measures(odds: TagScores | None, phrases: Candidates) -> TagScores:
    """float32[len(NAMES), n]: a row per measure, at the first occurrence of each candidate; zeros without tags."""
    if odds is None:
        return np.zeros((len(NAMES), len(phrases.keys)), np.float32)
    begins, ends = phrases.places[phrases.first], phrases.places[phrases.first] + phrases.sizes
    edge = np.full((1, 3), OUTSIDE, np.float32)
    padded = np.concatenate((edge, odds, edge))
    total = np.concatenate((np.zeros(1), np.cumsum(odds[:, WITHIN], dtype=np.float64)))
    mean = (total[ends] - total[begins]) / phrases.sizes
    bounds = np.stack((begins, ends), 1).ravel()
    least = np.minimum.reduceat(np.append(odds[:, WITHIN], np.float32(np.inf)), bounds)[::2]
    begin, end = odds[begins, BEGIN], odds[ends - 1, FINISH]
    return np.array(
        [begin, end, mean, least, padded[begins, WITHIN], padded[ends + 1, WITHIN], begin + end + mean], np.float32
    )


class _Words(NamedTuple):
    """Words of a language, lower case, without diacritics."""

    empty: frozenset[str]  # days, months, times, boilerplate; plus function words
    numbers: frozenset[str]
    speech: frozenset[str]  # verbs of reports: said, pointed
    headings: frozenset[str]  # names of the parts of any document: chapter, figure


@cache
def _words(language: str) -> _Words:
    """The word lists of a language; the English lists if it has none."""
    stored = json.loads((files("periplus_topics.analyse") / "unprintable_words.json").read_text(encoding="utf-8"))
    lists = stored.get(language, stored["en"])
    of_months = {form for form in months() if len(form) > 3 or form in _SHORT_MONTHS}
    empty = _forms(lists["frame"]) | of_months | {fold_form(word) for word in function_words(language)}
    return _Words(
        frozenset(empty),
        frozenset(_forms(lists["numbers"])),
        frozenset(_forms(lists.get("speech", ""))),
        frozenset(_forms(lists["headings"])),
    )


def _forms(text: str) -> set[str]:
    return set(_WORD.findall(fold_form(plain(text))))


def is_printable(keyword: str, language: str) -> bool:
    """Whether a keyword is meaningful on its own.

    language: BCP 47 primary tag. Rejected are dates and boilerplate ("Tuesday morning", "read more"); counts ("forty
    crowns"), unless each word begins with a capital ("Four Seasons"); and, with the same exception, more than
    WORDS_MOST words, or WORDS_BOUND if one of them is a function word, and a verb of speech ("Smondet pointed").
    """
    written = _WORD.findall(keyword)
    forms = [fold_form(plain(word)) for word in written]
    words = _words(language)
    if all(form in words.empty or form in words.numbers or form.isdigit() or len(form) < 2 for form in forms):
        return False
    if not words.speech.isdisjoint(forms):
        return False
    if is_name(keyword, language):
        return True
    bound = not function_words(language).isdisjoint(forms)
    return len(forms) <= (WORDS_BOUND if bound else WORDS_MOST) and words.numbers.isdisjoint(forms)


def is_heading(keyword: str, language: str) -> bool:
    """Whether it only names a part of a document: "Chapter", "Figure 3"."""
    headings = _words(language).headings
    return all(form in headings or form.isdigit() for form in _forms(keyword))


def is_name(keyword: str, language: str) -> bool:
    """Whether it has several words, each capitalised or a function word."""
    written, binding = _WORD.findall(keyword), function_words(language)
    return len(written) > 1 and all(word[0].isupper() or fold_form(plain(word)) in binding for word in written)


def frame_texts(pages: Sequence[Iterable[str]]) -> frozenset[str]:
    """Texts of blocks on at least FRAME_SHARE of a site's pages; empty for fewer than FRAME_PAGES pages."""
    if len(pages) < FRAME_PAGES:
        return frozenset()
    counts = Counter(text for texts in pages for text in set(texts))
    return frozenset(text for text, count in counts.items() if count >= max(FRAME_SHARE * len(pages), 2))
