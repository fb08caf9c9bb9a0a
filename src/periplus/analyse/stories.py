"""Finds pages of several sites that tell the same story, and the order in which it went from page to page."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.articles import DATE_ORIGINS, TRUSTED, Article, Articles
from periplus.analyse.linkgraph import distinct_sorted
from periplus.document.digest import without_marks
from periplus.model.story import DateOrigin, Order, Stories, Story, StoryPage

# Reprints are cut and edited: of their runs of three words they share a third on the average (Silcock et al. 2023), of
# runs of five less. So pages are compared by containment (what they share of the smaller one's runs), from a tenth on,
# and rare words confirm it.

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PAGES_OF_SHINGLE = 300  # a run on more pages is a formula or a giant story, which has other runs too
A_SITE = 3  # pages of one site on the average: a run on more of them is the site's own formula
LEAST_SHARED = 4  # runs of the sample: eight words in a row
LEAST_CONTAINMENT = 0.08
COMMON_WORD = 0.2  # of all pages: a word on more says next to nothing, and fills the matrix
COMMON_PAGES = 50  # of few pages a fifth may be one story; there the weights suffice
PAGES_AT_ONCE, WORDS_AT_ONCE = 20_000, 16_000_000  # of which vectors are made, which are counted


@dataclass(frozen=True, slots=True)
class TextPairs:
    """Pairs of pages, one < other, that share text."""

    one: Ints
    other: Ints
    shared: Floats  # runs that both have
    runs: Ints  # of each page, the site's own formulas left out

    @property
    def containment(self) -> Floats:
        """What they share of the smaller one's runs."""
        return self.shared / np.maximum(np.minimum(self.runs[self.one], self.runs[self.other]), 1)


class Words:
    """Pages as vectors of rare words. Only those asked for have any: of a million pages all would fill the memory."""

    def __init__(self, articles: Articles, some: NDArray[np.bool_] | None = None) -> None:
        """some: bool[n], the pages that will be asked for; None: all."""
        from scipy.sparse import csr_array

        size = len(articles)
        distinct, pages = _pages_of_words(articles.words.values)
        telling = (pages >= 2) & (pages <= max(COMMON_WORD * size, COMMON_PAGES))
        distinct, rarity = distinct[telling], np.log(max(size, 2) / np.maximum(pages[telling], 1))
        places = np.arange(size) if some is None else np.flatnonzero(some)
        self._row = np.full(size, -1, np.int64)
        self._row[places] = np.arange(len(places))
        ends, columns, weights = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
        for begin in range(0, len(places), PAGES_AT_ONCE):
            block = places[begin : begin + PAGES_AT_ONCE]
            end, column, weight = _weighed(articles, block, distinct, rarity)
            ends.append(end + ends[-1][-1])
            columns.append(column)
            weights.append(weight)
        self._matrix = csr_array(
            (np.concatenate(weights), np.concatenate(columns), np.concatenate(ends)),
            shape=(len(places), max(len(distinct), 1)),
        )

    def cosine(self, one: Ints, other: Ints) -> Floats:
        """Of each pair; 0 where a page has no rare word."""
        one, other = self._row[one], self._row[other]
        block, cosines = 20_000, [np.zeros(0)]
        for start in range(0, len(one), block):
            here = slice(start, start + block)
            cosines.append(
                np.asarray(
                    (self._matrix[one[here]].multiply(self._matrix[other[here]])).sum(axis=1), np.float64
                ).ravel()
            )
        return np.concatenate(cosines)

    def cosines(self, pages: Ints) -> Floats:
        """float64[k, k]: of each two of a few pages."""
        some = self._matrix[self._row[pages]]
        return np.asarray((some @ some.T).toarray(), np.float64)


