"""What a topical crawl learns while it runs: how much each piece of evidence counts, and what pages lead to."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from periplus.model.arrays import Floats, Ints, Ints32, Mask

# Tuned on the webs of `quality/topical/listweb.py` with seeds that are not reported (101, 102), and on the half of the
# text graph's topics that is not: of the relevant, 10 % of the pages bring .57 and .30 in these webs (.23 and .21 with
# fixed weights and no regard to what a page leads to), and .94 in the graph (.95).
PULL = 5.0  # of the weights that the crawl began with; 1 forgets them too soon (.21 -> .14), 30 learns as 5 does
ROWS = 1_024  # pages learned from: of more every second one, every fourth, and so on
FITTED_LEAST, FITTED_GROWTH = 16, 32  # fitted anew when the pages read grew by one in so many: as a queue is reckoned
NEWTON_STEPS, HALVINGS = 8, 8  # the slope is then below .01, from whatever start


def chances_of(odds: Floats) -> Floats:
    """The logistic function."""
    chances: Floats = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
    return chances


@dataclass(slots=True)
class EvidenceWeights:
    """Logistic regression of whether pages were relevant on what was known of them before they were read.

    Ridge draws the weights to `start`, which holds as long as little was read.
    """

    start: Floats
    values: Floats = field(init=False)
    _rows: list[Floats] = field(default_factory=list)
    _labels: list[bool] = field(default_factory=list)
    _every: int = 1
    _fitted: int = 0  # pages read when it was last fitted

    def __post_init__(self) -> None:
        self.values = self.start

    def takes(self, read: int) -> bool:
        """Whether the page after so many that were read is learned from."""
        return read % self._every == 0

    def book(self, read: int, row: Floats, relevant: bool) -> None:
        """A page after so many others. row: its evidence before it was read."""
        self._rows.append(row)
        self._labels.append(relevant)
        if len(self._rows) == ROWS:
            self._rows, self._labels, self._every = self._rows[::2], self._labels[::2], 2 * self._every
        if read + 1 - self._fitted >= max(FITTED_LEAST, self._fitted // FITTED_GROWTH):
            self._fitted = read + 1
            self.values = fitted_near(self.start, np.array(self._rows), np.array(self._labels))


def fitted_near(start: Floats, rows: Floats, labels: Mask) -> Floats:
    """Weights by Newton's method from `start`, each step halved until it lowers the loss.

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


DOUBT = 5.0  # pages of average worth that a trait's yield is mixed with
NOISE = 0.05  # variance that a trait's pages have at the least, however alike they were
USUAL_SIZE = 0.3  # what a page leads to, ln(1 + size), before any was read
USUAL_PAGES = 5.0  # pages that it counts for


@dataclass(slots=True)
class LeadTally:
    """What the pages with a trait led to: pages that were first met by them, or by what was first met by them, and that
    were read. Of a page that others link to, too, a share.

    A trait is a small number: a word of the links to a page or of its address, the pattern of its address, that of the
    page which showed it. The greatest number stands for no trait.
    """

    traits: int
    _read: Floats = field(init=False)  # pages with the trait that were read
    _logs: Floats = field(init=False)  # sum of ln(1 + size) over them, where size is how many they led to
    _squares: Floats = field(init=False)  # sum of its squares
    # of each trait: how far its mean size is to be trusted, the same times that mean, pages led to, their worth
    _table: Floats = field(init=False)
    _all_read: int = 0
    _all_logs: float = 0.0

    def __post_init__(self) -> None:
        self._read, self._logs, self._squares = (np.zeros(self.traits + 1) for _ in range(3))
        self._table = np.zeros((self.traits + 1, 4))

    def book(self, traits: Ints) -> None:
        """A page with these traits was read."""
        self._read[traits] += 1
        self._all_read += 1
        self._weigh(traits)

    def credit(self, traits: Ints, size: float, share: float, worth: float) -> None:
        """A page with these traits, which led to so many pages (size), led to one more, or to a share of it."""
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

    def expected(self, traits: Ints32, prior: float) -> tuple[Floats, Floats]:
        """(how many pages each page leads to, their mean worth). traits: int32[pages, any]; prior: a page's mean worth.

        A trait counts the more, the more alike its pages were, and the more of them there are.
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
