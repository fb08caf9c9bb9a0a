"""What does a block's path tell: in which containers it stands, and which words name them?"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import xxhash

_CACHED = 16_384  # paths: those of some hundred sites, 2 kB each
DEEPEST = 24  # containers of a block that are looked at, the innermost first; real pages nest 5 to 20 deep
_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]{2,}")
_NAMES = re.compile(r"[#.].*")


class PathFacts(NamedTuple):
    """A path read once."""

    key: int  # 64-bit digest; digits folded, so that `post-17` and `post-18` are one
    shape: int  # digest of the elements' names alone
    containers: tuple[int, ...]  # digests of the path and of those above it, innermost first
    words: tuple[tuple[str, ...], ...]  # per element, innermost first: its name, and the words of its id and classes
    depth: int


@lru_cache(maxsize=_CACHED)
def facts(path: str) -> PathFacts:
    """What a path tells, as in `Block.path`."""
    folded = _DIGITS.sub("0", path)
    steps = folded.split("/")
    read = list(map(_step, steps))
    digest = xxhash.xxh3_64_intdigest
    encoded, containers = folded.encode("utf-8", "surrogatepass"), []
    for _ in steps[-DEEPEST:]:
        containers.append(digest(encoded))
        encoded = encoded[: encoded.rfind(b"/")]
    shape = digest("/".join([name for name, _ in read]).encode("utf-8", "surrogatepass"))
    return PathFacts(containers[0], shape, tuple(containers), tuple([words for _, words in read[: -DEEPEST - 1 : -1]]), len(steps))


@lru_cache(maxsize=_CACHED)  # most paths are new by their last step only, as where each section has an id of its own
def _step(step: str) -> tuple[str, tuple[str, ...]]:
    """(the element's name, the words of `PathFacts.words`)."""
    name = _NAMES.sub("", step)
    named = {word.lower() for word in _WORDS.findall(step[len(name) :]) if len(word) > 2}
    return name, ("<" + name, *sorted(named))
