"""Estimates the completeness of a harvest of external links, and its speed."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Sequence
from typing import TextIO

import numpy as np
from markupsafe import Markup

from periplus.analyse.linkgraph import sort_distinct
from periplus.model.arrays import Floats, Ints, Ints32
from periplus.present.draw import HUES, Axes, caption, element, heading, nice, quarters, short_names, write_sheet
from periplus.present.markup import text_lines
from periplus.present.tables import align
from periplus.present.wording import count_of, fit, number, visible
from periplus_studies.model import (
    RECENT_PAGES,
    Baseline,
    CampaignProgress,
    Curve,
    Estimate,
    Harvest,
    HarvestRows,
    Richness,
    SiteProgress,
)

CONFIDENCE_Z = 1.959964  # 95 %
# Share of the sites that must have been read before a total is estimated; of unread sites hardly any page is known
LEAST_SITES = 0.5
# Tuned on simulated campaigns (quality/bandits/completeness.py, seeds below 2,000), so that nine of ten intervals
# contain the truth on each kind of site:
PRIOR_PAGES = 3.0  # pseudo-pages with the pooled yield added to each site
# Share of a site's pages that count as recent: 92 % of the intervals hold on universities and mixed sites; with a
# quarter 90 %, with half 87 %
RECENT_SHARE = 0.1
TINY = 1e-9
# If n pages had nothing new, the rate is below 3 / n with 95 % confidence (rule of three, Hanley and Lippman-Hand 1983)
RULE_OF_THREE = 3.0
# Unread pages have, per page, at most so many times the items of the read ones on 27 of 29 manuals of which half was
# read breadth first: the interval of a half-read survey ends at three times its lower end. Where less was read, the
# limit grows with the square of unread / read pages: sites with few rich pages may not have shown one yet
RICHER = 2.0
CURVE_POINTS = 200  # points of a drawing, including the first and the last page
STEPS = "▁▂▃▄▅▆▇█"
PLAIN_STEPS = ".:-=+*#@"  # for outputs that have no such signs
CURVE_CELLS = 40
_HEADS = ("site", "pages", "new links", "last 50", "rule's score", "read", "state")
SIZE = (1120, 470)
NAMED_SITES = 8  # sites with their own colour and name; the rest is grey
NAME_SIGNS = 20
_KINDS = [*HUES, *(f"{hue} dashed" for hue in HUES)]


def richness(rows: HarvestRows) -> Richness:
    """Number of distinct items found, and an estimate for all known pages, read and unread.

    coverage: Chao and Jost 2012. The total is estimated per site, see `_total`; it is None while less than LEAST_SITES
    of the sites were read.
    """
    own = np.bincount(rows.site, minlength=len(rows.sites))
    known_urls = np.maximum(rows.known, own)
    seen = np.bincount(rows.item)[rows.item] if len(rows.item) else np.zeros(0, np.int64)
    pages, observed = len(rows.site), len(sort_distinct(rows.item))
    shown = np.array([np.bincount(rows.page[seen == times], minlength=pages) / times for times in (1, 2)])
    once, twice = (round(items) for items in shown.sum(axis=1).tolist())
    missed = once / len(seen) * ((pages - 1) * once / ((pages - 1) * once + 2 * twice)) if once and pages > 1 else 0.0
    sites, read = int(np.count_nonzero(known_urls)), int(np.count_nonzero(own))
    total = _total(observed, rows.site, shown, known_urls - own) if pages and read >= LEAST_SITES * sites else None
    return Richness(
        observed, once, twice, total, 1 - missed if observed else 0.0, pages, int(known_urls.sum()), sites, read
    )


def _total(observed: int, site: Ints32, shown: Floats, unread: Ints) -> Estimate:
    """Estimated items on all known pages.

    shown: float64[2, pages], for each page the number of its items that are on no other page, and on one other page
    (each counted half). unread: pages by site. The estimate uses all pages of a site, and its recent pages only,
    because yields change over time: the interval spans both. Sites that look poorer than average may only have been
    read in a poor part, so the upper end gives them the average yield. RICHER limits it. Error terms: that of
    each site's unseen items, independent of one another, and that of a count overdispersed by `_dispersion`.
    """
    own = np.bincount(site, minlength=len(unread))
    pages, left = int(own.sum()), unread > 0
    if not left.any():
        return Estimate(float(observed), float(observed), float(observed))
    recent = _places_within(site, own) + np.ceil(own * RECENT_SHARE)[site] >= own[site]
    least, most = _unseen(site, shown, own, unread)
    least_lately, most_lately = _unseen(site[recent], shown[:, recent], own, unread)
    most_poor = np.maximum(most, (most[left] / unread[left]).mean() * unread)
    uneven = _dispersion(site, shown[0], own)

    def spread(unseen: Floats, at_least: float) -> float:
        variance = (unseen**2 + uneven * unseen * (1 + unread / (own + PRIOR_PAGES))).sum() + uneven
        return CONFIDENCE_Z * math.sqrt(variance) / (float(unseen.sum()) + at_least)

    low = min(float(unseen.sum()) * math.exp(-spread(unseen, TINY)) for unseen in (least, least_lately))
    high = max(float(unseen.sum()) * math.exp(spread(unseen, uneven)) for unseen in (most_poor, most_lately))
    ratio = int(unread.sum()) / pages
    high = min(high, low + RICHER * (observed + low) * ratio * max(ratio, 1.0))
    high = max(high, RULE_OF_THREE * uneven * ratio)
    return Estimate(observed + math.sqrt(float(least.sum() * most.sum())), observed + low, observed + high)


def _unseen(site: Ints32, shown: Floats, own: Ints, unread: Ints) -> tuple[Floats, Floats]:
    """(lower, upper) estimate of new items on each site's unread pages, from some of its pages.

    own: read pages per site. Upper: the rate of items seen on one page only (Good 1953). Lower: Chao and Lin 2012 for
    sampling without replacement. Each site is smoothed with PRIOR_PAGES pages of the pooled yield; a site without read
    pages gets the pooled yield.
    """
    taken = np.bincount(site, minlength=len(own)) + PRIOR_PAGES
    # Per page
    once, twice = (
        (np.bincount(site, items, minlength=len(own)) + PRIOR_PAGES * items.mean()) / taken for items in shown
    )
    most = once * unread
    weight = own + PRIOR_PAGES
    below = 2 * twice * unread + weight * once
    return np.divide(once**2 * unread * weight, below, out=np.zeros(len(own)), where=below > 0), most


def _dispersion(site: Ints32, single: Floats, own: Ints) -> float:
    """Overdispersion of new items: variance over mean of sums over runs of sqrt(n) pages; at least 1.0.

    Runs, because rich pages are adjacent, which single pages would not show.
    """
    of_site = np.split(single[np.argsort(site, kind="stable")], np.cumsum(own)[:-1])
    variances, means = 0.0, 0.0
    for items in of_site:
        length = math.isqrt(len(items))
        if length >= 2:
            sums = items[: len(items) // length * length].reshape(-1, length).sum(axis=1)
            variances, means = variances + len(sums) * float(sums.var(ddof=1)), means + float(sums.sum())
    return max(1.0, variances / means) if means else 1.0


def new_items(rows: HarvestRows) -> Ints:
    """int64[pages]: items on each page that no earlier page had."""
    return _new(rows.page, rows.item, len(rows.site))


def _new(page: Ints, item: Ints, pages: int) -> Ints:
    if not len(item):
        return np.zeros(pages, np.int64)
    first = np.full(int(item.max()) + 1, pages, np.int64)
    np.minimum.at(first, item, page)
    return np.bincount(first[first < pages], minlength=pages)


def curve(name: str, fresh_links: Ints | Floats) -> Curve:
    """Cumulative sum of the items per page, at most CURVE_POINTS points, starting with (0, 0)."""
    sums = np.concatenate(([0], np.cumsum(fresh_links)))
    at = np.unique(np.linspace(0, len(fresh_links), min(len(fresh_links) + 1, CURVE_POINTS)).round().astype(np.int64))
    return Curve(name, tuple(at.tolist()), tuple(float(value) for value in sums[at].tolist()))


def site_curves(rows: HarvestRows) -> tuple[Curve, ...]:
    """For each site, the cumulative new items over its own pages; sites with most items first."""
    fresh = new_items(rows)
    order = np.argsort(rows.site, kind="stable")
    bounds = np.searchsorted(rows.site[order], np.arange(len(rows.sites) + 1))
    curves = [curve(name, fresh[order[bounds[place] : bounds[place + 1]]]) for place, name in enumerate(rows.sites)]
    return tuple(sorted(curves, key=lambda curve: (-curve.found[-1], curve.name)))


def round_robin(rows: HarvestRows) -> Baseline:
    """The result of fetching a page of each site in turn, as far as it can be replayed from the fetched pages.

    A site is skipped once all of its known pages are used. The replay ends at the first page that was not fetched.
    (Extrapolating beyond was off by 1.3 to 5 times.)
    """
    own = np.bincount(rows.site, minlength=len(rows.sites))
    place = _places_within(rows.site, own)
    more = np.flatnonzero(rows.known > own)
    turns = np.lexsort((rows.site, place))
    if len(more):
        end = int(own[more].min()), int(more[own[more].argmin()])
        before = (place[turns] < end[0]) | ((place[turns] == end[0]) & (rows.site[turns] < end[1]))
        turns = turns[before]
    turn_of_page = np.full(len(rows.site), -1, np.int64)
    turn_of_page[turns] = np.arange(len(turns))
    turn = turn_of_page[rows.page]
    fresh = _new(turn[turn >= 0], rows.item[turn >= 0], len(turns))
    beside = int(new_items(rows)[: len(turns)].sum())
    return Baseline(curve("round robin", fresh), int(fresh.sum()), len(turns), beside)


def _places_within(site: Ints32, own: Ints) -> Ints:
    """The index of each page among its site's pages."""
    place = np.empty(len(site), np.int64)
    place[np.argsort(site, kind="stable")] = np.arange(len(site)) - np.repeat(np.cumsum(own) - own, own)
    return place


