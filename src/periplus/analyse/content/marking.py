"""Classifies the blocks of a page as content or not, with learnt weights and the scores of neighbours."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from periplus.analyse.content import features
from periplus.analyse.content.counting import add_leaves
from periplus.analyse.content.evidence import (
    COMMENT,
    MENU,
    Array,
    PageEvidence,
    Pages,
    SiteEvidence,
    Traces,
    concatenate,
    signed_distance,
    traces_of,
)
from periplus.analyse.content.naming import BOILERPLATE_SHARE, name_parts
from periplus.model.arrays import Floats, Floats32, Mask
from periplus.model.page import (
    BLOCK_KIND_CODES,
    NO_PUBLICATION,
    POSITION_CODES,
    BlockKind,
    Blocks,
    Part,
    Position,
    Publication,
)

# First a forest of oblivious trees: all nodes of a level share one comparison, so that a tree is six comparisons and a
# look-up. Then a small neural network, which also gets the forest's scores of the surroundings. Trained by
# `quality/extraction/train.py`, shipped as `weights.json`.


_BODY, _MAIN = POSITION_CODES[Position.BODY], POSITION_CODES[Position.MAIN]
_HEADING = BLOCK_KIND_CODES[BlockKind.HEADING]
FARTHEST = 4  # standard deviations from the mean: inputs are clipped there
SURE_PAGES = (
    8  # other pages of the site; two or three of a shop share part of their content, which is too little evidence
)
STRONG_WORDS = 10  # least of a block that can begin or end the content
_MEASURING_BATCH = 8_192  # blocks per batch of measuring, thirty pages or one large one: 6 MB of numbers
_SCORING_BATCH = 8_192  # blocks per batch of scoring: below this the overhead of NumPy calls dominates
UNIT_SHARE = 0.15  # least share of the words of a table that are judged content, for all of it to be content
UNIT_BLOCKS = 3  # smaller ones are judged block by block
LONG_WORDS = 15  # outside links: a long block
KEPT_SHARE = 0.2  # least words of the content, relative to the words of long blocks


class Forest(NamedTuple):
    """Oblivious trees of equal depth. Create with `of`."""

    comparisons: Sequence[tuple[int, int, int]]  # (measure, begin, end): the range of borders that it is compared with
    borders: Floats32  # [c, 1], distinct
    nodes: npt.NDArray[np.intp]  # [depth, trees]: comparison made on each level
    leaves: Floats32  # [trees * 2**depth]: log-odds
    bias: float

    @classmethod
    def of(cls, measures: npt.NDArray[np.intp], borders: Floats32, leaves: Floats32, bias: float) -> Forest:
        """measures: [depth, trees], index of the measure compared. borders: [depth, trees], its threshold."""
        pairs = np.empty(measures.shape, dtype=[("measure", np.intp), ("border", np.float32)])
        pairs["measure"], pairs["border"] = measures, borders
        asked, nodes = np.unique(pairs, return_inverse=True)  # trees share comparisons: 860 of 1,800 are distinct
        begins = np.flatnonzero(np.diff(asked["measure"], prepend=-1)).tolist()
        ends = [*begins[1:], len(asked)]
        comparisons = [(int(asked["measure"][begin]), begin, end) for begin, end in zip(begins, ends, strict=True)]
        return cls(comparisons, asked["border"][:, None].copy(), nodes.reshape(measures.shape), leaves, bias)

    def scores(self, rows: Sequence[Floats32] | Floats32) -> Floats32:
        """float32[n], 0 to 1. rows: of n numbers, one per measure."""
        trees, n = self.nodes.shape[1], len(rows[0])
        above = np.empty((len(self.borders), n), dtype=np.bool)
        for measure, begin, end in self.comparisons:
            np.greater(rows[measure], self.borders[begin:end], out=above[begin:end])
        leaf, asked = np.zeros((trees, n), dtype=np.uint8), np.empty((trees, n), dtype=np.uint8)
        for comparisons in self.nodes[::-1]:
            # "raise" would copy; all indices are valid
            np.take(above.view(np.uint8), comparisons, axis=0, out=asked, mode="clip")
            leaf += leaf  # in NumPy a shift takes twenty times as long
            leaf += asked
        odds = np.zeros(n, dtype=np.float32)
        add_leaves(leaf.data, self.leaves.data, odds.data)
        return _share(odds + np.float32(self.bias))


class Net(NamedTuple):
    """One hidden layer. Create with `of`."""

    low: Floats32  # [m] lower clipping limit of each measure
    high: Floats32  # [m] upper limit
    hidden: Floats32  # [h, m]
    hidden_bias: Floats32  # [h, 1]
    out: Floats32  # [h]
    out_bias: float

    @classmethod
    def of(
        cls, mean: Floats32, scale: Floats32, hidden: Floats32, bias: Floats32, out: Floats32, out_bias: float
    ) -> Net:
        """mean, scale: [m], mean and 1 / standard deviation of each measure.

        The weights apply to standardised measures: [h, m].
        """
        of_measures: Floats32 = (hidden * scale).astype(np.float32)
        reach: Floats32 = (FARTHEST / scale).astype(np.float32)
        shifted: Floats32 = (bias - of_measures @ mean).astype(np.float32)
        return cls(
            mean - reach, mean + reach, of_measures, shifted[:, None], out, out_bias
        )  # fmt: skip

    def scores(self, rows: Sequence[Floats32]) -> Floats32:
        """float32[n], 0 to 1. rows: of n numbers, one per measure."""
        inputs = np.empty((len(self.low), len(rows[0])), dtype=np.float32)
        for row, low, high, clipped in zip(rows, self.low.tolist(), self.high.tolist(), inputs, strict=True):
            np.maximum(row, low, out=clipped)
            np.minimum(clipped, high, out=clipped)
        hidden = self.hidden @ inputs
        hidden += self.hidden_bias
        return _share(self.out @ np.maximum(hidden, 0, out=hidden) + np.float32(self.out_bias))


class Weights(NamedTuple):
    """The learnt weights."""

    names: dict[str, float]  # words in paths: log-odds for content
    first: Forest  # features of a block, its surroundings, its site
    second: Net  # the same, plus the first scores of its surroundings
    threshold: float  # least score of content


@cache
def weights() -> Weights:
    """The shipped weights, loaded once."""
    table = json.loads((files("periplus.analyse.content") / "weights.json").read_text(encoding="utf-8"))
    names = {word: value / 1_000 for word, value in table["names"].items()}
    return Weights(names, _forest(table["first"]), _net(table["second"]), table["threshold"])


def _forest(table: dict[str, list[list[float]]]) -> Forest:
    measures, borders = np.array(table["measures"], dtype=np.intp).T, np.array(table["borders"], dtype=np.float32).T
    leaves = (np.array(table["leaves"], dtype=np.float32) / np.float32(10_000)).ravel()
    return Forest.of(measures, borders, leaves, table["bias"][0][0])


def _net(table: dict[str, list[float]]) -> Net:
    mean, scale, bias, out = (
        np.array(table[name], dtype=np.float32) for name in ("mean", "scale", "hidden_bias", "out")
    )
    hidden = np.array(table["hidden"], dtype=np.float32).reshape(len(out), len(mean))
    return Net.of(mean, scale, hidden, bias, out, table["out_bias"][0])


def _share(odds: Floats32) -> Floats32:
    return (1 / (1 + np.exp(-np.clip(odds, -30, 30)))).astype(np.float32)


def measures_of(pages: Pages, score: Floats32) -> list[Floats32]:
    """Measures of the blocks from the score of each block by the forest, 0 to 1."""
    words = np.maximum(pages.words, 0.1).astype(np.float32)
    mass = score * words
    odds = np.clip(score, 1e-4, 1 - 1e-4)
    rows: list[Array] = [score, np.log(odds / (1 - odds)), *pages.around([score])]
    means = pages.means([mass, words], (1, 3, 6, 12))
    rows += [of_mass / of_words for of_mass, of_words in zip(means[::2], means[1::2], strict=True)]
    rows += pages.means([score], (2, 6))
    rows += list(pages.of_paths(_of_containers(pages, mass, words)))
    rows += _of_pages(pages, score, mass)
    return features.as_floats(rows)


def _of_containers(pages: Pages, mass: Floats32, words: Floats32) -> list[Array]:
    """Rows per path."""
    all_mass = _all_mass(pages, mass)
    in_containers, of_containers, of_page = pages.sums(mass), pages.sums(words), all_mass[pages.path_page]
    rows: list[Array] = []
    for level in (0, 1, 2, 3, 4):
        at = pages.container_at(level)
        rows += [in_containers[at] / of_containers[at], in_containers[at] / of_page]
    for share in (0.3, 0.6, 0.85):
        rows.append(pages.within(in_containers >= share * all_mass[pages.container_page])[1])
    return rows


def _of_pages(pages: Pages, score: Floats32, mass: Floats32) -> list[Array]:
    """Position of a block in the presumed content of its page, and the amount of that content."""
    is_strong = (score > 0.5) & (pages.plain >= STRONG_WORDS)
    # In float32, the sum over a long page exceeded the total, and the logarithm was nan
    before = np.empty(len(score), dtype=np.float64)
    strong: list[tuple[int, int, int]] = []  # for each page: first, last, number
    best = []
    for begin, end in zip(pages.begins.tolist(), pages.ends.tolist(), strict=True):
        np.cumsum(mass[begin:end], out=before[begin:end], dtype=np.float64)
        places = np.flatnonzero(is_strong[begin:end])
        strong.append((int(places[0]), int(places[-1]), len(places)) if len(places) else (0, end - begin - 1, 0))
        best.append(float(np.sort(score[begin:end])[-3:].mean()))
    before -= mass
    first, last, count = np.array(strong).T
    all_mass, most = _all_mass(pages, mass), np.array(best)
    mass_of_page = all_mass[pages.page]
    return [
        *(signed_distance(pages.index - at[pages.page]) for at in (first, last)),
        before / mass_of_page,
        np.log1p(before),
        np.log1p(np.maximum(mass_of_page - before, 0)),  # the total is rounded differently than the parts
        score / np.maximum(most, 0.05).astype(np.float32)[pages.page],
        *pages.of_pages([most, np.log1p(all_mass), all_mass / pages.total.astype(np.float64), last - first, count]),
    ]


def _all_mass(pages: Pages, mass: Floats32) -> Floats:
    return np.maximum(pages.totals(mass).astype(np.float64), 1e-3)


class PageContext(NamedTuple):
    """A page and its site's statistics."""

    blocks: Blocks
    traces: Traces
    seen: PageEvidence
    publication: Publication


