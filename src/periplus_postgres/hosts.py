"""Workers, their leases of hosts, and expired workers.

A transaction locks the rows of hosts before it changes them, in key order, which prevents deadlocks. It locks the
worker's own row first; while it holds that lock, no other process can take the worker's hosts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from periplus.model.frontier import PRIORITY_CHECK, HostState, Lease, ReadyHost
from periplus.model.web import HostKey, SiteKey
from periplus.store.runs import IS_PAUSED
from periplus_postgres import schema
from periplus_postgres.connection import Connection, columns_of

# the database's clock; tests pass their own time
NOW = "coalesce(%(now)s::float8, extract(epoch FROM clock_timestamp())::float8)"
CHECKS = f"(priority < 0 OR priority = {PRIORITY_CHECK})"  # queue entries of a check
_LEASE = "h.id, h.key, s.key, h.epoch, h.next_at, h.delay_s, h.rate, h.strikes, h.answered"


class Holding(NamedTuple):
    """A host leased by a worker."""

    id: int
    shard: int
    key: HostKey
    epoch: int
    site_id: int


class Change(NamedTuple):
    """Changes of a host in a commit. state: its pace, if changed."""

    shard: int
    host_id: int
    pending: int
    fetched: int
    state: HostState | None


@cache
def this_machine() -> str:
    """Identifies this machine since its boot, and this container. Processes can only be checked within it.

    Empty: unknown.
    """
    try:
        return (
            f"{Path('/proc/sys/kernel/random/boot_id').read_text('ascii').strip()}/"
            f"{Path('/proc/self/ns/pid').readlink()}"
        )
    except OSError:
        return ""


def time_now(connection: Connection, now: float | None) -> float:
    """Seconds since the epoch by the database's clock. now: replacement for tests."""
    return float(_query_number(connection, f"SELECT {NOW}", {"now": now}))


def _query_number(connection: Connection, query: str, values: dict[str, object]) -> float:
    row = connection.execute(query, values).fetchone()
    assert row is not None
    return float(row[0])


def register_worker(connection: Connection, pid: int, lease_s: float, now: float | None) -> tuple[str, int]:
    """Registers a worker; returns its name and its part."""
    insert = (
        "INSERT INTO worker (name, pid, joined, lease_until, machine, host)"
        " SELECT gen_random_uuid()::text, %(pid)s, t.now, t.now + %(lease)s, %(machine)s, %(host)s"
        f" FROM (SELECT {NOW} AS now) t RETURNING name, part"
    )
    values = {"pid": pid, "lease": lease_s, "machine": this_machine(), "host": os.uname().nodename, "now": now}
    row = connection.execute(insert, values).fetchone()
    assert row is not None
    return str(row[0]), int(row[1])


class Member(NamedTuple):
    """A worker of this process."""

    name: str
    pid: int
    part: int


def renew_lease(connection: Connection, member: Member, lease_s: float, batches: int, now: float | None) -> None:
    """Renews a worker's lease. A worker that expired is registered again, without hosts. Raises StoreError if the
    tables have another version by then.
    """
    upsert = (
        "INSERT INTO worker (name, pid, part, machine, host, batches, joined, lease_until)"
        " SELECT %(name)s, %(pid)s, %(part)s, %(machine)s, %(host)s, %(batches)s, t.now, t.now + %(lease)s"
        f" FROM (SELECT {NOW} AS now) t"
        " ON CONFLICT (name) DO UPDATE SET lease_until = excluded.lease_until"
        " RETURNING xmax = 0"  # the row is new
    )
    values = {
        "name": member.name,
        "pid": member.pid,
        "part": member.part,
        "machine": this_machine(),
        "host": os.uname().nodename,
        "batches": batches,
        "lease": lease_s,
        "now": now,
    }
    row = connection.execute(upsert, values).fetchone()
    if row is not None and row[0]:
        schema.refuse_other_version(connection)


def expired_workers(connection: Connection, is_alive: Callable[[int], bool], now: float | None) -> list[str]:
    """Workers whose lease has expired, and workers of this machine whose process is dead."""
    find = f"SELECT name, pid, machine, lease_until < {NOW} FROM worker"
    rows = connection.execute(find, {"now": now}).fetchall()
    return [
        name
        for name, pid, machine, late in rows
        if late or (machine and machine == this_machine() and not is_alive(pid))
    ]


