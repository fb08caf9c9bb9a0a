"""Which ready hosts are worth the next requests, by a rule of choice that learns what their sites bring?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from periplus.model.frontier import ReadyHost
from periplus.model.page import Document
from periplus.model.web import SiteKey
from periplus.schedule.bandit.reward import Novelty
from periplus.schedule.bandit.rule import Rule
from periplus.schedule.bandit.yields import Floats, Integers, Yields

ALL_AT_ONCE = 256  # sites whose scores are reckoned anew for each choice; of more, those that changed
STALE = 1 / 64  # growth of the pages in all after which every score is: logarithms and means have then moved by less than that
SHORTEST_S = 0.05  # a page's cost in seconds: no answer is so fast that its site is worth more


@dataclass(slots=True)
class SiteRule:
    """`model.ports.Policy`: sites by a rule of choice.

    A host that must wait longer than patience_s comes after all that need not, so no favourite is waited for while others are ready. Cost in
    seconds: a score is divided by what a page of the site took on average. Same calls and seed, same choices.
    """

    rule: Rule
    novelty: Novelty
    seed: int
    cost: Literal["pages", "seconds"] = "pages"
    patience_s: float = 0.0
    yields: Yields = field(default_factory=lambda: Yields.none(1, 16), repr=False)
    places: dict[SiteKey, int] = field(default_factory=dict, repr=False)  # of each site in `yields`
    _seconds: Floats = field(default_factory=lambda: np.zeros(16), repr=False)
    _scores: Floats = field(default_factory=lambda: np.zeros(16), repr=False)
    _changed: set[int] = field(default_factory=set, repr=False)
    _whole_at: int = -1  # pages in all when every score was last reckoned
    _block: tuple[int, int] = (-1, 0)  # site whose block is under way, and the pages that it had when the block began
    _rng: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        known = self.places
        sites = np.array([known[host.site] if host.site in known else self._place(host.site) for host in ready], np.int64)
        late = np.array([host.wait_s > self.patience_s for host in ready])
        fresh = self.yields.pages[0, sites] < self.rule.first
        enough = np.count_nonzero(fresh & ~late) >= most  # of those who were asked too little: scores decide nothing
        scores = np.zeros(len(sites)) if enough else np.where(fresh, 0.0, self._current()[sites])
        rank = late * 4 + ~fresh * 2 + ~(fresh | (sites == self._block[0]))  # who is ready, then who was asked too little, then whose block it is
        order = np.lexsort((sites, -scores, rank))
        if len(order):
            self._begin(int(sites[order[0]]), bool(fresh[order[0]]))
        return [ready[at].host_id for at in order[:most]]

    def told(self, site: SiteKey, document: Document | None, took_s: float) -> None:
        reward = self.novelty.of(site, document)
        self.book(site, float(reward.new), reward.met_again, took_s)

    def book(self, site: SiteKey, reward: float, met_again: float = 0.0, took_s: float = 0.0) -> None:
        """A page whose reward is known: also to play a stored campaign again before it goes on."""
        place = self._place(site)
        self.yields.book(np.zeros(1, np.int64), np.array([place]), np.array([reward]), np.array([met_again]))
        self._seconds[place] += max(took_s, SHORTEST_S)
        self._changed.add(place)
        if place == self._block[0] and self.yields.pages[0, place] - self._block[1] >= self.rule.block:
            self._block = (-1, 0)

    def resume(self, site: SiteKey) -> None:
        """A page of the site was chosen in an earlier process; `book` follows. So the block under way is the one that was."""
        place = self._place(site)
        self._begin(place, bool(self.yields.pages[0, place] < self.rule.first))

    def scores(self) -> dict[SiteKey, float]:
        """What the rule thinks of each site, for displays."""
        current = self._current()
        return {site: float(current[place]) for site, place in self.places.items()}

    def _place(self, site: SiteKey) -> int:
        place = self.places.setdefault(site, len(self.places))
        if place >= len(self._scores):
            size = 2 * len(self._scores)
            self.yields = self.yields.grown(size)
            self._seconds, self._scores = (np.concatenate([old, np.zeros(size - len(old))]) for old in (self._seconds, self._scores))
            self._whole_at = -1
        return place

    def _begin(self, site: int, fresh: bool) -> None:
        if self.rule.block > 1 and not fresh and site != self._block[0]:
            self._block = (site, int(self.yields.pages[0, site]))

    def _current(self) -> Floats:
        """Scores of all sites. With many, those of sites that were not asked lag behind by STALE at most."""
        asked, number = int(self.yields.asked[0]), len(self.places)
        if number <= ALL_AT_ONCE or self._whole_at < 0 or (self.rule.drifts and asked > self._whole_at * (1 + STALE)):
            self._scores[:number] = self._reckoned(np.arange(number))
            self._whole_at = asked
        elif self._changed:
            changed = np.fromiter(self._changed, np.int64)
            self._scores[changed] = self._reckoned(changed)
        self._changed.clear()
        return self._scores

    def _reckoned(self, places: Integers) -> Floats:
        scores: Floats = self.rule.score(self.yields.part(places), self._rng)[0]
        if self.cost == "seconds":
            pages = np.maximum(self.yields.pages[0, places], 1)
            scores = scores / np.maximum(self._seconds[places] / pages, SHORTEST_S)
        return scores
