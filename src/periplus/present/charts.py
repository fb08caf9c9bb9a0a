"""Drawings of a site's map with areas by size.

An icicle: the home page on the left, each depth a column further right. A sunburst: the home page in the middle, each
depth a ring further out. A treemap: each branch a box within that of the page above it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TextIO
from urllib.parse import urlsplit

from periplus.errors import UsageError
from periplus.model.results import OTHER_PAGES, MapNode, PageColumns
from periplus.model.tables import SEGMENT_OTHER
from periplus.model.visit import State
from periplus.present.draw import (
    Key,
    caption,
    clip,
    element,
    folder_hues,
    folder_of,
    legend,
    page_link,
    scope_rules,
    short_names,
    site_hues,
    text_px,
    write_sheet,
)
from periplus.present.markup import escape_xml
from periplus.present.wording import REASON_WORDS, cells, count_of, labels, number, size, visible

# what a height or an area may mean: name, field of MapNode
MEASURES = {"pages": "pages", "size": "size_bytes", "rank": "rank"}
FORMS = {"icicle": "height", "treemap": "area", "sunburst": "angle"}  # name, and what its measure is seen by
TOP = 64  # px above the first column: heading and legend
GAP = 1.0  # px between places
LEAST_PART_PX = 0.7  # px: smaller places are invisible and not drawn; their parent's colour fills the space
LEAST_LABEL_PX = 13.0  # px: a line of text
FOLDER_SIGNS = 18  # of a folder in the legend
LEAST_SIGNS = 6  # of a name that is cut
COLUMN = 120  # px: the narrowest column in which labels can be read
HEAD = 20.0  # px of a treemap's box that its own name takes, above its branches
RIM = 3.0  # px around them
LEAST_BOX = 4.0  # px: sides of the smallest box that is drawn
LEAST_RING = 44.0  # px: a narrower ring holds no names; depths that would need it are not drawn
DISC = 0.6  # of a ring's width: the home page's radius
LEAST_EDGE_PX = 3.0  # px: of narrower parts of a ring the edges would be all that is seen

_STYLE = scope_rules("""
rect, path { stroke-width: 1; } .fetched { fill: var(--grey); } .discovered { fill: var(--card); }
.failed { fill: var(--red-line); } .rest { fill: var(--line); }
.teal, .amber, .blue, .red, .violet { stroke: var(--paper); }
.hatch { stroke: var(--ink); stroke-opacity: .22; stroke-width: 1.5; }
g:hover > rect, g:hover > path, a:hover rect, a:hover path { filter: brightness(1.08); }
a:focus-visible rect, a:focus-visible path { stroke: var(--ink); stroke-width: 2; }
""")
_EDGE_STYLE = scope_rules(
    "g > rect, g > path, a > rect, a > path { stroke: var(--paper); fill-rule: evenodd; } path.thin { stroke: none; }"
)
_HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>\n'
)


COLOURS = ("folder", "segment")  # meanings of colours of pages
LEAST_AREA = (34.0, 17.0)  # px: width and height of the smallest box that a name is looked for
AREAS_SIZE = (1200, 330)  # px
WHOLE = 2 * math.pi
_FULL = WHOLE - 1e-6  # an arc from a point to itself would be none
_ACROSS = 13.0  # px that a line of text takes across
_PAD = 8.0  # px between a name and the edge of its part
_UP = math.pi / 2  # the first branch begins at twelve o'clock
_NOTHING = 1e-9  # px2: no screen shows it, and dividing by less overflows


class Hues(NamedTuple):
    """Colours of fetched pages. named: colours of the commonest folders or segments; of: function from page to name."""

    word: str
    named: Mapping[str, str]
    of: Callable[[int], str]


def chart_hues(facts: PageColumns, colour: str) -> Hues:
    """Raises UsageError for colours of another kind, and for segments where no rules name any."""
    if colour == "folder":
        pairs = zip(facts.url, facts.state, strict=True)
        return Hues(
            colour,
            site_hues([url for url, state in pairs if state is State.FETCHED]),
            lambda page: folder_of(facts.url[page]),
        )
    if colour not in COLOURS:
        raise UsageError(f"pages are coloured by {' or '.join(COLOURS)}, not by {colour!r}")
    if (segments := dict(facts.further).get(colour)) is None:
        raise UsageError("pages have no segments: name some in periplus.toml, table [segments]; docs/segments.md")
    counts = Counter(
        str(name) for name, state in zip(segments, facts.state, strict=True) if name and state is State.FETCHED
    )
    del counts[SEGMENT_OTHER]
    return Hues(colour, folder_hues(counts), lambda page: str(segments[page]))


class _Place(NamedTuple):
    """A node with the room it takes."""

    node: MapNode
    name: str
    box: Box


def write_chart(
    tree: MapNode,
    facts: PageColumns,
    out: TextIO,
    look: tuple[str, str, str] = ("rank", "icicle", "folder"),
    room: tuple[int, int] = (1200, 820),
) -> None:
    """The folded map as self-contained SVG.

    A place's height (icicle) or angle (sunburst) is its branch's share of the whole, its area (treemap)
    that of the branch above.

    tree: by analyse.linkgraph.map_tree. look: one of MEASURES, FORMS and COLOURS. Each place links to its
    page and has its figures as a tooltip. A fetched page has the colour of its folder or segment. What was not fetched
    is hatched. room: width and height, px. The columns of an icicle and the rings of a sunburst end before names no
    longer fit, with a note. Light and dark as the reader's system. out: UTF-8. Raises UsageError for another measure,
    form or colour.
    """
    by, form, colour = look
    if by not in MEASURES:
        raise UsageError(f"a chart of a map is by {', '.join(MEASURES)}, not by {by!r}")
    if form not in FORMS:
        raise UsageError(f"a chart of a map is one of {', '.join(FORMS)}, not {form!r}")
    hues = chart_hues(facts, colour)
    places = {"icicle": _icicle, "treemap": _treemap, "sunburst": _sunburst}[form](tree, facts, by, room, hues)
    host = urlsplit(facts.url[tree.page]).netloc
    rules = _STYLE if form == "icicle" else _STYLE + _EDGE_STYLE
    head = (element("style", "", rules), _HATCH, caption(12, 28, host, "title"), *_legends(by, form, host, hues))
    write_sheet(out, room, f"{host}: branches by {by}", (*head, *places), kind=form)


def _icicle(tree: MapNode, facts: PageColumns, by: str, room: tuple[int, int], hues: Hues) -> Iterator[str]:
    """A column for each depth, as many as have room for names."""
    places = list(_nest(tree, facts, by, room[1] - TOP - 8.0))
    depths, most = _depths(places), room[0] // COLUMN
    column = (room[0] - 16) / min(depths, most)
    if depths > most:
        yield caption(
            room[0] - 330, 28, f"the first {most} of {depths} levels; deeper pages count for their branch", "soft"
        )
    for place in places:
        if place.box.x < most:
            box = Box(8.0 + place.box.x * column, TOP + place.box.y, column - GAP, place.box.height)
            yield _draw_box(place._replace(box=box), facts, hues)


def _sunburst(tree: MapNode, facts: PageColumns, by: str, room: tuple[int, int], hues: Hues) -> Iterator[str]:
    """The home page as a disc, each depth a ring around it, as many as there is room for."""
    radius = min(room[1] - TOP, room[0]) / 2 - 8.0
    places = list(_nest(tree, facts, by, WHOLE * radius))
    depths, most = _depths(places), int(radius / LEAST_RING)
    wide = radius / (min(max(depths, 2), most) - 1 + DISC)
    if depths > most:
        yield caption(12, TOP + 12, f"the first {most} of {depths} rings;", "soft")
        yield caption(12, TOP + 28, "deeper pages count for their branch", "soft")
    yield f'<g transform="translate({room[0] / 2:.1f} {TOP + radius:.1f})">\n'
    for place in places:
        depth, start, _, part = place.box
        if depth < most:
            yield _draw_sector(
                place,
                Sector(max(depth - 1 + DISC, 0) * wide, (depth + DISC) * wide, start / radius, (start + part) / radius),
                facts,
                hues,
            )
    yield "</g>\n"


def _nest(tree: MapNode, facts: PageColumns, by: str, length: float) -> Iterator[_Place]:
    """Every node that is long enough to be seen, parents first: x its depth, y and height its share of the length;
    a page's own share stays free behind its branches.
    """
    whole = _value(tree, by) or 1.0
    stack = [_Place(tree, _names((tree,), facts, "")[0], Box(0.0, 0.0, 1.0, length))]
    while stack:
        place = stack.pop()
        yield place
        y, branches = place.box.y, []
        for child, name in _name_branches(place.node, facts):
            part = length * _value(child, by) / whole
            if part >= LEAST_PART_PX:
                branches.append(_Place(child, name, Box(place.box.x + 1.0, y, 1.0, part)))
            y += part
        stack += reversed(branches)  # so that the keyboard walks them in their order


def _depths(places: list[_Place]) -> int:
    return 1 + int(max(place.box.x for place in places))


def _treemap(tree: MapNode, facts: PageColumns, by: str, room: tuple[int, int], hues: Hues) -> Iterator[str]:
    """Every node whose box is large enough to be seen, parents first;
    a page's own share stays free among its branches.
    """
    stack = [_Place(tree, _names((tree,), facts, "")[0], Box(8.0, float(TOP), room[0] - 16.0, room[1] - TOP - 8.0))]
    while stack:
        place = stack.pop()
        yield _draw_box(place, facts, hues)
        x, y, width, height = place.box
        inside = Box(x + RIM, y + HEAD, width - 2 * RIM, height - HEAD - RIM)
        below = sorted(_name_branches(place.node, facts), key=lambda part: -_value(part[0], by))
        shares = [_value(child, by) for child, _ in below]
        own = max(_value(place.node, by) - sum(shares), 0.0)
        branches = [
            _Place(child, name, box)
            for (child, name), box in zip(below, squarify([*shares, own], inside), strict=False)
        ]
        stack += [branch for branch in reversed(branches) if min(branch.box.width, branch.box.height) >= LEAST_BOX]


class Area(NamedTuple):
    """A part of a collection: a folder or a host. hue: of `draw.HUES`, or grey; href: empty: none."""

    name: str
    pages: int
    hue: str
    href: str


def write_areas(areas: Sequence[Area], name: str, out: TextIO) -> None:
    """Parts of a collection as coloured areas by their pages, each a link, for a page with the kit's style sheet.

    areas: the largest first.
    """
    boxes = squarify([area.pages for area in areas], Box(0.0, 0.0, *map(float, AREAS_SIZE)))
    marks = [_area(area, box) for area, box in zip(areas, boxes, strict=True) if min(box.width, box.height) > 2 * GAP]
    write_sheet(out, AREAS_SIZE, name, marks, kind="areas", embedded=True)


def _area(area: Area, box: Box) -> str:
    width, height = box.width - 2 * GAP, box.height - 2 * GAP
    marks = element("rect", area.hue, x=box.x + GAP, y=box.y + GAP, width=width, height=height, rx=3)
    if width > LEAST_AREA[0] and height > LEAST_AREA[1] and text_px(visible(area.name), 13) < width - 12:
        marks += caption(box.x + 8, box.y + 18, area.name, "strong")
        if height > 2 * LEAST_AREA[1]:
            marks += caption(box.x + 8, box.y + 34, number(area.pages))
    hint = f"{visible(area.name)}: {count_of(area.pages, 'page')}"
    return element("a", "", marks, hint, href=area.href) if area.href else element("g", "", marks, hint)


def _value(node: MapNode, by: str) -> float:
    return float(getattr(node, MEASURES[by]))


def _name_branches(node: MapNode, facts: PageColumns) -> list[tuple[MapNode, str]]:
    """A node's branches with their names."""
    return list(
        zip(node.children, _names(node.children, facts, facts.title[node.page]) if node.children else [], strict=True)
    )


