"""Where does a site's weight lie, at one look?

An icicle: the home page on the left, each depth a column further right. A sunburst: the home page in the middle, each
depth a ring further out. A treemap: each branch a box within that of the page above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TextIO
from urllib.parse import urlsplit

from periplus.errors import UsageError
from periplus.model.results import OTHERS, MapNode, PageColumns
from periplus.model.visit import State
from periplus.present.drawing import WHOLE, Box, Sector, laid, name_spot, outline
from periplus.present.markup import attributes, escaped
from periplus.present.wording import REASON_WORDS, count_of, fit, labels, number, size, visible

# what a height or an area may mean: name, field of MapNode
MEASURES = {"pages": "pages", "size": "size_bytes", "rank": "rank"}
FORMS = {"icicle": "height", "treemap": "area", "sunburst": "angle"}  # name, and what its measure is seen by
TOP = 64  # px above the first column: heading and legend
GAP = 1.0  # px between places
LEAST_DRAWN = 0.7  # px: lower places cannot be seen, and their parent's colour stands for them
LEAST_NAMED = 13.0  # px: a line of text
SIGN = 6.6  # px: a sign of the label's font at 12 px, on average
COLUMN = 120  # px: the narrowest column in which labels can be read
HEAD = 20.0  # px of a treemap's box that its own name takes, above its branches
RIM = 3.0  # px around them
LEAST_BOX = 4.0  # px: sides of the smallest box that is drawn
LEAST_RING = 44.0  # px: a narrower ring holds no names; depths that would need it are not drawn
DISC = 0.6  # of a ring's width: the home page's radius
LEAST_EDGED = 3.0  # px: of narrower parts of a ring the edges would be all that is seen

_STYLE = """
svg { --paper: #fbfaf7; --ink: #22272b; --soft: #5d676e; --fetched: #a9cfce; --cited: #eed9a8; --dead: #e3a496; --rest: #dcdfda; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #15191c; --ink: #e6eaea; --soft: #98a3a9; --fetched: #2c5f64; --cited: #72592a; --dead: #7d3b2f; --rest: #333b3e; }
}
.paper { fill: var(--paper); } text { font: 12px system-ui, "Segoe UI", "Noto Sans", "Liberation Sans", sans-serif; fill: var(--ink); }
.title { font-size: 18px; font-weight: 600; } .soft { fill: var(--soft); }
.fetched { fill: var(--fetched); } .cited { fill: var(--cited); } .dead { fill: var(--dead); } .rest { fill: var(--rest); }
.hatch { stroke: var(--ink); stroke-opacity: .22; stroke-width: 1.5; } .treemap rect, .sunburst path { stroke: var(--paper); fill-rule: evenodd; }
.sunburst .thin { stroke: none; }
.along { text-anchor: middle; }
a:hover rect, g:hover > rect, a:hover path, g:hover > path { filter: brightness(1.08); }
a:focus-visible { outline: none; } a:focus-visible :is(rect, path) { stroke: var(--ink); stroke-width: 2; }
"""  # noqa: E501


class _Place(NamedTuple):
    """A node with the room it takes."""

    node: MapNode
    name: str
    box: Box


def write_chart(
    tree: MapNode,
    facts: PageColumns,
    out: TextIO,
    *,
    by: str = "rank",
    form: str = "icicle",
    room: tuple[int, int] = (1200, 820),
) -> None:
    """The folded map as SVG that needs nothing else.

    A place's height (icicle) or angle (sunburst) is its branch's share of the whole, its area (treemap)
    that of the branch above.

    tree: by analyse.linkgraph.map_tree. by: pages, size (bytes) or rank. Each place links to its page, and says its
    figures to the pointer. Fetched, merely cited and dead pages differ in colour; hatched is what was not fetched, of
    pages not named one by one their share. room: width and height, px; wider if the columns need it. The rings of a
    sunburst end where a name would not fit into the next one, and it says so.
    Light and dark as the reader's system. out: UTF-8. Raises UsageError for another measure or form.
    """
    if by not in MEASURES:
        raise UsageError(f"a chart of a map is by {', '.join(MEASURES)}, not by {by!r}")
    if form not in FORMS:
        raise UsageError(f"a chart of a map is one of {', '.join(FORMS)}, not {form!r}")
    width, height = room
    if form == "icicle":
        width, drawn = _icicle(tree, facts, by, room)
    else:
        drawn = (_treemap if form == "treemap" else _sunburst)(tree, facts, by, room)
    host = escaped(visible(urlsplit(facts.url[tree.page]).netloc))
    out.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{form}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">\n'
    )
    out.write(f"<title>{host}: branches by {by}</title>\n<style>{_STYLE}</style>\n")
    out.write(
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    )
    out.write('<line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>\n')
    out.write(
        f'<path class="paper" d="M0 0H{width}V{height}H0Z"/>\n<text class="title" x="12" '
        f'y="28">{host}</text>\n{_legend(by, form)}'
    )
    out.writelines(drawn)
    out.write("</svg>\n")


def _icicle(tree: MapNode, facts: PageColumns, by: str, room: tuple[int, int]) -> tuple[int, Iterator[str]]:
    """(width in px, the places)"""
    places = list(_nested(tree, facts, by, room[1] - TOP - 8.0))
    columns = _depths(places)
    width = max(room[0], columns * COLUMN)
    column = (width - 16) / columns
    boxes = (
        place._replace(box=Box(8.0 + place.box.x * column, TOP + place.box.y, column - GAP, place.box.height))
        for place in places
    )
    return width, (_boxed(place, facts) for place in boxes)


def _sunburst(tree: MapNode, facts: PageColumns, by: str, room: tuple[int, int]) -> Iterator[str]:
    """The home page as a disc, each depth a ring around it, as many as there is room for."""
    radius = min(room[1] - TOP, room[0]) / 2 - 8.0
    places = list(_nested(tree, facts, by, WHOLE * radius))
    depths, most = _depths(places), int(radius / LEAST_RING)
    wide = radius / (min(max(depths, 2), most) - 1 + DISC)
    if depths > most:
        yield f'<text class="soft" x="12" y="{TOP + 12}">the first {most} of {depths} depths;</text>\n'
        yield f'<text class="soft" x="12" y="{TOP + 28}">deeper pages count for their branch</text>\n'
    yield f'<g transform="translate({room[0] / 2:.1f} {TOP + radius:.1f})">\n'
    for place in places:
        depth, start, _, part = place.box
        if depth < most:
            yield _curved(
                place,
                Sector(max(depth - 1 + DISC, 0) * wide, (depth + DISC) * wide, start / radius, (start + part) / radius),
                facts,
            )
    yield "</g>\n"


def _nested(tree: MapNode, facts: PageColumns, by: str, length: float) -> Iterator[_Place]:
    """Every node that is long enough to be seen, parents first: x its depth, y and height its share of the length;
    a page's own share stays free behind its branches.
    """
    whole = _value(tree, by) or 1.0
    stack = [_Place(tree, _names((tree,), facts, "")[0], Box(0.0, 0.0, 1.0, length))]
    while stack:
        place = stack.pop()
        yield place
        y, branches = place.box.y, []
        for child, name in _named(place.node, facts):
            part = length * _value(child, by) / whole
            if part >= LEAST_DRAWN:
                branches.append(_Place(child, name, Box(place.box.x + 1.0, y, 1.0, part)))
            y += part
        stack += reversed(branches)  # so that the keyboard walks them in their order


def _depths(places: list[_Place]) -> int:
    return 1 + int(max(place.box.x for place in places))


def _treemap(tree: MapNode, facts: PageColumns, by: str, room: tuple[int, int]) -> Iterator[str]:
    """Every node whose box is large enough to be seen, parents first;
    a page's own share stays free among its branches.
    """
    stack = [_Place(tree, _names((tree,), facts, "")[0], Box(8.0, float(TOP), room[0] - 16.0, room[1] - TOP - 8.0))]
    while stack:
        place = stack.pop()
        yield _boxed(place, facts)
        x, y, width, height = place.box
        inside = Box(x + RIM, y + HEAD, width - 2 * RIM, height - HEAD - RIM)
        below = sorted(_named(place.node, facts), key=lambda one: -_value(one[0], by))
        shares = [_value(child, by) for child, _ in below]
        own = max(_value(place.node, by) - sum(shares), 0.0)
        branches = [
            _Place(child, name, box) for (child, name), box in zip(below, laid([*shares, own], inside), strict=False)
        ]
        stack += [branch for branch in reversed(branches) if min(branch.box.width, branch.box.height) >= LEAST_BOX]


def _value(node: MapNode, by: str) -> float:
    return float(getattr(node, MEASURES[by]))


def _named(node: MapNode, facts: PageColumns) -> list[tuple[MapNode, str]]:
    """A node's branches with their names."""
    return list(
        zip(node.children, _names(node.children, facts, facts.title[node.page]) if node.children else [], strict=True)
    )


