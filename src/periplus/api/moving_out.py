"""How does a collection move from a database into a folder, where every analysis can read it?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from periplus.api.moving import Moved, Watch, compared, watched
from periplus.api.rules import SETTINGS_FILE
from periplus.errors import StoreError, UsageError
from periplus.store.moving import MovedBody, Sum, summed
from periplus.store.postgres import copying as source
from periplus.store.postgres import inbox, moved, schema, segment_rows
from periplus.store.postgres.address import address_of
from periplus.store.postgres.connection import Connection, connect
from periplus.store.postgres.home import DatabaseHome
from periplus.store.segments import SegmentReader, shelf_of
from periplus.store.sqlite import copying
from periplus.store.sqlite.schema import drafted


def into_folder(store: str, folder: Path, watch: Watch) -> Moved:
    """See `moving.move`."""
    address, place = address_of(store), str(folder.resolve())
    with source.spoken(), DatabaseHome(address).only_crawl(), contextlib.closing(connect(address)) as connection:
        schema.check(connection, address.collection)
        source.take_time(connection)
        moved.refuse(connection, unless=place)
        with contextlib.ExitStack() as stack:
            moved.mark(connection, place)  # before all else, so that nobody joins a crawl that goes on elsewhere
            stack.callback(moved.unmark, connection)
            source.bring_letters(connection, address.collection)
            with source.one_moment(connection):
                if (workers := segment_rows.workers_at_work(connection)) or not inbox.is_empty(connection):
                    raise UsageError(f"{workers or 'some'} workers are at work on {address}. Stop them first: SIGTERM, or `periplus jobs cancel`.")
                sent = _filled(connection, folder, watch)
            stack.pop_all()
    return Moved(str(folder), {name: total.rows for name, total in sent.items()})


def _filled(connection: Connection, folder: Path, watch: Watch) -> Mapping[str, Sum]:
    """The new collection, which appears when it was compared; returns what it was made of, by table."""
    place = segment_rows.place_of_segments(connection)
    reader = SegmentReader(shelf_of(place)) if place else None
    sent: dict[str, Sum] = {}
    with drafted(folder) as draft:
        tables = {table.name: table for table in source.tables(connection, partial(copying.columns_of, draft))}
        with copying.transaction(draft):
            for name, table in tables.items():
                sent[name] = Sum(has_bytes=table.has_bytes)
                copying.enter(draft, table, watched(summed(source.rows_out(connection, table), sent[name]), f"Moving {name}", watch))
            sent["body"] = Sum()
            copying.enter_bodies(draft, _bodies(connection, reader, sent["body"], watch))
            copying.complete(draft, source.last_seq(connection))
            compared(sent, lambda name: copying.bodies_back(draft) if name == "body" else copying.rows_back(draft, tables[name]), watch)
        _keep_rules(source.rules_text(connection), folder)
    return sent


def _bodies(connection: Connection, reader: SegmentReader | None, total: Sum, watch: Watch) -> Iterator[MovedBody]:
    for count, body in enumerate(source.bodies_out(connection, reader), 1):
        total.add(body.row)
        yield body
        if count % 100 == 0:
            watch("Moving bodies", count)


def _keep_rules(text: str, folder: Path) -> None:
    """The rules for URLs, where a folder has them. Raises StoreError for a periplus.toml that is there already."""
    path = folder / SETTINGS_FILE
    if text and path.exists():
        raise StoreError(f"{path} is there already, and the collection brings rules of its own: take it away, or choose another folder")
    if text:
        path.write_text(text, "utf-8")
