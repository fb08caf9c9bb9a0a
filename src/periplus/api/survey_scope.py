"""Which URLs belong to a survey, and which of its sites does each count for?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from periplus.analyse.units import unit_finder
from periplus.model.survey import Unit
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url
from periplus.settings import Scope
from periplus.urls.canonical import canonical
from periplus.urls.scope import SiteScope, site_key, site_scope


class UnitTerritory:
    """`model.ports.Territory` of units. Units that share a host are one site to whoever chooses, for a host is asked as a whole."""

    def __init__(self, units: Sequence[Unit], rules: Scope) -> None:
        """Raises UsageError for a prefix that two units claim, and for an expression that is none."""
        self._base: SiteScope = site_scope([Url(unit.start) for unit in units if unit.start], dataclasses.replace(rules, scope="any"))
        self._unit = unit_finder(units)
        self.site_of_unit = _sites(units)
        self.sites = frozenset(self.site_of_unit)
        self._of_host = {host_of(prefix): site for unit, site in zip(units, self.site_of_unit, strict=True) for prefix in unit.prefixes}
        self._wild = any(host.startswith("*.") for host in self._of_host)
        self._known: dict[SiteKey, SiteKey] = {}

    def decide(self, url: Url) -> Reason | None:
        if isinstance(self._unit(url), str) and url not in self._base.starts:
            return Reason.SCOPE
        return self._base.decide(url)

    def rule_for(self, url: Url) -> str:
        outside = isinstance(self._unit(url), str) and url not in self._base.starts
        return "of no site of the survey" if outside else self._base.rule_for(url)

    def refused(self, url: Url) -> str:
        return self._base.refused(url)

    def site_of(self, url: Url) -> SiteKey:
        host = site_key(url)
        found = self._of_host.get(host)
        if found is None:
            found = self._known[host] if host in self._known else self._below(host)
        return found

    def _below(self, host: SiteKey) -> SiteKey:
        """The site of the nearest `*.` prefix around a host; the host itself where there is none."""
        name = str(host)
        found = host
        while self._wild and name:
            if f"*.{name}" in self._of_host:
                found = self._of_host[f"*.{name}"]
                break
            name = name.partition(".")[2]
        self._known[host] = found
        return found


def host_of(prefix: str) -> str:
    """The host of a prefix, its `*.` included."""
    return prefix.partition("/")[0]


def _sites(units: Sequence[Unit]) -> tuple[SiteKey, ...]:
    """Of each unit: the host of its first prefix, or that of the first unit that it is tied to by a shared host."""
    leader = list(range(len(units)))

    def top(place: int) -> int:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    holders: dict[str, int] = {}
    for place, unit in enumerate(units):
        for host in map(host_of, unit.prefixes):
            first = holders.setdefault(host, place)
            one, other = sorted((top(first), top(place)))
            leader[other] = one
    for place, unit in enumerate(units):
        for around in _wild_around(unit, holders):
            one, other = sorted((top(holders[around]), top(place)))
            leader[other] = one
    return tuple(SiteKey(host_of(units[top(place)].prefixes[0]).removeprefix("*.")) for place in range(len(units)))


def _wild_around(unit: Unit, holders: dict[str, int]) -> list[str]:
    """The `*.` prefixes around hosts of which the unit has only a folder: the rest of such a host is theirs."""
    found = []
    for prefix in unit.prefixes:
        host, slash, _ = prefix.partition("/")
        name = host.removeprefix("*.") if slash else ""
        while name:
            if f"*.{name}" in holders:
                found.append(f"*.{name}")
            name = name.partition(".")[2]
    return found


def start_of(unit: Unit) -> Url:
    """Where its reading begins."""
    return canonical(unit.start or f"https://{unit.prefixes[0].removeprefix('*.')}/")
