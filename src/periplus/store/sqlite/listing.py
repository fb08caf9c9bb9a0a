"""The reader of a collection in a folder, and streams of links, redirects and visits."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any, TypeVar

from periplus.model.frontier import LinkSighting, PageVisit
from periplus.model.page import LinkKind
from periplus.model.tables import LINKS, Table
from periplus.model.web import Url, UrlId
from periplus.store import crawl_reads
from periplus.store.bodies import BodyCodec
from periplus.store.reader import ROWS_AT_ONCE, Activity, Answer, CollectionReader, CollectionWriter
from periplus.store.sqlite import page_links, reading, schema
from periplus.store.sqlite.reading import rows
from periplus.store.sqlite.runs import contents
from periplus.store.sqlite.schema import SqliteStatements
from periplus.store.statements import Statements
from periplus.store.url_state import MAY_PASS
from periplus.store.views import select, value_of
from periplus.values import Row

if TYPE_CHECKING:
    from periplus.model.arrays import Ints
    from periplus.model.results import Segmentation

T = TypeVar("T")
_OF_SOURCE = ("source", "source_site", "first_seen", "last_seen")
_OF_TARGET = ("target", "target_site", "target_state", "target_reason", "target_status")
_SOURCES = (
    "LEFT JOIN url a ON a.id = l.source LEFT JOIN host g ON g.id = a.host_id LEFT JOIN site s ON s.id = g.site_id"
    f" LEFT JOIN freshness f ON f.url_id = l.source AND f.gone_since IS NULL WHERE {LINKS.where}"
)
_TARGETS = (
    "json_each(?) j CROSS JOIN url b ON b.id = j.value"
    " LEFT JOIN host h ON h.id = b.host_id LEFT JOIN site t ON t.id = h.site_id"
)
PAGES_AT_ONCE = 500  # pages whose link targets are looked up together
TARGETS_AT_HAND = 200_000  # cached targets: 60 MB
_VISITS = (
    "SELECT v.id, v.url_id, u.text, u.depth, v.took_s, v.outcome <> 'skipped',"
    f" v.outcome = 'fetched' AND v.status BETWEEN 200 AND 299, {MAY_PASS}, iif(v.outcome = 'redirected', v.detail, '')"
    " FROM visit v JOIN url u ON u.id = v.url_id WHERE v.id > ? AND v.purpose = 'page' AND v.url_id <> 0 ORDER BY v.id"
)
_LINKS = (
    "SELECT u.text, l.kind, l.position, l.anchor, l.nofollow FROM link l JOIN url u ON u.id = l.target"
    f" WHERE l.source = ? AND l.kind <> '{LinkKind.REDIRECT.value}'"
)


class SqliteReader(CollectionReader):
    """`store.reader.CollectionReader` over a connection."""

    def __init__(self, connection: sqlite3.Connection, folder: Path = Path()) -> None:
        """folder: of the collection, for its size on disk."""
        self.connection, self._folder = connection, folder
        self.statements, self.codec = SqliteStatements(connection), BodyCodec()

    @classmethod
    def of(cls, folder: Path) -> SqliteReader:
        return cls(reading.connect(folder), folder)

    def close(self) -> None:
        self.connection.close()

    def limit_reads(
        self, limit_s: float, cpu_s: Callable[[], float] = thread_time
    ) -> contextlib.AbstractContextManager[None]:
        return reading.limit_reads(self.connection, limit_s, cpu_s)

    def snapshot(self, of: str = "") -> contextlib.AbstractContextManager[None]:
        return reading.snapshot(self.connection)

    def activity(self, now: float) -> Activity:
        running = reading.is_being_crawled(self.connection, now)
        return Activity(now, running, sum(map(_size, contents(self._folder))))

    def stream(self, find: str, values: Sequence[object] = (), at_once: int = ROWS_AT_ONCE) -> Iterator[Row]:
        return rows(self.connection.execute(find, values), at_once)

    def whole(self, table: Table) -> Iterator[Row]:
        return whole(self.connection, table)

    def numbers(self, find: str, width: int) -> Iterator[Ints]:
        from periplus.store.site_rows import number_blocks  # imports NumPy

        return number_blocks(self.connection.execute(find), width)

    def make_tables(self, tables: Iterable[str]) -> None:
        self.connection.execute("PRAGMA query_only = OFF")  # a read-only connection cannot create a temporary table
        super().make_tables(tables)

    def plan(self, *, scans: bool) -> None:
        """Plans of SQLite depend on statements alone."""

    def name_segments(self, segments: Segmentation) -> None:
        self.connection.create_function("segment_of", 1, segments.of, deterministic=True)

    def ask(self, question: str, limit_s: float, most: int = -1) -> Answer:
        return reading.ask(self.connection, question, limit_s, most)

    def body_in_segment(self, segment: str, start: int, length: int) -> bytes:
        raise NotImplementedError  # a folder stores all bodies in its database


@contextlib.contextmanager
def writer(folder: Path) -> Iterator[CollectionWriter]:
    """Opens a collection that no crawl uses, for changes that leave no traces of deleted rows. Raises NoCollection,
    StoreError.
    """
    with contextlib.closing(schema.connect(folder)) as connection, contextlib.closing(schema.WriteLock(folder)) as lock:
        connection.execute("PRAGMA temp_store = FILE")  # for large sites
        connection.execute("PRAGMA secure_delete = ON")
        yield CollectionWriter(SqliteReader(connection, folder), partial(lock.transaction, connection))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # removes deleted rows from the log


def settle(folder: Path) -> None:
    """Moves the log into the database's file, unless another process uses it."""
    with contextlib.closing(schema.connect(folder)) as connection:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def shrink(folder: Path) -> None:
    """Rewrites the file to free the space of deleted rows. No process may be using the collection."""
    with contextlib.closing(schema.connect(folder)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _size(path: Path) -> int:
    """Bytes of a file or folder; 0 for files that vanish during the scan (the search index replaces its files)."""
    with contextlib.suppress(FileNotFoundError):
        return sum(map(_size, path.iterdir())) if path.is_dir() else path.stat().st_size
    return 0


def whole(connection: sqlite3.Connection, table: Table) -> Iterator[Row]:
    """All rows, in storage order."""
    return _all_links(connection) if table is LINKS else rows(connection.execute(select(table)))


def _all_links(connection: sqlite3.Connection) -> Iterator[Row]:
    """The same rows as `select` for LINKS, but faster: rows of columns are unpacked here, and targets are looked up
    once for many links.
    """
    of_source = ", ".join(value_of(LINKS, name) for name in _OF_SOURCE)
    of_target = ", ".join(value_of(LINKS, name) for name in _OF_TARGET)
    find = f"SELECT b.id, {of_target}, h.site_id FROM {_TARGETS}"
    nothing = (None, (None,) * len(_OF_TARGET))
    targets: dict[int, tuple[Any, tuple[Any, ...]]] = {}
    same: dict[tuple[Any, ...], tuple[Any, ...]] = {}  # few differ in more than the URL
    for block in page_links.in_columns(connection, f"g.site_id, {of_source}", _SOURCES, PAGES_AT_ONCE):
        targets = targets if len(targets) < TARGETS_AT_HAND else {}
        unknown = sorted({target for target in block.targets if target not in targets})
        targets |= dict.fromkeys(unknown, nothing)
        for target, text, *state in connection.execute(find, (json.dumps(unknown),)):
            targets[target] = text, same.setdefault(values := tuple(state), values)
        yield from _link_rows(block, [targets[target] for target in block.targets])


def _link_rows(block: page_links.LinkColumns, targets: Sequence[tuple[Any, tuple[Any, ...]]]) -> Iterator[Row]:
    """targets: of each link the first of _OF_TARGET, then the others and the number of its site."""
    source_sites, *of_source = (
        list(chain.from_iterable(map(repeat, values, block.many))) for values in zip(*block.pages, strict=True)
    )
    urls, states = zip(*targets, strict=True)
    *of_target, sites = zip(*states, strict=True)
    columns: dict[str, Iterable[object]] = {
        "anchor": block.anchors, "kind": block.kinds, "position": block.positions, "nofollow": block.nofollow,
        "internal": [
            None if site is None or source is None else int(site == source)
            for site, source in zip(sites, source_sites, strict=True)
        ],
        "fragments": [text or None for text in block.fragments], "times": block.times,
    }  # fmt: skip
    columns |= zip(_OF_SOURCE, of_source, strict=True)
    columns |= zip(_OF_TARGET, (urls, *of_target), strict=True)
    return zip(*(columns[name] for name in LINKS.names), strict=True)


def visits(connection: sqlite3.Connection, after: int, *, texts: bool = False) -> Iterator[PageVisit]:
    """See `model.ports.CrawlStore.visits`."""
    for visit, page, url, depth, took_s, *flags, redirect in connection.execute(_VISITS, (after,)):
        asked, read, may_pass = map(bool, flags)
        stored = PageVisit(visit, UrlId(page), Url(url), depth, took_s, asked, read, may_pass, Url(redirect))
        if read:
            links = [
                LinkSighting(Url(target), kind, position, anchor, bool(nofollow))
                for target, kind, position, anchor, nofollow in connection.execute(_LINKS, (page,))
            ]
            stored = stored._replace(links=tuple(links))
        if read and texts:
            for text in SqliteReader(connection).page_blocks([stored.url_id]):
                stored = stored._replace(title=text.title, blocks=text.blocks, parts=text.parts)
        yield stored


class SqliteVisits(crawl_reads.RunReads):
    """`model.ports.VisitReader` over one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read(self, action: Callable[[Statements], T]) -> T:
        return action(SqliteStatements(self._connection))

    def visits(self, after: int, *, texts: bool = False) -> Iterator[PageVisit]:
        return visits(self._connection, after, texts=texts)
