"""What engines computed of a collection, on its way back: tables, a note on each analysis, and the place that takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from periplus.model.crawl_home import RunRecord


class ResultNote(NamedTuple):
    """What was computed. name: of the analysis; dataset: the digest of what it was computed from; parameters: JSON; made: seconds since the epoch."""

    name: str
    digest: str
    dataset: str
    parameters: str
    program: str
    made: float


class ComputedTable(NamedTuple):
    """One table. columns: name and kind of each (INTEGER, REAL, TEXT, BLOB); rows: streamed, every value there."""

    name: str
    columns: Sequence[tuple[str, str]]
    rows: Iterable[Sequence[object]]


class ResultStore(Protocol):
    """Takes results within one transaction, which ends when all of them are there: until then, and after a kill, what was there before is read."""

    def runs(self) -> Sequence[RunRecord]:
        """Of the collection."""

    def dataset(self) -> str:
        """The digest of the dataset whose numbers the results here are in; empty: there are none."""

    def clear(self) -> None:
        """Drops all results: they are in numbers of another dataset. Before any `replace`."""

    def replace(self, table: ComputedTable) -> int:
        """Puts a table in place of an earlier one of its name; returns its rows. Raises StoreError for a name that is none."""

    def note(self, said: ResultNote) -> None:
        """Says what the tables of an analysis are."""
