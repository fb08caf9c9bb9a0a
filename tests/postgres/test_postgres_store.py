"""The PostgreSQL crawl store beyond the contract: lost answers, the inbox, the database's clock, shards."""

from __future__ import annotations

import time

import pytest

from contracts.crawl_values import batch, candidate, completion, get, side_request, state, take, urls
from contracts.crawl_worlds import KEEPING, NO_LIMIT, PostgresWorld
from periplus.errors import StoreError
from periplus.model.visit import Reason
from periplus.store import crawl_reads
from periplus.store.statements import shard_of
from periplus_postgres.connection import Connection, connect
from periplus_postgres.frontier import PostgresCrawlStore, Surroundings
from periplus_postgres.schema import REFERENCE, check, create

A, B = "http://a.test/", "http://b.test/"
ME, OTHER = 100, 200


@pytest.fixture
def world(address):
    made = PostgresWorld(address, {ME, OTHER})
    yield made
    wrong, tally, true, orphans = made.recount()
    made.close()
    assert (wrong, orphans) == ([], [])
    assert tally == true


@pytest.fixture
def ask(address):
    connection = connect(address)
    yield lambda query: connection.execute(query).fetchall()
    connection.close()


def twice(store, call):
    """Simulates lost answers: each transaction of the call is committed and then repeated."""
    once = store.session.run
    store.session.run = lambda action: (once(action), once(action))[1]
    try:
        return call()
    finally:
        del store.session.run


