"""Indicators, companion sites and connectivity, checked by hand on a small web and with networkx and slow code."""

import math
import sys
from dataclasses import replace
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from periplus.errors import UsageError
from periplus_studies.analyse import (
    between,
    centralities,
    co_inlinks,
    companion_set,
    connectivity,
    couplings,
    gains_of,
    suffix_tallies,
    unit_figures,
    unit_links,
)
from periplus_studies.model import (
    CompanionClass,
    CompanionRules,
    DocumentModel,
    SiteMark,
    SiteStatus,
    UnitLinks,
    WebFragment,
    class_of,
    strong_from,
)
from periplus_studies.results import SurveyOrder, mark_sites, survey_of
from periplus_studies.statistics import density_estimate, wif_estimates, wilson
from periplus_studies.units import promote, unit_of
from stored import page, stored

A, B, C = "https://a.cz/", "https://www.b.cz/", "https://c.ac.uk/"
WEB = {
    A: page("A", "/x/1", "/x/2", B, "https://hub.org/"),
    A + "x/1": page("A1", "/", "http://b.cz/p", B, "https://hub.org/", "https://google.com/"),
    A + "x/2": page("A2", "/old", "https://hub.org/z"),
    A + "old": "/x/1",
    B: page("B", "/p", "/copy", A, "https://hub.org/z", "https://lone.co.uk/"),
    B + "p": page("BP", A + "x/1", A + "old"),
    B + "copy": page("BP", A + "x/1", A + "old"),
    C: page("C", "https://hub.org/", A),
}
"""Three sites. a.cz/old redirects to x/1; www.b.cz/copy has the bytes of www.b.cz/p; c.ac.uk is linked to by nobody."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("web") / "c", WEB, [A, B, C])


@pytest.fixture(scope="module")
def found(folder):
    return survey_of(folder)


def test_figures_equal_a_calculation_by_hand(found):
    a, b, c = found.figures
    # a.cz: 3 documents. In: B->A, BP->A1 (copy is BP; old is A1), C->A. Out: A->B, A1->BP
    # (b.cz/p is www.b.cz/p), A1->B.
    assert (a.fetched, a.in_links, a.in_units, a.out_links, a.out_units) == (3, 3, 2, 3, 1)
    assert a.self_links == 4  # A->A1, A->A2, A1->A, A2->A1 through the redirect
    assert (a.out_companion, a.out_sites) == (4, 2)  # A->hub, A1->hub, A1->google, A2->hub/z
    assert (b.fetched, b.in_links, b.out_links, b.self_links, b.out_companion) == (2, 3, 2, 1, 2)
    assert (c.fetched, c.in_links, c.out_links, c.self_links, c.out_companion) == (1, 0, 1, 0, 1)


def test_impact_factors_show_both_figures(found):
    a, b, c = found.figures
    assert (a.external_wif.linking, a.external_wif.documents, a.external_wif.value) == (3, 3, 1.0)  # B, BP, C
    assert (a.self_wif.linking, a.wif.linking) == (3, 6)  # A, A1, A2
    assert (b.external_wif.linking, b.wif.linking, b.external_wif.value) == (2, 3, 1.0)  # A, A1; B itself
    assert (c.wif.linking, c.wif.documents, c.wif.value) == (0, 1, None), "with one page it is a count and not a factor"


def test_document_models_equal_a_calculation_by_hand(found):
    # directories: a.cz -> b.cz twice as pages, and a.cz/x -> b.cz; b.cz -> a.cz, b.cz -> a.cz/x, c -> a.cz
    assert dict(found.totals) == {
        DocumentModel.PAGE: 6,
        DocumentModel.DIRECTORY: 5,
        DocumentModel.HOST: 3,
        DocumentModel.SITE: 3,
    }
    assert found.method.merged == 1


def test_companions_are_ranked_by_different_units(found):
    rows = [(site.name, site.kind, site.units, site.pages, site.links, site.back) for site in found.companions]
    assert rows == [
        ("hub.org", CompanionClass.STRONG, 3, 5, 5, None),
        ("google.com", CompanionClass.GLOBAL, 1, 1, 1, None),
        ("lone.co.uk", CompanionClass.PRIVATE, 1, 1, 1, None),
    ]


def test_connectivity_equals_a_calculation_by_hand(found):
    everything = found.connectivity[0]
    assert (everything.sites, everything.arcs, everything.mutual) == (3, 3, 2)  # a->b, b->a, c->a
    assert everything.density == 0.5
    assert everything.reciprocity == pytest.approx(2 / 3)
    assert everything.strong == (2, 1)
    assert everything.weak == (3,)


def test_co_links_and_suffixes_equal_a_calculation_by_hand(found):
    # all three link to hub.org; b and c also to a
    assert [tuple(pair) for pair in found.couplings] == [(1, 2, 2), (0, 1, 1), (0, 2, 1)]
    assert found.co_inlinks == ()
    assert [(tally.suffix, tally.domain, tally.country, tally.sites) for tally in found.suffixes_out] == [
        ("org", "org", False, 1),
        ("co.uk", "uk", True, 1),
        ("com", "com", False, 1),
    ]


def test_bundles_and_official_sites_are_vertex_sets(folder):
    units = [unit_of(A, bundle="u"), unit_of(B, bundle="u", official=False), unit_of(C)]
    everything, official, bundles = survey_of(folder, units).connectivity
    assert (everything.sites, official.sites, bundles.sites) == (3, 2, 2)
    assert (official.arcs, bundles.arcs) == (1, 1)  # c -> a; c -> {a, b}


def test_the_global_list_matches_whole_domains(tmp_path):
    links = [
        "https://maps.google.com/x",
        "https://notgoogle.com/",
        "https://ann.github.io/",
        "https://google.com.evil.example/",
    ]
    found = survey_of(stored(tmp_path / "c", {A: page("A", *links)}, [A]))
    assert {site.name for site in found.companions if site.kind is CompanionClass.GLOBAL} == {"maps.google.com"}
    assert len(found.companions) == 4


def test_a_companion_site_can_be_promoted(folder, found):
    hub = promote(found.units[found.companions[0].unit])
    assert hub.start == "https://hub.org/"
    again = survey_of(folder, [*found.units[:3], hub])
    assert (again.figures[3].in_units, again.method.units[3].state) == (3, "not available: outside the scope")
    assert "hub.org" not in {site.name for site in again.companions}


def test_marks_are_stored_and_excluded_sites_omitted(tmp_path):
    folder = stored(tmp_path / "c", WEB, [A, B, C])
    mark_sites(
        folder,
        [SiteMark("hub.org", SiteStatus.UNDECIDED, ("journal", "seen")), SiteMark("lone.co.uk", SiteStatus.OUT)],
        1.0,
    )
    marks = {site.name: (site.status, site.tags) for site in survey_of(folder).companions}
    assert marks == {"hub.org": (SiteStatus.UNDECIDED, ("journal", "seen")), "google.com": (SiteStatus.DISCOVERED, ())}


def test_the_conceptual_model_counts_sets_and_relations(found):
    sets = {part.name: len(part.sites) for part in found.model.sets}
    assert sets == {"target": 3, "private": 1, "weak": 0, "strong": 1, "communicator": 0, "global": 1}
    relation = next(relation for relation in found.model.relations if relation.end == "strong")
    assert (relation.source, relation.links, relation.pairs, relation.density) == ("target", 5, 3, 1.0)


def test_units_without_a_page_have_a_reason(folder):
    found = survey_of(folder, [unit_of(A), unit_of("https://hub.org/"), unit_of("https://nowhere.example/")])
    assert [record.state for record in found.method.units] == [
        "",
        "not available: outside the scope",
        "no link to it known",
    ]


def test_an_unknown_item_is_refused(folder):
    with pytest.raises(UsageError, match="page, host, domain"):
        survey_of(folder, order=SurveyOrder(item="word"))


@pytest.mark.parametrize(
    ("units", "back", "is_global", "kind"),
    [
        (1, None, False, "private"),
        (2, None, False, "weak"),
        (3, None, False, "strong"),
        (3, 1, False, "strong"),
        (3, 2, False, "communicator"),
    ],
)
def test_classes_follow_the_rules(units, back, is_global, kind):
    assert class_of(units, back, is_global, CompanionRules(), 10) == kind
    assert class_of(units, back, True, CompanionRules(), 10) == "global"


def test_the_threshold_of_strong_grows_with_the_target_set():
    assert [strong_from(CompanionRules(), chosen) for chosen in (10, 60, 61, 1000)] == [3, 3, 4, 50]


def test_waiting_pages_count_as_far_as_such_pages_answer(tmp_path):
    """Of eight requested pages two answer; sixteen wait."""
    paths = [f"/{place}" for place in range(23)]
    web = {A: page("A", *paths), A + "0": page("A0", "https://hub.org/")} | {
        A + str(place): 404 for place in range(1, 7)
    }
    rich = survey_of(stored(tmp_path / "c", web, [A])).harvest.richness
    assert (rich.pages, rich.known) == (2, 2 + math.ceil(16 * (2 + 3 * 2 / 8) / (8 + 3)))


def drawn(seed, units=60, chosen=40, documents=600, links=3000):
    """A random fragment: documents of units, some of them fetched, and distinct links of fetched documents."""
    rng = np.random.default_rng(seed)
    unit = np.sort(rng.integers(0, units, documents)).astype(np.int32)
    fetched = rng.random(documents) < 0.6
    pairs = np.unique(rng.choice(np.flatnonzero(fetched), links) * documents + rng.integers(0, documents, links))
    source, end = pairs // documents, pairs % documents
    source, end = source[source != end], end[source != end]
    folder = (np.arange(documents) // 4).astype(np.int32)
    _, directory = np.unique(unit.astype(np.int64) * documents + folder, return_inverse=True)
    sites = tuple(
        unit_of(f"https://s{place}.example/", bundle=f"b{place % 11}" if place % 2 else "", official=place % 3 > 0)
        for place in range(units)
    )
    ids = np.arange(documents, dtype=np.int64)
    return WebFragment(sites, chosen, ids, unit, directory.astype(np.int32), unit, fetched, ~fetched, source, end, 0)


def digraph(links, kept):
    graph = nx.DiGraph()
    graph.add_nodes_from(kept)
    inside = set(kept)
    graph.add_edges_from(
        (a, b)
        for a, b in zip(links.sources.tolist(), links.ends.tolist(), strict=True)
        if a != b and a in inside and b in inside
    )
    return graph


@pytest.mark.parametrize("seed", [1, 2])
def test_counts_agree_with_plain_loops(seed):
    fragment = drawn(seed)
    unit, pairs = fragment.unit.tolist(), list(zip(fragment.sources.tolist(), fragment.ends.tolist(), strict=True))
    documents = {
        DocumentModel.PAGE: range(len(unit)),
        DocumentModel.DIRECTORY: fragment.directory.tolist(),
        DocumentModel.HOST: fragment.host.tolist(),
    }
    for model, number in documents.items():
        distinct = {(unit[a], unit[b], number[a], number[b]) for a, b in pairs if number[a] != number[b]}
        plain = {}
        for a, b, _, _ in distinct:
            plain[a, b] = plain.get((a, b), 0) + 1
        links = unit_links(fragment, model)
        assert (
            dict(zip(zip(links.sources.tolist(), links.ends.tolist(), strict=True), links.counts.tolist(), strict=True))
            == plain
        )
    site = unit_links(fragment, DocumentModel.SITE)
    assert set(site.counts.tolist()) == {1}
    assert len(site.counts) == len({(unit[a], unit[b]) for a, b in pairs})


@pytest.mark.parametrize("seed", [3, 4])
def test_figures_agree_with_plain_loops(seed):
    fragment = drawn(seed)
    unit, pairs = fragment.unit.tolist(), list(zip(fragment.sources.tolist(), fragment.ends.tolist(), strict=True))
    links = unit_links(fragment, DocumentModel.PAGE)
    for row in unit_figures(fragment, links)[::7]:
        mine, chosen = row.unit, fragment.chosen
        into = [(a, unit[a]) for a, b in pairs if unit[b] == mine]
        out = [unit[b] for a, b in pairs if unit[a] == mine and unit[b] != mine]
        assert row.in_links == sum(1 for _, other in into if other != mine and other < chosen)
        assert row.in_companion == sum(1 for _, other in into if other >= chosen)
        assert row.external_wif.linking == len({a for a, other in into if other != mine})
        assert row.self_wif.linking == len({a for a, other in into if other == mine})
        assert (row.out_links, row.out_companion) == (
            sum(other < chosen for other in out),
            sum(other >= chosen for other in out),
        )
        assert (row.out_units, row.out_sites) == (
            len({o for o in out if o < chosen}),
            len({o for o in out if o >= chosen}),
        )
    inside = (links.sources < fragment.chosen) & (links.ends < fragment.chosen)
    assert links.counts[inside].sum() == sum(
        1 for a, b in pairs if unit[a] < fragment.chosen and unit[b] < fragment.chosen
    )


@pytest.mark.parametrize("seed", [5, 6])
def test_connectivity_agrees_with_networkx(seed):
    fragment = drawn(seed, documents=400, links=150)
    links = unit_links(fragment, DocumentModel.PAGE)
    targets = range(fragment.chosen)
    everything, official, bundles = connectivity(links, fragment.units, fragment.chosen)
    kept = [place for place in targets if fragment.units[place].official]
    by_bundle = nx.quotient_graph(
        digraph(links, targets),
        lambda a, b: a == b or bool(fragment.units[a].bundle and fragment.units[a].bundle == fragment.units[b].bundle),
    )
    for mine, graph in ((everything, digraph(links, targets)), (official, digraph(links, kept)), (bundles, by_bundle)):
        assert (mine.sites, mine.arcs) == (graph.number_of_nodes(), graph.number_of_edges())
        assert mine.density == pytest.approx(nx.density(graph))
        assert mine.reciprocity == pytest.approx(nx.overall_reciprocity(graph))
        assert list(mine.strong) == sorted(map(len, nx.strongly_connected_components(graph)), reverse=True)
        assert list(mine.weak) == sorted(map(len, nx.weakly_connected_components(graph)), reverse=True)


@pytest.mark.parametrize("seed", [5, 6])
def test_hubs_and_authorities_agree_with_networkx(seed):
    fragment = drawn(seed, documents=400, links=150)
    links = unit_links(fragment, DocumentModel.PAGE)
    inside = between(links, np.arange(len(fragment.units)) < fragment.chosen)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(fragment.chosen))
    graph.add_weighted_edges_from(
        zip(*(row.tolist() for row in (inside.sources, inside.ends, inside.counts)), strict=True)
    )
    hubs, authorities = nx.hits(graph)
    for row in centralities(links, fragment.chosen):
        assert (row.hub, row.authority) == pytest.approx((hubs[row.unit], authorities[row.unit]), abs=1e-4)
        assert row.betweenness == pytest.approx(nx.betweenness_centrality(graph)[row.unit], abs=1e-5)


def test_communities_cores_and_paths_of_two_triangles_and_a_bridge(monkeypatch):
    ways = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (0, 9), (9, 0), (1, 1)]
    source, end = np.array(sorted(ways), np.int32).T
    links = UnitLinks(DocumentModel.PAGE, source, end, np.ones(len(ways), np.int64))
    rows = centralities(links, 7)
    assert [row.community for row in rows] == [1, 1, 1, 2, 2, 2, 3]
    assert [row.core for row in rows] == [2, 2, 2, 2, 2, 2, 0]
    assert max(rows, key=lambda row: row.betweenness).unit in (2, 3)
    monkeypatch.setitem(sys.modules, "networkx", None)
    assert [(row.community, row.core, row.hub) for row in centralities(links, 7)] == [
        (None, None, row.hub) for row in rows
    ]


def test_surveys_of_no_and_of_one_site_have_centralities():
    none = np.zeros(0, np.int64)
    links = UnitLinks(DocumentModel.PAGE, none.astype(np.int32), none.astype(np.int32), none)
    assert centralities(links, 0) == ()
    assert [row.hub for row in centralities(links, 1)] == [0.0]


@pytest.mark.parametrize("seed", [7, 8])
def test_the_gain_of_communicators_agrees_with_networkx(seed):
    fragment = drawn(seed, documents=400, links=110)
    links = unit_links(fragment, DocumentModel.PAGE)
    rules = CompanionRules(strong_least=2, strong_share=0.0, back_least=1)
    sites = [site for site in companion_set(fragment, links, rules) if site.kind is CompanionClass.COMMUNICATOR]
    assert sites
    targets = set(range(fragment.chosen))
    for site in sites:
        graph = digraph(links, [*targets, site.unit])
        strong = [len(part & targets) for part in nx.strongly_connected_components(graph)]
        assert site.gain is not None
        assert site.gain.largest_strong == max(strong)
        assert site.gain.pairs == sum(size * (size - 1) for size in strong)
        assert site.gain.largest_weak == max(len(part & targets) for part in nx.weakly_connected_components(graph))
    assert gains_of(links, [], fragment.chosen, len(fragment.units)) == {}


@pytest.mark.parametrize("seed", [9, 10])
def test_co_links_agree_with_plain_loops(seed):
    fragment = drawn(seed, documents=300, links=400)
    links = unit_links(fragment, DocumentModel.PAGE)
    arcs = [(a, b) for a, b in zip(links.sources.tolist(), links.ends.tolist(), strict=True) if a != b]
    for mine, ends in ((co_inlinks, {}), (couplings, {})):
        for a, b in arcs:
            member, around = (b, a) if mine is co_inlinks else (a, b)
            ends.setdefault(member, set()).add(around)
        plain = {
            (x, y): len(ends.get(x, set()) & ends.get(y, set())) for x, y in combinations(range(fragment.chosen), 2)
        }
        assert {(pair.first, pair.second): pair.sites for pair in mine(links, fragment.chosen)} == {
            pair: n for pair, n in plain.items() if n
        }


def test_an_empty_fragment_has_empty_figures():
    none = np.zeros(0, np.int64)
    fragment = WebFragment(
        (),
        0,
        none,
        none.astype(np.int32),
        none.astype(np.int32),
        none.astype(np.int32),
        none > 0,
        none > 0,
        none,
        none,
        0,
    )
    for model in DocumentModel:
        assert len(unit_links(fragment, model).counts) == 0
    links = UnitLinks(DocumentModel.PAGE, none.astype(np.int32), none.astype(np.int32), none)
    assert unit_figures(fragment, links) == ()
    assert companion_set(fragment, links, CompanionRules()) == ()
    assert connectivity(links, (), 0)[0].density == 0.0
    assert suffix_tallies(links, (), 0, inward=True) == ()
    assert math.isclose(sum(connectivity(links, (), 0)[0].strong), 0)


def test_co_links_of_a_dense_web_are_computed():
    """A list of all pairs was too large for a thousand dense sites."""
    size = 600
    source, end = np.divmod(np.arange(size * size), size)
    other = source != end
    links = UnitLinks(
        DocumentModel.PAGE,
        source[other].astype(np.int32),
        end[other].astype(np.int32),
        np.ones(int(other.sum()), np.int64),
    )
    first = [(0, place, size - 2) for place in (1, 2, 3)]
    assert [tuple(pair) for pair in co_inlinks(links, size, most=3)] == first
    assert [tuple(pair) for pair in couplings(links, size, most=3)] == first


def half_read(seed):
    """(a web whose pages are all fetched, the same with a random half of each site's pages)."""
    whole, rng = drawn(seed, units=20, chosen=20, documents=800, links=2500), np.random.default_rng(seed)
    documents = np.arange(len(whole.ids))
    folders = {"directory": whole.unit, "host": whole.unit}
    whole = replace(whole, **folders, fetched=documents >= 0, waiting=documents < 0)
    fetched = np.concatenate(
        [rng.permutation(np.arange(n := int((whole.unit == unit).sum())) < n / 2) for unit in range(20)]
    )
    read = fetched[whole.sources]
    return whole, replace(whole, fetched=fetched, waiting=~fetched, sources=whole.sources[read], ends=whole.ends[read])


def test_intervals_of_impact_factors_and_density_hold_the_values_of_whole_sites():
    """Twenty random webs of which half was read; nineteen of twenty intervals hold, and the sample alone is too low."""
    held, too_low, dense = [], [], []
    for seed in range(20):
        whole, part = half_read(seed)
        known = np.bincount(whole.unit, minlength=20).astype(float)
        truth = unit_figures(whole, unit_links(whole, DocumentModel.PAGE))
        for row, all_pages, external in zip(
            truth, wif_estimates(part, known, own=True), wif_estimates(part, known, own=False), strict=True
        ):
            for interval, factor in ((all_pages, row.wif), (external, row.external_wif)):
                held.append(interval.low <= factor.value <= interval.high)
                too_low.append(interval.value < factor.value)
        estimate = density_estimate(part, known)
        arcs = connectivity(unit_links(whole, DocumentModel.PAGE), whole.units, 20)[0]
        dense.append(estimate.low <= arcs.density <= estimate.high)
        for interval in wif_estimates(whole, known, own=True):
            assert interval.low == pytest.approx(interval.value) == pytest.approx(interval.high)
    assert np.mean(held) >= 0.94 and 0.4 < np.mean(too_low) < 0.6 and np.mean(dense) >= 0.9


@pytest.mark.parametrize(("hits", "sample"), [(0, 5), (3, 10), (40, 50), (9, 9)])
def test_wilsons_interval_agrees_with_scipy_in_a_large_population(hits, sample):
    low, high = wilson(*(np.array([float(value)]) for value in (hits, sample, 1e12)))
    there = stats.binomtest(hits, sample).proportion_ci(method="wilson")
    assert (low[0], high[0]) == (pytest.approx(there.low, abs=1e-6), pytest.approx(there.high, abs=1e-6))
