"""Which words has a text, for judging its topic, in any language?

Words are runs of letters and digits that begin with a letter, folded: no case, no diacritics. In scripts that leave no gaps between words, every
pair of neighbouring signs is one. A word's grams are its stretches of a few letters, by which its other forms are known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from zlib import crc32

from periplus.document.digest import without_marks
from periplus.model.page import Block, BlockKind, Part

TEXT_CHARS = 50_000  # of a page that are judged: its topic is plain by then, and a book shall not take a second
WORD_CHARS = 40  # longer runs are no words
GRAM_CHARS = (4, 5)  # letters of a gram, with the word's beginning and end as one each
GRAM_BUCKETS = 1 << 14  # 64 kB of a model

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[^\W\d_{_UNSPACED}][^\W_{_UNSPACED}]+|[{_UNSPACED}]+")
_ASCII_WORDS = re.compile("[a-z][a-z0-9]+")
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_NO_TEXT = (BlockKind.TITLE, BlockKind.ALT)


def word_counts(text: str) -> Mapping[str, int]:
    """How often each word occurs, in the order of the text. Total: any text, lone surrogates too."""
    text = without_marks(text[:TEXT_CHARS])
    if text.isascii():  # folding makes most Latin texts so
        return Counter(_ASCII_WORDS.findall(text))
    words = _WORDS.findall(text)
    return Counter(words if not _HAS_UNSPACED.search(text) else [part for word in words for part in _parts(word)])


def _parts(word: str) -> Iterator[str]:
    """Pairs of neighbours of a run of signs; other words as they are."""
    return map("".join, pairwise(word)) if len(word) > 2 and _HAS_UNSPACED.match(word) else iter((word,))


def grams(word: str) -> list[int]:
    """Buckets of the word's stretches of letters; at least one."""
    framed = f"<{word[:WORD_CHARS]}>".encode("utf-16-le", "surrogatepass")  # a letter is two bytes: pieces are cut without encoding each
    low, high = GRAM_CHARS
    length = len(framed)
    found = [crc32(framed[start : start + size]) % GRAM_BUCKETS for size in range(2 * low, 2 * high + 1, 2) for start in range(0, length - size + 1, 2)]
    return found or [crc32(framed) % GRAM_BUCKETS]


def bucket(piece: str, buckets: int) -> int:
    """The same on every machine."""
    return crc32(piece.encode("utf-8", "surrogatepass")) % buckets


def content_text(title: str, blocks: Sequence[Block], parts: Sequence[Part] | None) -> str:
    """What of a page is judged: its title and its content; all its text where nothing is marked, or nothing as content."""
    said = [block.text for block in blocks if block.kind not in _NO_TEXT]
    if parts is not None and len(parts) == len(blocks):
        marked = zip(blocks, parts, strict=True)
        said = [block.text for block, part in marked if part is Part.CONTENT and block.kind not in _NO_TEXT] or said
    return "\n".join([title, *said] if title else said)