def _names(nodes: tuple[MapNode, ...], facts: PageColumns, above: str) -> list[str]:
    named = [node.page for node in nodes if node.page != OTHER_PAGES]  # OTHERS is last
    names = labels([facts.url[page] for page in named], [facts.title[page] for page in named], above)
    return names + [count_of(node.pages, "more page") for node in nodes if node.page == OTHER_PAGES]


def _draw_box(place: _Place, facts: PageColumns, hues: Hues) -> str:
    """One place as a rectangle, hatched from the right."""
    left, y, wide, high = place.box
    high = max(high - GAP, 0.5)
    shape = element("rect", _fill(place.node, facts, hues), x=left, y=y, width=wide, height=high)
    if unread := _unread(place.node, facts):
        hatched = wide * unread
        shape += element("rect", x=left + wide - hatched, y=y, width=hatched, height=high, fill="url(#hatch)")
    name = _cut_name(place.name, wide - 13)
    if high >= LEAST_LABEL_PX and name:
        shape += caption(left + 6, y + min(high / 2 + 4.2, 15), name)
    return _link_place(place, shape, facts)


def _cut_name(name: str, length: float) -> str:
    """The part of a name that fits; empty if too little fits."""
    cut = clip(name, int(length / text_px(" ")))
    return cut if cut == name or cells(cut) >= LEAST_SIGNS else ""


