"""Which pages belong together because they copy or cite, and which are digests that would glue stories?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.story_pages import Article
from periplus.analyse.story_pairs import TextPairs, Words
from periplus.document.digest import without_marks
from periplus.model.story import DateSource

DAY_S = 86_400.0
COPY_DAYS = 30.0  # reprints come within days; what comes later under the same title is one too
CITE_DAYS = 60.0  # what is cited is new; of older pages only those whose words are shared
COPY_CONTAINMENT, COPY_COSINE = 0.25, 0.15  # a quarter of the smaller text, and rare words in common
CUT_COSINE = 0.35  # of less text in common: the rare words have to agree all the more
TITLE_WORDS = 0.5  # of two titles' words
SAME_STORY = 0.2  # cosine from which two pages without a line in common may be parts of one story: of one topic's stories 99 in 100 have less
PART_COSINE = 0.1  # of less, shared text is a formula (a licence, an agency's note)
CITE_COSINE = 0.03  # a page that cites a story shares at least a name with it
OLD_COSINE = 0.35  # from which an old page that is cited is part of the story
STANDS_OUT, STANDS_OUT_OF_MANY = 1.5, 2.0  # times the second story that a page has parts of: of two, of more
NEIGHBOURS_MOST = 60  # of a page that are compared with one another
LEAST_WORDS = 15  # a shorter page says too little to be doubted
TRUSTED = frozenset(DateSource) - {DateSource.LAST_MODIFIED, DateSource.FIRST_SEEN}

Pair = tuple[int, int]


class Groups:
    """Disjoint sets of the numbers from 0: who is with whom."""

    def __init__(self, size: int, joined: Iterable[Pair] = ()) -> None:
        self._above = list(range(size))
        for one, other in joined:
            self.join(one, other)

    def of(self, one: int) -> int:
        """The least of those that it is with."""
        while self._above[one] != one:
            self._above[one] = self._above[self._above[one]]
            one = self._above[one]
        return one

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.of(one), self.of(other)))
        self._above[high] = low


class Edges(NamedTuple):
    """What holds stories together."""

    copies: dict[Pair, float]  # one < other: what they share of the smaller text
    citations: tuple[Pair, ...]  # (citing, cited)
    digests: frozenset[int]


def _copies(articles: Sequence[Article], pairs: TextPairs, words: Words) -> dict[Pair, float]:
    """What each two pages share of the smaller text, where they are copies: rare words agree, and dates or titles."""
    cosines = words.cosine(pairs.one, pairs.other)
    found = {}
    for one, other, share, cosine in zip(pairs.one.tolist(), pairs.other.tolist(), pairs.containment.tolist(), cosines.tolist(), strict=True):
        least = COPY_COSINE if share >= COPY_CONTAINMENT else CUT_COSINE
        if cosine >= least and (_days_apart(articles[one], articles[other]) <= COPY_DAYS or _titles_agree(articles[one], articles[other])):
            found[one, other] = share
    return found


def _days_apart(one: Article, other: Article) -> float:
    """By the pages' own dates; 0 where one has none, since nothing speaks against them."""
    if one.date.source not in TRUSTED or other.date.source not in TRUSTED:
        return 0.0
    return abs(one.date.when - other.date.when) / DAY_S


def _titles_agree(one: Article, other: Article) -> bool:
    mine, yours = set(without_marks(one.title).split()), set(without_marks(other.title).split())
    return len(mine & yours) >= TITLE_WORDS * max(len(mine | yours), 1)