def _pages_of_words(words: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Ints]:
    """(the distinct words, ascending; on how many pages each is). words: each once a page."""
    distinct, pages = np.zeros(0, np.uint32), np.zeros(0, np.int64)
    for begin in range(0, len(words), WORDS_AT_ONCE):
        more, counts = np.unique(words[begin : begin + WORDS_AT_ONCE], return_counts=True)
        distinct, place = np.unique(np.concatenate((distinct, more)), return_inverse=True)
        pages = np.bincount(place, np.concatenate((pages, counts)), len(distinct)).astype(np.int64)
    return distinct, pages


def _weighed(
    articles: Articles, places: Ints, distinct: NDArray[np.uint32], rarity: Floats
) -> tuple[Ints, NDArray[np.int32], NDArray[np.float32]]:
    """(where each page's row ends, the columns, the weights) of the telling words of some pages; unit vectors."""
    begins = articles.words.offsets[places]
    sizes = articles.words.offsets[places + 1] - begins
    row = np.repeat(np.arange(len(places)), sizes)
    entry = np.arange(len(row)) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)
    words = np.asarray(articles.words.values[entry])
    column = np.searchsorted(distinct, words).clip(max=max(len(distinct) - 1, 0))
    telling = distinct[column] == words if len(distinct) else np.zeros(len(words), np.bool_)
    row, column, entry = row[telling], column[telling], entry[telling]
    # squared: a topic's words are common to its stories, names are not
    weight = (1 + np.log(articles.counts[entry])) * rarity[column] ** 2
    norm = np.sqrt(np.bincount(row, weight * weight, len(places)))
    ends = np.cumsum(np.bincount(row, minlength=len(places)))
    return ends, column.astype(np.int32), (weight / np.maximum(norm[row], 1e-12)).astype(np.float32)


def text_pairs(articles: Articles) -> TextPairs:
    """The pairs that share at least LEAST_CONTAINMENT."""
    from scipy.sparse import csr_array, triu

    size = len(articles)
    row = np.repeat(np.arange(size), np.diff(articles.shingles.offsets))
    distinct, column = np.unique(articles.shingles.values, return_inverse=True)
    telling = _telling(row, column, len(distinct), articles.sites)
    own = np.bincount(row[telling[column]], minlength=size)  # runs of the site's own formulas do not count
    shared = telling & (np.bincount(column, minlength=len(distinct)) > 1)
    entry = shared[column]
    matrix = csr_array(
        (np.ones(int(entry.sum()), np.int32), (row[entry], column[entry])), shape=(size, max(len(distinct), 1))
    )
    both = triu(matrix @ matrix.T, k=1, format="coo")
    one, other, count = both.row.astype(np.int64), both.col.astype(np.int64), both.data.astype(np.float64)
    some = (count >= LEAST_SHARED) & (count >= LEAST_CONTAINMENT * np.minimum(own[one], own[other]))
    return TextPairs(one[some], other[some], count[some], own)


