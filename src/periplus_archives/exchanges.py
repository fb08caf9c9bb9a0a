"""Visits, bodies and aliases of a collection, for archives; and the filling of one in a folder from an archive."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType

from periplus.model.collection import Exchange
from periplus.model.frontier import Batch, Candidate, Completion
from periplus.model.page import CLICK_KINDS
from periplus.model.tables import any_of
from periplus.model.visit import FETCHED_REASONS, Headers, Reason
from periplus.model.web import Url, UrlId
from periplus.settings import Storage
from periplus.store.bodies import unpack_headers, unpack_original
from periplus.store.reader import CollectionReader
from periplus.store.sqlite import schema
from periplus.store.sqlite.ledger import BodyWriter, FolderLedger, stored_bodies
from periplus.store.sqlite.listing import SqliteReader

_VisitColumns = tuple[int, int, Url, str, float, float, str, int, str, str]  # of _EXCHANGES, as in `Exchange`
BLOCK_ROWS = 100  # rows with packed bodies fetched at a time: about 2 MB
# A body belongs to the last visit of its URL that fetched one; if the page was moved to another URL, to the visit of
# the alias.
_EXCHANGES = """
WITH holder AS MATERIALIZED (
    SELECT max(id) AS id FROM visit
    WHERE outcome = 'fetched' AND status BETWEEN 200 AND 299 AND purpose = 'page' AND url_id <> 0 GROUP BY url_id)
SELECT v.id, v.run_id, coalesce(v.text, u.text), v.purpose, v.started, v.took_s, v.outcome, v.status, v.detail, v.address, v.head,
       CASE v.outcome WHEN 'fetched' THEN v.detail ELSE '' END, p.url_id, coalesce(p.body_id, 0), g.sent
