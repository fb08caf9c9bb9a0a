"""`periplus` without arguments, help, completion and man pages."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from periplus.cli.main import main
from periplus.cli.reference import man_pages
from periplus.cli.start import TOPICS
from periplus.settings import rows
from stored import page, stored

START = "https://e.org/"


def answer(*words: str) -> str:
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 0, ran.output
    return ran.output


def filled(folder):
    stored(folder, {START: page("Words")}, [START])


def test_without_a_collection_periplus_shows_how_to_begin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "periplus crawl https://example.org" in answer()
    assert list(tmp_path.iterdir()) == []


def test_with_one_collection_periplus_lists_commands_for_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    filled(tmp_path / "e.org.periplus")
    lines = answer().splitlines()
    assert lines[0].startswith("e.org.periplus: ")
    assert any(line.startswith("  periplus map ") for line in lines)


def test_with_several_collections_periplus_lists_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.periplus", "b.periplus"):
        filled(tmp_path / name)
    assert "2 collections here" in answer()
    assert "periplus map -c a.periplus" in answer()


def test_a_folder_without_a_collection_is_no_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.periplus").mkdir()
    assert "x.periplus: " in answer()


@pytest.mark.parametrize("command", ["crawl", "refresh", "check", "survey run", "topic crawl"])
def test_help_shows_common_flags_in_groups_and_help_all_shows_every_flag(command):
    short, whole = answer(*command.split(), "--help"), answer(*command.split(), "--help-all")
    heads = [line for line in short.splitlines() if line.endswith(":") and not line.startswith(" ")]
    order = ["Where:", "How much:", "How polite:", "What to keep:", "Other:"]
    assert [head for head in heads if head in order] == order
    assert "--inflation-ratio" not in short
    flags = [row.flag for row in rows() if row.group != "searching"]
    assert [flag for flag in flags if flag not in whole] == []
    assert len(short.splitlines()) < len(whole.splitlines()) * 0.5


def test_help_of_crawl_fits_a_screen():
    short, whole = answer("crawl", "--help"), answer("crawl", "--help-all")
    assert len(short.splitlines()) <= 45
    assert "--part K/N" not in short and whole.index("Output:") < whole.index("Several machines:") < whole.index(
        "--part K/N"
    )


@pytest.mark.parametrize(("command", "value"), [("search", "PERIPLUS_COLLECTION"), ("crawl", "SITE.periplus")])
def test_help_has_values_instead_of_placeholders(command, value):
    text = answer("help", command)
    assert value in text and "{" not in text


def test_help_shows_common_commands_and_help_all_the_others():
    assert "\n  segments " not in answer("--help") and "\n  crawl " in answer("--help")
    assert "\n  segments " in answer("--help-all")


def test_an_option_before_the_command_of_a_group_names_the_commands() -> None:
    result = CliRunner().invoke(main, ["faults", "-c", "x.periplus"])
    assert result.exit_code == 2 and "Options follow one of its commands: list, accept" in result.output


@pytest.mark.parametrize(("word", "meant"), [("crwal", "crawl"), ("jobs ad", "add"), ("segment", "segments")])
def test_an_unknown_command_suggests_the_nearest(word, meant):
    ran = CliRunner().invoke(main, word.split())
    assert ran.exit_code == 2 and f"Did you mean '{meant}'?" in ran.output


@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_each_topic_is_explained_in_a_few_lines(topic):
    lines = answer("help", topic).splitlines()
    assert 2 < len(lines) < 9
    assert max(map(len, lines)) <= 80


def test_help_lists_topics_and_all_flags_and_refuses_unknown_names():
    assert "--inflation-ratio" in answer("help", "crawl")
    assert "--positive" in answer("help", "topic", "train")
    assert all(topic in answer("help") for topic in TOPICS)
    ran = CliRunner().invoke(main, ["help", "nothing"])
    assert (ran.exit_code, "neither a topic nor a command" in ran.output) == (2, True)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_each_shell_has_a_completion_script(shell):
    assert "_PERIPLUS_COMPLETE" in answer("completion", shell)


def test_a_shell_completes_commands():
    code = "from periplus.cli.main import main; main(prog_name='periplus')"
    env = {**os.environ, "_PERIPLUS_COMPLETE": "zsh_complete", "COMP_WORDS": "periplus cra", "COMP_CWORD": "1"}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert "crawl" in ran.stdout


def test_each_command_has_a_man_page_without_accidental_roff_requests():
    pages = dict(man_pages(main))
    assert {"periplus.1", "periplus-crawl.1", "periplus-topic-train.1"} <= set(pages)
    for name, text in pages.items():
        assert text.startswith(f".TH {name[:-2].upper()} 1 ")
        requests = [line for line in text.splitlines() if line.startswith((".", "'"))]
        assert [line.split()[0] for line in requests] == [".TH", ".SH", ".SH", ".nf", ".fi", ".SH", ".nf", ".fi"], name
    assert "\\-\\-inflation\\-ratio" in pages["periplus-crawl.1"]
