"""What is known of the pages of a topical crawl: which link to which, what those that were read were worth?

A page has a number, in the order in which it was first met. Its worth is how relevant its text was judged, 0 to 1, once it was read. What is known
of it before: the pages that link to it and their worth, the words of these links and of its address, and what others brought that share its
host, its directory, its words, or a page that links to both. All in arrays, so that a million pages can be scored at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import xxhash
from numpy.typing import NDArray

from periplus.model.web import HostKey, Url
from periplus.urls.hosts import host_key, path_and_query

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

MOST_PARENTS = 12  # of one page that are remembered one by one; of the others the sums
MOST_WORDS = 12
WORD_SLOTS = 1 << 16  # words are told apart by hash: a crawl's anchors have some 50,000, and who shares a slot shares a little luck
FADING = 0.5  # of a page's credit that a page it links to inherits: after three pages off the topic nothing is left to speak of
_WORD = re.compile(r"[^\W\d_]{2,}")


class Pointer(NamedTuple):
    """A link, as it speaks for its target."""

    target: Url
    said: str  # its anchor, and what stands around it
    promise: float  # how relevant these words are by themselves, 0 to 1


@dataclass(slots=True)
class Tally:
    """How many pages of each kind were read, and what they were worth together. Numbers of kinds are small integers."""

    pages: Floats = field(default_factory=lambda: np.zeros(64))
    worth: Floats = field(default_factory=lambda: np.zeros(64))

    def reach(self, size: int) -> None:
        while len(self.pages) < size:
            self.pages, self.worth = (np.concatenate([old, np.zeros(len(old))]) for old in (self.pages, self.worth))

    def book(self, kinds: Numbers, worth: float) -> None:
        self.pages[kinds] += 1
        self.worth[kinds] += worth

    def mean(self, kinds: Numbers, prior: Floats, weight: float) -> Floats:
        """Posterior mean of each kind: as if `weight` pages of the prior's worth had been read before."""
        found: Floats = (self.worth[kinds] + weight * prior) / (self.pages[kinds] + weight)
        return found


