"""Which sites outside the target set belong to its surroundings, and how strongly is each tied to it?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from periplus.analyse.indicators import WAYS, component_numbers
from periplus.analyse.interlinking import between
from periplus.analyse.linkgraph import distinct_sorted
from periplus.model.fragment import Ints, UnitLinks, WebFragment
from periplus.model.survey import CompanionClass, CompanionRules, SiteMark, SiteStatus, Unit
from periplus.model.webometrics import CompanionSite, FragmentModel, Gain, SetRelation, SiteSet
from periplus.urls.hosts import is_within

GAINS_AT_MOST = 200  # communicators whose gain is measured, those of most units first: each costs two searches for components
NO_MARKS: Mapping[str, SiteMark] = {}


def strong_from(rules: CompanionRules, chosen: int) -> int:
    """How many different target units must link to a site to make it strong."""
    return max(rules.strong_least, math.ceil(rules.strong_share * chosen))


def class_of(units: int, back: int | None, is_global: bool, rules: CompanionRules, chosen: int) -> CompanionClass:
    """units: different target units that link to the site; back: to which it links; None: not known."""
    if is_global:
        return CompanionClass.GLOBAL
    if units >= strong_from(rules, chosen):
        return CompanionClass.COMMUNICATOR if back is not None and back >= rules.back_least else CompanionClass.STRONG
    return CompanionClass.PRIVATE if units == 1 else CompanionClass.WEAK


def companion_set(fragment: WebFragment, links: UnitLinks, rules: CompanionRules, marks: Mapping[str, SiteMark] = NO_MARKS) -> tuple[CompanionSite, ...]:
    """Every site that a target unit links to and that is not of the target set, those of most different units first.

    links: of the fragment, under the page model. What the user marked as out is left out. Nothing is crawled: other rules, other
    classes. O(links log links + gains).
    """
    chosen, size = fragment.chosen, len(fragment.units)
    outward = (links.sources < chosen) & (links.ends >= chosen)
    units = np.bincount(links.ends[outward], minlength=size)
    counts = np.bincount(links.ends[outward], links.counts[outward], minlength=size).astype(np.int64)
    back = np.bincount(links.sources[(links.sources >= chosen) & (links.ends < chosen)], minlength=size)
    documents = np.bincount(fragment.unit, minlength=size)
    probed = np.bincount(fragment.unit[fragment.fetched], minlength=size)
    pages = _citing_pages(fragment)
    suffixes = tuple(rules.global_sites)
    found = []
    for unit in np.flatnonzero(units).tolist():
        name = fragment.units[unit].name
        mark = marks.get(fragment.units[unit].prefixes[0], SiteMark(name))
        if mark.status is SiteStatus.OUT:
            continue
        returned = int(back[unit]) if probed[unit] else None
        found.append(
            CompanionSite(
                unit=unit,
                name=name,
                kind=class_of(int(units[unit]), returned, _is_global(fragment.units[unit], suffixes), rules, chosen),
                units=int(units[unit]),
                pages=int(pages[unit]),
                links=int(counts[unit]),
                back=returned,
                documents=int(documents[unit]),
                fetched=int(probed[unit]),
                gain=None,
                status=mark.status,
                tags=mark.tags,
            )
        )
    found.sort(key=lambda site: (-site.units, -site.links, site.name))
    return _with_gains(found, links, chosen, size)


def _citing_pages(fragment: WebFragment) -> Ints:
    """For each unit outside the target set, the target documents that link to it."""
    size = max(len(fragment.units), 1)
    end = fragment.unit[fragment.ends]
    kept = fragment.is_target[fragment.sources] & (end >= fragment.chosen)
    keys = distinct_sorted(fragment.sources[kept] * size + end[kept])
    return np.bincount(keys % size, minlength=size)


def _is_global(unit: Unit, domains: Sequence[str]) -> bool:
    host = unit.prefixes[0].partition("/")[0].partition(":")[0].removeprefix("*.")
    return any(is_within(host, domain) for domain in domains if host.endswith(domain))  # the second sieves: it is quicker


def _with_gains(sites: Sequence[CompanionSite], links: UnitLinks, chosen: int, size: int) -> tuple[CompanionSite, ...]:
    import dataclasses

    measured = [site.unit for site in sites if site.kind is CompanionClass.COMMUNICATOR][:GAINS_AT_MOST]
    gains = gains_of(links, measured, chosen, size)
    return tuple(dataclasses.replace(site, gain=gains[site.unit]) if site.unit in gains else site for site in sites)


def gains_of(links: UnitLinks, added: Sequence[int], chosen: int, size: int) -> dict[int, Gain]:
    """What each site, taken alone, adds to the target set's connectivity."""
    targets = np.arange(size) < chosen
    inner = between(links, targets)
    before = {way: component_numbers(inner.sources.astype(np.int64), inner.ends.astype(np.int64), chosen, way) for way in WAYS} if added else {}
    found = {}
    for site in added:
        kept = targets.copy()
        kept[site] = True
        part = between(links, kept)
        ends = [np.where(side == site, chosen, side).astype(np.int64) for side in (part.sources, part.ends)]
        after = {way: component_numbers(ends[0], ends[1], chosen + 1, way)[:chosen] for way in WAYS}
        found[site] = Gain(
            largest_strong=_largest(after["strong"]),
            strong_before=_largest(before["strong"]),
            largest_weak=_largest(after["weak"]),
            weak_before=_largest(before["weak"]),
            pairs=_pairs(after["strong"]),
            pairs_before=_pairs(before["strong"]),
        )
    return found


