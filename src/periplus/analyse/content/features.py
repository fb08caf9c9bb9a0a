"""Features of each block, on its page and in its site, that separate content from navigation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from periplus.analyse.content import evidence
from periplus.analyse.content.evidence import Array, Ints, PageEvidence, Pages, PathStep, signed_distance
from periplus.document import block_counts
from periplus.model.arrays import Floats, Floats32
from periplus.model.page import BLOCK_KIND_CODES, POSITIONS, BlockKind

Measures = Sequence[Array]  # of equal length: one number or boolean per block

_LONG_TITLE_WORDS = 40  # longer blocks are not headlines
_CACHE_SIZE = 16_384  # steps of paths: those of about a hundred sites
_LONG_WORDS = 10  # least of a block of running text


def of_blocks(pages: Pages) -> Measures:
    """Features of the block itself and its position on the page."""
    c, words, chars = pages.letters, np.maximum(pages.words, 1), pages.chars
    wordy = c[evidence.LOWER] + c[evidence.UPPER]
    n, total = pages.sizes[pages.page], pages.total[pages.page]
    kinds = np.arange(len(BLOCK_KIND_CODES), dtype=np.uint8)[:, None] == pages.kind
    positions = np.arange(len(POSITIONS), dtype=np.uint8)[:, None] == pages.positions
    words_through = np.cumsum(pages.words, dtype=np.float64)  # multiples of one half: exact
    before = (words_through - pages.words - (words_through - pages.words)[pages.begins][pages.page]).astype(np.float32)
    index = pages.index.astype(np.float32)
    return [
        np.log1p(pages.words),
        np.log1p(chars),
        pages.linked,
        np.log1p(pages.plain),
        c[evidence.COMMA] / words,
        c[evidence.STOP] / words,
        np.log1p(c[evidence.STOP]),
        np.log1p(c[evidence.COMMA]),
        pages.last == evidence.STOP,
        pages.last == evidence.COMMA,
        pages.first == evidence.UPPER,
        c[evidence.DIGIT] / chars,
        c[evidence.UPPER] / (wordy + 1),
        c[evidence.MARK] / chars,
        c[evidence.MARK] > 0,
        c[evidence.OTHER] / chars,
        c[evidence.WIDE] / chars,
        np.minimum(wordy / words, 20),
        *kinds,
        *positions,
        pages.level,
        pages.depths[pages.path],
        index / n.astype(np.float32),
        np.log1p(index),
        np.log1p(n.astype(np.float32) - 1 - index),
        before / total,
        np.log1p(total - before),
        *pages.of_pages(
            [np.log1p(pages.sizes), np.log(pages.total.astype(np.float64)), pages.totals(pages.plain) / pages.total]
        ),
    ]


def _title_overlap(pages: Pages) -> tuple[Floats32, Floats32]:
    """For each block: the share of its words that are in the page title, and the share of the title's words in it."""
    shared = np.zeros((len(pages.page), 2), dtype=np.int32)
    of_title = np.ones(len(pages.sizes), dtype=np.intp)  # words in each page's title
    brief = ((pages.words > 0) & (pages.words <= _LONG_TITLE_WORDS)).view(np.uint8)
    titles = np.flatnonzero(pages.kind == BLOCK_KIND_CODES[BlockKind.TITLE])
    titled, first = np.unique(pages.page[titles], return_index=True)
    for page, title in zip(titled.tolist(), titles[first].tolist(), strict=True):
        begin, end, trace = int(pages.begins[page]), int(pages.ends[page]), pages.traces[page]
        ends = np.ascontiguousarray(trace.counts[:, block_counts.WORDS])
        place = title - begin
        size = 1 << int(2 * (ends[place] - (ends[place - 1] if place else 0)) + 1).bit_length()
        of_title[page] = max(
            1,
            block_counts.shared_words(
                trace.words.data,
                ends.data,
                place,
                brief[begin:end].data,
                np.zeros(2 * size, dtype=np.uint64).data,
                shared[begin:end].reshape(-1).data,
            ),
        )
        for number in np.flatnonzero(shared[begin:end, 1] < 0).tolist():
            words = trace.words[ends[number - 1] if number else 0 : ends[number]]
            shared[begin + number, 1] = len(np.unique(words))
    common = shared[:, 0].astype(np.float64)
    return (
        (common / np.maximum(shared[:, 1], 1)).astype(np.float32),
        (common / of_title[pages.page]).astype(np.float32),
    )


