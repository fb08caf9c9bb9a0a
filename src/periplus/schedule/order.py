"""Breadth first, site by site: whose turn is it when several sites are crawled at once?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from periplus.model.frontier import ReadyHost
from periplus.model.page import Document
from periplus.model.web import SiteKey


@dataclass(frozen=True, slots=True)
class SiteTurns:
    """`model.ports.Policy`: sites that had fewer quanta of pages go first; within a quantum, who is due first.

    The order within a site is the store's: layer by layer.
    """

    quantum: int  # pages
    patience_s: None = None

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        turns = sorted(ready, key=lambda host: (host.site_fetched // self.quantum, host.wait_s, host.host))
        return [host.host_id for host in turns[:most]]

    def told(self, site: SiteKey, document: Document | None, took_s: float) -> None:
        """What a page brought changes no turn."""
