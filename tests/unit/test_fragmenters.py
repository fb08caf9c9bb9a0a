"""Fragmenters and chains by definitions D1 and D2 of Shorkin."""

from zlib import crc32

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.analyse.shorkin import chains, fragments, is_covered, lengths, source_left


def test_a_fragmenter_is_a_tag_or_the_stripped_text_between_two_tags():
    assert fragments("<p> a b </p>\n <br>c").parts == (b"<p>", b"a b", b"</p>", b"<br>", b"c")


def test_a_less_than_sign_that_begins_no_tag_is_text():
    assert fragments("<i>1 < 2 <3</i>").parts == (b"<i>", b"1 < 2 <3", b"</i>")


def test_ours_a_quoted_value_can_contain_a_greater_than_sign():
    assert fragments("<a title='x>y' href=\">\">z").parts == (b"<a title='x>y' href=\">\">", b"z")


def test_ours_comments_scripts_and_styles_are_one_fragmenter_each():
    found = fragments("<!-- <p>a</p> --><script>if (a<b) c='</p>'</script><STYLE>p>a{}</STYLE>")
    assert found.parts == (
        b"<!-- <p>a</p> -->",
        b"<script>",
        b"if (a<b) c='</p>'",
        b"</script>",
        b"<STYLE>",
        b"p>a{}",
        b"</STYLE>",
    )
    assert found.raw == {2, 5}


def test_a_chain_is_the_crc_of_six_fragmenters_and_their_length():
    parts = fragments("<p>a</p><p>b</p><p>c</p>").parts
    first, second, *others = chains(fragments("<p>a</p><p>b</p><p>c</p>")).tolist()
    assert (first >> 32, first & 0xFFFFFFFF) == (crc32(b"".join(parts[:6])), 16)
    assert (second >> 32, second & 0xFFFFFFFF) == (crc32(b"".join(parts[1:7])), 16)
    assert len(others) == 2


def test_a_page_of_fewer_fragmenters_has_no_chain():
    assert not len(chains(fragments("<p>a</p><p>b</p>"), 7))
    assert len(chains(fragments("<p>a</p><p>b</p>"), 6)) == 1


def test_the_fragmenters_of_a_selected_chain_are_covered():
    sequence = chains(fragments("<p>a</p><p>b</p><p>c</p>"), 3)
    assert is_covered(sequence, np.sort(sequence[[1, 5]]), 3).tolist() == [
        False,
        True,
        True,
        True,
        False,
        True,
        True,
        True,
        False,
    ]
    assert not is_covered(sequence, np.zeros(0, np.uint64), 3).any()


def test_removing_a_script_tag_removes_its_script():
    page = fragments("<p>a</p><script>b</script>")
    gone = np.array([part == b"<script>" for part in page.parts])
    assert source_left(page, gone) == "<p>a</p></script>"


@given(st.text(alphabet="<>/!?-='\" \nabscriptyle&é", max_size=200))
@settings(max_examples=100, deadline=None)
def test_the_fragmenters_of_any_text_add_up_to_it(source):
    found = fragments(source)
    data = source.encode()
    assert b"".join(data.split()) == b"".join(b"".join(found.parts).split())
    assert not source.strip() or source_left(found, np.zeros(0, np.bool_)).split() == source.split()
    assert all(part == part.strip() and part for part in found.parts)
    assert sum(lengths(chains(found, 1))) == sum(map(len, found.parts))
