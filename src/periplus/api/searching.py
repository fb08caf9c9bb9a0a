"""Searches of a collection: queries answered from its index, which is brought up to date before."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

from periplus.analyse.duplicates import repeated
from periplus.api.search_index import FOLLOWER, THROUGH, Watch, catch_up, position_of, standing_of
from periplus.api.segments import require_segment, rules_at, segments_of
from periplus.errors import StoreError, UsageError
from periplus.model.search import Hit, Matches, SearchResult
from periplus.model.tables import EMPTY, PAGES, with_segments
from periplus.model.web import SiteKey, Url, UrlId
from periplus.search.asking import MatchWindow, Near, Searcher
from periplus.search.index import IndexBusy, Ranks, ask, is_written
from periplus.search.query import parse
from periplus.search.snippets import Highlighter, PageLines, may_share, snippet
from periplus.search.vectors import opened
from periplus.settings import Searching
from periplus.store.sqlite import changes, reading, site_rows, text_rows
from periplus.store.sqlite.tables import keys_with
from periplus.store.sqlite.text_rows import PageBlocks

TAKEN_IN_S = 5.0  # that the first search of a crawl waits for the pages read until then
ASK_LOOK_S = 0.1
NEAR = 0.8  # of two hits' content that is word by word the same, from which they are one hit
NOTHING_YET = "nothing is searchable yet: the index is being made"
SHUT = "the index cannot be opened on a disk that is read-only: copy the collection to another one"


class Search:
    """Searches of one collection, one after another. A crawl may go on meanwhile."""

    def __init__(self, folder: Path, connection: reading.Connection, weights: Searching) -> None:
        self._folder, self._connection, self._weights = folder, connection, weights
        self._searcher: Searcher | None = None
        self._ranks = Ranks(folder)

    def catch_up(self, now: float, watch: Watch) -> str:
        """Brings the index up to date where no crawl does so; returns what to say of pages that it lacks."""
        waiting, settled = standing_of(self._folder, self._connection)
        if not waiting and settled:
            return ""
        if reading.is_being_crawled(self._connection, now):
            waiting = self._asked(now, watch) if waiting else 0
        else:
            try:
                catch_up(self._folder, watch)
            except IndexBusy:  # a crawl that ends, or another search
                pass
            except StoreError as error:
                return f"{error} What is shown may be out of date."
            waiting, _ = standing_of(self._folder, self._connection)
        if not waiting:
            return ""
        searcher = self._opened()
        return f"{searcher.pages if searcher else 0:,} pages are searchable, {waiting:,} more or changed ones not yet"

    def _asked(self, now: float, watch: Watch) -> int:
        """Has the process that indexes give the engine what it took in, and the first time waits for it; returns how
        many changes are not searchable then.
        """
        waiting, _ = standing_of(self._folder, self._connection)
        goal, end = changes.newest(self._connection), time.monotonic() + TAKEN_IN_S
        if not ask(self._folder, now) or not is_written(self._folder):
            return waiting
        pages = text_rows.tally(self._connection)[0]
        while not self._is_passed(goal) and time.monotonic() < end:
            left = min(waiting, pages)
            if watch(pages - left, left):
                break
            time.sleep(ASK_LOOK_S)
            waiting, _ = standing_of(self._folder, self._connection)
        return waiting

    def _is_passed(self, change: int) -> bool:
        """Whether the index holds all pages up to this change."""
        place = changes.place_of(self._connection, FOLLOWER)
        return place is not None and position_of(place) >= (THROUGH, change)

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
                (NOTHING_YET if os.access(self._folder, os.W_OK) else SHUT,),
                "",
                time.perf_counter() - started,
            )
        window = MatchWindow(limit, (page - 1) * limit, facets)
        matches = searcher.search(
            query, window, self._ranks.of, near, partial(pages_with, self._folder, self._connection)
        )
        hits = tuple(self._hits(query, matches, searcher.languages))
        notes = (*matches.notes, behind) if behind else matches.notes
        return SearchResult(
            query, matches.total, hits, matches.facets, notes, matches.suggestion, time.perf_counter() - started
        )

    def _near(self, like: Sequence[float] | UrlId) -> Near:
        """What names pages near a vector, or near a page, which is none of them. Raises UsageError, StoreError."""
        vectors = opened(self._folder)
        if vectors is None:
            raise UsageError("the collection has no vectors: `periplus index --vectors FILE` takes them in")
        if not isinstance(like, int):
            return partial(vectors.nearest, like)
        vector = vectors.of_page(like)
        return lambda most, holds: vectors.nearest(
            vector, most, lambda pages: holds([page for page in pages if page != like])
        )

    def _opened(self) -> Searcher | None:
        """The index as it stands now."""
        try:
            if self._searcher is None:
                self._searcher = Searcher(self._folder, self._weights)
                self._ranks = Ranks(self._folder)
            else:
                self._searcher.refresh()
        except (LookupError, ValueError):  # none yet, or made anew at this moment
            self._searcher = None
        return self._searcher

    def _hits(self, query: str, matches: Matches, languages: Sequence[str]) -> Iterable[Hit]:
        highlighter = Highlighter(parse(query).root, languages)
        pages = {
            page.url_id: page
            for page in text_rows.pages_of(self._connection, [match.url_id for match in matches.matches])
        }
        # others are no pages any longer, and the index will learn of it
        present = [match for match in matches.matches if match.url_id in pages]
        lines = [PageLines(pages[match.url_id].blocks, pages[match.url_id].parts or ()) for match in present]
        is_marked = [bool(pages[match.url_id].parts) for match in present]
        stands_for = repeated(_contents(lines, is_marked), NEAR)
        names = site_rows.site_names(self._connection, {page.site_id for page in pages.values()})
        for place, match in enumerate(present):
            if stands_for[place] == place:
                page = pages[match.url_id]
                near = [
                    url_id
                    for other, head in zip(present, stands_for, strict=True)
                    if head == place
                    for url_id in (other.url_id, *other.twins)
                ]
                others = self._urls([url_id for url_id in near if url_id not in (match.url_id, *match.twins)])
                yield replace(
                    _hit(page, lines[place], match.score, self._urls(match.twins), highlighter, names[page.site_id]),
                    near=others,
                    missing=match.missing,
                )

    def _urls(self, ids: Sequence[UrlId]) -> tuple[Url, ...]:
        facts = [site_rows.url_facts(self._connection, url_id) for url_id in ids]
        return tuple(fact.url for fact in facts if fact is not None)


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
