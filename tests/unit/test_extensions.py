"""Features of installed packages: one part of each kind, and failing ones do no harm.

The packages are in tests/extension, with the dist-info folders that an installer writes. Each test runs a process with
that folder on its path.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stored import page, stored

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "tests" / "extension"
START = "https://e.org/"


def run(*command, path=PACKAGES):
    """Runs Python with the packages of a folder on its path, and returns the finished process."""
    env = os.environ | {"PYTHONPATH": f"{path}{os.pathsep}{ROOT / 'src'}"}
    return subprocess.run([sys.executable, *command], env=env, capture_output=True, encoding="utf-8", check=False)


def periplus(*arguments, path=PACKAGES):
    return run("-m", "periplus", *map(str, arguments), path=path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    shouts = page("x" * 30, "/a")
    return stored(tmp_path_factory.mktemp("extended") / "c", {START: shouts, f"{START}a": page("Short")}, [START])


UNDERSTAND = """
import sys
from periplus.document.media_types import may_be_read
from periplus.document.understand import understand
from periplus.model.visit import Fetched, Headers
media_type, body = sys.argv[1:]
document = understand("https://e.org/r", Fetched(200, Headers((("content-type", media_type),)), body.encode()))
print(document.title, "|", document.text.strip(), "|", document.fault, "|", may_be_read(media_type))
"""


def test_a_package_can_read_a_media_type():
    ended = run("-c", UNDERSTAND, "text/x-recipe", "Soup\nBoil <water>.")
    assert ended.stdout.strip() == "Soup | Boil <water>. |  | True", ended.stderr
    assert run("-c", UNDERSTAND, "text/x-recipe", "Soup", path=ROOT / "src").stdout.strip() == "|  |  | False"


def test_a_failing_reader_affects_only_its_page_and_cannot_replace_ours():
    ended = run("-c", UNDERSTAND, "text/x-broken", "Soup")
    assert "the installed package broken 0.1 failed: ValueError: out of salt" in ended.stdout, ended.stderr
    assert run("-c", UNDERSTAND, "text/html", "<title>a</title>b").stdout.startswith("a | b |  | True")


def test_a_package_can_write_a_table_format(folder, tmp_path):
    ended = periplus("export", "urls", "-c", folder, "-o", tmp_path / "x.md")
    assert ended.returncode == 0 and "2 lines of urls" in ended.stderr, ended.stderr
    lines = (tmp_path / "x.md").read_text().splitlines()
    assert lines[0].startswith("| id | url ") and START in lines[2]
    csv = periplus("export", "urls", "-c", folder)
    assert csv.returncode == 0 and START in csv.stdout
    assert "burnt" in csv.stderr and "broken 0.1" in csv.stderr  # skipped, with a message


def test_an_audit_has_the_issues_of_a_package_and_continues_after_a_failing_one(folder):
    ended = periplus("export", "issues", "-c", folder, "-f", "jsonl")
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [row["url"] for row in rows if row["code"] == "title-shouts"] == [START], ended.stderr
    assert {row["code"] for row in rows} > {"title-shouts"}
    assert "the installed package broken 0.1 failed: ValueError: out of salt" in ended.stderr
    refused = periplus("check", "-c", folder, "--fail-on", "karma")
    assert "title-shouts" in refused.stderr and refused.returncode == 2


def test_a_package_can_add_a_survey_rule():
    ask = "from periplus_studies.rules import parse_rule; print(parse_rule({!r}, 10, 2))"
    assert "name='fewest'" in run("-c", ask.format("fewest")).stdout
    burnt = run("-c", ask.format("burnt")).stderr
    assert "ExtensionError: the installed package broken 0.1 failed: ValueError: out of salt" in burnt
    words = run("-c", "from periplus_studies.rules import rules; print(rules()['fewest'][0])")
    assert words.stdout.strip() == "The site of which the fewest pages were read."


def test_a_package_can_add_a_command():
    assert periplus("cook").stdout == "soup\n"
    listed = periplus("--help").stdout
    assert "\nOf recipes:\n" in listed and "\n  cook " in listed
    assert (
        "periplus crawl [OPTIONS]" in periplus("crawl", "--help").stdout
    )  # our own command, although a package has one with this name
    ended = periplus("burnt")
    assert ended.returncode == 1 and "the installed package broken 0.1 failed" in ended.stderr


def test_a_package_can_add_to_a_group_of_commands_and_cannot_replace_ours(folder):
    assert periplus("export", "menu").stdout == "soup, bread\n"
    ended = periplus("export", "urls", "-c", folder)
    assert START in ended.stdout and "left out: subcommands export burnt" in ended.stderr


def test_a_package_can_add_a_name_in_python():
    ask = "import periplus; print(periplus.dinner(), 'dinner' in dir(periplus), periplus.crawl.__module__)"
    assert run("-c", ask).stdout == "soup True periplus.api.functions\n"
    assert "ExtensionError: the installed package broken 0.1" in run("-c", "import periplus; periplus.burnt").stderr


def test_a_package_can_add_a_kind_of_job():
    form = {"preset": "cook", "url": "e.org", "max_depth": "2", "every": "day"}
    ended = run(
        "-c", f"from periplus.jobs.presets import job_request as ask; r = ask({form}); print(r.line, r.period_s)"
    )
    assert ended.stdout == "periplus cook --max-depth 2 86400.0\n", ended.stderr
    assert "left out: presets burnt: the installed package broken 0.1 failed: TypeError" in ended.stderr


def test_settings_list_the_parts_of_features_and_their_faults():
    rows = [json.loads(line) for line in periplus("settings", "--extensions", "-f", "jsonl").stdout.splitlines()]
    mine = {(row["part"], row["name"]): row for row in rows}
    assert mine["formats", "text/x-recipe"] | {"fault": ""} == mine["formats", "text/x-recipe"]
    assert mine["formats", "text/x-recipe"]["package"] == "recipes 1.0"
    assert "AttributeError" in mine["writers", "burnt"]["fault"]
    assert "AttributeError" in mine["features", "missing"]["fault"]


def test_a_folder_in_a_collection_is_no_extension(folder):
    """Code in a collection is not an installed package, even if it is the current folder."""
    (folder / "evil-1.0.dist-info").mkdir()
    (folder / "evil-1.0.dist-info" / "METADATA").write_text("Name: evil\nVersion: 1.0\n")
    (folder / "evil-1.0.dist-info" / "entry_points.txt").write_text("[periplus.features]\nevil = evil:FEATURE\n")
    for command in ([Path(sys.executable).parent / "periplus"], [sys.executable, "-m", "periplus"]):
        ended = subprocess.run([*command, "--help"], cwd=folder, capture_output=True, encoding="utf-8", check=True)
        assert "periplus [OPTIONS]" in ended.stdout and "evil" not in ended.stdout
