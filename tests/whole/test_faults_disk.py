"""Faults of the disk and of the file of a collection: full, read-only, damaged, another version. They are reported in a
sentence, and nothing stored is lost.
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_lines import answer
from voyage import PATIENCE_S, Collection, Served, command, crawled, environment, flags_for, plain, served_apart

import judge
from periplus.errors import StoreError
from periplus.model.visit import Reason
from periplus.store.sqlite import schema
from testweb import GraphRecipe, graph_site, read_log, serve

HOSTS = ("a.test", "b.test")
RECIPE = "linked seed=5 sites=2 pages=40 links_between=8 links_per_page=8"
STEP_BYTES = 16 << 10  # growth of the disk per step


def may(*words: str) -> bool:
    """Whether this user may use these namespaces."""
    with contextlib.suppress(OSError):
        return subprocess.run(["unshare", "--mount", *words], capture_output=True, check=False).returncode == 0
    return False


MAY_MOUNT = may("mount", "-t", "tmpfs", "none", "/mnt")
needs_mount = pytest.mark.skipif(not MAY_MOUNT, reason="needs the right to mount")


def sail(web: Served, folder: Path, **more: object) -> subprocess.CompletedProcess[str]:
    """Crawls all hosts until the end, or until the disk is full."""
    flags = [
        *flags_for(web.resolve, delay_s=0.0, commit_interval_s=0.05, commit_pages=3),
        "--no-sitemaps",
        "--no-index",
    ]
    words = command("crawl", *map(web.url, HOSTS), "-o", folder, "-q", *flags)
    return subprocess.run(
        words, capture_output=True, text=True, env=environment(), timeout=PATIENCE_S, check=False, **more
    )


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[Callable[[int], dict[str, object]]]:
    """A file system in memory that can be enlarged."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)], check=True)

    def grow(size_bytes: int) -> dict[str, object]:
        # new data is written twice: to the WAL, then to the file
        subprocess.run(["mount", "-o", f"remount,size={2 * size_bytes}", str(place)], check=True)
        return {}

    try:
        yield grow
    finally:
        subprocess.run(["umount", str(place)], check=True)


@contextlib.contextmanager
def quota(place: Path) -> Iterator[Callable[[int], dict[str, object]]]:
    """Limits the size of files, as possible for any user."""
    place.mkdir()

    def grow(size_bytes: int) -> dict[str, object]:
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))}

    yield grow


@pytest.mark.parametrize(
    "disk", [quota, pytest.param(small_disk, marks=[needs_mount, pytest.mark.faults])], ids=["quota", "small disk"]
)
@pytest.mark.parametrize("most", [3, pytest.param(25, marks=pytest.mark.faults)])
def test_a_disk_that_is_repeatedly_full_loses_nothing(tmp_path: Path, disk, most: int) -> None:
    """The disk fills during a commit, each time at another place; each time a sentence is printed, and stored pages
    are never fetched again.
    """
    with served_apart(RECIPE, tmp_path) as web, disk(tmp_path / "disk") as grow:
        sail(web, tmp_path / "calm")
        expected, calm = Collection(tmp_path / "calm").tables, web.lines()
        schema.create(tmp_path / "empty")
        folder, size, fulls, ran = (
            tmp_path / "disk" / "c",
            (tmp_path / "empty" / schema.DATABASE).stat().st_size,
            0,
            None,
        )
        while ran is None or ran.returncode != 0:
            ran = sail(web, folder, **grow(size))
            fulls += ran.returncode != 0
            size += STEP_BYTES if fulls < most else 64 << 20
            assert "Traceback" not in ran.stderr
            assert ran.returncode == 0 or "Is the disk full, or the folder read-only?" in plain(ran.stderr), ran.stderr
        collection = Collection(folder)
        assert fulls >= most
        assert len(collection.ask("SELECT id FROM run")) > most / 2, "most were in the middle of a crawl"
        assert [*collection.sane(), *judge.unsound(collection.ask)] == []
        assert collection.tables == expected
        log = read_log(web.log_file)
        log.entries[:calm] = []
        assert judge.repeats(log) <= fulls * (3 * len(HOSTS) + 128), "a batch and what was under way"


@needs_mount
def test_a_collection_on_a_too_small_disk_is_complete_or_missing(tmp_path: Path) -> None:
    """The WAL must be merged before the file gets its name: closing does not report a full disk."""
    made = []
    with small_disk(tmp_path / "disk") as grow:
        for size in range(200 << 10, 700 << 10, 8 << 10):
            grow(size)
            folder = tmp_path / "disk" / "c"
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(StoreError):
                schema.create(folder)
                made.append(size)
            grow(16 << 20)  # space is available again
            if schema.exists(folder):
                with contextlib.closing(schema.connect(folder, read_only=True)) as connection:
                    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], size
            assert [path.name for path in folder.iterdir() if ".new" in path.name] == [], size
    assert 0 < len(made) < 60


