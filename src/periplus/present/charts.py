"""Where does a site's weight lie, at one look?

An icicle: the home page on the left, each layer a column further right. A treemap: each branch a box within that of the page above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TextIO
from urllib.parse import urlsplit

from periplus.errors import UsageError
from periplus.model.results import OTHERS, MapNode, PageColumns
from periplus.model.visit import State
from periplus.present.lines import fit, visible
from periplus.present.treemap import Box, laid
from periplus.present.wording import REASON_WORDS, count_of, labels, number, size
from periplus.present.xml_text import attributes, escaped

MEASURES = {"pages": "pages", "size": "size_bytes", "rank": "rank"}  # what a height or an area may mean: name, field of MapNode
FORMS = ("icicle", "treemap")
TOP = 64  # px above the first column: heading and legend
GAP = 1.0  # px between places
LEAST_DRAWN = 0.7  # px: lower places cannot be seen, and their parent's colour stands for them
LEAST_NAMED = 13.0  # px: a line of text
SIGN = 6.6  # px: a sign of the label's font at 12 px, on average
COLUMN = 120  # px: the narrowest column in which labels can be read
HEAD = 20.0  # px of a treemap's box that its own name takes, above its branches
RIM = 3.0  # px around them
LEAST_BOX = 4.0  # px: sides of the smallest box that is drawn

_STYLE = """
svg { --paper: #fbfaf7; --ink: #22272b; --soft: #5d676e; --fetched: #a9cfce; --cited: #eed9a8; --dead: #e3a496; --rest: #dcdfda; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #15191c; --ink: #e6eaea; --soft: #98a3a9; --fetched: #2c5f64; --cited: #72592a; --dead: #7d3b2f; --rest: #333b3e; }
}
.paper { fill: var(--paper); } text { font: 12px system-ui, "Segoe UI", "Noto Sans", "Liberation Sans", sans-serif; fill: var(--ink); }
.title { font-size: 18px; font-weight: 600; } .soft { fill: var(--soft); }
.fetched { fill: var(--fetched); } .cited { fill: var(--cited); } .dead { fill: var(--dead); } .rest { fill: var(--rest); }
.hatch { stroke: var(--ink); stroke-opacity: .22; stroke-width: 1.5; } .treemap rect { stroke: var(--paper); }
a:hover rect, g:hover > rect { filter: brightness(1.08); }
"""


@dataclass(frozen=True, slots=True)
class _Place:
    """A node with the room it takes."""

    node: MapNode
    name: str
    box: Box


def write_chart(tree: MapNode, facts: PageColumns, out: TextIO, *, by: str = "rank", form: str = "icicle", room: tuple[int, int] = (1200, 820)) -> None:
    """The folded map as SVG that needs nothing else.

    A place's height (icicle) is its branch's share of the whole, its area (treemap) that of the branch above.

    tree: by analyse.hierarchy.map_tree. by: pages, size (bytes) or rank. Each place links to its page, and says its figures
    to the pointer. Fetched, merely cited and dead pages differ in colour; hatched is what was not fetched, of pages not named
    one by one their share. room: width and height, px; wider if the columns need it.
    Light and dark as the reader's system. out: UTF-8. Raises UsageError for another measure or form.
    """
    if by not in MEASURES:
        raise UsageError(f"a chart of a map is by {', '.join(MEASURES)}, not by {by!r}")
    if form not in FORMS:
        raise UsageError(f"a chart of a map is an {' or a '.join(FORMS)}, no {form!r}")
    width, height = room
    high = height - TOP - 8.0
    if form == "icicle":
        width, places = _in_columns(list(_icicle(tree, facts, by, high)), width)
    else:
        places = list(_treemap(tree, facts, by, Box(8.0, float(TOP), width - 16.0, high)))
    host = urlsplit(facts.url[tree.page]).netloc
    out.write(f'<svg xmlns="http://www.w3.org/2000/svg" class="{form}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n')
    out.write(f"<title>{escaped(visible(host))}: branches by {by}</title>\n<style>{_STYLE}</style>\n")
    out.write('<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">')
    out.write('<line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>\n')
    out.write(f'<path class="paper" d="M0 0H{width}V{height}H0Z"/>\n')
    out.write(f'<text class="title" x="12" y="28">{escaped(visible(host))}</text>\n{_legend(by, form)}')
    for place in places:
        out.write(_drawn(place, facts))
    out.write("</svg>\n")


def _icicle(tree: MapNode, facts: PageColumns, by: str, height: float) -> Iterator[_Place]:
    """Every node that is high enough to be seen, parents first, x and width in columns; a page's own share stays free below its children."""
    whole = _value(tree, by) or 1.0
    stack = [_Place(tree, _names((tree,), facts, "")[0], Box(0.0, float(TOP), 1.0, height))]
    while stack:
        place = stack.pop()
        yield place
        y = place.box.y
        for child, name in _named(place.node, facts):
            part = height * _value(child, by) / whole
            if part >= LEAST_DRAWN:
                stack.append(_Place(child, name, Box(place.box.x + 1.0, y, 1.0, part)))
            y += part


