"""The tree of errors, and messages with advice."""

from __future__ import annotations

import inspect

import pytest

from periplus import errors
from periplus.errors import (
    InvalidUrl,
    NoCollection,
    NotConverged,
    PeriplusError,
    StoreError,
    UnknownSetting,
    UsageError,
)

ALL = [item for _, item in inspect.getmembers(errors, inspect.isclass) if item.__module__ == errors.__name__]


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_is_a_periplus_error(error):
    assert issubclass(error, PeriplusError)


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_each_error_has_a_docstring(error):
    assert (error.__doc__ or "").rstrip().endswith(".")


@pytest.mark.parametrize("error", [InvalidUrl, UnknownSetting, NoCollection])
def test_errors_of_the_caller_are_usage_errors(error):
    assert issubclass(error, UsageError)


def test_a_store_error_is_no_usage_error():
    assert not issubclass(StoreError, UsageError)


def test_not_converged_has_its_figures_and_advice():
    error = NotConverged("pagerank", rounds=200, residual=0.0123456)
    assert (error.rounds, error.residual) == (200, 0.0123456)
    assert (
        str(error)
        == "pagerank did not converge in 200 rounds (last change 0.0123): allow more rounds or a larger tolerance"
    )