def _largest(numbers: Ints) -> int:
    return int(np.bincount(numbers).max()) if len(numbers) else 0


def _pairs(numbers: Ints) -> int:
    """Ordered pairs within one component."""
    counts = np.bincount(numbers) if len(numbers) else np.zeros(0, np.int64)
    return int((counts * (counts - 1)).sum())


def fragment_model(fragment: WebFragment, links: UnitLinks, companions: Sequence[CompanionSite]) -> FragmentModel:
    """The target set, the classes of the companion set, and the relations between them. links: of the fragment, under any model."""
    names = ["target", *(kind.value for kind in CompanionClass)]
    outside = len(names)
    part = np.full(max(len(fragment.units), 1), outside, np.int64)
    part[: fragment.chosen] = 0
    for site in companions:
        part[site.unit] = names.index(site.kind.value)
    sizes = np.bincount(part[: len(fragment.units)], minlength=outside + 1)
    documents = np.bincount(part[fragment.unit], minlength=outside + 1)
    fetched = np.bincount(part[fragment.unit[fragment.fetched]], minlength=outside + 1)
    read = np.bincount(fragment.unit[fragment.fetched], minlength=len(part)) > 0
    probed = Counter(part[np.flatnonzero(read)].tolist())
    sets = tuple(
        SiteSet(name, tuple(np.flatnonzero(part[: len(fragment.units)] == place).tolist()), probed[place], int(documents[place]), int(fetched[place]))
        for place, name in enumerate(names)
    )
    other = links.sources != links.ends
    source, end = part[links.sources[other]], part[links.ends[other]]
    keys = source * (outside + 1) + end
    pairs = np.bincount(keys, minlength=(outside + 1) ** 2)
    counts = np.bincount(keys, links.counts[other], minlength=(outside + 1) ** 2)
    relations = []
    for a in range(outside):
        for b in range(outside):
            key = a * (outside + 1) + b
            possible = int(sizes[a]) * int(sizes[b] - (a == b))
            if pairs[key]:
                relations.append(SetRelation(names[a], names[b], int(counts[key]), int(pairs[key]), float(pairs[key]) / possible))
    return FragmentModel(sets, tuple(relations))
