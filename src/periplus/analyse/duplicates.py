"""Finds duplicate and near-duplicate pages, and chooses the page that represents each group."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from periplus.document.utf8 import hash_words
from periplus.model.arrays import Ints, Ints32, Unsigned64
from periplus.model.duplicates import Contender, Duplicate, DuplicateGroup, Ground, Likeness, SameText
from periplus.model.web import UrlId
from periplus.values import frozen

# `near_originals` compares the few pages of a screen within milliseconds; the functions below compare shingles of any
# number of pages.

CHARS_LEAST = 200  # characters of content: shorter pages match by accident
_ROUNDING = 1e-9
SHINGLE_WORDS = 5
SHINGLES_LEAST = 20  # distinct; shorter texts match by accident
BINS = 128
# Least share of pairs exactly at the threshold that are found, by the binomial distribution: at 0.8, bands of six bins
# find 998 in 1,000, and examine 28 in 100 at 0.5
FOUND_LEAST = 0.995
PAGES_AT_ONCE = 1 << 19  # per batch of band hashing: 4 MB per column
LEADERS_MOST = 16  # per bucket: bounds the work if a template produces thousands of similar pages
CONFIRMED_MOST = 8  # candidates per page whose shingles are compared, best estimates first
ESTIMATE_SLACK = 0.135  # three standard deviations of the estimate from 128 bins are 0.106 at 0.8, at most 0.133
_EMPTY = np.uint64(2**64 - 1)
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio, odd: Knuth's multiplicative hashing
_MIX = np.uint64(0xBF58476D1CE4E5B9)  # from the finaliser of splitmix64 (Steele, Lea, Flood 2014)
# scripts without spaces: each character is a word
_SCRIPTS_WITHOUT_SPACES = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_HAS_NO_SPACES = re.compile(f"[{_SCRIPTS_WITHOUT_SPACES}]")
_WORDS = re.compile(rf"[{_SCRIPTS_WITHOUT_SPACES}]|[^\s{_SCRIPTS_WITHOUT_SPACES}]+")
# Least share of non-ASCII characters in a text of a language with diacritics: see tests/unit/test_duplicate_groups.py
IN_FULL = 0.01


def near_originals(contents: Sequence[Collection[str]], threshold: float) -> list[int]:
    """For each page, the index of the earlier page that it nearly repeats, or its own.

    contents: blocks of each page. Similarity is the share of characters in common blocks among those of all blocks of
    both; each block counts once.
    """
    heads_of: list[int] = []
    heads: list[tuple[int, int, set[str]]] = []  # index, characters and blocks of each page that repeats no other
    for place, content in enumerate(contents):
        own = set(content)
        size = sum(map(len, own))
        alike: dict[int, float] = {}
        for head, head_size, blocks in heads if size >= CHARS_LEAST else ():
            # upper bound of the similarity: excludes nearly all pairs
            if min(size, head_size) >= (threshold - _ROUNDING) * max(size, head_size):
                chars = sum(map(len, own & blocks))
                alike[head] = chars / (size + head_size - chars)
        best = max(alike, key=lambda head: (alike[head], -head), default=place)
        heads_of.append(best if alike.get(best, 0.0) >= threshold else place)
        if heads_of[-1] == place:
            heads.append((place, size, own))
    return heads_of


# The similarity of two pages is the Jaccard similarity of their shingles: runs of five words. Candidates come from
# one-permutation MinHash, and each is confirmed by the exact similarity. Measured on 1,200 pages of cppreference (358
# pairs from 0.8 on): bands of four or eight bins found all of them; SimHash within 3 bits found 8 in 100 of them,
# within 10 bits 88, plus as many false pairs; sixty-four permutations cost 159 us a page instead of 23 and found no
# more.

Hashes = Unsigned64


@frozen
class NearGroup:
    """Pages similar to their leader, the first of them in the given order."""

    leader: int
    members: tuple[int, ...]  # without the leader, ascending
    similarity: tuple[float, ...]  # of each member to the leader: exact Jaccard similarity of their shingles


@frozen
class Sketches:
    """Data of n texts for finding near-duplicates: 1 kB per page."""

    bins: Hashes  # n x BINS
    shingles: Ints32  # n: distinct shingles; pages with fewer than SHINGLES_LEAST are not compared


def shingles(text: str) -> Hashes:
    """Hashes of the text's runs of five words, ascending and distinct; case and white space are ignored."""
    text = text.lower()
    words = _WORDS.findall(text) if _HAS_NO_SPACES.search(text) else text.split()
    count = len(words) - SHINGLE_WORDS + 1
    if count < 1:
        return np.zeros(0, np.uint64)
    hashes = np.empty(len(words), np.uint64)
    hash_words(" ".join(words).encode("utf-8", "surrogatepass"), hashes.data)
    mixed = np.zeros(count, np.uint64)
    for place in range(SHINGLE_WORDS):
        mixed = (mixed * _ODD) ^ hashes[place : place + count]
        mixed ^= mixed >> np.uint64(29)
    mixed *= _MIX
    mixed ^= mixed >> np.uint64(32)
    return np.unique(mixed)


