"""What does a portal say of its stories and sites beyond what makes them stories: sentences, words, homes, feeds, influence, relevance?"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from periplus.analyse.cascades import cascades_of_stories
from periplus.analyse.keywords.choosing import keywords_of_all
from periplus.analyse.keywords.counts import NOTHING, counted
from periplus.analyse.keywords.reading import Reading, read
from periplus.analyse.leading import leading_sentence
from periplus.api.keywords import content_text
from periplus.api.stories import ReadingWish, influence
from periplus.api.topic_examples import text_of_page
from periplus.api.topics import judge_of
from periplus.model.keywords import Keyword
from periplus.model.portal import Decisions, Entry, Portal, PortalSite, Verdict
from periplus.model.story import Objective, Stories, Story
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store.sqlite import block_rows, graph_rows, portal_rows, reading
from periplus.store.sqlite.block_rows import PageBlocks
from periplus.urls.canonical import url_id

PAGES_COUNTED = 1_000  # of the collection, for how rare words are: as `periplus keywords` has it
KEYWORDS, KEYWORDS_ASKED = 5, 12  # of a story: half of what is found are parts of others
JUDGED_AT_ONCE = 500  # pages: their texts are held meanwhile
COPY = 0.5  # of its text a page shares with an earlier one: it says the same; others remark on it, and their words are their own
PAGES_READ = 3  # of a story, for its sentence and its words: copies say the same again


def described(connection: reading.Connection, entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries with their sentences, keywords and provenance."""
    counts = counted(_readings(_spread(connection))) if entries else NOTHING
    for entry in entries:
        ids = [UrlId(url_id(page.url)) for page in entry.story.pages]
        titles = {page.url: page.title for page in entry.story.pages}  # without the site's name, which is no keyword
        pages = [page._replace(title=titles[page.url]) for page in block_rows.pages_of(connection, ids[:PAGES_READ])]
        sentences = (leading_sentence(page.blocks, page.parts, page.title) for page in pages)
        copies = {entry.story.pages[later].url for later, _, share in entry.story.near if share >= COPY} | {entry.story.pages[0].url}
        yield dataclasses.replace(
            entry,
            sentence=next((sentence for sentence in sentences if sentence), ""),
            keywords=_keywords(keywords_of_all(_readings(page for page in pages if page.url in copies), counts, KEYWORDS_ASKED)),
            provenance=tuple(portal_rows.provenance(connection, ids)),
        )


def _spread(connection: reading.Connection) -> Iterator[PageBlocks]:
    """Pages of all sites, as many of each: they say how rare words are."""
    sites = list(graph_rows.site_names(connection))
    for site in sites[:PAGES_COUNTED]:
        yield from block_rows.pages_of_site(connection, site, max(PAGES_COUNTED // len(sites), 1))


def _readings(pages: Iterable[PageBlocks]) -> Iterator[Reading]:
    """The pages' contents, equal ones once."""
    seen: set[bytes] = set()
    for page in pages:
        if page.blocks and page.text_md5 not in seen:
            seen.add(page.text_md5)
            text = read(content_text(page), page.language_found or page.language.partition("-")[0])
            if text.words:
                yield text


def _keywords(found: Iterable[Keyword]) -> tuple[str, ...]:
    """Best first; one whose words are all in another is left out."""
    texts = [keyword.text for keyword in found]
    words = [frozenset(text.casefold().split()) for text in texts]
    whole = [text for text, own in zip(texts, words, strict=True) if not any(own < other for other in words)]
    return tuple(whole[:KEYWORDS])


def relevance_of(connection: reading.Connection, folder: Path, topic: str, stories: Sequence[Story]) -> dict[Url, float]:
    """How probably each page of the stories is of the topic, 0 to 1. Raises UsageError for a topic that is not known."""
    judge = judge_of(folder, topic)
    ids = [UrlId(url_id(page.url)) for story in stories for page in story.pages]
    pages = block_rows.pages_of(connection, ids)
    scores: dict[Url, float] = {}
    while some := list(islice(pages, JUDGED_AT_ONCE)):
        scores |= zip([page.url for page in some], judge.judge([text_of_page(page) for page in some]).tolist(), strict=True)
    return scores


def sites_for(
    connection: reading.Connection, portal: Portal, stories: Stories, decided: Decisions, relevance: Mapping[Url, float] | None
) -> tuple[tuple[PortalSite, ...], float | None]:
    """(the editor's sites, then those that together have most of the other stories and have them early; the share of the stories that all of them have)."""
    pinned = [site for site, verdict in decided.sites.items() if verdict is Verdict.PINNED]
    others = dataclasses.replace(stories, stories=tuple(story for story in stories.stories if not set(pinned).intersection(story.sites)))
    chosen = [site for site in _influential(others, portal.sites) if site not in pinned]
    has: defaultdict[SiteKey, set[int]] = defaultdict(set)
    scores: defaultdict[SiteKey, list[float]] = defaultdict(list)
    for place, story in enumerate(stories.stories):
        for page in story.pages:
            has[page.site].add(place)
            scores[page.site] += [relevance[page.url]] if relevance is not None and page.url in relevance else []
    seen: set[int] = set()
    made = []
    for site in (*pinned, *chosen):
        home = portal_rows.home_of(connection, site)
        url, title = home if home is not None else (Url(f"https://{site}/"), "")
        gain = len(has[site] - seen) / max(len(stories.stories), 1)
        seen |= has[site]
        mean = sum(scores[site]) / len(scores[site]) if scores[site] else None
        feeds = tuple(portal_rows.feeds_of(connection, UrlId(url_id(url))))
        made.append(PortalSite(site, url, title, feeds, len(has[site]), gain, mean, site in pinned))
    return tuple(made), len(seen) / len(stories.stories) if stories.stories else None


def _influential(stories: Stories, most: int) -> list[SiteKey]:
    """The sites by which one sees the stories, and sees them early, each time the one that adds most."""
    if not stories.stories or not most:
        return []
    cascades = cascades_of_stories(stories)
    return [SiteKey(cascades.sites[one.site]) for one in influence(cascades, ReadingWish(Objective.DT, most)).chosen]