def parts_of(
    blocks: Blocks,
    evidence: SiteEvidence | None = None,
    *,
    learnt: bool = True,
    publication: Publication = NO_PUBLICATION,
) -> tuple[Part, ...]:
    """One part per block.

    evidence: statistics of the page's site; without, the page is judged alone. learnt: whether evidence includes the
    page. publication: used to find byline and date.
    """
    return next(parts_of_each([page_context(blocks, evidence, learnt=learnt, publication=publication)]))


def scores_of(blocks: Blocks, evidence: SiteEvidence | None = None, *, learnt: bool = True) -> Floats32:
    """float32[n]: the likelihood that each block is content, 0 to 1."""
    batch = [page_context(blocks, evidence, learnt=learnt)]
    return _scores(batch, _side_by_side(batch)) if blocks else np.zeros(0, dtype=np.float32)


def page_context(
    blocks: Blocks,
    evidence: SiteEvidence | None,
    traces: Traces | None = None,
    *,
    learnt: bool = True,
    publication: Publication = NO_PUBLICATION,
) -> PageContext:
    """As for `parts_of`. traces: those of the page, if already computed."""
    traces = traces or traces_of(blocks)
    seen = (evidence or SiteEvidence()).evidence_of(blocks, traces, counted=learnt and evidence is not None)
    return PageContext(blocks, traces, seen, publication)


