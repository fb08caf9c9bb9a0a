"""How does a collection move from a folder into a database?"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from uuid import uuid4

from periplus.api.moving import Moved, Watch, compared, watched
from periplus.api.rules import SETTINGS_FILE, rules_text
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.model.archive import RunNote
from periplus.store.moving import MovedBody, Row, Sum, summed
from periplus.store.postgres import copying, schema
from periplus.store.postgres.address import Address, address_of
from periplus.store.postgres.connection import Connection, connect
from periplus.store.postgres.copying import BodyTarget
from periplus.store.segments import SegmentReader, SegmentWriter, shelf_of
from periplus.store.sqlite import copying as source
from periplus.store.sqlite import moved, reading, runs
from periplus.store.sqlite.schema import exists, writing
from periplus.urls.rule_file import rules_key


def into_database(folder: Path, store: str, watch: Watch) -> Moved:
    """See `moving.move`."""
    address = address_of(store)
    if not exists(folder):
        raise NoCollection(f"{folder} holds no collection")
    with contextlib.ExitStack() as stack:
        stack.enter_context(copying.spoken())
        stack.enter_context(runs.only_crawl(folder))
        connection = stack.enter_context(contextlib.closing(reading.connect(folder)))
        stack.enter_context(reading.reading())
        stack.enter_context(reading.snapshot(connection))
        moved.refuse(connection)
        rules = _rules(folder, connection)
        source.know_shards(connection, schema.shard_of)
        target = stack.enter_context(contextlib.closing(connect(address)))
        copying.take_time(target)
        sent = _sent(connection, target, address, rules, watch)
        with writing(folder) as own:
            moved.mark(own, str(address))
    return Moved(str(address), {name: total.rows for name, total in sent.items()})


def _rules(folder: Path, connection: reading.Connection) -> str:
    """The rules for URLs that were applied to the collection. Raises UsageError where others are wished by now."""
    text = rules_text(folder)
    if rules_key(text) != source.rules_in_force(connection):
        raise UsageError(f"the rules in {folder / SETTINGS_FILE} are not applied yet: `periplus rules apply -c {folder}`, then move")
    return text if rules_key(text) else ""


def _sent(connection: reading.Connection, target: Connection, address: Address, rules: str, watch: Watch) -> Mapping[str, Sum]:
    """All of it in one transaction; returns what went, by table."""
    sent: dict[str, Sum] = {}
    with target.transaction(), contextlib.ExitStack() as stack:
        schema.create(target, address.collection)
        if not copying.is_empty(target):
            raise StoreError(f"{address} holds a collection already. Choose another name: collection=NAME.")
        tables = {table.name: table for table in copying.tables(target, partial(source.columns_of, connection))}
        for name, table in tables.items():
            sent[name] = Sum(has_bytes=table.has_bytes)
            copying.enter(target, table, watched(summed(source.rows_out(connection, table), sent[name], skip=1), f"Moving {name}", watch))
        writer = stack.enter_context(_writer(connection, address)) if address.segments else None
        sent["body"] = Sum()
        bodies = _bodies(connection, sent["body"], watch)
        copying.enter_bodies(target, bodies, BodyTarget(writer.append if writer else None, copying.dictionary_shards(target)))
        if writer:
            writer.flush()
        meta = {"segments": address.segments, "rules_text": rules}
        copying.complete(target, source.last_seq(connection), {name: value for name, value in meta.items() if value})
        reader = SegmentReader(shelf_of(address.segments)) if address.segments else None

        def arrived(name: str) -> Iterator[Row]:
            if name == "body":
                return (body.row for body in copying.bodies_out(target, reader))
            return copying.rows_out(target, tables[name])

        compared(sent, arrived, watch)
    return sent


def _bodies(connection: reading.Connection, total: Sum, watch: Watch) -> Iterator[MovedBody]:
    for count, body in enumerate(source.bodies_out(connection), 1):
        total.add(body.row)
        yield body
        if count % 100 == 0:
            watch("Moving bodies", count)


def _writer(connection: reading.Connection, address: Address) -> SegmentWriter:
    """Segments tell of the last run: they hold pages of all."""
    records = runs.run_records(connection)
    if not records:
        return SegmentWriter(shelf_of(address.segments), f"moved-{uuid4().hex}", RunNote(0, 0.0, "", (), "{}", True))
    last = records[-1]
    agent, robots = str(last.settings.get("user_agent", "")), not last.settings.get("ignore_robots", False)
    note = RunNote(last.id, last.started, agent, last.starts, json.dumps(last.settings), robots)
    return SegmentWriter(shelf_of(address.segments), f"moved-{uuid4().hex}", note)
