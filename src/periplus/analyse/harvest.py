"""Reckons how fast a harvest of external links goes, and how much of what there is it has found."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from periplus.analyse.linkgraph import distinct_sorted
from periplus.model.arrays import Floats, Ints, Ints32
from periplus.model.webometrics import RECENT_PAGES, Baseline, Curve, Estimate, Harvest, HarvestRows, Richness

CONFIDENCE_Z = 1.959964  # 95 %
# share of the sites that must have been read before anything is said of all; of others hardly a page is known
LEAST_SITES = 0.5
# Set on made campaigns (quality/bandits/completeness.py, seeds below 2,000), so that nine intervals in ten
# hold on each kind of site:
PRIOR_PAGES = 3.0  # of the pooled yield in each site's
# of a site's pages are its last ones; with a quarter 90 % of the intervals held on universities and mixed
# sites, with half 87 %, so 92 %
RECENT_SHARE = 0.1
TINY = 1e-9
# where n pages had nothing new, one in n / 3 may have: 95 % (the rule of three, Hanley and Lippman-Hand 1983)
NONE_IN = 3.0
CURVE_POINTS = 200  # a drawing shows no more; the first and the last page are among them


def richness(rows: HarvestRows) -> Richness:
    """How many different items were found, and how many all known pages hold: those that were read and those that wait.

    coverage: Chao and Jost 2012. The total is reckoned by site, see `_total`; there is none while less than
    LEAST_SITES of the sites were read.
    """
    own = np.bincount(rows.site, minlength=len(rows.sites))
    known_urls = np.maximum(rows.known, own)
    seen = np.bincount(rows.item)[rows.item] if len(rows.item) else np.zeros(0, np.int64)
    pages, observed = len(rows.site), len(distinct_sorted(rows.item))
    shown = np.array([np.bincount(rows.page[seen == times], minlength=pages) / times for times in (1, 2)])
    once, twice = (round(items) for items in shown.sum(axis=1).tolist())
    missed = once / len(seen) * ((pages - 1) * once / ((pages - 1) * once + 2 * twice)) if once and pages > 1 else 0.0
    sites, read = int(np.count_nonzero(known_urls)), int(np.count_nonzero(own))
    total = _total(observed, rows.site, shown, known_urls - own) if pages and read >= LEAST_SITES * sites else None
    return Richness(
        observed, once, twice, total, 1 - missed if observed else 0.0, pages, int(known_urls.sum()), sites, read
    )


def _total(observed: int, site: Ints32, shown: Floats, unread: Ints) -> Estimate:
    """Items on all known pages.

    shown: float64[2, pages], of each page's items those that stand on no other, and on one other
    (each half); unread: by site.

    By all of a site's pages, and by its last ones, for yields fade and grow: the interval reaches from the least to the
    most of these. Those that look poorer than the mean site may only have come to a poor part: the upper end gives them
    the mean site's yield. Errors: each site's of what it lacks, independent of one another; and that of a count which
    is `_dispersion` times as uneven as one by chance.
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
    high = max(high, NONE_IN * uneven * int(unread.sum()) / pages)
    return Estimate(observed + math.sqrt(float(least.sum() * most.sum())), observed + low, observed + high)


def _unseen(site: Ints32, shown: Floats, own: Ints, unread: Ints) -> tuple[Floats, Floats]:
    """(least, most) new items on each site's unread pages, by some of its pages.

    own: pages of each site that were read in all.

    At most what the read ones brought that stands nowhere else, page for page (Good 1953); at least what Chao and Lin
    2012 have for a sample without replacement. Each site is reckoned as if PRIOR_PAGES of the pooled yield had been
    read of it too: one that was not read has the pooled yield.
    """
    taken = np.bincount(site, minlength=len(own)) + PRIOR_PAGES
    # a page
    once, twice = (
        (np.bincount(site, items, minlength=len(own)) + PRIOR_PAGES * items.mean()) / taken for items in shown
    )
    most = once * unread
    weight = own + PRIOR_PAGES
    below = 2 * twice * unread + weight * once
    return np.divide(once**2 * unread * weight, below, out=np.zeros(len(own)), where=below > 0), most


def _dispersion(site: Ints32, single: Floats, own: Ints) -> float:
    """How many times as uneven as by chance new items come: variance over mean of their sums over as many pages as
    there are such runs; 1.0 at least.

    Rich pages stand together, so pages by themselves would say too little.
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
    """int64[pages]: items on each page that no page before it had."""
    return _new(rows.page, rows.item, len(rows.site))


def _new(page: Ints, item: Ints, pages: int) -> Ints:
    if not len(item):
        return np.zeros(pages, np.int64)
    first = np.full(int(item.max()) + 1, pages, np.int64)
    np.minimum.at(first, item, page)
    return np.bincount(first[first < pages], minlength=pages)


def curve(name: str, fresh_links: Ints | Floats) -> Curve:
    """The running sum of what each page brought, at no more than CURVE_POINTS pages; (0, 0) first."""
    sums = np.concatenate(([0], np.cumsum(fresh_links)))
    at = np.unique(np.linspace(0, len(fresh_links), min(len(fresh_links) + 1, CURVE_POINTS)).round().astype(np.int64))
    return Curve(name, tuple(at.tolist()), tuple(float(value) for value in sums[at].tolist()))


def site_curves(rows: HarvestRows) -> tuple[Curve, ...]:
    """For each site, what it brought that was new to all, over its own pages; most found first."""
    fresh = new_items(rows)
    order = np.argsort(rows.site, kind="stable")
    bounds = np.searchsorted(rows.site[order], np.arange(len(rows.sites) + 1))
    curves = [curve(name, fresh[order[bounds[place] : bounds[place + 1]]]) for place, name in enumerate(rows.sites)]
    return tuple(sorted(curves, key=lambda one: (-one.found[-1], one.name)))


def round_robin(rows: HarvestRows) -> Baseline:
    """What taking a page of each site in turn finds, as far as its pages were fetched: nothing of it is assumed.

    A site is passed over once all of its known pages were asked for. The round robin ends at the first turn that comes
    to a page which was not fetched. (What it would find beyond was estimated before, and was off by 1.3 to 5 times.)
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
    """Each page's place among its site's pages."""
    place = np.empty(len(site), np.int64)
    place[np.argsort(site, kind="stable")] = np.arange(len(site)) - np.repeat(np.cumsum(own) - own, own)
    return place


def harvest_of(rows: HarvestRows, companions: HarvestRows, item: str) -> Harvest:
    """Curves, baseline and completeness. companions: the same pages with the sites outside the target set as items."""
    fresh = new_items(rows)
    recent = float(fresh[-RECENT_PAGES:].mean()) if len(fresh) else 0.0
    discovered = curve("sites outside the target set", new_items(companions))
    return Harvest(
        item, site_curves(rows), curve("found", fresh), round_robin(rows), richness(rows), discovered, recent
    )


def harvest_rows(sites: Sequence[str], known_urls: Ints, site: Ints32, pairs: tuple[Ints, Ints]) -> HarvestRows:
    """sites: names; known_urls: pages of each; site: of each page, in the order of fetching; pairs: (page,
    any number of an item), perhaps twice.
    """
    page, item = pairs
    names = distinct_sorted(item)
    span = max(len(names), 1)
    keys = distinct_sorted(page * span + np.searchsorted(names, item))
    return HarvestRows(tuple(sites), known_urls, site, keys // span, keys % span)
