"""Frozen values behave as frozen dataclasses, although few methods are compiled."""

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
    assert [(part.name, part.type) for part in fields(Point)] == [("x", int), ("y", int), ("names", list[str])]
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


def test_a_class_of_which_many_values_are_created_gets_a_compiled_init():
    @frozen
    class Many:
        x: int
        names: list[int] = field(default_factory=list)
        y: int = 7

        def __post_init__(self) -> None:
            self.names.append(self.x)

    birth = Many.__init__
    values = [Many(number) if number % 2 else Many(x=number, y=7) for number in range(50)]
    assert Many.__init__ is not birth
    assert [(value.x, value.names, value.y) for value in values] == [(number, [number], 7) for number in range(50)]
    with pytest.raises(FrozenInstanceError):
        values[-1].x = 2  # type: ignore[misc]


def test_wrong_arguments_raise_what_python_says_of_them():
    for arguments, named in (((), {}), ((1, 2, [], 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1}), ((), {"y": 1})):

        @frozen
        class Fresh:
            x: int
            y: int = 0
            names: list[str] = field(default_factory=list)

        with pytest.raises(TypeError, match=r"__init__\(\) (missing|takes|got)"):
            Fresh(*arguments, **named)  # type: ignore[arg-type]
