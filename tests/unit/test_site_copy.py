"""A copy on disk: links lead to files, what is not there is said, and a check of it finds nothing newly broken."""

import csv
import os
import shutil

import pytest
from click.testing import CliRunner

from periplus.api.site_copy import export_site
from periplus.cli.main import main
from periplus.errors import UsageError
from stored import page, stored

HEAD = '<link rel=stylesheet href="/s.css"><style>body{background:url(bg.png)}</style>'
SITE = {
    "https://e.org/": page("Home", "/a", "/a/b?x=1", "/moved", "/gone", "https://f.org/x", "mailto:a@e.org", head=HEAD),
    "https://e.org/a": page("A", "./a/b?x=1#part", "/"),
    "https://e.org/a/b?x=1": page("B", "../a", "b?x=1#here", head="<p id=part></p><p id=here></p>"),
    "https://e.org/moved": "/hop",
    "https://e.org/hop": "/a",
    "https://e.org/gone": 404,
    "https://f.org/x": page("Elsewhere", "https://e.org/a"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("copy") / "c.periplus", SITE, ["https://e.org/", "https://f.org/x"])


@pytest.fixture(scope="module")
def copy(folder):
    return export_site(folder, folder.parent / "copy")


def read(copy, path):
    return (copy.folder / path).read_text("utf-8")


def test_the_files_are_those_of_the_pages(copy):
    files = {
        os.fspath(path.relative_to(copy.folder)).replace(os.sep, "/")
        for path in copy.folder.rglob("*")
        if path.is_file()
    }
    assert files == {
        "index.html", "not-kept.html", "not-kept.csv",
        "e.org/index.html", "e.org/a.html", "e.org/a/b~x=1.html", "f.org/x.html",
    }  # fmt: skip
    assert (copy.pages, copy.parts, copy.not_kept) == (4, 0, 3)


def test_links_lead_to_files_also_over_redirects_and_to_other_hosts(copy):
    home = read(copy, "e.org/index.html")
    for link in ('href="a.html"', 'href="a/b~x=1.html"', 'href="../f.org/x.html"', 'href="mailto:a@e.org"'):
        assert link in home
    assert home.count('href="a.html"') == 2  # /a, and /moved over two redirects
    assert 'href="a/b~x=1.html#part"' in read(copy, "e.org/a.html")
    inner = read(copy, "e.org/a/b~x=1.html")
    assert 'href="../a.html"' in inner and 'href="#here"' in inner
    assert 'href="../e.org/a.html"' in read(copy, "f.org/x.html")


def test_what_is_not_kept_leads_to_the_web_and_is_listed(copy):
    home = read(copy, "e.org/index.html")
    assert 'href="https://e.org/gone"' in home and 'href="https://e.org/s.css"' in home
    assert 'url("https://e.org/bg.png")' in home
    with (copy.folder / "not-kept.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["url", "reason", "status", "links"],
        ["https://e.org/bg.png", "resource", "", "1"],
        ["https://e.org/gone", "not-found", "404", "1"],
        ["https://e.org/s.css", "resource", "", "1"],
    ]
    listed = read(copy, "not-kept.html")
    assert "3 addresses" in listed and "not found (404)" in listed and "image, style or script" in listed


def test_the_front_page_leads_to_the_starts(copy):
    front = read(copy, "index.html")
    assert 'href="e.org/index.html"' in front and 'href="f.org/x.html"' in front and 'href="not-kept.html"' in front


def broken(folder, working_folder, monkeypatch):
    """Targets of links within a folder that `check` finds broken."""
    monkeypatch.chdir(working_folder)
    ended = CliRunner().invoke(main, ["check", str(folder), "--no-external", "-f", "csv", "-o", "issues.csv"])
    assert ended.exit_code in (0, 1), ended.output
    with (working_folder / "issues.csv").open(newline="", encoding="utf-8") as file:
        return [row["related_url"] for row in csv.DictReader(file) if row["category"] == "links"]


def test_a_check_of_the_copy_finds_nothing_broken(copy, tmp_path, monkeypatch):
    assert broken(copy.folder, tmp_path, monkeypatch) == []
    again = tmp_path / "again"
    shutil.copytree(copy.folder, again)
    (again / "e.org" / "a.html").unlink()
    assert len(broken(again, tmp_path, monkeypatch)) >= 1, "it would be found"


def test_hostile_addresses_stay_in_the_folder_and_text_stays_text(tmp_path):
    evil = "https://e.org/%2e%2e/..%2f..%2fevil?<script>alert(1)</script>"
    folder = stored(
        tmp_path / "c", {"https://e.org/": page("Home", evil, "/x%22><b>"), evil: page("Evil")}, ["https://e.org/"]
    )
    done = export_site(folder, tmp_path / "copy")
    assert {path.name for path in tmp_path.iterdir()} == {"c", "copy"} and done.pages >= 1
    assert "<b>" not in read(done, "not-kept.html") and "<script>" not in read(done, "not-kept.html")


def test_a_folder_that_holds_something_is_refused(folder, tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        export_site(folder, tmp_path)


def test_a_collection_without_bytes_is_refused(tmp_path):
    with pytest.raises(UsageError, match="holds no bytes of pages"):
        export_site(stored(tmp_path / "c", {"https://e.org/": 404}, ["https://e.org/"]), tmp_path / "copy")


def test_the_command(folder, tmp_path):
    ended = CliRunner().invoke(main, ["export", "site", str(tmp_path / "copy"), "-c", str(folder)])
    assert ended.exit_code == 0 and "4 pages, 0 parts" in ended.output and "3 addresses" in ended.output
