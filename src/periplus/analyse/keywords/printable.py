"""Tells keywords that an editor would print from days, months, counts and the words of a page's frame."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from periplus.analyse.keywords.reading import function_words
from periplus.document.dates import months
from periplus.document.words import folded, plain

# words of a keyword that is not a name, and of one with function words within: longer ones are pieces of sentences
WORDS_MOST, WORDS_BOUND = 4, 3
FRAME_SHARE = 0.5  # of the pages of a site: a text that stands on so many of them is no part of a story
FRAME_PAGES = 3  # of fewer none can be told from their frame
_WORD = re.compile(r"\w+")
_SHORT_MONTHS = ("may", "mai", "maj", "май")  # other forms of three letters are words of their own: led, sie, lip


class _Words(NamedTuple):
    """Forms of a language, in lower case and without diacritics."""

    empty: frozenset[str]  # days, months, times, words of a page's frame; with function words
    numbers: frozenset[str]
    headings: frozenset[str]  # words that name the parts of any document: chapter, figure


@cache
def _words(language: str) -> _Words:
    """Of a language without a list: English ones."""
    stored = json.loads((files("periplus.analyse.keywords") / "unprintable_words.json").read_text(encoding="utf-8"))
    lists = stored.get(language, stored["en"])
    of_months = {form for form in months() if len(form) > 3 or form in _SHORT_MONTHS}
    empty = _forms(lists["frame"]) | of_months | {folded(word) for word in function_words(language)}
    return _Words(frozenset(empty), frozenset(_forms(lists["numbers"])), frozenset(_forms(lists["headings"])))


def _forms(text: str) -> set[str]:
    return set(_WORD.findall(folded(plain(text))))


def is_printable(keyword: str, language: str) -> bool:
    """Whether a keyword says something by itself.

    language: BCP 47 primary tag. No: what holds only days, months, times and words of a page's frame ("Tuesday
    morning", "read more"); counts ("forty crowns"), unless each word begins with a capital ("Four Seasons"); more
    than WORDS_MOST words (WORDS_BOUND where one is a function word), with the same exception.
    """
    written = _WORD.findall(keyword)
    forms = [folded(plain(word)) for word in written]
    words = _words(language)
    if all(form in words.empty or form in words.numbers or form.isdigit() or len(form) < 2 for form in forms):
        return False
    if is_name(keyword, language):
        return True
    bound = not function_words(language).isdisjoint(forms)
    return len(forms) <= (WORDS_BOUND if bound else WORDS_MOST) and words.numbers.isdisjoint(forms)


def is_heading(keyword: str, language: str) -> bool:
    """Whether it only names a part of a document, as any has: "Chapter", "Figure 3"."""
    headings = _words(language).headings
    return all(form in headings or form.isdigit() for form in _forms(keyword))


def is_name(keyword: str, language: str) -> bool:
    """Whether it is of several words, each of which begins with a capital or is a function word."""
    written, binding = _WORD.findall(keyword), function_words(language)
    return len(written) > 1 and all(word[0].isupper() or folded(plain(word)) in binding for word in written)


def frame_texts(pages: Sequence[Iterable[str]]) -> frozenset[str]:
    """Texts of blocks that stand on FRAME_SHARE of a site's pages; none of fewer than FRAME_PAGES."""
    if len(pages) < FRAME_PAGES:
        return frozenset()
    counts = Counter(text for texts in pages for text in set(texts))
    return frozenset(text for text, count in counts.items() if count >= max(FRAME_SHARE * len(pages), 2))
