"""How a campaign or a harvest goes: in lines, as JSON and as drawings over the pages fetched."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Sequence
from typing import TextIO

from periplus.model.webometrics import Baseline, CampaignProgress, Curve, Harvest, SiteProgress
from periplus.present.drawing import FONT, PALETTE
from periplus.present.markup import escaped
from periplus.present.wording import cells, count_of, fit, number, visible

STEPS = "▁▂▃▄▅▆▇█"
PLAIN_STEPS = ".:-=+*#@"  # for outputs that have no such signs
CURVE_CELLS = 40
_HEADS = ("site", "pages", "new links", "last 50", "rule's score", "read", "state")


def standing_lines(found: CampaignProgress, *, most: int = -1, boxes: bool = True) -> Iterator[str]:
    """Sites with most new links first, `most` of them; then the harvest. boxes: whether the output has block signs."""
    order = sorted(found.sites, key=lambda row: (-row.links, -row.pages, row.short))
    shown = order if most < 0 else order[:most]
    yield from _table([_cells(row) for row in shown])
    if len(order) > len(shown):
        yield f"  and {count_of(len(order) - len(shown), 'more site')}"
    yield ""
    yield from _harvest_lines(found, STEPS if boxes else PLAIN_STEPS)


def _cells(row: SiteProgress) -> tuple[str, ...]:
    score = "" if row.score is None else f"{row.score:.3g}"
    read = f"{row.share:.0%} of {number(row.pages + row.waiting)}" if row.pages else ""
    return (
        fit(visible(row.short), 24),
        number(row.pages),
        number(row.links),
        f"{row.recent:.2f}" if row.pages else "",
        score,
        read,
        visible(row.state),
    )


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(cells(row[column]) for row in [_HEADS, *rows]) for column in range(len(_HEADS))]
    for row in (_HEADS, *rows):
        padded = [
            _padded(text, width, left=column in (0, 6))
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield ("  " + "  ".join(padded)).rstrip()


def _padded(text: str, width: int, *, left: bool) -> str:
    blank = " " * (width - cells(text))
    return text + blank if left else blank + text


def _harvest_lines(found: CampaignProgress, steps: str) -> Iterator[str]:
    harvest, campaign = found.harvest, found.campaign
    total, baseline = harvest.total.found[-1], harvest.baseline
    budget = f" of {number(campaign.pages)}" if campaign.pages else ""
    said = (
        f"{number(found.pages)}{budget} pages, {number(int(total))} different external {harvest.item}s, "
        f"{harvest.recent:.2f} new a page lately"
    )
    yield f"  {said}; rule {campaign.rule}, seed {campaign.seed}"
    yield f"  found        {drawn(harvest.total, max(total, 1.0), steps)} {number(int(total))}"
    outside = harvest.companions.found[-1]
    yield f"  new sites    {drawn(harvest.companions, max(outside, 1.0), steps)} {number(int(outside))}"
    yield f"  round robin  {round_robin_told(baseline)}"
    yield f"  complete     {completeness_told(harvest)}"


def round_robin_told(baseline: Baseline) -> str:
    """What a round robin finds, beside what was found."""
    if not baseline.pages:
        return "cannot be told: not every site was asked for a page"
    return (
        f"{number(baseline.found)} on its first {count_of(baseline.pages, 'page')}, which were all fetched; found in "
        f"as many: {number(baseline.beside)}"
    )


def completeness_told(harvest: Harvest) -> str:
    """How much of what the known pages hold was found, as far as that can be said."""
    rich, items = harvest.richness, f"{harvest.item}s"
    if not rich.pages:
        return "nothing was read yet"
    if rich.total is None:
        return f"too early to tell: {number(rich.sites_read)} of {count_of(rich.sites, 'site')} were read"
    if rich.pages == rich.known:
        return f"{number(rich.observed)} {items}: every known page was read"
    between = f"95 %: {number(round(rich.total.low))} to {number(round(rich.total.high))}"
    share = f"{rich.share:.0%}" if rich.share is not None else "all"
    return (
        f"about {share}: the {count_of(rich.known, 'page')} known so far hold some {number(round(rich.total.value))} "
        f"{items} by estimate ({between})"
    )


def drawn(curve: Curve, top: float, steps: str = STEPS) -> str:
    """The curve in CURVE_CELLS signs, from 0 to top."""
    if curve.pages[-1] == 0:
        return steps[0] * CURVE_CELLS
    marks = []
    place = 0
    for cell in range(1, CURVE_CELLS + 1):
        while curve.pages[place] * CURVE_CELLS < cell * curve.pages[-1]:
            place += 1
        marks.append(steps[min(len(steps) - 1, int(curve.found[place] / top * len(steps)))])
    return "".join(marks)


def write_standing_json(found: CampaignProgress, out: TextIO) -> None:
    """Everything, the curves too. out: UTF-8."""
    campaign = dataclasses.asdict(found.campaign)
    sites = [row._asdict() | {"share": row.share} for row in found.sites]
    json.dump(
        {"campaign": campaign, "pages": found.pages, "sites": sites, "harvest": dataclasses.asdict(found.harvest)},
        out,
        ensure_ascii=False,
    )
    out.write("\n")


NAMED = 8  # sites that have a colour and a name of their own; the others are grey
YIELD_WIDTH, YIELD_HEIGHT = 1120, 470
YIELD_TOP, YIELD_BOTTOM = 92, 416
YIELD_LEFT = (66, 620)  # of the two charts
WIDE = (400, 380)
LABEL = 14

_YIELD_STYLE = (
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
"""  # noqa: E501
    + " ".join(
        f".c{place} {{ stroke: var(--c{place}); }} .t{place} {{ fill: var(--c{place}); font-size: 11px; }}"
        for place in range(NAMED)
    )
    + (
        "\n.main-t { fill: var(--c0); font-size: 11px; } .base-t { fill: var(--c1); font-size: 11px; } .found-t { "
        "fill: var(--c3); font-size: 11px; }\n"
    )
)


