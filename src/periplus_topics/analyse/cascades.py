"""Builds cascades from a file or from stories: the times at which sites published each story."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, isfinite

import numpy as np

from periplus.errors import UsageError
from periplus_topics.model import Cascades, Stories

HOUR_S = 3600.0


def cascades_of_lines(lines: Iterable[str]) -> Cascades:
    """Parses one story per line: `site,hours site,hours ...`; all stories use the same clock.

    Empty lines and `#` lines are skipped. If a site occurs twice in a story, its earliest time counts. Raises
    UsageError with the line number.
    """
    events: list[list[tuple[float, str]]] = []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            events.append([_event(part, number) for part in line.split()])
    return _cascades(events, ("",) * len(events), {})


def _event(part: str, line: int) -> tuple[float, str]:
    site, comma, hours = part.rpartition(",")
    try:
        when = float(hours)
    except ValueError:
        when = float("nan")
    if not comma or not site or not isfinite(when):
        raise UsageError(
            f"line {line} of the cascades has {part[:60]!r} instead of site,hours, as in: "
            "example.org,338200.5 other.example,338214"
        )
    return when, site


def cascades_of_stories(stories: Stories) -> Cascades:
    """Uses the time of each site's first page of a story.

    If the order of pages contradicts the dates, a page gets the time of the page before it.
    """
    events = []
    for story in stories.stories:
        latest = 0.0
        rows = []
        for page in story.pages:
            latest = max(latest, page.date.when / HOUR_S)
            rows.append((latest, str(page.site)))
        events.append(rows)
    return _cascades(
        events, [story.title for story in stories.stories], {str(site): posts for site, posts in stories.posts}
    )


def _cascades(events: Sequence[Sequence[tuple[float, str]]], titles: Sequence[str], posts: dict[str, int]) -> Cascades:
    """events: per story, (hours, site) in any order.

    posts: by site; the default is the site's number of stories.
    """
    names: dict[str, int] = {}
    members: list[int] = []
    delays: list[float] = []
    offsets, starts = [0], []
    for rows in events:
        ordered = sorted(rows, key=lambda row: row[0])  # ties keep the given order
        first = ordered[0][0] if ordered else 0.0
        seen: set[str] = set()
        for when, site in ordered:
            if site not in seen:
                seen.add(site)
                members.append(names.setdefault(site, len(names)))
                delays.append(when - first)
        starts.append(first)
        offsets.append(len(members))
    had = np.bincount(np.array(members, np.int64), minlength=len(names))
    written = np.array([posts.get(name, had[place]) for name, place in names.items()], np.int64)
    return Cascades(
        tuple(names),
        tuple(titles),
        np.array(offsets),
        np.array(members, np.int64),
        np.array(delays, np.float64),
        np.array(starts),
        written,
    )


def halves(cascades: Cascades) -> tuple[Cascades, Cascades]:
    """(earlier half of the stories, later half): to choose sites on the past and evaluate on the future.

    Posts of the earlier half count its stories only, so nothing leaks from the future; sites keep their indices.
    """
    return before_and_after(cascades, 0.5, 1.0)


def before_and_after(cascades: Cascades, now: float, end: float) -> tuple[Cascades, Cascades]:
    """(the first stories, up to the share `now`; the following stories, up to the share `end`), by start time."""
    order = np.argsort(cascades.starts_h, kind="stable")
    middle, last = ceil(now * len(order)), ceil(end * len(order))
    return _select(cascades, np.sort(order[:middle])), _select(cascades, np.sort(order[middle:last]))


def _select(cascades: Cascades, stories: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Cascades:
    counts = np.diff(cascades.offsets)
    chosen = np.isin(np.repeat(np.arange(len(counts)), counts), stories)
    members = cascades.members[chosen]
    return Cascades(
        cascades.sites,
        tuple(cascades.titles[story] for story in stories),
        np.concatenate([[0], np.cumsum(counts[stories])]),
        members,
        cascades.delays_h[chosen],
        cascades.starts_h[stories],
        np.bincount(members, minlength=len(cascades.sites)),
    )
