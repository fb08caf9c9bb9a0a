"""Commands give the same answers for a collection in a database and in a folder, also after a further crawl."""

import re

import pytest
from click.testing import CliRunner

from periplus.cli.main import main
from periplus_postgres.moving import into_database, silent
from stored import page, stored

HOME = "https://e.org/"
WORDS = "Harbours on this coast have lights, pilots and a depth that is printed in the almanac of the year"
ANSWERS = {
    HOME: page("Home", "/a", "/b", "/gone", "/old", "https://else.example/x") + f"<p>{WORDS}</p>",
    "https://e.org/a": page("Pilots", "/", "/b") + f"<p>{WORDS}, with tides</p>",
    "https://e.org/b": page("Lights", "/a") + f"<p>{WORDS}, with tides</p>",
    "https://e.org/old": "/a",
    "https://e.org/gone": 404,
}
READING = (
    "pages --columns url,status,title,depth -f csv",
    "links -f csv",
    "links --broken -f json",
    "page https://e.org/a --json",
    "page https://e.org/a --as markdown",
    "page https://e.org/a --as source",
    "search pilots -f json",
    "search pilots~depth:..1~set:target~-status:404~date:1970 -f json",
    "trends -f csv",
    "diff last last -f json",
    "duplicates -f json",
    "template",
    "keywords --json",
    "check --offline -f csv",
    "faults list -f csv",
    "stories --json",
    "sql SELECT~url,reason~FROM~urls~ORDER~BY~1 -f csv",
    "map --no-run -f json",
    "rules propose",
    "rules check https://e.org/a",
    "export pages",
    "export pages --no-rank",
    "export links",
    "export redirects",
    "export issues",
    "export structured",
    "export urls",
    "status -f json",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return stored(tmp_path / "c.periplus", ANSWERS, [HOME])


def ran(line, place):
    ended = CliRunner().invoke(main, [word.replace("~", " ") for word in line.split()] + ["-c", str(place)])
    assert ended.exit_code == 0, (line, ended.output, ended.exception)
    return ended.stdout


def plain(output):
    """Normalised output: sorted, without times and without the place of the collection."""
    output = re.sub(r'"(took_ms|size_bytes|folder|store|workers|time)": ("[^"]*"|[0-9.]+),?', "", output)
    return sorted(filter(None, map(str.strip, output.splitlines())))


@pytest.mark.parametrize("line", READING)
def test_a_command_reads_a_database_as_a_folder(line, folder, address):
    into_database(folder, address.text, silent)
    assert plain(ran(line, address.text)) == plain(ran(line, folder)) != []


def test_a_topic_of_a_folder_judges_pages_of_a_database(folder, address, tmp_path):
    into_database(folder, address.text, silent)
    for side in ("a", "b"):
        (tmp_path / f"{side}.txt").write_text("pilots tides harbours " * 9 if side == "a" else "bread flour ovens " * 9)
    ran("topic train t -p a.txt -n b.txt", folder)
    judged = ran("topic judge t --json", folder)
    assert ran(f"topic judge t --json --topic-from {folder}", address.text) == judged != ""


def test_a_report_and_sitemaps_of_a_database_are_those_of_its_folder(folder, address, tmp_path):
    into_database(folder, address.text, silent)
    for name, place in (("here", folder), ("there", address.text)):
        ran(f"report -o {tmp_path / name}.html", place)
        ran(f"map -f sitemap -o {tmp_path / name}", place)
    here, there = (
        re.sub(r"\d\d:\d\d( UTC)?", "", (tmp_path / f"{name}.html").read_text()) for name in ("here", "there")
    )
    assert here == there and "<h1" in here
    assert (tmp_path / "here" / "sitemap.xml").read_bytes() == (tmp_path / "there" / "sitemap.xml").read_bytes()
