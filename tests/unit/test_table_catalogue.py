"""The catalogue of tables: a column is added in one place, and shows wherever the table does."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace

import pytest

from periplus.api.exporting import exported_table
from periplus.errors import UsageError
from periplus.model import tables
from periplus.model.tables import EXPORTS, LINKS, PAGES, SEEN, VIEWS, Column, ColumnKind, row_maker
from periplus.store.postgres.table_rows import statement
from periplus.store.sqlite import listing, reading, schema, views
from periplus.store.sqlite.listing import PageFilter
from periplus.store.sqlite.tables import LEAFED, TableQuery, condition, in_memory, rows_of, sample_of
from stored import page, stored

HOME = "https://e.org/"
SITE = {HOME: page("Home", "/a"), "https://e.org/a": page("Alpha")}
SLASHES = Column(
    "slashes",
    ColumnKind.INTEGER,
    "how many slashes the URL has",
    "length(u.text) - length(replace(u.text, '/', ''))",
    facet=True,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("catalogue") / "c", SITE, [HOME])


def test_a_column_that_is_added_shows_in_the_view_the_list_the_screen_and_the_export(folder):
    """Each is asked with the table alone: nothing else names its columns."""
    wider = replace(SEEN, columns=(*SEEN.columns, SLASHES))
    with contextlib.closing(sqlite3.connect(folder / schema.DATABASE)) as plain:
        plain.execute("DROP VIEW pages")
        plain.execute(views.view(replace(PAGES, columns=(*PAGES.columns, SLASHES))))
        assert plain.execute("SELECT slashes FROM pages ORDER BY url").fetchall() == [(3,), (3,)]
    with contextlib.closing(reading.connect(folder)) as connection:
        assert [row_maker(wider.names)(row).slashes for row in listing.whole(connection, wider)] == [3, 3]
        query = TableQuery((("slashes", "3"),), sort=("-slashes", "url"))
        sample = sample_of(connection, wider, query, ("url", "slashes"))
        assert {facet.name: facet.values for facet in sample.facets}["slashes"] == (("3", 2),)
        assert list(rows_of(connection, wider, query, ("url", "slashes"), sample)) == [
            (HOME, 3),
            ("https://e.org/a", 3),
        ]
    assert SLASHES.sql in statement(wider)


@pytest.mark.parametrize("table", [*VIEWS.values(), *EXPORTS.values(), *LEAFED.values()])
def test_columns_have_distinct_names_and_a_sentence(table):
    assert len(set(table.names)) == len(table.columns)
    assert all(column.sentence for column in table.columns)
    assert {name.removeprefix("-") for name in table.order} <= set(table.names)


def test_one_name_means_one_kind_of_value_in_every_table():
    kinds: dict[str, set[ColumnKind]] = {}
    every = [table for table in vars(tables).values() if isinstance(table, tables.Table)]
    for column in (column for table in every for column in table.columns):
        kinds.setdefault(column.name, set()).add(column.kind)
    assert {name: kind for name, kind in kinds.items() if len(kind) > 1} == {}


def test_a_column_that_there_is_not_is_refused_with_those_that_there_are(folder):
    with contextlib.closing(reading.connect(folder)) as connection:
        for ask in (
            lambda: list(listing.pages(connection, PageFilter(), ("colour",))),
            lambda: condition(LINKS, "colour", "red"),
            lambda: exported_table("colours"),
        ):
            with pytest.raises(UsageError, match="choose among"):
                ask()


def test_computed_rows_are_leafed_through_like_stored_ones():
    table = tables.Table("some words", "", (Column("order", ColumnKind.INTEGER, "a keyword of SQL"),))
    with contextlib.closing(in_memory((table, [(2,), (1,), (3,)]))) as connection:
        assert list(rows_of(connection, table, TableQuery((("order", "2.."),), sort=("-order",)))) == [(3,), (2,)]
