"""Filters keywords for publication: drops dates, counts and the boilerplate words of pages."""

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
from periplus.document.words import fold_form, plain

# Most words of a keyword that is not a name, and of a keyword that contains a function word: longer ones are sentence
# fragments
WORDS_MOST, WORDS_BOUND = 4, 3
FRAME_SHARE = 0.5  # a block on this share of a site's pages is boilerplate
FRAME_PAGES = 3  # with fewer pages boilerplate cannot be detected
_WORD = re.compile(r"\w+")
_SHORT_MONTHS = ("may", "mai", "maj", "май")  # other three-letter forms are words of their own: led, sie, lip


class _Words(NamedTuple):
    """Words of a language, lower case, without diacritics."""

    empty: frozenset[str]  # days, months, times, boilerplate; plus function words
    numbers: frozenset[str]
    headings: frozenset[str]  # names of the parts of any document: chapter, figure


@cache
def _words(language: str) -> _Words:
    """The word lists of a language; the English lists if it has none."""
    stored = json.loads((files("periplus.analyse.keywords") / "unprintable_words.json").read_text(encoding="utf-8"))
    lists = stored.get(language, stored["en"])
    of_months = {form for form in months() if len(form) > 3 or form in _SHORT_MONTHS}
    empty = _forms(lists["frame"]) | of_months | {fold_form(word) for word in function_words(language)}
    return _Words(frozenset(empty), frozenset(_forms(lists["numbers"])), frozenset(_forms(lists["headings"])))


def _forms(text: str) -> set[str]:
    return set(_WORD.findall(fold_form(plain(text))))


def is_printable(keyword: str, language: str) -> bool:
    """Whether a keyword is meaningful on its own.

    language: BCP 47 primary tag. Rejected are dates and boilerplate ("Tuesday morning", "read more"); counts ("forty
    crowns"), unless each word begins with a capital ("Four Seasons"); and, with the same exception, more than
    WORDS_MOST words, or WORDS_BOUND if one of them is a function word.
    """
    written = _WORD.findall(keyword)
    forms = [fold_form(plain(word)) for word in written]
    words = _words(language)
    if all(form in words.empty or form in words.numbers or form.isdigit() or len(form) < 2 for form in forms):
        return False
    if is_name(keyword, language):
        return True
    bound = not function_words(language).isdisjoint(forms)
    return len(forms) <= (WORDS_BOUND if bound else WORDS_MOST) and words.numbers.isdisjoint(forms)


def is_heading(keyword: str, language: str) -> bool:
    """Whether it only names a part of a document: "Chapter", "Figure 3"."""
    headings = _words(language).headings
    return all(form in headings or form.isdigit() for form in _forms(keyword))


def is_name(keyword: str, language: str) -> bool:
    """Whether it has several words, each capitalised or a function word."""
    written, binding = _WORD.findall(keyword), function_words(language)
    return len(written) > 1 and all(word[0].isupper() or fold_form(plain(word)) in binding for word in written)


def frame_texts(pages: Sequence[Iterable[str]]) -> frozenset[str]:
    """Texts of blocks on at least FRAME_SHARE of a site's pages; empty for fewer than FRAME_PAGES pages."""
    if len(pages) < FRAME_PAGES:
        return frozenset()
    counts = Counter(text for texts in pages for text in set(texts))
    return frozenset(text for text, count in counts.items() if count >= max(FRAME_SHARE * len(pages), 2))
