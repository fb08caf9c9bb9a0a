"""The runs of a collection in PostgreSQL: how each begins and ends, whether it is paused or moved away,
and how it stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from periplus.errors import StoreError
from periplus.model.frontier import HostRow, RefreshFinding, TrapTally
from periplus.model.ports import RunRecord
from periplus.model.results import StateTally
from periplus.model.visit import STATE_OF, Reason, State
from periplus.model.web import HostKey, SiteKey, Url, UrlId
from periplus.settings import Settings, as_values
from periplus.store.dialect import shard_of
from periplus.store.postgres.connection import Connection

# A pause is a word in the table meta, there until the crawl is resumed or ends, or another one begins.

PAUSED = "paused"  # in meta: since when, by the database's clock
IS_PAUSED = f"EXISTS (SELECT 1 FROM meta WHERE name = '{PAUSED}')"


def is_paused(connection: Connection) -> bool:
    row = connection.execute(f"SELECT {IS_PAUSED}").fetchone()
    return row is not None and bool(row[0])


def pause(connection: Connection) -> None:
    """Within a transaction."""
    connection.execute(
        "INSERT INTO meta VALUES (%s, extract(epoch FROM clock_timestamp())::text) ON CONFLICT (name) DO NOTHING",
        (PAUSED,),
    )


def resume(connection: Connection) -> bool:
    """Whether it was paused. Within a transaction."""
    return connection.execute("DELETE FROM meta WHERE name = %s", (PAUSED,)).rowcount > 0


# A collection that moved away is read as before, and crawled no more.

MOVED = "moved"  # in meta: where to


def mark(connection: Connection, place: str) -> None:
    """Within a transaction."""
    connection.execute(
        "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (MOVED, place)
    )


def unmark(connection: Connection) -> None:
    """It did not arrive. Within a transaction."""
    connection.execute("DELETE FROM meta WHERE name = %s", (MOVED,))


def refuse(connection: Connection, *, unless: str = "") -> None:
    """Raises StoreError if it did. unless: a place to which it may have been on its way when the power failed."""
    row = connection.execute("SELECT value FROM meta WHERE name = %s", (MOVED,)).fetchone()
    if row and row[0] != unless:
        raise StoreError(
            f"this collection moved to {row[0]}: crawl there. Here it stays as it was; `DROP SCHEMA` deletes it."
        )


# What checks found dead that a crawl did not ask for is invalid between runs, and within one as the crawl left it: as
# in `store.sqlite.checks`.

_AS_CRAWLED, _AS_CHECKED = ("was", "was_rule", "was_status"), ("reason", "rule", "status")
# What stands otherwise meanwhile, since a crawl asked for it, stays.
_RESTATE = """
WITH moved AS (
    SELECT u.shard, u.id, u.reason, u.rule, u.status, u.depth, u.first_seen, v.{3} AS new, v.{4} AS new_rule, v.{5} AS new_status
    FROM verdict v JOIN url u ON u.shard = v.shard AND u.id = v.url_id AND u.reason = v.{0} AND u.rule = v.{1}),
kept AS (
    INSERT INTO url_history (shard, url_id, run_id, reason, rule, status, depth)
    SELECT shard, id, %(run)s, reason, rule, status, depth FROM moved
    WHERE first_seen < (SELECT started FROM run WHERE id = %(run)s) ON CONFLICT DO NOTHING),
restated AS (
    UPDATE url u SET reason = m.new, rule = m.new_rule, status = m.new_status FROM moved m WHERE u.shard = m.shard AND u.id = m.id)
