"""Webometrics of a fragment of the web: its model, units' indicators, links between units, and companion sites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from periplus.analyse.linkgraph import count_values, places_in_sorted, resolve_redirects, sort_distinct
from periplus.model.arrays import Ints, Ints32, Mask
from periplus.model.graph import REASONS, LinkRows, UrlRows
from periplus.model.visit import FETCHED_REASONS, Reason
from periplus.model.web import Url
from periplus.urls.hosts import is_ip, is_within, registry_suffix
from periplus_studies.model import (
    Centrality,
    CoLink,
    CompanionClass,
    CompanionRules,
    CompanionSite,
    Connectivity,
    DocumentModel,
    FragmentModel,
    Gain,
    ImpactFactor,
    SetRelation,
    SiteMark,
    SiteSet,
    SiteStatus,
    SuffixTally,
    Unit,
    UnitFigures,
    UnitLinks,
    WebFragment,
    class_of,
    strong_from,
)
from periplus_studies.units import UnitsOfUrls

_WAITING = frozenset({Reason.WAITING, Reason.DEPTH, Reason.HOST_DOWN, Reason.NOFOLLOW, Reason.TRAP, Reason.ALIVE})
_IS_FETCHED = np.array([reason in FETCHED_REASONS for reason in REASONS])
_IS_WAITING = np.array([reason in _WAITING for reason in REASONS])
BLOCK_ROWS = 500  # of co-links per batch: with 10,000 sites at most 5 M pairs, 60 MB
WAYS: tuple[Way, Way] = ("strong", "weak")
COUNTRY_LETTERS = 2  # ISO 3166 codes are the two-letter top level domains; internationalised country domains are xn--
# Cyrillic, but not countries
_GENERIC_PUNYCODE = frozenset(
    {"xn--80asehdb", "xn--80aswg", "xn--c1avg", "xn--p1acf", "xn--j1aef", "xn--d1acj3b", "xn--80adxhks"}
)
# steps of the search for shortest paths, some 2 s: of larger networks betweenness is estimated from a sample of sources
PATH_STEPS = 1_000_000
# Communicators whose gain is measured, by units: each takes two component searches
GAINS_AT_MOST = 200
NO_MARKS: Mapping[str, SiteMark] = {}


def web_fragment(
    urls: UrlRows, links: LinkRows, redirects: LinkRows, contents: tuple[Ints, Ints], assigned: UnitsOfUrls, chosen: int
) -> WebFragment:
    """The documents of all units and the distinct links between them.

    urls: ascending by id. links: hyperlinks. redirects: one per redirecting or alias URL. contents: (ids, digests) of
    fetched pages. assigned: of urls, chosen targets first. Dropped are links from pages that were not fetched, links to
    unknown URLs or redirect loops, and self-links. O(urls log urls + links log links).
    """
    fetched = _IS_FETCHED[urls.reasons] if len(urls.reasons) else np.zeros(0, np.bool_)
    names = list(map(_strip_scheme, urls.texts))
    place = _places_of_pages(urls, names, redirects, fetched)
    twin = _twins(urls, assigned.numbers, contents, fetched)
    place = np.where(place >= 0, twin[place], -1) if len(place) else place
    sources, ends = _counted_links(urls.ids, links, place, fetched)
    is_node = fetched | (_IS_WAITING[urls.reasons] if len(urls.reasons) else fetched)
    is_node &= place == np.arange(len(place))
    is_node[ends] = True
    number = np.cumsum(is_node) - 1
    rows = np.flatnonzero(is_node)
    count = max(len(rows), 1)
    pairs = sort_distinct(number[sources] * count + number[ends])
    directory, host = _folders(map(names.__getitem__, rows.tolist()), assigned.numbers[rows])
    return WebFragment(
        units=assigned.units,
        chosen=chosen,
        ids=urls.ids[rows],
        unit=assigned.numbers[rows],
        directory=directory,
        host=host,
        fetched=fetched[rows],
        waiting=_IS_WAITING[urls.reasons[rows]],
        sources=pairs // count,
        ends=pairs % count,
        merged=int((fetched & (twin != np.arange(len(twin)))).sum()),
    )


def _strip_scheme(url: Url) -> str:
    """The URL without scheme and `www.`."""
    return (url[8:] if url[4] == "s" else url[7:]).removeprefix("www.")


def _places_of_pages(urls: UrlRows, names: Sequence[str], redirects: LinkRows, fetched: Mask) -> Ints:
    """For each URL, the index of the URL that represents its page: the end of redirects, and of URLs with the same name
    (`_strip_scheme`) the fetched one, else the first. -1: none.
    """
    ids, is_somewhere = resolve_redirects(urls.ids, redirects)
    place = places_in_sorted(urls.ids, ids)
    place[~is_somewhere] = -1
    read = np.flatnonzero(fetched)[::-1].tolist()
    standing = dict(zip(map(names.__getitem__, read), read, strict=True))  # of several the first, which is written last
    first = np.fromiter(map(standing.setdefault, names, range(len(names))), np.int64, len(names))
    return np.where(place >= 0, _prefer_fetched_pages(first, place, fetched), -1) if len(place) else place


def _prefer_fetched_pages(first: Ints, place: Ints, fetched: Mask) -> Ints:
    """A fetched page represents itself: http and https may have answered differently, and equal contents are merged
    later.
    """
    return np.where(fetched[place], place, first[place])


def _twins(urls: UrlRows, units: Ints32, contents: tuple[Ints, Ints], fetched: Mask) -> Ints:
    """For each URL, the index of the first fetched page (by text) of its unit with the same content; its own if there
    is none.
    """
    twin = np.arange(len(urls.ids))
    place = places_in_sorted(urls.ids, contents[0])
    exists = place >= 0
    place, digest = place[exists], contents[1][exists]
    read = fetched[place]
    place, digest = place[read], digest[read]
    order = np.lexsort((digest, units[place]))
    place, digest = place[order], digest[order]
    same = np.zeros(len(place) + 1, np.bool_)  # equal to the previous one
    same[1:-1] = (digest[1:] == digest[:-1]) & (units[place[1:]] == units[place[:-1]])
    begins = np.flatnonzero(~same[:-1] & same[1:])
    ends = np.flatnonzero(same[:-1] & ~same[1:])
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        group = place[begin : end + 1]
        twin[group] = min(group.tolist(), key=lambda row: urls.texts[row])
    return twin


def _counted_links(ids: Ints, links: LinkRows, place: Ints, fetched: Mask) -> tuple[Ints, Ints]:
    """The links that count, by index."""
    none = np.zeros(0, np.int64)
    if not len(ids):
        return none, none
    source, end = places_in_sorted(ids, links.sources), places_in_sorted(ids, links.targets)
    exist = (source >= 0) & (end >= 0)
    source, end = source[exist], end[exist]
    read = fetched[source]
    source, end = place[source[read]], place[end[read]]
    counts = (source >= 0) & (end >= 0) & (source != end)
    return source[counts], end[counts]


def _folders(names: Iterable[str], units: Ints32) -> tuple[Ints32, Ints32]:
    """(directory number of each URL, host number), each within one unit. names: of the URLs, from `_strip_scheme`."""
    numbers: dict[str, int] = {}
    folders = ((name.partition("?")[0] if "?" in name else name).rpartition("/")[0] for name in names)
    folder = np.array([numbers.setdefault(name, len(numbers)) for name in folders], np.int64)
    hosts: dict[str, int] = {}
    host = np.array([hosts.setdefault(name.partition("/")[0], len(hosts)) for name in numbers], np.int64)
    return _number_pairs(folder, units), _number_pairs(host[folder], units)


def _number_pairs(values: Ints, units: Ints32) -> Ints32:
    """A number for each distinct pair of value and unit, from 0."""
    span = int(values.max()) + 1 if len(values) else 1
    keys = units.astype(np.int64) * span + values
    return np.searchsorted(sort_distinct(keys), keys).astype(np.int32)


def unit_links(fragment: WebFragment, model: DocumentModel) -> UnitLinks:
    """All linked pairs of units with their number of distinct document pairs; self-links are pairs of a unit with
    itself.

    O(links log links).
    """
    units = max(len(fragment.units), 1)
    source, end = fragment.sources, fragment.ends
    if model in (DocumentModel.DIRECTORY, DocumentModel.HOST):
        number = (fragment.directory if model is DocumentModel.DIRECTORY else fragment.host).astype(np.int64)
        source, end = _distinct_documents(fragment, number)
    pairs = fragment.unit[source].astype(np.int64) * units + fragment.unit[end]
    distinct, counts = count_values(pairs)
    counts = np.ones_like(counts) if model is DocumentModel.SITE else counts
    return UnitLinks(model, (distinct // units).astype(np.int32), (distinct % units).astype(np.int32), counts)


def _distinct_documents(fragment: WebFragment, number: Ints) -> tuple[Ints, Ints]:
    """One link per pair of directories or hosts, without self-links."""
    count = int(number.max()) + 1 if len(number) else 1
    source, end = number[fragment.sources], number[fragment.ends]
    other = source != end
    keys = sort_distinct(source[other] * count + end[other])
    examples = np.zeros(count, np.int64)  # a document represents each number
    examples[number] = np.arange(len(number))
    return examples[keys // count], examples[keys % count]


def between(links: UnitLinks, among: Mask) -> UnitLinks:
    """The links between the selected units, without self-links. among: one value per unit."""
    chosen = among[links.sources] & among[links.ends] & (links.sources != links.ends)
    return UnitLinks(links.model, links.sources[chosen], links.ends[chosen], links.counts[chosen])


def co_inlinks(
    links: UnitLinks, chosen: int, left_out: Mask | None = None, most: int | None = None
) -> tuple[CoLink, ...]:
    """For each pair of the first `chosen` units, the number of other sites that link to both; at most `most` pairs,
    highest first.

    left_out: sites that do not count.
    """
    return _shared_pairs(links.sources.astype(np.int64), links.ends.astype(np.int64), (chosen, most), left_out)


def couplings(
    links: UnitLinks, chosen: int, left_out: Mask | None = None, most: int | None = None
) -> tuple[CoLink, ...]:
    """Bibliographic coupling: for each pair of the first `chosen` units, the number of other sites both link to."""
    return _shared_pairs(links.ends.astype(np.int64), links.sources.astype(np.int64), (chosen, most), left_out)


def _shared_pairs(
    around: Ints, members: Ints, limits: tuple[int, int | None], left_out: Mask | None
) -> tuple[CoLink, ...]:
    """Pairs of members with a common `around`. limits: (members are below the first, most pairs).

    Multiplies the matrix by its transpose, BLOCK_ROWS rows at a time, so that a thousand fully linked sites need no
    list of all pairs.
    """
    from scipy.sparse import csr_array

    chosen, most = limits
    counted = (members < chosen) & (around != members)
    if left_out is not None:
        counted &= ~left_out[around]
    around, members = around[counted], members[counted]
    width = int(around.max()) + 1 if len(around) else 1
    links = csr_array((np.ones(len(members), np.int32), (members, around)), shape=(chosen, width))
    back = links.T.tocsr()
    pairs: list[CoLink] = []
    for start in range(0, chosen, BLOCK_ROWS):
        part = (links[start : start + BLOCK_ROWS] @ back).tocoo()
        first, second = part.coords[0] + start, part.coords[1]
        later = first < second
        first, second, counts = first[later], second[later], part.data[later]
        order = np.lexsort((second, first, -counts))[:most]
        pairs += map(CoLink, first[order].tolist(), second[order].tolist(), counts[order].tolist())
    return tuple(sorted(pairs, key=lambda pair: (-pair.sites, pair.first, pair.second))[:most])


Way = Literal["strong", "weak"]


def unit_figures(fragment: WebFragment, links: UnitLinks) -> tuple[UnitFigures, ...]:
    """Indicators of each target unit, in order.

    links: of this fragment, under any model; impact factors always count documents.
    """
    size, chosen = len(fragment.units), fragment.chosen
    own = links.sources == links.ends
    source_in, end_in = links.sources < chosen, links.ends < chosen
    inside, coming, leaving = ~own & source_in & end_in, ~source_in & end_in, source_in & ~end_in

    def sum_links(units: Ints32, which: Mask, weigh: bool = True) -> list[int]:
        weights = links.counts[which] if weigh else None
        sums: list[int] = np.bincount(units[which], weights, minlength=size).astype(np.int64).tolist()
        return sums

    fetched = np.bincount(fragment.unit[fragment.fetched], minlength=size).tolist()
    columns = (
        fetched,
        np.bincount(fragment.unit[fragment.waiting], minlength=size).tolist(),
        sum_links(links.ends, inside),
        sum_links(links.ends, inside, False),
        sum_links(links.ends, coming),
        sum_links(links.sources, inside),
        sum_links(links.sources, inside, False),
        sum_links(links.sources, leaving),
        sum_links(links.sources, leaving, False),
        sum_links(links.sources, own),
    )
    others, selves = _linking(fragment)
    figures = []
    for unit in range(chosen):
        whole, external, own_part = (
            ImpactFactor(count, fetched[unit]) for count in (others[unit] + selves[unit], others[unit], selves[unit])
        )
        figures.append(UnitFigures._make((unit, *[column[unit] for column in columns], whole, external, own_part)))
    return tuple(figures)


def _linking(fragment: WebFragment) -> tuple[list[int], list[int]]:
    """For each unit: documents of other units, and of its own, that link into it, each counted once."""
    size = max(len(fragment.units), 1)
    keys = sort_distinct(fragment.sources * size + fragment.unit[fragment.ends])
    source, unit = keys // size, keys % size
    own = fragment.unit[source] == unit
    return np.bincount(unit[~own], minlength=size).tolist(), np.bincount(unit[own], minlength=size).tolist()


def centralities(links: UnitLinks, chosen: int) -> tuple[Centrality, ...]:
    """The place of each of the first `chosen` units in the network of links between them, without self-links.

    Communities and cores take a link in either direction; HITS and communities weigh by links, as in the matrix.
    Sources: Kleinberg 1999, Blondel et al. 2008, Brandes 2001 and 2008, Batagelj and Zaversnik 2003.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import svds

    inside = between(links, np.arange(max([chosen, *links.sources + 1, *links.ends + 1])) < chosen)
    arcs = csr_array((inside.counts.astype(np.float64), (inside.sources, inside.ends)), shape=(chosen, chosen))
    hubs = authorities = np.zeros(chosen)
    if arcs.nnz and chosen > 2:
        left, _, right = svds(arcs, k=1, v0=np.ones(chosen))
        hubs, authorities = (np.abs(vector) / np.abs(vector).sum() for vector in (left[:, 0], right[0]))
    rows = [Centrality(unit, round(float(hubs[unit]), 6), round(float(authorities[unit]), 6)) for unit in range(chosen)]
    try:
        import networkx
    except ModuleNotFoundError:
        return tuple(rows)
    graph = networkx.from_scipy_sparse_array(arcs, create_using=networkx.DiGraph)
    both = networkx.from_scipy_sparse_array(arcs + arcs.T)
    parts = sorted(networkx.community.louvain_communities(both, seed=1), key=lambda part: (-len(part), min(part)))
    community = {unit: number for number, part in enumerate(parts, 1) for unit in part}
    sources = min(chosen, max(PATH_STEPS // max(arcs.nnz, 1), 50))
    ways = networkx.betweenness_centrality(graph, k=sources if sources < chosen else None, seed=1)
    cores = networkx.core_number(both)
    return tuple(
        row._replace(community=community[row.unit], betweenness=round(ways[row.unit], 6), core=cores[row.unit])
        for row in rows
    )


def connectivity(links: UnitLinks, units: Sequence[Unit], chosen: int) -> tuple[Connectivity, ...]:
    """Connectivity of the target set for three vertex sets: all its units, the official ones, and bundles (the units of
    one organisation as one vertex).
    """
    every = np.arange(len(units)) < chosen
    official = every & np.array([unit.official for unit in units], np.bool_)
    bundles: dict[str, int] = {}
    bundle = np.array(
        [bundles.setdefault(unit.bundle or f"\0{place}", len(bundles)) for place, unit in enumerate(units[:chosen])],
        np.int64,
    )
    whole = between(links, every)
    return (
        _connectivity_of("all", whole.sources, whole.ends, np.flatnonzero(every)),
        _connectivity_of("official", *_ends(between(links, official)), np.flatnonzero(official)),
        _connectivity_of("bundles", bundle[whole.sources], bundle[whole.ends], np.arange(len(bundles))),
    )


def connectivity_with(links: UnitLinks, chosen: int, added: Sequence[int], count: int) -> Connectivity:
    """Connectivity of the target set with some other sites as additional vertices. count: number of units."""
    chosen_units = np.arange(count) < chosen
    chosen_units[list(added)] = True
    return _connectivity_of("with communicators", *_ends(between(links, chosen_units)), np.flatnonzero(chosen_units))


def _ends(links: UnitLinks) -> tuple[Ints32, Ints32]:
    return links.sources, links.ends


def _connectivity_of(name: str, sources: Ints32 | Ints, ends: Ints32 | Ints, vertices: Ints) -> Connectivity:
    """vertices: ascending, including all ends. Parallel arcs and loops do not count."""
    size = max(len(vertices), 1)
    first, second = np.searchsorted(vertices, sources), np.searchsorted(vertices, ends)
    other = first != second
    keys = sort_distinct(first[other].astype(np.int64) * size + second[other])
    back = (keys % size) * size + keys // size
    place = np.searchsorted(keys, back).clip(max=max(len(keys) - 1, 0))
    mutual = int((keys[place] == back).sum()) if len(keys) else 0
    strong, weak = (_sizes(component_numbers(keys // size, keys % size, len(vertices), way)) for way in WAYS)
    return Connectivity(name, len(vertices), len(keys), mutual, strong, weak)


def component_numbers(sources: Ints, ends: Ints, size: int, way: Way) -> Ints:
    """The component number of each of size vertices, strong or weak."""
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
    tallies: dict[str, tuple[int, int]] = {}
    for site, weight in zip(sites.tolist(), weights.tolist(), strict=True):
        suffix = public_suffix(units[site].prefixes[0])
        count, total = tallies.get(suffix, (0, 0))
        tallies[suffix] = (count + 1, total + int(weight))
    return tuple(
        sorted(
            (_tally(suffix, *counts) for suffix, counts in tallies.items()),
            key=lambda tally: (-tally.sites, -tally.links, tally.suffix),
        )
    )


def _tally(suffix: str, sites: int, links: int) -> SuffixTally:
    domain = suffix.rpartition(".")[2]
    country = (len(domain) == COUNTRY_LETTERS and domain.isalpha()) or (
        domain.startswith("xn--") and domain not in _GENERIC_PUNYCODE
    )
    return SuffixTally(suffix, domain, country, sites, links)


def public_suffix(prefix: str) -> str:
    """The public suffix of a unit's host, such as `ac.uk`; empty for an IP address or a single label."""
    host = prefix.partition("/")[0].removeprefix("*.")
    return registry_suffix(host if is_ip(host) else host.partition(":")[0])


def companion_set(
    fragment: WebFragment, links: UnitLinks, rules: CompanionRules, marks: Mapping[str, SiteMark] = NO_MARKS
) -> tuple[CompanionSite, ...]:
    """All sites outside the target set that a target unit links to, by number of distinct units.

    links: of the fragment, under the page model. Sites that the user marked as out are left out. Nothing is crawled, so
    the rules can be changed at any time. O(links log links + gains).
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
    companions = []
    for unit in np.flatnonzero(units).tolist():
        name = fragment.units[unit].name
        mark = marks.get(fragment.units[unit].prefixes[0], SiteMark(name))
        if mark.status is SiteStatus.OUT:
            continue
        returned = int(back[unit]) if probed[unit] else None
        companions.append(
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
    companions.sort(key=lambda site: (-site.units, -site.links, site.name))
    return _with_gains(companions, links, chosen, size)


def _citing_pages(fragment: WebFragment) -> Ints:
    """For each unit outside the target set, the number of target documents that link to it."""
    size = max(len(fragment.units), 1)
    end = fragment.unit[fragment.ends]
    citing = fragment.is_target[fragment.sources] & (end >= fragment.chosen)
    keys = sort_distinct(fragment.sources[citing] * size + end[citing])
    return np.bincount(keys % size, minlength=size)


def companions_worth_reading(citing: Mapping[str, int], rules: CompanionRules, chosen: int, most: int) -> list[str]:
    """The `most` strong companions with most distinct target units linking to them, without global sites.

    citing: by host, the number of the `chosen` target units that link there.
    """
    least = strong_from(rules, chosen)
    strong = [
        name
        for name, units in citing.items()
        if units >= least and not _is_global(Unit(name, name, "", (name,)), rules.global_sites)
    ]
    return sorted(strong, key=lambda name: (-citing[name], name))[:most]


def _is_global(unit: Unit, domains: Sequence[str]) -> bool:
    host = unit.prefixes[0].partition("/")[0].partition(":")[0].removeprefix("*.")
    # endswith first: a fast filter
    return any(is_within(host, domain) for domain in domains if host.endswith(domain))


def _with_gains(sites: Sequence[CompanionSite], links: UnitLinks, chosen: int, size: int) -> tuple[CompanionSite, ...]:
    import dataclasses

    measured = [site.unit for site in sites if site.kind is CompanionClass.COMMUNICATOR][:GAINS_AT_MOST]
    gains = gains_of(links, measured, chosen, size)
    return tuple(dataclasses.replace(site, gain=gains[site.unit]) if site.unit in gains else site for site in sites)


def gains_of(links: UnitLinks, added: Sequence[int], chosen: int, size: int) -> dict[int, Gain]:
    """The gain in connectivity of the target set from adding each site alone."""
    targets = np.arange(size) < chosen
    inner = between(links, targets)
    before = (
        {
            way: component_numbers(inner.sources.astype(np.int64), inner.ends.astype(np.int64), chosen, way)
            for way in WAYS
        }
        if added
        else {}
    )
    gains = {}
    for site in added:
        covered = targets.copy()
        covered[site] = True
        part = between(links, covered)
        ends = [np.where(side == site, chosen, side).astype(np.int64) for side in (part.sources, part.ends)]
        after = {way: component_numbers(ends[0], ends[1], chosen + 1, way)[:chosen] for way in WAYS}
        gains[site] = Gain(
            largest_strong=_largest(after["strong"]),
            strong_before=_largest(before["strong"]),
            largest_weak=_largest(after["weak"]),
            weak_before=_largest(before["weak"]),
            pairs=_pairs(after["strong"]),
            pairs_before=_pairs(before["strong"]),
        )
    return gains


def _largest(numbers: Ints) -> int:
    return int(np.bincount(numbers).max()) if len(numbers) else 0


def _pairs(numbers: Ints) -> int:
    """Number of ordered pairs within one component."""
    counts = np.bincount(numbers) if len(numbers) else np.zeros(0, np.int64)
    return int((counts * (counts - 1)).sum())


def fragment_model(fragment: WebFragment, links: UnitLinks, companions: Sequence[CompanionSite]) -> FragmentModel:
    """The target set, the classes of the companion set, and the relations between them.

    links: of the fragment, under any model.
    """
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
        SiteSet(
            name,
            tuple(np.flatnonzero(part[: len(fragment.units)] == place).tolist()),
            probed[place],
            int(documents[place]),
            int(fetched[place]),
        )
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
                relations.append(
                    SetRelation(names[a], names[b], int(counts[key]), int(pairs[key]), float(pairs[key]) / possible)
                )
    return FragmentModel(sets, tuple(relations))
