"""Offline copy of a site: local links, list of missing files, safety of scripts."""

import contextlib
import csv
import html
import os
import shutil
import socket
import threading

import pytest
from click.testing import CliRunner
from test_archive_files import warc
from test_ui_as_it_was import typed

import browser
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.settings import settings_from
from periplus_archives.api import import_archives
from periplus_archives.site_copy import export_site
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


def test_each_page_has_a_file(copy):
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


def test_links_lead_to_files_also_through_redirects_and_to_other_hosts(copy):
    home = read(copy, "e.org/index.html")
    for link in ('href="a.html"', 'href="a/b~x=1.html"', 'href="../f.org/x.html"', 'href="mailto:a@e.org"'):
        assert link in home
    assert home.count('href="a.html"') == 2  # /a, and /moved through two redirects
    assert 'href="a/b~x=1.html#part"' in read(copy, "e.org/a.html")
    inner = read(copy, "e.org/a/b~x=1.html")
    assert 'href="../a.html"' in inner and 'href="#here"' in inner
    assert 'href="../e.org/a.html"' in read(copy, "f.org/x.html")


def test_links_to_missing_files_lead_to_the_web_and_are_listed(copy):
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


def test_the_front_page_links_to_the_starts(copy):
    front = read(copy, "index.html")
    assert 'href="e.org/index.html"' in front and 'href="f.org/x.html"' in front and 'href="not-kept.html"' in front


def broken(folder, working_folder, monkeypatch):
    """Targets of the broken internal links that `check` finds in a folder."""
    monkeypatch.chdir(working_folder)
    ended = CliRunner().invoke(main, ["check", str(folder), "--no-external", "-f", "csv", "-o", "issues.csv"])
    assert ended.exit_code in (0, 1), ended.output
    with (working_folder / "issues.csv").open(newline="", encoding="utf-8") as file:
        return [row["related_url"] for row in csv.DictReader(file) if row["category"] == "links"]


def test_a_check_of_the_copy_finds_no_broken_link(copy, tmp_path, monkeypatch):
    assert broken(copy.folder, tmp_path, monkeypatch) == []
    again = tmp_path / "again"
    shutil.copytree(copy.folder, again)
    (again / "e.org" / "a.html").unlink()
    assert len(broken(again, tmp_path, monkeypatch)) >= 1, "the check finds a deleted file"


def test_hostile_urls_stay_inside_the_folder_and_text_is_escaped(tmp_path):
    evil = "https://e.org/%2e%2e/..%2f..%2fevil?<script>alert(1)</script>"
    folder = stored(
        tmp_path / "c", {"https://e.org/": page("Home", evil, "/x%22><b>"), evil: page("Evil")}, ["https://e.org/"]
    )
    done = export_site(folder, tmp_path / "copy")
    assert {path.name for path in tmp_path.iterdir()} == {"c", "copy"} and done.pages >= 1
    assert "<b>" not in read(done, "not-kept.html") and "<script>" not in read(done, "not-kept.html")


SVG = '<svg xmlns="http://www.w3.org/2000/svg" onload="hit(\'svg\')"><script>hit("svg")</script></svg>'
ACTIVE = {
    "https://e.org/": '<p onclick="hit()">x<script src="/s.js"></script><a href="javascript:hit()">y</a>'
    "<a href=-rf>z</a>",
    "https://e.org/-rf": "<title>none</title>",
    "https://e.org/s.js": ("text/javascript", "hit('js')"),
    "https://e.org/p.svg": ("image/svg+xml", SVG),
    "https://e.org/feed.html": ("application/rss+xml", "\ufeff\n" + SVG),
}


@pytest.fixture(scope="module")
def active(tmp_path_factory):
    """A collection with scripts in every possible place."""
    where = tmp_path_factory.mktemp("active")
    sites = {url: answer if isinstance(answer, tuple) else ("text/html", answer) for url, answer in ACTIVE.items()}
    answers = (typed(url, media_type, body) for url, (media_type, body) in sites.items())
    (where / "x.warc.gz").write_bytes(warc(*answers))
    settings = settings_from({"keep_parts": True})
    import_archives(where / "c", (where / "x.warc.gz",), ("https://e.org/",), settings)
    return where / "c"


def test_the_policy_of_each_page_blocks_web_access_of_its_scripts(active, tmp_path):
    done = export_site(active, tmp_path / "copy")
    assert done.with_scripts == 1
    home = read(done, "e.org/index.html")
    assert home.startswith('<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src ')
    policy = html.unescape(home.partition('content="')[2].partition('"')[0])
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["connect-src"] == rules["script-src"].replace("'self' file: 'unsafe-inline' 'unsafe-eval'", "'none'")
    assert "http" not in rules["script-src"] + rules["frame-src"] + rules["object-src"]
    assert {word for word in rules["default-src"].split() if "/" in word} == {"http://e.org", "https://e.org"}
    for path in ("index.html", "not-kept.html"):
        assert 'http-equiv="Content-Security-Policy" content="default-src \'none\'' in read(done, path)


