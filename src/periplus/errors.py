"""The errors that Periplus raises on purpose.

    PeriplusError            caught once, in `cli`, and shown as one sentence
      UsageError             the arguments cannot be used
        InvalidUrl           a text is not a URL
        UnknownSetting       a name that is not a setting, or a value outside its range
        NoCollection         the folder has no collection
      StoreError             the collection is locked, damaged, newer than this program, or on a
                             disk that cannot hold it
        OutOfTime            a query took more CPU time than its limit
      NotConverged           an iteration reached its limit; has rounds and residual
      ExtensionError         an installed package that adds to Periplus failed

The outcome of a page is never an exception: see `model.visit.Outcome`.
"""

from __future__ import annotations


class PeriplusError(Exception):
    """Base class. The message states what happened, to what, and what to do."""


class UsageError(PeriplusError):
    """The arguments cannot be used."""


class InvalidUrl(UsageError):
    """A text that is not an absolute URL by the URL Living Standard."""


class UnknownSetting(UsageError):
    """A setting that does not exist, or a value outside its range."""


class NoCollection(UsageError):
    """No collection where one was expected."""


class StoreError(PeriplusError):
    """The collection cannot be opened or written."""


class OutOfTime(StoreError):
    """A query took more CPU time than its limit."""


class NotConverged(PeriplusError):
    """An iteration reached its maximum number of rounds before its tolerance."""

    def __init__(self, what: str, rounds: int, residual: float) -> None:
        super().__init__(
            f"{what} did not converge in {rounds} rounds (last change {residual:.3g}): allow more "
            "rounds or a larger tolerance"
        )
        self.what = what
        self.rounds = rounds
        self.residual = residual

    def __reduce__(self) -> tuple[type[NotConverged], tuple[str, int, float]]:
        return type(self), (self.what, self.rounds, self.residual)  # for tasks on a cluster, which pickle it


class ExtensionError(PeriplusError):
    """An installed extension package cannot be loaded or failed; the message has its name."""
