"""Detects templates and navigation of a site's pages with Shorkin's method, from sets of chains of fragmenters."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from zlib import crc32

import numpy as np

from periplus.model.arrays import Ints, Ints32, Mask, Unsigned64
from periplus.model.duplicates import TemplateRules
from periplus.values import frozen

# A fragmenter is a tag, or the text between two tags, without surrounding white space; a chain is a run of consecutive
# fragmenters, identified by the CRC32 of its bytes and its length. A run of source text shared by two pages is
# therefore the same number in both, regardless of position. Source: Shorkin 2013. Our definition of a tag: a comment, a
# script's text and a style's text are one fragmenter each, so that cutting between fragmenters never splits them; a `>`
# within a quoted value does not end a tag.

Rows = dict[int, Ints32]  # columns by page
Chains = Unsigned64  # the CRC32 of each chain, then its length in bytes, 32 bits each

MIN_FRAGMENTERS_CHAIN = 6  # D2: the published value

# Rest of a tag after its name; always matches, so it is linear
_REST = rb"""[^>=]*(?:=\s*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z))?[^>=]*)*(?:>|\Z)"""
_FRAGMENT = re.compile(
    rb"[^<]+(?:<(?![a-zA-Z/!?])[^<]*)*"  # text; a `<` that does not begin a tag is text too
    rb"|<!--.*?(?:-->|\Z)"
    rb"|(?i:<(script|style)(?=[\s/>])" + _REST + rb"(.*?)(?:(?=</\1[\s/>])|\Z))"
    rb"|<(?=[a-zA-Z/!?])" + _REST + rb"|<[^<]*",
    re.DOTALL,
)
_TAG_NAME = re.compile(rb"</?([a-zA-Z][a-zA-Z0-9]*)")
KINDS_MOST = 1_024  # kinds of pages: their overlaps take at most 8 MB
RARE_PAGES = 16  # a column with at most this many pages is rare
RARE_SHARE = 64  # one in this many pages: also rare, since looking at its pages is cheaper than more kinds
TRIALS = 60  # sets of columns tried as common; each reads all columns of all pages
FIRST_LOOK = 64  # pages of a kind that are tried before all of them
# Equality of columns is tested by sums of random numbers drawn for their pages: 128 bits, so a false match has a
# probability below 2^-80 for ten million columns. The seed is fixed, so equal sites give equal results.
_SEED = 20130501


@frozen
class Fragments:
    """The fragmenters of a page's source, in order."""

    source: bytes  # UTF-8
    starts: tuple[int, ...]  # of each fragmenter, including white space before it: together they are the whole source
    parts: tuple[bytes, ...]  # each without surrounding white space, none empty
    raw: frozenset[int]  # indices of the parts that are the text of a script or style


def fragments(source: str) -> Fragments:
    """Splits a page. Total and linear; a blank page has no fragmenters."""
    data = source.encode("utf-8", "replace")
    starts: list[int] = []
    parts: list[bytes] = []
    raw: set[int] = set()
    for match in _FRAGMENT.finditer(data):
        begin, end = match.span()
        inner = match.start(2)  # in a script or style: its text is a separate fragmenter
        if inner >= 0:
            starts.append(begin)
            parts.append(data[begin:inner])
            begin = inner
        part = data[begin:end].strip()
        if part:
            if inner >= 0:
                raw.add(len(parts))
            starts.append(begin)
            parts.append(part)
    return Fragments(data, tuple(starts), tuple(parts), frozenset(raw))


def chains(pieces: Fragments, length: int = MIN_FRAGMENTERS_CHAIN) -> Chains:
    """All chains of `length` consecutive fragmenters, in order: CRC32 of their bytes, and number of bytes.

    Empty for shorter pages.
    """
    ends = list(accumulate(map(len, pieces.parts), initial=0))
    if len(ends) <= length:
        return np.zeros(0, np.uint64)
    joined = memoryview(b"".join(pieces.parts))
    spans = zip(ends, ends[length:], strict=False)
    return np.fromiter(
        (crc32(joined[begin:end]) << 32 | end - begin for begin, end in spans), np.uint64, len(ends) - length
    )


def lengths(chains: Chains) -> Ints:
    """The length of each chain in bytes."""
    return (chains & np.uint64(0xFFFFFFFF)).astype(np.int64)


