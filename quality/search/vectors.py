"""Do vectors of pages, in addition to words, answer more questions to a manual?

The questions of `questions.py`, by words, by vectors, and by both with their ranks fused. The vectors need
no network: latent semantic analysis of each manual by itself (stems, 1 + log of counts, inverse document
frequency, a truncated singular value decomposition), of whole pages, or of passages of 200 words of which the nearest
counts. They are trained on the manual only: a model trained on more text may do better.

    python quality/search/vectors.py [--root FOLDER]...
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

sys.path.insert(0, str(Path(__file__).parent))

from manuals import Manual, index_of, manuals
from questions import Answering, ours, places, questions, shown

from periplus.document.words import forms, table
from periplus.retrieval import vectors
from periplus.retrieval.asking import MatchWindow, Searcher
from periplus.settings import Searching

DIMENSIONS = 200
STRETCH = 200  # words
Embedding = Callable[[str], list[float]]


def texts_of(manual: Manual, *, in_stretches: bool) -> list[tuple[str, list[str]]]:
    """(URL, stems) of each page, or of each stretch of one, which begins with the title."""
    stems, rows = table(manual.language), []
    for page in manual.pages:
        title = [stems[form] for form in forms(page.title)]
        words = [stems[form] for form in forms("\n".join(page.blocks.texts()))]
        starts = range(0, len(words), STRETCH) if in_stretches and words else (0,)
        most = STRETCH if in_stretches else len(words)
        rows += [(str(page.url), [*title, *words[start : start + most]]) for start in starts]
    return rows


def embedded(manual: Manual, rows: Sequence[tuple[str, list[str]]]) -> tuple[NDArray[np.float32], Embedding]:
    """A vector for each row, and the function that embeds a question."""
    stems, counts = table(manual.language), [Counter(words) for _, words in rows]
    held = Counter(word for count in counts for word in count)
    places = {word: place for place, word in enumerate(sorted(word for word in held if held[word] > 1))}
    rarity = np.array([np.log(len(rows) / held[word]) for word in places])

    def weighed(some: Sequence[Counter[str]]) -> sparse.csr_matrix:
        cells = [
            (row, places[word], (1 + np.log(times)) * rarity[places[word]])
            for row, count in enumerate(some)
            for word, times in count.items()
            if word in places
        ]
        lines, columns, values = zip(*cells, strict=True) if cells else ((), (), ())
        matrix = sparse.csr_matrix((values, (lines, columns)), (len(some), len(places)), np.float64)
        lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1)).A1
        return sparse.diags(1 / np.maximum(lengths, 1e-12)) @ matrix

    matrix = weighed(counts)
    _, _, axes = svds(matrix, min(DIMENSIONS, min(matrix.shape) - 2), random_state=7)

    def embed(text: str) -> list[float]:
        return (weighed([Counter(stems[form] for form in forms(text))]) @ axes.T)[0].tolist()

    return (matrix @ axes.T).astype(np.float32), embed


def answerings(folder: Path, manual: Manual, searcher: Searcher, *, in_stretches: bool) -> dict[str, Answering]:
    rows = texts_of(manual, in_stretches=in_stretches)
    matrix, embed = embedded(manual, rows)
    np.save(folder / "some.npy", matrix)
    (folder / "some.txt").write_text("\n".join(url for url, _ in rows), "utf-8")
    vectors.take_in(folder, folder / "some.npy", len, lambda read: None)
    has = vectors.open_vectors(folder)
    assert has is not None

    def by_vectors(text: str) -> Sequence[Sequence[int]]:
        vector = embed(text)
        return [(page,) for page, _ in has.nearest(vector, 10, lambda pages: pages)] if any(vector) else []

    def by_both(text: str) -> Sequence[Sequence[int]]:
        vector = embed(text)
        near = (lambda most, holds: has.nearest(vector, most, holds)) if any(vector) else None
        answer = searcher.search(text, MatchWindow(10), lambda ids: [0.0] * len(ids), near)
        return [(match.url_id, *match.twins) for match in answer.matches]

    what = "stretches" if in_stretches else "pages"
    return {f"vectors of {what}": by_vectors, f"words and vectors of {what}": by_both}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--root", type=Path, action="append", default=[], help="Where packages were unpacked.")
    given = options.parse_args()
    roots = [*given.root, *(Path(named) for named in filter(None, [os.environ.get("MANUALS")])), Path("/")]
    asked, together = questions(), dict[tuple[str, str], list[int]]()
    for manual in manuals(roots, {question.manual for question in asked}):
        own = [question for question in asked if question.manual == manual.name]
        with tempfile.TemporaryDirectory() as name:
            index_of(Path(name), manual.pages)
            searcher = Searcher(Path(name), Searching())
            ways = {"words": ours(searcher)}
            for in_stretches in (False, True):
                ways |= answerings(Path(name), manual, searcher, in_stretches=in_stretches)
                for way in list(ways) if in_stretches else list(ways)[:3]:
                    if (manual.name, way) not in together:
                        together[manual.name, way] = places(manual, own, ways[way])
                        print(shown(f"{manual.name}, {way}", together[manual.name, way]), flush=True)
    for way in ways:
        print(shown(way, [place for (_, name), some in together.items() if name == way for place in some]))


if __name__ == "__main__":
    main()
