"""`model.ports.RunStore.merge_aliases`, and the requests of a refresh, with both stores."""

from __future__ import annotations

import contextlib

import pytest

from contracts.crawl_values import PAGE, batch, candidate, completion, get, take
from contracts.crawl_worlds import PostgresWorld, SqliteWorld
from periplus.document.understand import understand
from periplus.model.visit import Fetched, Headers, Reason
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome
from periplus_postgres import frontier

ME = 100
A, X, W = "http://a.test/", "http://a.test/index.html", "http://www.a.test/"


@pytest.fixture(params=[SqliteWorld, PostgresWorld], ids=["sqlite", "postgres"])
def world(request):
    world = request.param(request.getfixturevalue("address" if request.param is PostgresWorld else "tmp_path"), {ME})
    yield world
    _, tally, true, _ = world.recount()
    world.close()
    assert tally == true


def asked(world, query):
    if isinstance(world, PostgresWorld):
        return [tuple(row) for row in world.connection.execute(query).fetchall()]
    with contextlib.closing(schema.connect(world.folder)) as connection:
        return connection.execute(query).fetchall()


def ask_again(world):
    if isinstance(world, PostgresWorld):
        with world.connection.transaction():
            return frontier.ask_again(world.connection, due_only=False)
    return FolderHome(world.folder).ask_again(0.0, due_only=False)


def read(store, pages, headers=PAGE.headers):
    """Stores these answers; pages: {url: (depth, body)}."""
    store.offer([candidate(url, depth) for url, (depth, _) in pages.items()], (), 0.0)
    worker = store.join(ME, 0.0)
    for lease in get(store, worker).values():
        while tasks := take(store, lease):
            for task in tasks:
                fetched = Fetched(200, headers, pages[task.request.url][1])
                store.commit(
                    worker,
                    batch(completion(lease, task, outcome=fetched, document=understand(task.request.url, fetched))),
                    0.0,
                )
    store.leave(worker, 0.0)


def test_pages_with_the_same_bytes_become_aliases(world):
    store = world.open()
    linked = b'<p>Home <a href="x">x</a>'
    for lot in (
        {A: (3, b"<p>Home"), X: (1, b"<p>Home")},
        {W: (4, b"<p>Home")},
        {A + "b": (9, b"<p>Home"), A + "f/y": (1, linked), A + "g/y": (1, linked), A + "g/z": (1, linked)},
    ):
        read(store, lot)
    assert store.merge_aliases() == 4
    assert store.counts().by_reason == {"ok": 3, "alias": 4}
    assert [store.states([url])[url] for url in (A, X, W, A + "b", A + "f/y", A + "g/y", A + "g/z")] == [
        (Reason.OK, ""),
        (Reason.ALIAS, f"same bytes as {A}"),
        (Reason.ALIAS, f"same bytes as {A}"),
        (Reason.ALIAS, f"same bytes and links as {A}"),
        (Reason.OK, ""),
        (Reason.OK, ""),
        (Reason.ALIAS, f"same bytes and links as {A}g/y"),
    ]
    assert store.merge_aliases() == 0
    kept = (
        "SELECT t.text, p.text, a.learned, a.was, p.depth FROM alias a JOIN url t ON t.id = a.url_id"
        " JOIN url p ON p.id = a.page_id ORDER BY t.text"
    )
    assert asked(world, kept) == [
        (A + "b", A, 1, "ok", 1),
        (A + "g/z", A + "g/y", 1, "ok", 1),
        (X, A, 1, "ok", 1),
        (W, A, 1, "ok", 1),
    ]
    assert asked(world, "SELECT count(*) FROM page") == [(7,)], "the content of each address is kept"


def test_a_refresh_requests_each_alias_and_separates_changed_ones(world):
    store = world.open()
    for lot in ({A: (3, b"<p>Home"), X: (1, b"<p>Home")}, {W: (None, b"<p>Home")}):
        read(store, lot)
    assert store.merge_aliases() == 2
    assert ask_again(world) == 3
    assert store.counts().by_reason == {"ok": 3}
    assert asked(world, "SELECT text, depth FROM url ORDER BY text") == [(A, 3), (X, 1), (W, None)]
    assert asked(world, "SELECT count(*) FROM alias") == [(0,)]


def test_nothing_is_merged_where_pages_differ(world):
    store = world.open()
    read(store, {A: (0, b"<p>Home"), X: (1, b"<p>Another")})
    assert store.merge_aliases() == 0
    assert store.counts().by_reason == {"ok": 2}


def test_a_refetched_page_is_compared_with_the_stored_pages(world):
    store = world.open()
    read(store, {A: (0, b"<p>Home")}, Headers((("etag", '"one"'), ("last-modified", "Mon, 01 Jun 2026 10:00:00 GMT"))))
    assert ask_again(world) == 1
    worker = store.join(ME, 0.0)
    (task,) = (one for one in take(store, get(store, worker)["a.test"]) if one.recheck)
    ((digest,),) = asked(world, "SELECT body_digest FROM page")
    assert task.held == digest
    assert (task.request.etag, task.request.last_modified) == ('"one"', "Mon, 01 Jun 2026 10:00:00 GMT")
