"""The commands that read a collection: map, status, pages, links, report, settings."""

import csv
import io
import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from lxml import etree

from periplus.cli.main import main
from periplus.model.frontier import HostRow
from periplus.present.map_xml import schema
from periplus.present.wording import why_waits
from periplus.settings import rows
from stored import page, stored

HOME = "https://e.org/"
WEB = {
    HOME: page("Přístav", "/a", "/b", "/gone", "mailto:x@e.org"),
    "https://e.org/a": page("A \x1b[31m", "/", "/b"),
    "https://e.org/b": page("=1+1", "https://other.org/"),
    "https://e.org/gone": 404,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return stored(tmp_path / "e.org.periplus", WEB, [HOME])


def run(*words, code=0):
    """(stdout, stderr) of a command."""
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def test_the_map_has_a_heading_and_the_tree(folder):
    out, err = run("map")
    assert err == ""
    assert out.splitlines()[0] == "e.org: 3 pages, 3 fetched, depth 1"
    assert out.splitlines()[1].endswith(": done")
    assert "Přístav" in out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_map_as_xml_and_json_is_valid(folder, tmp_path):
    out, _ = run("map", "-f", "xml", "-o", str(tmp_path / "m.xml"))
    assert out == ""
    tree = etree.parse(str(tmp_path / "m.xml"))
    etree.XMLSchema(etree.fromstring(schema())).assertValid(tree)
    read = json.loads(run("map", "-f", "json", "--values", "title")[0])
    assert read["home"]["url"] == HOME
    assert {child["url"]: child["title"] for child in read["home"]["children"]}["https://e.org/b"] == "=1+1"
    cut = json.loads(run("map", "-f", "json", "--max-depth", "0")[0])
    assert cut["home"]["omitted"] == 2


def test_rounds_of_pagerank_need_the_published_scale(folder):
    assert json.loads(run("map", "-f", "json", "--rounds", "1")[0])["map"]["rounds"] == 1
    assert "published" in run("map", "--rounds", "1", "--scale", "normalised", code=2)[1]
    assert "value" in run("map", "--values", "colour", code=2)[1]


def test_status_counts_in_plain_words(folder):
    out, _ = run("status")
    for words in (
        "5 URLs on 2 hosts",
        "3    fetched and read",
        "1    not found",
        "1    outside the scope",
        "4 pages fetched",
        "done after 60 s",
        HOME,
    ):
        assert words in out
    read = json.loads(run("status", "-f", "json")[0])
    assert read["urls"] == 5
    assert {"state": "failed", "reason": "not-found", "urls": 1} in read["counts"]
    assert read["runs"][0]["starts"] == [HOME]


def test_status_shows_waiting_hosts_and_an_interrupted_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored(tmp_path / "e.periplus", {HOME: page("Home", "/a", "/b")}, [HOME], state="running")
    out, _ = run("status")
    assert "killed before its end" in out
    assert "e.org:443  2 waiting, 1 fetched; no crawl is running" in out
    assert "complete down to depth 0" in run("map")[0]


@pytest.mark.parametrize(
    ("wait_s", "waits_for", "leased", "state", "said"),
    [
        (30.0, "Retry-After", False, "running", "may be asked again in 30 s (Retry-After)"),
        (0.0, "", True, "running", "being asked"),
        (0.0, "", False, "running", "ready, waits for a worker"),
        (30.0, "Retry-After", False, "killed", "no crawl is running"),
        (0.0, "", True, "paused", "being asked"),
        (30.0, "Retry-After", False, "paused", "the crawl is paused"),
    ],
)
def test_status_names_the_reason_why_a_host_waits(wait_s, waits_for, leased, state, said):
    assert why_waits(HostRow("e.org:443", 1, 0, wait_s, waits_for, leased), state) == said


def test_pages_are_listed_as_table_csv_and_json_lines(folder):
    out, _ = run("pages", "--state", "failed")
    assert out.splitlines()[2].split() == ["404", "not-found", "1", "https://e.org/gone"]
    table = list(csv.DictReader(io.StringIO(run("pages", "-f", "csv", "--columns", "url,title,reason")[0])))
    assert table[0] == {"url": HOME, "title": "Přístav", "reason": "ok"}
    assert {row["title"] for row in table} >= {"'=1+1"}  # a spreadsheet must not evaluate it
    lines = [
        json.loads(line) for line in run("pages", "-f", "jsonl", "--columns", "all", "--status", "4xx")[0].splitlines()
    ]
    assert [(row["url"], row["rule"], row["first_seen"]) for row in lines] == [
        ("https://e.org/gone", None, "1970-01-12T13:46:40Z")
    ]
    assert len(run("pages", "-n", "2")[0].splitlines()) == 4


def test_links_are_selected_by_source_target_and_kind(folder):
    table = list(csv.DictReader(io.StringIO(run("links", "--to", "https://e.org/b", "-f", "csv")[0])))
    assert [(row["source"], row["anchor"]) for row in table] == [(HOME, "to b"), ("https://e.org/a", "to b")]
    lines = [json.loads(line) for line in run("links", "--from", "e.org/", "--broken", "-f", "jsonl")[0].splitlines()]
    assert [(row["target"], row["target_reason"]) for row in lines] == [("https://e.org/gone", "not-found")]
    assert "mailto:x@e.org" in run("links", "--bad")[0]
    assert "https://other.org/" in run("links", "--external")[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("links", "--to", "https://e.org/nowhere"), "periplus pages --url"),
        (("links", "--from", "http://[bad"), "is not a URL"),
        (("links", "--bad", "--broken"), "--bad goes with"),
        (("pages", "--columns", "colour"), "choose among"),
        (("pages", "--status", "teapot"), "404 or 4xx"),
        (("map", "--site", "other.org"), "The collection has 1 site:\n  e.org"),
        (("pages", "-o", "/nowhere/at/all.csv"), "cannot be written"),
        (("report", "-o", "/nowhere/at/all.html"), "cannot be written"),
        (("map", "-c", "nowhere"), "has no collection"),
    ],
)
def test_an_impossible_request_ends_with_advice(folder, words, said):
    out, err = run(*words, code=2)
    assert said in err
    assert out == ""


