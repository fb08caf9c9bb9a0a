"""Fixtures of the contract suites: crawl stores of each kind, a web of faults with transports to it."""

from __future__ import annotations

import pytest

from contracts.crawl_worlds import NO_LIMIT, PlainWorld, PostgresWorld, SqliteWorld
from contracts.wire_tools import QUICK, carry, curl, fault_web
from testweb import serve

ME, OTHER = 100, 200  # process ids


@pytest.fixture(params=[SqliteWorld, PlainWorld, PostgresWorld], ids=["sqlite", "plain", "postgres"])
def make(request):
    """Makes a world: `make(budget)`; at the end its sums are compared with a recount."""
    made = []
    place = request.getfixturevalue("address" if request.param is PostgresWorld else "tmp_path")

    def make(budget=NO_LIMIT):
        world = request.param(place, {ME, OTHER}, budget)
        made.append(world)
        return world

    yield make
    for world in made:
        wrong, tally, true, orphans = world.recount()
        world.close()
        assert not wrong, "pending is the number of entries"
        assert tally == true, "tallies equal a recount"
        assert not orphans, "a waiting URL is in a list"


@pytest.fixture
def store(make):
    return make().open()


@pytest.fixture(scope="module")
def server():
    with serve(fault_web()) as server:
        yield server


@pytest.fixture
def opened():
    """Opens transports and closes them in the end."""
    transports = []

    def opened(*args, **more):
        transports.append(curl(*args, **more))
        return transports[-1]

    yield opened
    for one in transports:
        one.close()


@pytest.fixture
def ask(server, opened):
    """One exchange with a.test over a new transport."""

    def ask(path, limits=QUICK, **more):
        return carry(opened(server.resolve, limits, **more), server.url("a.test", path))[0]

    return ask
