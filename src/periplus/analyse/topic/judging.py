"""How likely does a text belong to a topic?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.topic.words import bucket, grams, word_counts
from periplus.model.topic import Method, Topic

Floats = NDArray[np.float64]

REMEMBERED = 200_000  # words: some 30 MB; a crawl meets new ones for ever
KNOWN_LEAST = 0.2  # of a page's words: of pages in the examples' language half and more are known, of another's one in twenty
_TIMES = 1 + np.log(np.arange(1, 1_024))  # 1 + ln of a count
_NO_TEXT = float("-inf")


class Judge:
    """Judges texts, one after another. 2,500 pages of 5,000 characters a second."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self._known = _Words(topic)

    def judge(self, texts: Sequence[str]) -> Floats:
        """float64[n], 0 to 1: the chance of each that it belongs to the topic. Total: any texts."""
        return self.judge_words(map(word_counts, texts))

    def judge_words(self, texts: Iterable[Mapping[str, int]]) -> Floats:
        """The same of texts whose words are counted already."""
        distances = self.topic.steepness * (np.array([self._score(counts) for counts in texts], dtype=np.float64) - self.topic.threshold)
        return np.exp(-np.logaddexp(0.0, -distances))

    def _score(self, counts: Mapping[str, int]) -> float:
        """The weighted mean of its words; of a text without words, for which nothing speaks, below any other."""
        if not counts:
            return _NO_TEXT
        if len(self._known) > REMEMBERED:
            self._known.clear()
        known = self._known
        parts = np.fromiter(map(known.__getitem__, counts), np.complex128, len(counts))
        times = np.fromiter(counts.values(), np.int64, len(counts))
        values = _TIMES[np.minimum(times, len(_TIMES)) - 1] * np.abs(parts.imag)
        score = float(values @ parts.real) / max(float(np.sqrt(values @ values)), 1e-12)
        sure = min(float(np.count_nonzero(parts.imag > 0)) / len(counts) / KNOWN_LEAST, 1.0)
        return sure * score + (1 - sure) * self.topic.usual


class _Words(dict[str, complex]):
    """By word, its weight (real) and rarity (imaginary, negative where it is unknown), so that an array of both is made at one grasp."""

    def __init__(self, topic: Topic) -> None:
        self._places = {word: place for place, word in enumerate(topic.words)}
        self._topic, self._whole = topic, topic.method is Method.ONLINE

    def __missing__(self, word: str) -> complex:
        topic = self._topic
        if (place := self._places.get(word)) is not None:
            found = complex(topic.weights[place], topic.rarities[place])
        elif self._whole:
            found = complex(topic.hashed[bucket(word, len(topic.hashed))], 1.0)
        elif len(topic.hashed):
            own = grams(word)
            found = complex(topic.hashed[own].sum() / len(own) ** 0.5, -topic.unknown_rarity)
        else:
            found = complex(0.0, -topic.unknown_rarity)
        self[word] = found
        return found