def _draw_sector(place: _Place, sector: Sector, facts: PageColumns, hues: Hues) -> str:
    """One place as a part of a ring, hatched from its end."""
    edge = "" if sector.outer * sector.span >= LEAST_EDGE_PX else " thin"
    shape = element("path", _fill(place.node, facts, hues) + edge, d=outline(sector))
    if unread := _unread(place.node, facts):
        hatched = sector._replace(start=sector.end - sector.span * unread)
        shape += element("path", d=outline(hatched), fill="url(#hatch)")
    spot = name_spot(sector)
    if name := _cut_name(place.name, spot.length):
        turned = f"translate({spot.x:.1f} {spot.y:.1f}) rotate({spot.turned:.1f})"
        shape += element("text", "mid", escape_xml(name), transform=turned, y=4.2)
    return _link_place(place, shape, facts)


def _link_place(place: _Place, shape: str, facts: PageColumns) -> str:
    """A drawn place with its figures, and the link around them."""
    return page_link(facts.url[place.node.page] if place.node.page != OTHER_PAGES else "", shape, _hint(place, facts))


def _unread(node: MapNode, facts: PageColumns) -> float:
    """Which share of a place is hatched."""
    return {"discovered": 1.0, "rest": 1 - node.fetched / node.pages}.get(_kind(node, facts), 0.0)


