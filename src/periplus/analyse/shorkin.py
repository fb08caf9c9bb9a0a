"""Tells templates and navigation of a site's pages by Shorkin's method, from sets of chains of fragmenters."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from zlib import crc32

import numpy as np

from periplus.model.arrays import Ints, Ints32, Mask, Unsigned64
from periplus.model.duplicates import TemplateRules
from periplus.values import frozen

# A fragmenter is a tag, or the text between two tags, white space around it left out; a chain is some consecutive
# ones, named by the CRC32 of their bytes and their length. So a run of source text that two pages share is one
# number that both have, wherever it stands. Source: Shorkin 2013. What a tag is: a comment, a script's text and a
# style's text count as one fragmenter each, so that cutting between fragmenters never leaves half of them; a `>`
# within a quoted value ends no tag.

Chains = Unsigned64  # of each chain the CRC32, then its length in bytes, 32 bits each

MIN_FRAGMENTERS_CHAIN = 6  # D2: the method's own

# of a tag, after its name has begun; cannot fail, so it is linear
_REST = rb"""[^>=]*(?:=\s*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z))?[^>=]*)*(?:>|\Z)"""
_FRAGMENT = re.compile(
    rb"[^<]+(?:<(?![a-zA-Z/!?])[^<]*)*"  # text; a `<` that begins no tag is text too
    rb"|<!--.*?(?:-->|\Z)"
    rb"|(?i:<(script|style)(?=[\s/>])" + _REST + rb"(.*?)(?:(?=</\1[\s/>])|\Z))"
    rb"|<(?=[a-zA-Z/!?])" + _REST + rb"|<[^<]*",
    re.DOTALL,
)
_TAG_NAME = re.compile(rb"</?([a-zA-Z][a-zA-Z0-9]*)")


@frozen
class Fragments:
    """A page's source in pieces, in order."""

    source: bytes  # UTF-8
    starts: tuple[int, ...]  # of each piece, white space before it included: the pieces make up the whole source
    parts: tuple[bytes, ...]  # each without the white space around it, none empty
    raw: frozenset[int]  # which parts are the text of a script or a style


def fragments(source: str) -> Fragments:
    """Total and linear: any text has fragmenters, a blank one none."""
    data = source.encode("utf-8", "replace")
    starts: list[int] = []
    parts: list[bytes] = []
    raw: set[int] = set()
    for match in _FRAGMENT.finditer(data):
        begin, end = match.span()
        inner = match.start(2)  # of a script or a style: its text is a fragmenter of its own
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
    """Of each chain of so many consecutive fragmenters, in order: CRC32 of their bytes, and how many bytes.

    Shorter pages have none.
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
    """Of each chain, in bytes."""
    return (chains & np.uint64(0xFFFFFFFF)).astype(np.int64)


def covered(sequence: Chains, chosen: Chains, length: int = MIN_FRAGMENTERS_CHAIN) -> Mask:
    """Which fragmenters lie in a wanted chain. sequence: `chains` of a page. chosen: ascending."""
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
    """The page's source without the fragmenters marked; a script's or a style's text goes and stays with its tag.

    gone: one a fragmenter, or none at all.
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
    """Whether a fragmenter is a tag (or comment, doctype, processing instruction) and not text."""
    return (part[:1] == b"<" and part[1:2].isalpha()) or part[:2] in (b"</", b"<!", b"<?")


def tag_name(part: bytes) -> bytes:
    """In lower case; empty where it has none."""
    match = _TAG_NAME.match(part)
    return match[1].lower() if match else b""


# Chains of one page only are left out, and chains that stand on exactly the same pages are one column with their
# lengths added: a menu of three hundred chains becomes a few columns. Columns of many pages ("common") tell the pages'
# *kinds* apart, of which a site has a few hundred; what two kinds share is computed once, and only for the rest ("rare"
# columns) are pages looked up. So nothing here compares all pairs of pages.


KINDS_MOST = 1_024  # of pages: what kinds share is at most 8 MB
RARE_PAGES = 16  # a column of so few pages is rare in any case
RARE_SHARE = 64  # a column of one page in so many is rare too: to look at its pages costs less than to know their kinds
_TRIALS = 60  # of sets of columns as common: one is a look at all columns of all pages
_FIRST_LOOK = 64  # pages of a kind that are tried before all of them are

# Columns are told to be equal by sums of random numbers drawn for their pages: 128 bits, so a false equality has odds
# below 2^-80 for ten million columns. The seed is fixed, so equal sites give equal results.
_SEED = 20130501


