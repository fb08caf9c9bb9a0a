"""Renders the fragments of a page as visible text, block by block, with navigation and content marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import unescape

from periplus.analyse.shorkin import Fragments, is_tag, tag_name
from periplus.model.arrays import Mask
from periplus.model.duplicates import MarkedBlock, TextRun
from periplus.model.page import BlockKind, Part

# Inline elements: text before and after them is one word unless there is white space. HTML Living Standard, 4.5
# (text-level)
_INLINE = frozenset(
    (
        b"a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q s samp small span strike "
        b"strong sub sup time tt u var wbr"
    ).split()
)
_KINDS = {
    **dict.fromkeys((b"h1", b"h2", b"h3", b"h4", b"h5", b"h6"), BlockKind.HEADING),
    **dict.fromkeys((b"li", b"dt", b"dd"), BlockKind.ITEM),
    **dict.fromkeys((b"td", b"th"), BlockKind.CELL),
    **dict.fromkeys((b"caption", b"figcaption"), BlockKind.CAPTION),
    **dict.fromkeys((b"pre", b"textarea"), BlockKind.CODE),
}


def marked_blocks(pieces: Fragments, navigation: Mask) -> Iterator[MarkedBlock]:
    """The page's visible text in order.

    A block-level tag ends a block and determines the kind of the next.

    navigation: one flag per fragment, or empty if the page has fewer fragments than a chain. The title is not part of
    the text.
    """
    marks = navigation.tolist() or [False] * len(pieces.parts)
    bounds = (*pieces.starts, len(pieces.source))
    runs: list[tuple[str, Part]] = []
    kind, level, in_title = BlockKind.PARAGRAPH, 0, False
    for at, part in enumerate(pieces.parts):
        if not is_tag(part):
            if not in_title and at not in pieces.raw:
                text = unescape(pieces.source[bounds[at] : bounds[at + 1]].decode())
                runs.append((text, Part.NAVIGATION if marks[at] else Part.CONTENT))
            continue
        name = tag_name(part)
        if not name or name in _INLINE:
            runs.append(
                (" ", runs[-1][1])
                if runs and pieces.source[bounds[at] + len(part) : bounds[at + 1]]
                else ("", Part.CONTENT)
            )
            continue
        yield from _block(runs, kind, level)
        runs = []
        opens = not part.startswith(b"</")
        in_title = opens if name == b"title" else in_title
        kind = _KINDS.get(name, BlockKind.PARAGRAPH) if opens else BlockKind.PARAGRAPH
        level = int(name[1:]) if kind is BlockKind.HEADING else 0
    yield from _block(runs, kind, level)


def _block(runs: Iterable[tuple[str, Part]], kind: BlockKind, level: int) -> Iterator[MarkedBlock]:
    """Joins runs of the same part and folds white space (except in code); yields nothing for a blank block."""
    joined: list[tuple[str, Part]] = []
    for text, part in runs:
        if joined and (joined[-1][1] is part or not text.strip()):
            joined[-1] = (joined[-1][0] + text, joined[-1][1])
        elif text:
            joined.append((text, part))
    folded = tuple(TextRun(_fold_block(text, kind), part) for text, part in joined)
    if any(run.text.strip() for run in folded):
        yield MarkedBlock(kind, level, folded)


def _fold_block(text: str, kind: BlockKind) -> str:
    if kind is BlockKind.CODE:
        return text
    words = " ".join(text.split())
    return f"{' ' if text[:1].isspace() else ''}{words}{' ' if text[-1:].isspace() and words else ''}"


def text_of(blocks: Iterable[MarkedBlock], part: Part = Part.CONTENT) -> str:
    """The text of one part, one line per block."""
    lines = (_line(block, part) for block in blocks)
    return "\n".join(line for line in lines if line)


def _line(block: MarkedBlock, part: Part) -> str:
    text = "".join(run.text if run.part is part else " " for run in block.runs)
    return text.strip("\n") if block.kind is BlockKind.CODE and text.strip() else " ".join(text.split())
