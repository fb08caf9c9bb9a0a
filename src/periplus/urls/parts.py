"""Which collection crawls a host, of those that share a web."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import xxhash

from periplus.errors import UsageError
from periplus.model.web import HostKey
from periplus.urls.hosts import HOSTS_REMEMBERED, registered_domain

MOST_PARTS = 10_000  # each has a folder or a schema, and a line to each other one


class WebPart(NamedTuple):
    """WebPart `number` of the `of` collections that share a web, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def others(self) -> list[int]:
        return [number for number in range(1, self.of + 1) if number != self.number]


def part_named(text: str) -> WebPart:
    """`2/4` as a part. Raises UsageError."""
    number, slash, of = text.partition("/")
    if slash and all(word.isascii() and word.isdigit() and len(word) < 6 for word in (number, of)):
        part = WebPart(int(number), int(of))
        if 1 <= part.number <= part.of <= MOST_PARTS:
            return part
    raise UsageError(f"{text!r} is no part: write 2/4 for the second of four (at most {MOST_PARTS:,})")


@lru_cache(maxsize=HOSTS_REMEMBERED)
def part_of(host: HostKey, parts: int) -> int:
    """The number of the part whose host this is, 1 to `parts`.

    By its registered domain, so that all of an owner's hosts lie together: part k has the k-th of equal ranges of
    64-bit hashes, xxh3 with seed 0 of the domain in UTF-8. Collections on disk were divided by it. With twice as many
    parts each range is halved.
    """
    domain = registered_domain(host.rpartition(":")[0])
    return (xxhash.xxh3_64_intdigest(domain.encode("utf-8", "surrogatepass")) * parts >> 64) + 1
