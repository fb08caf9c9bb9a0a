"""Which orders of a topical crawl are there, and by which names are they asked for?"""

from __future__ import annotations

from periplus.errors import UsageError
from periplus.schedule.topical import orders
from periplus.schedule.topical.evidence import weighed
from periplus.schedule.topical.policy import TopicalQueue
from periplus.schedule.topical.queue import PageQueue
from periplus.schedule.topical.waits import SiteWaits

WEIGHED, WAITS = "weighed", "waits"
_ORDERS = {WEIGHED: weighed, **orders.ORDERS}
NAMES = (*_ORDERS, WAITS)


def queue_named(name: str) -> TopicalQueue:
    """An empty queue. Raises UsageError for a name that is none of NAMES."""
    if name == WAITS:
        return SiteWaits()
    if name not in _ORDERS:
        raise UsageError(f"There is no order {name}. Orders: {', '.join(NAMES)}.")
    return PageQueue(_ORDERS[name])
