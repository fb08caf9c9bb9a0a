"""How did the harvest go? What was found over pages, beside a round robin and the estimate of all there is; and site by site."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TextIO

from periplus.model.webometrics import Curve, Harvest
from periplus.present.lines import cells, fit, visible
from periplus.present.palette import FONT, PALETTE
from periplus.present.wording import number
from periplus.present.xml_text import escaped

NAMED = 8  # sites that have a colour and a name of their own; the others are grey
WIDTH, HEIGHT = 1120, 470
TOP, BOTTOM = 92, 416
LEFT = (66, 620)  # of the two charts
WIDE = (400, 380)
LABEL = 14

_STYLE = (
    PALETTE
    + FONT
    + """
svg { --c0: #155e75; --c1: #b98e2f; --c2: #b4513f; --c3: #4d7c3a; --c4: #7a5aa6; --c5: #2f7f86; --c6: #a2567f; --c7: #5b7fae; }
@media (prefers-color-scheme: dark) {
  svg { --c0: #7cc4d4; --c1: #d9b15f; --c2: #dd8672; --c3: #95c07c; --c4: #b79fdb; --c5: #63b3b6; --c6: #d993b6; --c7: #85a8d8; }
}
.title { font-size: 18px; font-weight: 600; } .head { font-weight: 600; } .soft { fill: var(--soft); font-size: 11px; } .end { text-anchor: end; }
.axis { stroke: var(--line); } polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
.rest { stroke: var(--grey-line); stroke-width: 1; opacity: .55; }
.main { stroke: var(--c0); stroke-width: 2.6; } .base { stroke: var(--c1); stroke-dasharray: 6 4; } .found { stroke: var(--c3); stroke-width: 1.6; }
.band { fill: var(--teal); opacity: .35; } .guess { stroke: var(--teal-line); stroke-dasharray: 2 3; }
"""
    + " ".join(f".c{place} {{ stroke: var(--c{place}); }} .t{place} {{ fill: var(--c{place}); font-size: 11px; }}" for place in range(NAMED))
    + "\n.main-t { fill: var(--c0); font-size: 11px; } .base-t { fill: var(--c1); font-size: 11px; } .found-t { fill: var(--c3); font-size: 11px; }\n"
)


def write_yield_curves(harvest: Harvest, title: str, about: str, out: TextIO) -> None:
    """Two charts as SVG: the whole harvest with baseline and estimate, and each site over its own pages. out: UTF-8."""
    out.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">\n')
    out.write(f"<title>{escaped(visible(title))}: yield</title>\n<style>{_STYLE}</style>\n")
    out.write(f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>\n')
    out.write(f'<text class="title" x="14" y="28">{escaped(visible(title))}</text>\n<text class="soft" x="14" y="48">{escaped(visible(about))}</text>\n')
    out.writelines(_whole(harvest))
    out.writelines(_sites(harvest.sites))
    out.write("</svg>\n")


def _whole(harvest: Harvest) -> Iterator[str]:
    rich, estimate = harvest.richness, harvest.richness.total
    shown = (harvest.total, harvest.baseline.curve, harvest.companions)
    top = max(max((max(curve.found) for curve in shown), default=0.0), min(estimate.high if estimate else 0.0, 2.5 * max(rich.observed, 1)))
    across, up = nice(max(harvest.total.pages)), nice(top)
    yield from _axes(0, f"new external {_items(harvest.item)} over pages fetched", across, up)
    if estimate is not None and estimate.high > rich.observed and estimate.low < up:
        low, high = (_y(min(value, up), up) for value in (estimate.low, estimate.high))
        x, end = LEFT[0], LEFT[0] + WIDE[0]
        yield f'<rect class="band" x="{x}" y="{high:.1f}" width="{WIDE[0]}" height="{max(low - high, 1):.1f}"/>'
        if estimate.value <= up:
            middle = _y(estimate.value, up)
            yield f'<line class="guess" x1="{x}" y1="{middle:.1f}" x2="{end}" y2="{middle:.1f}"/>\n'
    marks = [(harvest.companions, "found", "sites"), (harvest.baseline.curve, "base", "round robin"), (harvest.total, "main", "found")]
    ends = []
    for curve, kind, name in marks:
        yield _line(curve, kind, 0, across, up)
        ends.append((_y(curve.found[-1], up), kind + "-t", name))
    yield from _end_names(0, ends)
    said = f"dashed: round robin, as far as its pages were fetched ({number(harvest.baseline.pages)})"
    if estimate is not None:
        said = f"band: {number(round(estimate.low))} to {number(round(estimate.high))} {_items(harvest.item)} on all known pages (95 %); {said}"
    yield f'<text class="soft" x="14" y="{HEIGHT - 12}">{escaped(said)}</text>\n'


def _items(item: str) -> str:
    return item + "s"


def _sites(curves: Sequence[Curve]) -> Iterator[str]:
    across = nice(max((curve.pages[-1] for curve in curves), default=1))
    up = nice(max((curve.found[-1] for curve in curves), default=1.0))
    yield from _axes(1, "the same by site, over its own pages", across, up)
    for curve in curves[NAMED:]:
        yield _line(curve, "rest", 1, across, up)
    names = []
    for place, curve in reversed(list(enumerate(curves[:NAMED]))):
        yield _line(curve, f"c{place}", 1, across, up)
        names.append((_y(curve.found[-1], up), f"t{place}", fit(visible(curve.name), min(cells(visible(curve.name)), 15))))
    yield from _end_names(1, names)
    if curves[NAMED:]:
        yield f'<text class="soft end" x="{LEFT[1] + WIDE[1]}" y="{HEIGHT - 12}">grey: {number(len(curves) - NAMED)} more sites</text>\n'


def nice(value: float) -> float:
    """The next round number whose quarters are whole."""
    if value <= 12:
        return next(top for top in (4.0, 8.0, 12.0) if top >= value)
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if step * power >= value * 0.9999)


def _y(value: float, up: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * value / up


def _axes(chart: int, head: str, across: float, up: float) -> Iterator[str]:
    left, right = LEFT[chart], LEFT[chart] + WIDE[chart]
    yield f'<text class="head" x="{left}" y="78">{escaped(head)}</text>\n'
    for part in range(5):
        y = _y(up * part / 4, up)
        yield f'<line class="axis" x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
        yield f'<text class="soft end" x="{left - 6}" y="{y + 4:.1f}">{_tick(up * part / 4)}</text>'
        x = left + WIDE[chart] * part / 4
        yield f'<text class="soft" text-anchor="middle" x="{x:.1f}" y="{BOTTOM + 18}">{_tick(across * part / 4)}</text>\n'


def _tick(value: float) -> str:
    return number(round(value)) if value == round(value) else f"{value:g}"


def _line(curve: Curve, kind: str, chart: int, across: float, up: float) -> str:
    points = " ".join(f"{LEFT[chart] + WIDE[chart] * page / across:.1f},{_y(found, up):.1f}" for page, found in zip(curve.pages, curve.found, strict=True))
    said = f"{visible(curve.name)}: {number(round(curve.found[-1]))} on {number(curve.pages[-1])} pages"
    return f'<polyline class="{kind}" points="{points}"><title>{escaped(said)}</title></polyline>\n'


def _end_names(chart: int, ends: Sequence[tuple[float, str, str]]) -> Iterator[str]:
    """Names at the right edge, none over another."""
    free = float(TOP)
    for y, kind, name in sorted(ends):
        free = max(free, y)
        yield f'<text class="{kind}" x="{LEFT[chart] + WIDE[chart] + 8}" y="{free + 4:.1f}">{escaped(name)}</text>\n'
        free += LABEL
