"""How a collection in a database stands: what it holds, who is at work on it,
and whether its segments hold what its pages point at.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from periplus.api.collection import Status
from periplus.errors import UsageError
from periplus.model.collection import SegmentState
from periplus.store import runs
from periplus.store.crawl_reads import backlog, hosts_at_work, state_tallies, traps
from periplus.store.postgres import hosts as host_rows
from periplus.store.postgres import schema, table_rows
from periplus.store.postgres.address import address_of
from periplus.store.postgres.connection import connect
from periplus.store.postgres.statements import PostgresStatements
from periplus.store.segments import object_storage, swept

BUSIEST = 10


def store_status(store: str) -> Status:
    """In one snapshot. Raises UsageError, NoCollection, StoreError."""
    address = address_of(store)
    with contextlib.closing(connect(address)) as connection:
        schema.check(connection, address.collection)
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            statements = PostgresStatements(connection)
            hosts, waiting, entries = backlog(statements)
            workers = host_rows.workers_at_work(connection)
            return Status(
                folder=Path(),
                size_bytes=host_rows.size_bytes(connection),
                running=workers > 0,
                paused=runs.is_paused(statements),
                runs=tuple(runs.records(statements)),
                counts=tuple(state_tallies(statements)),
                hosts=hosts,
                hosts_waiting=waiting,
                entries_waiting=entries,
                busiest=tuple(hosts_at_work(statements, BUSIEST, host_rows.time_now(connection, None))),
                traps=tuple(traps(statements)),
                store=str(address),
                workers=workers,
            )


Watch = Callable[[str], None]  # is told the segment that was read


def check_segments(store: str, *, delete: bool = False, watch: Watch = lambda name: None) -> Sequence[SegmentState]:
    """Reads every segment.

    delete: those that no page points into, while nobody crawls. Raises UsageError, NoCollection, StoreError.
    """
    address = address_of(store)
    with contextlib.closing(connect(address)) as connection:
        schema.check(connection, address.collection)
        place = table_rows.place_of_segments(connection)
        if not place:
            raise UsageError(f"{address} keeps the bytes of its pages in the database: there are no segments to check")
        if delete and (workers := table_rows.workers_at_work(connection)):
            raise UsageError(
                f"{workers} workers are at work: what they have written and not yet entered looks "
                "unused. Stop them, then delete."
            )
        # segments are read between two blocks of rows
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        states, storage = [], object_storage(place)
        with connection.transaction():
            for state in swept(storage, table_rows.claimed(connection)):
                watch(state.name)
                states.append(state)
        if delete:
            for state in states:
                if state.is_unused:
                    storage.delete(state.name)
        storage.close()
        return states
