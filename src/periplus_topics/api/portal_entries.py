"""Describes portal entries: the leading sentence of a story, its keywords, and which runs fetched its pages."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections.abc import Container, Iterable, Iterator, Sequence, Set
from pathlib import Path

from xxhash import xxh3_64_intdigest

from periplus.errors import StoreError
from periplus.model.page import Blocks
from periplus.model.web import SiteKey, UrlId
from periplus.store import column_files
from periplus.store.crawl_reads import PageBlocks
from periplus.store.sqlite import reading
from periplus.store.sqlite.inlinks import moment_of
from periplus.store.sqlite.listing import SqliteReader
from periplus.urls.canonical import url_id
from periplus_topics import store as portal_rows
from periplus_topics.analyse.edition import leading_sentence
from periplus_topics.analyse.keyword_reading import Counts, count_texts, frame_texts, is_name, is_printable
from periplus_topics.analyse.keywords import keywords_of_all
from periplus_topics.api.keywords import readings, spread_pages
from periplus_topics.api.results import write_text
from periplus_topics.api.stories import StoriesState
from periplus_topics.model import Entry, Keyword, Provenance, Story

VERSION = 1  # of the cache file and of the code that computes its contents
# per story. Up to half of all keywords are dates, counts and the like; half of the printable ones are parts of others.
KEYWORDS, KEYWORDS_PRINTABLE, KEYWORDS_ASKED = 5, 12, 24
FRAME_PAGES = 12  # pages of a site compared to find its repeated text
# share of its text that a page has in common with an earlier one, above which it counts as a copy of it
COPY = 0.5
PAGES_READ = 3  # pages of a story used for its sentence and keywords


Description = tuple[str, Sequence[str], Sequence[tuple[str, float]]]
"""Of a story, as in the cache file: (sentence, keywords, (run, fetched) of each page)."""


def describe_entries(
    folder: Path, connection: reading.Connection, entries: Sequence[Entry], state: StoriesState
) -> Iterator[Entry]:
    """The entries with their sentences, keywords and provenance.

    Descriptions for one state of the collection are cached in a file of its folder, which is rewritten at the end if
    any was added. state: the state in which the stories were found.
    """
    file = folder / column_files.ENTRIES if moment_of(connection) == state.moment else None
    stored = _load_cache(file, state) if file else {}
    describe = _Describing(connection, {site for entry in entries for site in entry.story.sites})
    descriptions = {}
    for entry in entries:
        key = _key(entry.story)
        descriptions[key] = stored[key] if key in stored else describe.description(entry.story)
        sentence, keywords, pages = descriptions[key]
        provenance = tuple(Provenance(*fields) for fields in pages)
        yield dataclasses.replace(entry, sentence=sentence, keywords=tuple(keywords), provenance=provenance)
    if file and not stored.keys() >= descriptions.keys():
        head = {"version": VERSION, "state": state.digest}
        with contextlib.suppress(StoreError):  # read-only folder: no cache
            write_text(file, json.dumps({**head, "entries": stored | descriptions}))


def _key(story: Story) -> str:
    """Cache key: everything that determines a description, except the state of the collection."""
    text = repr(([page.url for page in story.pages], story.near))
    return f"{xxh3_64_intdigest(text.encode('utf-8', 'replace')):x}"


def _load_cache(file: Path, state: StoriesState) -> dict[str, Description]:
    """Cached descriptions for this state, by `_key`."""
    try:
        whole = json.loads(file.read_text("utf-8"))
        if (whole["version"], whole["state"]) != (VERSION, state.digest):
            return {}
        return {key: (sentence, words, pages) for key, (sentence, words, pages) in whole["entries"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


class _Describing:
    """Describes stories. Collection statistics are computed on first use."""

    def __init__(self, connection: reading.Connection, sites: Set[SiteKey]) -> None:
        """sites: of all stories."""
        self._connection, self._sites = connection, sites
        self._frames: dict[int, frozenset[str]] = {}

    @functools.cached_property
    def _counts(self) -> Counts:
        return count_texts(readings(spread_pages(self._connection)))

    @functools.cached_property
    def _site_titles(self) -> dict[SiteKey, str]:
        return _names(self._connection, self._sites)

    def description(self, story: Story) -> Description:
        ids = [UrlId(url_id(page.url)) for page in story.pages]
        titles = {page.url: page.title for page in story.pages}  # site names are no keywords
        rows = SqliteReader(self._connection).page_blocks(ids[:PAGES_READ])
        pages = [page._replace(title=titles[page.url]) for page in rows]
        sentences = (leading_sentence(page.blocks, page.parts, page.title) for page in pages)
        copies = {story.pages[later].url for later, _, share in story.near if share >= COPY} | {story.pages[0].url}
        texts = [page for page in pages if page.blocks and page.url in copies]
        bare = readings(_without_frame(page, self._frame(page.site_id)) for page in texts)
        language = (texts[0].language_found or texts[0].language.partition("-")[0]) if texts else ""
        keywords = keywords_of_all(bare, self._counts, KEYWORDS_ASKED)
        return (
            next((sentence for sentence in sentences if sentence), ""),
            _keywords(keywords, language, {self._site_titles[site] for site in story.sites}),
            [(row.run, row.fetched) for row in portal_rows.provenance(self._connection, ids)],
        )

    def _frame(self, site: int) -> frozenset[str]:
        """Texts that the pages of a site repeat."""
        if site not in self._frames:
            pages = SqliteReader(self._connection).site_blocks(site, FRAME_PAGES)
            self._frames[site] = frame_texts([page.blocks.texts() for page in pages])
        return self._frames[site]


def _without_frame(page: PageBlocks, frame: frozenset[str]) -> PageBlocks:
    """The page without the repeated texts of its site; unchanged if nothing else would be left."""
    places = [place for place, text in enumerate(page.blocks.texts()) if text not in frame]
    if not places or len(places) == len(page.blocks):
        return page
    parts = tuple(page.parts[place] for place in places) if page.parts else page.parts
    return page._replace(blocks=Blocks.of(page.blocks[place] for place in places), parts=parts)


def _names(connection: reading.Connection, sites: Iterable[SiteKey]) -> dict[SiteKey, str]:
    """Name of each site in lower case without articles, to be excluded from keywords; empty: unknown."""
    homes = ((site, portal_rows.home_of(connection, site)) for site in sites)
    return {site: home.title.casefold().removeprefix("the ") if home else "" for site, home in homes}


def _keywords(keywords: Iterable[Keyword], language: str, names: Container[str]) -> tuple[str, ...]:
    """The best printable keywords. If one contains the other, keeps the proper name, else the longer.

    names: of sites, in lower case.
    """
    printable = (keyword.text for keyword in keywords if is_printable(keyword.text, language))
    texts = [text for text in printable if text.casefold() not in names][:KEYWORDS_PRINTABLE]
    words = [(is_name(text, language), frozenset(text.casefold().split())) for text in texts]
    whole = [
        text
        for text, (named, own) in zip(texts, words, strict=True)
        if not any(
            (other > own and other_named >= named) or (other < own and other_named > named)
            for other_named, other in words
        )
    ]
    return tuple(whole[:KEYWORDS])
