"""Chooses the keywords of a text, of a group, or of a group in contrast to others, and their spelling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from periplus.model.arrays import Floats, Unsigned64
from periplus_topics.analyse.keyword_measures import (
    is_passage,
    likelihoods,
    singlerank,
)
from periplus_topics.analyse.keyword_reading import NOTHING, Candidates, Counts, Reading, candidates
from periplus_topics.model import Keyword

Method = Callable[[Reading, Candidates, Counts], Floats]

CANDIDATES_PER_KEYWORD = 4  # candidates examined per requested keyword
# Words. Without this, lists of short texts repeat the same keyword four times (for passages F1@5 is 40.2 instead of
# 35.9; for pages it would lose 2 points, so it is not used there)
WRAPPING = 2
CANDIDATES_PER_TEXT = 50  # candidates of each text of a group
FRAMED_TEXTS = 10  # smaller groups are too small to detect boilerplate
# Share of a site's pages. A phrase that occurs about once on each is boilerplate, for example the title of a book
FRAME_SHARE, FRAME_TIMES = 0.5, 1.25
WITHIN = 1.25  # a keyword at most this many times as frequent as a longer one that contains it is redundant
RARE = 0.5  # added to document counts in a comparison, so that rare phrases get little weight


METHODS: dict[str, Method] = {
    "learnt": likelihoods,
    "singlerank": singlerank,
}  # fmt: skip


class TextScores(NamedTuple):
    """The candidates of a text with their scores."""

    text: Reading
    phrases: Candidates
    scores: Floats

    def best(self, most: int) -> list[int]:
        """The candidates with the highest scores, ties in text order; without a score they are left out."""
        first = self.phrases.places[self.phrases.first] if len(self.scores) else np.zeros(0)
        order = np.lexsort((self.phrases.sizes, first, -self.scores))[:most]
        return [int(at) for at in order if np.isfinite(self.scores[at])]

    def spellings(self, at: int) -> Counter[str]:
        """The spellings of a candidate, in text order."""
        places = self.phrases.places[self.phrases.owner == at]
        return Counter(self.text.original_words(int(place), int(self.phrases.sizes[at])) for place in places)


def score_candidates(text: Reading, counts: Counts, method: str = "learnt") -> TextScores:
    """Scores all candidates of a text. method: a key of METHODS."""
    phrases = candidates(text)
    return TextScores(text, phrases, METHODS[method](text, phrases, counts))


def keywords_of(text: Reading, counts: Counts, most: int = 10, method: str = "learnt") -> list[Keyword]:
    """The keywords of a text, best first, each stem once."""
    result = score_candidates(text, counts, method)
    best = (
        _without_extensions(result, result.best(CANDIDATES_PER_KEYWORD * most), most)
        if is_passage(text)
        else result.best(most)
    )
    return [
        Keyword(_spelling(result.spellings(at)), float(result.scores[at]), int(result.phrases.times[at]), 1)
        for at in best
    ]


def _without_extensions(result: TextScores, order: list[int], most: int) -> list[int]:
    """The first `most` in order, without phrases that extend an earlier one by at least WRAPPING words and are not more
    frequent than it.
    """
    chosen: list[tuple[int, bytes]] = []
    phrases, keys = result.phrases, result.text.keys
    for at in order:
        place, size = int(phrases.places[phrases.first[at]]), int(phrases.sizes[at])
        # keys are hashes: an accidental match across two of them is as good as impossible
        stems = keys[place : place + size].tobytes()
        wraps = (
            size >= phrases.sizes[other] + WRAPPING and phrases.times[at] <= phrases.times[other] and inner in stems
            for other, inner in chosen
        )
        if not any(wraps):
            chosen.append((at, stems))
        if len(chosen) == most:
            break
    return [at for at, _ in chosen]


class Contrast(NamedTuple):
    """What distinguishes a group of texts."""

    rest: Counts = NOTHING  # counts of other texts: phrases as frequent there are dropped
    framed: bool = False  # the texts are all of one site: phrases on nearly all of them are boilerplate and are dropped


ALONE = Contrast()


def keywords_of_all(
    texts: Iterable[Reading], counts: Counts, most: int = 10, method: str = "learnt", contrast: Contrast = ALONE
) -> list[Keyword]:
    """The keywords of several texts: the keywords that many of them share.

    counts: of a collection that includes the texts.
    """
    total: Counter[int] = Counter()
    pages: Counter[int] = Counter()
    times: Counter[int] = Counter()
    written: dict[int, Counter[str]] = {}
    number = 0
    for text in texts:
        number += 1
        result = score_candidates(text, counts, method)
        keys, shares = result.phrases.keys, _shares(result.scores)
        for key, count in zip(keys.tolist(), result.phrases.times.tolist(), strict=True):
            pages[key] += 1
            times[key] += count
        for at in result.best(CANDIDATES_PER_TEXT):
            total[int(keys[at])] += shares[at]
            written.setdefault(int(keys[at]), Counter()).update(result.spellings(at))
    all_keys = np.array(list(total), np.uint64)
    scores = np.array(list(total.values())) / max(1, number)
    on = np.array([pages[key] for key in total], np.float64)
    if contrast.rest.texts:
        scores = scores * _contrast_scores(all_keys, on, number, contrast.rest)
    if contrast.framed and number >= FRAMED_TEXTS:
        scores = scores * np.minimum(1.0, 2 * (1 - on / number))
        often = np.array([times[key] for key in total], np.float64)
        scores = np.where((on >= FRAME_SHARE * number) & (often <= FRAME_TIMES * on), 0.0, scores)
    order = np.argsort(-scores, kind="stable")[: CANDIDATES_PER_KEYWORD * most]
    best = [(int(all_keys[at]), float(scores[at])) for at in order if scores[at] > 0]
    return _drop_redundant([Keyword(_spelling(written[key]), score, times[key], pages[key]) for key, score in best])[
        :most
    ]


def _drop_redundant(keywords: list[Keyword]) -> list[Keyword]:
    """Drops keywords that rarely occur outside a longer one, and repeated spellings."""
    texts = [f" {keyword.text.casefold()} " for keyword in keywords]
    return [
        keyword
        for place, (keyword, text) in enumerate(zip(keywords, texts, strict=True))
        if text not in texts[:place]
        and not any(
            text in longer and text != longer and keyword.times <= WITHIN * other.times
            for other, longer in zip(keywords, texts, strict=True)
        )
    ]


def _shares(scores: Floats) -> Floats:
    """Scores divided by the best, so that they can be summed over texts."""
    finite = np.where(np.isfinite(scores), scores, 0.0)
    return finite / max(float(finite.max(initial=0.0)), 1e-12)


def _contrast_scores(keys: Unsigned64, pages: Floats, number: int, rest: Counts) -> Floats:
    """Log of how many times as frequent here as in `rest`; 0 if not more frequent."""
    there = rest.of(keys) - 1  # counts of 0 and 1 are not distinguished
    rarity: Floats = np.maximum(np.log((pages + RARE) / (number + 1)) - np.log((there + RARE) / (rest.texts + 1)), 0.0)
    return rarity


def _spelling(spellings: Counter[str]) -> str:
    """The most frequent spelling; the first if several are."""
    return max(spellings, key=lambda spelling: spellings[spelling])
