"""The kit of all drawings: colours, places of circles and names, rings and rectangles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.present.wording import cells

PALETTE = """
svg { --paper: #fbfaf7; --card: #ffffff; --ink: #22272b; --soft: #5d676e; --line: #e2e0d9; --edge: #6d8f92; --edge-out: #b39a63;
  --teal: #8cc4c3; --teal-line: #2f7f86; --amber: #edd08f; --amber-line: #b98e2f; --red: #e6a495; --red-line: #b4513f;
  --grey: #dcdfda; --grey-line: #8d938f; --blue: #b7c9e0; --blue-line: #5b7fae; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #15191c; --card: #1c2125; --ink: #e6eaea; --soft: #98a3a9; --line: #30373c; --edge: #6fa3a6; --edge-out: #a08a55;
    --teal: #2c5f64; --teal-line: #63b3b6; --amber: #72592a; --amber-line: #d0a853; --red: #7d3b2f; --red-line: #dd8672;
    --grey: #333b3e; --grey-line: #838c8b; --blue: #34496a; --blue-line: #85a8d8; }
}
"""  # noqa: E501
FONT = """.paper { fill: var(--paper); }
text { font-family: system-ui, "Segoe UI", "Noto Sans", "Liberation Sans", sans-serif; font-size: 12px; fill: var(--ink); }
"""  # noqa: E501


Points = NDArray[np.float64]
ROUNDS = 400  # with 200 sites 300 still turned whole groups round; 400 take half a second
APART_ROUNDS = 200
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
GRAVITY = 0.6  # keeps groups without a link between them on one sheet
FLAT = 0.62  # height of the sheet as a share of its width
ROOM = 4.5  # of a sheet's area to that of the boxes: under 4 the arrows cannot be followed
# power of the distance from the middle: forces crowd the best linked sites there, where the names have no room
SPREAD = 0.7


def placed(boxes: Points, sources: NDArray[np.int64], ends: NDArray[np.int64], weights: NDArray[np.float64]) -> Points:
    """float64[n, 2]: the middle of each of n circles, in the units of boxes.

    boxes: float64[n, 2], half the width and half the height that each needs, its label among them. weights: > 0, of
    each arrow. Forces as in Noack's LinLog model with repulsion by degree, from a spiral by degree: no chance, so
    no seed. O(n^2) a round.
    """
    size = len(boxes)
    if size < 2:
        return np.zeros((size, 2))
    pull = np.zeros((size, size))
    np.add.at(pull, (sources, ends), weights)
    pull = np.maximum(pull + pull.T, 0.0)
    np.fill_diagonal(pull, 0.0)
    degree = 1.0 + (pull > 0).sum(axis=1)
    position = _spiral(np.argsort(-degree, kind="stable"))
    pull /= max(float(pull.max()), 1e-12)
    pull = np.where(pull > 0, 0.25 + pull, 0.0)
    for turn in range(ROUNDS):
        position = position + _moves(position, pull, degree, 0.12 * (1 - turn / ROUNDS) * math.sqrt(size))
    return apart(_fitted(position, boxes), boxes)


def _spiral(order: NDArray[np.int64]) -> Points:
    """The first of the order in the middle."""
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    radius = np.sqrt(place + 0.5)
    return np.stack((radius * np.cos(place * GOLDEN_ANGLE), radius * np.sin(place * GOLDEN_ANGLE)), axis=1)


def _moves(position: Points, pull: Points, degree: Points, most: float) -> Points:
    """What the forces move each circle by, at most so far."""
    x, y = position[:, 0], position[:, 1]
    across, down = x[:, None] - x[None, :], y[:, None] - y[None, :]
    distance = np.sqrt(across**2 + down**2) + 1e-9
    push = np.sqrt(degree[:, None] * degree[None, :]) / distance**2
    np.fill_diagonal(push, 0.0)
    push -= 1.5 * pull * np.log1p(distance) / distance
    force = np.stack(((push * across).sum(axis=1), (push * down).sum(axis=1)), axis=1)
    away = np.sqrt(x**2 + y**2)[:, None] + 1e-9
    force -= GRAVITY * position / away * np.sqrt(degree)[:, None]
    length = np.sqrt(force[:, :1] ** 2 + force[:, 1:] ** 2) + 1e-9
    moves: Points = force / length * np.minimum(length * 0.05, most)
    return moves


def _fitted(position: Points, boxes: Points) -> Points:
    """Turned so that the longest way lies across, and drawn out to a sheet on which the boxes have room."""
    centred = position - position.mean(axis=0)
    far = np.sqrt((centred**2).sum(axis=1, keepdims=True)) + 1e-9
    centred *= (far / far.max()) ** (SPREAD - 1)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes *= np.sign(axes[:, :1] + (axes[:, :1] == 0))  # which of two directions an axis points is the library's whim
    turned = centred @ axes.T
    extent = np.maximum(np.ptp(turned, axis=0), 1e-9)
    room = math.sqrt(float((4 * (boxes[:, 0] + 8) * (boxes[:, 1] + 8)).sum()) * ROOM / FLAT)
    sheet: Points = (turned / extent - turned.min(axis=0) / extent) * np.array([room, room * FLAT])
    return sheet


def apart(position: Points, boxes: Points) -> Points:
    """The same with boxes that cover one another pushed apart along the shorter way."""
    # of two on one spot the later goes right
    order = np.sign(np.arange(len(boxes))[:, None] - np.arange(len(boxes))[None, :])
    room = [boxes[:, axis][:, None] + boxes[:, axis][None, :] + 4.0 for axis in (0, 1)]
    for _ in range(APART_ROUNDS):
        between = [position[:, axis][:, None] - position[:, axis][None, :] for axis in (0, 1)]
        over = [room[axis] - np.abs(between[axis]) for axis in (0, 1)]
        covers = (over[0] > 0) & (over[1] > 0)
        np.fill_diagonal(covers, False)
        if not covers.any():
            break
        across = over[0] < over[1]
        steps = []
        for axis, chosen in ((0, across), (1, ~across)):
            step = np.where(
                covers & chosen, over[axis] * np.where(between[axis] == 0, order, np.sign(between[axis])), 0.0
            )
            steps.append(0.5 * np.sign(step.sum(axis=1)) * np.abs(step).max(axis=1))
        position = position + np.stack(steps, axis=1)
    return position


SIGN = 6.3  # px of a sign at 11.5 px
_Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Circles:
    """n circles in place with their names."""

    position: Points  # n x 2
    radius: Points  # n
    names: Sequence[str]


class Label(NamedTuple):
    """A name, and the middle of its base line."""

    place: int
    name: str
    x: float
    y: float


def label_spots(circles: Circles, order: Sequence[int], sheet: tuple[int, int], *, every: bool) -> Iterator[Label]:
    """Names within, below, above or beside their circles, the first of the order first.

    sheet: its width, and where it begins below its head. every: a name without a free spot is given all
    the same, else left out.
    """
    taken = [
        (x - r * 0.8, y - r * 0.8, x + r * 0.8, y + r * 0.8)
        for (x, y), r in zip(circles.position.tolist(), circles.radius.tolist(), strict=True)
    ]
    for place in order:
        half = SIGN * cells(circles.names[place]) / 2
        (x, y), radius = circles.position[place].tolist(), float(circles.radius[place])
        spots = [
            (x, y + radius + 12),
            (x, y - radius - 4),
            (x + radius + half + 3, y + 4),
            (x - radius - half - 3, y + 4),
        ]
        if radius > half + 2:
            spots.insert(0, (x, y + 4))
        free = [spot for spot in spots if _is_free(spot, half, taken, place, sheet)]
        if not free and not every:
            continue
        spot = (free or spots)[0]
        taken.append((spot[0] - half, spot[1] - 10, spot[0] + half, spot[1] + 3))
        yield Label(place, circles.names[place], *spot)


def _is_free(spot: tuple[float, float], half: float, taken: Sequence[_Box], own: int, sheet: tuple[int, int]) -> bool:
    left, top, right, bottom = spot[0] - half, spot[1] - 10, spot[0] + half, spot[1] + 3
    if left < 2 or right > sheet[0] - 2 or top < sheet[1]:
        return False
    return not any(
        place != own and left < box[2] and box[0] < right and top < box[3] and box[1] < bottom
        for place, box in enumerate(taken)
    )


WHOLE = 2 * math.pi
_FULL = WHOLE - 1e-6  # an arc from a point to itself would be none
_LINE = 13.0  # px that a line of text takes across
_PAD = 8.0  # px between a name and the edge of its part
_UP = math.pi / 2  # the first branch begins at twelve o'clock


class Sector(NamedTuple):
    """A part of a ring around (0, 0): radii in px, angles in radians clockwise from twelve o'clock.

    inner 0: a slice of a disc.
    """

    inner: float
    outer: float
    start: float
    end: float

    @property
    def span(self) -> float:
        return self.end - self.start


class NameSpot(NamedTuple):
    """Where a name's middle goes, how it is turned (degrees), and how long it may be (px)."""

    x: float
    y: float
    turned: float
    length: float


