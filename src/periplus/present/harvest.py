"""How a campaign goes: in lines and as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import TextIO

from periplus.model.webometrics import Baseline, CampaignProgress, Curve, Harvest, SiteProgress
from periplus.present.tables import align
from periplus.present.wording import count_of, fit, number, visible

STEPS = "▁▂▃▄▅▆▇█"
PLAIN_STEPS = ".:-=+*#@"  # for outputs that have no such signs
CURVE_CELLS = 40
_HEADS = ("site", "pages", "new links", "last 50", "rule's score", "read", "state")


def standing_lines(progress: CampaignProgress, *, most: int = -1, boxes: bool = True) -> Iterator[str]:
    """Sites with most new links first, `most` of them; then the harvest. boxes: whether the output has block signs."""
    order = sorted(progress.sites, key=lambda row: (-row.links, -row.pages, row.short))
    shown = order if most < 0 else order[:most]
    yield from (f"  {line}" for line in align([_HEADS, *map(_cells, shown)], range(1, 6)))
    if len(order) > len(shown):
        yield f"  and {count_of(len(order) - len(shown), 'more site')}"
    yield ""
    yield from _harvest_lines(progress, STEPS if boxes else PLAIN_STEPS)


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


def _harvest_lines(progress: CampaignProgress, steps: str) -> Iterator[str]:
    harvest, campaign = progress.harvest, progress.campaign
    total, baseline = harvest.total.found[-1], harvest.baseline
    own = campaign.pages - (campaign.read_companions if progress.companion_pages else 0)
    budget = f" of {number(own)}" if campaign.pages else ""
    text = (
        f"{number(progress.pages)}{budget} pages, {number(int(total))} distinct external {harvest.item}s, "
        f"{harvest.recent:.2f} new per recent page"
    )
    yield f"  {text}; rule {campaign.rule}, seed {campaign.seed}"
    yield f"  found        {sparkline(harvest.total, max(total, 1.0), steps)} {number(int(total))}"
    outside = harvest.companions.found[-1]
    yield f"  new sites    {sparkline(harvest.companions, max(outside, 1.0), steps)} {number(int(outside))}"
    yield f"  round robin  {round_robin_text(baseline)}"
    yield f"  complete     {completeness_text(harvest)}"
    if progress.companion_pages:
        pages = sum(pages for _, pages in progress.companion_pages)
        strong = count_of(len(progress.companion_pages), "strong companion")
        yield f"  companions   {count_of(pages, 'page')} of {strong}"


def round_robin_text(baseline: Baseline) -> str:
    """Results of a round robin, for comparison."""
    if not baseline.pages:
        return "unknown: not every site has a fetched page"
    return (
        f"{number(baseline.found)} on its first {count_of(baseline.pages, 'page')}, which were all fetched; found in "
        f"as many: {number(baseline.beside)}"
    )


def completeness_text(harvest: Harvest) -> str:
    """Estimated share of the items on known pages that was found."""
    rich, items = harvest.richness, f"{harvest.item}s"
    if not rich.pages:
        return "no page was fetched yet"
    if rich.total is None:
        return f"too early for an estimate: {number(rich.sites_read)} of {count_of(rich.sites, 'site')} were crawled"
    if rich.pages == rich.known:
        return f"{number(rich.observed)} {items}: every known page was fetched"
    between = f"95 %: {number(round(rich.total.low))} to {number(round(rich.total.high))}"
    share = f"{rich.share:.0%}" if rich.share is not None else "all"
    return (
        f"about {share}: the {count_of(rich.known, 'page')} known so far have about {number(round(rich.total.value))} "
        f"{items} (estimate, {between})"
    )


def sparkline(curve: Curve, top: float, steps: str = STEPS) -> str:
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


def write_standing_json(progress: CampaignProgress, out: TextIO) -> None:
    """Everything, the curves too. out: UTF-8."""
    campaign = dataclasses.asdict(progress.campaign)
    sites = [row._asdict() | {"share": row.share} for row in progress.sites]
    json.dump(
        {
            "campaign": campaign,
            "pages": progress.pages,
            "sites": sites,
            "harvest": dataclasses.asdict(progress.harvest),
            "companions": dict(progress.companion_pages),
        },
        out,
        ensure_ascii=False,
    )
    out.write("\n")
