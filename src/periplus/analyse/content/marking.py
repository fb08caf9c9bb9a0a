"""Which blocks of a page are its content, judged by the page and by what is known of its site?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from periplus.analyse.content import features, second
from periplus.analyse.content.evidence import Seen, SiteEvidence, Traces, joined, traces_of
from periplus.analyse.content.learnt import Forest, Net, weights
from periplus.analyse.content.pages import Floats, Pages
from periplus.analyse.content.paths import PathFacts
from periplus.model.page import Block, Part

_STEPS_CACHED = 16_384  # of paths: those of some hundred sites
_AT_ONCE = 4_096  # blocks that are measured together, ten pages or one large one: 3 MB of numbers
_JUDGED_AT_ONCE = 512  # blocks that the trees judge together: what they compare stays in the processor's cache


class Known(NamedTuple):
    """A page and what is known of it."""

    blocks: Sequence[Block]
    traces: Traces
    seen: Seen


def parts_of(blocks: Sequence[Block], evidence: SiteEvidence | None = None, *, learnt: bool = True) -> tuple[Part, ...]:
    """One part for each block.

    evidence: what is known of the page's site; without any, the page is judged alone. learnt: whether the page is among those that
    evidence has learnt.
    """
    return next(parts_of_each([known(blocks, evidence, learnt=learnt)]))


def scores_of(blocks: Sequence[Block], evidence: SiteEvidence | None = None, *, learnt: bool = True) -> Floats:
    """float32[n]: how surely each block is content, 0 to 1."""
    return next(_scores_of_each([known(blocks, evidence, learnt=learnt)]))


def known(blocks: Sequence[Block], evidence: SiteEvidence | None, traces: Traces | None = None, *, learnt: bool = True) -> Known:
    """As for `parts_of`. traces: the page's, where they are at hand."""
    traces = traces or traces_of(blocks)
    return Known(blocks, traces, (evidence or SiteEvidence()).seen(blocks, traces, counted=learnt and evidence is not None))


def parts_of_each(pages: Iterable[Known]) -> Iterator[tuple[Part, ...]]:
    """One part for each block of each page: several pages at once take half of the time that they take one by one."""
    content, navigation, threshold = Part.CONTENT, Part.NAVIGATION, weights().threshold
    for scores in _scores_of_each(pages):
        yield tuple([content if one else navigation for one in (scores > threshold).tolist()])


def _scores_of_each(pages: Iterable[Known]) -> Iterator[Floats]:
    for some in _gathered(pages):
        full = [page for page in some if page.blocks]
        scores = _scores(full) if full else np.zeros(0, dtype=np.float32)
        at = 0
        for page in some:
            yield scores[at : at + len(page.blocks)]
            at += len(page.blocks)


def _gathered(pages: Iterable[Known]) -> Iterator[list[Known]]:
    """So many pages that they have _AT_ONCE blocks together, or one that has more."""
    some: list[Known] = []
    size = 0
    for page in pages:
        if some and size + len(page.blocks) > _AT_ONCE:
            yield some
            some, size = [], 0
        some.append(page)
        size += len(page.blocks)
    if some:
        yield some


def _scores(some: Sequence[Known]) -> Floats:
    pages = Pages([page.blocks for page in some], [page.traces for page in some])
    measures = features.matrix(pages, joined([page.seen for page in some]), _named)
    first = _judged(weights().first, measures)
    return _judged(weights().second, np.concatenate((measures, second.matrix(pages, first))))


def _named(path: PathFacts) -> tuple[float, ...]:
    return features.named(path, _weight)


@lru_cache(maxsize=_STEPS_CACHED)
def _weight(words: tuple[str, ...]) -> float:
    names = weights().names
    return sum([names.get(word, 0.0) for word in words])


def _judged(learnt: Forest | Net, measures: Floats) -> Floats:
    return np.concatenate([learnt.scores(measures[:, start : start + _JUDGED_AT_ONCE]) for start in range(0, measures.shape[1], _JUDGED_AT_ONCE)])
