"""How likely does a text belong to a topic?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.topic.words import bucket, grams, word_counts
from periplus.model.topic import Method, Topic

Floats = NDArray[np.float64]

REMEMBERED = 200_000  # words: some 30 MB; a crawl meets new ones for ever
_TIMES = 1 + np.log(np.arange(1, 1_024))  # 1 + ln of a count
_NO_TEXT = 0.0  # chance of a text without words: nothing speaks for it


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
        return np.nan_to_num(np.exp(-np.logaddexp(0.0, -distances)), nan=_NO_TEXT)

    def _score(self, counts: Mapping[str, int]) -> float:
        """The weighted mean of its words; nan for a text without words."""
        if not counts:
            return float("nan")
        if len(self._known) > REMEMBERED:
            self._known.clear()
        known = self._known
        parts = np.fromiter(map(known.__getitem__, counts), np.complex128, len(counts))
        times = np.fromiter(counts.values(), np.int64, len(counts))
        values = _TIMES[np.minimum(times, len(_TIMES)) - 1] * parts.imag
        return float((values @ parts.real) / np.sqrt(values @ values))


class _Words(dict[str, complex]):
    """By word, its weight (real) and rarity (imaginary: so that an array of both is made at one grasp), looked up in the topic when it is first met."""

    def __init__(self, topic: Topic) -> None:
        self._places = {word: place for place, word in enumerate(topic.words)}
        self._topic, self._whole = topic, topic.method is Method.ONLINE

    def __missing__(self, word: str) -> complex:
        topic = self._topic
        if (place := self._places.get(word)) is not None:
            found = complex(topic.weights[place], topic.rarities[place])
        elif self._whole:
            found = complex(topic.hashed[bucket(word, len(topic.hashed))], topic.unknown_rarity)
        elif len(topic.hashed):
            own = grams(word)
            found = complex(topic.hashed[own].sum() / len(own) ** 0.5, topic.unknown_rarity)
        else:
            found = complex(0.0, topic.unknown_rarity)
        self[word] = found
        return found
