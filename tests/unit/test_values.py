"""Frozen values behave as frozen dataclasses, although their methods are compiled late."""

import copy
import pickle
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any

import pytest

from periplus.values import frozen


@frozen
class Point:
    x: int
    y: int = 0
    names: list[str] = field(default_factory=list, compare=False)

    @property
    def total(self) -> int:
        return self.x + self.y


@frozen
class Word:
    text: str

    def __repr__(self) -> str:
        return self.text


def test_a_value_can_be_unpickled_before_any_was_made():
    restored = pickle.loads(pickle.dumps(Word("a")))
    assert restored == Word("a") and repr(restored) == "a"


def test_values_are_compared_hashed_and_shown_by_their_fields():
    assert Point(1) == Point(1, 0, ["a"]) != Point(2) and Point(1) != (1, 0, [])
    assert len({Point(1, 2), Point(1, 2), Point(2, 1)}) == 2
    assert repr(Point(1)) == "Point(x=1, y=0, names=[])"
    assert Point(1).names is not Point(1).names
    assert [part.name for part in fields(Point)] == ["x", "y", "names"]
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_values_are_copied_and_pickled():
    point = Point(1, 2, ["a"])
    assert replace(point, y=5).total == 6
    for same in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert same == point and same.names == ["a"]


def test_a_value_does_not_change():
    point: Any = Point(1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2
    with pytest.raises(FrozenInstanceError):
        del point.x
    with pytest.raises((AttributeError, TypeError)):
        point.z = 2
    with pytest.raises(TypeError, match="required positional argument"):
        Point()  # type: ignore[call-arg]


def test_methods_are_compiled_at_the_first_call_of_their_group():
    @frozen
    class Late:
        x: int

    birth, likeness = Late.__init__, Late.__eq__
    late = object.__new__(Late)
    object.__setattr__(late, "x", 1)
    assert Late.__init__ is birth
    assert repr(late).endswith("Late(x=1)") and Late.__init__ is birth and Late.__eq__ is not likeness
    assert late == Late(1) and Late.__init__ is not birth
    assert late == Late(1) and hash(late) == hash(Late(1))
