"""Outcome of each kind of response, and reason of each outcome."""

import gzip

import pytest

from periplus.acquire.fetch import reason_of, visit_of
from periplus.document.headers import bot_wall
from periplus.model.ports import Response
from periplus.model.visit import (
    STATE_OF,
    Cause,
    Cut,
    Failed,
    Fetched,
    Headers,
    Reason,
    Redirected,
    Request,
    Skipped,
    State,
    Unchanged,
)
from periplus.settings import FetchLimits

BASE = "http://a.test/dir/page?q=1"


def visit(status=200, body=b"", cut=Cut.NONE, cause=None, request=None, **fields):
    """The visit of a response. fields: header fields, with `_` for `-`."""
    headers = Headers(tuple((name.replace("_", "-"), value) for name, value in fields.items()))
    request = request or Request(BASE)
    response = Response(request, 5.0, 0.25, status, headers, body, cut, cause, "words", "192.0.2.1", first_byte_s=0.125)
    return visit_of(response, FetchLimits())


def outcome(*args, **more):
    return visit(*args, **more).outcome


def test_a_visit_keeps_what_was_observed():
    body = gzip.compress(b"x" * 1000)
    seen = visit(200, body, content_encoding="gzip")
    assert seen.outcome.sent == body
    assert (seen.started, seen.took_s, seen.first_byte_s, seen.address, seen.wire_bytes) == (
        5.0,
        0.25,
        0.125,
        "192.0.2.1",
        len(body),
    )
    assert seen.outcome.body == b"x" * 1000


# redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_has_its_own_outcome(status):
    assert outcome(status, location="/new") == Redirected(status, Headers((("location", "/new"),)), "http://a.test/new")


@pytest.mark.parametrize(
    ("location", "target", "fragment"),
    [
        ("other", "http://a.test/dir/other", ""),
        ("?r=2", "http://a.test/dir/page?r=2", ""),
        ("//b.test", "http://b.test/", ""),
        ("https://b.test/x#part", "https://b.test/x", "part"),
        ("../up/./x", "http://a.test/up/x", ""),
        ("HTTP://B.TEST:80/%7ea", "http://b.test/%7ea", ""),
        (" /spaced ", "http://a.test/spaced", ""),
        ("/with space", "http://a.test/with%20space", ""),
        ("\\back\\slash", "http://a.test/back/slash", ""),
        ("/%zz%", "http://a.test/%zz%", ""),
    ],
)
def test_a_location_is_resolved_as_the_url_standard_says(location, target, fragment):
    found = outcome(302, location=location)
    assert (found.target, found.fragment) == (target, fragment)


def test_ours_a_location_in_raw_utf_8_is_decoded():
    """Headers are decoded as Latin-1, byte by byte."""
    assert outcome(302, location="/ž".encode().decode("latin-1")).target == "http://a.test/%C5%BE"
    assert outcome(302, location="http://žluť.test/".encode().decode("latin-1")).target.startswith("http://xn--")


def test_ours_a_location_in_latin_1_is_decoded():
    assert outcome(302, location="/caf\xe9").target == "http://a.test/caf%C3%A9"


@pytest.mark.parametrize("location", ["", "http://", "http://[bad/", "http://a b/"])
def test_a_redirect_without_a_valid_target_is_a_bad_answer(location):
    found = outcome(302, location=location)
    assert isinstance(found, Fetched)
    assert reason_of(found) is Reason.BAD_ANSWER


def test_a_location_with_another_status_is_no_redirect():
    for status in (200, 201, 300, 305, 404):
        assert isinstance(outcome(status, location="/elsewhere"), Fetched)


# 304


def test_304_to_a_conditional_request_is_unchanged():
    for request in (Request(BASE, etag='"1"'), Request(BASE, last_modified="Sun, 06 Nov 1994 08:49:37 GMT")):
        found = outcome(304, request=request, etag='"1"')
        assert found == Unchanged(Headers((("etag", '"1"'),)))
        assert reason_of(found) is Reason.OK


def test_304_to_an_unconditional_request_is_a_bad_answer():
    assert reason_of(outcome(304)) is Reason.BAD_ANSWER


# reasons


@pytest.mark.parametrize(
    ("statuses", "reason"),
    [
        ((200, 201, 203, 204, 206, 226), Reason.OK),
        ((404, 410), Reason.NOT_FOUND),
        ((401, 403, 407, 429, 451, 999), Reason.REFUSED),
        ((400, 402, 405, 406, 408, 409, 418, 425, 499), Reason.CLIENT_ERROR),
        ((500, 501, 502, 503, 504, 520, 599), Reason.SERVER_ERROR),
        ((100, 101, 300, 305, 306, 399), Reason.BAD_ANSWER),
    ],
)
def test_each_status_has_its_reason(statuses, reason):
    assert {reason_of(outcome(status)) for status in statuses} == {reason}


@pytest.mark.parametrize("cut", [cut for cut in Cut if cut and cut is not Cut.BOT_WALL])
def test_a_cut_body_is_truncated_unless_it_was_not_wanted(cut):
    assert reason_of(outcome(200, cut=cut)) is (Reason.OTHER_MEDIA if cut is Cut.NOT_WANTED else Reason.TRUNCATED)
    assert reason_of(outcome(404, cut=cut)) is Reason.NOT_FOUND


