"""A crawl without a fetched page leaves no collection, deletes nothing older, and prints what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from served_interface import free_port
from voyage import QUICK, Collection, crawled, settings_for

from periplus.api.crawling import CrawlOrder, crawl
from periplus.api.homes import is_unused
from periplus.api.positions import issues_of
from periplus.cli.main import main
from periplus.errors import StoreError
from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus.present.wording import job_remedy
from periplus.settings import settings_from
from periplus.store.sqlite import runs, schema
from periplus_studies import api as survey
from periplus_studies.model import Campaign
from periplus_studies.units import unit_list
from periplus_topics.api.topical_run import DEFAULTS, TopicalOrder, crawl_topic
from stored import NOW, page, stored
from testweb import Page, Server, Site, Web, faults, serve


@pytest.fixture(scope="module")
def web() -> Iterator[Server]:
    sites = Web([Site(f"{name}.test") for name in ("good", "missing", "fails", "moved")])
    for site in sites.sites.values():
        site.add(Page("/", "Home", ("A home page.",)))
    faults.status(sites.sites["missing.test"], "/", 404)
    faults.status(sites.sites["fails.test"], "/", 500)
    faults.redirect_away(sites.sites["moved.test"], "/", sites.sites["good.test"])
    with serve(sites) as server:
        yield server


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def crawl_of(folder: Path, start: str, **values: object):
    order = CrawlOrder(folder, (Url(start),), settings_from({**QUICK, **values}))
    return crawl(order, lambda progress: False)


@pytest.mark.parametrize("host", ["missing", "fails", "moved"])
def test_a_start_without_a_page_leaves_nothing(tmp_path: Path, web: Server, host: str) -> None:
    _, end = crawled(tmp_path / "c", web, f"{host}.test")
    assert (end.state, end.is_kept, names(tmp_path)) == ("failed", False, [])


def test_a_refused_address_and_a_closed_port_leave_nothing(tmp_path: Path) -> None:
    refused = crawl_of(tmp_path / "c", "http://127.0.0.1:9/", allow_private=False)
    assert refused.note == "no page was read; http://127.0.0.1:9/: private address, not requested"
    closed = crawl_of(tmp_path / "c", f"http://127.0.0.1:{free_port()}/", retries=0)
    assert (refused.state, closed.state, names(tmp_path)) == ("failed", "failed", [])


def test_a_bot_wall_is_a_cause_of_its_own_and_the_host_is_given_up(tmp_path: Path) -> None:
    web = Web([Site(name) for name in ("part.test", "all.test")])
    for site in web.sites.values():
        site.add(Page("/", "Home", ("A home page.",)))
    part = web.sites["part.test"]
    faults.bot_wall(part, "/wall")
    faults.status(part, "/own", 403)
    for number in range(9):
        faults.bot_wall(web.sites["all.test"], f"/{number}", 503)
    with serve(web) as server:
        kept, _ = crawled(tmp_path / "part", server, "part.test")
        walled, end = crawled(tmp_path / "all", server, "all.test")
        times = sum(entry.target.strip("/").isdigit() for entry in server.log.of("all.test"))
    reasons = {url.rpartition("/")[2]: row for url, row in kept.urls.items()}
    assert (reasons["wall"].reason, reasons["wall"].rule) == (Reason.BOT_WALL, "Cloudflare, status 403")
    assert reasons["own"].reason is Reason.REFUSED
    assert {row.reason for url, row in walled.urls.items() if url[-1].isdigit()} == {Reason.BOT_WALL}
    assert times == settings_from(QUICK).politeness.host_strikes, "each page at most once, then none"
    assert end.note == "9 URLs failed and 1 were read; most often: refused by a bot wall (9)"
    assert [issue.code for issue in issues_of(kept.folder, settings_from(QUICK)) if "wall" in issue.url] == ["bot-wall"]
    assert "ask the site's owner" in job_remedy("https://e.org/: refused by a bot wall (Cloudflare, status 403)")


def test_the_command_prints_the_failure_its_cause_and_a_remedy(here: Path) -> None:
    (here / "empty" / "sub").mkdir(parents=True)
    (here / "empty" / ".hidden").touch()
    for words, code, sentence in (
        (["crawl", "http://127.0.0.1:9/"], 4, "If the network is yours, start it again with --allow-private."),
        (["check", "http://127.0.0.1:9/"], 4, "If the network is yours, start it again with --allow-private."),
        (["crawl", "./empty"], 2, "./empty: there is no file in this folder to read"),
    ):
        ran = CliRunner().invoke(main, words)
        assert (ran.exit_code, names(here)) == (code, ["empty"]), ran.output
        assert sentence in ran.stderr and "Kept in" not in ran.stderr
        assert code == 2 or "no page was read; http://127.0.0.1:9/: private address, not requested" in ran.stderr


def test_existing_data_is_kept(tmp_path: Path, web: Server) -> None:
    own = tmp_path / "own"
    own.mkdir()
    crawl_of(own, "http://127.0.0.1:9/", allow_private=False)
    assert names(tmp_path) == ["own"], "a folder that was there"
    for name in ("periplus.toml", "report.html", runs.CRAWL_LOCK, "vectors"):
        (own / name).touch()
    crawl_of(own, "http://127.0.0.1:9/", allow_private=False)
    assert names(own) == sorted(["periplus.toml", "report.html", runs.CRAWL_LOCK, "vectors"])

    kept, end = crawled(tmp_path / "good", web, "good.test")
    assert end.is_kept
    failed = crawl_of(kept.folder, "http://127.0.0.1:9/", allow_private=False)
    assert (failed.is_kept, list(kept.titles.values())) == (True, ["Home"])
    assert kept.urls["http://127.0.0.1:9/"].reason is Reason.PRIVATE


def test_a_survey_without_pages_keeps_its_plan(tmp_path: Path) -> None:
    """`survey create` created the collection with the plan of a user."""
    folder = tmp_path / "s"
    survey.create(folder, Campaign(units=unit_list("http://127.0.0.1:9/"), pages=3))
    end = survey.run(folder, settings_from({**QUICK, "allow_private": False}), lambda watched: False)
    assert (end.state, end.is_kept) == ("failed", True)
    assert survey.campaign_of(folder).pages == 3
    assert not is_unused(folder, NOW)


def test_a_topical_crawl_without_pages_leaves_nothing(tmp_path: Path) -> None:
    settings = settings_from({**QUICK, "allow_private": False}, DEFAULTS)
    order = TopicalOrder(tmp_path / "t", (Url("http://127.0.0.1:9/"),), "ships", lambda text: 1.0, settings)
    end = crawl_topic(order, lambda progress: False).end
    assert (end.state, end.is_kept, names(tmp_path)) == ("failed", False, [])


def test_an_import_without_pages_leaves_nothing(here: Path) -> None:
    file, record = here / "a.warc", b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: https://e.org/\r\n"
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\ngone"
    record += b"WARC-Date: 2024-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:1>\r\nContent-Type: application/http\r\n"
    file.write_bytes(record + b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (len(answer), answer))
    ran = CliRunner().invoke(main, ["import", "warc", "a.warc", "--start", "https://e.org/"])
    assert ran.exit_code == 1 and "no page was read" in ran.stderr and "No collection was made" in ran.stderr, (
        ran.output
    )
    assert names(here) == ["a.warc"]


def test_an_error_before_the_first_page_leaves_nothing(tmp_path: Path, web: Server) -> None:
    def broken(*run: object) -> tuple[str, float]:
        raise StoreError("the disk is full")

    order = CrawlOrder(tmp_path / "c", (Url(web.url("good.test")),), settings_for(web))
    with pytest.raises(StoreError, match="the disk is full"):
        crawl(order, lambda progress: False, broken)
    assert names(tmp_path) == []


def test_a_collection_with_a_page_or_a_survey_is_not_deleted(tmp_path: Path) -> None:
    folder = stored(tmp_path / "c", {"https://e.org/": page("Home")}, ["https://e.org/"])
    assert not runs.discard(folder, None)
    assert list(Collection(folder).titles.values()) == ["Home"]
    planned = tmp_path / "s"
    survey.create(planned, Campaign(units=unit_list("https://e.org/")))
    assert not runs.discard(planned, None), "a survey that was written while the crawl ran"


def test_commands_without_a_collection_ignore_collections_without_pages(here: Path) -> None:
    """As left by a crawl killed before its first page."""
    for name in ("killed", "killed too"):
        stored(here / f"{name}.periplus", {"https://e.org/": 404}, ["https://e.org/"], state="running")
    (here / "settings.periplus").mkdir()
    assert "several collections here" in CliRunner().invoke(main, ["status"]).stderr, "there is no better one"
    stored(here / "good.periplus", {"https://e.org/": page("Home")}, ["https://e.org/"])
    ran = CliRunner().invoke(main, ["status"])
    assert ran.exit_code == 0 and ran.stdout.startswith("good.periplus: 1 URL")
    folder = here / "planned.periplus"
    survey.create(folder, Campaign(units=unit_list("https://e.org/")))
    assert "good.periplus, planned.periplus. Choose one" in CliRunner().invoke(main, ["status"]).stderr


def test_a_running_crawl_is_not_an_unused_collection(tmp_path: Path) -> None:
    folder = stored(tmp_path / "c", {}, ["https://e.org/"], state="running")
    assert is_unused(folder, NOW)
    with schema.writing(folder) as connection:
        connection.execute(
            "INSERT INTO worker (name, pid, joined, lease_until) VALUES ('w', ?, ?, ?)", (os.getpid(), NOW, NOW + 60)
        )
    assert not is_unused(folder, NOW)
