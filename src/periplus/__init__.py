"""Periplus crawls a chosen part of the web politely, stores its pages, and maps the structure of each site.

import periplus

with periplus.open("example.org.periplus") as collection:
    site = collection.map()
    print(site.depth, len(site.facts.url))
    for page in site.top(5):
        print(page.score, page.url, page.title)

`periplus.survey`, `periplus.topic` and `periplus.portal` are modules with functions for each of these. docs/python.md
has examples, docs/api.md is the reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from periplus import errors
    from periplus.api.collection import Collection, Status
    from periplus.api.crawling import CrawlEnd, Progress
    from periplus.api.functions import (
        CheckResult,
        check,
        crawl,
        delete,
        export,
        refresh,
        sql,
    )
    from periplus.api.functions import open_collection as open
    from periplus.api.functions import search_collections as search
    from periplus.api.page import Page
    from periplus.api.rows import Rows
    from periplus.api.site import Site

    __version__: str

_PLACES = {  # public name: module and name in it; without a name: the module itself
    "__version__": "settings:VERSION",
    "CheckResult": "api.functions:CheckResult",
    "Collection": "api.collection:Collection",
    "CrawlEnd": "api.crawling:CrawlEnd",
    "Page": "api.page:Page",
    "Progress": "api.crawling:Progress",
    "Rows": "api.rows:Rows",
    "Site": "api.site:Site",
    "Status": "api.collection:Status",
    "check": "api.functions:check",
    "crawl": "api.functions:crawl",
    "delete": "api.functions:delete",
    "errors": "errors:",
    "export": "api.functions:export",
    "open": "api.functions:open_collection",
    "refresh": "api.functions:refresh",
    "search": "api.functions:search_collections",
    "sql": "api.functions:sql",
}

__all__ = [
    "CheckResult",
    "Collection",
    "CrawlEnd",
    "Page",
    "Progress",
    "Rows",
    "Site",
    "Status",
    "__version__",
    "check",
    "crawl",
    "delete",
    "errors",
    "export",
    "open",
    "refresh",
    "search",
    "sql",
]


def __getattr__(name: str) -> Any:
    """Loads the names in `__all__` and those of features at first use, so that importing the package is fast."""
    from periplus.features import parts, value_at

    if name in _PLACES:
        return value_at(f"periplus.{_PLACES[name]}")
    if name in parts("names"):
        return parts("names")[name].load(object)
    raise AttributeError(f"module 'periplus' has no attribute {name!r}: no installed feature provides it")


def __dir__() -> list[str]:
    from periplus.features import parts

    return sorted({*__all__, *parts("names")})
