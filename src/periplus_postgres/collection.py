"""The reader of a collection in a database, the files of its users, and its deletion and checks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from periplus.api.collection import Collection
from periplus.api.homes import home_of, reader_of
from periplus.errors import UsageError
from periplus.files import checked_file, is_user_file
from periplus.model.collection import SegmentState
from periplus.store import runs
from periplus_postgres.address import Address, address_of

if TYPE_CHECKING:  # needs the extra `postgres`: imported by functions that connect
    from periplus.api.searching import Search
    from periplus.store.statements import Statements
    from periplus_postgres.connection import Connection


class DatabaseCollection(Collection):
    """Reader of a collection at an address (`postgresql://...`), also during a crawl.

    It is read in the database; a search also reads an index in `homes.cache_folder`: docs/postgresql.md.
    """

    def __init__(self, address: str, time_limit_s: float = 0.0) -> None:
        """time_limit_s: as in `Collection`. Raises NoCollection, StoreError."""
        self._text, self._address = address, address_of(address)
        self._reader, self._store = reader_of(address), str(self._address)
        self._begin(time_limit_s)

    @property
    def place(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<DatabaseCollection {self._address.collection}>"

    @contextlib.contextmanager
    def _opened_search(self) -> Iterator[Search]:
        """With the index that readers share, which may be published anew between two searches."""
        from periplus.api.searching import open_search

        with open_search({"": self._text}, self._limit_s) as search:
            yield search


_ADD_FILE = (
    "INSERT INTO file VALUES (?, ?, (extract(epoch FROM clock_timestamp()) * 1e9)::bigint)"
    " ON CONFLICT (name) DO UPDATE SET data = {} excluded.data, changed = excluded.changed"
)


class DatabaseFiles:
    """`api.homes.UserFiles` of a collection in a database: rows of the table `file`, with changes in nanoseconds of its
    server's clock. Changes are not counted (`notes.count_change`), since no index or other computed data contain them.
    """

    def __init__(self, place: str) -> None:
        from periplus_postgres.frontier import DatabaseHome

        self._home = DatabaseHome(place)

    def names(self, pattern: str) -> list[str]:
        names = [str(name) for (name,) in self._home.read(lambda statements: statements.rows("SELECT name FROM file"))]
        return sorted(name for name in names if is_user_file(name) and fnmatchcase(name, pattern))

    def read(self, name: str) -> bytes | None:
        data: bytes | None = self._value("data", name)
        return data

    def changed_s(self, name: str) -> float:
        return (self._value("changed", name) or 0) / 1e9

    def _value(self, column: str, name: str) -> Any:
        find, key = f"SELECT {column} FROM file WHERE name = ?", (checked_file(name),)
        rows = self._home.read(lambda statements: statements.rows(find, key))
        return rows[0][0] if rows else None

    def write(self, name: str, data: bytes) -> None:
        self._change(_ADD_FILE.format(""), name, data)

    def append(self, name: str, data: bytes) -> None:
        self._change(_ADD_FILE.format("file.data ||"), name, data)

    def remove(self, name: str) -> bool:
        return self._change("DELETE FROM file WHERE name = ?", name) > 0

    def _change(self, statement: str, name: str, *values: bytes) -> int:
        def change(statements: Statements) -> int:
            runs.refuse(statements)
            return statements.change(statement, (checked_file(name), *values))

        return self._home.change(change)


def clear(store: str) -> None:
    """Deletes the contents of a collection in a database, including its segments and shared index. Keeps its jobs, and
    the storage places of segments and index unless the address names others.

    Raises UsageError while workers run, NoCollection, StoreError.
    """
    from periplus_postgres import index_place, schema, table_rows
    from periplus_postgres.segments import object_storage

    address = address_of(store)
    with home_of(store).only_crawl(), _connect(address) as connection:
        if workers := table_rows.workers_at_work(connection):
            raise UsageError(f"{workers} workers are running on {address}. Stop them, then delete.")
        place, names = table_rows.place_of_segments(connection), table_rows.segments_of_pages(connection)
        index = index_place.place_of_index(connection)
        _withdraw(index, f"{address.collection}-")
        if names:
            with contextlib.closing(object_storage(place)) as storage:
                for name in names:
                    storage.delete(name)
        # last: the rows name the segments, whose deletion may fail and must then be repeated
        schema.clear(connection, {"segments": address.segments or place, "index": address.index or index})


def withdraw_index(store: str) -> None:
    """Deletes the shared index of a collection after a deletion of pages; the next search publishes a new one. Raises
    UsageError, NoCollection, StoreError.
    """
    from periplus_postgres import index_place

    address = address_of(store)
    with _connect(address) as connection:
        _withdraw(index_place.place_of_index(connection), f"{address.collection}-index-")


def _withdraw(place: str, names: str) -> None:
    from periplus_postgres.published import withdraw
    from periplus_postgres.segments import object_storage

    if place:
        with contextlib.closing(object_storage(place)) as storage:
            withdraw(storage, names)


def remove(store: str) -> None:
    """Deletes a collection in a database: tables, jobs, segments, computed data. Raises as `clear`."""
    from periplus_postgres import schema
    from periplus_postgres.caches import forget

    clear(store)
    address = address_of(store)
    with _connect(address) as connection:
        schema.drop(connection, address.collection)
    forget(address)


def check_segments(
    store: str, *, delete: bool = False, watch: Callable[[str], None] = lambda name: None
) -> Sequence[SegmentState]:
    """Reads every segment of a collection in a database and reports whether it has the records that pages refer to.

    delete: delete segments that no page refers to; not during a crawl. watch: called with the name of each segment.
    Raises UsageError, NoCollection, StoreError.
    """
    from periplus_postgres import table_rows
    from periplus_postgres.segments import object_storage, swept

    address = address_of(store)
    with _connect(address) as connection:
        place = table_rows.place_of_segments(connection)
        if not place:
            raise UsageError(f"{address} stores page bodies in the database: there are no segments to check")
        if delete and (workers := table_rows.workers_at_work(connection)):
            raise UsageError(
                f"{workers} workers are running: segments that they have written and not committed look unused. Stop "
                "them, then delete."
            )
        # the connection is idle while segments are read
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        states, storage = [], object_storage(place)
        with connection.transaction():
            for state in swept(storage, table_rows.record_places(connection)):
                watch(state.name)
                states.append(state)
        if delete:
            for state in states:
                if state.is_unused:
                    storage.delete(state.name)
        storage.close()
        return states


@contextlib.contextmanager
def _connect(address: Address) -> Iterator[Connection]:
    """Connects to an existing collection. Raises UsageError, NoCollection, StoreError."""
    from periplus_postgres import schema
    from periplus_postgres.connection import connect

    with contextlib.closing(connect(address)) as connection:
        schema.check(connection, address.collection)
        yield connection
