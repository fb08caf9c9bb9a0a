"""How many requests one process may carry, by the file descriptors that it may have."""

from __future__ import annotations

from collections.abc import Callable

OTHERS = 32  # descriptors that are no connections: the collection, the index, locks, pipes, modules being loaded
PER_REQUEST = 2  # each request's connection, and one that is kept for the next
ENOUGH = 8_192  # for the greatest concurrency that can be set


def affordable(concurrency: int, limit: Callable[[], int | None] | None = None) -> int:
    """The concurrency, or as many as there are descriptors for, at least 1.

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
    target = max(soft, ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH))
    if target > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return target
