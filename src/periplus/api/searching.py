"""Searches of a collection: queries answered from its index, which is brought up to date before."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from periplus.analyse.duplicates import repeated
from periplus.api.search_index import Watch, catch_up, standing_of
from periplus.api.segments import require_segment, rules_at, segments_of
from periplus.api.shared_index import take_over_vectors
from periplus.errors import StoreError, UsageError
from periplus.model.search import Hit, Matches, SearchResult
from periplus.model.tables import EMPTY, PAGES, with_segments
from periplus.model.web import SiteKey, Url, UrlId
from periplus.search.asking import Holds, MatchWindow, Near, Searcher
from periplus.search.index import IndexBusy, Ranks, ask, is_written
from periplus.search.query import parse
from periplus.search.snippets import Highlighter, PageLines, may_share, snippet
from periplus.search.vectors import opened
from periplus.settings import Searching
from periplus.store.sqlite import changes, reading, site_rows, text_rows
from periplus.store.sqlite.tables import keys_with
from periplus.store.sqlite.text_rows import PageBlocks

log = logging.getLogger(__name__)

TAKEN_IN_S = 5.0  # that the first search of a crawl waits for the pages read until then
ASK_LOOK_S = 0.1
NEAR = 0.8  # of two hits' content that is word by word the same, from which they are one hit
NOTHING_YET = "nothing is searchable yet: the index is being made"
SHUT = "the index cannot be opened on a disk that is read-only: copy the collection to another one"


@dataclass(frozen=True, slots=True)
class SearchedCollection:
    """A collection that is searched. name: where several are, by which its hits are told from others'."""

    folder: Path
    connection: reading.Connection
    name: str = ""


