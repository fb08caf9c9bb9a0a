"""Two surveys of one field at different times: sites and links that came or went, and changes of rank."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np

from periplus.model.arrays import Floats
from periplus.model.tables import Table, columns_of
from periplus.values import frozen
from periplus_studies.model import CompanionSite, SurveyResults, Unit, UnitFigures
from periplus_studies.statistics import Correlation, ranks, spearman

_Pair = tuple[int, int]
CHANGES = Table(
    "changes",
    "Sites of this survey and of an earlier one.",
    columns_of("""
        site text searched: the site
        prefixes text searched: prefixes of the unit's URLs
        change text facet: came, went, stayed, or moved to another set
        set_before text facet: target, or the class of a companion site; empty: not in the earlier survey
        set_after text facet: the same in this survey
        units_before integer: sites of the target set that linked to it
        units_after integer: sites of the target set that link to it
        links_before integer: links from other sites of the target set
        links_after integer: the same in this survey
        read_before real: share of the site's known documents that was fetched
        read_after real: the same in this survey
        rank_before real: rank by links among the sites that both surveys read; equal values share their mean rank
        rank_after real: the same in this survey
        rise real: ranks gained
    """),
)
LINK_CHANGES = Table(
    "linkchanges",
    "Links between sites in this survey and in an earlier one.",
    columns_of("""
        source text searched: the site of the target set that links
        target text searched: the site that is linked to
        change text facet: came, went, more, fewer or same; empty: one of the sites was not read in both surveys
        links_before integer: distinct pairs of documents
        links_after integer: the same in this survey
    """),
)


class SiteChange(NamedTuple):
    """A site in two surveys; empty or None: not in that survey.

    set: `target`, or its class among the companion sites. units: sites of the target set that link to it.
    """

    site: str
    prefixes: str
    change: str  # came, went, stayed, or moved: to another set
    set_before: str
    set_after: str
    units_before: int | None
    units_after: int | None
    links_before: int | None  # from other sites of the target set
    links_after: int | None
    read_before: float | None  # share of its documents that was fetched
    read_after: float | None
    rank_before: float | None  # by links, among the target sites that both surveys read; ties share their mean
    rank_after: float | None
    rise: float | None  # ranks gained


class LinkChange(NamedTuple):
    """A pair of target sites that is linked in one of two surveys."""

    source: str
    target: str
    change: str  # came, went, more, fewer, same; empty: one of the sites was not read in both surveys
    links_before: int
    links_after: int


@frozen
class SurveyChange:
    """The differences of two surveys. The figures on links are of target sites that both surveys read."""

    rows: tuple[SiteChange, ...]  # by rank in the later survey, then by linking units
    links: tuple[LinkChange, ...]  # largest differences first, pairs without a word on their change last
    sites: int  # read in both
    ranks: Correlation  # of their links from other target sites, before and after

    def arcs(self, *changes: str) -> int:
        """Number of linked pairs with these changes."""
        return sum(row.change in changes for row in self.links)

    @property
    def arcs_share(self) -> float:
        """Jaccard index: linked pairs of both surveys / linked pairs of any; 1.0 if there are none."""
        arcs = sum(bool(row.change) for row in self.links)
        return 1 - self.arcs("came", "went") / arcs if arcs else 1.0


@frozen
class _Side:
    """One of the surveys by numbers that both have in common."""

    units: dict[int, Unit]
    figures: dict[int, UnitFigures]
    companions: dict[int, CompanionSite]
    arcs: dict[_Pair, int]  # links between two different target sites

    @property
    def read(self) -> set[int]:
        return {site for site, row in self.figures.items() if row.fetched}

    def inlinks(self, sites: Sequence[int]) -> Floats:
        return np.array([self.figures[site].in_links for site in sites], np.float64)

    def values(self, site: int) -> tuple[str, int | None, int | None, float | None]:
        """(set, units, links, share read) of a site."""
        if site in self.figures:
            row = self.figures[site]
            return "target", row.in_units, row.in_links, row.share
        companion = self.companions.get(site)
        return (companion.kind.value, companion.units, None, None) if companion else ("", None, None, None)


def compare_surveys(earlier: SurveyResults, later: SurveyResults) -> SurveyChange:
    """Both count by the same rules. A site is the same if it has a prefix in common, else the same name."""
    before, after = _side(earlier, _numbers(earlier.units, later.units)), _side(later, range(len(later.units)))
    both = sorted(before.read & after.read)
    places = [dict(zip(both, ranks(-side.inlinks(both)).tolist(), strict=True)) for side in (before, after)]
    rows = []
    for site in before.figures.keys() | before.companions.keys() | after.figures.keys() | after.companions.keys():
        unit, old, new = after.units.get(site) or before.units[site], before.values(site), after.values(site)
        change = "came" if not old[0] else "went" if not new[0] else "stayed" if old[0] == new[0] else "moved"
        rank, pairs = [side.get(site) for side in places], zip(old, new, strict=True)
        rise = rank[0] - rank[1] if rank[0] is not None and rank[1] is not None else None
        values = (value for pair in pairs for value in pair)
        rows.append(SiteChange._make((unit.name, " ".join(unit.prefixes), change, *values, *rank, rise)))
    rows.sort(key=lambda row: (row.rank_after or np.inf, "target" not in row[3:5], -(row.units_after or 0), row.site))
    inlinks = spearman(before.inlinks(both), after.inlinks(both))
    return SurveyChange(tuple(rows), _link_changes(before, after, set(both)), len(both), inlinks)


def _numbers(earlier: Sequence[Unit], later: Sequence[Unit]) -> list[int]:
    """For each unit of the earlier survey its number in the later one, or a new number."""
    places = {unit.name: number for number, unit in reversed(list(enumerate(later)))}
    places |= {prefix: number for number, unit in enumerate(later) for prefix in unit.prefixes}
    numbers = dict[int, None]()
    for place, unit in enumerate(earlier):
        same = (places[key] for key in (*unit.prefixes, unit.name) if key in places)
        numbers[next((number for number in same if number not in numbers), len(later) + place)] = None
    return list(numbers)


def _side(results: SurveyResults, numbers: Sequence[int]) -> _Side:
    links = results.matrix
    inside = (links.sources < results.chosen) & (links.ends < results.chosen) & (links.sources != links.ends)
    rows = zip(*(column[inside].tolist() for column in (links.sources, links.ends, links.counts)), strict=True)
    return _Side(
        dict(zip(numbers, results.units, strict=True)),
        {numbers[row.unit]: row for row in results.figures},
        {numbers[site.unit]: site for site in results.companions},
        {(numbers[source], numbers[end]): count for source, end, count in rows},
    )


def _link_changes(before: _Side, after: _Side, both: Set[int]) -> tuple[LinkChange, ...]:
    rows, units = [], before.units | after.units
    for pair in before.arcs.keys() | after.arcs.keys():
        old, new = before.arcs.get(pair, 0), after.arcs.get(pair, 0)
        change = (
            "same" if old == new else "came" if not old else "went" if not new else "more" if new > old else "fewer"
        )
        source, target = (units[site].name for site in pair)
        rows.append(LinkChange(source, target, change if both >= set(pair) else "", old, new))
    rows.sort(key=lambda row: (not row.change, -abs(row.links_after - row.links_before), row.source, row.target))
    return tuple(rows)
