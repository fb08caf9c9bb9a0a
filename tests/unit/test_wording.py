"""Plain words for people."""

import pytest

from periplus.present.wording import without_site_name


@pytest.mark.parametrize("between", [" — ", " | ", " - ", " · ", " :: ", " » "])
def test_the_ending_that_most_titles_share_is_left_out(between):
    titles = ["Docs", f"A{between}Docs", f"B - b{between}Docs", f"C{between}Docs", "D", ""]
    assert without_site_name(titles) == ["Docs", "A", "B - b", "C", "D", ""]


@pytest.mark.parametrize(
    "titles",
    [["A — X", "B — X", "C — X"], ["A — X", "B — X", "C — Y", "D — Z"], ["A", "B", "C", "D"], [], ["well-known"] * 9],
)
def test_other_titles_stay(titles):
    assert without_site_name(titles) == titles


def test_a_million_titles_are_decided_by_a_sample():
    assert without_site_name(["A | X"] * 10_000)[0] == "A"
