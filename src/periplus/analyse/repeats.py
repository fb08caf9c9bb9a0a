"""Which of a few pages nearly repeat an earlier one, block by block?

For pages that are shown together, where a millisecond counts: `analyse.nearness` compares runs of words instead, in any number of pages.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

CHARS_LEAST = 200  # of content; of fewer, a sentence or two being alike says nothing


def repeated(contents: Sequence[Collection[str]], threshold: float) -> list[int]:
    """Of each page the place of the earlier one that it nearly repeats, else its own.

    contents: blocks of each. Two are alike as the characters of the blocks that both have, of all that either has; each block counts once.
    """
    found: list[int] = []
    sizes: list[int] = []
    heads: defaultdict[str, list[int]] = defaultdict(list)  # of a block: the pages that have it and repeat no other
    for place, content in enumerate(contents):
        own = set(content)
        size = sum(map(len, own))
        shared: Counter[int] = Counter()
        for block in own:
            for head in heads.get(block, ()):
                shared[head] += len(block)
        alike = {head: chars / (size + sizes[head] - chars) for head, chars in shared.items()}
        best = max(alike, key=lambda head: (alike[head], -head), default=place)
        found.append(best if size >= CHARS_LEAST and alike.get(best, 0.0) >= threshold else place)
        sizes.append(size)
        if found[-1] == place:
            for block in own:
                heads[block].append(place)
    return found
