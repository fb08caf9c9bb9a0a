"""Number of concurrent requests that the file descriptors of a process allow."""

import pytest

from periplus.children import affordable, raised_limit


@pytest.mark.parametrize(
    ("requested", "limit", "given"), [(128, 1024, 128), (128, 48, 8), (2000, 1024, 496), (5, 10, 1), (128, None, 128)]
)
def test_requests_are_limited_by_the_file_descriptors(requested, limit, given):
    assert affordable(requested, limit) == given


def test_the_limit_of_descriptors_is_raised_to_its_maximum():
    assert (raised_limit() or 8_192) >= 256
    assert raised_limit() == raised_limit()
