"""Makes cascades of a file, or of stories: which site had which story when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, isfinite

import numpy as np

from periplus.errors import UsageError
from periplus.model.story import Cascades, Stories

HOUR_S = 3600.0


def cascades_of_lines(lines: Iterable[str]) -> Cascades:
    """A story a line: `site,hours site,hours ...`, hours on any clock that all stories share.

    Empty lines and `#` lines are passed over.

    A site that stands twice in a story counts where it is earliest. Raises UsageError, naming the line.
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
            f"line {line} of the cascades has {part[:60]!r} where site,hours belongs, as in: "
            "example.org,338200.5 other.example,338214"
        )
    return when, site


def cascades_of_stories(stories: Stories) -> Cascades:
    """A site has a story when its first page of it is out; one that the order puts later than its date says is as
    late as the page before it.
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
    """events: by story, (hours, site) in any order.

    posts: by site; without them a site's are the stories that it has.
    """
    names: dict[str, int] = {}
    members: list[int] = []
    delays: list[float] = []
    offsets, starts = [0], []
    for rows in events:
        ordered = sorted(rows, key=lambda row: row[0])  # of the same hour as they were given
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
    """(the stories that began first, the others): to choose by the past and score on what came after.

    Posts of the earlier half are the stories of it, so that nothing is known of the future; sites keep their places.
    """
    return before_and_after(cascades, 0.5, 1.0)


def before_and_after(cascades: Cascades, now: float, end: float) -> tuple[Cascades, Cascades]:
    """(the stories that began first, as a share of all; those that began next, until the share `end`)."""
    order = np.argsort(cascades.starts_h, kind="stable")
    middle, last = ceil(now * len(order)), ceil(end * len(order))
    return _some(cascades, np.sort(order[:middle])), _some(cascades, np.sort(order[middle:last]))


def _some(cascades: Cascades, stories: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Cascades:
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
