"""Crawls of tests treat hosts as foreign; hosts are declared our own only where a test needs it.

The minimum delay of half a second for foreign hosts would make such crawls last minutes. So it is removed, here and in
subprocesses: each crawl uses its `delay_s`, and all other rules for foreign hosts apply. The fixture `floor` restores
it for tests of the minimum delay. A folder of tests gets both by importing them in its conftest.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from periplus import settings
from periplus.acquire import politeness

NO_FLOOR = Path(__file__).parent / "whole" / "no_floor"


@pytest.fixture(autouse=True, scope="module")
def no_floor():
    """Module scope, since fixtures of modules crawl too."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(politeness, "DELAY_FLOOR_S", 0.0)
        patched.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(NO_FLOOR), os.environ.get("PYTHONPATH", "")))))
        yield


@pytest.fixture
def floor(monkeypatch: pytest.MonkeyPatch) -> float:
    """Restores the minimum delay in this process."""
    monkeypatch.setattr(politeness, "DELAY_FLOOR_S", settings.DELAY_FLOOR_S)
    return settings.DELAY_FLOOR_S
