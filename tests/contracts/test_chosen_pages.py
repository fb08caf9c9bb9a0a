"""Policies that choose page by page, with every implementation of the store."""

from __future__ import annotations

from contracts.crawl_values import batch, candidate, completion, get, side_request, state, take, urls
from periplus.model.frontier import CHOSEN_NOTE, PRIORITY_CHECK, PRIORITY_FIRST, PRIORITY_SITEMAP
from periplus.model.visit import Cause, Failed, Fetched, Headers, Purpose, Reason, Redirected, Skipped
from periplus.settings import Budget

A, B = "http://a.test/", "http://b.test/"
ME, OTHER = 100, 200
NONE = frozenset()


def one_of(store, worker):
    """A lease of a.test only."""
    (lease,) = store.lease(worker, [host.host_id for host in store.ready(9, 0.0, 0.0) if host.site == "a.test"], 0.0)
    return lease


def pages(*texts, named=None):
    """Pages chosen by a policy; `named` collects the requested ones."""
    for text in texts:
        if named is not None:
            named.append(text)
        yield text


def test_the_first_waiting_page_is_taken_at_any_depth(store):
    store.offer([candidate(A + str(depth), depth) for depth in range(4)], (), 0.0)
    lease = get(store, store.join(ME, 0.0))["a.test"]
    named = []
    tasks, later_s = store.take(lease, 9, NONE, 0.0, pages(A + "nowhere", A + "3", A + "2", named=named))
    assert (urls(tasks), later_s, named) == ([A + "3"], None, [A + "nowhere", A + "3"])
    assert (tasks[0].priority, tasks[0].request.depth) == (3, 3)
    in_hand = frozenset((task.priority, task.seq) for task in tasks)
    assert urls(store.take(lease, 9, in_hand, 0.0, pages(A + "3", A + "2"))[0]) == [A + "2"], "the other is taken"
    assert urls(store.take(lease, 9, in_hand, 0.0, pages())[0]) == [A + "0"], "by priority where the policy knows none"


