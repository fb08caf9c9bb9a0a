"""How are rectangles laid into a rectangle, so that each has its share of it and none is a sliver?

Squarified, after Bruls, Huizing, van Wijk, *Squarified Treemaps* (2000): a row along the shorter side takes the next rectangle as long as
that makes its worst one squarer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

_NOTHING = 1e-9  # px2: no screen shows it, and dividing by less overflows


class Box(NamedTuple):
    """A rectangle, px; x and y are its upper left corner."""

    x: float
    y: float
    width: float
    height: float


def laid(shares: Sequence[float], box: Box) -> list[Box]:
    """One box for each share, in their order: greater ones first look best. Shares are areas to one another and fill the box; none is negative."""
    whole = sum(shares)
    if not whole or box.width <= 0 or box.height <= 0:
        return [Box(box.x, box.y, 0.0, 0.0) for _ in shares]
    areas = [share / whole * box.width * box.height for share in shares]
    found: list[Box] = []
    start = 0
    while start < len(areas):
        side = min(box.width, box.height)
        end = start + 1
        while end < len(areas) and _worst(areas[start : end + 1], side) <= _worst(areas[start:end], side):
            end += 1
        row = areas[start:end]
        found += _row(row, box)
        deep = sum(row) / side if side > 0 else 0.0
        box = (
            Box(box.x + deep, box.y, max(box.width - deep, 0.0), box.height)
            if box.width >= box.height
            else Box(box.x, box.y + deep, box.width, max(box.height - deep, 0.0))
        )
        start = end
    return found


def _worst(row: Sequence[float], side: float) -> float:
    """The greatest ratio of two sides among the row's boxes; infinite where one has no area."""
    total, least, most = sum(row), min(row), max(row)
    if least < _NOTHING or not side:
        return float("inf")
    return max(side * side * most / (total * total), total * total / (side * side * least))


def _row(row: Sequence[float], box: Box) -> Iterator[Box]:
    """The boxes of one row, along the shorter side."""
    total, upright = sum(row), box.width >= box.height
    side = box.height if upright else box.width
    deep = total / side if side > 0 else 0.0
    along = box.y if upright else box.x
    for area in row:
        long = area / deep if deep > 0 else 0.0
        yield Box(box.x, along, deep, long) if upright else Box(along, box.y, long, deep)
        along += long
