"""Documents of the project agree with its code; each check also finds a small bad sample."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import click
import pytest
from project_rules import drawn_errors, explained, loose_pins, outside_names, written_errors

from periplus import errors, settings
from periplus.cli import reference

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "periplus"
GLOSSARY_TERMS = 50  # above this, use the standard term or document the type
TRACKED = ("git", "ls-files", "-z")


@pytest.fixture
def program() -> click.Group:
    from periplus.cli.main import main

    return main


def tracked_files() -> list[tuple[str, str]]:
    """Path and text of every tracked file that is text; every file of src, docs and tests if git is missing."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(TRACKED, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
        paths = [ROOT / name for name in listed if name]
    else:
        paths = [
            path
            for folder in ("src", "docs", "tests")
            for path in (ROOT / folder).rglob("*.*")
            if "__pycache__" not in path.parts
        ]
    return [
        (str(path.relative_to(ROOT)), path.read_text("utf-8", errors="replace")) for path in paths if path.is_file()
    ]


def test_every_error_is_drawn_and_every_drawn_error_exists():
    assert drawn_errors(errors.__doc__ or "") == written_errors(ast.parse((PACKAGE / "errors.py").read_text("utf-8")))


def test_a_missing_error_is_detected():
    drawn = drawn_errors("Tree.\n\n    A    all\n      B  some\n        C  few\n      D  others\n")
    assert drawn == {"A": "Exception", "B": "A", "C": "B", "D": "A"}
    assert drawn != written_errors(ast.parse("class A(Exception): ...\nclass B(A): ...\n"))


def test_the_glossary_is_short():
    terms = re.findall(r"^\*\*.+?\*\*", (ROOT / "GLOSSARY.md").read_text("utf-8"), re.MULTILINE)
    assert 0 < len(terms) <= GLOSSARY_TERMS


def test_the_glossary_explains_only_what_exists():
    words = {word for path in PACKAGE.parent.rglob("*.py") for word in re.findall(r"\w+", path.read_text("utf-8"))}
    assert explained((ROOT / "GLOSSARY.md").read_text("utf-8")) - words == set()


def test_types_of_a_glossary_entry_are_parsed():
    assert explained("**visit** (`Visit`): one attempt.\nAlso `Url`, in passing.\n") == {"Visit"}


def test_references_are_up_to_date(program):
    assert reference.stale(ROOT / "docs", program) == [], "run `make docs`"


def test_a_stale_reference_is_detected(tmp_path, program):
    reference.write(tmp_path, program)
    assert reference.stale(tmp_path, program) == []
    (tmp_path / "settings.md").write_text("old")
    assert reference.stale(tmp_path, program) == [tmp_path / "settings.md"]


def test_every_setting_has_its_row_in_the_reference():
    text = (ROOT / "docs" / "settings.md").read_text("utf-8")
    assert [row.name for row in settings.rows() if f"| `{row.name}` |" not in text] == []


def test_every_command_is_in_the_reference_and_has_a_sentence(program):
    text = (ROOT / "docs" / "cli.md").read_text("utf-8")
    commands = dict(reference.commands(program, "periplus"))
    assert [path for path in commands if f"## {path}\n" not in text] == []
    assert [path for path, command in commands.items() if not command.help] == []


def test_no_file_has_names_of_a_single_machine():
    assert outside_names(tracked_files()) == []


def test_a_name_of_a_single_machine_is_detected():
    bad = "see ../" + "shared/x\npip --index" + "-url=x\nat /wor" + "k/main\n"
    assert len(outside_names([("a.md", bad), ("b.md", "https://example.org/wor" + "k/x, ../style.css\n")])) == 3


def test_constraints_are_exact_and_cover_all_requirements():
    text = (ROOT / "constraints.txt").read_text("utf-8")
    assert loose_pins(text) == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = {
        re.split(r"[<>=!~\[; ]", line)[0].lower()
        for line in project["dependencies"] + project["optional-dependencies"]["dev"]
    }
    assert asked - {line.split("==")[0].lower() for line in text.splitlines()} == set()


def test_a_loose_pin_is_detected():
    assert loose_pins("# why\na==1.0\nb>=2\nc @ https://example.org/c.whl\n") == [
        "b>=2",
        "c @ https://example.org/c.whl",
    ]
