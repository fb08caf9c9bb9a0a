"""A hostile site: its titles, texts, addresses and headers are shown on every screen, and no script runs.

Each screen is opened twice: unchanged, and with our Content-Security-Policy disabled in the browser, to test escaping
alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hostile import HOST, TABLE, hostile_site, screens, surveyed, told
from served_interface import served
from voyage import crawled

from browser import Browser
from periplus.api.collection import Collection
from testweb import serve

# if text had become markup
STRAYS = (
    "iframe, base, math, main script, main style, main link, [onerror], [onload], [onfocus], [onmouseover], [ontoggle]"
)
FOUND = """(() => {
  const where = [...document.querySelectorAll('[href], [src], [action]')].map(e => e.getAttribute('href') || e.src || '');
  return [[...document.scripts].map(s => s.src).join(), document.body ? document.body.innerText.length : 1,
    [...document.querySelectorAll(%s)].map(e => e.outerHTML.slice(0, 200)), where.filter(w => /^\\s*(javascript|data|vbscript):/i.test(w))];
})()"""  # noqa: E501


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    with serve(hostile_site()) as server:
        _, end = crawled(folder / "x.periplus", server, HOST, delay_s=0.005)
    assert end.counts.by_reason["ok"] > len(TABLE["texts"])
    surveyed(folder / "x.periplus")
    told(folder / "told.periplus")
    return folder


@pytest.fixture(scope="module")
def address(collections: Path) -> Iterator[str]:
    with served(collections, "--no-workers") as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.started() as browser:
        yield browser


@pytest.mark.parametrize("policy", ["enforced", "disabled"])
def test_no_screen_runs_a_script_of_the_web(collections: Path, address: str, browser: Browser, policy: str) -> None:
    with Collection(collections / "x.periplus") as kept:
        home = kept.runs()[0].starts[0]
    browser.without_policy(policy == "disabled")
    browser.alarms.clear()
    own = f"{address}/static/ui.js"
    # with the policy a sample of each kind is enough
    for path in islice(screens(home), 0, None, 1 if policy == "disabled" else 8):
        browser.open(address + path)
        # a portal's own pages have links to their style
        strays = STRAYS.replace("main link, ", "") if "/site/" in path else STRAYS
        scripts, text, stray, bad_links = browser.value(FOUND % json.dumps(strays))  # type: ignore[misc]
        assert scripts in ("", own), path
        assert text, f"{path} is empty"
        assert stray == [] or path.partition("?")[0].endswith(".svg"), path
        assert bad_links == [], path
        assert browser.alarms == [], path
    browser.without_policy(False)


def test_the_alarm_detects_a_vulnerable_page(browser: Browser, tmp_path: Path) -> None:
    """Checks the test itself with a vulnerable page."""
    browser.without_policy(False)
    browser.alarms.clear()
    (tmp_path / "bad.html").write_text(
        "<title>x</title><img src=x onerror=alarm('heard')><script>alarm('too')</script>"
    )
    browser.open((tmp_path / "bad.html").as_uri())
    browser.until("document.readyState == 'complete'")
    assert {"a script ran: heard", "a script ran: too"} <= set(browser.alarms)
    browser.alarms.clear()


def test_hostile_text_is_present_as_text(collections: Path) -> None:
    """Without a browser: the title is text in the table, and a spreadsheet does not evaluate it."""
    from interface import client

    asking = client(collections)
    text = asking.get("/c/x/t/pages?per=500").text
    assert "&lt;script&gt;alarm(1)&lt;/script&gt;" in text
    assert "<script>alarm" not in text
    assert "<img" not in text
    assert "\u202e" not in text
    assert "49" not in [row[1] for row in asking.get("/c/x/t/pages?per=500&format=json").json()["rows"]]
    rows = asking.get("/c/x/t/pages.csv").text
    assert "'=cmd|" in rows
    assert not any(line.startswith("=") or ",=cmd" in line for line in rows.splitlines())