INSERT INTO tally SELECT 0, 'reason:' || reason, sum(change)
FROM (SELECT reason, -1 AS change FROM moved UNION ALL SELECT new, 1 FROM moved) c GROUP BY reason
ON CONFLICT (part, name) DO UPDATE SET value = tally.value + excluded.value
"""  # noqa: E501
_LOCK = (
    "SELECT 1 FROM host WHERE (shard, id) IN (SELECT u.shard, u.host_id FROM verdict v"
    " JOIN url u ON u.shard = v.shard AND u.id = v.url_id)"
)


def lift(connection: Connection, run_id: int) -> None:
    """The URLs stand again as the crawl left them, for the run that begins. Within a transaction."""
    _restate(connection, run_id, _AS_CHECKED, _AS_CRAWLED)


def settle(connection: Connection, run_id: int) -> None:
    """What checks found dead is invalid, for whoever reads the collection after the run. Within a transaction."""
    _restate(connection, run_id, _AS_CRAWLED, _AS_CHECKED)


def _restate(connection: Connection, run_id: int, now: tuple[str, str, str], then: tuple[str, str, str]) -> None:
    """now, then: columns of `verdict`. Hosts are locked in their order, as everywhere."""
    connection.execute(f"{_LOCK} ORDER BY shard, id FOR NO KEY UPDATE".encode())
    connection.execute(_RESTATE.format(*now, *then).encode(), {"run": run_id})


_CLOCK = "extract(epoch FROM clock_timestamp())::float8"
_SUM = "(SELECT coalesce(sum(c.value), 0)::bigint FROM run_count c WHERE c.run_id = r.id AND c.name = '{}')"
_COLUMNS = (
    f"r.id, r.kind, r.starts, r.settings, r.seed, r.started, r.ended, r.state, r.note,"
    f" r.fetched + {_SUM.format('fetched')}, r.wire_bytes + {_SUM.format('wire_bytes')}"
)


def begin(
    connection: Connection,
    kind: str,
    starts: Sequence[Url],
    settings: Settings,
    further: Mapping[str, object] | None = None,
) -> int:
    """A new run; returns its id. further: see `model.ports.CrawlHome.begin_run`.

    What earlier runs knew of hosts' failures is forgotten: they are asked anew. Within a transaction.

    Hosts are locked in their order, as everywhere: workers of the last run may still be at work.
    """
    refuse(connection)
    resume(connection)
    connection.execute(
        f"UPDATE run SET state = 'stopped', note = 'it did not end by itself', ended = {_CLOCK} WHERE state = 'running'"
    )
    connection.execute("SELECT 1 FROM host WHERE strikes <> 0 OR waits_for <> '' ORDER BY shard, id FOR NO KEY UPDATE")
    connection.execute("UPDATE host SET strikes = 0, waits_for = '' WHERE strikes <> 0 OR waits_for <> ''")
    connection.execute("DELETE FROM robots WHERE cause <> '' OR status >= 500 OR status = 429")
    # a password is no part of the record
    values = as_values(settings) | {"auth": "***" if settings.identity.auth else "", **(further or {})}
    insert = (
        "INSERT INTO run (kind, starts, settings, seed, started, state)"
        f" VALUES (%s, %s, %s, %s, {_CLOCK}, 'running') RETURNING id"
    )
    row = connection.execute(
        insert, (kind, json.dumps(list(starts)), json.dumps(values), values.get("seed", 0))
    ).fetchone()
    assert row is not None
    lift(connection, int(row[0]))
    return int(row[0])


def end(connection: Connection, run_id: int, state: str, note: str) -> None:
    resume(connection)
    settle(connection, run_id)
    connection.execute(f"UPDATE run SET state = %s, note = %s, ended = {_CLOCK} WHERE id = %s", (state, note, run_id))


def add_starts(connection: Connection, starts: Sequence[UrlId], sites: Sequence[SiteKey]) -> None:
    rows = [(shard_of(site), url_id) for url_id, site in zip(starts, sites, strict=True)]
    connection.cursor().executemany(f"INSERT INTO start VALUES (%s, %s, {_CLOCK}) ON CONFLICT DO NOTHING", rows)


def records(connection: Connection) -> list[RunRecord]:
    """All runs, oldest first."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM run r ORDER BY r.id").fetchall()
    return [RunRecord(row[0], row[1], tuple(json.loads(row[2])), json.loads(row[3]), *row[4:]) for row in rows]


def findings(connection: Connection, run_id: int) -> Mapping[RefreshFinding, int]:
    """What a run found, by kind; every kind is named."""
    rows = connection.execute(
        "SELECT name, sum(value)::bigint FROM run_count WHERE run_id = %s GROUP BY name", (run_id,)
    ).fetchall()
    counts = {str(row[0]): int(row[1]) for row in rows}
    return {finding: counts.get(finding.value, 0) for finding in RefreshFinding}


def sums(connection: Connection) -> tuple[int, int, int]:
    """(hosts met, hosts with work waiting, entries of their to-do lists and of the inbox)."""
    find = (
        "SELECT count(*), count(*) FILTER (WHERE pending > 0), coalesce(sum(pending), 0)::bigint + (SELECT "
        "count(*) FROM inbox) FROM host"
    )
    row = connection.execute(find).fetchone()
    assert row is not None
    return int(row[0]), int(row[1]), int(row[2])


def tallies(connection: Connection) -> list[StateTally]:
    """URLs by state and reason, states in the order of State, most URLs first."""
    find = (
        "SELECT substr(name, 8), sum(value)::bigint FROM tally WHERE name LIKE 'reason:%'"
        " GROUP BY name HAVING sum(value) > 0"
    )
    rows = [
        StateTally(STATE_OF[Reason(name)], Reason(name), int(urls))
        for name, urls in connection.execute(find).fetchall()
    ]
    states = list(State)
    return sorted(rows, key=lambda tally: (states.index(tally.state), -tally.urls, tally.reason))


def traps(connection: Connection) -> list[TrapTally]:
    """The URL patterns left out as endless series, the largest first; looks at every URL where there are any."""
    if not connection.execute(
        "SELECT 1 FROM tally WHERE name = 'reason:trap' GROUP BY name HAVING sum(value) > 0"
    ).fetchone():
        return []
    find = (
        "SELECT split_part(rule, ': ', 1) AS family, count(*) FROM url WHERE reason = 'trap'"
        " GROUP BY 1 ORDER BY 2 DESC, 1"
    )
    return [TrapTally(pattern, urls) for pattern, urls in connection.execute(find).fetchall()]


def hosts_at_work(connection: Connection, most: int) -> list[HostRow]:
    """Hosts with work, those with most waiting first."""
    find = (
        f"SELECT key, pending, fetched, next_at - {_CLOCK}, waits_for, lease_by IS NOT NULL FROM host"
        " WHERE pending > 0 ORDER BY pending DESC, key LIMIT %s"
    )
    rows = connection.execute(find, (most,)).fetchall()
    return [
        HostRow(HostKey(key), pending, fetched, max(0.0, wait), why, leased)
        for key, pending, fetched, wait, why, leased in rows
    ]


def workers_at_work(connection: Connection) -> int:
    row = connection.execute(f"SELECT count(*) FROM worker WHERE lease_until >= {_CLOCK}").fetchone()
    return int(row[0]) if row else 0


def size_bytes(connection: Connection) -> int:
    """Of the collection's tables and indexes; segments lie elsewhere."""
    find = (
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
        " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    )
    row = connection.execute(find).fetchone()
    return int(row[0]) if row else 0
