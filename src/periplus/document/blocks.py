"""The text blocks of a page, with positions and languages."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Sequence

from periplus.document.folding import fold_lines, line_blocks, unlikely_blocks
from periplus.document.language import is_beyond_latin, language_of
from periplus.document.metadata import TITLE_CHARS
from periplus.document.page_rules import BLOCKS_MOST
from periplus.document.reader import Reader
from periplus.model.page import (
    BLOCK_KIND_CODES,
    IS_APART,
    IS_TEXT,
    Block,
    BlockKind,
    Blocks,
    dictionary_encode,
)

# Language detection runs only for blocks with suspicious letters: long plain ASCII on a page in a language with
# diacritics; any ASCII on a page in a non-Latin script; diacritics on a page in a language without; and non-Latin
# letters on a page in Latin script. A French quotation on a German page is therefore not detected.

_CODE = BLOCK_KIND_CODES[BlockKind.CODE]
LANGUAGE_CHARS = 35  # RFC 5646, 4.4.1: longer than any real tag
WORD_CHARS = 8  # least length of a block whose language is detected by itself
CHARS_LEAST = 100  # least length of a block in the page's script
FOREIGN_CHARS = 8, 20  # for a block mostly beyond ASCII; for a plain ASCII block on a page in another script
ASKED_MOST = 40  # blocks per page: 10 us each
_DIACRITIC_LANGUAGES = frozenset(["cs", "sk", "pl", "hu", "tr", "ro", "lv", "lt", "vi", "is", "et", "az"])
_PLAIN = frozenset(("en", "nl", "id", "it", "ms"))  # written with hardly any diacritics
_SHARE = 40  # one in this many characters beyond ASCII raises suspicion
_SINGLE_LINES = array("i")  # a single line per block, for blocks stored apart
_NO_POSITION = 1 << 60  # no block has so many characters


def with_languages(blocks: Blocks, written: bytes, lines: Sequence[int], language: str) -> Blocks:
    """The blocks, with the languages of those in another language than the page.

    written, lines: their text in UTF-8, and the block of each line. language: the page's primary tag. Languages
    declared by blocks are kept. Blocks in another script that are too short to detect get the language of all such
    blocks together.
    """
    if not language or (
        blocks.text.isascii() and language not in _DIACRITIC_LANGUAGES and not is_beyond_latin(language)
    ):
        return blocks
    least, share, foreign = _suspicion(language)
    strange = {
        block: words[start:end].decode("utf-8", "surrogatepass")
        for words, numbers in (
            (written, lines),
            (blocks.apart.encode("utf-8", "surrogatepass"), line_blocks(blocks.kinds, IS_APART, b"", _SINGLE_LINES)),
        )
        for block, start, end in unlikely_blocks(words, numbers, least, share, foreign)
        if blocks.kinds[block] != _CODE and not (blocks.languages and blocks.language_names[blocks.languages[block]])
    }
    if not strange:
        return blocks
    asked = {block: strange[block] for block in sorted(strange)[:ASKED_MOST]}
    others = {block: language_of(words) if len(words) >= WORD_CHARS else "" for block, words in asked.items()}
    if foreign and not all(others.values()):
        together = language_of("\n".join(words for words in asked.values() if len(words) < CHARS_LEAST))
        others = {block: other or together for block, other in others.items()}
    declared = blocks.own_languages()
    for block, other in others.items():
        declared[block] = other if other != language else ""
    return with_own_languages(blocks, declared)


def _suspicion(language: str) -> tuple[int, int, int]:
    """Arguments of `unlikely_blocks` for a page in this language."""
    if is_beyond_latin(language):
        return FOREIGN_CHARS[1], 0, 0
    if language in _DIACRITIC_LANGUAGES:
        return CHARS_LEAST, 0, FOREIGN_CHARS[0]
    return (CHARS_LEAST, _SHARE, FOREIGN_CHARS[0]) if language in _PLAIN else (_NO_POSITION, 0, FOREIGN_CHARS[0])


def with_own_languages(blocks: Blocks, languages: Sequence[str]) -> Blocks:
    """The blocks in these languages; '': the page's language."""
    if not any(languages):
        return blocks
    numbers, names = dictionary_encode(languages)
    return dataclasses.replace(blocks, languages=numbers, language_names=names)


def lines_of(blocks: Blocks) -> Sequence[int]:
    """The block of each line of the text."""
    lines, is_wide = blocks.lines, blocks.lines.itemsize > 1
    return line_blocks(
        blocks.kinds, IS_TEXT, b"" if is_wide else lines, array("i", lines.tolist()) if is_wide else _SINGLE_LINES
    )


def blocks_of(page: Reader, language: str = "") -> Blocks:
    """The title, then all visible text and the alternative texts of images, in document order.

    language: the page's.
    """
    title = page.title[:TITLE_CHARS]
    blocks, numbers = page.blocks.columns(title), page.blocks.languages(title)
    if not numbers:
        return blocks
    own = language.partition("-")[0]
    declared = ["", *(_element_language(name, own) for name in page.languages.text.strings("\0"))]
    return with_own_languages(blocks, list(map(declared.__getitem__, numbers)))


def _element_language(language: str, page_language: str) -> str:
    """A language declared by an element; '' if it equals the page's. page_language: its primary tag."""
    tag = language.strip().replace("_", "-").lower()[:LANGUAGE_CHARS]
    return tag if tag.partition("-")[0] != page_language else ""


def words_of(blocks: Blocks, written: bytes, lines: Sequence[int]) -> bytes:
    """The text with the white space of code folded as well: the input of digests.

    written, lines: the text in UTF-8, and the block of each line.
    """
    return fold_lines(written, lines, blocks.kinds, _CODE) if _CODE in blocks.kinds else written


def first_blocks(blocks: Blocks, most_chars: int) -> tuple[Blocks, tuple[str, ...]]:
    """(the blocks within the limits on number and characters, names of the limits that were exceeded).

    The last block may be cut.
    """
    bounds = (f"more than {BLOCKS_MOST:,} blocks of text",) if len(blocks) > BLOCKS_MOST else ()
    if not bounds and len(blocks.text) + len(blocks.apart) <= most_chars:
        return blocks, ()
    rows, room = list[Block](), most_chars
    for block in blocks[:BLOCKS_MOST]:
        if room <= 0:
            return Blocks.of(rows), (*bounds, f"more than {most_chars:,} characters of text")
        text = block.text[:room]
        rows.append(block._replace(text=text, link_chars=min(block.link_chars, len(text))))
        room -= len(block.text)
    if room < 0:
        bounds = (*bounds, f"more than {most_chars:,} characters of text")
    return Blocks.of(rows), bounds


def plain_blocks(paragraphs: Sequence[str]) -> Blocks:
    """Paragraphs of plain text; white space folded, none empty."""
    return Blocks.plain("\n".join(paragraphs[: BLOCKS_MOST + 1]))
