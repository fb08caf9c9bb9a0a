"""Where does a collection move, and how is it seen that all of it arrived? Between a folder and a database, in the middle of a crawl too.

All of it enters the target in one transaction, is read back and compared with what left, table by table; only then it is there. The
source stays as it was, with a note where it went.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from periplus.api.homes import is_address
from periplus.errors import StoreError, UsageError
from periplus.store.moving import Row, Sum

Watch = Callable[[str, int], None]  # (what is being done, rows so far)
SAID_EVERY = 5_000  # rows


def silent(what: str, rows: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What arrived. place: where, as it is called there; rows: by table."""

    place: str
    rows: Mapping[str, int]


def move(source: str, target: str, watch: Watch = silent) -> Moved:
    """Moves a collection. source, target: a folder and an address, or an address and a folder.

    Raises UsageError, NoCollection and StoreError; then the target holds nothing of it.
    """
    if is_address(source) == is_address(target):
        raise UsageError("a collection moves from a folder to a database, or from a database to a folder: name one of each")
    if is_address(target):
        from periplus.api.moving_in import into_database

        return into_database(Path(source), target, watch)
    from periplus.api.moving_out import into_folder

    return into_folder(source, Path(target), watch)


def watched(rows: Iterable[Row], what: str, watch: Watch) -> Iterator[Row]:
    """The rows as they pass."""
    count = 0
    for count, row in enumerate(rows, 1):
        yield row
        if count % SAID_EVERY == 0:
            watch(what, count)
    watch(what, count)


def compared(sent: Mapping[str, Sum], arrived: Callable[[str], Iterable[Row]], watch: Watch) -> None:
    """Raises StoreError unless each table holds what was sent. arrived: a table's rows, read back."""
    for name, total in sent.items():
        found = Sum(has_bytes=total.has_bytes)
        for row in watched(arrived(name), f"Comparing {name}", watch):
            found.add(row)
        if found != total:
            raise StoreError(f"the table {name} did not arrive whole: {total} left, {found} are there. Nothing was moved.")
