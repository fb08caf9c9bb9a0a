"""Where do the names of circles stand, so that they cover nothing?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from periplus.present.layout import Points
from periplus.present.lines import cells

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
    """Names within, below, above or beside their circles, the first of the order first. sheet: its width, and where it begins below its head.
    every: a name without a free spot is given all the same, else left out."""
    taken = [(x - r * 0.8, y - r * 0.8, x + r * 0.8, y + r * 0.8) for (x, y), r in zip(circles.position.tolist(), circles.radius.tolist(), strict=True)]
    for place in order:
        half = SIGN * cells(circles.names[place]) / 2
        (x, y), radius = circles.position[place].tolist(), float(circles.radius[place])
        spots = [(x, y + radius + 12), (x, y - radius - 4), (x + radius + half + 3, y + 4), (x - radius - half - 3, y + 4)]
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
    return not any(place != own and left < box[2] and box[0] < right and top < box[3] and box[1] < bottom for place, box in enumerate(taken))
