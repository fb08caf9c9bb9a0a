"""What does a survey consist of: how is it begun, and how are its sites and its rule changed, while it runs too?"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from periplus.api.survey_scope import UnitTerritory, start_of
from periplus.errors import UsageError
from periplus.model.campaign import Campaign
from periplus.model.survey import Unit
from periplus.schedule.bandit.names import rule_named
from periplus.settings import Scope
from periplus.store.sqlite import reading, schema, survey_plan

ITEMS = ("page", "host", "domain")
WITHIN = ("breadth", "learned")
MOST_LEARNED = 1_000  # sites up to which the order within is learned unless told otherwise: each takes half a megabyte


def create(folder: Path, campaign: Campaign) -> None:
    """A survey in folder, which may hold a collection but no survey. Raises UsageError, StoreError."""
    checked(campaign)
    if not schema.exists(folder):
        schema.create(folder)

    def begun(before: str) -> str:
        if before:
            raise UsageError(f"{folder} holds a survey already: `periplus survey add` adds sites, `periplus survey run` goes on")
        return as_text(campaign)

    survey_plan.change_plan(folder, begun)


def campaign_of(folder: Path) -> Campaign:
    """The survey in folder. Raises UsageError where there is none, NoCollection, StoreError."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        return campaign_in(connection, folder)


def campaign_in(connection: reading.Connection, folder: Path) -> Campaign:
    return campaign_from(survey_plan.plan(connection), folder)


def add_sites(folder: Path, units: Iterable[Unit]) -> Campaign:
    """With further sites. Raises UsageError for a name or prefix that is there."""
    return change(folder, lambda before: dataclasses.replace(before, units=(*before.units, *units)))


def remove_sites(folder: Path, names: Iterable[str]) -> tuple[Campaign, tuple[Unit, ...]]:
    """Without the sites of these names, short names or prefixes; and these. What was fetched of them stays."""
    wanted, gone = list(names), dict[str, Unit]()

    def changed(before: Campaign) -> Campaign:
        for name in wanted:
            found = [unit for unit in before.units if name in (unit.name, unit.short, unit.start, *unit.prefixes)]
            if not found:
                raise UsageError(f"there is no site {name} in the survey; `periplus survey status` names them")
            gone.update((unit.name, unit) for unit in found)
        return dataclasses.replace(before, units=tuple(unit for unit in before.units if unit.name not in gone))

    return change(folder, changed), tuple(gone.values())


def change(folder: Path, changed: Callable[[Campaign], Campaign]) -> Campaign:
    """The survey as `changed` makes it of what it was. A run that is at work takes it over within a second."""
    text = survey_plan.change_plan(folder, lambda before: as_text(checked(changed(campaign_from(before, folder)))))
    return campaign_from(text, folder)


def stop(folder: Path) -> None:
    """Asks the run that is at work to stop; it stores what is under way."""
    survey_plan.wish_stop(folder, stop=True)


def checked(campaign: Campaign) -> Campaign:
    """The campaign, if it can be. Raises UsageError."""
    if campaign.item not in ITEMS:
        raise UsageError(f"a survey harvests by {', '.join(ITEMS)}, not by {campaign.item!r}")
    if campaign.within not in ("", *WITHIN):
        raise UsageError(f"pages within a site are read by {' or '.join(WITHIN)}, not by {campaign.within!r}")
    if campaign.pages < 0 or campaign.at_once < 0:
        raise UsageError("pages are counted from 0: no limit; so are those at once: as many as suits the budget")
    rule_named(campaign.rule, campaign.pages, max(len(campaign.units), 1))
    for name, times in Counter(unit.name for unit in campaign.units).items():
        if times > 1:
            raise UsageError(f"two sites have the name {name}: name one of them otherwise")
    UnitTerritory(campaign.units, Scope())
    for unit in campaign.units:
        start_of(unit)
    return campaign


def within_of(campaign: Campaign) -> str:
    """The order within a site that holds."""
    return campaign.within or ("learned" if len(campaign.units) <= MOST_LEARNED else "breadth")


def as_text(campaign: Campaign) -> str:
    """As it is kept: JSON."""
    return json.dumps(dataclasses.asdict(campaign), ensure_ascii=False)


def campaign_from(text: str, folder: Path) -> Campaign:
    """The campaign that `as_text` wrote. Raises UsageError for an empty text: there is none."""
    if not text:
        raise UsageError(f"{folder} holds no survey: `periplus survey create -c {folder} ADDRESS...` makes one of it")
    values = json.loads(text)
    units = tuple(Unit(**(unit | {"prefixes": tuple(unit["prefixes"])})) for unit in values.pop("units"))
    return Campaign(units=units, **values)
