"""Chooses the ready hosts whose waiting pages are most likely on the topic, by an order that scores their evidence."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, NamedTuple, Protocol
from urllib.parse import unquote

import numpy as np
import xxhash

from periplus.model.arrays import Floats, Ints, Ints32, Mask
from periplus.model.frontier import LinkSighting, PageVisit, ReadyHost
from periplus.model.page import FOLLOWED_KINDS
from periplus.model.ports import CrawlScope
from periplus.model.web import HostKey, Url
from periplus.urls.hosts import host_key, path_and_query
from periplus_topics.schedule.learning import EvidenceWeights, LeadTally, chances_of

# Pages are numbered in the order of discovery. The worth of a read page is the relevance of its text, 0 to 1. The
# evidence before a page is read: the pages that link to it and their worth, the words of these links and of its URL,
# and the worth of other pages that share its host, directory, words, or a page that links to both. All evidence is in
# arrays, so that a million pages can be scored at once.

MOST_PARENTS = 12  # parents of a page that are stored; of further ones only sums
MOST_WORDS = 12
# words are hashed to slots: a crawl's anchors have some 50,000 words, so there are few collisions
WORD_SLOTS = 1 << 16
TRAITS = 3  # besides words: the URL's pattern on its host, its pattern on any host, the pattern of its first parent
STEPS = 2  # links over which a page is credited for the pages that it leads to
# share of a page's credit that pages linked from it inherit: after three pages off topic almost nothing is left
FADING = 0.5
RELEVANT = 0.5  # pages of at least this worth are relevant
_WORD = re.compile(r"[^\W\d_]{2,}")
_DIGITS = re.compile(r"\d+")
NAMES = (
    *(
        "always",
        "parents",
        "best parent",
        "links",
        "links from other hosts",
        "parents' yield",
        "best yield",
        "host",
        "directory",
        "pages of host",
    ),
    *("promise", "words", "best word", "credit", "promise under good parents", "nothing read of host"),
)
# Fitted by logistic regression on crawls of six topics of a text graph and of two synthetic webs, none of which are
# among the reported ones: docs/topical-crawl.md. They are the initial weights of a crawl, which learns its own.
WEIGHTS = np.array([-1.45, 0.29, 1.41, -0.26, -0.28, 0.56, 0.6, 1.9, 0.15, 0.3, 0.8, 1.25, -0.15, 0.2, 3.84, -0.86])
EXPLORING = 0.1  # premium of a page without read siblings, as a share of the mean worth
WINDOW = 500  # pages of the recent harvest rate; the rate since the start depends on the seeds
MOST_HOSTS = 256  # hosts leased at a time: each commit writes the state of all


class Pointer(NamedTuple):
    """A link as evidence for its target."""

    target: Url
    words: str  # the anchor text
    promise: float  # relevance of the words, 0 to 1


@dataclass(slots=True)
class KindTally:
    """Number and total worth of the read pages of each kind. Kinds are small integers."""

    pages: Floats = field(default_factory=lambda: np.zeros(64))
    worth: Floats = field(default_factory=lambda: np.zeros(64))

    def reach(self, size: int) -> None:
        while len(self.pages) < size:
            self.pages, self.worth = (np.concatenate([old, np.zeros(len(old))]) for old in (self.pages, self.worth))

    def book(self, kinds: Ints, worth: float) -> None:
        self.pages[kinds] += 1
        self.worth[kinds] += worth

    def mean(self, kinds: Ints, prior: Floats, weight: float) -> Floats:
        """Posterior mean of each kind; the prior counts as `weight` pages."""
        means: Floats = (self.worth[kinds] + weight * prior) / (self.pages[kinds] + weight)
        return means


@dataclass(slots=True)
class TopicalPages:
    """The discovered pages. Invariants: a page is waiting, in flight or read; its number never changes."""

    urls: list[Url] = field(default_factory=list)
    number_of: dict[Url, int] = field(default_factory=dict)
    hosts: list[HostKey] = field(default_factory=list)
    host_number: dict[HostKey, int] = field(default_factory=dict)
    directory_number: dict[str, int] = field(default_factory=dict)
    waits: Mask = field(default_factory=lambda: np.zeros(64, np.bool_))
    host: Ints = field(default_factory=lambda: np.zeros(64, np.int64))
    directory: Ints = field(default_factory=lambda: np.zeros(64, np.int64))
    links: Floats = field(default_factory=lambda: np.zeros(64))  # number of pages that link to it
    from_others: Floats = field(default_factory=lambda: np.zeros(64))  # of these, on other hosts
    worth_sum: Floats = field(default_factory=lambda: np.zeros(64))  # over these pages
    worth_most: Floats = field(default_factory=lambda: np.zeros(64))
    promise: Floats = field(default_factory=lambda: np.zeros(64))  # greatest promise of its links
    credit: Floats = field(default_factory=lambda: np.zeros(64))  # greatest worth on a path to it, fading per page
    worth: Floats = field(default_factory=lambda: np.zeros(64))  # 0 before it was read
    parents: Ints32 = field(default_factory=lambda: np.full((64, MOST_PARENTS), -1, np.int32))
    words: Ints32 = field(default_factory=lambda: np.full((64, MOST_WORDS), WORD_SLOTS, np.int32))
    word_count: list[int] = field(default_factory=list)
    traits: Ints32 = field(default_factory=lambda: np.full((64, TRAITS), WORD_SLOTS, np.int32))
    led_to: Floats = field(default_factory=lambda: np.zeros(64))  # read pages discovered through it, in STEPS links
    of_host: KindTally = field(default_factory=KindTally)
    of_directory: KindTally = field(default_factory=KindTally)
    of_parent: KindTally = field(default_factory=KindTally)  # worth of the pages that a page links to
    of_word: KindTally = field(default_factory=KindTally)
    leads: LeadTally = field(default_factory=lambda: LeadTally(WORD_SLOTS))
    weights: EvidenceWeights = field(default_factory=lambda: EvidenceWeights(WEIGHTS))
    read: int = 0
    worth_all: float = 0.0

    def __post_init__(self) -> None:
        self.of_word.reach(WORD_SLOTS + 1)

    def __len__(self) -> int:
        return len(self.urls)

    @property
    def prior(self) -> float:
        """Mean worth of a page, with a prior of 0.1 that counts as 2 pages."""
        return (self.worth_all + 0.2) / (self.read + 2.0)

    def meet(self, url: Url) -> int:
        """The page's number. A new page is added to the waiting ones."""
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
            place = path_and_query(url)
            path = place.partition("?")[0]
            directory = self.directory_number.setdefault(
                f"{key}{path[: path.rfind('/') + 1]}", len(self.directory_number)
            )
            self.host[number], self.directory[number], self.waits[number] = host, directory, True
            for tally, kinds in ((self.of_host, host), (self.of_directory, directory), (self.of_parent, number)):
                tally.reach(kinds + 1)
            pattern = _DIGITS.sub("#", place)
            self.traits[number, :2] = _slot(f"{key}{pattern}"), _slot(pattern)
            self.word_count.append(0)
            self._add_words(number, unquote(path))
        return number

    def _grow(self) -> None:
        fills = {"parents": -1, "words": WORD_SLOTS, "traits": WORD_SLOTS}
        for column in fields(self):
            if isinstance(old := getattr(self, column.name), np.ndarray):
                grown = np.concatenate([old, np.full_like(old, fills.get(column.name, 0))])
                setattr(self, column.name, grown)

    def _add_words(self, number: int, text: str) -> None:
        free, words = self.word_count[number], _WORD.findall(text)
        if not words or free == MOST_WORDS:
            return
        row = self.words[number]
        slots = dict.fromkeys(row[:free].tolist())
        slots.update(dict.fromkeys(_slot(word.lower()) for word in words))
        count = self.word_count[number] = min(len(slots), MOST_WORDS)
        row[free:count] = list(slots)[free:count]

    def start(self, url: Url) -> int:
        """Adds a start URL, which is assumed to be on the topic until it is read."""
        number = self.meet(url)
        self.credit[number] = self.promise[number] = self.worth_most[number] = 1.0
        return number

    def move(self, source: Url, target: Url) -> int:
        """Replaces a page by its redirect target, which inherits its evidence if it is new. Returns its number."""
        is_old = target in self.number_of
        old, new = self.meet(source), self.meet(target)
        self.take(old)
        if not is_old:
            for values in (
                self.links,
                self.from_others,
                self.worth_sum,
                self.worth_most,
                self.promise,
                self.credit,
                self.parents,
                self.words,
            ):
                values[new] = values[old]
            self.word_count[new], self.traits[new, 2] = self.word_count[old], self.traits[old, 2]
        return new

    def take(self, number: int) -> None:
        """Marks a page as not waiting: it is in flight, or it will not be fetched."""
        self.waits[number] = False

    def book(self, url: Url, worth: float, pointers: Sequence[Pointer]) -> list[int]:
        """Records a page that was read. Returns the numbers of the waiting pages that it links to."""
        number = self.meet(url)
        self.take(number)
        if self.weights.takes(self.read):
            self.weights.book(self.read, evidence(self, np.array([number]))[0], worth >= RELEVANT)
        self.worth[number] = worth
        self.read += 1
        self.worth_all += worth
        self.of_host.book(self.host[number : number + 1], worth)
        self.of_directory.book(self.directory[number : number + 1], worth)
        parents = self.parents[number]
        self.of_parent.book(parents[parents >= 0].astype(np.int64), worth)
        words = self.words[number]
        self.of_word.book(words[words < WORD_SLOTS].astype(np.int64), worth)
        self._book_leads(number, worth)
        self.credit[number] = max(worth, self.credit[number] * FADING)
        return self._point(number, worth, pointers)

    def _book_leads(self, number: int, worth: float) -> None:
        """Credits the page's worth to the page on which it was discovered, and to that page's own source."""
        self.leads.book(self._own_traits(number))
        share = 1.0
        for _ in range(STEPS):
            share /= max(self.links[number], 1.0)
            number = int(self.parents[number, 0])
            if number < 0:
                return
            self.leads.credit(self._own_traits(number), float(self.led_to[number]), share, worth)
            self.led_to[number] += share

    def _own_traits(self, number: int) -> Ints:
        slots = np.concatenate([self.words[number], self.traits[number]])
        return slots[slots < WORD_SLOTS].astype(np.int64)

    def _point(self, source: int, worth: float, pointers: Sequence[Pointer]) -> list[int]:
        targets: dict[int, None] = {}
        credit, host = self.credit[source], self.host[source]
        of_source = int(self.traits[source, 1]) ^ 1  # a slot that differs from that of the pattern itself
        for target, words, promise in pointers:
            number = self.meet(target)
            if number == source or not self.waits[number]:
                continue
            self.promise[number] = max(self.promise[number], promise)
            if number in targets:
                continue
            targets[number] = None
            self._add_words(number, words)
            links = int(self.links[number])
            if not links:
                self.traits[number, 2] = of_source
            if links < MOST_PARENTS:
                self.parents[number, links] = source
            self.links[number] += 1
            self.from_others[number] += self.host[number] != host
            self.worth_sum[number] += worth
            self.worth_most[number] = max(self.worth_most[number], worth)
            self.credit[number] = max(self.credit[number], credit)
        return list(targets)


