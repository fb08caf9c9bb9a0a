"""An editor in a real browser: labels pages with two keys, approves an entry, reads the portal; and hostile stories that run nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import pytest
from served_interface import served
from test_ui_hostile import BAD_LINKS, STRAYS, TABLE

import stored as small
from browser import Browser
from newsroom import edition, entry, story
from newsweb import NewsRecipe, news_web
from periplus.api import desk
from periplus.api import portal as portals
from periplus.api.collection import open_collection
from periplus.api.publishing import publish
from periplus.api.results import keep_judged, keep_stories
from periplus.api.topics import TopicOrder, add_label, judged_pages, known_labels, train_topic
from periplus.model.portal import Portal
from periplus.model.story import Stories
from periplus.model.topic import Example
from periplus.present.portal.files import portal_files
from stored import page, stored

WEB = news_web(NewsRecipe(seed=4, sites=9, stories=6, singles=4, days=20))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.started() as browser:
        yield browser


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A news web with a portal that waits for approval, and a topic of two stories."""
    monkeypatch.setattr(small, "NOW", WEB.now)
    collection = stored(tmp_path / "n.periplus", WEB.pages, WEB.starts)
    with open_collection(collection) as kept:
        first = [url for url, number in WEB.story_of.items() if number == 0][:3]
        train_topic(kept, TopicOrder("first", first))
    portals.create(collection, Portal("coast", "The coast", WEB.now, sites=4, approve=True))
    portals.build(collection, "coast", None, WEB.now)
    return tmp_path


def key(browser: Browser, sign: str) -> None:
    """As somebody presses it."""
    for kind in ("keyDown", "keyUp"):
        browser.ask("Input.dispatchKeyEvent", type=kind, key=sign, text=sign if kind == "keyDown" else "", code=f"Key{sign.upper()}")


def pressed(browser: Browser, sign: str) -> None:
    """A key that leads to another page."""
    browser.value("window.before = true")
    key(browser, sign)
    browser.until("window.before === undefined && document.readyState == 'complete'")


def test_pages_are_labelled_with_two_keys_and_an_entry_is_approved(folder: Path, browser: Browser) -> None:
    browser.alarms.clear()
    with served(folder, "--no-workers") as address:
        browser.open(f"{address}/c/n/topic/first/label")
        asked = [str(browser.value("document.querySelector('[name=page]').value"))]
        for sign in "yn":
            pressed(browser, sign)
            asked.append(str(browser.value("document.querySelector('[name=page]').value")))
        assert [(label.name, label.positive) for label in known_labels(folder / "n.periplus", "first")] == [(asked[0], True), (asked[1], False)]
        pressed(browser, "u")
        assert browser.value("document.querySelector('[name=page]').value") == asked[1]
        assert [label.name for label in known_labels(folder / "n.periplus", "first")] == asked[:1]
        _approves(browser, f"{address}/c/n/portal/coast", folder / "n.periplus")
    assert browser.alarms == []


