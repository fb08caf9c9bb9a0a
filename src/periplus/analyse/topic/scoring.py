"""How good are scores, seen from the truth?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from periplus.model.topic import TopicScores

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEEPEST = 8.0  # examples that are parted whole would have it infinite, and pages of elsewhere are less sure


def scores_of(truth: Bools, chances: Floats) -> TopicScores:
    """Of pages judged positive from one half on. truth, chances: n."""
    said = chances >= 0.5
    hits = float((truth & said).sum())
    precision, recall = hits / max(float(said.sum()), 1.0), hits / max(float(truth.sum()), 1.0)
    return TopicScores(precision, recall, 2 * precision * recall / max(precision + recall, 1e-12), average_precision(truth, chances))


def average_precision(truth: Bools, scores: Floats) -> float:
    """Mean, over the positives, of the precision at the place of each; pages of one score share their places. 0 where nothing is positive."""
    if not truth.any():
        return 0.0
    order = np.argsort(-scores, kind="stable")
    hits, ends = np.cumsum(truth[order]), np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    gained = np.diff(hits[ends], prepend=0)
    return float((gained * hits[ends] / (ends + 1)).sum() / truth.sum())


def best_threshold(truth: Bools, scores: Floats) -> float:
    """Where F is highest: a tenth of the gap above the next lower score. Away from the examples' source it is the positives whose scores fall."""
    order = np.argsort(-scores, kind="stable")
    hits, ranked = np.cumsum(truth[order]), scores[order]
    f = 2 * hits / (np.arange(1, len(scores) + 1) + truth.sum())
    f[:-1][ranked[:-1] == ranked[1:]] = 0.0  # pages of one score cannot be parted
    best = int(f.argmax())
    return float(ranked[best] if best + 1 == len(ranked) else ranked[best + 1] + (ranked[best] - ranked[best + 1]) / 10)


def steepness_of(truth: Bools, distances: Floats) -> float:
    """The slope s for which 1 / (1 + exp(-s distance)) is likeliest, both kinds weighing the same; between 0.05 and STEEPEST over their spread."""
    spread = max(float(distances.std()), 1e-9)
    slopes = np.geomspace(0.05, STEEPEST, 41) / spread
    signed = np.where(truth, distances, -distances)
    balance = np.where(truth, 0.5 / max(truth.sum(), 1), 0.5 / max((~truth).sum(), 1))
    return float(slopes[int(np.argmin([balance @ np.logaddexp(0.0, -slope * signed) for slope in slopes]))])
