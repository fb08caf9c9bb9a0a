"""An export in parts: the same tables with any number of processes, and only missing parts after a kill."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner

from periplus.cli.main import main
from periplus.errors import StoreError, UsageError
from periplus.extras import absence
from periplus.store.sqlite import schema
from periplus_spark import datasets
from periplus_spark.combining import combine
from periplus_spark.dataset import TABLES
from periplus_spark.datasets import JOURNAL, ExportParts, export_dataset
from periplus_spark.files import DRAFTS
from stored import copied, kept_in, page, stored

PAGES = 60
SITE = {
    "https://e.org/": page("Home", *(f"/{number}" for number in range(PAGES)), "https://x.org/", "/gone"),
    "https://e.org/gone": 404,
    "https://e.org/o": "/3",
} | {
    f"https://e.org/{number}": page(f"Page ž {number}", "/", f"/{number * 7 % PAGES}", "/o", f"https://y{number}.org/")
    for number in range(PAGES)
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("parts") / "c", SITE, ["https://e.org/"])


@pytest.fixture(scope="module", params=["folder", "database"])
def place(request, made):
    with kept_in(request.param, made) as place:
        yield place


def tables(exported: Path) -> dict[str, list[dict[str, object]]]:
    """All rows, in the order of the parts."""
    return {name: ds.dataset(exported / name).to_table().to_pylist() for name in TABLES}


def parts_of(manifest, table):
    return [part.rows for note in manifest.tables if note.name == table for part in note.parts]


def test_without_pyarrow_no_folder_is_made(made, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = CliRunner().invoke(main, ["export", "parquet", str(tmp_path / "graph"), "-c", str(made)])
    assert isinstance(ran.exception, SystemExit) and ran.exit_code == 2 and absence("pyarrow") in ran.output
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def whole(made, tmp_path_factory):
    """The export by one process in one part."""
    exported = tmp_path_factory.mktemp("whole") / "out"
    export_dataset(made, exported, 1.0, with_texts=True)
    return tables(exported)


@pytest.mark.parametrize("parts", [(1, 1), (3, 1), (200, 2)])
def test_any_number_of_parts_and_processes_gives_the_same_rows_in_the_same_order(place, whole, tmp_path, parts):
    manifest = export_dataset(place, tmp_path / "out", 1.0, with_texts=True, parts=parts)
    assert tables(tmp_path / "out") == whole
    assert len(parts_of(manifest, "links")) == parts[0]
    assert sum(parts_of(manifest, "links")) == len(whole["links"]) > 200
    assert manifest.inputs["moments"] == [1.0]
    assert not (tmp_path / "out" / DRAFTS).exists()


def test_parts_do_not_depend_on_the_writer(place, made, tmp_path):
    first = export_dataset(made, tmp_path / "one", 1.0, with_texts=True, parts=(5, 1))
    assert export_dataset(place, tmp_path / "two", 2.0, with_texts=True, parts=(5, 2)).digest == first.digest
    for name in ("one", "two"):
        export_dataset(place, tmp_path / f"{name} more", 1.0, parts=(2, 1))
    assert (
        combine([tmp_path / "one more", tmp_path / "two more"], tmp_path / "both", 1.0).rows("urls") == len(SITE) + 61
    )


def stop_after(times: int):
    """Fails after a number of blocks, like a full disk or a kill."""
    left = [times]

    def watch(table: str, rows: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt

    return watch


@pytest.mark.parametrize("times", range(0, 13, 4))
def test_an_export_continues_with_the_missing_parts(place, whole, tmp_path, times):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        export_dataset(place, out, 1.0, with_texts=True, parts=(6, 1), watch=stop_after(times))
    there = {path: path.stat().st_mtime_ns for path in out.glob("*/*.parquet")}
    assert len(there) > times // 4
    manifest = export_dataset(place, out, 2.0, with_texts=True)  # in the number of parts of the first call
    assert len(list(out.glob("*/*.parquet"))) == 4 * 6 + 2
    assert {path: path.stat().st_mtime_ns for path in there} == there
    assert tables(out) == whole
    assert manifest.inputs["moments"] == [1.0, 2.0]
    assert export_dataset(place, tmp_path / "new", 3.0, with_texts=True, parts=(6, 1)).digest == manifest.digest


def test_a_line_truncated_by_a_kill_is_a_missing_part(made, whole, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        export_dataset(made, out, 1.0, with_texts=True, parts=(4, 1), watch=stop_after(7))
    journal = out / DRAFTS / JOURNAL
    journal.write_text(journal.read_text("utf-8")[:-20], "utf-8")
    next(out.glob("links/part-00001.parquet")).unlink()
    export_dataset(made, out, 2.0, with_texts=True, parts=(4, 2))
    assert tables(out) == whole


def test_an_export_with_other_contents_restarts(made, whole, tmp_path):
    out = tmp_path / "out"
    for changed in ({"parts": (3, 1)}, {"with_texts": False}):
        with pytest.raises(KeyboardInterrupt):
            export_dataset(made, out, 1.0, with_texts=True, parts=(4, 1), watch=stop_after(7))
        manifest = export_dataset(made, out, 2.0, **({"with_texts": True, "parts": (0, 1)} | changed))
        assert manifest.inputs["moments"] == [2.0]
        (out / "manifest.json").unlink()
    with pytest.raises(KeyboardInterrupt):
        export_dataset(made, out, 1.0, parts=(4, 1), watch=stop_after(7))
    other = stored(tmp_path / "c", {"https://f.org/": page("F")}, ["https://f.org/"])
    (out / DRAFTS / JOURNAL).write_text("{}", "utf-8")
    assert export_dataset(other, out, 1.0).rows("urls") == 1


def crawled_on(folder: Path) -> None:
    """A later run adds a page and its links."""
    stored(folder, SITE | {"https://e.org/new": page("New", "/", "https://z.org/")}, ["https://e.org/new"])


def test_all_processes_read_the_same_snapshot_during_a_crawl(made, whole, tmp_path):
    folder = copied(made, tmp_path / "c")
    grown = []

    def watch(table, rows):
        if not grown:
            grown.append(crawled_on(folder))

    export_dataset(folder, tmp_path / "out", 1.0, with_texts=True, parts=(4, 2), watch=watch)
    assert grown
    assert tables(tmp_path / "out") == whole
    assert export_dataset(folder, tmp_path / "later", 1.0).rows("urls") == len(whole["urls"]) + 2


def test_an_export_continued_after_a_crawl_keeps_its_numbers(made, tmp_path, whole):
    """ExportParts written later have the later state of pages; newer URLs are in no part."""
    folder, out = copied(made, tmp_path / "c"), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        export_dataset(folder, out, 1.0, with_texts=True, parts=(4, 1), watch=stop_after(2))
    crawled_on(folder)
    manifest = export_dataset(folder, out, 2.0, with_texts=True)
    assert manifest.inputs["moments"] == [1.0, 2.0]
    rows = tables(out)
    assert [(row["url"], row["text"]) for row in rows["urls"]] == [(row["url"], row["text"]) for row in whole["urls"]]
    assert {row["target"] for row in rows["links"]} <= {row["url"] for row in rows["urls"]}


def test_a_url_deleted_during_an_export_is_reported(made, tmp_path):
    folder, out = copied(made, tmp_path / "c"), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        export_dataset(folder, out, 1.0, parts=(4, 1), watch=stop_after(2))
    with contextlib.closing(schema.connect(folder)) as connection, connection:
        connection.execute("DELETE FROM url WHERE text = 'https://y3.org/'")
    with pytest.raises(StoreError, match="deleted"):
        export_dataset(folder, out, 2.0, parts=(4, 2))


def test_a_killed_export_leaves_no_process_and_can_be_continued(made, whole, tmp_path):
    out = tmp_path / "out"
    words = [sys.executable, "-m", "periplus", "export", "parquet", str(out), "--texts", "--parts", "40",
             "--workers", "2", "-c", str(made)]  # fmt: skip
    killed = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    journal = out / DRAFTS / JOURNAL
    while not journal.is_file() or journal.read_text("utf-8").count("\n") < 12:
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()  # its processes keep its stderr open until they end
    before = journal.read_text("utf-8").count("\n")
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert tables(out) == whole
    assert before >= 12
    assert "read at 2 moments" in done.stderr


def test_the_command_writes_the_given_number_of_parts(made, tmp_path):
    out = tmp_path / "graph"
    ended = CliRunner().invoke(main, ["export", "parquet", str(out), "-c", str(made), "--parts", "3", "--workers", "2"])
    assert ended.exit_code == 0, ended.output
    assert sorted(path.name for path in (out / "links").iterdir()) == [f"part-0000{n}.parquet" for n in range(3)]
    again = CliRunner().invoke(main, ["export", "parquet", str(out), "-c", str(made)])
    assert "already contains a dataset" in again.output


def named(exported: Path) -> dict[str, list[str]]:
    """All rows with the texts of URLs and names of hosts and sites instead of numbers, in any order."""
    rows = tables(exported)
    texts = {row["url"]: row["text"] for row in rows["urls"]}
    hosts = {row["host"]: (row["name"], row["site_name"]) for row in rows["hosts"]}
    sites = {row["site"]: row["site_name"] for row in rows["hosts"]}
    assert sorted(texts) == list(range(len(texts)))
    assert [row["host"] for row in rows["hosts"]] == list(range(len(hosts)))
    names = {"url": texts, "source": texts, "target": texts, "host": hosts, "site": sites}
    return {
        table: sorted(str({key: names[key][value] if key in names else value for key, value in row.items()})
                      for row in rows)
        for table, rows in rows.items()
    }  # fmt: skip


def refreshed(folder: Path) -> Path:
    """A later run adds a page, finds another page unchanged and a third without a link; one is marked."""
    crawled_on(folder)
    with contextlib.closing(schema.connect(folder)) as connection, connection:
        for change in (
            "INSERT OR REPLACE INTO freshness SELECT id, 9e9, 60, NULL FROM url WHERE text = 'https://e.org/10'",
            "DELETE FROM page_links WHERE source = (SELECT id FROM url WHERE text = 'https://e.org/3')",
            "UPDATE page SET parts = x'' WHERE url_id = (SELECT id FROM url WHERE text = 'https://e.org/50')",
        ):
            assert connection.execute(change).rowcount == 1
    return folder


def parts_written(monkeypatch, export) -> set[tuple[str, int]]:
    written: set[tuple[str, int]] = set()
    make = datasets.write_part
    with monkeypatch.context() as patched:
        patched.setattr(datasets, "write_part", lambda folder, table, number, rows: (
            written.add((table, number)) or make(folder, table, number, rows)))  # fmt: skip
        export()
    return written


@pytest.mark.parametrize("kind", ["folder", "database"])
def test_an_export_after_another_writes_only_what_changed(kind, made, tmp_path, monkeypatch):
    first, later = tmp_path / "first", tmp_path / "later"
    with kept_in(kind, copied(made, tmp_path / "a" / "c")) as place:
        before = export_dataset(place, first, 1.0, with_texts=True, parts=(12, 1))
        again = parts_written(
            monkeypatch,
            lambda: export_dataset(place, tmp_path / "again", 2.0, with_texts=True, parts=ExportParts(after=first)),
        )
        assert {table for table, _ in again} == {"hosts", "redirects", "pages", "urls"}
        for path in first.glob("*/*.parquet"):
            kept = (tmp_path / "again" / path.relative_to(first)).stat().st_ino == path.stat().st_ino
            assert kept == (path.parent.name not in {"hosts", "redirects"}), path
    with kept_in(kind, refreshed(copied(made, tmp_path / "b" / "c"))) as place:
        written = parts_written(
            monkeypatch, lambda: export_dataset(place, later, 2.0, with_texts=True, parts=ExportParts(after=first))
        )
        export_dataset(place, tmp_path / "whole", 3.0, with_texts=True)
    assert named(later) == named(tmp_path / "whole")
    texts = [row["text"] for row in tables(first)["urls"]]
    part_of = [number for number, rows in enumerate(parts_of(before, "urls")) for _ in range(rows)]
    marked, checked, cut = (part_of[texts.index(f"https://e.org/{page}")] for page in (50, 10, 3))
    assert {number for table, number in written if table == "texts"} == {marked, 12}  # 12: the new URLs
    assert {number for table, number in written if table == "links"} == {checked, cut, 12}
    assert [row["text"] for row in tables(later)["urls"]][: len(texts)] == texts


KILLED = """
import os, signal, sys
from pathlib import Path
from periplus_spark import datasets
left = int(sys.argv[1])
def counted(function):
    def call(*given):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given)
    return call
