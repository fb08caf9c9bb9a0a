"""What engines computed comes back into the collection: whole, under names that one can ask for."""

import json
import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

from periplus.api.computed import load_results
from periplus.api.datasets import export_dataset
from periplus.api.engines import analysed
from periplus.cli.main import main
from periplus.errors import StoreError, UsageError
from periplus.store.sqlite import schema
from stored import page, stored

SITE = {"https://e.org/": page("Home", "/a", "/b"), "https://e.org/a": page("A", "/b"), "https://e.org/b": page("B", "/", "/gone"), "https://e.org/gone": 404}


@pytest.fixture
def computed(tmp_path):
    """(collection, dataset, results)"""
    folder = stored(tmp_path / "c", SITE, ["https://e.org/"])
    export_dataset(folder, tmp_path / "d", 1.0)
    analysed(tmp_path / "d", ["ranks", "links"], tmp_path / "r")
    return folder, tmp_path / "d", tmp_path / "r"


def asked(folder, find):
    with closing(sqlite3.connect(folder / schema.DATABASE)) as connection:
        return connection.execute(find).fetchall()


def test_results_are_asked_for_in_sql(computed):
    rows = load_results(*[computed[at] for at in (0, 2, 1)], now=9.0)
    assert rows["result_ranks"] == 3 and rows["result_broken"] == 1 and rows["result_url"] == 4
    found = asked(computed[0], "SELECT u.text, r.rank FROM result_ranks r JOIN result_url n ON n.url = r.url JOIN url u ON u.id = n.id ORDER BY r.rank DESC")
    assert len(found) == 3 and sum(rank for _, rank in found) == pytest.approx(1) and found[0][0] == "https://e.org/b"
    assert asked(computed[0], "SELECT name FROM result_site") == [("e.org",)]
    names = {name: (json.loads(parameters), loaded) for name, parameters, loaded in asked(computed[0], "SELECT name, parameters, loaded FROM result")}
    assert names["ranks"] == ({"damping": 0.85, "max_rounds": 200, "tolerance": 1e-10}, 9.0)


def test_what_is_loaded_again_takes_the_place_of_what_was(computed):
    for now in (1.0, 2.0):
        load_results(computed[0], computed[2], computed[1], now)
    assert asked(computed[0], "SELECT count(*) FROM result_ranks") == [(3,)]
    assert asked(computed[0], "SELECT DISTINCT loaded FROM result") == [(2.0,)]


def test_results_in_other_numbers_go(computed, tmp_path):
    load_results(computed[0], computed[2], computed[1], 1.0)
    other = stored(tmp_path / "c", {"https://e.org/new": page("New")}, ["https://e.org/new"])
    export_dataset(other, tmp_path / "e", 1.0)
    with pytest.raises(UsageError, match=r"holds no finished results of .*: . were computed from another dataset"):
        load_results(other, computed[2], tmp_path / "e", 2.0)
    analysed(tmp_path / "e", ["ranks"], tmp_path / "r")
    load_results(other, computed[2], tmp_path / "e", 2.0)
    tables = {name for (name,) in asked(other, "SELECT name FROM sqlite_master WHERE type = 'table'") if name.startswith("result_")}
    assert "result_ranks" in tables and "result_broken" not in tables


def test_nothing_is_loaded_unless_all_of_it_is(computed, monkeypatch):
    load_results(computed[0], computed[2], computed[1], 1.0)
    before = asked(computed[0], "SELECT * FROM result_ranks"), asked(computed[0], "SELECT * FROM result")
    monkeypatch.setattr("periplus.store.sqlite.result_rows.note", lambda *given: (_ for _ in ()).throw(StoreError("the disk is full")))
    with pytest.raises(StoreError, match="the disk is full"):
        load_results(computed[0], computed[2], computed[1], 2.0)
    assert (asked(computed[0], "SELECT * FROM result_ranks"), asked(computed[0], "SELECT * FROM result")) == before


def test_names_from_a_strange_manifest_reach_no_statement(computed):
    place = next(computed[2].glob("ranks-*")) / "manifest.json"
    place.write_text(place.read_text().replace('"rank"', '"rank\\" INTEGER); DROP TABLE url; --"'))
    with pytest.raises((StoreError, KeyError)):
        load_results(computed[0], computed[2], computed[1], 1.0)
    assert asked(computed[0], "SELECT count(*) FROM url") == [(4,)]


def test_the_command_loads_them(computed):
    told = CliRunner().invoke(main, ["import", "results", str(computed[1]), "-r", str(computed[2]), "-c", str(computed[0])])
    assert told.exit_code == 0 and "result_ranks 3" in told.output, told.output
