"""Results of checks in both databases: visits of link targets, and states of dead targets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.crawl_values import PAGE, batch, candidate, completion, get, given_up, side_request, state, take
from contracts.crawl_worlds import PostgresWorld, SqliteWorld
from periplus.model.visit import STATE_OF, Headers, Purpose, Reason
from periplus.urls.canonical import url_id

A, B = "http://a.test/", "http://b.test/"
ME = 100  # process id


@pytest.fixture(params=[SqliteWorld, PostgresWorld], ids=["sqlite", "postgres"])
def world(request):
    made = request.param(request.getfixturevalue("address" if request.param is PostgresWorld else "tmp_path"), {ME})
    yield made
    wrong, tally, true, orphans = made.recount()
    made.close()
    assert (wrong, orphans) == ([], [])
    assert tally == true


def test_every_reason_has_its_state(world):
    assert dict(world.ask("SELECT name, state FROM reason")) == STATE_OF


def test_figures_of_commits_are_summed_for_each_worker(world):
    store = world.open()
    worker = store.join(ME, 0.0)
    for pages, commit_s in ((0, 0.0), (3, 0.5), (0, 0.0), (2, 0.25)):  # zero: a batch without a commit before it
        store.commit(worker, batch(pages=pages, commit_s=commit_s), 1.0)
    assert world.ask("SELECT commits, pages, commit_s FROM worker") == [(2, 5, 0.75)]


def test_answers_over_http2_are_counted(world):
    store = world.open()
    store.offer([candidate(A), candidate(A + "b")], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    for task, line in zip(take(store, lease), ("HTTP/2 200", "HTTP/1.1 200 OK"), strict=True):
        page = replace(PAGE, headers=Headers(PAGE.headers.fields, line))
        store.commit(worker, batch(completion(lease, task, outcome=page)), 0.0)
    assert world.ask("SELECT value FROM run_count WHERE name = 'http2'") == [(1,)]


def test_a_check_of_a_dropped_origin_stores_a_visit_with_the_reason(world):
    """A checked link target has no reason; a sitemap needs none."""
    store = world.open()
    store.offer(
        [candidate(A)],
        [side_request(A + "x", Purpose.HEAD), side_request(A + "y", Purpose.CHECK), side_request(A + "sitemap.xml")],
        0.0,
    )
    worker = store.join(ME, 0.0)
    store.commit(worker, batch(hosts=[state(get(store, worker)["a.test"], given_up=given_up(A))]), 0.0)
    why = "host-down: connection-failed"
    assert sorted(world.ask("SELECT text, purpose, outcome, detail FROM visit")) == [
        (A + "x", "head", "skipped", why),
        (A + "y", "check", "skipped", why),
    ]


def test_dead_targets_are_invalid_between_runs_and_keep_their_state_within_a_run(world):
    """A later request by the crawl sets its state for good."""
    store = world.open()
    store.offer([candidate(A, reason=Reason.SCOPE), candidate(B, reason=Reason.SCOPE)], (), 0.0)
    world.put_verdicts([(A, "not-found", "it answers 404", 404), (B, "server-error", "it answers 500", 500)])

    def states():
        return dict(world.ask("SELECT text, reason FROM url"))

    world.end_run()
    assert states() == {A: "not-found", B: "server-error"}
    world.begin_run()
    assert states() == {A: "scope", B: "scope"}
    assert world.open().offer([candidate(A)], (), 0.0, reopen=True) == 1, "a run of a wider scope asks for it"
    world.end_run()
    assert states() == {A: "waiting", B: "server-error"}
    before = {(url_id(A), world.run_id, "not-found"), (url_id(B), world.run_id, "server-error")}
    assert set(world.ask("SELECT url_id, run_id, reason FROM url_history")) == before
