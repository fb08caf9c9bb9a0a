"""Where is the queue of jobs, and by which clock does it go? In a folder of collections, or in a collection on PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from periplus.acquire.clock import SystemClock
from periplus.model.job import JobStore
from periplus.model.ports import Clock


@contextlib.contextmanager
def opened_queue(folder: Path, store: str = "", *, make: bool = False) -> Iterator[tuple[JobStore, Clock]]:
    """The queue of the folder or, where store is an address, of that collection. make: a collection that is not there yet.

    Raises UsageError, NoCollection, StoreError.
    """
    queue, clock = _in_database(store, make) if store else _in_folder(folder)
    try:
        yield queue, clock
    finally:
        queue.close()


def _in_folder(folder: Path) -> tuple[JobStore, Clock]:
    from periplus.store.sqlite.job_queue import JobQueue

    return JobQueue(folder), SystemClock()


def _in_database(store: str, make: bool) -> tuple[JobStore, Clock]:
    from periplus.store.postgres import schema
    from periplus.store.postgres.address import address_of
    from periplus.store.postgres.job_queue import PostgresJobQueue
    from periplus.store.postgres.session import Session

    address = address_of(store)
    session = Session(address)
    with contextlib.ExitStack() as stack:
        stack.callback(session.close)
        session.run(lambda connection: (schema.create if make else schema.check)(connection, address.collection))
        stack.pop_all()
    queue = PostgresJobQueue(session)
    return queue, queue.clock
