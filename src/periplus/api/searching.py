"""Searches collections with their indexes, which are updated before each search."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from periplus.api.homes import SearchedCollection, database_at, home_of, index_feed, open_reader, shared_index
from periplus.api.page_segments import require_segment, rules_at, rules_file, segments_of, with_segments
from periplus.errors import StoreError, UsageError
from periplus.features import service
from periplus.model.search import Hit, Match, Matches, SearchResult
from periplus.model.tables import EMPTY, PAGES
from periplus.model.web import SiteKey, Url, UrlId
from periplus.retrieval.asking import Holds, MatchWindow, Near, Searcher
from periplus.retrieval.index import IndexBusy, Ranks, ask, is_written, read_state
from periplus.retrieval.query import parse
from periplus.retrieval.snippets import Highlighter, PageLines, may_share, snippet
from periplus.settings import Searching, read_settings
from periplus.store import changes
from periplus.store.changes import ChangeCursor
from periplus.store.crawl_reads import PageBlocks
from periplus.store.reader import CollectionReader
from periplus.store.tables import keys_with
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.api.search_index import Watch
    from periplus.store.sqlite.index_feed import IndexFeed

log = logging.getLogger(__name__)

INDEX_WAIT_S = 5.0  # longest wait of a search during a crawl for pages fetched so far
ASK_LOOK_S = 0.1
NEAR = 0.8  # share of equal content from which two hits are merged
NOTHING_YET = "nothing is searchable yet: the index is being built"
SHUT = "the index cannot be opened on a read-only disk: copy the collection to another disk"


class SearchedPlace:
    """See SearchedCollection. folder: contains the index and the vectors."""

    def __init__(self, name: str, place: Place, folder: Path, reader: CollectionReader) -> None:
        self.name, self.folder, self._place, self._reader = name, folder, place, reader
        self.settings_file = rules_file(place)

    def catch_up(self, now: float, watch: Watch) -> str:
        """The index is complete."""
        return ""

    def pages(self, ids: Sequence[UrlId]) -> Mapping[UrlId, tuple[PageBlocks, SiteKey]]:
        return stored_pages(self._reader, ids)

    def urls(self, ids: Sequence[UrlId]) -> Mapping[UrlId, Url]:
        return stored_urls(self._reader, ids)

    def pages_with(self, column: str, text: str) -> Sequence[UrlId]:
        return pages_with(self._place, self._reader, column, text)

    def take_over_vectors(self) -> None:
        """Does nothing: they are up to date."""


class FollowedPlace(SearchedPlace):
    """Searched with the index in the cache folder, which the search updates unless a crawl does so."""

    def __init__(self, name: str, place: Place, feed: IndexFeed) -> None:
        super().__init__(name, place, feed.folder, feed.reader)
        self._feed = feed

    def catch_up(self, now: float, watch: Watch) -> str:
        waiting, settled = standing_of(self._feed)
        if not waiting and settled:
            return ""
        if isinstance(self._place, Path) and self._reader.activity(now).is_running:
            waiting = self._ask_indexer(now, watch) if waiting else 0
        else:
            from periplus.api.search_index import catch_up  # imports what marks and ranks need: 40 ms

            try:
                catch_up(self._place, watch)
            except IndexBusy:  # a crawl that ends, or another search
                pass
            except StoreError as error:
                if standing_of(self._feed)[0]:
                    return f"{error} Results may be out of date."
                log.warning("index trouble=%s", error)  # the shared storage failed, but the local index is complete
            waiting, _ = standing_of(self._feed)
        if not waiting and self._feed.is_current():
            return ""
        number = f"{waiting:,} " if waiting else ""  # changes of a database that were not looked for have none
        return f"{pages_in(self.folder):,} pages are searchable, {number}more or changed ones not yet"

    def _ask_indexer(self, now: float, watch: Watch) -> int:
        """Asks the indexing process to make processed pages searchable; the first search waits for it. Returns the
        number of changes that are not searchable.
        """
        from periplus.store import text_rows  # it and its imports take 90 ms

        folder, reader = self.folder, self._reader
        waiting, _ = standing_of(self._feed)
        goal, end = changes.newest(reader.statements), time.monotonic() + INDEX_WAIT_S
        if not ask(folder, now) or not is_written(folder):
            return waiting
        pages = text_rows.tally(reader)[0]
        while not _is_passed(reader, goal) and time.monotonic() < end:
            left = min(waiting, pages)
            if watch(pages - left, left):
                break
            time.sleep(ASK_LOOK_S)
            waiting, _ = standing_of(self._feed)
        return waiting

    def take_over_vectors(self) -> None:
        if shared := shared_index(self._place):
            shared.take_over_vectors()


def brought_up(place: Place, anew: bool, watch: Watch) -> str:
    """Updates or rebuilds the index; returns a sentence about its state.

    Raises StoreError if another process is indexing.
    """
    from periplus.api.search_index import catch_up
    from periplus.store import text_rows

    with open_reader(place) as reader, index_feed(place, reader) as feed:
        feed.update()
        waiting = text_rows.tally(reader)[0] if anew else standing_of(feed)[0]
    try:
        is_whole = catch_up(place, watch, anew=anew)
    except IndexBusy:
        raise StoreError(
            f"another process is indexing {home_of(place)}: a crawl, or a search. Wait for its end."
        ) from None
    return (
        f"{waiting} pages and changes were indexed"
        if is_whole and waiting
        else "the index is up to date"
        if is_whole
        else "indexing was stopped"
    )


def standing(place: Place) -> tuple[int, bool]:
    """(pages and changes not indexed yet, whether the index is settled)."""
    with open_reader(place) as reader, index_feed(place, reader) as feed:
        return standing_of(feed)


def is_indexed(place: Place) -> bool:
    """Whether a search needs no update of the index in the cache folder."""
    if isinstance(place, str):
        with database_at(place).search_source("", place, 0.0) as shared:
            if shared is not None:
                return True
    return standing(place) == (0, True)


def standing_of(feed: IndexFeed) -> tuple[int, bool]:
    """As `standing`. Changes of a database that were not looked for yet are not counted; then it is not settled."""
    state, records = read_state(feed.folder), feed.records.statements
    place = changes.place_of(records, changes.INDEX)
    if place is None or state is None or state.position < place.position:
        place = ChangeCursor(0, -changes.THROUGH - 1)
    return changes.waiting(records, place), state is not None and state.settled and feed.is_current()


def stored_pages(reader: CollectionReader, ids: Sequence[UrlId]) -> Mapping[UrlId, tuple[PageBlocks, SiteKey]]:
    pages = list(reader.page_blocks(ids))
    sites = reader.site_names({page.site_id for page in pages})
    return {page.url_id: (page, sites[page.site_id]) for page in pages}


def stored_urls(reader: CollectionReader, ids: Sequence[UrlId]) -> Mapping[UrlId, Url]:
    return {UrlId(brief.id): Url(brief.url) for brief in reader.briefs(ids) if brief.url}


def pages_in(folder: Path) -> int:
    """Number of pages in the index of a folder."""
    try:
        return Searcher(folder, Searching()).pages
    except (LookupError, ValueError):  # missing, or being rebuilt
        return 0


@contextlib.contextmanager
def open_search(places: Mapping[str, Place], limit_s: float) -> Iterator[Search]:
    """Opens collections (by name, which may be empty) for one search. A database is searched with its shared index, if
    there is one.

    limit_s: time limit per query; 0: none. Raises UsageError, NoCollection, StoreError.
    """
    with contextlib.ExitStack() as stack:
        sources: list[SearchedCollection] = []
        for name, place in places.items():
            shared = None
            if isinstance(place, str):
                shared = stack.enter_context(database_at(place).search_source(name, place, limit_s))
            sources.append(shared or stack.enter_context(_followed_place(name, place, limit_s)))
        weights = {read_settings(source.settings_file).searching for source in sources}
        yield Search(sources, weights.pop() if len(weights) == 1 else Searching())


@contextlib.contextmanager
def _followed_place(name: str, place: Place, limit_s: float) -> Iterator[SearchedCollection]:
    with open_reader(place, limit_s) as reader, index_feed(place, reader) as feed:
        yield FollowedPlace(name, place, feed)


class Search:
    """Searches one or several collections, also during a crawl.

    Term and length statistics are summed over all indexes, so that scores are comparable.
    """

    def __init__(self, sources: Sequence[SearchedCollection], weights: Searching) -> None:
        self._sources, self._weights = sources, weights
        self._searcher: Searcher | None = None
        self._ranks: Sequence[Ranks] = ()

    def catch_up(self, now: float, watch: Watch) -> str:
        """Updates the indexes unless a crawl does so; returns a note on missing pages."""
        notes = [(source.name, source.catch_up(now, watch)) for source in self._sources]
        return "; ".join(f"{name}: {note}" if name else note for name, note in notes if note)

    def find(
        self,
        query: str,
        limit: int,
        page: int,
        *,
        facets: bool,
        behind: str,
        like: Sequence[float] | UrlId | None = None,
    ) -> SearchResult:
        """Runs one query on the current index.

        page: of results, from 1. behind: note on missing pages. like: a vector, or a page whose vector is used. Raises
        UsageError if there are no vectors, or with another dimension.
        """
        near = None if like is None else self._near(like)
        started = time.perf_counter()
        searcher = self._current_searcher()
        if searcher is None:
            return SearchResult(
                query,
                0,
                (),
                (),
                (NOTHING_YET if os.access(self._sources[0].folder, os.W_OK) else SHUT,),
                "",
                time.perf_counter() - started,
            )
        window = MatchWindow(limit, (page - 1) * limit, facets)
        matches = searcher.search(query, window, self._rank, near, self._pages_with)
        hits = tuple(self._hits(query, matches, searcher.languages))
        notes = (*matches.notes, behind) if behind else matches.notes
        return SearchResult(
            query, matches.total, hits, matches.facets, notes, matches.suggestion, time.perf_counter() - started
        )

    def _rank(self, pages: Sequence[UrlId]) -> Sequence[float]:
        """Rank of each page, 0 to 1: the highest in the collections that have it."""
        return [max(values) for values in zip(*(ranks.of(pages) for ranks in self._ranks), strict=True)]

    def _pages_with(self, column: str, text: str) -> Sequence[UrlId]:
        """See `pages_with`; over all collections that support the condition."""
        faults, pages = [], dict[UrlId, None]()
        for source in self._sources:
            try:
                pages |= dict.fromkeys(source.pages_with(column, text))
            except UsageError as error:
                faults.append(error)
        if len(faults) == len(self._sources):
            raise faults[0]
        return list(pages)

    def _near(self, like: Sequence[float] | UrlId) -> Near:
        """Function for the pages nearest to a vector or a page (excluding it). Raises UsageError, StoreError."""
        from periplus.retrieval.vectors import open_vectors

        for source in self._sources:
            source.take_over_vectors()
        several = [vectors for source in self._sources if (vectors := open_vectors(source.folder)) is not None]
        if not several:
            raise UsageError("the collection has no vectors: import some with `periplus index --vectors FILE`")
        own = like if isinstance(like, int) else None
        having = [vectors for vectors in several if own in vectors.pages] or several
        vector = having[0].of_page(like) if isinstance(like, int) else like

        def near(most: int, holds: Holds) -> Sequence[tuple[UrlId, float]]:
            best: dict[UrlId, float] = {}
            for vectors in several:
                for page, score in vectors.nearest(
                    vector, most, lambda pages: holds([page for page in pages if page != own])
                ):
                    best[page] = max(score, best.get(page, score))
            return sorted(best.items(), key=lambda item: -item[1])[:most]

        return near

    def _current_searcher(self) -> Searcher | None:
        """The current index, or None."""
        folders = [source.folder for source in self._sources]
        try:
            if self._searcher is None:
                self._searcher = Searcher(folders, self._weights)
                self._ranks = list(map(Ranks, folders))
            elif self._searcher.refresh():
                self._ranks = list(map(Ranks, folders))
        except (LookupError, ValueError):  # missing, or being rebuilt
            self._searcher = None
        return self._searcher

    def _hits(self, query: str, matches: Matches, languages: Sequence[str]) -> Iterable[Hit]:
        highlighter = Highlighter(parse(query).root, languages)
        stored = self._stored_pages(matches.matches)
        lines = [PageLines(page.blocks, page.parts or ()) for _, _, page, _ in stored]
        stands_for = _originals(_contents(lines, [bool(page.parts) for _, _, page, _ in stored]))
        urls = self._urls([url_id for match, *_ in stored for url_id in (match.url_id, *match.twins)])
        for place, (match, source, page, site) in enumerate(stored):
            if stands_for[place] == place:
                near = [
                    url_id
                    for (other, *_), head in zip(stored, stands_for, strict=True)
                    if head == place
                    for url_id in (other.url_id, *other.twins)
                    if url_id not in (match.url_id, *match.twins)
                ]
                twins = tuple(urls[url_id] for url_id in match.twins if url_id in urls)
                yield replace(
                    _hit(page, lines[place], match.score, twins, highlighter, site),
                    near=tuple(urls[url_id] for url_id in near if url_id in urls),
                    missing=match.missing,
                    collection=source.name,
                )

    def _stored_pages(self, matches: Sequence[Match]) -> list[tuple[Match, SearchedCollection, PageBlocks, SiteKey]]:
        """Matches with their pages, looked up first in the collection whose index has them. Drops URLs that are no
        longer pages: the index will be updated.
        """
        stored: dict[Match, tuple[SearchedCollection, PageBlocks, SiteKey]] = {}
        for is_own in (True, False):
            for origin, source in enumerate(self._sources):
                left = [match for match in matches if match not in stored and (match.origin == origin or not is_own)]
                pages = source.pages([match.url_id for match in left])
                stored |= {match: (source, *pages[match.url_id]) for match in left if match.url_id in pages}
        return [(match, *stored[match]) for match in matches if match in stored]

    def _urls(self, ids: Sequence[UrlId]) -> Mapping[UrlId, Url]:
        urls: dict[UrlId, Url] = {}
        for source in self._sources:
            urls |= source.urls([url_id for url_id in ids if url_id not in urls])
        return urls


def _is_passed(reader: CollectionReader, change: int) -> bool:
    """Whether the index includes all pages up to this change."""
    place = changes.place_of(reader.statements, changes.INDEX)
    return place is not None and place.position >= (changes.THROUGH, change)


def pages_with(place: Place, reader: CollectionReader, column: str, text: str) -> Sequence[UrlId]:
    """Pages whose column meets a condition in the syntax of table filters; for human-readable columns, a substring is
    enough. column: of `model.tables.PAGES`, `segment`, or `set`. Raises UsageError.
    """
    if column == "set":
        pages: Sequence[UrlId] = service("set of pages")(reader, text)
        return pages
    table = PAGES
    if column == "segment":
        require_segment(place, text)
        reader.name_segments(segments_of(reader, rules_at(place)))
        table = with_segments(table)
    asked = table.column(column)
    if (asked.searched or asked.wide or column == "types") and text[:1] not in ("~", "!") and text != EMPTY:
        text = f"~{text}"
    return list(map(UrlId, keys_with(reader.statements, table, column, text)))


def _contents(pages: Sequence[PageLines], is_marked: Sequence[bool]) -> list[Collection[str]]:
    """Content blocks of pages that may share NEAR of their content with another; empty for other or unmarked pages."""
    marked = [page for page, is_page_marked in zip(pages, is_marked, strict=True) if is_page_marked]
    near = {page for pair in combinations(marked, 2) if may_share(*pair, NEAR) for page in pair}
    return [page.content() if page in near else () for page in pages]


def _originals(contents: Sequence[Collection[str]]) -> Sequence[int]:
    """See `near_originals`, which is imported only if any page may repeat another."""
    if not any(contents):
        return range(len(contents))
    from periplus.analyse.duplicates import near_originals

    return near_originals(contents, NEAR)


def _hit(
    page: PageBlocks,
    lines: PageLines,
    score: float,
    twins: tuple[Url, ...],
    highlighter: Highlighter,
    site: SiteKey,
) -> Hit:
    language = page.language_found or page.language
    return Hit(
        url=page.url,
        title=page.title,
        title_marks=highlighter.marks(page.title, language),
        snippet=snippet(lines, highlighter, language, page.title),
        score=score,
        site=site,
        media_type=page.media_type,
        language=language,
        when=page.when,
        twins=twins,
    )
