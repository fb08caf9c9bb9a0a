"""Caches of values that are slow to compute."""

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


class LruCache(Generic[Key, Value]):
    """A thread-safe LRU cache of at most `most` values.

    `get_or_make` computes one value at a time; use `get` and `put` where other threads must not wait for that.

    lock: held while a value is computed. A caller that uses a value which is not thread-safe holds it too.
    """

    def __init__(self, most: int, close: Callable[[Value], None] = lambda value: None) -> None:
        """close: called with each evicted value."""
        self.lock = threading.RLock()
        self._most, self._close = most, close
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """The cached value or None. Never waits for a computation."""
        value = self._values.get(key)
        with contextlib.suppress(KeyError):  # missing, or evicted by another thread just now
            self._values.move_to_end(key)
        return value

    def put(self, key: Key, value: Value) -> Value:
        """Stores the value, replacing the key's earlier one."""
        with self.lock:
            self._values.pop(key, None)
            self._make_room()
            self._values[key] = value
            return value

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """The cached value, computed if missing. Evicts before computing, so that the limit holds."""
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
    """A thread-safe cache of values that take seconds; each is computed in a thread of its own."""

    def __init__(self, most: int) -> None:
        """most: number of cached values."""
        self._lock = threading.Lock()
        self._futures: OrderedDict[Key, Future[Value]] = OrderedDict()
        self._most = most

    def of(self, key: Key, make: Callable[[], Value], wait_s: float | None) -> Value | None:
        """The key's value, or None if it is not ready after wait_s (None: no limit); the computation continues.

        Raises the PeriplusError of `make` once, and CancelledError if `make` failed otherwise.
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
    except PeriplusError as error:  # raised again in `of`
        future.set_exception(error)
    finally:
        future.cancel()  # no effect once the result is set