def write_yield_curves(harvest: Harvest, title: str, about: str, out: TextIO) -> None:
    """Two charts as SVG: the whole harvest with baseline and estimate, and each site over its own pages. out: UTF-8."""
    out.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {YIELD_WIDTH} {YIELD_HEIGHT}" width="{YIELD_WIDTH}" '
        f'height="{YIELD_HEIGHT}" role="img">\n'
    )
    out.write(f"<title>{escaped(visible(title))}: yield</title>\n<style>{_YIELD_STYLE}</style>\n")
    out.write(f'<rect class="paper" width="{YIELD_WIDTH}" height="{YIELD_HEIGHT}"/>\n')
    out.write(
        f'<text class="title" x="14" y="28">{escaped(visible(title))}</text>\n<text class="soft" x="14" '
        f'y="48">{escaped(visible(about))}</text>\n'
    )
    out.writelines(_whole(harvest))
    out.writelines(_sites(harvest.sites))
    out.write("</svg>\n")


def _whole(harvest: Harvest) -> Iterator[str]:
    rich, estimate = harvest.richness, harvest.richness.total
    shown = (harvest.total, harvest.baseline.curve, harvest.companions)
    top = max(
        max((max(curve.found) for curve in shown), default=0.0),
        min(estimate.high if estimate else 0.0, 2.5 * max(rich.observed, 1)),
    )
    across, up = nice(max(harvest.total.pages)), nice(top)
    yield from _yield_axes(0, f"new external {_items(harvest.item)} over pages fetched", across, up)
    if estimate is not None and estimate.high > rich.observed and estimate.low < up:
        low, high = (_yield_y(min(value, up), up) for value in (estimate.low, estimate.high))
        x, end = YIELD_LEFT[0], YIELD_LEFT[0] + WIDE[0]
        yield f'<rect class="band" x="{x}" y="{high:.1f}" width="{WIDE[0]}" height="{max(low - high, 1):.1f}"/>'
        if estimate.value <= up:
            middle = _yield_y(estimate.value, up)
            yield f'<line class="guess" x1="{x}" y1="{middle:.1f}" x2="{end}" y2="{middle:.1f}"/>\n'
    marks = [
        (harvest.companions, "found", "sites"),
        (harvest.baseline.curve, "base", "round robin"),
        (harvest.total, "main", "found"),
    ]
    ends = []
    for curve, kind, name in marks:
        yield _yield_line(curve, kind, 0, across, up)
        ends.append((_yield_y(curve.found[-1], up), kind + "-t", name))
    yield from _end_names(0, ends)
    said = f"dashed: round robin, as far as its pages were fetched ({number(harvest.baseline.pages)})"
    if estimate is not None:
        said = (
            f"band: {number(round(estimate.low))} to {number(round(estimate.high))} {_items(harvest.item)} on "
            f"all known pages (95 %); {said}"
        )
    yield f'<text class="soft" x="14" y="{YIELD_HEIGHT - 12}">{escaped(said)}</text>\n'