FROM visit v
LEFT JOIN url u ON u.id = v.url_id
LEFT JOIN holder k ON k.id = v.id
LEFT JOIN alias a ON k.id IS NOT NULL AND a.url_id = v.url_id AND a.moved <> ''
LEFT JOIN page p ON k.id IS NOT NULL AND p.url_id = coalesce(a.page_id, v.url_id)
LEFT JOIN rendering g ON g.url_id = p.url_id
WHERE v.outcome <> 'skipped' ORDER BY v.id
"""  # noqa: E501
_WITH_BODY = (
    "SELECT u.id, u.text, p.media_type, p.charset FROM page p JOIN url u ON u.id = p.url_id"
    f" JOIN body b ON b.id = p.body_id WHERE u.reason IN {any_of(FETCHED_REASONS)} AND ({{}}) ORDER BY u.text{{}}"
)
_CLICKS = any_of(CLICK_KINDS)
_TARGETS = (
    "SELECT l.target, l.kind = 'redirect', h.site_id FROM link l JOIN url u ON u.id = l.target"
    " JOIN host h ON h.id = u.host_id"
    f" WHERE l.source = ? AND l.kind IN {_CLICKS} AND NOT l.nofollow"
)
_BY_NOFOLLOW = f"('{Reason.NOFOLLOW.value}', '{Reason.RESOURCE.value}')"


def exchanges(reader: CollectionReader) -> Iterator[Exchange]:
    """Streams all visits with a request, oldest first."""
    rows = reader.stream(_EXCHANGES, (), BLOCK_ROWS)
    while block := list(islice(rows, BLOCK_ROWS)):
        bodies = reader.bodies([row[12] for row in block if row[12] is not None])
        for row in block:
            cut, page_id, body_id, sent = row[11:]
            body = bodies.get(page_id)
            if sent is not None and body is not None:  # the rendered page is not a server's response
                body, body_id = unpack_original(sent), 0
            visit: _VisitColumns = row[:10]
            yield Exchange(*visit, unpack_headers(row[10]), body, cut, body_id)


def with_bodies(reader: CollectionReader) -> Iterator[tuple[UrlId, Url, str, str]]:
    """(id, URL, media type, charset) of current pages with stored bytes, sorted by URL."""
    dialect = reader.statements.dialect
    has_bytes = "length(b.data) > 0" + " OR b.segment IS NOT NULL" * dialect.has_shards
    for url_id, text, media_type, charset in reader.stream(_WITH_BODY.format(has_bytes, dialect.text_order)):
        yield UrlId(url_id), Url(text), media_type, charset


def other_addresses(reader: CollectionReader) -> Iterator[tuple[UrlId, UrlId]]:
    """(alias, page) of all aliases."""
    rows = reader.stream("SELECT url_id, page_id FROM alias WHERE page_id IS NOT NULL")
    return ((UrlId(url_id), UrlId(page_id)) for url_id, page_id in rows)


def shared_bodies(reader: CollectionReader) -> frozenset[int]:
    """Ids of bodies shared by several pages."""
    find = "SELECT body_id FROM page WHERE body_id IS NOT NULL GROUP BY body_id HAVING count(*) > 1"
    return frozenset(body_id for (body_id,) in reader.stream(find))


# Completions are stored one by one, in large transactions.


class Filler:
    """The only writer of a collection, within one run.

    Use it as a context manager; leaving it commits the last transaction.
    """

    def __init__(self, folder: Path, run_id: int, storage: Storage) -> None:
        self._connection = schema.connect(folder)
        self._lock = schema.WriteLock(folder)
        self._bodies = BodyWriter(self._connection, storage)
        self._ledger = FolderLedger(self._connection, run_id)
        self._contents = SqliteReader(self._connection)
        self._at_once = storage.commit_pages
        self._stack = contextlib.ExitStack()
        self._entered = 0

    def __enter__(self) -> Filler:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._ledger.close()
            self._stack.__exit__(kind, error, trace)
        finally:
            self._connection.close()
            self._lock.close()

    def _open(self) -> None:
        self._stack.enter_context(self._lock.transaction(self._connection))
        self._ledger.open()

    def _commit(self, sites: Iterable[str]) -> None:
        self._ledger.close()
        self._stack.close()
        learned = {site: self._bodies.learn_dictionary(site) for site in sites}
        self._open()
        for site, data in learned.items():
            if data:
                self._bodies.store_dictionary(site, data)

    def stored_url(self, url_id: UrlId) -> tuple[int, int | None, float] | None:
        """(host id, depth, time of the last visit or 0.0) of a URL; None if it is unknown."""
        row = self._connection.execute(
            "SELECT host_id, depth, coalesce(visited, 0) FROM url WHERE id = ?", (url_id,)
        ).fetchone()
        return (int(row[0]), row[1], float(row[2])) if row else None

    def body(self, url_id: UrlId) -> bytes | None:
        """Stored bytes of a page, or None."""
        return self._contents.body(url_id)

    def answer(self, url_id: UrlId) -> tuple[int, Headers] | None:
        """Status and headers of the response that is stored for a URL, or None."""
        return self._contents.answer(url_id)

    def offer(self, candidate: Candidate, now: float) -> None:
        self._ledger.offer([candidate], (), now)

    def enter(self, completion: Completion) -> None:
        """Stores a completion with the time of its visit. Its URL must be known."""
        body_ids = stored_bodies(self._bodies, [completion], [self._bodies.pack(completion)])
        self._ledger.enter(Batch(), [completion], body_ids, completion.visit.started)
        self._entered += 1
        if self._entered % self._at_once == 0:
            self._commit([completion.lease.site])

    def count_depths(self, starts: Iterable[UrlId]) -> None:
        """Computes all depths breadth first from the starts, since archives are unordered.

        The rules are those of a crawl: along followed clicks, redirects do not count, and not from one start's site to
        another. O(pages + links).
        """
        self._connection.execute(
            f"UPDATE url SET depth = NULL WHERE depth IS NOT NULL AND reason NOT IN {_BY_NOFOLLOW}"
        )
        own = {start: self._site_of(start) for start in starts}
        sites = set(own.values())
        frontier = [(start, site) for start, site in own.items() if self._reach(start, 0)]
        depth = 0
        while frontier:
            following: list[tuple[UrlId, int]] = []
            for source, site in frontier:  # grows by the targets of redirects
                for target, is_redirect, target_site in self._connection.execute(_TARGETS, (source,)).fetchall():
                    clicks = depth if is_redirect else depth + 1
                    if (target_site == site or target_site not in sites) and self._reach(target, clicks):
                        (frontier if is_redirect else following).append((target, target_site))
            frontier, depth = following, depth + 1

    def _site_of(self, url_id: UrlId) -> int:
        row = self._connection.execute(
            "SELECT h.site_id FROM url u JOIN host h ON h.id = u.host_id WHERE u.id = ?", (url_id,)
        ).fetchone()
        return int(row[0]) if row else 0

    def _reach(self, url_id: UrlId, depth: int) -> bool:
        """Sets the depth of a URL. Returns whether it had none."""
        update = f"UPDATE url SET depth = ? WHERE id = ? AND depth IS NULL AND reason NOT IN {_BY_NOFOLLOW}"
        return bool(self._connection.execute(update, (depth, url_id)).rowcount)
