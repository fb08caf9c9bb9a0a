"""A cluster finds what one machine finds, whoever is killed meanwhile. Run by `make test-spark`; elsewhere skipped."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import time

import numpy as np
import pytest

from datasets import chance_dataset, rows_of, write_dataset
from memory_engine import ENGINE as MEMORY
from periplus.model.visit import Reason
from periplus_spark.api import STAGES, compute
from periplus_spark.files import StageParameters
from periplus_spark.streamed import ENGINE as STREAM
from spark_cluster import cluster, why_no_spark

pytestmark = [pytest.mark.spark, pytest.mark.skipif(bool(why_no_spark()), reason=why_no_spark())]

ORDER = StageParameters(max_rounds=400)


def silent(what, done, total):
    pass


def folders(dataset, results, engine, order, wanted=tuple(STAGES)):
    return {done.stage: done.folder for done in compute(dataset, results, wanted, order, engine, silent)}


@pytest.fixture(scope="module")
def spark():
    from periplus_spark.engine import engine_on

    with engine_on("local[2]", 2 << 30) as engine:
        yield engine


def same(one, other, names=tuple(STAGES)):
    for name in names:
        for table in STAGES[name].tables:
            mine, theirs = rows_of(one[name], table), rows_of(other[name], table)
            if "ranks" in name:
                mine, theirs = np.array(mine).reshape(-1, 2), np.array(theirs).reshape(-1, 2)
                assert (mine[:, 0] == theirs[:, 0]).all()
                assert np.abs(mine[:, 1] - theirs[:, 1]).max(initial=0.0) < 1e-6
            else:
                assert mine == theirs, f"{name}: {table}"


@pytest.mark.parametrize(("seed", "urls", "sites", "links"), [(4, 150, 4, 900), (7, 12, 1, 20)])
def test_all_engines_agree(tmp_path, spark, seed, urls, sites, links):
    dataset = chance_dataset(tmp_path / "web", seed, urls, sites, links)
    one = folders(dataset, tmp_path / "stream", ("stream", STREAM), ORDER)
    other = folders(dataset, tmp_path / "spark", ("spark", spark), ORDER)
    same(one, other)
    for name in set(STAGES) - {"ends", "graph", "sketches"}:
        (other[name] / "manifest.json").unlink()
    # what the cluster finished, one machine goes on with
    same(one, folders(dataset, tmp_path / "spark", ("stream", STREAM), ORDER))


def test_without_redirects_links_or_texts_tables_are_empty_and_not_missing(tmp_path, spark):
    dataset = chance_dataset(tmp_path / "web", 3, urls=1, links=0)
    one = folders(dataset, tmp_path / "stream", ("stream", STREAM), ORDER)
    same(one, folders(dataset, tmp_path / "spark", ("spark", spark), ORDER))


def graph_dataset(folder, nodes, degree, seed=1):
    """One site; every page links on."""
    rng = random.Random(seed)
    links = sorted(
        {
            (page, target)
            for page in range(nodes)
            for target in {int(nodes * rng.random() ** 2) for _ in range(degree)} | {(page + 1) % nodes}
        }
    )
    urls = [
        {
            "url": n,
            "id": n,
            "text": f"https://s.example/{n:09}",
            "host": 0,
            "site": 0,
            "state": "fetched",
            "reason": Reason.OK.value,
            "is_start": n == 0,
        }
        for n in range(nodes)
    ]
    rows = [
        {"source": s, "target": t, "kind": "a", "position": "main", "nofollow": False, "times": 1}
        for s, t in links
        if s != t
    ]
    host = {"host": 0, "name": "s.example:443", "site": 0, "site_name": "s.example"}
    return write_dataset(folder, {"hosts": [host], "urls": urls, "redirects": [], "pages": [], "links": rows}, parts=2)


def test_ranks_are_those_of_scipy_and_of_graphx(tmp_path, spark):  # the session is GraphX's
    dataset = graph_dataset(tmp_path / "web", 10_000, 6)
    order = StageParameters(tolerance=1e-8)
    found = {}
    for name, engine in (("memory", MEMORY), ("stream", STREAM)):
        place = folders(dataset, tmp_path / name, (name, engine), order, ("web_ranks",))
        found[name] = np.array(rows_of(place["web_ranks"], "ranks"))[:, 1]
    found["graphx"] = graphx_ranks(tmp_path, rows_of(place["graph"], "edges"))
    for name in ("stream", "graphx"):
        assert np.abs(found[name] - found["memory"]).max() < 1e-6, name
        assert np.abs(found[name] / found["memory"] - 1).max() < 1e-5, name


def graphx_ranks(folder, edges):
    """By Spark's own graph library, through the gateway that pyspark keeps to itself."""
    from pyspark import SparkContext

    (folder / "edges.txt").write_text("".join(f"{source} {target}\n" for source, target, _ in edges))
    context = SparkContext.getOrCreate()
    java, level = context._jvm, context._jvm.org.apache.spark.storage.StorageLevel.MEMORY_ONLY()
    graph = java.org.apache.spark.graphx.GraphLoader.edgeListFile(
        context._jsc.sc(), str(folder / "edges.txt"), False, 2, level, level
    )
    tag = java.scala.reflect.ClassTag.Int()
    ranked = java.org.apache.spark.graphx.lib.PageRank.run(graph, 40, 0.15, tag, tag)
    ranked.vertices().saveAsTextFile(str(folder / "graphx"))
    lines = [
        line.strip("()").split(",") for path in (folder / "graphx").glob("part-*") for line in path.read_text().split()
    ]
    ranks = np.zeros(len(lines))
    ranks[[int(page) for page, _ in lines]] = [float(rank) for _, rank in lines]
    return ranks / ranks.sum()


