"""The feature provides what the core asks of a kind of database."""

import inspect

from periplus.api.homes import DatabaseStore
from periplus.features import store_at


def test_the_store_has_every_function_that_the_core_calls_with_as_many_parameters():
    store = store_at("postgresql://")
    asked = {name: value for name, value in inspect.getmembers(DatabaseStore, inspect.isfunction) if name[0] != "_"}
    assert asked
    for name, function in asked.items():
        wanted = len(inspect.signature(function).parameters) - 1
        given = inspect.signature(getattr(store, name)).parameters.values()
        least = sum(parameter.default is inspect.Parameter.empty for parameter in given)
        assert least <= wanted <= len(given), name
