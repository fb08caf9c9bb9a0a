"""Blocks in another language than their page."""

from __future__ import annotations

import pytest

from periplus.document.blocks import lines_of, with_languages
from periplus.model.page import Block, BlockKind, Blocks

CZECH = (
    "Přístav leží na severním pobřeží ostrova a lodě v něm nacházejí ochranu před větrem, "
    "který tu vane po většinu roku."
)
ENGLISH = (
    "The harbour lies on the northern coast of the island, and ships find shelter there from the wind "
    "that blows most of the year."
)
RUSSIAN = (
    "Гавань лежит на северном берегу острова, и корабли находят в ней защиту от ветра, "
    "который дует здесь большую часть года."
)


@pytest.mark.parametrize(
    ("page", "text", "language"),
    [
        ("cs", CZECH, ""),
        ("cs", ENGLISH, "en"),
        ("en", ENGLISH, ""),
        ("en", CZECH, "cs"),
        ("en", RUSSIAN, "ru"),
        ("ru", RUSSIAN, ""),
        ("ru", ENGLISH, "en"),
        ("cs", ENGLISH[:60], ""),  # too short to be asked
        ("", CZECH, ""),  # of a page without a language nothing is another
    ],
)
def test_what_the_letters_tell(page, text, language):
    blocks = Blocks.of([Block(BlockKind.PARAGRAPH, text, "p")])
    (block,) = with_languages(blocks, text.encode(), lines_of(blocks), page)
    assert block.language == language
    assert block.text == text


def test_what_a_block_declares_stays():
    rows = [Block(BlockKind.PARAGRAPH, ENGLISH, "p", language="la"), Block(BlockKind.CODE, ENGLISH, "pre")]
    blocks = Blocks.of(rows)
    assert with_languages(blocks, f"{ENGLISH}\n{ENGLISH}".encode(), lines_of(blocks), "cs") == rows
