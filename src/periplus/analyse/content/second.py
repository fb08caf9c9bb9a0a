"""What do the first scores of its neighbours and containers say of a block?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from periplus.analyse.content.features import Floats, Page, window

STRONG_WORDS = 10  # of a block that may begin or end the content


def matrix(page: Page, score: Floats) -> Floats:
    """float32[m, n]: a row for each measure. score: of each block, 0 to 1, by the trees."""
    words = np.maximum(page.words, 0.1).astype(np.float32)
    mass = score * words
    n = len(score)
    odds = np.clip(score, 1e-4, 1 - 1e-4)
    columns: list[npt.NDArray[np.generic]] = [score, np.log(odds / (1 - odds))]
    padded = np.concatenate((np.zeros(3, np.float32), score, np.zeros(3, np.float32)))
    columns += [padded[3 + step : 3 + step + n] for step in (-3, -2, -1, 1, 2, 3)]
    columns += [window(mass, width) / window(words, width) for width in (1, 3, 6, 12)]
    columns += [window(score, width) for width in (2, 6)]
    all_mass = max(float(mass.sum()), 1e-3)
    in_containers, of_containers = page.sums(mass), page.sums(words)
    for level in (0, 1, 2, 3, 4):
        at = page.container_at(level)
        columns += [in_containers[at] / of_containers[at], in_containers[at] / all_mass]
    for share in (0.3, 0.6, 0.85):
        main = in_containers >= share * all_mass
        depth = np.bincount(page.owner, weights=main[page.container], minlength=n)
        columns.append(depth.max(initial=0) - depth)
    strong = np.flatnonzero((score > 0.5) & (page.plain >= STRONG_WORDS))
    first, last = (int(strong[0]), int(strong[-1])) if len(strong) else (0, n - 1)
    index = np.arange(n)
    before = np.cumsum(mass) - mass
    columns += [np.sign(index - at) * np.log1p(np.abs(index - at)) for at in (first, last)]
    columns += [before / all_mass, np.log1p(before), np.log1p(all_mass - before)]
    best = float(np.sort(score)[-3:].mean()) if n else 0.0
    columns += [score / max(best, 0.05), *(np.full(n, value) for value in (best, np.log1p(all_mass), all_mass / page.total, last - first, len(strong)))]
    return np.array(columns, dtype=np.float32)
