"""Finds the stories that several sites of a collection tell, and the few sites that one reads to see most of them."""

from __future__ import annotations

import contextlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from periplus.analyse.cascades import cascades_of_lines, cascades_of_stories, halves
from periplus.analyse.influence import coverage, filled, influence_of, most_posts, values_of
from periplus.analyse.stories import Article, find_stories, own_texts, own_titles, shingles_of, words_of
from periplus.document.dates import DateEvidence, feed_dates, page_date
from periplus.document.decode import decode
from periplus.errors import UsageError
from periplus.model.page import Position
from periplus.model.story import Cascades, Holdout, Influence, Objective, Stories
from periplus.model.web import Url, UrlId
from periplus.store.sqlite import reading, site_rows, text_rows
from periplus.store.sqlite.page_rows import Contents
from periplus.store.sqlite.text_rows import CrossLink, PageBlocks

Watch = Callable[[int, int], None]  # is told (pages read, pages in all)
HTML = ("text/html", "application/xhtml+xml")
MENUS = frozenset({Position.NAV, Position.HEADER, Position.FOOTER, Position.ASIDE})
# a link on so many of a site's pages is the site's: a blogroll, an advertisement
TEMPLATE_LINK_PAGES, TEMPLATE_LINK_SHARE = 4, 0.2
ANCHOR_CHARS = 30  # of a link's words that are looked for in the page's own text
HOPS_MOST = 5  # of redirects between a link and its page
SEED = 1  # of the exchanges by chance: equal cascades give equal choices


@dataclass(frozen=True, slots=True)
class ReadingRequest:
    """What one wants of the sites to be read.

    budget: sites, or by posts the share of all posts when it is below 1, else posts.
    """

    objective: Objective = Objective.DL
    budget: float = 20
    by_posts: bool = False
    for_future: bool = False  # newer stories count more


_WISH = ReadingRequest()


def stories_of(folder: Path | str, *, least_sites: int = 2, watch: Watch = lambda done, total: None) -> Stories:
    """The stories in a collection of several sites, the weightiest first. Raises NoCollection, StoreError."""
    with (
        contextlib.closing(reading.connect(Path(folder))) as connection,
        reading.reading(),
        reading.snapshot(connection),
    ):
        articles, links = _articles(connection, watch)
    return find_stories(articles, links, least_sites=least_sites)


def cascades_from(path: Path) -> Cascades:
    """The cascades in a file: a story a line, `site,hours site,hours ...`; perhaps gzipped. Raises UsageError."""
    import gzip

    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8") as lines:
            return cascades_of_lines(lines)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as cascades: {error}") from None


def influence(cascades: Cascades | Stories, request: ReadingRequest = _WISH) -> Influence:
    """The sites of most value within the budget, in the order of choice, with the bounds that no choice can pass."""
    given = cascades if isinstance(cascades, Cascades) else cascades_of_stories(cascades)
    cover = coverage(given, request.objective, by_posts=request.by_posts)
    return influence_of(given, cover, _budget(given, request), random.Random(SEED), for_future=request.for_future)


def holdout(cascades: Cascades, request: ReadingRequest = _WISH) -> Holdout:
    """Chosen by the earlier half of the stories, scored on the later half: what a reader may expect of the future."""
    earlier, later = halves(cascades)
    if not len(later.offsets) > 1:
        raise UsageError("a holdout needs two stories at least: leave --holdout out")
    chosen = influence(earlier, request)
    cover, past = coverage(later, request.objective), coverage(earlier, request.objective, by_posts=request.by_posts)
    total = cover.total or 1.0
    sites = filled(past, [one.site for one in chosen.chosen], _budget(earlier, request))
    hindsight = influence_of(
        later,
        coverage(later, request.objective, by_posts=request.by_posts),
        _budget(later, request),
        random.Random(SEED),
    )
    busiest = most_posts(earlier, past, _budget(earlier, request))
    return Holdout(
        chosen=chosen,
        stories=len(later.offsets) - 1,
        later=tuple(value / total for value in values_of(cover, sites)),
        costs=tuple(past.costs[list(sites)].tolist()),
        hindsight=hindsight.value,
        most_posts=tuple(value / total for value in values_of(cover, busiest)),
    )


