"""Which blocks of a page are in another language than the page?

Asked only where the letters themselves are suspicious: long plain ASCII within a language that cannot write so much without a mark or a
script of its own, and marks within a language that has none. A quotation in French on a German page stays unnoticed.
"""

from __future__ import annotations

from periplus.document.language import language_of
from periplus.model.page import Block, BlockKind

CHARS_LEAST = 100  # of a block; 70 us each, so what is shorter is not asked
ASKED_MOST = 40  # blocks of one page
_MARKED = frozenset(
    [
        "cs",
        "sk",
        "pl",
        "hu",
        "tr",
        "ro",
        "lv",
        "lt",
        "vi",
        "ru",
        "uk",
        "bg",
        "sr",
        "mk",
        "be",
        "el",
        "he",
        "ar",
        "fa",
        "th",
        "ja",
        "ko",
        "zh",
        "ka",
        "hy",
        "hi",
        "bn",
        "ta",
    ]
)
_PLAIN = frozenset(("en", "nl", "id", "it", ""))  # written with hardly a mark; empty: not known
_CODE = BlockKind.CODE  # an enum's own look-up takes 0.2 us
_SHARE = 40  # of the characters one in so many is beyond ASCII, where a language with marks is suspected


def with_languages(blocks: tuple[Block, ...], language: str) -> tuple[Block, ...]:
    """language: the page's primary tag. What a block declares for itself stays."""
    to_ask = [at for at, block in enumerate(blocks) if len(block[1]) >= CHARS_LEAST and _is_strange(block, language)] if language else []
    if not to_ask:
        return blocks
    found = list(blocks)
    for at in to_ask[:ASKED_MOST]:
        other = language_of(found[at].text)
        if other and other != language:
            found[at] = found[at]._replace(language=other)
    return tuple(found)


def _is_strange(block: Block, language: str) -> bool:
    text = block[1]
    if block.language or block[0] is _CODE:
        return False
    if text.isascii():
        return language in _MARKED
    return language in _PLAIN and (len(text.encode("utf-8", "replace")) - len(text)) * _SHARE > len(text)
