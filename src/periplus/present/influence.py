"""A choice of sites in lines, in rows and as a drawing of how much the first few see."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from importlib.resources import files
from io import StringIO
from itertools import accumulate
from typing import TextIO

from periplus.model.story import Cascades, Holdout, Influence, Objective
from periplus.present.drawing import FONT, PALETTE
from periplus.present.markup import bar, escaped, left_out, table, text
from periplus.present.tables import write_table
from periplus.present.wording import cells, count_of, fit, number, visible

GOALS = {
    Objective.DL: "detect the most stories",
    Objective.DT: "detect stories the earliest",
    Objective.PA: "detect stories before most sites have them",
}
SHARES = {
    Objective.DL: "of the stories",
    Objective.DT: "of the time that could be saved",
    Objective.PA: "of the sites that could be ahead of",
}
MISSED_NAMED = 5
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_COLUMNS = ("rank", "site", "gain", "value", "cost", "stories_added")


def influence_lines(
    cascades: Cascades, found: Influence, objective: Objective, ahead: Holdout | None, width: int
) -> Iterator[str]:
    """The choice with what each site adds, the coverage as bars, how good that is, what is missed."""
    stories = len(cascades.offsets) - 1
    yield (
        f"{count_of(len(found.chosen), 'site')} of {number(len(cascades.sites))} that {GOALS[objective]} "
        f"({count_of(stories, 'story', 'stories')})"
    )
    yield ""
    name_width = min(max((cells(visible(cascades.sites[one.site])) for one in found.chosen), default=4), 32)
    costs = any(one.cost != 1 for one in found.chosen)
    head = f"{'':>4}  {fit('site', name_width)}  {'adds':>6}  {'all':>6}" + (f"  {'posts':>7}" if costs else "")
    yield head
    room = max(width - cells(head) - 4, 10)
    for place, one in enumerate(found.chosen):
        row = (
            f"{place + 1:>4}  {fit(visible(cascades.sites[one.site]), name_width)}  {one.gain:>6.1%}  {one.value:>6.1%}"
        )
        row += f"  {number(round(one.cost)):>7}" if costs else ""
        yield f"{row}  {_bar(one.value, room)}"
    yield ""
    yield from verdict_lines(found, objective, ahead)
    yield from _missed(cascades, found)


def verdict_lines(found: Influence, objective: Objective, ahead: Holdout | None) -> Iterator[str]:
    """What the choice is worth, beside the bounds, beside no choice, and in the future."""
    yield (
        f"They have {found.value:.2%} {SHARES[objective]}; the busiest sites within the same budget have "
        f"{_last(found.most_posts):.2%}."
    )
    yield (
        f"No choice within the budget has more than {found.lp_bound:.2%}: this one is at least "
        f"{_share(found.value, found.lp_bound):.2%} of the best."
    )
    if ahead is not None:
        yield (
            "Chosen by the earlier half of the stories, scored on the later "
            f"{count_of(ahead.stories, 'story', 'stories')}: {_last(ahead.later):.2%};"
            f" the busiest sites {_last(ahead.most_posts):.2%}, the best choice in hindsight {ahead.hindsight:.2%}."
        )


def _missed(cascades: Cascades, found: Influence) -> Iterator[str]:
    stories = len(cascades.offsets) - 1
    if not found.missed:
        yield "No story is missed."
        return
    sizes = cascades.offsets[1:] - cascades.offsets[:-1]
    yield (
        f"Missed: {count_of(len(found.missed), 'story', 'stories')} of {number(stories)}, the largest on "
        f"{count_of(int(sizes[found.missed[0]]), 'site')}."
    )
    for story in found.missed[:MISSED_NAMED]:
        if cascades.titles[story]:
            yield f"      {visible(cascades.titles[story])} ({count_of(int(sizes[story]), 'site')})"


def _last(values: Sequence[float]) -> float:
    return values[-1] if values else 0.0


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 1.0


def _bar(share: float, width: int) -> str:
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    return _EIGHTHS[8] * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def write_influence_csv(cascades: Cascades, found: Influence, out: TextIO) -> None:
    """A row a chosen site. out: newline=''."""
    rows = [
        (place, cascades.sites[one.site], one.gain, one.value, one.cost, len(one.first_of))
        for place, one in enumerate(found.chosen, 1)
    ]
    write_table(_COLUMNS, rows, "csv", out)


def write_influence_json(
    cascades: Cascades, found: Influence, objective: Objective, ahead: Holdout | None, out: TextIO
) -> None:
    """Everything, for programs.

    Shares are of what all sites together have; stories are numbered as in the input, from 0.
    """
    whole: dict[str, object] = {
        "objective": objective.value, "sites": len(cascades.sites), "stories": len(cascades.offsets) - 1,
        "budget": found.budget,
        "value": found.value, "lp_bound": found.lp_bound, "online_bound": found.online_bound,
        "share_of_bound": _share(found.value, found.lp_bound),
        "rule": found.rule, "swaps": found.swaps, "evaluations": found.evaluations,
        "most_posts": _last(found.most_posts),
        "chosen": [
            {"site": cascades.sites[one.site], "gain": one.gain, "value": one.value, "cost": one.cost,
                "adds_stories": list(one.first_of)}
            for one in found.chosen
        ],
        "missed_stories": list(found.missed),
        "titles": {str(story): cascades.titles[story] for story in range(len(cascades.titles)) if cascades.titles[story]},  # noqa: E501
    }  # fmt: skip
    if ahead is not None:
        whole["holdout"] = {
            "later_stories": ahead.stories, "value": _last(ahead.later), "by_sites": list(ahead.later),
            "hindsight": ahead.hindsight,
            "most_posts": _last(ahead.most_posts),
        }  # fmt: skip
    out.write(json.dumps(whole, ensure_ascii=False, indent=1) + "\n")


WIDTH, HEIGHT = 900, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 712, 76, 390
LABEL = 15
STORIES_NAMED = 3  # of what a site adds
MISSED_SHOWN = 30
_STYLE = (
    PALETTE
    + FONT
    + """