def _kind(node: MapNode, facts: PageColumns) -> str:
    if node.page == OTHER_PAGES:
        return "rest"
    return facts.state[node.page].value


def _fill(node: MapNode, facts: PageColumns, hues: Hues) -> str:
    """The colour of a fetched page is that of its folder or segment; of others what became of them."""
    kind = _kind(node, facts)
    return hues.named.get(hues.of(node.page), kind) if kind == "fetched" else kind


def _hint(place: _Place, facts: PageColumns) -> str:
    """A place's name, its address, and its branch's figures, a line each."""
    node = place.node
    lines = [place.name]
    if node.page != OTHER_PAGES:
        reason = facts.reason[node.page]
        lines += [visible(facts.url[node.page]), REASON_WORDS[reason] + f", score {int(facts.score[node.page])}"]
    lines.append(f"branch: {count_of(node.pages, 'page')}, {number(node.fetched)} fetched, {size(node.size_bytes)}")
    return "\n".join(lines)


def _legends(by: str, form: str, host: str, hues: Hues) -> Iterator[str]:
    """The folders or segments beside the title, what areas and other colours mean below it."""
    names = short_names(list(hues.named), FOLDER_SIGNS)
    folders = [Key(name, "rect", hue) for name, hue in zip(names, hues.named.values(), strict=True)]
    yield legend(folders, 36 + text_px(host, 18), 28)[0]
    words = {"pages": "pages in the branch", "size": "bytes of the branch", "rank": "PageRank of the branch"}[by]
    keys = [
        Key(f"{FORMS[form]}: {words}"),
        Key(f"fetched in other {hues.word}s" if hues.named else "fetched", "rect", "fetched"),
        Key("discovered", "rect", "discovered", hatched=True),
        Key("failed", "rect", "failed"),
        Key("not named one by one", "rect", "rest"),
    ]
    yield legend(keys, 12, 50)[0]


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
        return _ring(outer) + (_ring(inner) if inner else "")
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
        return NameSpot(0.0, 0.0, 0.0, 2 * math.sqrt(max(outer * outer - _ACROSS * _ACROSS / 4, 0.0)) - 2 * _PAD)
    # 1.5: a straight name leaves a ring far sooner
    middle, half, radius = (start + end) / 2, min(sector.span / 2, 1.5), (inner + outer) / 2
    (x, y), wide = _point(radius, middle), math.tan(half)
    along = (
        2 * min((radius - _ACROSS / 2) * wide, math.sqrt(max(outer * outer - (radius + _ACROSS / 2) ** 2, 0.0))) - _PAD
    )
    across = outer - max(inner, _ACROSS / 2 / wide if wide > 0 else outer) - 2 * _PAD
    degrees = math.degrees(middle)
    if along >= across:
        return NameSpot(x, y, _upright(degrees), max(along, 0.0) if outer - inner >= _ACROSS else 0.0)
    radius = outer - _PAD - across / 2
    x, y = _point(radius, middle)
    return NameSpot(x, y, _upright(degrees - 90.0), max(across, 0.0))


