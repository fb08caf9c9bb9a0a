"""The second request that distinguishes a changed page from a page that differs in every response."""

from __future__ import annotations

import pytest

from periplus.acquire.fetch import AGAIN_S, second_look
from periplus.document.understand import understand
from periplus.model.frontier import Completion, Lease, Task
from periplus.model.visit import Fetched, Headers, Redirected, Request, Unchanged, Visit
from periplus.urls.canonical import url_id

URL = "http://a.test/"
LEASE = Lease(1, "a.test:80", "a.test", 1, 0.0, 0.5, 1.0, 0, True)
HTML = Headers((("content-type", "text/html"),))
TOKENS = ["7f3a9c51b2d84e60", "0b1c2d3e4f5a6b7c", "99aa88bb77cc66dd"]


def answer(body, attempt=0):
    task = Task(1, 0, 0, url_id(URL), Request(URL, attempt=attempt), recheck=True)
    if body.startswith("/"):
        return Completion(
            LEASE, task, Visit(task.request, 1.0, 0.1, Redirected(302, HTML, f"http://a.test{body}")), None
        )
    fetched = Fetched(200, HTML, f"<title>Page</title>{body}".encode())
    return Completion(LEASE, task, Visit(task.request, 1.0, 0.1, fetched), None, document=understand(URL, fetched))


def stored(body):
    """A page in the form of `CrawlStore.shown`."""
    read = answer(body)
    if (page := read.document) is None:
        return ["", read.visit.outcome.target]
    fields = [page.media_type, page.language, page.title, page.description, page.h1, page.canonical, page.robots]
    return [*fields, page.text, *sorted(set(page.links.targets))]


def judged(before, once, again):
    """The result: `as it is` after the first response, `unchanged` or `changed` after the second."""
    first = {}
    read = second_look(answer(once), stored(before), first)
    if not read.retry_in_s:
        assert not first
        return "as it is"
    assert (read.retry_in_s, read.document, type(read.visit.outcome)) == (AGAIN_S, None, Unchanged)
    read = second_look(answer(again, 1), stored(before), first)
    assert not first
    assert not read.retry_in_s
    return "unchanged" if isinstance(read.visit.outcome, Unchanged) else "changed"


@pytest.mark.parametrize(
    "volatile",
    [
        "<p>It is {:02}:{:02}:07.".format,
        "<p>Made in 0.{1}{0} s.".format,
        "<p>Visitor 1,{1}{0}<p>Costs 14.99".format,
        lambda number, _: f"<a href='/x?sid={TOKENS[number % 3]}'>x</a>",
        lambda number, _: f"<link rel=canonical href='/?PHPSESSID={TOKENS[number % 3]}'>x",
        lambda number, _: f"/enter?sid={TOKENS[number % 3]}",
    ],
)
def test_text_that_differs_in_every_response_is_no_change(volatile):
    assert judged(*[volatile(number, 40 + number) for number in (3, 4, 5)]) == "unchanged"


@pytest.mark.parametrize(
    ("before", "once", "again"),
    [
        ("<p>Costs 14.99", "<p>Costs 15.99", "<p>Costs 15.99"),
        ("<p>At 10:01. Costs 14.99", "<p>At 10:02. Costs 15.99", "<p>At 10:03. Costs 15.99"),
        ("<a href='/p/57'>last</a>", "<a href='/p/58'>last</a>", "<a href='/p/58'>last</a>"),
        ("<p>At 10:01", "<p>At 10:02", "<p>At 10:03. Closed"),
        ("/p/57", "/p/58", "/p/58"),
    ],
)
def test_new_text_in_both_responses_is_a_change(before, once, again):
    assert judged(before, once, again) == "changed"


@pytest.mark.parametrize(
    ("before", "once"),
    [
        ("<p>10 boats", "<p>10 boats"),
        ("<p>10 boats", "<b>10 boats</b>"),
        ("<p>10 boats", "<p>10 ships"),
        ("<p>10 boats", "<p>10 boats<a href='/new'></a>"),
        ("<p>10 boats", "<meta name=robots content=noindex><p>11 boats"),
        ("<p>10 boats", "/10"),
        ("/a", "/b"),
    ],
)
def test_a_page_with_entirely_different_words_needs_no_second_look(before, once):
    assert judged(before, once, once) == "as it is"


def test_a_page_without_a_first_response_is_requested_a_limited_number_of_times():
    """This happens if its host moves to another worker each time."""
    attempts = [bool(second_look(answer("<p>2", attempt), stored("<p>1"), {}).retry_in_s) for attempt in range(6)]
    assert attempts == [True] * 4 + [False] * 2


def test_a_word_of_a_million_letters_is_skipped_in_linear_time():
    assert judged(f"<p>{'a' * 1_000_000} 1", f"<p>{'a' * 1_000_000} 2", f"<p>{'a' * 1_000_000} 3") == "unchanged"