def outline(sector: Sector) -> str:
    """The path around a sector; of a whole ring both circles, for the even-odd rule."""
    inner, outer, start, end = sector
    if sector.span >= _FULL:
        return _circle(outer) + (_circle(inner) if inner else "")
    large = int(sector.span > math.pi)
    (a, b), (c, d) = _point(outer, start), _point(outer, end)
    path = f"M{a:.2f} {b:.2f}A{outer:.2f} {outer:.2f} 0 {large} 1 {c:.2f} {d:.2f}"
    if not inner:
        return path + "L0 0Z"
    (e, f), (g, h) = _point(inner, end), _point(inner, start)
    return f"{path}L{e:.2f} {f:.2f}A{inner:.2f} {inner:.2f} 0 {large} 0 {g:.2f} {h:.2f}Z"


def name_spot(sector: Sector) -> NameSpot:
    """Along the ring or across it, whichever leaves a name more room; never upside down.

    length 0: no line of text fits.
    """
    inner, outer, start, end = sector
    if not inner and sector.span >= _FULL:
        return NameSpot(0.0, 0.0, 0.0, 2 * math.sqrt(max(outer * outer - _LINE * _LINE / 4, 0.0)) - 2 * _PAD)
    # 1.5: a straight name leaves a ring far sooner
    middle, half, radius = (start + end) / 2, min(sector.span / 2, 1.5), (inner + outer) / 2
    (x, y), wide = _point(radius, middle), math.tan(half)
    along = 2 * min((radius - _LINE / 2) * wide, math.sqrt(max(outer * outer - (radius + _LINE / 2) ** 2, 0.0))) - _PAD
    across = outer - max(inner, _LINE / 2 / wide if wide > 0 else outer) - 2 * _PAD
    degrees = math.degrees(middle)
    if along >= across:
        return NameSpot(x, y, _upright(degrees), max(along, 0.0) if outer - inner >= _LINE else 0.0)
    radius = outer - _PAD - across / 2
    x, y = _point(radius, middle)
    return NameSpot(x, y, _upright(degrees - 90.0), max(across, 0.0))


def _upright(degrees: float) -> float:
    """The same line, read from the left."""
    return (degrees + 90.0) % 180.0 - 90.0


def _point(radius: float, angle: float) -> tuple[float, float]:
    return radius * math.cos(angle - _UP), radius * math.sin(angle - _UP)


def _circle(radius: float) -> str:
    return (
        f"M{-radius:.2f} 0A{radius:.2f} {radius:.2f} 0 1 1 {radius:.2f} 0A{radius:.2f} "
        f"{radius:.2f} 0 1 1 {-radius:.2f} 0Z"
    )


# Squarified, after Bruls, Huizing, van Wijk, *Squarified Treemaps* (2000): a row along the shorter side takes the next
# rectangle as long as that makes its worst one squarer.

_NOTHING = 1e-9  # px2: no screen shows it, and dividing by less overflows


class Box(NamedTuple):
    """A rectangle, px; x and y are its upper left corner."""

    x: float
    y: float
    width: float
    height: float


def laid(shares: Sequence[float], box: Box) -> list[Box]:
    """One box for each share, in their order: greater ones first look best.

    Shares are areas to one another and fill the box; none is negative.
    """
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
