"""Finds pages of several sites with the same story, and the order in which it spread."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.linkgraph import sort_distinct
from periplus.document.digest import without_marks
from periplus.model.arrays import Floats, Floats32, Ints, Ints32, Mask, Unsigned32
from periplus.model.web import Url
from periplus.values import Watch
from periplus_topics.analyse.articles import (
    DATE_ORIGINS,
    DAY_S,
    Article,
    Articles,
    Pair,
    ordered_story,
)
from periplus_topics.model import Stories, Story

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Reprints are cut and edited: they share a third of their runs of three words on average (Silcock et al. 2023), and
# less of their runs of five. So pages are compared by containment (the shared part of the shorter page's runs), from
# about a tenth on, and confirmed by rare words.


PAGES_OF_SHINGLE = 300  # a run on more pages is a formula, or a giant story that has other runs too
A_SITE = 3  # average pages per site: a run on more of them is boilerplate of the site
LEAST_COMMON_RUNS = 4  # runs of the sample: eight consecutive words
LEAST_CONTAINMENT = 0.08
COMMON_WORD = 0.2  # share of all pages: a more frequent word says nearly nothing, and fills the matrix
COMMON_PAGES = 50  # in a small collection a fifth of the pages may be one story; there the weights suffice
PAGES_AT_ONCE, WORDS_AT_ONCE = 20_000, 16_000_000  # pages per batch of vectors; words per batch of counting
# Pages compared with all others per batch, each of which may share text with hundreds; pairs of pages whose words are
# compared per batch
ROWS_AT_ONCE, PAIRS_AT_ONCE = 4_000, 20_000
COPY_DAYS = 30.0  # reprints appear within days; a later page with the same title is a reprint too
CITE_DAYS = 60.0  # citations are of new pages; older pages need shared words as well
CUT_COSINE = 0.35  # with less common text the rare words must agree more
TITLE_WORDS = 0.5  # share of the words of both titles
# Cosine from which two pages without common text may belong to one story; 99 in 100 pairs of stories on one topic have
# less
SAME_STORY = 0.2
PART_COSINE = 0.1  # below, shared text is a formula (a licence, an agency's note)
CITE_COSINE = 0.03  # a page that cites a story has at least a name in common with it
OLD_COSINE = 0.35  # from which an old cited page is part of the story
NEIGHBOURS_MOST = 60  # of a page, compared with one another
LEAST_WORDS = 15  # a shorter page has too few words for a test
LEAST_SITES = 2  # a story on a single site did not spread


@dataclass(frozen=True, slots=True, eq=False)
class TextPairs:
    """Pairs of pages with shared text, one < other, sorted by the first."""

    one: Ints32
    other: Ints32
    shared: Ints32  # runs in common
    runs: Ints  # per page, without boilerplate of the site


class Words:
    """Pages as vectors of rare words, only for the pages needed: vectors of a million pages would exceed the memory."""

    def __init__(self, articles: Articles, some: Mask | None = None) -> None:
        """some: bool[n], the pages needed; None: all."""
        from scipy.sparse import csr_array

        size = len(articles)
        distinct, pages = _pages_of_words(articles.words.values)
        telling = (pages >= 2) & (pages <= max(COMMON_WORD * size, COMMON_PAGES))
        distinct, rarity = distinct[telling], np.log(max(size, 2) / np.maximum(pages[telling], 1))
        places = np.arange(size) if some is None else np.flatnonzero(some)
        self._row = np.full(size, -1, np.int32)
        self._row[places] = np.arange(len(places))
        most = int(np.diff(articles.words.offsets)[places].sum())  # memory is allocated as it is filled
        columns, weights = np.empty(most, np.int32), np.empty(most, np.float32)
        ends = np.zeros(len(places) + 1, np.int64)
        for begin in range(0, len(places), PAGES_AT_ONCE):
            block = places[begin : begin + PAGES_AT_ONCE]
            end, column, weight = _weigh_words(articles, block, distinct, rarity)
            here = slice(ends[begin], ends[begin] + len(column))
            columns[here], weights[here] = column, weight
            ends[begin + 1 : begin + 1 + len(block)] = end + ends[begin]
        shape = len(places), max(len(distinct), 1)
        self._matrix = csr_array((weights[: ends[-1]], columns[: ends[-1]], ends), shape=shape)

    def cosine(self, first: NDArray[np.integer], other: NDArray[np.integer]) -> Floats:
        """Cosine of each pair; 0 if a page has no rare word."""
        first, other = self._row[first], self._row[other]
        cosines = np.empty(len(first))
        for begin in range(0, len(first), PAIRS_AT_ONCE):
            here = slice(begin, begin + PAIRS_AT_ONCE)
            both = self._matrix[first[here]].multiply(self._matrix[other[here]])
            cosines[here] = np.asarray(both.sum(axis=1)).ravel()
        return cosines

    def cosines(self, pages: Ints) -> Floats:
        """float64[k, k]: cosines of all pairs of a few pages."""
        rows = self._matrix[self._row[pages]]
        return np.asarray((rows @ rows.T).toarray(), np.float64)


def _pages_of_words(words: Unsigned32) -> tuple[Unsigned32, Ints]:
    """(distinct words, ascending; number of pages with each). words: each once per page."""
    distinct, pages = np.zeros(0, np.uint32), np.zeros(0, np.int64)
    for begin in range(0, len(words), WORDS_AT_ONCE):
        more, counts = np.unique(words[begin : begin + WORDS_AT_ONCE], return_counts=True)
        distinct, place = np.unique(np.concatenate((distinct, more)), return_inverse=True)
        pages = np.bincount(place, np.concatenate((pages, counts)), len(distinct)).astype(np.int64)
    return distinct, pages


def _weigh_words(
    articles: Articles, places: Ints, distinct: Unsigned32, rarity: Floats
) -> tuple[Ints, Ints32, Floats32]:
    """(end of each page's row, columns, weights) for the discriminating words of some pages; unit vectors."""
    begins = articles.words.offsets[places]
    sizes = articles.words.offsets[places + 1] - begins
    row = np.repeat(np.arange(len(places)), sizes)
    entry = np.arange(len(row)) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)
    words = np.asarray(articles.words.values[entry])
    column = np.searchsorted(distinct, words).clip(max=max(len(distinct) - 1, 0))
    telling = distinct[column] == words if len(distinct) else np.zeros(len(words), np.bool_)
    row, column, entry = row[telling], column[telling], entry[telling]
    # Squared: words of the topic are common to its stories, names are not
    weight = (1 + np.log(articles.counts[entry])) * rarity[column] ** 2
    norm = np.sqrt(np.bincount(row, weight * weight, len(places)))
    ends = np.cumsum(np.bincount(row, minlength=len(places)))
    return ends, column.astype(np.int32), (weight / np.maximum(norm[row], 1e-12)).astype(np.float32)


