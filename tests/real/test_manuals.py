"""Crawls real manuals of a dozen generators, complete and with interruptions: `make test-real`, many minutes.

PERIPLUS_TEST_MANUALS=vim,git: only these.
"""

import os

import pytest
from comparison import comparison_of
from manuals import MANUALS, Unavailable

pytestmark = pytest.mark.real
CHOSEN = [name for name in os.environ.get("PERIPLUS_TEST_MANUALS", ",".join(MANUALS)).split(",") if name]


def compare(name, folder, **more):
    try:
        result = comparison_of(MANUALS[name], folder, **more)
    except Unavailable as why:
        pytest.skip(str(why))
    print(result)
    assert result.agrees, str(result)


@pytest.mark.parametrize("interrupted", [False, True], ids=["whole", "interrupted"])
@pytest.mark.parametrize("name", CHOSEN)
def test_a_crawl_of_a_manual_equals_the_independent_reader(tmp_path, name, interrupted):
    compare(name, tmp_path, interrupted=interrupted)


def test_a_crawl_with_half_a_second_of_delay_finds_the_same(tmp_path):
    compare("vim", tmp_path, stranger=True)
