"""What is near a page of a collection by links, and the book of a collection's links from which that is read."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from periplus.analyse.ego import Grouping, Neighbourhood, NeighbourhoodQuery, Web, book_graph, neighbourhood, web_of
from periplus.analyse.pagerank import link_score, pagerank
from periplus.errors import UsageError
from periplus.model.graph import LinkGraph
from periplus.model.results import About, PageColumns
from periplus.model.visit import STATE_OF, Reason, State
from periplus.model.web import Url
from periplus.present.graphs import write_gexf
from periplus.present.network import Ego, EgoNode
from periplus.present.wording import count_of, labels, short, without_site_name
from periplus.store.sqlite import inlinks, listing, page_rows, reading, runs
from periplus.store.sqlite.inlinks import InlinkIndexVersion, StoredInlinkIndex
from periplus.store.sqlite.page_rows import Brief
from periplus.store.sqlite.tables import TableQuery
from periplus.urls.canonical import url_id
from periplus.urls.scope import site_key

__all__ = [
    "Around",
    "Grouping",
    "InlinkIndexVersion",
    "InlinkIndexes",
    "Neighbour",
    "NeighbourRequest",
    "StoredInlinkIndex",
    "around",
    "drawn",
    "look",
    "make",
    "write_neighbours",
]


SMALL_LINKS = 100_000  # rows: a book of so many is made in 0.3 s, and of each moment anew
REMEMBERED = 8  # small books, of 2 MB at most
WEBS_REMEMBERED = 6  # of a million URLs each takes some 50 MB
# between two books of one collection that goes on being crawled: of ten million links one takes 17 s of a core
AGAIN_S = 300.0
FAILED_S = 3_600.0  # before another try where none could be made: the disk is full, or only read
NARROWED = 10_000  # pages that link to one: of more, those that lie first on disk are found as soon
CHILD_NICE = 10  # whoever crawls or reads goes first


@dataclass(slots=True)
class InlinkIndexes:
    """The books that somebody just asked for. For many threads."""

    _small: OrderedDict[tuple[Path, InlinkIndexVersion], StoredInlinkIndex] = field(default_factory=OrderedDict)
    _makers: dict[Path, tuple[subprocess.Popen[bytes], float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _webs: OrderedDict[tuple[Path, InlinkIndexVersion, Grouping, bool], Web] = field(default_factory=OrderedDict)
    _web_lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, folder: Path, connection: reading.Connection) -> StoredInlinkIndex | None:
        """The collection's book, perhaps of a moment ago; None: none serves as yet, and one is being made.

        connection: to the collection.
        """
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

    def web(self, folder: Path, book: StoredInlinkIndex, grouping: Grouping, *, menus: bool) -> Web:
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
        if maker is not None and (
            maker.poll() is None or time.monotonic() - begun < (FAILED_S if maker.returncode else AGAIN_S)
        ):
            return
        command = [sys.executable, "-m", "periplus.api.neighbours", str(folder)]
        made = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._makers[folder] = made, time.monotonic()

    def finish(self) -> None:
        """Waits for those that are being made."""
        for maker, _ in list(self._makers.values()):
            maker.wait()


def narrowed(
    folder: Path, connection: reading.Connection, table: str, wish: TableQuery, books: InlinkIndexes
) -> TableQuery:
    """The same wish, and where it names a link's target or a visit's URL,
    with the rows that a book knows to be the only ones.
    """
    asked = {"links": "target", "visits": "url"}.get(table)
    text = next((text for name, text in wish.conditions if name == asked), "")
    if not text.startswith(("http://", "https://")) or (book := books.of(folder, connection)) is None:
        return wish
    url = Url(text)
    if table == "visits":
        return replace(wish, within=("id", tuple(inlinks.visits_of(connection, book, url))))
    many, sources = inlinks.linking(connection, book, url_id(url), NARROWED)
    return replace(wish, within=("source", (*sources, url_id(url)))) if many <= NARROWED else wish


def _made(connection: reading.Connection) -> StoredInlinkIndex:
    book = inlinks.read(connection)
    rank = pagerank(book_graph(book.links), tolerance=1e-6).scores.astype(np.float32)
    return replace(book, links=replace(book.links, rank=rank))


def make(folder: Path) -> None:
    """Writes the collection's book. Raises NoCollection, StoreError, OSError."""
    # no snapshot: for its time a crawl's log could not be cut
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        inlinks.write(folder, _made(connection))