def test_the_report_is_written_and_its_path_printed(folder):
    out, _ = run("report")
    assert out.strip().endswith("report.html")
    assert "https://e.org/gone" in (folder / "report.html").read_text("utf-8")


def test_settings_are_listed_with_their_flags(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out, _ = run("settings")
    assert "--delay " in out
    assert max(map(len, out.splitlines())) <= 110
    names = [json.loads(line)["name"] for line in run("settings", "-f", "jsonl")[0].splitlines()]
    assert names == [row.name for row in rows()]


def periplus(*words, **environment):
    command = [sys.executable, "-m", "periplus", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | environment)


def test_a_closed_pipe_ends_a_list_quietly(tmp_path):
    many = {HOME: page("Home", *(f"/{number}" for number in range(5000)))}
    stored(tmp_path / "e.periplus", many, [HOME])
    process = periplus("pages", "-c", str(tmp_path / "e.periplus"), "-f", "csv")
    assert process.stdout.readline().startswith(b"status,")
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


@pytest.mark.parametrize("format", ["table", "csv", "junit"])
def test_a_closed_pipe_does_not_change_the_exit_code_of_a_check(folder, format):
    """Findings must fail the build even if the output is cut: `set -o pipefail; periplus check ... | head`."""
    process = periplus("check", "-c", str(folder), "--offline", "--fail-on", "warning", "-f", format)
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert "none allowed" in errors
    assert "Traceback" not in errors and "Exception" not in errors
    assert process.wait() == 5


def test_a_terminal_without_box_characters_gets_ascii(folder):
    out, err = periplus("map", "-c", str(folder), PYTHONIOENCODING="ascii").communicate()
    assert err == b""
    assert b"|- " in out


@pytest.mark.parametrize(
    "words",
    [
        ("pages", "-n"),
        ("pages", "--depth"),
        ("links", "-n"),
        ("links", "--bad", "-n"),
        ("delete", "--run"),
        ("jobs", "cancel"),
        ("notices", "remove"),
    ],
)
def test_a_number_beyond_64_bits_is_refused(folder, words):
    largest = 2**63 - 1
    assert "is more than can be counted" in run(*words, str(largest + 1), code=2)[1]
    CliRunner().invoke(main, [*words, str(largest)], catch_exceptions=False)


def test_ctrl_c_ends_with_exit_code_130(folder, monkeypatch):
    def interrupted(*words, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("periplus.api.functions.Collection", interrupted)
    assert run("status", code=130)[1].strip() == "Stopped."
