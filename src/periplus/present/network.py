"""Which sites and links of a survey does a drawing show, and how large? Values for the SVG and for graph programs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from periplus.model.survey import CompanionClass
from periplus.model.webometrics import SurveyResults, UnitFigures

SHOWN_CLASSES = frozenset({CompanionClass.COMMUNICATOR, CompanionClass.STRONG, CompanionClass.WEAK})
TARGET = "target"


@dataclass(frozen=True, slots=True)
class NetworkSite:
    """One vertex. pages: fetched ones, or those that are cited of a site that was not fetched."""

    unit: int
    name: str
    short: str
    part: str  # target, or a companion class
    fetched: bool
    pages: int
    cited_by: int  # target units that link to it


@dataclass(frozen=True, slots=True)
class Network:
    """Sites, the target set first, and the links between them as (source, end, links) by place in sites, strongest first."""

    sites: tuple[NetworkSite, ...]
    arrows: tuple[tuple[int, int, int], ...]
    left_out: int  # companion sites that are not among the sites
    targets_left_out: int = 0  # sites of the target set that are not


def network_of(found: SurveyResults, max_sites: int = 200, classes: Collection[CompanionClass] = SHOWN_CLASSES) -> Network:
    """The target set, of more than max_sites those of most links, and as far as there is room the companion sites of these classes that most
    units link to."""
    sites = [
        NetworkSite(
            figures.unit,
            found.units[figures.unit].name,
            found.units[figures.unit].short,
            TARGET,
            figures.fetched > 0,
            figures.fetched or figures.waiting,
            figures.in_units,
        )
        for figures in shown(found, max_sites)
    ]
    companions = [site for site in found.companions if site.kind in classes][: max(max_sites - len(sites), 0)]
    sites += [
        NetworkSite(site.unit, site.name, found.units[site.unit].short, site.kind.value, site.fetched > 0, site.fetched or site.documents, site.units)
        for site in companions
    ]
    place = np.full(len(found.units), -1, np.int64)
    place[[site.unit for site in sites]] = np.arange(len(sites))
    source, end = place[found.matrix.sources], place[found.matrix.ends]
    kept = (source >= 0) & (end >= 0) & (source != end)
    rows = zip(source[kept].tolist(), end[kept].tolist(), found.matrix.counts[kept].tolist(), strict=True)
    arrows = sorted(rows, key=lambda arrow: (-arrow[2], arrow[0], arrow[1]))
    return Network(tuple(sites), tuple(arrows), len(found.companions) - len(companions), max(found.chosen - max_sites, 0))


def shown(found: SurveyResults, most: int) -> list[UnitFigures]:
    """The target units of most links in and out, in their order."""
    ranked = sorted(found.figures, key=lambda row: (-(row.in_links + row.out_links), row.unit))[:most]
    return sorted(ranked, key=lambda row: row.unit)
