"""Invalid links, and links to other domains."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_engine import invalid_links
from periplus.analyse.linkgraph import LinksOfDomains, external_domains

# 0, 1: own pages; 2, 3: domain 20; 4: domain 30; 5: own, failed; 6: domain 30, failed
DOMAIN = np.array([10, 10, 20, 20, 30, 10, 30])
FETCHED = np.array([True, True, False, False, False, False, False])
FAILED = np.array([False] * 5 + [True, True])


def links(*pairs):
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return LinksOfDomains(DOMAIN, FETCHED, FAILED, table[:, 0], table[:, 1])


def test_a6_invalid_links_are_those_from_indexed_to_invalid():
    assert invalid_links(links((1, 6), (0, 5), (0, 1), (2, 5), (0, 6))).tolist() == [1, 4, 0]


def test_a7_external_links_lead_to_other_domains_and_are_not_invalid():
    found = external_domains(links((0, 4), (0, 2), (1, 2), (1, 3), (0, 6), (0, 1), (2, 4)))
    assert found.domain.tolist() == [20, 30]
    assert (found.links.tolist(), found.pages.tolist(), found.targets.tolist()) == ([3, 1], [2, 1], [2, 1])
    assert found.rows.tolist() == [1, 2, 3, 0]
    assert found.offsets.tolist() == [0, 3, 4]


def test_without_links_nothing_is_found():
    assert external_domains(links()).rows.tolist() == []
    assert invalid_links(links()).tolist() == []


@settings(max_examples=80)
@given(pairs=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=40))
def test_both_agree_with_the_published_definitions(pairs):
    known = links(*pairs)
    found = external_domains(known)
    published = {(p, q) for p, q in pairs if FETCHED[p] and DOMAIN[p] != DOMAIN[q] and not FAILED[q]}
    assert {pairs[row] for row in found.rows.tolist()} == published
    assert {pairs[row] for row in invalid_links(known).tolist()} == {
        (p, q) for p, q in pairs if FETCHED[p] and FAILED[q]
    }
    for place, domain in enumerate(found.domain.tolist()):
        mine = [(p, q) for p, q in pairs if (p, q) in published and DOMAIN[q] == domain]
        rows = found.rows[found.offsets[place] : found.offsets[place + 1]].tolist()
        assert sorted(pairs[row] for row in rows) == sorted(mine)
        assert (found.pages[place], found.targets[place]) == (len({p for p, _ in mine}), len({q for _, q in mine}))
