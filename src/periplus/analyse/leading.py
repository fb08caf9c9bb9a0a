"""With which sentence does a page's content begin?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from periplus.document.digest import without_marks
from periplus.model.page import Block, BlockKind, Part

LEAST_CHARS = 60  # of a paragraph: shorter ones are by-lines and dates
ENOUGH_CHARS = 90  # a sentence that is shorter is joined by the next
MOST_CHARS = 260  # three lines in a column of a portal
LINKS_MOST = 0.5  # of a paragraph's signs: beyond, it is a list of links
_ENDS = re.compile(r"[.!?…。！？][\"'”’»)\]]*(?=\s|$)|[。！？]")  # Chinese and Japanese have no blank after a sentence


def leading_sentence(blocks: Sequence[Block], parts: Sequence[Part] | None, title: str = "") -> str:
    """The beginning of the first running text of the content: a sentence, or some that are short; cut at a word where it is too long.

    parts: one for each block; None: all is content. title: that is not to be said twice. Empty: there is no such text.
    """
    marked = parts if parts is not None and len(parts) == len(blocks) else [Part.CONTENT] * len(blocks)
    said = without_marks(title)
    for block, part in zip(blocks, marked, strict=True):
        is_text = block.kind is BlockKind.PARAGRAPH and part is Part.CONTENT and len(block.text) >= LEAST_CHARS
        if is_text and block.link_chars <= LINKS_MOST * len(block.text) and without_marks(block.text) != said:
            return _beginning(block.text[: 2 * MOST_CHARS])
    return ""


def _beginning(text: str) -> str:
    """One sentence or a few, at most MOST_CHARS."""
    end = 0
    for found in _ends(text):
        if found > MOST_CHARS:
            break
        end = found
        if end >= ENOUGH_CHARS:
            break
    if end:
        return text[:end]
    if len(text) <= MOST_CHARS:
        return text
    room = text[:MOST_CHARS]
    return room[: room.rfind(" ")].rstrip(" ,;:–—-") + "…" if " " in room else room + "…"


def _ends(text: str) -> list[int]:
    """Where sentences end: at their marks before what does not go on in small letters; not after one letter (`J. Smith`)."""
    ends = []
    for found in _ENDS.finditer(text):
        follows = text[found.end() :].lstrip()[:1]
        initial = re.search(r"(?:^|\s)\w$", text[: found.start()]) is not None and found[0] == "."
        if not follows.islower() and not initial:
            ends.append(found.end())
    return ends
