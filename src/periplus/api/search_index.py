"""Builds the search index of a collection, during a crawl and afterwards."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
import tempfile
import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from periplus.analyse.linkgraph import IS_FETCHED, IS_PAGE, links_in_file
from periplus.analyse.pagerank import link_score, pagerank
from periplus.api.homes import database_at, index_feed, place_at, shared_index
from periplus.api.marks import LearnedPage, Marks
from periplus.children import Parent, RunnerLink
from periplus.document.words import forms
from periplus.logs import configure_child
from periplus.model.arrays import Ints
from periplus.model.job import JobProgress
from periplus.model.page import NO_BLOCKS, Part
from periplus.model.search import PageToIndex
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, UrlId
from periplus.retrieval.asking import Searcher
from periplus.retrieval.index import (
    FOLDER,
    NOTHING,
    IndexBusy,
    IndexWriter,
    anchor_digest,
    is_asked,
    translate_errors,
    write_ranks,
)
from periplus.settings import Searching
from periplus.store import changes, site_rows, text_rows
from periplus.store.changes import ChangeCursor
from periplus.store.crawl_reads import PageBlocks
from periplus.store.site_arrays import redirects as all_redirects
from periplus.store.text_rows import PAGES_AT_ONCE
from periplus.values import Place

# A follower reads which pages changed, indexes them, and only then advances its position. After a kill, the next one
# repeats the work from there; pages replace their earlier versions, so that nothing is indexed twice. During a crawl it
# is a separate process; a line on its standard input announces the end of the crawl. If the input ends without that
# line, the parent has died, and the process exits. It learns each site's repeated elements from pages as they arrive,
# and marks and tokenises them a lot at a time: with the evidence of a whole lot hardly a page has to be marked again.
# The engine receives them once, with the anchor texts of links to them, at the end of the crawl, or earlier if searches
# are made.

BATCH_PAGES = 50  # read at a time
LOT_BYTES = 40_000_000  # pages read but not yet marked: some 700 pages of 2,500 words
LINKS_AT_ONCE = 1 << 20  # per PageRank iteration: 25 MB
# time between two commits and between two polls for changes
LOOK_S = 2.0
NICENESS = 5  # crawls have priority
# allocations between two collections: a batch has 90,000 blocks and no cycles; 50,000 take 3 % of the time
GARBAGE_LOOK = 1_000_000
BUSY_WAIT_S = 0.5  # before trying the writer lock again

log = logging.getLogger(__name__)

Watch = Callable[[int, int], bool]  # (pages indexed, pages to go) -> True: stop
Telling = Callable[[UrlId, str], Sequence[str]]  # (page, its title) -> anchor texts of links to it


def _no_anchors(page: UrlId, title: str) -> Sequence[str]:
    return ()


class IndexWorker:
    """Updates the index of a collection. Raises IndexBusy while another process does so, StoreError, NoCollection."""

    def __init__(self, place: Place) -> None:
        with contextlib.ExitStack() as held:
            self._feed = held.enter_context(index_feed(place))
            self._folder, self._reader = self._feed.folder, self._feed.reader
            collection = changes.collection_key(self._reader.statements)
            self._writer = held.enter_context(contextlib.closing(IndexWriter(self._folder, collection)))
            self._feed.update()
            self._place = self._begin()
            self._held = held.pop_all()
        self._marks = Marks(self._reader, self._feed.records)
        self._sites: dict[int, SiteKey] = {}
        self._anchors: Telling = _no_anchors  # known only when all links are, see `settle`
        self._listened = False
        self._complete = np.zeros(0, np.int64)  # pages indexed with all their anchor texts, ascending
        self._lot: dict[UrlId, LearnedPage] = {}  # pages read by `step` but not yet marked
        self._lot_bytes = 0
        self._waiting = array("q")  # pages marked and cut into terms, but not yet passed to the engine

    def __enter__(self) -> IndexWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.__exit__(kind, error, trace)

    def _begin(self) -> ChangeCursor:
        """The position to continue from: the collection's, unless the index is behind it; else the beginning."""
        with self._feed.transaction() as records:
            place = changes.place_of(records, changes.INDEX)
            if place is None or self._writer.position < place.position:
                changes.unfollow(records, changes.INDEX)
                if self._writer.position != NOTHING:
                    self._writer.clear()
            return changes.follow(records, changes.INDEX)

    def update(self) -> None:
        """Looks for changes in a database; a folder records them itself."""
        self._feed.update()

    def begin_anew(self) -> None:
        """Discards the index."""
        with self._feed.transaction() as records:
            changes.unfollow(records, changes.INDEX)
        self._place = self._begin()

    def pages(self) -> int:
        """Number of pages in the collection."""
        return text_rows.tally(self._reader)[0]

    def waiting(self) -> int:
        """Number of pages and changes not processed yet."""
        return changes.waiting(self._feed.records.statements, self._place)

    def listen(self) -> None:
        """Loads the anchor texts of the next pages, so that they are indexed only once; for use without a crawl."""
        self._complete = np.fromiter(changes.pages_after(self._feed.records, self._place, PAGES_AT_ONCE), np.int64)
        self._listen_to(self._complete)
        self._listened = True

    def _is_put(self, place: ChangeCursor) -> bool:
        """Whether pages up to a position are passed to the engine at once: anchor texts are loaded in order."""
        return self._listened and (place.scanned is not None or len(self._complete) <= PAGES_AT_ONCE)

    def step(self, watch: Callable[[int], bool] = lambda taken: False) -> int:
        """Reads changed pages for at most LOOK_S; returns their number, 0 if nothing is left. Whole lots are marked and
        cut into terms, the rest by `index_lot`. They are searchable at once if `listen` was called before, else after
        `flush` or `settle`.

        watch: called with the number of pages so far; True ends the step.
        """
        started, taken = time.monotonic(), 0
        while time.monotonic() - started < LOOK_S:
            ids, place = changes.after(self._feed.records.statements, self._place, BATCH_PAGES)
            if self._is_put(place) != self._is_put(self._place):
                self.index_lot()
            self._place = place
            if not ids:
                break
            self._read(ids)
            if self._lot_bytes >= LOT_BYTES:
                self.index_lot()
            taken += len(ids)
            if watch(taken):
                break
        return taken

    def _read(self, ids: Sequence[UrlId]) -> None:
        """Adds pages to the lot, in place of their earlier versions."""
        for url_id in self._lot.keys() & set(ids):
            self._marks.forget(self._lot.pop(url_id))
        pages = list(self._reader.page_blocks(ids))
        for learned in self._marks.learn(pages):
            self._lot[learned.page.url_id] = learned
            self._lot_bytes += learned.size_bytes
        self._writer.remove(set(ids) - {page.url_id for page in pages})

    def index_lot(self) -> None:
        """Marks the pages of the lot and cuts them into terms."""
        if not self._lot:
            return
        is_put, lot = self._is_put(self._place), list(self._lot.values())
        self._lot, self._lot_bytes = {}, 0
        batch = list(zip([learned.page for learned in lot], self._marks.of(lot), strict=True))
        (self._writer.put if is_put else self._writer.keep)(map(self._to_index, batch))
        self._waiting.extend(() if is_put else (page.url_id for page, _ in batch))
        self._pass([(page._replace(blocks=NO_BLOCKS), parts) for page, parts in batch], searchable=is_put)

    def _pass(self, marked: Iterable[tuple[PageBlocks, Sequence[Part]]] = (), *, searchable: bool) -> None:
        """Stores marks; if searchable, first commits the index, and then advances the stored position."""
        if searchable:
            self._writer.commit(self._place.position)
        with self._feed.transaction() as records:
            self._marks.store(marked)
            if searchable:
                changes.set_position(records, changes.INDEX, self._place)

    @property
    def not_put(self) -> int:
        """Pages processed by `step` but not yet passed to the engine."""
        return len(self._lot) + len(self._waiting)

    def flush(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Makes processed pages searchable, without anchor texts. False: stopped."""
        self.index_lot()
        self._anchors = _no_anchors
        is_whole = self._put_pages(self._in_order(), stop)
        if is_whole and self._writer.position != self._place.position:
            self._pass(searchable=True)
        return is_whole

    def _in_order(self) -> Ints:
        waiting = np.unique(np.array(self._waiting, np.int64))
        self._waiting = array("q", waiting.tobytes())
        return waiting

    def _put_pages(self, ids: Ints, stop: Callable[[], bool]) -> bool:
        """Passes pages (ascending ids) to the engine, starting with the last, and removes them and all later pages from
        those that wait. False: stopped.
        """
        for end in range(len(ids), 0, -BATCH_PAGES):
            if stop():
                return False
            batch = list(map(UrlId, ids[max(end - BATCH_PAGES, 0) : end].tolist()))
            titles = self._reader.titles_of(batch)
            unread = [
                page for page in batch if not self._writer.put_draft(page, self._anchors(page, titles.get(page, "")))
            ]
            pages = self._reader.page_blocks(unread)
            self._writer.put(self._to_index((page, page.parts or ())) for page in pages)
            del self._waiting[bisect_left(self._waiting, batch[0]) :]
        return True

    def settle(self, stop: Callable[[], bool]) -> bool:
        """Makes processed pages searchable and computes what needs the whole collection: ranks and anchor texts. For
        use without a crawl.

        Pages whose anchor texts changed since they were indexed are indexed again. False: stopped.
        """
        self.index_lot()
        if self._writer.is_settled and self._writer.position == self._place.position:
            return True
        waiting = self._in_order()
        ids, digests = Searcher(self._folder, Searching()).link_words()
        is_unsure = ~np.isin(ids, np.concatenate((self._complete, waiting)))
        ids, digests = ids[is_unsure], digests[is_unsure]
        every = np.union1d(ids, waiting)
        if not np.isin(every, self._complete).all():  # else their anchor texts are loaded already
            self._listen_to(every)
        for start in reversed(range(0, len(every), PAGES_AT_ONCE)):
            batch = every[start : start + PAGES_AT_ONCE]
            indexed = slice(*np.searchsorted(ids, (batch[0], batch[-1] + 1)).tolist())
            digest_of = dict(zip(ids[indexed].tolist(), digests[indexed].tolist(), strict=True))
            titles = self._reader.titles_of(list(digest_of))
            is_stale = [
                page not in digest_of or anchor_digest(self._anchors(page, titles.get(page, ""))) != digest_of[page]
                for page in batch.tolist()
            ]
            if not self._put_pages(batch[is_stale], stop):
                return False
        self._anchors = _no_anchors
        if self._writer.position != self._place.position:
            self._pass(searchable=True)
        self._write_ranks()
        self._writer.commit(self._writer.position, settled=True)
        return True

    def mark_again(self) -> bool:
        """Marks early pages again with the evidence collected since. Returns whether any mark changed; `step` then
        processes these pages again.
        """
        self.index_lot()
        if self._writer.is_settled and self._writer.position == self._place.position:
            return False
        changed = False
        for site_id in self._reader.site_names():
            marked = [(page._replace(blocks=NO_BLOCKS), parts) for page, parts in self._marks.again(site_id)]
            if self._marks.has_changes:
                with self._feed.transaction() as records:
                    self._marks.store(marked)
                    changes.note(records, [page.url_id for page, _ in marked])
            changed = changed or bool(marked)
        return changed

    def _listen_to(self, pages: Ints) -> None:
        """Loads anchor texts of the pages (ascending) into `_anchors`, without those that repeat a page's own title."""
        self._anchors = _no_anchors  # frees the old ones first
        with translate_errors(self._folder):
            anchors = text_rows.anchors_to(self._reader, pages, self._folder)

        def telling(page: UrlId, title: str) -> tuple[str, ...]:
            texts = set(anchors.of(page))
            words = set(forms(title)) if texts else set()
            return tuple(sorted(text for text in texts if not words.issuperset(forms(text))))

        self._anchors = telling

    def _write_ranks(self) -> None:
        """Stores each page's rank within its site, on the scale of `link_score`."""
        redirects = all_redirects(self._reader)
        ids, ranks = [np.zeros(0, np.int64)], [np.zeros(0)]
        for site in site_rows.sites_read(self._reader):
            urls, reasons = site_rows.page_numbers(self._reader, site)
            pages, fetched = urls[IS_PAGE[reasons]], IS_FETCHED[reasons[IS_PAGE[reasons]]]
            blocks = site_rows.page_link_blocks(self._reader, site)
            with tempfile.TemporaryFile(dir=self._folder) as file:
                links = links_in_file(pages, fetched, blocks, redirects, file)
                scores = link_score(pagerank(links, links_at_once=LINKS_AT_ONCE).scores)
            ids.append(pages[fetched])
            ranks.append(scores[fetched] / 100)
        pages = np.concatenate(ids)
        order = np.argsort(pages)
        write_ranks(self._folder, pages[order], np.concatenate(ranks)[order])

    def _to_index(self, marked: tuple[PageBlocks, Sequence[Part]]) -> PageToIndex:
        page, parts = marked
        return PageToIndex(
            url_id=page.url_id,
            url=page.url,
            site=self._site(page.site_id),
            media_type=page.media_type,
            language=page.language_found or page.language,
            title=page.title,
            blocks=page.blocks,
            parts=parts,
            anchors=self._anchors(page.url_id, page.title),
            when=page.when,
            folded=page.folded_digest,
            noindex=page.reason == Reason.NOINDEX,
        )

    def _site(self, site_id: int) -> SiteKey:
        if site_id not in self._sites:
            self._sites = self._reader.site_names()
        return self._sites[site_id]


def catch_up(place: Place, watch: Watch = lambda done, waiting: False, *, anew: bool = False) -> bool:
    """Updates the index of a collection, which no crawl indexes now, in its cache folder; publishes it if it is shared.
    anew: discards the index first.

    False: stopped by watch; finished work is kept. Raises IndexBusy if another process is indexing, StoreError.
    """
    shared = shared_index(place)
    with shared.publishing(FOLDER) if shared else contextlib.nullcontext(_publish_nothing) as publish:
        if publish is None:
            raise IndexBusy
        with IndexWorker(place) as follower:
            is_whole = finish(follower, watch, anew=anew)
        publish()
    return is_whole


def _publish_nothing() -> None:
    """For an index that is not shared."""


def finish(follower: IndexWorker, watch: Watch, *, listen: bool = True, anew: bool = False) -> bool:
    """Processes all changes of a collection that is not being crawled. False: stopped by watch.

    listen: load anchor texts first and make pages searchable as they are processed. anew: discards the index first.
    """
    if anew:
        follower.begin_anew()
    pages, waiting = follower.pages(), follower.waiting()
    done = 0

    def is_stopped(taken: int = 0) -> bool:
        # passing a page to the engine takes a quarter of its processing time
        left = min(max(waiting - done - taken, 0) + follower.not_put // 4, pages)
        return watch(pages - left, left)

    stopped = is_stopped()
    if not stopped and listen:
        follower.listen()
    is_marked = False
    while not stopped and not is_marked:
        while not stopped and (taken := follower.step(is_stopped)):
            done += taken
            stopped = is_stopped()
        is_marked = not stopped and not follower.mark_again()
    follower.index_lot()
    return not stopped and follower.settle(is_stopped)


def serve() -> None:
    """Main loop of the indexing process. Its order is the collection's folder or address."""
    parent = Parent()
    with contextlib.suppress(OSError, AttributeError):  # not available on every system, and optional
        os.nice(NICENESS)
    gc.freeze()
    gc.set_threshold(GARBAGE_LOOK)
    output = RunnerLink(sys.stdout.fileno())

    def watch(done: int, left: int) -> bool:
        return not output.tell(JobProgress(done, done + left, "indexing"))

    folder = place_at(parent.order)
    if isinstance(folder, str):
        database_at(folder).serve_index(folder, parent, watch)
        return
    while not parent.ended.is_set() or parent.message is not None:
        with contextlib.suppress(IndexBusy), IndexWorker(folder) as worker:
            _follow(folder, worker, parent.ended)
            if parent.message is not None:
                finish(worker, watch, listen=False)
            return
        parent.ended.wait(BUSY_WAIT_S) if not parent.ended.is_set() else time.sleep(BUSY_WAIT_S)


def _follow(folder: Path, follower: IndexWorker, over: threading.Event) -> None:
    while not over.is_set():
        taken = follower.step(lambda taken: over.is_set())
        if is_asked(folder, time.time()):
            follower.flush()
        if not taken:
            over.wait(LOOK_S)


if __name__ == "__main__":
    configure_child()
    serve()