def is_covered(sequence: Chains, chosen: Chains, length: int = MIN_FRAGMENTERS_CHAIN) -> Mask:
    """Whether each fragmenter is in a chosen chain. sequence: `chains` of a page. chosen: ascending."""
    parts = len(sequence) + length - 1 if len(sequence) else 0
    steps = np.zeros(parts + 1, np.int64)
    begins = np.flatnonzero(_among(sequence, chosen))
    np.add.at(steps, begins, 1)
    np.add.at(steps, begins + length, -1)
    return np.cumsum(steps)[:parts] > 0


def _among(values: Chains, chosen: Chains) -> Mask:
    if not len(chosen):
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(chosen, values), len(chosen) - 1)
    is_chosen: Mask = chosen[places] == values
    return is_chosen


def source_left(pieces: Fragments, gone: Mask) -> str:
    """The page's source without the marked fragmenters; a script's or style's text is treated like its tag.

    gone: one flag per fragmenter, or empty.
    """
    marks = gone.tolist() or [False] * len(pieces.parts)
    bounds = (*pieces.starts, len(pieces.source))
    pieces_left = [
        pieces.source[bounds[at] : bounds[at + 1]]
        for at in range(len(pieces.parts))
        if not marks[at - 1 if at in pieces.raw else at]
    ]
    return b"".join(pieces_left).decode()


def is_tag(part: bytes) -> bool:
    """Whether a fragmenter is a tag (or comment, doctype, processing instruction), not text."""
    return (part[:1] == b"<" and part[1:2].isalpha()) or part[:2] in (b"</", b"<!", b"<?")


def tag_name(part: bytes) -> bytes:
    """The name in lower case; empty if there is none."""
    match = _TAG_NAME.match(part)
    return match[1].lower() if match else b""


# Chains of a single page are dropped, and chains with exactly the same pages are merged into one column, with their
# lengths added: a menu of three hundred chains becomes a few columns. Columns of many pages ("common") divide the pages
# into *kinds*, of which a site has a few hundred; the overlap of two kinds is computed once, and pages are looked up
# only for the remaining ("rare") columns. So the algorithm never compares all pairs of pages.


@frozen
class Index:
    """Pages and columns in both directions. Pages are numbered as given; only indexed pages have rows."""

    wholes: Ints  # by page: bytes of all its chains
    labels: Ints32  # by shared chain: its column, -1 if it has none
    weights: Ints  # by column, bytes
    rows: Rows  # by page, ascending
    postings: Ints32  # pages, ascending within a column
    begins: Ints  # start of each column in postings, and the end
    common: Mask  # by column
    kinds: Ints32  # by page, -1 if not indexed
    members: tuple[Ints32, ...]  # pages of each kind, ascending
    kind_rows: tuple[Ints32, ...]  # common columns of each kind
    widest: Ints  # maximum of wholes in each kind
    # Cache: bytes of common columns that a kind shares with each kind
    shares: dict[int, Ints]


def shared_chains(pages: Sequence[Chains]) -> Chains:
    """Chains on at least two pages, ascending."""
    every = np.concatenate([np.unique(held) for held in pages]) if pages else np.zeros(0, np.uint64)
    every.sort()
    again: Chains = np.unique(every[1:][every[1:] == every[:-1]])
    return again


def first_index(pages: Sequence[Chains], shared: Chains) -> Index:
    """The index of all pages. shared: `shared_chains` of them."""
    rows: Rows = {}
    wholes = np.zeros(len(pages), np.int64)
    for page, held in enumerate(map(np.unique, pages)):
        rows[page] = _places(shared, held).astype(np.int32)
        wholes[page] = lengths(held).sum()
    return _build_index(rows, lengths(shared), np.arange(len(shared), dtype=np.int32), wholes)


def _places(shared: Chains, held: Chains) -> Ints:
    if not len(shared):
        return np.zeros(0, np.int64)
    places = np.minimum(np.searchsorted(shared, held), len(shared) - 1)
    present: Ints = places[shared[places] == held]
    return present


def smaller_index(index: Index, live: Mask) -> Index:
    """An index of the live pages only: columns that differ only in other pages are merged."""
    rows = {page: row for page, row in index.rows.items() if live[page]}
    return _build_index(rows, index.weights, index.labels, index.wholes)