@frozen
class Index:
    """Pages and columns both ways. Pages are numbered as given; only those indexed have rows."""

    wholes: Ints  # by page: bytes of all its chains
    labels: Ints32  # by shared chain: its column, -1 where it has none
    weights: Ints  # by column, bytes
    rows: dict[int, Ints32]  # by page, ascending
    postings: Ints32  # pages, ascending within a column
    begins: Ints  # of each column in postings, and the end
    common: Mask  # by column
    kinds: Ints32  # by page, -1 where it is not indexed
    members: tuple[Ints32, ...]  # pages of each kind, ascending
    kind_rows: tuple[Ints32, ...]  # common columns of each kind
    widest: Ints  # the greatest whole of each kind
    # bytes of common columns that a kind shares with each kind, as far as they were asked for
    shares: dict[int, Ints]


def shared_chains(pages: Sequence[Chains]) -> Chains:
    """Chains that at least two pages hold, ascending."""
    every = np.concatenate([np.unique(held) for held in pages]) if pages else np.zeros(0, np.uint64)
    every.sort()
    again: Chains = np.unique(every[1:][every[1:] == every[:-1]])
    return again


def first_index(pages: Sequence[Chains], shared: Chains) -> Index:
    """Of all pages. shared: `shared_chains` of them."""
    rows: dict[int, Ints32] = {}
    wholes = np.zeros(len(pages), np.int64)
    for page, held in enumerate(map(np.unique, pages)):
        rows[page] = _places(shared, held).astype(np.int32)
        wholes[page] = lengths(held).sum()
    return _built(rows, lengths(shared), np.arange(len(shared), dtype=np.int32), wholes)


def _places(shared: Chains, held: Chains) -> Ints:
    if not len(shared):
        return np.zeros(0, np.int64)
    places = np.minimum(np.searchsorted(shared, held), len(shared) - 1)
    present: Ints = places[shared[places] == held]
    return present


def smaller_index(index: Index, live: Mask) -> Index:
    """The same of the live pages only: columns that only the others told apart fall together."""
    rows = {page: row for page, row in index.rows.items() if live[page]}
    return _built(rows, index.weights, index.labels, index.wholes)


