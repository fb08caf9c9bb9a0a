"""docs/guarantees.md names an existing test for each invariant; each check also finds a small bad sample."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from project_rules import named_tests, names_for_pytest, promises, rows_without_a_test

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
GUARANTEES = (ROOT / "docs" / "guarantees.md").read_text("utf-8")


def test_every_named_test_exists():
    wanted = {tuple(name.split("::")) for name in named_tests(GUARANTEES)}
    there = {
        path: names_for_pytest(ast.parse((ROOT / "tests" / path).read_text("utf-8")))
        for path in {path for path, _ in wanted}
    }
    assert sorted(f"{path}::{name}" for path, name in wanted if name not in there[path]) == []


def test_a_missing_test_is_detected():
    assert named_tests("| a | `unit/test_x.py::test_y` *, `x.py::z` |") == {"unit/test_x.py::test_y"}
    assert names_for_pytest(ast.parse("def test_y(): ...\nclass TestZ: ...\nTestW = Z.TestCase\n")) == {
        "test_y",
        "TestZ",
        "TestW",
    }


def test_every_promise_of_the_architecture_has_its_row():
    kept = promises(GUARANTEES)
    assert {
        heading: numbers - kept.get(heading, set())
        for heading, numbers in promises(ARCHITECTURE).items()
        if numbers - kept.get(heading, set())
    } == {}
    assert set(promises(ARCHITECTURE)) - set(kept) == set()


def test_every_promise_of_the_first_page_has_its_row():
    bold = re.findall(r"^- \*\*(\w[\w ]*)\*\*:", (ROOT / "docs" / "start.md").read_text("utf-8"), re.MULTILINE)
    assert len(bold) >= 5
    assert [word for word in bold if f"| **{word}**:" not in GUARANTEES] == []


def test_a_promise_without_a_row_is_detected():
    assert promises("## A\n1. x\n### B\n1. x\n2. y\n### C\nAlways: (1) x; (2) y\n## D\n3. z\n") == {
        "B": {"1", "2"},
        "C": {"1", "2"},
    }
    assert promises("### B\n| 1. x | t |\n") == {"B": {"1"}}


def test_every_row_names_a_test_or_states_that_there_is_none():
    assert rows_without_a_test(GUARANTEES) == []
    assert rows_without_a_test(
        "| promise | tests |\n|---|---|\n| a | `t.py::b` |\n| c | no test: why |\n| d | surely |\n"
    ) == ["| d | surely |"]
