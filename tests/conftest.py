"""Fixtures of all tests: a collection in a database, where one is asked for."""

import pytest


@pytest.fixture
def address():
    """The address of an empty collection on PostgreSQL, this test's own."""
    from periplus.store.postgres.address import address_of
    from postgres_server import empty_collection

    with empty_collection() as text:
        yield address_of(text)
