"""What does a topic learn from one more example, without the ones before?

Logistic regression on hashed words, one step an example, longer steps at first. Both kinds weigh the same: a step is scaled by how rare its kind was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.topic.words import bucket, word_counts
from periplus.model.topic import Example, Floats32, Topic

BUCKETS = 1 << 18  # 1 MB: of 60,000 words a fifth share theirs
ROUNDS = 4  # through the examples at first; of 2, 4, 8 the least that reached the F of the last
STEP, SLOWING = 8.0, 0.02  # a step is STEP / (1 + SLOWING examples seen)
KIND_MOST = 10.0  # times that a step of the rarer kind is longer, at most


class Table(NamedTuple):
    """Weights by bucket."""

    weights: Floats32
    bias: float


class Input(NamedTuple):
    """A text: the buckets of its words and their values, of length 1."""

    places: NDArray[np.int64]
    values: Floats32


def input_of(counts: Mapping[str, int]) -> Input:
    """A text as the table takes it."""
    places = np.array([bucket(word, BUCKETS) for word in counts], dtype=np.int64)
    values = 1.0 + np.log(np.array(list(counts.values()), dtype=np.float64))
    return Input(places, (values / max(float(np.sqrt(values @ values)), 1e-12)).astype(np.float32))


def chance(table: Table, text: Input) -> float:
    """That the text belongs to the topic."""
    return 1.0 / (1.0 + exp(-float(np.clip(table.weights[text.places] @ text.values + table.bias, -60, 60))))


def taught(examples: Sequence[tuple[Input, bool]]) -> Table:
    """The table after some rounds through the examples, one of each kind in turn as far as they last."""
    table = Table(np.zeros(BUCKETS, np.float32), 0.0)
    mixed = _mixed(examples)
    positives = sum(label for _, label in mixed)
    for turn in range(ROUNDS):
        for at, (text, label) in enumerate(mixed):
            kind = len(mixed) / (2 * max(positives if label else len(mixed) - positives, 1))
            table = _step(table, text, label, min(kind, KIND_MOST) * STEP / (1 + SLOWING * (turn * len(mixed) + at)))
    return table


def learned_on(topic: Topic, example: Example) -> Topic:
    """The topic after one more example, marked by nothing: it keeps no digest of it."""
    table = _step(
        Table(topic.hashed.copy(), -topic.threshold), input_of(word_counts(example.text)), example.positive, STEP / (1 + SLOWING * len(topic.examples))
    )
    return replace(topic, hashed=table.weights, threshold=-table.bias)


def _mixed(examples: Sequence[tuple[Input, bool]]) -> list[tuple[Input, bool]]:
    """Both kinds spread evenly, for what came last weighs most."""
    places = {kind: [at for at, (_, label) in enumerate(examples) if label is kind] for kind in (True, False)}
    order = sorted((rank / len(own), at) for own in places.values() for rank, at in enumerate(own))
    return [examples[at] for _, at in order]


def _step(table: Table, text: Input, label: bool, length: float) -> Table:
    pull = float(length * (label - chance(table, text)))
    np.add.at(table.weights, text.places, np.float32(pull) * text.values)
    return Table(table.weights, table.bias + 0.1 * pull)
