"""Indexes of incoming links: for small collections built on each change, for large ones by a background process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from periplus.analyse.ego import Grouping, Web, book_graph, web_of
from periplus.analyse.pagerank import pagerank
from periplus.api.cache import LruCache
from periplus.api.homes import cache_folder, full_place, open_reader, place_at
from periplus.children import start_child
from periplus.model.web import Url
from periplus.store import inlinks
from periplus.store.inlinks import InlinkIndexVersion, StoredInlinkIndex
from periplus.store.reader import CollectionReader
from periplus.store.tables import TableQuery
from periplus.urls.canonical import url_id
from periplus.values import Place

SMALL_LINKS = 100_000  # rows; an index of this size takes 0.3 s and is rebuilt on each change
CACHED_INDEXES = 8  # cached small indexes, of up to 2 MB
CACHED_WEBS = 6  # cached webs; each takes about 50 MB at a million URLs
# minimum time between two builds during a crawl: ten million links take 17 s of one core
AGAIN_S = 300.0
FAILED_S = 3_600.0  # before a retry after a failed build, such as a full or read-only disk
MOST_SOURCES = 10_000  # linking pages; with more, a scan finds the first rows as fast
CHILD_NICE = 10  # lower priority than crawls and readers


@dataclass(slots=True)
class InlinkIndexes:
    """Cache of the recently used indexes. Thread-safe."""

    _small: LruCache[tuple[Place, InlinkIndexVersion], StoredInlinkIndex] = field(
        default_factory=lambda: LruCache(CACHED_INDEXES)
    )
    _makers: dict[Place, tuple[subprocess.Popen[bytes], float]] = field(default_factory=dict)
    _webs: LruCache[tuple[Place, InlinkIndexVersion, Grouping, bool], Web] = field(
        default_factory=lambda: LruCache(CACHED_WEBS)
    )

    def of(self, place: Place, reader: CollectionReader) -> StoredInlinkIndex | None:
        """The collection's index, possibly slightly outdated; None if none is usable yet and one is being built.

        reader: to the collection.
        """
        place, moment = full_place(place), inlinks.moment_of(reader)
        with self._small.lock:
            small = self._small.get((place, moment))
            if small is None and inlinks.few_links(reader, SMALL_LINKS):
                small = self._small.put((place, moment), _build_index(reader))
            if small is not None:
                return small
            index = inlinks.open_index(cache_folder(place))
            if index is None or index.moment != moment:
                self._ask(place)
            return index if index is not None and inlinks.still_holds(reader, index.moment) else None

    def web(self, place: Place, index: StoredInlinkIndex, grouping: Grouping, *, menus: bool) -> Web:
        """The graph of nodes of one grouping, from the index."""
        key = (full_place(place), index.moment, grouping, menus)
        return self._webs.get_or_make(key, lambda: web_of(index.links, grouping, menus=menus))

    def _ask(self, place: Place) -> None:
        """Starts a build of the index, unless one is running or ended just now."""
        maker, begun = self._makers.get(place, (None, 0.0))
        if maker is not None and (
            maker.poll() is None or time.monotonic() - begun < (FAILED_S if maker.returncode else AGAIN_S)
        ):
            return
        silence = subprocess.DEVNULL
        # an address has a password, which other users would see in the child's arguments
        options: dict[str, Any] = {"stdout": silence, "stderr": silence, "start_new_session": False}
        child = start_child("-m", __name__, order=str(place), **options)
        if child.stdin is not None:
            child.stdin.close()
        self._makers[place] = child, time.monotonic()

    def finish(self) -> None:
        """Waits for running builds."""
        for maker, _ in list(self._makers.values()):
            maker.wait()


def narrow_query(
    place: Place, reader: CollectionReader, table: str, query: TableQuery, indexes: InlinkIndexes
) -> TableQuery:
    """Restricts a query by link target or visited URL to the rows that the index lists for it. A database lists the
    linking pages itself.
    """
    column = {"links": "target", "visits": "url"}.get(table)
    text = next((text for name, text in query.conditions if name == column), "")
    if not text.startswith(("http://", "https://")):
        return query
    url = Url(text)
    if not isinstance(place, Path):
        sources = reader.linking_pages(url_id(url), MOST_SOURCES + 1) if table == "links" else []
        return replace(query, within=("source", tuple(sources))) if 0 < len(sources) <= MOST_SOURCES else query
    if (index := indexes.of(place, reader)) is None:
        return query
    if table == "visits":
        return replace(query, within=("id", tuple(index.visits_of(reader, url))))
    many, sources = index.linking(reader, url_id(url), MOST_SOURCES)
    return replace(query, within=("source", (*sources, url_id(url)))) if many <= MOST_SOURCES else query


def _build_index(reader: CollectionReader) -> StoredInlinkIndex:
    index = inlinks.read(reader)
    rank = pagerank(book_graph(index.links), tolerance=1e-6).scores.astype(np.float32)
    return replace(index, links=replace(index.links, rank=rank))


def make(place: Place) -> None:
    """Builds and stores the collection's index. Raises NoCollection, StoreError, OSError."""
    # no snapshot: it would keep a crawl's WAL from being truncated
    with open_reader(place) as reader:
        folder = cache_folder(place)
        folder.mkdir(exist_ok=True)
        inlinks.write(folder, _build_index(reader))


if __name__ == "__main__":
    os.nice(CHILD_NICE)
    make(place_at(json.loads(sys.stdin.readline())))