def test_done_and_delayed_pages_are_not_taken(store):
    store.offer([candidate(A + "1", 1), candidate(A + "2", 1), candidate(A + "3", 1)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    done, later, _ = take(store, lease)
    failed = completion(lease, later, None, Failed(Cause.TIMEOUT), retry_in_s=9.0)
    store.commit(worker, batch(completion(lease, done), failed), 0.0)
    named = pages(done.request.url, later.request.url, A + "3")
    assert urls(store.take(lease, 9, NONE, 0.0, named)[0]) == [A + "3"]


def test_side_requests_precede_pages_of_a_policy(store):
    robots = "http://a.test/robots.txt"
    store.offer([candidate(A), candidate(B)], [side_request(robots, Purpose.ROBOTS, PRIORITY_FIRST)], 0.0)
    leases = get(store, store.join(ME, 0.0))
    assert store.urgent([lease.host_id for lease in leases.values()]) == {leases["a.test"].host_id}
    named = []
    assert urls(store.take(leases["a.test"], 9, NONE, 0.0, pages(A, named=named))[0]) == [robots]
    assert not named


def test_the_budget_holds_for_chosen_pages_of_all_workers(make):
    world = make(Budget(max_pages=2, quantum=1_000_000))
    first, second = world.open(), world.open()
    first.offer([candidate(A + str(number)) for number in range(3)] + [candidate(B)], (), 0.0)
    me, other = first.join(ME, 0.0), second.join(OTHER, 0.0)
    mine = one_of(first, me)
    yours = get(second, other)["b.test"]
    (task,), _ = first.take(mine, 1, NONE, 0.0, pages(A + "2"))
    (page,), _ = second.take(yours, 1, NONE, 0.0, pages(B))
    assert first.take(mine, 1, frozenset({(task.priority, task.seq)}), 0.0, pages(A + "1"))[0] == ()
    first.commit(me, batch(completion(mine, task)), 0.0)
    second.commit(other, batch(completion(yours, page)), 0.0)
    assert first.take(mine, 1, NONE, 0.0, pages(A + "1"))[0] == () and first.budget_spent


def test_side_requests_need_no_budget(make):
    """A page of b.test may depend on it, and be the last of the budget."""
    robots = "http://a.test/robots.txt"
    store = make(Budget(max_pages=1)).open()
    store.offer([candidate(A), candidate(B)], [side_request(robots, Purpose.ROBOTS, PRIORITY_FIRST)], 0.0)
    leases = get(store, store.join(ME, 0.0))
    assert urls(store.take(leases["b.test"], 1, NONE, 0.0, pages(B))[0]) == [B]
    assert urls(store.take(leases["a.test"], 1, NONE, 0.0, pages(A))[0]) == [robots]


def test_pages_chosen_ahead_are_stored_with_the_batch_until_the_next_batch(store):
    worker = store.join(ME, 0.0)
    for chosen, noted in (((A + "1", B), f"{A}1\n{B}"), (None, f"{A}1\n{B}"), ((), "")):
        store.commit(worker, batch(chosen=chosen), 0.0)
        assert store.note(CHOSEN_NOTE) == noted


def test_a_visit_records_whether_a_retry_may_succeed(make):
    store = make().open()
    outcomes = {
        "1": Failed(Cause.TIMEOUT),
        "2": Fetched(503, Headers(), b""),
        "3": Fetched(429, Headers(), b""),
        "4": Fetched(404, Headers(), b""),
        "5": Redirected(301, Headers(), A, ""),
    }
    store.offer([candidate(A + name) for name in outcomes], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    tasks = take(store, lease)
    done = [completion(lease, task, Reason.UNREACHABLE, outcomes[task.request.url[-1]]) for task in tasks]
    store.commit(worker, batch(*done), 0.0)
    assert {visit.url[-1]: visit.may_pass for visit in store.visits(0)} == dict(
        zip("12345", (True, True, True, False, False), strict=True)
    )


def test_every_worker_gets_all_visits_in_order(make):
    world = make()
    first, second = world.open(), world.open()
    first.offer([candidate(A + "1"), candidate(A + "2"), candidate(A + "3"), candidate(B)], (), 0.0)
    me, other = first.join(ME, 0.0), second.join(OTHER, 0.0)
    a, b = one_of(first, me), get(second, other)["b.test"]
    one, two, three = take(first, a)
    moved = completion(a, two, Reason.REDIRECT, Redirected(301, Headers(), A + "4", ""))
    first.commit(me, batch(completion(a, one), moved), 0.0)
    told = list(second.visits(0))
    assert [(visit.url, visit.asked, visit.read, visit.redirect) for visit in told] == [
        (A + "1", True, True, ""), (A + "2", True, False, A + "4"),
    ]  # fmt: skip
    skipped = completion(a, three, Reason.ROBOTS, Skipped(Reason.ROBOTS))
    first.commit(me, batch(skipped), 0.0)
    second.commit(other, batch(completion(b, take(second, b)[0])), 0.0)
    rest = list(second.visits(told[-1].id))
    assert [(visit.url, visit.asked) for visit in rest] == [(A + "3", False), (B, True)]
    assert [visit.url for visit in first.visits(0)] == [A + "1", A + "2", A + "3", B]
    assert list(first.visits(rest[-1].id)) == []


def test_a_check_does_not_change_pages(make):
    world = make()
    world.open().offer([candidate(A)], [side_request(A + "map.xml", Purpose.SITEMAP, PRIORITY_SITEMAP)], 0.0)
    world.begin_run("check")
    store = world.open()
    assert store.idle(1.0) and list(store.ready(9, 0.0, 1.0)) == [], "pages are the crawl's business"
    targets = [(B + "x", Purpose.HEAD), (A + "y", Purpose.CHECK)]
    store.offer((), [side_request(url, purpose, PRIORITY_CHECK) for url, purpose in targets], 1.0)
    world.pause(True)
    assert (list(store.ready(9, 0.0, 1.0)), store.fair_share(1.0), store.idle(1.0)) == ([], 0, False)
    world.pause(False)
    worker = store.join(ME, 1.0)
    leases = get(store, worker, 1.0)
    assert {host: urls(take(store, lease, 1.0)) for host, lease in leases.items()} == {
        "a.test": [A + "y"],
        "b.test": [B + "x"],
    }
    for lease in leases.values():
        (task,) = take(store, lease, 1.0)
        store.commit(worker, batch(completion(lease, task, Reason.OK), hosts=[state(lease)]), 1.0)
    assert store.idle(1.0) and store.counts().waiting == 1
    world.begin_run()
