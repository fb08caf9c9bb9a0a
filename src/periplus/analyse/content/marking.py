"""Which blocks of a page are its content, judged by the page and by what is known of its site?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from periplus.analyse.content import features, second
from periplus.analyse.content.evidence import SiteEvidence, Traces
from periplus.analyse.content.features import Floats
from periplus.analyse.content.learnt import Forest, Net, weights
from periplus.model.page import Block, Part

_PATHS_CACHED = 16_384  # those of some hundred sites, 200 bytes each
_AT_ONCE = 8_192  # blocks that the trees judge together: 8 MB of numbers


def parts_of(blocks: Sequence[Block], evidence: SiteEvidence | None = None, *, learnt: bool = True, traces: Traces | None = None) -> tuple[Part, ...]:
    """One part for each block.

    evidence: what is known of the page's site; without any, the page is judged alone. learnt: whether the page is among those that
    evidence has learnt. traces: the page's, where they are at hand.
    """
    content, navigation = Part.CONTENT, Part.NAVIGATION
    is_content = scores_of(blocks, evidence, learnt=learnt, traces=traces) > weights().threshold
    return tuple([content if one else navigation for one in is_content.tolist()])


def scores_of(blocks: Sequence[Block], evidence: SiteEvidence | None = None, *, learnt: bool = True, traces: Traces | None = None) -> Floats:
    """float32[n]: how surely each block is content, 0 to 1."""
    if not blocks:
        return np.zeros(0, dtype=np.float32)
    known = weights()
    seen = (evidence or SiteEvidence()).seen(blocks, traces, counted=learnt and evidence is not None)
    page = features.Page(blocks)
    measures = features.matrix(page, blocks, seen, _named)
    first = _judged(known.first, measures)
    return _judged(known.second, np.concatenate((measures, second.matrix(page, first))))


@lru_cache(maxsize=_PATHS_CACHED)
def _named(path: str) -> tuple[float, ...]:
    return features.named(path, _weight)


@lru_cache(maxsize=_PATHS_CACHED)
def _weight(words: tuple[str, ...]) -> float:
    names = weights().names
    return sum([names.get(word, 0.0) for word in words])


def _judged(learnt: Forest | Net, measures: Floats) -> Floats:
    return np.concatenate([learnt.scores(measures[:, start : start + _AT_ONCE]) for start in range(0, measures.shape[1], _AT_ONCE)])
