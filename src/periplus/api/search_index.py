"""The search index of a collection: follows it while it is crawled and afterwards."""

from __future__ import annotations

import contextlib
import gc
import logging
import math
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
from periplus.api.homes import folder_of
from periplus.api.marks import Marks
from periplus.api.shared_index import INDEX, StillAlone, publish_index, publishing, shared_index, take_over_index
from periplus.children import Parent, RunnerLink
from periplus.document.words import forms
from periplus.errors import StoreError
from periplus.model.arrays import Ints
from periplus.model.job import JobProgress
from periplus.model.page import NO_BLOCKS, Part
from periplus.model.search import PageToIndex
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, UrlId
from periplus.search.asking import Searcher
from periplus.search.index import (
    NOTHING,
    IndexBusy,
    IndexWriter,
    anchor_digest,
    is_asked,
    only_writer,
    read_state,
    translated,
    write_ranks,
)
from periplus.settings import Searching
from periplus.store.crawl_reads import PageBlocks
from periplus.store.postgres.address import address_of, is_address
from periplus.store.sqlite import changes, index_rows, reading, schema, site_rows, text_rows
from periplus.store.sqlite.changes import ChangeCursor
from periplus.store.sqlite.text_rows import PAGES_AT_ONCE

# A follower reads which pages changed, has them indexed, and only then moves its place. Killed anywhere, the next one
# does it again from there: pages are put in place of their earlier selves, so nothing is there twice. While a crawl
# runs it is a process of its own, told by a line on its standard input that the crawl is over; when that input ends
# without the line, whoever started it is dead, and it ends too. It marks pages and cuts them into terms as they come;
# the engine takes them once, with the words of links to them, when the crawl is over, or as they come while somebody
# searches.

BATCH_PAGES = 200  # read at once
LINKS_AT_ONCE = 1 << 20  # of a rank's round: 25 MB
# between two commits, and two looks at what changed: so far the index may be behind a crawl that is not quicker than we
LOOK_S = 2.0
NICENESS = 5  # the crawl comes first where cores are few
# objects made between two looks for circles: a batch has 90,000 blocks and none; by Python's own
# 700 it is 4 % of the time
GARBAGE_LOOK = 50_000
BUSY_WAIT_S = 0.5  # until another process may have ended its writing
ROUND_S = 20.0  # between two publications while a crawl goes on: so far what others search is behind it
REST = 4  # times as long as a round took is waited after it: of a large collection it reads through each table
LEAVE_S = 10.0  # when the crawl is over, for another process to end its round; what it lacks the next search adds

log = logging.getLogger(__name__)

Watch = Callable[[int, int], bool]  # (pages indexed, pages to go) -> stop
Telling = Callable[[UrlId], Sequence[str]]  # what others call a page


def _nothing_told(page: UrlId) -> Sequence[str]:
    return ()


