"""Texts for users: titles and durations."""

import pytest

from periplus.present.wording import duration, without_site_name


@pytest.mark.parametrize("between", [" — ", " | ", " - ", " · ", " :: ", " » "])
def test_an_ending_of_most_titles_is_removed(between):
    titles = ["Docs", f"A{between}Docs", f"B - b{between}Docs", f"C{between}Docs", "D", ""]
    assert without_site_name(titles) == ["Docs", "A", "B - b", "C", "D", ""]


@pytest.mark.parametrize(
    "titles",
    [["A — X", "B — X", "C — X"], ["A — X", "B — X", "C — Y", "D — Z"], ["A", "B", "C", "D"], [], ["well-known"] * 9],
)
def test_other_titles_are_unchanged(titles):
    assert without_site_name(titles) == titles


def test_many_titles_are_compared_by_a_sample():
    assert without_site_name(["A | X"] * 10_000)[0] == "A"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (4.25, "4.2 s"),
        (42.9, "42 s"),
        (187, "3 min 7 s"),
        (3600, "1 h"),
        (8049, "2 h 14 min"),
        (273_600, "3 d 4 h"),
    ],
)
def test_a_duration_is_written_in_its_two_largest_units(seconds, words):
    assert duration(seconds) == words
