"""Blocks of any markup: all visible words, each once, in order."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.document.blocks import blocks_of
from periplus.document.reader import read_page
from periplus.model.page import BlockKind
from periplus.store.bodies import pack_blocks, unpack_blocks
from unit.test_blocks import plain_words

TAGS = (
    "div p ul li a span table tr td th h1 h6 pre br hr img b i code em noscript nav header main section title "
    "script style svg text template"
    " x-y dl dt dd select option"
)
TOKEN = st.one_of(
    st.sampled_from([f"<{tag}>" for tag in TAGS.split()] + [f"</{tag}>" for tag in TAGS.split()]),
    st.sampled_from(
        [
            "<a href=x>",
            "<a href='y>'>",
            "<div class='a b' id=c>",
            "<p lang=cs>",
            "<img alt='x<y'>",
            "<!-- <p> -->",
            "<!--[if IE]><!-->",
            "<![CDATA[x<]]>",
            "&lt;",
            "&amp;lt;",
            "&nbsp;",
        ]
    ),
    st.text("ab <>&\n\t\0\xa0é", max_size=6),
)
MARKUP = st.lists(TOKEN, max_size=40).map("".join)


@settings(max_examples=50, deadline=None)
@given(MARKUP)
def test_the_words_are_those_of_the_page(markup):
    found = blocks_of(read_page(markup))
    assert re.sub(r"\s", "", found.text) == plain_words(markup)


@settings(max_examples=100, deadline=None)
@given(MARKUP)
def test_blocks_are_whole_and_can_be_stored(markup):
    found = blocks_of(read_page(markup))
    for block in found:
        assert block.text
        assert 0 <= block.link_chars <= len(block.text)
        assert bool(block.level) == (block.kind is BlockKind.HEADING)
        assert "\n" not in block.path
        if block.kind is not BlockKind.CODE:
            assert block.text == " ".join(block.text.split())
    assert unpack_blocks(pack_blocks(found), found.text) == found if found else pack_blocks(found) == b""


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_any_text_gives_blocks(markup):
    assert re.sub(r"\s", "", blocks_of(read_page(markup)).text) == plain_words(markup)
