"""Checks every screen with axe-core, at three widths, one of them dark; and tables with the keyboard.

npm fetches axe-core into the cache folder of the user (or PERIPLUS_AXE names a file); it is never stored here. Without
it these tests are skipped with a message.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_interface import served

from browser import Browser
from newsweb import NewsRecipe, news_web
from periplus.api.collection import Collection
from periplus.ui import pages, tables
from periplus.ui.routes import SCREENS
from periplus_studies import api as survey
from periplus_studies import screens as surveys
from periplus_studies.model import Campaign
from periplus_studies.units import unit_of
from periplus_topics.api import portal as portals
from periplus_topics.api.topics import TopicOrder, train_topic
from periplus_topics.model import Portal
from stored import page, stored

AXE = "axe-core@4"
LOOKS = (
    (1280, "light"),
    (768, "dark"),
    (390, "light"),
)  # the theme changes colours only, and each colour is in any width
HOME = "https://e.org/"
SITE = {
    HOME: page("Home of lanterns", "/a/", "/b", "/gone", "https://other.org/x", "mailto:x@e.org", "javascript:no()"),
    "https://e.org/a/": page("Alpha", "/b/c", "/a/1", "/a/2", "/gone"),
    **{f"https://e.org/a/{n}": page("A page of the same title", "/", "/b/c", "/gone") for n in range(1, 9)},
    "https://e.org/b": page("Beta", "/", head="<link rel=canonical href=/a>"),
    "https://e.org/b/c": page("Gamma", "/"),
    "https://e.org/gone": 404,
}
WORDS = {
    "sea": "ship harbour sailor captain voyage deck anchor sail storm crew",
    "food": "recipe oven butter flour salt sugar onion garlic sauce dough",
}
# values of path parameters by collection; all tables and views are tested
OTHERS = {"topic": ("c", "sea"), "portal": ("n", "coast")}
COLLECTIONS = {"survey": "s", "topic": "c", "portal": "n", "stor": "n", "keywords": "n"}
# a field of each group of settings is filled in, so that all groups are open
EVERY_GROUP = (
    "settings_preset=gentle&set_scope=any&set_quantum=9&set_retries=3&set_index=no&set_contact=x&set_body_bytes=2000"
    "&set_ignore=x"
)
QUERIES = {
    "/": (
        "",
        "?url=example.org&preset=check&every=week",
        "?url=no%20site://",
    ),
    "/new": ("", f"?{EVERY_GROUP}"),
    "/c/e/map": ("", "?tree=folders"),
    "/c/e/settings": ("", f"?{EVERY_GROUP}"),
    "/search": ("", "?q=alpha"),
    "/c/e/search": ("", "?q=alpha"),
    "/c/e/page": tuple(f"?url={urllib.parse.quote(HOME)}&view={view}" for view in pages.VIEWS),
    "/c/e/graph": ("", "?steps=2&by=directory"),
    "/c/e/delete": ("", "?site=e.org"),
    "/c/n/story": ("?n=1",),
    "/c/n/portal/coast/entry": ("?key=WITH-WORDS",),
    "/c/n/keywords": ("", "?query=a"),
    "/c/e/t/pages": ("", "?q=a&status=200&sort=-size"),
    "/c/e/fault": ("?code=suspect-link&cause=https://e.org/gone",),
}
GIF = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
ENTRY: list[str] = []  # the key of the entry with text
MOST_TABS = 12  # from the top of a screen to the first row of its table
# its default rules, and the optional rule on target sizes (24 px or spacing: WCAG 2.2, 2.5.8)
RULES = "{resultTypes: ['violations'], rules: {'target-size': {enabled: true}}}"


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The axe-core script."""
    if named := os.environ.get("PERIPLUS_AXE"):
        return Path(named).read_text("utf-8")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "periplus-axe"
    script = cache / "node_modules" / "axe-core" / "axe.min.js"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:  # all processes of a run need it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        _fetch_axe(cache, script)
    return script.read_text("utf-8")


