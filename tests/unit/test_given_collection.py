"""Untrusted collections: their views, triggers and values do no harm."""

from __future__ import annotations

import contextlib
import gzip
import sqlite3

import pytest
from click.testing import CliRunner

from periplus.api.collection import Collection
from periplus.cli.main import main
from periplus.errors import StoreError
from periplus.model.page import ALL_PARTS
from periplus.store.bodies import BodyCodec, unpack_blocks, unpack_headers, unpack_parts
from periplus.store.corruption import RESTORED_BYTES
from periplus.store.sqlite import reading, schema
from periplus.store.sqlite.reading import wrong_value
from stored import page, stored

START = "http://a.example/"


@pytest.fixture
def given(tmp_path):
    """A function that makes a collection, manipulates it with SQL, and returns its folder."""

    def change(*statements: str):
        folder = stored(tmp_path / "c", {START: page("Home")}, [START])
        with contextlib.closing(sqlite3.connect(folder / schema.DATABASE)) as connection, connection:
            for statement in statements:
                connection.execute(statement)
        return folder

    return change


def test_views_of_a_collection_cannot_call_our_functions(given):
    folder = given("DROP VIEW pages", "CREATE VIEW pages AS SELECT ours('a') AS url")
    with contextlib.closing(reading.connect(folder)) as connection:
        connection.create_function("ours", 1, lambda text: text)
        with pytest.raises(sqlite3.OperationalError, match="unsafe use"):
            connection.execute("SELECT * FROM pages").fetchall()


def test_views_of_a_collection_cannot_load_code(given):
    folder = given("DROP VIEW pages", "CREATE VIEW pages AS SELECT load_extension('/tmp/x.so') AS url")
    with contextlib.closing(reading.connect(folder)) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("SELECT * FROM pages").fetchall()


def test_an_endless_view_is_stopped_by_a_time_limit(given):
    folder = given(
        "DROP VIEW pages",
        "CREATE VIEW pages AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS url FROM n",
    )
    with (
        contextlib.closing(reading.connect(folder)) as connection,
        pytest.raises(StoreError, match="took longer"),
        reading.limit_reads(connection, 0.2),
    ):
        connection.execute("SELECT count(*) FROM pages").fetchall()


def test_reading_a_collection_runs_none_of_its_triggers(given):
    folder = given("CREATE TRIGGER evil AFTER UPDATE ON url BEGIN DELETE FROM page; END")
    with Collection(folder) as collection:
        assert collection.status().hosts == 1
        assert collection.page(START).text(ALL_PARTS)


def frame(claimed: int) -> bytes:
    """A truncated zstd frame with this declared size."""
    return b"\x28\xb5\x2f\xfd\xe0" + claimed.to_bytes(8, "little") + b"\x01\x00\x00"


@pytest.mark.parametrize(
    "data", [b"", b"x", frame(RESTORED_BYTES + 1), frame(1 << 60), frame(3), b"\x28\xb5\x2f\xfd\x00\x00"]
)
def test_damaged_compressed_columns_are_reported(data):
    for restore in (lambda: BodyCodec().unpack(data, None), lambda: unpack_blocks(data, "")):
        with pytest.raises(StoreError, match="the collection is damaged"):
            restore()


def test_other_damaged_columns_are_reported():
    with pytest.raises(StoreError, match="the collection is damaged"):
        unpack_parts(b"\xff")
    with pytest.raises(StoreError, match="the collection is damaged"):
        unpack_headers(b"1\xff\xff\xff")
    with pytest.raises(StoreError, match="the collection is damaged"):
        BodyCodec().unpack(BodyCodec().pack(b"x" * 100, None)[:-3], None)
    text, body = BodyCodec().pack_page(b"words", b"<p>words")
    for damaged in (body[:-3], body[1:], b""):
        with pytest.raises(StoreError, match="the collection is damaged"):
            BodyCodec().unpack_body(damaged, None, text)
    for damaged in (body, gzip.compress(b"<p>words")[:-3], b"\x1f\x8b"):
        with pytest.raises(StoreError, match="the collection is damaged"):
            BodyCodec().unpack_body(damaged, None, None)


@pytest.mark.parametrize(
    ("statement", "words", "said"),
    [
        ("UPDATE url SET depth = 'deep'", ("map",), "url.depth has a value that is not integer"),
        ("UPDATE url SET reason = 'invented'", ("map",), "url.reason has an unknown word"),
        ("UPDATE run SET settings = '{'", ("report",), "run.settings has invalid JSON"),
        ("UPDATE run SET started = 'noon'", ("status",), "run.started has a value that is not real"),
    ],
)
def test_a_value_of_the_wrong_type_ends_a_command_with_a_message(given, statement, words, said):
    ended = CliRunner().invoke(main, [*words, "-c", str(given(statement))], catch_exceptions=False)
    assert (ended.exit_code, said in ended.stderr) == (1, True), ended.output


def test_a_bug_is_not_reported_as_a_damaged_collection(given, monkeypatch):
    folder = given()
    assert wrong_value(folder) == ""
    monkeypatch.setattr("periplus.api.collection.Collection.status", lambda self: {}["a bug"])
    with pytest.raises(KeyError, match="a bug"):
        CliRunner().invoke(main, ["status", "-c", str(folder)], catch_exceptions=False)
