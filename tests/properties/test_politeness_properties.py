"""Politeness over any history: gaps are never below the floor, requested waits are shortened only by their cap."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from periplus.acquire.politeness import (
    RATE_FLOOR,
    Pace,
    delay_for,
    finish_request,
    given_up,
    retry_after_s,
    start_request,
    struck,
    suspend,
)
from periplus.model.visit import Cause, Failed, Fetched, Headers, Request, Unchanged, Visit
from periplus.settings import DELAY_FLOOR_S, Politeness

SECONDS = st.floats(0, 100, allow_nan=False)
RETRY_AFTER = st.sampled_from(
    ("", "0", "1", "30", "999999", "Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 01 Jan 2100 00:00:00 GMT", "rubbish")
)
OUTCOMES = st.one_of(
    st.builds(
        lambda status, wait: Fetched(status, Headers((("retry-after", wait),) if wait else ()), b""),
        st.sampled_from((200, 404, 429, 500, 503)),
        RETRY_AFTER,
    ),
    st.builds(Failed, st.sampled_from(tuple(Cause))),
    st.just(Unchanged(Headers())),
)
STEPS = st.lists(st.tuples(OUTCOMES, SECONDS, st.floats(0, 1), SECONDS), min_size=1, max_size=25)
MANNERS = st.builds(
    Politeness,
    delay_s=st.floats(0, 5),
    retry_wait_s=st.floats(0, 20),
    max_retry_after_s=st.floats(1, 600),
    host_strikes=st.integers(1, 5),
)


@given(MANNERS, STEPS, st.none() | st.floats(0, 5))
def test_over_any_history_gaps_keep_the_floor_and_waits_are_kept(politeness, steps, crawl_delay):
    delay = delay_for(politeness, False, crawl_delay)
    pace, now, last = Pace(delay), 1e9, None
    for outcome, took, share, idle in steps:
        now = max(now + idle, pace.not_before)
        if last is not None:
            assert now - last >= max(DELAY_FLOOR_S, politeness.delay_s, crawl_delay or 0.0) - 1e-6
        last, pace = now, start_request(pace, now)
        visit = Visit(Request("http://a.test/"), now, took, outcome, first_byte_s=took * share)
        now += took
        before, pace = pace, finish_request(pace, visit, politeness, now)
        assert pace.not_before >= before.not_before, "no answer makes a wait shorter"
        assert RATE_FLOOR <= pace.rate <= 1
        if isinstance(outcome, Fetched) and outcome.status in (429, 503):
            asked = retry_after_s(outcome.headers.get("retry-after"), now)
            assert pace.not_before >= now + min(asked or 0.0, politeness.max_retry_after_s) - 1e-6
            assert pace.not_before <= max(before.not_before, now + max(pace.gap_s, politeness.max_retry_after_s)) + 1e-6
            assert max(RATE_FLOOR, before.rate / 2) <= pace.rate <= before.rate
            assert pace.rate <= max(RATE_FLOOR, before.rate / 2) or pace.gap_s <= max(before.gap_s, asked or 0.0) + 1e-6
            assert (asked or 0.0) <= politeness.max_retry_after_s or given_up(pace, politeness)
        elif not isinstance(outcome, Failed):
            assert pace.rate >= before.rate
            assert pace.strikes == 0


@given(MANNERS, st.integers(1, 30))
def test_a_host_that_only_fails_is_given_up(politeness, failures):
    pace = Pace(1.0, answered=True)
    waits = []
    for _ in range(failures):
        pace = struck(pace, "timeout", politeness, pace.not_before)
        waits.append(pace.not_before)
    gaps = [b - a for a, b in pairwise(waits)]
    assert all(later >= sooner - 1e-6 for sooner, later in pairwise(gaps))
    assert given_up(pace, politeness) == (failures >= politeness.host_strikes)


@given(st.text(max_size=40), SECONDS)
def test_retry_after_is_total(text, now):
    seconds = retry_after_s(text, now)
    assert seconds is None or seconds >= 0


@given(SECONDS, SECONDS)
def test_suspensions_only_add(first, second):
    assert suspend(suspend(Pace(1.0), first, "a"), second, "b").not_before == max(first, second)
