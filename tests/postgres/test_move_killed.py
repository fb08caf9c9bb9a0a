"""A move that is killed anywhere continues where it was, and its result equals that of an undisturbed move."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from click.testing import CliRunner
from test_moving import rich, rows_by_table

from periplus.cli.main import main
from periplus.errors import StoreError
from periplus.store.sqlite.schema import DATABASE, exists
from periplus_postgres import moving
from periplus_postgres.address import address_of
from periplus_postgres.connection import connect
from periplus_postgres.moving import move
from periplus_postgres.schema import KINDS
from postgres_server import empty_collection
from stored import copied

MOST_KILLS = 30
SMALL = {"ROWS_AT_ONCE": 9, "BODIES_AT_ONCE": 2}
KILLED = f"""
import os, signal, sys
from periplus_postgres import moving
moving.__dict__.update({SMALL})
left, before, put_note = int(sys.argv[3]), sys.argv[4] == "before", moving.put_note
def put(statements, name, text):
    global left
    left -= 1
    if sys.argv[4] == "end" and not text:  # all has arrived
        os.kill(os.getpid(), signal.SIGKILL)
    if not left and before:  # rows are written, but not committed
        os.kill(os.getpid(), signal.SIGKILL)
    put_note(statements, name, text)
    print(text, flush=True)
moving.put_note = put
def verify(*given):
    if not left or sys.argv[4] == "comparing":
        os.kill(os.getpid(), signal.SIGKILL)
    verified(*given)
verified, moving.verify_rows = moving.verify_rows, verify
if sys.argv[4] == "mark":
    moving.collection_runs.mark = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
