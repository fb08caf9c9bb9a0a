"""Candidate pages for stories: their own texts, the data compared between them as columns, and their order."""

from __future__ import annotations

import heapq
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from periplus.analyse.duplicates import Hashes, shingles
from periplus.analyse.linkgraph import sort_distinct
from periplus.document.digest import without_marks
from periplus.model.arrays import Floats, Ints, Ints32, Mask, Unsigned8, Unsigned16, Unsigned32
from periplus.model.page import APART, POSITION_CODES, TEXT_PARTS, Blocks, DateOrigin, PageDate, Part, Position
from periplus.model.web import SiteKey, Url
from periplus.values import frozen
from periplus_topics.model import Order, Story, StoryPage

DAY_S = 86_400.0
TEMPLATE_PAGES = 8  # in a smaller site, boilerplate is recognised by landmarks only
TEMPLATE_SHARE = 0.4  # a block on this share of a site's pages is boilerplate
WORDS_MOST = 2_000  # compared per page: an article has some hundreds
DATE_ORIGINS = tuple(DateOrigin)
TRUSTED_ORIGINS = frozenset(DateOrigin) - {DateOrigin.LAST_MODIFIED, DateOrigin.FIRST_SEEN}
_IS_TRUSTED = np.array([origin in TRUSTED_ORIGINS for origin in DATE_ORIGINS])
_MENUS = frozenset(POSITION_CODES[position] for position in (Position.NAV, Position.HEADER, Position.FOOTER))
_WORDS = re.compile(r"[^\W_]{2,}")
_PARTING = re.compile(r"\s+(?:[|·•»«:]+|[-\u2013\u2014]+|::)\s+")

Pair = tuple[int, int]


@frozen
class Article:
    """A page that may be part of a story."""

    url: Url
    site: SiteKey
    title: str  # as on the page
    language: str
    date: PageDate
    first_seen: float
    shingles: Hashes  # of its own text (without boilerplate), ascending
    words: Unsigned32  # hashes of the words of title and text, ascending
    counts: Unsigned16  # count of each word


@dataclass(frozen=True, slots=True, eq=False)
class RaggedColumn:
    """A variable number of values per page: one column, and the offset of each page."""

    offsets: Ints  # pages + 1
    values: NDArray[Any]

    @classmethod
    def of(cls, pages: Sequence[NDArray[Any]], kind: type[np.generic]) -> RaggedColumn:
        offsets = np.concatenate(([0], np.cumsum([len(page) for page in pages], dtype=np.int64)))
        return cls(offsets, np.concatenate([np.zeros(0, kind), *pages]))

    def __getitem__(self, place: int) -> NDArray[Any]:
        return self.values[self.offsets[place] : self.offsets[place + 1]]


class Texts:
    """Texts as one growing column of UTF-8: saves 0.1 kB per text compared to string objects."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._column, self._ends = bytearray(), array("q", [0])
        for text in texts:
            self.append(text)

    def append(self, text: str) -> None:
        self._column += text.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._column))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> str:
        return self._column[self._ends[place] : self._ends[place + 1]].decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True, eq=False)
class Articles:
    """Many articles as columns; an `Article` is created on access."""

    urls: Texts
    titles: Texts
    languages: Texts
    site_names: Sequence[SiteKey]
    sites: Ints32  # for each page, index in site_names
    when: Floats  # seconds since the epoch
    origins: Unsigned8  # indices in DATE_ORIGINS
    whole_days: Mask
    first_seen: Floats
    shingles: RaggedColumn
    words: RaggedColumn
    counts: Unsigned16  # as words.values

    @classmethod
    def of(cls, pages: Sequence[Article]) -> Articles:
        names = list(dict.fromkeys(page.site for page in pages))
        place = {name: at for at, name in enumerate(names)}
        return cls(
            Texts(page.url for page in pages),
            Texts(page.title for page in pages),
            Texts(page.language for page in pages),
            names,
            np.array([place[page.site] for page in pages], np.int32),
            np.array([page.date.when for page in pages], np.float64),
            np.array([DATE_ORIGINS.index(page.date.source) for page in pages], np.uint8),
            np.array([page.date.whole_day for page in pages], np.bool_),
            np.array([page.first_seen for page in pages], np.float64),
            RaggedColumn.of([page.shingles for page in pages], np.uint64),
            RaggedColumn.of([page.words for page in pages], np.uint32),
            RaggedColumn.of([page.counts for page in pages], np.uint16).values,
        )

    def __len__(self) -> int:
        return len(self.urls)

    def __getitem__(self, place: int) -> Article:
        date = PageDate(float(self.when[place]), DATE_ORIGINS[self.origins[place]], bool(self.whole_days[place]))
        begin, end = self.words.offsets[place : place + 2]
        return Article(
            Url(self.urls[place]), self.site_names[self.sites[place]], self.titles[place], self.languages[place], date,
            float(self.first_seen[place]), self.shingles[place], self.words[place], self.counts[begin:end],
        )  # fmt: skip

    @property
    def is_dated(self) -> Mask:
        """Whether each page's date comes from the page itself, not from the server or the crawl."""
        return np.asarray(_IS_TRUSTED[self.origins])


