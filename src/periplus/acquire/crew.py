"""What does a worker work with?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from periplus.acquire.address_turns import AddressTurns
from periplus.acquire.aliases import Aliases
from periplus.model.crawl_store import CrawlStore
from periplus.model.frontier import TrapMemory
from periplus.model.ports import Clock, HostPast, Policy, Territory, Transport, TrapDetection


@dataclass(frozen=True, slots=True)
class Crew:
    """What a worker works with."""

    store: CrawlStore
    transport: Transport
    clock: Clock
    policy: Policy
    detector: Callable[[TrapMemory, HostPast], TrapDetection]
    scope: Territory
    mine: frozenset[str]  # hosts declared one's own: names, or names with ports
    aliases: Aliases
    addresses: AddressTurns