def _build_index(rows: Rows, weights: Ints, labels: Ints32, wholes: Ints) -> Index:
    merged, totals = _merge_columns(rows, weights)
    by_page = {page: _distinct(merged[row]) for page, row in rows.items()}
    postings, begins = _transpose(by_page, len(totals))
    common, kinds = _kinds(by_page, np.diff(begins), len(wholes))
    order = np.argsort(kinds, kind="stable").astype(np.int32)
    order = order[kinds[order] >= 0]
    members = tuple(np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1)) if len(order) else ()
    leaders = [by_page[int(pages[0])] for pages in members]
    return Index(
        wholes=wholes,
        labels=np.append(merged, np.int32(-1))[labels],  # -1 selects the last
        weights=totals,
        rows=by_page,
        postings=postings,
        begins=begins,
        common=common,
        kinds=kinds,
        members=members,
        kind_rows=tuple(row[common[row]] for row in leaders),
        widest=np.array([wholes[pages].max() for pages in members], np.int64),
        shares={},
    )


def _merge_columns(rows: Rows, weights: Ints) -> tuple[Ints32, Ints]:
    """(new column of each old one, -1 for columns with fewer than two pages; weights of the new ones)."""
    draws = np.random.default_rng(_SEED).integers(0, 2**64, (len(rows), 2), np.uint64)
    sums = np.zeros((2, len(weights)), np.uint64)
    pages = np.zeros(len(weights), np.int32)
    for row, (first, other) in zip(rows.values(), draws, strict=True):
        sums[0, row] += first
        sums[1, row] += other
        pages[row] += 1
    columns = np.flatnonzero(pages >= 2)
    order = columns[np.lexsort((sums[1, columns], sums[0, columns]))]
    starts = np.ones(len(order), np.bool_)
    starts[1:] = (sums[:, order[1:]] != sums[:, order[:-1]]).any(axis=0)
    group = np.cumsum(starts) - 1
    merged = np.full(len(weights), -1, np.int32)
    merged[order] = group
    totals = np.bincount(group, weights[order], int(group[-1]) + 1 if len(group) else 0).astype(np.int64)
    return merged, totals


def _distinct(columns: Ints32) -> Ints32:
    return np.unique(columns[columns >= 0])