def candidate_texts(blocks: Blocks, parts: Sequence[Part] | None) -> tuple[list[str], Hashes]:
    """(texts of a page outside menus; a mark for each: its hash, with the lowest bit set if it is content).

    parts: one per block; None: everything is content.
    """
    whole = parts if parts is not None and len(parts) == len(blocks) else [Part.CONTENT] * len(blocks)
    texts, marks = [], []
    for text, kind, position, part in zip(blocks.texts(), blocks.kinds, blocks.positions, whole, strict=True):
        if kind not in APART and position not in _MENUS:
            texts.append(text)
            marks.append(_hash_of(text) | 1 if part in TEXT_PARTS else _hash_of(text) & ~1)
    return texts, np.array(marks, np.uint64)


def _hash_of(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


def own_places(pages: RaggedColumn, *, content: bool = True) -> Mask:
    """Whether each candidate text is the page's own, that is, not on many pages of the site.

    pages: the marks of each page's texts. content: only texts marked as content can be own.
    """
    every, count = pages.values, len(pages.offsets) - 1
    own = (every & np.uint64(1)).astype(np.bool_) if content else np.ones(len(every), np.bool_)
    if count >= TEMPLATE_PAGES:
        row = np.repeat(np.arange(count), np.diff(pages.offsets))[own]
        distinct, text = np.unique(every[own] >> np.uint64(1), return_inverse=True)
        on_pages = np.bincount(sort_distinct(text * count + row) // count, minlength=len(distinct))
        own[own] = on_pages[text] < TEMPLATE_SHARE * count
    return own


def own_titles(titles: Sequence[str]) -> list[str]:
    """A site's titles without the site's name: the first or last part, if at least two pages share it."""
    split = [_PARTING.split(title) for title in titles]
    last = Counter(parts[-1] for parts in split if len(parts) > 1)
    first = Counter(parts[0] for parts in split if len(parts) > 1)
    own = []
    for title, parts in zip(titles, split, strict=True):
        if len(parts) > 1 and last[parts[-1]] > 1:
            own.append(title[: title.rindex(parts[-1])].rstrip(" |·•»«:-\u2013\u2014"))
        elif len(parts) > 1 and first[parts[0]] > 1:
            own.append(title[len(parts[0]) :].lstrip(" |·•»«:-\u2013\u2014"))
        else:
            own.append(title)
    return own


def shingles_of(texts: Iterable[str]) -> Hashes:
    """Hashes of runs of five words of the page's own text."""
    return shingles("\n".join(texts))


# Shingles are sampled by hash, so that the similarity of samples estimates the similarity of the texts (FracMinHash:
# Irber et al. 2022).
SHINGLES_IN_ALL = 32_000_000  # kept at most: comparing them takes about 2 GB


def sampling_of(runs: int) -> int:
    """The sampling rate, one in 1, 2, 4 ...: the least for which the shingles of all pages fit in memory."""
    share = 1
    while runs > SHINGLES_IN_ALL * share:
        share *= 2
    return share


def words_of(title: str, texts: Iterable[str]) -> tuple[Unsigned32, Unsigned16]:
    """(words, count of each): lower case, no diacritics, at least two letters or digits."""
    spellings = _WORDS.findall(without_marks(" ".join((title, title, *texts))))[:WORDS_MOST]
    words, counts = np.unique(np.fromiter(map(_hash, spellings), np.uint32, len(spellings)), return_counts=True)
    return words, counts.astype(np.uint16)


@lru_cache(maxsize=65_536)
def _hash(word: str) -> int:
    return xxhash.xxh32_intdigest(word.encode("utf-8", "surrogatepass"))


# Pages are ordered by date; if dates do not decide (no date of its own, or the same day without an hour), a citing page
# comes after the cited page; finally by first_seen. Each page records which of the three applied.


def ordered_story(articles: Sequence[Article], links: Sequence[Pair], shares: Mapping[Pair, float]) -> Story:
    """The story of these pages.

    links: (citing, cited) indices in articles. shares: containment of pairs.
    """
    after = [(citing, cited) for citing, cited in links if not _is_before(articles[citing], articles[cited])]
    order = _topological_order(articles, after)
    place = {page: at for at, page in enumerate(order)}
    linked = {page for pair in after for page in pair}
    pages = tuple(
        StoryPage(
            article.url,
            article.site,
            article.title,
            article.language,
            article.date,
            _order_criterion(articles, page, after, page in linked),
        )
        for page, article in ((page, articles[page]) for page in order)
    )
    return Story(
        pages=pages,
        links=tuple(sorted((place[citing], place[cited]) for citing, cited in links)),
        near=_near(place, shares),
        disordered=len(links) - len(after),
    )


def _span(article: Article) -> tuple[float, float] | None:
    """Earliest and latest time of publication, by the page's own date; None without."""
    if article.date.source not in TRUSTED_ORIGINS:
        return None
    return article.date.when, article.date.when + (DAY_S - 1 if article.date.whole_day else 0.0)


def _is_before(first: Article, other: Article) -> bool:
    """Whether one is certainly earlier, by their dates."""
    mine, yours = _span(first), _span(other)
    return mine is not None and yours is not None and mine[1] < yours[0]


def _topological_order(articles: Sequence[Article], after: Sequence[Pair]) -> list[int]:
    """Topological order by citations, the earliest first; in a cycle, the earliest of all remaining."""
    waits: dict[int, set[int]] = defaultdict(set)
    frees: dict[int, list[int]] = defaultdict(list)
    for citing, cited in after:
        waits[citing].add(cited)
        frees[cited].append(citing)
    when = _times(articles, after)
    keys = [(when[page], article.first_seen, article.url, page) for page, article in enumerate(articles)]
    ready = [key for key in keys if not waits[key[3]]]
    blocked = sorted((key for key in keys if waits[key[3]]), reverse=True)
    heapq.heapify(ready)
    done: set[int] = set()
    order: list[int] = []
    while len(order) < len(articles):
        if not ready:
            ready = [blocked.pop()]
        page = heapq.heappop(ready)[3]
        if page in done:
            continue
        done.add(page)
        order.append(page)
        for citing in frees[page]:
            waits[citing].discard(page)
            if not waits[citing] and citing not in done:
                heapq.heappush(ready, keys[citing])
    return order


def _times(articles: Sequence[Article], after: Sequence[Pair]) -> list[float]:
    """Latest time of publication of each page: without a date of its own, it is not later than any page
    that cites it.
    """
    when = [article.date.when for article in articles]
    cites: dict[int, list[int]] = defaultdict(list)
    for citing, cited in after:
        cites[citing].append(cited)
    waiting = [(when[page], page) for page in range(len(articles))]
    heapq.heapify(waiting)
    while waiting:
        time, page = heapq.heappop(waiting)
        for cited in cites[page] if time == when[page] else ():
            if articles[cited].date.source not in TRUSTED_ORIGINS and when[cited] > time:
                when[cited] = time
                heapq.heappush(waiting, (time, cited))
    return when


def _order_criterion(articles: Sequence[Article], page: int, after: Sequence[Pair], linked: bool) -> Order:
    """The criterion that determined the page's position."""
    span = _span(articles[page])
    if span is None:
        is_modified = articles[page].date.source is DateOrigin.LAST_MODIFIED
        return Order.LINKS if linked else Order.DATES if is_modified else Order.FIRST_SEEN
    others = [other for pair in after if page in pair for other in pair if other != page]
    unsure = any(
        (yours := _span(articles[other])) is not None and yours[0] <= span[1] and span[0] <= yours[1]
        for other in others
    )
    return Order.LINKS if unsure else Order.DATES


def _near(place: Mapping[int, int], shares: Mapping[Pair, float]) -> tuple[tuple[int, int, float], ...]:
    """For each page that copies an earlier one, the earlier page with the greatest containment."""
    best: dict[int, tuple[float, int]] = {}
    for pair, share in shares.items():
        earlier, later = sorted((place[pair[0]], place[pair[1]]))
        best[later] = max(best.get(later, (0.0, 0)), (share, -earlier))
    return tuple((later, -earlier, share) for later, (share, earlier) in sorted(best.items()))
