"""Where is the book of a collection's links, and who makes it? Small ones are made as they are asked for, large ones beside the server."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from periplus.analyse.ego import Grouping, Web, book_graph, web_of
from periplus.analyse.pagerank import pagerank
from periplus.model.web import Url
from periplus.store.sqlite import inlinks, reading
from periplus.store.sqlite.browsing import Wish
from periplus.store.sqlite.inlinks import KeptBook, Moment
from periplus.urls.canonical import url_id

__all__ = ["KeptBook", "LinkBooks", "Moment", "make"]

SMALL_LINKS = 100_000  # rows: a book of so many is made in 0.3 s, and of each moment anew
REMEMBERED = 8  # small books, of 2 MB at most
WEBS_REMEMBERED = 6  # of a million URLs each takes some 50 MB
AGAIN_S = 300.0  # between two books of one collection that goes on being crawled: of ten million links one takes 17 s of a core
FAILED_S = 3_600.0  # before another try where none could be made: the disk is full, or only read
NARROWED = 10_000  # pages that link to one: of more, those that lie first on disk are found as soon
CHILD_NICE = 10  # whoever crawls or reads goes first


@dataclass(slots=True)
class LinkBooks:
    """The books that somebody just asked for. For many threads."""

    _small: OrderedDict[tuple[Path, Moment], KeptBook] = field(default_factory=OrderedDict)
    _makers: dict[Path, tuple[subprocess.Popen[bytes], float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _webs: OrderedDict[tuple[Path, Moment, Grouping, bool], Web] = field(default_factory=OrderedDict)
    _web_lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, folder: Path, connection: reading.Connection) -> KeptBook | None:
        """The collection's book, perhaps of a moment ago; None: none serves as yet, and one is being made. connection: to the collection."""
        folder, moment = folder.resolve(), inlinks.moment_of(connection)
        with self._lock:
            if (found := self._small.get((folder, moment))) is not None:
                self._small.move_to_end((folder, moment))
                return found
            if inlinks.few_links(connection, SMALL_LINKS):
                self._small[folder, moment] = found = _made(connection)
                while len(self._small) > REMEMBERED:
                    self._small.popitem(last=False)
                return found
            kept = inlinks.opened(folder)
            if kept is None or kept.moment != moment:
                self._ask(folder)
            return kept if kept is not None and inlinks.still_holds(connection, kept.moment) else None

    def web(self, folder: Path, book: KeptBook, grouping: Grouping, *, menus: bool) -> Web:
        """The book's nodes of a kind and the links between them."""
        key = (folder.resolve(), book.moment, grouping, menus)
        with self._web_lock:
            if key not in self._webs:
                self._webs[key] = web_of(book.links, grouping, menus=menus)
                while len(self._webs) > WEBS_REMEMBERED:
                    self._webs.popitem(last=False)
            self._webs.move_to_end(key)
            return self._webs[key]

    def _ask(self, folder: Path) -> None:
        """Has the book made, unless it is under way or was made just now."""
        maker, begun = self._makers.get(folder, (None, 0.0))
        if maker is not None and (maker.poll() is None or time.monotonic() - begun < (FAILED_S if maker.returncode else AGAIN_S)):
            return
        command = [sys.executable, "-m", "periplus.api.link_books", str(folder)]
        made = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._makers[folder] = made, time.monotonic()

    def finish(self) -> None:
        """Waits for those that are being made."""
        for maker, _ in list(self._makers.values()):
            maker.wait()


def narrowed(folder: Path, connection: reading.Connection, table: str, wish: Wish, books: LinkBooks) -> Wish:
    """The same wish, and where it names a link's target or a visit's URL, with the rows that a book knows to be the only ones."""
    asked = {"links": "target", "visits": "url"}.get(table)
    text = next((text for name, text in wish.conditions if name == asked), "")
    if not text.startswith(("http://", "https://")) or (book := books.of(folder, connection)) is None:
        return wish
    url = Url(text)
    if table == "visits":
        return replace(wish, within=("id", tuple(inlinks.visits_of(connection, book, url))))
    many, sources = inlinks.linking(connection, book, url_id(url), NARROWED)
    return replace(wish, within=("l.source", (*sources, url_id(url)))) if many <= NARROWED else wish


def _made(connection: reading.Connection) -> KeptBook:
    book = inlinks.read(connection)
    rank = pagerank(book_graph(book.links), tolerance=1e-6).scores.astype(np.float32)
    return replace(book, links=replace(book.links, rank=rank))


def make(folder: Path) -> None:
    """Writes the collection's book. Raises NoCollection, StoreError, OSError."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():  # no snapshot: for its time a crawl's log could not be cut
        inlinks.write(folder, _made(connection))


if __name__ == "__main__":
    os.nice(CHILD_NICE)
    make(Path(sys.argv[1]))
