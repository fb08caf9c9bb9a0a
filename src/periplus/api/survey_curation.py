"""What is done when somebody decides on sites: which are surveyed, which are left out, which are looked at again?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from periplus.analyse.units import prefix_of, promoted, unit_of
from periplus.api.survey import add_sites, campaign_here, remove_sites
from periplus.api.webometrics import mark_sites
from periplus.errors import UsageError
from periplus.model.survey import SiteMark, SiteStatus
from periplus.model.webometrics import Campaign
from periplus.store.sqlite import reading, schema, site_rows
from periplus.urls.hosts import is_within

MOST_COMPARED = 20_000  # names that one which is not known is compared with: a third of a second


def decide(
    folder: Path, sites: Sequence[str], status: SiteStatus, tags: Sequence[str] = (), *, start: str = "", now: float
) -> tuple[str, ...]:
    """Notes a status and tags for sites, named by their prefixes, and brings the survey in line: what is `in` joins it,
    anything else leaves it.

    Any address may join; else a site of the survey, also by its name, or one that was met or marked, so that no slip of
    the pen is noted. start: where the reading of the one site that joins begins; empty: its front page. What was
    fetched of a site that leaves is kept. Returns the prefixes. Raises UsageError, NoCollection, StoreError.
    """
    if not sites:
        raise UsageError("no site is chosen")
    if start and (len(sites) > 1 or status is not SiteStatus.IN):
        raise UsageError("a start address goes with one site that is taken in")
    before = campaign_here(folder)
    prefixes = tuple(dict.fromkeys(_prefixes(folder, before, sites, anywhere=status is SiteStatus.IN)))
    if before is None:
        if status is SiteStatus.IN:
            raise UsageError(
                f"{folder} holds no survey that a site could join: `periplus survey create -c "
                f"{folder} ADDRESS...` makes one"
            )
    elif status is SiteStatus.IN:
        if come := _new(before, prefixes):
            add_sites(folder, [promoted(unit_of(prefix, prefixes=[prefix]), start) for prefix in come])
    elif gone := [unit.name for unit in before.units if set(unit.prefixes) & set(prefixes)]:
        remove_sites(folder, gone)
    mark_sites(folder, [SiteMark(prefix, status, tuple(tags)) for prefix in prefixes], now)
    return prefixes


def _new(campaign: Campaign, prefixes: Sequence[str]) -> list[str]:
    """Those that no site of the survey claims."""
    claimed = {prefix for unit in campaign.units for prefix in unit.prefixes}
    return [prefix for prefix in prefixes if prefix not in claimed]


def _prefixes(folder: Path, campaign: Campaign | None, sites: Sequence[str], *, anywhere: bool) -> Iterator[str]:
    """Of these sites.

    Raises UsageError for one that is neither of the survey nor met in links, unless it may be anywhere.
    """
    units = campaign.units if campaign is not None else ()
    named = {name: unit.prefixes for unit in units for name in (unit.short, unit.name)}
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        met = list(site_rows.site_names(connection).values())
        noted = {prefix for unit in units for prefix in unit.prefixes} | schema.marks(connection).keys()
    for name in sites:
        if name in named:
            yield from named[name]
            continue
        prefix = prefix_of(name)
        if (
            anywhere
            or prefix in noted
            or any(is_within(site, prefix.removeprefix("*.").partition("/")[0]) for site in met)
        ):
            yield prefix
        else:
            near = get_close_matches(prefix, dict.fromkeys([*noted, *named, *met][:MOST_COMPARED]))
            said = f"; near it are {', '.join(near)}" if near else ""
            raise UsageError(
                f"there is no site {name} in the survey, and no link that was met leads to one{said}. With the "
                "status `in` any address joins"
            )


def marks_in(folder: Path) -> dict[str, SiteMark]:
    """What was noted so far, by prefix. Raises NoCollection, StoreError."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        return schema.marks(connection)