def test_an_incomplete_transfer_is_reported_rather_than_its_decoding_error():
    packed = gzip.compress(b"x" * 100_000)
    assert outcome(200, packed[:-20], Cut.SHORT, content_encoding="gzip").cut is Cut.SHORT
    assert not outcome(200, packed[:-20], Cut.SHORT, content_encoding="gzip").sent
    assert outcome(200, packed[:-20], Cut.TIME_LIMIT, content_encoding="gzip").cut is Cut.TIME_LIMIT
    assert outcome(200, packed[:-20], content_encoding="gzip").cut is Cut.SHORT
    assert outcome(200, b"plain", content_encoding="gzip") == Fetched(
        200, Headers((("content-encoding", "gzip"),)), b"plain", Cut.BAD_ENCODING
    )


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.NOT_ARCHIVED])
def test_each_failure_has_a_reason_among_the_failed(cause):
    found = outcome(0, cause=cause)
    assert found == Failed(cause, "words")
    assert STATE_OF[reason_of(found)] is State.FAILED


def test_some_failures_have_a_more_specific_reason_than_unreachable():
    found = {cause: reason_of(Failed(cause)) for cause in Cause}
    telling = {cause: reason for cause, reason in found.items() if reason is not Reason.UNREACHABLE}
    assert telling == {
        Cause.TLS: Reason.TLS,
        Cause.NOT_HTTP: Reason.BAD_ANSWER,
        Cause.HEADER_LIMIT: Reason.BAD_ANSWER,
        Cause.PRIVATE: Reason.PRIVATE,
        Cause.BUG: Reason.BUG,
    }


def test_a_skipped_request_keeps_its_reason():
    assert reason_of(Skipped(Reason.ROBOTS, "Disallow: /", 3)) is Reason.ROBOTS


# bot walls: `headers.bot_wall`

ANUBIS = b'<!doctype html><title>Making sure</title><script id="anubis_challenge" type="application/json">{}</script>'


@pytest.mark.parametrize(
    ("status", "fields", "body", "service"),
    [
        (403, {"cf_mitigated": "challenge"}, b"", "Cloudflare"),
        (503, {"server": "cloudflare"}, b"<script>(function(){window._cf_chl_opt={}})()", "Cloudflare"),
        (403, {"server": "cloudflare", "content_type": "text/plain"}, b"error code: 1020", "Cloudflare"),
        (202, {"x_amzn_waf_action": "challenge"}, b"", "AWS WAF"),
        (429, {"x_vercel_mitigated": "challenge"}, b"", "Vercel"),
        (403, {"x_dd_b": "3"}, b"", "DataDome"),
        (403, {}, b"<script>var dd={'host':'geo.captcha-delivery.com/'}</script>", "DataDome"),
        (403, {}, b"<script>window._pxAppId='PX1'</script>", "HUMAN"),
        (403, {"server": "AkamaiGHost"}, b"<TITLE>Access Denied</TITLE> Reference&#32;&#35;18.6c1e", "Akamai"),
        (200, {}, ANUBIS, "Anubis"),
        (200, {}, b'<iframe id="main-iframe" src="/_Incapsula_Resource?SWUDNSAI=31&incident_id=1">', "Imperva"),
    ],
)
def test_a_challenge_in_place_of_the_page_is_a_bot_wall_of_its_service(status, fields, body, service):
    found = outcome(status, body, **fields)
    assert (reason_of(found), found.cut) == (Reason.BOT_WALL, Cut.BOT_WALL)
    assert bot_wall(found.status, found.headers, found.body) == service


@pytest.mark.parametrize(
    ("status", "fields", "body", "reason"),
    [
        (403, {"server": "cloudflare"}, b"Forbidden by the wiki", Reason.REFUSED),
        (503, {"server": "cloudflare"}, b"<title>Down for maintenance</title>", Reason.SERVER_ERROR),
        (522, {"server": "cloudflare"}, b"error code: 522", Reason.SERVER_ERROR),
        (503, {"server": "AkamaiGHost"}, b"Service Unavailable Reference&#32;&#35;11.6c1e", Reason.SERVER_ERROR),
        (429, {"retry_after": "5"}, b"slow down", Reason.REFUSED),
        (200, {"x_dd_b": "3", "x_kpsdk_ct": "t"}, b"<h1>News</h1>", Reason.OK),
        (200, {}, b"<script>window._cf_chl_opt={}</script> captcha-delivery.com/ window._pxAppId", Reason.OK),
        (200, {}, b'<pre>&lt;script id="anubis_challenge"</pre>', Reason.OK),
        (200, {}, ANUBIS + b" " * 40_000, Reason.OK),
        (404, {}, b"<h1>No page about Sucuri firewalls</h1>", Reason.NOT_FOUND),
    ],
)
def test_an_answer_of_the_site_itself_is_no_bot_wall(status, fields, body, reason):
    assert reason_of(outcome(status, body, **fields)) is reason
