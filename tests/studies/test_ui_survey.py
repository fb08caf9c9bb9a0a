"""A survey of three sites in a real browser: creates, watches, stops, continues, decides, reads results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaigns import DRY, POOR, RICH, web
from served_interface import served
from test_ui_journey import follow, press
from voyage import QUICK

from browser import Browser
from periplus_studies.api import campaign_of, marks_in
from periplus_studies.model import SiteStatus
from testweb import Server, serve

PAGES = 90


@pytest.fixture
def sites() -> Iterator[Server]:
    with serve(web()) as server:
        yield server


@pytest.fixture
def browser() -> Iterator[Browser]:
    with Browser.started() as browser:
        yield browser


def prepared(folder: Path, server: Server) -> None:
    """Settings of the collection by the owner of these hosts; the interface itself cannot relax these rules."""
    given = {**QUICK, "resolve": list(server.resolve), "delay_s": 0.4}
    text = "\n".join(f"{name} = {json.dumps(value)}" for name, value in given.items())
    (folder / "shore.periplus").mkdir()
    (folder / "shore.periplus" / "periplus.toml").write_text(f"[settings]\n{text}\n")


def count(words: str) -> str:
    """The figure with this label."""
    return (
        "[...document.querySelectorAll('#live-figures div')].find(d => "
        f"d.firstChild.textContent.startsWith({json.dumps(words)})).lastChild.textContent"
    )


def test_a_survey_is_created_watched_stopped_and_decided_on(tmp_path: Path, sites: Server, browser: Browser) -> None:
    prepared(tmp_path, sites)
    starts = "\n".join(sites.url(host) for host in (POOR, RICH, DRY))
    with served(tmp_path) as address:
        browser.open(f"{address}/surveys")
        for field, text in (("sites", starts), ("name", "shore"), ("title", "The shore"), ("pages", str(PAGES))):
            browser.value(f"document.querySelector('[name={field}]').value = {json.dumps(text)}")
        press(browser, "Create the survey and run it")
        assert browser.value("location.pathname") == "/c/shore/survey"
        browser.value("window.sameDocument = true")
        browser.until(f"+{count('pages')} > 3")  # without a reload
        browser.until(
            "document.querySelector('#live-yield img') && document.querySelector('#live-yield img').naturalWidth > 0"
        )
        assert browser.value("window.sameDocument") is True
        press(browser, "Stop")
        browser.until("/stopped/.test(document.getElementById('live-state').textContent)")
        fetched = int(str(browser.value(count("pages"))))
        assert 3 < fetched < PAGES
        browser.value(f"document.querySelector('[name=pages]').value = '{fetched + 5}'")
        press(browser, "Run")
        browser.until(
            f"+{count('pages')} == {fetched + 5} && /stopped/.test(document.getElementById('live-state').textContent)"
        )
        _decides(browser, tmp_path / "shore.periplus")
        _reads(browser)
        assert browser.alarms == []


def _decides(browser: Browser, folder: Path) -> None:
    """Adds the site that all link to, and removes another."""
    follow(browser, "Companions")
    assert browser.value("document.querySelector('table.data tbody tr').innerText").split()[:3] == [
        "all.example",
        "strong",
        "3",
    ]
    browser.value(
        "document.querySelector('[name=\"site:all.example\"]').click(); "
        "document.querySelector('[name=status]').value = 'in'"
    )
    browser.value("document.querySelector('[name=tags]').value = 'hub'")
    press(browser, "Decide")
    assert browser.value("location.pathname") == "/c/shore/survey/companions"
    assert "all.example" in [unit.name for unit in campaign_of(folder).units]
    follow(browser, "Sites")
    browser.value(
        "[...document.querySelectorAll('input[type=checkbox]')].find(b => b.name.startsWith('site:dry')).click()"
    )
    browser.value("document.querySelector('[name=status]').value = 'out'")
    press(browser, "Decide")
    assert not any("dry" in unit.name for unit in campaign_of(folder).units)
    assert {mark.status for mark in marks_in(folder).values()} == {SiteStatus.IN, SiteStatus.OUT}


def _reads(browser: Browser) -> None:
    """Each view has its table or drawing."""
    for words in ("Indicators", "Matrix", "Network", "Co-links", "Domains", "Harvest", "Links", "Method"):
        follow(browser, words)
        assert browser.value("document.querySelector('[role=status]').textContent.length > 5"), words
        assert browser.value("[...document.images].every(i => i.complete && i.naturalWidth > 0)"), words
    browser.look(360, 800)
    for view in ("", "/standing", "/companions", "/matrix", "/network", "/harvest", "/method"):
        browser.open(f"{browser.value('location.origin')}/c/shore/survey{view}")
        assert browser.value("document.documentElement.scrollWidth <= innerWidth"), view
