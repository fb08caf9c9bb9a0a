"""Which rows of a collection in PostgreSQL leave it as tables? The columns of `store/sqlite/views.py`, each from the statement that stands here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from periplus.model.visit import STATE_OF, State
from periplus.store.postgres.address import Address
from periplus.store.postgres.moment import moment, read_whole_tables
from periplus.store.postgres.streams import row_blocks

AT_ONCE = 2_000  # rows that are fetched from the server at once: the memory that a table of any length takes
_READ = "u.reason IN ({})".format(", ".join(f"'{reason}'" for reason, state in STATE_OF.items() if state is State.INDEXED or reason == "noindex"))
_OF_URL = "url u JOIN host h ON h.id = u.host_id JOIN site s ON s.id = h.site_id JOIN reason r ON r.name = u.reason"


def _time(expression: str) -> str:
    """Rounded to the millisecond, then cut to the second, as SQLite does it."""
    moment = f"to_timestamp(floor(nullif({expression}, 0) * 1000 + 0.5) / 1000) AT TIME ZONE 'UTC'"
    return f"""to_char({moment}, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""


_LAST_SEEN = "greatest(l.last_seen, coalesce(f.checked, 0))"  # docs/decisions/0003
_SUM = "run.{0} + (SELECT coalesce(sum(c.value), 0)::bigint FROM run_count c WHERE c.run_id = run.id AND c.name = '{0}')"
STATEMENTS = {
    "urls": f"""
SELECT u.id, u.text, h.key, s.key, r.state, u.reason, nullif(u.rule, ''), u.layer, nullif(u.status, 0), u.in_sitemap, {_time("u.first_seen")},
    {_time("u.visited")}
FROM {_OF_URL}""",
    "pages": f"""
SELECT u.id, u.text, s.key, r.state, nullif(u.status, 0), CASE WHEN {_READ} THEN NULL ELSE u.reason END, CASE u.reason WHEN 'redirect' THEN u.rule END,
    nullif(p.media_type, ''), nullif(p.charset, ''), nullif(p.language, ''), p.size, u.layer, nullif(p.title, ''), nullif(p.description, ''),
    nullif(p.h1, ''), nullif(p.canonical, ''), nullif(p.robots, ''), p.text_chars, nullif(encode(p.text_md5, 'hex'), ''), p.took_s, {_time("u.visited")},
    {_time("p.last_modified")}, nullif(p.etag, ''), u.in_sitemap
FROM {_OF_URL} LEFT JOIN page p ON p.url_id = u.id AND {_READ} WHERE u.visited IS NOT NULL""",
    "links": f"""
SELECT a.text, b.text, l.anchor, l.kind, l.position, l.nofollow, (g.site_id = h.site_id)::int, s.key, t.key, nullif(b.status, 0), b.reason,
    nullif(l.fragments, ''), l.times, {_time("l.first_seen")}, {_time(_LAST_SEEN)}
FROM link l JOIN url a ON a.id = l.source JOIN host g ON g.id = a.host_id
    JOIN site s ON s.id = g.site_id
    JOIN url b ON b.id = l.target JOIN host h ON h.id = b.host_id JOIN site t ON t.id = h.site_id
    LEFT JOIN freshness f ON f.url_id = l.source AND f.gone_since IS NULL""",
    "visits": f"""
SELECT v.id, v.run_id, coalesce(v.text, u.text), v.purpose, {_time("v.started")}, v.took_s, v.outcome, nullif(v.status, 0), nullif(v.detail, ''),
    v.wire_bytes, nullif(v.address, '')
FROM visit v LEFT JOIN url u ON u.id = v.url_id""",
    "hosts": """
SELECT h.id, h.key, s.key, h.fetched, h.pending, h.delay_s, h.strikes, nullif(h.waits_for, '')
FROM host h JOIN site s ON s.id = h.site_id""",
    "sites": f"""
SELECT s.id, s.key, min(u.text COLLATE "C") FILTER (WHERE b.url_id IS NOT NULL), count(DISTINCT h.id),
    count(*) FILTER (WHERE r.state <> 'ignored' AND u.reason <> 'resource'), count(p.url_id), count(*) FILTER (WHERE r.state = 'invalid'),
    coalesce(sum(p.size), 0)::bigint, {_time("min(u.first_seen)")}, {_time("max(u.visited)")}
FROM {_OF_URL} LEFT JOIN page p ON p.url_id = u.id AND {_READ} LEFT JOIN start b ON b.url_id = u.id
GROUP BY s.shard, s.id, s.key""",
    "runs": f"""
SELECT id, kind, state, nullif(note, ''), {_time("started")}, {_time("ended")}, {_SUM.format("fetched")}, {_SUM.format("wire_bytes")}, starts, settings
FROM run ORDER BY id""",
}
"""By the table's name. Rows come in the order in which the server finds them."""


@contextlib.contextmanager
def table_rows(address: Address, name: str) -> Iterator[Iterator[tuple[object, ...]]]:
    """The rows of a table, one of STATEMENTS, at one moment, streamed. Raises UsageError, NoCollection, StoreError."""
    with moment(address) as connection:
        read_whole_tables(connection)
        yield (row for block in row_blocks(connection, STATEMENTS[name], AT_ONCE) for row in block)
