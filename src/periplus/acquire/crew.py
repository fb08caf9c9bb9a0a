"""What a worker works with, and how many requests one process may carry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from periplus.acquire.discovery import Aliases
from periplus.acquire.hosts import AddressTurns
from periplus.model.frontier import TrapMemory
from periplus.model.ports import Clock, CrawlScope, CrawlStore, HostPast, Policy, Transport, TrapDetection


@dataclass(frozen=True, slots=True)
class WorkerDeps:
    """What a worker works with."""

    store: CrawlStore
    transport: Transport
    clock: Clock
    policy: Policy
    detector: Callable[[TrapMemory, HostPast], TrapDetection]
    scope: CrawlScope
    mine: frozenset[str]  # hosts declared one's own: names, or names with ports
    aliases: Aliases
    addresses: AddressTurns


OTHERS = 32  # descriptors that are no connections: the collection, the index, locks, pipes, modules being loaded
PER_REQUEST = 2  # each request's connection, and one that is kept for the next
ENOUGH = 8_192  # for the greatest concurrency that can be set


def affordable(concurrency: int, limit: Callable[[], int | None] | None = None) -> int:
    """The wished number, or as many as there are descriptors for, at least 1.

    limit: asks for the limit; None: unknown.
    """
    descriptors = (limit or raised_limit)()
    return concurrency if descriptors is None else max(1, min(concurrency, (descriptors - OTHERS) // PER_REQUEST))


def raised_limit() -> int | None:
    """The limit of this process, first raised as far as it may raise it itself. None: the system has no such limit."""
    try:
        import resource
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    wished = max(soft, ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH))
    if wished > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wished, hard))
    return wished
