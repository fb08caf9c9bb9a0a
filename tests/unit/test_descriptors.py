"""How many requests at once a process can carry."""

import pytest

from periplus.acquire.transport import affordable, raised_limit


@pytest.mark.parametrize(
    ("wished", "limit", "given"), [(128, 1024, 128), (128, 48, 8), (2000, 1024, 496), (5, 10, 1), (128, None, 128)]
)
def test_as_many_as_there_are_descriptors_for(wished, limit, given):
    assert affordable(wished, lambda: limit) == given


def test_the_limit_is_raised_as_far_as_one_may():
    assert (raised_limit() or 8_192) >= 256
    assert raised_limit() == raised_limit()
