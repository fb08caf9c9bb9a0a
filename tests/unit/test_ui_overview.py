"""The start screen with many collections, and the search over all of them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from interface import client
from periplus.api.search_index import catch_up
from periplus.ui.start import MANY, CollectionRow, ordered, summed
from stored import page, stored

STATES = ("done", "failed", "stopped", "running", "done", "done", "done", "done", "done")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("many")
    for number, state in enumerate(STATES):
        home = f"https://site{number}.org/"
        pages = {home: page(f"Harbour {number}", "/a", "/gone"), f"{home}a": page("Alpha", "/"), f"{home}gone": 404}
        catch_up(stored(where / f"site{number}.periplus", pages, [home], state=state))
    stored(where / "new.periplus", {}, ["https://new.org/"])
    return where


def rows(folder: Path, query: str) -> list[str]:
    return [row["name"] for row in client(folder).get(f"/?format=json&{query}").json()["collections"]]


def test_collections_are_filtered_by_name_and_state(folder):
    assert rows(folder, "named=SITE1") == ["site1"]
    assert rows(folder, "state=failed") == ["site1"]
    assert rows(folder, "state=done&named=site") == ["site0", "site4", "site5", "site6", "site7", "site8"]
    assert rows(folder, "named=nothing") == []


def test_collections_are_sorted_by_any_column(folder):
    assert rows(folder, "sort=state")[:3] == ["site3", "site1", "site2"]  # killed, failed, stopped
    assert rows(folder, "sort=-name")[0] == "site8"
    assert rows(folder, "sort=-fetched")[-1] == rows(folder, "sort=fetched")[0] == "new"
    assert rows(folder, "sort=nothing") == rows(folder, "") == sorted(rows(folder, ""))
    damaged = CollectionRow("z", fault="cannot be read")
    assert ordered([CollectionRow("a", "failed"), damaged], "state")[0] == damaged


def test_totals_are_those_of_the_shown_collections(folder):
    whole = client(folder).get("/?format=json").json()
    assert (whole["in_all"], whole["states"]) == (10, {"killed": 1, "failed": 1, "stopped": 1, "done": 7})
    assert (whole["total"]["fetched"], whole["total"]["failed"]) == (18, 9)
    part = client(folder).get("/?format=json&named=site1").json()
    assert (part["total"]["fetched"], part["in_all"]) == (2, 10)
    assert summed([]) == CollectionRow("")


def test_a_long_list_comes_first_and_can_be_filtered(folder, tmp_path):
    text = client(folder).get("/?state=done&sort=-last").text
    assert text.index("<h1>Collections</h1>") < text.index('action="/new"')
    assert '<details class="fold">' in text
    assert 'aria-sort="descending"' in text
    assert '<input type="hidden" name="state" value="done">' in text
    assert "7 collections of 10" in text
    assert "csrf" not in "".join(re.findall(r'<form method="get".*?</form>', text, flags=re.DOTALL))
    # a filled form is open, and with few collections the form comes first
    assert '<details class="fold">' not in client(folder).get("/?url=example.org").text
    for number in range(MANY - 1):
        shutil.copytree(folder / f"site{number}.periplus", tmp_path / f"site{number}.periplus")
    few = client(tmp_path).get("/").text
    assert '<details class="fold">' not in few
    assert 'name="named"' not in few


def test_all_collections_are_searched_with_a_common_order(folder):
    answer = client(folder).get("/search?q=harbour+3").text
    hits = re.findall(r'<h3><a href="/c/([^/]+)/page', answer)
    assert hits[0] == "site3"
    assert sorted(hits) == [f"site{number}" for number in range(9)]
    (one,) = client(folder).get("/search?q=alpha&format=json").json()["results"]
    assert (one["name"], one["result"]["total"], len(one["result"]["hits"])) == ("", 9, 1)
    assert len(one["result"]["hits"][0]["twins"]) == 8
    assert {facet["name"] for facet in one["result"]["facets"]} >= {"site"}
    assert (
        client(folder).get("/search?q=site:site1.org+harbour&format=json").json()["results"][0]["result"]["total"] == 1
    )


def test_an_unreadable_collection_does_not_prevent_the_search_of_others(folder, tmp_path):
    shutil.copytree(folder / "site1.periplus", tmp_path / "site1.periplus")
    (tmp_path / "bad.periplus").mkdir()
    assert client(tmp_path).get("/search?q=alpha&format=json").json()["results"][0]["result"]["total"] == 1
    (tmp_path / "bad.periplus" / "collection.db").write_bytes(b"no database at all" * 100)
    found = client(tmp_path).get("/search?q=alpha&format=json").json()["results"]
    assert [(one["name"], bool(one["fault"])) for one in found] == [("", False), ("bad", True)]
    shutil.rmtree(tmp_path / "site1.periplus")
    assert [row["name"] for row in client(tmp_path).get("/search?q=alpha&format=json").json()["results"]] == ["bad"]