READERS = (
    *(
        "status -c .",
        "pages -c . -n 2",
        "map -c .",
        "links -c . -n 2",
        "keywords -c .",
        "template -c .",
        "duplicates -c .",
    ),
    *("search -c . harbour", "sql -c . 'select 1'", "export warc -c . -o ../x.warc.gz", "report -c . -o ../r.html"),
)
WRITERS = (
    *(
        "crawl http://a.test/ -o .",
        "crawl http://a.test/ -o . --fresh",
        "crawl http://a.test/ -o new",
        "refresh -c .",
        "check -c .",
        "index -c .",
    ),
    *("report -c .", "import warc ../x.warc.gz -o new", "jobs add -d . crawl http://a.test/"),
)


@needs_mount
def test_a_read_only_disk_is_only_read(tmp_path: Path) -> None:
    """Runs each command in a process with a read-only folder; returns exit codes and outputs."""
    with serve(graph_site(GraphRecipe(seed=1, pages=12, page_bytes=800))) as server:
        crawled(tmp_path / "c", server, "a.test", sitemaps=False, index=False)
    shutil.copy(tmp_path / "c" / "collection.db", tmp_path / "before")
    mounted = f"mount --bind {tmp_path}/c {tmp_path}/c && mount -o remount,ro,bind {tmp_path}/c && cd {tmp_path}/c"
    program = shlex.join([sys.executable, str(Path(__file__).with_name("command_lines.py")), *READERS, *WRITERS])
    words = ["unshare", "--mount", "bash", "-c", f"{mounted} && {program}"]
    ran = subprocess.run(words, capture_output=True, text=True, env=environment(), timeout=300, check=True)
    said = json.loads(ran.stdout)
    assert set(said) == {*READERS, *WRITERS}
    for line in READERS:
        assert said[line][0] == 0, (line, said[line])
    for line in WRITERS:
        assert said[line][0] in (1, 2) and "Traceback" not in said[line][1], (line, said[line])
    assert (tmp_path / "c" / "collection.db").read_bytes() == (tmp_path / "before").read_bytes()
    assert {path.name for path in (tmp_path / "c").iterdir()} <= {"collection.db", "crawl.lock", "write.lock"}


SPOILED = ("text", pytest.param("data", marks=pytest.mark.faults), pytest.param("blocks", marks=pytest.mark.faults))
OF_BODIES = (
    "index",
    "keywords",
    "template",
    "duplicates",
    "export warc -o x.warc.gz",
    "report -o r.html",
    "stories",
    "search harbour",
    "map",
    "status",
)


@pytest.mark.parametrize("column", SPOILED)
def test_a_damaged_page_is_reported_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """Changed, truncated and missing bytes, by a disk or by the author of a foreign collection."""
    monkeypatch.chdir(tmp_path)
    rng, folder = random.Random(column), tmp_path / "c.periplus"
    with serve(graph_site(GraphRecipe(seed=1, pages=9, page_bytes=800))) as server:
        crawled(folder, server, "a.test", sitemaps=False, index=False)
        start = server.url("a.test")
    with contextlib.closing(sqlite3.connect(folder / "collection.db")) as connection, connection:
        for body_id, kept in connection.execute(f"SELECT id, {column} FROM body").fetchall():
            spoiled = bytearray(kept)
            spoiled[rng.randrange(len(kept))] ^= rng.randrange(1, 256)
            change = rng.choice((bytes(spoiled), kept[: len(kept) // 2], b""))
            connection.execute(f"UPDATE body SET {column} = ? WHERE id = ?", (change, body_id))
    told_of = 0
    for line in (*OF_BODIES, f"page {start} --as text", f"page {start} --as blocks", f"page {start} --as source"):
        _, said = answer(f"{line} -c {folder}")
        assert "Traceback" not in said, (line, said)
        told_of += "the collection is damaged" in plain(said)
    assert told_of >= 1


def test_a_crawl_of_many_hosts_works_with_few_file_descriptors(tmp_path: Path) -> None:
    """60 hosts with descriptors for a dozen connections: connections are opened later."""
    with served_apart("linked seed=3 sites=60 pages=3 links_between=1 links_per_page=3", tmp_path) as web:
        hosts = tuple(sorted({url.split("/")[2].partition(":")[0] for url in web.truth["pages"]}))
        flags = [
            *flags_for(web.resolve, delay_s=0.02, retry_wait_s=0.2, host_strikes=20),
            "--no-sitemaps",
            "--no-index",
        ]
        words = command("crawl", *map(web.url, hosts), "-o", tmp_path / "c", "-q", *flags)
        few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))}
        ran = subprocess.run(
            words, capture_output=True, text=True, env=environment(), timeout=PATIENCE_S, check=False, **few
        )
        collection = Collection(tmp_path / "c")
        assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stderr
        assert set(collection.reasons.values()) == {Reason.OK} and len(collection.reasons) == 180
        assert [*collection.sane(), *judge.unsound(collection.ask)] == []
