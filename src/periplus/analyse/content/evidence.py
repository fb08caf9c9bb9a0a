"""What is known of a site from its pages so far: which texts and which paths come again?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from periplus.analyse.content.paths import PathFacts, facts
from periplus.model.page import Block

TEXTS_KEPT = 65_536  # texts of a site that are counted, 12 bytes each when stored; then those seen once are forgotten
PATHS_KEPT = 8_192
_FORMAT = b"SE1\n"
_DIGITS = re.compile(r"\d+")

_ZEROS = re.compile(rb"00+")
_ZERO_FOR_DIGIT = bytes.maketrans(b"123456789", b"000000000")

Floats = npt.NDArray[np.float32]


class Traces(NamedTuple):
    """A page read once: what evidence counts of it, and what measures need too."""

    digests: list[int]  # of each block: 64 bits of its text, digits and case folded, and of the names of the elements around it
    lowered: list[str]  # of each block: its text in small letters, on one line
    path: list[int]  # of each block: which one of paths is its own
    paths: list[PathFacts]  # those that differ in more than digits


class Seen(NamedTuple):
    """What a site's evidence says of a page, the page itself left out."""

    text_pages: Floats  # for each block: other pages that carry this text in elements of the same names
    path_pages: Floats  # for each of the page's paths: other pages that have it
    path_blocks: Floats  # blocks with this path on other pages
    path_texts: Floats  # distinct texts among them
    pages: Floats  # one number: other pages known


def traces_of(blocks: Sequence[Block]) -> Traces:
    """To be taken once of a page that is both learnt and judged."""
    numbers: dict[int, int] = {}  # by key
    found: dict[str, int] = {}
    paths: list[PathFacts] = []
    names = [block.path for block in blocks]
    for path in dict.fromkeys(names):
        told = facts(path)
        found[path] = number = numbers.setdefault(told.key, len(numbers))
        if number == len(paths):
            paths.append(told)
    path_of = [found[path] for path in names]
    lowered = [block.text.replace("\n", " ").lower() for block in blocks]
    digest, shapes = xxhash.xxh3_64_intdigest, [path.shape for path in paths]
    digests = [digest(text, shapes[path]) for text, path in zip(_folded(lowered), path_of, strict=True)] if blocks else []
    return Traces(digests, lowered, path_of, paths)


def _folded(lowered: Sequence[str]) -> list[bytes]:
    """Texts in small letters with each number as 0. What is not ASCII may hold other digits; the rest is folded as bytes, in a quarter of the time."""
    lines = "\n".join([text if text.isascii() else _DIGITS.sub("0", text) for text in lowered])
    return _ZEROS.sub(b"0", lines.encode("utf-8", "surrogatepass").translate(_ZERO_FOR_DIGIT)).split(b"\n")


