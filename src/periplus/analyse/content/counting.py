"""Counts the pages with each text, and sums the leaves of trees.

Compiled if there is a C compiler; counting.pxd gives the types.
"""

from __future__ import annotations

from typing import Any


class TextTable:
    """Hash table from text digests to the number of pages with the text: open addressing, size a power of two."""

    def __init__(self, digests: memoryview[int], pages: memoryview[int], page: memoryview[int]) -> None:
        """digests: uint64, 0 = free slot; no text has the digest 0.

        pages: int32. page: int32, number of the last page that was counted in the slot.
        """
        self.digests = digests
        self.pages = pages
        self.page = page

    def learn(self, page: int, texts: memoryview[int], paths: memoryview[int], new: memoryview[int]) -> int:
        """Counts a page's texts, each once; returns the number of digests added to the table.

        page: its unique number. texts: digests of its blocks. paths: path of each block, int64. new: int32 per path;
        incremented for each text that no page had before, at the path of its first block.
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
        """Reverts `learn`; returns 0. gone: int32 per path; incremented for each text that no page has any more."""
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
        """Writes the number of pages with each text to pages (int32); returns 0."""
        for block in range(len(texts)):
            pages[block] = self.pages[self.find(texts[block])]
        return 0

    def find(self, digest: int) -> int:
        """Slot of the digest, or the free slot for it. There is always a free slot."""
        last = len(self.digests) - 1
        place = digest & last
        while self.digests[place] != 0 and self.digests[place] != digest:
            place = (place + 1) & last
        return place


def add_leaves(nodes: memoryview[int], leaves: memoryview[Any], sums: memoryview[Any]) -> int:
    """Adds to each sum the values of all trees, in order; returns the number of trees.

    nodes: uint8[trees, n]: leaf of each tree that each row reaches. leaves: float32, tree by tree. sums: float32[n].
    """
    trees = len(nodes)
    size = len(leaves) // trees
    for tree in range(trees):
        first = tree * size
        for column in range(len(sums)):
            sums[column] += leaves[first + nodes[tree, column]]
    return trees
