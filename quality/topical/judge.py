"""Relevance of a text, from a few examples.

A plain linear model, so that the measurements show the order of the crawl and not the model of relevance.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize

_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class Judge:
    """tf-idf and a logistic function."""

    numbers: dict[str, int]
    rarity: NDArray[np.float64]
    weights: NDArray[np.float64]
    bias: float

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return 1 / (1 + np.exp(-(self._table(texts) @ self.weights + self.bias)))

    def _table(self, texts: Sequence[str]) -> sparse.csr_matrix:
        return _table(texts, self.numbers, self.rarity)


def _table(texts: Sequence[str], numbers: dict[str, int], rarity: NDArray[np.float64]) -> sparse.csr_matrix:
    places, values, ends = [], [], [0]
    for text in texts:
        counts = Counter(numbers[word] for word in _WORD.findall(text.lower()) if word in numbers)
        row = np.array([(1 + np.log(count)) * rarity[place] for place, count in counts.items()])
        places += counts
        values += list(row / (np.sqrt((row**2).sum()) or 1.0))
        ends.append(len(places))
    return sparse.csr_matrix((values, places, ends), (len(texts), len(numbers)))


def trained(positive: Sequence[str], negative: Sequence[str], decay: float = 0.02) -> Judge:
    """Both classes have the same total weight; then the bias is shifted so that at most one negative text in ten
    passes.
    """
    texts = [*positive, *negative]
    spread = Counter(word for text in texts for word in set(_WORD.findall(text.lower())))
    numbers = {word: place for place, word in enumerate(sorted(word for word, count in spread.items() if count > 1))}
    rarity = np.array([1 + np.log(len(texts) / spread[word]) for word in numbers])
    table = _table(texts, numbers, rarity)
    sign = np.where(np.arange(len(texts)) < len(positive), 1.0, -1.0)
    share = np.where(sign > 0, 0.5 / len(positive), 0.5 / len(negative))

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = sign * (table @ values[:-1] + values[-1])
        slope = -sign * share / (1 + np.exp(np.clip(margin, -30, 30)))
        gradient = np.append(table.T @ slope + decay / len(texts) * values[:-1], slope.sum())
        return float(
            (share * np.logaddexp(0, -margin)).sum() + decay / len(texts) / 2 * (values[:-1] ** 2).sum()
        ), gradient

    found = minimize(loss, np.zeros(len(numbers) + 1), jac=True, method="L-BFGS-B", options={"maxiter": 60}).x
    return Judge(numbers, rarity, found[:-1], float(found[-1]))