def _telling(row: Ints, column: Ints, distinct: int, sites: NDArray[np.int32]) -> NDArray[np.bool_]:
    """bool[known]: whether a run may speak of a story: not on very many pages, and not a site's own formula."""
    pages = np.bincount(column, minlength=distinct)
    many = int(sites.max(initial=0)) + 1
    on_sites = np.bincount(distinct_sorted(column * many + sites[row]) // many, minlength=distinct)
    return (pages <= PAGES_OF_SHINGLE) & (pages <= A_SITE * on_sites)


DAY_S = 86_400.0
COPY_DAYS = 30.0  # reprints come within days; what comes later under the same title is one too
CITE_DAYS = 60.0  # what is cited is new; of older pages only those whose words are shared
# a story ends when nobody tells it for so long, as citing ends; a year after its first page whatever is told goes on as
# another one: monthly figures under one title would make one story of many years
GAP_DAYS, STORY_DAYS = CITE_DAYS, 365.0
COPY_CONTAINMENT, COPY_COSINE = 0.25, 0.15  # a quarter of the smaller text, and rare words in common
CUT_COSINE = 0.35  # of less text in common: the rare words have to agree all the more
TITLE_WORDS = 0.5  # of two titles' words
# cosine from which two pages without a line in common may be parts of one story: of one topic's
# stories 99 in 100 have less
SAME_STORY = 0.2
PART_COSINE = 0.1  # of less, shared text is a formula (a licence, an agency's note)
CITE_COSINE = 0.03  # a page that cites a story shares at least a name with it
OLD_COSINE = 0.35  # from which an old page that is cited is part of the story
STANDS_OUT, STANDS_OUT_OF_MANY = 1.5, 2.0  # times the second story that a page has parts of: of two, of more
NEIGHBOURS_MOST = 60  # of a page that are compared with one another
LEAST_WORDS = 15  # a shorter page says too little to be doubted

Pair = tuple[int, int]


class Groups:
    """Disjoint sets of the numbers from 0: who is with whom."""

    def __init__(self, size: int, joined: Iterable[Pair] = ()) -> None:
        self._above = list(range(size))
        for one, other in joined:
            self.join(one, other)

    def of(self, one: int) -> int:
        """The least of those that it is with."""
        while self._above[one] != one:
            self._above[one] = self._above[self._above[one]]
            one = self._above[one]
        return one

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.of(one), self.of(other)))
        self._above[high] = low


class Edges(NamedTuple):
    """What holds stories together."""

    copies: dict[Pair, float]  # one < other: what they share of the smaller text
    citations: tuple[Pair, ...]  # (citing, cited)
    digests: frozenset[int]


def _copies(articles: Articles, pairs: TextPairs, words: Words) -> dict[Pair, float]:
    """What each two pages share of the smaller text, where they are copies: rare words agree, and dates or titles."""
    shares = pairs.containment
    alike = words.cosine(pairs.one, pairs.other) >= np.where(shares >= COPY_CONTAINMENT, COPY_COSINE, CUT_COSINE)
    near = _days_apart(articles, pairs.one, pairs.other) <= COPY_DAYS
    return {
        (one, other): share
        for one, other, share, is_near in zip(
            *(column[alike].tolist() for column in (pairs.one, pairs.other, shares, near)), strict=True
        )
        if is_near or _titles_agree(articles.titles[one], articles.titles[other])
    }


def _days_apart(articles: Articles, one: Ints, other: Ints) -> Floats:
    """By the pages' own dates; 0 where one has none, since nothing speaks against them."""
    dated = articles.is_dated
    return np.where(dated[one] & dated[other], np.abs(articles.when[one] - articles.when[other]) / DAY_S, 0.0)


def _titles_agree(one: str, other: str) -> bool:
    mine, yours = set(without_marks(one).split()), set(without_marks(other).split())
    return len(mine & yours) >= TITLE_WORDS * max(len(mine | yours), 1)


def edges(articles: Articles, pairs: TextPairs, links: Sequence[Pair], words: Words) -> Edges:
    """Each page keeps to the story that it has most of; one that has parts of several,
    and of none more than of the others, is a digest.

    links: (citing, cited), each once.
    """
    alike = _copies(articles, pairs, words)
    ids = np.array(links, np.int64).reshape(-1, 2)
    cosines = words.cosine(ids[:, 0], ids[:, 1])
    dated, when = articles.is_dated, articles.when
    # not what is dated after it, nor, unless their words agree, what is old
    days = (when[ids[:, 0]] - when[ids[:, 1]]) / DAY_S
    may_cite = (days >= -1.0) & ((days <= CITE_DAYS) | (cosines >= OLD_COSINE))
    may_cite |= ~(dated[ids[:, 0]] & dated[ids[:, 1]])
    cites = dict(compress(zip(links, cosines.tolist(), strict=True), may_cite.tolist()))
    evidence = _evidence(pairs, words, cites)
    copied: dict[int, set[int]] = defaultdict(set)
    for one, other in alike:
        copied[one].add(other)
        copied[other].add(one)
    left: set[Pair] = set()  # (page, other): not of its story
    digests = set()
    for page, weights in evidence.items():
        stories = _stories_of(weights, copied, words)
        if stories is None:
            digests.add(page)
        else:
            left |= {(page, other) for other in weights if other not in stories}
    copies = {
        pair: share
        for pair, share in alike.items()
        if not digests.intersection(pair) and pair not in left and pair[::-1] not in left
    }
    cited = [
        pair
        for pair, cosine in cites.items()
        if not digests.intersection(pair)
        and pair not in left
        and (cosine >= CITE_COSINE or len(articles.words[pair[0]]) < LEAST_WORDS)
    ]
    return Edges(copies, tuple(cited), frozenset(digests))


