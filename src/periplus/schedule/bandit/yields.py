"""What has each site brought so far, as far as a rule of choice may ask?

All arrays have the shape worlds x sites: a campaign is one world; a measurement plays hundreds at once with the same code.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

WINDOWS = 2 ** np.arange(9)  # pages: 1 to 256, the geometric grid of Seznec's efficient RAW-UCB; beyond them the whole history
MEMORIES = np.array([4.0, 16.0, 64.0, 256.0])  # pages: a fading sum keeps 1 - 1 / memory of itself with each page
SINGLES_MEMORY = 100.0  # pages; the window with which Good-UCB did best on real manuals

_BY_SITE = ("pages", "links", "squares", "windows", "faded", "faded_pages", "singles", "ring")


@dataclass(slots=True)
class Yields:
    """Counts of sites. Only `book` changes it.

    A reward is the number of new external links on one page. Sums may be of rewards in other units (links a second).
    """

    pages: Integers
    links: Floats  # sum of the rewards
    squares: Floats  # sum of their squares
    windows: Floats  # worlds x sites x WINDOWS: sum of the rewards of the last so many pages
    faded: Floats  # worlds x sites x MEMORIES: sum in which a page of an age counts (1 - 1 / memory) ** age
    faded_pages: Floats  # the same of ones
    singles: Floats  # links met on exactly one page of their site, each faded with its age
    largest: Floats  # per world: the greatest reward of one page
    asked: Integers  # per world: pages in all
    gained: Floats  # per world: sum of all rewards
    squared: Floats  # per world: sum of the squares of all rewards
    ring: Floats = field(repr=False)  # the last 256 rewards of each site

    @classmethod
    def none(cls, worlds: int, sites: int) -> Yields:
        shape = (worlds, sites)
        return cls(
            pages=np.zeros(shape, np.int64),
            links=np.zeros(shape),
            squares=np.zeros(shape),
            windows=np.zeros((*shape, len(WINDOWS))),
            faded=np.zeros((*shape, len(MEMORIES))),
            faded_pages=np.zeros((*shape, len(MEMORIES))),
            singles=np.zeros(shape),
            largest=np.zeros(worlds),
            asked=np.zeros(worlds, np.int64),
            gained=np.zeros(worlds),
            squared=np.zeros(worlds),
            ring=np.zeros((*shape, WINDOWS[-1])),
        )

    def book(self, worlds: Integers, sites: Integers, rewards: Floats, met_again: Floats | None = None) -> None:
        """One page of sites[i] in worlds[i], each world at most once.

        met_again: of the links that were on one page only and are on this one too, each faded with the age of its first meeting.
        """
        at = (worlds, sites)
        number = self.pages[at]
        leaving = self.ring[worlds[:, None], sites[:, None], (number[:, None] - WINDOWS) % WINDOWS[-1]]  # zero before it was filled
        self.windows[at] += rewards[:, None] - leaving
        self.ring[worlds, sites, number % WINDOWS[-1]] = rewards
        keep = 1 - 1 / MEMORIES
        self.faded[at] = self.faded[at] * keep + rewards[:, None]
        self.faded_pages[at] = self.faded_pages[at] * keep + 1
        lost = 0.0 if met_again is None else met_again
        self.singles[at] = np.maximum(self.singles[at] * (1 - 1 / SINGLES_MEMORY) - lost, 0) + rewards
        self.pages[at] += 1
        self.links[at] += rewards
        self.squares[at] += rewards * rewards
        self.largest[worlds] = np.maximum(self.largest[worlds], rewards)
        self.asked[worlds] += 1
        self.gained[worlds] += rewards
        self.squared[worlds] += rewards * rewards

    def grown(self, sites: int) -> Yields:
        """The same with room for so many sites; of the further ones nothing is known."""
        more = Yields.none(len(self.pages), sites - self.pages.shape[1])
        joined = {name: np.concatenate([getattr(self, name), getattr(more, name)], axis=1) for name in _BY_SITE}
        return dataclasses.replace(self, **joined)

    def part(self, sites: Integers) -> Yields:
        """Some of the sites, to score them alone. What is known of all pages stays; the ring, which no score reads, too."""
        return dataclasses.replace(self, **{name: getattr(self, name)[:, sites] for name in _BY_SITE if name != "ring"})

    @property
    def means(self) -> Floats:
        """Of each site; 0 for one that was not asked."""
        return self.links / np.maximum(self.pages, 1)

    @property
    def mean(self) -> Floats:
        """Of all pages of a world, worlds x 1."""
        return (self.gained / np.maximum(self.asked, 1))[:, None]
