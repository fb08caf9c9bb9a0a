"""Refresh intervals: longer for unchanged pages, shorter for changed pages, within limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from periplus.model.frontier import (
    ASKED_AGAIN,
    FIRST_INTERVAL_S,
    LONGEST_INTERVAL_S,
    READ,
    SHORTEST_INTERVAL_S,
    RefreshFinding,
    finding_of,
    next_interval_s,
)
from periplus.model.visit import STATE_OF, Reason, State


@given(st.floats(SHORTEST_INTERVAL_S, LONGEST_INTERVAL_S), st.sampled_from(RefreshFinding))
def test_an_interval_stays_within_its_limits(interval_s, finding):
    assert SHORTEST_INTERVAL_S <= next_interval_s(interval_s, finding) <= LONGEST_INTERVAL_S


@given(st.floats(SHORTEST_INTERVAL_S, LONGEST_INTERVAL_S))
def test_an_interval_grows_only_for_unchanged_pages(interval_s):
    assert next_interval_s(interval_s, RefreshFinding.UNCHANGED) >= interval_s
    assert all(
        next_interval_s(interval_s, finding) <= interval_s
        for finding in RefreshFinding
        if finding is not RefreshFinding.UNCHANGED
    )


def test_ours_a_page_that_never_changes_is_requested_every_thirty_days():
    interval_s = FIRST_INTERVAL_S
    for _ in range(9):
        interval_s = next_interval_s(interval_s, RefreshFinding.UNCHANGED)
    assert interval_s == LONGEST_INTERVAL_S


@pytest.mark.parametrize(
    ("before", "after", "changed", "finding"),
    [
        (Reason.OK, Reason.OK, False, RefreshFinding.UNCHANGED),
        (Reason.OK, Reason.OK, True, RefreshFinding.CHANGED),
        (Reason.OK, Reason.NOINDEX, False, RefreshFinding.CHANGED),
        (Reason.OK, Reason.NOT_FOUND, False, RefreshFinding.GONE),
        (Reason.OK, Reason.REDIRECT, True, RefreshFinding.GONE),
        (Reason.NOT_FOUND, Reason.OK, True, RefreshFinding.BACK),
        (Reason.NOT_FOUND, Reason.NOT_FOUND, False, RefreshFinding.UNCHANGED),
        (Reason.REDIRECT, Reason.REDIRECT, True, RefreshFinding.CHANGED),
        (Reason.NOT_FOUND, Reason.SERVER_ERROR, False, RefreshFinding.CHANGED),
    ],
)
def test_a_refresh_finds_pages_unchanged_changed_gone_or_failed(before, after, changed, finding):
    assert finding_of(before, after, changed) is finding


def test_read_and_failed_urls_are_refreshed_and_excluded_ones_are_not():
    assert READ <= ASKED_AGAIN
    assert {reason for reason in Reason if STATE_OF[reason] is State.FAILED} <= ASKED_AGAIN
    assert {reason for reason in ASKED_AGAIN if STATE_OF[reason] is State.EXCLUDED} == {Reason.REDIRECT}
    assert not ASKED_AGAIN & {Reason.WAITING, Reason.DEPTH, Reason.TRAP, Reason.RESOURCE, Reason.NOFOLLOW}
