"""Which pages share text, and which share rare words?

Reprints are cut and edited: of their runs of three words they share a third on the average (Silcock et al. 2023), of runs of five less. So
pages are compared by containment (what they share of the smaller one's runs), from a tenth on, and rare words confirm it.
Kept runs are a sample by hash, so that the share of the samples is the share of the whole (FracMinHash: Irber et al. 2022).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.nearness import Hashes
from periplus.analyse.story_pages import Article

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SHINGLES_IN_ALL = 8_000_000  # kept at most: the product of their matrix fits into a gigabyte
PAGES_OF_SHINGLE = 300  # a run on more pages is a formula or a giant story, which has other runs too
A_SITE = 3  # pages of one site on the average: a run on more of them is the site's own formula
LEAST_SHARED = 4  # runs of the sample: eight words in a row
LEAST_CONTAINMENT = 0.08
COMMON_WORD = 0.2  # of all pages: a word on more says next to nothing, and fills the matrix
COMMON_PAGES = 50  # of few pages a fifth may be one story; there the weights suffice


@dataclass(frozen=True, slots=True)
class TextPairs:
    """Pairs of pages, one < other, that share text."""

    one: Ints
    other: Ints
    shared: Floats  # runs that both have
    runs: Ints  # of each page, the site's own formulas left out

    @property
    def containment(self) -> Floats:
        """What they share of the smaller one's runs."""
        return self.shared / np.maximum(np.minimum(self.runs[self.one], self.runs[self.other]), 1)


class Words:
    """Pages as vectors of rare words."""

    def __init__(self, articles: Sequence[Article]) -> None:
        from scipy.sparse import csr_array

        sizes = np.array([len(article.words) for article in articles], np.int64)
        words = np.concatenate([np.zeros(0, np.uint64), *(article.words for article in articles)])
        counts = np.concatenate([np.zeros(0, np.int32), *(article.counts for article in articles)])
        known, column = np.unique(words, return_inverse=True)
        pages = np.bincount(column, minlength=len(known)) if len(known) else np.zeros(0, np.int64)
        kept = (pages[column] >= 2) & (pages[column] <= max(COMMON_WORD * len(articles), COMMON_PAGES))
        row = np.repeat(np.arange(len(articles)), sizes)[kept]
        column = column[kept]
        rarity = np.log(max(len(articles), 2) / pages[column])
        weight = (1 + np.log(counts[kept])) * rarity * rarity  # squared: a topic's words are common to its stories, names are not
        norm = np.sqrt(np.bincount(row, weight * weight, len(articles)))
        self._matrix = csr_array((weight / np.maximum(norm[row], 1e-12), (row, column)), shape=(len(articles), max(len(known), 1)))

    def cosine(self, one: Ints, other: Ints) -> Floats:
        """Of each pair; 0 where a page has no rare word."""
        block, found = 20_000, [np.zeros(0)]
        for start in range(0, len(one), block):
            here = slice(start, start + block)
            found.append(np.asarray((self._matrix[one[here]].multiply(self._matrix[other[here]])).sum(axis=1), np.float64).ravel())
        return np.concatenate(found)

    def cosines(self, pages: Ints) -> Floats:
        """float64[k, k]: of each two of a few pages."""
        some = self._matrix[pages]
        return np.asarray((some @ some.T).toarray(), np.float64)


def text_pairs(articles: Sequence[Article]) -> TextPairs:
    """The pairs that share at least LEAST_CONTAINMENT."""
    from scipy.sparse import csr_array, triu

    size = len(articles)
    kept = _sampled([article.shingles for article in articles])
    sizes = np.array([len(some) for some in kept], np.int64)
    row = np.repeat(np.arange(size), sizes)
    known, column = np.unique(np.concatenate([np.zeros(0, np.uint64), *kept]), return_inverse=True)
    telling = _telling(row, column, len(known), _numbers(article.site for article in articles))
    own = np.bincount(row[telling[column]], minlength=size)  # runs of the site's own formulas do not count
    shared = telling & (np.bincount(column, minlength=len(known)) > 1)
    entry = shared[column]
    matrix = csr_array((np.ones(int(entry.sum()), np.int32), (row[entry], column[entry])), shape=(size, max(len(known), 1)))
    both = triu(matrix @ matrix.T, k=1, format="coo")
    one, other, count = both.row.astype(np.int64), both.col.astype(np.int64), both.data.astype(np.float64)
    some = (count >= LEAST_SHARED) & (count >= LEAST_CONTAINMENT * np.minimum(own[one], own[other]))
    return TextPairs(one[some], other[some], count[some], own)


def _sampled(found: Sequence[Hashes]) -> list[Hashes]:
    """The same share of each page's runs, all where memory allows."""
    share = 1
    while sum(map(len, found)) > SHINGLES_IN_ALL * share:
        share *= 2
    return [some[some % np.uint64(share) == 0] for some in found] if share > 1 else list(found)


def _telling(row: Ints, column: Ints, known: int, sites: Ints) -> NDArray[np.bool_]:
    """bool[known]: whether a run may speak of a story: not on very many pages, and not a site's own formula."""
    pages = np.bincount(column, minlength=known)
    many = int(sites.max(initial=0)) + 1
    pairs = np.sort(column * many + sites[row])  # sorting: numpy's own way to distinct values takes thrice as long on these
    first = np.ones(len(pairs), np.bool_)
    first[1:] = pairs[1:] != pairs[:-1]
    on_sites = np.bincount(pairs[first] // many, minlength=known)
    return (pages <= PAGES_OF_SHINGLE) & (pages <= A_SITE * on_sites)


def _numbers(names: Iterable[str]) -> Ints:
    known: dict[str, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64)
