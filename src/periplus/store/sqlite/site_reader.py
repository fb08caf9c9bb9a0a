"""How is a site of a collection in a folder read for analyses? `model.graph.SiteReader`."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from periplus.model.crawl_home import RunRecord
from periplus.model.graph import LinkRows, PageRows, UrlFacts, UrlRows
from periplus.model.web import SiteKey
from periplus.store.sqlite import graph_rows, reading, runs


class FolderSite:
    """Within a snapshot. See the protocol."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def runs(self) -> Sequence[RunRecord]:
        return runs.run_records(self._connection)

    def is_being_crawled(self, now: float) -> bool:
        return reading.is_being_crawled(self._connection, now)

    def redirects(self) -> LinkRows:
        return graph_rows.redirects(self._connection)

    def site_of(self, url_id: int) -> SiteKey | None:
        return graph_rows.site_of(self._connection, url_id)

    def url_facts(self, url_id: int) -> UrlFacts | None:
        return graph_rows.url_facts(self._connection, url_id)

    def urls(self, site: SiteKey) -> UrlRows:
        return graph_rows.site_urls(self._connection, site)

    def links(self, site: SiteKey) -> LinkRows:
        return graph_rows.page_links(self._connection, site)

    def pages(self, site: SiteKey) -> PageRows:
        return graph_rows.site_pages(self._connection, site)

    def statuses(self, site: SiteKey) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return graph_rows.statuses(self._connection, site)
