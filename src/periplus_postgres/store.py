"""The collections in PostgreSQL, as the core knows them: `periplus.api.homes.DatabaseStore`, as functions."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from periplus.features import value_at
from periplus.masking import without_secrets
from periplus_postgres import connection, schema
from periplus_postgres.address import address_of

if TYPE_CHECKING:
    from periplus.model.ports import Clock
    from periplus.store.job_queue import JobQueue

_PLACES = {  # of the other functions, which are imported when they are called
    "cache_folder": "caches:cache_folder",
    "clear": "collection:clear",
    "collection": "collection:DatabaseCollection",
    "files": "collection:DatabaseFiles",
    "home": "frontier:DatabaseHome",
    "index_feed": "shared_index:index_feed",
    "reader": "table_rows:PostgresReader",
    "remove": "collection:remove",
    "search_source": "shared_index:search_source",
    "serve_index": "shared_index:serve_index",
    "shared_index": "shared_index:shared_index",
    "shares_index": "index_place:is_shared",
    "shrink": "deleting:shrink",
    "writer": "deleting:writer",
    "take_in": "moving:import_into_database",
    "withdraw_index": "collection:withdraw_index",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(name)
    return value_at(f"periplus_postgres.{_PLACES[name]}")


def name(place: str) -> str:
    return address_of(place).collection


def plain(place: str) -> str:
    return without_secrets(replace(address_of(place), segments="").text)


def queue(place: str, *, make: bool, waits: bool) -> tuple[JobQueue, Clock]:
    from periplus_postgres.statements import DatabaseClock, database_queue

    address = address_of(place)
    session = connection.Session(address, connection.PATIENCE_S if waits else connection.FIRST_PATIENCE_S)
    with contextlib.ExitStack() as stack:
        stack.callback(session.close)
        session.run(lambda opened: (schema.create if make else schema.check)(opened, address.collection))
        stack.pop_all()
    return database_queue(session), DatabaseClock(session)