def test_svg_and_xml_have_no_scripts_and_file_names_are_no_options(active, tmp_path):
    done = export_site(active, tmp_path / "copy")
    assert "hit" not in read(done, "e.org/p.svg") + read(done, "e.org/feed.html.bin")
    assert (done.folder / "e.org" / "_-rf.html").is_file()
    assert 'href="_-rf.html"' in read(done, "e.org/index.html")


def test_all_scripts_can_be_removed(active, tmp_path):
    done = export_site(active, tmp_path / "copy", scripts=False)
    assert done.with_scripts == 0
    assert not [path for path in done.folder.rglob("*") if path.is_file() and b"hit" in path.read_bytes()]
    assert not (done.folder / "e.org" / "s.js").exists()
    assert "script-src &#x27;none&#x27;" in read(done, "e.org/index.html")


def test_the_command_warns_of_scripts_and_can_omit_them(active, tmp_path):
    run = CliRunner().invoke
    ended = run(main, ["export", "site", str(tmp_path / "copy"), "-c", str(active)])
    assert "Warning: 1 page of it may run scripts of the site; --no-scripts leaves them out" in ended.output
    ended = run(main, ["export", "site", str(tmp_path / "other"), "-c", str(active), "--no-scripts"])
    assert ended.exit_code == 0 and "scripts" not in ended.output


@pytest.mark.browser
@pytest.mark.skipif(not browser.PROGRAM, reason="no Chromium here: make test-browser")
@pytest.mark.parametrize("scripts", [False, True])
def test_a_copy_opened_from_disk_connects_to_no_host(tmp_path, scripts):
    """Beacons in scripts, images, styles, frames, refreshes and hints, in HTML, XHTML, SVG and similar files."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        beacon = f"http://127.0.0.1:{listener.getsockname()[1]}/"

        def listen() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    asked.append(b"a connection")
                    with connection:
                        asked.append(connection.recv(1000))

        threading.Thread(target=listen, daemon=True).start()
        run = (
            f"new Image().src='{beacon}image';fetch('{beacon}fetch');navigator.sendBeacon('{beacon}beacon');"
            "document.title='ran'"
        )
        parts = f"""<img src="{beacon}img"><link rel=preconnect href="{beacon}"><iframe src="{beacon}frame"></iframe>
            <object data="{beacon}object"></object><meta http-equiv=refresh content="1;url={beacon}refresh">
            <p style="background:url({beacon}style)">p<script>{run}</script><img src=/none onerror="{run}">
            <embed src=/p.svg><iframe src=/p.svg></iframe><object data=/f.rtf></object>"""
        strict = f"""<html xmlns="http://www.w3.org/1999/xhtml"><body><img src="{beacon}img"/><script>{run}</script>
            <iframe src="{beacon}frame"/></body></html>"""
        picture = f"""<svg xmlns="http://www.w3.org/2000/svg" xmlns:h="http://www.w3.org/1999/xhtml" onload="{run}"
            ><script>{run}</script><image href="{beacon}image"/><style>@import url({beacon}style);</style>
            <h:script>{run}</h:script><h:iframe src="{beacon}frame"/><h:img src="x" onerror="{run}"/>
            <rect fill="url({beacon}fill#a)"/></svg>"""
        answers = (
            typed("https://e.org/", "text/html", parts),
            typed("https://e.org/strict", "application/xhtml+xml", strict),
            typed("https://e.org/p.svg", "image/svg+xml", picture),
            typed("https://e.org/broken.svg", "image/svg+xml", picture.removesuffix("</svg>") + "<a x>"),
            typed("https://e.org/f.rtf", "application/rtf", picture),
            typed("https://e.org/f.html", "application/rtf", parts),
            typed("https://e.org/feed", "application/rss+xml", picture),
        )
        (tmp_path / "x.warc.gz").write_bytes(warc(*answers))
        settings = settings_from({"keep_parts": True})
        import_archives(tmp_path / "c", (tmp_path / "x.warc.gz",), ("https://e.org/",), settings)
        done = export_site(tmp_path / "c", tmp_path / "copy", scripts=scripts)
        files = sorted(path for path in done.folder.rglob("*") if path.is_file())
        assert len(files) == len(answers) + 3
        with browser.Browser.started() as shown:
            for file in files:
                shown.open(file.as_uri())
                shown.value("new Promise(done => setTimeout(done, 300))")
                ran = shown.value("document.title") == "ran"
                assert ran == (scripts and file.name == "index.html" and file.parent.name == "e.org"), file
    assert asked == []


def test_a_folder_that_is_not_empty_is_refused(folder, tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(UsageError, match="already exists"):
        export_site(folder, tmp_path)


def test_a_collection_without_stored_bodies_is_refused(tmp_path):
    with pytest.raises(UsageError, match="has no stored page bodies"):
        export_site(stored(tmp_path / "c", {"https://e.org/": 404}, ["https://e.org/"]), tmp_path / "copy")


def test_the_command_prints_the_counts(folder, tmp_path):
    ended = CliRunner().invoke(main, ["export", "site", str(tmp_path / "copy"), "-c", str(folder)])
    assert ended.exit_code == 0 and "4 pages, 0 parts" in ended.output and "3 addresses" in ended.output
