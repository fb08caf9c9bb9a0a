"""Visible text blocks of a page in fragmenters."""

import numpy as np

from periplus.analyse.marked_text import marked_blocks, text_of
from periplus.analyse.shorkin import fragments
from periplus.model.page import BlockKind, Part

NONE = np.zeros(0, np.bool_)


def marked(source, *navigation):
    pieces = fragments(source)
    return list(
        marked_blocks(pieces, np.array([any(text in part.decode() for text in navigation) for part in pieces.parts]))
    )


def test_blocks_end_at_block_elements_and_line_breaks():
    blocks = marked("<html><head><title>A</title></head>\n<body> <p> One  <b>two</b>, three </p>\n<p>four<br>five</p>")
    assert text_of(blocks) == "One two, three\nfour\nfive"


def test_white_space_after_an_inline_tag_separates_words():
    assert text_of(marked("<p><b>a</b> <i>b</i>c")) == "a bc"


def test_scripts_styles_comments_and_the_title_are_not_visible():
    assert text_of(marked("<title>t</title><script>a</script><style>b</style><!-- c -->d&amp;e")) == "d&e"


def test_a_block_has_its_kind_and_marks_navigation():
    heading, item = marked("<h2>Menu</h2><ul><li>own <b>shared</b></li></ul>", "shared")
    assert (heading.kind, heading.level) == (BlockKind.HEADING, 2)
    assert item.kind is BlockKind.ITEM
    assert [(run.text, run.part) for run in item.runs] == [("own ", Part.CONTENT), ("shared", Part.NAVIGATION)]


def test_text_can_be_limited_to_a_part():
    blocks = marked("<p>one</p><p>two</p><p>three</p>", "two")
    assert text_of(blocks) == "one\nthree"
    assert text_of(blocks, Part.NAVIGATION) == "two"


def test_lines_of_code_are_kept():
    assert text_of(marked("<pre>a\n  b\n</pre>")) == "a\n  b"


def test_a_blank_page_has_no_block():
    assert list(marked_blocks(fragments(" <p> </p>"), NONE)) == []
