"""What are a page's fragmenters, and which chains of them does it hold?

A fragmenter is a tag, or the text between two tags, white space around it left out; a chain is some consecutive ones, named by the
CRC32 of their bytes and their length. So a run of source text that two pages share is one number that both have, wherever it stands.
Source: Shorkin 2013. What a tag is: a comment, a script's text and a style's text count as one fragmenter each, so that cutting
between fragmenters never leaves half of them; a `>` within a quoted value ends no tag.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Chains = NDArray[np.uint64]  # of each chain the CRC32, then its length in bytes, 32 bits each
Mask = NDArray[np.bool_]

MIN_FRAGMENTERS_CHAIN = 6  # D2: the method's own

_REST = rb"""[^>=]*(?:=\s*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z))?[^>=]*)*(?:>|\Z)"""  # of a tag, after its name has begun; cannot fail, so it is linear
_FRAGMENT = re.compile(
    rb"[^<]+(?:<(?![a-zA-Z/!?])[^<]*)*"  # text; a `<` that begins no tag is text too
    rb"|<!--.*?(?:-->|\Z)"
    rb"|(?i:<(script|style)(?=[\s/>])" + _REST + rb"(.*?)(?:(?=</\1[\s/>])|\Z))"
    rb"|<(?=[a-zA-Z/!?])" + _REST + rb"|<[^<]*",
    re.DOTALL,
)
_TAG_NAME = re.compile(rb"</?([a-zA-Z][a-zA-Z0-9]*)")


@dataclass(frozen=True, slots=True)
class Fragments:
    """A page's source in pieces, in order."""

    source: bytes  # UTF-8
    starts: tuple[int, ...]  # of each piece, white space before it included: the pieces make up the whole source
    parts: tuple[bytes, ...]  # each without the white space around it, none empty
    raw: frozenset[int]  # which parts are the text of a script or a style


def fragments(source: str) -> Fragments:
    """Total and linear: any text has fragmenters, a blank one none."""
    data = source.encode("utf-8", "replace")
    starts: list[int] = []
    parts: list[bytes] = []
    raw: set[int] = set()
    for found in _FRAGMENT.finditer(data):
        begin, end = found.span()
        inner = found.start(2)  # of a script or a style: its text is a fragmenter of its own
        if inner >= 0:
            starts.append(begin)
            parts.append(data[begin:inner])
            begin = inner
        part = data[begin:end].strip()
        if part:
            if inner >= 0:
                raw.add(len(parts))
            starts.append(begin)
            parts.append(part)
    return Fragments(data, tuple(starts), tuple(parts), frozenset(raw))


def chains(pieces: Fragments, length: int = MIN_FRAGMENTERS_CHAIN) -> Chains:
    """Of each chain of so many consecutive fragmenters, in order: CRC32 of their bytes, and how many bytes. Shorter pages have none."""
    ends = list(accumulate(map(len, pieces.parts), initial=0))
    if len(ends) <= length:
        return np.zeros(0, np.uint64)
    joined = memoryview(b"".join(pieces.parts))
    spans = zip(ends, ends[length:], strict=False)
    return np.fromiter((crc32(joined[begin:end]) << 32 | end - begin for begin, end in spans), np.uint64, len(ends) - length)


def lengths(found: Chains) -> NDArray[np.int64]:
    """Of each chain, in bytes."""
    return (found & np.uint64(0xFFFFFFFF)).astype(np.int64)


def covered(sequence: Chains, wanted: Chains, length: int = MIN_FRAGMENTERS_CHAIN) -> Mask:
    """Which fragmenters lie in a wanted chain. sequence: `chains` of a page. wanted: ascending."""
    parts = len(sequence) + length - 1 if len(sequence) else 0
    steps = np.zeros(parts + 1, np.int64)
    begins = np.flatnonzero(_among(sequence, wanted))
    np.add.at(steps, begins, 1)
    np.add.at(steps, begins + length, -1)
    return np.cumsum(steps)[:parts] > 0


def _among(values: Chains, wanted: Chains) -> Mask:
    if not len(wanted):
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)
    found: Mask = wanted[places] == values
    return found


def source_left(pieces: Fragments, gone: Mask) -> str:
    """The page's source without the fragmenters marked; a script's or a style's text goes and stays with its tag. gone: one a fragmenter, or none at all."""
    marks = gone.tolist() or [False] * len(pieces.parts)
    bounds = (*pieces.starts, len(pieces.source))
    kept = [pieces.source[bounds[at] : bounds[at + 1]] for at in range(len(pieces.parts)) if not marks[at - 1 if at in pieces.raw else at]]
    return b"".join(kept).decode()


def is_tag(part: bytes) -> bool:
    """Whether a fragmenter is a tag (or comment, doctype, processing instruction) and not text."""
    return (part[:1] == b"<" and part[1:2].isalpha()) or part[:2] in (b"</", b"<!", b"<?")


def tag_name(part: bytes) -> bytes:
    """In lower case; empty where it has none."""
    found = _TAG_NAME.match(part)
    return found[1].lower() if found else b""
