"""Notes on markup and headers, from the web to the list of issues."""

from __future__ import annotations

import json
import sqlite3

import pytest
from click.testing import CliRunner
from voyage import settings_for

from periplus.api.checking import CheckOrder, check
from periplus.api.collection import Collection
from periplus.api.crawling import CrawlOrder, crawl
from periplus.api.grading import grades_now, trends
from periplus.api.positions import issues_of
from periplus.cli.main import main
from periplus.settings import Settings
from periplus.urls.canonical import canonical
from testweb import Web, serve
from testweb.wire import Answer

SAFE = (
    ("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"), ("Permissions-Policy", "camera=()"), ("ETag", '"1"'),
)  # fmt: skip
HEAD = '<!DOCTYPE html><html lang="en"><meta name=viewport content="width=device-width"><title>{}</title><main>'


def notes_web() -> Web:
    web = Web()
    site = web.site("a.test")
    sound = HEAD.format("Home") + "<h1>Home</h1><a href=/bad>bad</a><a href=/same>same</a><img src=/i.png alt=i>"
    bad = "<title>Bad</title><h1>A</h1><h4>B</h4><a href=/><img src=/i.png></a><input>"
    site.answer("/", Answer(body=sound.encode(), headers=SAFE), linked_from=None)
    site.answer(
        "/bad", Answer(body=bad.encode(), headers=(("Server", "Apache/2.4.1"), ("Set-Cookie", "s=1"))), linked_from=None
    )
    site.answer("/same", Answer(body=sound.encode(), headers=SAFE), linked_from=None)
    site.answer(
        "/i.png",
        Answer(body=b"\x89PNG", media_type="image/png", headers=(("Cache-Control", "max-age=60"),)),
        linked_from=None,
    )
    site.answer(
        "/robots.txt", Answer(body=b"User-agent: GPTBot\nDisallow: /\n", media_type="text/plain"), linked_from=None
    )
    return web


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notes") / "c.periplus"
    with serve(notes_web()) as server:
        settings = settings_for(server, recheck_wait_s=0.1)
        start = canonical(server.url("a.test"))
        check(CheckOrder(CrawlOrder(folder, (start,), settings)), lambda progress: False)
    return folder


def noted(folder):
    issues = issues_of(folder, Settings())
    return {(issue.code, issue.url.rpartition("/")[2]): issue.detail for issue in issues}


def test_markup_headers_parts_and_robots_are_noted(checked):
    issues = noted(checked)
    of_bad = {code for code, page in issues if page == "bad"}
    assert of_bad >= {
        "heading-skipped", "link-without-name", "field-without-label", "main-missing", "viewport-missing",
        "doctype-missing", "csp-missing", "framing-allowed", "sniffing-allowed", "permissions-missing", "version-shown",
        "cookie-open", "page-insecure", "not-cacheable",
    }  # fmt: skip
    assert issues["heading-skipped", "bad"] == "h1 to h4" and issues["version-shown", "bad"] == "Apache/2.4.1"
    assert {code for code, page in issues if page == "same"} <= {"page-insecure", "duplicate", "title-duplicate",
                                                                 "description-missing"}  # fmt: skip
    assert issues["part-short-cache", "i.png"] == "kept for 60 s"
    assert issues["model-crawlers", ""].startswith("let in: OAI-SearchBot, ClaudeBot")


def test_each_body_is_examined_once_and_again_by_other_checks(checked):
    noted(checked)
    with sqlite3.connect(checked / "collection.db") as connection:
        rows = connection.execute("SELECT version, notes FROM page_note").fetchall()
        assert len(rows) == 2  # two pages have the same bytes
        connection.execute("UPDATE page_note SET version = 0, notes = '[]'")
    before = noted(checked)
    assert ("heading-skipped", "bad") in before
    with sqlite3.connect(checked / "collection.db") as connection:
        assert connection.execute("SELECT min(version) FROM page_note").fetchone()[0] > 0


def test_a_read_only_user_examines_bodies_locally(tmp_path):
    with serve(notes_web()) as server:
        crawl(CrawlOrder(tmp_path / "c", (canonical(server.url("a.test")),), settings_for(server)), lambda p: False)
    with Collection(tmp_path / "c") as collection:
        codes = {value for row in collection.table("issues") for value in row}
    assert {"heading-skipped", "csp-missing"} <= codes
    with sqlite3.connect(tmp_path / "c" / "collection.db") as connection:
        assert not connection.execute("SELECT 1 FROM page_note").fetchone()


def test_grades_follow_from_the_issues_and_trends_from_the_runs(checked):
    grades = {one.field.value: one for one in grades_now(checked, issues_of(checked, Settings()).sums())}
    assert list(grades) == ["discoverability", "accessibility", "security", "performance", "maintenance"]
    assert "heading-skipped" in {part.code for part in grades["accessibility"].parts}
    crawled, check_point = trends(checked)
    assert (crawled.kind, crawled.pages, crawled.depth, crawled.grades) == ("crawl", 2, 1, ()), (
        "/ and /same are one page"
    )
    assert crawled.response_s > 0 and crawled.bytes > 0
    assert (check_point.kind, check_point.response_s) == ("check", None)


def test_trends_are_listed_and_drawn(checked, tmp_path):
    run = CliRunner().invoke(main, ["trends", "-c", str(checked), "-f", "json"])
    assert [(row["run"], row["kind"], row["pages"]) for row in json.loads(run.stdout)] == [
        (1, "crawl", 2), (2, "check", 2),
    ]  # fmt: skip
    drawn = CliRunner().invoke(main, ["trends", "-c", str(checked), "-f", "svg"]).stdout
    assert drawn.startswith("<svg") and "Pages read" in drawn and "Milliseconds" not in drawn  # one run has answers
    assert CliRunner().invoke(main, ["report", "-c", str(checked)]).exit_code == 0
    assert "<dt>security</dt>" in (checked / "report.html").read_text()


def test_a_gate_on_grades_ends_with_5(checked):
    run = CliRunner().invoke(
        main, ["check", "--offline", "-c", str(checked), "--fail-below", "security=A,maintenance=F"]
    )
    assert run.exit_code == 5 and "Failed: security is" in run.stderr and "Grades: discoverability" in run.stderr
    assert (
        CliRunner().invoke(main, ["check", "--offline", "-c", str(checked), "--fail-below", "security=F"]).exit_code
        == 0
    )
    assert CliRunner().invoke(main, ["check", "--offline", "-c", str(checked), "--fail-below", "x=A"]).exit_code == 2
