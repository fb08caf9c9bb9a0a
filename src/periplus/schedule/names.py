"""The names by which rules of choice and orders of a topical crawl are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import cast

from periplus.errors import UsageError
from periplus.extensions import guarded, loaded
from periplus.schedule import bandit
from periplus.schedule.bandit import ChoiceRule, scout
from periplus.schedule.topical import policy
from periplus.schedule.topical.policy import TopicalQueue, weighed
from periplus.schedule.topical.queue import PageQueue, SiteWaits

_Maker = Callable[[int, int], ChoiceRule]  # of the budget in pages (0: not known) and the number of sites

RULES: dict[str, tuple[str, _Maker]] = {
    "scout": (
        "Our default: tells from the pages read so far whether links lie evenly or in a few places.",
        lambda budget, _: scout(budget),
    ),
    "r1": ("The same number of pages of each site, the remainder on the best.", bandit.r1),
    "r2": ("Blocks of 20 pages of the site with the greatest mean so far.", lambda *_: bandit.r2()),
    "r3": ("UCB1 over the greatest yield so far.", lambda *_: bandit.r3()),
    "quantum": ("Each site in turn gets 50 pages.", lambda *_: bandit.quantum()),
    "ucb1-tuned": ("UCB1 with the variance of each site.", lambda *_: bandit.ucb1_tuned()),
    "kl-ucb": (
        "Upper bounds for Poisson counts; best where links are few and stand together.",
        lambda *_: bandit.kl_ucb(),
    ),
    "thompson": ("A draw from each site's posterior.", lambda *_: bandit.thompson()),
    "gittins": ("The Gittins index proper, discounted.", lambda *_: bandit.gittins()),
    "raw-ucb": ("The least optimistic of all windows; best where sites dry up at once.", lambda *_: bandit.raw_ucb()),
    "good-ucb": ("By the share of links met only once.", lambda *_: bandit.good_ucb()),
}


@cache
def rules() -> Mapping[str, tuple[str, _Maker]]:
    """RULES, and those of installed packages: functions as the makers of RULES, the first line of whose docstring
    describes the rule.
    """
    added = {
        name: ((value.__doc__ or "").strip().partition("\n")[0], _named_maker(name, package, cast("_Maker", value)))
        for name, (package, value) in loaded("policies", object).items()
        if name not in RULES
    }
    return RULES | added


def _named_maker(name: str, package: str, make: _Maker) -> _Maker:
    """The maker of a package: its rule has the name that it was asked by, and errors name the package."""

    def rule(budget: int, sites: int) -> ChoiceRule:
        made = guarded(package, make)(budget, sites)
        return replace(made, name=name, score=guarded(package, made.score))

    return rule


def rule_named(name: str, budget: int, sites: int) -> ChoiceRule:
    """Names of `rules`, and r2:50, r3:10, quantum:5 with their number. Raises UsageError for any other."""
    kind, _, number = name.partition(":")
    with_number = {"r2": bandit.r2, "r3": bandit.r3, "quantum": bandit.quantum}
    if kind in with_number and number.isdecimal() and int(number) > 0:
        return with_number[kind](int(number))
    if number or kind not in rules():
        raise UsageError(
            f"There is no rule {name}. Rules: {', '.join(rules())}; r2, r3 and quantum take a "
            "number of pages, as in r2:50."
        )
    if kind == "r1" and not budget:
        raise UsageError(
            "Rule r1 shares out a number of pages, so it needs one: give the pages to fetch, or take the rule quantum."
        )
    return rules()[kind][1](budget, sites)


WEIGHED, WAITS = "weighed", "waits"
_ORDERS = {WEIGHED: weighed, **policy.ORDERS}
NAMES = (*_ORDERS, WAITS)


def queue_named(name: str) -> TopicalQueue:
    """An empty queue. Raises UsageError for a name that is none of NAMES."""
    if name == WAITS:
        return SiteWaits()
    if name not in _ORDERS:
        raise UsageError(f"There is no order {name}. Orders: {', '.join(NAMES)}.")
    return PageQueue(_ORDERS[name])
