"""Which tables leave a collection in a database? Those that are rows of its own; what is computed of a site's links is asked of `periplus analyse`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from periplus.api.exporting import Table, columns_of
from periplus.api.homes import rows_of
from periplus.errors import UsageError


@contextlib.contextmanager
def stored_table(store: str, name: str) -> Iterator[Table]:
    """As `exporting.table` without ranks, of the collection at an address. Raises UsageError, NoCollection, StoreError."""
    if name in ("redirects", "issues"):
        raise UsageError(f"{name} are found in collections in folders: `periplus move` makes one of a collection in a database")
    with rows_of(store, name) as rows:
        yield Table(name, columns_of(name, ranks=False), rows)