def dead_workers(connection: Connection, is_alive: Callable[[int], bool]) -> list[str]:
    """Workers of this machine whose process is dead."""
    rows = connection.execute(
        "SELECT name, pid FROM worker WHERE machine = %s AND machine <> ''", (this_machine(),)
    ).fetchall()
    return [name for name, pid in rows if not is_alive(pid)]


def remove_workers(
    connection: Connection,
    workers: Sequence[str],
    is_alive: Callable[[int], bool],
    now: float | None,
    *,
    leaving: bool = False,
) -> None:
    """Removes workers and frees their hosts, which wait their delay, since the last request may have just been sent.

    A worker that is frozen within a transaction is skipped: the server ends the transaction within seconds.
    """
    for worker in sorted(workers):
        # it may have renewed its lease
        late = "" if leaving else f" AND (lease_until < {NOW} OR (machine = %(machine)s AND machine <> ''))"
        find = (
            f"SELECT pid, lease_until < {NOW} FROM worker"
            f" WHERE name = %(name)s{late} FOR UPDATE{'' if leaving else ' SKIP LOCKED'}"
        )
        row = connection.execute(find, {"name": worker, "now": now, "machine": this_machine()}).fetchone()
        if row is None or not (leaving or row[1] or not is_alive(row[0])):
            continue
        connection.execute("SELECT 1 FROM host WHERE lease_by = %s ORDER BY shard, id FOR NO KEY UPDATE", (worker,))
        free = (
            f"UPDATE host SET lease_by = NULL, next_at = greatest(next_at, {NOW} + delay_s / "
            "rate) WHERE lease_by = %(name)s"
        )
        connection.execute(free, {"name": worker, "now": now})
        connection.execute("DELETE FROM worker WHERE name = %s", (worker,))


def delay_free_hosts(connection: Connection) -> None:
    """Makes all free hosts wait their delay from now on, since the times of their last requests may be lost."""
    free = "lease_by IS NULL AND pending > 0"
    with connection.transaction():
        connection.execute(f"SELECT 1 FROM host WHERE {free} ORDER BY shard, id FOR NO KEY UPDATE".encode())
        wait = f"UPDATE host SET next_at = greatest(next_at, {NOW} + delay_s / rate) WHERE {free}"
        connection.execute(wait, {"now": None})


def has_work(*, checks: bool) -> str:
    """SQL condition: host `h` has tasks. checks: only tasks of a check."""
    entry = f"EXISTS (SELECT 1 FROM queue q WHERE q.shard = h.shard AND q.host_id = h.id AND {CHECKS})"
    return f"h.pending > 0 AND {entry}" if checks else "h.pending > 0"


def ready(
    connection: Connection, most: int, horizon_s: float, now: float | None, *, checks: bool = False
) -> list[ReadyHost]:
    """Free hosts with tasks whose next request is allowed within horizon_s; longest due first."""
    find = (
        "SELECT h.id, h.key, s.key, h.pending, (SELECT sum(o.fetched) FROM host o WHERE o.shard = h.shard"
        " AND o.site_id = h.site_id)::bigint, h.next_at - t.now"
        f" FROM (SELECT {NOW} AS now) t JOIN host h ON h.next_at <= t.now + %(horizon)s"
        " JOIN site s ON s.shard = h.shard AND s.id = h.site_id"
        f" WHERE {has_work(checks=checks)} AND h.lease_by IS NULL AND NOT {IS_PAUSED} ORDER BY h.next_at LIMIT %(most)s"
    )
    rows = connection.execute(find, {"now": now, "horizon": horizon_s, "most": most})
    return [
        ReadyHost(i, HostKey(key), SiteKey(site), pending, fetched, max(0.0, wait))
        for i, key, site, pending, fetched, wait in rows
    ]


