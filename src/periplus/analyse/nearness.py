"""Which pages have nearly the same text?

Two pages are as near as the Jaccard similarity of their shingles: runs of five words. Candidates come from one-permutation
MinHash, and each is confirmed by the exact similarity. Measured on 1,200 pages of cppreference (358 pairs from 0.8 on): bands of
four or eight bins found all of them; SimHash within 3 bits found 8 in 100 of them, within 10 bits 88, and beside these as many
false pairs; sixty-four permutations cost 159 us a page instead of 23 and found no more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import xxhash
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

SHINGLE_WORDS = 5
SHINGLES_LEAST = 20  # distinct; of fewer words than a paragraph, half the words being alike says nothing
BINS = 128
FOUND_LEAST = 0.995  # of the pairs just at the threshold, by the binomial law: at 0.8 bands of six bins find 998 in 1,000, and look at 28 in 100 at 0.5
LEADERS_MOST = 16  # of one bucket: bounds the work where a template fills thousands of pages alike
CONFIRMED_MOST = 8  # candidates of one page whose shingles are compared, best estimate first
ESTIMATE_SLACK = 0.135  # three standard deviations of the estimate from 128 bins are 0.106 at 0.8, and 0.133 at most

_EMPTY = np.uint64(2**64 - 1)
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, odd: Knuth's multiplicative hashing
_MIX = np.uint64(0xBF58476D1CE4E5B9)  # from the finaliser of splitmix64 (Steele, Lea, Flood 2014)
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # scripts without spaces: a sign is a word
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_WORDS = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")


@dataclass(frozen=True, slots=True)
class NearGroup:
    """Pages near to one of them, its leader: the first in the order given."""

    leader: int
    members: tuple[int, ...]  # without the leader, ascending
    similarity: tuple[float, ...]  # of each member to the leader: exact Jaccard of their shingles


@dataclass(frozen=True, slots=True)
class Sketches:
    """What is kept of each of n texts to find the near ones: 1 kB a page."""

    bins: Hashes  # n x BINS
    shingles: NDArray[np.int32]  # n: how many distinct ones; under SHINGLES_LEAST the page is compared with none


def shingles(text: str) -> Hashes:
    """The text's runs of five words as hashes, ascending and distinct; case and white space do not count."""
    text = text.lower()
    words = _WORDS.findall(text) if _HAS_UNSPACED.search(text) else text.split()
    count = len(words) - SHINGLE_WORDS + 1
    if count < 1:
        return np.zeros(0, np.uint64)
    hashes = np.fromiter(map(_word_hash, words), np.uint64, len(words))
    mixed = np.zeros(count, np.uint64)
    for place in range(SHINGLE_WORDS):
        mixed = (mixed * _ODD) ^ hashes[place : place + count]
        mixed ^= mixed >> np.uint64(29)
    mixed *= _MIX
    mixed ^= mixed >> np.uint64(32)
    return np.unique(mixed)


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


_word_hash = lru_cache(maxsize=65_536)(_hash)


def sketch(found: Hashes) -> Hashes:
    """uint64[BINS]: the least shingle of each bin, empty bins filled from the next full one.

    found: `shingles`, ascending, at least one. Source: Li, Owen, Zhang 2012; filling as in Shrivastava and Li 2014 (rotation).
    """
    bins = (found >> np.uint64(57)).astype(np.int64)
    first = np.searchsorted(bins, np.arange(BINS))
    full = np.zeros(BINS, np.bool_)
    full[bins] = True
    least = np.full(BINS, _EMPTY)
    least[full] = found[first[full]]
    if not full.all():
        empty, filled = np.flatnonzero(~full), np.flatnonzero(full)
        source = filled[np.searchsorted(filled, empty) % len(filled)]
        distance = ((source - empty) % BINS).astype(np.uint64)
        least[empty] = least[source] * _ODD + distance
    return least


