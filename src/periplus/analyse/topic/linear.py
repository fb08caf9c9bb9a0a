"""Which weights of words tell two kinds of texts apart?

Logistic regression in which both kinds of texts weigh the same, and the support vector machine (squared hinge) as it is published, both with ridge
and solved by L-BFGS: strictly convex, so that the same examples give the same weights whatever the solver. Log-odds of words as in naive Bayes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array

from periplus.analyse.topic.words import GRAM_BUCKETS

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ROUNDS = 30  # of L-BFGS
TOLERANCE = 1e-4  # of the loss, relative: scores then correlate by .99999 with those of 1e-10, in a quarter of the time
GRAM_SHARE = 0.25  # weight of a word's grams beside the word itself
SMOOTHING = 0.1  # added to each word's sum before its log-odds; with 1 rare words are lost where there are few texts


class Weights(NamedTuple):
    """The score of a row is row @ words + bias."""

    words: Floats
    grams: Floats  # of grams, for words that are not known; none where they were not asked for
    bias: float


def fitted(rows: csr_array, labels: Bools, cost: float, *, hinge: bool = False, grams: csr_array | None = None) -> Weights:
    """The weights that minimise half their squares plus cost times the losses.

    rows: n x v. labels: n. hinge: squared hinge loss, else logistic. grams: v x GRAM_BUCKETS: weights of words are partly shared by words with the same grams.
    """
    signs = np.where(labels, 1.0, -1.0)
    balance = cost * (np.ones(len(labels)) if hinge else np.where(labels, 0.5 / max(labels.mean(), 1e-9), 0.5 / max((~labels).mean(), 1e-9)))
    columns, known = rows.T.tocsr(), rows.shape[1]
    used = np.zeros(0, np.int64) if grams is None else np.unique(grams.indices)  # of few texts a small part of the buckets
    grams = None if grams is None else grams[:, used].tocsr()
    back = None if grams is None else grams.T.tocsr()

    def loss(at: Floats) -> tuple[float, Floats]:
        words = at[:known] if grams is None else at[:known] + GRAM_SHARE * (grams @ at[known:-1])
        margins = signs * (rows @ words + at[-1])
        if hinge:
            short = np.maximum(0.0, 1.0 - margins)
            losses, slopes = short * short, -2.0 * short
        else:
            losses, slopes = np.logaddexp(0.0, -margins), -np.exp(-np.logaddexp(0.0, margins))
        pull = balance * slopes * signs
        by_word = columns @ pull
        gradient = at.copy()
        gradient[:known] += by_word
        if back is not None:
            gradient[known:-1] += GRAM_SHARE * (back @ by_word)
        gradient[-1] = pull.sum()
        return float(balance @ losses + 0.5 * (at[:-1] @ at[:-1])), gradient

    start = np.zeros(known + 1 + (0 if grams is None else grams.shape[1]))
    at: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS, "ftol": TOLERANCE}).x
    if grams is None:
        return Weights(at[:known], np.zeros(0), float(at[-1]))
    shared = np.zeros(GRAM_BUCKETS)
    shared[used] = GRAM_SHARE * at[known:-1]
    return Weights(at[:known] + grams @ shared[used], shared, float(at[-1]))


def log_odds(rows: csr_array, labels: Bools) -> Floats:
    """float64[v]: by how much likelier each word is in the positive rows, as a logarithm."""
    sums = [rows[np.flatnonzero(which)].sum(axis=0) + SMOOTHING for which in (labels, ~labels)]
    return np.asarray(np.log(sums[0] / sums[0].sum()) - np.log(sums[1] / sums[1].sum())).ravel()