def _evidence(pairs: TextPairs, words: Words, cites: Mapping[Pair, float]) -> dict[int, dict[int, float]]:
    """By page, the pages that it shares text with or cites, each with how much of it that is: a share of its text,
    or the words' cosine.
    """
    weights: dict[int, dict[int, float]] = defaultdict(dict)
    cosines = words.cosine(pairs.one, pairs.other)
    some = np.flatnonzero(cosines >= PART_COSINE)
    one, other, cosine, shared = pairs.one[some], pairs.other[some], cosines[some], pairs.shared[some]
    for page, near in ((one, other), (other, one)):
        weight = np.maximum(cosine, shared / np.maximum(pairs.runs[page], 1))
        for at, to, value in zip(page.tolist(), near.tolist(), weight.tolist(), strict=True):
            weights[at][to] = value
    for (citing, cited), value in cites.items():
        weights[citing][cited] = max(value, weights[citing].get(cited, 0.0))
    return weights


def _stories_of(weights: Mapping[int, float], alike: Mapping[int, set[int]], words: Words) -> set[int] | None:
    """Those of the pages that are of one story with the one they are evidence for; None: it is a digest.

    Stories are told by pages of which no two are alike. What is like pages of several of them
    (another digest) tells none.
    """
    near = sorted(weights, key=lambda other: (-weights[other], other))
    if len(near) < 2:
        return set(near)
    related = _related(near[:NEIGHBOURS_MOST], alike, words)
    tellers: list[int] = []
    for place in sorted(range(len(related)), key=lambda place: (int(related[place].sum()), place)):
        if not related[place, tellers].any():
            tellers.append(place)
    if len(tellers) < 2:
        return set(near)
    tells = related[:, tellers]
    groups = [
        [near[place] for place in np.flatnonzero(tells[:, at] & (tells.sum(axis=1) == 1)).tolist()]
        for at in range(len(tellers))
    ]
    groups.sort(key=lambda group: (-max(weights[other] for other in group), group[0]))
    best, second = (max(weights[other] for other in group) for group in groups[:2])
    if len(tellers) == 2:
        return set(groups[0]) if best >= STANDS_OUT * second else None
    return set(groups[0]) if best >= max(STANDS_OUT_OF_MANY * second, SAME_STORY) else None


def _related(pages: Sequence[int], alike: Mapping[int, set[int]], words: Words) -> NDArray[np.bool_]:
    """bool[k, k]: whether two of the pages may tell one story: copies, or rare words agree.

    Each is related to itself.
    """
    related = words.cosines(np.array(pages, np.int64)) >= SAME_STORY
    np.fill_diagonal(related, True)
    place = {page: at for at, page in enumerate(pages)}
    for at, page in enumerate(pages):
        related[at, [place[other] for other in alike[page] if other in place]] = True
    return related


