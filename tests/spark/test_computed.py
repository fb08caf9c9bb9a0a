"""Results of engines are loaded into a folder. Tests for folders and databases are in contracts/test_results.py."""

import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

from periplus.cli.main import main
from periplus.errors import StoreError, UsageError
from periplus.store.sqlite import schema
from periplus_spark.api import analyse_dataset
from periplus_spark.datasets import export_dataset, load_results
from stored import page, stored

SITE = {
    "https://e.org/": page("Home", "/a", "/b"),
    "https://e.org/a": page("A", "/b"),
    "https://e.org/b": page("B", "/", "/gone"),
    "https://e.org/gone": 404,
}


@pytest.fixture
def computed(tmp_path):
    """The folders of collection, dataset and results."""
    folder = stored(tmp_path / "c", SITE, ["https://e.org/"])
    export_dataset(folder, tmp_path / "d", 1.0)
    analyse_dataset(tmp_path / "d", ["ranks", "links"], tmp_path / "r")
    return folder, tmp_path / "d", tmp_path / "r"


def fetch_all(folder, find):
    with closing(sqlite3.connect(folder / schema.DATABASE)) as connection:
        return connection.execute(find).fetchall()


def test_results_of_another_dataset_are_refused_and_old_results_replaced(computed, tmp_path):
    load_results(computed[0], computed[2], computed[1], 1.0)
    other = stored(tmp_path / "c", {"https://e.org/new": page("New")}, ["https://e.org/new"])
    export_dataset(other, tmp_path / "e", 1.0)
    with pytest.raises(UsageError, match=r"has no finished results of .*: . were computed from another dataset"):
        load_results(other, computed[2], tmp_path / "e", 2.0)
    analyse_dataset(tmp_path / "e", ["ranks"], tmp_path / "r")
    load_results(other, computed[2], tmp_path / "e", 2.0)
    tables = {
        name
        for (name,) in fetch_all(other, "SELECT name FROM sqlite_master WHERE type = 'table'")
        if name.startswith("result_")
    }
    assert "result_ranks" in tables and "result_broken" not in tables


def test_names_in_a_manifest_are_never_put_into_sql(computed):
    place = next(computed[2].glob("ranks-*")) / "manifest.json"
    place.write_text(place.read_text().replace('"rank"', '"rank\\" INTEGER); DROP TABLE url; --"'))
    with pytest.raises((StoreError, KeyError)):
        load_results(computed[0], computed[2], computed[1], 1.0)
    assert fetch_all(computed[0], "SELECT count(*) FROM url") == [(4,)]


def test_the_command_loads_results(computed):
    result = CliRunner().invoke(
        main, ["import", "results", str(computed[1]), "-r", str(computed[2]), "-c", str(computed[0])]
    )
    assert result.exit_code == 0 and "result_ranks 3" in result.output, result.output
