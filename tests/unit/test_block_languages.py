"""Languages of blocks that differ from the language of their page."""

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
        ("cs", ENGLISH[:60], ""),  # too short for detection
        ("", CZECH, ""),  # a page without a language: no block differs
    ],
)
def test_the_language_of_a_block_is_detected_from_its_letters(page, text, language):
    blocks = Blocks.of([Block(BlockKind.PARAGRAPH, text, "p")])
    (block,) = with_languages(blocks, text.encode(), lines_of(blocks), page)
    assert block.language == language
    assert block.text == text


@pytest.mark.parametrize(
    ("page", "title", "language"),
    [
        ("en", "Гавань на острове", "ru"),
        ("de", "Гавань на острове", "ru"),
        ("cs", "Το λιμάνι του νησιού", "el"),
        ("ru", "The harbour of the island", "en"),
        ("ja", "The harbour of the island", "en"),
        ("de", "The harbour of the island", ""),  # in the same script: too short for detection
        ("en", "—— … ——", ""),
    ],
)
def test_a_title_in_another_script_has_its_own_language(page, title, language):
    rows = [Block(BlockKind.PARAGRAPH, title, "p"), Block(BlockKind.PARAGRAPH, "x", "p")]
    blocks = Blocks.of(rows)
    block, _ = with_languages(blocks, f"{title}\nx".encode(), lines_of(blocks), page)
    assert block.language == language


def test_a_short_title_takes_the_language_of_other_blocks_in_its_script():
    rows = [Block(BlockKind.PARAGRAPH, text, "p") for text in ("Новости !", RUSSIAN[:90], "Harbour")]
    blocks = Blocks.of(rows)
    detected = with_languages(blocks, "\n".join(row.text for row in rows).encode(), lines_of(blocks), "en")
    assert [block.language for block in detected] == ["ru", "ru", ""]


def test_a_declared_language_is_kept():
    rows = [Block(BlockKind.PARAGRAPH, ENGLISH, "p", language="la"), Block(BlockKind.CODE, ENGLISH, "pre")]
    blocks = Blocks.of(rows)
    assert with_languages(blocks, f"{ENGLISH}\n{ENGLISH}".encode(), lines_of(blocks), "cs") == rows
