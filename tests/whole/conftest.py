"""All voyages are a stranger's: hosts are declared one's own only where a test is about that.

A stranger keeps half a second between two requests to a host, whatever its settings say; that would make a voyage
of some pages last minutes. So the floor alone is taken away, here and in the processes that a voyage starts: each
waits as long as its `delay_s` says, and all else that holds for hosts of others holds. `floor` puts it back, for
tests that are about it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from periplus import settings
from periplus.acquire import politeness

NO_FLOOR = Path(__file__).parent / "no_floor"


@pytest.fixture(autouse=True, scope="module")
def no_floor():
    """Of module scope, since such fixtures crawl too."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(politeness, "DELAY_FLOOR_S", 0.0)
        patched.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(NO_FLOOR), os.environ.get("PYTHONPATH", "")))))
        yield


@pytest.fixture
def floor(monkeypatch: pytest.MonkeyPatch) -> float:
    """The floor of this process, as users have it."""
    monkeypatch.setattr(politeness, "DELAY_FLOOR_S", settings.DELAY_FLOOR_S)
    return settings.DELAY_FLOOR_S
