"""Reads visits and sites of a collection in PostgreSQL for surveys and topical crawls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from periplus.model.frontier import LinkSighting, PageVisit
from periplus.model.page import NO_BLOCKS, LinkKind
from periplus.model.ports import CrawlScope
from periplus.model.visit import Reason
from periplus.model.web import Url, UrlId
from periplus.store.bodies import BodyCodec, blocks_of, unpack_parts
from periplus.store.crawl_reads import RunReads
from periplus.store.statements import Statements
from periplus.store.url_state import MAY_PASS, SITE_REMOVED_RULE, UNKNOWN_DEPTH
from periplus_postgres.connection import Connection, columns_of
from periplus_postgres.statements import PostgresStatements

T = TypeVar("T")
AT_ONCE = 500  # visits that are read with their links at a time
LATE = 1_000  # visits; one whose commit takes longer than so many others is only learned at the next start
# Only collections with a survey or a topical crawl have these indexes, for lookups by id without the shard.
INDEXES = tuple(f"CREATE INDEX IF NOT EXISTS {table}_id ON {table} (id)" for table in ("visit", "url"))

_VISITS = f"""
SELECT v.id, v.shard, v.url_id, u.text, u.depth, v.took_s, v.outcome <> 'skipped',
    v.outcome = 'fetched' AND v.status BETWEEN 200 AND 299, {MAY_PASS},
    CASE WHEN v.outcome = 'redirected' THEN v.detail ELSE '' END
