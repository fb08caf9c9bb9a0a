"""What can be measured of each block, on its page and in its site, that tells content from navigation?"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from periplus.analyse.content import letters
from periplus.analyse.content.evidence import Seen
from periplus.analyse.content.paths import PathFacts, facts
from periplus.model.page import Block, BlockKind, Position

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.intp]
Measures = list[npt.NDArray[np.generic]]  # of one length: a number, or yes and no, for each block

_KINDS = {kind: number for number, kind in enumerate(BlockKind)}
_POSITIONS = {position: number for number, position in enumerate(Position)}
_LONG_TITLE_WORDS = 40  # what is longer is no headline
_WORD = re.compile(r"\w+")


class Page:
    """Arrays that several measures of one page share."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        texts = [block.text for block in blocks]
        self.kind: Ints = np.array([_KINDS[block.kind] for block in blocks], dtype=np.intp)
        self.letters, self.first, self.last = letters.counts(texts)
        chars = self.letters.sum(axis=1)
        links = np.minimum(np.array([block.link_chars for block in blocks], dtype=np.float32), chars)
        wide = self.letters[:, letters.WIDE]
        self.words: Floats = 1 + self.letters[:, letters.SPACE] + wide / np.float32(2)
        self.words[(self.kind == _KINDS[BlockKind.TITLE]) | (self.kind == _KINDS[BlockKind.ALT])] = 0
        self.chars = chars
        self.linked = links / chars
        self.plain: Floats = self.words * (1 - self.linked)
        self.paths: list[PathFacts] = [facts(block.path) for block in blocks]
        self.total = max(float(self.words.sum()), 1.0)
        self.owner, self.container = _containers(self.paths)
        starts = np.zeros(len(blocks), dtype=np.intp)
        np.cumsum([len(path.containers) for path in self.paths[:-1]], out=starts[1:])
        self.start = starts
        self.depths: Ints = np.array([len(path.containers) for path in self.paths], dtype=np.intp)

    def container_at(self, level: int) -> Ints:
        """The container of each block that is so many levels out, at most its outermost."""
        return self.container[self.start + np.minimum(level, self.depths - 1)]

    def sums(self, values: Floats) -> npt.NDArray[np.float64]:
        """The values summed over each container."""
        return np.bincount(self.container, weights=values[self.owner]).astype(np.float64)


def _containers(paths: Sequence[PathFacts]) -> tuple[Ints, Ints]:
    number: dict[int, int] = {}
    numbers: dict[int, list[int]] = {}  # by path: a page has some tens of them, for hundreds of blocks
    container: list[int] = []
    for path in paths:
        known = numbers.get(path.key)
        if known is None:
            known = numbers[path.key] = [number.setdefault(key, len(number)) for key in path.containers]
        container += known
    owner = np.repeat(np.arange(len(paths), dtype=np.intp), [len(path.containers) for path in paths])
    return owner, np.array(container, dtype=np.intp)


def of_blocks(page: Page, blocks: Sequence[Block]) -> Measures:
    """What each block shows by itself."""
    c, words = page.letters, np.maximum(page.words, 1)
    wordy = c[:, letters.LOWER] + c[:, letters.UPPER]
    n = len(blocks)
    kinds = np.eye(len(_KINDS), dtype=np.float32)[page.kind]
    positions = np.eye(len(_POSITIONS), dtype=np.float32)[[_POSITIONS[block.position] for block in blocks]]
    before = np.cumsum(page.words) - page.words
    index = np.arange(n, dtype=np.float32)
    return [
        np.log1p(page.words),
        np.log1p(page.chars),
        page.linked,
        np.log1p(page.plain),
        c[:, letters.COMMA] / words,
        c[:, letters.STOP] / words,
        np.log1p(c[:, letters.STOP]),
        np.log1p(c[:, letters.COMMA]),
        page.last == letters.STOP,
        page.last == letters.COMMA,
        page.first == letters.UPPER,
        c[:, letters.DIGIT] / page.chars,
        c[:, letters.UPPER] / (wordy + 1),
        c[:, letters.MARK] / page.chars,
        c[:, letters.MARK] > 0,
        c[:, letters.OTHER] / page.chars,
        c[:, letters.WIDE] / page.chars,
        np.minimum(wordy / words, 20),
        *kinds.T,
        *positions.T,
        np.array([block.level for block in blocks], dtype=np.float32),
        page.depths.astype(np.float32),
        index / n,
        np.log1p(index),
        np.log1p(n - 1 - index),
        before / page.total,
        np.log1p(page.total - before),
        np.full(n, np.log1p(n)),
        np.full(n, np.log(page.total)),
        np.full(n, page.plain.sum() / page.total),
    ]


