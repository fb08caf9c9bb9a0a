"""Rules that choose the next site of a survey from the yield of the pages read so far: published rules and ours."""

from __future__ import annotations

import dataclasses
import functools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from periplus.errors import UsageError
from periplus.features import blame, loaded
from periplus.model.frontier import ReadyHost
from periplus.model.page import LinkKind
from periplus.model.web import SiteKey, Url
from periplus.urls.canonical import url_id
from periplus.urls.hosts import host_name, registered_domain
from periplus.values import frozen
from periplus_studies.model import RECENT_PAGES

# All arrays have the shape worlds x sites: a campaign is one world; a simulation runs hundreds of worlds at once with
# the same code.

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

MEMORIES = np.array([4.0, 16.0, 64.0, 256.0])  # pages: each page multiplies a fading sum by 1 - 1 / memory
LATELY = 1  # index in MEMORIES of the recent mean
LATELY_PAGES = 4.0  # weight of the prior mean of a site, in pages
_BY_SITE = ("pages", "links", "faded", "faded_pages")
CLICK_LINKS = frozenset({LinkKind.ANCHOR, LinkKind.AREA})
PAGES_PER_SITE = 200  # the budget if none is given: that of the published runs
EPSILON_LINKS = 0.1  # added to the sums, so that the first means are not 0
RAW_WIDTH = 0.3  # of the bounds of `raw_ucb`, in standard deviations: 1 explores too much
LEAST_POWER = 0.05  # closer to 0, the power mean is numerically the geometric mean
FEATURE_PAGES = 20.0  # weight of the prior of the forecasts, in pages
# Fitted by an evolution strategy on other worlds and manuals than the reported ones (docs/rules-of-choice.md).
# One row per parameter: ((minimum, maximum), slope by each of the features).
SETTING = (
    ((-2, 7), (2.01, -1.27, 0.15, -0.31, -1.28, -1.44)),  # ln of the prior in pages
    ((-6, 3), (-1.69, -2.07, 0.56, 0.82, -0.17, -0.14)),  # ln of the premium
    ((-12, 4), (2.26, -3.01, 0.89, 0.12, 0.50, 0.39)),  # power
    ((-1, 7), (0.28, 0.05, 0.14, -0.08, 0.75, 0.55)),  # ln of the pages after which the premium is 1 / sqrt 2
    ((-4, 3), (-1.39, -0.81, -0.42, -1.46, -0.79, 1.35)),  # ln of the exponent by which the premium decreases
    ((-8, 8), (2.65, -2.43, 2.02, -0.09, 0.56, -1.31)),  # ln weight of the mean of 4 pages
    ((-8, 8), (0.59, -0.64, -1.52, 0.66, 0.25, -0.63)),  # of 16
    ((-8, 8), (3.56, -0.83, -0.59, -1.12, 0.43, -1.51)),  # of 64
    ((-8, 8), (-1.01, 1.40, -0.24, -0.49, 0.24, -0.14)),  # of 256
    ((-8, 8), (-0.20, -0.49, -0.51, -0.23, -0.98, 1.87)),  # of all
    ((-6, 2), (-3.65, -1.44, 0.32, -0.82, 0.32, -0.62)),  # ln of the width of the bounds
)
_BOUNDS = np.array([bounds for bounds, _ in SETTING]).T
_SLOPES = np.array([slopes for _, slopes in SETTING]).T
ALL_AT_ONCE = 256  # up to so many sites, all scores are computed for each choice; above, only changed ones
# all scores are computed again when the total of pages has grown by this share: logarithms and means changed less
STALE = 1 / 64
SHORTEST_S = 0.05  # minimum cost of a page in seconds, so that very fast answers do not dominate the score


