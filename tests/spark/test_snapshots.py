"""Snapshots: found by the collection's note, shared by its readers, with results beside them."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from periplus.api.homes import home_of
from periplus.cli.main import main
from periplus.errors import OutOfTime, StoreError, UsageError
from periplus_spark import streamed
from periplus_spark.api import STAGES, compute, folder_name
from periplus_spark.files import StageParameters, manifest_in
from periplus_spark.snapshots import LOCK, ask_snapshot, find_snapshot, write_snapshot
from stored import kept_in, page, stored

SITE = {
    "https://e.org/": page("Home", "/a", "/b"),
    "https://e.org/a": page("A", "/"),
    "https://e.org/b": page("B", "/a", "https://x.org/"),
}


@pytest.fixture(params=["folder", "database"])
def place(request, tmp_path):
    with kept_in(request.param, stored(tmp_path / "c", SITE, ["https://e.org/"])) as place:
        yield place


def run(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, done.stdout, done.stderr


def rows(place, question, **more):
    with ask_snapshot(find_snapshot(place), question, more.pop("limit_s", 60.0), **more) as answer:
        return [tuple(row) for row in answer.rows]


def fetch_more(place, pages):
    """Counts pages, as a crawl does."""
    home_of(place).change(lambda statements: statements.change("UPDATE run SET fetched = fetched + ?", (pages,)))


def test_a_collection_without_a_snapshot_names_the_command_that_makes_one(place):
    with pytest.raises(UsageError, match="has no snapshot: `periplus snapshot FOLDER`"):
        find_snapshot(place)
    with pytest.raises(UsageError, match="name a folder"):
        write_snapshot(place, None, 1.0, with_texts=False)
    assert "not in object storage" in run("snapshot", "s3://bucket/web", "-c", place)[2]


def test_a_snapshot_is_found_by_the_collection_and_tells_how_old_it_is(place, tmp_path):
    code, _, words = run("snapshot", tmp_path / "s", "-c", place)
    assert (code, "change 3: nothing is newer" in words) == (0, True), words
    fetch_more(place, 2)
    code, answer, words = run("sql", "--snapshot", "-c", place, "-f", "csv", "SELECT count(*) AS n FROM pages")
    assert (code, answer.split()) == (0, ["n", "3"]), words
    assert "change 3: the collection has 2 newer pages." in words


def test_a_later_snapshot_is_written_only_after_a_change_and_keeps_unchanged_parts(place, tmp_path):
    first = write_snapshot(place, tmp_path / "s", 1.0, with_texts=True)
    assert write_snapshot(place, None, 2.0, with_texts=False) == first
    fetch_more(place, 1)
    second = write_snapshot(place, None, 3.0, with_texts=False)
    assert (first.name, second.name) == ("00001", "00002")
    assert manifest_in(second).parameters["texts"]
    assert (first / "links/part-00000.parquet").samefile(second / "links/part-00000.parquet")
    assert find_snapshot(place).folder == second
    shutil.rmtree(first)
    assert rows(place, "SELECT count(*) FROM texts") == [(3,)]


def test_an_unfinished_snapshot_is_not_read_and_is_continued(place, tmp_path):
    first = write_snapshot(place, tmp_path / "s", 1.0, with_texts=False)
    fetch_more(place, 1)
    second = write_snapshot(place, None, 2.0, with_texts=False)
    (second / "manifest.json").unlink()
    assert find_snapshot(place).folder == first
    shutil.rmtree(second)
    (second / "unfinished").mkdir(parents=True)
    assert write_snapshot(place, None, 3.0, with_texts=False) == second == find_snapshot(place).folder


def test_two_processes_never_write_snapshots_into_one_folder(place, tmp_path):
    write_snapshot(place, tmp_path / "s", 1.0, with_texts=False)
    with (tmp_path / "s" / LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="another process writes a snapshot"):
            write_snapshot(place, None, 2.0, with_texts=False)


def test_the_snapshot_of_another_collection_is_refused(place, tmp_path):
    other = stored(tmp_path / "other", SITE, ["https://e.org/"], now=1.0)
    write_snapshot(other, tmp_path / "s", 1.0, with_texts=False)
    home_of(place).change_note("snapshot", lambda _: str(tmp_path / "s"))
    with pytest.raises(UsageError, match="is not a dataset of"):
        find_snapshot(place)


def test_results_are_beside_the_snapshot_and_found_by_the_next_who_asks_with_the_same_parameters(place, tmp_path):
    write_snapshot(place, tmp_path / "s", 1.0, with_texts=False)
    first, again, other = (
        json.loads(run("analyse", place, "ranks", "--json", *flags)[1])["stages"]
        for flags in ((), (), ("--damping", "0.5"))
    )
    assert [stage["was_there"] for stage in first + again] == [False] * 3 + [True] * 3
    assert [(stage["stage"], stage["was_there"]) for stage in other][-1] == ("ranks", False)
    assert all(tmp_path / "s" / "00001.results" in Path(stage["folder"]).parents for stage in first)
    assert rows(place, "SELECT text FROM urls JOIN result_ranks USING (url) ORDER BY rank DESC LIMIT 1") == [
        ("https://e.org/a",)
    ]


def test_a_stage_that_another_process_finishes_first_is_taken_over_and_drafts_of_dead_processes_go(tmp_path):
    place = stored(tmp_path / "c", SITE, ["https://e.org/"])
    dataset, results = write_snapshot(place, tmp_path / "s", 1.0, with_texts=False), tmp_path / "results"
    ask = partial(compute, dataset, results, ["duplicates"], StageParameters(), watch=lambda what, done, total: None)

    def slow(task):
        ask(engines=("fast", streamed.ENGINE))
        streamed.ENGINE["duplicates"](task)

    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    name = folder_name(STAGES["duplicates"], manifest_in(dataset).digest, StageParameters())
    (results / f"{name}.{platform.node()}-{child.pid}-0").mkdir(parents=True)
    (results / f"{name}.{platform.node()}-{os.getpid()}-0").mkdir()
    (done,) = ask(engines=("slow", {"duplicates": slow}))
    assert done.engine == "fast"
    assert {path.name for path in results.iterdir()} == {name, f"{name}.{platform.node()}-{os.getpid()}-0"}


@pytest.mark.parametrize("question", [
    "SELECT * FROM read_text('/etc/hostname')", "COPY urls TO 'out.csv'", "ATTACH 'other.db'", "SELECT * FROM place",
    "SET memory_limit = '9GB'", "nonsense",
])  # fmt: skip
def test_a_query_reads_nothing_but_the_snapshot(question, tmp_path):
    place = stored(tmp_path / "c", SITE, ["https://e.org/"])
    write_snapshot(place, tmp_path / "s", 1.0, with_texts=False)
    with pytest.raises(UsageError, match="cannot execute this"):
        rows(place, question)


def test_values_of_a_query_are_those_of_sql(tmp_path):
    place = stored(tmp_path / "c", SITE, ["https://e.org/"])
    write_snapshot(place, tmp_path / "s", 1.0, with_texts=False)
    asked = "SELECT is_start, first_seen, sum(1) OVER (), 'x'::BLOB, NULL FROM urls ORDER BY text LIMIT 1"
    assert rows(place, asked) == [(0, "1970-01-12T13:46:40Z", 4, "78", None)]
    assert len(rows(place, "SELECT * FROM urls", most=2)) == 2
    with pytest.raises(OutOfTime, match=r"took longer than 0\.2 s"):
        rows(place, "SELECT count(*) FROM range(100000000) a, range(100000000) b", limit_s=0.2)
