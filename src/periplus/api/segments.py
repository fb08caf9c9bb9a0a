"""Do the segments of a collection on PostgreSQL hold what its pages point at, and what do they hold for nothing?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from periplus.errors import UsageError
from periplus.model.archive import SegmentState
from periplus.store.postgres import schema, segment_rows
from periplus.store.postgres.address import address_of
from periplus.store.postgres.connection import connect
from periplus.store.segment_sweep import swept
from periplus.store.shelves import shelf_of

Watch = Callable[[str], None]  # is told the segment that was read


def check_segments(store: str, *, delete: bool = False, watch: Watch = lambda name: None) -> Sequence[SegmentState]:
    """Reads every segment. delete: those that no page points into, while nobody crawls. Raises UsageError, NoCollection, StoreError."""
    address = address_of(store)
    with contextlib.closing(connect(address)) as connection:
        schema.check(connection, address.collection)
        place = segment_rows.place_of_segments(connection)
        if not place:
            raise UsageError(f"{address} keeps the bytes of its pages in the database: there are no segments to check")
        if delete and (workers := segment_rows.workers_at_work(connection)):
            raise UsageError(f"{workers} workers are at work: what they have written and not yet entered looks unused. Stop them, then delete.")
        connection.execute("SET idle_in_transaction_session_timeout = 0")  # segments are read between two blocks of rows
        found, shelf = [], shelf_of(place)
        with connection.transaction():
            for state in swept(shelf, segment_rows.claimed(connection)):
                watch(state.name)
                found.append(state)
        if delete:
            for state in found:
                if state.is_unused:
                    shelf.delete(state.name)
        shelf.close()
        return found