def parts_of_each(pages: Iterable[PageContext]) -> Iterator[tuple[Part, ...]]:
    """One part per block for each page; a batch of pages takes half the time of single pages."""
    for batch in _batches(pages):
        full = [page for page in batch if page.blocks]
        parts = _parts_of_full(full) if full else iter(())
        yield from (next(parts) if page.blocks else () for page in batch)


def _parts_of_full(batch: Sequence[PageContext]) -> Iterator[tuple[Part, ...]]:
    """As `parts_of_each`, for pages with blocks."""
    pages, seen = _side_by_side(batch), concatenate([page.seen for page in batch])
    are_repeated = seen.text_pages > (BOILERPLATE_SHARE * seen.pages)[pages.page]
    is_content = _with_whole_units(pages, _scores(batch, pages) > weights().threshold, are_repeated)
    _add_long_blocks(pages, is_content, are_repeated)
    return name_parts(pages, is_content, are_repeated, [(page.blocks, page.publication) for page in batch])


def _side_by_side(batch: Sequence[PageContext]) -> Pages:
    return Pages([page.blocks for page in batch], [page.traces for page in batch])


def _with_whole_units(pages: Pages, is_content: Mask, are_repeated: Mask) -> Mask:
    """Each table and list of definitions is content or not as a whole: keys and heads are short, or links.

    A table with headings lays out the page.
    """
    unit = np.array([path.unit for path in pages.paths], dtype=np.uint64)[pages.path]
    begins = np.diff(unit, prepend=0) != 0
    begins[pages.begins] = True
    starts = begins.nonzero()[0]
    sizes = np.diff(starts, append=len(unit))
    has_heading = np.logical_or.reduceat(pages.kind == _HEADING, starts)
    verdicts = np.add.reduceat(pages.words * is_content, starts) >= UNIT_SHARE * np.add.reduceat(pages.words, starts)
    verdicts &= pages.roles[starts] & MENU == 0  # a manual's rows of links name its chapter
    is_unit = np.repeat((unit[starts] != 0) & (sizes >= UNIT_BLOCKS) & ~has_heading, sizes)
    # what most pages of the site repeat, as "Posts: 309" in a forum's table, is not drawn in by the rest
    return np.where(is_unit, np.repeat(verdicts, sizes) & (is_content | ~are_repeated), is_content)