def _transpose(rows: Rows, columns: int) -> tuple[Ints32, Ints]:
    """(the pages of each column, concatenated; where each column begins)."""
    flat = np.concatenate(list(rows.values())) if rows else np.zeros(0, np.int32)
    pages = np.repeat(np.fromiter(rows, np.int32, len(rows)), [len(row) for row in rows.values()])
    order = np.lexsort((pages, flat))
    counts = np.bincount(flat, minlength=columns)
    return pages[order], np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _kinds(rows: Rows, sizes: Ints, count: int) -> tuple[Mask, Ints32]:
    """(which columns are common; the kind of each page: pages of a kind have the same common columns).

    Columns of most pages are tried first. Columns distributed at random over pages would make each page a kind of its
    own; they are found by bisection and stay rare.
    """
    draws = np.random.default_rng(_SEED).integers(0, 2**64, len(sizes), np.uint64)
    flat = np.concatenate(list(rows.values())) if rows else np.zeros(0, np.int32)
    owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows.values()])
    common, sums = np.zeros(len(sizes), np.bool_), np.zeros(len(rows), np.uint64)
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > max(RARE_PAGES, len(rows) // RARE_SHARE)]
    steps = np.searchsorted(-sizes[order], [-(len(rows) >> halving) for halving in range(1, 8)])
    batches = [batch for batch in np.split(order, np.unique(steps)) if len(batch)][::-1]
    for _ in range(TRIALS):
        if not batches:
            break
        batch = batches.pop()
        tried = np.zeros(len(sizes), np.bool_)
        tried[batch] = True
        inside = tried[flat]
        wider = sums.copy()
        np.add.at(wider, owners[inside], draws[flat[inside]])
        if len(np.unique(wider)) <= KINDS_MOST:
            common |= tried
            sums = wider
        elif len(batch) > 1:
            batches += [batch[len(batch) // 2 :], batch[: len(batch) // 2]]
    kinds = np.full(count, -1, np.int32)
    kinds[np.fromiter(rows, np.int64, len(rows))] = np.unique(sums, return_inverse=True)[1]
    return common, kinds


def pages_of(index: Index, column: int) -> Ints32:
    """The pages of a column, ascending."""
    return index.postings[index.begins[column] : index.begins[column + 1]]


def _kind_shares(index: Index, kind_row: Ints32) -> Ints:
    """For each kind: the bytes of these common columns that its pages have."""
    weights = np.zeros(len(index.weights), np.int64)
    weights[kind_row] = index.weights[kind_row]
    return np.array([weights[row].sum() for row in index.kind_rows], np.int64)


def _rare_shares(index: Index, columns: Ints32) -> tuple[Ints, Ints]:
    """(pages with any of these columns, ascending; their bytes in these columns)."""
    parts = [pages_of(index, column) for column in columns.tolist()]
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    every = np.concatenate(parts)
    weights = np.repeat(index.weights[columns], [len(part) for part in parts])
    if len(every) * 8 < len(index.kinds):
        pages, places = np.unique(every, return_inverse=True)
        return pages.astype(np.int64), np.bincount(places, weights).astype(np.int64)
    sums = np.bincount(every, weights).astype(np.int64)
    held = np.flatnonzero(sums)
    return held, sums[held]


def common_bytes(index: Index, columns: Ints32) -> Ints:
    """For each page: its bytes in these columns; 0 if not indexed."""
    scores = np.zeros(len(index.kinds), np.int64)
    indexed = index.kinds >= 0
    scores[indexed] = _kind_shares(index, columns[index.common[columns]])[index.kinds[indexed]]
    pages, extra = _rare_shares(index, columns[~index.common[columns]])
    scores[pages] += extra
    return scores


def nearest(index: Index, page: int, live: Mask, duplicates: int) -> tuple[int, int]:
    """(bytes in common, page): the live page with most in common with this one that is not a duplicate of it."""
    kind, row = int(index.kinds[page]), index.rows[page]
    if kind not in index.shares:
        index.shares[kind] = _kind_shares(index, index.kind_rows[kind])
    base = index.shares[kind]
    near, extra = _rare_shares(index, row[~index.common[row]])
    shared = base[index.kinds[near]] + extra
    room = duplicates * (index.wholes[page] + index.wholes[near])
    fit = np.flatnonzero((shared * (100 + duplicates) <= room) & (shared > 0) & live[near] & (near != page))
    best, partner = 0, -1
    if len(fit):
        first = fit[np.argmax(shared[fit])]
        best, partner = int(shared[first]), int(near[first])
    others = live.copy()
    others[near] = False
    others[page] = False
    open_kinds = np.flatnonzero(
        (base * (100 + duplicates) <= duplicates * (index.wholes[page] + index.widest)) & (base >= max(best, 1))
    )
    for other in open_kinds[np.argsort(-base[open_kinds], kind="stable")].tolist():
        value = int(base[other])
        if value < best:
            break
        least_whole = -(-value * (100 + duplicates) // duplicates) - int(index.wholes[page]) if duplicates else 0
        candidate = _first(index, other, least_whole, others)
        if candidate >= 0 and (value > best or candidate < partner):
            best, partner = value, candidate
    return best, partner


def _first(index: Index, kind: int, least_whole: int, among: Mask) -> int:
    """The first page of a kind among these with a whole of at least least_whole; -1 if there is none."""
    members = index.members[kind]
    for begin, end in ((0, FIRST_LOOK), (FIRST_LOOK, len(members))):
        pages = members[begin:end]
        pages = pages[among[pages] & (index.wholes[pages] >= least_whole)]
        if len(pages):
            return int(pages[0])
    return -1


# 1. The pair of pages with the longest common chains starts a cluster, unless they are duplicates; their common chains
#    are its navigation part. 2. The page with the largest share of it joins, if that is at least `min_nav_length` of
#    the pair's; the navigation part is reduced to what all share. This is repeated. 3. A cluster of four pages is
#    valid. 4. The same with the remaining pages, while there are four; if no pair starts a valid cluster, the threshold
#    is lowered. Points that the source leaves open are decided in docs/decisions/0005: ties go to the first pages, and
#    a cluster that stays too small is skipped until the threshold is lowered.
# The rules compare all pairs of pages repeatedly. Here a page's best partner is computed only when its upper bound is
# the greatest of all; bounds only fall as pages leave. The tests compare the result with a plain transcription.

Watch = Callable[[int, int], None]  # (pages in clusters, clusters so far)


@frozen
class ChainCluster:
    """Pages of one template."""

    pages: tuple[int, ...]  # in the order of joining
    navigation: Chains  # ascending

    @property
    def chain_bytes(self) -> int:
        """The length of the navigation part, as the rules measure it."""
        return int(lengths(self.navigation).sum())


@dataclass(slots=True)
class _Growth:
    """A growing cluster."""

    pages: list[int]
    navigation: Ints32
    scores: Ints  # by page: its bytes of the navigation part; -1 for members and pages that are not live
    bytes: int  # of the navigation part


def clusters_of(
    pages: Sequence[Chains], rules: TemplateRules, watch: Watch = lambda taken, clusters: None
) -> list[ChainCluster]:
    """The clusters, in the order in which they are found.

    pages: the chains of each page, in any order. Some pages are in no cluster.
    """
    shared = shared_chains(pages)
    index = first_index(pages, shared)
    left = np.ones(len(pages), np.bool_)
    clusters: list[ChainCluster] = []
    percent = rules.min_nav_length
    while percent >= rules.least_nav_length and left.sum() >= rules.cluster_pages:
        live = left.copy()  # without the pages set aside
        bounds = [(-int(index.weights[index.rows[page]].sum()), page, -1) for page in np.flatnonzero(left).tolist()]
        heapq.heapify(bounds)
        while live.sum() >= rules.cluster_pages and (pair := _best_pair(index, bounds, live, rules.duplicates)):
            growth = _grow_cluster(index, pair, live, percent)
            live[growth.pages] = False
            if len(growth.pages) >= rules.cluster_pages:
                left[growth.pages] = False
                chosen = np.zeros(len(index.weights) + 1, np.bool_)
                chosen[growth.navigation] = True
                clusters.append(ChainCluster(tuple(growth.pages), shared[chosen[index.labels]]))
                watch(int((~left).sum()), len(clusters))
                if left.sum() * 2 <= len(index.rows):
                    index = smaller_index(index, left)
        percent -= rules.nav_length_step
    return clusters


def _best_pair(index: Index, bounds: list[tuple[int, int, int]], live: Mask, duplicates: int) -> tuple[int, int] | None:
    """The two live pages with most in common that are not duplicates; of equal pairs the first."""
    while bounds:
        _, page, partner = bounds[0]
        if not live[page]:
            heapq.heappop(bounds)
        elif partner >= 0 and live[partner]:
            return page, partner
        else:
            most, partner = nearest(index, page, live, duplicates)
            if partner < 0:
                heapq.heappop(bounds)
            else:
                heapq.heapreplace(bounds, (-most, page, partner))
    return None


def _grow_cluster(index: Index, pair: tuple[int, int], live: Mask, percent: int) -> _Growth:
    """The cluster grown from a pair. percent: of the pair's navigation part that a page needs to join."""
    navigation = np.intersect1d(index.rows[pair[0]], index.rows[pair[1]], assume_unique=True)
    scores = np.where(live, common_bytes(index, navigation), -1)
    scores[list(pair)] = -1
    growth = _Growth(list(pair), navigation, scores, int(index.weights[navigation].sum()))
    needed = -(-growth.bytes * percent // 100)
    while True:
        best = int(growth.scores.max(initial=-1))
        if best < max(needed, 1):
            return growth
        if best == growth.bytes:  # these pages have all of it: they join one after another without changing it
            joining = np.flatnonzero(growth.scores == best)
        else:
            joining = np.argmax(growth.scores, keepdims=True)
            _narrow(index, growth, int(joining[0]))
        growth.pages += joining.tolist()
        growth.scores[joining] = -1


def _narrow(index: Index, growth: _Growth, page: int) -> None:
    """Reduces the navigation part to the chains of the page."""
    held = np.isin(growth.navigation, index.rows[page], assume_unique=True)
    for column in growth.navigation[~held].tolist():
        pages = pages_of(index, column)
        inside = pages[growth.scores[pages] >= 0]
        growth.scores[inside] -= index.weights[column]
        growth.bytes -= int(index.weights[column])
    growth.navigation = growth.navigation[held]


def navigation_of(count: int, clusters: Sequence[ChainCluster]) -> list[Chains]:
    """The chains to remove from each page: its cluster's, or those of all clusters if it is in none."""
    every = (
        np.unique(np.concatenate([cluster.navigation for cluster in clusters])) if clusters else np.zeros(0, np.uint64)
    )
    navigation = [every] * count
    for cluster in clusters:
        for page in cluster.pages:
            navigation[page] = cluster.navigation
    return navigation
