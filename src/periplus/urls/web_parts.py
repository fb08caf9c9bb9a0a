"""Assigns hosts to the collections that share a crawl of the web."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import xxhash

from periplus.errors import UsageError
from periplus.model.web import HostKey
from periplus.urls.hosts import HOST_CACHE_SIZE, registered_domain

MOST_PARTS = 10_000  # each part has a folder or a schema, and exchanges messages with every other part


class WebPart(NamedTuple):
    """Part `number` of `of` collections that share a crawl, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def parse_part(text: str) -> WebPart:
    """Parses `2/4`. Raises UsageError."""
    number, slash, of = text.partition("/")
    if slash and all(word.isascii() and word.isdigit() and len(word) < 6 for word in (number, of)):
        part = WebPart(int(number), int(of))
        if 1 <= part.number <= part.of <= MOST_PARTS:
            return part
    raise UsageError(f"{text!r} is not a part: write 2/4 for the second of four (at most {MOST_PARTS:,})")


@lru_cache(maxsize=HOST_CACHE_SIZE)
def part_of(host: HostKey, parts: int) -> int:
    """The number of the part to which a host belongs, 1 to `parts`.

    By registered domain, so that all hosts of an owner are in the same part: part k has the k-th of equal ranges of
    64-bit hashes (xxh3, seed 0, of the domain in UTF-8). Stored collections depend on this function. Doubling the
    number of parts halves each range.
    """
    domain = registered_domain(host.rpartition(":")[0])
    return (xxhash.xxh3_64_intdigest(domain.encode("utf-8", "surrogatepass")) * parts >> 64) + 1
