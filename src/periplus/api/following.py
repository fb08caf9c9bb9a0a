"""How does the search index follow a collection, while it is crawled and afterwards?

A follower reads which pages changed, has them indexed, and only then moves its place. Killed anywhere, the next one does the last batch
again: pages are put in place of their earlier selves, so nothing is there twice. While a crawl runs it is a process of its own, told by a
line on its standard input that the crawl is over; when that input ends without the line, whoever started it is dead, and it ends too.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from periplus.analyse.linkgraph import link_graph
from periplus.analyse.pagerank import link_score, pagerank
from periplus.api.indexing import END
from periplus.api.marking import Marks
from periplus.document.words import forms
from periplus.errors import StoreError
from periplus.model.page import Part
from periplus.model.search import PageToIndex
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, UrlId
from periplus.search.asking import Searcher
from periplus.search.fields import said_digest
from periplus.search.index import NOTHING, IndexBusy, IndexWriter, read_state
from periplus.search.ranks import write_ranks
from periplus.settings import Searching
from periplus.store.sqlite import block_rows, changes, graph_rows, reading, runs, schema
from periplus.store.sqlite.block_rows import PageBlocks
from periplus.store.sqlite.changes import Place
from periplus.urls.canonical import url_id

FOLLOWER = "search"
BATCH_PAGES = 200  # read at once
PAGES_OF_A_PASS = 200_000  # whose anchors are gathered at once: some 300 MB at worst, and one pass through all links
LOOK_S = 2.0  # between two commits, and two looks at what changed: so far the index may be behind a crawl that is not quicker than we
NICENESS = 5  # the crawl comes first where cores are few
GARBAGE_LOOK = 50_000  # objects made between two looks for circles: a batch has 90,000 blocks and none; by Python's own 700 it is 4 % of the time
BUSY_WAIT_S = 0.5  # until another process may have ended its writing
_THROUGH = (1 << 63) - 1  # the position of one that has seen every page once

Watch = Callable[[int, int], bool]  # (pages done, pages waiting) -> stop


def position_of(place: Place) -> tuple[int, int]:
    """A place as the index keeps it: first how far the first round came, then the last change."""
    return (_THROUGH if place.scanned is None else place.scanned, place.seq)


class Follower:
    """Brings one collection's index up to date. Raises IndexBusy while another does, StoreError, NoCollection."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with contextlib.ExitStack() as held:
            self._connection = held.enter_context(contextlib.closing(schema.connect(folder)))
            self._lock = held.enter_context(contextlib.closing(schema.WriteLock(folder)))
            first = runs.run_records(self._connection)[:1]
            self._writer = held.enter_context(contextlib.closing(IndexWriter(folder, str(first[0].started) if first else "")))
            self._place = self._begin()
            self._held = held.pop_all()
        self._marks = Marks(self._connection)
        self._sites: dict[int, SiteKey] = {}
        self._anchors: Mapping[UrlId, Sequence[str]] = {}  # known only once all links are: see `settle`
        self._listened = False

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._held.close()

    def _begin(self) -> Place:
        """The place to go on from: the index's own, where it is the later one; the beginning, where the index is missing something."""
        with self._lock.transaction(self._connection):
            place = changes.place_of(self._connection, FOLLOWER)
            if place is None or self._writer.position < position_of(place):
                changes.unfollow(self._connection, FOLLOWER)
                if self._writer.position != NOTHING:
                    self._writer.clear()
            return changes.follow(self._connection, FOLLOWER)

    def begin_anew(self) -> None:
        """Forgets what is indexed."""
        with self._lock.transaction(self._connection):
            changes.unfollow(self._connection, FOLLOWER)
        self._place = self._begin()

    def waiting(self) -> int:
        """Pages and changes not looked at yet."""
        return changes.waiting(self._connection, self._place)

    def listen(self) -> None:
        """Gathers what others call the pages that are next, so that they need not be indexed twice: for when nobody crawls."""
        ids, _ = changes.after(self._connection, self._place, PAGES_OF_A_PASS)
        self._anchors = self._telling(ids) if ids else {}
        self._listened = True

    def step(self) -> int:
        """Takes in what changed, for LOOK_S at most, and makes it searchable; says how many pages it looked at. 0: nothing is left."""
        started, taken, place = time.monotonic(), 0, self._place
        marked: list[tuple[PageBlocks, Sequence[Part]]] = []
        while time.monotonic() - started < LOOK_S:
            ids, place = changes.after(self._connection, place, BATCH_PAGES)
            if not ids:
                break
            pages = list(block_rows.pages_of(self._connection, ids))
            some = list(zip(pages, self._marks.of(pages), strict=True))
            self._writer.put(map(self._to_index, some), heard=self._listened)
            self._writer.remove(set(ids) - {page.url_id for page in pages})
            marked += [(page._replace(blocks=()), parts) for page, parts in some]
            taken += len(ids)
        if place != self._place:
            self._writer.commit(position_of(place))
            with self._lock.transaction(self._connection):
                self._marks.store(marked)
                changes.passed(self._connection, FOLLOWER, place)
            self._place = place
        return taken

    def settle(self, stop: Callable[[], bool]) -> None:
        """What needs the collection as a whole: ranks, and the words of links to pages. Pages of which others speak otherwise than when they
        were indexed are indexed again."""
        if self._writer.settled:
            return
        self._mark_again()
        self._write_ranks()
        said = sorted(Searcher(self._folder, Searching()).said().items())
        for start in range(0, len(said), PAGES_OF_A_PASS):
            some = dict(said[start : start + PAGES_OF_A_PASS])
            self._anchors = self._telling(some)
            stale = [page for page, digest in some.items() if said_digest(self._anchors.get(page, ())) != digest]
            for first in range(0, len(stale), BATCH_PAGES):
                if stop():
                    return
                unread = [page for page in stale[first : first + BATCH_PAGES] if not self._writer.say(page, self._anchors.get(page, ()))]
                pages = block_rows.pages_of(self._connection, unread)
                self._writer.put(self._to_index((page, page.parts or ())) for page in pages)
        self._anchors = {}
        self._writer.commit(self._writer.position, settled=True)

    def _mark_again(self) -> None:
        """Pages that were marked while little was known of their sites."""
        for site_id in graph_rows.site_names(self._connection):
            marked = list(self._marks.again(site_id))
            self._writer.put(map(self._to_index, marked), heard=False)
            if self._marks.changed:
                self._writer.commit(self._writer.position)  # before the marks are stored: killed in between, it is done again
                with self._lock.transaction(self._connection):
                    self._marks.store(marked)

    def _telling(self, pages: Collection[UrlId]) -> dict[UrlId, tuple[str, ...]]:
        """By page, what others call it that its own title does not say."""
        found = block_rows.anchors_to(self._connection, pages)
        telling = {}
        for page, anchors in found.items():
            title = set(forms(graph_rows.title_of(self._connection, page)))
            texts = {anchor.text for anchor in anchors if not title.issuperset(forms(anchor.text))}
            if texts:
                telling[page] = tuple(sorted(texts))
        return telling

    def _write_ranks(self) -> None:
        """Each page's rank within its site, on the scale of `link_score`."""
        ranks: dict[int, float] = {}
        redirects = graph_rows.redirects(self._connection)
        for site in graph_rows.sites_read(self._connection):
            urls = graph_rows.site_urls(self._connection, site)
            graph = link_graph(urls, graph_rows.page_links(self._connection, site), redirects)
            scores = link_score(pagerank(graph).scores).tolist()
            ranks |= {url_id(url): score / 100 for url, score, fetched in zip(graph.pages, scores, graph.indexed.tolist(), strict=True) if fetched}
        ids = sorted(ranks)
        write_ranks(self._folder, ids, [ranks[page] for page in ids])

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
            anchors=self._anchors.get(page.url_id, ()),
            when=page.last_modified or page.fetched,
            folded=page.folded_md5,
            noindex=page.reason == Reason.NOINDEX,
        )

    def _site(self, site_id: int) -> SiteKey:
        if site_id not in self._sites:
            self._sites = graph_rows.site_names(self._connection)
        return self._sites[site_id]