def command(dataset, results, on, *more):
    return [
        sys.executable,
        "-m",
        "periplus",
        "analyse",
        str(dataset),
        "interlinking",
        "-r",
        str(results),
        "--engine",
        "spark",
        "--on",
        on,
        *more,
    ]


@contextlib.contextmanager
def driver_of(words):
    """The command under way; killed at the end if it still is: one whose cluster is gone waits for another."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as driver:
        try:
            yield driver
        finally:
            driver.kill()


def until(is_so, process, limit_s=400):
    end = time.monotonic() + limit_s
    while not is_so():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_driver_killed_in_a_later_stage_leaves_the_earlier_ones_to_its_successor(tmp_path):
    dataset, results = graph_dataset(tmp_path / "web", 500, 4), tmp_path / "results"
    with driver_of(command(dataset, results, "local[2]", "--memory", "1")) as driver:
        until(lambda: list(results.glob("interlinking-*/.scratch/names")), driver)
    before = {path: path.stat().st_mtime_ns for path in results.glob("*/manifest.json")}
    assert {path.parent.name.split("-")[0] for path in before} == {"ends", "graph"}
    again = subprocess.run(
        [*command(dataset, results, "local[2]", "--memory", "1"), "--json"],
        capture_output=True,
        check=True,
    )
    stages = {stage["stage"]: stage["was_there"] for stage in json.loads(again.stdout)["stages"]}
    assert stages == {"ends": True, "graph": True, "interlinking": False}
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize("lost", ["worker", "master"])
def test_a_lost_machine_changes_no_result(tmp_path, lost):
    dataset, results = graph_dataset(tmp_path / "web", 2_000, 5), tmp_path / "results"
    with (
        cluster(tmp_path / "cluster") as made,
        driver_of(command(dataset, results, made.url)) as driver,
    ):
        until(lambda: list(results.glob("interlinking-*/.scratch/names")), driver)
        assert made.family(made.workers[0])
        made.kill(made.workers[0] if lost == "worker" else made.master)
        said, errors = driver.communicate(timeout=400)
        assert driver.returncode == 0, (said, errors)
    found = {path.name.split("-")[0]: path for path in results.iterdir()}
    same(
        folders(dataset, tmp_path / "stream", ("stream", STREAM), StageParameters(), ("interlinking",)),
        found,
        ("graph", "interlinking"),
    )
