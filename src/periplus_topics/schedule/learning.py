"""Online learning of a topical crawl: weights of the evidence, and numbers of relevant pages that pages lead to."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from periplus.model.arrays import Floats, Ints, Ints32, Mask

# Tuned on the webs of `quality/topical/listweb.py` with seeds that are not reported (101, 102), and on the unreported
# half of the text graph's topics. Recall of relevant pages after 10 % of the pages: .57 and .30 in these webs (.23 and
# .21 with fixed weights and without leads), .94 in the graph (.95).
PULL = 5.0  # ridge penalty towards the initial weights; 1 forgets them too soon (.21 -> .14), 30 performs like 5
ROWS = 1_024  # pages learned from; with more, every second page, every fourth, and so on
FITTED_LEAST, FITTED_GROWTH = 16, 32  # fitted again when the number of read pages has grown by 1/32, as the queue is
NEWTON_STEPS, HALVINGS = 8, 8  # the gradient is then below .01, from any start
DOUBT = 5.0  # weight of the prior of a trait's worth, in pages
NOISE = 0.05  # minimum variance of a trait's pages
USUAL_SIZE = 0.3  # prior mean of ln(1 + size), where size is the number of pages that a page leads to
USUAL_PAGES = 5.0  # its weight, in pages


def chances_of(odds: Floats) -> Floats:
    """The logistic function."""
    chances: Floats = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
    return chances


@dataclass(slots=True)
class EvidenceWeights:
    """Logistic regression of the relevance of pages on the evidence known before they were read.

    A ridge penalty shrinks the weights towards `start`, which dominates while few pages were read.
    """

    start: Floats
    values: Floats = field(init=False)
    _rows: list[Floats] = field(default_factory=list)
    _labels: list[bool] = field(default_factory=list)
    _every: int = 1
    _fitted: int = 0  # pages read at the last fit

    def __post_init__(self) -> None:
        self.values = self.start

    def takes(self, read: int) -> bool:
        """Whether to learn from the page after `read` others."""
        return read % self._every == 0

    def book(self, read: int, row: Floats, relevant: bool) -> None:
        """Adds the page after `read` others. row: its evidence before it was read."""
        self._rows.append(row)
        self._labels.append(relevant)
        if len(self._rows) == ROWS:
            self._rows, self._labels, self._every = self._rows[::2], self._labels[::2], 2 * self._every
        if read + 1 - self._fitted >= max(FITTED_LEAST, self._fitted // FITTED_GROWTH):
            self._fitted = read + 1
            self.values = fit_from(self.start, np.array(self._rows), np.array(self._labels))


def fit_from(start: Floats, rows: Floats, labels: Mask) -> Floats:
    """Fits weights by Newton's method from `start`; each step is halved until it lowers the loss.

    rows: float64[n, evidence]. labels: n.
    """
    signed = rows * np.where(labels, 1.0, -1.0)[:, None]

    def loss(weights: Floats) -> float:
        return float(np.logaddexp(0.0, -(signed @ weights)).sum() + PULL / 2 * ((weights - start) ** 2).sum())

    weights, least = start, loss(start)
    for _ in range(NEWTON_STEPS):
        chances = chances_of(signed @ weights)
        slope = PULL * (weights - start) - signed.T @ (1 - chances)
        curvature = (signed * (chances * (1 - chances))[:, None]).T @ signed + PULL * np.eye(len(start))
        step = np.linalg.solve(curvature, slope)
        for halvings in range(HALVINGS):
            moved = weights - step / 2**halvings
            if (lost := loss(moved)) < least:
                weights, least = moved, lost
                break
    return weights


@dataclass(slots=True)
class LeadTally:
    """Counts the pages that pages with a trait led to: pages read that were discovered through them, directly or in two
    steps. A page with several inlinks counts as a share.

    A trait is a small number: a word of the links to a page or of its URL, the pattern of its URL, or the pattern of
    the page on which it was discovered. The greatest number means no trait.
    """

    traits: int
    _read: Floats = field(init=False)  # pages with the trait that were read
    _logs: Floats = field(init=False)  # sum of ln(1 + size) over them, where size is the number of pages they led to
    _squares: Floats = field(init=False)  # sum of the squares
    # columns by trait: precision of its mean size, precision times mean, pages led to, sum of their worth
    _table: Floats = field(init=False)
    _all_read: int = 0
    _all_logs: float = 0.0

    def __post_init__(self) -> None:
        self._read, self._logs, self._squares = (np.zeros(self.traits + 1) for _ in range(3))
        self._table = np.zeros((self.traits + 1, 4))

    def book(self, traits: Ints) -> None:
        """Adds a read page with these traits."""
        self._read[traits] += 1
        self._all_read += 1
        self._weigh(traits)

    def credit(self, traits: Ints, size: float, share: float, worth: float) -> None:
        """Adds a page, or a share of it, to those that a page with these traits led to. size: their number before."""
        before, after = np.log1p(size), np.log1p(size + share)
        self._logs[traits] += after - before
        self._squares[traits] += after**2 - before**2
        self._all_logs += float(after - before)
        self._table[traits, 2:] += (share, share * worth)
        self._weigh(traits)

    def _weigh(self, traits: Ints) -> None:
        pages = self._read[traits]
        mean = self._logs[traits] / pages
        spread = np.maximum(self._squares[traits] / pages - mean**2, 0.0)
        trust = 1 / (NOISE + spread + 1 / pages)
        self._table[traits, 0], self._table[traits, 1] = trust, trust * mean

    def expected_worth(self, traits: Ints32, prior: float) -> tuple[Floats, Floats]:
        """(number of pages that each page leads to, their mean worth). traits: int32[pages, any]; prior: mean worth.

        The weight of a trait grows with the number of its pages and with their similarity.
        """
        rows = self._table.take(traits, axis=0)
        usual = (self._all_logs + USUAL_SIZE * USUAL_PAGES) / (self._all_read + USUAL_PAGES)
        trust, weighed = rows[:, :, 0].sum(axis=1), rows[:, :, 1].sum(axis=1)
        sizes = np.expm1((weighed + 0.5 * usual) / (trust + 0.5))
        pages = rows[:, :, 2]
        worths = (rows[:, :, 3] + DOUBT * prior) / (pages + DOUBT)
        weights = pages / (pages + DOUBT) / (worths * (1 - worths) + NOISE)
        own = 0.5 / (prior * (1 - prior) + NOISE)
        return sizes, ((weights * worths).sum(axis=1) + own * prior) / (weights.sum(axis=1) + own)