@dataclass(slots=True)
class Yields:
    """Sums of rewards by site. Only `book` changes it.

    A reward is the number of new external links on a page, or another unit such as links per second.
    """

    pages: Integers
    links: Floats  # sum of the rewards
    faded: Floats  # worlds x sites x MEMORIES: sum of rewards weighted by (1 - 1 / memory) ** age
    faded_pages: Floats  # sum of the same weights
    largest: Floats  # per world: the greatest reward of a page
    asked: Integers  # per world: pages in all
    gained: Floats  # per world: sum of all rewards
    squared: Floats  # per world: sum of the squares of all rewards
    # 3 x 2 x worlds: (expected, actual) sums of rewards on sites above the mean; (expected, actual) sums above the
    # site's mean on sites that were recently better than before; the same below the mean on sites that were worse
    forecasts: Floats

    @classmethod
    def zeros(cls, worlds: int, sites: int) -> Yields:
        shape = (worlds, sites)
        return cls(
            pages=np.zeros(shape, np.int64),
            links=np.zeros(shape),
            faded=np.zeros((*shape, len(MEMORIES))),
            faded_pages=np.zeros((*shape, len(MEMORIES))),
            largest=np.zeros(worlds),
            asked=np.zeros(worlds, np.int64),
            gained=np.zeros(worlds),
            squared=np.zeros(worlds),
            forecasts=np.zeros((3, 2, worlds)),
        )

    def book(self, worlds: Integers, sites: Integers, rewards: Floats) -> None:
        """Adds one page of sites[i] in worlds[i], each world at most once."""
        at = (worlds, sites)
        keep = 1 - 1 / MEMORIES
        self.forecasts[:, :, worlds] += self._forecasts(at, rewards)
        self.faded[at] = self.faded[at] * keep + rewards[:, None]
        self.faded_pages[at] = self.faded_pages[at] * keep + 1
        self.pages[at] += 1
        self.links[at] += rewards
        self.largest[worlds] = np.maximum(self.largest[worlds], rewards)
        self.asked[worlds] += 1
        self.gained[worlds] += rewards
        self.squared[worlds] += rewards * rewards

    def _forecasts(self, at: tuple[Integers, Integers], rewards: Floats) -> Floats:
        """The increments of `forecasts` for one more page of each site."""
        mean = self.gained[at[0]] / np.maximum(self.asked[at[0]], 1)
        pages, links = self.pages[at], self.links[at]
        own = (links + mean) / (pages + 1)
        usual = (links + LATELY_PAGES * mean) / (pages + LATELY_PAGES)
        weight = self.faded_pages[at][:, LATELY] + LATELY_PAGES
        lately = (self.faded[at][:, LATELY] + LATELY_PAGES * usual) / weight - usual
        beyond = (rewards - usual) * (pages > 0)
        holds = np.array([own > mean, lately > 0, lately < 0])
        forecasts: Floats = np.array([[own, rewards], [lately, beyond], [-lately, -beyond]]) * holds[:, None]
        return forecasts

    def grow(self, sites: int) -> Yields:
        """A copy with room for `sites` sites; new sites have zero counts."""
        more = Yields.zeros(len(self.pages), sites - self.pages.shape[1])
        joined = {name: np.concatenate([getattr(self, name), getattr(more, name)], axis=1) for name in _BY_SITE}
        return dataclasses.replace(self, **joined)

    def part(self, sites: Integers) -> Yields:
        """A copy with only some of the sites, to score them. Totals per world are unchanged."""
        return dataclasses.replace(self, **{name: getattr(self, name)[:, sites] for name in _BY_SITE})

    @property
    def means(self) -> Floats:
        """Mean reward of each site; 0 for sites without pages."""
        return self.links / np.maximum(self.pages, 1)

    @property
    def mean(self) -> Floats:
        """Mean reward of all pages of a world, worlds x 1."""
        return (self.gained / np.maximum(self.asked, 1))[:, None]


Unit = Literal["page", "host", "domain"]


@dataclass(slots=True)
class Novelty:
    """The external link targets of each site so far.

    A target is new if it is new on that site: a target of two sites counts for both.
    """

    unit: Unit
    site_of: Callable[[Url], SiteKey]
    _shown: dict[SiteKey, set[int | str]] = field(default_factory=dict, repr=False)

    def targets(self, site: SiteKey, ends: Iterable[Url]) -> set[int | str]:
        """The items (pages, hosts or domains) that the link targets of a page count as, without the site itself."""
        return {self._target(end) for end in ends if self.site_of(end) != site}

    def count(self, site: SiteKey, targets: Set[int | str]) -> int:
        """Adds the targets of the site's next page; returns how many of them are new."""
        shown = self._shown.setdefault(site, set())
        before = len(shown)
        shown |= targets
        return len(shown) - before

    def _target(self, url: Url) -> int | str:
        match self.unit:
            case "page":
                return int(url_id(url))
            case "host":
                return host_name(url)
            case "domain":
                return registered_domain(host_name(url))


Score = Callable[[Yields, np.random.Generator], Floats]


