"""The verdict on a link's target from a single exchange, and the next request."""

import pytest

from periplus.acquire.fetch import LOOK_CHARS, check_of, look_at
from periplus.model.audit import FragmentVerdict
from periplus.model.frontier import PRIORITY_CHECK, Lease, Task
from periplus.model.visit import (
    Cause,
    Cut,
    Failed,
    Fetched,
    Headers,
    Purpose,
    Reason,
    Redirected,
    Request,
    Skipped,
    Visit,
)
from periplus.model.web import HostKey, SiteKey, Url, UrlId
from periplus.settings import Settings

LEASE = Lease(1, HostKey("h:80"), SiteKey("h"), 1, 0.0, 0.5, 1.0, 0, True)
HTML = Headers((("content-type", "text/html; charset=utf-8"),))


def after(outcome, purpose=Purpose.HEAD, hops=0, about=""):
    request = Request(Url("http://h/x"), purpose, hops=hops, about=about)
    return check_of(LEASE, Task(1, PRIORITY_CHECK, 0, UrlId(0), request), Visit(request, 1.0, 0.1, outcome), Settings())


def onward(checked):
    return [
        (side_request.request.purpose, side_request.request.url, side_request.request.hops, side_request.host)
        for side_request in checked.side_requests
    ]


@pytest.mark.parametrize(
    "outcome",
    [
        Fetched(405, HTML, b""),
        Fetched(404, HTML, b""),
        Fetched(503, HTML, b""),
        Failed(Cause.RESET),
        Failed(Cause.TIMEOUT),
    ],
)
def test_ours_a_failed_head_is_repeated_as_get(outcome):
    checked = after(outcome)
    assert onward(checked) == [(Purpose.CHECK, "http://h/x", 0, "h:80")]
    assert checked.reason is not None


@pytest.mark.parametrize(
    "outcome", [Fetched(200, HTML, b""), Fetched(204, HTML, b""), Skipped(Reason.ROBOTS, "Disallow: /", 1)]
)
def test_a_conclusive_head_needs_no_get(outcome):
    assert onward(after(outcome)) == []


@pytest.mark.parametrize("purpose", [Purpose.HEAD, Purpose.CHECK])
def test_a_redirect_continues_at_the_other_host_with_the_wanted_fragments(purpose):
    checked = after(Redirected(301, HTML, Url("https://other/y")), purpose, about="a b")
    assert onward(checked) == [(purpose, "https://other/y", 1, "other:443")]
    assert checked.side_requests[0].request.about == "a b"


def test_redirects_stop_at_the_limit_and_at_a_loop():
    limit = Settings().limits.redirect_hops
    assert onward(after(Redirected(302, HTML, Url("http://h/y")), hops=limit)) == []
    assert onward(after(Redirected(302, HTML, Url("http://h/x")))) == []


@pytest.mark.parametrize(("status", "again"), [(429, True), (503, True), (500, False), (404, False)])
def test_only_a_get_with_status_429_or_503_is_repeated(status, again):
    checked = after(Fetched(status, HTML, b""), Purpose.CHECK)
    assert (checked.reason is None) == again
    assert onward(checked) == []


def test_a_look_has_title_heading_text_and_fragment_verdicts():
    body = b"<title>T</title><h1>H</h1><p id=a>words" + b" and" * LOOK_CHARS
    look = look_at(Fetched(200, HTML, body), ["a", "b", "top", ":~:text=words"])
    assert (look.title, look.h1, len(look.text)) == ("T", "H", LOOK_CHARS)
    found = FragmentVerdict.FOUND
    assert dict(look.fragments) == {
        "a": found,
        "b": FragmentVerdict.MISSING,
        "top": FragmentVerdict.TOP,
        ":~:text=words": FragmentVerdict.TOP,
    }


def test_fragments_of_a_partly_read_page_are_not_missing():
    part = look_at(Fetched(200, HTML, b"<p id=a>", Cut.SHORT), ["a", "b"])
    assert dict(part.fragments) == {"a": FragmentVerdict.FOUND, "b": FragmentVerdict.UNKNOWN}
    picture = look_at(Fetched(200, Headers((("content-type", "image/png"),)), b"", Cut.NOT_WANTED), ["a"])
    assert dict(picture.fragments) == {"a": FragmentVerdict.UNKNOWN}
