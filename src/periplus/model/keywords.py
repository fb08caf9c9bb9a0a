"""What are keywords of a page, a story, a site, as values?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Keyword(NamedTuple):
    """A word or phrase that says what a text is about, as the text writes it."""

    text: str
    score: float  # higher is better; comparable within one answer only
    times: int  # that it stands there, in whatever form
    pages: int  # with it, of those that were read


@dataclass(frozen=True, slots=True)
class KeywordList:
    """The keywords of one subject, best first."""

    subject: str  # a URL, a site, a query, or how many pages
    method: str
    language: str  # of most of the pages; empty: not known
    pages: int  # that were read
    compared_with: int  # pages of the collection whose words were counted
    keywords: tuple[Keyword, ...]
