"""What is the map of a site whose collection is in a database? The same as of one in a folder, made of the same rows."""

from __future__ import annotations

import time

from periplus.api.facts import RankOrder, analysed, site_rows
from periplus.api.homes import site_reader_of
from periplus.api.site import Site, mapped


def stored_map(store: str, site: str, order: RankOrder) -> Site:
    """store: an address. site: its key, or empty for the only one. The site's URLs and links are held in memory, and no other's.

    Raises UsageError where there is no map, NoCollection, StoreError.
    """
    now = time.time()
    with site_reader_of(store) as reader:
        rows = site_rows(reader, site, now)
    return mapped(rows, analysed(rows, order), now)
