"""A collection in a database, read: what of a `Collection` it can answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from periplus.api.collection import Collection, Status
from periplus.api.homes import folder_of, home_of
from periplus.errors import UsageError
from periplus.model.collection import SegmentState
from periplus.store.crawl_reads import backlog, state_tallies, traps
from periplus.store.postgres.address import Address, address_of
from periplus.store.published import withdraw
from periplus.store.runs import is_paused, records
from periplus.store.segments import object_storage, swept
from periplus.store.sqlite import reading
from periplus.urls.canonical import canonical, url_id

if TYPE_CHECKING:  # what needs the extra `postgres` is loaded by whichever function connects
    from periplus.api.site import Site
    from periplus.model.ports import RunRecord
    from periplus.model.search import SearchResult
    from periplus.store.postgres.connection import Connection


class DatabaseCollection(Collection):
    """Reader of a collection at an address (`postgresql://...`), also during a crawl.

    Its runs, its status and its map are read from the database, and searches where readers share an index; all else
    from its copy, as of the first access: docs/postgresql.md.
    """

    def __init__(
        self, address: str, time_limit_s: float = 0.0, watch: Callable[[str, int], None] | None = None
    ) -> None:
        """time_limit_s: as of `Collection`; watch: as of `folder_of`. Raises NoCollection, StoreError."""
        self._text, self._address, self._watch = address, address_of(address), watch
        self._begin(time_limit_s)
        self.runs()

    @property
    def place(self) -> str:
        return self._text

    @cached_property
    def folder(self) -> Path:  # type: ignore[override]  # of the copy, when it is first read
        return folder_of(self._text, self._watch)

    @cached_property
    def _connection(self) -> reading.Connection:  # type: ignore[override]  # the same
        return reading.connect(self.folder)

    def __repr__(self) -> str:
        return f"<DatabaseCollection {self._address.collection}>"

    def close(self) -> None:
        """Lets go of the copy; nothing can be asked of it afterwards."""
        if "_connection" in self.__dict__:
            super().close()

    def runs(self) -> list[RunRecord]:
        """All runs, oldest first."""
        return list(home_of(self._text).runs())

    def status(self, most_hosts: int = 10) -> Status:
        """Sums and state of the collection, of one snapshot."""
        from periplus.store.postgres import hosts as host_rows
        from periplus.store.postgres.statements import PostgresStatements

        with _connected(self._address) as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            statements = PostgresStatements(connection)
            work = backlog(statements, most_hosts, host_rows.time_now(connection, None))
            workers = host_rows.workers_with_lease(connection)
            return Status(
                folder=Path(),
                size_bytes=host_rows.size_bytes(connection),
                running=workers > 0,
                paused=is_paused(statements),
                runs=tuple(records(statements)),
                counts=tuple(state_tallies(statements)),
                hosts=work.hosts,
                hosts_waiting=work.hosts_waiting,
                entries_waiting=work.to_fetch,
                busiest=work.busiest,
                traps=tuple(traps(statements)),
                store=str(self._address),
                workers=workers,
            )

    def map(
        self, site: str = "", *, scale: str = "normalised", damping: float = 0.85, rounds: int | None = None
    ) -> Site:
        """The hierarchical map of a site, as `Collection.map` makes it. Raises UsageError where there is none."""
        from periplus.api.facts import RankOrder
        from periplus.api.site import stored_map

        return stored_map(self._text, site, RankOrder(scale, damping, rounds))

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        page: int = 1,
        facets: bool = False,
        like: Sequence[float] | str | None = None,
        watch: Callable[[int, int], bool] = lambda done, waiting: False,
    ) -> SearchResult:
        """As of a folder. Where readers share an index it is asked as it was published, and no copy is made."""
        from periplus.api.searching import searched

        near = url_id(canonical(like)) if isinstance(like, str) else like
        with searched({"": self._text}, self._limit_s, lambda place: self.folder) as search:
            behind = search.catch_up(self._clock.now(), watch)
            return search.find(query, limit, page, facets=facets, behind=behind, like=near)


def clear(store: str) -> None:
    """Deletes what a collection in a database holds, the segments that its pages lie in and the index that its readers
    share too; its jobs stay, and the places of both unless the address names others.

    Raises UsageError while somebody works on it, NoCollection, StoreError.
    """
    from periplus.store.postgres import index_place, schema, table_rows

    address = address_of(store)
    with home_of(store).only_crawl(), _connected(address) as connection:
        if workers := table_rows.workers_at_work(connection):
            raise UsageError(f"workers are at work on {address}: {workers}. Stop them, then delete.")
        place, names = table_rows.place_of_segments(connection), table_rows.segments_of_pages(connection)
        index = index_place.place_of_index(connection)
        _withdraw(index, f"{address.collection}-")
        if names:
            with contextlib.closing(object_storage(place)) as storage:
                for name in names:
                    storage.delete(name)
        # last: rows name the segments, which storage may refuse to delete now
        schema.clear(connection, {"segments": address.segments or place, "index": address.index or index})


def withdraw_index(store: str) -> None:
    """Deletes the index that readers of a collection in a database share, for pages went: the next one who searches
    publishes it again, without them. Raises UsageError, NoCollection, StoreError.
    """
    from periplus.store.postgres import index_place

    address = address_of(store)
    with _connected(address) as connection:
        _withdraw(index_place.place_of_index(connection), f"{address.collection}-index-")


def _withdraw(place: str, names: str) -> None:
    if place:
        with contextlib.closing(object_storage(place)) as storage:
            withdraw(storage, names)


def remove(store: str) -> None:
    """Drops a collection in a database: its tables, its jobs, its segments; and its copy here. Raises as `clear`."""
    from periplus.api.copies import forget
    from periplus.store.postgres import schema

    clear(store)
    address = address_of(store)
    with _connected(address) as connection:
        schema.drop(connection, address.collection)
    forget(address)


def check_segments(
    store: str, *, delete: bool = False, watch: Callable[[str], None] = lambda name: None
) -> Sequence[SegmentState]:
    """Reads every segment of a collection in a database, and says whether it holds what pages point at.

    delete: those that no page points into, while nobody crawls. watch: is told the segment that was read. Raises
    UsageError, NoCollection, StoreError.
    """
    from periplus.store.postgres import table_rows

    address = address_of(store)
    with _connected(address) as connection:
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


@contextlib.contextmanager
def _connected(address: Address) -> Iterator[Connection]:
    """To a collection that is there. Raises UsageError, NoCollection, StoreError."""
    from periplus.store.postgres import schema
    from periplus.store.postgres.connection import connect

    with contextlib.closing(connect(address)) as connection:
        schema.check(connection, address.collection)
        yield connection
