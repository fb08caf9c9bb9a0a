"""The stretch of a page that shows how it answers a query, and where its words stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from periplus.document.words import (
    WORD_CHARS,
    BlockTexts,
    WordUnit,
    algorithm_of,
    ascii_line,
    ascii_whole,
    asked_terms,
    folded,
    form_marker,
    forms,
    is_run,
    located,
    table,
)
from periplus.model.page import BLOCK_KIND_CODES, BLOCK_KINDS, TEXT_PARTS, BlockKind, Blocks, Part
from periplus.model.search import Snippet
from periplus.search.index import parts_or_guess
from periplus.search.query import Node, Phrase, asked_words

CHARS = 240  # two lines and a half of a terminal
BEFORE = 60  # characters shown before the first word that answers
LOOKED_THROUGH = 400  # blocks: what a longer page says below is not shown
Marks = tuple[tuple[int, int], ...]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool]
_ELLIPSIS = "…"
_BEGIN = re.compile("\n")  # of a block, as `FormMarker.marked` writes it
NOWHERE = 1 << 30  # in place of a word of the query
_PERMALINK = " ¶#"  # behind headings of manuals
# against a word more
_KIND_COUNTS = {
    BLOCK_KIND_CODES[kind]: worth
    for kind, worth in ((BlockKind.HEADING, 0.5), (BlockKind.LINK, -1.0), (BlockKind.ALT, -1.0), (BlockKind.CODE, -0.2))
}
_KIND_TABLE = np.array([_KIND_COUNTS.get(code, 0.0) for code in range(len(BLOCK_KINDS))])
_TITLE, _CODE = BLOCK_KIND_CODES[BlockKind.TITLE], BLOCK_KIND_CODES[BlockKind.CODE]
_RUNNING = (BLOCK_KIND_CODES[BlockKind.PARAGRAPH], BLOCK_KIND_CODES[BlockKind.ITEM])


class QueryTerms(NamedTuple):
    """One word of a query, in the forms that answer it."""

    form: str
    plain: str
    terms: frozenset[str]  # in the languages of the index
    prefix: bool
    place: int  # in the query


class Highlighter:
    """Finds the words of one query in texts. A form is judged once."""

    def __init__(self, root: Node | None, languages: Sequence[str]) -> None:
        self._runs: list[str] = []
        self._terms: list[QueryTerms] = []
        self._judged: dict[tuple[str, str], int] = {}
        self._silent: dict[str, set[str]] = {}  # by language, forms that answer nothing
        for word in asked_words(root):
            read = forms(word.text)
            for at, form in enumerate(read):
                if is_run(form):
                    self._runs.append(form)
                    continue
                prefix = not isinstance(word, Phrase) and word.prefix and at == len(read) - 1
                terms = frozenset(term for language in languages for term in asked_terms(form, language))
                self._terms.append(QueryTerms(form, folded(form), terms, prefix, len(self._terms)))
        self._plain = {word.plain: word.place for word in reversed(self._terms)}  # of equal words the first
        self._answering = {term: word.place for word in reversed(self._terms) for term in word.terms}
        self._prefixes = [word for word in self._terms if word.prefix]
        self._stretches = {
            algorithm: [(word.place, _stretches(word, stemmed=bool(algorithm))) for word in self._terms]
            for algorithm in _READ_AT_SIGHT
        }
        self._patterns = {
            algorithm: [(place, [re.compile(re.escape(one)) for one in several]) for place, several in words]
            for algorithm, words in self._stretches.items()
        }

    @property
    def ample(self) -> float:
        """The worth of a paragraph of content with all words of the query side by side:
        none further down is much better.
        """
        words = len(self._terms) + len(self._runs)
        return words + 0.6 * (words - 1) + 0.3

    def hits(self, text: str, language: str) -> list[tuple[int, int, int]]:
        """(start, end, which word of the query) of what answers in a text, in order."""
        line, algorithm = ascii_line(text), algorithm_of(language)
        if line is not None and algorithm in _READ_AT_SIGHT and not self._runs and not _SIGNS.search(line):
            return self._hits_at_sight(line, algorithm, language)
        if not self._may_answer(text, line, algorithm):
            return []
        return self._located(text, language) if self._runs or self._answers(text, language) else []

    def _hits_at_sight(self, line: str, algorithm: str, language: str) -> list[tuple[int, int, int]]:
        """As `hits`, of an `ascii_line` without signs: only words that hold a stretch are looked at."""
        spaced = f" {line.translate(_ONLY_WORDS)} "
        hits = {}
        for _, stretches in self._stretches[algorithm]:
            for stretch in stretches:
                at = spaced.find(stretch)
                while at >= 0:
                    start, end = spaced.rfind(" ", 0, at), spaced.find(" ", at)
                    hits[start] = (start, end - 1, self._word(spaced[start + 1 : end][:WORD_CHARS], language))
                    at = spaced.find(stretch, end)
        return [hit for _, hit in sorted(hits.items()) if hit[2] >= 0]

    def _may_answer(self, text: str, line: str | None, algorithm: str) -> bool:
        """Whether it takes reading to tell what answers in a text. line: its `ascii_line`."""
        if self._runs:
            return bool(self._terms) or any(run in text.lower() for run in self._runs)
        if line is None or algorithm not in _READ_AT_SIGHT:
            return True
        return any(stretch.search(line) for _, several in self._patterns[algorithm] for stretch in several)

    def candidates(self, blocks: Blocks, texts: Sequence[str], languages: Sequence[str]) -> tuple[Counts, Mask]:
        """(int64[words, n]: how often at most each word of the query is answered in each text; bool[n]: of which it
        takes reading to tell). texts, languages: of the first n of the blocks.
        """
        counts = np.zeros((len(self._terms), len(texts)), dtype=np.int64)
        unread = np.zeros(len(texts), dtype=np.bool)
        if self._runs:
            unread[:] = [self._may_answer(text, None, "") for text in texts]
            return counts, unread
        algorithms = set(map(algorithm_of, set(languages)))
        whole = ascii_whole(texts) if len(algorithms) == 1 and algorithms <= _READ_AT_SIGHT else None
        if whole is not None:  # nearly every page in English
            (algorithm,) = algorithms
            self._count(whole, texts, algorithm, counts)
            return counts, unread
        of_block = BlockTexts(blocks)
        for algorithm in algorithms:
            groups = bytes([algorithm_of(language) == algorithm for language in languages])
            read = form_marker(algorithm).marked(of_block, groups)
            begins = np.array([match.start() for match in _BEGIN.finditer(read)])
            numbers = np.flatnonzero(np.frombuffer(groups, np.uint8))
            for word in self._terms:
                places = begins.searchsorted(_places_of(word, read), "right") - 1
                counts[word.place, numbers] = np.bincount(places, minlength=len(numbers))
        return counts, unread

    def _count(self, whole: str, texts: Sequence[str], algorithm: str, counts: Counts) -> None:
        """Adds to the counts of texts of one algorithm. whole: their `ascii_line`, a sign between two."""
        ends = np.cumsum(np.fromiter(map(len, texts), np.intp, len(texts)) + 1)
        for place, patterns in self._patterns[algorithm]:
            for stretch in patterns:
                starts = [match.start() for match in stretch.finditer(whole)]
                if starts:
                    counts[place] += np.bincount(ends.searchsorted(starts, "right"), minlength=len(texts))

    def _located(self, text: str, language: str) -> list[tuple[int, int, int]]:
        hits: list[tuple[int, int, int]] = []
        for unit in located(text):
            if unit.run:
                hits += self._within_run(text, unit)
                continue
            word = self._word(unit.form, language)
            if word >= 0:
                hits.append((unit.start, unit.end, word))
        return hits

    def _answers(self, text: str, language: str) -> bool:
        """Whether a form of the text answers.

        Most blocks of a page hold none, and to find places costs ten times as much.
        """
        silent = self._silent.setdefault(language, set())
        left = set(forms(text)) - silent
        answers = {form for form in left if self._word(form[:WORD_CHARS], language) >= 0}
        silent |= left - answers
        return bool(answers)

    def _word(self, form: str, language: str) -> int:
        word = self._judged.get((form, language))
        if word is None:
            word = self._judged[form, language] = self._judge(form, language)
        return word

    def marks(self, text: str, language: str) -> Marks:
        return tuple((start, end) for start, end, _ in self.hits(text, language))

    def _within_run(self, text: str, unit: WordUnit) -> list[tuple[int, int, int]]:
        stretch = text[unit.start : unit.end].lower()
        hits = []
        for number, run in enumerate(self._runs):
            place = stretch.find(run)
            while place >= 0:
                hits.append((unit.start + place, unit.start + place + len(run), -2 - number))
                place = stretch.find(run, place + len(run))
        return sorted(hits)

    def _judge(self, form: str, language: str) -> int:
        """The word of the query that the form answers; -1: none."""
        bare = folded(form)
        named = self._plain.get(bare, NOWHERE)
        named = min([named, *(word.place for word in self._prefixes if bare.startswith(word.plain))])
        if named < NOWHERE:
            return named
        return self._answering.get(table(language)[form], -1)


def _places_of(word: QueryTerms, read: str) -> list[int]:
    """Where the forms stand that answer a word. read: as of `FormMarker.marked`."""
    places = set(_occurrences(f" {word.plain}" if word.prefix else f" {word.plain}=", read))
    for term in word.terms:
        places.update(read.rfind(" ", 0, place) for place in _occurrences(f"={term} ", read))
    return sorted(places)


def _occurrences(stretch: str, text: str) -> Iterator[int]:
    place = text.find(stretch)
    while place >= 0:
        yield place
        place = text.find(stretch, place + 1)


_READ_AT_SIGHT = {"", "english"}  # stemmers, none among them, of which is known what they leave of a form
_SIGNS = re.compile(r"\+\+|#")  # parts of words at times
_ONLY_WORDS = str.maketrans({chr(code): " " for code in range(128) if not chr(code).isalnum()})
# English stems that end so may have replaced what stands there in a form, two characters at most: able of ability,
# die of dying, hope of hoping, fli of fly, sky of skies, nobl of nobility. All others begin their forms.
_REPLACED = ("e", "i", "y", "l")


def _stretches(word: QueryTerms, *, stemmed: bool) -> tuple[str, ...]:
    """What every ASCII form that answers the word holds one of, in English or in a language without stems.

    Whether a text holds them is one look for each; to cut it into forms and stem these takes forty times as long.
    """
    stretches = {word.plain} | {
        term[: max(1, len(term) - 2)] if stemmed and term.endswith(_REPLACED) else term for term in word.terms
    }
    return tuple(one for one in stretches if not any(other in one for other in stretches if other != one))


def snippet(
    blocks: Blocks, parts: Sequence[Part], highlighter: Highlighter, language: str, texts: Sequence[str] | None = None
) -> Snippet | None:
    """The stretch that has most of the words, of the page's content rather than of its menus;
    its beginning where none has any.

    texts: of the blocks, where they are at hand.
    """
    texts = (blocks.texts() if texts is None else texts)[:LOOKED_THROUGH]
    languages = [own or language for own in blocks.own_languages()[: len(texts)]]
    kinds, of_blocks = blocks.kinds, parts_or_guess(blocks, parts)
    counts, unread = highlighter.candidates(blocks, texts, languages)
    worths = _most_worths(counts, unread, kinds, texts, [part in TEXT_PARTS for part in of_blocks[: len(texts)]])
    numbers = np.flatnonzero((unread | counts.any(axis=0)) & (np.frombuffer(kinds, np.uint8)[: len(texts)] != _TITLE))
    # First those that may be ample, in their order, then those that may be worth most: where all of a page is about the
    # query, some five blocks are read in place of 26.
    ample = -highlighter.ample
    numbers = numbers[np.argsort(np.maximum(-worths[numbers], ample), kind="stable")]
    bounds = zip((-worths[numbers]).tolist(), numbers.tolist(), strict=True)
    best, best_hits = (9.0, 0), list[tuple[int, int, int]]()  # (less its worth, number): an earlier block comes first
    shown = ""
    for bound in bounds:
        if bound > best and bound[0] > ample:
            if bound[0] > best[0]:
                break
            continue
        number = bound[1]
        kind, content = kinds[number], of_blocks[number] in TEXT_PARTS
        text = " ".join(texts[number].split()) if kind == _CODE else texts[number]  # on one line
        hits = highlighter.hits(text, languages[number])
        value = (-_worth(hits, kind, text, content), number) if hits else best
        if value < best:
            best, best_hits, shown = value, hits, text
        if value[0] <= ample:
            break
    if best_hits:
        return _cut(kinds[best[1]], shown, best_hits)
    openings = zip(kinds, texts, of_blocks, strict=False)
    opening = next(((kind, text) for kind, text, part in openings if kind in _RUNNING and part is Part.CONTENT), None)
    return _cut(*opening, []) if opening is not None else None


def _worth(hits: Sequence[tuple[int, int, int]], kind: int, text: str, content: bool) -> float:
    """How well a block answers: by different words within one stretch,
    those in the query's order side by side counting more.
    """
    start = _best_start(hits)
    near = [hit for hit in hits if start <= hit[0] < start + CHARS - BEFORE]
    beside = sum(1 for one, other in pairwise(near) if other[2] == one[2] + 1 and other[0] - one[1] <= 2)
    return _valued(len({word for _, _, word in near}), beside, kind, len(text), content)


def _most_worths(
    counts: Counts, unread: Mask, kinds: bytes, texts: Sequence[str], content: Sequence[bool]
) -> npt.NDArray[np.float64]:
    """What the worth of each block cannot exceed: as `_valued`, of all blocks at once."""
    beside = np.minimum(counts[:-1], counts[1:]).sum(axis=0)
    length = np.minimum(np.fromiter(map(len, texts), np.intp, len(texts)), CHARS) / CHARS
    kind_counts = _KIND_TABLE[np.frombuffer(kinds, np.uint8)[: len(texts)]]
    of_part = np.where(content, 0.0, 2.0)
    worths = (counts > 0).sum(axis=0) + 0.6 * beside + length * 0.5 + kind_counts - of_part
    return np.where(unread, inf, worths)


def _valued(words: int, beside: int, kind: int, chars: int, content: bool) -> float:
    length = min(chars, CHARS) / CHARS  # a line of three words says less of the page than a paragraph
    return words + 0.6 * beside + length * 0.5 + _KIND_COUNTS.get(kind, 0.0) - (0.0 if content else 2.0)


def _best_start(hits: Sequence[tuple[int, int, int]]) -> int:
    """Where the stretch with most different words begins."""
    best = (0, 0)
    for start, _, _ in hits[:100]:
        words = len({word for place, _, word in hits if start <= place < start + CHARS - BEFORE})
        best = max(best, (words, -start))
    return -best[1]


def _cut(kind: int, text: str, hits: Sequence[tuple[int, int, int]]) -> Snippet:
    """The stretch around the hits, cut between words."""
    text = text.rstrip(_PERMALINK)
    start = max(0, _best_start(hits) - BEFORE) if hits and len(text) > CHARS else 0
    start = min(start, max(0, len(text) - CHARS))
    if start:
        gap = text.find(" ", start, start + BEFORE)
        start = gap + 1 if gap >= 0 else start
    end = min(len(text), start + CHARS)
    if end < len(text):
        gap = text.rfind(" ", start + CHARS // 2, end)
        end = gap if gap >= 0 else end
    before, after = _ELLIPSIS if start else "", _ELLIPSIS if end < len(text) else ""
    shift = len(before) - start
    marks = tuple((one + shift, other + shift) for one, other, _ in hits if one >= start and other <= end)
    return Snippet(before + text[start:end] + after, marks, BLOCK_KINDS[kind])
