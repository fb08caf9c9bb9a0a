"""Chooses the snippet of a page that answers a query best, and marks the matching words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain, compress, count, islice, pairwise, repeat
from math import inf
from typing import NamedTuple

from periplus.document.folding import Folding
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
NOWHERE = 1 << 30  # no word of the query
_PERMALINK = " ¶#"  # after headings in manuals
# Scores of block kinds, in units of one matching word
_KIND_COUNTS = {
    BLOCK_KIND_CODES[kind]: worth
    for kind, worth in ((BlockKind.HEADING, 0.5), (BlockKind.LINK, -1.0), (BlockKind.ALT, -1.0), (BlockKind.CODE, -0.2))
}
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
_NEGATION = bytes([1]) + bytes(255)
LONGEST = 8_191  # characters: longer blocks count as blocks of this length


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

    def candidates(self, page: PageLines, languages: Sequence[str]) -> tuple[list[Counter[int]], set[int]]:
        """(upper bounds of matches by block, for each word; blocks that must be read to know).

        languages: of the blocks, or a single one for all.
        """
        size, counts = len(page.blocks), [Counter[int]() for _ in self._terms]
        if self._runs:
            texts = ((at, page.text(at).lower()) for at in range(size))
            return counts, {at for at, text in texts if self._terms or any(run in text for run in self._runs)}
        algorithms = list(map(algorithm_of, languages))
        for algorithm in set(algorithms):
            several = len(algorithms) > 1
            own = bytes([name == algorithm for name in algorithms]) if several else b"\1" * size
            (self._count if algorithm in _TAILS else self._count_read)(page, algorithm, own, counts)
        return counts, set()

    def _count(self, page: PageLines, algorithm: str, own: bytes, counts: list[Counter[int]]) -> None:
        """Adds the likely matches in the blocks of one language to the counts."""
        whole = page.fold(algorithm)
        for place, stretches in self._stretches_of(algorithm):
            for stretch in stretches:
                line = before = 0
                for start in islice(_occurrences(stretch, whole), MOST_OCCURRENCES):
                    line += whole.count("\n", before, start)
                    before, block = start, page.block_of_line[line]
                    if own[block]:
                        counts[place][block] += 1

    def _count_read(self, page: PageLines, algorithm: str, own: bytes, counts: list[Counter[int]]) -> None:
        """As `_count`, but looks up each form; only for the first READ_THROUGH blocks."""
        own = own[:READ_THROUGH]
        read = form_marker(algorithm).mark_forms(BlockTexts(page.blocks), own)
        begins = [match.start() for match in _BEGIN.finditer(read)]
        numbers = list(compress(count(), own))
        for word in self._terms:
            counts[word.place].update(numbers[bisect_right(begins, at) - 1] for at in _places_of(word, read))

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
    for double, letter in (("ae", "a"), ("oe", "o"), ("ue", "u")):
        text = text.replace(double, letter)
    while "ss" in text:
        text = text.replace("ss", "s")
    return text


class PageLines:
    """A page's blocks as offsets into its text: running text first, then the blocks that are stored apart."""

    def __init__(self, blocks: Blocks, parts: Sequence[Part]) -> None:
        """parts: one per block; with any other length they are guessed."""
        self.blocks = blocks
        content = tuple(TEXT_PARTS)  # compared by identity; a set asks each part for its hash, in Python
        self.is_content = [part in content for part in parts_or_guess(blocks, parts)]
        is_apart = blocks.kinds.translate(IS_APART)
        apart = list(compress(count(), is_apart))
        own = list(compress(count(), is_apart.translate(_NEGATION))) if len(apart) < len(is_apart) else []
        self._whole = f"{blocks.text}\n{blocks.apart}" if own else blocks.apart
        order, lines = own + apart, [1 + blocks.lines[block] for block in own] if blocks.lines else [1] * len(own)
        lines += [1] * len(apart)
        self.block_of_line = list(chain.from_iterable(map(repeat, order, lines)))
        # without the line feeds before them
        starts = list(accumulate(map(len, self._whole.split("\n")), initial=0))
        self._spans = [(0, 0)] * len(order)
        line = 0
        for block, size in zip(order, lines, strict=True):
            end = line + size
            self._spans[block] = starts[line] + line, starts[end] + end - 1
            line = end

    def length(self, block: int) -> int:
        """Characters of the text of a block."""
        start, end = self._spans[block]
        return end - start

    def text(self, block: int) -> str:
        """The text of a block."""
        start, end = self._spans[block]
        return self._whole[start:end]

    def content(self) -> list[str]:
        """The texts of the content blocks (TEXT_PARTS)."""
        return [self._whole[start:end] for start, end in compress(self._spans, self.is_content)]

    @cached_property
    def content_chars(self) -> int:
        """Characters in all content blocks."""
        return sum([end - start for start, end in compress(self._spans, self.is_content)])

    @cached_property
    def content_lengths(self) -> Counter[int]:
        """Number of content blocks by length."""
        lengths = [end - start for start, end in compress(self._spans, self.is_content)]
        return Counter(lengths if max(lengths, default=0) <= LONGEST else [min(size, LONGEST) for size in lengths])

    def fold(self, algorithm: str) -> str:
        """The lines folded to lower-case ASCII, comparable with stems."""
        text = _FOLDING.fold(self._whole[:LOOKED_THROUGH].encode("utf-8", "surrogatepass")).decode("ascii")
        return text if algorithm in _SUFFIX_STEMMERS else _fold_digraphs(text)


