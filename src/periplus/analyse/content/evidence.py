"""What is known of a site from its pages so far: which texts and which paths come again?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from periplus.analyse.content.paths import facts
from periplus.model.page import Block, BlockKind

TEXTS_KEPT = 65_536  # texts of a site that are counted, 12 bytes each when stored; then those seen once are forgotten
PATHS_KEPT = 8_192
_FORMAT = b"SE1\n"
_DIGITS = re.compile(r"\d+")

Floats = npt.NDArray[np.float32]


class Seen(NamedTuple):
    """What a site's evidence says of each block of a page, the page itself left out. Arrays of one length."""

    text_pages: Floats  # other pages that carry this text in elements of the same names
    path_pages: Floats  # other pages that have this path
    path_blocks: Floats  # blocks with this path on other pages
    path_texts: Floats  # distinct texts among them
    pages: int  # other pages known


class Traces(NamedTuple):
    """What evidence counts of a page: for each block the digest of its text and the key of its path."""

    digests: list[int]
    keys: list[int]


def traces_of(blocks: Sequence[Block]) -> Traces:
    """To be taken once of a page that is both learnt and judged: a tenth of the work of both."""
    return Traces(digests_of(blocks), [facts(block.path).key for block in blocks])


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
        digests, keys = traces or traces_of(blocks)
        self.pages += 1
        texts, paths = self._texts, self._paths
        new = set()
        for digest in set(digests):
            count = texts.get(digest, 0)
            if not count:
                new.add(digest)
            texts[digest] = count + 1
        for key in set(keys):
            paths.setdefault(key, [0, 0, 0])[0] += 1
        for digest, key in zip(digests, keys, strict=True):
            row = paths[key]
            row[1] += 1
            if digest in new:
                new.discard(digest)
                row[2] += 1
        if len(texts) > TEXTS_KEPT:
            self._texts = _most_common(texts, TEXTS_KEPT // 2)
        if len(paths) > PATHS_KEPT:
            self._paths = _most_paged(paths, PATHS_KEPT // 2)

    def forget(self, blocks: Sequence[Block]) -> None:
        """Take back a page that was learnt."""
        digests, keys = traces_of(blocks)
        self.pages = max(self.pages - 1, 0)
        gone = set()
        for digest in set(digests):
            count = self._texts.get(digest, 0)
            if count > 1:
                self._texts[digest] = count - 1
            elif count:
                del self._texts[digest]
                gone.add(digest)
        once = set(keys)
        for digest, key in zip(digests, keys, strict=True):
            row = self._paths.get(key, [0, 0, 0])
            taken = (key in once, 1, digest in gone)
            once.discard(key)
            gone.discard(digest)
            row[:] = [max(count - less, 0) for count, less in zip(row, taken, strict=True)]
        for key in set(keys):
            if not self._paths.get(key, [1])[0]:
                del self._paths[key]

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
        digests, keys = traces or traces_of(blocks)
        own = int(counted)
        pages = [self._texts.get(digest, 0) - own for digest in digests]
        times, alone = dict.fromkeys(keys, 0), dict.fromkeys(keys, 0)
        for key, others in zip(keys, pages, strict=True):
            times[key] += own
            if others <= 0:
                alone[key] += own
        none = (0, 0, 0)
        rows = {key: _without(self._paths.get(key, none), (own, times[key], alone[key])) for key in times}
        known = np.array([rows[key] for key in keys], dtype=np.float32).reshape(-1, 3)
        return Seen(np.maximum(np.array(pages, dtype=np.float32), 0), known[:, 0], known[:, 1], known[:, 2], max(self.pages - own, 0))


def _without(row: Sequence[int], less: tuple[int, int, int]) -> tuple[int, int, int]:
    return max(row[0] - less[0], 0), max(row[1] - less[1], 0), max(row[2] - less[2], 0)


def digests_of(blocks: Sequence[Block]) -> list[int]:
    """64 bits for each block: of its text with digits and case folded, and of the names of the elements around it."""
    texts = [block.text.replace("\n", " ") if block.kind is BlockKind.CODE else block.text for block in blocks]
    folded = _DIGITS.sub("0", "\n".join(texts).lower()).encode("utf-8", "surrogatepass").split(b"\n")
    digest = xxhash.xxh3_64_intdigest
    return [digest(text, facts(block.path).shape) for text, block in zip(folded, blocks, strict=False)]


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
