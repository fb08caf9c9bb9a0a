"""Compares extracted content with labelled content."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from periplus.model.page import TEXT_PARTS, Block, BlockKind, Part

COMMON_SHARE = 0.3  # share of a site's pages, at least two, that contain a line of its template
# mark, least content recall, least share of the template that is removed
MARKS = ((5, 0.98, 0.90), (4, 0.95, 0.75), (3, 0.90, 0.50))
_WORD = re.compile(r"\w+")


class SiteScore(NamedTuple):
    """Scores of a site: removal of its template, and recall of its content."""

    removed: float  # share of words of template lines, outside the gold, that are removed
    recall: float  # share of the gold words on the page that are kept
    mark: int  # 2 to 5


def words(text: str) -> Counter[str]:
    """Counts of words."""
    return Counter(_WORD.findall(text))


def word_f1(found: Counter[str], gold: Counter[str]) -> float:
    """2 x common / (found + gold), as bags of words; two empty bags agree."""
    size = found.total() + gold.total()
    return 2 * (found & gold).total() / size if size else 1.0


def is_text(block: Block) -> bool:
    """Whether it belongs to the page's text."""
    return block.kind not in (BlockKind.TITLE, BlockKind.ALT)


def kept(blocks: Sequence[Block], parts: Sequence[Part]) -> Counter[str]:
    """The words of the content."""
    return words(
        "\n".join(
            block.text for block, part in zip(blocks, parts, strict=True) if part in TEXT_PARTS and is_text(block)
        )
    )


def site_score(pages: Sequence[tuple[Sequence[Block], Sequence[Part], Counter[str]]]) -> SiteScore | None:
    """Blocks, parts and gold of a site's pages. None if no line is repeated."""
    carried = Counter(text for blocks, _, _ in pages for text in {block.text for block in blocks if is_text(block)})
    least = max(2.0, COMMON_SHARE * len(pages))
    template = gone = gold_words = gold_kept = 0
    for blocks, parts, gold in pages:
        texts = [(block.text, part) for block, part in zip(blocks, parts, strict=True) if is_text(block)]
        common = words("\n".join(text for text, _ in texts if carried[text] >= least)) - gold
        left = words("\n".join(text for text, part in texts if carried[text] >= least and part in TEXT_PARTS)) - gold
        there = words("\n".join(text for text, _ in texts)) & gold
        template += common.total()
        gone += common.total() - left.total()
        gold_words += there.total()
        gold_kept += (kept(blocks, parts) & there).total()
    if not template:
        return None
    removed, recall = gone / template, gold_kept / gold_words if gold_words else 1.0
    mark = next(
        (mark for mark, least_recall, least_gone in MARKS if recall >= least_recall and removed >= least_gone), 2
    )
    return SiteScore(removed, recall, mark)
