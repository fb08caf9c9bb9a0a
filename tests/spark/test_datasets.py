"""Export of a collection as Parquet tables: complete, reproducible, and all or nothing."""

import hashlib
import json
import random
import subprocess
import sys

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from periplus.api import search_index
from periplus.cli.main import main
from periplus.errors import StoreError, UsageError
from periplus.model.tables import ColumnKind
from periplus.model.web import SiteKey
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome
from periplus.urls.canonical import url_id
from periplus_spark import files as dataset_files
from periplus_spark.dataset import MANIFEST, TABLES, manifest_of
from periplus_spark.datasets import ExportParts, export_dataset
from stored import page, stored

SITE = {
    "https://e.org/": page("Home", "/a", "/b", "https://x.org/", "/a#part"),
    "https://e.org/a": 404,
    "https://e.org/b": "/c",
    "https://e.org/c": page("Deep ž", "/", "/b", "https://x.org/"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("datasets") / "c", SITE, ["https://e.org/"])


@pytest.fixture
def exported(folder, tmp_path):
    export_dataset(folder, tmp_path / "out", 5.0, with_texts=True)
    return tmp_path / "out"


def rows_of(exported, name):
    return ds.dataset(exported / name).to_table().to_pylist()


def test_urls_are_numbered_in_the_order_of_their_texts(exported):
    found = rows_of(exported, "urls")
    assert [row["url"] for row in found] == list(range(len(found)))
    assert [row["text"] for row in found] == sorted(row["text"] for row in found)
    hosts = {row["host"]: (row["name"], row["site"]) for row in rows_of(exported, "hosts")}
    assert [name for name, _ in hosts.values()] == ["e.org:443", "x.org:443"]
    for row in found:
        assert hosts[row["host"]][0].partition(":")[0] in row["text"] and hosts[row["host"]][1] == row["site"]
    assert {row["reason"] for row in found} == {"ok", "not-found", "redirect", "scope"}


def test_links_redirects_and_pages_refer_to_urls_by_number(exported):
    texts = {row["url"]: row["text"] for row in rows_of(exported, "urls")}
    links = rows_of(exported, "links")
    assert [(row["source"], row["target"]) for row in links] == sorted((row["source"], row["target"]) for row in links)
    named = {(texts[row["source"]], texts[row["target"]], row["kind"], row["times"]) for row in links}
    assert ("https://e.org/", "https://e.org/a", "a", 2) in named and (
        "https://e.org/b",
        "https://e.org/c",
        "redirect",
        1,
    ) in named
    assert len(named) == 7
    assert [(texts[row["source"]], texts[row["target"]]) for row in rows_of(exported, "redirects")] == [
        ("https://e.org/b", "https://e.org/c")
    ]
    assert {texts[row["url"]]: row["title"] for row in rows_of(exported, "pages")} == {
        "https://e.org/": "Home",
        "https://e.org/c": "Deep ž",
    }
    assert all(text["text"] and text["content"] is None for text in rows_of(exported, "texts"))


def test_starts_and_content_are_exported(tmp_path):
    menu = "".join(f'<li><a href="/{n}">Section {n} of the harbour</a></li>' for n in range(8))
    articles = {
        f"https://m.org/{n}": (
            f"<title>T</title><nav><ul>{menu}</ul></nav><main><p>"
            f"{f'What ships of kind {n} carry is told here at length. ' * 8}</p></main>"
        )
        for n in range(8)
    }
    folder = stored(
        tmp_path / "m", {"https://m.org/": page("Home", *map(str, range(8)))} | articles, ["https://m.org/"]
    )
    FolderHome(folder).add_starts([url_id("https://m.org/")], [SiteKey("")], 1.0)
    search_index.catch_up(folder, lambda done, waiting: False)
    export_dataset(folder, tmp_path / "out", 5.0, with_texts=True)
    assert [row["text"] for row in rows_of(tmp_path / "out", "urls") if row["is_start"]] == ["https://m.org/"]
    contents = [row for row in rows_of(tmp_path / "out", "texts") if "kind 3" in row["text"]]
    assert len(contents) == 1 and "kind 3" in contents[0]["content"]
    assert "Section 5" in contents[0]["text"] and "Section 5" not in contents[0]["content"]


def test_every_table_has_the_documented_columns(exported):
    types = {
        ColumnKind.TEXT: "string",
        ColumnKind.INTEGER: "int64",
        ColumnKind.BOOLEAN: "bool",
        ColumnKind.TIME: "timestamp[ms, tz=UTC]",
    }
    for name, columns in ((name, table.columns) for name, table in TABLES.items()):
        schema_of = pq.read_schema(exported / name / "part-00000.parquet")
        assert [(field.name, str(field.type)) for field in schema_of] == [
            (column.name, types[column.kind]) for column in columns
        ]
        assert all(
            field.metadata[b"description"].decode() == column.sentence
            for field, column in zip(schema_of, columns, strict=True)
        )


def test_the_manifest_has_the_rows_and_digests_of_its_files(exported):
    manifest = manifest_of((exported / MANIFEST).read_text(), "here")
    assert manifest.kind == "collection" and manifest.made == 5.0 and manifest.inputs["last_run"]["state"] == "done"
    for table in manifest.tables:
        assert table.rows == len(rows_of(exported, table.name)) == manifest.rows(table.name)
        for part in table.parts:
            assert hashlib.sha256((exported / table.name / part.name).read_bytes()).hexdigest() == part.sha256
    assert json.loads((exported / MANIFEST).read_text())["digest"] == manifest.digest


def test_equal_collections_have_equal_exports_in_any_order_of_crawling(folder, tmp_path):
    answers = list(SITE.items())
    random.Random(1).shuffle(answers)
    again = stored(tmp_path / "c", dict(answers), ["https://e.org/"])
    first, second = (export_dataset(place, tmp_path / name, 1.0) for place, name in ((folder, "one"), (again, "two")))
    assert first.digest == second.digest


def test_a_used_folder_is_refused_and_an_unfinished_export_repeated(folder, exported, tmp_path):
    with pytest.raises(UsageError, match="already contains a dataset"):
        export_dataset(folder, exported, 1.0)
    (exported / MANIFEST).unlink()
    assert export_dataset(folder, exported, 1.0).rows("urls") == len(rows_of(exported, "urls"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    with pytest.raises(UsageError, match=r"is not empty: it contains mine\.txt"):
        export_dataset(folder, tmp_path / "other", 1.0)


def test_a_failed_export_has_no_manifest_and_can_be_repeated(folder, exported, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(
            dataset_files,
            "_sha256",
            lambda path: (_ for _ in ()).throw(OSError(28, "No space left on device")) if "links" in str(path) else "",
        )
        with pytest.raises(StoreError, match=r"two cannot be written: No space left on device. Is the disk full\?"):
            export_dataset(folder, tmp_path / "two", 1.0, with_texts=True)
    assert not (tmp_path / "two" / MANIFEST).exists()
    export_dataset(folder, tmp_path / "two", 2.0, with_texts=True)
    assert all(rows_of(tmp_path / "two", name) == rows_of(exported, name) for name in TABLES)


def test_an_empty_collection_has_empty_tables(tmp_path):
    schema.create(tmp_path / "c")
    manifest = export_dataset(tmp_path / "c", tmp_path / "out", 1.0, with_texts=True)
    assert {table.name: table.rows for table in manifest.tables} == dict.fromkeys(TABLES, 0)
    assert rows_of(tmp_path / "out", "links") == []


def test_large_tables_have_several_parts(folder, exported, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_files, "GROUP_ROWS", 2)
    manifest = export_dataset(folder, tmp_path / "many", 1.0, parts=ExportParts(urls=2))
    links = next(table for table in manifest.tables if table.name == "links")
    assert [part.rows for part in links.parts] == [3, 1, 3]
    assert rows_of(tmp_path / "many", "links") == rows_of(exported, "links")


def test_a_newer_or_invalid_manifest_is_refused():
    with pytest.raises(StoreError, match="format 2; this program supports up to 1"):
        manifest_of('{"format": 2}', "here")
    with pytest.raises(StoreError, match="here is not a valid manifest"):
        manifest_of("[]", "here")


def test_duckdb_reads_the_tables(exported):
    question = (
        f"SELECT u.text, count(*), max(l.last_seen) > TIMESTAMPTZ '1970-01-01' FROM '{exported}/links/*.parquet' l"
        f" JOIN '{exported}/urls/*.parquet' u ON u.url = l.target WHERE l.kind = 'a' AND NOT l.nofollow"
        " GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1"
    )
    # In its own process, since it prints a long list of leaks at exit.
    asked = [sys.executable, "-c", f"import duckdb; print(duckdb.execute({question!r}).fetchall())"]
    assert (
        subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "[('https://e.org/b', 2, True)]\n"
    )


def test_the_command_prints_the_written_tables(folder, tmp_path):
    ended = CliRunner().invoke(main, ["export", "parquet", str(tmp_path / "graph"), "-c", str(folder)])
    assert ended.exit_code == 0 and "links 7" in ended.output and (tmp_path / "graph" / MANIFEST).exists(), ended.output
