"""Columns that features add to the pages of a collection, computed from each page when its row is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from periplus.api.homes import open_reader
from periplus.errors import NoCollection
from periplus.features import blame, loaded
from periplus.model.tables import Column, Table
from periplus.model.web import Url, UrlId
from periplus.store.reader import CollectionReader
from periplus.store.views import PageFilter
from periplus.urls.canonical import url_id
from periplus.values import Place, Row


class ExtraColumns(NamedTuple):
    """Added columns. values: a function of a reader and names of columns, in their order, that returns the function
    from the id of a page to the values of these columns.
    """

    columns: tuple[Column, ...]
    values: Callable[[CollectionReader, Sequence[str]], Callable[[UrlId], Row]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def rows(self, rows: Iterable[Row], place: int, reader: CollectionReader, names: Sequence[str]) -> Iterator[Row]:
        """Page rows extended by the values of these columns. place: index of the id in a row."""
        asked = [name for name in self.names if name in names]
        if not asked:
            yield from rows
            return
        values = self.values(reader, asked)
        for row in rows:
            page_id = row[place]
            assert isinstance(page_id, int)
            yield (*row, *values(UrlId(page_id)))


def extra_columns(place: Place) -> list[ExtraColumns]:
    """The columns that features add to the pages of a collection. Raises UsageError for invalid rules."""
    made = (
        (package, blame(package)(columns_at)(place)) for package, columns_at in loaded("page_columns", object).values()
    )
    return [extra._replace(values=blame(package)(extra.values)) for package, extra in made if extra is not None]


def extended_pages(
    reader: CollectionReader, which: PageFilter, names: Sequence[str], table: Table, extras: Sequence[ExtraColumns]
) -> Iterator[Row]:
    """Pages with the named columns of a table and of features; the latter are computed only where named."""
    computed = [name for extra in extras for name in extra.names]
    stored = ["id", *(name for name in names if name not in computed)]
    order = [*stored[1:], *(name for name in computed if name in names)]
    places = [order.index(name) + 1 for name in names]
    rows: Iterator[Row] = reader.pages(which, stored, table)
    for extra in extras:
        rows = extra.rows(rows, 0, reader, names)
    return (tuple(row[place] for place in places) for row in rows)


def extra_values(place: Place, url: Url) -> dict[str, object]:
    """Values of the extra columns for a page, by name; empty if the page is not stored."""
    try:
        with open_reader(place) as reader:
            if reader.read_as(url_id(url)) is None:
                return {}
            extras = extra_columns(place)
            return {
                name: value
                for extra in extras
                for name, value in zip(extra.names, extra.values(reader, extra.names)(url_id(url)), strict=True)
            }
    except NoCollection:
        return {}
