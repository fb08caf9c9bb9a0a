"""What do the learnt weights say of a block's measures?

First trees, each oblivious: one question on each level, the same for all nodes of it, so that a tree is six comparisons and a look-up.
Then a small net, which sees the trees' scores of the surroundings too. They are learnt by `quality/extraction/train.py` and shipped as `weights.json`.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

FARTHEST = 4  # spreads from the mean: what lies beyond says no more


class Forest(NamedTuple):
    """So many trees of one depth."""

    measures: npt.NDArray[np.intp]  # [depth, trees]: which measure is asked for
    borders: Floats  # [depth, trees, 1]: whether it is above this
    leaves: Floats  # [trees * 2**depth]: log-odds
    bias: float

    def scores(self, matrix: Floats) -> Floats:
        """float32[n], 0 to 1. matrix: float32[m, n], a row for each measure."""
        trees, n = self.measures.shape[1], matrix.shape[1]
        rows = np.ascontiguousarray(matrix)  # or each level would copy it
        asked, above = np.empty((trees, n), dtype=np.float32), np.empty((trees, n), dtype=np.bool)
        leaf = np.zeros((trees, n), dtype=np.uint8)
        for measure, border in zip(self.measures[::-1], self.borders[::-1], strict=True):
            np.take(rows, measure, axis=0, out=asked, mode="clip")  # "raise" would copy; all measures exist
            np.greater(asked, border, out=above)
            leaf += leaf  # a shift takes NumPy twenty times as long
            leaf += above.view(np.uint8)
        chosen = leaf + np.arange(0, len(self.leaves), len(self.leaves) // trees, dtype=np.uint32)[:, None]
        return _share(self.leaves.take(chosen, out=asked, mode="clip").sum(axis=0) + np.float32(self.bias))


class Net(NamedTuple):
    """One hidden layer."""

    mean: Floats  # [m, 1] of each measure
    scale: Floats  # [m, 1]: one part in its spread
    hidden: Floats  # [h, m]
    hidden_bias: Floats  # [h, 1]
    out: Floats  # [h]
    out_bias: float

    def scores(self, matrix: Floats) -> Floats:
        """float32[n], 0 to 1. matrix: float32[m, n], a row for each measure."""
        inputs = matrix - self.mean
        inputs *= self.scale
        np.clip(inputs, -FARTHEST, FARTHEST, out=inputs)
        hidden = np.maximum(self.hidden @ inputs + self.hidden_bias, 0)
        return _share(self.out @ hidden + np.float32(self.out_bias))


class Weights(NamedTuple):
    """All that was learnt."""

    names: dict[str, float]  # words of paths: log-odds for content
    first: Forest  # of a block by itself, its surroundings, its site
    second: Net  # of the same with the first scores of its surroundings
    threshold: float  # from which score on a block is content


@cache
def weights() -> Weights:
    """The table that is shipped, read once."""
    table = json.loads((files("periplus.analyse.content") / "weights.json").read_text(encoding="utf-8"))
    names = {word: value / 100 for word, value in table["names"].items()}
    return Weights(names, _forest(table["first"]), _net(table["second"]), table["threshold"])


def _forest(table: dict[str, list[list[float]]]) -> Forest:
    measures = np.array(table["measures"], dtype=np.intp).T.copy()
    borders = np.array(table["borders"], dtype=np.float32).T.copy()[:, :, None]
    leaves = (np.array(table["leaves"], dtype=np.float32) / np.float32(10_000)).ravel()
    return Forest(measures, borders, leaves, table["bias"][0][0])


def _net(table: dict[str, list[float]]) -> Net:
    mean, scale, bias, out = (np.array(table[name], dtype=np.float32) for name in ("mean", "scale", "hidden_bias", "out"))
    hidden = np.array(table["hidden"], dtype=np.float32).reshape(len(out), len(mean))
    return Net(mean[:, None], scale[:, None], hidden, bias[:, None], out, table["out_bias"][0])


def _share(odds: Floats) -> Floats:
    return (1 / (1 + np.exp(-np.clip(odds, -30, 30)))).astype(np.float32)
