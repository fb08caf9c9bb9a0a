"""What does a collection in a database hold, how did its runs end, and who is at work on it?"""

from __future__ import annotations

import contextlib
from pathlib import Path

from periplus.api.collection import Status
from periplus.store.postgres import pausing, runs, schema, status
from periplus.store.postgres.address import address_of
from periplus.store.postgres.connection import connect

BUSIEST = 10


def store_status(store: str) -> Status:
    """In one snapshot. Raises UsageError, NoCollection, StoreError."""
    address = address_of(store)
    with contextlib.closing(connect(address)) as connection:
        schema.check(connection, address.collection)
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            hosts, waiting, entries = status.sums(connection)
            workers = status.workers_at_work(connection)
            return Status(
                folder=Path(),
                size_bytes=status.size_bytes(connection),
                running=workers > 0,
                paused=pausing.is_paused(connection),
                runs=tuple(runs.records(connection)),
                counts=tuple(status.tallies(connection)),
                hosts=hosts,
                hosts_waiting=waiting,
                entries_waiting=entries,
                busiest=tuple(status.hosts_at_work(connection, BUSIEST)),
                traps=tuple(status.traps(connection)),
                store=str(address),
                workers=workers,
            )