def of_headline(pages: Pages) -> Measures:
    """Position relative to the likely headline of the page."""
    part, share = _title_overlap(pages)
    score = part * share
    first = pages.level == 1
    weighed = score * (1 + 0.3 * first + 0.2 * (pages.level > 0))
    bounds = list(zip(pages.begins.tolist(), pages.ends.tolist(), strict=True))
    best = np.array([begin + int(weighed[begin:end].argmax()) for begin, end in bounds])
    h1 = np.array([begin + int(first[begin:end].argmax()) for begin, end in bounds])
    measures, heads = score[best][pages.page], np.bincount(pages.page, weights=first)[pages.page]
    at = np.arange(len(pages.page))
    return [
        part,
        share,
        score,
        measures,
        signed_distance(at - best[pages.page]) * (measures > np.float64(0.2)),
        np.minimum(heads, 3),
        signed_distance(at - h1[pages.page]) * (heads > 0),
    ]


class ContainerSums(NamedTuple):
    """Sums over each container."""

    words: Floats
    plain: Floats  # words outside links
    page_plain: Floats  # per page, at least 1


def of_containers(pages: Pages, seen: PageEvidence, held: ContainerSums) -> Measures:
    """Features of the containers around a block."""
    long_plain = pages.plain * (pages.plain >= _LONG_WORDS)
    words, plain, long = held.words, held.plain, pages.sums(long_plain)
    blocks = pages.sums(np.ones(len(pages.page)))
    again = pages.sums(pages.words * (seen.text_pages > 0))
    total = pages.total[pages.path_page].astype(np.float64)
    out: list[Array] = []
    for level in (0, 1, 2, 3, 5):
        at = pages.container_at(level)
        out += [np.log1p(plain[at]), 1 - plain[at] / (words[at] + 0.1), long[at] / total, again[at] / (words[at] + 0.1)]
        if level < 3:
            out += [np.log1p(blocks[at]), np.log1p(words[at] / blocks[at])]
    most = np.maximum(pages.totals(long_plain), 1).astype(np.float64)[pages.container_page]
    for share in (0.3, 0.5, 0.7):
        out += pages.within(long >= share * most)
    return list(pages.of_paths(out))


def _at_least_1(pages: Pages, values: Floats32) -> Floats:
    """Sums over each page's blocks, at least 1.

    Sequential summation, so that other pages in the batch change nothing.
    """
    sums: Floats = np.maximum(np.bincount(pages.page, weights=values), 1)
    return sums


def of_groups(pages: Pages, held: ContainerSums) -> Measures:
    """Features of all blocks on the same path or in the same ancestor: similar blocks are judged together by
    punctuation and links, however short they are.
    """
    words, plain = held.words, held.plain
    stops, commas = pages.sums(pages.letters[evidence.STOP]), pages.sums(pages.letters[evidence.COMMA])
    unlinked = pages.sums(pages.words * (pages.linked == 0))
    all_plain = held.page_plain[pages.path_page]
    out: list[Array] = []
    for level in (0, 1, 2, 3):
        at = pages.container_at(level)
        size = words[at] + 1
        out += [plain[at] / all_plain, unlinked[at] / size]
        if level < 3:
            out += [stops[at] / size, commas[at] / size]
    return list(pages.of_paths(out))


def of_sections(pages: Pages, held: ContainerSums) -> Measures:
    """Features of the section: from one heading to the next."""
    is_heading = pages.kind == BLOCK_KIND_CODES[BlockKind.HEADING]
    begins = is_heading.copy()
    begins[pages.begins] = True
    section = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    blocks = np.bincount(section)
    words, plain = np.bincount(section, weights=pages.words), np.bincount(section, weights=pages.plain)
    rows = np.array(
        [
            np.log1p(plain),
            plain / (words + 0.1),
            np.log1p(blocks),
            np.log1p(words / blocks),
            pages.level[first],
            pages.linked[first],
            plain / held.page_plain[pages.page[first]],
        ]
    ).astype(np.float32)
    return [*rows.take(section, axis=1), np.log1p(np.arange(len(section)) - first[section])]


