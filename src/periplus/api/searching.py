"""How is a collection searched? The index answers, the collection says what the pages found are like."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from periplus.analyse.repeats import repeated
from periplus.api import following
from periplus.errors import StoreError
from periplus.model.page import Part
from periplus.model.search import Hit, Matches, SearchResult
from periplus.model.web import SiteKey, Url, UrlId
from periplus.search.asking import Searcher, Wish
from periplus.search.index import IndexBusy
from periplus.search.query import parse
from periplus.search.ranks import Ranks
from periplus.search.snippets import Highlighter, snippet
from periplus.settings import Searching
from periplus.store.sqlite import block_rows, graph_rows, reading
from periplus.store.sqlite.block_rows import PageBlocks

Caught = Callable[[int, int], bool]  # (pages indexed, pages to go) -> stop

NEAR = 0.8  # of two hits' content that is word by word the same, from which they are one hit
EMPTY = "nothing is searchable yet: the index is being made"
SHUT = "the index cannot be opened on a disk that is read-only: copy the collection to another one"


class Search:
    """Searches of one collection, one after another. A crawl may go on meanwhile."""

    def __init__(self, folder: Path, connection: reading.Connection, weights: Searching) -> None:
        self._folder, self._connection, self._weights = folder, connection, weights
        self._searcher: Searcher | None = None
        self._ranks = Ranks(folder)

    def catch_up(self, now: float, watch: Caught) -> str:
        """Brings the index up to date where no crawl does so; returns what to say of pages that it lacks."""
        waiting, settled = following.standing(self._folder)
        if not waiting and settled:
            return ""
        if not reading.is_being_crawled(self._connection, now):
            try:
                following.catch_up(self._folder, watch)
            except IndexBusy:  # a crawl that ends, or another search
                pass
            except StoreError as error:
                return f"{error} What is shown may be out of date."
            waiting, _ = following.standing(self._folder)
        return f"{waiting} {'change is' if waiting == 1 else 'changes are'} not searchable yet" if waiting else ""

    def find(self, query: str, limit: int, page: int, *, facets: bool, behind: str) -> SearchResult:
        """Answers one query from what is searchable now. page: of the hits, from 1; behind: what to say of pages that the index lacks."""
        started = time.perf_counter()
        searcher = self._opened()
        if searcher is None:
            return SearchResult(query, 0, (), (), (EMPTY if os.access(self._folder, os.W_OK) else SHUT,), "", time.perf_counter() - started)
        matches = searcher.search(query, Wish(limit, (page - 1) * limit, facets), self._ranks.of)
        hits = tuple(self._hits(query, matches, searcher.languages))
        notes = (*matches.notes, behind) if behind else matches.notes
        return SearchResult(query, matches.total, hits, matches.facets, notes, matches.suggestion, time.perf_counter() - started)

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
        names = graph_rows.site_names(self._connection)
        pages = {page.url_id: page for page in block_rows.pages_of(self._connection, [match.url_id for match in matches.matches])}
        found = [match for match in matches.matches if match.url_id in pages]  # others are no pages any longer, and the index will learn of it
        stands_for = repeated([_content(pages[match.url_id]) for match in found], NEAR)
        for place, match in enumerate(found):
            if stands_for[place] == place:
                page = pages[match.url_id]
                near = [url_id for other, head in zip(found, stands_for, strict=True) if head == place for url_id in (other.url_id, *other.twins)]
                others = self._urls([url_id for url_id in near if url_id not in (match.url_id, *match.twins)])
                yield replace(_hit(page, match.score, self._urls(match.twins), highlighter, names[page.site_id]), near=others)

    def _urls(self, ids: Sequence[UrlId]) -> tuple[Url, ...]:
        facts = [graph_rows.url_facts(self._connection, url_id) for url_id in ids]
        return tuple(fact.url for fact in facts if fact is not None)


def _content(page: PageBlocks) -> list[str]:
    """Its content, block by block. Not marked yet: nothing."""
    return [block.text for block, part in zip(page.blocks, page.parts or (), strict=False) if part is Part.CONTENT]


def _hit(page: PageBlocks, score: float, twins: tuple[Url, ...], highlighter: Highlighter, site: SiteKey) -> Hit:
    language = page.language_found or page.language
    return Hit(
        url=page.url,
        title=page.title,
        title_marks=highlighter.marks(page.title, language),
        snippet=snippet(page.blocks, page.parts or (), highlighter, language),
        score=score,
        site=site,
        media_type=page.media_type,
        language=language,
        when=page.last_modified or page.fetched,
        twins=twins,
    )
