"""Queues of a topical crawl: the best page is next. The same tests for every order, and comparison with slow code."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import numpy as np
import pytest

from periplus.errors import UsageError
from periplus.model.frontier import ReadyHost
from periplus.model.web import HostKey, SiteKey, Url
from periplus.settings import Scope
from periplus.urls.scope import site_scope
from periplus_topics.schedule.policy import (
    MOST_PARENTS,
    WEIGHTS,
    Pointer,
    TopicalPages,
    TopicalPolicy,
    evidence,
    expected_relevance,
)
from periplus_topics.schedule.policy import NAMES as EVIDENCE
from periplus_topics.schedule.queue import WAITS, WEIGHED, WINDOW, PageQueue, SiteWaits, make_queue

_FOLDER = Path(__file__).parents[2] / "quality" / "topical"
_SPEC = importlib.util.spec_from_file_location("orders", _FOLDER / "orders.py")
assert _SPEC is not None and _SPEC.loader is not None
orders = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(orders)
ORDERS = orders.ORDERS

A, B = HostKey("a.test:443"), HostKey("b.test:443")


def url(host, page):
    return Url(f"https://{host}.test/d{page % 3}/{page}")


def links(*targets, promise=0.1, words=""):
    return [Pointer(target, words, promise) for target in targets]


def policy_of(queue, urgent=()):
    """A policy without relevance. urgent: hosts with requests that others wait for."""
    return TopicalPolicy(
        queue,
        site_scope([url("a", 0)], Scope(scope="any")),
        lambda texts: np.zeros(len(texts)),
        str,
        urgent=lambda ids: frozenset(urgent),
    )


def take(queue, resting=()):
    """Takes the best page of the hosts of these tests."""
    return orders.next_page(queue, [A, B, *(HostKey(f"h{number}.test:443") for number in range(6))], resting)


def drained(queue):
    found = []
    while (best := take(queue)) is not None:
        found.append(best)
    return found


def random_history(queue, seed, steps=60, hosts=6, pages=15):
    """Reads pages in the order of the queue, with random values and links."""
    rng = random.Random(seed)
    queue.start([url("h0", 0)])
    read = []
    for _ in range(steps):
        best = take(queue)
        if best is None:
            break
        read.append(best)
        targets = [url(f"h{rng.randrange(hosts)}", rng.randrange(pages)) for _ in range(rng.randrange(6))]
        queue.read(
            best,
            rng.random() ** 3,
            [Pointer(target, rng.choice(("ship", "harbour", "")), rng.random()) for target in targets],
        )
    return read


@pytest.mark.parametrize("name", orders.ALL_NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_every_page_is_returned_once(name, seed):
    queue = orders.queue_of(name)
    read = random_history(queue, seed)
    rest = drained(queue)
    assert len(read + rest) == len(set(read + rest))
    assert take(queue) is None
    if isinstance(queue, PageQueue):
        assert set(read + rest) == set(queue.seen.urls)


@pytest.mark.parametrize("name", ["best-first", "parents", "shark", "breadth"])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_waiting_page_is_next(name, seed):
    """The slow twin scores all pages before each choice. Queues of other crawlers returned the worst first."""
    queue = PageQueue(ORDERS[name])
    rng = random.Random(seed)
    queue.start([url("h0", 0)])
    for _ in range(50):
        waiting = np.flatnonzero(queue.seen.waits[: len(queue.seen)])
        if not len(waiting):
            break
        if name == "parents":  # its prior changes with every page
            queue.score_all()
        scores = ORDERS[name](queue.seen, waiting)
        best = take(queue)
        assert scores[list(waiting).index(queue.seen.number_of[best])] == scores.max()
        targets = [url(f"h{rng.randrange(5)}", rng.randrange(12)) for _ in range(4)]
        queue.read(best, rng.random(), [Pointer(target, "", rng.random()) for target in targets])


def test_the_best_page_of_a_host_depends_on_pages_read_elsewhere():
    queue = PageQueue(lambda seen, numbers: numbers * (1.0 if seen.read else -1.0))
    queue.start([url("a", 0), url("b", 1), url("b", 2)])
    assert queue.peek(B) == url("b", 1)
    queue.drop(url("a", 0))
    queue.read(url("a", 0), 1.0, [])
    assert queue.peek(B) == url("b", 2)


def test_after_scoring_all_pages_the_weighed_order_returns_the_best():
    queue = PageQueue(expected_relevance)
    random_history(queue, 7, steps=25)
    queue.score_all()
    waiting = np.flatnonzero(queue.seen.waits[: len(queue.seen)])
    scores = expected_relevance(queue.seen, waiting)
    assert take(queue) == queue.seen.urls[waiting[np.argmax(scores)]]


def test_links_are_scored_before_the_limit_applies():
    """The best of 5,000 links can be the last."""
    queue = PageQueue(expected_relevance)
    queue.start([url("a", 0)])
    queue.read(
        take(queue), 0.9, [*links(*(url("a", page) for page in range(1, 5000))), *links(url("a", 5000), promise=0.99)]
    )
    assert take(queue) == url("a", 5000)


def test_waiting_hosts_are_skipped():
    queue = PageQueue(ORDERS["best-first"])
    queue.start([url("a", 0)])
    queue.read(take(queue), 1.0, links(url("a", 1), url("a", 2)))
    queue.add([url("b", 1)])
    assert take(queue, {A}) == url("b", 1)
    assert take(queue, {A}) is None
    assert take(queue) == url("a", 1)


def test_a_good_directory_of_a_bad_portal_is_not_lost():
    """If only one directory of a host has good pages, its next page comes first."""
    queue = PageQueue(expected_relevance)
    home = Url("https://portal.test/")
    queue.start([home])
    queue.read(
        take(queue),
        0.0,
        links(*(Url(f"https://portal.test/{part}/{page}") for part in ("sport", "ships") for page in range(9))),
    )
    for page in range(4):
        queue.read(Url(f"https://portal.test/sport/{page}"), 0.0, ())
        queue.read(Url(f"https://portal.test/ships/{page}"), 0.95, ())
    queue.score_all()
    assert "/ships/" in queue.peek(HostKey("portal.test:443"))


def test_a_page_behind_an_irrelevant_page_keeps_some_credit():
    """Tunnelling: a page two links after a relevant page precedes a page without any."""
    seen = TopicalPages()
    seen.book(url("a", 1), 1.0, links(url("a", 2)))
    seen.book(url("a", 2), 0.0, links(url("a", 3)))
    seen.book(url("b", 2), 0.0, links(url("b", 3)))
    near, far = seen.number_of[url("a", 3)], seen.number_of[url("b", 3)]
    assert seen.credit[near] > seen.credit[far]
    assert expected_relevance(seen, np.array([near])) > expected_relevance(seen, np.array([far]))


def test_a_moved_page_keeps_its_evidence():
    queue = PageQueue(expected_relevance)
    queue.start([url("a", 0)])
    queue.read(take(queue), 0.9, links(url("a", 1), promise=0.9))
    old = queue.seen.number_of[url("a", 1)]
    queue.apply_redirect(url("a", 1), url("b", 1))
    new = queue.seen.number_of[url("b", 1)]
    assert queue.seen.promise[new] == queue.seen.promise[old] == 0.9
    assert drained(queue) == [url("b", 1)]


@pytest.mark.parametrize("name", [WEIGHED, WAITS])
def test_only_pages_that_still_wait_in_the_store_are_kept(name):
    queue = make_queue(name)
    queue.start([url("a", 0)])
    queue.add([url("a", 1), url("b", 1)])
    queue.keep_only({url("b", 1)})
    assert queue.peek(A) is None
    assert queue.peek(B) == url("b", 1)


def test_evidence_equals_that_of_slow_code():
    seen = TopicalPages()
    rng = random.Random(3)
    history = []
    for page in range(30):
        targets = [(url(f"h{rng.randrange(3)}", rng.randrange(40)), rng.random()) for _ in range(5)]
        history.append((url("h0", page), rng.random(), targets))
        seen.book(url("h0", page), history[-1][1], [Pointer(target, "", promise) for target, promise in targets])
    wait = np.flatnonzero(seen.waits[: len(seen)])
    table = evidence(seen, wait)
    read = {source: worth for source, worth, _ in history}
    prior = (sum(read.values()) + 0.2) / (len(read) + 2)
    for row, number in zip(table, wait, strict=True):
        at = seen.urls[number]
        parents = list(
            dict.fromkeys(source for source, _, targets in history if at in [target for target, _ in targets])
        )
        assert len(parents) <= MOST_PARENTS
        shares = [(sum(read[one] for one in parents) + 0.5 * prior) / (len(parents) + 0.5), prior]
        odds = [np.log(share / (1 - share)) for share in np.clip(shares, 0.003, 0.997)]
        assert row[EVIDENCE.index("parents")] == pytest.approx(odds[0] - odds[1])
        assert row[EVIDENCE.index("best parent")] == max(read[one] for one in parents)
        assert row[EVIDENCE.index("links")] == pytest.approx(np.log1p(len(parents)))
    assert len(WEIGHTS) == len(EVIDENCE) == table.shape[1]


# the published order


def test_published_a_site_becomes_active_at_the_threshold_of_links():
    queue = SiteWaits(threshold=2)
    queue.start([url("a", 0)])
    queue.read(take(queue), 1.0, links(url("b", 1), url("a", 1)))
    assert queue.promise_of(B) == -np.inf
    queue.read(take(queue), 1.0, links(url("b", 2)))
    assert queue.promise_of(B) > -np.inf


def test_published_a_relevant_site_waits_less():
    queue = SiteWaits()
    queue.start([url("a", 0), url("b", 0)])
    for page in range(1, 400):
        for host in ("a", "b"):
            queue.add([url(host, page)])
    asked = []
    for _ in range(200):
        best = take(queue)
        asked.append(best)
        queue.read(best, float("//a." in best), ())
    assert sum("//a." in best for best in asked) > 150
    assert any("//b." in best for best in asked[100:]), "an irrelevant site is rarely requested, but not never"


def test_published_the_crawl_narrows_when_the_harvest_decreases_and_widens_when_it_increases():
    queue = SiteWaits()
    before = queue.narrowness
    for share in (0.5, 0.2):
        for page in range(WINDOW):
            queue.read(url("a", page), float(page < share * WINDOW), ())
    narrow = queue.narrowness
    assert narrow > before
    for page in range(WINDOW):
        queue.read(url("a", page), 1.0, ())
    assert queue.narrowness < narrow


def test_published_a_crawl_does_not_end_at_the_threshold():
    queue = SiteWaits(threshold=9)
    queue.start([url("a", 0)])
    queue.read(take(queue), 1.0, links(url("b", 1)))
    assert take(queue) == url("b", 1)


# the policy


def ready(host, number, wait_s=0.0):
    return ReadyHost(number, host, SiteKey(host), 1, 0, wait_s)


def test_the_policy_selects_the_best_host_without_delay():
    queue = PageQueue(ORDERS["best-first"])
    queue.start([url("b", 0)])
    queue.read(take(queue), 0.9, links(url("b", 1)))
    queue.add([url("a", 1)])
    policy = policy_of(queue)
    assert policy.choose([ready(A, 1), ready(B, 2)], 2) == [2, 1]
    assert policy.choose([ready(A, 1), ready(B, 2, 0.5)], 2) == [1, 2]


def test_the_policy_selects_urgent_requests_first_and_hosts_outside_the_queue_last():
    queue = PageQueue(ORDERS["best-first"])
    queue.start([url("a", 0)])
    robots, again = HostKey("robots.test:443"), HostKey("again.test:443")
    policy = policy_of(queue, {3})
    assert policy.choose([ready(again, 4), ready(A, 1), ready(robots, 3)], 3) == [3, 1, 4]


def test_the_policy_activates_sites_when_no_active_site_is_left():
    queue = SiteWaits(threshold=9)
    queue.start([url("a", 0)])
    queue.read(take(queue), 1.0, links(url("b", 1)))
    policy = policy_of(queue)
    assert policy.choose([ready(B, 2), ready(HostKey("again.test:443"), 4)], 2) == [4]
    assert policy.choose([ready(B, 2)], 2) == [2]


def test_an_unknown_order_is_refused_with_the_known_names():
    with pytest.raises(UsageError, match="weighed"):
        make_queue("depth")