def _budget(cascades: Cascades, request: ReadingRequest) -> float:
    if not request.by_posts:
        return float(int(request.budget))
    return request.budget * float(cascades.posts.sum()) if request.budget < 1 else request.budget


def _articles(connection: reading.Connection, watch: Watch) -> tuple[list[Article], list[tuple[int, int]]]:
    """(the pages that may tell stories, their links to one another: places)."""
    contents = Contents(connection)
    sites = text_rows.sites_with_pages(connection)
    seen = text_rows.first_seen(connection)
    fed = _fed(connection, contents)
    links_from: dict[UrlId, list[CrossLink]] = defaultdict(list)
    for link in text_rows.cross_links(connection):
        links_from[link.source].append(link)
    total, done = sum(pages for _, pages in sites.values()), 0
    articles: list[Article] = []
    places: dict[UrlId, int] = {}
    links: list[tuple[UrlId, UrlId]] = []
    for number, (site, count) in sites.items():
        pages = [page for page in text_rows.pages_of_site(connection, number) if _may_tell(page)]
        texts = own_texts([(page.blocks, page.parts) for page in pages])
        bylines = own_texts([(page.blocks, None) for page in pages])  # a byline may pass for navigation
        for page, title, own, byline in zip(
            pages, own_titles([page.title for page in pages]), texts, bylines, strict=True
        ):
            evidence = DateEvidence(
                page.url,
                "",
                page.title,
                byline,
                _language(page),
                fed.get(page.url, 0.0),
                page.last_modified,
                seen[page.url_id],
            )
            dated = page_date(_with_source(connection, contents, page, evidence))
            places[page.url_id] = len(articles)
            words, counts = words_of(title, own)
            articles.append(
                Article(
                    page.url, site, title, _language(page), dated, evidence.first_seen, shingles_of(own), words, counts
                )
            )
        links += _own_links({page.url_id: own for page, own in zip(pages, texts, strict=True)}, links_from)
        done += count
        watch(done, total)
    return articles, _resolved(connection, links, places)


def _may_tell(page: PageBlocks) -> bool:
    """Home pages list what is new; other media are no pages of news."""
    parts = urlsplit(page.url)
    return page.media_type in HTML and (parts.path.strip("/") != "" or parts.query != "")


def _language(page: PageBlocks) -> str:
    return page.language or page.language_found


def _with_source(
    connection: reading.Connection, contents: Contents, page: PageBlocks, evidence: DateEvidence
) -> DateEvidence:
    body = contents.body(page.url_id)
    if not body:
        return evidence
    source, _ = decode(body, site_rows.type_and_charset_of(connection, page.url_id)[1], page.media_type)
    return replace(evidence, source=source)


def _fed(connection: reading.Connection, contents: Contents) -> dict[Url, float]:
    """When feeds say that their entries were published; of several, the earliest."""
    dates: dict[Url, float] = {}
    for url, body in text_rows.feeds(connection, contents):
        for entry, when in feed_dates(body, url).items():
            dates[entry] = min(when, dates.get(entry, when))
    return dates


def _own_links(
    texts: Mapping[UrlId, Sequence[str]], links_from: Mapping[UrlId, Sequence[CrossLink]]
) -> list[tuple[UrlId, UrlId]]:
    """The links of one site's pages that stand in their own text, and are not on many of them."""
    own_links = []
    for page, own in texts.items():
        text = "\n".join(own)
        for link in links_from.get(page, ()):
            if link.position not in MENUS and link.anchor[:ANCHOR_CHARS] in text:
                own_links.append((page, link.target))
    pages_of = Counter(target for _, target in set(own_links))
    most = max(TEMPLATE_LINK_PAGES, TEMPLATE_LINK_SHARE * len(texts))
    return [(page, target) for page, target in own_links if pages_of[target] < most]


def _resolved(
    connection: reading.Connection, links: Iterable[tuple[UrlId, UrlId]], places: Mapping[UrlId, int]
) -> list[tuple[int, int]]:
    """The links as places, redirects and aliases followed."""
    moved = site_rows.redirects(connection)
    leads = dict(zip(moved.sources.tolist(), moved.targets.tolist(), strict=True))
    resolved = []
    for page, target in links:
        end = int(target)
        for _ in range(HOPS_MOST):
            end = leads.get(end, end)
        if (place := places.get(UrlId(end))) is not None:
            resolved.append((places[page], place))
    return resolved
