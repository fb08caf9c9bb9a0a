"""Chooses the snippet of a page that answers a query best, and marks the matching words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import islice, pairwise
from math import inf
from typing import NamedTuple

import numpy as np

from periplus.document.words import (
    WORD_CHARS,
    BlockTexts,
    algorithm_of,
    ascii_line,
    asked_terms,
    fold_form,
    form_marker,
    forms,
    is_run,
    plain,
    table,
    units,
)
from periplus.model.arrays import Floats, Ints, Mask, Unsigned8, Unsigned16, Unsigned32
from periplus.model.page import BLOCK_KIND_CODES, BLOCK_KINDS, IS_APART, TEXT_PARTS, BlockKind, Blocks, Part
from periplus.model.search import Snippet
from periplus.retrieval.index import parts_or_guess
from periplus.retrieval.query import Node, Phrase, asked_words, only_asks

CHARS = 240  # two and a half lines of a terminal
BEFORE = 60  # characters shown before the first match
LOOKED_THROUGH = 200_000  # characters: text further down is not considered
READ_THROUGH = 400  # blocks, in languages where each form is looked up
MOST_OCCURRENCES = 200  # counted per word: a long page has `the` ten thousand times
BLOCK_CHARS = 5_000  # characters read per block: code may have a hundred thousand
MOST_READ = 20  # blocks in which matches are located, most promising first
Marks = tuple[tuple[int, int], ...]
Hit = tuple[int, int, int]  # start and end of a match, number of the word
Hits = list[Hit]
_ELLIPSIS = "…"
_BEGIN = re.compile("\n")  # start of a block in the output of `FormMarker.marked`
_LINE_FEED = ord("\n")
_LATIN_END = 0x2070
_SECONDS = re.compile("(?<=[aou])e|(?<=s)s")
NOWHERE = 1 << 30  # no word of the query
_PERMALINK = " ¶#"  # after headings in manuals
# Scores of block kinds, in units of one matching word
_KIND_COUNTS = {
    BLOCK_KIND_CODES[kind]: worth
    for kind, worth in ((BlockKind.HEADING, 0.5), (BlockKind.LINK, -1.0), (BlockKind.ALT, -1.0), (BlockKind.CODE, -0.2))
}
_KIND_TABLE = np.array([_KIND_COUNTS.get(code, 0.0) for code in range(len(BLOCK_KINDS))])
_APART_TABLE = np.frombuffer(IS_APART, np.bool)
_TITLE, _CODE = BLOCK_KIND_CODES[BlockKind.TITLE], BLOCK_KIND_CODES[BlockKind.CODE]
_RUNNING = (BLOCK_KIND_CODES[BlockKind.PARAGRAPH], BLOCK_KIND_CODES[BlockKind.ITEM])
_SUFFIX_STEMMERS = {"", "english"}  # stemmers that change only the end of a word: the text can be searched directly
_SIGNS = re.compile(r"\+\+|#")  # may be parts of words
_ONLY_WORDS = str.maketrans({chr(code): " " for code in range(128) if not chr(code).isalnum()})
# By stemmer: (last letters of stems that may differ from the beginning of the form, ignoring diacritics; how many
# letters differ at most). Examples: able of ability, die of dying, hope of hoping, fli of fly, sky of skies, nobl of
# nobility. Measured on the words of Debian's handbook in each language: all but 1 in 2,000 forms begin like this.
_TAILS = {
    "": ("", 0),
    "english": ("eiyl", 2),
    "german": ("", 0),
    "danish": ("", 0),
    "norwegian": ("", 0),
    "swedish": ("", 0),
    "french": ("tilux", 2),
    "spanish": ("t", 1),
    "italian": ("t", 1),
    "portuguese": ("t", 1),
    "catalan": ("c", 1),
    "czech": ("kbtnvc", 1),
}
LENGTHS = np.arange(8_192)  # in characters; the last entry includes all longer blocks
_BEFORE_E = np.isin(np.arange(256), [ord(letter) for letter in "aou"])


class QueryTerms(NamedTuple):
    """One word of a query, with the forms that match it."""

    form: str
    plain: str
    terms: frozenset[str]  # in the languages of the index
    prefix: bool
    place: int  # position in the query


class Highlighter:
    """Finds the words of one query in texts. Caches its verdict on each form."""

    def __init__(self, root: Node | None, languages: Sequence[str]) -> None:
        self._runs: list[str] = []
        self._terms: list[QueryTerms] = []
        self._judged: dict[tuple[str, str], int] = {}
        self._verdicts: dict[str, dict[str, int]] = {}  # by language and unit as written
        words = asked_words(root)
        for word in [word for word in words if not only_asks(word, languages)] or words:
            read = forms(word.text)
            for at, form in enumerate(read):
                if is_run(form):
                    self._runs.append(form)
                    continue
                prefix = not isinstance(word, Phrase) and word.prefix and at == len(read) - 1
                terms = frozenset(term for language in languages for term in asked_terms(form, language))
                self._terms.append(QueryTerms(form, fold_form(form), terms, prefix, len(self._terms)))
        self._plain = {word.plain: word.place for word in reversed(self._terms)}  # the first of equal words
        self._answering = {term: word.place for word in reversed(self._terms) for term in word.terms}
        self._prefixes = [word for word in self._terms if word.prefix]
        self._stretches: dict[str, list[tuple[int, tuple[str, ...]]]] = {}  # by stemming algorithm

    @property
    def ample(self) -> float:
        """Worth of a content paragraph with all words of the query side by side: later blocks cannot be much better."""
        words = len(self._terms) + len(self._runs)
        return words + 0.6 * (words - 1) + 0.3

    def hits(self, text: str, language: str) -> Hits:
        """(start, end, word number) of the matches in a text, in order."""
        line, algorithm = ascii_line(text), algorithm_of(language)
        if line is not None and algorithm in _SUFFIX_STEMMERS and not self._runs and not _SIGNS.search(line):
            return self._ascii_hits(line, algorithm, language)
        verdicts, hits = self._verdicts.setdefault(language, {}), Hits()
        initials = self._initials(algorithm)
        for written, start, end in units(text):
            if initials and written[0] not in initials and written[0].isascii():
                continue
            word = verdicts.get(written)
            if word is None:
                form = plain(written)[:WORD_CHARS]
                word = verdicts[written] = NOWHERE if is_run(form) else self._word(form, language)
            if word == NOWHERE:
                hits += self._run_hits(text, start, end)
            elif word >= 0:
                hits.append((start, end, word))
        return hits

    def _initials(self, algorithm: str) -> set[str]:
        """ASCII first letters of forms that can match; empty: any."""
        if self._runs or algorithm not in _TAILS:
            return set()
        return {stretch[0] for _, stretches in self._stretches_of(algorithm) for stretch in stretches}

    def _ascii_hits(self, line: str, algorithm: str, language: str) -> Hits:
        """As `hits`, for an `ascii_line` without signs: examines only words that contain a stretch."""
        spaced = f" {line.translate(_ONLY_WORDS)} "
        hits = {}
        for _, stretches in self._stretches_of(algorithm):
            for stretch in stretches:
                at = spaced.find(stretch)
                while at >= 0:
                    start, end = spaced.rfind(" ", 0, at), spaced.find(" ", at)
                    hits[start] = (start, end - 1, self._word(spaced[start + 1 : end][:WORD_CHARS], language))
                    at = spaced.find(stretch, end)
        return [hit for _, hit in sorted(hits.items()) if hit[2] >= 0]

    def candidates(self, page: PageLines, languages: Sequence[str]) -> tuple[Ints, Mask]:
        """(upper bounds of matches, int64[words, n]; blocks that must be read to know, bool[n]).

        languages: of the n blocks, or a single one for all.
        """
        size = len(page.lengths)
        counts, unread = np.zeros((len(self._terms), size), dtype=np.int64), np.zeros(size, dtype=np.bool)
        if self._runs:
            unread[:] = [
                bool(self._terms) or any(run in page.text(at).lower() for run in self._runs) for at in range(size)
            ]
            return counts, unread
        algorithms = list(map(algorithm_of, languages))
        for algorithm in set(algorithms):
            own = (
                np.array([name == algorithm for name in algorithms]) if len(algorithms) > 1 else np.ones(size, np.bool)
            )
            (self._count if algorithm in _TAILS else self._count_read)(page, algorithm, own, counts)
        return counts, unread

    def _count(self, page: PageLines, algorithm: str, own: Mask, counts: Ints) -> None:
        """Adds the likely matches in the blocks of one language to the counts."""
        whole, begins = page.fold(algorithm)
        for place, stretches in self._stretches_of(algorithm):
            for stretch in stretches:
                starts = list(islice(_occurrences(stretch, whole), MOST_OCCURRENCES))
                if starts:
                    blocks = page.block_of_line[begins.searchsorted(starts, "right")]
                    counts[place] += np.bincount(blocks, minlength=len(own)) * own

    def _count_read(self, page: PageLines, algorithm: str, own: Mask, counts: Ints) -> None:
        """As `_count`, but looks up each form; only for the first READ_THROUGH blocks."""
        groups = own[:READ_THROUGH].tobytes()
        read = form_marker(algorithm).mark_forms(BlockTexts(page.blocks), groups)
        begins = np.array([match.start() for match in _BEGIN.finditer(read)])
        numbers = np.flatnonzero(own[:READ_THROUGH])
        for word in self._terms:
            places = begins.searchsorted(_places_of(word, read), "right") - 1
            counts[word.place, numbers] += np.bincount(places, minlength=len(numbers))

    def _stretches_of(self, algorithm: str) -> list[tuple[int, tuple[str, ...]]]:
        """For each word, by position: substrings of which every matching form has one, as `PageLines.fold` writes
        them.
        """
        if algorithm not in self._stretches:
            self._stretches[algorithm] = [(word.place, _stretches(word, algorithm)) for word in self._terms]
        return self._stretches[algorithm]

    def _word(self, form: str, language: str) -> int:
        word = self._judged.get((form, language))
        if word is None:
            word = self._judged[form, language] = self._judge(form, language)
        return word

    def marks(self, text: str, language: str) -> Marks:
        return tuple((start, end) for start, end, _ in self.hits(text, language))

    def _run_hits(self, text: str, begin: int, end: int) -> Hits:
        stretch = text[begin:end].lower()
        runs = (
            (match.span(), number)
            for number, run in enumerate(self._runs)
            for match in re.finditer(re.escape(run), stretch)
        )
        return sorted((begin + start, begin + after, -2 - number) for (start, after), number in runs)

    def _judge(self, form: str, language: str) -> int:
        """The position of the query word that the form matches; -1 if none."""
        bare = fold_form(form)
        named = self._plain.get(bare, NOWHERE)
        named = min([named, *(word.place for word in self._prefixes if bare.startswith(word.plain))])
        if named < NOWHERE:
            return named
        return self._answering.get(table(language)[form], -1)


def _places_of(word: QueryTerms, read: str) -> list[int]:
    """Positions of the forms that match a word. read: output of `FormMarker.marked`."""
    places = set(_occurrences(f" {word.plain}" if word.prefix else f" {word.plain}=", read))
    for term in word.terms:
        places.update(read.rfind(" ", 0, place) for place in _occurrences(f"={term} ", read))
    return sorted(places)


def _occurrences(stretch: str, text: str) -> Iterator[int]:
    place = text.find(stretch)
    while place >= 0:
        yield place
        place = text.find(stretch, place + 1)


def _stretches(word: QueryTerms, algorithm: str) -> tuple[str, ...]:
    """Substrings of which every form that matches the word contains at least one.

    One substring search each; splitting the text into forms and stemming them takes 40 times as long.
    """
    letters, most = _TAILS[algorithm]
    stretches = {word.plain} | {
        term[: max(1, len(term) - most)] if letters and term.endswith(tuple(letters)) else term for term in word.terms
    }
    if algorithm not in _SUFFIX_STEMMERS:
        stretches = set(map(_fold_digraphs, stretches))
    return tuple(
        stretch for stretch in stretches if not any(other in stretch for other in stretches if other != stretch)
    )


def _fold_digraphs(text: str) -> str:
    """With a, o, u, s for ae, oe, ue, ss, to compare with text in which ä, ö, ü, ß, æ, œ are folded."""
    return _SECONDS.sub("", text)


class PageLines:
    """A page's blocks as offsets into its text: running text first, then the blocks that are stored apart."""

    def __init__(self, blocks: Blocks, parts: Sequence[Part]) -> None:
        """parts: one per block; with any other length they are guessed."""
        self.blocks = blocks
        self.is_content = np.array([part in TEXT_PARTS for part in parts_or_guess(blocks, parts)], np.bool)
        is_apart = _APART_TABLE[np.frombuffer(blocks.kinds, np.uint8)]
        own = np.flatnonzero(~is_apart)
        self._whole = f"{blocks.text}\n{blocks.apart}" if len(own) else blocks.apart
        self._codes = _codes(self._whole)
        self._ends = np.append(np.flatnonzero(self._codes == _LINE_FEED), len(self._whole))
        more = np.asarray(blocks.lines, np.int64) if blocks.lines else None
        lines_of_own = own if more is None else np.repeat(own, 1 + more[own])
        self.block_of_line = np.concatenate((lines_of_own, np.flatnonzero(is_apart)))
        first = np.zeros(len(is_apart), np.int64)
        first[self.block_of_line[::-1]] = np.arange(len(self.block_of_line))[::-1]
        last = first if more is None else first + np.where(is_apart, 0, more)
        self._begins = np.where(first > 0, self._ends[first - 1] + 1, 0)
        self.lengths = self._ends[last] - self._begins

    def text(self, block: int) -> str:
        """The text of a block."""
        begin = int(self._begins[block])
        return self._whole[begin : begin + int(self.lengths[block])]

    def content(self) -> list[str]:
        """The texts of the content blocks (TEXT_PARTS)."""
        return [self.text(block) for block in np.flatnonzero(self.is_content).tolist()]

    @cached_property
    def content_chars(self) -> int:
        """Characters in all content blocks."""
        return int(self.lengths[self.is_content].sum())

    @cached_property
    def content_lengths(self) -> Ints:
        """Histogram of the lengths of content blocks, indexed as LENGTHS."""
        return np.bincount(np.minimum(self.lengths[self.is_content], LENGTHS[-1]), minlength=len(LENGTHS))

    def fold(self, algorithm: str) -> tuple[str, Ints]:
        """(the lines folded to lower-case ASCII, comparable with stems; offsets of all lines but the first)."""
        codes = _plain_codes().take(self._codes[:LOOKED_THROUGH], mode="clip")
        if algorithm not in _SUFFIX_STEMMERS:  # as `_fold_digraphs`
            before, after = codes[:-1], codes[1:]
            second = ((after == ord("e")) & _BEFORE_E[before]) | ((after == ord("s")) & (before == ord("s")))
            codes = np.concatenate((codes[:1], after[~second]))
        return codes.tobytes().decode("ascii"), np.flatnonzero(codes == _LINE_FEED)