.title { font-size: 18px; font-weight: 600; } .soft { fill: var(--soft); font-size: 11px; } .end { text-anchor: end; } .mid { text-anchor: middle; }
.axis { stroke: var(--line); } polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
.chosen { stroke: var(--teal-line); stroke-width: 2.8; } .later { stroke: var(--red-line); } .busy { stroke: var(--amber-line); stroke-dasharray: 6 4; }
.bound { stroke: var(--grey-line); stroke-dasharray: 2 3; } .dot { fill: var(--teal-line); } text.name { font-size: 11px; stroke: none; }
text.chosen { fill: var(--teal-line); } text.later { fill: var(--red-line); } text.busy { fill: var(--amber-line); } text.bound { fill: var(--soft); }
"""  # noqa: E501
)
_PAGE_STYLE = """
svg.part { width: 9rem; height: .7rem; } svg.part rect { fill: #2f7f86; } figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
"""  # noqa: E501


def write_coverage_svg(
    cascades: Cascades, found: Influence, objective: Objective, ahead: Holdout | None, out: TextIO
) -> None:
    """SVG that needs nothing else, light and dark as the reader's system. out: UTF-8."""
    costs = list(accumulate(one.cost for one in found.chosen))
    posts = any(one.cost != 1 for one in found.chosen)
    across = max(found.budget if not posts else max(costs, default=1.0), 1.0)
    out.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img">\n'
    )
    out.write(
        f"<title>Sites that {escaped(GOALS[objective])}</title>\n<style>{_STYLE}</style>\n<rect class='paper' "
        f"width='{WIDTH}' height='{HEIGHT}'/>\n"
    )
    head = f"{count_of(len(found.chosen), 'site')} that {GOALS[objective]}"
    out.write(
        f'<text class="title" x="14" y="28">{escaped(head)}</text>\n<text class="soft" x="14" '
        f'y="48">share {SHARES[objective]} over '
    )
    out.write(f"{'posts' if posts else 'sites'} read; {count_of(len(cascades.offsets) - 1, 'story', 'stories')}")
    out.write(f" on {number(len(cascades.sites))} sites</text>\n")
    out.writelines(_axes(across))
    y = _y(found.lp_bound)
    out.write(f'<line class="bound" x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>\n')
    ends = [(y, "bound", f"no choice has more: {found.lp_bound:.1%}")]
    one_each = range(1, len(found.most_posts) + 1)
    lines: list[tuple[str, str, Sequence[float], Sequence[float]]] = [
        ("busy", "most posts", one_each, () if posts else found.most_posts)
    ]
    if ahead is not None:
        lines.append(("later", "on later stories", list(accumulate(ahead.costs)), ahead.later))
    lines.append(("chosen", "chosen", costs, [one.value for one in found.chosen]))
    for kind, name, paid, values in lines:
        if values:
            out.write(_line(kind, paid, values, across))
            ends.append((_y(values[-1]), kind, f"{name}: {values[-1]:.1%}"))
    for cost, one in zip(costs, found.chosen, strict=True):
        said = f"{visible(cascades.sites[one.site])}: adds {one.gain:.2%}, together {one.value:.2%}"
        out.write(
            f'<circle class="dot" cx="{_x(cost, across):.1f}" cy="{_y(one.value):.1f}" '
            f'r="3"><title>{escaped(said)}</title></circle>\n'
        )
    out.writelines(_names(ends))
    out.write("</svg>\n")


