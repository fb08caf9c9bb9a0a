"""Tells whether a page differs from what is stored in volatile parts alone: session ids, tokens, counters, clocks.

A refresh that finds a page as it was but for words with digits asks for it once more. The page is unchanged when the
two answers share none of the words that are not stored: what both show has changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from periplus.model.frontier import Completion
from periplus.model.visit import Headers, Unchanged
from periplus.model.web import Url, UrlId
from periplus.urls.url_patterns import plain

AGAIN_S = 1.5  # until the second answer: a clock that shows seconds goes on
MOST_FIRST = 20_000  # first answers kept at a time, some 40 MB; further pages count as changed
MOST_ATTEMPTS = 3  # first answers of a page: a host that changes its worker leaves the former's behind
_NUMBERED = re.compile(r"(\b\w*\d[\w.,:-]*)")  # numbers, times, tokens; without `\b` a long word takes quadratic time
_FIELDS = 8  # of what a page shows, before the targets of its links

FirstAnswers = dict[UrlId, frozenset[int]]  # words of pages that are not stored, as hashes of (place, word)


def second_look(read: Completion, stored: Sequence[str], first: FirstAnswers) -> Completion:
    """The answer of a refresh, as `Unchanged` where it is volatile; with a wait where it must be asked once more.

    stored: see `CrawlStore.shown`. first: kept by the caller; a kill costs the request alone.
    """
    page, shown = read.document, ["", getattr(read.visit.outcome, "target", "")]
    if page is not None:
        fields = page.media_type, page.language, page.title, page.description, page.h1, page.canonical, page.robots
        shown = [*fields, page.text, *sorted(set(page.links.targets))]
    before, now = (_NUMBERED.split("\n".join(parts)) for parts in (stored, shown))
    once = first.pop(read.task.url_id, None)
    words = frozenset(map(hash, {*enumerate(now)} - {*enumerate(before)}))
    is_last = len(first) >= MOST_FIRST or read.task.request.attempt > MOST_ATTEMPTS
    if not words or before[::2] != now[::2] or (words & once if once else is_last):
        return read
    if not once:
        first[read.task.url_id] = words
    visit = replace(read.visit, outcome=Unchanged(getattr(read.visit.outcome, "headers", Headers()), 200))
    return replace(read, visit=visit, document=None, candidates=(), retry_in_s=0.0 if once else AGAIN_S)


def with_stored_sessions(read: Completion, stored: Sequence[str], is_twin: Callable[[Url], object]) -> Completion:
    """Links that differ from stored ones in a session id alone, as they are stored: they make no new addresses.

    is_twin: whether the detector of traps knows that the page was read under another session id.
    """
    if (page := read.document) is None or not (twins := set(filter(is_twin, page.links.targets))):
        return read
    former = {plain(Url(target)).url: Url(target) for target in stored[_FIELDS:]}
    targets = tuple(former.get(plain(one).url, one) if one in twins else one for one in page.links.targets)
    candidates = tuple(one for one in read.candidates if one.url in targets or one.url not in twins)
    return replace(read, document=replace(page, links=replace(page.links, targets=targets)), candidates=candidates)
