"""Errors raised on purpose: one tree, and messages that say what to do."""

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
def test_one_except_catches_all_that_is_raised_on_purpose(error):
    assert issubclass(error, PeriplusError)


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_each_error_says_when_it_is_raised(error):
    assert (error.__doc__ or "").rstrip().endswith(".")


@pytest.mark.parametrize("error", [InvalidUrl, UnknownSetting, NoCollection])
def test_what_the_caller_did_wrong_is_a_usage_error(error):
    assert issubclass(error, UsageError)


def test_a_store_that_fails_is_not_the_callers_fault():
    assert not issubclass(StoreError, UsageError)


def test_not_converged_carries_its_numbers_and_says_what_to_do():
    error = NotConverged("pagerank", rounds=200, residual=0.0123456)
    assert (error.rounds, error.residual) == (200, 0.0123456)
    assert (
        str(error)
        == "pagerank did not converge in 200 rounds (last change 0.0123): allow more rounds or a larger tolerance"
    )