def _upright(degrees: float) -> float:
    """The same line, read from the left."""
    return (degrees + 90.0) % 180.0 - 90.0


def _point(radius: float, angle: float) -> tuple[float, float]:
    return radius * math.cos(angle - _UP), radius * math.sin(angle - _UP)


def _ring(radius: float) -> str:
    return (
        f"M{-radius:.2f} 0A{radius:.2f} {radius:.2f} 0 1 1 {radius:.2f} 0A{radius:.2f} "
        f"{radius:.2f} 0 1 1 {-radius:.2f} 0Z"
    )


# Squarified, after Bruls, Huizing, van Wijk, *Squarified Treemaps* (2000): a row along the shorter side takes the next
# rectangle as long as that makes its worst one squarer.


class Box(NamedTuple):
    """A rectangle, px; x and y are its upper left corner."""

    x: float
    y: float
    width: float
    height: float


def squarify(shares: Sequence[float], box: Box) -> list[Box]:
    """One box for each share, in their order; sort them by size first.

    Shares are areas to one another and fill the box; none is negative.
    """
    whole = sum(shares)
    if not whole or box.width <= 0 or box.height <= 0:
        return [Box(box.x, box.y, 0.0, 0.0) for _ in shares]
    areas = [share / whole * box.width * box.height for share in shares]
    boxes: list[Box] = []
    start = 0
    while start < len(areas):
        side = min(box.width, box.height)
        end = start + 1
        while end < len(areas) and _worst(areas[start : end + 1], side) <= _worst(areas[start:end], side):
            end += 1
        row = areas[start:end]
        # a thin rest is known to few digits: its row is not deeper than the box
        deep = min(sum(row) / side, max(box.width, box.height)) if side > 0 else 0.0
        boxes += _row(row, box, deep)
        box = (
            Box(box.x + deep, box.y, max(box.width - deep, 0.0), box.height)
            if box.width >= box.height
            else Box(box.x, box.y + deep, box.width, max(box.height - deep, 0.0))
        )
        start = end
    return boxes


def _worst(row: Sequence[float], side: float) -> float:
    """The greatest ratio of two sides among the row's boxes; infinite where one has no area."""
    total, least, most = sum(row), min(row), max(row)
    if least < _NOTHING or not side:
        return float("inf")
    return max(side * side * most / (total * total), total * total / (side * side * least))


def _row(row: Sequence[float], box: Box, deep: float) -> Iterator[Box]:
    """The boxes of one row, along the shorter side and within it."""
    upright = box.width >= box.height
    along, stop = (box.y, box.y + box.height) if upright else (box.x, box.x + box.width)
    for area in row:
        long = min(area / deep, max(stop - along, 0.0)) if deep > 0 else 0.0
        yield Box(box.x, along, deep, long) if upright else Box(along, box.y, long, deep)
        along += long