moving.move(sys.argv[1], sys.argv[2])
"""


def killed(source, target, after, when="before"):
    """Moves in a process that is killed at its n-th note. Returns its exit code and its notes."""
    words = [sys.executable, "-c", KILLED, source, target, str(after), when]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, [line for line in done.stdout.splitlines() if line]


def progress(notes):
    """Number of transactions that are noted, by table."""
    return json.loads(notes[-1])["tables"] if notes else {}


def moved_with_kills(source, target, after):
    """Number of kills until the move was complete."""
    known: dict[str, object] = {}
    for kills in range(MOST_KILLS):
        code, notes = killed(source, target, after)
        if notes and code:
            assert set(known) <= set(progress(notes)) or "file" in known, "it continued"
            known = progress(notes)
        if code == 0:
            return kills
        assert code == -signal.SIGKILL, notes
    raise AssertionError("it began anew each time")


def rows_of(address):
    """All rows of a collection in a database, by table."""
    with closing(connect(address_of(address))) as connection:
        names = [*(name for name in KINDS if name not in ("worker", "inbox", "reason")), "link"]
        tables = {name: connection.execute(f"SELECT * FROM {name}".encode()).fetchall() for name in names}
        tables["seq"] = connection.execute("SELECT last_value FROM queue_seq").fetchall()
    tables["host"] = [row for row in tables["host"] if row[1] != 3]  # it was leased, so that its time depends on now
    tables["file"] = [row[:2] for row in tables["file"]]
    return {name: sorted(map(repr, rows)) for name, rows in tables.items()}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return rich(tmp_path_factory.mktemp("source") / "c", 7)


@pytest.fixture
def other():
    with empty_collection() as address:
        yield address


@pytest.mark.parametrize("after", [20, 47])
def test_a_move_to_a_database_continues_after_each_kill(source, address, other, tmp_path, after):
    move(str(copied(source, tmp_path / "calm")), other)
    folder = copied(source, tmp_path / "killed")
    kills = moved_with_kills(str(folder), address.text, after)
    assert kills >= 2 and rows_of(address.text) == rows_of(other)
    with pytest.raises(StoreError, match="this collection moved to"):
        move(str(folder), address.text)


@pytest.mark.parametrize("after", [20, 47])
def test_a_move_to_a_folder_continues_after_each_kill(source, address, tmp_path, after):
    move(str(copied(source, tmp_path / "c")), address.text)
    with closing(connect(address)) as connection:
        connection.execute("UPDATE host SET lease_by = NULL")
    kills = moved_with_kills(address.text, str(tmp_path / "killed"), after)
    with closing(connect(address)) as connection:
        connection.execute("DELETE FROM meta WHERE name = 'moved'")
    move(address.text, str(tmp_path / "calm"))
    assert kills >= 2 and rows_by_table(tmp_path / "killed") == rows_by_table(tmp_path / "calm")
    assert not list((tmp_path / "killed").glob("*.kept*"))


def test_a_move_into_segments_continues_without_losing_bytes(source, address, tmp_path):
    folder = copied(source, tmp_path / "c")
    assert moved_with_kills(str(folder), f"{address.text}&segments={tmp_path}/segments", 12) >= 2
    swept = CliRunner().invoke(main, ["segments", address.text])
    assert swept.exit_code == 0 and "0 pages without bytes" in swept.output, swept.output
    move(address.text, str(tmp_path / "d"))
    assert rows_by_table(tmp_path / "d")["body"] == rows_by_table(source)["body"]


def test_a_killed_comparison_is_repeated_without_writing_again(source, address, tmp_path):
    folder = copied(source, tmp_path / "c")
    assert killed(str(folder), address.text, -1, "comparing")[0] == -signal.SIGKILL
    code, notes = killed(str(folder), address.text, -1, "after")
    assert code == 0 and len(notes) <= 3, "only topics"


def test_a_move_that_was_killed_before_it_marked_its_source_is_ended_without_copying_again(source, address, tmp_path):
    folder = copied(source, tmp_path / "c")
    assert killed(str(folder), address.text, -1, "mark")[0] == -signal.SIGKILL
    stored = rows_of(address.text)
    assert move(str(folder), address.text).rows["url"] == 60
    assert {**rows_of(address.text), "meta": []} == {**stored, "meta": []}
    with pytest.raises(StoreError, match="this collection moved to"):
        move(str(folder), address.text)


def test_a_move_to_a_folder_that_was_killed_at_its_last_note_is_ended(source, address, tmp_path):
    move(str(copied(source, tmp_path / "c")), address.text)
    with closing(connect(address)) as connection:
        connection.execute("UPDATE host SET lease_by = NULL")
    assert killed(address.text, str(tmp_path / "d"), -1, "end")[0] == -signal.SIGKILL
    assert exists(tmp_path / "d")
    assert move(address.text, str(tmp_path / "d")).rows["url"] == 60
    with pytest.raises(StoreError, match="holds a collection already"):
        move(address.text, str(tmp_path / "d"))


def test_tables_that_no_installed_feature_declares_are_named(source, address, tmp_path, monkeypatch):
    named: list[str] = []
    monkeypatch.setattr(moving.log, "warning", lambda words, tables: named.append(words % tables))
    folder = copied(source, tmp_path / "c")
    with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
        connection.execute("CREATE TABLE herbarium (leaf text)")
    move(str(folder), address.text)
    assert named == ["not moved, since no installed feature declares them: tables herbarium"]
    with closing(connect(address)) as connection:
        connection.execute("UPDATE host SET lease_by = NULL")
        connection.execute("CREATE TABLE moss (leaf text)")
    move(address.text, str(tmp_path / "d"))
    assert "tables moss" in named[1]
    with closing(connect(address)) as connection:
        connection.execute("DROP TABLE moss")


def test_nothing_opens_an_incomplete_collection(source, address, tmp_path):
    folder = copied(source, tmp_path / "c")
    assert killed(str(folder), address.text, 9)[0] == -signal.SIGKILL
    for words in (["status"], ["pages"], ["crawl", "https://e.org/"]):
        refused = CliRunner().invoke(main, [words[0], "-c", address.text, *words[1:]])
        assert refused.exit_code == 1 and "is incomplete, since a move into it was stopped" in refused.output
    move(str(folder), address.text)
    assert killed(address.text, str(tmp_path / "d"), 9)[0] == -signal.SIGKILL
    assert not exists(tmp_path / "d")


def test_a_move_of_a_changed_or_another_source_begins_anew(source, address, other, tmp_path, monkeypatch):
    folder = copied(source, tmp_path / "c")
    assert killed(str(folder), address.text, 40)[0] == -signal.SIGKILL
    another = rich(tmp_path / "another", 8)
    move(str(copied(another, tmp_path / "calm")), other)
    assert move(str(another), address.text).rows["url"] == 60
    assert rows_of(address.text) == rows_of(other)
    for name, value in SMALL.items():
        monkeypatch.setattr(moving, name, value)

    def stop(what, rows):
        if what == "Moving body":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(address.text, str(tmp_path / "d"), stop)
    (draft,) = (tmp_path / "d").glob("*.kept")
    with closing(connect(address)) as connection:  # a user decides something meanwhile
        connection.execute("UPDATE survey_mark SET status = 'in'")
    move(address.text, str(tmp_path / "d"))
    assert not draft.exists()
    assert all("'in'" in row for row in rows_by_table(tmp_path / "d")["survey_mark"])
