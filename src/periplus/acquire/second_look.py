"""Tells whether a page differs from what is stored in volatile parts alone: session ids, tokens, counters, clocks.

A refresh that finds a page as it was but for words with digits asks for it once more. The page is unchanged when the
two answers share none of the words that are not stored: what both show has changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from periplus.model.frontier import Completion
from periplus.model.visit import Headers, Unchanged
from periplus.model.web import UrlId

AGAIN_S = 1.5  # until the second answer: a clock that shows seconds goes on
MOST_FIRST = 20_000  # first answers kept at a time, some 40 MB; further pages count as changed
_NUMBERED = re.compile(r"(\w*\d[\w.,:-]*)")  # numbers, times, tokens

FirstAnswers = dict[UrlId, frozenset[int]]  # words of pages that are not stored, as hashes of (place, word)


def second_look(read: Completion, stored: Sequence[str], first: FirstAnswers) -> Completion:
    """The answer of a refresh, as `Unchanged` where it is volatile; with a wait where it must be asked once more.

    stored: what `_shown` would give of the page as stored. first: kept by the caller; a kill costs the request alone.
    """
    before, now = (_NUMBERED.split("\n".join(parts)) for parts in (stored, _shown(read)))
    page, words = read.task.url_id, frozenset(map(hash, {*enumerate(now)} - {*enumerate(before)}))
    once = first.pop(page, None)
    if not words or before[::2] != now[::2] or (words & once if once else len(first) >= MOST_FIRST):
        return read
    if not once:
        first[page] = words
    unchanged = Unchanged(getattr(read.visit.outcome, "headers", Headers()), 200)
    visit = replace(read.visit, outcome=unchanged)
    return replace(read, visit=visit, document=None, candidates=(), retry_in_s=0.0 if once else AGAIN_S)


def _shown(read: Completion) -> Sequence[str]:
    """What can change of a page; of a redirect its target."""
    page = read.document
    if page is None:
        return ["", getattr(read.visit.outcome, "target", "")]
    fields = (page.media_type, page.language, page.title, page.description, page.h1, page.canonical, page.robots)
    return [*fields, page.text, *sorted(set(page.links.targets))]
