"""When a host may be requested again: delays, Retry-After, rate, strikes."""

import time

import pytest

from periplus.acquire.politeness import (
    Pace,
    delay_for,
    finish_request,
    given_up,
    may_pass,
    retry_after_s,
    start_request,
    struck,
    suspend,
)
from periplus.model.visit import Cause, Cut, Failed, Fetched, Headers, Request, Unchanged, Visit
from periplus.settings import Politeness

MANNERS = Politeness()
NOVEMBER_1994 = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110, 5.6.7


def visit(outcome, took_s=0.1, first_byte_s=0.1):
    return Visit(Request("http://a.test/"), NOVEMBER_1994, took_s, outcome, first_byte_s=first_byte_s)


def answer(status, **fields):
    return visit(
        Fetched(status, Headers(tuple((name.replace("_", "-"), value) for name, value in fields.items())), b"")
    )


def after(pace, *visits, now=100.0):
    for visited in visits:
        pace = finish_request(pace, visited, MANNERS, now)
    return pace


# Retry-After


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("9" * 400, 999_999_999.0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60.0),
        ("Sun Nov  6 08:50:37 1994", 60.0),
        ("Sun, 06 Nov 1994 09:50:37 +0100", 60.0),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0.0),
    ],
)
def test_rfc9110_retry_after_is_seconds_or_a_date(value, seconds, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert retry_after_s(value, NOVEMBER_1994) == seconds
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "-1",
        "1.5",
        "１２",
        "Sun, 99 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 99999 08:49:37 GMT",
        "\x00",
        "0x10",
    ],
)
def test_an_invalid_retry_after_is_ignored(value):
    assert retry_after_s(value, NOVEMBER_1994) is None


def test_retry_after_is_kept_up_to_its_limit():
    assert after(Pace(0.5), answer(429, retry_after="40")).not_before == 140.0
    assert after(Pace(0.5), answer(503, retry_after="4000")).not_before == 100.0 + MANNERS.max_retry_after_s
    assert after(Pace(0.5), answer(429, retry_after="0")).not_before == 101.0, "at least the gap of the halved rate"


def test_a_retry_after_beyond_the_limit_gives_the_host_up():
    assert not given_up(after(Pace(0.5), answer(503, retry_after="300")), MANNERS)
    pace = after(Pace(0.5), answer(503, retry_after="86400"))
    assert given_up(pace, MANNERS) and pace.waits_for == "503, Retry-After 86400 s is longer than max-retry-after-s 300"


@pytest.mark.parametrize(
    ("asked", "gap_s"), [("2", 2.0), ("3", 3.0), ("30", 30.0), ("200", 32.0), ("0", 32.0), ("", 32.0)]
)
def test_refusals_slow_a_host_down_to_its_retry_after(asked, gap_s):
    assert after(Pace(0.5), *[answer(429, retry_after=asked)] * 20).gap_s == pytest.approx(gap_s)


def test_a_refusal_never_raises_the_rate():
    slow = after(Pace(0.5), *[answer(429)] * 6)
    assert after(slow, answer(429, retry_after="2")).rate == slow.rate == 1 / 64


def test_only_a_refusal_without_retry_after_is_a_strike():
    assert after(Pace(0.5), answer(429, retry_after="4")).strikes == 0
    twice = after(Pace(0.5), answer(429), answer(503))
    assert (twice.strikes, twice.not_before) == (2, 110.0)


def test_a_bot_wall_is_a_strike_and_is_not_asked_again():
    wall = visit(Fetched(403, Headers((("retry-after", "90"),)), b"", Cut.BOT_WALL))
    once = after(Pace(0.5), wall)
    assert (once.strikes, once.not_before, once.waits_for) == (1, 190.0, "bot-wall")
    assert given_up(after(Pace(0.5, answered=True), *[wall] * MANNERS.host_strikes), MANNERS)
    assert after(once, answer(200)).strikes == 0
    assert not may_pass(visit(Fetched(503, Headers(), b"", Cut.BOT_WALL)).outcome)


# rate


