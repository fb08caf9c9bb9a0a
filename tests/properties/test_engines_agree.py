"""Every engine finds the same on datasets made by chance, and what the analyses of one site find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import chance_dataset, rows_of
from memory_engine import ENGINE as MEMORY
from periplus.analyse.engines import dataset_files, streamed
from periplus.analyse.engines.stages import STAGES, StageParameters, compute
from periplus.analyse.engines.streamed import ENGINE as STREAM

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
    """So that a few rows are many blocks."""
    usual = dataset_files.blocks.__defaults__, streamed.LINKS_AT_ONCE, streamed.WAITING
    dataset_files.blocks.__defaults__, streamed.LINKS_AT_ONCE, streamed.WAITING = (7,), 5, 11
    yield
    dataset_files.blocks.__defaults__, streamed.LINKS_AT_ONCE, streamed.WAITING = usual


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 5, 20, 60]), st.integers(1, 5), st.integers(0, 300))
def test_links_on_disk_make_no_difference(tmp_path_factory, seed, urls, sites, links):
    folder = tmp_path_factory.mktemp("dataset")
    dataset = chance_dataset(folder / "data", seed, urls, sites, links)
    agree(
        computed(dataset, folder / "whole", ("memory", MEMORY)),
        computed(dataset, folder / "stream", ("stream", STREAM)),
    )
