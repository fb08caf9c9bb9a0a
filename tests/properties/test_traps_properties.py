"""What TrapWatch and the families of URLs promise for any input."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.model.web import Url
from periplus.schedule.traps import MAX_FAMILIES, PATIENCE, TrapWatch
from periplus.urls.families import ROOT, families, plain, with_wider

SEGMENT = st.sampled_from(["a", "b", "c", "1", "22", "x7", "%D0%9F", "", "page.html", "0123456789abcdef01"])
PARAMETER = st.sampled_from(["a=1", "b=2", "page=3", "sid=0123456789ab", "k=0123456789abcdef01", "bare", "=", ""])
PATHS = st.builds(
    lambda segments, parameters: Url("https://w.example/" + "/".join(segments) + ("?" + "&".join(parameters) if parameters else "")),
    st.lists(SEGMENT, max_size=9),
    st.lists(PARAMETER, max_size=4),
)
PAGES = st.tuples(
    PATHS, st.sampled_from(["", "menu", "menu\nred shirts", "some longer words never seen before " * 5]) | st.text(max_size=60), st.lists(PATHS, max_size=4)
)


@given(st.text(max_size=80))
def test_any_text_has_families_that_end_in_the_host(text):
    found = families(Url("https://w.example/" + text))
    assert found[-1] == ROOT
    assert len(found) <= 9


@given(PATHS)
def test_plain_is_idempotent(url):
    assert plain(plain(url).url).names == ""


@given(PATHS)
def test_wider_families_of_a_short_path_are_its_own(url):
    found = families(url)
    if len(found) < 7 and ")+" not in found[0] and "//" not in url[8:]:
        assert with_wider(found[0]) == found


@settings(max_examples=60, deadline=None)
@given(st.lists(PAGES, max_size=60), st.sampled_from([1, 3, 40]))
def test_same_calls_same_answers_and_debts_stay_in_bounds(pages, window):
    twins = [TrapWatch(window), TrapWatch(window)]
    for url, text, links in pages:
        answers = {watch.admit(url) for watch in twins}
        assert len(answers) == 1
        if answers == {None}:
            assert len({watch.learn(url, text, links) for watch in twins}) == 1
    first, second = (watch.records() for watch in twins)
    assert first == second
    for record in first:
        if record.key.startswith("/"):
            assert 0 <= record.fresh <= record.fetched
            assert record.debt <= window + record.fresh / PATIENCE + 1
            assert record.shown_barren <= record.shown


@settings(max_examples=40, deadline=None)
@given(st.lists(PAGES, max_size=40))
def test_window_0_refuses_nothing_and_learns_nothing(pages):
    watch = TrapWatch(0)
    for url, text, links in pages:
        watch.learn(url, text, links)
        assert watch.admit(url) is None
    assert watch.records() == []


@settings(max_examples=40, deadline=None)
@given(st.lists(PAGES, max_size=40))
def test_records_given_back_are_the_same_records(pages):
    watch = TrapWatch(40)
    for url, text, links in pages:
        watch.learn(url, text, links)
    records = watch.records()
    again = TrapWatch(40, records)
    for url, _, _ in pages:
        if not plain(url).names:  # which pages were fetched under a token is not kept
            assert watch.admit(url) == again.admit(url)


def test_memory_is_bounded():
    watch = TrapWatch(40)
    for number in range(3 * MAX_FAMILIES):
        word = "".join(chr(97 + int(digit)) for digit in str(number))
        watch.learn(Url(f"https://w.example/{word}/x"), f"page {word}", [])
    assert len(watch._families) <= MAX_FAMILIES + 2