def _items(item: str) -> str:
    return item + "s"


def _sites(curves: Sequence[Curve]) -> Iterator[str]:
    across = nice(max((curve.pages[-1] for curve in curves), default=1))
    up = nice(max((curve.found[-1] for curve in curves), default=1.0))
    yield from _yield_axes(1, "the same by site, over its own pages", across, up)
    for curve in curves[NAMED:]:
        yield _yield_line(curve, "rest", 1, across, up)
    names = []
    for place, curve in reversed(list(enumerate(curves[:NAMED]))):
        yield _yield_line(curve, f"c{place}", 1, across, up)
        names.append(
            (_yield_y(curve.found[-1], up), f"t{place}", fit(visible(curve.name), min(cells(visible(curve.name)), 15)))
        )
    yield from _end_names(1, names)
    if curves[NAMED:]:
        yield (
            f'<text class="soft end" x="{YIELD_LEFT[1] + WIDE[1]}" y="{YIELD_HEIGHT - 12}">grey: '
            f"{number(len(curves) - NAMED)} more sites</text>\n"
        )


def nice(value: float) -> float:
    """The next round number whose quarters are whole."""
    if value <= 12:
        return next(top for top in (4.0, 8.0, 12.0) if top >= value)
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if step * power >= value * 0.9999)


def _yield_y(value: float, up: float) -> float:
    return YIELD_BOTTOM - (YIELD_BOTTOM - YIELD_TOP) * value / up


def _yield_axes(chart: int, head: str, across: float, up: float) -> Iterator[str]:
    left, right = YIELD_LEFT[chart], YIELD_LEFT[chart] + WIDE[chart]
    yield f'<text class="head" x="{left}" y="78">{escaped(head)}</text>\n'
    for part in range(5):
        y = _yield_y(up * part / 4, up)
        yield f'<line class="axis" x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
        yield f'<text class="soft end" x="{left - 6}" y="{y + 4:.1f}">{_tick(up * part / 4)}</text>'
        x = left + WIDE[chart] * part / 4
        yield (
            f'<text class="soft" text-anchor="middle" x="{x:.1f}" '
            f'y="{YIELD_BOTTOM + 18}">{_tick(across * part / 4)}</text>\n'
        )


def _tick(value: float) -> str:
    return number(round(value)) if value == round(value) else f"{value:g}"


def _yield_line(curve: Curve, kind: str, chart: int, across: float, up: float) -> str:
    points = " ".join(
        f"{YIELD_LEFT[chart] + WIDE[chart] * page / across:.1f},{_yield_y(found, up):.1f}"
        for page, found in zip(curve.pages, curve.found, strict=True)
    )
    said = f"{visible(curve.name)}: {number(round(curve.found[-1]))} on {number(curve.pages[-1])} pages"
    return f'<polyline class="{kind}" points="{points}"><title>{escaped(said)}</title></polyline>\n'


