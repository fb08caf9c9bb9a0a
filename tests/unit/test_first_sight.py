"""What a newcomer meets: `periplus` alone, and the help of commands with many flags."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from periplus.cli.main import main
from periplus.cli.options import flag_of
from periplus.settings import rows
from stored import page, stored

START = "https://e.org/"


def answer(*words: str) -> str:
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 0, ran.output
    return ran.output


def filled(folder):
    stored(folder, {START: page("Words")}, [START])


def test_with_nothing_here_it_says_how_to_begin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "periplus crawl https://example.org" in answer()
    assert list(tmp_path.iterdir()) == []


def test_with_one_collection_here_it_says_what_to_do_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    filled(tmp_path / "e.org.periplus")
    lines = answer().splitlines()
    assert lines[0].startswith("e.org.periplus: ")
    assert any(line.startswith("  periplus map ") for line in lines)


def test_with_several_it_names_them_and_how_to_choose(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.periplus", "b.periplus"):
        filled(tmp_path / name)
    assert "2 collections here" in answer()
    assert "periplus map -c a.periplus" in answer()


def test_a_folder_that_is_no_collection_is_no_reason_to_fail(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.periplus").mkdir()
    assert "x.periplus: " in answer()


@pytest.mark.parametrize("command", ["crawl", "refresh", "check", "survey run", "topic crawl"])
def test_help_shows_the_flags_of_every_day_in_groups_and_names_the_rest(command):
    short, whole = answer(*command.split(), "--help"), answer(*command.split(), "--help-all")
    heads = [line for line in short.splitlines() if line.endswith(":") and not line.startswith(" ")]
    order = ["Where:", "How much:", "How polite:", "What to keep:", "Network:", "Limits:", "Output:", "Help:"]
    assert [head for head in heads if head in order] == order
    assert "--inflation-ratio" not in short
    flags = [flag_of(row) for row in rows() if row.group != "searching"]
    assert [flag for flag in flags if flag not in whole] == []
    assert len(short.splitlines()) < len(whole.splitlines()) * 0.7