def _fetch_axe(cache: Path, script: Path) -> None:
    if not script.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("no npm is here to fetch axe-core: install it, or name axe.min.js in PERIPLUS_AXE")
        command = [npm, "install", "--prefix", str(cache), "--no-audit", "--no-fund", "--ignore-scripts", AXE]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode or not script.exists():
            pytest.skip(f"npm brings no {AXE}: {done.stderr[-300:]}")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An interface with a collection of each kind."""
    where = tmp_path_factory.mktemp("axe")
    for _ in range(2):
        stored(where / "e.periplus", SITE, [HOME])
    web = {f"https://{name}.org/": page(name, "https://a.org/", "https://hub.net/") for name in "abc"}
    stored(where / "s.periplus", {**web, "https://hub.net/": page("Hub", "https://a.org/")}, list(web))
    survey.create(where / "s.periplus", Campaign("Three sites", tuple(map(unit_of, web)), pages=50))
    _topic(where / "c.periplus")
    _portal(where / "n.periplus")
    with served(where, "--no-workers") as address:
        ENTRY.append(_entry(where / "n.periplus"))
        yield address


def _topic(folder: Path) -> None:
    rng = random.Random(7)
    texts = {
        f"https://e.org/{kind}/{n}": f"<!DOCTYPE html><title>{kind} {n}</title><h1>{kind} {n}</h1><p>"
        + " ".join(rng.choices(words.split(), k=60))
        for kind, words in WORDS.items()
        for n in range(16)
    }
    home = "<!DOCTYPE html><title>Home</title>" + "".join(f'<a href="{url}">{url[-2:]}</a>' for url in texts)
    stored(folder, {HOME: home, **texts}, [HOME])
    with Collection(folder) as collection:
        train_topic(collection, TopicOrder("sea", *([f"{HOME}{kind}/{n}" for n in range(4)] for kind in WORDS)))


def _portal(folder: Path) -> None:
    web = news_web(NewsRecipe(seed=4, sites=9, stories=6, singles=4, days=20))
    stored(folder, web.pages, web.starts, now=web.now)
    portals.create(folder, Portal("coast", "The coast", web.now, sites=4, approve=True))
    portals.build(folder, "coast", None, web.now)
    portals.edit(folder, portals.find_portal(folder), _entry(folder), portals.Edit("Back.", GIF, "A buoy"), web.now)


def _entry(folder: Path) -> str:
    return portals.review_of(folder, "coast").entries[0].key


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.started() as browser:
        yield browser


def addresses() -> list[str]:
    """Addresses of all screens; tables and views individually."""
    made = ["/nowhere", "/c/none/live"]
    for screen in SCREENS:
        inside = screen.path.removeprefix("/c/{name}/")
        kind = next((name for start, name in COLLECTIONS.items() if inside.startswith(start)), "e")
        path = screen.path.replace("{name}", kind).replace("{topic}", "sea").replace("{portal}", "coast")
        many = {"{table}": tables.SCREENS, "{view}": surveys.VIEWS}
        paths = [path]
        for part, values in many.items():
            paths = [one.replace(part, value) for one in paths for value in (values if part in one else ("",))]
        made += [one + query for one in paths for query in QUERIES.get(one, ("",))]
    return made


@pytest.mark.browser
@pytest.mark.parametrize("path", addresses())
def test_no_screen_violates_a_rule_of_axe(path: str, axe: str, address: str, browser: Browser) -> None:
    browser.look(1280, 900)
    browser.open(address + path.replace("WITH-WORDS", ENTRY[-1]))
    browser.value(axe)
    wrong = []
    for width, theme in LOOKS:
        browser.look(width, 900, theme)
        rules = browser.value(
            f"axe.run(document, {RULES}).then(r => JSON.stringify(r.violations.map("
            "v => [v.id, v.nodes.length, v.nodes[0].target.join(' '), v.nodes[0].failureSummary])))"
        )
        wrong += [(width, theme, *rule) for rule in json.loads(str(rules))]
        assert browser.value("document.documentElement.scrollWidth <= innerWidth + 1"), (path, width)
    assert not wrong, path


@pytest.mark.parametrize("path", ["/c/e/t/pages", "/c/e/t/faults", "/c/e/t/issues", "/c/e/t/links"])
def test_the_first_row_of_a_table_is_near_and_arrow_keys_work(path: str, address: str, browser: Browser) -> None:
    browser.look(1280, 900)
    browser.open(address + path)
    tabs = 0
    while browser.value("document.activeElement.getAttribute('href')") != "#rows":
        assert (tabs := tabs + 1) < MOST_TABS
        press(browser, "Tab")
    press(browser, "Enter")
    press(browser, "Tab")
    row = "[...document.querySelectorAll('#rows tr')].indexOf(document.activeElement.closest('tr'))"
    assert browser.value(row) == 0
    press(browser, "ArrowDown")
    assert browser.value(row) == 1
    press(browser, "ArrowUp")
    assert browser.value(row) == 0


def press(browser: Browser, key: str) -> None:
    text = {"text": "\r"} if key == "Enter" else {}
    codes = {"Tab": 9, "Enter": 13, "ArrowDown": 40, "ArrowUp": 38}
    for kind in ("keyDown", "keyUp"):
        browser.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **text)