def _title_overlap(blocks: Sequence[Block], page: Page) -> tuple[Floats, Floats]:
    title = next((set(_WORD.findall(block.text.lower())) for block in blocks if block.kind is BlockKind.TITLE), set())
    part = np.zeros(len(blocks), dtype=np.float32)
    share = np.zeros(len(blocks), dtype=np.float32)
    if title:
        for number in np.flatnonzero((page.words > 0) & (page.words <= _LONG_TITLE_WORDS)).tolist():
            text = blocks[number].text.lower()
            words = set(_WORD.findall(text)) if any(map(text.__contains__, title)) else ()  # most blocks have none of the title's
            if words:
                common = len(words & title)
                part[number], share[number] = common / len(words), common / len(title)
    return part, share


def of_headline(page: Page, blocks: Sequence[Block]) -> Measures:
    """Where the block stands to what seems to be the page's headline."""
    part, share = _title_overlap(blocks, page)
    n = len(blocks)
    score = part * share
    level = np.array([block.level for block in blocks])
    best = int(np.argmax(score * (1 + 0.3 * (level == 1) + 0.2 * (level > 0)))) if n else 0
    found = float(score[best]) if n else 0.0
    heads = np.flatnonzero(level == 1)
    h1 = int(heads[0]) if len(heads) else 0
    index = np.arange(n)
    return [
        part,
        share,
        score,
        np.full(n, found),
        np.sign(index - best) * np.log1p(np.abs(index - best)) * (found > 0.2),
        np.full(n, min(len(heads), 3)),
        np.sign(index - h1) * np.log1p(np.abs(index - h1)) * (len(heads) > 0),
    ]


def of_containers(page: Page, seen: Seen) -> Measures:
    """What the containers hold in which a block stands."""
    words, plain = page.sums(page.words), page.sums(page.plain)
    blocks = np.bincount(page.container)
    again = page.sums(page.words * (seen.text_pages > 0))
    long = page.sums(page.plain * (page.plain >= 10))
    out: Measures = []
    for level in (0, 1, 2, 3, 5):
        at = page.container_at(level)
        out += [np.log1p(plain[at]), 1 - plain[at] / (words[at] + 0.1), long[at] / page.total, again[at] / (words[at] + 0.1)]
        if level < 3:
            out += [np.log1p(blocks[at]), np.log1p(words[at] / blocks[at])]
    for share in (0.3, 0.5, 0.7):
        main = long >= share * max(float(page.plain[page.plain >= 10].sum()), 1.0)
        depth = np.bincount(page.owner, weights=main[page.container], minlength=len(page.words))
        out += [depth, depth.max(initial=0) - depth]
    return out


def of_site(page: Page, seen: Seen) -> Measures:
    """What other pages of the site tell."""
    n = len(page.words)
    mates = np.maximum(seen.path_pages, 0)
    most = _upper_quarter(mates)
    again = seen.text_pages > 0
    weight = page.words
    distinct = seen.path_texts / np.maximum(seen.path_blocks, 1)
    share = np.minimum(seen.text_pages / max(most, 1.0), 1)
    return [
        np.log1p(seen.text_pages),
        share,
        np.minimum(seen.text_pages / np.maximum(mates, 1), 1),
        seen.text_pages / max(seen.pages, 1),
        again,
        np.log1p(mates),
        mates / max(seen.pages, 1),
        distinct,
        np.log1p(seen.path_blocks / np.maximum(mates, 1)),
        np.full(n, np.log1p(seen.pages)),
        np.full(n, np.log1p(most)),
        np.full(n, (weight * again).sum() / page.total),
        np.full(n, (weight * share).sum() / page.total),
        np.full(n, (weight * distinct).sum() / page.total),
        *(window(share, width) for width in (1, 3, 8)),
        *(window(distinct, width) for width in (2, 6)),
    ]


