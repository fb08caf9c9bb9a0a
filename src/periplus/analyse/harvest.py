"""How fast does a harvest of external links go, and how much of what there is has it found?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.linkgraph import distinct_sorted
from periplus.model.fragment import HarvestRows, Ints, Numbers
from periplus.model.webometrics import Baseline, Curve, Harvest, Richness

CONFIDENCE_Z = 1.959964  # 95 %
RECENT_PAGES = 50  # as the live display of a campaign: the last yields say what a site still gives
CURVE_POINTS = 200  # a drawing shows no more; the first and the last page are among them


def richness(rows: HarvestRows) -> Richness:
    """How many different items all pages hold, from how many stand on one fetched page only, and on two.

    Chao2 for a sample without replacement where it is known how many pages there are (Chao and Lin 2012), else for an endless web (Chao
    1987, bias-corrected); interval: log-normal, variance by the delta method with multinomial covariances (Chao 1987); coverage: Chao and
    Jost 2012. All of it takes pages as drawn by chance, which a crawl's are not: a lower bound, to be read with the curve.
    """
    pages, known = len(rows.site), max(int(rows.known.sum()), len(rows.site))
    times = np.bincount(np.bincount(rows.item)) if len(rows.item) else np.zeros(1, np.int64)
    if len(times):
        times[0] = 0
    observed = int(times.sum())
    once, twice = (int(times[seen]) if len(times) > seen else 0 for seen in (1, 2))
    if not once or pages < 2 or pages >= known:  # every page was read, or every item seen again: none is missing by this measure
        return Richness(observed, once, twice, float(observed), float(observed), float(observed), 1.0 if observed else 0.0, pages, known)
    unseen, slopes = _unseen(once, twice, pages, known)
    estimate = observed + unseen
    weights = np.ones(len(times))
    weights[0] = 0.0
    weights[1] += slopes[0]
    if len(times) > 2:
        weights[2] += slopes[1]
    variance = max(float((weights**2 * times).sum() - (weights * times).sum() ** 2 / estimate), 0.0)
    factor = math.exp(CONFIDENCE_Z * math.sqrt(math.log1p(variance / unseen**2))) if unseen > 0 else 1.0
    total = len(rows.item)
    missed = once / total * ((pages - 1) * once / ((pages - 1) * once + 2 * twice))
    return Richness(observed, once, twice, estimate, observed + unseen / factor, observed + unseen * factor, 1 - missed, pages, known)


def _unseen(once: int, twice: int, pages: int, known: int) -> tuple[float, tuple[float, float]]:
    """(items estimated to be unseen, its derivatives by once and by twice)."""
    share = pages / known
    if twice:
        a, b = 2 * pages / (pages - 1), share / (1 - share)
        below = a * twice + b * once
        return once**2 / below, ((2 * once * below - b * once**2) / below**2, -a * once**2 / below**2)
    factor = (pages - 1) / pages * (1 - share)  # as Chao's bias-corrected form, for the part of the web that was not read
    return factor * once * (once - 1) / 2, (factor * (2 * once - 1) / 2, 0.0)


def new_items(rows: HarvestRows) -> Ints:
    """int64[pages]: items on each page that no page before it had."""
    return _new(rows.page, rows.item, len(rows.site))


def _new(page: Ints, item: Ints, pages: int) -> Ints:
    if not len(item):
        return np.zeros(pages, np.int64)
    first = np.full(int(item.max()) + 1, pages, np.int64)
    np.minimum.at(first, item, page)
    return np.bincount(first[first < pages], minlength=pages)


def curve(name: str, found: Ints | NDArray[np.float64]) -> Curve:
    """The running sum of what each page brought, at no more than CURVE_POINTS pages; (0, 0) first."""
    sums = np.concatenate(([0], np.cumsum(found)))
    at = np.unique(np.linspace(0, len(found), min(len(found) + 1, CURVE_POINTS)).round().astype(np.int64))
    return Curve(name, tuple(at.tolist()), tuple(float(value) for value in sums[at].tolist()))


def site_curves(rows: HarvestRows) -> tuple[Curve, ...]:
    """For each site, what it brought that was new to all, over its own pages; most found first."""
    fresh = new_items(rows)
    order = np.argsort(rows.site, kind="stable")
    bounds = np.searchsorted(rows.site[order], np.arange(len(rows.sites) + 1))
    found = [curve(name, fresh[order[bounds[place] : bounds[place + 1]]]) for place, name in enumerate(rows.sites)]
    return tuple(sorted(found, key=lambda one: (-one.found[-1], one.name)))


def round_robin(rows: HarvestRows) -> Baseline:
    """What taking a page of each site in turn would have found in as many pages: an estimate from the very pages that were fetched.

    A site is asked until it has no page left that is known. Where the turn comes to pages that were fetched, their items count as they
    are. Beyond, a page is taken to bring what Good and Turing expect of it: the items of the site's last RECENT_PAGES that stand on no
    other page, by these pages; and all of them together no more than is estimated to be unseen, which they approach. (Counting what was
    new when those pages were fetched made the baseline grow in a straight line, up to all there is.)
    """
    pages = len(rows.site)
    own = np.bincount(rows.site, minlength=len(rows.sites))
    place = _places_within(rows.site, own)
    shares = _shares(np.maximum(rows.known, own), pages)
    turns = _turns(shares)
    turn_of_page = np.full(pages, -1, np.int64)
    fetched = turns[:, 1] < own[turns[:, 0]]
    begins = np.cumsum(own) - own
    by_site = np.argsort(rows.site, kind="stable")
    turn_of_page[by_site[begins[turns[fetched, 0]] + turns[fetched, 1]]] = np.flatnonzero(fetched)
    turn = turn_of_page[rows.page]
    played = turn >= 0
    fresh = _new(turn[played], rows.item[played], pages).astype(np.float64)
    found = richness(rows)
    fresh[~fetched] = _saturating(_recent_means(rows, place, own)[turns[~fetched, 0]], found.estimate - found.observed)
    return Baseline(curve("round robin, estimated", fresh), float(fresh.sum()), int(fetched.sum()), int((~fetched).sum()))


def _places_within(site: Numbers, own: Ints) -> Ints:
    """Each page's place among its site's pages."""
    place = np.empty(len(site), np.int64)
    place[np.argsort(site, kind="stable")] = np.arange(len(site)) - np.repeat(np.cumsum(own) - own, own)
    return place


def _shares(sizes: Ints, budget: int) -> Ints:
    """How many pages each site gives when they take turns until budget pages are had: equal shares, small sites all they have."""
    low, high = 0, int(sizes.max()) if len(sizes) else 0
    while low < high:  # the greatest number of whole rounds that the budget pays
        middle = (low + high + 1) // 2
        low, high = (middle, high) if int(np.minimum(sizes, middle).sum()) <= budget else (low, middle - 1)
    shares = np.minimum(sizes, low)
    left = budget - int(shares.sum())
    more = np.flatnonzero(sizes > low)[:left]
    shares[more] += 1
    return shares


def _turns(shares: Ints) -> Ints:
    """int64[budget, 2]: (site, place among its pages) in the order of turns."""
    site = np.repeat(np.arange(len(shares)), shares)
    place = np.arange(int(shares.sum())) - np.repeat(np.cumsum(shares) - shares, shares)
    order = np.lexsort((site, place))
    return np.stack((site[order], place[order]), axis=1)


def _recent_means(rows: HarvestRows, place: Ints, own: Ints) -> NDArray[np.float64]:
    """Items a page, seen nowhere else, on the last pages of each site; 0.0 where none was fetched."""
    once = np.bincount(rows.item)[rows.item] == 1 if len(rows.item) else np.zeros(0, np.bool_)
    single = np.bincount(rows.page[once], minlength=len(rows.site))
    last = place >= own[rows.site] - RECENT_PAGES
    sums = np.bincount(rows.site[last], single[last], minlength=len(own))
    return sums / np.maximum(np.minimum(own, RECENT_PAGES), 1)


def _saturating(expected: NDArray[np.float64], unseen: float) -> NDArray[np.float64]:
    """What each page adds when all together can add no more than unseen: 1 - exp(-x) of it for the x-fold."""
    if unseen <= 0:
        return np.zeros(len(expected))
    return np.diff(unseen * -np.expm1(-np.cumsum(expected) / unseen), prepend=0.0)


def harvest_of(rows: HarvestRows, companions: HarvestRows, item: str) -> Harvest:
    """Curves, baseline and completeness. companions: the same pages with the sites outside the target set as items."""
    fresh = new_items(rows)
    recent = float(fresh[-RECENT_PAGES:].mean()) if len(fresh) else 0.0
    discovered = curve("sites outside the target set", new_items(companions))
    return Harvest(item, site_curves(rows), curve("found", fresh), round_robin(rows), richness(rows), discovered, recent)


def harvest_rows(sites: Sequence[str], known: Ints, site: Numbers, pairs: tuple[Ints, Ints]) -> HarvestRows:
    """sites: names; known: pages of each; site: of each page, in the order of fetching; pairs: (page, any number of an item), perhaps twice."""
    page, item = pairs
    names = distinct_sorted(item)
    span = max(len(names), 1)
    keys = distinct_sorted(page * span + np.searchsorted(names, item))
    return HarvestRows(tuple(sites), known, site, keys // span, keys % span)
