"""The tree on the live screen: incremental counts equal a full count, within bounded memory."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.ui.watching import BRANCHES, Growth, Watchers, branch_of
from stored import page, stored

HOME = "https://e.org/"
URLS = st.lists(
    st.builds(
        lambda host, steps: f"https://{host}.org/" + "/".join(steps),
        st.sampled_from("ab"),
        st.lists(st.sampled_from("xyz"), max_size=5),
    )
)


@settings(max_examples=40, deadline=None)
@given(URLS, st.integers(1, 30))
def test_incremental_counts_equal_a_full_count(urls: list[str], most: int) -> None:
    grown = Growth()
    for url in urls:
        grown.add([(url, len(url))])
    counts = Counter("/".join(branch_of(url)[:end]) + "/" for url in urls for end in range(1, len(branch_of(url)) + 1))
    tree = grown.tree(most)
    assert {branch.prefix: branch.pages for branch in tree.branches}.items() <= counts.items()
    assert len(tree.branches) + tree.more == len(counts)
    assert dict(tree.depths) == Counter(map(len, urls))
    named = {branch.prefix for branch in tree.branches}
    assert all(
        branch.depth == 0 or branch.prefix.rstrip("/").rpartition("/")[0] + "/" in named for branch in tree.branches
    ), "none hangs in the air"
    left = [count for prefix, count in counts.items() if prefix not in named]
    assert not left or min(branch.pages for branch in tree.branches) >= max(left)


def test_growth_since_the_last_view_is_shown_once() -> None:
    grown = Growth()
    grown.add([("https://e.org/a/1", 1)], new=False)
    grown.add([("https://e.org/a/2", 1), ("https://e.org/a/1", 1)])
    assert [(branch.name, branch.pages, branch.grown) for branch in grown.tree().branches] == [
        ("e.org", 2, 1),
        ("/a/", 2, 1),
    ]
    assert [branch.grown for branch in grown.tree().branches] == [0, 0]


def test_endless_directories_need_bounded_memory() -> None:
    grown = Growth()
    grown.add((f"https://e.org/{n}/x", 1) for n in range(2 * BRANCHES))
    assert len(grown.pages) == BRANCHES
    assert grown.tree().branches[0].pages == 2 * BRANCHES


def test_a_second_run_adds_to_the_tree_of_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "e.periplus"
    stored(folder, {HOME: page("Home", "/a/b"), "https://e.org/a/b": page("B")}, [HOME])
    watchers = Watchers()
    assert [(branch.prefix, branch.pages) for branch in watchers.look(folder).tree.branches] == [
        ("e.org/", 2),
        ("e.org/a/", 1),
    ]
    stored(folder, {"https://new.org/": page("New", "/c")}, ["https://new.org/"])
    # as if a second had passed between the runs
    with contextlib.closing(sqlite3.connect(folder / "collection.db")) as connection, connection:
        connection.execute("UPDATE run SET started = started + 1 WHERE id = 2")
        connection.execute("UPDATE url SET visited = visited + 1 WHERE text LIKE 'https://new%'")
    assert {branch.prefix: branch.pages for branch in Watchers().look(folder).tree.branches} == {
        "e.org/": 2,
        "e.org/a/": 1,
        "new.org/": 1,
    }
