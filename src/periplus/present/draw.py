"""The drawing kit: sheets, marks, arrows, axes, legends and names that cover nothing, as SVG in light and dark.

A drawing turns its values into marks; this module has their styles and the layout of circles, boxes, rings and names.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, TextIO
from urllib.parse import urlsplit

import numpy as np

from periplus.model.arrays import Floats, Ints
from periplus.present.markup import attributes, escape_xml
from periplus.present.wording import cells, fit, number, visible
from periplus.values import frozen

HUES = ("teal", "amber", "blue", "red", "violet")  # distinguishable with red-green colour blindness; grey: the rest
_PALETTE = """
svg.drawing { --paper: #fbfaf7; --card: #ffffff; --ink: #22272b; --soft: #5d676e; --line: #e2e0d9;
  --edge: #6d8f92; --edge-out: #b39a63; --grey: #dcdfda; --grey-line: #8d938f;
  --teal: #8cc4c3; --teal-line: #2f7f86; --amber: #edd08f; --amber-line: #b98e2f; --red: #e6a495; --red-line: #b4513f;
  --blue: #a9c0e8; --blue-line: #3f68b5; --violet: #d3bbe2; --violet-line: #7d4f9e; }
@media (prefers-color-scheme: dark) {
  svg.drawing { --paper: #15191c; --card: #1c2125; --ink: #e6eaea; --soft: #98a3a9; --line: #30373c;
    --edge: #6fa3a6; --edge-out: #a08a55; --grey: #333b3e; --grey-line: #838c8b;
    --teal: #2c5f64; --teal-line: #63b3b6; --amber: #72592a; --amber-line: #d0a853; --red: #7d3b2f; --red-line: #dd8672;
    --blue: #2f4677; --blue-line: #85a8e8; --violet: #503a68; --violet-line: #bb9bd8; }
}
"""
_RULES = """
.paper { fill: var(--paper); } .none { fill: var(--card); }
text { font: 12px system-ui, "Segoe UI", "Noto Sans", "Liberation Sans", sans-serif; fill: var(--ink); stroke: none; }
text.title { font-size: 18px; font-weight: 600; } text.soft { fill: var(--soft); } text.strong { font-weight: 600; }
text.small { font-size: 11px; } text.end { text-anchor: end; } text.mid { text-anchor: middle; }
text.halo { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }
circle { stroke-width: 1.6; } polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
.band { fill: var(--teal); opacity: .35; } .axis { stroke: var(--line); stroke-width: 1; }
.thin { stroke-width: 1; opacity: .55; } .thick { stroke-width: 2.8; }
.dashed { stroke-dasharray: 6 4; } .dotted { stroke-dasharray: 2 3; }
.arrow { fill: none; stroke: var(--edge); stroke-opacity: .5; } .head { fill: var(--edge); fill-opacity: .8; }
.arrow.out { stroke: var(--edge-out); } .head.out { fill: var(--edge-out); }
.arrow.soft { stroke: var(--soft); stroke-opacity: .38; } .head.soft { fill: var(--soft); fill-opacity: .55; }
.bow { fill: none; stroke: var(--teal-line); stroke-width: 1.4; opacity: .75; }
.bow.copy { stroke: var(--amber-line); stroke-dasharray: 5 3; }
.arrow.own { stroke: var(--ink); } .head.own { fill: var(--ink); fill-opacity: .75; }
g:hover > .arrow { stroke-opacity: 1; } g:hover > circle { filter: brightness(1.1); } a:focus-visible { outline: none; }
a:hover circle { stroke: var(--ink); stroke-width: 3; } a:focus-visible circle { stroke: var(--ink); stroke-width: 3; }
a:focus-visible text { text-decoration: underline; font-weight: 600; }
""" + "".join(
    f".{hue} {{ fill: var(--{hue}); stroke: var(--{hue}-line); }} polyline.{hue} {{ fill: none; }} "
    f".dot.{hue} {{ fill: var(--{hue}-line); }}\n"
    for hue in (*HUES, "grey")
) + """
.hollow { fill: var(--paper); } .cited { fill: var(--paper); stroke-dasharray: 3 2.5; }
.middle { fill: none; stroke: var(--ink); }
"""  # fmt: skip
LINE = 15.0  # px from one line of text to the next
ROUNDS = 400  # with 200 sites 300 still turned whole groups round; 400 take half a second
APART_ROUNDS = 200
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
GRAVITY = 0.6  # keeps groups without a link between them on one sheet
EDGE = 24  # px around all circles
FLAT = 0.62  # height of the sheet as a share of its width
ROOM = 4.5  # of a sheet's area to that of the boxes: under 4 the arrows cannot be followed
# power of the distance from the middle: forces crowd the best linked sites there, where the names have no room
SPREAD = 0.7
MOST_LABELS = 60  # circles: of more, names are drawn only where they cover nothing


def scope_rules(rules: str) -> str:
    """CSS limited to drawings."""
    return "".join(
        f"{', '.join(f'svg.drawing {selector.strip()}' for selector in selectors.split(','))} {declarations}\n"
        for selectors, declarations in re.findall(r"([^{}]+)(\{[^}]*\})", rules)
    )


STYLE = _PALETTE + scope_rules(_RULES)


def write_sheet(
    out: TextIO, size: tuple[float, float], name: str, marks: Iterable[str], *, kind: str = "", embedded: bool = False
) -> None:
    """The drawing as self-contained SVG, light or dark as the reader's system. out: UTF-8.

    size: width and height, px. name: for screen readers. embedded: for a page with STYLE in its style sheet.
    """
    width, height = map(px, size)
    content = "".join(marks)
    role = "group" if "<a " in content else "img"  # an image hides its links from screen readers
    out.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{f"drawing {kind}".strip()}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="{role}"{attributes([("aria-label", visible(name))])}>\n'
    )
    if not embedded:
        out.write(f"<title>{escape_xml(visible(name))}</title>\n<style>{STYLE}</style>\n")
        out.write(element("path", "paper", d=f"M0 0H{width}V{height}H0Z"))
    out.write(content + "</svg>\n")


def element(tag: str, kind: str = "", inside: str = "", hint: str = "", **values: float | str) -> str:
    """One element of SVG.

    kind: its classes; inside: marks within it; hint: its tooltip. values: attributes, with `_` for `-`; numbers are px,
    written with at most two decimals.
    """
    opened = f'<{tag} class="{kind}"' if kind else f"<{tag}"
    for name, value in values.items():
        opened += f' {name.replace("_", "-")}="{escape_xml(value) if isinstance(value, str) else px(value)}"'
    if hint:
        inside = f"<title>{escape_xml(hint)}</title>{inside}"
    return f"{opened}>{inside}</{tag}>\n" if inside else f"{opened}/>\n"


def px(value: float) -> str:
    """A length or a coordinate as it is written."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def caption(x: float, y: float, words: str, kind: str = "") -> str:
    """Words on one line. x: where they begin, or by their class their middle or end; y: their base line."""
    return element("text", kind, escape_xml(visible(words)), x=x, y=y)


def heading(title: str, about: str) -> str:
    """The title of a sheet, and a line about it."""
    return caption(14, 28, title, "title") + caption(14, 48, about, "soft")


def page_link(url: str, inside: str, hint: str) -> str:
    """Marks that lead to a page, which learns nothing of us; mere marks where no browser should open the URL."""
    if url.startswith(("http://", "https://")):
        return element("a", "", inside, hint, href=url, target="_top", rel="noopener noreferrer nofollow")
    return element("g", "", inside, hint)


def text_px(words: str, size: float = 12.0) -> float:
    """How wide words are about, px. size: of the font, of whose height a sign is 0.55 wide on average."""
    return 0.55 * size * cells(words)


def clip(words: str, most: int) -> str:
    """The words cut to a number of characters, on one line."""
    words = visible(words)
    return fit(words, min(cells(words), most)).rstrip()


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Names cut to a number of characters; of names that would look equal the differing part, or the whole name."""
    names = [visible(name) for name in names]
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault(clip(name, most), []).append(name)
    short: dict[str, str] = {}
    for form, alike in groups.items():
        begin, same = most // 3, max(_same_signs(alike) - 2, 0)  # the leading characters show the place
        forms = (
            [form] if len(alike) == 1 else [f"{name[:begin]}…{clip(name[same:], most - begin - 1)}" for name in alike]
        )
        short |= zip(alike, forms if len(set(forms)) == len(alike) else alike, strict=True)
    return [short[name] for name in names]


def _same_signs(names: Sequence[str]) -> int:
    """With how many signs all of them begin."""
    return sum(1 for _ in takewhile(lambda signs: len(set(signs)) == 1, zip(*names, strict=False)))


class Key(NamedTuple):
    """An entry of a legend. shape: of its mark, `circle`, `rect` or `line`; empty: words alone."""

    words: str
    shape: str = ""
    kind: str = ""  # classes of its mark
    width: float = 2.0  # of a line, px
    hatched: bool = False


def legend(keys: Iterable[Key], x: float, y: float) -> tuple[str, float]:
    """(the entries side by side, where the next would begin); y: base line of their words."""
    marks = ""
    for key in keys:
        middle, wide = y - 4, {"circle": 12, "rect": 12, "line": 26}.get(key.shape, -6)
        if key.shape == "circle":
            marks += element("circle", key.kind, cx=x + 6, cy=middle, r=6)
        elif key.shape == "rect":
            marks += element("rect", key.kind, x=x, y=middle - 6, width=12, height=12)
            marks += element("rect", x=x, y=middle - 6, width=12, height=12, fill="url(#hatch)") if key.hatched else ""
        elif key.shape == "line":
            marks += element("path", key.kind, d=f"M{px(x)} {px(middle)}h26", stroke_width=key.width)
        marks += caption(x + wide + 6, y, key.words, "soft")
        x += wide + 26 + text_px(key.words)
    return marks, x


class Bow(NamedTuple):
    """The way of an arrow: from its tail, bent toward a point, to its tip; complex numbers are x + y i, px."""

    tail: complex
    bend: complex
    tip: complex

    @property
    def middle(self) -> complex:
        return (self.tail + 2 * self.bend + self.tip) / 4


def bow(start: complex, end: complex, gaps: tuple[float, float], bend: float) -> Bow:
    """A curve from one centre to another, bent to its left by a number of px, so that the opposite curve is separate.

    gaps: px that it stays away from the two middles.
    """
    toward = (start + end) / 2 - 1j * _unit(end - start) * bend
    return Bow(start + _unit(toward - start) * gaps[0], toward, end + _unit(toward - end) * gaps[1])


def arrow(way: Bow, width: float, head: float, kind: str = "") -> str:
    """width: of its line, px; head: length of its head."""
    back = _unit(way.bend - way.tip)
    foot = way.tip + back * head
    side = back * -1j * head * 0.42
    points = " ".join(f"{px(point.real)},{px(point.imag)}" for point in (way.tip, foot + side, foot - side))
    line = "M{} {}Q{} {} {} {}".format(
        *(px(part) for point in (way.tail, way.bend, foot) for part in (point.real, point.imag))
    )
    return element("path", f"arrow {kind}".strip(), d=line, stroke_width=width) + element(
        "polygon", f"head {kind}".strip(), points=points
    )


def _unit(way: complex) -> complex:
    return way / (abs(way) or 1.0)


def nice(value: float) -> float:
    """The next round number whose quarters are whole: the end of an axis."""
    if value <= 12:
        return next(top for top in (4.0, 8.0, 12.0) if top >= value)
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if step * power >= value * 0.9999)


def quarters(top: float) -> list[tuple[float, str]]:
    """Ticks of an axis: (value, words)."""
    return [(top * part / 4, number(round(top * part / 4))) for part in range(5)]


@frozen
class Axes:
    """A part of a sheet on which values are drawn. across, up: the values at its right edge and at its top."""

    left: float
    top: float
    right: float
    bottom: float
    across: float
    up: float

    def x(self, value: float) -> float:
        return self.left + (self.right - self.left) * min(value / self.across, 1.0)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * min(value / self.up, 1.0)

    def grid(self, across: Iterable[tuple[float, str]], up: Iterable[tuple[float, str]]) -> str:
        """A line for each tick upward, and the words of all."""
        marks = [caption(self.x(value), self.bottom + 20, words, "soft small mid") for value, words in across]
        for value, words in up:
            y = self.y(value)
            marks += (
                element("line", "axis", x1=self.left, y1=y, x2=self.right, y2=y),
                caption(self.left - 8, y + 4, words, "soft small end"),
            )
        return "".join(marks)

    def curve(self, points: Iterable[tuple[float, float]], kind: str, hint: str = "") -> str:
        """A line through points in the order given."""
        way = " ".join(f"{px(self.x(x))},{px(self.y(y))}" for x, y in points)
        return element("polyline", kind, "", hint, points=way)

    def names(self, ends: Iterable[tuple[float, str, str]], x: float = 0.0) -> str:
        """Names of curves beside their ends at the right edge, without overlaps: (value, classes, words).

        x: where they begin, if not at the edge.
        """
        x = x or self.right + 8
        marks, free = "", self.top
        for y, kind, words in sorted((self.y(value), kind, words) for value, kind, words in ends):
            free = max(free, y)
            marks += element("polyline", kind, points=f"{px(x)},{px(free)} {px(x + 12)},{px(free)}") + caption(
                x + 17, free + 4, words, "small"
            )
            free += LINE
        return marks


def folder_of(url: str, steps: int = 1) -> str:
    """The first steps of a page's path, `/` for a page in none."""
    path = urlsplit(url).path.split("/")[1:-1][:steps]
    return "/" + "".join(f"{step}/" for step in path)


def folder_hues(parts: Counter[str]) -> dict[str, str]:
    """Colours of the commonest folders or sites: by their names, so that one has the same colour in all pictures,
    unless a commoner one has it there.
    """
    hues: dict[str, str] = {}
    for part in sorted(parts, key=lambda part: (-parts[part], part))[: len(HUES)]:
        first = zlib.crc32(part.encode("utf-8", "replace"))
        free = [HUES[(first + step) % len(HUES)] for step in range(len(HUES))]
        hues[part] = next(hue for hue in free if hue not in hues.values())
    return hues


def site_hues(urls: Iterable[str]) -> dict[str, str]:
    """Colours of a site's commonest folders, the commonest first; pages in none have none."""
    counts = Counter(map(folder_of, urls))
    del counts["/"]
    return folder_hues(counts)


Points = Floats


def place_circles(boxes: Points, sources: Ints, ends: Ints, weights: Floats) -> Points:
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
    return apart(_fit_sheet(position, boxes), boxes)


def _spiral(order: Ints) -> Points:
    """The first of the order in the middle."""
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    radius = np.sqrt(place + 0.5)
    return np.stack((radius * np.cos(place * GOLDEN_ANGLE), radius * np.sin(place * GOLDEN_ANGLE)), axis=1)


def _moves(position: Points, pull: Points, degree: Points, most: float) -> Points:
    """Movement of each circle by the forces, up to a limit."""
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


def arrange_sheet(
    boxes: Points, links: Sequence[tuple[int, int, int]], head: tuple[float, float]
) -> tuple[Points, tuple[int, int]]:
    """(the middles of circles, width and height of their sheet in px).

    boxes: as in `place_circles`; links draw together by the logarithm of their number. links, head: as in
    `Circles.arrange`.
    """
    if not len(boxes):
        return boxes, (math.ceil(head[0]), math.ceil(head[1] + 2 * EDGE))
    sources, targets, counts = np.array(links, np.int64).reshape(-1, 3).T
    position = place_circles(boxes, sources, targets, np.log1p(counts))
    position = position - (position - boxes).min(axis=0) + np.array([EDGE, head[1] + EDGE])
    width, height = (math.ceil(far) + EDGE for far in (position + boxes).max(axis=0))
    position[:, 0] += max(head[0] - width, 0.0) / 2
    return position, (math.ceil(max(width, head[0])), height)


def _fit_sheet(position: Points, boxes: Points) -> Points:
    """Rotated so that the longest axis is horizontal, and scaled so that the boxes fit."""
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


_Edges = tuple[float, float, float, float]  # left, top, right, bottom


@frozen
class Circles:
    """n circles in place with their names."""

    position: Points  # n x 2
    radius: Points  # n
    names: Sequence[str]

    @classmethod
    def arrange(
        cls, radius: Points, names: Sequence[str], links: Sequence[tuple[int, int, int]], head: tuple[float, float]
    ) -> tuple[Circles, tuple[int, int]]:
        """(circles with room for their names, width and height of their sheet in px).

        links: (source, target, how many). head: least width of the sheet, and the height of its heading and legend.
        """
        half = np.array([text_px(name) / 2 for name in names])
        named = len(names) <= MOST_LABELS
        boxes = np.stack((np.maximum(radius, half) if named else radius + 13, radius + (9 if named else 4)), axis=1)
        position, size = arrange_sheet(boxes.reshape(-1, 2), links, head)
        return cls(position, radius, names), size

    def circle(self, place: int, kind: str, inner: float = 0.0) -> str:
        """inner: px that it is smaller by."""
        x, y = self.position[place].tolist()
        return element("circle", kind, cx=x, cy=y, r=float(self.radius[place]) - inner)

    def arrow(self, source: int, target: int, width: float, kind: str = "", *, head: bool = True) -> str:
        """From one circle's edge to another's."""
        start, end = complex(*self.position[source]), complex(*self.position[target])
        gaps = (float(self.radius[source]), float(self.radius[target]) + 1.5)
        return arrow(bow(start, end, gaps, min(0.12 * abs(end - start), 60.0)), width, head * (4.0 + 1.3 * width), kind)

    def labels(self, order: Sequence[int], sheet: tuple[float, float]) -> dict[int, str]:
        """Names that are drawn, by their circles, the first of the order first. sheet: as in `label_spots`."""
        spots = label_spots(self, order, sheet, every=len(self.names) <= MOST_LABELS)
        return {place: caption(x, y, self.names[place], "halo mid") for place, x, y in spots}


def label_spots(
    circles: Circles, order: Sequence[int], sheet: tuple[float, float], *, every: bool
) -> Iterator[tuple[int, float, float]]:
    """(circle, x and y of the middle of its name's base line), within, below, above or beside the circles, the first
    of the order first.

    sheet: its width, and where it begins below its head. every: a name without a free spot is given all
    the same, else left out.
    """
    taken = [
        (x - r * 0.8, y - r * 0.8, x + r * 0.8, y + r * 0.8)
        for (x, y), r in zip(circles.position.tolist(), circles.radius.tolist(), strict=True)
    ]
    for place in order:
        half = text_px(circles.names[place]) / 2
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
        yield place, *spot


def _is_free(
    spot: tuple[float, float], half: float, taken: Sequence[_Edges], own: int, sheet: tuple[float, float]
) -> bool:
    left, top, right, bottom = spot[0] - half, spot[1] - 10, spot[0] + half, spot[1] + 3
    if left < 2 or right > sheet[0] - 2 or top < sheet[1]:
        return False
    return not any(
        place != own and left < box[2] and box[0] < right and top < box[3] and box[1] < bottom
        for place, box in enumerate(taken)
    )