def edges(articles: Sequence[Article], pairs: TextPairs, links: Sequence[Pair], words: Words) -> Edges:
    """Each page keeps to the story that it has most of; one that has parts of several, and of none more than of the others, is a digest.

    links: (citing, cited), each once.
    """
    alike = _copies(articles, pairs, words)
    ids = np.array(links, np.int64).reshape(-1, 2)
    cosines = words.cosine(ids[:, 0], ids[:, 1]).tolist()
    cites = {pair: cosine for pair, cosine in zip(links, cosines, strict=True) if _may_cite(articles[pair[0]], articles[pair[1]], cosine)}
    evidence = _evidence(pairs, words, cites)
    copied: dict[int, set[int]] = defaultdict(set)
    for one, other in alike:
        copied[one].add(other)
        copied[other].add(one)
    left: set[Pair] = set()  # (page, other): not of its story
    digests = set()
    for page, weights in evidence.items():
        stories = _stories_of(weights, copied, words)
        if stories is None:
            digests.add(page)
        else:
            left |= {(page, other) for other in weights if other not in stories}
    kept = {pair: share for pair, share in alike.items() if not digests.intersection(pair) and pair not in left and pair[::-1] not in left}
    cited = [
        pair
        for pair, cosine in cites.items()
        if not digests.intersection(pair) and pair not in left and (cosine >= CITE_COSINE or len(articles[pair[0]].words) < LEAST_WORDS)
    ]
    return Edges(kept, tuple(cited), frozenset(digests))


def _evidence(pairs: TextPairs, words: Words, cites: Mapping[Pair, float]) -> dict[int, dict[int, float]]:
    """By page, the pages that it shares text with or cites, each with how much of it that is: a share of its text, or the words' cosine."""
    found: dict[int, dict[int, float]] = defaultdict(dict)
    cosines = words.cosine(pairs.one, pairs.other)
    some = np.flatnonzero(cosines >= PART_COSINE)
    one, other, cosine, shared = pairs.one[some], pairs.other[some], cosines[some], pairs.shared[some]
    for page, near in ((one, other), (other, one)):
        weight = np.maximum(cosine, shared / np.maximum(pairs.runs[page], 1))
        for at, to, value in zip(page.tolist(), near.tolist(), weight.tolist(), strict=True):
            found[at][to] = value
    for (citing, cited), value in cites.items():
        found[citing][cited] = max(value, found[citing].get(cited, 0.0))
    return found


def _stories_of(weights: Mapping[int, float], alike: Mapping[int, set[int]], words: Words) -> set[int] | None:
    """Those of the pages that are of one story with the one they are evidence for; None: it is a digest.

    Stories are told by pages of which no two are alike. What is like pages of several of them (another digest) tells none.
    """
    near = sorted(weights, key=lambda other: (-weights[other], other))
    if len(near) < 2:
        return set(near)
    related = _related(near[:NEIGHBOURS_MOST], alike, words)
    tellers: list[int] = []
    for place in sorted(range(len(related)), key=lambda place: (int(related[place].sum()), place)):
        if not related[place, tellers].any():
            tellers.append(place)
    if len(tellers) < 2:
        return set(near)
    tells = related[:, tellers]
    groups = [[near[place] for place in np.flatnonzero(tells[:, at] & (tells.sum(axis=1) == 1)).tolist()] for at in range(len(tellers))]
    groups.sort(key=lambda group: (-max(weights[other] for other in group), group[0]))
    best, second = (max(weights[other] for other in group) for group in groups[:2])
    if len(tellers) == 2:
        return set(groups[0]) if best >= STANDS_OUT * second else None
    return set(groups[0]) if best >= max(STANDS_OUT_OF_MANY * second, SAME_STORY) else None


def _related(pages: Sequence[int], alike: Mapping[int, set[int]], words: Words) -> NDArray[np.bool_]:
    """bool[k, k]: whether two of the pages may tell one story: copies, or rare words agree. Each is related to itself."""
    related = words.cosines(np.array(pages, np.int64)) >= SAME_STORY
    np.fill_diagonal(related, True)
    place = {page: at for at, page in enumerate(pages)}
    for at, page in enumerate(pages):
        related[at, [place[other] for other in alike[page] if other in place]] = True
    return related


def _may_cite(citing: Article, cited: Article, cosine: float) -> bool:
    """Not what is dated after it, nor, unless their words agree, what is old."""
    if citing.date.source not in TRUSTED or cited.date.source not in TRUSTED:
        return True
    days = (citing.date.when - cited.date.when) / DAY_S
    return days >= -1.0 and (days <= CITE_DAYS or cosine >= OLD_COSINE)
