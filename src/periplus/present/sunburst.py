"""Which part of a ring is a branch's, how is it outlined, and how does a name fit into it?"""

from __future__ import annotations

import math
from typing import NamedTuple

WHOLE = 2 * math.pi
_FULL = WHOLE - 1e-6  # an arc from a point to itself would be none
_LINE = 13.0  # px that a line of text takes across
_PAD = 8.0  # px between a name and the edge of its part
_UP = math.pi / 2  # the first branch begins at twelve o'clock


class Sector(NamedTuple):
    """A part of a ring around (0, 0): radii in px, angles in radians clockwise from twelve o'clock. inner 0: a slice of a disc."""

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
    """Along the ring or across it, whichever leaves a name more room; never upside down. length 0: no line of text fits."""
    inner, outer, start, end = sector
    if not inner and sector.span >= _FULL:
        return NameSpot(0.0, 0.0, 0.0, 2 * math.sqrt(max(outer * outer - _LINE * _LINE / 4, 0.0)) - 2 * _PAD)
    middle, half, radius = (start + end) / 2, min(sector.span / 2, 1.5), (inner + outer) / 2  # 1.5: a straight name leaves a ring far sooner
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
    return f"M{-radius:.2f} 0A{radius:.2f} {radius:.2f} 0 1 1 {radius:.2f} 0A{radius:.2f} {radius:.2f} 0 1 1 {-radius:.2f} 0Z"
