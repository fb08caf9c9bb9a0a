"""`periplus sql`: read-only queries with limits."""

import contextlib
import sqlite3
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from periplus.api.exporting import run_query
from periplus.cli.main import main
from periplus.errors import StoreError, UsageError
from periplus.store.sqlite import reading, schema
from stored import page, stored


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    site = {"https://e.org/": page("Home", "/a", "/b"), "https://e.org/a": 404, "https://e.org/b": page("=1+1", "/")}
    return stored(tmp_path_factory.mktemp("sql") / "c", site, ["https://e.org/"])


def answers(folder, question, **limits):
    with run_query(folder, question, **limits) as answer:
        return list(answer.columns), list(answer.rows)


def test_a_query_returns_columns_and_rows(folder):
    columns, rows = answers(folder, "SELECT status, count(*) AS n FROM pages GROUP BY status ORDER BY status")
    assert columns == ["status", "n"] and rows == [(200, 2), (404, 1)]


def test_queries_can_use_recursion_and_the_schema(folder):
    assert answers(
        folder, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n"
    )[1] == [(15,)]
    assert ("url",) in answers(folder, "SELECT name FROM pragma_table_info('pages')")[1]
    assert answers(folder, "SELECT x'00ff' AS b")[1] == [("00ff",)]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM url",
        "UPDATE url SET reason = 'ok'",
        "DROP TABLE url",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t (a)",
        "ATTACH '/etc/passwd' AS p",
        "ATTACH 'new.db' AS p",
        "PRAGMA query_only = OFF",
        "PRAGMA journal_mode = DELETE",
        "BEGIN",
        "VACUUM INTO 'copy.db'",
        "SELECT load_extension('x')",
        "SELECT 1; DELETE FROM url",
        "SELECT nothing FROM urls",
        "SELECT",
        "",
        "SELECT zeroblob(1000000000)",
        "SELECT randomblob(2000000000)",
        "SELECT zeroblob(4000001)",
        "SELECT url FROM urls WHERE url <> hex(randomblob(3000000))",
        pytest.param("SELECT '" + "x" * 4_100_000 + "'", id="a statement of more than 4 MB"),
    ],
)
def test_statements_that_do_more_than_read_are_refused(folder, statement, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refusal:  # not StoreError: the collection is not damaged
        answers(folder, statement)
    assert "damaged" not in str(refusal.value)
    assert not list(tmp_path.iterdir())
    with sqlite3.connect(folder / schema.DATABASE) as connection:
        assert connection.execute("SELECT count(*) FROM url").fetchone() == (3,)
    connection.close()


def test_a_query_that_takes_too_long_is_stopped(folder):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(StoreError, match=r"longer than 0\.05 s"):
        answers(folder, endless, time_limit_s=0.05)
    with pytest.raises(StoreError, match=r"longer than 0\.05 s"):  # also while its rows are read
        answers(folder, endless.replace("count(*)", "i"), time_limit_s=0.05)


LARGE = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300) "


def test_a_statement_with_few_long_steps_is_stopped(folder):
    """It moves 1 GB in 3,000 steps, so a check of the clock every so many steps would never happen."""
    with pytest.raises(StoreError, match=r"longer than 0\.01 s"):
        answers(folder, f"{LARGE} SELECT max(length(hex(randomblob(1900000)) || i)) FROM n", time_limit_s=0.01)


def test_a_statement_that_fills_the_disk_is_stopped_without_a_time_limit(folder, monkeypatch):
    monkeypatch.setattr(reading, "temporary_bytes", lambda: reading.MOST_TEMPORARY_BYTES + 1)
    with pytest.raises(StoreError, match="2048 MiB of temporary files"):
        answers(folder, f"{LARGE} SELECT max(length(hex(randomblob(1900000)) || i)) FROM n", time_limit_s=0)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system does not list open files")
def test_open_temporary_files_are_counted(folder):
    before = reading.temporary_bytes()
    with contextlib.closing(reading.connect(folder)) as connection:
        rows = connection.execute(f"{LARGE} SELECT DISTINCT i, hex(randomblob(500000)) FROM n")
        assert len(rows.fetchmany(100)) == 100
        assert reading.temporary_bytes() > before + 10_000_000
        rows.close()
    assert reading.temporary_bytes() == before


def test_rows_can_be_limited(folder):
    assert len(answers(folder, "SELECT * FROM urls", most=2)[1]) == 2
    assert answers(folder, "SELECT * FROM urls", most=0)[1] == []


def test_the_command_writes_tables_csv_and_json_lines(folder, tmp_path):
    run = CliRunner().invoke
    question = "SELECT url, title FROM pages WHERE title LIKE '=%'"
    shown = run(main, ["sql", question, "-c", str(folder)])
    assert shown.exit_code == 0 and "https://e.org/b" in shown.stdout
    assert run(main, ["sql", question, "-c", str(folder), "-f", "csv"]).stdout == "url,title\nhttps://e.org/b,'=1+1\n"
    assert (
        run(main, ["sql", question, "-c", str(folder), "-f", "jsonl"]).stdout
        == '{"url": "https://e.org/b", "title": "=1+1"}\n'
    )
    assert run(main, ["sql", "SELECT nothing FROM urls", "-c", str(folder)]).exit_code == 2


def test_a_crawl_can_write_during_a_query(folder):
    with run_query(folder, "SELECT * FROM urls") as answer:
        next(answer.rows)
        done = threading.Event()

        def write():
            connection = sqlite3.connect(folder / schema.DATABASE, timeout=300)
            with connection:
                connection.execute("UPDATE meta SET value = value WHERE name = 'seq'")
            connection.close()
            done.set()

        thread = threading.Thread(target=write)
        thread.start()
        thread.join(300)
        assert done.is_set()
