"""Which links did a campaign collect: within its sites, out of them, and what is none? The three tables of the published crawler."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from periplus.analyse.units import unit_finder
from periplus.api.survey_plan import campaign_in
from periplus.errors import UsageError
from periplus.model.campaign import BadHref, InternalLink, OutwardLink
from periplus.model.survey import Unit
from periplus.store.sqlite import reading, schema, survey_links
from periplus.store.sqlite.survey_links import KeptLink, LinkKey

KINDS = {"internal": InternalLink._fields, "external": OutwardLink._fields, "bad": BadHref._fields}  # columns of each table
Row = InternalLink | OutwardLink | BadHref


@dataclass(frozen=True, slots=True)
class LinkChoice:
    """Which links: texts that page, target and anchor contain, or expressions that they match. Empty: any."""

    kind: str = "external"  # of KINDS
    site: str = ""  # name or short name of a unit
    page: str = ""
    target: str = ""
    anchor: str = ""
    limit: int = -1


def links(folder: Path, wanted: LinkChoice) -> Iterator[Row]:
    """The rows of one table, page by page; streamed. Raises UsageError, NoCollection, StoreError."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading(), reading.snapshot(connection):
        found = (row for _, row in _found(connection, folder, wanted))
        yield from islice(found, wanted.limit) if wanted.limit >= 0 else found


def delete(folder: Path, wanted: LinkChoice) -> int:
    """Deletes these links from the collection, and nothing else; returns how many. The pages that hold them stay as they are.

    While a campaign runs too: what is read later is kept. What the rule has learned from them stays learned until the run ends.
    """
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading(), reading.snapshot(connection):
        found = (key for key, _ in _found(connection, folder, wanted))
        keys = list(islice(found, wanted.limit) if wanted.limit >= 0 else found)
    with schema.writing(folder) as connection:
        if wanted.kind == "bad":
            return survey_links.delete_bad(connection, [key for key in keys if isinstance(key, int)])
        return survey_links.delete_links(connection, [key for key in keys if isinstance(key, LinkKey)])


def _found(connection: reading.Connection, folder: Path, wanted: LinkChoice) -> Iterator[tuple[LinkKey | int, Row]]:
    if wanted.kind not in KINDS:
        raise UsageError(f"there are links of the kinds {', '.join(KINDS)}, not {wanted.kind!r}")
    units = campaign_in(connection, folder).units
    only = _place(units, wanted.site)
    unit_of = unit_finder(units)
    if wanted.kind == "bad":
        for bad in survey_links.bad_links(connection, wanted.page, wanted.target, wanted.anchor):
            place = unit_of(bad.page)
            if isinstance(place, int) and only in (None, place):
                yield bad.row, BadHref(units[place].short, bad.page, bad.text, bad.why, bad.anchor, bad.position)
        return
    for link in survey_links.links(connection, wanted.page, wanted.target, wanted.anchor):
        place = unit_of(link.page)
        if isinstance(place, int) and only in (None, place) and (unit_of(link.target) == place) == (wanted.kind == "internal"):
            yield link.key, _row(units[place], link, wanted.kind)


def _row(unit: Unit, link: KeptLink, kind: str) -> Row:
    if kind == "internal":
        return InternalLink(unit.short, link.page, link.target, link.level, link.visited, link.reason, link.anchor)
    return OutwardLink(unit.short, link.page, link.target, link.anchor, link.key.position, link.title, link.times)


def _place(units: tuple[Unit, ...], name: str) -> int | None:
    if not name:
        return None
    for place, unit in enumerate(units):
        if name in (unit.name, unit.short):
            return place
    raise UsageError(f"there is no site {name} in the survey; `periplus survey status` names them")