FROM visit v JOIN url u ON u.shard = v.shard AND u.id = v.url_id
WHERE v.id > %s AND v.id <> ALL (%s) AND v.purpose = 'page' AND v.url_id <> 0 ORDER BY v.id LIMIT %s
"""
# a target that is not merged yet is in the inbox
_LINKS = f"""
SELECT l.source, coalesce(u.text, (SELECT i.text FROM inbox i WHERE i.url_id = l.target LIMIT 1)), l.kind, l.position, l.anchor, l.nofollow
FROM unnest(%s::smallint[], %s::bigint[]) k(shard, id) JOIN link l ON l.shard = k.shard AND l.source = k.id LEFT JOIN url u ON u.id = l.target
WHERE l.kind <> '{LinkKind.REDIRECT.value}'
"""  # noqa: E501
_TEXTS = """
SELECT p.url_id, p.title, b.text, b.blocks, p.parts FROM unnest(%s::smallint[], %s::bigint[]) k(shard, id)
JOIN page p ON p.shard = k.shard AND p.url_id = k.id LEFT JOIN body b ON b.shard = p.shard AND b.id = p.body_id
"""


def visits(connection: Connection, after: int, *, texts: bool, but: Iterable[int] = ()) -> list[PageVisit]:
    """Up to AT_ONCE visits, see `model.ports.CrawlStore.visits`. but: ids to skip."""
    rows = connection.execute(_VISITS, (after, list(but), AT_ONCE)).fetchall()
    pages = columns_of(sorted({(row[1], row[2]) for row in rows if row[7]}), 2)
    links: dict[int, list[LinkSighting]] = {}
    for source, target, kind, position, anchor, nofollow in connection.execute(_LINKS, pages) if pages[0] else ():
        if target is not None:
            links.setdefault(source, []).append(LinkSighting(Url(target), kind, position, anchor, bool(nofollow)))
    content, codec = {}, BodyCodec()
    for page, title, text, blocks, parts in connection.execute(_TEXTS, pages) if texts and pages[0] else ():
        plain = codec.unpack(text, None).decode() if text is not None else ""
        content[page] = (title, blocks_of(plain, blocks), None if parts is None else unpack_parts(parts))
    return [
        PageVisit(
            visit,
            UrlId(page),
            Url(url),
            depth,
            took_s,
            asked,
            read,
            may_pass,
            Url(redirect),
            tuple(links.get(page, ())) if read else (),
            *(content.get(page, ("", NO_BLOCKS, None)) if read else ()),
        )
        for visit, _, page, url, depth, took_s, asked, read, may_pass, redirect in rows
    ]


def urgent(connection: Connection, host_ids: Sequence[int]) -> frozenset[int]:
    find = (
        "SELECT h.id FROM host h WHERE h.id = ANY(%s) AND EXISTS"
        " (SELECT 1 FROM queue q WHERE q.shard = h.shard AND q.host_id = h.id AND q.priority < 0)"
    )
    return frozenset(row[0] for row in connection.execute(find, (list(host_ids),)))


def apply_scope(connection: Connection, scope: CrawlScope) -> None:
    """See `model.ports.RunStore.apply_scope`; but hosts stay in their original site and shard, since a survey
    identifies sites by its scope. Call it within a transaction, after merging the inbox.
    """
    connection.execute("SET LOCAL statement_timeout = 0")  # scans all URLs
    connection.execute("SELECT 1 FROM host ORDER BY shard, id FOR NO KEY UPDATE")
    find = (
        "SELECT shard, id, host_id, text, reason, rule FROM url WHERE reason IN ('waiting', 'scope', 'depth')"
        " ORDER BY shard, id"
    )
    moves: Counter[str] = Counter()
    gone: list[tuple[int, int, int]] = []
    come: list[tuple[int, int, bool]] = []
    for shard, page, host, text, reason, rule in connection.execute(find).fetchall():
        inside = scope.decide(Url(text)) is None
        if inside and reason == Reason.SCOPE:
            come.append((shard, page, rule == SITE_REMOVED_RULE))
            moves[reason] -= 1
        elif not inside and reason != Reason.SCOPE:
            gone.append((shard, page, host))
            moves[reason] -= 1
    moves["depth"] += len(come)
    moves["scope"] += len(gone)
    connection.execute(
        "UPDATE url u SET reason = 'depth', rule = %s, depth = CASE WHEN k.is_back THEN u.depth END"
        " FROM unnest(%s::smallint[], %s::bigint[], %s::boolean[]) k(shard, id, is_back)"
        " WHERE u.shard = k.shard AND u.id = k.id",
        (UNKNOWN_DEPTH, *columns_of(come, 3)),
    )
    shards, pages, hosts = columns_of(gone, 3)
    connection.execute(
        "UPDATE url u SET reason = 'scope', rule = %s FROM unnest(%s::smallint[], %s::bigint[]) k(shard, id)"
        " WHERE u.shard = k.shard AND u.id = k.id",
        (SITE_REMOVED_RULE, shards, pages),
    )
    connection.execute(
        "WITH dropped AS (DELETE FROM queue q USING unnest(%s::smallint[], %s::bigint[], %s::bigint[])"
        " k(shard, id, host) WHERE q.shard = k.shard AND q.host_id = k.host AND q.url_id = k.id"
        " RETURNING q.shard, q.host_id)"
        " UPDATE host h SET pending = h.pending - d.entries"
        " FROM (SELECT shard, host_id, count(*) AS entries FROM dropped GROUP BY 1, 2) d"
        " WHERE h.shard = d.shard AND h.id = d.host_id",
        (shards, pages, hosts),
    )
    tally = "INSERT INTO tally VALUES (0, %s, %s) ON CONFLICT (part, name) DO UPDATE SET value = tally.value + excluded.value"  # noqa: E501
    connection.cursor().executemany(tally, [("reason:" + name, change) for name, change in moves.items() if change])


class DatabaseVisits(RunReads):
    """`model.ports.VisitReader` over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(self, action: Callable[[Statements], T]) -> T:
        return action(PostgresStatements(self._connection))

    def visits(self, after: int, *, texts: bool = False) -> Iterator[PageVisit]:
        while block := visits(self._connection, after, texts=texts):
            yield from block
            after = block[-1].id