def _end_names(chart: int, ends: Sequence[tuple[float, str, str]]) -> Iterator[str]:
    """Names at the right edge, none over another."""
    free = float(YIELD_TOP)
    for y, kind, name in sorted(ends):
        free = max(free, y)
        yield (
            f'<text class="{kind}" x="{YIELD_LEFT[chart] + WIDE[chart] + 8}" '
            f'y="{free + 4:.1f}">{escaped(name)}</text>\n'
        )
        free += LABEL


WIDTH, HEIGHT = 900, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 760, 60, 258
_STYLE = (
    PALETTE
    + FONT
    + """
.title { font-size: 16px; font-weight: 600; } .soft { fill: var(--soft); font-size: 11px; } .end { text-anchor: end; } .mid { text-anchor: middle; }
.axis { stroke: var(--line); } polyline { fill: none; stroke-width: 2.4; stroke-linejoin: round; }
.found { stroke: var(--teal-line); } .all { stroke: var(--grey-line); stroke-width: 1; stroke-dasharray: 2 3; }
.lately { stroke: var(--amber-line); stroke-width: 1.6; }
text.found { fill: var(--teal-line); stroke: none; font-size: 11px; } text.lately { fill: var(--amber-line); stroke: none; font-size: 11px; }
"""  # noqa: E501
)


def write_harvest_svg(topic: str, points: Sequence[tuple[int, int, float]], out: TextIO) -> None:
    """points: (pages, of them relevant, share of the last pages), in order. SVG that needs nothing else. out: UTF-8."""
    pages, relevant, lately = points[-1] if points else (0, 0, 0.0)
    across = nice(max(pages, 1))
    out.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img">\n'
    )
    out.write(
        f"<title>Harvest of {escaped(topic)}: {number(relevant)} of {number(pages)} "
        f"pages</title>\n<style>{_STYLE}</style>\n"
    )
    out.write(f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>\n')
    out.write(
        f'<text class="title" x="14" y="26">{number(relevant)} of {number(pages)} pages are on the topic</text>\n'
    )
    out.write(
        '<text class="soft" x="14" y="44">pages on the topic over pages fetched; share of the '
        "last 500 at the right</text>\n"
    )
    out.writelines(_axes(across))
    out.write(_line("all", [(0, 0.0), (across, 1.0)], across))
    out.write(_line("found", [(0, 0.0), *((at, found / across) for at, found, _ in points)], across))
    out.write(_line("lately", [(at, share) for at, _, share in points], across))
    for kind, y, name in _apart(
        _y(relevant / across),
        f"{relevant / pages:.0%} in all" if pages else "",
        _y(lately),
        f"{lately:.0%} lately" if pages else "",
    ):
        out.write(f'<text class="{kind}" x="{RIGHT + 8}" y="{y + 4:.1f}">{name}</text>\n')
    out.write("</svg>\n")


def _apart(found: float, found_name: str, lately: float, lately_name: str) -> list[tuple[str, float, str]]:
    """Two names at the right edge, none over the other."""
    if abs(found - lately) < 14:
        found, lately = (found + 7, lately - 7) if found >= lately else (found - 7, lately + 7)
    return [("found", found, found_name), ("lately", lately, lately_name)]


def _x(pages: float, across: float) -> float:
    return LEFT + (RIGHT - LEFT) * pages / across


def _y(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share


def _axes(across: float) -> Iterator[str]:
    for part in range(5):
        y = _y(part / 4)
        yield f'<line class="axis" x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>'
        yield f'<text class="soft end" x="{LEFT - 8}" y="{y + 4:.1f}">{number(round(across * part / 4))}</text>'
        yield (
            f'<text class="soft mid" x="{_x(across * part / 4, across):.1f}" '
            f'y="{BOTTOM + 20}">{number(round(across * part / 4))}</text>\n'
        )


def _line(kind: str, points: Sequence[tuple[int, float]] | Sequence[tuple[float, float]], across: float) -> str:
    return (
        f'<polyline class="{kind}" '
        f'points="{" ".join(f"{_x(pages, across):.1f},{_y(share):.1f}" for pages, share in points)}"/>\n'
    )
