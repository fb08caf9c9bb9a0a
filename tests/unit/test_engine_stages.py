"""Stages are named by their question, are computed once, and are made anew where they were interrupted."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from click.testing import CliRunner

from datasets import chance_dataset, rows_of, write_dataset
from periplus.analyse.engines.stages import (
    ANALYSES,
    COSTS,
    ROWS,
    STAGES,
    StageParameters,
    choose_engine,
    compute,
    folder_name,
    required_stages,
)
from periplus.analyse.engines.streamed import ENGINE
from periplus.api.engines import EngineRequest, _cores, analysed
from periplus.cli.main import main
from periplus.cli.study import _NAMES
from periplus.errors import NotConverged, StoreError, UsageError
from periplus.model.dataset import Manifest, TableNote


def silent(what, done, total):
    pass


@pytest.fixture
def dataset(tmp_path):
    return chance_dataset(tmp_path / "web", 1, urls=30, links=100)


def manifest(urls, links):
    tables = tuple(TableNote(name, rows, (), {}) for name, rows in (("urls", urls), ("links", links)))
    return Manifest("collection", "", 0.0, {}, {}, tables)


def test_a_stage_comes_after_those_that_it_needs_and_once():
    names = [stage.name for stage in required_stages(["map", "cascades", "ranks"])]
    assert names == ["ends", "graph", "ranks", "map", "duplicates", "sketches", "near", "cascades"]


def test_a_name_changes_with_what_the_stage_depends_on_and_with_nothing_else():
    def names(order, digest="d"):
        return {name: folder_name(stage, digest, order) for name, stage in STAGES.items()}

    plain, damped = names(StageParameters()), names(StageParameters(damping=0.9))
    assert {name for name in STAGES if plain[name] != damped[name]} == {"ranks", "web_ranks", "map"}
    assert {name for name in STAGES if plain[name] != names(StageParameters(near=0.7))[name]} == {"near", "cascades"}
    assert not set(plain.values()) & set(names(StageParameters(), "other").values())


def test_what_is_finished_is_left_and_what_was_interrupted_is_made_anew(dataset, tmp_path):
    done = compute(dataset, tmp_path / "r", ["map"], StageParameters(), ("stream", ENGINE), silent)
    assert [stage.was_there for stage in done] == [False] * 4
    (done[2].folder / "manifest.json").unlink()
    (done[2].folder / "ranks" / "part-00007.parquet").write_bytes(b"half of it")
    made = []
    noted = {name: lambda task, name=name: (made.append(name), ENGINE[name](task)) for name in ENGINE}
    again = compute(dataset, tmp_path / "r", ["map"], StageParameters(), ("stream", noted), silent)
    assert made == ["ranks"]
    assert [stage.was_there for stage in again] == [True, True, False, True]
    assert len(rows_of(again[2].folder, "ranks")) == again[2].rows["ranks"]


def test_a_stage_that_fails_leaves_no_manifest(dataset, tmp_path):
    with pytest.raises(NotConverged):
        compute(dataset, tmp_path / "r", ["ranks"], StageParameters(max_rounds=1), ("stream", ENGINE), silent)
    found = {path.name.split("-")[0]: (path / "manifest.json").exists() for path in (tmp_path / "r").iterdir()}
    assert found == {"ends": True, "graph": True, "ranks": False}


def test_links_out_of_order_are_refused_and_not_guessed_at(tmp_path):
    rows = [{"source": source, "target": 0, "kind": "a", "position": "main"} for source in (1, 2, 1)]
    urls = [
        {
            "url": n,
            "id": n,
            "text": f"https://a.org/{n}",
            "host": 0,
            "site": 0,
            "reason": "ok",
            "state": "fetched",
            "is_start": False,
        }
        for n in range(3)
    ]
    hosts = [{"host": 0, "name": "a.org:443", "site": 0, "site_name": "a.org"}]
    dataset = write_dataset(
        tmp_path / "web", {"hosts": hosts, "urls": urls, "redirects": [], "pages": [], "links": rows}, parts=3
    )
    with pytest.raises(StoreError, match="not sorted by source"):
        compute(dataset, tmp_path / "r", ["graph"], StageParameters(), ("stream", ENGINE), silent)


def test_a_dataset_that_is_not_whole_is_refused(dataset, tmp_path):
    (dataset / "manifest.json").unlink()
    with pytest.raises(StoreError, match="incomplete"):
        compute(dataset, tmp_path / "r", ["ends"], StageParameters(), ("stream", ENGINE), silent)


@pytest.mark.parametrize(
    ("urls", "links", "memory", "cores", "engine"),
    [
        (10**6, 10**7, 16e9, 2, "stream"),  # over before a session has begun
        (10**8, 10**9, 16e9, 2, "stream"),
        (10**8, 10**9, 16e9, 8, "spark"),  # sooner
        (10**9, 10**10, 16e9, 2, "spark"),  # does not fit
        (10**9, 10**10, 16e9, 0, "stream"),
    ],
)
def test_auto_takes_the_engine_that_ends_first_among_those_that_the_dataset_fits_and_says_why(
    urls, links, memory, cores, engine
):
    choice = choose_engine(manifest(urls, links), ["map"], int(memory), "spark" if cores else "", cores)
    assert choice.engine == engine
    assert f"{urls:,} URLs" in choice.why
    assert ("no cluster is given" in choice.why) == (not cores)
    assert (f"{cores} cores of spark" in choice.why) == bool(cores)


def test_an_address_tells_how_many_cores_a_cluster_has():
    assert [_cores(on) for on in ("local", "local[3]", "local[4,2]", "spark://head:7077", "yarn")] == [1, 3, 4, 8, 8]
    assert _cores("local[*]") == os.cpu_count()


def test_each_stage_has_its_cost_by_each_engine():
    for cost in COSTS.values():
        assert set(cost.row_us) == set(ROWS) == set(STAGES)


def test_without_texts_all_but_what_needs_them_is_computed(tmp_path):
    dataset = chance_dataset(tmp_path / "web", 1, urls=20, texts=False)
    done = {stage.stage for stage in analysed(dataset).stages}
    assert done == set(STAGES) - {"sketches", "outlines", "near", "templates", "cascades"}
    with pytest.raises(UsageError, match="--texts"):
        analysed(dataset, ["near"])


def test_the_command_says_where_the_tables_are_and_goes_on_where_it_was(dataset):
    assert set(_NAMES) == set(ANALYSES)
    said = CliRunner().invoke(main, ["analyse", str(dataset), "ranks", "--json"])
    assert said.exit_code == 0, said.output
    found = json.loads(said.stdout)
    assert found["engine"] == "stream"
    assert [stage["stage"] for stage in found["stages"]] == ["ends", "graph", "ranks"]
    again = CliRunner().invoke(main, ["analyse", str(dataset), "ranks", "--engine", "stream"])
    assert "0 stages computed, 3 there already" in again.stdout


def test_what_there_is_not_is_refused_in_a_sentence(dataset):
    assert "choose among" in CliRunner().invoke(main, ["analyse", str(dataset), "karma"]).stderr
    with pytest.raises(UsageError, match="unknown engine"):
        analysed(dataset, ["ranks"], request=replace(EngineRequest(), engine="abacus"))
