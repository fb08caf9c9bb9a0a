"""First use of the interface in a real browser: adds a site, watches, stops, continues, reads, searches, downloads,
schedules.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_interface import served
from voyage import QUICK, Collection, until

from browser import Browser
from periplus.store.sqlite import schema
from periplus.store.sqlite.job_file import folder_queue
from testweb import GraphRecipe, Server, faults, graph_site, serve

HOST = "a.test"
PAGES = 60


@pytest.fixture
def web() -> Iterator[Server]:
    site = graph_site(GraphRecipe(seed=3, pages=PAGES, links_per_page=6, shape="random", host=HOST))
    faults.status(site, "/lost", 404)
    with serve(site) as server:
        yield server


@pytest.fixture
def browser() -> Iterator[Browser]:
    with Browser.started() as browser:
        yield browser


def prepared(folder: Path, server: Server, **values: object) -> None:
    """Settings of the collection by the owner of these hosts; the interface itself cannot relax these rules."""
    given = {**QUICK, "resolve": list(server.resolve), "sitemaps": False, "index": False, **values}
    text = "\n".join(f"{name} = {json.dumps(value)}" for name, value in given.items())
    (folder / "demo.periplus").mkdir()
    (folder / "demo.periplus" / "periplus.toml").write_text(f"[settings]\n{text}\n")


def press(browser: Browser, button: str) -> None:
    """Presses the first button with this text, once the page has it."""
    _click(browser, "button", button)


def follow(browser: Browser, words: str) -> None:
    """Follows the first link with this text, once the page has it."""
    _click(browser, "a", words)


def _click(browser: Browser, tag: str, words: str) -> None:
    element = f"[...document.querySelectorAll('{tag}')].find(e => e.textContent.trim() == {json.dumps(words)})"
    browser.until(f"!!{element}")
    browser.send(f"{element}.click()")


def test_a_new_user_maps_a_site_and_finds_dead_links(tmp_path: Path, web: Server, browser: Browser) -> None:
    prepared(tmp_path, web, delay_s=0.05)
    with served(tmp_path) as address:
        browser.open(address)
        press(browser, "All settings…")  # among them the collection's name
        browser.until("location.pathname == '/new' && !!document.querySelector('[name=name]')")
        browser.value(
            f"document.getElementById('url').value = '{web.url(HOST)}'; "
            "document.querySelector('[name=name]').value = 'demo'"
        )
        press(browser, "Start")
        assert browser.value("location.pathname") == "/c/demo/live"
        browser.value("window.sameDocument = true")
        # fetched, counted up without a reload
        browser.until("+(document.getElementById('live-n2') || {textContent: '0'}).textContent > 5")
        assert browser.value("window.sameDocument") is True
        _pauses(browser, web)
        press(browser, "Stop")
        browser.until("/stopped/.test(document.getElementById('live-state').textContent)")
        fetched = int(str(browser.value("document.getElementById('live-n2').textContent")))
        assert fetched < PAGES
        follow(browser, "Pages")  # results can be read and downloaded before the end
        assert browser.value("document.querySelectorAll('table.data tbody tr').length") > 5
        browser.open(f"{address}/c/demo/live")
        press(browser, "Continue")
        browser.until("/done/.test(document.getElementById('live-state').textContent)")
        assert len(Collection(tmp_path / "demo.periplus").titles) == PAGES
        _reads(browser, web, Collection(tmp_path / "demo.periplus").titles[web.url(HOST)])
        _schedules(browser, tmp_path)
        _deletes(browser, tmp_path)
        assert browser.alarms == []


def test_a_refused_site_is_crawled_after_consent_on_its_screen(tmp_path: Path, web: Server, browser: Browser) -> None:
    prepared(tmp_path, web, delay_s=0.02, allow_private=False, max_pages=5)
    with served(tmp_path) as address:
        browser.open(address)
        press(browser, "All settings…")  # among them the collection's name
        browser.until("location.pathname == '/new' && !!document.querySelector('[name=name]')")
        browser.value(
            f"document.getElementById('url').value = '{web.url(HOST)}'; "
            "document.querySelector('[name=name]').value = 'demo'"
        )
        press(browser, "Start")
        browser.until("!!document.getElementById('live-failure')")
        assert [path.name for path in (tmp_path / "demo.periplus").iterdir()] == ["periplus.toml"]
        browser.value("document.querySelector('#live-failure input').click()")
        press(browser, "Start it again")
        browser.until("/max-pages 5/.test(document.getElementById('live-state').textContent)")
        assert len(Collection(tmp_path / "demo.periplus").titles) == 5
        assert browser.alarms == []


def test_a_screen_watches_again_after_an_address_that_the_server_refused(tmp_path: Path, browser: Browser) -> None:
    schema.create(tmp_path / "here" / "demo.periplus")
    (tmp_path / "nothing").mkdir()
    state = "document.getElementById('live-state').textContent"
    with served(tmp_path / "here") as address:
        browser.open(f"{address}/c/demo/live")
        browser.until(f"!!{state}")
        before = browser.value(state)
    port = int(address.rpartition(":")[2])
    with served(tmp_path / "nothing", port=port):
        browser.until(f"/trying again/.test({state})")
    with served(tmp_path / "here", port=port):
        browser.until(f"{state} === {json.dumps(before)}")


def _pauses(browser: Browser, web: Server) -> None:
    """No requests during the pause, also after a reload; then it continues. The button follows the crawl."""
    press(browser, "Pause")
    browser.until("/paused/.test(document.getElementById('live-state').textContent)")
    # open requests are stored
    browser.until("!/being asked/.test(document.getElementById('live-hosts').textContent)")
    asked = len(web.log.entries)
    browser.open(str(browser.value("location.href")))
    assert (
        browser.value("[...document.querySelectorAll('#live-steer button')].map(b => b.textContent).join()")
        == "Resume,Stop"
    )
    assert len(web.log.entries) == asked
    press(browser, "Resume")
    browser.until("/running/.test(document.getElementById('live-state').textContent)")
    browser.until(f"+document.getElementById('live-n2').textContent > {asked}")


def _reads(browser: Browser, web: Server, title: str) -> None:
    """Map, broken links with the linking pages, search."""
    follow(browser, "Map")
    assert browser.value("document.querySelectorAll('ul.map li').length") >= PAGES
    follow(browser, "Faults")
    follow(browser, "Broken links")
    assert browser.value("document.querySelector('table.data tbody td a').textContent") == web.url(HOST, "/lost")
    browser.send("document.querySelector('table.data tbody td a').click()")
    assert "404" in str(browser.value("document.querySelector('dl.facts').textContent"))
    assert browser.value("document.querySelector('[aria-labelledby=in] tbody a').textContent") == web.url(HOST)
    follow(browser, "Pages")
    follow(browser, "Search")
    browser.value(f"document.querySelector('[name=q]').value = {json.dumps(title)}")
    browser.send("document.querySelector('form.searchbox button').click()")
    browser.until(f"document.querySelector('.hit h3')?.textContent === {json.dumps(title)}")


def _deletes(browser: Browser, folder: Path) -> None:
    """Deletes a selected page, then the whole collection, each after a list of what will be deleted."""
    browser.open(f"{browser.value('location.origin')}/c/demo/t/pages?status=200")
    browser.value("document.querySelector('[name=page]').click()")
    press(browser, "Delete the selected pages…")
    assert "Nothing is deleted yet" in str(browser.value("document.getElementById('main').textContent"))
    assert len(Collection(folder / "demo.periplus").titles) == PAGES
    press(browser, "Delete 1 address")
    assert len(Collection(folder / "demo.periplus").titles) == PAGES - 1
    follow(browser, "Overview")
    follow(browser, "Settings")
    follow(browser, "Delete")
    browser.value("document.querySelector('[name=typed]').value = 'demo'")
    press(browser, "Delete the collection")
    assert browser.value("location.pathname") == "/"
    assert not (folder / "demo.periplus").exists()


def _schedules(browser: Browser, folder: Path) -> None:
    browser.open(f"{browser.value('location.origin')}/jobs")
    press(browser, "Schedule")
    queue = folder_queue(folder)
    assert [schedule.order.command for schedule in queue.schedules()] == [("refresh", "-c", "demo.periplus")]
    queue.close()


def test_every_screen_fits_a_phone_and_works_by_keyboard(tmp_path: Path, web: Server, browser: Browser) -> None:
    from voyage import crawled

    crawled(tmp_path / "demo.periplus", web, HOST)
    wide = (
        "[...document.querySelectorAll('body *')].filter(e => e.checkVisibility()"
        " && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, .of, .unseen, .skip'))"
    )
    with served(tmp_path, "--no-workers") as address:
        home = urllib.parse.quote(web.url(HOST), safe="")
        browser.look(360, 900)
        for path in (
            "/",
            "/jobs",
            "/c/demo/live",
            "/c/demo/map",
            "/c/demo/graph",
            "/c/demo/t/pages",
            "/c/demo/t/faults",
            f"/c/demo/page?url={home}",
            "/c/demo/search?q=a",
            "/c/demo/delete",
            "/c/demo/topics",
            "/c/demo/portals",
            "/notices",
            "/surveys",
        ):
            browser.open(address + path)
            assert browser.value("document.documentElement.scrollWidth <= innerWidth"), path
            assert browser.value(f"{wide}.map(e => e.outerHTML.slice(0, 80)).join()") == "", path
        browser.open(address + "/")
        browser.value("document.activeElement.blur()")
        for kind in ("rawKeyDown", "keyUp"):
            browser.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        assert browser.value("document.activeElement.className") == "skip"
        assert browser.value("document.activeElement.getBoundingClientRect().left >= 0"), "what is focused is seen"


def test_a_worker_ends_with_its_server(tmp_path: Path) -> None:
    def workers() -> list[str]:
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if "-m periplus worker" in line and str(tmp_path) in line:
                found.append(line)
        return found

    if not Path("/proc").is_dir():
        pytest.skip("no /proc here")
    with served(tmp_path):
        until(lambda: len(workers()) == 1, "no worker was started")
    until(lambda: not workers(), "the worker stays")