datasets.write_part, datasets.keep_part = map(counted, (datasets.write_part, datasets.keep_part))
parts = datasets.ExportParts(after=Path(sys.argv[4]))
datasets.export_dataset(*map(Path, sys.argv[2:4]), 2.0, with_texts=True, parts=parts)
"""


@pytest.mark.parametrize("steps", [0, 1, 9, 25, 60])
def test_a_killed_export_after_another_continues_and_equals_a_whole_one(made, tmp_path, steps):
    first, later = tmp_path / "first", tmp_path / "later"
    folder = copied(made, tmp_path / "c")
    export_dataset(folder, first, 1.0, with_texts=True, parts=(12, 1))
    there = {path: path.read_bytes() for path in first.glob("*/*.parquet")}
    refreshed(folder)
    command = [sys.executable, "-c", KILLED, str(steps), str(folder), str(later), str(first)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    done = len(list(later.glob("*/*.parquet")))
    assert done <= steps
    assert not (later / "manifest.json").exists()
    export_dataset(folder, later, 3.0, with_texts=True, parts=ExportParts(0, 2, first))
    export_dataset(folder, tmp_path / "whole", 4.0, with_texts=True)
    assert named(later) == named(tmp_path / "whole")
    assert {path: path.read_bytes() for path in there} == there
    export_dataset(folder, tmp_path / "third", 5.0, with_texts=True, parts=ExportParts(after=later))
    assert named(tmp_path / "third") == named(later)


def test_deleted_urls_need_a_whole_export_and_numbers_out_of_order_are_not_merged(made, tmp_path):
    folder = copied(made, tmp_path / "c")
    export_dataset(folder, tmp_path / "first", 1.0)
    export_dataset(folder, tmp_path / "later", 1.0, parts=ExportParts(after=tmp_path / "first"))
    with pytest.raises(UsageError, match="exported with --after"):
        combine([tmp_path / "first", tmp_path / "later"], tmp_path / "both", 1.0)
    with contextlib.closing(schema.connect(folder)) as connection, connection:
        connection.execute("DELETE FROM url WHERE text = 'https://y3.org/'")
    with pytest.raises(StoreError, match="deleted"):
        export_dataset(folder, tmp_path / "third", 2.0, parts=ExportParts(after=tmp_path / "first"))
    other = stored(tmp_path / "d", {"https://f.org/": page("F")}, ["https://f.org/"])
    with contextlib.closing(schema.connect(other)) as connection, connection:
        connection.execute("UPDATE run SET started = 5")
    with pytest.raises(UsageError, match="is not a dataset of"):
        export_dataset(other, tmp_path / "fourth", 2.0, parts=ExportParts(after=tmp_path / "first"))