def sketch(hashes: Hashes) -> Hashes:
    """uint64[BINS]: the least shingle of each bin; empty bins are filled from the next full bin.

    hashes: `shingles`, ascending, at least one. Source: Li, Owen, Zhang 2012; filling as in Shrivastava and Li 2014
    (rotation).
    """
    bins = (hashes >> np.uint64(57)).astype(np.int64)
    first = np.searchsorted(bins, np.arange(BINS))
    full = np.zeros(BINS, np.bool_)
    full[bins] = True
    least = np.full(BINS, _EMPTY)
    least[full] = hashes[first[full]]
    if not full.all():
        empty, filled = np.flatnonzero(~full), np.flatnonzero(full)
        source = filled[np.searchsorted(filled, empty) % len(filled)]
        distance = ((source - empty) % BINS).astype(np.uint64)
        least[empty] = least[source] * _ODD + distance
    return least


def sketches(pages: Iterable[Hashes]) -> Sketches:
    """The sketch of each page, in order. pages: the shingles of each."""
    rows, counts = [], []
    for hashes in pages:
        counts.append(len(hashes))
        rows.append(sketch(hashes) if len(hashes) else np.full(BINS, _EMPTY))
    return Sketches(np.array(rows, np.uint64).reshape(-1, BINS), np.array(counts, np.int32))


def jaccard(first: Hashes, other: Hashes) -> float:
    """Jaccard similarity; 0 if one is empty."""
    if not len(first) or not len(other):
        return 0.0
    both = np.intersect1d(first, other, assume_unique=True).size
    return both / (len(first) + len(other) - both)


