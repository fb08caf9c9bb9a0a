"""The generated references of commands and settings."""

from __future__ import annotations

import click
import pytest

from periplus import settings
from periplus.cli import reference


@click.group()
def tool():
    """A tool."""


@tool.command()
@click.option("--depth", default=3, show_default=True, help="How deep.")
def dig(depth):
    """Dig a hole."""


@tool.group()
def water():
    """Everything wet."""


@water.command()
def pour():
    """Pour it out."""


@tool.command(hidden=True)
def secret():
    """Not for the reference."""


def test_every_command_is_listed_with_its_full_name():
    assert [path for path, _ in reference.commands(tool, "tool")] == [
        "tool",
        "tool dig",
        "tool water",
        "tool water pour",
    ]


def test_a_command_has_its_help():
    text = reference.cli_reference(tool, "tool")
    assert "## tool dig\n" in text
    assert "Usage: tool dig [OPTIONS]" in text
    assert "How deep.  [default: 3]" in text
    assert "Not for the reference" not in text


def test_the_reference_does_not_depend_on_the_terminal(monkeypatch):
    before = reference.cli_reference(tool)
    monkeypatch.setenv("COLUMNS", "40")
    assert reference.cli_reference(tool) == before


@pytest.mark.parametrize("row", list(settings.rows()), ids=lambda row: row.name)
def test_every_setting_has_its_description(row):
    line = next(line for line in reference.settings_reference().splitlines() if line.startswith(f"| `{row.name}` |"))
    assert row.sentence.replace("|", "\\|") in line


def test_numbers_and_ranges_are_written_in_full():
    text = reference.settings_reference()
    assert "1024 to 4294967296" in text
    assert "| `insecure` | `false` | - | `true`, `false` |" in text


def test_references_are_stale_until_written(tmp_path):
    assert len(reference.stale(tmp_path, tool)) == 6
    reference.write(tmp_path, tool)
    assert reference.stale(tmp_path, tool) == []