def _in_time(articles: Articles, links_of: Edges) -> Edges:
    """Without what joins pages of different eras: a story is over at a gap, or a year after it began."""
    pairs = (*links_of.copies, *links_of.citations)
    groups = Groups(len(articles), pairs)
    members: dict[int, list[int]] = defaultdict(list)
    for page in sorted({page for pair in pairs for page in pair}):
        members[groups.of(page)].append(page)
    dated, when = articles.is_dated.tolist(), articles.when.tolist()
    era: dict[int, int] = {}
    for pages in members.values():
        era |= _eras(sorted((when[page], page) for page in pages if dated[page]))
    near: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for one, other in pairs:
        share = links_of.copies.get((one, other), 0.0)
        near[one].append((share, other))
        near[other].append((share, one))
    # a page without a date of its own belongs where it shares most
    ready = [(-share, other, page) for page in era for share, other in near[page]]
    heapq.heapify(ready)
    while ready:
        _, page, beside = heapq.heappop(ready)
        if page not in era:
            era[page] = era[beside]
            for share, other in near[page]:
                heapq.heappush(ready, (-share, other, page))
    copies = {pair: share for pair, share in links_of.copies.items() if era.get(pair[0]) == era.get(pair[1])}
    cited = tuple(pair for pair in links_of.citations if era.get(pair[0]) == era.get(pair[1]))
    return Edges(copies, cited, links_of.digests)


def _eras(pages: Iterable[tuple[float, int]]) -> dict[int, int]:
    """By page, the first page of its era. pages: (when, page), ascending."""
    eras: dict[int, int] = {}
    begun, last, first = 0.0, 0.0, -1
    for when, page in pages:
        if first < 0 or when - last > GAP_DAYS * DAY_S or when - begun > STORY_DAYS * DAY_S:
            begun, first = when, page
        last = when
        eras[page] = first
    return eras


# By dates; where these do not tell (no date of its own, or the same day without an hour), a page that cites comes after
# the page that it cites; at last, by when the crawl first saw it. Each page says which of the three it was.


def ordered_story(articles: Sequence[Article], links: Sequence[Pair], shares: Mapping[Pair, float]) -> Story:
    """The story of these pages.

    links: (citing, cited) places in articles; shares: of two places, what they share of the smaller text.
    """
    after = [(citing, cited) for citing, cited in links if not _is_before(articles[citing], articles[cited])]
    order = _sorted(articles, after)
    place = {page: at for at, page in enumerate(order)}
    linked = {page for pair in after for page in pair}
    pages = tuple(
        StoryPage(one.url, one.site, one.title, one.language, one.date, _word(articles, page, after, page in linked))
        for page, one in ((page, articles[page]) for page in order)
    )
    return Story(
        pages=pages,
        links=tuple(sorted((place[citing], place[cited]) for citing, cited in links)),
        near=_near(place, shares),
        disordered=len(links) - len(after),
    )


def _span(article: Article) -> tuple[float, float] | None:
    """From when to when it may have been published, by a date of its own."""
    if article.date.source not in TRUSTED:
        return None
    return article.date.when, article.date.when + (DAY_S - 1 if article.date.whole_day else 0.0)


def _is_before(one: Article, other: Article) -> bool:
    """Surely, by their dates."""
    mine, yours = _span(one), _span(other)
    return mine is not None and yours is not None and mine[1] < yours[0]


def _sorted(articles: Sequence[Article], after: Sequence[Pair]) -> list[int]:
    """The places in order: always the earliest of those whose cited pages have all been; where links go in a circle,
    the earliest of all.
    """
    waits: dict[int, set[int]] = defaultdict(set)
    frees: dict[int, list[int]] = defaultdict(list)
    for citing, cited in after:
        waits[citing].add(cited)
        frees[cited].append(citing)
    when = _times(articles, after)
    keys = [(when[page], one.first_seen, one.url, page) for page, one in enumerate(articles)]
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
    """When each page was published, at the latest: one without a date of its own is no later
    than any page that cites it.
    """
    when = [one.date.when for one in articles]
    cites: dict[int, list[int]] = defaultdict(list)
    for citing, cited in after:
        cites[citing].append(cited)
    waiting = [(when[page], page) for page in range(len(articles))]
    heapq.heapify(waiting)
    while waiting:
        time, page = heapq.heappop(waiting)
        for cited in cites[page] if time == when[page] else ():
            if articles[cited].date.source not in TRUSTED and when[cited] > time:
                when[cited] = time
                heapq.heappush(waiting, (time, cited))
    return when


