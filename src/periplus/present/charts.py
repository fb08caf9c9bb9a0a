"""Drawings with areas by size: a site's map as an icicle, and the parts of a collection as boxes.

An icicle has the home page on the left, and each depth as a column further right.
"""

from __future__ import annotations

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
from periplus.present.wording import REASON_WORDS, cells, count_of, labels, number, size, visible

# what a height or an area may mean: name, field of MapNode
MEASURES = {"pages": "pages", "size": "size_bytes", "rank": "rank"}
TOP = 64  # px above the first column: heading and legend
GAP = 1.0  # px between places
LEAST_PART_PX = 0.7  # px: smaller places are invisible and not drawn; their parent's colour fills the space
LEAST_LABEL_PX = 13.0  # px: a line of text
FOLDER_SIGNS = 18  # of a folder in the legend
LEAST_SIGNS = 6  # of a name that is cut
COLUMN = 120  # px: the narrowest column in which labels can be read
COLOURS = ("folder", "segment")  # meanings of colours of pages
LEAST_AREA = (34.0, 17.0)  # px: width and height of the smallest box that a name is looked for
AREAS_SIZE = (1200, 330)  # px
_NOTHING = 1e-9  # px2: no screen shows it, and dividing by less overflows

_STYLE = scope_rules("""
rect { stroke-width: 1; } .fetched { fill: var(--grey); } .discovered { fill: var(--card); }
.failed { fill: var(--red-line); } .rest { fill: var(--line); }
.teal, .amber, .blue, .red, .violet { stroke: var(--paper); }
.hatch { stroke: var(--ink); stroke-opacity: .22; stroke-width: 1.5; }
g:hover > rect, a:hover rect { filter: brightness(1.08); }
a:focus-visible rect { stroke: var(--ink); stroke-width: 2; }
""")
_HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>\n'
)


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
    look: tuple[str, str] = ("rank", "folder"),
    room: tuple[int, int] = (1200, 820),
) -> None:
    """The folded map as self-contained SVG. The height of a place is its branch's share of the whole.

    tree: by analyse.linkgraph.map_tree. look: one of MEASURES and one of COLOURS. Each place links to its page and has
    its figures as a tooltip. A fetched page has the colour of its folder or segment. What was not fetched is hatched.
    room: width and height, px. The columns end before names no longer fit, with a note. Light and dark as the reader's
    system. out: UTF-8. Raises UsageError for another measure or colour.
    """
    by, colour = look
    if by not in MEASURES:
        raise UsageError(f"a chart of a map is by {', '.join(MEASURES)}, not by {by!r}")
    hues = chart_hues(facts, colour)
    places = _icicle(tree, facts, by, room, hues)
    host = urlsplit(facts.url[tree.page]).netloc
    head = (element("style", "", _STYLE), _HATCH, caption(12, 28, host, "title"), *_legends(by, host, hues))
    write_sheet(out, room, f"{host}: branches by {by}", (*head, *places), kind="icicle")


def _icicle(tree: MapNode, facts: PageColumns, by: str, room: tuple[int, int], hues: Hues) -> Iterator[str]:
    """A column for each depth, as many as have room for names."""
    places = list(_nest(tree, facts, by, room[1] - TOP - 8.0))
    depths, most = 1 + int(max(place.box.x for place in places)), room[0] // COLUMN
    column = (room[0] - 16) / min(depths, most)
    if depths > most:
        yield caption(
            room[0] - 330, 28, f"the first {most} of {depths} levels; deeper pages count for their branch", "soft"
        )
    for place in places:
        if place.box.x < most:
            box = Box(8.0 + place.box.x * column, TOP + place.box.y, column - GAP, place.box.height)
            yield _draw_box(place._replace(box=box), facts, hues)


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


def _legends(by: str, host: str, hues: Hues) -> Iterator[str]:
    """The folders or segments beside the title, what areas and other colours mean below it."""
    names = short_names(list(hues.named), FOLDER_SIGNS)
    folders = [Key(name, "rect", hue) for name, hue in zip(names, hues.named.values(), strict=True)]
    yield legend(folders, 36 + text_px(host, 18), 28)[0]
    words = {"pages": "pages in the branch", "size": "bytes of the branch", "rank": "PageRank of the branch"}[by]
    keys = [
        Key(f"height: {words}"),
        Key(f"fetched in other {hues.word}s" if hues.named else "fetched", "rect", "fetched"),
        Key("discovered", "rect", "discovered", hatched=True),
        Key("failed", "rect", "failed"),
        Key("not named one by one", "rect", "rest"),
    ]
    yield legend(keys, 12, 50)[0]


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
