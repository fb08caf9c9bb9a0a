"""Which runs does a collection in PostgreSQL have, and how does one begin and end?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from periplus.model.crawl_home import RunRecord
from periplus.model.freshness import Finding
from periplus.model.web import SiteKey, Url, UrlId
from periplus.settings import Settings, as_values
from periplus.store.postgres import moved, pausing, verdicts
from periplus.store.postgres.connection import Connection
from periplus.store.postgres.schema import shard_of

_CLOCK = "extract(epoch FROM clock_timestamp())::float8"
_SUM = "(SELECT coalesce(sum(c.value), 0)::bigint FROM run_count c WHERE c.run_id = r.id AND c.name = '{}')"
_COLUMNS = (
    f"r.id, r.kind, r.starts, r.settings, r.seed, r.started, r.ended, r.state, r.note,"
    f" r.fetched + {_SUM.format('fetched')}, r.wire_bytes + {_SUM.format('wire_bytes')}"
)


def begin(connection: Connection, kind: str, starts: Sequence[Url], settings: Settings) -> int:
    """A new run; returns its id. What earlier runs knew of hosts' failures is forgotten: they are asked anew. Within a transaction.

    Hosts are locked in their order, as everywhere: workers of the last run may still be at work.
    """
    moved.refuse(connection)
    pausing.resume(connection)
    connection.execute(f"UPDATE run SET state = 'stopped', note = 'it did not end by itself', ended = {_CLOCK} WHERE state = 'running'")
    connection.execute("SELECT 1 FROM host WHERE strikes <> 0 OR waits_for <> '' ORDER BY shard, id FOR NO KEY UPDATE")
    connection.execute("UPDATE host SET strikes = 0, waits_for = '' WHERE strikes <> 0 OR waits_for <> ''")
    connection.execute("DELETE FROM robots WHERE cause <> '' OR status >= 500 OR status = 429")
    values = as_values(settings) | {"auth": "***" if settings.identity.auth else ""}  # a password is no part of the record
    insert = f"INSERT INTO run (kind, starts, settings, seed, started, state) VALUES (%s, %s, %s, %s, {_CLOCK}, 'running') RETURNING id"
    row = connection.execute(insert, (kind, json.dumps(list(starts)), json.dumps(values), values.get("seed", 0))).fetchone()
    assert row is not None
    verdicts.lift(connection, int(row[0]))
    return int(row[0])


def end(connection: Connection, run_id: int, state: str, note: str) -> None:
    pausing.resume(connection)
    verdicts.settle(connection, run_id)
    connection.execute(f"UPDATE run SET state = %s, note = %s, ended = {_CLOCK} WHERE id = %s", (state, note, run_id))


def add_starts(connection: Connection, starts: Sequence[UrlId], sites: Sequence[SiteKey]) -> None:
    rows = [(shard_of(site), url_id) for url_id, site in zip(starts, sites, strict=True)]
    connection.cursor().executemany(f"INSERT INTO start VALUES (%s, %s, {_CLOCK}) ON CONFLICT DO NOTHING", rows)


def records(connection: Connection) -> list[RunRecord]:
    """All runs, oldest first."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM run r ORDER BY r.id").fetchall()
    return [RunRecord(row[0], row[1], tuple(json.loads(row[2])), json.loads(row[3]), *row[4:]) for row in rows]


def findings(connection: Connection, run_id: int) -> Mapping[Finding, int]:
    """What a run found, by kind; every kind is named."""
    rows = connection.execute("SELECT name, sum(value)::bigint FROM run_count WHERE run_id = %s GROUP BY name", (run_id,)).fetchall()
    found = {str(row[0]): int(row[1]) for row in rows}
    return {finding: found.get(finding.value, 0) for finding in Finding}