def sketches(texts: Iterable[str]) -> Sketches:
    """Of each text, in order. 200 us for a page of 4,000 characters, most of it for the words."""
    rows, counts = [], []
    for text in texts:
        found = shingles(text)
        counts.append(len(found))
        rows.append(sketch(found) if len(found) else np.full(BINS, _EMPTY))
    return Sketches(np.array(rows, np.uint64).reshape(-1, BINS), np.array(counts, np.int32))


def jaccard(one: Hashes, other: Hashes) -> float:
    """Shared shingles over all; 0 where both have none."""
    if not len(one) or not len(other):
        return 0.0
    both = np.intersect1d(one, other, assume_unique=True).size
    return both / (len(one) + len(other) - both)


def near_groups(known: Sketches, shingles_of: Callable[[int], Hashes], *, threshold: float = 0.8) -> list[NearGroup]:
    """Groups of pages, each within threshold of its leader, largest groups first; no page is in two.

    Each page in turn joins the nearest leader before it, or becomes a leader. So a group cannot drift along a chain of small
    steps, the outcome depends on the order of the pages only, and the work grows with the pages and not with their pairs.
    shingles_of: a page's shingles again, asked for candidates only; the last few hundred are remembered.
    """
    remembered = lru_cache(maxsize=512)(shingles_of)
    page_rows, buckets = _shared_buckets(known, band_bins(threshold))
    leaders: dict[int, list[int]] = {}
    groups: dict[int, list[tuple[int, float]]] = {}
    for page, row in zip(page_rows.tolist(), buckets.tolist(), strict=True):
        mine = [bucket for bucket in row if bucket >= 0]
        best, similarity = _nearest(page, {leader for bucket in mine for leader in leaders.get(bucket, ())}, known, remembered, threshold)
        if best >= 0:
            groups.setdefault(best, []).append((page, similarity))
            continue
        for bucket in mine:
            held = leaders.setdefault(bucket, [])
            if len(held) < LEADERS_MOST:
                held.append(page)
    made = [NearGroup(leader, tuple(page for page, _ in found), tuple(value for _, value in found)) for leader, found in groups.items()]
    return sorted(made, key=lambda group: (-len(group.members), group.leader))


def band_bins(threshold: float) -> int:
    """How many bins a band has: as many as still let pairs at the threshold be found, for fewer make more work."""
    fit = [bins for bins in range(2, BINS) if 1 - (1 - threshold**bins) ** (BINS // bins) >= FOUND_LEAST]
    return max(fit, default=1)


def _shared_buckets(known: Sketches, bins: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(pages that share a bucket with another, their buckets: one column a band, -1 for a bucket of one page)."""
    pages = np.flatnonzero(known.shingles >= SHINGLES_LEAST)
    bands = BINS // bins
    buckets = np.full((len(pages), bands), -1, np.int64)
    for band in range(bands):
        mixed = np.full(len(pages), np.uint64(band))
        for place in range(band * bins, (band + 1) * bins):
            mixed = (mixed * _ODD) ^ known.bins[pages, place]
            mixed ^= mixed >> np.uint64(29)
        _, inverse, counts = np.unique(mixed, return_inverse=True, return_counts=True)
        shared = counts[inverse] > 1
        buckets[shared, band] = inverse[shared] * bands + band
    some = (buckets >= 0).any(axis=1)
    return pages[some], buckets[some]


def _nearest(page: int, candidates: set[int], known: Sketches, shingles_of: Callable[[int], Hashes], threshold: float) -> tuple[int, float]:
    """(the nearest candidate within threshold, its similarity); (-1, 0.0): none."""
    if not candidates:
        return -1, 0.0
    rows = np.array(sorted(candidates), np.int64)
    estimates = (known.bins[rows] == known.bins[page]).mean(axis=1)
    order = np.argsort(-estimates, kind="stable")[:CONFIRMED_MOST]
    best, similarity = -1, 0.0
    for place in order.tolist():
        if estimates[place] < threshold - ESTIMATE_SLACK:
            break
        exact = jaccard(shingles_of(page), shingles_of(int(rows[place])))
        if exact >= threshold and exact > similarity:
            best, similarity = int(rows[place]), exact
    return best, similarity