def text_pairs(articles: Articles, watch: Watch) -> TextPairs:
    """The pairs with a containment of at least LEAST_CONTAINMENT."""
    from scipy.sparse import csr_array

    size = len(articles)
    row = np.repeat(np.arange(size, dtype=np.int32), np.diff(articles.shingles.offsets))
    distinct, column = np.unique(articles.shingles.values, return_inverse=True)
    telling = _is_distinctive(row, column, len(distinct), articles.sites)
    own = np.bincount(row[telling[column]], minlength=size)  # without boilerplate of the site
    shared = telling & (np.bincount(column, minlength=len(distinct)) > 1)
    entry = shared[column]
    matrix = csr_array(
        (np.ones(int(entry.sum()), np.int32), (row[entry], column[entry])), shape=(size, max(len(distinct), 1))
    )
    del row, column, entry, distinct
    pages_of = matrix.T.tocsr()
    parts = [np.zeros((3, 0), np.int32)]
    for begin in range(0, size, ROWS_AT_ONCE):
        watch("comparing pages", begin, size)
        both = (matrix[begin : begin + ROWS_AT_ONCE] @ pages_of).tocoo()
        first, other, count = both.row + begin, both.col, both.data
        is_pair = (first < other) & (count >= LEAST_COMMON_RUNS)
        first, other, count = first[is_pair], other[is_pair], count[is_pair]
        is_pair = count >= LEAST_CONTAINMENT * np.minimum(own[first], own[other])
        parts.append(np.stack((first[is_pair], other[is_pair], count[is_pair])).astype(np.int32))
    first, other, count = np.concatenate(parts, axis=1)
    return TextPairs(first, other, count, own)


