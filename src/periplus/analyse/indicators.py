"""Which webometric figures does each unit of the target set have, and how do the units hang together?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from periplus.analyse.interlinking import between
from periplus.analyse.linkgraph import distinct_sorted
from periplus.model.fragment import Ints, Mask, Numbers, UnitLinks, WebFragment
from periplus.model.survey import Unit
from periplus.model.webometrics import Connectivity, ImpactFactor, SuffixTally, UnitFigures
from periplus.urls.hosts import is_ip, registry_suffix

Way = Literal["strong", "weak"]
WAYS: tuple[Way, Way] = ("strong", "weak")
COUNTRY_LETTERS = 2  # ISO 3166 codes are the top level domains of two letters; in punycode countries' names are xn--
_GENERIC_ENCODED = frozenset({"xn--80asehdb", "xn--80aswg", "xn--c1avg", "xn--p1acf", "xn--j1aef", "xn--d1acj3b", "xn--80adxhks"})  # Cyrillic, no country


def unit_figures(fragment: WebFragment, links: UnitLinks) -> tuple[UnitFigures, ...]:
    """Figures of each target unit, in order. links: of this fragment, under any model; impact factors count documents whatever the model."""
    size, chosen = len(fragment.units), fragment.chosen
    own = links.sources == links.ends
    source_in, end_in = links.sources < chosen, links.ends < chosen
    inside, coming, leaving = ~own & source_in & end_in, ~source_in & end_in, source_in & ~end_in

    def summed(units: Numbers, which: Mask, weigh: bool = True) -> list[int]:
        weights = links.counts[which] if weigh else None
        sums: list[int] = np.bincount(units[which], weights, minlength=size).astype(np.int64).tolist()
        return sums

    fetched = np.bincount(fragment.unit[fragment.fetched], minlength=size).tolist()
    columns = (
        fetched,
        np.bincount(fragment.unit[fragment.waiting], minlength=size).tolist(),
        summed(links.ends, inside),
        summed(links.ends, inside, False),
        summed(links.ends, coming),
        summed(links.sources, inside),
        summed(links.sources, inside, False),
        summed(links.sources, leaving),
        summed(links.sources, leaving, False),
        summed(links.sources, own),
    )
    others, selves = _linking(fragment)
    found = []
    for unit in range(chosen):
        whole, external, own_part = (ImpactFactor(count, fetched[unit]) for count in (others[unit] + selves[unit], others[unit], selves[unit]))
        found.append(UnitFigures._make((unit, *[column[unit] for column in columns], whole, external, own_part)))
    return tuple(found)


def _linking(fragment: WebFragment) -> tuple[list[int], list[int]]:
    """For each unit: documents of others, and of its own, that link into it, each counted once."""
    size = max(len(fragment.units), 1)
    keys = distinct_sorted(fragment.sources * size + fragment.unit[fragment.ends])
    source, unit = keys // size, keys % size
    own = fragment.unit[source] == unit
    return np.bincount(unit[~own], minlength=size).tolist(), np.bincount(unit[own], minlength=size).tolist()


def connectivity(links: UnitLinks, units: Sequence[Unit], chosen: int) -> tuple[Connectivity, ...]:
    """The target set's, on three vertex sets: all its units, the official ones, and bundles (all units of one organisation as one)."""
    every = np.arange(len(units)) < chosen
    official = every & np.array([unit.official for unit in units], np.bool_)
    bundles: dict[str, int] = {}
    bundle = np.array([bundles.setdefault(unit.bundle or f"\0{place}", len(bundles)) for place, unit in enumerate(units[:chosen])], np.int64)
    whole = between(links, every)
    return (
        _connected("all", whole.sources, whole.ends, np.flatnonzero(every)),
        _connected("official", *_ends(between(links, official)), np.flatnonzero(official)),
        _connected("bundles", bundle[whole.sources], bundle[whole.ends], np.arange(len(bundles))),
    )


def connectivity_with(links: UnitLinks, chosen: int, added: Sequence[int], count: int) -> Connectivity:
    """The target set's with some other sites as vertices. count: units in all."""
    kept = np.arange(count) < chosen
    kept[list(added)] = True
    return _connected("with communicators", *_ends(between(links, kept)), np.flatnonzero(kept))


def _ends(links: UnitLinks) -> tuple[Numbers, Numbers]:
    return links.sources, links.ends


def _connected(name: str, sources: Numbers | Ints, ends: Numbers | Ints, vertices: Ints) -> Connectivity:
    """vertices: ascending, every end among them. Parallel arcs and loops do not count."""
    size = max(len(vertices), 1)
    first, second = np.searchsorted(vertices, sources), np.searchsorted(vertices, ends)
    other = first != second
    keys = distinct_sorted(first[other].astype(np.int64) * size + second[other])
    back = (keys % size) * size + keys // size
    place = np.searchsorted(keys, back).clip(max=max(len(keys) - 1, 0))
    mutual = int((keys[place] == back).sum()) if len(keys) else 0
    strong, weak = (_sizes(component_numbers(keys // size, keys % size, len(vertices), way)) for way in WAYS)
    return Connectivity(name, len(vertices), len(keys), mutual, strong, weak)


def component_numbers(sources: Ints, ends: Ints, size: int, way: Way) -> Ints:
    """The component of each of size vertices, strong or weak."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not size:
        return np.zeros(0, np.int64)
    arcs = coo_array((np.ones(len(sources), np.int8), (sources, ends)), shape=(size, size)).tocsr()
    _, numbers = connected_components(arcs, directed=True, connection=way)
    return np.asarray(numbers, np.int64)


def _sizes(numbers: Ints) -> tuple[int, ...]:
    return tuple(np.sort(np.bincount(numbers))[::-1].tolist()) if len(numbers) else ()


def suffix_tallies(links: UnitLinks, units: Sequence[Unit], chosen: int, *, inward: bool) -> tuple[SuffixTally, ...]:
    """Sites outside the target set that it links to (inward: that link to it), by public suffix; most sites first."""
    near, far = (links.ends, links.sources) if inward else (links.sources, links.ends)
    across = (near < chosen) & (far >= chosen)
    sites, group = np.unique(far[across], return_inverse=True)
    weights = np.bincount(group, links.counts[across], minlength=len(sites))
    found: dict[str, tuple[int, int]] = {}
    for site, weight in zip(sites.tolist(), weights.tolist(), strict=True):
        suffix = public_suffix(units[site].prefixes[0])
        count, total = found.get(suffix, (0, 0))
        found[suffix] = (count + 1, total + int(weight))
    return tuple(sorted((_tally(suffix, *counts) for suffix, counts in found.items()), key=lambda tally: (-tally.sites, -tally.links, tally.suffix)))


def _tally(suffix: str, sites: int, links: int) -> SuffixTally:
    domain = suffix.rpartition(".")[2]
    country = (len(domain) == COUNTRY_LETTERS and domain.isalpha()) or (domain.startswith("xn--") and domain not in _GENERIC_ENCODED)
    return SuffixTally(suffix, domain, country, sites, links)


def public_suffix(prefix: str) -> str:
    """Under what the name of a unit's host is registered: `ac.uk`; empty for an address or a single name."""
    host = prefix.partition("/")[0].removeprefix("*.")
    return registry_suffix(host if is_ip(host) else host.partition(":")[0])
