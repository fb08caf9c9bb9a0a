"""Search hits that nearly repeat another hit."""

from hypothesis import given
from hypothesis import strategies as st

from periplus.analyse.duplicates import CHARS_LEAST, near_originals

LONG = [f"{number} " + "x" * 100 for number in range(10)]


def test_a_page_that_shares_most_blocks_repeats_the_other():
    assert near_originals([LONG, ["other " * 50], [*LONG[:9], "new"]], 0.8) == [0, 1, 0]


def test_repetitions_do_not_chain():
    assert near_originals([LONG, LONG[1:], LONG[2:], LONG[4:]], 0.8) == [0, 0, 0, 3]


def test_short_content_is_never_a_repetition():
    assert near_originals([["short"], ["short"], [], []], 0.8) == [0, 1, 2, 3]


@given(
    contents=st.lists(st.lists(st.sampled_from(LONG), max_size=10), max_size=6),
    threshold=st.sampled_from([0.5, 0.8, 1.0]),
)
def test_each_repetition_refers_to_an_earlier_page_that_repeats_none(contents, threshold):
    found = near_originals(contents, threshold)
    for place, head in enumerate(found):
        assert head <= place
        assert found[head] == head
        if head < place:
            one, other = set(contents[place]), set(contents[head])
            assert sum(map(len, one)) >= CHARS_LEAST
            assert sum(map(len, one & other)) / sum(map(len, one | other)) >= threshold