class Search:
    """Searches of one collection, or of several as one, one after another. A crawl may go on meanwhile.

    Of several, words and lengths are counted over all their indexes, so that what a hit scores says the same of each.
    """

    def __init__(self, sources: Sequence[SearchedCollection], weights: Searching) -> None:
        self._sources, self._weights = sources, weights
        self._searcher: Searcher | None = None
        self._ranks: Sequence[Ranks] = ()

    def catch_up(self, now: float, watch: Watch) -> str:
        """Brings the indexes up to date where no crawl does so; returns what to say of pages that they lack."""
        notes = [(source.name, self._caught_up(source, now, watch)) for source in self._sources]
        return "; ".join(f"{name}: {note}" if name else note for name, note in notes if note)

    def _caught_up(self, source: SearchedCollection, now: float, watch: Watch) -> str:
        waiting, settled = standing_of(source.folder, source.connection)
        if not waiting and settled:
            return ""
        if reading.is_being_crawled(source.connection, now):
            waiting = self._asked(source, now, watch) if waiting else 0
        else:
            try:
                catch_up(source.folder, watch)
            except IndexBusy:  # a crawl that ends, or another search
                pass
            except StoreError as error:
                if standing_of(source.folder, source.connection)[0]:
                    return f"{error} What is shown may be out of date."
                log.warning("index trouble=%s", error)  # with the place where readers share it: here it is whole
            waiting, _ = standing_of(source.folder, source.connection)
        if not waiting:
            return ""
        try:
            pages = Searcher(source.folder, self._weights).pages
        except (LookupError, ValueError):  # none yet, or made anew at this moment
            pages = 0
        return f"{pages:,} pages are searchable, {waiting:,} more or changed ones not yet"

    def _asked(self, source: SearchedCollection, now: float, watch: Watch) -> int:
        """Has the process that indexes give the engine what it took in, and the first time waits for it; returns how
        many changes are not searchable then.
        """
        folder, connection = source.folder, source.connection
        waiting, _ = standing_of(folder, connection)
        goal, end = changes.newest(connection), time.monotonic() + TAKEN_IN_S
        if not ask(folder, now) or not is_written(folder):
            return waiting
        pages = text_rows.tally(connection)[0]
        while not _is_passed(connection, goal) and time.monotonic() < end:
            left = min(waiting, pages)
            if watch(pages - left, left):
                break
            time.sleep(ASK_LOOK_S)
            waiting, _ = standing_of(folder, connection)
        return waiting

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
        """Answers one query from what is searchable now.

        page: of the hits, from 1; behind: what to say of pages that the index lacks; like: a vector, or a page
        with vectors, to which others are near. Raises UsageError where there is none, or of another width.
        """
        near = None if like is None else self._near(like)
        started = time.perf_counter()
        searcher = self._opened()
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
        """Of each page, 0 to 1: the most of what collections say that have it."""
        return [max(ranks) for ranks in zip(*(one.of(pages) for one in self._ranks), strict=True)]

    def _pages_with(self, column: str, text: str) -> Sequence[UrlId]:
        """As `pages_with`, of all collections that can tell."""
        faults, pages = [], dict[UrlId, None]()
        for source in self._sources:
            try:
                pages |= dict.fromkeys(pages_with(source.folder, source.connection, column, text))
            except UsageError as error:
                faults.append(error)
        if len(faults) == len(self._sources):
            raise faults[0]
        return list(pages)

    def _near(self, like: Sequence[float] | UrlId) -> Near:
        """What names pages near a vector, or near a page, which is none of them. Raises UsageError, StoreError."""
        for source in self._sources:
            take_over_vectors(source.folder)
        several = [vectors for source in self._sources if (vectors := opened(source.folder)) is not None]
        if not several:
            raise UsageError("the collection has no vectors: `periplus index --vectors FILE` takes them in")
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

    def _opened(self) -> Searcher | None:
        """The index as it stands now."""
        folders = [source.folder for source in self._sources]
        try:
            if self._searcher is None:
                self._searcher = Searcher(folders, self._weights)
                self._ranks = list(map(Ranks, folders))
            elif self._searcher.refresh():
                self._ranks = list(map(Ranks, folders))
        except (LookupError, ValueError):  # none yet, or made anew at this moment
            self._searcher = None
        return self._searcher

    def _hits(self, query: str, matches: Matches, languages: Sequence[str]) -> Iterable[Hit]:
        highlighter = Highlighter(parse(query).root, languages)
        # others are no pages any longer, and the index will learn of it
        stored = [
            (match, *of_match)
            for match in matches.matches
            if (of_match := self._page(match.url_id, match.origin)) is not None
        ]
        lines = [PageLines(page.blocks, page.parts or ()) for _, _, page in stored]
        stands_for = repeated(_contents(lines, [bool(page.parts) for _, _, page in stored]), NEAR)
        for place, (match, source, page) in enumerate(stored):
            if stands_for[place] == place:
                near = [
                    url_id
                    for (other, _, _), head in zip(stored, stands_for, strict=True)
                    if head == place
                    for url_id in (other.url_id, *other.twins)
                ]
                others = self._urls([url_id for url_id in near if url_id not in (match.url_id, *match.twins)])
                site = site_rows.site_names(source.connection, {page.site_id})[page.site_id]
                yield replace(
                    _hit(page, lines[place], match.score, self._urls(match.twins), highlighter, site),
                    near=others,
                    missing=match.missing,
                    collection=source.name,
                )

    def _page(self, url_id: UrlId, origin: int) -> tuple[SearchedCollection, PageBlocks] | None:
        """A page, and where it is. origin: of the sources, the one that is asked first."""
        for source in (self._sources[origin], *self._sources):
            for page in text_rows.pages_of(source.connection, [url_id]):
                return source, page
        return None

    def _urls(self, ids: Sequence[UrlId]) -> tuple[Url, ...]:
        facts = [
            next(filter(None, (site_rows.url_facts(source.connection, url_id) for source in self._sources)), None)
            for url_id in ids
        ]
        return tuple(fact.url for fact in facts if fact is not None)


def _is_passed(connection: reading.Connection, change: int) -> bool:
    """Whether the index holds all pages up to this change."""
    place = changes.place_of(connection, changes.INDEX)
    return place is not None and place.position >= (changes.THROUGH, change)


def pages_with(folder: Path, connection: reading.Connection, column: str, text: str) -> Sequence[UrlId]:
    """The pages on which a column answers a condition, written as in filters of tables; of a text that people write a
    part is enough. column: of `model.tables.PAGES`; `segment`, or `set`. Raises UsageError.
    """
    if column == "set":
        from periplus.api.survey import campaign_here
        from periplus.api.webometrics import pages_of_set

        campaign = campaign_here(folder)
        return pages_of_set(connection, campaign.units if campaign else (), text.lower())
    table = PAGES
    if column == "segment":
        require_segment(folder, text)
        reading.name_segments(connection, segments_of(connection, rules_at(folder)).of)
        table = with_segments(table)
    asked = table.column(column)
    if (asked.searched or asked.wide or column == "types") and text[:1] not in ("~", "!") and text != EMPTY:
        text = f"~{text}"
    return list(map(UrlId, keys_with(connection, table, column, text)))


def _contents(pages: Sequence[PageLines], is_marked: Sequence[bool]) -> list[Collection[str]]:
    """The content of each page, block by block, where another may share NEAR of it; else nothing, as of pages that are
    not marked yet.
    """
    marked = [page for page, marked in zip(pages, is_marked, strict=True) if marked]
    near = {page for pair in combinations(marked, 2) if may_share(*pair, NEAR) for page in pair}
    return [page.content() if page in near else () for page in pages]


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