def lease_hosts(
    connection: Connection, worker: str, hosts: Sequence[tuple[int, int]], now: float | None
) -> list[Lease]:
    """Leases those of the hosts, given by (shard, id), that are free.

    Skips hosts that another transaction has locked.
    """
    free = (
        "SELECT h.shard, h.id FROM unnest(%(shards)s::smallint[], %(ids)s::bigint[]) k(shard, id)"
        " JOIN host h ON h.shard = k.shard AND h.id = k.id"
        f" WHERE (h.lease_by IS NULL OR h.lease_by = %(name)s) AND h.pending > 0 AND NOT {IS_PAUSED}"
        " ORDER BY h.shard, h.id FOR NO KEY UPDATE OF h SKIP LOCKED"
    )
    take = (
        f"WITH free AS MATERIALIZED ({free}) UPDATE host h"
        " SET lease_by = %(name)s, epoch = h.epoch + 1 FROM free f, site s"
        " WHERE h.shard = f.shard AND h.id = f.id AND s.shard = h.shard"
        f" AND s.id = h.site_id RETURNING {_LEASE}, {NOW}"
    )
    shards, ids = columns_of(hosts, 2)
    rows = connection.execute(take, {"name": worker, "shards": shards, "ids": ids, "now": now}).fetchall()
    leases = {row[0]: _lease(*row) for row in rows}
    return [leases[host_id] for _, host_id in hosts if host_id in leases]


def _lease(host_id: int, key: str, site: str, epoch: int, *rest: float) -> Lease:
    next_at, delay_s, rate, strikes, answered, now = rest
    return Lease(
        host_id,
        HostKey(key),
        SiteKey(site),
        epoch,
        max(0.0, next_at - now),
        delay_s,
        rate,
        int(strikes),
        bool(answered),
    )


def holdings(connection: Connection, worker: str) -> dict[int, Holding]:
    """Hosts leased by a worker, by id. Valid while the transaction holds the lock on the worker's row."""
    rows = connection.execute(
        "SELECT id, shard, key, epoch, site_id FROM host WHERE lease_by = %s", (worker,)
    ).fetchall()
    return {row[0]: Holding(row[0], row[1], HostKey(row[2]), row[3], row[4]) for row in rows}


def lock(connection: Connection, hosts: Iterable[tuple[int, int]]) -> None:
    """Locks hosts, given by (shard, id), in key order."""
    ordered = sorted(hosts)
    if not ordered:
        return
    find = (
        "SELECT 1 FROM unnest(%s::smallint[], %s::bigint[]) k(shard, id)"
        " JOIN host h ON h.shard = k.shard AND h.id = k.id"
        " ORDER BY h.shard, h.id FOR NO KEY UPDATE OF h"
    )
    connection.execute(find, columns_of(ordered, 2))


def change(connection: Connection, changes: Sequence[Change], now: float) -> None:
    """Writes counters and paces of locked hosts."""
    rows = [(item.shard, item.host_id, item.pending, item.fetched, *_pace(item.state, now)) for item in changes]
    if not rows:
        return
    names = "shard, id, pending, fetched, next_at, delay_s, rate, strikes, answered, waits_for, release"
    kinds = (
        "smallint",
        "bigint",
        "bigint",
        "bigint",
        "float8",
        "float8",
        "float8",
        "bigint",
        "smallint",
        "text",
        "boolean",
    )
    unless_new = ", ".join(
        f"{name} = coalesce(v.{name}, h.{name})"
        for name in ("next_at", "delay_s", "rate", "strikes", "answered", "waits_for")
    )
    update = (
        f"UPDATE host h SET pending = h.pending + v.pending, fetched = h.fetched + v.fetched, {unless_new},"
        " lease_by = CASE WHEN v.release THEN NULL ELSE h.lease_by END"
        f" FROM unnest({', '.join(f'%s::{kind}[]' for kind in kinds)}) v({names})"
        " WHERE h.shard = v.shard AND h.id = v.id"
    )
    connection.execute(update, columns_of(rows, len(kinds)))


def _pace(state: HostState | None, now: float) -> tuple[object, ...]:
    if state is None:
        return (None, None, None, None, None, None, False)
    return (
        now + state.wait_s,
        state.delay_s,
        state.rate,
        state.strikes,
        int(state.answered),
        state.waits_for,
        state.release,
    )


def workers_with_lease(connection: Connection) -> int:
    """Number of workers with a valid lease, whether or not their process is alive."""
    row = connection.execute(
        "SELECT count(*) FROM worker WHERE lease_until >= extract(epoch FROM clock_timestamp())"
    ).fetchone()
    return int(row[0]) if row else 0


def size_bytes(connection: Connection) -> int:
    """Size of the collection's tables and indexes, without segments."""
    find = (
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
        " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    )
    row = connection.execute(find).fetchone()
    return int(row[0]) if row else 0