def _in_columns(places: list[_Place], width: int) -> tuple[int, list[_Place]]:
    """(width of the picture in px, the places with x and width in px)"""
    columns = 1 + int(max(place.box.x for place in places))
    width = max(width, columns * COLUMN)
    column = (width - 16) / columns
    return width, [replace(place, box=place.box._replace(x=8.0 + place.box.x * column, width=column - GAP)) for place in places]


def _treemap(tree: MapNode, facts: PageColumns, by: str, room: Box) -> Iterator[_Place]:
    """Every node whose box is large enough to be seen, parents first; a page's own share stays free among its branches."""
    stack = [_Place(tree, _names((tree,), facts, "")[0], room)]
    while stack:
        place = stack.pop()
        yield place
        x, y, width, height = place.box
        inside = Box(x + RIM, y + HEAD, width - 2 * RIM, height - HEAD - RIM)
        below = sorted(_named(place.node, facts), key=lambda one: -_value(one[0], by))
        shares = [_value(child, by) for child, _ in below]
        own = max(_value(place.node, by) - sum(shares), 0.0)
        for (child, name), box in zip(below, laid([*shares, own], inside), strict=False):
            if min(box.width, box.height) >= LEAST_BOX:
                stack.append(_Place(child, name, box))


def _value(node: MapNode, by: str) -> float:
    return float(getattr(node, MEASURES[by]))


def _named(node: MapNode, facts: PageColumns) -> list[tuple[MapNode, str]]:
    """A node's branches with their names."""
    return list(zip(node.children, _names(node.children, facts, facts.title[node.page]) if node.children else [], strict=True))


def _names(nodes: tuple[MapNode, ...], facts: PageColumns, above: str) -> list[str]:
    named = [node.page for node in nodes if node.page != OTHERS]  # OTHERS stands last
    names = labels([facts.url[page] for page in named], [facts.title[page] for page in named], above)
    return names + [count_of(node.pages, "more page") for node in nodes if node.page == OTHERS]


def _drawn(place: _Place, facts: PageColumns) -> str:
    """One place: its rectangle, its label where one fits, its figures, and the link around them."""
    node, (left, y, wide, high) = place.node, place.box
    kind = _kind(node, facts)
    high = max(high - GAP, 0.5)
    upright = f'y="{y:.2f}" height="{high:.2f}"'
    shape = f'<rect class="{kind}" x="{left:.1f}" width="{wide:.1f}" {upright}/>'
    unread = {"cited": 1.0, "rest": 1 - node.indexed / node.pages}.get(kind, 0.0)  # of a place's width: hatched from the right
    if unread:
        shape += f'<rect fill="url(#hatch)" x="{left + wide * (1 - unread):.1f}" width="{wide * unread:.1f}" {upright}/>'
    chars = int((wide - 13) / SIGN)
    if high >= LEAST_NAMED and chars > 2:
        shape += f'<text x="{left + 6:.1f}" y="{y + min(high / 2 + 4.2, 15):.1f}">{escaped(fit(place.name, chars).rstrip())}</text>'
    url = facts.url[node.page] if node.page != OTHERS else ""
    inside = f"<title>{escaped(_said(place, facts))}</title>{shape}"
    if url.startswith(("http://", "https://")):
        return f"<a{attributes([('href', url), ('target', '_top'), ('rel', 'noopener noreferrer nofollow')])}>{inside}</a>\n"
    return f"<g>{inside}</g>\n"


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
    out, x = [f'<text class="soft" x="12" y="50">{"height" if form == "icicle" else "area"}: {words}</text>'], 230
    for kind, name in (("fetched", "fetched"), ("cited", "known, not fetched"), ("dead", "dead"), ("rest", "not named one by one")):
        hatch = f'<rect fill="url(#hatch)" x="{x}" y="40" width="12" height="12"/>' if kind == "cited" else ""
        out.append(f'<rect class="{kind}" x="{x}" y="40" width="12" height="12"/>{hatch}<text class="soft" x="{x + 18}" y="50">{name}</text>')
        x += 44 + int(len(name) * SIGN)
    return "\n".join(out) + "\n"
