"""An editor in a real browser: labels pages with two keys, approves an entry, reads the portal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from served_interface import served

from browser import Browser
from newsweb import NewsRecipe, news_web
from periplus.api.collection import Collection
from periplus_topics.api import portal
from periplus_topics.api.topics import TopicOrder, stored_labels, train_topic
from periplus_topics.model import Portal
from stored import stored

WEB = news_web(NewsRecipe(seed=4, sites=9, stories=6, singles=4, days=20))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser.started() as browser:
        yield browser


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A news web with a portal that waits for approval, and a topic of two stories."""
    collection = stored(tmp_path / "n.periplus", WEB.pages, WEB.starts, now=WEB.now)
    with Collection(collection) as kept:
        first = [url for url, number in WEB.story_of.items() if number == 0][:3]
        train_topic(kept, TopicOrder("first", first))
    portal.create(collection, Portal("coast", "The coast", WEB.now, sites=4, approve=True))
    portal.build(collection, "coast", None, WEB.now)
    return tmp_path


def key(browser: Browser, sign: str) -> None:
    """Presses a key."""
    for kind in ("keyDown", "keyUp"):
        browser.ask(
            "Input.dispatchKeyEvent",
            type=kind,
            key=sign,
            text=sign if kind == "keyDown" else "",
            code=f"Key{sign.upper()}",
        )


def pressed(browser: Browser, sign: str) -> None:
    """Presses a key that opens another page."""
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
        assert [(label.name, label.positive) for label in stored_labels(folder / "n.periplus", "first")] == [
            (asked[0], True),
            (asked[1], False),
        ]
        pressed(browser, "u")
        assert browser.value("document.querySelector('[name=page]').value") == asked[1]
        assert [label.name for label in stored_labels(folder / "n.periplus", "first")] == asked[:1]
        _approves(browser, f"{address}/c/n/portal/coast", folder / "n.periplus")
    assert browser.alarms == []


def _approves(browser: Browser, address: str, collection: Path) -> None:
    browser.open(address)
    keys = str(browser.value("[...document.querySelectorAll('.entry')].map(e => e.id.slice(2)).join()")).split(",")
    key(browser, "a")  # without an entry
    for _ in range(3):
        key(browser, "j")
    key(browser, "k")
    assert browser.value("document.activeElement.id") == f"e-{keys[1]}"
    pressed(browser, "a")
    assert browser.value("document.activeElement.id") == f"e-{keys[2]}", "one goes on with the next"
    kinds = {entry.key: entry.kind for entry in portal.review_of(collection, "coast").entries}
    assert [one for one in keys if kinds[one] == "published"] == [keys[1]]
    browser.value("document.querySelector('.filters [name=q]').focus()")
    key(browser, "h")  # typed into a text field
    assert browser.value("document.querySelector('.filters [name=q]').value") == "h"
    portal.build(collection, "coast", None, WEB.now)
    browser.open(f"{address}/site/index.html")
    assert browser.value(f"document.querySelectorAll('a[href=\"story/{keys[1]}.html\"]').length")
    assert browser.value("getComputedStyle(document.querySelector('h1')).textAlign") == "center", (
        "its style sheet is taken"
    )
