"""What is compared of pages that may tell one story: their own text's shingles and rare words, their titles without the site's name?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import xxhash
from numpy.typing import NDArray

from periplus.analyse.nearness import Hashes, shingles
from periplus.document.digest import without_marks
from periplus.model.page import Block, BlockKind, Part, Position
from periplus.model.story import PageDate
from periplus.model.web import SiteKey, Url

TEMPLATE_PAGES = 8  # of a site with fewer pages nothing is known to be its template, but by its landmarks
TEMPLATE_SHARE = 0.4  # of a site's pages: a block on so many is the site's own
WORDS_MOST = 2_000  # of one page that are compared: an article has some hundreds
_MENUS = frozenset({Position.NAV, Position.HEADER, Position.FOOTER})
_APART = frozenset({BlockKind.TITLE, BlockKind.ALT})
_WORDS = re.compile(r"[^\W_]{2,}")
_PARTING = re.compile(r"\s+(?:[|·•»«:]+|[-\u2013\u2014]+|::)\s+")


@dataclass(frozen=True, slots=True)
class Article:
    """A page that may be part of a story."""

    url: Url
    site: SiteKey
    title: str  # as the page has it
    language: str
    date: PageDate
    first_seen: float
    shingles: Hashes  # of its own text, ascending
    words: Hashes  # of its title and text, ascending
    counts: NDArray[np.int32]  # how often each word stands there


def own_texts(pages: Sequence[tuple[tuple[Block, ...], Sequence[Part] | None]]) -> list[tuple[str, ...]]:
    """Of each of a site's pages, the blocks that are its own: marked as content where marks are known, in no menu, not on many of the pages."""
    kept = []
    for blocks, parts in pages:
        marks = parts if parts is not None and len(parts) == len(blocks) else None
        own = [
            block.text
            for place, block in enumerate(blocks)
            if block.kind not in _APART and block.position not in _MENUS and (marks is None or marks[place] is Part.CONTENT)
        ]
        kept.append(own)
    if len(kept) < TEMPLATE_PAGES:
        return [tuple(own) for own in kept]
    on_pages = Counter(text for own in kept for text in set(own))
    return [tuple(text for text in own if on_pages[text] < TEMPLATE_SHARE * len(kept)) for own in kept]


def own_titles(titles: Sequence[str]) -> list[str]:
    """A site's titles without the site's name: the last or first part, where two pages or more have the same one."""
    split = [_PARTING.split(title) for title in titles]
    last = Counter(parts[-1] for parts in split if len(parts) > 1)
    first = Counter(parts[0] for parts in split if len(parts) > 1)
    made = []
    for title, parts in zip(titles, split, strict=True):
        if len(parts) > 1 and last[parts[-1]] > 1:
            made.append(title[: title.rindex(parts[-1])].rstrip(" |·•»«:-\u2013\u2014"))
        elif len(parts) > 1 and first[parts[0]] > 1:
            made.append(title[len(parts[0]) :].lstrip(" |·•»«:-\u2013\u2014"))
        else:
            made.append(title)
    return made


def shingles_of(texts: Iterable[str]) -> Hashes:
    """Runs of five words of the own text."""
    return shingles("\n".join(texts))


def words_of(title: str, texts: Iterable[str]) -> tuple[Hashes, NDArray[np.int32]]:
    """(the words, how often each stands there): lower case, no diacritics, at least two letters or digits."""
    found = _WORDS.findall(without_marks(" ".join((title, title, *texts))))[:WORDS_MOST]
    words, counts = np.unique(np.fromiter(map(_hash, found), np.uint64, len(found)), return_counts=True)
    return words, counts.astype(np.int32)


@lru_cache(maxsize=65_536)
def _hash(word: str) -> int:
    return xxhash.xxh3_64_intdigest(word.encode("utf-8", "surrogatepass"))
