"""The collections in PostgreSQL, as the core knows them. What a method needs is imported when it is called."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from periplus.api.collection import Collection
from periplus.api.homes import DatabaseStore, IndexSharing, Watch
from periplus.masking import without_secrets
from periplus.model.ports import Clock, CrawlHome
from periplus.store.reader import CollectionReader
from periplus.store.sqlite.reading import Follow
from periplus_postgres import connection, schema
from periplus_postgres.address import address_of

if TYPE_CHECKING:
    from periplus.api.searching import SearchedCollection
    from periplus.children import Parent
    from periplus.model.dataset import ResultStore
    from periplus.model.results import ImportResult
    from periplus.store.job_queue import JobQueue


class PostgresStore:
    """`periplus.api.homes.DatabaseStore` of PostgreSQL."""

    def name(self, place: str) -> str:
        return address_of(place).collection

    def plain(self, place: str) -> str:
        return without_secrets(replace(address_of(place), segments="").text)

    def home(self, place: str) -> CrawlHome:
        from periplus_postgres.frontier import DatabaseHome

        return DatabaseHome(address_of(place))

    def reader(self, place: str) -> CollectionReader:
        from periplus_postgres.table_rows import PostgresReader

        return PostgresReader(address_of(place))

    def collection(self, place: str, time_limit_s: float, watch: Watch | None) -> Collection:
        from periplus_postgres.collection import DatabaseCollection

        return DatabaseCollection(place, time_limit_s, watch)

    def queue(self, place: str, *, make: bool, waits: bool) -> tuple[JobQueue, Clock]:
        from periplus_postgres.statements import DatabaseClock, database_queue

        address = address_of(place)
        session = connection.Session(address, connection.PATIENCE_S if waits else connection.FIRST_PATIENCE_S)
        with contextlib.ExitStack() as stack:
            stack.callback(session.close)
            session.run(lambda opened: (schema.create if make else schema.check)(opened, address.collection))
            stack.pop_all()
        return database_queue(session), DatabaseClock(session)

    def folder(self, place: str, watch: Watch) -> Path:
        from periplus_postgres.copies import local_copy

        return local_copy(place, watch)

    def copy_folder(self, place: str) -> Path:
        from periplus_postgres.copies import copy_folder

        return copy_folder(address_of(place))

    def editing(self, place: str) -> AbstractContextManager[Path]:
        from periplus_postgres.copies import edit_copy

        return edit_copy(place)

    def changing(self, place: str, alone: bool) -> AbstractContextManager[tuple[Path, Follow]]:
        from periplus_postgres import following

        return following.alone(place) if alone else following.changing(place)

    def results(self, place: str, now: float) -> AbstractContextManager[ResultStore]:
        from periplus_postgres.analysis_rows import results

        return results(address_of(place), now)

    def shares_index(self, place: str) -> bool:
        from periplus_postgres.index_place import is_shared

        return is_shared(address_of(place))

    def shared_index(self, place: str, folder: Path) -> IndexSharing | None:
        from periplus_postgres.shared_index import index_of_copy

        return index_of_copy(address_of(place), folder)

    def search_source(self, name: str, place: str, limit_s: float) -> AbstractContextManager[SearchedCollection | None]:
        from periplus_postgres.shared_index import search_source

        return search_source(name, place, limit_s)

    def serve_index(self, place: str, parent: Parent, watch: Callable[[int, int], bool]) -> None:
        from periplus_postgres.shared_index import serve_index

        serve_index(place, parent, watch)

    def take_in(self, place: str, make: Callable[[Path], ImportResult]) -> ImportResult:
        from periplus_postgres.moving import import_into_database

        return import_into_database(place, make)

    def shrink(self, place: str) -> None:
        from periplus_postgres.following import shrink

        shrink(place)

    def withdraw_index(self, place: str) -> None:
        from periplus_postgres.collection import withdraw_index

        withdraw_index(place)

    def clear(self, place: str) -> None:
        from periplus_postgres.collection import clear

        clear(place)

    def remove(self, place: str) -> None:
        from periplus_postgres.collection import remove

        remove(place)


STORE: DatabaseStore = PostgresStore()