def _codes(text: str) -> Unsigned16 | Unsigned32:
    """Code points; as UTF-16 where possible, which takes a quarter of the time."""
    short = text.encode("utf-16-le", "surrogatepass")
    if len(short) == 2 * len(text):
        return np.frombuffer(short, "<u2")
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def may_share(first: PageLines, other: PageLines, share: float) -> bool:
    """Whether two pages can share this fraction of their content, judged by block lengths only."""
    least = share * max(first.content_chars, other.content_chars)
    if min(first.content_chars, other.content_chars) < least:
        return False
    return bool(np.minimum(first.content_lengths, other.content_lengths) @ LENGTHS >= least)


@cache
def _plain_codes() -> Unsigned8:
    """Maps code points of Latin letters and typographic signs to the letter without case and diacritics.

    The last entry is for all other code points. Those without a letter map to a character that no word contains.
    """
    codes = np.full(_LATIN_END + 1, 1, np.uint8)
    for code in (*range(0x250), *range(0x1E00, 0x1F00), *range(0x2000, 0x2070)):
        letter = fold_form(plain(chr(code)))[:1]
        codes[code] = ord(letter) if letter and letter.isascii() else ord(" ")
    return codes


def snippet(page: PageLines, highlighter: Highlighter, language: str, title: str = "") -> Snippet | None:
    """The block with the most matches, or the beginning of the content if nothing matches.

    Content is preferred to menus; blocks that repeat the title are skipped.
    """
    blocks, kinds = page.blocks, page.blocks.kinds
    languages = [own or language for own in blocks.own_languages()] if blocks.language_names else [language]
    counts, unread = highlighter.candidates(page, languages)
    numbers = np.flatnonzero((unread | counts.any(axis=0)) & (np.frombuffer(kinds, np.uint8) != _TITLE))
    worths = _worth_bounds(counts[:, numbers], unread[numbers], numbers, page)
    # Blocks that may be ample first, in page order, then by upper bound: if the whole page is about the query, this
    # reads about 5 blocks instead of 26.
    ample = -highlighter.ample
    order = np.argsort(np.maximum(-worths, ample), kind="stable")[:MOST_READ]
    # (negative worth, number): of equal blocks the earlier wins
    best, best_hits = (9.0, 0), Hits()
    shown = ""
    for bound in zip((-worths[order]).tolist(), numbers[order].tolist(), strict=True):
        if bound > best and bound[0] > ample:
            if bound[0] > best[0]:
                break
            continue
        number = bound[1]
        kind, content = kinds[number], bool(page.is_content[number])
        text = page.text(number)[:BLOCK_CHARS]
        if len(text) <= len(title) and text.rstrip(_PERMALINK) in title:
            continue
        text = " ".join(text.split()) if kind == _CODE else text  # on one line
        hits = highlighter.hits(text, languages[number] if len(languages) > 1 else language)
        value = (-_worth(hits, kind, text, content), number) if hits else best
        if value < best:
            best, best_hits, shown = value, hits, text
        if value[0] <= ample:
            break
    if best_hits:
        return _cut(kinds[best[1]], shown, best_hits)
    for number in np.flatnonzero(page.is_content).tolist():
        if kinds[number] in _RUNNING and (not title or page.text(number) not in title):
            return _cut(kinds[number], page.text(number), [])
    return None


