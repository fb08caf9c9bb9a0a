"""What is a topic, learned from examples?

The default joins two linear models, each scaled by the spread of its cross-validated scores: logistic regression, which is the better the more the
pages are like the examples, and log-odds of words, which carry further. Away from the examples' source the first finds too few pages and the second
too many. The threshold is where F is highest in cross-validation, held within the middle between what most pages of the collection score and what
most positive examples do: that is what unlabelled pages are for. Measured by `quality/relevance`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import md5
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from periplus.analyse.topic import linear, online
from periplus.analyse.topic.scoring import best_threshold, scores_of, steepness_of
from periplus.analyse.topic.space import Space, gram_rows, rows_of, space_of
from periplus.analyse.topic.words import word_counts
from periplus.errors import UsageError
from periplus.model.topic import Example, ExampleMark, Method, Topic, TopicReport

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LOGISTIC_COST, SVM_COST = 3.0, 1.0  # of 0.01 to 10 the best out of source by a little; 1 is what the published machine has by default
FOLDS, FEWER_FOLDS, MANY = 5, 3, 3_000  # folds of the cross-validation, of more examples than MANY fewer: they differ little then
LEAST_PLACE, MOST_PLACE = 0.4, 0.5  # of the threshold, from the pages' median (0) to that of the positive examples (1)


class Examples(NamedTuple):
    """Distinct examples in the order of their digests, so that it does not matter in which order they were given."""

    items: tuple[Example, ...]
    marks: tuple[ExampleMark, ...]
    counts: tuple[Mapping[str, int], ...]
    labels: Bools


class Learned(NamedTuple):
    """A topic, with what its assessment needs."""

    topic: Topic
    space: Space
    rows: csr_array
    chances: Floats  # of each example, when it was not learned from


class _Model(NamedTuple):
    """Parts whose sum, each over its scale, is the score."""

    parts: tuple[linear.Weights, ...]

    def scores(self, rows: csr_array) -> Floats:
        """float64[n, parts]."""
        return np.stack([rows @ part.words + part.bias for part in self.parts], axis=1)


def examples_of(given: Sequence[Example]) -> Examples:
    """Without those of no words and repetitions. A text that is given as both is refused: nobody could learn it."""
    found: dict[str, tuple[Example, Mapping[str, int]]] = {}
    for example in given:
        digest = md5(example.text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
        if digest in found and found[digest][0].positive is not example.positive:
            raise UsageError(f"{example.name or example.text[:60]!r} is given both as positive and as negative: take one of them out")
        if digest not in found and (counts := word_counts(example.text)):
            found[digest] = (example, counts)
    digests = sorted(found)
    items = tuple(found[digest][0] for digest in digests)
    marks = tuple(ExampleMark(digest, item.positive, item.source) for digest, item in zip(digests, items, strict=True))
    return Examples(items, marks, tuple(found[digest][1] for digest in digests), np.array([item.positive for item in items], dtype=np.bool_))


def learned(name: str, examples: Examples, background: Sequence[Mapping[str, int]] = (), method: Method = Method.CALIBRATED) -> Learned:
    """The topic with its cross-validated scores. background: words of unlabelled pages. Raises UsageError where one kind of examples is missing."""
    labels = examples.labels
    if not labels.any() or labels.all():
        kind = "positive" if not labels.any() else "negative"
        raise UsageError(f'there is no {kind} example with words in it: give some (a folder, a page of the collection, search:"...")')
    space = space_of([*examples.counts, *background])
    if method is Method.SVM:
        space = space._replace(unknown_rarity=0.0)  # words that are not known are left out of its rows, as is usual
    rows = rows_of(examples.counts, space)
    if method is Method.ONLINE:
        return _learned_online(name, examples, space, rows)
    shared = gram_rows(space) if method is Method.CALIBRATED else None
    folds, model = folds_of(labels), _model(rows, labels, method, shared)
    held_out = model.scores(rows)  # where there are too few examples to leave any out
    for fold in range(int(folds.max()) + 1 if folds.any() else 0):
        rest, own = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        held_out[own] = _model(rows[rest], labels[rest], method, shared).scores(rows[own])
    scales = np.maximum(held_out.std(axis=0), 1e-9)
    scores = (held_out / scales).sum(axis=1)
    seen = (model.scores(rows_of(background, space)) / scales).sum(axis=1) if background else np.zeros(0)
    threshold = 0.0 if method is Method.SVM else _threshold(labels, scores, seen)
    steepness = steepness_of(labels, scores - threshold)
    chances = _chances(steepness * (scores - threshold))
    words = sum((part.words / scale for part, scale in zip(model.parts, scales, strict=True)), np.zeros(len(space.places)))
    bias = sum(part.bias / scale for part, scale in zip(model.parts, scales, strict=True))
    topic = Topic(
        name=name,
        method=method,
        words=tuple(space.places),
        rarities=space.rarities.astype(np.float32),
        weights=words.astype(np.float32),
        hashed=(model.parts[0].grams / scales[0]).astype(np.float32),
        unknown_rarity=space.unknown_rarity,
        usual=float(np.median(scores[~labels]) - bias),
        threshold=float(threshold - bias),
        steepness=steepness,
        examples=examples.marks,
        background=len(background),
        report=TopicReport(scores_of(labels, chances), (), (), (), ()),
    )
    return Learned(topic, space, rows, chances)


def _model(rows: csr_array, labels: Bools, method: Method, shared: csr_array | None) -> _Model:
    if method is Method.SVM:
        return _Model((linear.fitted(rows, labels, SVM_COST, hinge=True),))
    odds = linear.Weights(linear.log_odds(rows, labels), np.zeros(0), 0.0)
    return _Model((linear.fitted(rows, labels, LOGISTIC_COST, grams=shared), odds))


def folds_of(labels: Bools) -> NDArray[np.int64]:
    """Which fold each example is in: as many of both kinds in each; all 0 where there are too few for two folds."""
    most = FOLDS if len(labels) <= MANY else FEWER_FOLDS
    folds = min(most, int(labels.sum()), int((~labels).sum()))
    found = np.zeros(len(labels), dtype=np.int64)
    if folds > 1:
        for kind in (labels, ~labels):
            found[kind] = np.arange(int(kind.sum())) % folds
    return found


def _threshold(labels: Bools, scores: Floats, seen: Floats) -> float:
    high, low = float(np.median(scores[labels])), float(np.median(scores[~labels]))
    if len(seen):
        low = min(low, float(np.median(seen)))
    return float(np.clip(best_threshold(labels, scores), low + LEAST_PLACE * (high - low), low + MOST_PLACE * (high - low)))


def _chances(distances: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -distances))


def _learned_online(name: str, examples: Examples, space: Space, rows: csr_array) -> Learned:
    labels, folds = examples.labels, folds_of(examples.labels)
    inputs = [online.input_of(counts) for counts in examples.counts]
    chances = np.zeros(len(labels))
    for fold in range(int(folds.max()) + 1):
        table = online.taught(
            [(item, label) for item, label, own in zip(inputs, labels.tolist(), folds.tolist(), strict=True) if own != fold or not folds.any()]
        )
        for place in np.flatnonzero(folds == fold):
            chances[place] = online.chance(table, inputs[place])
    table = online.taught(list(zip(inputs, labels.tolist(), strict=True)))
    nothing = np.zeros(0, np.float32)
    report = TopicReport(scores_of(labels, chances), (), (), (), ())
    topic = Topic(name, Method.ONLINE, (), nothing, nothing, table.weights, 1.0, 0.0, -table.bias, 1.0, examples.marks, 0, report)
    return Learned(topic, space, rows, chances)
