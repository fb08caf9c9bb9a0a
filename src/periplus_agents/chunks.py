"""Cuts a page's Markdown into chunks of at most so many words, by its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from periplus.values import frozen

_HEADING = re.compile(r"(#{1,6}) (.*)")
# the end of a sentence: its sign, what closes behind it, and a blank; full stops of East Asia need no blank
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’»)\]*_]*\s+(?=[^\s\d]|\d+\s)|(?<=[。！？])")
_WORD = re.compile(r"\S+")
_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@frozen
class Chunk:
    """A part of a page. headings: those above it, outermost first; first, last: the pieces that it is of, from 0."""

    headings: tuple[str, ...]
    text: str
    words: int
    first: int
    last: int


def count_words(text: str) -> int:
    """Words between blanks; two characters of a script without blanks count as one word."""
    return len(_WORD.findall(text)) + len(_EAST_ASIAN.findall(text)) // 2


def chunks(pieces: Sequence[str], most: int) -> Iterator[Chunk]:
    """Chunks of at most `most` words, each of one section: its heading and what follows that, or a part of it.

    pieces: of a page's Markdown, in order. A paragraph, list, table or code is cut where it alone is too long: between
    sentences, items, rows or lines; between words where one of these is too long.
    """
    headings: dict[int, str] = {}
    held: list[tuple[int, str]] = []
    for place, piece in enumerate(pieces):
        if (mark := _HEADING.fullmatch(piece)) is None:
            held += [(place, part) for part in parts(piece, most)]
            continue
        level = len(mark[1])
        if any(not _HEADING.fullmatch(text) for _, text in held):
            yield from _fill_chunks(tuple(headings.values()), held, most)
            held = []
        headings = {above: text for above, text in headings.items() if above < level} | {level: mark[2]}
        held.append((place, piece))
    yield from _fill_chunks(tuple(headings.values()), held, most)


def _fill_chunks(headings: tuple[str, ...], held: Sequence[tuple[int, str]], most: int) -> Iterator[Chunk]:
    """One section in as few chunks as its parts make, in their order."""
    taken: list[tuple[int, str]] = []
    for place, part in held:
        # counted together: halves of words in scripts without blanks add up
        if taken and _chunk(headings, [*taken, (place, part)]).words > most:
            yield _chunk(headings, taken)
            taken = []
        taken.append((place, part))
    if taken:
        yield _chunk(headings, taken)


def _chunk(headings: tuple[str, ...], taken: Sequence[tuple[int, str]]) -> Chunk:
    text = "\n\n".join(part for _, part in taken)
    return Chunk(headings, text, count_words(text), taken[0][0], taken[-1][0])


def parts(piece: str, most: int) -> list[str]:
    """The piece, cut where it is too long. Code stays between fences, rows below the head of their table."""
    if count_words(piece) <= most:
        return [piece]
    lines = piece.split("\n")
    if (fence := re.match(r"`{3,}", piece)) is not None:
        return [f"{lines[0]}\n{part}\n{fence[0]}" for part in _join_units(lines[1:-1], "\n", most - 2)]
    if piece.startswith("| ") and len(lines) > 2:
        head = "\n".join(lines[:2])
        return [f"{head}\n{part}" for part in _join_units(lines[2:], "\n", max(1, most - count_words(head)))]
    if re.match(r"- |\d+\. |> ", piece):
        return _join_units(lines, "\n", most)
    return _join_units([text for written in _sentences(piece) if (text := written.strip())], " ", most)


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for end in _SENTENCE.finditer(text):
        yield text[start : end.end()]
        start = end.end()
    yield text[start:]


def _join_units(units: Sequence[str], between: str, most: int) -> list[str]:
    """As many units in a text as it may have words; a unit that alone has more is cut between words."""
    texts: list[str] = []
    words = most + 1
    for unit in (short for long in units for short in _short(long, most)):
        count = count_words(unit)
        if texts and words + count <= most:
            texts[-1] += between + unit
            words += count
        else:
            texts.append(unit)
            words = count
    return [text for text in texts if text.strip()]


def _short(unit: str, most: int) -> Iterator[str]:
    most = max(1, most)
    if count_words(unit) <= most:
        yield unit
        return
    start, words = 0, 0
    for word in _WORD.finditer(unit):
        count = max(1, count_words(word[0]))
        if words and words + count > most:
            yield unit[start : word.start()].rstrip()
            start, words = word.start(), 0
        if count > most:  # one word of a script without blanks
            for place in range(word.start(), word.end(), most):
                yield unit[place : min(place + most, word.end())]
            start, words = word.end(), 0
            continue
        words += count
    if unit[start:].strip():
        yield unit[start:]
