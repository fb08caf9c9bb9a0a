"""Datasets, tables and maps are equal for a collection in a folder and in a database."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from click.testing import CliRunner

from periplus.cli.main import main
from periplus.model.web import SiteKey
from periplus.store.sqlite.frontier import FolderHome
from periplus.urls.canonical import canonical, url_id
from periplus_spark import dataset as dataset_rows
from periplus_spark.datasets import export_dataset
from stored import NOW, kept_in, page, stored

SITE = {
    "https://e.org/": page("Home", "/a", "/b", "/o", "https://x.org/"),
    "https://e.org/a": page("A ž", "/b", "/"),
    "https://e.org/b": page("B", "/", "/gone"),
    "https://e.org/gone": 404,
    "https://e.org/o": "/b",
}


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
