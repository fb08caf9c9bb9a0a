"""Pages parsed only in part are reported in all lists: by reason, in `page`, `status`, `check` and the report."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from voyage import crawled, settings_for

from periplus.api.positions import issues_of
from periplus.cli.main import main
from periplus.model.visit import Reason
from testweb import Page, Site, serve
from testweb.wire import Answer

ROWS_MOST = 20_000  # of `document.link_rows`
SHELL = b"<!DOCTYPE html><title>App</title><div id=root></div><script src=/app.js></script>"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def site() -> Site:
    """Its first page has a list with 300 links to one page before the others, and more links than are parsed."""
    found = Site("a.test")
    found.add(Page("/", "Home"))
    listed = b"<!DOCTYPE html><html lang=en><title>Index</title><h1>Index</h1>" + b"<a href=/common#f>f</a> " * 300
    near = b"".join(b"<a href=/n%d>n</a> " % number for number in range(8))
    far = b"".join(b"<a href=//b.test/%d>f</a> " % number for number in range(ROWS_MOST))
    found.answer("/index", Answer(200, listed + near + far))
    found.answer("/picture", Answer(200, PNG))
    found.answer("/letter.doc", Answer(200, b"garbage", media_type="application/msword"))
    found.answer("/shop", Answer(200, SHELL))
    for path in ("/common", *(f"/n{number}" for number in range(8))):
        found.answer(path, Answer(200, f"<title>{path}</title><h1>{path}</h1><p>{path}".encode()), linked_from=None)
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """(the collection, the issues of its check, its settings)."""
    folder = tmp_path_factory.mktemp("unread")
    with serve(site()) as server:
        collection, _ = crawled(folder, server, "a.test")
        issues = issues_of(folder, settings_for(server), near=False)
    return collection, issues


def ran(*words: str) -> str:
    done = CliRunner().invoke(main, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


EXPECTED = {
    "/index": (Reason.PARTIAL, f"more than {ROWS_MOST:,} distinct links", "partly-read"),
    "/picture": (Reason.UNREADABLE, "image/png, sent as text/html", "unreadable"),
    "/letter.doc": (Reason.UNREADABLE, "damaged: no zip archive", "unreadable"),
    "/shop": (Reason.NEEDS_SCRIPT, "almost no text, and an element that a script fills", "needs-script"),
}


def path_of(url: str) -> str:
    return "/" + url.split("/", 3)[3]


def test_each_page_has_its_reason_and_detail(told):
    found = {path_of(url): (row.reason, row.rule) for url, row in told[0].urls.items() if "a.test" in url}
    assert {path: found[path] for path in EXPECTED} == {path: row[:2] for path, row in EXPECTED.items()}
    assert not told[0].sane()


def test_a_link_after_many_to_one_page_is_followed(told):
    """Regression: links after the 20,000th of a page were ignored, even if all led to a few pages."""
    assert {path_of(url) for url, reason in told[0].reasons.items() if reason is Reason.OK} >= {
        "/common",
        *(f"/n{number}" for number in range(8)),
    }


def test_page_status_check_and_report_list_them(told):
    collection, issues = told
    folder = str(collection.folder)
    urls = {path_of(url): url for url in collection.urls}
    for path, (_, why, code) in EXPECTED.items():
        assert why in ran("page", urls[path], "-c", folder)
        assert [issue.detail for issue in issues if (issue.code, issue.url) == (code, urls[path])] == [why]
    status = ran("status", "-c", folder)
    for words in ("parsed in part", "unreadable", "empty without JavaScript"):
        assert words in status
    ran("report", "-c", folder)
    report = (collection.folder / "report.html").read_text()
    for title in ("Pages read in part", "Unreadable files", "Pages empty without JavaScript"):
        assert title in report


def test_an_empty_shell_lacks_no_heading(told):
    assert not [
        issue.code
        for issue in told[1]
        if path_of(issue.url) in ("/shop", "/picture") and issue.code in ("h1-missing", "title-missing")
    ]