def test_a_refusal_halves_the_rate_and_a_good_answer_adds_a_tenth():
    slow = after(Pace(0.5), answer(429), answer(503))
    assert (slow.rate, slow.gap_s) == (0.25, 2.0)
    assert after(slow, answer(200)).rate == pytest.approx(0.35)
    assert after(slow, *[answer(200)] * 20).rate == 1.0
    assert after(Pace(0.5), *[answer(429)] * 20).rate == 1 / 64


def test_refusals_also_slow_a_host_without_delay():
    assert Pace(0.0).gap_s == 0.0
    assert after(Pace(0.0), answer(429)).gap_s == 0.2


# strikes


def test_failures_in_a_row_double_the_wait_until_an_answer():
    pace, waits = Pace(0.5), []
    for _ in range(4):
        pace = struck(pace, "timeout", MANNERS, 100.0)
        waits.append(pace.not_before - 100.0)
    assert waits == [5.0, 10.0, 20.0, 40.0]
    assert pace.waits_for == "timeout"
    assert after(pace, answer(404)).strikes == 0, "an answer with any status proves that the host is up"


@pytest.mark.parametrize(
    "cause", [Cause.NAME, Cause.CONNECT, Cause.TLS, Cause.TIMEOUT, Cause.FIRST_BYTE, Cause.RESET, Cause.PROXY]
)
def test_failures_of_the_host_are_strikes(cause):
    assert after(Pace(0.5), visit(Failed(cause))).strikes == 1


@pytest.mark.parametrize("cause", [Cause.NOT_HTTP, Cause.HEADER_LIMIT, Cause.PRIVATE, Cause.CANCELLED, Cause.BUG])
def test_failures_of_a_page_are_no_strikes(cause):
    assert after(Pace(0.5), visit(Failed(cause))) == Pace(0.5)


def test_a_host_is_given_up_after_its_strikes_and_earlier_if_it_never_answered():
    assert [given_up(Pace(0.5, strikes=n, answered=True), MANNERS) for n in (3, 4)] == [False, True]
    assert [given_up(Pace(0.5, strikes=n), MANNERS) for n in (1, 2)] == [False, True]
    assert given_up(Pace(0.5, strikes=1), Politeness(host_strikes=1))


# delay


def test_the_delay_is_the_maximum_of_setting_crawl_delay_and_floor():
    assert delay_for(Politeness(delay_s=0.0), False, None) == 0.5
    assert delay_for(Politeness(delay_s=0.0), True, None) == 0.0
    assert delay_for(Politeness(delay_s=2.0), False, 10.0) == 10.0
    assert delay_for(Politeness(delay_s=2.0), False, 1.0) == 2.0
    assert delay_for(Politeness(delay_s=0.0), True, 10.0) == 10.0
    assert delay_for(Politeness(delay_s=0.0, ignore_robots=True), True, 10.0) == 0.0
    assert delay_for(Politeness(delay_s=0.0, ignore_robots=True), False, 10.0) == 10.0


def test_the_delay_counts_from_the_answers_first_byte():
    """Only the answer proves when the request arrived."""
    pace = start_request(Pace(2.0), 100.0)
    assert pace.not_before == 102.0
    assert (
        finish_request(pace, visit(Unchanged(Headers()), took_s=3.0, first_byte_s=1.0), MANNERS, 103.0).not_before
        == 103.0
    )


def test_a_suspension_never_shortens_a_wait():
    assert suspend(Pace(0.5, not_before=50.0), 40.0, "x").not_before == 50.0


# further attempts


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_a_temporary_status_is_retried(status):
    assert may_pass(Fetched(status, Headers(), b""))


@pytest.mark.parametrize("status", [200, 301, 400, 401, 403, 404, 410, 451, 999])
def test_a_permanent_status_is_not_retried(status):
    assert not may_pass(Fetched(status, Headers(), b""))


def test_lost_connections_are_retried_and_certificate_errors_are_not():
    passing = {cause for cause in Cause if may_pass(Failed(cause))}
    assert passing == {Cause.NAME, Cause.CONNECT, Cause.TIMEOUT, Cause.FIRST_BYTE, Cause.RESET, Cause.PROXY}
