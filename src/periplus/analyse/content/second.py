"""What do the first scores of its neighbours and containers say of a block?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from periplus.analyse.content.pages import Array, Floats, Pages, signed_distance

STRONG_WORDS = 10  # of a block that may begin or end the content


def matrix(pages: Pages, score: Floats) -> Floats:
    """float32[m, n]: a row for each measure. score: of each block, 0 to 1, by the trees."""
    words = np.maximum(pages.words, 0.1).astype(np.float32)
    mass = score * words
    odds = np.clip(score, 1e-4, 1 - 1e-4)
    rows: list[Array] = [score, np.log(odds / (1 - odds)), *pages.around([score])]
    means = pages.means([mass, words], (1, 3, 6, 12))
    rows += [of_mass / of_words for of_mass, of_words in zip(means[::2], means[1::2], strict=True)]
    rows += pages.means([score], (2, 6))
    rows += list(pages.of_paths(_of_containers(pages, mass, words)))
    rows += _of_pages(pages, score, mass)
    return np.array(rows, dtype=np.float32)


def _of_containers(pages: Pages, mass: Floats, words: Floats) -> list[Array]:
    """For each path."""
    all_mass = _all_mass(pages, mass)
    in_containers, of_containers, of_page = pages.sums(mass), pages.sums(words), all_mass[pages.path_page]
    rows: list[Array] = []
    for level in (0, 1, 2, 3, 4):
        at = pages.container_at(level)
        rows += [in_containers[at] / of_containers[at], in_containers[at] / of_page]
    for share in (0.3, 0.6, 0.85):
        rows.append(pages.within(in_containers >= share * all_mass[pages.container_page])[1])
    return rows


def _of_pages(pages: Pages, score: Floats, mass: Floats) -> list[Array]:
    """Where a block stands in the content of its page as it seems so far, and how much of that there is."""
    is_strong = (score > 0.5) & (pages.plain >= STRONG_WORDS)
    before = np.empty(len(score), dtype=np.float64)  # of float32, a long page's sum went past the whole, and its logarithm was none
    strong: list[tuple[int, int, int]] = []  # of each page the first, the last, and how many
    best = []
    for begin, end in zip(pages.begins.tolist(), pages.ends.tolist(), strict=True):
        np.cumsum(mass[begin:end], out=before[begin:end], dtype=np.float64)
        found = np.flatnonzero(is_strong[begin:end])
        strong.append((int(found[0]), int(found[-1]), len(found)) if len(found) else (0, end - begin - 1, 0))
        best.append(float(np.sort(score[begin:end])[-3:].mean()))
    before -= mass
    first, last, count = np.array(strong).T
    all_mass, most = _all_mass(pages, mass), np.array(best)
    mass_of_page = all_mass[pages.page]
    return [
        *(signed_distance(pages.index - at[pages.page]) for at in (first, last)),
        before / mass_of_page,
        np.log1p(before),
        np.log1p(np.maximum(mass_of_page - before, 0)),  # the whole is rounded otherwise than the parts
        score / np.maximum(most, 0.05).astype(np.float32)[pages.page],
        *pages.of_pages([most, np.log1p(all_mass), all_mass / pages.total.astype(np.float64), last - first, count]),
    ]


def _all_mass(pages: Pages, mass: Floats) -> npt.NDArray[np.float64]:
    return np.maximum(pages.totals(mass).astype(np.float64), 1e-3)
