"""Periplus charts a chosen part of the web: it crawls politely, keeps what it saw, and maps each site's structure.

import periplus

with periplus.open("example.org.periplus") as collection:
    site = collection.map()
    print(site.depth, len(site.facts.url))
    for page in site.top(5):
        print(page.score, page.url, page.title)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from periplus.api.collection import Collection, crawl
    from periplus.api.collection import open_collection as open

__all__ = ["Collection", "crawl", "open"]

_PLACES = {"Collection": "Collection", "crawl": "crawl", "open": "open_collection"}


def __getattr__(name: str) -> object:
    """What `__all__` names is loaded when it is first used, so that importing the package costs nothing."""
    if name not in _PLACES:
        raise AttributeError(f"module 'periplus' has no attribute {name!r}")
    from periplus.api import collection

    return getattr(collection, _PLACES[name])
