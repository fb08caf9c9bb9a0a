"""The frontier gives out a page by name, whatever its depth: what orders by promise rest on."""

from __future__ import annotations

import pytest

from contracts.conftest import ME
from contracts.crawl_values import batch, candidate, completion, get, side_request, take
from contracts.crawl_worlds import SqliteWorld
from periplus.model.frontier import PRIORITY_FIRST
from periplus.model.visit import Purpose
from periplus.urls.canonical import url_id

A, B = "http://a.test/", "http://b.test/"


@pytest.fixture
def store(tmp_path):
    world = SqliteWorld(tmp_path, {ME})
    yield world.open()
    assert world.recount()[0] == []
    world.close()


def test_a_page_of_a_deep_depth_is_given_out_by_name_and_done_once(store):
    store.offer([candidate(A, 0), candidate(A + "deep", 7)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    task = store.take_page(lease, url_id(A + "deep"), 0.0)
    assert (task.request.url, task.priority) == (A + "deep", 7)
    store.commit(worker, batch(completion(lease, task)), 0.0)
    assert store.take_page(lease, url_id(A + "deep"), 0.0) is None
    assert store.was_read(url_id(A + "deep")) and not store.was_read(url_id(A)) and not store.was_read(url_id(B))
    assert [one.request.url for one in take(store, lease)] == [A]


def test_no_page_is_given_out_without_its_host(store):
    store.offer([candidate(A, 0), candidate(B, 0)], (), 0.0)
    worker = store.join(ME, 0.0)
    leases = get(store, worker)
    assert store.take_page(leases["a.test"], url_id(B), 0.0) is None
    store.leave(worker, 0.0)
    assert store.take_page(leases["a.test"], url_id(A), 0.0) is None


def test_a_page_that_must_wait_is_not_given_out_before(store):
    store.offer([candidate(A, 0)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    task = store.take_page(lease, url_id(A), 0.0)
    store.commit(worker, batch(completion(lease, task, None, retry_in_s=5.0)), 0.0)
    assert store.take_page(lease, url_id(A), 4.0) is None
    assert store.take_page(lease, url_id(A), 5.5).request.attempt == 1


def test_what_anothers_robots_txt_depends_on_is_urgent(store):
    store.offer([candidate(A, 0)], (), 0.0)
    lease = get(store, store.join(ME, 0.0))["a.test"]
    assert not store.is_urgent(lease.host_id)
    store.offer((), [side_request(A + "robots.txt", Purpose.ROBOTS, PRIORITY_FIRST)], 0.0)
    assert store.is_urgent(lease.host_id)