def _word(articles: Sequence[Article], page: int, after: Sequence[Pair], linked: bool) -> Order:
    """On whose word the page stands where it stands."""
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
    """Of each page that copies an earlier one, the earlier one of which it has most."""
    best: dict[int, tuple[float, int]] = {}
    for pair, share in shares.items():
        earlier, later = sorted((place[pair[0]], place[pair[1]]))
        best[later] = max(best.get(later, (0.0, 0)), (share, -earlier))
    return tuple((later, -earlier, share) for later, (share, earlier) in sorted(best.items()))


# Pages that share text, confirmed by rare words and by their dates or titles, are copies; a page that links to another
# site's page joins that page's story. A page belongs to one story at most: of several that it shares text with or links
# to, the one whose words it shares most. One that has parts of several stories and stands out for none is a digest; it
# joins none, else weekly lists of links would make all stories one.

LEAST_SITES = 2  # on one site there is nothing to spread


def find_stories(
    articles: Articles | Sequence[Article], links: Iterable[Pair], *, least_sites: int = LEAST_SITES
) -> Stories:
    """The stories among the pages, the weightiest first.

    links: (citing, cited) places in articles, templates' own left out.
    """
    pages = articles if isinstance(articles, Articles) else Articles.of(articles)
    sites = pages.sites.tolist()
    cites = sorted({(citing, cited) for citing, cited in links if sites[citing] != sites[cited]})
    pairs = text_pairs(pages)
    compared = np.zeros(len(pages), np.bool_)
    compared[pairs.one] = compared[pairs.other] = True
    compared[np.array(cites, np.int64).ravel()] = True
    links_of = _in_time(pages, edges(pages, pairs, cites, Words(pages, compared)))
    groups = Groups(len(pages), (*links_of.copies, *links_of.citations))
    members: dict[int, list[int]] = defaultdict(list)
    for page in range(len(pages)):
        members[groups.of(page)].append(page)
    cited_in, shared_in = _by_group(cites, groups), _by_group(links_of.copies, groups)
    stories = []
    for group, some in members.items():
        if len(some) > 1 and len({sites[page] for page in some}) >= least_sites:
            place = {page: at for at, page in enumerate(some)}
            inner = [(place[citing], place[cited]) for citing, cited in cited_in[group]]
            alike = {(place[one], place[other]): links_of.copies[one, other] for one, other in shared_in[group]}
            stories.append(ordered_story([pages[page] for page in some], inner, alike))
    return _stories(pages, stories, links_of.digests)


def _by_group(pairs: Iterable[Pair], groups: Groups) -> dict[int, list[Pair]]:
    """The pairs that lie within one group."""
    pairs_of: dict[int, list[Pair]] = defaultdict(list)
    for one, other in pairs:
        if (group := groups.of(one)) == groups.of(other):
            pairs_of[group].append((one, other))
    return pairs_of


def _stories(articles: Articles, stories: list[Story], digests: Iterable[int]) -> Stories:
    stories.sort(
        key=lambda story: (-len(story.sites), -len(story.pages), -story.pages[0].date.when, story.pages[0].url)
    )
    posts = np.bincount(articles.sites, minlength=len(articles.site_names)).tolist()
    dated = np.bincount(articles.origins, minlength=len(DATE_ORIGINS)).tolist()
    return Stories(
        stories=tuple(stories),
        pages=len(articles),
        digests=tuple(sorted(articles.urls[page] for page in digests)),
        dated=tuple((origin, count) for origin, count in zip(DATE_ORIGINS, dated, strict=True) if count),
        posts=tuple(sorted((site, count) for site, count in zip(articles.site_names, posts, strict=True) if count)),
    )
