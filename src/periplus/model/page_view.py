"""What is shown of one page?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from periplus.model.visit import Reason, State


class SamePage(NamedTuple):
    """Another page with the same bytes, the same words, or the same words but for diacritics and case."""

    url: str
    same: str  # bytes, words, folded


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What was read of a page that was fetched. Empty: it does not say."""

    fetched: str  # ISO 8601, UTC
    media_type: str
    size: int  # bytes
    cut: str
    title: str
    description: str
    h1: str
    language: str  # as declared
    language_found: str  # by its words
    charset: str
    charset_source: str
    other_charset: str  # what was declared, where another was taken
    canonical: str
    robots: str
    text_chars: int
    body_digest: str  # hexadecimal, like the two below
    text_digest: str
    folded_digest: str
    kept: tuple[str, ...]  # of bytes, text, xml


@dataclass(frozen=True, slots=True)
class PageSummary:
    """What is known of one URL. page None: nothing was fetched of it."""

    url: str
    state: State
    reason: Reason
    why: str  # the rule, limit or failure behind the reason
    status: int | None
    layer: int | None
    page: PageFacts | None
    fault: str  # why it could not be read, or not whole
    links_in: int  # pages that link to it
    links_out: int  # URLs that it links to
    duplicates: tuple[SamePage, ...]