def _names(nodes: tuple[MapNode, ...], facts: PageColumns, above: str) -> list[str]:
    named = [node.page for node in nodes if node.page != OTHERS]  # OTHERS stands last
    names = labels([facts.url[page] for page in named], [facts.title[page] for page in named], above)
    return names + [count_of(node.pages, "more page") for node in nodes if node.page == OTHERS]


def _boxed(place: _Place, facts: PageColumns) -> str:
    """One place as a rectangle, hatched from the right."""
    left, y, wide, high = place.box
    high = max(high - GAP, 0.5)
    upright = f'y="{y:.2f}" height="{high:.2f}"'
    shape = f'<rect class="{_kind(place.node, facts)}" x="{left:.1f}" width="{wide:.1f}" {upright}/>'
    if unread := _unread(place.node, facts):
        shape += (
            f'<rect fill="url(#hatch)" x="{left + wide * (1 - unread):.1f}" width="{wide * unread:.1f}" {upright}/>'
        )
    chars = int((wide - 13) / SIGN)
    if high >= LEAST_NAMED and chars > 2:
        shape += (
            f'<text x="{left + 6:.1f}" '
            f'y="{y + min(high / 2 + 4.2, 15):.1f}">{escaped(fit(place.name, chars).rstrip())}</text>'
        )
    return _linked(place, shape, facts)


