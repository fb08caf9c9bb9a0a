"""Stages of the engines: names, dependencies, repetition after an interruption, choice of the engine."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from click.testing import CliRunner

from datasets import chance_dataset, rows_of, write_dataset
from periplus.cli.main import main
from periplus.errors import NotConverged, StoreError, UsageError
from periplus_spark import stages as in_blocks
from periplus_spark.api import (
    ANALYSES,
    COSTS,
    ROWS,
    STAGES,
    EngineRequest,
    StageParameters,
    _cores,
    analyse_dataset,
    choose_engine,
    compute,
    folder_name,
    required_stages,
    stages_here,
)
from periplus_spark.dataset import Manifest, TableNote
from periplus_spark.streamed import ENGINE


def silent(what, done, total):
    pass


@pytest.fixture
def dataset(tmp_path):
    return chance_dataset(tmp_path / "web", 1, urls=30, links=100)


def manifest(urls, links):
    tables = tuple(TableNote(name, rows, (), {}) for name, rows in (("urls", urls), ("links", links)))
    return Manifest("collection", "", 0.0, {}, {}, tables)


def test_a_stage_runs_once_and_after_the_stages_it_needs():
    names = [stage.name for stage in required_stages(["map", "cascades", "ranks"])]
    assert names == ["ends", "graph", "ranks", "map", "duplicates", "sketches", "near", "cascades"]


def test_a_folder_name_changes_only_with_the_inputs_of_its_stage():
    def names(order, digest="d"):
        return {name: folder_name(stage, digest, order) for name, stage in STAGES.items()}

    plain, damped = names(StageParameters()), names(StageParameters(damping=0.9))
    assert {name for name in STAGES if plain[name] != damped[name]} == {"ranks", "web_ranks", "map"}
    assert {name for name in STAGES if plain[name] != names(StageParameters(near=0.7))[name]} == {"near", "cascades"}
    assert not set(plain.values()) & set(names(StageParameters(), "other").values())


def test_finished_stages_are_kept_and_interrupted_ones_repeated(dataset, tmp_path):
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


def test_unsorted_links_are_refused(tmp_path):
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


def test_an_incomplete_dataset_is_refused(dataset, tmp_path):
    (dataset / "manifest.json").unlink()
    with pytest.raises(StoreError, match="incomplete"):
        compute(dataset, tmp_path / "r", ["ends"], StageParameters(), ("stream", ENGINE), silent)


@pytest.mark.parametrize(
    ("urls", "links", "memory", "cores", "engine"),
    [
        (10**6, 10**7, 16e9, 2, "stream"),  # done before a Spark session has started
        (10**8, 10**9, 16e9, 1, "stream"),
        (10**8, 10**9, 16e9, 8, "spark"),  # faster
        (10**9, 10**10, 16e9, 2, "spark"),  # does not fit
        (10**9, 10**10, 16e9, 0, "stream"),
    ],
)
def test_auto_selects_the_fastest_engine_with_enough_memory_and_says_why(urls, links, memory, cores, engine):
    choice = choose_engine(manifest(urls, links), ["map"], int(memory), "spark" if cores else "", cores)
    assert choice.engine == engine
    assert f"{urls:,} URLs" in choice.why
    assert ("no cluster is given" in choice.why) == (not cores)
    assert (f"{cores} cores of spark" in choice.why) == bool(cores)


def test_the_number_of_cores_follows_from_the_cluster_address():
    assert [_cores(on) for on in ("local", "local[3]", "local[4,2]", "spark://head:7077", "yarn")] == [1, 3, 4, 8, 8]
    assert _cores("local[*]") == os.cpu_count()


def test_each_engine_has_a_cost_for_each_stage():
    assert set(COSTS["stream"].row_us) == set(ROWS) == set(STAGES) == set(ENGINE)
    assert set(COSTS["spark"].row_us) == set(in_blocks.STAGES)
    assert all(cost <= 3 * COSTS["stream"].row_us[stage] for stage, cost in COSTS["spark"].row_us.items())


def test_stages_that_a_cluster_leaves_to_this_machine_are_named():
    assert stages_here(["ranks"], "spark", 9) == stages_here(["near", "map"], "stream", 9) == ""
    assert stages_here(["near", "web_ranks"], "spark", 10**9).endswith(": duplicates, near, web_ranks")
    assert "130.3 GB" in stages_here(["map"], "spark", 10**9)


def test_without_texts_the_stages_that_need_none_are_computed(tmp_path):
    dataset = chance_dataset(tmp_path / "web", 1, urls=20, texts=False)
    done = {stage.stage for stage in analyse_dataset(dataset).stages}
    assert done == set(STAGES) - {"sketches", "near", "cascades"}
    with pytest.raises(UsageError, match="--texts"):
        analyse_dataset(dataset, ["near"])


def test_the_command_lists_the_tables_and_continues_an_earlier_run(dataset):
    refused = CliRunner().invoke(main, ["analyse", str(dataset), "nothing"]).output
    assert set(refused.partition("choose among ")[2].replace(",", "").split()) == set(ANALYSES)
    ran = CliRunner().invoke(main, ["analyse", str(dataset), "ranks", "--json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found["engine"] == "stream"
    assert [stage["stage"] for stage in found["stages"]] == ["ends", "graph", "ranks"]
    again = CliRunner().invoke(main, ["analyse", str(dataset), "ranks", "--engine", "stream"])
    assert "0 stages computed, 3 there already" in again.stdout


def test_an_unknown_stage_or_engine_is_refused(dataset):
    assert "choose among" in CliRunner().invoke(main, ["analyse", str(dataset), "karma"]).stderr
    with pytest.raises(UsageError, match="unknown engine"):
        analyse_dataset(dataset, ["ranks"], request=replace(EngineRequest(), engine="abacus"))
