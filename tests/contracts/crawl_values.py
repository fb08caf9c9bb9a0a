"""Short constructors of values for tests of crawl stores."""

from __future__ import annotations

from urllib.parse import urlsplit

from periplus.model.frontier import Batch, Candidate, Completion, GivenUp, HostState, SideRequest
from periplus.model.visit import Fetched, Headers, Purpose, Reason, Request, Visit
from periplus.urls.canonical import url_id
from periplus.urls.hosts import host_key, origin_of

PAGE = Fetched(200, Headers((("content-type", "text/html"),)), b"<p>")


def site_of(url):
    """Hosts that differ by a leading `www.` are one site, as for the crawler."""
    return urlsplit(url).hostname.removeprefix("www.")


def candidate(url, depth=0, reason=Reason.WAITING, **more):
    return Candidate(url, url_id(url), host_key(url), site_of(url), reason, depth, **more)


def side_request(url, purpose=Purpose.SITEMAP, priority=1_000_000_001, about=""):
    return SideRequest(host_key(url), site_of(url), Request(url, purpose, about=about), priority)


def visit_of(task, outcome=PAGE, at=1.0):
    return Visit(task.request, at, 0.1, outcome, 100, "192.0.2.1")


def completion(lease, task, reason=Reason.OK, outcome=PAGE, **more):
    return Completion(lease, task, visit_of(task, outcome), reason, **more)


def state(lease, wait_s=0.5, *, release=True, **more):
    base = {"delay_s": 0.5, "rate": 1.0, "strikes": 0, "answered": True, "waits_for": "delay"}
    return HostState(lease, wait_s, **(base | more), release=release)


def given_up(url, reason=Reason.HOST_DOWN, rule="connection-failed"):
    return (GivenUp(origin_of(url), reason, rule),)


def batch(*completions, hosts=(), **more):
    return Batch(tuple(completions), tuple(hosts), **more)


def get(store, worker, now=0.0, horizon=1000.0):
    """Leases all ready hosts; returns leases by host name."""
    leases = store.lease(worker, [host.host_id for host in store.ready(100, horizon, now)], now)
    return {lease.host.partition(":")[0]: lease for lease in leases}


def urls(tasks):
    return [task.request.url for task in tasks]


def take(store, lease, now=0.0, most=100, in_hand=()):
    return store.take(lease, most, frozenset((task.priority, task.seq) for task in in_hand), now)[0]