def _x(cost: float, across: float) -> float:
    return LEFT + (RIGHT - LEFT) * min(cost / across, 1.0)


def _y(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share


def _axes(across: float) -> Iterator[str]:
    for part in range(6):
        y = _y(part / 5)
        yield f'<line class="axis" x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>'
        yield f'<text class="soft end" x="{LEFT - 8}" y="{y + 4:.1f}">{part * 20} %</text>'
    step = math.ceil(across / 5)
    for tick in range(0, math.floor(across) + 1, step):
        yield f'<text class="soft mid" x="{_x(tick, across):.1f}" y="{BOTTOM + 20}">{number(tick)}</text>\n'


def _line(kind: str, costs: Sequence[float], values: Sequence[float], across: float) -> str:
    points = " ".join(
        f"{_x(cost, across):.1f},{_y(value):.1f}" for cost, value in zip((0.0, *costs), (0.0, *values), strict=False)
    )
    return f'<polyline class="{kind}" points="{points}"/>\n'


def _names(ends: Sequence[tuple[float, str, str]]) -> Iterator[str]:
    """At the right edge, none over another."""
    free = 0.0
    for y, kind, name in sorted(ends):
        free = max(free, y)
        yield f'<text class="name {kind}" x="{RIGHT + 8}" y="{free + 4:.1f}">{escaped(name)}</text>\n'
        free += LABEL


def influence_page(cascades: Cascades, found: Influence, objective: Objective, ahead: Holdout | None) -> str:
    """One page of HTML that needs nothing else: the curve, what each site adds, what is missed.

    No script; crawled text is escaped.
    """
    drawing = StringIO()
    write_coverage_svg(cascades, found, objective, ahead, drawing)
    sizes = cascades.offsets[1:] - cascades.offsets[:-1]
    rows = [
        (number(place), text(cascades.sites[one.site]), f"{one.gain:.2%}", f"{one.value:.2%}",
            bar((("", one.value),), 1.0, "part"),
         number(len(one.first_of)), _titles(cascades, one.first_of))
        for place, one in enumerate(found.chosen, 1)
    ]  # fmt: skip
    listed = table(("", "Site", "Adds", "All", "", "Stories", "Among them"), rows, ("n", "w", "n", "n", "", "n", ""))
    missed = "".join(
        f"<li>{text(cascades.titles[story] or f'story {story + 1}')} ({count_of(int(sizes[story]), 'site')})</li>"
        for story in found.missed[:MISSED_SHOWN]
    )
    style = files("periplus.present").joinpath("report.css").read_text("utf-8")
    verdict = " ".join(verdict_lines(found, objective, ahead))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex"><title>Sites worth reading</title>
<style>
{style}{_PAGE_STYLE}</style></head><body>
<header><h1>Sites worth reading</h1><p>{text(verdict)}</p></header>
<main>
<section><figure>{drawing.getvalue()}</figure></section>
<section><h2>What each site adds</h2>{listed}</section>
<section><h2>What is missed</h2>{f"<ol>{missed}</ol>" if missed else "<p>Nothing.</p>"}{left_out(len(found.missed), MISSED_SHOWN, "story", "stories")}</section>
</main>
</body></html>
"""  # noqa: E501


def _titles(cascades: Cascades, stories: Sequence[int]) -> str:
    named = [text(cascades.titles[story]) for story in stories[:STORIES_NAMED] if cascades.titles[story]]
    return "; ".join(named)
