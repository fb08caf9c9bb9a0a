"""Log lines: text for people, JSON with run, worker and host for collectors."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PASSWORD = "opensesame"
PROGRAM = f"""
import logging, sys, warnings
from periplus.cli.progress import say
from periplus import logs
logs.configure(logging.WARNING)
log = logging.getLogger("periplus.test")
log.info("too little")
log.warning("leases\\nlost=%d", 3)
say("\\033[32mDone\\033[0m in a", "green")
logs.JsonLines.run = 12
log.warning("the database postgresql://me:{PASSWORD}@db/crawls?collection=c is away")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("a bug")
warnings.warn("old")
raise ValueError("postgresql://me:{PASSWORD}@db/crawls")
"""


def lines(*, form: str) -> list[str]:
    environment = {**os.environ, "PERIPLUS_LOG_FORMAT": form, "PYTHONWARNINGS": "default"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert done.returncode == 1 and done.stdout == ""
    return done.stderr.splitlines()


def test_each_line_is_an_object_with_host_worker_and_run():
    rows = [json.loads(line) for line in lines(form="json")]
    assert all(set(row) - {"error"} == {"time", "level", "logger", "message", "host", "worker", "run"} for row in rows)
    assert {row["host"] for row in rows} == {os.uname().nodename} and len({row["worker"] for row in rows}) == 1
    assert [(row["run"], row["level"]) for row in rows] == [
        (None, "WARNING"), (None, "INFO"), (12, "WARNING"), (12, "ERROR"), (12, "WARNING"), (12, "CRITICAL"),
    ]  # fmt: skip
    assert [row["message"] for row in rows[:2]] == ["leases\nlost=3", "Done in a"]
    assert "ZeroDivisionError" in rows[3]["error"] and "ValueError" in rows[5]["error"]


def test_no_line_has_a_password():
    text = "\n".join(lines(form="json"))
    assert PASSWORD not in text and text.count("postgresql://me@db") >= 3


def test_text_stays_text():
    first, *_ = lines(form="text")
    assert first.endswith("WARNING periplus.test leases")


@pytest.mark.parametrize("words", [("worker", "--listen", "x"), ("worker", "--listen", "70000")])
def test_a_port_that_is_none_is_refused(words, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "periplus", *words], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2 and "is no port" in done.stderr
