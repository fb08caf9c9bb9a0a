"""A choice of sites in lines, in rows and as a drawing of how much the first few see."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import accumulate
from typing import Any, TextIO

from periplus.present.draw import Axes, clip, element, heading, write_sheet
from periplus.present.markup import document, macros, text
from periplus.present.tables import align, json_text, write_table
from periplus.present.wording import cells, count_of, number, text_bar, visible
from periplus_topics.model import Cascades, Holdout, Influence, Objective

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
MISSED_STORIES = 5
_COLUMNS = ("rank", "site", "gain", "value", "cost", "stories_added")


def influence_lines(
    cascades: Cascades, influence: Influence, objective: Objective, ahead: Holdout | None, width: int
) -> Iterator[str]:
    """The choice with what each site adds, the coverage as bars, how good that is, what is missed."""
    stories = len(cascades.offsets) - 1
    yield (
        f"{count_of(len(influence.chosen), 'site')} of {number(len(cascades.sites))} that {GOALS[objective]} "
        f"({count_of(stories, 'story', 'stories')})"
    )
    yield ""
    columns = 5 if any(choice.cost != 1 for choice in influence.chosen) else 4
    rows = [("", "site", "adds", "all", "posts")[:columns]]
    for place, choice in enumerate(influence.chosen, 1):
        values = (f"{choice.gain:.1%}", f"{choice.value:.1%}", number(round(choice.cost)))
        rows.append((f"  {place}", clip(cascades.sites[choice.site], 32), *values)[:columns])
    lines = list(align(rows, {0, 2, 3, 4}))
    yield lines[0]
    room = max(width - max(map(cells, lines)) - 4, 10)
    for line, choice in zip(lines[1:], influence.chosen, strict=True):
        yield f"{line}  {text_bar(choice.value, room)}"
    yield ""
    yield from verdict_lines(influence, objective, ahead)
    yield from _missed_lines(cascades, influence)


def verdict_lines(influence: Influence, objective: Objective, ahead: Holdout | None) -> Iterator[str]:
    """Quality of the choice: compared with its bound, with no choice, and on later stories."""
    yield (
        f"They have {influence.value:.2%} {SHARES[objective]}; the busiest sites within the same budget have "
        f"{_last(influence.most_posts):.2%}."
    )
    yield (
        f"No choice within the budget can exceed {influence.lp_bound:.2%}: this choice reaches at least "
        f"{_share(influence.value, influence.lp_bound):.2%} of the best one."
    )
    if ahead is not None:
        yield (
            "Chosen by the earlier half of the stories, scored on the later "
            f"{count_of(ahead.stories, 'story', 'stories')}: {_last(ahead.later):.2%};"
            f" the busiest sites {_last(ahead.most_posts):.2%}, the best choice in hindsight {ahead.hindsight:.2%}."
        )


def _missed_lines(cascades: Cascades, influence: Influence) -> Iterator[str]:
    stories = len(cascades.offsets) - 1
    if not influence.missed:
        yield "No story is missed."
        return
    sizes = cascades.offsets[1:] - cascades.offsets[:-1]
    yield (
        f"Missed: {count_of(len(influence.missed), 'story', 'stories')} of {number(stories)}, the largest on "
        f"{count_of(int(sizes[influence.missed[0]]), 'site')}."
    )
    for story in influence.missed[:MISSED_STORIES]:
        if cascades.titles[story]:
            yield f"      {visible(cascades.titles[story])} ({count_of(int(sizes[story]), 'site')})"


def _last(values: Sequence[float]) -> float:
    return values[-1] if values else 0.0


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 1.0


def write_influence_csv(cascades: Cascades, influence: Influence, out: TextIO) -> None:
    """A row a chosen site. out: newline=''."""
    rows = [
        (place, cascades.sites[choice.site], choice.gain, choice.value, choice.cost, len(choice.first_of))
        for place, choice in enumerate(influence.chosen, 1)
    ]
    write_table(_COLUMNS, rows, "csv", out)


def write_influence_json(
    cascades: Cascades, influence: Influence, objective: Objective, ahead: Holdout | None, out: TextIO
) -> None:
    """Everything, for programs.

    Shares are of what all sites together have; stories are numbered as in the input, from 0.
    """
    whole: dict[str, object] = {
        "objective": objective.value, "sites": len(cascades.sites), "stories": len(cascades.offsets) - 1,
        "budget": influence.budget,
        "value": influence.value, "lp_bound": influence.lp_bound, "online_bound": influence.online_bound,
        "share_of_bound": _share(influence.value, influence.lp_bound),
        "rule": influence.rule, "swaps": influence.swaps, "evaluations": influence.evaluations,
        "most_posts": _last(influence.most_posts),
        "chosen": [
            {"site": cascades.sites[choice.site], "gain": choice.gain, "value": choice.value, "cost": choice.cost,
                "adds_stories": list(choice.first_of)}
            for choice in influence.chosen
        ],
        "missed_stories": list(influence.missed),
        "titles": {str(story): cascades.titles[story] for story in range(len(cascades.titles)) if cascades.titles[story]},  # noqa: E501
    }  # fmt: skip
    if ahead is not None:
        whole["holdout"] = {
            "later_stories": ahead.stories, "value": _last(ahead.later), "by_sites": list(ahead.later),
            "hindsight": ahead.hindsight,
            "most_posts": _last(ahead.most_posts),
        }  # fmt: skip
    out.write(json_text(whole))


SIZE = (900, 440)
_PAGE_STYLE = """
svg.part { width: 9rem; height: .7rem; } svg.part rect { fill: #2f7f86; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
"""


def write_coverage_svg(
    cascades: Cascades, influence: Influence, objective: Objective, ahead: Holdout | None, out: TextIO
) -> None:
    """SVG that needs nothing else, light and dark as the reader's system. out: UTF-8."""
    costs = list(accumulate(choice.cost for choice in influence.chosen))
    posts = any(choice.cost != 1 for choice in influence.chosen)
    across = max(influence.budget if not posts else max(costs, default=1.0), 1.0)
    axes = Axes(64, 76, 690, 390, across, 1.0)
    values = [choice.value for choice in influence.chosen]
    bound = f"no choice has more: {influence.lp_bound:.1%}"
    curves: list[tuple[str, str, Sequence[float], Sequence[float]]] = [("teal thick", "chosen", costs, values)]
    if ahead is not None:
        curves.append(("red", "on later stories", list(accumulate(ahead.costs)), ahead.later))
    if not posts:
        curves.append(("amber dashed", "most posts", range(1, len(influence.most_posts) + 1), influence.most_posts))
    curves = [curve for curve in curves if curve[3]]
    ends = [(shares[-1], kind, f"{name}: {shares[-1]:.1%}") for kind, name, _, shares in curves]
    title = f"{count_of(len(influence.chosen), 'site')} that {GOALS[objective]}"
    stories = count_of(len(cascades.offsets) - 1, "story", "stories")
    about = f"share {SHARES[objective]} over {'posts' if posts else 'sites'} read; {stories}"
    marks = [
        heading(title, f"{about} on {number(len(cascades.sites))} sites"),
        axes.grid(
            [(tick, number(tick)) for tick in range(0, math.floor(across) + 1, math.ceil(across / 5))],
            [(part / 5, f"{part * 20} %") for part in range(6)],
        ),
        axes.curve([(0, influence.lp_bound), (across, influence.lp_bound)], "grey dotted"),
        *(axes.curve(zip((0, *paid), (0, *shares), strict=False), kind) for kind, _, paid, shares in reversed(curves)),
    ]
    for cost, choice in zip(costs, influence.chosen, strict=True):
        hint = f"{visible(cascades.sites[choice.site])}: adds {choice.gain:.2%}, together {choice.value:.2%}"
        marks.append(element("circle", "teal dot", "", hint, cx=axes.x(cost), cy=axes.y(choice.value), r=3))
    marks.append(axes.names([(influence.lp_bound, "grey dotted", bound), *ends]))
    write_sheet(out, SIZE, f"Sites that {GOALS[objective]}", marks)


def influence_page(cascades: Cascades, influence: Influence, objective: Objective, ahead: Holdout | None) -> str:
    """One page of HTML that needs nothing else: the curve, what each site adds, what is missed.

    No script; crawled text is escaped.
    """
    html: Any = macros("influence.html", "periplus_topics.present")
    drawing = StringIO()
    write_coverage_svg(cascades, influence, objective, ahead, drawing)
    head = f"<h1>Sites worth reading</h1><p>{text(' '.join(verdict_lines(influence, objective, ahead)))}</p>"
    body = (
        f"<section><figure>{drawing.getvalue()}</figure></section>\n"
        f"<section>{html.sites(list(enumerate(influence.chosen, 1)), cascades)}</section>\n"
        f"<section>{html.missed(influence.missed, cascades)}</section>"
    )
    return document("Sites worth reading", head, body, rules=_PAGE_STYLE)
