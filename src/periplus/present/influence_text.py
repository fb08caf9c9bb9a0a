"""How is a choice of sites shown in a terminal, to spreadsheets and to programs?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TextIO

from periplus.model.story import Cascades, Holdout, Influence, Objective
from periplus.present.lines import cells, fit, visible
from periplus.present.tables import write_table
from periplus.present.wording import count_of, number

GOALS = {
    Objective.DL: "detect the most stories",
    Objective.DT: "detect stories the earliest",
    Objective.PA: "detect stories before most sites have them",
}
SHARES = {Objective.DL: "of the stories", Objective.DT: "of the time that could be saved", Objective.PA: "of the sites that could be ahead of"}
MISSED_NAMED = 5
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_COLUMNS = ("rank", "site", "gain", "value", "cost", "stories_added")


def influence_lines(cascades: Cascades, found: Influence, objective: Objective, ahead: Holdout | None, width: int) -> Iterator[str]:
    """The choice with what each site adds, the coverage as bars, how good that is, what is missed."""
    stories = len(cascades.offsets) - 1
    yield f"{count_of(len(found.chosen), 'site')} of {number(len(cascades.sites))} that {GOALS[objective]} ({count_of(stories, 'story', 'stories')})"
    yield ""
    name_width = min(max((cells(visible(cascades.sites[one.site])) for one in found.chosen), default=4), 32)
    costs = any(one.cost != 1 for one in found.chosen)
    head = f"{'':>4}  {fit('site', name_width)}  {'adds':>6}  {'all':>6}" + (f"  {'posts':>7}" if costs else "")
    yield head
    room = max(width - cells(head) - 4, 10)
    for place, one in enumerate(found.chosen):
        row = f"{place + 1:>4}  {fit(visible(cascades.sites[one.site]), name_width)}  {one.gain:>6.1%}  {one.value:>6.1%}"
        row += f"  {number(round(one.cost)):>7}" if costs else ""
        yield f"{row}  {_bar(one.value, room)}"
    yield ""
    yield from verdict_lines(found, objective, ahead)
    yield from _missed(cascades, found)


def verdict_lines(found: Influence, objective: Objective, ahead: Holdout | None) -> Iterator[str]:
    """What the choice is worth, beside the bounds, beside no choice, and in the future."""
    yield f"They have {found.value:.2%} {SHARES[objective]}; the busiest sites within the same budget have {_last(found.most_posts):.2%}."
    yield f"No choice within the budget has more than {found.lp_bound:.2%}: this one is at least {_share(found.value, found.lp_bound):.2%} of the best."
    if ahead is not None:
        yield (
            f"Chosen by the earlier half of the stories, scored on the later {count_of(ahead.stories, 'story', 'stories')}: {_last(ahead.later):.2%};"
            f" the busiest sites {_last(ahead.most_posts):.2%}, the best choice in hindsight {ahead.hindsight:.2%}."
        )


def _missed(cascades: Cascades, found: Influence) -> Iterator[str]:
    stories = len(cascades.offsets) - 1
    if not found.missed:
        yield "No story is missed."
        return
    sizes = cascades.offsets[1:] - cascades.offsets[:-1]
    yield f"Missed: {count_of(len(found.missed), 'story', 'stories')} of {number(stories)}, the largest on {count_of(int(sizes[found.missed[0]]), 'site')}."
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
    rows = [(place, cascades.sites[one.site], one.gain, one.value, one.cost, len(one.first_of)) for place, one in enumerate(found.chosen, 1)]
    write_table(_COLUMNS, rows, "csv", out)


def write_influence_json(cascades: Cascades, found: Influence, objective: Objective, ahead: Holdout | None, out: TextIO) -> None:
    """Everything, for programs. Shares are of what all sites together have; stories are numbered as in the input, from 0."""
    whole: dict[str, object] = {
        "objective": objective.value, "sites": len(cascades.sites), "stories": len(cascades.offsets) - 1, "budget": found.budget,
        "value": found.value, "lp_bound": found.lp_bound, "online_bound": found.online_bound, "share_of_bound": _share(found.value, found.lp_bound),
        "rule": found.rule, "swaps": found.swaps, "evaluations": found.evaluations, "most_posts": _last(found.most_posts),
        "chosen": [
            {"site": cascades.sites[one.site], "gain": one.gain, "value": one.value, "cost": one.cost, "adds_stories": list(one.first_of)}
            for one in found.chosen
        ],
        "missed_stories": list(found.missed),
        "titles": {str(story): cascades.titles[story] for story in range(len(cascades.titles)) if cascades.titles[story]},
    }  # fmt: skip
    if ahead is not None:
        whole["holdout"] = {
            "later_stories": ahead.stories, "value": _last(ahead.later), "by_sites": list(ahead.later), "hindsight": ahead.hindsight,
            "most_posts": _last(ahead.most_posts),
        }  # fmt: skip
    out.write(json.dumps(whole, ensure_ascii=False, indent=1) + "\n")