def test_a_batch_whose_answer_was_lost_is_stored_once(world, ask):
    store = world.open()
    store.offer([candidate(A), candidate(A + "1")], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    tasks = take(store, lease)
    done = batch(
        *[completion(lease, task, candidates=(candidate(B),)) for task in tasks], hosts=[state(lease)], in_hand=0,
        pages=3, commit_s=0.25,
    )  # fmt: skip
    assert twice(store, lambda: store.commit(worker, done, 1.0)) == frozenset()
    assert store.counts().fetched == 2
    assert ask("SELECT count(*) FROM visit") == [(2,)]
    assert ask("SELECT commits, pages, commit_s FROM worker") == [(1, 3, 0.25)]
    assert store.counts().by_reason == {"ok": 2, "waiting": 1}


def test_hosts_are_leased_although_the_answer_was_lost(world):
    store = world.open()
    store.offer([candidate(A)], (), 0.0)
    worker = store.join(ME, 0.0)
    (lease,) = twice(store, lambda: store.lease(worker, [host.host_id for host in store.ready(9, 0.0, 0.0)], 0.0))
    assert urls(take(store, lease)) == [A]


def test_offers_whose_answer_was_lost_enter_once(world):
    store = world.open()
    twice(store, lambda: store.offer([candidate(A)], [side_request(B + "sitemap.xml")], 0.0))
    assert store.counts().by_reason == {"waiting": 1}
    leases = get(store, store.join(ME, 0.0))
    assert [len(take(store, leases[host])) for host in ("a.test", "b.test")] == [1, 1]


def test_links_to_hosts_of_others_wait_in_the_inbox_until_they_are_merged(world, ask):
    """The completing transaction must not touch a host leased by another worker."""
    first, second = world.open(), world.open()
    first.offer([candidate(A), candidate(B)], (), 0.0)
    mine, other = first.join(ME, 0.0), second.join(OTHER, 0.0)
    ids = {host.host: host.host_id for host in first.ready(9, 0.0, 0.0)}
    (a,) = first.lease(mine, [ids["a.test:80"]], 0.0)
    (b,) = second.lease(other, [ids["b.test:80"]], 0.0)
    first._merge_s, first._merged_at = 1e9, time.monotonic()  # not now
    first.commit(
        mine, batch(completion(a, take(first, a)[0], candidates=(candidate(B + "1", 1), candidate(A + "1", 1)))), 1.0
    )
    assert ask("SELECT host, text FROM inbox") == [("b.test:80", B + "1")]
    assert not second.idle(1.0)
    assert first.counts().by_reason == {"ok": 1, "waiting": 2}, "what is in the inbox is not known yet"
    second.commit(other, batch(completion(b, take(second, b)[0], candidates=(candidate(A + "2", 1),))), 1.0)
    assert ask("SELECT count(*) FROM inbox") == [(0,)]
    assert urls(take(second, b)) == [B + "1"]
    assert urls(take(first, a)) == [A + "1", A + "2"]


def test_a_shard_is_merged_by_one_worker_at_a_time(world, address):
    store = world.open()
    store.offer([candidate(A)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    from periplus_postgres import ledger, schema

    with connect(address) as rival, rival.transaction():
        number = ledger.lock_number(address.collection, shard_of("b.test"))
        rival.execute("SELECT pg_advisory_xact_lock(%s, %s)", (schema.LOCK_MERGE, number))
        store.commit(
            worker,
            batch(completion(lease, take(store, lease)[0], candidates=(candidate(B), candidate("http://c.test/")))),
            1.0,
        )
        assert store.counts().by_reason == {"ok": 1, "waiting": 1}
    store.ready(9, 0.0, 1.0)
    assert store.counts().by_reason == {"ok": 1, "waiting": 2}


def test_the_clock_of_the_database_decides(address):
    """A worker with a clock that is years off takes no leased host, and keeps its own."""
    world = PostgresWorld(address, {ME, OTHER})
    stores = [
        PostgresCrawlStore(address, world.run_id, NO_LIMIT, KEEPING, Surroundings(lambda pid: True, merge_s=0.0))
        for _ in range(2)
    ]
    try:
        stores[0].offer([candidate(A)], (), 0.0)
        mine, other = stores[0].join(ME, 1e9), stores[1].join(OTHER, 5e9)
        lease = get(stores[0], mine, 0.0)["a.test"]
        assert get(stores[1], other, 9e9) == {}
        assert stores[0].commit(mine, batch(hosts=[state(lease, 7.0)]), -1e9) == frozenset()
        assert stores[1].ready(9, 6.0, 9e9) == []
        (ready,) = stores[1].ready(9, 60.0, 0.0)
        assert 0.0 < ready.wait_s <= 7.0
    finally:
        for store in stores:
            store.close()
        world.close()


def test_every_key_that_must_be_unique_leads_with_the_shard(address, ask):
    """So that tables can be distributed by shard. Small reference tables are replicated."""
    keys = ask(
        "SELECT c.relname, (SELECT attname FROM pg_attribute WHERE attrelid = c.oid AND attnum = i.indkey[0])"
        " FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE i.indisunique"
        " AND c.relnamespace = current_schema()::regnamespace"
    )
    assert {table for table, first in keys if first != "shard"} <= REFERENCE | {"version"}
    assert len([table for table, first in keys if first == "shard"]) > 20


def test_taking_and_completing_name_the_shard_in_each_statement(world, monkeypatch):
    asked: list[str] = []
    true = Connection.__origin__.execute

    def noted(self, query, *args, **more):
        asked.append(query.decode() if isinstance(query, bytes) else str(query))
        return true(self, query, *args, **more)

    store = world.open()
    store.offer([candidate(A), candidate(A + "1", 1)], (), 0.0)
    worker = store.join(ME, 0.0)
    lease = get(store, worker)["a.test"]
    monkeypatch.setattr(Connection.__origin__, "execute", noted)
    tasks = take(store, lease)
    store.commit(
        worker, batch(completion(lease, tasks[0], candidates=(candidate(A + "2", 1),)), hosts=[state(lease)]), 1.0
    )
    monkeypatch.undo()
    spread = ("host", "url", "queue", "page", "link", "body", "visit", "robots", "family")
    named = [query for query in asked if any(f" {table} " in f" {query} " for table in spread)]
    assert len(named) >= 5
    own = "SELECT id, shard, key, epoch, site_id FROM host WHERE lease_by"  # leased hosts can be in any shard
    assert [query for query in named if "shard" not in query and not query.startswith(own)] == []


def test_sums_of_several_workers_are_added(world):
    first, second = world.open(), world.open()
    first.offer([candidate(A), candidate(B)], (), 0.0)
    for store, pid in ((first, ME), (second, OTHER)):
        worker = store.join(pid, 0.0)
        ready = store.ready(1, 0.0, 0.0)
        (lease,) = store.lease(worker, [ready[0].host_id], 0.0)
        store.commit(worker, batch(completion(lease, take(store, lease)[0])), 0.0)
    assert first.counts() == second.counts()
    assert first.counts().by_reason == {Reason.OK: 2}
    assert first.counts().wire_bytes == 200


def test_errors_that_need_an_administrator_are_not_retried(world):
    """The server is available, so no waiting."""
    tries = []

    def refuse(connection):
        tries.append(1)
        raise StoreError("moved away")

    def ask_a_table_that_is_gone(connection):
        tries.append(2)
        connection.execute("SELECT * FROM gone")

    session = world.open().session
    with pytest.raises(StoreError, match="moved away"):
        session.run(refuse)
    with pytest.raises(StoreError, match="tables are gone"):
        session.read(ask_a_table_that_is_gone)
    assert tries == [1, 2]


def test_a_session_closed_by_the_server_continues_in_a_new_one(world, address):
    store = world.open()
    store.offer([candidate(A)], (), 0.0)
    with connect(address) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() ORDER BY backend_start DESC LIMIT 1"
        )
    assert store.counts().by_reason == {"waiting": 1}


def test_a_worker_leaves_a_standby_for_its_successor(world):
    store = world.open()
    store.session.read(lambda connection: connection.execute("SET default_transaction_read_only = on"))
    assert store.offer([candidate(A)], (), 0.0) == 1


def test_after_a_failover_leases_are_lost_and_every_host_waits_its_delay(world, ask):
    """The successor may lack the last commits, with pages that the worker considers known."""
    store = world.open()
    worker = store.join(ME, 0.0)
    store.offer([candidate(A), candidate(B)], (), 0.0)
    ready = {host.host: host.host_id for host in store.ready(9, 9.0, 0.0)}
    (lease,) = store.lease(worker, [ready["a.test:80"]], 0.0)
    (task,) = take(store, lease)
    store.session._timeline = "00000000"
    store.session.read(Connection.close)
    assert store.commit(worker, batch(completion(lease, task), hosts=[state(lease)]), 0.0) == {lease}
    assert ask("SELECT reason FROM url") == [("waiting",)] * 2 and ask("SELECT name FROM worker") == []
    moment = store.moment(0.0)
    assert {name for name, next_at in ask("SELECT key, next_at FROM host") if next_at > moment} == set(ready)
    (again,) = store.lease(worker, [lease.host_id], 0.0)
    assert store.commit(worker, batch(completion(again, take(store, again)[0])), 0.0) == frozenset()


def test_a_lost_release_is_repeated_on_the_successor(world, ask):
    """The last commit, a release, was lost: otherwise the host would stay leased while its worker lives."""
    store = world.open()
    worker = store.join(ME, 0.0)
    store.offer([candidate(A)], (), 0.0)
    (lease,) = store.lease(worker, [host.host_id for host in store.ready(9, 9.0, 0.0)], 0.0)
    store.session._timeline = "00000000"
    store.session.read(Connection.close)
    assert not store.idle(0.0) and store.failovers == 1
    assert store.commit(worker, batch(), 0.0) == frozenset()
    assert ask("SELECT lease_by FROM host") == [(None,)]
    (again,) = store.lease(worker, [lease.host_id], 0.0)
    assert again.epoch > lease.epoch and store.failovers == 1


def test_a_collection_is_created_once_and_another_version_is_refused(world, ask, address):
    with connect(address) as connection:
        assert not create(connection, address.collection)
        check(connection, address.collection)
        connection.execute("UPDATE version SET name = 'other'")
        for use in (check, create):
            with pytest.raises(StoreError, match=rf"{address.collection} was written by another version \(other;"):
                use(connection, address.collection)
        connection.execute("UPDATE version SET name = '1'")


@pytest.mark.parametrize("acts", ["leases", "commits"])
def test_a_silent_worker_detects_tables_of_another_version(world, ask, address, acts):
    store = world.open()
    store.offer([candidate(A)], (), 0.0)
    worker = store.join(ME, 0.0)
    (lease,) = store.lease(worker, [host.host_id for host in store.ready(9, 9.0, 0.0)], 0.0)
    pages = batch(completion(lease, take(store, lease)[0]))
    with connect(address) as connection:
        connection.execute("DELETE FROM worker")
        connection.execute("UPDATE host SET lease_by = NULL")
        connection.execute("UPDATE version SET name = '99'")
        with pytest.raises(StoreError, match=rf"{address.collection} was written by another version \(99;"):
            store.lease(worker, [lease.host_id], 0.0) if acts == "leases" else store.commit(worker, pages, 0.0)
        connection.execute("UPDATE version SET name = '1'")
    assert ask("SELECT name FROM worker") == [] == ask("SELECT id FROM visit")


def test_urls_left_out_by_earlier_runs_are_read_in_batches(world, monkeypatch):
    monkeypatch.setattr(crawl_reads, "READ_AT_ONCE", 2)
    store = world.open()
    store.offer([candidate(A + str(n), 1, Reason.SCOPE) for n in range(5)] + [candidate(B, 1, Reason.DEPTH)], (), 0.0)
    assert sorted(url for url, _, _ in store.unrequested_urls([Reason.SCOPE])) == [A + str(n) for n in range(5)]
