"""The leading sentence of a page's content."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.model.page import Block, BlockKind, Part
from periplus_topics.analyse.edition import ENOUGH_CHARS, LEAST_CHARS, MOST_CHARS, leading_sentence

FIRST = "The bell buoy that warns ships off the Combs broke its chain on Sunday night, and nobody heard it go."
CHINESE = (
    "风从西边吹来，早晨海面还很平静，但中午以前浪就高了，船只好回到港口。渔民们一直等到夜里，第二天早上才能再次出海。"
    * 3
)
SECOND = "Two fishermen followed the sound for an hour in the fog."


def paragraph(text, **more):
    return Block(BlockKind.PARAGRAPH, text, "main/p", **more)


def test_the_leading_sentence_is_the_first_of_the_first_content_paragraph():
    blocks = [
        paragraph(f"Everything about harbours, since 1871: {FIRST}"),
        Block(BlockKind.HEADING, "Adrift", "h1"),
        paragraph(f"{FIRST} {SECOND}"),
    ]
    assert leading_sentence(blocks, [Part.NAVIGATION, Part.CONTENT, Part.CONTENT]) == FIRST


def test_notes_on_the_page_are_no_lead():
    notes = [
        "UPDATE: this article was corrected after the harbour master had called our office.",
        "Editor's note: names were changed at the request of the family, who live in the port.",
        "Updated at 14:10: the ferry company has answered our questions about the tickets.",
    ]
    assert leading_sentence([*map(paragraph, notes), paragraph(FIRST)], None) == FIRST
    ours = "Updated rules for pilots come into force in May, and every harbour has to name a deputy."
    assert leading_sentence([paragraph(ours)], None) == ours


def test_bylines_titles_and_lists_of_links_are_skipped():
    links = paragraph(FIRST.upper(), link_chars=len(FIRST))
    assert (
        leading_sentence([paragraph("By Ann, 5 May"), links, paragraph(FIRST), paragraph(SECOND * 2)], None, FIRST)
        == SECOND + SECOND
    )


def test_a_short_sentence_is_joined_with_the_next():
    text = f"It is gone. {SECOND} {FIRST}"
    assert (
        leading_sentence([paragraph(text)], None)
        == f"It is gone. {SECOND} {FIRST}"[: len("It is gone. ") + len(SECOND) + 1 + len(FIRST)]
    )


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ((
"Mr. J. Smith came at 5.30 p.m. and stayed until the harbour had been swept and washed and "
f"all went home to bed. {SECOND}"
), "to bed."),
        (CHINESE, "。"),
        (f"“{FIRST[:-1]}!” said the mate of the packet. {SECOND}", "packet."),
    ],
)  # fmt: skip
def test_ends_of_sentences_are_recognized(text, begins):
    assert leading_sentence([paragraph(text)], None).endswith(begins)


def test_a_long_sentence_is_cut_at_a_word():
    found = leading_sentence([paragraph("word " * 200)], None)
    assert found.endswith("word…")
    assert ENOUGH_CHARS < len(found) <= MOST_CHARS + 1


def test_a_page_without_running_text_has_no_leading_sentence():
    assert leading_sentence([Block(BlockKind.ITEM, FIRST, "ul/li"), paragraph("Short.")], None) == ""
    assert leading_sentence([], ()) == ""


@given(st.text(max_size=600), st.text(max_size=80))
@settings(max_examples=60)
def test_the_leading_sentence_is_a_prefix_of_the_text(text, title):
    found = leading_sentence([paragraph(text)], None, title)
    assert text.startswith(found.removesuffix("…"))
    assert len(found) <= MOST_CHARS + 1
    assert len(text) >= LEAST_CHARS or not found
