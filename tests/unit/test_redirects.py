"""Redirect chains and their ends."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.analyse.verdicts import RedirectColumns, chain_ends, chain_rows


def columns(*rows):
    table = np.array(rows, np.int64).reshape(-1, 3)
    return RedirectColumns(table[:, 0], table[:, 1], table[:, 2].astype(np.int16))


def rows_of(redirects, **more):
    return [
        (row.chain_id, row.order, row.url_id, row.status, row.role)
        for row in chain_rows(redirects, more.get("final", {}))
    ]


def test_a_chain_is_listed_once_with_a_row_per_url():
    rows = rows_of(columns((2, 3, 302), (1, 2, 301)), final={3: 200})
    assert rows == [(1, 0, 1, 301, "requested"), (1, 1, 2, 302, "intermediate"), (1, 2, 3, 200, "final")]


def test_two_starts_give_two_chains():
    rows = rows_of(columns((1, 3, 301), (2, 3, 301), (3, 4, 301)))
    assert [(row[0], row[2]) for row in rows] == [(1, 1), (1, 3), (1, 4), (2, 2), (2, 3), (2, 4)]


def test_a_loop_is_listed_once_until_it_closes():
    assert [row[2:] for row in rows_of(columns((5, 6, 302), (6, 5, 301)))] == [
        (5, 302, "requested"),
        (6, 301, "intermediate"),
        (5, 302, "loop"),
    ]
    assert [row[2:] for row in rows_of(columns((7, 7, 301)))] == [(7, 301, "requested"), (7, 301, "loop")]


def test_without_redirects_there_are_no_ends():
    assert chain_ends(columns()).ends.tolist() == []


@settings(max_examples=50)
@given(
    hops=st.dictionaries(
        st.integers(0, 12), st.tuples(st.integers(0, 16), st.sampled_from([301, 302, 307, 308])), min_size=1
    )
)
def test_ends_equal_those_of_a_plain_walk(hops):
    found = chain_ends(columns(*[(source, target, status) for source, (target, status) in hops.items()]))
    for place, source in enumerate(hops):
        passed, at = [], source
        while at in hops and at not in passed:
            passed.append(at)
            at = hops[at][0]
        assert found.loops[place] == (at in hops)
        if at not in hops:
            assert (found.ends[place], found.hops[place]) == (at, len(passed))


def test_a_long_chain_is_resolved():
    count = 100_000
    found = chain_ends(RedirectColumns(np.arange(count), np.arange(1, count + 1), np.full(count, 301, np.int16)))
    assert found.ends[0] == count
    assert found.hops[0] == count
