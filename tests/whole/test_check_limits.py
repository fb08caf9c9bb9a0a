"""Checks after crawls that reached a limit."""

from __future__ import annotations

import csv
import io

import pytest
from voyage import Collection, flags_for, told

from periplus.api.homes import settings_before
from periplus.settings import Budget, settings_from
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome
from testweb import Page, Site, Web, faults, serve
from testweb.wire import Answer


def long_way(far: Site, pages: int = 12) -> Site:
    """A chain of pages; the first also links to a dead page, and to a site with a dead page and an external link."""
    site = Site("a.test")
    for number in range(pages):
        site.add(Page("/" if not number else f"/{number}", f"Page {number}"))
        site.link(f"/{number - 1}" if number > 1 else "/", f"/{number}", "on") if number else None
    faults.status(site, "/gone", 404)
    for path in (site.url("/gone"), far.url("/gone"), far.url("/moved")):
        site.link("/", path, "away", target=path)
    far.add(Page("/", "Far"))
    faults.status(far, "/gone", 404)
    far.answer("/moved", Answer(302, b"", (("Location", "/lost"),)))
    return site


@pytest.mark.parametrize("workers", [1, 2])
def test_a_check_does_not_continue_a_crawl_at_its_limit(tmp_path, workers):
    far = Site("far.test")
    site = long_way(far)
    with serve(Web((site, far))) as server:
        flags = [*flags_for(server.resolve, recheck_wait_s=0.2, workers=workers), "--no-sitemaps", "--trap-window", "0"]
        crawled = told("crawl", server.url("a.test"), "-o", "kept", *flags, "--max-pages", "4", cwd=tmp_path)
        assert crawled.returncode == 0, crawled.stderr
        read = {entry.target for entry in server.log.of("a.test")}
        done = told("check", "-c", "kept", "--no-near", "-f", "csv", "--fail-on", "broken>2", cwd=tmp_path)
        assert done.returncode == 5, done.stderr
        assert "The crawl stopped (max-pages 4 reached)" in done.stderr and "Check 2 done" in done.stderr
        broken = {
            row["related_url"].rpartition("/")[2]
            for row in csv.DictReader(io.StringIO(done.stdout))
            if row["code"].startswith("broken")
        }
        assert broken == {"gone", "moved"}
        assert {
            target
            for target in {entry.target for entry in server.log.of("a.test")} - read
            if "no-such-page" not in target
        } <= {"/gone"}
        assert (
            told(
                "check", server.url("a.test"), "-c", "kept", *flags, "--no-near", "--max-pages", "2", cwd=tmp_path
            ).returncode
            == 0
        )
        assert {"/3", "/4"} & {entry.target for entry in server.log.of("a.test")}, (
            "with a URL the crawl goes on, to its limit"
        )
        assert told("crawl", server.url("a.test"), "-o", "kept", *flags, cwd=tmp_path).returncode == 0
        counts = dict(
            Collection(tmp_path / "kept").ask("SELECT reason, count(*) FROM url WHERE text LIKE '%a.test%' GROUP BY 1")
        )
        assert counts == {"ok": 12, "not-found": 1}


def test_a_check_that_continues_a_crawl_keeps_its_limits(tmp_path):
    schema.create(tmp_path)
    given = settings_from({"max_pages": 9, "quantum": 7})
    for state, note, pages in [
        ("done", "", 0),
        ("stopped", "stopped by the user", 9),
        ("stopped", "max-pages 9 reached", 0),
    ]:
        FolderHome(tmp_path).end_run(FolderHome(tmp_path).begin_run("crawl", (), given, 0.0), state, note, 1.0)
        assert settings_before(tmp_path).budget == Budget(max_pages=pages, quantum=7)
