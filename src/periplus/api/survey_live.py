"""How does a campaign stand: site by site, and as a harvest?"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from periplus.analyse.harvest import RECENT_PAGES
from periplus.api.survey_choice import Chooser, chooser_of
from periplus.api.survey_plan import campaign_in
from periplus.api.survey_scope import start_of
from periplus.model.campaign import Campaign, CampaignStanding, SiteStanding
from periplus.model.visit import FETCHED, Reason
from periplus.model.web import SiteKey
from periplus.present.wording import REASON_WORDS
from periplus.settings import Settings, settings_from
from periplus.store.sqlite import reading, runs, survey_visits
from periplus.urls.canonical import url_id


def standing_of(folder: Path) -> CampaignStanding:
    """How the campaign in folder stands, by what is stored; a run may be at work. Raises UsageError, NoCollection, StoreError."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading(), reading.snapshot(connection):
        campaign = campaign_in(connection, folder)
        chooser = chooser_of(campaign, last_settings(connection), connection)
        return standing(campaign, chooser, connection)


def last_settings(connection: reading.Connection) -> Settings:
    """Of the last run: the levels that it read."""
    records = runs.run_records(connection)
    return settings_from({"max_depth": records[-1].settings.get("max_depth", -1)}) if records else Settings()


def standing(campaign: Campaign, chooser: Chooser, connection: reading.Connection, elapsed_s: float = 0.0) -> CampaignStanding:
    """The same of a chooser that is at work."""
    waiting = survey_visits.waiting_by_site(connection)
    starts = survey_visits.standings(connection, [url_id(start_of(unit)) for unit in campaign.units])
    names: dict[SiteKey, str] = {}
    for unit, site in zip(campaign.units, chooser.territory.site_of_unit, strict=True):
        names[site] = f"{names[site]} + {unit.short}" if site in names else unit.short
    harvest = chooser.record.harvest(names, waiting, campaign.item)
    return CampaignStanding(campaign, len(chooser.record.site), _sites(campaign, chooser, waiting, starts), harvest, elapsed_s)


def _sites(campaign: Campaign, chooser: Chooser, waiting: Mapping[SiteKey, int], starts: Mapping[int, tuple[str, str]]) -> tuple[SiteStanding, ...]:
    found: dict[SiteKey, SiteStanding] = {}
    scores = chooser.rule.scores()
    for unit, site in zip(campaign.units, chooser.territory.site_of_unit, strict=True):
        if site in found:  # units that share a host
            before = found[site]
            prefixes = (*before.prefixes, unit.prefixes[0])
            found[site] = before._replace(name=f"{before.name} + {unit.name}", short=f"{before.short} + {unit.short}", prefixes=prefixes)
            continue
        place = chooser.rule.places.get(site)
        pages = 0 if place is None else int(chooser.rule.yields.pages[0, place])
        links = 0 if place is None else int(chooser.rule.yields.links[0, place])
        left = waiting.get(site, 0)
        state = _state(starts.get(int(url_id(start_of(unit)))), pages, left)
        score = scores.get(site) if pages >= chooser.rule.rule.first else None
        found[site] = SiteStanding(unit.name, unit.short, state, pages, links, _recent(chooser, site, pages), score, left, unit.prefixes[:1])
    return tuple(found.values())


def _recent(chooser: Chooser, site: SiteKey, pages: int) -> float:
    """Items a page over the site's last pages."""
    if not pages:
        return 0.0
    ring = chooser.rule.yields.ring[0, chooser.rule.places[site]]
    last = (pages - 1 - np.arange(min(pages, RECENT_PAGES))) % len(ring)
    return float(ring[last].mean())


_GOOD = FETCHED | {Reason.REDIRECT, Reason.ALIAS}


def _state(start: tuple[str, str] | None, pages: int, waiting: int) -> str:
    """By what became of the start, as (reason, rule)."""
    if start is None or start[0] == Reason.WAITING:
        return "waiting" if not pages else "reading"
    reason = Reason(start[0])
    if reason not in _GOOD:
        return f"not available: {REASON_WORDS[reason]}" + (f" ({start[1]})" if start[1] else "")
    return "reading" if waiting else "read"
