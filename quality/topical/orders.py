"""Published orders of a topical crawl, to compare ours with, and the choice of the next page over all hosts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from periplus.model.arrays import Floats, Ints
from periplus.model.web import HostKey, Url
from periplus_topics.schedule.policy import Order, TopicalPages, TopicalQueue, take_page
from periplus_topics.schedule.queue import WAITS, WEIGHED, PageQueue, make_queue

CLOSE = 0.005  # a host with fresh scores is chosen if no other is better by more than this
TRIES = 8  # hosts whose best pages are scored again for one choice


def breadth_first(seen: TopicalPages, numbers: Ints) -> Floats:
    """In the order of discovery."""
    return -numbers.astype(np.float64)


def best_parent(seen: TopicalPages, numbers: Ints) -> Floats:
    """Best-first search as published: by the worth of the best page that links to it."""
    return seen.worth_most[numbers] - 1e-9 * numbers


def all_parents(seen: TopicalPages, numbers: Ints) -> Floats:
    """By the mean worth and the number of the pages that link to it."""
    links = seen.links[numbers]
    promises: Floats = (
        (seen.worth_sum[numbers] + 0.5 * seen.prior) / (links + 0.5)
        + 0.05 * np.log1p(links)
        + (links == 0)
        - 1e-9 * numbers
    )
    return promises


def shark(seen: TopicalPages, numbers: Ints) -> Floats:
    """Shark search: half by credit inherited along links, half by the relevance of the link texts."""
    return 0.5 * seen.credit[numbers] + 0.5 * seen.promise[numbers] - 1e-9 * numbers


def of_site(seen: TopicalPages, numbers: Ints) -> Floats:
    """By the mean worth of its site's pages so far."""
    prior = np.full(len(numbers), seen.prior)
    return seen.of_host.mean(seen.host[numbers], prior, 2.0) + 1e-3 * seen.worth_most[numbers] - 1e-9 * numbers


ORDERS: dict[str, Order] = {
    "breadth": breadth_first,
    "best-first": best_parent,
    "parents": all_parents,
    "shark": shark,
    "site": of_site,
}
ALL_NAMES = (WEIGHED, WAITS, *ORDERS)


def queue_of(name: str) -> TopicalQueue:
    """An empty queue by one of ALL_NAMES."""
    return PageQueue(ORDERS[name]) if name in ORDERS else make_queue(name)


def next_page(queue: TopicalQueue, hosts: Sequence[HostKey], resting: Collection[HostKey] = ()) -> Url | None:
    """Takes the best page of all hosts but the resting ones. hosts: those met so far."""
    host = _best_host(queue, resting) if isinstance(queue, PageQueue) else _due_host(queue, hosts, resting)
    return None if host is None else take_page(queue, host)


def _best_host(queue: PageQueue, resting: Collection[HostKey]) -> HostKey | None:
    hosts = queue.seen.hosts
    best = queue.best[: len(hosts)].copy()
    best[[queue.seen.host_number[host] for host in resting]] = -np.inf
    if not len(best):
        return None
    for _ in range(TRIES):
        host = int(np.argmax(best))
        if best[host] == -np.inf:
            return None
        queue.peek(hosts[host])
        best[host] = queue.best[host]
        if best[host] >= best.max() - CLOSE and best[host] != -np.inf:
            return hosts[host]
    return hosts[int(np.argmax(best))]


def _due_host(queue: TopicalQueue, hosts: Sequence[HostKey], resting: Collection[HostKey]) -> HostKey | None:
    for _ in range(2):  # a second time after a site was activated
        promises = {host: queue.promise_of(host) for host in hosts if host not in resting}
        active = {host: promise for host, promise in promises.items() if promise not in {None, -np.inf}}
        if active:
            return max(active, key=lambda host: active[host] or 0.0)
        queue.wake()
    return None
