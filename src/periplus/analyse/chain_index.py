"""Of pages as sets of chains: which two have most in common, and which pages share most of a given set?

Chains of one page only are left out, and chains that stand on exactly the same pages are one column with their lengths added: a menu of
three hundred chains becomes a few columns. Columns of many pages ("common") tell the pages' *kinds* apart, of which a site has a few
hundred; what two kinds share is computed once, and only for the rest ("rare" columns) are pages looked up. So nothing here
compares all pairs of pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.fragmenters import Chains, Mask, lengths

Numbers = NDArray[np.int64]
Columns = NDArray[np.int32]

KINDS_MOST = 1_024  # of pages: what kinds share is at most 8 MB
RARE_PAGES = 16  # a column of so few pages is rare in any case
RARE_SHARE = 64  # a column of one page in so many is rare too: to look at its pages costs less than to know their kinds
_TRIALS = 60  # of sets of columns as common: one is a look at all columns of all pages
_FIRST_LOOK = 64  # pages of a kind that are tried before all of them are

# Columns are told to be equal by sums of random numbers drawn for their pages: 128 bits, so a false equality has odds below 2^-80
# for ten million columns. The seed is fixed, so equal sites give equal results.
_SEED = 20130501


@dataclass(frozen=True, slots=True)
class Index:
    """Pages and columns both ways. Pages are numbered as given; only those indexed have rows."""

    wholes: Numbers  # by page: bytes of all its chains
    labels: Columns  # by shared chain: its column, -1 where it has none
    weights: Numbers  # by column, bytes
    rows: dict[int, Columns]  # by page, ascending
    postings: Columns  # pages, ascending within a column
    begins: Numbers  # of each column in postings, and the end
    common: Mask  # by column
    kinds: Columns  # by page, -1 where it is not indexed
    members: tuple[Columns, ...]  # pages of each kind, ascending
    kind_rows: tuple[Columns, ...]  # common columns of each kind
    widest: Numbers  # the greatest whole of each kind
    shares: dict[int, Numbers]  # bytes of common columns that a kind shares with each kind, as far as they were asked for


def shared_chains(pages: Sequence[Chains]) -> Chains:
    """Chains that at least two pages hold, ascending."""
    every = np.concatenate([np.unique(held) for held in pages]) if pages else np.zeros(0, np.uint64)
    every.sort()
    again: Chains = np.unique(every[1:][every[1:] == every[:-1]])
    return again


def first_index(pages: Sequence[Chains], shared: Chains) -> Index:
    """Of all pages. shared: `shared_chains` of them."""
    rows: dict[int, Columns] = {}
    wholes = np.zeros(len(pages), np.int64)
    for page, held in enumerate(map(np.unique, pages)):
        rows[page] = _places(shared, held).astype(np.int32)
        wholes[page] = lengths(held).sum()
    return _built(rows, lengths(shared), np.arange(len(shared), dtype=np.int32), wholes)


def _places(shared: Chains, held: Chains) -> NDArray[np.int64]:
    if not len(shared):
        return np.zeros(0, np.int64)
    places = np.minimum(np.searchsorted(shared, held), len(shared) - 1)
    found: NDArray[np.int64] = places[shared[places] == held]
    return found


def smaller_index(index: Index, live: Mask) -> Index:
    """The same of the live pages only: columns that only the others told apart fall together."""
    rows = {page: row for page, row in index.rows.items() if live[page]}
    return _built(rows, index.weights, index.labels, index.wholes)


def _built(rows: dict[int, Columns], weights: Numbers, labels: Columns, wholes: Numbers) -> Index:
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


def _merged(rows: dict[int, Columns], weights: Numbers) -> tuple[Columns, Numbers]:
    """(new column of each old one, -1 for those of less than two pages; weights of the new ones)."""
    draws = np.random.default_rng(_SEED).integers(0, 2**64, (len(rows), 2), np.uint64)
    sums = np.zeros((2, len(weights)), np.uint64)
    pages = np.zeros(len(weights), np.int32)
    for row, (one, other) in zip(rows.values(), draws, strict=True):
        sums[0, row] += one
        sums[1, row] += other
        pages[row] += 1
    kept = np.flatnonzero(pages >= 2)
    order = kept[np.lexsort((sums[1, kept], sums[0, kept]))]
    starts = np.ones(len(order), np.bool_)
    starts[1:] = (sums[:, order[1:]] != sums[:, order[:-1]]).any(axis=0)
    group = np.cumsum(starts) - 1
    merged = np.full(len(weights), -1, np.int32)
    merged[order] = group
    totals = np.bincount(group, weights[order], int(group[-1]) + 1 if len(group) else 0).astype(np.int64)
    return merged, totals


def _distinct(columns: Columns) -> Columns:
    return np.unique(columns[columns >= 0])


def _turned(rows: dict[int, Columns], columns: int) -> tuple[Columns, Numbers]:
    """(the pages of column after column, where each column begins)."""
    flat = np.concatenate(list(rows.values())) if rows else np.zeros(0, np.int32)
    pages = np.repeat(np.fromiter(rows, np.int32, len(rows)), [len(row) for row in rows.values()])
    order = np.lexsort((pages, flat))
    counts = np.bincount(flat, minlength=columns)
    return pages[order], np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _kinds(rows: dict[int, Columns], sizes: Numbers, count: int) -> tuple[Mask, Columns]:
    """(which columns are common, each page's kind: pages of one kind hold the same common columns).

    Columns of most pages come first. Those that stand on pages as by chance would make each page a kind of its own: they stay rare, and are
    found by halving.
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


def pages_of(index: Index, column: int) -> Columns:
    """Ascending."""
    return index.postings[index.begins[column] : index.begins[column + 1]]


def _kind_shares(index: Index, kind_row: Columns) -> Numbers:
    """Of each kind: the bytes of these common columns that its pages hold."""
    wanted = np.zeros(len(index.weights), np.int64)
    wanted[kind_row] = index.weights[kind_row]
    return np.array([wanted[row].sum() for row in index.kind_rows], np.int64)


def _rare_shares(index: Index, columns: Columns) -> tuple[Numbers, Numbers]:
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


def common_bytes(index: Index, columns: Columns) -> Numbers:
    """Of each page: the bytes of these columns that it holds; 0 where it is not indexed."""
    scores = np.zeros(len(index.kinds), np.int64)
    indexed = index.kinds >= 0
    scores[indexed] = _kind_shares(index, columns[index.common[columns]])[index.kinds[indexed]]
    pages, extra = _rare_shares(index, columns[~index.common[columns]])
    scores[pages] += extra
    return scores


def nearest(index: Index, page: int, live: Mask, duplicates: int) -> tuple[int, int]:
    """(bytes in common, which page): of the live pages the one that has most in common with this one and is no duplicate of it, the first
    of several; (0, -1): none has anything. duplicates: per cent of what two pages hold together."""
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
    open_kinds = np.flatnonzero((base * (100 + duplicates) <= duplicates * (index.wholes[page] + index.widest)) & (base >= max(best, 1)))
    for other in open_kinds[np.argsort(-base[open_kinds], kind="stable")].tolist():
        value = int(base[other])
        if value < best:
            break
        least_whole = -(-value * (100 + duplicates) // duplicates) - int(index.wholes[page]) if duplicates else 0
        found = _first(index, other, least_whole, others)
        if found >= 0 and (value > best or found < partner):
            best, partner = value, found
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
