"""Counts on how many pages each text stands, and adds up the leaves of trees.

Compiled where there is a C compiler; counting.pxd gives the types.
"""

from __future__ import annotations

from typing import Any


class TextTable:
    """Digests of texts with the number of pages that carry them: open addressing over arrays of a power of two."""

    def __init__(self, digests: memoryview[int], pages: memoryview[int], page: memoryview[int]) -> None:
        """digests: uint64, 0: the place is free; no text has the digest 0. pages: int32. page: int32, the number of the
        page that counted last.
        """
        self.digests = digests
        self.pages = pages
        self.page = page

    def learn(self, page: int, texts: memoryview[int], paths: memoryview[int], new: memoryview[int]) -> int:
        """Counts a page's texts, each once; returns how many digests are in the table that were not.

        page: its number, not that of another one; texts: digests of its blocks; paths: of each block, int64; new: int32
        for each path, to which is added how many of the texts that stand on it first no page had.
        """
        added = 0
        for block in range(len(texts)):
            place = self.find(texts[block])
            if self.digests[place] == 0:
                self.digests[place] = texts[block]
                added += 1
            elif self.page[place] == page:
                continue
            self.page[place] = page
            if self.pages[place] == 0:
                new[paths[block]] += 1
            self.pages[place] += 1
        return added

    def forget(self, page: int, texts: memoryview[int], paths: memoryview[int], gone: memoryview[int]) -> int:
        """Takes back what `learn` counted; returns 0. gone: what `new` is there, of texts that no page has any more."""
        for block in range(len(texts)):
            place = self.find(texts[block])
            if self.pages[place] == 0 or self.page[place] == page:
                continue
            self.page[place] = page
            self.pages[place] -= 1
            if self.pages[place] == 0:
                gone[paths[block]] += 1
        return 0

    def look_up(self, texts: memoryview[int], pages: memoryview[int]) -> int:
        """On how many pages each text stands, as int32; returns 0."""
        for block in range(len(texts)):
            pages[block] = self.pages[self.find(texts[block])]
        return 0

    def find(self, digest: int) -> int:
        """Where the digest is, or may be put. There is a free place always."""
        last = len(self.digests) - 1
        place = digest & last
        while self.digests[place] != 0 and self.digests[place] != digest:
            place = (place + 1) & last
        return place


def add_leaves(nodes: memoryview[int], leaves: memoryview[Any], sums: memoryview[Any]) -> int:
    """Adds to each sum what all trees say, one after the other; returns the number of trees.

    nodes: uint8[trees, n]: at which leaf of each tree each row of a table ends. leaves: float32, those of each tree
    after those of the one before. sums: float32[n].
    """
    trees = len(nodes)
    size = len(leaves) // trees
    for tree in range(trees):
        first = tree * size
        for column in range(len(sums)):
            sums[column] += leaves[first + nodes[tree, column]]
    return trees