def harvest_of(rows: HarvestRows, companions: HarvestRows, item: str) -> Harvest:
    """Curves, baseline and completeness.

    companions: the same pages, with sites outside the target set as items.
    """
    fresh = new_items(rows)
    recent = float(fresh[-RECENT_PAGES:].mean()) if len(fresh) else 0.0
    discovered = curve("sites outside the target set", new_items(companions))
    return Harvest(
        item, site_curves(rows), curve("found", fresh), round_robin(rows), richness(rows), discovered, recent
    )


def harvest_rows(sites: Sequence[str], known_urls: Ints, site: Ints32, pairs: tuple[Ints, Ints]) -> HarvestRows:
    """Builds the rows.

    sites: names. known_urls: pages of each. site: of each page, in the order of fetching. pairs: (page, item number),
    possibly repeated.
    """
    page, item = pairs
    names = sort_distinct(item)
    span = max(len(names), 1)
    keys = sort_distinct(page * span + np.searchsorted(names, item))
    return HarvestRows(tuple(sites), known_urls, site, keys // span, keys % span)


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


def _harvest_lines(progress: CampaignProgress, steps: str) -> list[str]:
    harvest, campaign = progress.harvest, progress.campaign
    return text_lines(
        "harvest.txt", "periplus_studies", progress=progress, campaign=campaign, harvest=harvest,
        total=harvest.total.found[-1],
        own_pages=campaign.pages - (campaign.read_companions if progress.companion_pages else 0),
        sparkline=lambda curve: Markup(sparkline(curve, max(curve.found[-1], 1.0), steps)),
        round_robin=round_robin_text(harvest.baseline), completeness=completeness_text(harvest),
    )  # fmt: skip


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


def write_yield_curves(harvest: Harvest, title: str, about: str, out: TextIO) -> None:
    """Two charts as SVG: the whole harvest with baseline and estimate, and each site over its own pages. out: UTF-8."""
    marks = (heading(title, about), *_whole(harvest), *_sites(harvest.sites))
    write_sheet(out, SIZE, f"{title}: yield", marks)


def _whole(harvest: Harvest) -> Iterator[str]:
    rich, estimate, items = harvest.richness, harvest.richness.total, f"{harvest.item}s"
    curves = (
        (harvest.companions, "blue", "sites"),
        (harvest.baseline.curve, "amber dashed", "round robin"),
        (harvest.total, "teal thick", "found"),
    )
    top = max(
        max((max(curve.found) for curve, _, _ in curves), default=0.0),
        min(estimate.high if estimate else 0.0, 2.5 * max(rich.observed, 1)),
    )
    axes = Axes(66, 92, 430, 416, nice(max(harvest.total.pages)), nice(top))
    yield caption(axes.left, 78, f"new external {items} over pages fetched", "strong")
    yield axes.grid(quarters(axes.across), quarters(axes.up))
    note = f"dashed: round robin, as far as its pages were fetched ({number(harvest.baseline.pages)})"
    if estimate is not None:
        between = f"{number(round(estimate.low))} to {number(round(estimate.high))}"
        note = f"band: {between} {items} on all known pages (95 %); {note}"
        if estimate.high > rich.observed and estimate.low < axes.up:
            low, high = axes.y(estimate.low), axes.y(estimate.high)
            wide = axes.right - axes.left
            yield element("rect", "band", x=axes.left, y=high, width=wide, height=max(low - high, 1.0))
            if estimate.high > axes.up:  # the curves would be flat below it
                yield caption(axes.right, axes.top - 5, f"↑ band to {number(round(estimate.high))}", "soft small end")
            if estimate.value <= axes.up:
                yield axes.curve([(0, estimate.value), (axes.across, estimate.value)], "teal dotted")
    for curve, kind, _ in curves:
        yield _curve(axes, curve, kind)
    yield axes.names((curve.found[-1], kind, name) for curve, kind, name in curves)
    yield caption(14, SIZE[1] - 12, note, "soft small")


def _sites(curves: Sequence[Curve]) -> Iterator[str]:
    across = nice(max((curve.pages[-1] for curve in curves), default=1))
    axes = Axes(610, 92, 950, 416, across, nice(max((curve.found[-1] for curve in curves), default=1.0)))
    yield caption(axes.left, 78, "the same by site, over its own pages", "strong")
    yield axes.grid(quarters(axes.across), quarters(axes.up))
    for curve in curves[NAMED_SITES:]:
        yield _curve(axes, curve, "grey thin")
    named = list(zip(curves[:NAMED_SITES], _KINDS, strict=False))
    for curve, kind in reversed(named):
        yield _curve(axes, curve, kind)
    names = short_names([curve.name for curve, _ in named], NAME_SIGNS)
    yield axes.names((curve.found[-1], kind, name) for (curve, kind), name in zip(named, names, strict=True))
    if curves[NAMED_SITES:]:
        yield caption(
            axes.right, SIZE[1] - 12, f"grey: {number(len(curves) - NAMED_SITES)} more sites", "soft small end"
        )


def _curve(axes: Axes, curve: Curve, kind: str) -> str:
    hint = f"{visible(curve.name)}: {number(round(curve.found[-1]))} on {number(curve.pages[-1])} pages"
    return axes.curve(zip(curve.pages, curve.found, strict=True), kind, hint)
