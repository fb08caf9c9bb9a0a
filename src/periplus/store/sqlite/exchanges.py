"""Which exchanges does a collection hold, in the order in which they took place?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from periplus.model.archive import Exchange
from periplus.model.web import Url
from periplus.store.heads import unpack_head
from periplus.store.sqlite.contents import Contents

BLOCK_ROWS = 100  # rows with packed bodies, fetched at once: some 2 MB
# A body is that of the last visit of its URL that brought one; of a page filed under another address, that of the visit of the alias.
_EXCHANGES = """
WITH holder AS MATERIALIZED (
    SELECT max(id) AS id FROM visit
    WHERE outcome = 'fetched' AND status BETWEEN 200 AND 299 AND purpose = 'page' AND url_id <> 0 GROUP BY url_id)
SELECT v.id, v.run_id, coalesce(v.text, u.text), v.purpose, v.started, v.took_s, v.outcome, v.status, v.detail, v.address, v.head,
       b.data, b.dictionary_id, CASE v.outcome WHEN 'fetched' THEN v.detail ELSE '' END, coalesce(p.body_id, 0)
FROM visit v
LEFT JOIN url u ON u.id = v.url_id
LEFT JOIN holder k ON k.id = v.id
LEFT JOIN alias a ON k.id IS NOT NULL AND a.url_id = v.url_id AND a.moved <> ''
LEFT JOIN page p ON k.id IS NOT NULL AND p.url_id = coalesce(a.page_id, v.url_id)
LEFT JOIN body b ON b.id = p.body_id AND length(b.data) > 0
WHERE v.outcome <> 'skipped' ORDER BY v.id
"""


def exchanges(connection: sqlite3.Connection) -> Iterator[Exchange]:
    """Every visit that asked a server, the earliest first. Streamed."""
    contents = Contents(connection)
    cursor = connection.execute(_EXCHANGES)
    while block := cursor.fetchmany(BLOCK_ROWS):
        for row in block:
            identity, run_id, url, purpose, started, took_s, outcome, status, detail, address, head, data, dictionary_id, cut, body_id = row
            body = contents.restore(data, dictionary_id) if data else None
            said = (started, took_s, outcome, status, detail, address)
            yield Exchange(identity, run_id, Url(url), purpose, *said, unpack_head(head), body, cut, body_id)


def shared_bodies(connection: sqlite3.Connection) -> frozenset[int]:
    """Bodies that several pages have."""
    find = "SELECT body_id FROM page WHERE body_id IS NOT NULL GROUP BY body_id HAVING count(*) > 1"
    return frozenset(body_id for (body_id,) in connection.execute(find))