def _approves(browser: Browser, address: str, collection: Path) -> None:
    browser.open(address)
    keys = str(browser.value("[...document.querySelectorAll('.entry')].map(e => e.id.slice(2)).join()")).split(",")
    key(browser, "a")  # of no entry
    for _ in range(3):
        key(browser, "j")
    key(browser, "k")
    assert browser.value("document.activeElement.id") == f"e-{keys[1]}"
    pressed(browser, "a")
    assert browser.value("document.activeElement.id") == f"e-{keys[2]}", "one goes on with the next"
    kinds = {entry.key: entry.kind for entry in desk.desk_of(collection, "coast").entries}
    assert [one for one in keys if kinds[one] == "published"] == [keys[1]]
    browser.value("document.querySelector('.filters [name=q]').focus()")
    key(browser, "h")  # a letter of a word
    assert browser.value("document.querySelector('.filters [name=q]').value") == "h"
    portals.build(collection, "coast", None, WEB.now)
    browser.open(f"{address}/site/index.html")
    assert browser.value(f"document.querySelectorAll('a[href=\"story/{keys[1]}.html\"]').length")
    assert browser.value("getComputedStyle(document.querySelector('h1')).textAlign") == "center", "its style sheet is taken"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection whose topic, labels, stories and portal say every hostile text."""
    where = tmp_path_factory.mktemp("hostile")
    texts, home = TABLE["texts"], "https://e.org/"
    pages = {f"{home}{number}": page(escape(text), head=f"<p>{escape(text)} lantern</p>") for number, text in enumerate(texts)}
    collection = stored(where / "x.periplus", {home: page("Home", *pages), **pages}, [home])
    with open_collection(collection) as kept:
        train_topic(kept, TopicOrder("t", [f"{home}1*"]))
        keep_judged(collection, "t", judged_pages(kept, "t", -1))
    add_label(collection, "t", Example(texts[1], True, "labelled", f"{home}2"))
    told = [story(f"s{number}", text, (f"a{text[:3]}.example", 2), (text, 1)) for number, text in enumerate(texts)]
    keep_stories(collection, Stories(tuple(told), 9, (), (), ()))
    made = Portal("p", texts[0], 1.0, texts[1])
    portals.create(collection, made)
    shown = edition(
        *(entry(one, f"aaaaaa{number:02}", 1.0, texts[number], texts[number - 1]) for number, one in enumerate(told)), portal=made, lacks=tuple(texts)
    )
    desk.keep(collection, shown)
    publish(collection / "portals" / "p", portal_files(shown))
    return where


def screens() -> Iterator[str]:
    yield from ("topics", "topic/t", "topic/t/label", "t/judged:t?per=500", "t/words:t", "stories", "stories?objective=dt", "t/stories?per=500")
    yield from ("t/story-pages?per=500", "portals", "portal/p", "portal/p?at=2", "t/entries:p?per=500", "t/sources:p?per=500", "portal/p/site/index.html")
    yield from ("portal/p/site/story/aaaaaa03.html", "portal/p/site/sources.html", "portal/p/site/about.html", "portal/p/site/story/aaaaaa01.svg")
    yield from (f"story?n={number}" for number in range(1, len(TABLE["texts"]) + 1, 9))
    for text in (TABLE["texts"][1], TABLE["texts"][6], TABLE["hrefs"][0]):
        word = quote(text, safe="")
        yield from (f"topics?name=a&words={word}", f"topics?name={word}", f"topic/{word}", f"topic/t?show=crawl&seeds={word}", f"t/judged:{word}")
        yield from (f"portals?name={word}&title={word}&lead={word}", f"portal/{word}", f"portal/p?q={word}", f"portal/p?show={word}", f"portal/p/site/{word}")
        yield from (f"stories?k={word}", f"story?n={word}", f"keywords?of={word}", f"keywords?query={word}")


@pytest.mark.parametrize("policy", ["kept", "left aside"])
def test_no_screen_runs_a_script_of_a_story(hostile: Path, browser: Browser, policy: str) -> None:
    browser.without_policy(policy == "left aside")
    browser.alarms.clear()
    with served(hostile, "--no-workers") as address:
        for path in islice(screens(), None if policy == "left aside" else 16):  # where the policy helps, one of each kind is enough
            browser.open(f"{address}/c/x/{path}")
            scripts = browser.value("[...document.scripts].map(s => s.src).join()")
            assert scripts in ("", f"{address}/static/ui.js"), path
            assert path.endswith(".svg") or browser.value("document.body.innerText.length"), path
            strays = STRAYS.replace("main link, ", "") if "/site/" in path else STRAYS
            assert path.endswith(".svg") or browser.value(f"document.querySelectorAll({json.dumps(strays)}).length") == 0, path
            assert browser.value(BAD_LINKS) == 0, path
            assert browser.alarms == [], path
    browser.without_policy(False)
