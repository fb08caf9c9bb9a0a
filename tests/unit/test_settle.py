"""The completion of a task: reason, rule, retry."""

from dataclasses import replace

import pytest

from periplus.acquire.fetch import bug, completion_of
from periplus.document.understand import understand
from periplus.model.frontier import Completion, Lease, Task
from periplus.model.visit import (
    Cause,
    Cut,
    Failed,
    Fetched,
    Headers,
    Reason,
    Redirected,
    Request,
    Skipped,
    Unchanged,
    Visit,
)
from periplus.settings import Politeness
from periplus.urls.canonical import url_id

URL = "http://a.test/"
LEASE = Lease(1, "a.test:80", "a.test", 1, 0.0, 0.5, 1.0, 0, True)
MANNERS = Politeness(retries=2, retry_wait_s=5.0)
HTML = Headers((("content-type", "text/html"),))


def end(outcome, attempt=0, url=URL, **more):
    task = Task(1, 0, 0, url_id(url), Request(url, attempt=attempt))
    return completion_of(Completion(LEASE, task, Visit(task.request, 1.0, 0.1, outcome), None, **more), MANNERS)


@pytest.mark.parametrize(
    ("outcome", "reason", "rule"),
    [
        (Fetched(200, HTML, b"x"), Reason.OK, ""),
        (Fetched(200, HTML, b"x", Cut.BODY_LIMIT), Reason.TRUNCATED, "body-limit"),
        (Fetched(200, HTML, b"", Cut.NOT_WANTED), Reason.OTHER_MEDIA, "media-type-not-read"),
        (Fetched(404, HTML, b""), Reason.NOT_FOUND, ""),
        (Fetched(999, HTML, b""), Reason.REFUSED, ""),
        (Unchanged(HTML), Reason.OK, ""),
        (Failed(Cause.TLS, "self-signed certificate"), Reason.TLS, "tls: self-signed certificate"),
        (Failed(Cause.PRIVATE), Reason.PRIVATE, "private-address"),
        (Skipped(Reason.ROBOTS, "Disallow: /x", 3), Reason.ROBOTS, "robots.txt line 3: Disallow: /x"),
        (Skipped(Reason.TRAP, "/a/*"), Reason.TRAP, "/a/*"),
    ],
)
def test_each_outcome_has_its_reason_and_rule(outcome, reason, rule):
    done = end(outcome)
    assert (done.reason, done.rule) == (reason, rule)


def test_a_redirect_to_another_spelling_of_the_url_is_followed_within_the_task():
    first, second = "http://a.test/%7Eu", "http://a.test./~u"
    followed = end(Redirected(301, HTML, second), url=first, candidates=("the target",))
    assert (followed.reason, followed.task.request.url, followed.task.request.hops, followed.visit.request.url) == (
        None,
        second,
        1,
        first,
    )
    assert followed.candidates == ()
    assert end(Redirected(301, HTML, second), url=first).reason is Reason.BAD_ANSWER, "the hops are used up"
    assert end(Redirected(301, HTML, first), url=first).reason is Reason.BAD_ANSWER, "the same spelling"


def test_a_redirect_has_its_target_and_without_candidates_it_is_a_bad_answer():
    away = Redirected(301, HTML, "http://a.test/new")
    followed = end(away, candidates=(object(),))
    assert (followed.reason, followed.rule) == (Reason.REDIRECT, "http://a.test/new")
    assert (end(away).reason, end(away).rule) == (Reason.BAD_ANSWER, "too many redirects")


def test_a_temporary_failure_is_retried_with_doubling_waits():
    waits = [end(Fetched(500, HTML, b""), attempt) for attempt in range(3)]
    assert [(done.reason, done.retry_in_s) for done in waits] == [(None, 5.0), (None, 10.0), (Reason.SERVER_ERROR, 0.0)]


@pytest.mark.parametrize("outcome", [Fetched(429, HTML, b""), Fetched(503, HTML, b""), Failed(Cause.TIMEOUT)])
def test_a_page_of_a_waiting_host_has_no_wait_of_its_own(outcome):
    assert (end(outcome).reason, end(outcome).retry_in_s) == (None, 0.0)


def test_the_last_attempt_decides_the_reason():
    assert end(Fetched(429, HTML, b""), 2).reason is Reason.REFUSED
    assert end(Failed(Cause.NAME, "no such host"), 2).rule == "name-not-found: no such host"


def test_a_noindex_page_has_its_own_reason():
    document = understand(URL, Fetched(200, HTML, b"<meta name=robots content=noindex><p>x"))
    assert end(Fetched(200, HTML, b"x"), document=document).reason is Reason.NOINDEX
    assert end(Fetched(200, HTML, b"x", Cut.SHORT), document=document).reason is Reason.NOINDEX
    assert end(Fetched(404, HTML, b"x"), document=document).reason is Reason.NOT_FOUND
    assert end(Fetched(200, HTML, b"x"), document=replace(document, noindex=False)).reason is Reason.OK


WORD = Headers((("content-type", "application/msword"),))
SHELL = (
    b"<title>App</title><noscript>You need to enable JavaScript to run this app.</noscript><div "
    b"id=root></div><script src=app.js></script>"
)


@pytest.mark.parametrize(
    ("headers", "body", "reason", "rule"),
    [
        (WORD, b"garbage", Reason.UNREADABLE, "damaged: no zip archive"),
        (HTML, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Reason.UNREADABLE, "image/png, sent as text/html"),
        (HTML, SHELL, Reason.NEEDS_SCRIPT, "almost no text, and an element that a script fills"),
        (HTML, b"<p>All of it", Reason.OK, ""),
        (HTML, b"", Reason.OK, ""),
    ],
)
def test_an_unreadable_page_is_not_ok(headers, body, reason, rule):
    answer = Fetched(200, headers, body)
    done = end(answer, document=understand(URL, answer))
    assert (done.reason, done.rule) == (reason, rule)


def test_a_reached_limit_is_part_of_the_rule():
    document = replace(understand(URL, Fetched(200, HTML, b"<p>x")), bounds=("more than 20,000 distinct links",))
    assert (
        end(Fetched(200, HTML, b"x"), document=document).reason,
        end(Fetched(200, HTML, b"x"), document=document).rule,
    ) == (
        Reason.PARTIAL,
        "more than 20,000 distinct links",
    )
    cut = end(Fetched(200, HTML, b"x", Cut.BODY_LIMIT), document=document)
    assert (cut.reason, cut.rule) == (Reason.TRUNCATED, "body-limit; more than 20,000 distinct links")
    hidden = end(Fetched(200, HTML, b"x"), document=replace(document, noindex=True))
    assert (hidden.reason, hidden.rule) == (
        Reason.NOINDEX,
        "the page asks not to be indexed; more than 20,000 distinct links",
    )


def test_a_bug_is_recorded_as_a_bug():
    task = Task(1, 0, 0, 7, Request(URL))
    done = bug(LEASE, task, Visit(task.request, 1.0, 0.1, Fetched(200, HTML, b"x"), 5, "192.0.2.1"), "KeyError: 'x'")
    assert (done.reason, done.rule, done.visit.outcome) == (
        Reason.BUG,
        "KeyError: 'x'",
        Failed(Cause.BUG, "KeyError: 'x'"),
    )
    assert (done.visit.wire_bytes, done.visit.address) == (5, "192.0.2.1")