class IndexWorker:
    """Brings one collection's index up to date. Raises IndexBusy while another does, StoreError, NoCollection."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with contextlib.ExitStack() as held:
            self._connection = held.enter_context(contextlib.closing(schema.connect(folder)))
            self._lock = held.enter_context(contextlib.closing(schema.WriteLock(folder)))
            collection = index_rows.collection_key(self._connection)
            self._writer = held.enter_context(contextlib.closing(IndexWriter(folder, collection)))
            self._place = self._begin()
            self._held = held.pop_all()
        self._marks = Marks(self._connection)
        self._sites: dict[int, SiteKey] = {}
        self._anchors: Telling = _nothing_told  # known only once all links are: see `settle`
        self._listened = False
        self._complete = np.zeros(0, np.int64)  # pages that are put with all words of links to them, ascending
        self._waiting = array("q")  # pages that `step` took in and that are not given to the engine yet

    def __enter__(self) -> IndexWorker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def _begin(self) -> ChangeCursor:
        """The place to go on from: the index's own, where it is the later one; else the beginning."""
        with self._lock.transaction(self._connection):
            place = changes.place_of(self._connection, changes.INDEX)
            if place is None or self._writer.position < place.position:
                changes.unfollow(self._connection, changes.INDEX)
                if self._writer.position != NOTHING:
                    self._writer.clear()
            return changes.follow(self._connection, changes.INDEX)

    def begin_anew(self) -> None:
        """Forgets what is indexed."""
        with self._lock.transaction(self._connection):
            changes.unfollow(self._connection, changes.INDEX)
        self._place = self._begin()

    def pages(self) -> int:
        """Of the collection."""
        return text_rows.tally(self._connection)[0]

    def waiting(self) -> int:
        """Pages and changes not looked at yet."""
        return changes.waiting(self._connection, self._place)

    def listen(self) -> None:
        """Gathers what others call the pages that are next, so that these are indexed once: for when nobody crawls."""
        self._complete = index_rows.pages_after(self._connection, self._place, PAGES_AT_ONCE)
        self._listen_to(self._complete)
        self._listened = True

    def _is_put(self, place: ChangeCursor) -> bool:
        """Whether what is read up to a place is given to the engine at once: words of links are asked for in order."""
        return self._listened and (place.scanned is not None or len(self._complete) <= PAGES_AT_ONCE)

    def step(self, watch: Callable[[int], bool] = lambda taken: False) -> int:
        """Takes in what changed, for LOOK_S at most; returns how many pages it looked at. It is searchable then where
        `listen` was called before; else `flush` and `settle` make it so.

        0: nothing is left. watch: called with how many these are so far; True ends the step.
        """
        started, taken, place, is_put = time.monotonic(), 0, self._place, self._is_put(self._place)
        marked: list[tuple[PageBlocks, Sequence[Part]]] = []
        while time.monotonic() - started < LOOK_S:
            ids, after = changes.after(self._connection, place, BATCH_PAGES)
            if taken and self._is_put(after) != is_put:
                break
            place, is_put = after, self._is_put(after)
            if not ids:
                break
            pages = list(text_rows.pages_of(self._connection, ids))
            some = list(zip(pages, self._marks.of(pages), strict=True))
            (self._writer.put if is_put else self._writer.keep)(map(self._to_index, some))
            self._writer.remove(set(ids) - {page.url_id for page in pages})
            self._waiting.extend(() if is_put else (page.url_id for page in pages))
            marked += [(page._replace(blocks=NO_BLOCKS), parts) for page, parts in some]
            taken += len(ids)
            if watch(taken):
                break
        if place != self._place:
            self._place = place
            self._pass(marked, searchable=is_put)
        return taken

    def _pass(self, marked: Iterable[tuple[PageBlocks, Sequence[Part]]] = (), *, searchable: bool) -> None:
        """Stores marks; searchable: and commits the index before, and moves the place that others see."""
        if searchable:
            self._writer.commit(self._place.position)
        with self._lock.transaction(self._connection):
            self._marks.store(marked)
            if searchable:
                changes.passed(self._connection, changes.INDEX, self._place)

    @property
    def not_put(self) -> int:
        """Pages that `step` took in and that are not given to the engine yet."""
        return len(self._waiting)

    def flush(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Makes searchable what `step` took in, without words of links to it. False: stop ended it."""
        self._anchors = _nothing_told
        is_whole = self._put_each(self._in_order(), stop)
        if is_whole and self._writer.position != self._place.position:
            self._pass(searchable=True)
        return is_whole

    def _in_order(self) -> Ints:
        waiting = np.unique(np.array(self._waiting, np.int64))
        self._waiting = array("q", waiting.tobytes())
        return waiting

    def _put_each(self, ids: Ints, stop: Callable[[], bool]) -> bool:
        """Gives the engine pages, ascending by id, from the last one on; they wait no longer then, nor do any behind
        the first of them. False: stop ended it.
        """
        for end in range(len(ids), 0, -BATCH_PAGES):
            if stop():
                return False
            some = list(map(UrlId, ids[max(end - BATCH_PAGES, 0) : end].tolist()))
            unread = [page for page in some if not self._writer.put_kept(page, self._anchors(page))]
            pages = text_rows.pages_of(self._connection, unread)
            self._writer.put(self._to_index((page, page.parts or ())) for page in pages)
            del self._waiting[bisect_left(self._waiting, some[0]) :]
        return True

    def settle(self, stop: Callable[[], bool]) -> bool:
        """Makes searchable what `step` took in, with what needs the collection as a whole: ranks, and the words of
        links to pages. For when nobody crawls.

        Pages of which others speak otherwise than when they were indexed are indexed again. False: stop ended it.
        """
        if self._writer.settled and self._writer.position == self._place.position:
            return True
        waiting = self._in_order()
        ids, digests = Searcher(self._folder, Searching()).link_words()
        is_unsure = ~np.isin(ids, np.concatenate((self._complete, waiting)))
        ids, digests = ids[is_unsure], digests[is_unsure]
        every = np.union1d(ids, waiting)
        if not np.isin(every, self._complete).all():  # else these words are dealt already
            self._listen_to(every)
        for start in reversed(range(0, len(every), PAGES_AT_ONCE)):
            some = every[start : start + PAGES_AT_ONCE]
            indexed = slice(*np.searchsorted(ids, (some[0], some[-1] + 1)).tolist())
            digest_of = dict(zip(ids[indexed].tolist(), digests[indexed].tolist(), strict=True))
            is_stale = [
                page not in digest_of or anchor_digest(self._anchors(page)) != digest_of[page] for page in some.tolist()
            ]
            if not self._put_each(some[is_stale], stop):
                return False
        self._anchors = _nothing_told
        if self._writer.position != self._place.position:
            self._pass(searchable=True)
        self._write_ranks()
        self._writer.commit(self._writer.position, settled=True)
        return True

    def mark_again(self) -> bool:
        """Marks pages anew that were marked while little was known of their sites. Whether any is marked otherwise now:
        `step` has them next.
        """
        if self._writer.settled and self._writer.position == self._place.position:
            return False
        changed = False
        for site_id in site_rows.site_names(self._connection):
            marked = [(page._replace(blocks=NO_BLOCKS), parts) for page, parts in self._marks.again(site_id)]
            if self._marks.changed:
                with self._lock.transaction(self._connection):
                    self._marks.store(marked)
                    changes.note(self._connection, [page.url_id for page, _ in marked])
            changed = changed or bool(marked)
        return changed

    def _listen_to(self, pages: Ints) -> None:
        """Has `_anchors` tell of each of the pages, ascending, what others call it that its own title does not say."""
        self._anchors = _nothing_told  # those before are forgotten first
        with translated(self._folder):
            anchors = text_rows.anchors_to(self._connection, pages, self._folder)

        def telling(page: UrlId) -> tuple[str, ...]:
            texts = set(anchors.of(page))
            title = set(forms(site_rows.title_of(self._connection, page))) if texts else set()
            return tuple(sorted(text for text in texts if not title.issuperset(forms(text))))

        self._anchors = telling

    def _write_ranks(self) -> None:
        """Each page's rank within its site, on the scale of `link_score`."""
        redirects = site_rows.redirects(self._connection)
        ids, ranks = [np.zeros(0, np.int64)], [np.zeros(0)]
        for site in site_rows.sites_read(self._connection):
            urls, reasons = site_rows.page_numbers(self._connection, site)
            pages, fetched = urls[IS_PAGE[reasons]], IS_FETCHED[reasons[IS_PAGE[reasons]]]
            blocks = site_rows.page_link_blocks(self._connection, site)
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
            anchors=self._anchors(page.url_id),
            when=page.when,
            folded=page.folded_md5,
            noindex=page.reason == Reason.NOINDEX,
        )

    def _site(self, site_id: int) -> SiteKey:
        if site_id not in self._sites:
            self._sites = site_rows.site_names(self._connection)
        return self._sites[site_id]