class SiteEvidence:
    """Counts of 64-bit digests over a site's pages; the same pages give the same counts in any order, but for texts that stand on two paths.

    Learn each page once; before a page is learnt in a new version, forget the old one. Memory is bounded: beyond TEXTS_KEPT the rarest
    texts are forgotten, and what is on every page comes back at once.
    """

    def __init__(self) -> None:
        self.pages = 0
        self._texts: dict[int, int] = {}  # pages
        self._paths: dict[int, list[int]] = {}  # pages, blocks, distinct texts

    def learn(self, blocks: Sequence[Block], traces: Traces | None = None) -> None:
        """Count a page that is not yet counted. traces: its `traces_of`, where they are at hand."""
        traces = traces or traces_of(blocks)
        self.pages += 1
        texts, new = self._texts, [0] * len(traces.paths)
        for digest, path in _first_paths(traces).items():
            count = texts.get(digest, 0)
            texts[digest] = count + 1
            if not count:
                new[path] += 1
        blocks_on = Counter(traces.path)
        for number, facts_of_path in enumerate(traces.paths):
            row = self._paths.setdefault(facts_of_path.key, [0, 0, 0])
            row[:] = row[0] + 1, row[1] + blocks_on[number], row[2] + new[number]
        if len(texts) > TEXTS_KEPT:
            self._texts = _most_common(texts, TEXTS_KEPT // 2)
        if len(self._paths) > PATHS_KEPT:
            self._paths = _most_paged(self._paths, PATHS_KEPT // 2)

    def forget(self, blocks: Sequence[Block]) -> None:
        """Take back a page that was learnt."""
        traces = traces_of(blocks)
        self.pages = max(self.pages - 1, 0)
        gone = [0] * len(traces.paths)
        for digest, path in _first_paths(traces).items():
            count = self._texts.get(digest, 0)
            if count > 1:
                self._texts[digest] = count - 1
            elif count:
                del self._texts[digest]
                gone[path] += 1
        blocks_on = Counter(traces.path)
        for number, facts_of_path in enumerate(traces.paths):
            row = self._paths.get(facts_of_path.key)
            if row is not None:
                row[:] = [max(count - less, 0) for count, less in zip(row, (1, blocks_on[number], gone[number]), strict=True)]
                if not row[0]:
                    del self._paths[facts_of_path.key]

    def to_bytes(self) -> bytes:
        """For a store: 12 bytes a text, 20 a path."""
        head = np.array([self.pages, len(self._texts), len(self._paths)], dtype="<u8")
        keys = np.array([*self._texts, *self._paths], dtype="<u8")
        counts = np.array([*self._texts.values(), *(count for row in self._paths.values() for count in row)], dtype="<u4")
        return _FORMAT + head.tobytes() + keys.tobytes() + counts.tobytes()

    @classmethod
    def from_bytes(cls, stored: bytes) -> SiteEvidence:
        """What to_bytes gave. Raises ValueError for anything else."""
        body = stored[len(_FORMAT) :]
        if stored[: len(_FORMAT)] != _FORMAT or len(body) < 24:
            raise ValueError("these are not the bytes of a site's evidence; learn the site's pages anew")
        pages, texts, paths = np.frombuffer(body[:24], dtype="<u8").tolist()
        if len(body) != 24 + 12 * texts + 20 * paths:
            raise ValueError("a site's evidence was cut off; learn the site's pages anew")
        keys = np.frombuffer(body, dtype="<u8", count=texts + paths, offset=24).tolist()
        counts = np.frombuffer(body, dtype="<u4", offset=24 + 8 * (texts + paths)).tolist()
        evidence = cls()
        evidence.pages = pages
        evidence._texts = dict(zip(keys[:texts], counts[:texts], strict=True))
        evidence._paths = {key: counts[texts + 3 * at : texts + 3 * at + 3] for at, key in enumerate(keys[texts:])}
        return evidence

    def seen(self, blocks: Sequence[Block], traces: Traces | None = None, *, counted: bool) -> Seen:
        """What other pages tell of these blocks. counted: whether this page has been learnt itself."""
        traces = traces or traces_of(blocks)
        own, size, none = int(counted), len(traces.paths), (0, 0, 0)
        times = self._texts.get
        others = np.array([times(digest, 0) for digest in traces.digests], dtype=np.float32) - own
        path = np.array(traces.path, dtype=np.intp)
        alone = np.bincount(path[others <= 0], minlength=size)
        known = np.array([self._paths.get(one.key, none) for one in traces.paths], dtype=np.float32).reshape(-1, 3)
        pages, blocks_on, texts = np.maximum(known.T - own * np.array([np.ones(size), np.bincount(path, minlength=size), alone], dtype=np.float32), 0)
        return Seen(np.maximum(others, 0), pages, blocks_on, texts, np.array([max(self.pages - own, 0)], dtype=np.float32))


def joined(seen: Sequence[Seen]) -> Seen:
    """What is known of several pages, one after the other."""
    return seen[0] if len(seen) == 1 else Seen(*map(np.concatenate, zip(*seen, strict=True)))


def _first_paths(traces: Traces) -> dict[int, int]:
    """For each digest of a page the path on which it stands first."""
    return dict(zip(reversed(traces.digests), reversed(traces.path), strict=True))


def _most_common(texts: dict[int, int], most: int) -> dict[int, int]:
    least = 1
    while len(texts) > most:
        texts = {digest: count for digest, count in texts.items() if count > least}
        least *= 2
    return texts


def _most_paged(paths: dict[int, list[int]], most: int) -> dict[int, list[int]]:
    least = 1
    while len(paths) > most:
        paths = {key: row for key, row in paths.items() if row[0] > least}
        least *= 2
    return paths
