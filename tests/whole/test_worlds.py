"""A crawl fetches all real pages of sites with traps, and leaves each trap on its own."""

import collections

import pytest
from voyage import PATIENT, crawled
from worlds import HOST, TRAPS, town, twin_manuals

from testweb import serve

# limit of fetches per trap without its real pages: ten windows, the limit for a host
MOST = 400
EXCERPTS = pytest.param(
    "search",
    marks=[
        pytest.mark.real,
        pytest.mark.xfail(
            strict=True, reason="excerpts of known texts that differ per query look like new text: 5,900 fetches"
        ),
    ],
)


def outcome(folder, world, *, stops=0):
    """(real pages lost, fetches by trap).

    stops: number of times that the crawl reaches a limit of 100 pages before it may finish.
    """
    with serve(world.site) as server:
        for max_pages in (*[100] * stops, 0):
            collection, end = crawled(
                folder, server, HOST, delay_s=0.001, per_host=4, mine=(HOST,), max_pages=max_pages, **PATIENT
            )
        assert end.state == "done", end
        asked = server.log.targets(HOST)
    root = server.url(HOST, "").rstrip("/")
    read = {url.removeprefix(root) for url, row in collection.urls.items() if row.reason.value in ("ok", "alias")}
    return world.lost(read), collections.Counter(trap for target in asked if (trap := world.trap_of(target)))


def keeps_all(folder, world, **more):
    lost, cost = outcome(folder, world, **more)
    print(len(world.real), "real pages,", len(lost), "lost,", dict(cost))
    assert not lost
    assert all(fetches <= MOST for fetches in cost.values()), cost


@pytest.mark.parametrize("name", [EXCERPTS if name == "search" else name for name in TRAPS])
def test_no_trap_costs_a_real_page_or_is_endless(tmp_path, name):
    keeps_all(tmp_path, town(stories=30, traps=[name]))


ENDLESS = [name for name in TRAPS if name != "search"]


def test_all_traps_beside_few_real_pages_in_four_runs(tmp_path):
    keeps_all(tmp_path, town(seed=2, stories=20, traps=ENDLESS), stops=3)


def test_a_manual_with_all_text_twice_is_fetched_completely(tmp_path):
    keeps_all(tmp_path, twin_manuals())


@pytest.mark.real
@pytest.mark.parametrize("stops", [0, 3])
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_all_traps_beside_five_hundred_real_pages(tmp_path, seed, stops):
    keeps_all(tmp_path, town(seed, traps=ENDLESS), stops=stops)


@pytest.mark.real
def test_all_traps_beside_thousands_of_real_pages(tmp_path):
    keeps_all(tmp_path, town(6, stories=1500, traps=ENDLESS))