def _built(rows: dict[int, Ints32], weights: Ints, labels: Ints32, wholes: Ints) -> Index:
    merged, totals = _merged(rows, weights)
    by_page = {page: _distinct(merged[row]) for page, row in rows.items()}
    postings, begins = _turned(by_page, len(totals))
    common, kinds = _kinds(by_page, np.diff(begins), len(wholes))
    order = np.argsort(kinds, kind="stable").astype(np.int32)
    order = order[kinds[order] >= 0]
    members = tuple(np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1)) if len(order) else ()
    leaders = [by_page[int(pages[0])] for pages in members]
    return Index(
        wholes=wholes,
        labels=np.append(merged, np.int32(-1))[labels],  # -1 takes the last
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


def _merged(rows: dict[int, Ints32], weights: Ints) -> tuple[Ints32, Ints]:
    """(new column of each old one, -1 for those of less than two pages; weights of the new ones)."""
    draws = np.random.default_rng(_SEED).integers(0, 2**64, (len(rows), 2), np.uint64)
    sums = np.zeros((2, len(weights)), np.uint64)
    pages = np.zeros(len(weights), np.int32)
    for row, (one, other) in zip(rows.values(), draws, strict=True):
        sums[0, row] += one
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


def _turned(rows: dict[int, Ints32], columns: int) -> tuple[Ints32, Ints]:
    """(the pages of column after column, where each column begins)."""
    flat = np.concatenate(list(rows.values())) if rows else np.zeros(0, np.int32)
    pages = np.repeat(np.fromiter(rows, np.int32, len(rows)), [len(row) for row in rows.values()])
    order = np.lexsort((pages, flat))
    counts = np.bincount(flat, minlength=columns)
    return pages[order], np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _kinds(rows: dict[int, Ints32], sizes: Ints, count: int) -> tuple[Mask, Ints32]:
    """(which columns are common, each page's kind: pages of one kind hold the same common columns).

    Columns of most pages come first. Those that stand on pages as by chance would make each page a kind of its own:
    they stay rare, and are found by halving.
    """
    draws = np.random.default_rng(_SEED).integers(0, 2**64, len(sizes), np.uint64)
    flat = np.concatenate(list(rows.values())) if rows else np.zeros(0, np.int32)
    owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows.values()])
    common, sums = np.zeros(len(sizes), np.bool_), np.zeros(len(rows), np.uint64)
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > max(RARE_PAGES, len(rows) // RARE_SHARE)]
    steps = np.searchsorted(-sizes[order], [-(len(rows) >> halving) for halving in range(1, 8)])
    batches = [batch for batch in np.split(order, np.unique(steps)) if len(batch)][::-1]
    for _ in range(_TRIALS):
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
    """Ascending."""
    return index.postings[index.begins[column] : index.begins[column + 1]]


def _kind_shares(index: Index, kind_row: Ints32) -> Ints:
    """Of each kind: the bytes of these common columns that its pages hold."""
    weights = np.zeros(len(index.weights), np.int64)
    weights[kind_row] = index.weights[kind_row]
    return np.array([weights[row].sum() for row in index.kind_rows], np.int64)


def _rare_shares(index: Index, columns: Ints32) -> tuple[Ints, Ints]:
    """(pages, ascending, that hold any of these columns; the bytes that they hold of them)."""
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
    """Of each page: the bytes of these columns that it holds; 0 where it is not indexed."""
    scores = np.zeros(len(index.kinds), np.int64)
    indexed = index.kinds >= 0
    scores[indexed] = _kind_shares(index, columns[index.common[columns]])[index.kinds[indexed]]
    pages, extra = _rare_shares(index, columns[~index.common[columns]])
    scores[pages] += extra
    return scores


def nearest(index: Index, page: int, live: Mask, duplicates: int) -> tuple[int, int]:
    """(bytes in common, which page): of the live pages the one that has most in common with this one and is no
    duplicate of it, the first of several; (0, -1): none has anything.

    duplicates: per cent of what two pages hold together.
    """
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
    """The first page of a kind among these whose whole is not less; -1: there is none."""
    members = index.members[kind]
    for begin, end in ((0, _FIRST_LOOK), (_FIRST_LOOK, len(members))):
        some = members[begin:end]
        some = some[among[some] & (index.wholes[some] >= least_whole)]
        if len(some):
            return int(some[0])
    return -1


# 1. Of all pairs of pages the one whose common chains are longest begins a cluster, unless the two are duplicates; what
#    they share is its navigation part. 2. The page that shares most of it joins, if that is at least `min_nav_length`
#    of the pair's; the navigation part becomes what is shared; and again. 3. A cluster of four pages is valid. 4. The
#    same with the rest, while it has four; where no pair begins a valid cluster, the threshold is lowered. What the
#    source leaves open is settled in docs/decisions/0005: ties go to the pages that come first, and a cluster that
#    stays too small is set aside until the threshold is lowered.
# The rules compare all pairs of pages again and again. Here a page's best partner is computed when its bound is the
# greatest of all, and a bound only falls as pages leave; the tests hold a plain transcription against it.

Watch = Callable[[int, int], None]  # (pages in clusters, clusters so far)


@frozen
class ChainCluster:
    """Pages of one template."""

    pages: tuple[int, ...]  # in the order in which they joined
    navigation: Chains  # ascending
    min_nav_bytes: int  # what a page must share of it to join

    @property
    def chain_bytes(self) -> int:
        """The navigation part's length as the rules measure it."""
        return int(lengths(self.navigation).sum())


@dataclass(slots=True)
class _Growth:
    """A cluster while it grows."""

    pages: list[int]
    navigation: Ints32
    scores: Ints  # by page: bytes of the navigation part that it holds; -1 for those that are in, or not live
    bytes: int  # of the navigation part


def clusters_of(
    pages: Sequence[Chains], rules: TemplateRules, watch: Watch = lambda taken, clusters: None
) -> list[ChainCluster]:
    """In the order in which they are found.

    pages: the chains of each, in any order. Pages in no cluster are the rest.
    """
    shared = shared_chains(pages)
    index = first_index(pages, shared)
    left = np.ones(len(pages), np.bool_)
    clusters: list[ChainCluster] = []
    percent = rules.min_nav_length
    while percent >= rules.least_nav_length and left.sum() >= rules.cluster_pages:
        live = left.copy()  # without what was set aside
        bounds = [(-int(index.weights[index.rows[page]].sum()), page, -1) for page in np.flatnonzero(left).tolist()]
        heapq.heapify(bounds)
        while live.sum() >= rules.cluster_pages and (pair := _best_pair(index, bounds, live, rules.duplicates)):
            growth, needed = _grown(index, pair, live, percent)
            live[growth.pages] = False
            if len(growth.pages) >= rules.cluster_pages:
                left[growth.pages] = False
                chosen = np.zeros(len(index.weights) + 1, np.bool_)
                chosen[growth.navigation] = True
                clusters.append(ChainCluster(tuple(growth.pages), shared[chosen[index.labels]], needed))
                watch(int((~left).sum()), len(clusters))
                if left.sum() * 2 <= len(index.rows):
                    index = smaller_index(index, left)
        percent -= rules.nav_length_step
    return clusters


def _best_pair(index: Index, bounds: list[tuple[int, int, int]], live: Mask, duplicates: int) -> tuple[int, int] | None:
    """The two live pages that have most in common and are no duplicates; of equals those that come first.

    None: no two have anything.

    bounds: a heap of (minus the most that a page can share with a live one, page, the partner with whom it does or did;
    -1 where the bound is no more than that).
    """
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


def _grown(index: Index, pair: tuple[int, int], live: Mask, percent: int) -> tuple[_Growth, int]:
    """(the cluster that a pair begins, bytes of its navigation part that a page needs to join)."""
    navigation = np.intersect1d(index.rows[pair[0]], index.rows[pair[1]], assume_unique=True)
    scores = np.where(live, common_bytes(index, navigation), -1)
    scores[list(pair)] = -1
    growth = _Growth(list(pair), navigation, scores, int(index.weights[navigation].sum()))
    needed = -(-growth.bytes * percent // 100)
    while True:
        best = int(growth.scores.max(initial=-1))
        if best < max(needed, 1):
            return growth, needed
        if best == growth.bytes:  # they hold all of it: one after another joins and nothing changes
            joining = np.flatnonzero(growth.scores == best)
        else:
            joining = np.argmax(growth.scores, keepdims=True)
            _narrow(index, growth, int(joining[0]))
        growth.pages += joining.tolist()
        growth.scores[joining] = -1


def _narrow(index: Index, growth: _Growth, page: int) -> None:
    """Leaves of the navigation part what the page holds."""
    held = np.isin(growth.navigation, index.rows[page], assume_unique=True)
    for column in growth.navigation[~held].tolist():
        pages = pages_of(index, column)
        inside = pages[growth.scores[pages] >= 0]
        growth.scores[inside] -= index.weights[column]
        growth.bytes -= int(index.weights[column])
    growth.navigation = growth.navigation[held]


def matched(page: Chains, clusters: Sequence[ChainCluster]) -> int:
    """Which cluster a later page joins: the one of whose navigation part it holds most, if that is enough; -1: none."""
    shares = [int(lengths(np.intersect1d(page, cluster.navigation)).sum()) for cluster in clusters]
    fitting = [at for at, share in enumerate(shares) if share >= max(clusters[at].min_nav_bytes, 1)]
    return max(fitting, key=lambda at: (shares[at], -at), default=-1)


def joined(page: int, chains: Chains, cluster: ChainCluster) -> ChainCluster:
    """The cluster with one page more, by its number: the navigation part becomes what it shares."""
    shared = np.intersect1d(chains, cluster.navigation)
    return replace(cluster, pages=(*cluster.pages, page), navigation=shared)


def extended(pages: Sequence[Chains], clusters: Sequence[ChainCluster], rules: TemplateRules) -> list[ChainCluster]:
    """Known clusters brought up to date: each page that is in none is matched,
    and what none takes makes clusters of its own, as after a redesign.

    pages: the chains of every page, old ones first; clusters name pages by their place in it.
    """
    all_clusters = list(clusters)
    taken = {page for cluster in clusters for page in cluster.pages}
    others: list[int] = []
    for page in (page for page in range(len(pages)) if page not in taken):
        at = matched(pages[page], all_clusters)
        if at >= 0:
            all_clusters[at] = joined(page, pages[page], all_clusters[at])
        else:
            others.append(page)
    for new in clusters_of([pages[page] for page in others], rules):
        all_clusters.append(replace(new, pages=tuple(others[page] for page in new.pages)))
    return all_clusters


def navigation_of(count: int, clusters: Sequence[ChainCluster]) -> list[Chains]:
    """The chains to leave out of each page: its cluster's, or for pages that no cluster took those of all clusters."""
    every = (
        np.unique(np.concatenate([cluster.navigation for cluster in clusters])) if clusters else np.zeros(0, np.uint64)
    )
    navigation = [every] * count
    for cluster in clusters:
        for page in cluster.pages:
            navigation[page] = cluster.navigation
    return navigation