READ_S = 10.0


@dataclass(frozen=True, slots=True)
class NeighbourRequest:
    """What is wished for. url: of the middle, or of any page in it; steps: 1 or 2; most: neighbours that are named."""

    url: str
    grouping: Grouping = Grouping.PAGE
    steps: int = 1
    menus: bool = True
    most: int = 60


class Neighbour(NamedTuple):
    """A node.

    url: its page, of several the one of greatest rank; name: of a page its title, else its directory or site; fetched:
    of its pages; links_here, linked: links from it to the middle, and from the middle to it; score: 0 to 100,
    logarithmic, among all nodes of its kind.
    """

    url: str
    name: str
    part: str
    state: State
    step: int
    pages: int
    fetched: int
    score: int
    links_here: int
    linked: int


@dataclass(frozen=True, slots=True)
class Around:
    """The middle first, then its neighbours by step and rank.

    links: (source, end, links) by place; ranks: of the nodes; briefs: of their URLs. missed: visits that the
    book does not know as yet.
    """

    nodes: tuple[Neighbour, ...]
    links: tuple[tuple[int, int, int], ...]
    neighbours: int
    bounded: bool
    ranks: tuple[float, ...]
    briefs: tuple[Brief, ...]
    missed: int

    @property
    def limit(self) -> str:
        """How many of how many are shown."""
        shown, least = len(self.nodes) - 1, "more than " if self.bounded else ""
        if shown == self.neighbours and not self.bounded:
            return count_of(shown, "neighbour")
        return f"{shown:,} of {least}{count_of(self.neighbours, 'neighbour')}, by rank"


def look(folder: Path, wish: NeighbourRequest, books: InlinkIndexes) -> Around | None:
    """The neighbourhood wished for; None: the collection is large, and its book is still being made.

    An empty URL is the first start's.

    Raises UsageError for a URL that the book does not know; NoCollection, StoreError.
    """
    with contextlib.closing(reading.connect(folder)) as connection, reading.limited(connection, READ_S):
        if not wish.url:
            starts = [start for run in runs.run_records(connection) for start in run.starts]
            if not starts:
                raise UsageError("the collection has no run yet: there is nothing that links to anything")
            wish = replace(wish, url=starts[0])
        book = books.of(folder, connection)
        if book is None:
            return None
        return around(connection, book, books.web(folder, book, wish.grouping, menus=wish.menus), wish)


def around(connection: reading.Connection, book: StoredInlinkIndex, web: Web, wish: NeighbourRequest) -> Around:
    """The neighbourhood wished for.

    web: of the wish's grouping. Raises UsageError for a URL that the book does not know.
    """
    url = listing.meant(connection, wish.url)
    place = inlinks.place_of(book, url_id(url))
    if place < 0:
        raise UsageError(
            f"the collection's links do not name {url} as yet. The table of pages finds URLs that contain a text."
        )
    found = neighbourhood(web, NeighbourhoodQuery(int(web.groups[place]), wish.steps, wish.most))
    ids = book.links.ids[[node.place for node in found.nodes]].tolist()
    if wish.grouping is Grouping.PAGE:
        ids[0] = url_id(url)
    briefs = page_rows.briefs(connection, ids)
    missed = inlinks.moment_of(connection).visit - book.moment.visit
    return Around(
        _neighbours(found, briefs, wish.grouping, web),
        found.links,
        found.neighbours,
        found.bounded,
        _ranks(found),
        tuple(briefs),
        missed,
    )


def _ranks(found: Neighbourhood) -> tuple[float, ...]:
    return tuple(node.rank for node in found.nodes)


