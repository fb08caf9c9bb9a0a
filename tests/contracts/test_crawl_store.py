"""The contract of `model.ports.CrawlStore`, with every implementation.

Sitemaps and budgets have their own files.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.crawl_values import (
    batch,
    candidate,
    completion,
    get,
    given_up,
    side_request,
    state,
    take,
    urls,
    visit_of,
)
from contracts.crawl_worlds import KEEPING
from periplus.model.frontier import Completion, PatternRecord, ShownLines, StoredRobots, TrapMemory
from periplus.model.visit import Cause, Failed, Headers, Reason, Redirected, Skipped
from periplus.urls.canonical import url_id

A, B, W = "http://a.test/", "http://b.test/", "http://www.a.test/"
ME, OTHER = 100, 200  # process ids
NONE = frozenset()


# offers


def test_a_url_offered_several_times_is_queued_once(store):
    assert store.offer([candidate(A), candidate(A)], (), 0.0) == 1
    assert store.offer([candidate(A, 3), candidate(A, None, in_sitemap=True)], (), 1.0) == 0
    worker = store.join(ME, 0.0)
    assert urls(take(store, get(store, worker)["a.test"])) == [A]
    assert store.counts().known == store.counts().waiting == 1


def test_spellings_of_a_url_are_queued_once_with_the_first_one(store):
    first, second = A + "%7Eu", "http://a.test./~u"
    assert store.offer([candidate(first), candidate(second)], (), 0.0) == 1
    assert store.offer([candidate(second)], (), 1.0) == 0
    assert urls(take(store, get(store, store.join(ME, 0.0))["a.test"])) == [first]
    assert store.counts().known == 1


def test_a_redirect_to_another_spelling_changes_the_requested_spelling(store):
    first, second = A + "%7Eu", A + "~u"
    store.offer([candidate(first)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    (task,) = take(store, lease)
    again = replace(task, request=replace(task.request, url=second, hops=1))
    redirect = Redirected(301, Headers(), second, "")
    store.commit(worker, batch(Completion(lease, again, visit_of(task, redirect), None)), 0.0)
    (task,) = take(store, lease)
    assert (task.request.url, task.request.hops, task.request.attempt) == (second, 1, 0)
    store.commit(worker, batch(completion(lease, task)), 0.0)
    assert store.counts().by_reason == {"ok": 1}


def test_urls_are_taken_by_depth_then_by_insertion(store):
    below = [A + str(number) for number in (5, 2, 6, 1, 4, 3)]
    store.offer([*(candidate(url, 1) for url in below), candidate(A, 0)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    first = take(store, lease)
    assert urls(first) == [A]
    assert store.take(lease, 9, frozenset((t.priority, t.seq) for t in first), 0.0) == ((), None), (
        "the last URL of the depth is taken"
    )
    store.commit(worker, batch(completion(lease, first[0])), 0.0)
    assert urls(take(store, lease)) == below


@pytest.mark.parametrize("reason", [Reason.DEPTH, Reason.NOFOLLOW, Reason.RESOURCE])
def test_a_better_link_queues_a_known_url(store, reason):
    assert store.offer([candidate(A, 9, reason)], (), 0.0) == 0
    assert store.idle(0.0)
    assert store.offer([candidate(A, 2)], (), 1.0) == 1
    assert store.counts().by_reason == {"waiting": 1}
    (task,) = take(store, get(store, store.join(ME, 1.0), 1.0)["a.test"], 1.0)
    assert (task.priority, task.request.depth) == (2, 2)


@pytest.mark.parametrize(
    "reason", [Reason.SCOPE, Reason.ROBOTS, Reason.HOST_DOWN, Reason.ROBOTS_UNREACHABLE, Reason.ALIVE]
)
def test_dropped_urls_are_queued_again_only_if_a_new_run_reopens_them(store, reason):
    store.offer([candidate(A, 1, reason)], (), 0.0)
    assert store.offer([candidate(A, 0)], (), 1.0) == 0
    assert store.offer([candidate(A, 0)], (), 2.0, reopen=True) == 1
    assert store.counts().waiting == 1


def test_a_done_url_never_waits_again(store):
    store.offer([candidate(A)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    store.commit(worker, batch(completion(lease, take(store, lease)[0], Reason.NOT_FOUND)), 0.0)
    assert store.offer([candidate(A, 0)], (), 2.0, reopen=True) == 0
    assert store.idle(0.0)


def test_clicks_are_counted_along_followed_links(store):
    """A nofollow link does not determine the depth of a URL."""
    store.offer([candidate(A, 2, Reason.NOFOLLOW)], (), 0.0)
    store.offer([candidate(A, 4)], (), 0.0)
    store.offer([candidate(A, 1, Reason.NOFOLLOW)], (), 0.0)
    (task,) = take(store, get(store, store.join(ME, 0.0))["a.test"])
    assert (task.priority, task.request.depth) == (4, 4)


# leases


def test_leases_are_exclusive(store):
    store.offer([candidate(A), candidate(B)], (), 0.0)
    mine, other = store.join(ME, 0.0), store.join(OTHER, 0.0)
    ids = [host.host_id for host in store.ready(1, 0.0, 0.0)]
    assert len(store.lease(mine, ids, 0.0)) == 1
    assert store.lease(other, ids, 0.0) == []
    assert [host.host_id for host in store.ready(9, 0.0, 0.0)] != ids
    assert store.fair_share(0.0) == 1


def test_a_stale_completion_is_dropped_and_reported(store):
    store.offer([candidate(A)], (), 0.0)
    slow, quick = store.join(ME, 0.0), store.join(OTHER, 0.0)
    old = get(store, slow)["a.test"]
    tasks = take(store, old)
    later = KEEPING.lease_s + 1
    store.join(OTHER, later)
    new = get(store, quick, later)["a.test"]
    assert new.epoch > old.epoch
    late = batch(completion(old, tasks[0], candidates=(candidate(B),)), hosts=[state(old)])
    assert store.commit(slow, late, later) == {old}
    assert store.counts().fetched == 0
    assert store.counts().known == 1
    assert urls(take(store, new, later)) == [A], "the new holder still has it"
    assert store.commit(quick, batch(completion(new, take(store, new, later)[0])), later) == NONE


def test_a_lost_lease_takes_nothing(store):
    store.offer([candidate(A)], (), 0.0)
    slow, quick = store.join(ME, 0.0), store.join(OTHER, 0.0)
    old = get(store, slow)["a.test"]
    get(store, quick, KEEPING.lease_s + 1)
    assert store.take(old, 9, NONE, 100.0) == ((), None)


def test_a_lease_of_before_a_release_is_lost(store):
    store.offer([candidate(A)], (), 0.0)
    worker = store.join(ME, 0.0)
    old = get(store, worker)["a.test"]
    task = take(store, old)[0]
    store.commit(worker, batch(hosts=[state(old)]), 0.0)
    assert store.commit(worker, batch(completion(old, task)), 0.0) == {old}
    again = get(store, worker)["a.test"]
    assert store.commit(worker, batch(completion(old, task)), 0.0) == {old}
    assert store.commit(worker, batch(completion(again, task)), 0.0) == NONE


def test_after_a_release_the_host_waits_for_the_given_delay(store):
    store.offer([candidate(A)], (), 0.0)
    worker = store.join(ME, 0.0)
    store.commit(
        worker, batch(hosts=[state(get(store, worker)["a.test"], 7.0, delay_s=2.0, rate=0.5, strikes=1)]), 10.0
    )
    assert store.ready(9, 6.9, 10.0) == []
    (ready,) = store.ready(9, 7.0, 10.0)
    assert (ready.wait_s, ready.pending, ready.site_fetched, ready.site) == (7.0, 1, 0, "a.test")
    lease = get(store, worker, 12.0)["a.test"]
    assert (lease.wait_s, lease.delay_s, lease.rate, lease.strikes, lease.answered) == (5.0, 2.0, 0.5, 1, True)


def test_a_renewed_lease_does_not_expire(store):
    store.offer([candidate(A)], (), 0.0)
    mine, other = store.join(ME, 0.0), store.join(OTHER, 0.0)
    lease = get(store, mine)["a.test"]
    for now in (50.0, 100.0, 150.0):
        assert store.commit(mine, batch(hosts=[state(lease, release=False)]), now) == NONE
        assert get(store, other, now) == {}


@pytest.mark.parametrize("end", ["dies", "leaves", "falls silent"])
def test_a_worker_that_ends_loses_its_hosts_and_their_delay_is_kept(make, end):
    """Its last request may have just started.

    Other workers may have no reason to lease, so `ready` alone frees the hosts.
    """
    world = make()
    store = world.open()
    store.offer([candidate(A)], (), 0.0)
    gone, heir = store.join(ME, 0.0), store.join(OTHER, 0.0)
    lease = get(store, gone)["a.test"]
    store.commit(gone, batch(hosts=[state(lease, 0.0, delay_s=3.0, rate=0.5, release=False)]), 5.0)
    assert store.ready(9, 100.0, 20.0) == []
    now = 20.0
    if end == "dies":
        world.living.discard(ME)
    elif end == "leaves":
        store.leave(gone, now)
    else:
        now = 5.0 + KEEPING.lease_s + 0.1
        store.commit(heir, batch(), now - 1)
    (ready,) = store.ready(9, 100.0, now)
    assert ready.wait_s == pytest.approx(6.0)
    assert get(store, heir, now)["a.test"].wait_s == pytest.approx(6.0)


def test_an_expired_worker_can_return_and_expire_again(store):
    store.offer([candidate(A)], (), 0.0)
    sleeper, heir = store.join(ME, 0.0), store.join(OTHER, 0.0)
    assert store.ready(9, 0.0, 100.0), "both leases expire here"
    assert "a.test" in get(store, sleeper, 100.0)
    assert get(store, heir, 100.0 + KEEPING.lease_s) == {}
    assert "a.test" in get(store, heir, 101.0 + KEEPING.lease_s)


def test_a_returning_worker_without_free_hosts_counts_for_fair_share(store):
    """Otherwise the worker that took its hosts would keep them all."""
    store.offer([candidate(A), candidate(B)], (), 0.0)
    sleeper = store.join(ME, 0.0)
    heir = store.join(OTHER, 90.0)
    assert len(get(store, heir, 90.0)) == 2
    assert store.fair_share(91.0) == 2
    assert store.lease(sleeper, [], 91.0) in ([], ())
    assert store.fair_share(91.0) == 1


def test_fair_share_divides_hosts_among_living_workers(store):
    assert store.fair_share(0.0) == 1
    store.offer([candidate(f"http://h{n}.test/") for n in range(7)], (), 0.0)
    store.join(ME, 0.0)
    assert store.fair_share(0.0) == 7
    store.join(OTHER, 0.0)
    assert store.fair_share(0.0) == 4


def test_a_dead_worker_has_no_share(make):
    """The other worker has its share and does not ask for more unless its share grows."""
    world = make()
    store = world.open()
    store.offer([candidate(A), candidate(B)], (), 0.0)
    heir, gone = store.join(ME, 0.0), store.join(OTHER, 0.0)
    first, second = (host.host_id for host in store.ready(9, 0.0, 0.0))
    assert len(store.lease(heir, [first], 0.0)) == len(store.lease(gone, [second], 0.0)) == 1
    assert store.fair_share(1.0) == 1
    world.living.discard(OTHER)
    assert store.fair_share(1.0) == 2
    assert [host.host_id for host in store.ready(9, 5.0, 1.0)] == [second]


def test_a_silent_worker_that_asks_for_its_share_keeps_its_hosts(store):
    """The silent worker may be the caller itself, after a clock change or a stop, with its hosts still free."""
    store.offer([candidate(A)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    late = KEEPING.lease_s + 60.0
    store.fair_share(late)
    assert urls(take(store, lease, late)) == [A]


# the order within a site


def test_no_page_of_the_next_depth_is_taken_while_a_page_of_this_depth_waits(store):
    store.offer([candidate(A, 0), candidate(W, 1), candidate(B, 1)], (), 0.0)
    worker = store.join(ME, 0.0)
    leases = get(store, worker)
    first = take(store, leases["a.test"])
    assert store.take(leases["www.a.test"], 9, NONE, 0.0) == ((), 0.2)
    assert urls(take(store, leases["b.test"])) == [B], "another site"
    store.commit(
        worker, batch(completion(leases["a.test"], first[0], None, Failed(Cause.TIMEOUT), retry_in_s=5.0)), 0.0
    )
    assert store.take(leases["www.a.test"], 9, NONE, 0.0) == ((), 0.2), "a retry holds its depth open"
    (again,) = take(store, leases["a.test"], 5.0)
    store.commit(worker, batch(completion(leases["a.test"], again)), 5.0)
    assert urls(take(store, leases["www.a.test"], 5.0)) == [W]


def test_a_retry_waits_for_its_time(store):
    store.offer([candidate(A, 0, hops=2)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    (task,) = take(store, lease)
    store.commit(worker, batch(completion(lease, task, None, Failed(Cause.TIMEOUT), retry_in_s=5.0)), 10.0)
    assert store.take(lease, 9, NONE, 11.0) == ((), pytest.approx(4.0))
    assert not store.idle(11.0)
    (again,) = take(store, lease, 15.0)
    assert (again.request.attempt, again.request.hops, again.priority) == (1, 2, 0)
    assert store.counts().fetched == 1


def test_a_returned_task_does_not_count_as_an_attempt(store):
    store.offer([candidate(A)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    store.commit(worker, batch(completion(lease, take(store, lease)[0], None, Skipped(Reason.ROBOTS))), 0.0)
    assert take(store, lease)[0].request.attempt == 0
    assert store.counts().fetched == 0


def test_giving_up_a_host_drops_its_waiting_urls(store):
    store.offer([candidate(A), candidate(A + "1", 1), candidate(B)], [side_request(A + "sitemap.xml")], 0.0)
    worker = store.join(ME, 0.0)
    leases = get(store, worker)
    store.commit(worker, batch(hosts=[state(leases["a.test"], given_up=given_up(A))]), 0.0)
    assert store.counts().by_reason == {"waiting": 1, "host-down": 2}
    assert "a.test" not in get(store, worker)
    assert store.offer([candidate(A + "1", 1)], (), 0.0) == 0
    assert store.offer([candidate(A + "1", 1)], (), 0.0, reopen=True) == 1


def test_giving_up_an_origin_keeps_waiting_urls_of_other_origins(store):
    plain, secure = "http://a.test:8000/", "https://a.test:8000/"
    store.offer(
        [candidate(plain), candidate(secure), candidate(secure + "1", 1)], [side_request(secure + "sitemap.xml")], 0.0
    )
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    store.commit(worker, batch(hosts=[state(lease, given_up=given_up(secure, Reason.TLS), release=False)]), 0.0)
    assert store.counts().by_reason == {"waiting": 1, "tls": 2}
    assert urls(take(store, lease)) == [plain]
    assert store.counts().waiting == 1


@pytest.mark.parametrize("reason", [Reason.OK, None])
def test_an_answer_of_a_dropped_host_is_kept_without_a_retry(store, reason):
    store.offer([candidate(A)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    (task,) = take(store, lease)
    store.commit(worker, batch(hosts=[state(lease, given_up=given_up(A), release=False)]), 0.0)
    store.commit(worker, batch(completion(lease, task, reason)), 1.0)
    assert store.counts().by_reason == ({"ok": 1} if reason else {"host-down": 1})
    assert store.idle(1.0)


# what is remembered


def test_robots_and_trap_data_are_restored(store):
    answer = StoredRobots("http://a.test:80", 200, "", b"User-agent: *\n\xff", 1.0, 2.0)
    store.offer([candidate(A), candidate(B)], (), 0.0)
    worker = store.join(ME, 0.0)
    leases = get(store, worker)
    records = (
        PatternRecord("/b/*", 3, 1, 2, 2, 1, 0, 1, "ab", "", 0),
        PatternRecord("/a/*", 9, 0, 5, 5, 0, 0, 0, "", "/b/*", 7),
    )
    first = TrapMemory(records, ShownLines(0, b"\1\0\0\0\2\0\0\0"), ((url_id(A), 3), (12345, 1)))
    store.commit(worker, batch(hosts=[state(leases["a.test"], release=False, traps=first)], robots=[answer]), 0.0)
    newer = PatternRecord("/a/*", 10, 0, 6, 0, 0, 0, 0, "", "", 8)
    second = TrapMemory((newer,), ShownLines(2, b"\3\0\0\0"), ((url_id(A), 1),))
    store.commit(worker, batch(hosts=[state(leases["a.test"], release=False, traps=second)]), 0.0)
    assert store.robots("http://a.test:80") == answer
    assert store.robots("http://b.test:80") is None
    memory = store.trap_memory(leases["a.test"])
    assert memory.patterns == (newer, records[0])
    assert memory.lines == ShownLines(0, b"\1\0\0\0\2\0\0\0\3\0\0\0")
    assert memory.doubts == ((url_id(A), 1),)  # nothing is kept for URLs that are not stored
    assert store.trap_memory(leases["b.test"]).patterns == ()


def test_a_doubtful_url_keeps_its_doubt_until_there_is_evidence(store):
    store.offer([candidate(A), candidate(A + "1", 1)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    doubts = TrapMemory(doubts=((url_id(A + "1"), 3),))
    store.commit(
        worker, batch(completion(lease, take(store, lease)[0]), hosts=[state(lease, release=False, traps=doubts)]), 0.0
    )
    (task,) = take(store, lease)
    assert task.doubt == 3
    refused = completion(lease, task, Reason.TRAP, Skipped(Reason.TRAP, "/*: 40 of 40"))
    store.commit(worker, batch(refused), 0.0)
    store.offer([candidate(A + "1", 1, vouched=False)], (), 0.0)
    assert not take(store, lease)
    assert store.stored_urls(lease, [url_id(A), 12345]) == {url_id(A)}
    store.offer([candidate(A + "1", 1)], (), 0.0)
    (task,) = take(store, lease)
    assert (task.request.url, task.doubt) == (A + "1", 0)


def test_obsolete_line_keys_are_deleted(store):
    store.offer([candidate(A)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    for first, needed in ((0, 0), (2, 2), (4, 3)):
        changes = TrapMemory(lines=ShownLines(first, bytes(8), needed))
        store.commit(worker, batch(hosts=[state(lease, release=False, traps=changes)]), 0.0)
    assert store.trap_memory(lease).lines == ShownLines(2, bytes(16))


def test_a_reopened_store_continues(make):
    world = make()
    store = world.open()
    store.offer([candidate(A), candidate(A + "1", 1)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    store.commit(worker, batch(completion(lease, take(store, lease)[0]), hosts=[state(lease)]), 0.0)
    store.leave(worker, 0.0)
    again = world.open()
    assert again.counts() == store.counts()
    assert urls(take(again, get(again, again.join(OTHER, 9.0), 9.0)["a.test"])) == [A + "1"]