def catch_up(folder: Path, watch: Watch = lambda done, waiting: False, *, anew: bool = False) -> bool:
    """Brings the index up to date with a collection that nobody crawls; of one in a database also the index that all
    its readers share, from which it begins. anew: it is thrown away first.

    False: watch stopped it; what was done by then stays. Raises IndexBusy where another process is at it, StoreError.
    """
    shared = shared_index(folder)
    if shared is None:
        with IndexWorker(folder) as follower:
            return _finished(follower, watch, anew=anew)
    trouble: list[StoreError] = []  # with the place: what could be done here is done before it is told
    with publishing(shared.address, INDEX) as still_alone:
        try:
            take_over_index(shared) if not anew else None
        except StoreError as error:
            trouble.append(error)
        if still_alone is None:
            raise IndexBusy
        with IndexWorker(folder) as follower:
            is_whole = _finished(follower, watch, anew=anew)
        with only_writer(folder):
            publish_index(shared, still_alone) if not trouble else None
    if trouble:
        raise trouble[0]
    return is_whole


def _finished(follower: IndexWorker, watch: Watch, *, listen: bool = True, anew: bool = False) -> bool:
    """Takes in all that is left of a collection that nobody crawls. False: watch stopped it.

    listen: the words of links to pages are gathered first, and pages are searchable as they are taken in. anew: what
    is indexed is forgotten before.
    """
    if anew:
        follower.begin_anew()
    pages, waiting = follower.pages(), follower.waiting()
    done = 0

    def is_stopped(taken: int = 0) -> bool:
        # of what is done to a page a quarter comes when it is given to the engine
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
    return not stopped and follower.settle(is_stopped)