def catch_up(folder: Path, watch: Watch = lambda done, waiting: False) -> bool:
    """Brings the index up to date with a collection that nobody crawls. False: watch stopped it; what was done by then stays.
    Raises IndexBusy where another process is at it, StoreError."""
    with Follower(folder) as follower:
        done, waiting = 0, follower.waiting()
        follower.listen()
        while taken := follower.step():
            done += taken
            if watch(done, max(waiting - done, 0)):
                return False
        follower.settle(lambda: watch(done, 0))
    return True


def brought_up(folder: Path, anew: bool, watch: Watch) -> str:
    """Brings the index up to date, or makes it anew; says in a sentence how it stands. Raises StoreError while another process is at it."""
    try:
        if anew:
            with Follower(folder) as follower:
                follower.begin_anew()
        waiting, _ = standing(folder)
        whole = catch_up(folder, watch)
    except IndexBusy:
        raise StoreError(f"another process is indexing {folder}: a crawl, or a search. Wait for its end.") from None
    return f"{waiting} pages and changes were indexed" if whole and waiting else "the index is up to date" if whole else "indexing was stopped"


def standing(folder: Path) -> tuple[int, bool]:
    """(pages and changes that the index does not hold yet, whether it is settled); changes nothing."""
    state = read_state(folder)
    with contextlib.closing(reading.connect(folder)) as connection:
        place = changes.place_of(connection, FOLLOWER)
        if place is None or state is None or state.position < position_of(place):
            place = Place(0, -_THROUGH - 1)
        return changes.waiting(connection, place), state is not None and state.settled


def serve(told: BinaryIO) -> None:
    """The life of that process. told: the collection's folder, then END, each a line."""
    folder = Path(os.fsdecode(told.readline().rstrip(b"\n")))
    heard: list[bytes] = []
    over = threading.Event()

    def listen() -> None:
        heard.append(told.readline())
        over.set()

    threading.Thread(target=listen, daemon=True).start()
    with contextlib.suppress(OSError, AttributeError):  # not every system has it, and it is a courtesy
        os.nice(NICENESS)
    gc.freeze()
    gc.set_threshold(GARBAGE_LOOK)
    while not over.is_set() or heard == [END]:
        with contextlib.suppress(IndexBusy), Follower(folder) as follower:
            _follow(follower, over)
            if heard == [END]:
                follower.listen()
                while follower.step():
                    pass
                follower.settle(lambda: False)
            return
        over.wait(BUSY_WAIT_S) if not over.is_set() else time.sleep(BUSY_WAIT_S)


def _follow(follower: Follower, over: threading.Event) -> None:
    while not over.is_set():
        if not follower.step():
            over.wait(LOOK_S)


if __name__ == "__main__":
    serve(sys.stdin.buffer)
