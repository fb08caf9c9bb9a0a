"""A collection in a database, read: what of a `Collection` it can answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from periplus.api.exporting import export_rows, exported_table
from periplus.api.homes import home_of, name_of
from periplus.api.rows import Rows

if TYPE_CHECKING:
    from periplus.api.collection import Status
    from periplus.api.site import Site
    from periplus.model.ports import RunRecord


class DatabaseCollection:
    """One collection at an address (`postgresql://...`), read. A crawl may go on meanwhile.

    Each call opens a connection of its own. Search, reports and studies are asked of collections in folders:
    `periplus move` makes one.
    """

    def __init__(self, address: str) -> None:
        """Raises NoCollection, StoreError."""
        self._address = address
        home_of(address).runs()

    def __enter__(self) -> DatabaseCollection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<DatabaseCollection {name_of(self._address)}>"

    def close(self) -> None:
        """Does nothing: no connection is held."""

    def runs(self) -> Sequence[RunRecord]:
        """All runs, oldest first."""
        return home_of(self._address).runs()

    def status(self) -> Status:
        """What there is, in one value."""
        from periplus.api.store_status import store_status

        return store_status(self._address)

    def map(
        self, site: str = "", *, scale: str = "normalised", damping: float = 0.85, rounds: int | None = None
    ) -> Site:
        """The hierarchical map of a site, as `Collection.map` makes it. Raises UsageError where there is none."""
        from periplus.api.facts import RankOrder
        from periplus.api.site import stored_map

        return stored_map(self._address, site, RankOrder(scale, damping, rounds))

    def table(self, name: str) -> Rows:
        """One table whole: `urls`, `pages`, `links`, `visits`, `hosts`, ...: docs/sql.md. Raises UsageError."""

        def read(names: Sequence[str]) -> Iterator[Sequence[object]]:
            with export_rows(self._address, name, ranks=False) as exported:
                yield from exported.rows

        return Rows(name, exported_table(name, ranks=False).columns, read)
