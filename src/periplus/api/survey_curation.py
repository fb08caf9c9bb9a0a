"""What is done when somebody decides on sites: which are surveyed, which are left out, which are looked at again?"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from periplus.analyse.units import prefix_of, promoted, unit_of
from periplus.api.survey_plan import add_sites, remove_sites
from periplus.api.survey_watching import campaign_here
from periplus.api.webometrics import mark_sites
from periplus.errors import UsageError
from periplus.model.campaign import Campaign
from periplus.model.survey import SiteMark, SiteStatus
from periplus.store.sqlite import reading, survey_marks


def decide(folder: Path, sites: Sequence[str], status: SiteStatus, tags: Sequence[str] = (), *, start: str = "", now: float) -> tuple[str, ...]:
    """Notes a status and tags for sites, named by their prefixes, and brings the survey in line: what is `in` joins it, anything else leaves it.

    start: where the reading of the one site that joins begins; empty: its front page. What was fetched of a site that leaves is kept.
    Returns the prefixes. Raises UsageError, NoCollection, StoreError.
    """
    if not sites:
        raise UsageError("no site is chosen")
    if start and (len(sites) > 1 or status is not SiteStatus.IN):
        raise UsageError("a start address goes with one site that is taken in")
    prefixes = tuple(dict.fromkeys(map(prefix_of, sites)))
    before = campaign_here(folder)
    if before is None:
        if status is SiteStatus.IN:
            raise UsageError(f"{folder} holds no survey that a site could join: `periplus survey create -c {folder} ADDRESS...` makes one")
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


def marks_in(folder: Path) -> dict[str, SiteMark]:
    """What was noted so far, by prefix. Raises NoCollection, StoreError."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        return survey_marks.marks(connection)
