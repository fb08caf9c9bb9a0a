"""Blocks and links of a page as columns, and their rows."""

from __future__ import annotations

import numpy as np
import pytest

from periplus.model.page import (
    NO_BLOCKS,
    NO_LINKS,
    Block,
    BlockKind,
    Blocks,
    Link,
    LinkKind,
    Links,
    Part,
    Position,
    narrow,
)
from periplus.model.web import Url

ROWS = (
    Block(BlockKind.TITLE, "A title", "head/title", 0, Position.HEAD),
    Block(BlockKind.HEADING, "Heading", "main/h1", 2, Position.MAIN),
    Block(BlockKind.CODE, "def f():\n\n    return 1", "main/pre"),
    Block(BlockKind.ALT, "a boat", "main/p/img"),
    Block(BlockKind.LINK, "on", "main/p", 0, Position.MAIN, 2),
    Block(BlockKind.PARAGRAPH, "mostly words", "main/p", 0, Position.MAIN, 6, "de"),
)
LINKS = (
    Link(Url("http://a.test/x"), LinkKind.ANCHOR, Position.NAV, "x", True, ("top", "end"), 3),
    Link(Url("http://a.test/y.css"), LinkKind.STYLE, Position.HEAD),
)


def test_rows_are_the_same_after_conversion_to_columns():
    blocks = Blocks.of(ROWS)
    assert blocks == ROWS
    assert (len(blocks), blocks[1], blocks[-2:]) == (len(ROWS), ROWS[1], ROWS[-2:])
    assert hash(blocks) == hash(ROWS)
    assert blocks != ROWS[1:]
    assert Links.of(LINKS) == LINKS
    assert Blocks.of(()) is NO_BLOCKS and not NO_BLOCKS
    assert Links.of(()) is NO_LINKS and not NO_LINKS


def test_the_text_has_all_blocks_except_titles_and_image_texts():
    blocks = Blocks.of(ROWS)
    assert blocks.text == "Heading\ndef f():\n\n    return 1\non\nmostly words"
    assert blocks.texts() == [row.text for row in ROWS]


def test_a_property_that_is_the_same_in_all_blocks_needs_no_column():
    blocks = Blocks.of([Block(BlockKind.PARAGRAPH, "one", "p"), Block(BlockKind.PARAGRAPH, "two", "p")])
    assert not (blocks.levels or blocks.lines or blocks.shares or blocks.languages or blocks.language_names)
    assert Blocks.plain("one\ntwo") == tuple(row._replace(path="") for row in blocks)


def test_content_has_the_blocks_marked_as_content():
    blocks, apart = Blocks.of(ROWS), (BlockKind.TITLE, BlockKind.ALT)
    parts = [Part.CONTENT, Part.NAVIGATION, Part.CONTENT, Part.CONTENT, Part.NAVIGATION, Part.CONTENT]
    assert blocks.content(parts, apart) == [ROWS[2].text, ROWS[5].text]
    assert blocks.content(None, apart) == blocks.content(parts[1:], apart) == [ROWS[at].text for at in (1, 2, 4, 5)]


def test_links_are_selected_by_kind():
    assert Links.of(LINKS).targets_of(frozenset({LinkKind.STYLE, LinkKind.IMAGE})) == ["http://a.test/y.css"]


@pytest.mark.parametrize(("largest", "width"), [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4)])
def test_numpy_reads_columns_of_the_narrowest_width_without_a_copy(largest, width):
    column = narrow([0, largest])
    read = np.asarray(column)
    assert (read.tolist(), read.itemsize) == ([0, largest], width)
    assert not read.flags.owndata and not read.flags.writeable