@dataclass(slots=True)
class Seen:
    """The pages that were met. Always: a page waits, or is under way, or was read; numbers stay what they are."""

    urls: list[Url] = field(default_factory=list)
    number_of: dict[Url, int] = field(default_factory=dict)
    hosts: list[HostKey] = field(default_factory=list)
    host_number: dict[HostKey, int] = field(default_factory=dict)
    directory_number: dict[str, int] = field(default_factory=dict)
    waits: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(64, np.bool_))
    host: Numbers = field(default_factory=lambda: np.zeros(64, np.int64))
    directory: Numbers = field(default_factory=lambda: np.zeros(64, np.int64))
    links: Floats = field(default_factory=lambda: np.zeros(64))  # pages that link to it
    from_others: Floats = field(default_factory=lambda: np.zeros(64))  # of them, those on other hosts
    worth_sum: Floats = field(default_factory=lambda: np.zeros(64))  # over these pages
    worth_most: Floats = field(default_factory=lambda: np.zeros(64))
    promise: Floats = field(default_factory=lambda: np.zeros(64))  # the best of what its links say of it
    credit: Floats = field(default_factory=lambda: np.zeros(64))  # the best worth on a way to it, fading with each page
    worth: Floats = field(default_factory=lambda: np.zeros(64))  # its own; nothing before it was read
    parents: NDArray[np.int32] = field(default_factory=lambda: np.full((64, MOST_PARENTS), -1, np.int32))
    words: NDArray[np.int32] = field(default_factory=lambda: np.full((64, MOST_WORDS), WORD_SLOTS, np.int32))
    of_host: Tally = field(default_factory=Tally)
    of_directory: Tally = field(default_factory=Tally)
    of_parent: Tally = field(default_factory=Tally)  # what pages were worth that a page links to
    of_word: Tally = field(default_factory=Tally)
    read: int = 0
    worth_all: float = 0.0

    def __post_init__(self) -> None:
        self.of_word.reach(WORD_SLOTS + 1)

    def __len__(self) -> int:
        return len(self.urls)

    @property
    def prior(self) -> float:
        """What a page is worth on average; before the first ones are read, little."""
        return (self.worth_all + 0.2) / (self.read + 2.0)

    def meet(self, url: Url) -> int:
        """The page's number; it waits when it was not met before."""
        number = self.number_of.get(url)
        if number is None:
            number = self.number_of[url] = len(self.urls)
            self.urls.append(url)
            if number == len(self.waits):
                self._grow()
            key = host_key(url)
            host = self.host_number.setdefault(key, len(self.hosts))
            if host == len(self.hosts):
                self.hosts.append(key)
            path = path_and_query(url).partition("?")[0]
            directory = self.directory_number.setdefault(f"{key}{path[: path.rfind('/') + 1]}", len(self.directory_number))
            self.host[number], self.directory[number], self.waits[number] = host, directory, True
            for tally, kinds in ((self.of_host, host), (self.of_directory, directory), (self.of_parent, number)):
                tally.reach(kinds + 1)
            self._add_words(number, unquote(path))
        return number

    def _grow(self) -> None:
        for name in ("waits", "host", "directory", "links", "from_others", "worth_sum", "worth_most", "promise", "credit", "worth"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        self.parents = np.concatenate([self.parents, np.full_like(self.parents, -1)])
        self.words = np.concatenate([self.words, np.full_like(self.words, WORD_SLOTS)])

    def _add_words(self, number: int, text: str) -> None:
        row = self.words[number]
        free = int(np.argmax(row == WORD_SLOTS)) if row[-1] == WORD_SLOTS else MOST_WORDS
        if free == MOST_WORDS:
            return
        held = set(row[:free].tolist())
        for word in _WORD.findall(text):
            slot = xxhash.xxh3_64_intdigest(word.lower().encode("utf-8", "replace")) % WORD_SLOTS
            if slot not in held and free < MOST_WORDS:
                row[free] = slot
                held.add(slot)
                free += 1

    def start(self, url: Url) -> int:
        """A page to begin with: it is taken to be on the topic until it is read."""
        number = self.meet(url)
        self.credit[number] = self.promise[number] = self.worth_most[number] = 1.0
        return number

    def move(self, source: Url, target: Url) -> int:
        """A page lies elsewhere: what speaks for its old address speaks for the new one, unless that was met before. Returns the new number."""
        known = target in self.number_of
        old, new = self.meet(source), self.meet(target)
        self.take(old)
        if not known:
            for values in (self.links, self.from_others, self.worth_sum, self.worth_most, self.promise, self.credit, self.parents, self.words):
                values[new] = values[old]
        return new

    def take(self, number: int) -> None:
        """It waits no longer: it is under way, or it will not be fetched."""
        self.waits[number] = False

    def book(self, url: Url, worth: float, pointers: Sequence[Pointer]) -> list[int]:
        """A page was read. Returns the numbers of the pages that it links to, each once."""
        number = self.meet(url)
        self.take(number)
        self.worth[number] = worth
        self.read += 1
        self.worth_all += worth
        self.of_host.book(self.host[number : number + 1], worth)
        self.of_directory.book(self.directory[number : number + 1], worth)
        parents = self.parents[number]
        self.of_parent.book(parents[parents >= 0].astype(np.int64), worth)
        words = self.words[number]
        self.of_word.book(words[words < WORD_SLOTS].astype(np.int64), worth)
        self.credit[number] = max(worth, self.credit[number] * FADING)
        return self._point(number, worth, pointers)

    def _point(self, source: int, worth: float, pointers: Sequence[Pointer]) -> list[int]:
        targets: dict[int, None] = {}
        credit, host = self.credit[source], self.host[source]
        for target, said, promise in pointers:
            number = self.meet(target)
            if number == source or not self.waits[number]:
                continue
            self.promise[number] = max(self.promise[number], promise)
            if number in targets:
                continue
            targets[number] = None
            self._add_words(number, said)
            links = int(self.links[number])
            if links < MOST_PARENTS:
                self.parents[number, links] = source
            self.links[number] += 1
            self.from_others[number] += self.host[number] != host
            self.worth_sum[number] += worth
            self.worth_most[number] = max(self.worth_most[number], worth)
            self.credit[number] = max(self.credit[number], credit)
        return list(targets)
