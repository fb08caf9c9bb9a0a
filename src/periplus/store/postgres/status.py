"""How does a collection in PostgreSQL stand, in sums?"""

from __future__ import annotations

from periplus.model.frontier import HostRow, TrapTally
from periplus.model.results import StateTally
from periplus.model.visit import STATE_OF, Reason, State
from periplus.model.web import HostKey
from periplus.store.postgres.connection import Connection

_CLOCK = "extract(epoch FROM clock_timestamp())::float8"


def sums(connection: Connection) -> tuple[int, int, int]:
    """(hosts met, hosts with work waiting, entries of their to-do lists and of the inbox)."""
    find = "SELECT count(*), count(*) FILTER (WHERE pending > 0), coalesce(sum(pending), 0)::bigint + (SELECT count(*) FROM inbox) FROM host"
    row = connection.execute(find).fetchone()
    assert row is not None
    return int(row[0]), int(row[1]), int(row[2])


def tallies(connection: Connection) -> list[StateTally]:
    """URLs by state and reason, states in the order of State, most URLs first."""
    find = "SELECT substr(name, 8), sum(value)::bigint FROM tally WHERE name LIKE 'reason:%' GROUP BY name HAVING sum(value) > 0"
    found = [StateTally(STATE_OF[Reason(name)], Reason(name), int(urls)) for name, urls in connection.execute(find).fetchall()]
    states = list(State)
    return sorted(found, key=lambda tally: (states.index(tally.state), -tally.urls, tally.reason))


def traps(connection: Connection) -> list[TrapTally]:
    """The families that were left out as endless series, the largest first; looks at every URL where there are any."""
    if not connection.execute("SELECT 1 FROM tally WHERE name = 'reason:trap' GROUP BY name HAVING sum(value) > 0").fetchone():
        return []
    find = "SELECT split_part(rule, ': ', 1) AS family, count(*) FROM url WHERE reason = 'trap' GROUP BY 1 ORDER BY 2 DESC, 1"
    return [TrapTally(family, urls) for family, urls in connection.execute(find).fetchall()]


def hosts_at_work(connection: Connection, most: int) -> list[HostRow]:
    """Hosts with work, those with most waiting first."""
    find = f"SELECT key, pending, fetched, next_at - {_CLOCK}, waits_for, lease_by IS NOT NULL FROM host WHERE pending > 0 ORDER BY pending DESC, key LIMIT %s"
    rows = connection.execute(find, (most,)).fetchall()
    return [HostRow(HostKey(key), pending, fetched, max(0.0, wait), why, leased) for key, pending, fetched, wait, why, leased in rows]


def workers_at_work(connection: Connection) -> int:
    row = connection.execute(f"SELECT count(*) FROM worker WHERE lease_until >= {_CLOCK}").fetchone()
    return int(row[0]) if row else 0


def size_bytes(connection: Connection) -> int:
    """Of the collection's tables and indexes; segments lie elsewhere."""
    find = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    row = connection.execute(find).fetchone()
    return int(row[0]) if row else 0