@frozen
class ChoiceRule:
    """First `first` pages of each site; then repeatedly a block of pages of the site with the greatest score.

    Sites that are not ready (exhausted, unavailable) are skipped. The caller enforces the budget. Ties go to the first
    site.
    """

    name: str
    score: Score
    first: int = 1  # pages of each site before sites are compared
    block: int = 1  # pages of the chosen site before sites are compared again
    drifts: bool = False  # the score of a site changes with pages of other sites


# The rules of Pechnikov and Chernobrovkin (2012), with their budget kept.
#
# R1 spends its remainder, N - K [N/K], on the site with the greatest sum; the printed formula "N - [N/K]" would request
# 3,800 pages with a budget of 2,000. Their "Gittins index" is the mean so far. The paper does not mention exhausted
# sites; here they are skipped.


def r1(budget: int, sites: int) -> ChoiceRule:
    """[N/K] pages of each site, to the nearest integer; then the rest on the site with the greatest sum."""
    share = max(1, (2 * budget + sites) // (2 * sites))
    return ChoiceRule("r1", lambda yields, _: yields.links, first=share, block=budget)


def r2(n: int = 20) -> ChoiceRule:
    """n pages of each site; then blocks of n pages of the site with the greatest mean so far."""
    return ChoiceRule("r2", lambda yields, _: yields.means, first=n, block=n)


def r3(m: int = 1) -> ChoiceRule:
    """UCB1: m pages of each site; then single pages by mean / greatest yield + sqrt(2 ln n / t)."""
    return ChoiceRule("r3", ucb1, first=m, drifts=True)


def quantum(n: int = 50) -> ChoiceRule:
    """Round robin with n pages of each site."""
    return ChoiceRule("quantum", lambda yields, _: -(yields.pages // n).astype(np.float64), first=n, block=n)


def ucb1(yields: Yields, _: np.random.Generator) -> Floats:
    # as long as no reward was above 0, the means are 0 too
    greatest = np.where(yields.largest > 0, yields.largest, 1.0)[:, None]
    times = np.maximum(yields.pages, 1)
    return yields.means / greatest + np.sqrt(2 * np.log(np.maximum(yields.asked, 1))[:, None] / times)


def raw_ucb() -> ChoiceRule:
    """RAW-UCB (Seznec and others 2020) over the fading means of `Yields` in place of sliding windows."""
    return ChoiceRule("raw-ucb", _least_bound, drifts=True)


def _least_bound(yields: Yields, _: np.random.Generator) -> Floats:
    mean, unevenness = _mean_and_unevenness(yields)
    width = RAW_WIDTH * np.sqrt(2 * mean * unevenness * np.log(yields.asked + 1.0))[:, None, None]
    sums, pages = _histories(yields)
    pages = np.maximum(pages, 1)
    bounds: Floats = (sums / pages + width / np.sqrt(pages)).min(axis=2)
    return bounds


def _histories(yields: Yields) -> tuple[Floats, Floats]:
    """(rewards, pages) of each site, faded by each of MEMORIES and, last, in full."""
    sums = np.concatenate([yields.faded, yields.links[:, :, None]], axis=2)
    return sums, np.concatenate([yields.faded_pages, yields.pages[:, :, None]], axis=2)


# Our rule: one formula for all kinds of sites; its parameters are set from the pages read so far.
#
# The promise of a site is a power mean of upper confidence bounds: of its fading means over 4 to 256 pages and of its
# overall mean, each shrunk towards the mean of all sites (empirical Bayes). Sites with few pages get a premium, which
# decreases as the budget is spent. A strongly negative power approaches the minimum of the bounds, as in RAW-UCB, so a
# site is left as soon as its yield falls. A positive power approaches the maximum: after a rich section, the rule keeps
# exploring the site.
#
# Power, prior, width of the bounds and premium follow from six statistics of the campaign, `_features`: how evenly
# links are distributed, whether good sites stay good, whether good and bad runs of pages last. All values are relative
# to the mean, so the rule does not depend on the unit (links, hosts, links per second).


def scout(budget: int = 0) -> ChoiceRule:
    """budget: total pages; 0: unknown."""
    return ChoiceRule(
        "scout", lambda yields, _: _promise(yields, budget or PAGES_PER_SITE * yields.pages.shape[1]), drifts=True
    )


def _promise(yields: Yields, budget: int) -> Floats:
    mean, unevenness = _mean_and_unevenness(yields)
    spent = np.minimum(yields.asked / budget, 1.0)
    setting = np.clip(_features(yields, mean, unevenness, spent) @ _SLOPES, *_BOUNDS)
    prior, premium, width, fading, bound = (np.exp(setting[:, [column]]) for column in (0, 1, 3, 4, 10))
    power = setting[:, 2, None, None]
    power = np.where(np.abs(power) < LEAST_POWER, LEAST_POWER, power)
    weights = np.exp(setting[:, None, 5:10])
    sums, pages = _histories(yields)
    pages = pages + prior[:, :, None]
    means = (sums / mean[:, None, None] + prior[:, :, None]) / pages  # relative to the mean of all pages
    spread = bound * np.sqrt((unevenness + EPSILON_LINKS) / mean * np.log(yields.asked + 1.0))[:, None]
    bounds = power * np.log(means + spread[:, :, None] * np.sqrt(means / pages) + 1e-9)
    top = bounds.max(axis=2, keepdims=True)
    joined = (np.exp(bounds - top) * weights).sum(axis=2) / weights.sum(axis=2)
    expected = np.exp((np.log(joined) + top[:, :, 0]) / power[:, :, 0])
    left = (1 - spent)[:, None] ** fading
    promise: Floats = mean[:, None] * (expected + premium * left * np.sqrt(width / (yields.pages + width)))
    return promise


def _mean_and_unevenness(yields: Yields) -> tuple[Floats, Floats]:
    """(mean, variance / mean) of all pages of each world."""
    asked = yields.asked + 1.0
    mean = (yields.gained + EPSILON_LINKS) / asked
    return mean, np.maximum(yields.squared / asked - mean**2, 0) / mean


def _features(yields: Yields, mean: Floats, unevenness: Floats, spent: Floats) -> Floats:
    """worlds x 6: constant 1; unevenness of links; regression of sites above the mean; persistence of a site's better
    runs of pages, and of its worse ones; spent share of the budget. All but the first are about 0 on average, and about
    1 in extreme cases.
    """
    before = FEATURE_PAGES * mean + EPSILON_LINKS
    expected, brought = yields.forecasts[:, 0], yields.forecasts[:, 1]
    shortfall = np.log((expected[0] + before) / np.maximum(brought[0] + before, 1e-9))
    lasts = 2 * brought[1:] / (expected[1:] + before) - 0.5
    uneven = np.minimum(np.log(unevenness + 0.5), 6.0) / 2 - 1
    columns = [np.ones_like(mean), uneven, 3 * np.clip(shortfall, -1, 1), *np.clip(lasts, -2, 2), spent - 0.5]
    return np.stack(columns, axis=1)


_Maker = Callable[[int, int], ChoiceRule]  # arguments: budget in pages (0: unknown), number of sites

RULES: dict[str, tuple[str, _Maker]] = {
    "scout": (
        "Our default: adapts to how evenly links are distributed and whether good sites stay good.",
        lambda budget, _: scout(budget),
    ),
    "r1": ("The same number of pages of each site, the rest on the best site.", r1),
    "r2": ("Blocks of 20 pages of the site with the greatest mean so far.", lambda *_: r2()),
    "r3": ("UCB1 over the greatest yield so far.", lambda *_: r3()),
    "raw-ucb": ("The least bound of fading means over 4 to 256 pages and of all.", lambda *_: raw_ucb()),
    "quantum": ("Round robin with 50 pages of each site.", lambda *_: quantum()),
}


@functools.cache
def rules() -> Mapping[str, tuple[str, _Maker]]:
    """RULES and the rules of installed packages. The first line of a maker's docstring describes its rule."""
    added = {
        name: ((value.__doc__ or "").strip().partition("\n")[0], _named_maker(name, package, cast("_Maker", value)))
        for name, (package, value) in loaded("rules", object).items()
        if name not in RULES
    }
    return RULES | added


def _named_maker(name: str, package: str, make: _Maker) -> _Maker:
    """Wraps the maker of a package: the rule gets the registered name, and errors name the package."""

    def rule(budget: int, sites: int) -> ChoiceRule:
        choice_rule = blame(package)(make)(budget, sites)
        return dataclasses.replace(choice_rule, name=name, score=blame(package)(choice_rule.score))

    return rule


def parse_rule(name: str, budget: int, sites: int) -> ChoiceRule:
    """The rule of a name in `rules`, or r2:N, r3:N, quantum:N with a number. Raises UsageError for other names."""
    kind, _, number = name.partition(":")
    with_number = {"r2": r2, "r3": r3, "quantum": quantum}
    if kind in with_number and number.isdecimal() and int(number) > 0:
        return with_number[kind](int(number))
    if number or kind not in rules():
        raise UsageError(
            f"There is no rule {name}. Rules: {', '.join(rules())}; r2, r3 and quantum accept a "
            "number of pages, as in r2:50."
        )
    if kind == "r1" and not budget:
        raise UsageError("Rule r1 needs the number of pages to fetch: give it, or use the rule quantum.")
    return rules()[kind][1](budget, sites)


@dataclass(slots=True)
class SitePolicy:
    """Chooses sites by a rule. Ties go to the host that comes first in `ready`.

    Only `book` changes it, so the same pages in the same order and the same seed give the same choices. With cost in
    seconds, scores are divided by the site's mean time per page.
    """

    rule: ChoiceRule
    novelty: Novelty
    seed: int
    cost: Literal["pages", "seconds"] = "pages"
    yields: Yields = field(default_factory=lambda: Yields.zeros(1, 16), repr=False)
    places: dict[SiteKey, int] = field(default_factory=dict, repr=False)  # column of each site in `yields`
    recent: dict[SiteKey, deque[float]] = field(default_factory=dict, repr=False)  # rewards of each site's last pages
    _seconds: Floats = field(default_factory=lambda: np.zeros(16), repr=False)
    _scores: Floats = field(default_factory=lambda: np.zeros(16), repr=False)
    _changed: set[int] = field(default_factory=set, repr=False)
    _whole_at: int = -1  # total of pages when all scores were last computed
    _block: tuple[int, int] = (-1, 0)  # (site of the current block, its pages when the block began)

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        sites = np.array([self.place(host.site) for host in ready], np.int64)
        fresh = self.yields.pages[0, sites] < self.rule.first
        enough = np.count_nonzero(fresh) >= most  # enough sites below `first`: scores are not needed
        scores = np.zeros(len(sites)) if enough else np.where(fresh, 0.0, self._current()[sites])
        # first sites below `first`, then the site of the current block
        rank = ~fresh * 2 + ~(fresh | (sites == self._block[0]))
        return [ready[at].host_id for at in np.lexsort((-scores, rank))[:most]]

    def book(self, site: SiteKey, reward: float, took_s: float = 0.0) -> None:
        """Adds a page with its reward; also called to replay a stored campaign before it continues."""
        place = self.place(site)
        pages = int(self.yields.pages[0, place])
        if self.rule.block > 1 and pages >= self.rule.first and place != self._block[0]:
            self._block = (place, pages)
        self.yields.book(np.zeros(1, np.int64), np.array([place]), np.array([reward]))
        self.recent.setdefault(site, deque(maxlen=RECENT_PAGES)).append(reward)
        self._seconds[place] += max(took_s, SHORTEST_S)
        self._changed.add(place)
        if place == self._block[0] and pages + 1 - self._block[1] >= self.rule.block:
            self._block = (-1, 0)
        if len(self.places) > ALL_AT_ONCE:  # the staleness of scores must not depend on the number of choices
            self._current()

    def scores(self) -> dict[SiteKey, float]:
        """The current score of each site, for display."""
        current = self._current()
        return {site: float(current[place]) for site, place in self.places.items()}

    def place(self, site: SiteKey) -> int:
        place = self.places.setdefault(site, len(self.places))
        if place >= len(self._scores):
            size = 2 * len(self._scores)
            self.yields = self.yields.grow(size)
            self._seconds, self._scores = (
                np.concatenate([old, np.zeros(size - len(old))]) for old in (self._seconds, self._scores)
            )
            self._whole_at = -1
        return place

    def _current(self) -> Floats:
        """Scores of all sites. With many sites, scores of unchanged ones may be stale by up to STALE."""
        asked, number = int(self.yields.asked[0]), len(self.places)
        if number <= ALL_AT_ONCE or self._whole_at < 0 or (self.rule.drifts and asked > self._whole_at * (1 + STALE)):
            self._scores[:number] = self._compute_scores(np.arange(number))
            self._whole_at = asked
        elif self._changed:
            changed = np.fromiter(self._changed, np.int64)
            self._scores[changed] = self._compute_scores(changed)
        self._changed.clear()
        return self._scores

    def _compute_scores(self, places: Integers) -> Floats:
        asked = int(self.yields.asked[0])
        scores: Floats = self.rule.score(self.yields.part(places), np.random.default_rng([self.seed, asked]))[0]
        if self.cost == "seconds":
            pages = np.maximum(self.yields.pages[0, places], 1)
            scores = scores / np.maximum(self._seconds[places] / pages, SHORTEST_S)
        return scores
