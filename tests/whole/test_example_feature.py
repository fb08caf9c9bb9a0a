"""examples/feature: a package that is installed beside Periplus adds a command, a finding, a screen, a column
and a table."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stored import page, stored

ROOT = Path(__file__).parents[2]
START = "https://e.org/"
ASK = """
import pathlib, sys
sys.path.insert(0, "tests")
from interface import client
asking = client(pathlib.Path(sys.argv[1]))
for path in ("/c/c/longest", "/c/c/t/longest", "/c/c/t/pages"):
    print(asking.get(path).text)
print([row["url"] for row in asking.get("/c/c/longest", headers={"accept": "application/json"}).json()["pages"]])
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder into which the example was installed, from a copy, without a network."""
    base = tmp_path_factory.mktemp("example")
    shutil.copytree(ROOT / "examples" / "feature", base / "source")
    words = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", base / "site", base / "source"]
    subprocess.run([sys.executable, "-m", "pip", "install", *words], check=True, capture_output=True)
    return base / "site"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pages = {START: page("Home", "/a"), f"{START}a": page("A long page " * 50)}
    return stored(tmp_path_factory.mktemp("collections") / "c.periplus", pages, [START])


def run(site, *words):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (site, ROOT / "src")))}
    return subprocess.run(
        [sys.executable, *map(str, words)], env=env, cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )


def test_its_command_is_listed_and_runs(site, folder):
    assert "\n  longest " in run(site, "-m", "periplus", "--help").stdout
    lines = run(site, "-m", "periplus", "longest", "-c", folder).stdout.splitlines()
    assert [line.split()[-1] for line in lines] == [f"{START}a", START]


def test_its_finding_is_audited(site, folder):
    ended = run(site, "-m", "periplus", "export", "issues", "-c", folder, "-f", "jsonl")
    assert [START in line for line in ended.stdout.splitlines() if '"title-tiny"' in line] == [True], ended.stderr


def test_its_column_is_read_with_the_pages(site, folder):
    ended = run(site, "-m", "periplus", "export", "pages", "-c", folder, "-f", "jsonl")
    rows = map(json.loads, ended.stdout.splitlines())
    assert {row["url"]: row["words"] for row in rows} == {START: 3, f"{START}a": 150}, ended.stderr


def test_its_screen_and_table_are_served_and_in_the_navigation(site, folder):
    shown = run(site, "-c", ASK, folder.parent)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("<h1>Longest pages</h1>") >= 1 and f"['{START}a', '{START}']" in shown.stdout
    assert shown.stdout.count('href="/c/c/longest"') >= 3  # on each screen of the collection's pages
    assert "share" in shown.stdout
