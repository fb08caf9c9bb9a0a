"""`model.ports.CrawlStore`: sitemaps, side requests and budgets."""

from __future__ import annotations

import pytest

from contracts.crawl_values import batch, candidate, completion, get, side_request, state, take, urls
from periplus.model.frontier import PRIORITY_FIRST, PRIORITY_SITEMAP, PRIORITY_WITHOUT_DEPTH
from periplus.model.visit import Cause, Failed, Purpose, Reason, Skipped
from periplus.settings import Budget

A, B, W = "http://a.test/", "http://b.test/", "http://www.a.test/"
ME, OTHER = 100, 200  # process ids
NONE = frozenset()


# sitemaps and side requests


def test_sitemap_urls_follow_all_links(store):
    store.offer([candidate(A + "s", None, in_sitemap=True), candidate(A, 0)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    first = take(store, lease)
    assert urls(first) == [A]
    store.commit(worker, batch(completion(lease, first[0])), 0.0)
    (task,) = take(store, lease)
    assert (task.priority, task.request.depth) == (PRIORITY_WITHOUT_DEPTH, None)


def test_a_link_raises_a_sitemap_url_which_is_done_once(store):
    store.offer([candidate(A, 0), candidate(A + "s", None, in_sitemap=True)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    (home,) = take(store, lease)
    store.commit(worker, batch(completion(lease, home, candidates=(candidate(A + "s", 1),))), 0.0)
    (task,) = take(store, lease)
    assert (task.request.url, task.priority) == (A + "s", 1)
    assert take(store, lease, in_hand=[task]) == ()
    store.commit(worker, batch(completion(lease, task)), 0.0)
    tasks, later_s = store.take(lease, 9, NONE, 0.0)
    assert (tasks, later_s) in (((), 0.0), ([], 0.0)), "only its old entry was left, and is gone now"
    assert store.idle(0.0)
    assert store.counts().by_reason == {"ok": 1 + 1}


def test_a_taken_sitemap_url_is_not_taken_again_after_a_link(store):
    store.offer([candidate(A + "1", None, in_sitemap=True), candidate(A + "2", None, in_sitemap=True)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    one, two = take(store, lease)
    store.commit(worker, batch(completion(lease, one, candidates=(candidate(A + "2", 1),))), 0.0)
    assert store.take(lease, 9, frozenset({(two.priority, two.seq)}), 0.0)[0] in ((), [])
    store.commit(worker, batch(completion(lease, two)), 0.0)
    assert take(store, lease) in ((), [])
    assert store.idle(0.0)
    assert store.counts().fetched == 2


def test_a_url_from_a_page_and_a_sitemap_is_queued_once(store):
    store.offer([candidate(A, 0), candidate(A, None, in_sitemap=True)], (), 0.0)
    assert len(take(store, get(store, store.join(ME, 0.0))["a.test"])) == 1


def test_side_requests_are_queued_once_at_their_own_host(store):
    robots = side_request(B + "robots.txt", Purpose.ROBOTS, PRIORITY_FIRST, about="http://a.test:80")
    store.offer([candidate(A), candidate(B)], [robots, robots, side_request(A + "sitemap.xml", about="a.test")], 0.0)
    worker = store.join(ME, 0.0)
    leases = get(store, worker)
    first = take(store, leases["b.test"])
    assert [(task.request, task.url_id) for task in first] == [(robots.request, 0)], "before every page"
    assert urls(take(store, leases["b.test"], in_hand=first)) == []
    store.commit(worker, batch(completion(leases["b.test"], first[0])), 0.0)
    assert urls(take(store, leases["b.test"])) == [B]
    pages = take(store, leases["a.test"])
    store.commit(worker, batch(completion(leases["a.test"], pages[0])), 0.0)
    (sitemap,) = take(store, leases["a.test"])
    assert (sitemap.request.purpose, sitemap.priority, sitemap.request.about) == (
        Purpose.SITEMAP,
        PRIORITY_SITEMAP,
        "a.test",
    )
    store.commit(worker, batch(completion(leases["a.test"], sitemap)), 0.0)
    assert store.counts().fetched == 1, "side requests are no pages"


def test_a_side_request_that_may_succeed_is_retried(store):
    store.offer((), [side_request(A + "sitemap.xml")], 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    store.commit(
        worker, batch(completion(lease, take(store, lease)[0], None, Failed(Cause.TIMEOUT), retry_in_s=1.0)), 0.0
    )
    (again,) = take(store, lease, 1.0)
    assert (again.request.attempt, again.request.url, again.request.purpose) == (1, A + "sitemap.xml", Purpose.SITEMAP)


# budgets


def test_max_pages_is_exact_over_two_workers(make):
    world = make(Budget(max_pages=5))
    stores = [world.open(), world.open()]
    stores[0].offer([candidate(url + str(n)) for url in (A, B) for n in range(10)], (), 0.0)
    workers = [stores[0].join(ME, 0.0), stores[1].join(OTHER, 0.0)]
    leases = [list(get(stores[0], workers[0], 0.0).values())[:1], []]
    stores[0].commit(workers[0], batch(), 0.0)
    both = {lease.host: lease for lease in leases[0]}
    assert both
    mine = leases[0][0]
    first = stores[0].take(mine, 3, NONE, 0.0)[0]
    second = stores[1].take(mine, 64, frozenset((t.priority, t.seq) for t in first), 0.0)[0]
    assert len(first) + len(second) == 5
    assert stores[0].take(mine, 1, frozenset((t.priority, t.seq) for t in (*first, *second)), 0.0)[0] == ()
    assert not stores[0].budget_spent, "taken URLs may still not count"
    skipped = completion(mine, first[0], Reason.ROBOTS, Skipped(Reason.ROBOTS))
    stores[0].commit(workers[0], batch(skipped, *[completion(mine, task) for task in (*first, *second)[1:]]), 0.0)
    assert stores[0].counts().fetched == 4
    (last,) = stores[0].take(mine, 64, NONE, 0.0)[0]
    stores[0].commit(workers[0], batch(completion(mine, last)), 0.0)
    assert stores[0].take(mine, 64, NONE, 0.0)[0] == ()
    assert stores[0].budget_spent
    assert stores[0].counts().fetched == 5


def test_tasks_of_a_dead_worker_return_to_the_budget(make):
    store = make(Budget(max_pages=2)).open()
    store.offer([candidate(A + str(n)) for n in range(5)], (), 0.0)
    gone, heir = store.join(ME, 0.0), store.join(OTHER, 0.0)
    lease = get(store, gone)["a.test"]
    assert len(store.take(lease, 64, NONE, 0.0)[0]) == 2
    store.leave(gone, 1.0)
    assert len(store.take(get(store, heir, 1.0)["a.test"], 64, NONE, 1.0)[0]) == 2


def test_under_a_budget_no_site_is_more_than_a_quantum_ahead(make):
    store = make(Budget(max_pages=100, quantum=3)).open()
    store.offer([candidate(url + str(n)) for url in (A, B) for n in range(10)], (), 0.0)
    worker = store.join(ME, 0.0)
    leases = get(store, worker)
    first = store.take(leases["a.test"], 64, NONE, 0.0)[0]
    assert len(first) == 3
    assert store.take(leases["a.test"], 64, frozenset((t.priority, t.seq) for t in first), 0.0) == ((), 0.2)
    store.commit(worker, batch(*[completion(leases["a.test"], task) for task in first]), 0.0)
    assert store.take(leases["a.test"], 64, NONE, 0.0) == ((), 0.2)
    other = store.take(leases["b.test"], 2, NONE, 0.0)[0]
    store.commit(worker, batch(*[completion(leases["b.test"], task) for task in other]), 0.0)
    assert len(store.take(leases["a.test"], 64, NONE, 0.0)[0]) == 2


@pytest.mark.parametrize("trouble", [{"strikes": 1}, {"wait_s": 2.1}])
def test_a_failing_or_waiting_site_does_not_block_others(make, trouble):
    store = make(Budget(max_pages=100, quantum=3)).open()
    store.offer([candidate(url + str(n)) for url in (A, B) for n in range(10)], (), 0.0)
    worker = store.join(ME, 0.0)
    leases = get(store, worker)
    store.commit(worker, batch(hosts=[state(leases["b.test"], release=False, **trouble)]), 0.0)
    assert len(store.take(leases["a.test"], 64, NONE, 0.0)[0]) == 10


# a pause


def test_a_paused_crawl_leases_no_host_and_stores_open_tasks(make):
    world = make()
    store = world.open()
    store.offer([candidate(A), candidate(A + "1", 1), candidate(B)], (), 0.0)
    worker = store.join(ME, 0.0)
    (a, b) = (host.host_id for host in sorted(store.ready(9, 0.0, 0.0), key=lambda host: host.host))
    (lease,) = store.lease(worker, [a], 0.0)
    (task,) = take(store, lease)
    world.pause(True)
    world.pause(True)
    assert store.is_paused()
    assert (list(store.ready(9, 1000.0, 1.0)), list(store.lease(worker, [b], 1.0)), store.fair_share(1.0)) == (
        [],
        [],
        0,
    )
    assert store.commit(worker, batch(completion(lease, task), hosts=[state(lease)]), 1.0) == frozenset(), (
        "the lease was not lost"
    )
    assert store.counts().fetched == 1
    assert not store.idle(1.0), "work is left, so waiting workers must stay"
    assert list(world.open().ready(9, 1000.0, 1.0)) == [], "a new worker waits too"
    world.pause(False)
    assert not store.is_paused()
    assert store.fair_share(9.0) == 2
    assert {host.host_id for host in store.ready(9, 0.0, 9.0)} == {a, b}
    assert set(get(store, worker, 9.0)) == {"a.test", "b.test"}


def test_a_host_keeps_its_delay_through_a_pause(make):
    world = make()
    store = world.open()
    store.offer([candidate(A), candidate(A + "1", 1)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    store.commit(worker, batch(completion(lease, take(store, lease)[0]), hosts=[state(lease, 10.0)]), 0.0)
    world.pause(True)
    world.pause(False)
    assert list(store.ready(9, 0.0, 9.0)) == []
    assert len(store.ready(9, 0.0, 10.0)) == 1


def test_a_worker_survives_a_pause_longer_than_its_lease(make):
    world = make()
    store = world.open()
    store.offer([candidate(A)], (), 0.0)
    worker = store.join(ME, 0.0)
    world.pause(True)
    for now in range(0, 200, 20):
        assert list(store.lease(worker, [], float(now))) == []
        assert list(store.ready(9, 0.0, float(now))) == []
    world.pause(False)
    store.join(OTHER, 199.0)
    store.offer([candidate(B)], (), 199.0)
    assert store.fair_share(199.0) == 1, "both are counted"
