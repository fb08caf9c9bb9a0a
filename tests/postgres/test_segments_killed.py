"""A crawl with segments is killed between bytes and rows, and within a record: no page lacks its bytes, orphans are
found.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from postgres_voyage import StoredCollection, crawled_into
from test_resume import Voyage
from voyage import environment, served_apart, told

import judge
from periplus.errors import StoreError
from periplus.model.visit import Reason
from periplus_postgres import segments
from periplus_postgres.address import Address
from periplus_postgres.collection import check_segments, clear
from testweb import linked_sites, serve

BETWEEN = """
import os, signal, sys
from periplus.cli.main import main
from periplus_postgres.committing import Commit
stored, calls = Commit.store, []
def store(*given):
    calls.append(given[3])
    if sum(any(places) for _, _, places, _ in calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return stored(*given)
Commit.store = store
main(sys.argv[1:], prog_name="periplus")
"""
IN_A_RECORD = """
import os, signal, sys
from periplus.cli.main import main
from periplus_postgres import segments
writes = []
def write_all(file, data):
    writes.append(data)
    os.write(file, data[: len(data) // 2] if len(writes) == 3 else data)
    if len(writes) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
segments._write_all = write_all
main(sys.argv[1:], prog_name="periplus")
"""


class MoodyStorage(LocalFileSystem):
    """Object storage that fails at every third call, alternately before and after the operation."""

    protocol = "moody"
    calls = 0

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **more: object) -> None:
        MoodyStorage.calls += 1
        if self.calls % 3:
            super().pipe_file(path, value, mode, **more)
        elif self.calls % 2:
            super().pipe_file(path, value, mode, **more)
            raise TimeoutError("no answer")
        else:
            raise PermissionError("503 Slow Down")


def test_flaky_object_storage_loses_no_bytes(tmp_path: Path, address: Address) -> None:
    fsspec.register_implementation("moody", MoodyStorage, clobber=True)
    store = replace(address, segments=f"moody://{tmp_path / 'segments'}").text
    with serve(linked_sites(seed=5, sites=4, pages=12, links_between=20, links_per_page=8)) as server:
        stored, end = crawled_into(store, server, "a.test", "b.test", "c.test", "d.test")
        assert end.state == "done" and MoodyStorage.calls > 6
        assert {judge.repeats(server.log), len(judge.meetings(server.log))} == {0}
    states = check_segments(store)
    assert sum(state.lost for state in states) == 0 and sum(state.records - state.orphans for state in states) == 48
    assert set(stored.reasons.values()) == {Reason.OK} and stored.sane() == []


class LateStorage(LocalFileSystem):
    """Object storage that shows an object only at the third request."""

    protocol = "late"
    asked: ClassVar[Counter[str]] = Counter()

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **more: object) -> bytes:
        self.asked[path] += 1
        if self.asked[path] < 3:
            raise FileNotFoundError(path)
        return super().cat_file(path, start, end, **more)


def test_late_objects_of_object_storage_are_awaited_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.register_implementation("late", LateStorage, clobber=True)
    waits: list[float] = []
    monkeypatch.setattr(segments.time, "sleep", waits.append)
    bucket = segments.object_storage(f"late://{tmp_path / 'segments'}")
    bucket.write("a.warc.gz", b"0123456789", 0)
    assert bucket.read("a.warc.gz", 2, 3) == b"234" and waits == list(segments.UNSEEN_S[:2])
    for _ in range(2):
        with pytest.raises(StoreError, match=r"b\.warc\.gz cannot be read"):
            bucket.read("b.warc.gz", 0, 1)
    assert waits == [*segments.UNSEEN_S[:2], *segments.UNSEEN_S]


class StubbornStorage(LocalFileSystem):
    """Object storage that refuses the first deletion."""

    protocol = "stubborn"
    deleted = 0

    def rm_file(self, path: str) -> None:
        StubbornStorage.deleted += 1
        if self.deleted == 2:
            raise PermissionError("503 Slow Down")
        super().rm_file(path)


def test_a_collection_with_undeletable_bytes_is_deleted_at_the_next_try(tmp_path: Path, address: Address) -> None:
    fsspec.register_implementation("stubborn", StubbornStorage, clobber=True)
    store = replace(address, segments=f"stubborn://{tmp_path / 'segments'}").text
    with serve(linked_sites(seed=5, sites=2, pages=9, links_between=9, links_per_page=6)) as server:
        stored, _ = crawled_into(store, server, "a.test", "b.test", commit_interval_s=0.02)
    assert len(list((tmp_path / "segments").iterdir())) > 2
    with pytest.raises(StoreError, match="503 Slow Down"):
        clear(store)
    assert len(stored.reasons) == 18
    clear(store)
    assert list((tmp_path / "segments").iterdir()) == [] and stored.reasons == {}


@pytest.mark.parametrize(
    ("program", "leaves"), [(BETWEEN, "orphans"), (IN_A_RECORD, "torn_bytes")], ids=["between", "in a record"]
)
def test_a_kill_leaves_only_unused_space_in_segments(
    tmp_path: Path, address: Address, program: str, leaves: str
) -> None:
    address = replace(address, segments=str(tmp_path / "segments"))
    with served_apart("graph seed=2 pages=24 page_bytes=3000", tmp_path) as web:
        voyage = Voyage(web, tmp_path / "c", "a.test", delay_s=0.02)
        words = [word for word in voyage.words if word not in ("-o", str(voyage.folder))] + ["-c", address.text]
        killed = subprocess.run(
            [sys.executable, "-c", program, *words[3:]], env=environment(), capture_output=True, check=False, timeout=60
        )
        assert killed.returncode == -9, killed.stderr
        assert 0 < len(voyage.pages()) < 24
        ended = subprocess.run(words, env=environment(), capture_output=True, check=False, timeout=600)
        assert ended.returncode == 0, ended.stderr
        found = StoredCollection(address.text)
        assert set(found.reasons.values()) == {Reason.OK} and len(found.reasons) == 24 and found.sane() == []
        swept = told("segments", address.text, "-f", "json", cwd=tmp_path)
        states = json.loads(swept.stdout)
        assert swept.returncode == 0 and sum(state["lost"] for state in states) == 0
        assert sum(state[leaves] for state in states) > 0 and len(states) == 2
        assert sum(state["records"] - state["orphans"] for state in states) == 24
        back = told("move", address.text, tmp_path / "back", cwd=tmp_path)
        assert back.returncode == 0, back.stderr
