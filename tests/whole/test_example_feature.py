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
import json, pathlib, sys
sys.path.insert(0, "tests")
from click.testing import CliRunner
from interface import client
from periplus.cli.main import main
folder = pathlib.Path(sys.argv[1])
def told(*words):
    ran = CliRunner().invoke(main, words)
    return ran.output if ran.exception else ran.stdout
asking = client(folder.parent)
print(json.dumps({
    "help": told("--help"),
    "longest": told("longest", "-c", str(folder)),
    **{table: told("export", table, "-c", str(folder), "-f", "jsonl") for table in ("issues", "pages")},
    "screens": "".join(asking.get(path).text for path in ("/c/c/longest", "/c/c/t/longest", "/c/c/t/pages")),
    "urls": [row["url"] for row in asking.get("/c/c/longest", headers={"accept": "application/json"}).json()["pages"]],
}))
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


@pytest.fixture(scope="module")
def told(site, folder):
    """What the program with the example says and shows, by name: in one process, which has the example in its path."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (site, ROOT / "src")))}
    words = [sys.executable, "-c", ASK, folder]
    ran = subprocess.run(words, env=env, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_its_command_is_listed_and_runs(told):
    assert "\n  longest " in told["help"]
    assert [line.split()[-1] for line in told["longest"].splitlines()] == [f"{START}a", START]


def test_its_finding_is_audited(told):
    assert [START in line for line in told["issues"].splitlines() if '"title-tiny"' in line] == [True], told["issues"]


def test_its_column_is_read_with_the_pages(told):
    rows = map(json.loads, told["pages"].splitlines())
    assert {row["url"]: row["words"] for row in rows} == {START: 3, f"{START}a": 150}, told["pages"]


def test_its_screen_and_table_are_served_and_in_the_navigation(told):
    assert told["screens"].count("<h1>Longest pages</h1>") >= 1 and told["urls"] == [f"{START}a", START]
    assert told["screens"].count('href="/c/c/longest"') >= 3  # on each screen of the collection's pages
    assert "share" in told["screens"]
