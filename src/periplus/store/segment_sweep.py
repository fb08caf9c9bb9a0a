"""Do segments and database agree? Records that no page points at, pages whose bytes are missing, torn tails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from periplus.model.archive import SegmentState
from periplus.store.segments import Place, members
from periplus.store.shelves import Shelf


def swept(shelf: Shelf, claimed: Iterable[Place]) -> Iterator[SegmentState]:
    """Every segment that is there or should be, by name. claimed: where pages' bytes should lie, in the order of segments. Reads all bytes."""
    sizes = iter(shelf.sizes())
    here = next(sizes, None)
    for name, places in groupby(claimed, key=attrgetter("segment")):
        while here is not None and here[0] < name:
            yield _state(shelf, *here, frozenset())
            here = next(sizes, None)
        wanted = frozenset((place.start, place.length) for place in places)
        if here is not None and here[0] == name:
            yield _state(shelf, *here, wanted)
            here = next(sizes, None)
        else:
            yield SegmentState(name, 0, 0, 0, 0, 0, len(wanted))
    while here is not None:
        yield _state(shelf, *here, frozenset())
        here = next(sizes, None)


def _state(shelf: Shelf, name: str, size_bytes: int, wanted: frozenset[tuple[int, int]]) -> SegmentState:
    records = orphans = orphan_bytes = found = end = 0
    with shelf.open(name) as file:
        for start, length in members(file):
            end = start + length
            if not start:  # what the segment says of itself
                continue
            records += 1
            if (start, length) in wanted:
                found += 1
            else:
                orphans += 1
                orphan_bytes += length
    return SegmentState(name, size_bytes, records, orphans, orphan_bytes, max(0, size_bytes - end), len(wanted) - found)