def brought_up(folder: Path, anew: bool, watch: Watch) -> str:
    """Brings the index up to date, or makes it anew; says in a sentence how it stands.

    Raises StoreError while another process is at it.
    """
    with reading.opened(folder) as connection:
        waiting = text_rows.tally(connection)[0] if anew else standing_of(folder, connection)[0]
    try:
        is_whole = catch_up(folder, watch, anew=anew)
    except IndexBusy:
        raise StoreError(f"another process is indexing {folder}: a crawl, or a search. Wait for its end.") from None
    return (
        f"{waiting} pages and changes were indexed"
        if is_whole and waiting
        else "the index is up to date"
        if is_whole
        else "indexing was stopped"
    )


def standing(folder: Path) -> tuple[int, bool]:
    """(pages and changes that the index does not hold yet, whether it is settled); changes nothing."""
    with reading.opened(folder) as connection:
        return standing_of(folder, connection)


def standing_of(folder: Path, connection: reading.Connection) -> tuple[int, bool]:
    state, place = read_state(folder), changes.place_of(connection, changes.INDEX)
    if place is None or state is None or state.position < place.position:
        place = ChangeCursor(0, -changes.THROUGH - 1)
    return changes.waiting(connection, place), state is not None and state.settled


def serve() -> None:
    """The life of that process. Its order is the collection's folder, or its address."""
    parent = Parent()
    with contextlib.suppress(OSError, AttributeError):  # not every system has it, and it is a courtesy
        os.nice(NICENESS)
    gc.freeze()
    gc.set_threshold(GARBAGE_LOOK)
    output = RunnerLink(sys.stdout.fileno())

    def watch(done: int, left: int) -> bool:
        return not output.tell(JobProgress(done, done + left, "indexing"))

    if is_address(parent.order):
        _serve_all(parent.order, parent, watch)
        return
    folder = Path(parent.order)
    while not parent.ended.is_set() or parent.message is not None:
        with contextlib.suppress(IndexBusy), IndexWorker(folder) as worker:
            _follow(folder, worker, parent.ended)
            if parent.message is not None:
                _finished(worker, watch, listen=False)
            return
        parent.ended.wait(BUSY_WAIT_S) if not parent.ended.is_set() else time.sleep(BUSY_WAIT_S)


# Of a collection in a database one such process indexes, of whichever machine: it brings its copy up to date again and
# again, and publishes what it made. The others wait, for that one may die.


def _serve_all(address: str, parent: Parent, watch: Watch) -> None:
    """Keeps up to date what all readers share, until the crawl is over and all is published, or the parent is dead."""
    until = math.inf
    while parent.message is not None or not parent.ended.is_set():
        if parent.ended.is_set():
            until = min(until, time.monotonic() + LEAVE_S)
        try:
            with publishing(address_of(address), INDEX) as still_alone:
                if still_alone is not None and _follow_all(address, still_alone, parent, watch):
                    return
        except (StoreError, IndexBusy) as error:  # the database or the place is away: it may come back
            log.warning("index trouble=%s", str(error) or "busy")
        if time.monotonic() > until:
            return
        parent.ended.wait(BUSY_WAIT_S) if not parent.ended.is_set() else time.sleep(BUSY_WAIT_S)


def _follow_all(address: str, still_alone: StillAlone, parent: Parent, watch: Watch) -> bool:
    """False: the copy was made anew, and so the work begins anew. Raises IndexBusy, StoreError."""
    folder = folder_of(address)
    shared = shared_index(folder)
    if shared is None:
        return True
    take_over_index(shared)
    file = schema.file_number(folder)
    with IndexWorker(folder) as worker:
        while True:
            started, is_over = time.monotonic(), parent.ended.is_set()
            folder_of(address)
            if schema.file_number(folder) != file:
                return False
            while not parent.ended.is_set() and worker.step(lambda taken: parent.ended.is_set()):
                pass
            if is_over:
                break
            worker.flush(parent.ended.is_set)
            publish_index(shared, still_alone)
            parent.ended.wait(max(ROUND_S, REST * (time.monotonic() - started)))
        if parent.message is not None:
            _finished(worker, watch, listen=False)
    if parent.message is not None:
        with only_writer(folder):
            publish_index(shared, still_alone)
    return True


def _follow(folder: Path, follower: IndexWorker, over: threading.Event) -> None:
    while not over.is_set():
        taken = follower.step(lambda taken: over.is_set())
        if is_asked(folder, time.time()):
            follower.flush()
        if not taken:
            over.wait(LOOK_S)


if __name__ == "__main__":
    serve()
