"""Which map did somebody just look at? It is asked for again with the next click, and takes seconds to make."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from pathlib import Path

from periplus.api.collection import open_collection
from periplus.api.site import Site
from periplus.store.sqlite import browsing, reading

KEPT = 2  # of a million pages each takes 0.5 GB
READ_S = 120.0
SMALL_URLS = 10_000  # whose map is made in 0.3 s


class Maps:
    """The latest maps, made anew when a collection has changed. For many threads; one map is made at a time."""

    def __init__(self) -> None:
        self._sites: OrderedDict[tuple[Path, str, int, int], Site] = OrderedDict()
        self._lock = threading.Lock()

    def at_hand(self, folder: Path, site: str) -> Site | None:
        """The map, if it takes no time: it was just looked at, or its collection is small. Raises as `of`."""
        with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
            key = (folder.resolve(), site, *browsing.standing(connection))
            small = browsing.known(connection) <= SMALL_URLS
        return self.of(folder, site) if small or key in self._sites else None

    def of(self, folder: Path, site: str) -> Site:
        """Raises UsageError where there is no map, NoCollection, StoreError."""
        with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
            standing = browsing.standing(connection)
        key = (folder.resolve(), site, *standing)
        with self._lock:
            if key not in self._sites:
                with open_collection(folder, time_limit_s=READ_S) as kept:
                    self._sites[key] = kept.map(site)
                while len(self._sites) > KEPT:
                    self._sites.popitem(last=False)
            self._sites.move_to_end(key)
            return self._sites[key]