def _plain_letter(char: str) -> str:
    """A Latin letter without case and diacritics, a blank for a typographic sign, and for any other character one that
    no word contains.
    """
    code = ord(char)
    if code >= 0x250 and not (0x1E00 <= code < 0x1F00 or 0x2000 <= code < 0x2070):
        return "\1"
    letter = fold_form(plain(char))[:1]
    return letter if letter and letter.isascii() else " "


_FOLDING = Folding(_plain_letter)


def may_share(first: PageLines, other: PageLines, share: float) -> bool:
    """Whether two pages can share this fraction of their content, judged by block lengths only."""
    least = share * max(first.content_chars, other.content_chars)
    if min(first.content_chars, other.content_chars) < least:
        return False
    others = other.content_lengths
    return sum(min(times, others[length]) * length for length, times in first.content_lengths.items()) >= least


def snippet(page: PageLines, highlighter: Highlighter, language: str, title: str = "") -> Snippet | None:
    """The block with the most matches, or the beginning of the content if nothing matches.

    Content is preferred to menus; blocks that repeat the title are skipped.
    """
    blocks, kinds = page.blocks, page.blocks.kinds
    languages = [own or language for own in blocks.own_languages()] if blocks.language_names else [language]
    counts, unread = highlighter.candidates(page, languages)
    numbers = sorted(number for number in unread.union(*counts) if kinds[number] != _TITLE)
    bounds = [(-inf if number in unread else -_worth_bound(counts, number, page), number) for number in numbers]
    # Blocks that may be ample first, in page order, then by upper bound: if the whole page is about the query, this
    # reads about 5 blocks instead of 26.
    ample = -highlighter.ample
    bounds = sorted(bounds, key=lambda bound: max(bound[0], ample))[:MOST_READ]
    # (negative worth, number): of equal blocks the earlier wins
    best, best_hits = (9.0, 0), Hits()
    shown = ""
    for bound in bounds:
        if bound > best and bound[0] > ample:
            if bound[0] > best[0]:
                break
            continue
        number = bound[1]
        kind, content = kinds[number], page.is_content[number]
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
    for number in compress(count(), page.is_content):
        if kinds[number] in _RUNNING and (not title or page.text(number) not in title):
            return _cut(kinds[number], page.text(number), [])
    return None


def _worth(hits: Sequence[Hit], kind: int, text: str, content: bool) -> float:
    """Worth of a block: distinct words within one stretch; adjacent words in the order of the query count more."""
    start = _best_start(hits)
    near = [hit for hit in hits if start <= hit[0] < start + CHARS - BEFORE]
    beside = sum(1 for first, other in pairwise(near) if other[2] == first[2] + 1 and other[0] - first[1] <= 2)
    return _combine_worth(len({word for _, _, word in near}), beside, kind, len(text), content)


def _worth_bound(counts: Sequence[Counter[int]], number: int, page: PageLines) -> float:
    """Upper bound of the worth of a block."""
    times = [of_word[number] for of_word in counts]
    beside = sum(map(min, times, times[1:]))
    words = len(times) - times.count(0)
    return _combine_worth(words, beside, page.blocks.kinds[number], page.length(number), page.is_content[number])


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
