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
_digest = xxhash.xxh3_64_intdigest


class PathFacts(NamedTuple):
    """A path read once."""

    key: int  # 64-bit digest; digits folded, so that `post-17` and `post-18` are one
    shape: int  # digest of the elements' names alone
    containers: tuple[int, ...]  # digests of the path and of those above it, innermost first
    words: tuple[tuple[str, ...], ...]  # per element, innermost first: its name, and the words of its id and classes
    folded: str  # the path without digits
    names: str  # of its elements


class _Step(NamedTuple):
    folded: str
    name: str  # of the element
    words: tuple[str, ...]  # as in PathFacts


@lru_cache(maxsize=_CACHED)
def facts(path: str) -> PathFacts:
    """What a path tells, as in `Block.path`. A step is added to what the path above it tells: `document.blocks` keeps paths below 500 steps."""
    head, slash, last = path.rpartition("/")
    step = _step(last)
    if slash:
        above = facts(head)
        folded, names = f"{above.folded}/{step.folded}", f"{above.names}/{step.name}"
        containers, words = above.containers[: DEEPEST - 1], above.words[: DEEPEST - 1]
    else:
        folded, names, containers, words = step.folded, step.name, (), ()
    key, shape = _digest(folded.encode("utf-8", "surrogatepass")), _digest(names.encode("utf-8", "surrogatepass"))
    return PathFacts(key, shape, (key, *containers), (step.words, *words), folded, names)


@lru_cache(maxsize=_CACHED)  # most paths are new by their last step only, as where each section has an id of its own
def _step(step: str) -> _Step:
    folded = _DIGITS.sub("0", step)
    name = _NAMES.sub("", folded)
    named = {word.lower() for word in _WORDS.findall(folded[len(name) :]) if len(word) > 2}
    return _Step(folded, name, ("<" + name, *sorted(named)))
