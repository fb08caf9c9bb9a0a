"""How well was a topic learned, by what, and is it the topic that was learned, or where its examples come from?

Negatives that come from elsewhere than the positives teach the difference of the two places: the topic is then told with F .99 among the examples
and missed elsewhere. Four signs of it: frequent words, of which no topic is made, tell the examples apart; a few words stand on nearly all pages of
one kind; texts of one kind are much longer; a source of positives is not recognised when it was left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from periplus.analyse.topic import linear
from periplus.analyse.topic.judging import Judge
from periplus.analyse.topic.scoring import best_threshold, scores_of
from periplus.analyse.topic.training import LOGISTIC_COST, Examples, Learned, folds_of, learned
from periplus.model.topic import TellingWord, Topic, TopicReport

CURVE = (10, 30, 100, 300, 1_000)  # positive examples; a point needs half as many again to be tried on
CURVE_FEWEST_LEFT = 10
TELLING = 20  # words of each kind
HELD_OUT_LEAST = 5  # examples of a source, to say anything of it
COMMON_WORDS = 50  # most frequent ones of all the texts: in every language nearly all of them are particles
COMMON_TELL = 0.92  # F of these alone; quality/relevance --style: .41 to .90 where both kinds come from one source, .98 and 1 where not
MARK_SHARES = (0.9, 0.1)  # a word on so many pages of one kind, and on so few of the other, is a mark
MARKS_FEWEST = 3  # one or two may be the topic's own
LENGTHS_APART = 4.0  # of the medians of both kinds
LOST = 0.15  # recall lost on a source that was left out
FEW = 10  # positive examples, to say anything

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def assessed(found: Learned, examples: Examples) -> Topic:
    """The topic with its report made whole."""
    telling, held_out = _telling(found, examples), _held_out(found, examples)
    known = found.topic.report
    assert known is not None
    report = TopicReport(known.scores, _curve(found, examples), held_out, telling, ())
    warnings = tuple(_warnings(found, examples, report)) if min(examples.labels.sum(), (~examples.labels).sum()) >= FEW else ()
    return replace(found.topic, report=replace(report, warnings=warnings))


def _telling(found: Learned, examples: Examples) -> tuple[TellingWord, ...]:
    """By what each word adds to the score of a text that has it once."""
    topic, labels = found.topic, examples.labels
    if not topic.words:
        weights, words = linear.fitted(found.rows, labels, LOGISTIC_COST).words, list(found.space.places)
    else:
        weights, words = topic.weights.astype(np.float64), list(topic.words)
    shares = _shares(found, labels)
    strength = weights * found.space.rarities * np.where(weights > 0, shares[0], shares[1])  # of a word as often as it occurs
    order = np.argsort(-strength, kind="stable")
    chosen = [at for at in order[:TELLING] if strength[at] > 0] + [at for at in order[::-1][:TELLING] if strength[at] < 0]
    return tuple(TellingWord(words[at], float(weights[at]), float(shares[0][at]), float(shares[1][at])) for at in chosen)


def _curve(found: Learned, examples: Examples) -> tuple[tuple[int, float], ...]:
    """F on the other examples when learned from the first so many positive ones, and as many negatives in proportion."""
    labels, points = examples.labels, []
    positives, negatives = np.flatnonzero(labels), np.flatnonzero(~labels)
    for size in CURVE:
        against = max(size, round(size * len(negatives) / len(positives)))
        if len(positives) - size < max(CURVE_FEWEST_LEFT, size // 2) or len(negatives) - against < CURVE_FEWEST_LEFT:
            break
        own = np.sort(np.concatenate([positives[:size], negatives[:against]]))
        rest = np.setdiff1d(np.arange(len(labels)), own)
        part = learned("", _chosen(examples, own), (), found.topic.method)
        chances = Judge(part.topic).judge([examples.items[at].text for at in rest])
        points.append((size, scores_of(labels[rest], chances).f))
    return tuple(points)


def _held_out(found: Learned, examples: Examples) -> tuple[tuple[str, float], ...]:
    """Of each source of positives that has enough of them: recall on them when the topic is learned from the other sources only."""
    sources = np.array([item.source for item in examples.items])
    own = Counter(sources[examples.labels].tolist())
    named = [source for source, number in own.most_common(4) if number >= HELD_OUT_LEAST and len(own) > 1 and own.total() - number >= HELD_OUT_LEAST]
    result = []
    for source in named:
        left_out = (sources == source) & examples.labels
        part = learned("", _chosen(examples, np.flatnonzero(~left_out)), (), found.topic.method)
        chances = Judge(part.topic).judge([examples.items[at].text for at in np.flatnonzero(left_out)])
        result.append((source, float((chances >= 0.5).mean())))
    return tuple(result)


def _chosen(examples: Examples, places: NDArray[np.intp]) -> Examples:
    return Examples(
        tuple(examples.items[at] for at in places),
        tuple(examples.marks[at] for at in places),
        tuple(examples.counts[at] for at in places),
        examples.labels[places],
    )


def _warnings(found: Learned, examples: Examples, report: TopicReport) -> Iterator[str]:
    labels = examples.labels
    if (f := common_words_tell(found, labels)) >= COMMON_TELL:
        yield (
            f"the {COMMON_WORDS} most frequent words alone, of which no topic is made, tell the examples apart with F {f:.2f}:"
            " the negatives differ from the positives by source or style. Add negatives from where the positives come from."
        )
    if len(marks := _marks(found, labels)) >= MARKS_FEWEST:
        yield f"on nearly all examples of one kind and hardly any of the other: {', '.join(marks[:8])}. A site's own words? Then give pages of it as both."
    lengths = [median(sum(counts.values()) for counts, label in zip(examples.counts, labels.tolist(), strict=True) if label is kind) for kind in (True, False)]
    if max(lengths) > LENGTHS_APART * max(min(lengths), 1):
        yield f"positive examples have {lengths[0]:.0f} words, negative ones {lengths[1]:.0f} (medians): what is learned may be the length."
    inside = report.scores.recall
    for source, recall in report.held_out:
        if recall < inside - LOST:
            yield f"learned without {source}, only {recall:.0%} of its pages are found (with it {inside:.0%}): the sources say different things."


def common_words_tell(found: Learned, labels: Bools) -> float:
    """Best F, cross-validated, of a model that sees nothing but the most frequent words."""
    texts = np.bincount(found.rows.indices, minlength=found.rows.shape[1])
    columns = np.sort(np.argsort(-texts, kind="stable")[:COMMON_WORDS])
    rows, folds, scores = found.rows[:, columns].tocsr(), folds_of(labels), np.zeros(len(labels))
    for fold in range(int(folds.max()) + 1):
        rest = np.flatnonzero(folds != fold)
        weights = linear.fitted(rows[rest], labels[rest], 100.0)
        scores[folds == fold] = rows[np.flatnonzero(folds == fold)] @ weights.words + weights.bias
    return scores_of(labels, np.where(scores > best_threshold(labels, scores), 1.0, 0.0)).f


def _shares(found: Learned, labels: Bools) -> tuple[Floats, Floats]:
    """float64[v] twice: the share of positive and of negative examples that have each word."""
    rows = found.rows
    has = csr_array((np.ones(len(rows.data)), rows.indices, rows.indptr), shape=rows.shape)
    inside: Floats = has[np.flatnonzero(labels)].sum(axis=0) / max(int(labels.sum()), 1)
    outside: Floats = has[np.flatnonzero(~labels)].sum(axis=0) / max(int((~labels).sum()), 1)
    return inside, outside


def _marks(found: Learned, labels: Bools) -> list[str]:
    """Words that mark one kind."""
    many, few = MARK_SHARES
    inside, outside = _shares(found, labels)
    marks = ((inside >= many) & (outside <= few)) | ((outside >= many) & (inside <= few))
    words = list(found.space.places)
    return [words[at] for at in np.flatnonzero(marks)]
