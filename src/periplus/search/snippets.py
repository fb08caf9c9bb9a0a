"""Which words of a page answer a query, and which stretch of its text shows them best?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from periplus.document.words import WORD_CHARS, Unit, asked_terms, folded, forms, is_run, located
from periplus.model.page import Block, BlockKind, Part
from periplus.model.search import Snippet
from periplus.search.fields import parts_or_guess
from periplus.search.query import Node, Phrase, asked_words

CHARS = 240  # two lines and a half of a terminal
BEFORE = 60  # characters shown before the first word that answers
LOOKED_THROUGH = 400  # blocks: what a longer page says below is not shown
Marks = tuple[tuple[int, int], ...]
_ELLIPSIS = "…"
_PERMALINK = " ¶#"  # behind headings of manuals
_KIND_COUNTS = {BlockKind.HEADING: 0.5, BlockKind.LINK: -1.0, BlockKind.ALT: -1.0, BlockKind.CODE: -0.2}  # against a word more


class Wanted(NamedTuple):
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
        self._wanted: list[Wanted] = []
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
                self._wanted.append(Wanted(form, folded(form), terms, prefix, len(self._wanted)))

    @property
    def ample(self) -> float:
        """The worth of a paragraph of content with all words of the query side by side: none further down is much better."""
        words = len(self._wanted) + len(self._runs)
        return words + 0.6 * (words - 1) + 0.3

    def found(self, text: str, language: str) -> list[tuple[int, int, int]]:
        """(start, end, which word of the query) of what answers in a text, in order."""
        hits: list[tuple[int, int, int]] = []
        if not self._runs and not self._could_answer(text, language):
            return hits
        for unit in located(text):
            if unit.run:
                hits += self._within_run(text, unit)
                continue
            word = self._word(unit.form, language)
            if word >= 0:
                hits.append((unit.start, unit.end, word))
        return hits

    def _could_answer(self, text: str, language: str) -> bool:
        """Whether any form of the text answers. Most blocks of a page hold none, and to find places costs ten times as much."""
        silent = self._silent.setdefault(language, set())
        left = set(forms(text)) - silent
        answering = {form for form in left if self._word(form[:WORD_CHARS], language) >= 0}
        silent |= left - answering
        return bool(answering)

    def _word(self, form: str, language: str) -> int:
        word = self._judged.get((form, language))
        if word is None:
            word = self._judged[form, language] = self._judge(form, language)
        return word

    def marks(self, text: str, language: str) -> Marks:
        return tuple((start, end) for start, end, _ in self.found(text, language))

    def _within_run(self, text: str, unit: Unit) -> list[tuple[int, int, int]]:
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
        plain = folded(form)
        for wanted in self._wanted:
            if form == wanted.form or plain == wanted.plain or (wanted.prefix and plain.startswith(wanted.plain)):
                return wanted.place
        term = asked_terms(form, language)[:1]
        return next((wanted.place for wanted in self._wanted if term and term[0] in wanted.terms), -1)


def snippet(blocks: Sequence[Block], parts: Sequence[Part], highlighter: Highlighter, language: str) -> Snippet | None:
    """The stretch that has most of the words, of the page's content rather than of its menus; its beginning where none has any."""
    best: tuple[float, Block | None, list[tuple[int, int, int]]] = (-9.0, None, [])
    opening: Block | None = None
    for block, part in list(zip(blocks, parts_or_guess(blocks, parts), strict=False))[:LOOKED_THROUGH]:
        if block.kind is BlockKind.TITLE:
            continue
        if block.kind is BlockKind.CODE:
            block = block._replace(text=" ".join(block.text.split()))  # noqa: PLW2901  # as it is shown: on one line
        content = part is Part.CONTENT
        if opening is None and content and block.kind in (BlockKind.PARAGRAPH, BlockKind.ITEM):
            opening = block
        hits = highlighter.found(block.text, block.language or language)
        if hits:
            value = _worth(hits, block, content)
            if value > best[0]:
                best = (value, block, hits)
            if value >= highlighter.ample:
                break
    if best[1] is not None:
        return _cut(best[1], best[2])
    return _cut(opening, []) if opening is not None else None


def _worth(hits: Sequence[tuple[int, int, int]], block: Block, content: bool) -> float:
    """How well a block answers: by different words within one stretch, those in the query's order side by side counting more."""
    start = _best_start(hits)
    near = [hit for hit in hits if start <= hit[0] < start + CHARS - BEFORE]
    beside = sum(1 for one, other in pairwise(near) if other[2] == one[2] + 1 and other[0] - one[1] <= 2)
    length = min(len(block.text), CHARS) / CHARS  # a line of three words says less of the page than a paragraph
    return len({word for _, _, word in near}) + 0.6 * beside + length * 0.5 + _KIND_COUNTS.get(block.kind, 0.0) - (0.0 if content else 2.0)


def _best_start(hits: Sequence[tuple[int, int, int]]) -> int:
    """Where the stretch with most different words begins."""
    best = (0, 0)
    for start, _, _ in hits[:100]:
        words = len({word for place, _, word in hits if start <= place < start + CHARS - BEFORE})
        best = max(best, (words, -start))
    return -best[1]


def _cut(block: Block, hits: Sequence[tuple[int, int, int]]) -> Snippet:
    """The stretch around the hits, cut between words."""
    text = block.text.rstrip(_PERMALINK)
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
    return Snippet(before + text[start:end] + after, marks, block.kind)
