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


@pytest.mark.parametrize(
    ("page", "title", "language"),
    [
        ("en", "Гавань на острове", "ru"),
        ("de", "Гавань на острове", "ru"),
        ("cs", "Το λιμάνι του νησιού", "el"),
        ("ru", "The harbour of the island", "en"),
        ("ja", "The harbour of the island", "en"),
        ("de", "The harbour of the island", ""),  # in the same letters: too short to be asked
        ("en", "—— … ——", ""),
    ],
)
def test_a_title_in_another_script_has_its_own_language(page, title, language):
    rows = [Block(BlockKind.PARAGRAPH, title, "p"), Block(BlockKind.PARAGRAPH, "x", "p")]
    blocks = Blocks.of(rows)
    block, _ = with_languages(blocks, f"{title}\nx".encode(), lines_of(blocks), page)
    assert block.language == language


def test_a_title_too_short_to_tell_is_in_the_language_of_the_others_in_its_script():
    rows = [Block(BlockKind.PARAGRAPH, text, "p") for text in ("Новости !", RUSSIAN[:90], "Harbour")]
    blocks = Blocks.of(rows)
    told = with_languages(blocks, "\n".join(row.text for row in rows).encode(), lines_of(blocks), "en")
    assert [block.language for block in told] == ["ru", "ru", ""]


def test_what_a_block_declares_stays():
    rows = [Block(BlockKind.PARAGRAPH, ENGLISH, "p", language="la"), Block(BlockKind.CODE, ENGLISH, "pre")]
    blocks = Blocks.of(rows)
    assert with_languages(blocks, f"{ENGLISH}\n{ENGLISH}".encode(), lines_of(blocks), "cs") == rows