def of_rest(pages: Pages, seen: PageEvidence, held: ContainerSums, share: Floats32) -> Measures:
    """The share of text unique to this page that is in a block's containers, and on the page.

    share: as in `of_site`.
    """
    fresh = pages.words * (1 - share)
    plain = fresh * (1 - pages.linked)
    of_page = _at_least_1(pages, fresh)
    plain_of_page = _at_least_1(pages, plain)
    unseen = pages.words * (seen.text_pages == 0)
    unseen_of_page = _at_least_1(pages, unseen)
    in_containers, plain_in, unseen_in = pages.sums(fresh), pages.sums(plain), pages.sums(unseen)
    words = held.words
    out: list[Array] = []
    for level in (0, 1, 2, 3, 5):
        at = pages.container_at(level)
        out += [in_containers[at] / of_page[pages.path_page], plain_in[at] / plain_of_page[pages.path_page]]
        out += [in_containers[at] / (words[at] + 0.1), unseen_in[at] / unseen_of_page[pages.path_page]]
    return [
        *pages.of_paths(out),
        fresh / of_page[pages.page],
        unseen / unseen_of_page[pages.page],
        *pages.of_pages([np.log1p(unseen_of_page), np.log1p(of_page), np.log1p(plain_of_page), of_page / pages.total]),
        *pages.means([plain], (2, 6)),
    ]


def of_site(pages: Pages, seen: PageEvidence, most: Floats32, share: Floats32) -> Measures:
    """Features from other pages of the site.

    most: for each page, 75th percentile of the number of other pages with its blocks' paths. share: fraction of these
    that have a block's text.
    """
    mates = seen.path_pages
    again = seen.text_pages > 0
    pages_seen = np.maximum(seen.pages, 1)
    distinct_on_path = seen.path_texts / np.maximum(seen.path_blocks, 1)
    log_mates, mates_share, distinct, log_blocks, mates_of_block = pages.of_paths(
        [
            np.log1p(mates),
            mates / pages_seen[pages.path_page],
            distinct_on_path,
            np.log1p(seen.path_blocks / np.maximum(mates, 1)),
            np.maximum(mates, 1),
        ]
    )
    return [
        np.log1p(seen.text_pages),
        share,
        np.minimum(seen.text_pages / mates_of_block, 1),
        seen.text_pages / pages_seen[pages.page],
        again,
        log_mates,
        mates_share,
        distinct,
        log_blocks,
        *pages.of_pages(
            [
                np.log1p(seen.pages.astype(np.float64)),
                np.log1p(most.astype(np.float64)),
                *(pages.totals(pages.words * values) / pages.total for values in (again, share, distinct)),
            ]
        ),
        *pages.means([share], (1, 3, 8)),
        *pages.means([distinct], (2, 6)),
    ]


def _upper_quarters(pages: Pages, values: Floats32) -> Floats32:
    """The 75th percentile of each page, in a quarter of the time of `np.percentile`."""
    quarters = np.empty(len(pages.sizes), dtype=np.float32)
    for number, (begin, end) in enumerate(zip(pages.begins.tolist(), pages.ends.tolist(), strict=True)):
        ordered = np.sort(values[begin:end])
        place = 0.75 * (end - begin - 1)
        low = int(place)
        quarters[number] = ordered[low] + (place - low) * (ordered[min(low + 1, end - begin - 1)] - ordered[low])
    return quarters


def of_neighbours(pages: Pages) -> Measures:
    """Features of the blocks before and after."""
    logs = np.log1p(pages.plain)
    ends_sentence = (pages.last == evidence.STOP).astype(np.float32)
    return [*pages.around([logs, pages.linked, ends_sentence]), *pages.means([logs, pages.linked], (4, 10))]


