"""Values that take long to make, remembered for whoever asks next."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Generic, TypeVar

from periplus.errors import PeriplusError

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


class Background(Generic[Key, Value]):
    """Values that take seconds, each made by a thread of its own beside those who ask. For many threads."""

    def __init__(self, most: int) -> None:
        """most: values that are remembered."""
        self._lock = threading.Lock()
        self._futures: OrderedDict[Key, Future[Value]] = OrderedDict()
        self._most = most

    def is_made(self, key: Key) -> bool:
        future = self._futures.get(key)
        return future is not None and future.done()

    def of(self, key: Key, make: Callable[[], Value], wait_s: float | None) -> Value | None:
        """The key's value; None: it is not there after wait_s (None: for ever), and the work goes on.

        Raises the PeriplusError that `make` raises, once, and CancelledError where it broke.
        """
        with self._lock:
            future = self._futures.get(key)
            if future is None:
                while len(self._futures) >= self._most:
                    self._futures.popitem(last=False)
                future = self._futures[key] = Future()
                threading.Thread(target=_fulfil, args=(future, make), daemon=True).start()
        try:
            return future.result(wait_s)
        except TimeoutError:
            return None
        except (PeriplusError, CancelledError):
            with self._lock:
                self._futures.pop(key, None)
            raise


def _fulfil(future: Future[Value], make: Callable[[], Value]) -> None:
    try:
        future.set_result(make())
    except PeriplusError as error:  # handed to whoever asks
        future.set_exception(error)
    finally:
        future.cancel()  # without effect where it is fulfilled
