"""How does a collection's tree of directories grow, page by page, without ever being counted anew?"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

STEPS = 3  # of a branch: host, and two of its path
BRANCHES = 20_000  # that are counted apart, some 5 MB; pages of further ones count for the branch that they grow on
SHOWN = 40  # more is no overview

Key = tuple[str, ...]  # host and steps of the path


class Branch(NamedTuple):
    """A branch of the tree. depth: 0: a host; prefix: how the URLs of its pages begin, but for the scheme; grown: pages since the look before."""

    name: str
    prefix: str
    depth: int
    pages: int
    grown: int


class Tree(NamedTuple):
    """The largest branches, each before those on it, larger ones first; more: branches that are not named; layers: (clicks, pages)."""

    branches: tuple[Branch, ...]
    more: int
    layers: tuple[tuple[int, int], ...]
    whole: bool  # of all runs, not of the last alone


@dataclass(slots=True)
class Growth:
    """Pages by branch and by layer."""

    whole: bool = True
    pages: Counter[Key] = field(default_factory=Counter)
    grown: Counter[Key] = field(default_factory=Counter)
    layers: Counter[int] = field(default_factory=Counter)
    earlier: set[int] = field(default_factory=set)  # hashes of the URLs of earlier runs, which a refresh brings again

    def add(self, found: Iterable[tuple[str, int | None]], *, new: bool = True) -> None:
        """Pages, as (URL, layer). new: of this run; those of earlier ones are told once, before it."""
        for url, layer in found:
            if hash(url) in self.earlier:
                continue
            if not new:
                self.earlier.add(hash(url))
            self.layers[-1 if layer is None else layer] += 1
            steps = branch_of(url)
            for end in range(1, len(steps) + 1):
                key = steps[:end]
                if key not in self.pages and len(self.pages) >= BRANCHES:
                    break
                self.pages[key] += 1
                if new:
                    self.grown[key] += 1

    def tree(self, most: int = SHOWN) -> Tree:
        """As it stands; the next look begins."""
        best = heapq.nsmallest(most, self.pages, key=lambda key: (-self.pages[key], len(key), key))  # a branch holds no more than what it grows on
        order = {key: tuple((-self.pages[key[:end]], key[end - 1]) for end in range(1, len(key) + 1)) for key in best}
        branches = tuple(self._branch(key) for key in sorted(best, key=order.__getitem__))
        self.grown.clear()
        return Tree(branches, len(self.pages) - len(branches), tuple(sorted(self.layers.items(), key=lambda row: (row[0] < 0, row[0]))), self.whole)

    def _branch(self, key: Key) -> Branch:
        name = key[0] if len(key) == 1 else f"/{unquote(key[-1])}/"
        return Branch(name, "/".join(key) + "/", len(key) - 1, self.pages[key], self.grown[key])


def branch_of(url: str) -> Key:
    """The branch that a page grows on: its directory, or one above."""
    place = url.partition("://")[2].partition("?")[0]
    return tuple(place.split("/")[:-1][:STEPS])
