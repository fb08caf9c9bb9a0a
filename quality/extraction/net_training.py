"""Trains the small net by gradient descent on the word F1 of whole pages, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from periplus.analyse.content.marking import FARTHEST

Floats = npt.NDArray[np.float32]
HIDDEN = 32
ROUNDS = 12
BATCH = 16  # pages
RATE = 3e-3
DECAY = 1e-3
DROPPED = 0.05  # dropout rate of the measures
_MOST_ERROR = 0.5  # limit of the weight of a block, as a share of the page's words


class Example(NamedTuple):
    """One page."""

    measures: Floats  # [n, m]
    share: Floats  # share of content words in each block
    words: Floats
    gold_words: float
    weight: float


class Learnt(NamedTuple):
    """As `periplus.analyse.content.marking.Net`, not yet transposed."""

    mean: Floats
    spread: Floats
    depths: list[list[Floats]]  # weights and bias of each of two depths


def scaled(measures: Floats, mean: Floats, spread: Floats) -> Floats:
    """The normalised inputs of the net."""
    return np.clip((measures - mean) / spread, -FARTHEST, FARTHEST)


def forward(depths: list[list[Floats]], inputs: Floats) -> tuple[Floats, Floats]:
    """The hidden depth and the shares."""
    hidden = np.maximum(inputs @ depths[0][0] + depths[0][1], 0)
    return hidden, 1 / (1 + np.exp(-np.clip((hidden @ depths[1][0] + depths[1][1])[:, 0], -30, 30)))


def learn(sample: Callable[[np.random.Generator], list[Example]], seeds: Sequence[int] = (0, 1)) -> Learnt:
    """One net that averages the odds of nets with different initial weights, reduced to the size of one net.

    sample: draws the pages of one round.
    """
    first = np.concatenate([example.measures[::5] for example in sample(np.random.default_rng(seeds[0]))])
    mean, spread = first.mean(axis=0), first.std(axis=0) + np.float32(1e-3)
    nets = [_learnt(sample, (mean, spread), seed) for seed in seeds]
    hidden = [np.concatenate([net[0][at] for net in nets], axis=-1) for at in (0, 1)]
    out = np.concatenate([net[1][0] for net in nets]) / np.float32(len(nets))
    return narrowed(Learnt(mean, spread, [hidden, [out, np.mean([net[1][1] for net in nets], axis=0)]]), first)


def narrowed(net: Learnt, measures: Floats, units: int = HIDDEN) -> Learnt:
    """The net with fewer hidden units: drops the unit that the others replace best, repeats, then fits the rest to the
    output of the full net, with most weight near even odds. 32 of 64 units agree on 99.4 % of the blocks.

    measures: inputs of many blocks.
    """
    shown = np.maximum(scaled(measures, net.mean, net.spread) @ net.depths[0][0] + net.depths[0][1], 0)
    odds = (shown @ net.depths[1][0] + net.depths[1][1]).astype(np.float64)
    weight = 1 / np.sqrt(1 + (odds / 2) ** 2)
    columns = np.concatenate((shown, np.ones_like(odds)), axis=1) * weight
    products, sums = columns.T @ columns, (columns.T @ (odds * weight))[:, 0]
    left = list(range(len(sums)))
    while len(left) - 1 > units:
        inverse = np.linalg.inv(_of(products, left))
        costs = (inverse @ sums[left]) ** 2 / np.diag(inverse)
        left.pop(int(costs[:-1].argmin()))
    fitted = np.linalg.solve(_of(products, left), sums[left]).astype(np.float32)
    hidden = [part[..., left[:-1]] for part in net.depths[0]]
    return Learnt(net.mean, net.spread, [hidden, [fitted[:-1, None], fitted[-1:]]])


def _of(products: npt.NDArray[np.float64], left: Sequence[int]) -> npt.NDArray[np.float64]:
    """The submatrix of these columns, regularised."""
    part: npt.NDArray[np.float64] = products[np.ix_(left, left)] + 1e-6 * np.eye(len(left))
    return part


def _learnt(
    sample: Callable[[np.random.Generator], list[Example]], scale: tuple[Floats, Floats], seed: int
) -> list[list[Floats]]:
    """Weights and bias of each of two depths."""
    rng = np.random.default_rng(seed)
    mean, spread = scale
    sizes = (len(mean), HIDDEN, 1)
    depths = [
        [(rng.standard_normal(pair) * np.sqrt(2 / pair[0])).astype(np.float32), np.zeros(pair[1], np.float32)]
        for pair in pairwise(sizes)
    ]
    slow, fast = ([[np.zeros_like(part) for part in depth] for depth in depths] for _ in range(2))
    steps, step = ROUNDS * (len(sample(rng)) // BATCH + 1), 0
    for _ in range(ROUNDS):
        pages = sample(rng)
        order = rng.permutation(len(pages))
        for start in range(0, len(order), BATCH):
            step += 1
            gradients = _gradients(depths, [pages[at] for at in order[start : start + BATCH]], (mean, spread), rng)
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps)) * min(1, step / 50)
            for at, depth in enumerate(depths):
                for part, gradient in enumerate(gradients[at]):  # Adam
                    slow[at][part] = 0.9 * slow[at][part] + 0.1 * gradient
                    fast[at][part] = 0.99 * fast[at][part] + 0.01 * gradient * gradient
                    move = slow[at][part] / (1 - 0.9**step) / (np.sqrt(fast[at][part] / (1 - 0.99**step)) + 1e-8)
                    depth[part] -= rate * (move + (DECAY * depth[part] if part == 0 else 0))
    return depths


def _gradients(
    depths: list[list[Floats]], pages: list[Example], scale: tuple[Floats, Floats], rng: np.random.Generator
) -> list[tuple[Floats, Floats]]:
    inputs = scaled(np.concatenate([page.measures for page in pages]), *scale)
    inputs = inputs * (rng.random(inputs.shape[1], dtype=np.float32) > DROPPED)
    share, words = np.concatenate([page.share for page in pages]), np.concatenate([page.words for page in pages])
    page_of = np.repeat(np.arange(len(pages)), [len(page.words) for page in pages])
    gold = np.array([page.gold_words + 1 for page in pages])
    weight = np.array([page.weight for page in pages]) / len(pages)
    hidden, found = forward(depths, inputs)
    error = (found - share) * np.minimum(words / (gold + 20)[page_of], _MOST_ERROR)  # gradient of the likelihood
    right = np.bincount(page_of, weights=found * share * words, minlength=len(pages))
    size = np.bincount(page_of, weights=found * words, minlength=len(pages)) + gold
    # gradient of 1 - F1
    error += -2 * (share * words / size[page_of] - (right / size**2)[page_of] * words) * found * (1 - found)
    down = (error * weight[page_of]).astype(np.float32)[:, None]
    back = (down @ depths[1][0].T) * (hidden > 0)
    return [(inputs.T @ back, back.sum(axis=0)), (hidden.T @ down, down.sum(axis=0))]
