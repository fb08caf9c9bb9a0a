"""All engines have the same results on random datasets, equal to the analyses of single sites."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import chance_dataset, rows_of
from memory_engine import ENGINE as MEMORY
from periplus.errors import NotConverged
from periplus_spark import files as dataset_files
from periplus_spark import stages as in_blocks
from periplus_spark import streamed
from periplus_spark.api import STAGES, compute
from periplus_spark.files import StageParameters
from periplus_spark.stages import UrlBlocks, blocks_of
from periplus_spark.streamed import ENGINE as STREAM

ORDER = StageParameters(max_rounds=400)
SILENT = lambda what, done, total: None  # noqa: E731


def computed(dataset, results, engine, order=ORDER):
    """Folders of all stages by name."""
    return {done.stage: done.folder for done in compute(dataset, results, list(STAGES), order, engine, SILENT)}


def agree(one, other):
    for name, stage in STAGES.items():
        for table in stage.tables:
            if "ranks" in name:
                mine, theirs = np.array(rows_of(one[name], table)), np.array(rows_of(other[name], table))
                assert mine.shape == theirs.shape
                if len(mine):
                    assert (mine[:, 0] == theirs[:, 0]).all()
                    assert np.abs(mine[:, 1] - theirs[:, 1]).max() * len(mine) < 1e-6, name
            else:
                assert rows_of(one[name], table) == rows_of(other[name], table), f"{name}: {table}"


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    """Makes many blocks of a few rows."""
    usual = dataset_files.blocks.__defaults__, streamed.LINKS_AT_ONCE, streamed.WAITING, in_blocks.LINKS_AT_ONCE
    dataset_files.blocks.__defaults__, streamed.LINKS_AT_ONCE, streamed.WAITING = (7, None), 5, 11
    in_blocks.LINKS_AT_ONCE = 13
    yield
    dataset_files.blocks.__defaults__, streamed.LINKS_AT_ONCE, streamed.WAITING, in_blocks.LINKS_AT_ONCE = usual


class Here:
    """A fake cluster: runs each task here, after serialising it as for another machine."""

    def parallelize(self, numbers, slices):
        return Mapped(numbers)


class Mapped:
    def __init__(self, values):
        self.values = values

    def map(self, work):
        # in reverse order: tasks of a round are independent
        done = [pickle.loads(pickle.dumps(work))(value) for value in reversed(self.values)]
        return Mapped(pickle.loads(pickle.dumps(done[::-1])))

    def collect(self):
        return self.values


def cluster_engine(count):
    """The stages of a cluster in a number of blocks."""

    def run(name, task):
        in_blocks.STAGES[name](Here(), UrlBlocks(task, blocks_of(task, 1, 0).urls, count))

    return {**STREAM, **{name: partial(run, name) for name in in_blocks.STAGES}}


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 5, 20, 60]), st.integers(1, 5), st.integers(0, 300))
def test_links_on_disk_make_no_difference(tmp_path_factory, seed, urls, sites, links):
    folder = tmp_path_factory.mktemp("dataset")
    dataset = chance_dataset(folder / "data", seed, urls, sites, links)
    agree(
        computed(dataset, folder / "whole", ("memory", MEMORY)),
        computed(dataset, folder / "stream", ("stream", STREAM)),
    )


@settings(max_examples=8, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from([1, 5, 20, 60]), st.integers(1, 5), st.integers(0, 300), st.integers(1, 9)
)
def test_a_cluster_in_blocks_makes_no_difference(tmp_path_factory, seed, urls, sites, links, count):
    folder = tmp_path_factory.mktemp("dataset")
    dataset = chance_dataset(folder / "data", seed, urls, sites, links)
    agree(
        computed(dataset, folder / "stream", ("stream", STREAM)),
        computed(dataset, folder / "blocks", ("blocks", cluster_engine(count))),
    )


def test_an_error_of_a_task_is_raised_unchanged(tmp_path):
    dataset = chance_dataset(tmp_path / "data", 1)
    with pytest.raises(NotConverged, match="1 rounds"):
        computed(dataset, tmp_path / "blocks", ("blocks", cluster_engine(2)), StageParameters(max_rounds=1))