def _add_long_blocks(pages: Pages, is_content: Mask, are_repeated: Mask) -> None:
    """If no long block of a page is judged content, and it has far more words in such blocks, they are the content.

    Otherwise a thread of a forum may be reduced to its headline.
    """
    is_long = (pages.plain >= LONG_WORDS) & ((pages.positions == _BODY) | (pages.positions == _MAIN))
    has_long = np.logical_or.reduceat(is_long, pages.begins)
    is_doubted = has_long & ~np.logical_or.reduceat(is_long & is_content, pages.begins)
    is_long &= (pages.roles & COMMENT == 0) & ~are_repeated
    for begin, end in zip(pages.begins[is_doubted].tolist(), pages.ends[is_doubted].tolist(), strict=True):
        words, content, long = pages.words[begin:end], is_content[begin:end], is_long[begin:end]
        if words[content].sum() < KEPT_SHARE * words[long].sum():
            content |= long


def _batches(pages: Iterable[PageContext]) -> Iterator[list[PageContext]]:
    """Batches of pages with up to _MEASURING_BATCH blocks, or a single page with more."""
    batch: list[PageContext] = []
    size = 0
    for page in pages:
        if batch and size + len(page.blocks) > _MEASURING_BATCH:
            yield batch
            batch, size = [], 0
        batch.append(page)
        size += len(page.blocks)
    if batch:
        yield batch


def _scores(batch: Sequence[PageContext], pages: Pages) -> Floats32:
    """Scores of the blocks. pages: those of the batch.

    If few other pages of a site are known, averages the scores with and without them, weighted by their number.
    """
    scores = _scores_by_site(batch, pages)
    few = [0 < page.seen.pages[0] < SURE_PAGES for page in batch]
    if any(few):
        doubted = [page for page, is_doubted in zip(batch, few, strict=True) if is_doubted]
        blocks = np.repeat(few, [len(page.blocks) for page in batch])
        others: Floats32 = np.repeat(
            np.array([page.seen.pages[0] for page in doubted], dtype=np.float32), [len(page.blocks) for page in doubted]
        )
        alone = [page._replace(seen=_no_evidence(page.seen)) for page in doubted]
        odds: Floats32 = (
            (others * _odds(scores[blocks]) + _odds(_scores_by_site(alone, _side_by_side(alone)))) / (others + 1)
        ).astype(np.float32)
        scores[blocks] = _share(odds)
    return scores


def _odds(share: Floats32) -> Floats32:
    sure = np.clip(share, 1e-6, 1 - 1e-6)
    odds: Floats32 = np.log(sure / (1 - sure)).astype(np.float32)
    return odds


def _no_evidence(seen: PageEvidence) -> PageEvidence:
    return PageEvidence(*(np.zeros_like(values) for values in seen))


def _scores_by_site(batch: Sequence[PageContext], pages: Pages) -> Floats32:
    measures = features.measures_of(pages, concatenate([page.seen for page in batch]), _path_weights())
    first = _predict(weights().first, measures)
    second = _predict(weights().second, measures + measures_of(pages, first))
    return both(first, second)


def both(first: Floats32, second: Floats32) -> Floats32:
    """Averages forest and network in log-odds.

    The network alone mistakes a menu ten times as long as the text for the text, because most of the candidate content
    is there: mean of five held-out sets .9268 alone, .9291 averaged.
    """
    return _share(((_odds(first) + _odds(second)) / 2).astype(np.float32))


@cache
def _path_weights() -> features.PathWeights:
    return features.PathWeights(weights().names)


def _predict(learnt: Forest | Net, measures: Sequence[Floats32]) -> Floats32:
    starts = range(0, len(measures[0]), _SCORING_BATCH)
    return np.concatenate(
        [learnt.scores([row[start : start + _SCORING_BATCH] for row in measures]) for start in starts]
    )