def _neighbours(found: Neighbourhood, briefs: Sequence[Brief], grouping: Grouping, web: Web) -> tuple[Neighbour, ...]:
    names = _names(briefs, grouping)
    ranks = np.array(_ranks(found))
    known = web.weight[web.weight > 0]
    least = float(known.min()) if len(known) else 1.0
    scores = link_score(np.concatenate(([least, float(known.max()) if len(known) else 1.0], np.maximum(ranks, least))))[
        2:
    ].tolist()
    rows = zip(found.nodes, briefs, names, scores, strict=True)
    home = _site(briefs[0].url)
    return tuple(
        Neighbour(
            brief.url,
            name,
            _part(brief.url, grouping, home),
            STATE_OF[Reason(brief.reason)],
            node.step,
            node.pages,
            node.fetched,
            score,
            node.links_here,
            node.linked,
        )
        for node, brief, name, score in rows
    )


def _names(briefs: Sequence[Brief], grouping: Grouping) -> list[str]:
    if grouping is Grouping.PAGE:
        return labels([brief.url for brief in briefs], without_site_name([brief.title for brief in briefs]))
    if grouping is Grouping.SITE:
        return [_site(brief.url) for brief in briefs]
    folders = [inlinks.directory(brief.url) for brief in briefs]
    home = _site(briefs[0].url)
    return [
        short(folder) if _site(folder) == home and folder.count("/") > 3 else folder.partition("://")[2].rstrip("/")
        for folder in folders
    ]


def _site(url: str) -> str:
    return str(site_key(Url(url))) if url else ""


def _part(url: str, grouping: Grouping, home: str) -> str:
    """What a node's colour stands for: of pages their directory on the middle's site, else their site."""
    if grouping is Grouping.PAGE and _site(url) == home:
        folder = inlinks.directory(url)
        return "/" + folder.split("/", 3)[3]
    return "other sites" if grouping is Grouping.PAGE else _site(url) if grouping is Grouping.DIRECTORY else "sites"


def drawn(found: Around) -> Ego:
    """As values for a drawing."""
    nodes = []
    for node, rank in zip(found.nodes, found.ranks, strict=True):
        ways = [
            f"{count_of(many, 'link')} {word}"
            for many, word in ((node.links_here, "to the middle"), (node.linked, "from the middle"))
            if many
        ]
        nodes.append(
            EgoNode(
                node.url,
                node.name,
                node.part,
                rank,
                node.pages,
                node.fetched,
                ", ".join([*ways, f"score {node.score}"]),
            )
        )
    return Ego(tuple(nodes), found.links)


def write_neighbours(found: Around, created: float, out: TextIO) -> None:
    """The neighbourhood as GEXF; of directories and sites a node is named by its page of greatest rank. out: UTF-8."""
    count = len(found.nodes)
    links = sorted(found.links)
    source = np.array([link[0] for link in links], np.int64)
    targets = np.array([link[1] for link in links], np.int32)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(source, minlength=count)))).astype(np.int64)
    urls = [Url(node.url) for node in found.nodes]
    depths = np.array([brief.depth for brief in found.briefs], np.int32)
    graph = LinkGraph(urls, offsets, targets, np.array([node.fetched > 0 for node in found.nodes], np.bool_), depths)
    facts = PageColumns(
        url=urls,
        title=[node.name for node in found.nodes],
        state=[node.state for node in found.nodes],
        reason=[Reason(brief.reason) for brief in found.briefs],
        status=np.array([min(brief.status, 999) for brief in found.briefs], np.int16),
        media_type=[brief.media_type for brief in found.briefs],
        size_bytes=np.array([brief.size for brief in found.briefs], np.int64),
        depth=depths,
        rank=np.array(found.ranks),
        score=np.array([node.score for node in found.nodes], np.uint8),
        inlinks=np.bincount(targets, minlength=count).astype(np.int64),
        outlinks=np.diff(offsets),
    )
    about = About("links around " + found.nodes[0].url, urls[0], created, 0.85, 0, parameters=(("shown", found.limit),))
    write_gexf(graph, facts, about, out, weights=np.array([link[2] for link in links], np.int64) if links else None)


if __name__ == "__main__":
    os.nice(CHILD_NICE)
    make(Path(sys.argv[1]))