def of_runs(pages: Pages) -> Measures:
    """Features of consecutive blocks on the same path, such as lines of a paragraph separated by `br`."""
    begins = np.concatenate((np.ones(1, dtype=np.bool), pages.path[1:] != pages.path[:-1]))
    run = np.cumsum(begins) - 1
    plain, words = np.bincount(run, weights=pages.plain), np.bincount(run, weights=pages.words)
    rows = np.array([np.log1p(plain), plain / (words + 0.1), np.log1p(np.bincount(run))]).astype(np.float32)
    most = np.maximum(np.maximum.reduceat(pages.plain, pages.begins), 1)
    return [*rows.take(run, axis=1), pages.plain / most[pages.page], pages.plain / pages.total[pages.page]]


def of_copies(pages: Pages) -> Measures:
    """How often the page repeats a text: copies for printing or for small screens come second."""
    texts = evidence.mix_digests(np.concatenate([trace.texts for trace in pages.traces]), pages.page.astype(np.uint64))
    order = np.argsort(texts, kind="stable")
    begins = np.flatnonzero(np.concatenate((np.ones(1, dtype=np.bool), np.diff(texts[order]) != 0)))
    counted = (pages.words > 0)[order]
    times = np.add.reduceat(counted.astype(np.intp), begins)  # of each text
    group = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(order)))
    through: Ints = np.cumsum(counted) - counted  # blocks counted before
    before, more = np.zeros(len(order), dtype=np.float32), np.zeros(len(order))
    before[order] = (through - through[begins][group]) * counted
    more[order] = np.maximum(times - 1, 0)[group]
    share = pages.sums(pages.words * (before > 0))[at := pages.container_at(0)] / (pages.sums(pages.words)[at] + 0.1)
    return [np.log1p(before), np.log1p(more), *pages.of_paths([share])]


class PathWeights(dict[PathStep, float]):
    """Cache: log-odds for content from the words of a step of a path."""

    def __init__(self, names: Mapping[str, float]) -> None:
        """names: log-odds of words."""
        super().__init__()
        self._names = names

    def __missing__(self, step: PathStep) -> float:
        if len(self) >= _CACHE_SIZE:
            self.clear()
        self[step] = odds = sum([self._names.get(word, 0.0) for word in step.words])
        return odds


def of_names(pages: Pages, weights: PathWeights) -> Measures:
    """Log-odds that a block is content, from the class and id words of its path: of the innermost element, of all, the
    minimum and maximum of the outer ones, and of the last three.
    """
    steps = np.array(list(map(weights.__getitem__, chain.from_iterable([path.steps for path in pages.paths]))))
    owner, begins = pages.step_owner, pages.step_begins
    outer, is_outer = np.arange(len(steps)) - begins[owner], pages.depths > 1
    least = np.minimum.reduceat(np.where(outer, steps, np.inf), begins)
    most = np.maximum.reduceat(np.where(outer, steps, -np.inf), begins)
    sums = [np.bincount(owner, weights=odds) for odds in (steps, steps * (outer < 3))]
    return list(
        pages.of_paths([steps[begins], sums[0], np.where(is_outer, least, 0), np.where(is_outer, most, 0), sums[1]])
    )


def as_floats(rows: Sequence[Array]) -> list[Floats32]:
    """The rows as float32, without a copy where they are."""
    return [row.astype(np.float32, copy=False) for row in rows]


def measures_of(pages: Pages, seen: PageEvidence, weights: PathWeights) -> list[Floats32]:
    """A row of numbers per feature, one for each block.

    seen: of all the pages. weights: as in `of_names`.
    """
    held = ContainerSums(pages.sums(pages.words), pages.sums(pages.plain), _at_least_1(pages, pages.plain))
    most = _upper_quarters(pages, seen.path_pages[pages.path])
    share = np.minimum(seen.text_pages / np.maximum(most, 1)[pages.page], 1)
    rows = [
        *of_blocks(pages),
        *of_headline(pages),
        *of_containers(pages, seen, held),
        *of_groups(pages, held),
        *of_sections(pages, held),
        *of_rest(pages, seen, held, share),
        *of_site(pages, seen, most, share),
        *of_neighbours(pages),
        *of_runs(pages),
        *of_copies(pages),
        *of_names(pages, weights),
    ]
    return as_floats(rows)
