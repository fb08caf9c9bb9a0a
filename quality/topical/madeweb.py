"""A generated web with the difficulties of topical crawling. Its size and links depend on the seed only.

Hosts of heavy-tailed sizes (median 40 pages, up to 60,000). One in fifty is about the topic; one in eight is a portal
with twelve directories, of which one may be; one in a hundred is an endless trap; a quarter are large clusters off the
topic with many inlinks. A link of a page on the topic leads to the topic with probability .3 to .6, of a page off
it with .005 to .03. A sixth of the sites on the topic are linked only from lists that are themselves off the topic.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from periplus.model.web import Url
from periplus_topics.schedule.policy import Pointer

HOSTS, LARGEST, MEDIAN = 3_000, 60_000, 40
DIRECTORIES, LINKS = 12, 16
TOPICAL = ("medicine", "clinic", "therapy", "patient", "surgery", "vaccine", "doctor", "nursing")
GENERAL = tuple(
    f"{first}{second}"
    for first in ("al", "be", "co", "du", "es", "fi", "go", "hu")
    for second in ("mar", "ton", "ling", "dar", "vik", "sol")
)


class Host(NamedTuple):
    """kind: topic, hidden (topic, only lists link to it), portal, trap, continent, plain."""

    kind: str
    size: int
    directory: int  # of a portal: index of the directory on the topic; -1: none


class Page(NamedTuple):
    """A page as a crawl sees it, and its true relevance."""

    relevant: bool
    worth: float  # relevance according to the judge
    pointers: tuple[Pointer, ...]


@dataclass(slots=True)
class Web:
    """Pages are generated on demand, always the same."""

    seed: int
    hosts: list[Host] = field(default_factory=list)
    _of_kind: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = random.Random(f"hosts {self.seed}")
        kinds = ["topic"] * 50 + ["hidden"] * 10 + ["portal"] * 375 + ["trap"] * 30 + ["continent"] * 750
        kinds += ["plain"] * (HOSTS - len(kinds))
        for kind in kinds:
            size = min(LARGEST, max(3, int(MEDIAN * rng.lognormvariate(0, 2.4))))
            if kind in ("topic", "hidden"):
                size = max(60, min(size, 3_000))
            self.hosts.append(
                Host(kind, size, rng.randrange(DIRECTORIES) if kind == "portal" and rng.random() < 0.4 else -1)
            )
        for place, host in enumerate(self.hosts):
            self._of_kind.setdefault(host.kind, []).append(place)
        self._of_kind["about"] = [
            place for place, host in enumerate(self.hosts) if host.kind == "portal" and host.directory >= 0
        ]

    def seeds(self, number: int = 3) -> list[Url]:
        return [self.url(place, 0) for place in self._of_kind["topic"][:number]]

    def url(self, host: int, page: int) -> Url:
        return Url(f"https://h{host}.test/d{page % DIRECTORIES}/{page}")

    def is_relevant(self, host: int, page: int) -> bool:
        what, chance = self.hosts[host], random.Random(f"page {self.seed} {host} {page}").random()
        if what.kind in ("topic", "hidden"):
            return chance < 0.9
        if what.kind == "portal" and page % DIRECTORIES == what.directory:
            return chance < 0.85
        return what.kind != "trap" and chance < 0.002

    def page(self, url: Url) -> Page:
        _, _, authority, _, last = url.split("/")
        host, page = int(authority[1:].partition(".")[0]), int(last)
        rng = random.Random(f"links {self.seed} {url}")
        relevant = self.is_relevant(host, page)
        worth = rng.betavariate(6, 1.5) if relevant else rng.betavariate(1, 9)
        targets = [
            self._near(host, page, rng) if rng.random() < 0.6 else self._far(host, page, relevant, rng)
            for _ in range(LINKS)
        ]
        return Page(relevant, worth, tuple(self._pointer(target, rng) for target in dict.fromkeys(targets)))

    def _pointer(self, target: tuple[int, int], rng: random.Random) -> Pointer:
        relevant = self.is_relevant(*target)
        plain = rng.random() < (0.5 if relevant else 0.97)  # anchors without a hint at the target, and misleading ones
        said = rng.choice(GENERAL) if plain else rng.choice(TOPICAL)
        return Pointer(self.url(*target), said, 0.25 if plain else 0.7)

    def _near(self, host: int, page: int, rng: random.Random) -> tuple[int, int]:
        what = self.hosts[host]
        if what.kind == "trap":
            return host, page + rng.randrange(1, 50)
        if what.kind == "portal" and page >= DIRECTORIES and rng.random() < 0.8:  # within its directory
            rows = max(1, (what.size - page % DIRECTORIES) // DIRECTORIES)
            return host, page % DIRECTORIES + DIRECTORIES * min(rows, int(rows * rng.random() ** 2))
        return host, min(what.size - 1, int(what.size * rng.random() ** 2))

    def _far(self, host: int, page: int, relevant: bool, rng: random.Random) -> tuple[int, int]:
        kind = self.hosts[host].kind
        leads = (
            random.Random(f"locality {self.seed} {host}").uniform(0.3, 0.6)
            if relevant
            else random.Random(f"locality {self.seed} {host}").uniform(0.005, 0.03)
        )
        # a list: off the topic, and full of sites on it
        if not relevant and kind == "plain" and host % 40 == 7 and rng.random() < 0.5:
            return self._of_kind["hidden"][rng.randrange(10)], rng.randrange(20)
        if relevant and rng.random() < 0.05:  # pages on the topic link to lists
            lists = [place for place in self._of_kind["plain"] if place % 40 == 7]
            return rng.choice(lists), 0
        if rng.random() < leads:
            if rng.random() < 0.35:
                portal = rng.choice(self._of_kind["about"])
                what = self.hosts[portal]
                return portal, what.directory + DIRECTORIES * rng.randrange(max(1, min(20, what.size // DIRECTORIES)))
            place = rng.choice(self._of_kind["topic"])
            return place, int(self.hosts[place].size * rng.random() ** 3)
        if rng.random() < 0.5:
            places = self._of_kind["continent"]
            return places[int(len(places) * rng.random() ** 3)], 0
        place = rng.randrange(HOSTS)
        while self.hosts[place].kind in ("topic", "hidden"):
            place = rng.randrange(HOSTS)
        return place, 0
