"""In which order did a story go from page to page?

By dates; where these do not tell (no date of its own, or the same day without an hour), a page that cites comes after the page that it cites;
at last, by when the crawl first saw it. Each page says which of the three it was.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence

from periplus.analyse.story_edges import DAY_S, TRUSTED, Pair
from periplus.analyse.story_pages import Article
from periplus.model.story import DateSource, Order, Story, StoryPage


def ordered_story(articles: Sequence[Article], links: Sequence[Pair], shares: Mapping[Pair, float]) -> Story:
    """The story of these pages. links: (citing, cited) places in articles; shares: of two places, what they share of the smaller text."""
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
    """The places in order: always the earliest of those whose cited pages have all been; where links go in a circle, the earliest of all."""
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
    """When each page was published, at the latest: one without a date of its own is no later than any page that cites it."""
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
        known = articles[page].date.source is DateSource.LAST_MODIFIED
        return Order.LINKS if linked else Order.DATES if known else Order.FIRST_SEEN
    others = [other for pair in after if page in pair for other in pair if other != page]
    unsure = any((yours := _span(articles[other])) is not None and yours[0] <= span[1] and span[0] <= yours[1] for other in others)
    return Order.LINKS if unsure else Order.DATES


def _near(place: Mapping[int, int], shares: Mapping[Pair, float]) -> tuple[tuple[int, int, float], ...]:
    """Of each page that copies an earlier one, the earlier one of which it has most."""
    best: dict[int, tuple[float, int]] = {}
    for pair, share in shares.items():
        earlier, later = sorted((place[pair[0]], place[pair[1]]))
        best[later] = max(best.get(later, (0.0, 0)), (share, -earlier))
    return tuple((later, -earlier, share) for later, (share, earlier) in sorted(best.items()))