def _curved(place: _Place, sector: Sector, facts: PageColumns) -> str:
    """One place as a part of a ring, hatched from its end."""
    edge = "" if sector.outer * sector.span >= LEAST_EDGED else " thin"
    shape = f'<path class="{_kind(place.node, facts)}{edge}" d="{outline(sector)}"/>'
    if unread := _unread(place.node, facts):
        shape += f'<path fill="url(#hatch)" d="{outline(sector._replace(start=sector.end - sector.span * unread))}"/>'
    spot = name_spot(sector)
    chars = int(spot.length / SIGN)
    if chars > 4:
        turned = f"translate({spot.x:.1f} {spot.y:.1f}) rotate({spot.turned:.1f})"
        shape += f'<text class="along" transform="{turned}" y="4.2">{escaped(fit(place.name, chars).rstrip())}</text>'
    return _linked(place, shape, facts)


def _linked(place: _Place, shape: str, facts: PageColumns) -> str:
    """A drawn place with its figures, and the link around them."""
    url = facts.url[place.node.page] if place.node.page != OTHERS else ""
    inside = f"<title>{escaped(_said(place, facts))}</title>{shape}"
    if url.startswith(("http://", "https://")):
        return (
            f"<a{attributes([('href', url), ('target', '_top'), ('rel', 'noopener noreferrer nofollow')])}"
            f">{inside}</a>\n"
        )
    return f"<g>{inside}</g>\n"


def _unread(node: MapNode, facts: PageColumns) -> float:
    """Which share of a place is hatched."""
    return {"cited": 1.0, "rest": 1 - node.indexed / node.pages}.get(_kind(node, facts), 0.0)


def _kind(node: MapNode, facts: PageColumns) -> str:
    if node.page == OTHERS:
        return "rest"
    state = facts.state[node.page]
    return {State.INDEXED: "fetched", State.INVALID: "dead"}.get(state, "cited")


def _said(place: _Place, facts: PageColumns) -> str:
    """A place's name, its address, and its branch's figures, a line each."""
    node = place.node
    lines = [place.name]
    if node.page != OTHERS:
        reason = facts.reason[node.page]
        lines += [visible(facts.url[node.page]), REASON_WORDS[reason] + f", score {int(facts.score[node.page])}"]
    lines.append(f"branch: {count_of(node.pages, 'page')}, {number(node.indexed)} fetched, {size(node.size_bytes)}")
    return "\n".join(lines)


def _legend(by: str, form: str) -> str:
    words = {"pages": "pages in the branch", "size": "bytes of the branch", "rank": "PageRank of the branch"}[by]
    out, x = [f'<text class="soft" x="12" y="50">{FORMS[form]}: {words}</text>'], 230
    for kind, name in (
        ("fetched", "fetched"),
        ("cited", "known, not fetched"),
        ("dead", "dead"),
        ("rest", "not named one by one"),
    ):
        hatch = f'<rect fill="url(#hatch)" x="{x}" y="40" width="12" height="12"/>' if kind == "cited" else ""
        out.append(
            f'<rect class="{kind}" x="{x}" y="40" width="12" height="12"/>{hatch}<text class="soft" '
            f'x="{x + 18}" y="50">{name}</text>'
        )
        x += 44 + int(len(name) * SIGN)
    return "\n".join(out) + "\n"