def _slot(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace")) % WORD_SLOTS


def evidence(seen: TopicalPages, numbers: Ints) -> Floats:
    """float64[pages, NAMES]. Shares are log odds, so that independent evidence adds up."""
    prior = seen.prior
    priors = np.full(len(numbers), prior)
    links = seen.links[numbers]
    parents = (seen.worth_sum[numbers] + 0.5 * prior) / (links + 0.5)
    inherited, best = _yields(seen, numbers, prior)
    host = seen.of_host.mean(seen.host[numbers], priors, 2.0)
    directory = seen.of_directory.mean(seen.directory[numbers], host, 1.0)
    words, best_word = _words(seen, numbers, prior)
    promise = seen.promise[numbers]
    of_host = seen.of_host.pages[seen.host[numbers]]
    base = _odds(np.array(prior))
    columns = (
        np.ones(len(numbers)),
        _odds(parents) - base,
        seen.worth_most[numbers],
        np.log1p(links),
        np.log1p(seen.from_others[numbers]),
        _odds(inherited) - base,
        _odds(best) - base,
        _odds(host) - base,
        _odds(directory) - _odds(host),
        np.log1p(of_host),
        _odds(promise),
        words,
        best_word,
        seen.credit[numbers],
        promise * parents,
        (of_host == 0).astype(np.float64),
    )
    return np.stack(columns, axis=1)


def _odds(share: Floats) -> Floats:
    inner = np.clip(share, 0.003, 0.997)
    odds: Floats = np.log(inner / (1 - inner))
    return odds


def _yields(seen: TopicalPages, numbers: Ints, prior: float) -> tuple[Floats, Floats]:
    """(mean, greatest) share of relevant pages among the read pages that a page's parents link to."""
    parents = seen.parents[numbers]
    exists = parents >= 0
    each, counts = parents[exists].astype(np.int64), exists.sum(axis=1)
    # prior: relevant pages tend to link to relevant pages
    expected = 0.5 * prior + 0.5 * np.maximum(0.3 * seen.worth[each], prior)
    shares = seen.of_parent.mean(each, expected, 3.0)
    mean, most = np.full((2, len(numbers)), prior)
    rows = np.flatnonzero(counts)
    if len(rows):
        starts = np.cumsum(counts[rows]) - counts[rows]
        mean[rows] = np.add.reduceat(shares, starts) / counts[rows]
        most[rows] = np.maximum.reduceat(shares, starts)
    return mean, most


def _words(seen: TopicalPages, numbers: Ints, prior: float) -> tuple[Floats, Floats]:
    """(normalized sum, greatest) of the log odds of a page's words, from the read pages that had them."""
    slots = seen.words[numbers].astype(np.int64)
    if slots.size > WORD_SLOTS:  # cheaper for all words once than for the words of each page
        odds = _word_odds(seen, np.arange(WORD_SLOTS + 1), prior)[slots]
    else:
        odds = _word_odds(seen, slots, prior)
    count = np.maximum((slots < WORD_SLOTS).sum(axis=1), 1)
    return odds.sum(axis=1) / np.sqrt(count), odds.max(axis=1)


def _word_odds(seen: TopicalPages, slots: Ints, prior: float) -> Floats:
    odds = _odds(seen.of_word.mean(slots, np.full(slots.shape, prior), 1.5)) - _odds(np.array(prior))
    return np.where(slots < WORD_SLOTS, odds, 0.0)


def expected_relevance(seen: TopicalPages, numbers: Ints) -> Floats:
    """The expected share of relevant pages when fetching this page, or this page and the pages that it leads to.

    So lists of relevant pages score high even if they are off topic themselves. Of pages with equal scores, the ones
    with few read siblings come first.
    """
    chances = chances_of(evidence(seen, numbers) @ seen.weights.values)
    traits = np.concatenate([seen.words[numbers], seen.traits[numbers]], axis=1)
    sizes, rates = seen.leads.expected_worth(traits, seen.prior)
    sizes = sizes**2 / (1 + sizes)  # reduces sizes of 1 and less, which are mostly due to chance
    promises = np.maximum(chances, (chances + sizes * rates) / (1 + sizes)) + 1e-3 * chances
    parents = seen.parents[numbers]
    followed = np.where(parents >= 0, seen.of_parent.pages[parents], 0.0).max(axis=1)
    explored: Floats = promises + EXPLORING * seen.prior / np.sqrt(1 + followed)
    return explored


Order = Callable[[TopicalPages, Ints], Floats]  # scores of pages by number; the page with the greatest is next


class TopicalQueue(Protocol):
    """The waiting pages of a topical crawl in their order. One test suite runs over every implementation.

    Invariant: a page waits from its discovery until it is dropped or read, and never again.
    """

    def start(self, urls: Iterable[Url]) -> None:
        """Adds start URLs."""

    def add(self, urls: Iterable[Url]) -> None:
        """Adds pages of which only the URL is known."""

    def read(self, url: Url, worth: float, pointers: Sequence[Pointer]) -> None:
        """Records a page that was read. worth: its relevance, 0 to 1; pointers: its links."""

    def apply_redirect(self, source: Url, target: Url) -> None:
        """Replaces a page by its redirect target, which inherits its evidence."""

    def peek(self, host: HostKey) -> Url | None:
        """The best page of a host; it stays in the queue."""

    def drop(self, url: Url) -> None:
        """Removes a URL from the queue."""

    def keep_only(self, waiting: Collection[Url]) -> None:
        """Drops all other pages."""

    def promise_of(self, host: HostKey) -> float | None:
        """Score of the host's best page; None: no page waits; minus infinity: the host is not active."""

    def wake(self) -> None:
        """Called when no active host has a page; may activate others."""


def take_page(queue: TopicalQueue, host: HostKey) -> Url | None:
    """Removes the best page of a host from the queue, and returns it."""
    url = queue.peek(host)
    if url is not None:
        queue.drop(url)
    return url


Judge = Callable[[Sequence[str]], Floats]  # how relevant texts are, 0 to 1


@dataclass(slots=True)
class HarvestTally:
    """Counts of fetched and relevant pages over all runs of a topical crawl."""

    pages: int = 0  # requested
    relevant: int = 0
    last: deque[bool] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def book(self, worth: float) -> None:
        self.pages += 1
        self.relevant += worth >= RELEVANT
        self.last.append(worth >= RELEVANT)

    @property
    def harvest(self) -> float:
        """Share of relevant pages among the requested ones."""
        return self.relevant / max(1, self.pages)

    @property
    def lately(self) -> float:
        """The harvest rate of the last WINDOW pages."""
        return sum(self.last) / max(1, len(self.last))


@dataclass(slots=True)
class TopicalPolicy:
    """`model.ports.Policy`: hosts by the score of their best page. Hosts that must wait come after ready ones.

    Among them urgent hosts come first, since other hosts may wait for their requests; hosts whose tasks are not in the
    queue (retries, suspected traps) come last. The state follows from the stored visits in their order, judged by the
    current topic.
    """

    queue: TopicalQueue
    scope: CrawlScope
    judge: Judge
    text_of: Callable[[PageVisit], str]  # the text of a page that is judged
    urgent: Callable[[Sequence[int]], frozenset[int]]  # the hosts with requests that other hosts wait for
    tally: HarvestTally = field(default_factory=HarvestTally)
    window: int = 0
    most_hosts: int = MOST_HOSTS
    mark: int = 0
    reads_text: ClassVar[bool] = True
    # the page last chosen for each host: it is returned again until it was visited or is no longer in the queue
    _given: dict[HostKey, Url] = field(default_factory=dict)

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        ranked = self._rank_hosts(ready)
        if ready and not ranked:
            self.queue.wake()
            ranked = self._rank_hosts(ready)
        return [host_id for *_, host_id in sorted(ranked)[:most]]

    def _rank_hosts(self, ready: Sequence[ReadyHost]) -> list[tuple[bool, float, HostKey, int]]:
        ranked, urgent = [], self.urgent([host.host_id for host in ready])
        for host in ready:
            promise = np.inf if host.host_id in urgent else self.queue.promise_of(host.host)
            if promise != -np.inf:
                ranked.append((host.wait_s > 0, np.inf if promise is None else -promise, host.host, host.host_id))
        return ranked

    def next(self, host: HostKey) -> Iterator[Url]:
        while (url := self._given.get(host) or take_page(self.queue, host)) is not None:
            self._given[host] = url
            yield url
            self._given.pop(host, None)  # the caller asks for another page because this one is not in the store's queue

    def learn(self, visits: Iterable[PageVisit]) -> None:
        for visit in visits:
            self.mark = max(self.mark, visit.id)
            if self._given.get(host := host_key(visit.url)) == visit.url:
                del self._given[host]
            if visit.redirect:
                if self.scope.decide(visit.redirect) is None:
                    self.queue.apply_redirect(visit.url, visit.redirect)
            elif visit.asked:
                worth = float(self.judge([self.text_of(visit)])[0]) if visit.read else 0.0
                self.queue.read(visit.url, worth, self.pointers(visit.links))
                self.tally.book(worth)

    def pointers(self, links: Iterable[LinkSighting]) -> list[Pointer]:
        """The followed links in sorted order, so that stored links give the same result."""
        followed = sorted(
            link
            for link in links
            if link.kind in FOLLOWED_KINDS and not link.nofollow and self.scope.decide(link.target) is None
        )
        anchors = sorted({link.anchor for link in followed})
        promises = dict(zip(anchors, self.judge(anchors).tolist(), strict=True)) if anchors else {}
        return [Pointer(link.target, link.anchor, promises[link.anchor]) for link in followed]
