"""Values that take long to make, remembered for whoever asks next."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """The values that were asked for last; of more than `most` those go that nobody asked for longest.

    For many threads. `of` makes one value at a time; where others should not wait for it, `get` and `put`.

    lock: held while a value is made; whoever uses a value that only one thread may use holds it meanwhile.
    """

    def __init__(self, most: int, close: Callable[[Value], None] = lambda value: None) -> None:
        """close: called with each value that goes."""
        self.lock = threading.RLock()
        self._most, self._close = most, close
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """The key's value, without waiting for one that is being made; None: there is none."""
        value = self._values.get(key)
        with contextlib.suppress(KeyError):  # there is none, or it went at this moment
            self._values.move_to_end(key)
        return value

    def put(self, key: Key, value: Value) -> Value:
        """Remembers the value, in place of the key's earlier one."""
        with self.lock:
            self._values.pop(key, None)
            self._make_room()
            self._values[key] = value
            return value

    def of(self, key: Key, make: Callable[[], Value]) -> Value:
        """The key's value; made where there is none, once others have gone that would be too many with it."""
        with self.lock:
            if key not in self._values:
                self._make_room()
                self._values[key] = make()
            self._values.move_to_end(key)
            return self._values[key]

    def _make_room(self) -> None:
        while len(self._values) >= self._most:
            self._close(self._values.popitem(last=False)[1])