def near_groups(sketches: Sketches, shingles_of: Callable[[int], Hashes], *, threshold: float = 0.8) -> list[NearGroup]:
    """Disjoint groups of pages, each within threshold of its leader, largest first.

    Each page in turn joins the most similar earlier leader, or becomes a leader. So groups cannot drift along chains of
    small differences, the result depends on the order of pages only, and the work grows with pages, not pairs.
    shingles_of: recomputes a page's shingles, called for candidates only; the last few hundred are cached.
    """
    remembered = lru_cache(maxsize=512)(shingles_of)
    pages = np.flatnonzero(sketches.shingles >= SHINGLES_LEAST)
    width = band_bins(threshold)
    buckets = np.empty((BINS // width, len(pages)), np.int64)
    fill_buckets(sketches.bins, pages, buckets)
    is_used = (buckets >= 0).any(axis=0)
    rows = zip(pages[is_used].tolist(), buckets.T[is_used].tolist(), strict=True)
    groups: dict[int, list[tuple[int, float]]] = {}
    for page, leader, similarity in led(
        rows, lambda page, candidates: _nearest(page, candidates, sketches, remembered, threshold)
    ):
        groups.setdefault(leader, []).append((page, similarity))
    near_groups = [
        NearGroup(leader, tuple(page for page, _ in members), tuple(value for _, value in members))
        for leader, members in groups.items()
    ]
    return sorted(near_groups, key=lambda group: (-len(group.members), group.leader))


def led(
    rows: Iterable[tuple[int, Sequence[int]]], nearest: Callable[[int, Set[int]], tuple[int, float]]
) -> Iterator[tuple[int, int, float]]:
    """Yields (page, leader, similarity) for each page that joins a leader; the rest become leaders.

    rows: each page in turn with its buckets; negative buckets are ignored. nearest: returns the best leader of the
    page's buckets and its similarity, or -1.
    """
    leaders: dict[int, list[int]] = {}
    for page, row in rows:
        buckets = [bucket for bucket in row if bucket >= 0]
        candidates = {leader for bucket in buckets for leader in leaders.get(bucket, ())}
        leader, similarity = nearest(page, candidates) if candidates else (-1, 0.0)
        if leader >= 0:
            yield page, leader, similarity
            continue
        for bucket in buckets:
            of_bucket = leaders.setdefault(bucket, [])
            if len(of_bucket) < LEADERS_MOST:
                of_bucket.append(page)


def band_bins(threshold: float) -> int:
    """Bins per band: as many as possible while pairs at the threshold are still found, since fewer make more work."""
    fit = [bins for bins in range(2, BINS) if 1 - (1 - threshold**bins) ** (BINS // bins) >= FOUND_LEAST]
    return max(fit, default=1)


def fill_buckets(bins: Hashes, pages: Ints, buckets: Ints) -> None:
    """Fills buckets, int64[bands, pages]. Pages with equal values in a band share its bucket; -1 if a page shares none.

    Bucket numbers are unique across bands. bins: sketches, perhaps in a file; pages: the rows to use.
    """
    for band in range(len(buckets)):
        buckets[band] = band_buckets(bins, pages, band, len(buckets))


def band_buckets(bins: Hashes, pages: Ints, band: int, bands: int) -> Ints:
    """The buckets of the pages in one band."""
    width = BINS // bands
    keys = np.empty(len(pages), np.uint64)
    for start in range(0, len(pages), PAGES_AT_ONCE):
        rows = pages[start : start + PAGES_AT_ONCE]
        mixed = np.full(len(rows), np.uint64(band))
        for place in range(band * width, (band + 1) * width):
            mixed = (mixed * _ODD) ^ bins[rows, place]
            mixed ^= mixed >> np.uint64(29)
        keys[start : start + PAGES_AT_ONCE] = mixed
    order = np.argsort(keys)
    number = np.cumsum(np.diff(keys[order], prepend=keys[order[:1]]) != 0)
    shared = np.bincount(number, minlength=1)[number] > 1
    buckets = np.empty(len(pages), np.int64)
    buckets[order] = np.where(shared, number * bands + band, -1)
    return buckets


def _nearest(
    page: int, candidates: Set[int], sketches: Sketches, shingles_of: Callable[[int], Hashes], threshold: float
) -> tuple[int, float]:
    """(most similar candidate within threshold, its similarity), or (-1, 0.0)."""
    rows = np.array(sorted(candidates), np.int64)
    estimates = (sketches.bins[rows] == sketches.bins[page]).mean(axis=1)
    order = np.argsort(-estimates, kind="stable")[:CONFIRMED_MOST]
    best, similarity = -1, 0.0
    for place in order.tolist():
        if estimates[place] < threshold - ESTIMATE_SLACK:
            break
        exact = jaccard(shingles_of(page), shingles_of(int(rows[place])))
        if exact >= threshold and exact > similarity:
            best, similarity = int(rows[place]), exact
    return best, similarity


# Order of merit: a page with diacritics before one without, since its text can be converted to the other but not back;
# then a page named as canonical; among near-duplicates the text that most pages have; then the page with fewest clicks
# from the start, where readers find it; then the shorter URL; then alphabetical order. Inbound links are not used:
# menus and calendars dominate them, and counting them would require reading all links of a collection.


Merit = tuple[int, bool, int, int, int, str]  # in the order of Ground, best first


class Head(NamedTuple):
    """The representative of the pages with one text."""

    page: Contender
    is_full: bool  # with diacritics, or in a non-Latin script
    copies: int  # other pages with its text


class NearPage(NamedTuple):
    """A head, and its similarity to the head of its group."""

    head: Head
    similarity: float
    contained: float


class NearHeads(NamedTuple):
    """Heads whose content is nearly that of the first."""

    first: Head
    others: Sequence[NearPage]  # most similar first


# (pages with one text, representative first; whether the texts were compared)
Same = tuple[Sequence[SameText], bool]


def merit(page: Contender, marks: int, copies: int = 0) -> Merit:
    """Sort key of pages: the least represents the group.

    copies: equal for all pages with one text.
    """
    return -marks, not page.is_named, -copies, page.depth, len(page.url), page.url


def best_first(pages: Iterable[SameText]) -> list[SameText]:
    """Pages with one text, the representative first."""
    return sorted(pages, key=lambda same: merit(same.page, same.marks))


def is_in_full(text: str) -> bool:
    """Whether a text uses the diacritics or letters of a non-ASCII language.

    A flag, not a count: among near-duplicates the longer text has more of them.
    """
    return len(text) - len(text.encode("ascii", "ignore")) >= IN_FULL * len(text) > 0


def near_heads(
    heads: Sequence[Head], sketches: Sketches, shingles_of: Callable[[int], Hashes], threshold: float
) -> list[NearHeads]:
    """Groups heads, each within threshold of the best of its group. sketches, shingles_of: by index of the head."""
    order = sorted(range(len(heads)), key=lambda place: _merit_of(heads[place]))
    sorted_known = Sketches(sketches.bins[order], sketches.shingles[order]) if order else sketches
    counts = sorted_known.shingles.tolist()
    groups = []
    for group in near_groups(sorted_known, lambda place: shingles_of(order[place]), threshold=threshold):
        others = [
            NearPage(heads[order[place]], similarity, _containment(similarity, counts[place], counts[group.leader]))
            for place, similarity in zip(group.members, group.similarity, strict=True)
        ]
        groups.append(NearHeads(heads[order[group.leader]], sorted(others, key=lambda other: -other.similarity)))
    return groups


def _merit_of(head: Head) -> Merit:
    return merit(head.page, int(head.is_full), head.copies)


def _containment(similarity: float, own: int, other: int) -> float:
    """Share of the page's own shingles that are shared, computed from the Jaccard similarity."""
    return round(similarity * (own + other) / (1 + similarity)) / own


def group_duplicates(same: Iterable[Same], near: Iterable[NearHeads]) -> list[DuplicateGroup]:
    """Duplicate groups, largest first; each page is in at most one.

    same: pages with one text. near: groups of heads that are near-duplicates.
    """
    by_head = {pages[0].page.url_id: (pages, is_confirmed) for pages, is_confirmed in same}
    groups = [_near_group(heads, by_head) for heads in near]
    taken = {
        url_id
        for heads in near
        for url_id in (heads.first.page.url_id, *(other.head.page.url_id for other in heads.others))
    }
    groups += [
        _group(pages[0].page, _twins(pages), _deciding_grounds(pages), is_confirmed)
        for head, (pages, is_confirmed) in by_head.items()
        if head not in taken
    ]
    return sorted(groups, key=lambda group: (-len(group.pages), group.url))


def _near_group(heads: NearHeads, by_head: Mapping[UrlId, Same]) -> DuplicateGroup:
    own, is_confirmed = by_head.get(heads.first.page.url_id, ((), True))
    pages = _twins(own) if own else []
    grounds = _deciding_grounds(own) if own else set()
    for number, other in enumerate(heads.others, 1):
        twins, other_confirmed = by_head.get(other.head.page.url_id, ((), True))
        is_confirmed = is_confirmed and other_confirmed
        for page in [same.page for same in twins] or [other.head.page]:
            pages.append(
                Duplicate(page.url_id, page.url, page.charset, Likeness.NEAR, other.similarity, other.contained, number)
            )
        grounds.add(_ground(_merit_of(heads.first), _merit_of(other.head)))
    return _group(heads.first.page, pages, grounds, is_confirmed)


def _group(first: Contender, pages: Sequence[Duplicate], grounds: set[Ground], is_confirmed: bool) -> DuplicateGroup:
    return DuplicateGroup(
        first.url_id,
        first.url,
        first.charset,
        tuple(ground for ground in Ground if ground in grounds),
        tuple(pages),
        is_confirmed,
    )


def _twins(pages: Sequence[SameText]) -> list[Duplicate]:
    """All but the first, most similar first."""
    first, *others = pages
    duplicates = [
        Duplicate(page.page.url_id, page.page.url, page.page.charset, _likeness(first, page), 1.0, 1.0, 0)
        for page in others
    ]
    return sorted(duplicates, key=lambda page: list(Likeness).index(page.like))


def _likeness(first: SameText, other: SameText) -> Likeness:
    return (
        Likeness.BYTES if first.body == other.body else Likeness.WORDS if first.text == other.text else Likeness.FOLDED
    )


def _deciding_grounds(pages: Sequence[SameText]) -> set[Ground]:
    first, *others = [merit(same.page, same.marks) for same in pages]
    return {_ground(first, other) for other in others}


def _ground(first: Merit, other: Merit) -> Ground:
    return next(ground for ground, own, two in zip(Ground, first, other, strict=True) if own != two)