def _worth(hits: Sequence[Hit], kind: int, text: str, content: bool) -> float:
    """Worth of a block: distinct words within one stretch; adjacent words in the order of the query count more."""
    start = _best_start(hits)
    near = [hit for hit in hits if start <= hit[0] < start + CHARS - BEFORE]
    beside = sum(1 for first, other in pairwise(near) if other[2] == first[2] + 1 and other[0] - first[1] <= 2)
    return _combine_worth(len({word for _, _, word in near}), beside, kind, len(text), content)


def _worth_bounds(counts: Ints, unread: Mask, numbers: Ints, page: PageLines) -> Floats:
    """Upper bounds of the worth of these blocks: `_combine_worth`, vectorised."""
    beside = np.minimum(counts[:-1], counts[1:]).sum(axis=0)
    length = np.minimum(page.lengths[numbers], CHARS) / CHARS
    of_kind = _KIND_TABLE[np.frombuffer(page.blocks.kinds, np.uint8)[numbers]]
    of_part = np.where(page.is_content[numbers], 0.0, 2.0)
    worths = (counts > 0).sum(axis=0) + 0.6 * beside + length * 0.5 + of_kind - of_part
    return np.where(unread, inf, worths)


def _combine_worth(words: int, beside: int, kind: int, chars: int, content: bool) -> float:
    length = min(chars, CHARS) / CHARS  # a line of three words is less informative than a paragraph
    return words + 0.6 * beside + length * 0.5 + _KIND_COUNTS.get(kind, 0.0) - (0.0 if content else 2.0)


def _best_start(hits: Sequence[Hit]) -> int:
    """Start of the stretch with the most distinct words."""
    best = (0, 0)
    for start, _, _ in hits[:100]:
        words = len({word for place, _, word in hits if start <= place < start + CHARS - BEFORE})
        best = max(best, (words, -start))
    return -best[1]


def _cut(kind: int, text: str, hits: Sequence[Hit]) -> Snippet:
    """The text around the matches, cut between words."""
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
    marks = tuple((begin + shift, other + shift) for begin, other, _ in hits if begin >= start and other <= end)
    return Snippet(before + text[start:end] + after, marks, BLOCK_KINDS[kind])
