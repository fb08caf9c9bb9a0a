"""Reports the pages with the worst scores, with their blocks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from gold import GoldPage

from periplus.model.page import Blocks

PAGES = 40
BLOCKS = 120  # of each page
_TEXT_CHARS, _PATH_CHARS = 70, 60


class Judged(NamedTuple):
    """A page with its held-out scores."""

    set_name: str
    gold: GoldPage
    blocks: Blocks
    share: npt.NDArray[np.float32]  # share of content words of each block
    words: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float32]
    state: str  # knowledge of its site: alone, few, whole
    is_main: bool  # the state with most knowledge of the site
    counts: bool  # included in the figures of its set

    def recall(self, threshold: float) -> float:
        """Share of the content words that are classified as content."""
        content = self.share * self.words
        return float(content[self.scores > threshold].sum() / content.sum()) if content.sum() else 1.0

    def f1(self, threshold: float) -> float:
        """Word F1, from the shares of the blocks."""
        taken = self.scores > threshold
        right, size = (self.share * self.words)[taken].sum(), self.words[taken].sum()
        total = size + (self.share * self.words).sum()
        return float(2 * right / total) if total else 1.0


def write_report(judged: Sequence[Judged], path: Path, threshold: float = 0.33) -> None:
    """Writes the worst pages with their blocks: content (G), misclassified (X), score."""
    worst = sorted(judged, key=lambda page: page.f1(threshold))[:PAGES]
    with path.open("w", encoding="utf-8") as out:
        for page in worst:
            gold_words = int((page.share * page.words).sum())
            out.write(
                f"\n== {page.set_name} {page.gold.site} {page.gold.kind} F1 {page.f1(threshold):.2f} "
                f"recall {page.recall(threshold):.2f}: {gold_words} of {int(page.words.sum())} words are content\n"
            )
            out.writelines(_lines(page, threshold))


def _lines(page: Judged, threshold: float) -> list[str]:
    lines = []
    columns = zip(page.blocks, page.share.tolist(), page.words.tolist(), page.scores.tolist(), strict=True)
    for block, share, words, score in columns:
        if words and len(lines) < BLOCKS:
            marks = ("G" if share > 0.5 else ".") + ("X" if (share > 0.5) != (score > threshold) else " ")
            text = block.text[:_TEXT_CHARS].replace("\n", " ")
            lines.append(f"{marks} {score:.2f} {block.kind:9s} {text!r} {block.path[-_PATH_CHARS:]}\n")
    return lines
