"""Results of engines are loaded into a collection, in a folder or a database: completely, replacing earlier results,
and never into another collection.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from periplus.api.homes import results_of
from periplus.cli.main import main
from periplus.errors import StoreError, UsageError
from periplus.model.ports import ComputedTable, ResultNote
from periplus.model.web import SiteKey
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome
from periplus.urls.canonical import canonical, url_id
from periplus_postgres.address import address_of
from periplus_postgres.connection import connect
from periplus_postgres.moving import move
from periplus_spark import dataset as dataset_rows
from periplus_spark.api import analyse_dataset
from periplus_spark.datasets import export_dataset, load_results
from periplus_spark.files import blocks
from stored import NOW, copied, kept_in, page, stored

SITE = {
    "https://e.org/": page("Home", "/a", "/b", "/o", "https://x.org/"),
    "https://e.org/a": page("A ž", "/b", "/"),
    "https://e.org/b": page("B", "/", "/gone"),
    "https://e.org/gone": 404,
    "https://e.org/o": "/b",
}
NOTE = ResultNote("ranks", "d1", "numbers", "{}", "1", 5.0)
RANKS = ComputedTable("result_ranks", [("url", "INTEGER"), ("rank", "REAL")], [(0, 0.5), (1, 0.25), (2, 0.25)])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "c"
    stored(folder, SITE, ["https://e.org/"])
    FolderHome(folder).add_starts([url_id(canonical("https://e.org/"))], [SiteKey("")], NOW)
    return folder


@pytest.fixture(scope="module", params=["folder", "database"])
def kept(request, made):
    """The same collection for tests that only read it."""
    with kept_in(request.param, made) as place:
        yield place


@pytest.fixture(params=["folder", "database"])
def place(request, made, tmp_path):
    """The collection, stored in a folder or a database: a path, or an address as text."""
    folder = copied(made, tmp_path / "c")
    if request.param == "folder":
        return folder
    address = request.getfixturevalue("address")
    move(str(folder), address.text)
    return address.text


@pytest.fixture
def computed(place, tmp_path):
    """(dataset, results) of the collection."""
    export_dataset(place, tmp_path / "d", 1.0)
    analyse_dataset(tmp_path / "d", ["ranks", "links", "map"], tmp_path / "r")
    return tmp_path / "d", tmp_path / "r"


def asked(place, find):
    opened = sqlite3.connect(place / schema.DATABASE) if isinstance(place, Path) else connect(address_of(place))
    with closing(opened) as connection:
        return connection.execute(find).fetchall()


def result_tables(place):
    names = (
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        if isinstance(place, Path)
        else "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
    )
    return {name for (name,) in asked(place, names) if name.startswith(("result_", "new_"))}


def test_each_way_of_storage_gives_the_same_dataset(made, kept, tmp_path):
    first, second = (
        export_dataset(one, tmp_path / name, 1.0, with_texts=True) for one, name in ((made, "one"), (kept, "two"))
    )
    assert first.digest == second.digest and second.rows("links") > 8 and second.rows("texts") == 3
    assert second.inputs["last_run"] == first.inputs["last_run"] and second.inputs["collection"]


def test_more_rows_than_are_looked_up_at_once_give_the_same_dataset_too(made, kept, tmp_path, monkeypatch):
    for module in ("periplus.store.site_rows.BLOCK_ROWS", "periplus_postgres.table_rows.NUMBERS_AT_ONCE"):
        monkeypatch.setattr(module, 3)
    monkeypatch.setattr(dataset_rows, "URLS_AT_ONCE", dict.fromkeys(dataset_rows.URLS_AT_ONCE, 2))
    first, second = (export_dataset(one, tmp_path / name, 1.0) for one, name in ((made, "one"), (kept, "two")))
    assert first.digest == second.digest


def test_results_are_available_in_sql(place, computed):
    rows = load_results(place, computed[1], computed[0], 9.0)
    assert (
        rows["result_ranks"] == 3 and rows["result_broken"] == 1 and rows["result_url"] == 6 and rows["result_map"] == 3
    )
    found = asked(
        place,
        (
            "SELECT u.text, r.rank FROM result_ranks r JOIN result_url n ON n.url = r.url"
            " JOIN url u ON u.id = n.id ORDER BY r.rank DESC"
        ),
    )
    assert sum(rank for _, rank in found) == pytest.approx(1) and found[0][0] == "https://e.org/"
    assert sorted(asked(place, "SELECT name FROM result_site")) == [("e.org",), ("x.org",)]
    said = {
        name: (json.loads(parameters), loaded)
        for name, parameters, loaded in asked(place, "SELECT name, parameters, loaded FROM result")
    }
    assert said["ranks"] == ({"damping": 0.85, "max_rounds": 200, "tolerance": 1e-10}, 9.0)
    whole = [
        tuple(row.values())
        for folder in computed[1].glob("map-*")
        for block in blocks(folder, "map", ["url", "depth"])
        for row in block.to_pylist()
    ]
    assert sorted(asked(place, "SELECT url, depth FROM result_map")) == sorted(whole)


def test_loading_again_replaces_earlier_results(place, computed):
    for now in (1.0, 2.0):
        load_results(place, computed[1], computed[0], now)
    assert asked(place, "SELECT count(*) FROM result_ranks") == [(3,)]
    assert asked(place, "SELECT DISTINCT loaded FROM result") == [(2.0,)]
    assert not [name for name in result_tables(place) if name.startswith("new_")]


def test_results_with_obsolete_numbers_are_deleted(place, computed):
    load_results(place, computed[1], computed[0], 1.0)
    with results_of(place, 2.0) as store:
        assert store.dataset() and [run.started for run in store.runs()] == [NOW]
        store.clear()
        assert store.replace(RANKS) == 3
        store.note(NOTE)
    assert result_tables(place) == {"result_ranks"}
    assert asked(place, "SELECT name, dataset, loaded FROM result") == [("ranks", "numbers", 2.0)]


def test_results_are_loaded_completely_or_not_at_all(place, computed):
    load_results(place, computed[1], computed[0], 1.0)
    before = (
        sorted(asked(place, "SELECT * FROM result_ranks")),
        sorted(asked(place, "SELECT * FROM result")),
        result_tables(place),
    )
    with pytest.raises(StoreError, match="the disk is full"), results_of(place, 2.0) as store:
        store.clear()
        store.replace(RANKS)
        raise StoreError("the disk is full")
    assert (
        sorted(asked(place, "SELECT * FROM result_ranks")),
        sorted(asked(place, "SELECT * FROM result")),
        result_tables(place),
    ) == before


STRANGE = ('x"; DROP TABLE url; --', "", "Result", "r" * 51, "result-a")


def test_names_from_a_foreign_manifest_do_not_reach_sql(place):
    for table in (
        *(RANKS._replace(name=name) for name in STRANGE),
        *(RANKS._replace(columns=[("url", "INTEGER"), (name, "REAL")]) for name in STRANGE),
    ):
        with (
            pytest.raises(StoreError, match="is not a valid name for a table or column"),
            results_of(place, 1.0) as store,
        ):
            store.replace(table)
    assert asked(place, "SELECT count(*) FROM url") == [(6,)] and result_tables(place) == set()


def test_a_dataset_of_another_collection_is_refused(place, computed, tmp_path):
    """Even with the same pages, and so the same numbers."""
    manifest = computed[0] / "manifest.json"
    manifest.write_text(manifest.read_text().replace(str(NOW), str(NOW + 1)))
    with pytest.raises(
        UsageError,
        match=r"d is not a dataset of .*, but of .*, or of a deleted run: run `periplus export parquet` again",
    ):
        load_results(place, computed[1], computed[0], 1.0)
    assert result_tables(place) == set()


def test_a_dataset_from_before_a_move_belongs_to_the_collection(made, place, tmp_path):
    export_dataset(made, tmp_path / "d", 1.0)
    analyse_dataset(tmp_path / "d", ["ranks"], tmp_path / "r")
    assert load_results(place, tmp_path / "r", tmp_path / "d", 1.0)["result_ranks"] == 3


def test_texts_bytes_and_empty_tables_are_stored(place):
    with results_of(place, 1.0) as store:
        assert store.replace(ComputedTable("result_t", [("t", "TEXT"), ("b", "BLOB")], [("ž\t\\N", b"\0\xff")])) == 1
        assert store.replace(ComputedTable("result_none", [("t", "TEXT")], [])) == 0
    assert [(text, bytes(data)) for text, data in asked(place, "SELECT t, b FROM result_t")] == [("ž\t\\N", b"\0\xff")]
    assert asked(place, "SELECT * FROM result_none") == []


def test_in_a_database_earlier_results_are_read_while_new_ones_are_loaded(address):
    with results_of(address.text, 1.0) as store:
        store.replace(RANKS)
        store.note(NOTE)
    with results_of(address.text, 2.0) as store:
        store.clear()
        store.replace(RANKS._replace(rows=[(7, 1.0)]))
        assert asked(address.text, "SELECT count(*) FROM result_ranks") == [(3,)]
        with pytest.raises(StoreError, match=r"are already being loaded into"), results_of(address.text, 3.0):
            pass
    assert asked(address.text, "SELECT url FROM result_ranks") == [(7,)]


def test_an_error_of_the_server_is_reported_in_one_sentence(address):
    with (
        pytest.raises(StoreError, match=r"could not be written: nothing was changed: ") as told,
        results_of(address.text, 1.0) as store,
    ):
        store.replace(ComputedTable("result_t", [("t", "TEXT")], [("a\0b",)]))
    assert isinstance(told.value.__cause__, psycopg.Error)


MAP_FORMATS = ("text", "json", "xml", "gexf", "svg")


def test_the_map_is_the_same_byte_for_byte(made, kept):
    for format in MAP_FORMATS:
        first, second = (
            CliRunner().invoke(main, ["map", *named(one), "-f", format, "--no-run"]) for one in (made, kept)
        )
        assert (first.exit_code, first.output) == (0, second.output) and "e.org" in first.output


def named(place):
    return ["-c", str(place)] if isinstance(place, Path) else ["-c", place]


def test_missing_features_of_databases_are_reported(address, tmp_path):
    for wish, told in (
        (["map", "-c", address.text, "-c", str(tmp_path)], "name only one"),
        (["map", "-c", address.text], "the collection has no run yet"),
        (["map", "-c", address.text + "x"], "has no collection"),
    ):
        ended = CliRunner().invoke(main, wish)
        assert ended.exit_code == 2 and told in ended.output, ended.output


def test_a_table_has_the_same_rows_in_whatever_order(made, kept):
    for table, format in itertools.product(
        ["pages", "links", "hosts", "urls", "visits", "sites", "runs"], ["csv", "jsonl"]
    ):
        wish = ["export", table, "-f", format, *(["--no-rank"] if table == "pages" else [])]
        first, second = (CliRunner().invoke(main, [*wish, *named(one)]) for one in (made, kept))
        assert (first.exit_code, second.exit_code) == (0, 0), second.output
        assert sorted(first.output.splitlines()) == sorted(second.output.splitlines()) and len(
            first.output.splitlines()
        ) > (format == "csv")