def _is_distinctive(row: Ints32, column: Ints, distinct: int, sites: Ints32) -> Mask:
    """bool[distinct]: whether a run can indicate a story: not on too many pages, and not boilerplate of a site."""
    pages = np.bincount(column, minlength=distinct)
    many = int(sites.max(initial=0)) + 1
    on_sites = np.bincount(sort_distinct(column * many + sites[row]) // many, minlength=distinct)
    return (pages <= PAGES_OF_SHINGLE) & (pages <= A_SITE * on_sites)


# A story ends after a gap without publications, as long as for citations. A year after its first page a new story
# begins: otherwise monthly figures under one title would be one story of many years
GAP_DAYS, STORY_DAYS = CITE_DAYS, 365.0
COPY_CONTAINMENT, COPY_COSINE = 0.25, 0.15  # a quarter of the shorter text, and rare words in common
# ratio to the second best story of a page with parts of several: for two stories, for more
STANDS_OUT, STANDS_OUT_OF_MANY = 1.5, 2.0


class Edges(NamedTuple):
    """Connections within stories: copies (one < other) with their containment, and citations."""

    one: Ints32
    other: Ints32
    shares: Floats
    citing: Ints
    cited: Ints
    is_digest: Mask  # by page

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """The ends of the copies, then of the citations."""
        return np.concatenate((self.one, self.citing)), np.concatenate((self.other, self.cited))

    def among(self, copies: Mask, citations: Mask) -> Edges:
        return Edges(
            self.one[copies], self.other[copies], self.shares[copies], self.citing[citations], self.cited[citations],
            self.is_digest,
        )  # fmt: skip


def _containment(pairs: TextPairs, here: slice | Mask) -> Floats:
    """Containment: the shared part of the shorter page's runs."""
    smaller = np.minimum(pairs.runs[pairs.one[here]], pairs.runs[pairs.other[here]])
    return pairs.shared[here] / np.maximum(smaller, 1)


def _compare_words(articles: Articles, pairs: TextPairs, words: Words, watch: Watch) -> tuple[Floats32, Mask]:
    """(cosine of each pair's words; whether they are copies: rare words agree, and dates or titles do)."""
    cosines, copied = np.empty(len(pairs.one), np.float32), np.empty(len(pairs.one), np.bool_)
    for begin in range(0, len(pairs.one), PAIRS_AT_ONCE):
        watch("comparing words", int(pairs.one[begin]), len(articles))
        here = slice(begin, begin + PAIRS_AT_ONCE)
        first, other = pairs.one[here], pairs.other[here]
        cosine = words.cosine(first, other)
        alike = cosine >= np.where(_containment(pairs, here) >= COPY_CONTAINMENT, COPY_COSINE, CUT_COSINE)
        far = np.flatnonzero(alike & (_days_apart(articles, first, other) > COPY_DAYS))
        alike[far] = [
            _titles_agree(articles.titles[first], articles.titles[second])
            for first, second in zip(first[far].tolist(), other[far].tolist(), strict=True)
        ]
        cosines[here], copied[here] = cosine, alike
    return cosines, copied


def _days_apart(articles: Articles, first: Ints32, other: Ints32) -> Floats:
    """Days between the pages' own dates; 0 if one has none."""
    dated = articles.is_dated
    return np.where(dated[first] & dated[other], np.abs(articles.when[first] - articles.when[other]) / DAY_S, 0.0)


def _titles_agree(first: str, other: str) -> bool:
    mine, yours = set(without_marks(first).split()), set(without_marks(other).split())
    return len(mine & yours) >= TITLE_WORDS * max(len(mine | yours), 1)


def edges(articles: Articles, pairs: TextPairs, links: Ints, words: Words, watch: Watch) -> Edges:
    """Assigns each page to the story of which it has most.

    A page with parts of several stories, none dominant, is a digest.

    links: (citing, cited), distinct.
    """
    cosines, copied = _compare_words(articles, pairs, words, watch)
    cosine = words.cosine(links[:, 0], links[:, 1])
    may_cite = _may_cite(articles, links, cosine)
    links, cosine = links[may_cite], cosine[may_cite]
    copies = _symmetric(len(articles), pairs.one[copied], pairs.other[copied])
    is_digest = np.zeros(len(articles), np.bool_)
    foreign, not_cited = np.zeros(len(pairs.one), np.bool_), np.zeros(len(links), np.bool_)
    for evidence in _evidence(pairs, cosines, links, cosine, watch):
        left = np.zeros(len(evidence.near), np.bool_)
        for page, begin, end in evidence.pages_with_several():
            near = evidence.near[begin:end].tolist()
            stories = _stories_of(near, evidence.weights[begin:end].tolist(), copies, words)
            if stories is None:
                is_digest[page] = True
            else:
                left[begin:end] = [other not in stories for other in near]
        foreign[evidence.pairs[left[evidence.of_pairs]]] = True
        not_cited[evidence.links[left[evidence.of_links]]] = True
    few_words = np.diff(articles.words.offsets)[links[:, 0]] < LEAST_WORDS
    cited = ~not_cited & ~is_digest[links].any(axis=1) & ((cosine >= CITE_COSINE) | few_words)
    copied &= ~foreign & ~is_digest[pairs.one] & ~is_digest[pairs.other]
    return Edges(
        pairs.one[copied], pairs.other[copied], _containment(pairs, copied), links[cited, 0], links[cited, 1], is_digest
    )


def _may_cite(articles: Articles, links: Ints, cosine: Floats) -> Mask:
    """Excludes cited pages with later dates, and old ones unless their words agree."""
    dated, when = articles.is_dated, articles.when
    days = (when[links[:, 0]] - when[links[:, 1]]) / DAY_S
    may_cite = (days >= -1.0) & ((days <= CITE_DAYS) | (cosine >= OLD_COSINE))
    return np.asarray(may_cite | ~dated[links].all(axis=1))


def _symmetric(size: int, first: NDArray[np.integer], other: NDArray[np.integer]) -> csr_array:
    """bool[size, size]: symmetric adjacency."""
    from scipy.sparse import csr_array

    half = csr_array((np.ones(len(first), np.bool_), (first, other)), shape=(size, size))
    return half + half.T


class _Evidence(NamedTuple):
    """For some pages, the pages that each shares text with or cites: rows by page, heaviest first."""

    page: Ints
    near: Ints
    weights: Floats  # share of the page's text, or the cosine of words
    pairs: Ints  # indices of the pairs and links behind the rows, and the row of each
    of_pairs: Ints
    links: Ints
    of_links: Ints

    def pages_with_several(self) -> Iterator[tuple[int, int, int]]:
        """Yields (page, its first row, the row after its last) for pages with several rows."""
        begins = np.flatnonzero(np.diff(self.page, prepend=-1, append=-1))
        several = np.diff(begins) > 1
        pages = self.page[begins[:-1]][several]
        yield from zip(pages.tolist(), begins[:-1][several].tolist(), begins[1:][several].tolist(), strict=True)


def _evidence(pairs: TextPairs, cosines: Floats32, links: Ints, cosine: Floats, watch: Watch) -> Iterator[_Evidence]:
    """Evidence for all pages, in batches of ROWS_AT_ONCE. links: possible citations. cosine: of their words."""
    size = len(pairs.runs)
    part = np.flatnonzero(cosines.astype(np.float64) >= PART_COSINE)
    by_other = part[np.argsort(pairs.other[part], kind="stable")]
    ones, others = pairs.one[part], pairs.other[by_other]
    for begin in range(0, size, ROWS_AT_ONCE):
        watch("telling stories apart", begin, size)
        span = np.array([begin, begin + ROWS_AT_ONCE])
        mine = part[slice(*np.searchsorted(ones, span))]
        theirs = by_other[slice(*np.searchsorted(others, span))]
        cited = np.arange(*np.searchsorted(links[:, 0], span))
        entry = np.concatenate((mine, theirs))
        page = np.concatenate((pairs.one[mine], pairs.other[theirs])).astype(np.int64)
        near = np.concatenate((pairs.other[mine], pairs.one[theirs])).astype(np.int64)
        weight = np.maximum(cosines[entry], pairs.shared[entry] / np.maximum(pairs.runs[page], 1))
        page, near = np.concatenate((page, links[cited, 0])), np.concatenate((near, links[cited, 1]))
        yield _merge_evidence(size, page, near, np.concatenate((weight, cosine[cited])), entry, cited)


def _merge_evidence(size: int, page: Ints, near: Ints, weight: Floats, pairs: Ints, links: Ints) -> _Evidence:
    """Merges pairs and links between the same two pages into one row. Entries: first the pairs, then the links."""
    code, row = np.unique(page * size + near, return_inverse=True)
    weights = np.zeros(len(code))
    np.maximum.at(weights, row, weight)
    page, near = code // size, code % size
    order = np.lexsort((near, -weights, page))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return _Evidence(
        page[order], near[order], weights[order], pairs, place[row[: len(pairs)]], links, place[row[len(pairs) :]]
    )


def _stories_of(near: list[int], weights: Sequence[float], copies: csr_array, words: Words) -> set[int] | None:
    """The pages in `near` of the same story as the page itself; None if the page is a digest.

    near: at least two, heaviest first. Stories are represented by mutually unrelated pages. A page related to several
    of them (another digest) is ignored.
    """
    related = _is_related(near[:NEIGHBOURS_MOST], copies, words)
    tellers: list[int] = []
    for place in sorted(range(len(related)), key=lambda place: (int(related[place].sum()), place)):
        if not related[place, tellers].any():
            tellers.append(place)
    if len(tellers) < 2:
        return set(near)
    tells = related[:, tellers]
    alone = tells.sum(axis=1) == 1
    groups = [np.flatnonzero(tells[:, at] & alone).tolist() for at in range(len(tellers))]  # indices in near
    groups.sort(key=lambda group: (-weights[group[0]], near[group[0]]))
    best, second = (weights[group[0]] for group in groups[:2])
    least = STANDS_OUT * second if len(tellers) == 2 else max(STANDS_OUT_OF_MANY * second, SAME_STORY)
    return {near[place] for place in groups[0]} if best >= least else None


def _is_related(pages: Sequence[int], copies: csr_array, words: Words) -> Mask:
    """bool[k, k]: whether two pages may belong to one story: copies, or rare words agree.

    The diagonal is True.
    """
    related = words.cosines(np.array(pages, np.int64)) >= SAME_STORY
    np.fill_diagonal(related, True)
    place = {page: at for at, page in enumerate(pages)}
    for at, page in enumerate(pages):
        begin, end = copies.indptr[page : page + 2]
        related[at, [place[other] for other in copies.indices[begin:end].tolist() if other in place]] = True
    return related


def _split_eras(articles: Articles, joined: Edges) -> Edges:
    """Removes connections between eras: a story ends at a gap, or a year after it began."""
    group, members = _groups(len(articles), joined)
    dated, when = articles.is_dated, articles.when
    era = np.full(len(articles), -1)
    broken = np.zeros(len(group), np.bool_)  # whether each page's story has several eras
    for pages in members:
        own = pages[dated[pages]]
        eras = _eras(own[np.argsort(when[own], kind="stable")].tolist(), when)
        broken[pages] = len(set(eras.values())) > 1
        era[list(eras)] = list(eras.values())
    first, other = joined.ends
    inner = broken[first]
    shares = np.concatenate((joined.shares, np.zeros(len(joined.citing))))
    _assign_eras(era, first[inner], other[inner], shares[inner])
    same = ~inner | (era[first] == era[other])
    return joined.among(same[: len(joined.one)], same[len(joined.one) :])


def _assign_eras(era: Ints, one: Ints, other: Ints, shares: Floats) -> None:
    """Assigns pages without a date to the era of the page with which they share most."""
    near: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for first, second, share in zip(one.tolist(), other.tolist(), shares.tolist(), strict=True):
        near[first].append((share, second))
        near[second].append((share, first))
    ready = [(-share, there, page) for page in near if era[page] >= 0 for share, there in near[page]]
    heapq.heapify(ready)
    while ready:
        _, page, beside = heapq.heappop(ready)
        if era[page] < 0:
            era[page] = era[beside]
            for share, there in near[page]:
                heapq.heappush(ready, (-share, there, page))


def _eras(pages: Sequence[int], when: Floats) -> dict[int, int]:
    """The first page of each page's era. pages: by time."""
    eras: dict[int, int] = {}
    begun, last, first = 0.0, 0.0, -1
    for page, time in zip(pages, when[list(pages)].tolist(), strict=True):
        if first < 0 or time - last > GAP_DAYS * DAY_S or time - begun > STORY_DAYS * DAY_S:
            begun, first = time, page
        last = time
        eras[page] = first
    return eras


def _groups(size: int, joined: Edges) -> tuple[Ints32, list[Ints]]:
    """(group number of each page; the pages of each group of at least two)."""
    from scipy.sparse.csgraph import connected_components

    _, group = connected_components(_symmetric(size, *joined.ends), directed=False)
    pages = np.flatnonzero((np.bincount(group) > 1)[group])
    pages = pages[np.argsort(group[pages], kind="stable")]
    return group, np.split(pages, np.flatnonzero(np.diff(group[pages])) + 1)[: len(pages)]


# Pages that share text, confirmed by rare words and by dates or titles, are copies; a page that links to another site's
# page joins its story. A page belongs to at most one story: of several candidates, the one with which it shares most
# words. A page with parts of several stories, none dominant, is a digest and joins none; otherwise weekly lists of
# links would merge all stories.


def find_stories(
    articles: Articles | Sequence[Article],
    links: Iterable[Pair] | Ints,
    *,
    least_sites: int = LEAST_SITES,
    watch: Watch = lambda what, done, total: None,
) -> Stories:
    """The stories among the pages, heaviest first.

    links: (citing, cited) indices in articles, without links of templates.
    """
    pages = articles if isinstance(articles, Articles) else Articles.of(articles)
    ends = links if isinstance(links, np.ndarray) else np.array(list(links), np.int64).reshape(-1, 2)
    cites = np.unique(ends[pages.sites[ends[:, 0]] != pages.sites[ends[:, 1]]], axis=0)
    pairs = text_pairs(pages, watch)
    compared = np.zeros(len(pages), np.bool_)
    compared[pairs.one] = compared[pairs.other] = True
    compared[cites] = True
    joined = _split_eras(pages, edges(pages, pairs, cites, Words(pages, compared), watch))
    return _stories(
        pages, list(_ordered_stories(pages, joined, cites, least_sites, watch)), np.flatnonzero(joined.is_digest)
    )


def _ordered_stories(articles: Articles, joined: Edges, cites: Ints, least_sites: int, watch: Watch) -> Iterator[Story]:
    """The stories on at least least_sites sites, each in order."""
    group, members = _groups(len(articles), joined)
    cited, shared = _pairs_by_group(group, members, *cites.T), _pairs_by_group(group, members, joined.one, joined.other)
    for number, (pages, links, copies) in enumerate(zip(members, cited, shared, strict=True)):
        watch("ordering stories", number, len(members))
        if len(np.unique(articles.sites[pages])) >= least_sites:
            ends = np.searchsorted(pages, cites[links]).tolist()
            alike = np.searchsorted(pages, np.stack((joined.one[copies], joined.other[copies]), axis=1)).tolist()
            shares = dict(zip(map(tuple, alike), joined.shares[copies].tolist(), strict=True))
            yield ordered_story([articles[page] for page in pages.tolist()], list(map(tuple, ends)), shares)


def _pairs_by_group(
    group: Ints32, members: Sequence[Ints], first: NDArray[np.integer], other: NDArray[np.integer]
) -> Iterator[Ints]:
    """For each group, the indices of the pairs within it, ascending."""
    inner = np.flatnonzero(group[first] == group[other])
    inner = inner[np.argsort(group[first[inner]], kind="stable")]
    numbers = group[[int(pages[0]) for pages in members]]
    for begin, end in np.searchsorted(group[first[inner]], np.stack((numbers, numbers + 1), axis=1)).tolist():
        yield inner[begin:end]


def _stories(articles: Articles, stories: list[Story], digests: Ints) -> Stories:
    stories.sort(
        key=lambda story: (-len(story.sites), -len(story.pages), -story.pages[0].date.when, story.pages[0].url)
    )
    posts = np.bincount(articles.sites, minlength=len(articles.site_names)).tolist()
    dated = np.bincount(articles.origins, minlength=len(DATE_ORIGINS)).tolist()
    return Stories(
        stories=tuple(stories),
        pages=len(articles),
        digests=tuple(sorted(Url(articles.urls[page]) for page in digests.tolist())),
        dated=tuple((origin, count) for origin, count in zip(DATE_ORIGINS, dated, strict=True) if count),
        posts=tuple(sorted((site, count) for site, count in zip(articles.site_names, posts, strict=True) if count)),
    )
