"""Trains a topic from examples, as weights of words, and evaluates it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import md5
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import betaincinv

from periplus.errors import UsageError
from periplus.model.arrays import Floats, Ints, Ints32, Mask
from periplus_topics.analyse.judging import WORD_CHARS, Judge, word_counts
from periplus_topics.model import Example, ExampleMark, TellingWord, Topic, TopicReport, TopicScores

STEEPEST = 8.0  # separable examples would make it infinite, and pages of other sources are less certain
RESAMPLES = 100  # with another seed the mean threshold then moves by less than 0.02 standard deviations
LEAST_TEXTS = 2  # a word of a single text does not generalise
WORDS_MOST = 60_000  # most frequent words: a model of 1 MB; beyond, words occur in two or three of 4,000 pages
ROUNDS = 30  # of L-BFGS
TOLERANCE = 1e-4  # relative, of the loss: scores correlate by 0.99999 with those of 1e-10, in a quarter of the time
SEEN_LEAST = 100  # fewer unlabelled pages are too few to estimate the share of positives
RARER = 3.0  # assumed ratio of negatives to those among the examples
RAREST = 4.0  # limit of the estimated ratio of the examples' share of positives to that of the background
SHARE_ROUNDS = 50  # of the estimate
CURVE = (10, 30, 100, 300, 1_000)  # positive examples; each point needs 50 % more for testing
CURVE_FEWEST_LEFT = 10
TELLING = 20  # words of each class
HELD_OUT_LEAST = 5  # least examples of a source for testing on it
COMMON_COST = 10.0
COMMON_WORDS = 50  # most frequent words of all texts: in every language nearly all are function words
# F of the common words alone; quality/relevance --style: .41 to .90 if both classes are from one source, .98 and 1 if
# not
COMMON_TELL = 0.92
MARK_SHARES = (0.9, 0.1)  # a word on at least this share of one class and at most that share of the other is a mark
MARKS_FEWEST = 3  # one or two may belong to the topic
LENGTHS_APART = 4.0  # ratio of the median lengths of both classes
RECALL_LOSS = 0.15  # recall lost on a source that was left out
FEW = 10  # least examples of each class for the other warnings


def scores_of(truth: Mask, chances: Floats, rarity: float = 1.0) -> TopicScores:
    """Scores of pages judged positive from 0.5. truth, chances: [n]. Each negative counts `rarity` times."""
    judged = chances >= 0.5
    hits = float((truth & judged).sum())
    precision = hits / max(hits + rarity * float((judged & ~truth).sum()), 1.0)
    recall = hits / max(float(truth.sum()), 1.0)
    return TopicScores(precision, recall, _f(precision, recall), average_precision(truth, chances))


def _f(precision: float, recall: float) -> float:
    return 2 * precision * recall / max(precision + recall, 1e-12)


def average_precision(truth: Mask, scores: Floats) -> float:
    """Mean over the positives of the precision at their rank; pages with equal scores share a rank.

    0 if there are no positives.
    """
    if not truth.any():
        return 0.0
    order = np.argsort(-scores, kind="stable")
    hits, ends = np.cumsum(truth[order]), np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    gained = np.diff(hits[ends], prepend=0)
    return float((gained * hits[ends] / (ends + 1)).sum() / truth.sum())


def best_threshold(truth: Mask, scores: Floats, rarity: float = 1.0) -> float:
    """Where F is highest: a tenth of the gap above the next lower score. Each negative counts `rarity` times.

    The margin is small because on other sources the scores of positives fall.
    """
    order = np.argsort(-scores, kind="stable")
    hits, ranked = np.cumsum(truth[order]), scores[order]
    f = 2 * hits / (hits + rarity * (np.arange(1, len(scores) + 1) - hits) + truth.sum())
    f[:-1][ranked[:-1] == ranked[1:]] = 0.0  # pages with equal scores cannot be separated
    best = int(f.argmax())
    return float(ranked[best] if best + 1 == len(ranked) else ranked[best + 1] + (ranked[best] - ranked[best + 1]) / 10)


def resamples(labels: Mask) -> Iterator[Ints]:
    """Stratified bootstrap samples of the examples, as indices; the same on each call."""
    rng = np.random.default_rng(1)
    kinds = [np.flatnonzero(labels), np.flatnonzero(~labels)]
    for _ in range(RESAMPLES):
        yield np.concatenate([rng.choice(kind, len(kind)) for kind in kinds])


def usual_threshold(labels: Mask, scores: Floats, rarity: float = 1.0) -> float:
    """Mean over bootstrap samples of the best threshold: from a single small sample it is too random."""
    return float(np.mean([best_threshold(labels[drawn], scores[drawn], rarity) for drawn in resamples(labels)]))


def f_interval(positives: int, scores: TopicScores) -> tuple[float, float]:
    """90% interval of F, from the number of correct judgements of the positives; below 1 even if all are correct.

    F = B / (B + (1 - B) / 2), where B is beta distributed by hits and by misses plus false alarms, with Jeffreys' prior
    (Goutte and Gaussier 2005). Bootstrapping would give 1 to 1 if all are correct.
    """
    hits = scores.recall * positives
    wrong = 2 * hits * (1 / scores.f - 1) if scores.f else float(positives)
    low, high = (share / (share + (1 - share) / 2) for share in betaincinv(hits + 0.5, wrong + 1.0, (0.05, 0.95)))
    return min(float(low), scores.f), max(float(high), scores.f)


class UnlabelledScores(NamedTuple):
    """Unlabelled pages: their scores, and the probability that each is positive."""

    scores: Floats  # descending
    chances: Floats

    def threshold(self) -> float:
        """The threshold with the best expected F."""
        hits = np.cumsum(self.chances)
        return float(self.scores[int((hits / (np.arange(1, len(hits) + 1) + hits[-1])).argmax())])

    def precision_recall(self, threshold: float) -> tuple[float, float]:
        """The expected (precision, recall)."""
        judged = self.chances[self.scores > threshold]
        return float(judged.sum()) / max(len(judged), 1), float(judged.sum() / self.chances.sum())


def background_of(labels: Mask, scores: Floats, seen: Floats) -> UnlabelledScores:
    """The background with these scores. labels, scores: of the examples.

    The probabilities are those of a logistic curve fitted to the examples' scores (Platt 1999, with his smoothed
    targets), shifted to the share of positives in the background. Expectation maximisation estimates the share (Saerens
    and others 2002). It is limited, since it assumes positives like the examples: those of other sources score lower.
    """
    spread = max(float(scores.std()), 1e-9)
    positives, negatives = float(labels.sum()), float((~labels).sum())
    targets = np.where(labels, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    points = np.stack([scores / spread, np.ones(len(scores))], axis=1)

    def loss(at: Floats) -> tuple[float, Floats]:
        margins = points @ at
        return float((np.logaddexp(0.0, margins) - targets * margins).sum()), points.T @ (_chances(margins) - targets)

    slope, bias = minimize(loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B").x
    ranked = -np.sort(-seen)
    odds, usual = slope * ranked / spread + bias, labels.mean()
    share, chances = usual, _chances(odds)
    for _ in range(SHARE_ROUNDS):
        share = np.clip(chances.mean(), usual / RAREST, usual)
        chances = _chances(odds + np.log(share / (1 - share)) - np.log(usual / (1 - usual)))
    return UnlabelledScores(ranked, chances)


def steepness_of(truth: Mask, distances: Floats) -> float:
    """The slope s of 1 / (1 + exp(-s distance)) with the greatest likelihood, both classes weighing the same; limited
    to 0.05 to STEEPEST over the standard deviation.
    """
    spread = max(float(distances.std()), 1e-9)
    slopes = np.geomspace(0.05, STEEPEST, 41) / spread
    signed = np.where(truth, distances, -distances)
    balance = np.where(truth, 0.5 / max(truth.sum(), 1), 0.5 / max((~truth).sum(), 1))
    return float(slopes[int(np.argmin([balance @ np.logaddexp(0.0, -slope * signed) for slope in slopes]))])


Counts = Mapping[str, int]


class Space(NamedTuple):
    """The vocabulary, ascending, with smoothed inverse document frequencies ln((1 + n) / (1 + texts with it)) + 1.

    Other words are ignored.
    """

    places: dict[str, int]
    rarities: Floats


def space_of(texts: Sequence[Counts]) -> Space:
    """The vocabulary of these texts."""
    pages_with = Counter(word for counts in texts for word in counts if len(word) <= WORD_CHARS)
    least = LEAST_TEXTS if len(texts) > LEAST_TEXTS else 1
    often = sorted(
        (word for word, number in pages_with.items() if number >= least), key=lambda word: (-pages_with[word], word)
    )[:WORDS_MOST]
    words = sorted(often)
    counts_of = np.array([pages_with[word] for word in words], dtype=np.float64)
    return Space(
        {word: place for place, word in enumerate(words)},
        np.log((1 + len(texts)) / (1 + counts_of)) + 1,
    )


def rows_of(texts: Sequence[Counts], space: Space) -> csr_array:
    """tf-idf vectors, float64[n, v]: (1 + ln of the count) times rarity; rows of length 1, or zero."""
    starts, columns, values = [0], list[Ints32](), list[Floats]()
    for counts in texts:
        entries = np.array(
            [(space.places[word], times) for word, times in counts.items() if word in space.places], dtype=np.int64
        ).reshape(-1, 2)
        row = (1 + np.log(entries[:, 1])) * space.rarities[entries[:, 0]]
        columns.append(entries[:, 0].astype(np.int32))
        values.append(row / max(float(np.sqrt(row @ row)), 1e-12))
        starts.append(starts[-1] + len(entries))
    data = np.concatenate([*values, np.zeros(0)])
    return csr_array(
        (data, np.concatenate([*columns, np.zeros(0, np.int32)]), np.array(starts, dtype=np.int32)),
        shape=(len(texts), len(space.places)),
    )


# A linear support vector machine with squared hinge and ridge, solved by L-BFGS. It is strictly convex, so the weights
# do not depend on the solver.


class LinearWeights(NamedTuple):
    """The score of a row is row @ words + bias."""

    words: Floats
    bias: float


def fit(rows: csr_array, labels: Mask, cost: float = 1.0) -> LinearWeights:
    """The weights that minimise half their squared norm plus cost times the losses.

    rows: n x v. labels: n.
    """
    signs = np.where(labels, 1.0, -1.0)
    columns = rows.T.tocsr()

    def loss(at: Floats) -> tuple[float, Floats]:
        short = np.maximum(0.0, 1.0 - signs * (rows @ at[:-1] + at[-1]))
        pull = -2.0 * cost * short * signs
        gradient = np.append(at[:-1] + columns @ pull, pull.sum())
        return float(cost * (short @ short) + 0.5 * (at[:-1] @ at[:-1])), gradient

    start = np.zeros(rows.shape[1] + 1)
    at: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS, "ftol": TOLERANCE}).x
    return LinearWeights(at[:-1], float(at[-1]))


# The threshold is the mean of two: the best one on bootstrap samples of the examples, and the best one for the share of
# positives where the topic is used, which is mostly smaller. The background shows that share; without it, RARER is
# assumed. With three times as many negatives as among the examples, F is .78 (.75 without the correction), with
# positives of other branches .76 (.75). The second threshold alone has .79 and .60. Measured by `quality/relevance`.

# Folds of the cross-validation; with more than MANY examples fewer, since the folds then differ little
FOLDS, FEWER_FOLDS, MANY = 5, 3, 3_000


class Examples(NamedTuple):
    """Distinct examples ordered by digest, so that the order of input does not matter."""

    items: tuple[Example, ...]
    marks: tuple[ExampleMark, ...]
    counts: tuple[Mapping[str, int], ...]
    labels: Mask


class TrainedTopic(NamedTuple):
    """A topic, with the data that its evaluation needs."""

    topic: Topic
    space: Space
    rows: csr_array
    chances: Floats  # of each example, predicted by a model that was not trained on it


def examples_of(given: Sequence[Example]) -> Examples:
    """Drops duplicates and examples without words. Raises UsageError if a text is both positive and negative."""
    examples: dict[str, tuple[Example, Mapping[str, int]]] = {}
    for example in given:
        digest = md5(example.text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
        if digest in examples and examples[digest][0].positive is not example.positive:
            raise UsageError(
                f"{example.name or example.text[:60]!r} is both a positive and a negative example: remove one of them"
            )
        if digest not in examples and (counts := word_counts(example.text)):
            examples[digest] = (example, counts)
    digests = sorted(examples)
    items = tuple(examples[digest][0] for digest in digests)
    marks = tuple(ExampleMark(digest, item.positive, item.source) for digest, item in zip(digests, items, strict=True))
    return Examples(
        items,
        marks,
        tuple(examples[digest][1] for digest in digests),
        np.array([item.positive for item in items], dtype=np.bool_),
    )


def train(name: str, examples: Examples, background: Sequence[Mapping[str, int]] = ()) -> TrainedTopic:
    """Trains a topic and computes its cross-validated scores.

    background: word counts of unlabelled pages. Raises UsageError if there are only positives or only negatives.
    """
    space = space_of(examples.counts)  # with the background's words too, average precision falls from .82 to .81
    return train_on_rows(name, examples, space, rows_of(examples.counts, space), rows_of(background, space))


def train_on_rows(name: str, examples: Examples, space: Space, rows: csr_array, background: csr_array) -> TrainedTopic:
    """As `train`, from rows that were already computed.

    rows, background: vectors of the examples and of unlabelled pages.
    """
    labels = examples.labels
    if not labels.any() or labels.all():
        kind = "positive" if not labels.any() else "negative"
        raise UsageError(
            f'there is no {kind} example with words in it: give some (a folder, a page of the collection, search:"...")'
        )
    folds, machine = folds_of(labels), fit(rows, labels)
    scores = rows @ machine.words  # used if there are too few examples for cross-validation
    for fold in range(int(folds.max()) + 1 if folds.any() else 0):
        rest, own = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        part = fit(rows[rest], labels[rest])
        scores[own] = rows[own] @ part.words + part.bias - machine.bias
    threshold = usual_threshold(labels, scores)
    if is_background_large := background.shape[0] >= SEEN_LEAST:
        seen = background_of(labels, scores, background @ machine.words)
        threshold = (threshold + seen.threshold()) / 2
    else:
        threshold = (threshold + usual_threshold(labels, scores, RARER)) / 2
    steepness = steepness_of(labels, scores - threshold)
    chances = _chances(steepness * (scores - threshold))
    expected = scores_of(labels, chances, RARER)
    if is_background_large:
        # positives of other sources look like negatives, so few are expected: then the examples count too. Announced
        # and real F differ by .08 on `subjects` (.11 by the background alone), .06 on `corpora` (.06)
        trust = min(1.0, 2 * float(seen.chances.mean() / labels.mean()))
        precision, recall = (
            trust * estimated + (1 - trust) * counted
            for estimated, counted in zip(seen.precision_recall(threshold), expected[:2], strict=True)
        )
        expected = expected._replace(precision=precision, recall=recall, f=_f(precision, recall))
    topic = Topic(
        name=name,
        words=tuple(space.places),
        rarities=space.rarities.astype(np.float32),
        weights=machine.words.astype(np.float32),
        usual=float(np.median(scores[~labels])),
        threshold=threshold,
        steepness=steepness,
        examples=examples.marks,
        background=background.shape[0],
        report=TopicReport(expected, f_interval(int(labels.sum()), expected), (), (), (), ()),
    )
    return TrainedTopic(topic, space, rows, chances)


def folds_of(labels: Mask) -> Ints:
    """The fold of each example, stratified; all 0 if there are too few for two folds."""
    most = FOLDS if len(labels) <= MANY else FEWER_FOLDS
    folds = min(most, int(labels.sum()), int((~labels).sum()))
    fold_of = np.zeros(len(labels), dtype=np.int64)
    if folds > 1:
        for kind in (labels, ~labels):
            fold_of[kind] = np.arange(int(kind.sum())) % folds
    return fold_of


def _chances(distances: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -distances))


# If the negatives come from another source than the positives, the model learns the difference between the sources: F
# is .99 on the examples, and the topic fails elsewhere. Four warning signs: function words alone separate the examples;
# a few words are on nearly all pages of one class; texts of one class are much longer; a source of positives is not
# recognised when it was left out.


def assess(model: TrainedTopic, examples: Examples) -> Topic:
    """The topic with its full report."""
    telling, held_out = _characteristic_words(model, examples), _held_out_recall(model, examples)
    report = replace(model.topic.report, curve=_curve(model, examples), held_out=held_out, telling=telling)
    return replace(model.topic, report=replace(report, warnings=tuple(_warnings(model, examples, report))))


def _characteristic_words(model: TrainedTopic, examples: Examples) -> tuple[TellingWord, ...]:
    """The words that contribute most to the score of a text that has them once."""
    topic, labels = model.topic, examples.labels
    weights, words = topic.weights.astype(np.float64), topic.words
    shares = _shares(model, labels)
    # weighted by how often the word occurs
    strength = weights * model.space.rarities * np.where(weights > 0, shares[0], shares[1])
    order = np.argsort(-strength, kind="stable")
    chosen = [at for at in order[:TELLING] if strength[at] > 0] + [
        at for at in order[::-1][:TELLING] if strength[at] < 0
    ]
    return tuple(
        TellingWord(words[at], float(weights[at]), float(shares[0][at]), float(shares[1][at])) for at in chosen
    )


def _curve(model: TrainedTopic, examples: Examples) -> tuple[tuple[int, float], ...]:
    """Learning curve: F on the remaining examples after training on the first `size` positives and proportionally many
    negatives.
    """
    labels, points = examples.labels, []
    positives, negatives = np.flatnonzero(labels), np.flatnonzero(~labels)
    for size in CURVE:
        against = max(size, round(size * len(negatives) / len(positives)))
        if len(positives) - size < max(CURVE_FEWEST_LEFT, size // 2) or len(negatives) - against < CURVE_FEWEST_LEFT:
            break
        own = np.sort(np.concatenate([positives[:size], negatives[:against]]))
        rest = np.setdiff1d(np.arange(len(labels)), own)
        part = train("", select_examples(examples, own))
        chances = Judge(part.topic).judge([examples.items[at].text for at in rest])
        points.append((size, scores_of(labels[rest], chances).f))
    return tuple(points)


def _held_out_recall(model: TrainedTopic, examples: Examples) -> tuple[tuple[str, float], ...]:
    """For each source with enough positives: recall on them of a model trained on the other sources."""
    sources = np.array([item.source for item in examples.items])
    own = Counter(sources[examples.labels].tolist())
    named = [
        source
        for source, number in own.most_common(4)
        if number >= HELD_OUT_LEAST and len(own) > 1 and own.total() - number >= HELD_OUT_LEAST
    ]
    result = []
    for source in named:
        left_out = (sources == source) & examples.labels
        part = train("", select_examples(examples, np.flatnonzero(~left_out)))
        chances = Judge(part.topic).judge([examples.items[at].text for at in np.flatnonzero(left_out)])
        result.append((source, float((chances >= 0.5).mean())))
    return tuple(result)


# Nine rules were simulated with 20 labels on eight labelled tasks, by `quality/relevance/measure.py --labels`: this
# rule .784 (F) and .884 (average precision), the most uncertain page .754 and .848, pages unlike earlier pages .758 and
# .856, the most likely page .744 and .875, the last two in turn .771 and .879.
def next_question(chances: Floats, answers: Sequence[bool]) -> int:
    """Index of the next page to label: the most uncertain one, or the most likely while under half of the answers are
    yes.

    chances: of the candidates, at least one. answers: so far.
    """
    return int(chances.argmax() if 2 * sum(answers) < len(answers) else abs(chances - 0.5).argmin())


def select_examples(examples: Examples, places: NDArray[np.intp]) -> Examples:
    """The examples at the given indices."""
    return Examples(
        tuple(examples.items[at] for at in places),
        tuple(examples.marks[at] for at in places),
        tuple(examples.counts[at] for at in places),
        examples.labels[places],
    )


def _warnings(model: TrainedTopic, examples: Examples, report: TopicReport) -> Iterator[str]:
    labels = examples.labels
    if model.topic.background < SEEN_LEAST:
        yield (
            f"fewer than {SEEN_LEAST} other pages as background: threshold and F assume {RARER:.0f} times as many "
            "pages outside the topic as among the examples. Train it in a collection of pages that it will judge."
        )
    if min(labels.sum(), (~labels).sum()) < FEW:
        return
    if (f := common_words_tell(model, labels)) >= COMMON_TELL:
        yield (
            f"the {COMMON_WORDS} most frequent words, which belong to no topic, separate the "
            f"examples with F {f:.2f}:"
            " the negatives differ from the positives by source or style. Add negatives from "
            "the source of the positives."
        )
    if len(marks := _marks(model, labels)) >= MARKS_FEWEST:
        yield (
            f"words on nearly all examples of one class and few of the other: {', '.join(marks[:8])}. A site's own "
            "words? Then give pages of it as both."
        )
    lengths = [
        median(
            sum(counts.values())
            for counts, label in zip(examples.counts, labels.tolist(), strict=True)
            if label is kind
        )
        for kind in (True, False)
    ]
    if max(lengths) > LENGTHS_APART * max(min(lengths), 1):
        yield (
            f"positive examples have {lengths[0]:.0f} words, negative ones {lengths[1]:.0f} (medians): "
            "the model may have learned the length."
        )
    inside = report.scores.recall
    for source, recall in report.held_out:
        if recall < inside - RECALL_LOSS:
            yield (
                f"trained without {source}, the topic finds only {recall:.0%} of its pages (with it {inside:.0%}): the "
                "sources have different content."
            )


def common_words_tell(model: TrainedTopic, labels: Mask) -> float:
    """Best cross-validated F of a model of the most frequent words only."""
    texts = np.bincount(model.rows.indices, minlength=model.rows.shape[1])
    columns = np.sort(np.argsort(-texts, kind="stable")[:COMMON_WORDS])
    rows, folds, scores = model.rows[:, columns].tocsr(), folds_of(labels), np.zeros(len(labels))
    for fold in range(int(folds.max()) + 1):
        rest = np.flatnonzero(folds != fold)
        weights = fit(rows[rest], labels[rest], COMMON_COST)
        scores[folds == fold] = rows[np.flatnonzero(folds == fold)] @ weights.words + weights.bias
    return scores_of(labels, np.where(scores > best_threshold(labels, scores), 1.0, 0.0)).f


def _shares(model: TrainedTopic, labels: Mask) -> tuple[Floats, Floats]:
    """float64[v] twice: the share of positive and of negative examples with each word."""
    rows = model.rows
    has = csr_array((np.ones(len(rows.data)), rows.indices, rows.indptr), shape=rows.shape)
    inside: Floats = has[np.flatnonzero(labels)].sum(axis=0) / max(int(labels.sum()), 1)
    outside: Floats = has[np.flatnonzero(~labels)].sum(axis=0) / max(int((~labels).sum()), 1)
    return inside, outside


def _marks(model: TrainedTopic, labels: Mask) -> list[str]:
    """Words that mark one class."""
    many, few = MARK_SHARES
    inside, outside = _shares(model, labels)
    marks = ((inside >= many) & (outside <= few)) | ((outside >= many) & (inside <= few))
    words = list(model.space.places)
    return [words[at] for at in np.flatnonzero(marks)]
