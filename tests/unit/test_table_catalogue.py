"""The catalogue of tables: a column is added in one place and appears wherever the table does."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from periplus.api.exporting import exported_table
from periplus.errors import UsageError
from periplus.model import tables
from periplus.model.tables import EXPORTS, LINKS, VIEWS, Column, ColumnKind
from periplus.store.sqlite import listing, reading
from periplus.store.tables import BROWSABLE_TABLES, TableQuery, computed_database, condition, rows_of
from periplus.store.views import PageFilter
from stored import page, stored

TESTS = Path(__file__).parent.parent
HOME = "https://e.org/"
SITE = {HOME: page("Home", "/a"), "https://e.org/a": page("Alpha")}
SLASHES = "        slashes integer facet: how many slashes it has | length(u.text) - length(replace(u.text, '/', ''))\n"
WIDER = """
import importlib.util, sys, types

spec = importlib.util.find_spec("periplus.model.tables")
source = open(spec.origin, encoding="utf-8").read()
before = '        etag text filled:'
assert source.count(before) == 1
tables = sys.modules[spec.name] = types.ModuleType(spec.name)
exec(compile(source.replace(before, sys.argv[1] + before), spec.origin, "exec"), tables.__dict__)

from pathlib import Path
from click.testing import CliRunner
import periplus
from interface import client
from periplus.cli.main import main
from periplus.cli.reference import tables_reference
from periplus_postgres.statements import POSTGRES
from periplus.store.views import select
from stored import page, stored

folder = stored(Path("e.periplus"), {"https://e.org/": page("Home", "/a"), "https://e.org/a": page("A")}, ["https://e.org/"])
run = lambda *words: CliRunner().invoke(main, [*words, "-c", str(folder)], catch_exceptions=False).stdout.split()
assert run("pages", "--columns", "url,slashes", "-f", "csv") == ["url,slashes", "https://e.org/,3", "https://e.org/a,3"]
assert run("sql", "SELECT slashes FROM pages", "-f", "csv") == ["slashes", "3", "3"]
for words in (["--no-rank"], []):
    head, *rows = run("export", "pages", *words)
    assert [row.split(",")[head.split(",").index("slashes")] for row in rows] == ["3", "3"]
with periplus.open(folder) as collection:
    assert [row.slashes for row in collection.pages()] == [3, 3]
screen = client(Path(".")).get("/c/e/t/pages?columns=url,slashes&slashes=3&sort=-slashes&format=json").json()
assert sorted(screen["rows"]) == [["https://e.org/", 3], ["https://e.org/a", 3]], screen
assert ["slashes", [["3", 2]]] in [[facet["name"], facet["values"]] for facet in screen["facets"]]
assert all("how many slashes it has" in tables_reference("", of) for of in (tables.EXPORTS, tables.VIEWS))
assert "replace(u.text" in select(tables.PAGES, dialect=POSTGRES)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("catalogue") / "c", SITE, [HOME])


def test_a_column_added_to_the_catalogue_appears_in_every_view_list_screen_export_and_document(tmp_path):
    """Runs in its own process, with one more line in the catalogue."""
    places = os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", "")))
    ended = subprocess.run(
        [sys.executable, "-c", WIDER, SLASHES],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("table", [*VIEWS.values(), *EXPORTS.values(), *BROWSABLE_TABLES.values()])
def test_columns_have_distinct_names_and_a_description(table):
    assert len(set(table.names)) == len(table.columns)
    assert all(column.sentence for column in table.columns)
    assert {name.removeprefix("-") for name in table.order} <= set(table.names)


def test_a_column_name_has_the_same_type_in_every_table():
    kinds: dict[str, set[ColumnKind]] = {}
    every = [table for table in vars(tables).values() if isinstance(table, tables.Table)]
    for column in (column for table in every for column in table.columns):
        kinds.setdefault(column.name, set()).add(column.kind)
    assert {name: kind for name, kind in kinds.items() if len(kind) > 1} == {}


def test_an_unknown_column_is_refused_with_the_known_columns(folder):
    with contextlib.closing(reading.connect(folder)) as connection:
        for ask in (
            lambda: list(listing.SqliteReader(connection).pages(PageFilter(), ("colour",))),
            lambda: condition(LINKS, "colour", "red"),
            lambda: exported_table("colours"),
        ):
            with pytest.raises(UsageError, match="choose among"):
                ask()


def test_computed_rows_are_filtered_and_sorted_like_stored_rows():
    table = tables.Table("some words", "", (Column("order", ColumnKind.INTEGER, "a keyword of SQL"),))
    with contextlib.closing(computed_database((table, [(2,), (1,), (3,)]))) as connection:
        assert list(rows_of(connection, table, TableQuery((("order", "2.."),), sort=("-order",)))) == [(3,), (2,)]
