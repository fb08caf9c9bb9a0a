"""Child processes: orders, messages, progress, and the end with their parent. Also the cache of last used values."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from periplus.api.cache import LruCache
from periplus.children import (
    TELL_EVERY_S,
    Command,
    ProgressLines,
    RunnerLink,
    finish_child,
    send,
    start_child,
    stop_child,
)
from periplus.model.job import JobProgress

# a child that writes a note, waits for the end of its input, and writes the last message
NOTES = (
    "import pathlib, sys; from periplus.children import Parent; parent = Parent(); "
    "note = pathlib.Path(parent.order['note']); note.write_text('began'); parent.ended.wait(60); "
    "note.write_text(repr(parent.message))"
)
# a parent that starts this child and dies immediately
DIES = f"import os, sys; from periplus.children import start_child; start_child('-c', {NOTES!r}, order={{'note': sys.argv[1]}}); os._exit(0)"  # noqa: E501
PATIENCE_S = 300.0


def until(text: str, note: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while not note.exists() or note.read_text() != text:
        assert time.monotonic() < end, f"no {text!r} in {note}"
        time.sleep(0.02)


def test_a_child_gets_its_order_and_a_message(tmp_path: Path) -> None:
    child = start_child("-c", NOTES, order={"note": str(tmp_path / "note")})
    until("began", tmp_path / "note")
    send(child, "end")
    finish_child(child, PATIENCE_S)
    assert (child.returncode, (tmp_path / "note").read_text()) == (0, "'end'")


def test_a_child_notices_the_death_of_its_parent(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", DIES, tmp_path / "note"], check=True, timeout=PATIENCE_S)
    until("None", tmp_path / "note")


def test_a_child_that_does_not_end_in_time_is_killed() -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    child = start_child("-c", deaf, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    stop_child(child, 0.1)
    assert child.returncode == -signal.SIGKILL


def test_messages_to_a_dead_child_are_ignored() -> None:
    child = start_child("-c", "", order="x" * 1_000_000)
    child.wait(PATIENCE_S)
    send(child, "end")
    finish_child(child)


def test_a_command_ends_with_its_context_and_reports_progress(tmp_path: Path) -> None:
    with Command(("--version",), cwd=tmp_path, stdout=subprocess.DEVNULL) as command:
        command.process.wait(PATIENCE_S)
        assert command.progress(JobProgress(1, 2, "before")) == JobProgress(1, 2, "before")
    assert command.process.returncode == 0
    with Command(("worker",), cwd=tmp_path, stderr=subprocess.DEVNULL) as command:
        pass
    assert command.process.returncode is not None


def test_the_newest_progress_line_wins_and_invalid_lines_are_ignored() -> None:
    read, write = os.pipe()
    lines = ProgressLines(read)
    assert lines.newest(JobProgress()) == JobProgress()
    os.write(write, b'{"done": 1, "total": 2, "note": "a"}\n{"done": 2, "total": 2, "note": "b"}\nnonsense\n{"do')
    assert lines.newest(JobProgress()) == JobProgress(2, 2, "b")
    os.write(write, b'ne": 3, "total": 4, "note": "c"}\n')
    assert lines.newest(JobProgress()) == JobProgress(3, 4, "c")
    os.close(read)
    os.close(write)


def test_a_link_without_a_reader_reports_it() -> None:
    read, write = os.pipe()
    link = RunnerLink(write)
    assert link.tell(JobProgress(1, 2, "a"))
    os.close(read)
    time.sleep(TELL_EVERY_S)
    assert not link.tell(JobProgress(2, 2, "b"))
    os.close(write)


def test_the_least_recently_used_value_is_removed_first() -> None:
    closed: list[int] = []
    remembered: LruCache[str, int] = LruCache(2, closed.append)
    assert [remembered.get_or_make(key, partial(len, key)) for key in ("a", "bb", "a", "ccc")] == [1, 2, 1, 3]
    assert (closed, remembered.get("a"), remembered.get("bb"), len(remembered)) == ([2], 1, None, 2)
    remembered.put("a", 7)
    assert (remembered.get("a"), remembered.get("ccc"), len(remembered)) == (7, 3, 2)


def test_a_value_that_could_not_be_made_is_made_again() -> None:
    remembered: LruCache[str, int] = LruCache(2)
    with pytest.raises(ZeroDivisionError):
        remembered.get_or_make("a", lambda: 1 // 0)
    assert remembered.get_or_make("a", lambda: 1) == 1


def test_a_cached_value_is_returned_while_another_is_made() -> None:
    remembered: LruCache[str, int] = LruCache(2)
    remembered.put("a", 1)
    answers: list[int | None] = []

    def slow() -> int:
        asking = threading.Thread(target=lambda: answers.extend((remembered.get("a"), remembered.get("b"))))
        asking.start()
        asking.join(PATIENCE_S)
        return 2

    assert remembered.get_or_make("b", slow) == 2
    assert answers == [1, None]
