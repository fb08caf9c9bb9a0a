"""Orders the pages of a site by expected new links, predicted from the URL and the first link to each page."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import log1p

import numpy as np
import xxhash

from periplus.model.arrays import Floats, Ints, Ints32, Mask
from periplus.model.web import Url
from periplus.urls.hosts import path_and_query
from periplus.values import frozen

# Known before a page is fetched: its path, the words of the path and of the first link's anchor, the position of that
# link, the page that has it and the new links of that page. Each of these is a feature with a weight. The promise of a
# page is the sum of its weights, with a premium for features with few observations. Reading a page updates the weights
# of its features (Bayesian linear regression of ln(1 + new links) with independent weights, as in AROW). Pages in the
# same directory share features, so a result for one updates the others.
# Without observations the order is breadth first, except for a few words that often label lists of links.

# Tuned on 19 manuals other than the reported ones (docs/rules-of-choice.md).
SLOTS = 1 << 15  # weights of one site: 0.5 MB; a manual of 4,000 pages has some 9,000 features
MOST_FEATURES = 24  # per page
PREMIUM = 0.3  # for features with few observations, in standard deviations of the promise
SPREAD = 0.35  # prior standard deviation of a weight
NOISE = 0.8  # standard deviation of ln(1 + new links) that features do not explain
INTERLEAVE = 5  # every fifth page is the first in breadth-first order, for exploration
SHORT_LIST = 64  # pages whose promises are computed again for each choice; all of them every REFRESH choices
REFRESH = 16
LATER = 1e-4  # penalty per place in breadth-first order: breaks ties

_WORD = re.compile(r"[^\W\d_]{2,}")
_DIGITS = re.compile(r"\d+")

# Words of paths and anchors by what they add to ln(1 + new links): rounded means over the manuals, and a few further
# words for lists of links on other kinds of sites, in the languages of the first users.
_MORE_LIST_WORDS = {
    1.0: "changelog",
    0.5: (
        "releasenotes community contributing new version links references bibliography resources partners ссылки odkazy"
    ),
    0.4: "changes release contribute projects roadmap faq news publications партнеры partneři",
    0.3: (
        "questions notes libraries team installation bugs getting credits acknowledgements "
        "related история projekty проекты"
    ),
    0.2: "help about mailing plugins tutorial guide howto contributor appendix",
    -0.15: "sample search genindex modindex methods class node controller demo",
}
PROMISING = {word: added for added, words in _MORE_LIST_WORDS.items() for word in words.split()}


@frozen
class Sighting:
    """The first link to a page."""

    url: Url
    anchor: str
    position: str
    source: int  # number of the page with the link; -1: none
    source_links: int  # new external links of that page
    depth: int


@dataclass(slots=True)
class PageOrder:
    """The pages of one site that were discovered and not yet fetched.

    The order depends only on calls of `offer`, `drop` and `learn`. Pages are numbered in the order of `offer`.
    """

    premium: float = PREMIUM
    _weights: Floats = field(default_factory=lambda: np.zeros(SLOTS + 1), repr=False)
    _variances: Floats = field(default_factory=lambda: np.full(SLOTS + 1, SPREAD**2), repr=False)
    _features: Ints32 = field(default_factory=lambda: np.full((64, MOST_FEATURES), SLOTS, np.int32), repr=False)
    _prior: Floats = field(default_factory=lambda: np.zeros(64), repr=False)
    _share: Floats = field(default_factory=lambda: np.zeros(64), repr=False)
    _promise: Floats = field(default_factory=lambda: np.zeros(64), repr=False)
    _waiting: Mask = field(default_factory=lambda: np.zeros(64, np.bool_), repr=False)
    _offered: int = 0
    _asked: int = 0

    def __post_init__(self) -> None:
        self._variances[SLOTS] = 0.0  # padding of pages with fewer features

    def offer(self, sighting: Sighting) -> int:
        """Adds a page. Returns its number."""
        number = self._offered
        if number == len(self._waiting):
            self._features = np.concatenate([self._features, np.full_like(self._features, SLOTS)])
            for name in ("_prior", "_share", "_promise", "_waiting"):
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros_like(getattr(self, name))]))
        names, words = features(sighting)
        slots = sorted({xxhash.xxh3_64_intdigest(name.encode("utf-8", "replace")) % SLOTS for name in names})[
            :MOST_FEATURES
        ]
        self._features[number, : len(slots)] = slots
        self._prior[number] = sum(PROMISING.get(word, 0.0) for word in words) - LATER * number
        self._share[number] = len(slots) ** -0.5
        self._waiting[number] = True
        self._promise[number] = self._promises(np.array([number]))[0]
        self._offered += 1
        return number

    def best(self) -> Ints:
        """The numbers of the waiting pages, most promising first; every fifth time in the order of `offer`."""
        waiting = np.flatnonzero(self._waiting[: self._offered])
        best: Ints = waiting[np.argsort(-self._promise[waiting], kind="stable")]
        return waiting if (self._asked + 1) % INTERLEAVE == 0 else best

    def drop(self, number: int) -> None:
        """Removes a page from the queue."""
        self._waiting[number] = False

    def _promises(self, numbers: Ints) -> Floats:
        slots = self._features[numbers]
        share = self._share[numbers]
        doubt = np.sqrt(self._variances[slots].sum(axis=1)) * share
        promises: Floats = self._prior[numbers] + self._weights[slots].sum(axis=1) * share + self.premium * doubt
        return promises

    def learn(self, number: int, new_links: int) -> None:
        """Updates the weights by the number of new links on a fetched page."""
        slots, share = self._features[number], self._share[number]
        variances = self._variances[slots]
        total = variances.sum() * share**2 + NOISE**2
        error = log1p(new_links) - self._prior[number] - self._weights[slots].sum() * share
        self._weights[slots] += variances * share / total * error
        self._variances[slots] = variances - (variances * share) ** 2 / total
        self._asked += 1
        self._refresh()

    def _refresh(self) -> None:
        """Computes promises again: of many pages, only those of the best, and all every REFRESH pages."""
        near = np.flatnonzero(self._waiting[: self._offered])
        if self._asked % REFRESH and len(near) > SHORT_LIST:
            near = near[np.argpartition(self._promise[near], -SHORT_LIST)[-SHORT_LIST:]]
        self._promise[near] = self._promises(near)


def features(sighting: Sighting) -> tuple[list[str], set[str]]:
    """(names of features, words of path and anchor)."""
    path = path_and_query(sighting.url)
    steps = path.split("?")[0].strip("/").split("/")
    places = ["/".join(steps[:depth]) for depth in range(1, min(len(steps), 5))]
    named = {word.lower() for word in _WORD.findall(steps[-1])} - {"html", "htm", "index"}
    anchor = [word.lower() for word in _WORD.findall(sighting.anchor)][:6]
    names = [
        "all",
        f"depth {min(sighting.depth, 6)}",
        f"position {sighting.position}",
        f"from {sighting.source}",
        f"steps {min(len(steps), 6)}",
    ]
    names.append(f"source {min(int(log1p(sighting.source_links) * 1.5), 6)}")
    names.append("shape " + _DIGITS.sub("0", steps[-1]))
    names += [f"in {place}" for place in places]
    names += [f"name {word}" for word in sorted(named)[:6]]
    names += [f"said {word}" for word in anchor]
    return names, named | set(anchor)
