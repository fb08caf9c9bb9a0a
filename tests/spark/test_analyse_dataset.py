"""Engines read an exported collection; their results equal map, lists and surveys of the collection."""

from __future__ import annotations

import json
import random

import pytest
from click.testing import CliRunner

import periplus
from periplus.cli.main import main
from periplus.model.web import SiteKey
from periplus.store.sqlite.frontier import FolderHome
from periplus.urls.canonical import canonical, url_id
from stored import NOW, page, stored

HOME = "https://a.org/"


def web(seed, pages=40):
    """Two sites, one with the start; redirects, dead ends, duplicates, links to another site."""
    rng = random.Random(seed)
    answers = {HOME: page("Home", *(f"/{number}" for number in range(0, pages, 3)))}
    for number in range(pages):
        links = [f"/{rng.randrange(pages)}" for _ in range(4)] + [
            "/",
            "https://b.org/",
            f"https://www.a.org/{rng.randrange(pages)}",
        ]
        kind = rng.random()
        shown = page("Twins", "/", "/1") if kind > 0.8 else page(f"Page {number % 5}", *links)
        answers[f"{HOME}{number}"] = f"/{rng.randrange(pages)}" if kind < 0.1 else 404 if kind < 0.2 else shown
    return answers


@pytest.fixture(scope="module", params=[1, 2])
def exported(request, tmp_path_factory):
    """(folder of the collection, folder of its tables)."""
    folder = tmp_path_factory.mktemp("a") / "a.periplus"
    stored(folder, web(request.param), [HOME])
    FolderHome(folder).add_starts([url_id(canonical(HOME))], [SiteKey("")], NOW)
    dataset = folder.parent / "a.dataset"
    ran = CliRunner().invoke(main, ["export", "parquet", str(dataset), "--texts", "-c", str(folder)])
    assert ran.exit_code == 0, ran.output
    return folder, dataset


def analysed(dataset, results):
    """Rows of each table by the stage's name, URLs as texts."""
    ran = CliRunner().invoke(main, ["analyse", str(dataset), "-r", str(results), "--json"])
    assert ran.exit_code == 0, ran.output
    names = dict(rows_of_columns(dataset, "urls", ("url", "text")))
    return names, {stage["stage"]: stage["folder"] for stage in json.loads(ran.stdout)["stages"]}


def rows_of_columns(folder, table, columns):
    from periplus_spark.files import blocks

    return [tuple(row.values()) for block in blocks(folder, table, columns) for row in block.to_pylist()]


def test_the_map_equals_that_of_the_collection(exported, tmp_path):
    folder, dataset = exported
    names, folders = analysed(dataset, tmp_path)
    with periplus.open(folder) as collection:
        site = collection.map("a.org")
    urls, site_map = site.graph.pages, site.site_map
    ranks = {names[url]: rank for url, rank in rows_of_columns(tmp_path / folders["ranks"], "ranks", ("url", "rank"))}
    assert ranks[HOME] == pytest.approx(float(site.facts.rank[urls.index(HOME)]), abs=1e-9)
    found = {
        names[url]: tuple(rest)
        for url, *rest in rows_of_columns(
            tmp_path / folders["map"], "map", ("url", "depth", "parent", "below", "place")
        )
    }
    expected = {}
    for place, number in enumerate(site_map.order.tolist()):
        parent = int(site_map.parent[number])
        expected[urls[number]] = (
            int(site_map.depth[number]),
            urls[parent] if parent >= 0 else -1,
            int(site_map.below[number]),
            place,
        )
    assert {
        url: (depth, names.get(parent, -1), below, place) for url, (depth, parent, below, place) in found.items()
    } == expected


def test_duplicates_equal_those_of_the_collection(exported, tmp_path):
    folder, dataset = exported
    names, folders = analysed(dataset, tmp_path)
    with periplus.open(folder) as collection:
        groups = {
            frozenset({group.url, *(page.url for page in group.pages)})
            for group in collection.duplicates(near=1.0).groups
        }
    found = {}
    for url, group in rows_of_columns(tmp_path / folders["duplicates"], "duplicates", ("url", "group")):
        found.setdefault(group, set()).add(names[url])
    assert groups
    assert {frozenset(group) for group in found.values()} == groups