def _upper_quarter(values: Floats) -> float:
    """The 75th percentile, in a quarter of `np.percentile`'s time."""
    ordered = np.sort(values)
    place = 0.75 * (len(ordered) - 1)
    low = int(place)
    return float(ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]))


def window(values: npt.NDArray[np.generic], width: int) -> Floats:
    """The mean over so many blocks on either side, fewer at the ends."""
    total = np.concatenate((np.zeros(1), np.cumsum(values, dtype=np.float64)))
    index = np.arange(len(values))
    low, high = np.maximum(index - width, 0), np.minimum(index + width + 1, len(values))
    means: Floats = ((total[high] - total[low]) / (high - low)).astype(np.float32)
    return means


def of_neighbours(page: Page) -> Measures:
    """What stands before and after."""
    out: Measures = []
    logs = np.log1p(page.plain)
    for step in (-3, -2, -1, 1, 2, 3):
        for values in (logs, page.linked, (page.last == letters.STOP).astype(np.float32)):
            shifted = np.zeros_like(values)
            if step < 0:
                shifted[-step:] = values[:step]
            else:
                shifted[:-step] = values[step:]
            out.append(shifted)
    for width in (4, 10):
        out += [window(logs, width), window(page.linked, width)]
    return out


def of_runs(page: Page) -> Measures:
    """What follows one another on one path, as the lines of a paragraph that `br` parts."""
    keys = np.array([path.key for path in page.paths], dtype=np.uint64)
    begins = np.concatenate((np.ones(1, dtype=bool), keys[1:] != keys[:-1]))
    run = np.cumsum(begins) - 1
    plain, words = np.bincount(run, weights=page.plain), np.bincount(run, weights=page.words)
    most = max(float(page.plain.max(initial=0)), 1.0)
    return [np.log1p(plain[run]), plain[run] / (words[run] + 0.1), np.log1p(np.bincount(run)[run]), page.plain / most, page.plain / page.total]


def of_copies(blocks: Sequence[Block], page: Page) -> Measures:
    """How often the page says the same: a copy for printing or for small screens comes second."""
    before, times = np.zeros(len(blocks), dtype=np.float32), dict[str, int]()
    for number, block in enumerate(blocks):
        if page.words[number]:
            before[number] = times.get(block.text, 0)
            times[block.text] = times.get(block.text, 0) + 1
    again = before > 0
    at = page.container_at(0)
    share = page.sums(page.words * again)[at] / (page.sums(page.words)[at] + 0.1)
    return [np.log1p(before), np.log1p([times.get(block.text, 1) - 1 for block in blocks]), share.astype(np.float32)]


def named(path: str, weigh: Callable[[tuple[str, ...]], float]) -> tuple[float, ...]:
    """How the words that name a path's containers speak for content, as log-odds: the innermost, all, least and most of the outer ones, the last three."""
    steps = [weigh(words) for words in facts(path).words]
    outer = steps[1:] or [0.0]
    return steps[0], sum(steps), min(outer), max(outer), sum(steps[:3])


def matrix(page: Page, blocks: Sequence[Block], seen: Seen, names: Callable[[str], tuple[float, ...]]) -> Floats:
    """float32[m, n]: a row for each measure, a column for each block. names: `named` with weights."""
    rows = [
        *of_blocks(page, blocks),
        *of_headline(page, blocks),
        *of_containers(page, seen),
        *of_site(page, seen),
        *of_neighbours(page),
        *of_runs(page),
        *of_copies(blocks, page),
        *np.array([names(block.path) for block in blocks], dtype=np.float32).T,
    ]
    return np.array(rows, dtype=np.float32)
