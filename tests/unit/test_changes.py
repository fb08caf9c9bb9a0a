"""Followers of a collection miss no page that is stored, replaced, moved or lost, even if a process is killed."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from periplus.errors import StoreError
from periplus.model.page import Block, BlockKind, Blocks, Part, Position
from periplus.store import changes, text_rows
from periplus.store.bodies import pack_blocks
from periplus.store.sqlite import schema
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.sqlite.schema import SqliteStatements

BLOCKS = Blocks.of(
    (
        Block(BlockKind.TITLE, "A title", "head/title", position=Position.HEAD),
        Block(BlockKind.HEADING, "Heading", "div#a.b/h1", 1, Position.MAIN),
        Block(BlockKind.LINK, "a link", "ul/li", 0, Position.NAV, 6),
        Block(BlockKind.CODE, "def f():\n\n    return 1", "pre"),
        Block(BlockKind.PARAGRAPH, "příliš žluťoučký", "p", 0, Position.BODY, 3, "cs"),
    )
)
TEXT = "Heading\na link\ndef f():\n\n    return 1\npříliš žluťoučký"


@pytest.fixture
def folder(tmp_path):
    schema.create(tmp_path)
    return tmp_path


@pytest.fixture
def connection(folder):
    connection = schema.connect(folder)
    yield connection
    connection.close()


def put(connection, url_id, reason="ok", *, blocks=BLOCKS, replace=True):
    """A page as `pages` writes it, with its URL on host 1."""
    contents = SqliteReader(connection)
    run = connection.execute
    run("INSERT OR IGNORE INTO site (id, key) VALUES (1, 'a.test')")
    run("INSERT OR IGNORE INTO host (id, key, site_id) VALUES (1, 'a.test', 1)")
    run(
        (
            "INSERT OR IGNORE INTO url (id, text, host_id, reason, first_seen)"
            " VALUES (?, 'http://a.test/' || ?, 1, 'waiting', 0)"
        ),
        (url_id, url_id),
    )
    run("UPDATE url SET reason = ? WHERE id = ?", (reason, url_id))
    insert = "INSERT INTO body (digest, size, data, text, blocks) VALUES (x'00', 1, x'', ?, ?)"
    body = run(insert, (contents.codec.pack(TEXT.encode(), None), pack_blocks(blocks))).lastrowid
    names = (
        "url_id, fetched, media_type, size, wire_bytes, took_s, charset, charset_source, language, title, "
        "description, h1, canonical, robots, cut, "
    )
    names += (
        "last_modified, expires, etag, last_modified_field, text_chars, body_digest, text_digest, folded_digest, "
        "body_id, h1s, images_without_alt, "
    )
    names += "other_charset, translations"
    row = (
        url_id,
        0,
        "text/html",
        1,
        1,
        0,
        "utf-8",
        "meta",
        "",
        "A title",
        "",
        "",
        "",
        "",
        "",
        0,
        0,
        "",
        "",
        len(TEXT),
        b"",
        b"1",
        b"2",
        body,
        0,
        0,
        "",
        "",
    )
    run(f"INSERT OR REPLACE INTO page ({names}) VALUES ({','.join('?' * len(row))})", row)


def seen(connection, place, at_once=2):
    """The page ids that a follower gets from a place on, and its new place."""
    found = []
    while True:
        ids, place = changes.after(SqliteStatements(connection), place, at_once)
        if not ids:
            return found, place
        found += ids


def test_a_new_follower_gets_all_pages_and_then_the_changes(connection):
    for number in (5, -3, 9):
        put(connection, number)
    place = changes.follow(SqliteStatements(connection), "index")
    put(connection, 7)  # while the follower starts
    found, place = seen(connection, place)
    assert set(found) == {-3, 5, 7, 9}
    assert seen(connection, place) == ([], place)
    put(connection, 5)
    connection.execute("UPDATE url SET reason = 'not-found' WHERE id = 9")
    assert seen(connection, place)[0] == [5, 9]


def test_a_moved_page_is_reported_under_both_urls(connection):
    put(connection, 1)
    _, place = seen(connection, changes.follow(SqliteStatements(connection), "index"))
    connection.execute("UPDATE page SET url_id = 2 WHERE url_id = 1")
    assert seen(connection, place)[0] == [1, 2]


def test_a_url_that_never_was_a_page_is_not_reported(connection):
    _, place = seen(connection, changes.follow(SqliteStatements(connection), "index"))
    connection.execute("INSERT INTO url (id, text, host_id, reason, first_seen) VALUES (1, 'x', 1, 'waiting', 0)")
    connection.execute("UPDATE url SET reason = 'not-found' WHERE id = 1")
    assert seen(connection, place)[0] == []
    put(connection, 2)
    assert seen(connection, place)[0] == [2]
    connection.execute("UPDATE page SET parts = x'00' WHERE url_id = 2")
    assert seen(connection, place)[0] == [2]


def test_followers_continue_independently_of_each_other(connection):
    one, two = changes.follow(SqliteStatements(connection), "one"), changes.follow(SqliteStatements(connection), "two")
    put(connection, 1)
    _, one = seen(connection, one)
    changes.set_position(SqliteStatements(connection), "one", one)
    put(connection, 2)
    assert changes.follow(SqliteStatements(connection), "one") == one
    assert seen(connection, one)[0] == [2]
    # each page appears as a page and as a change since the start
    assert sorted(seen(connection, changes.follow(SqliteStatements(connection), "two"))[0]) == [1, 1, 2, 2]
    _, two = seen(connection, two)
    changes.set_position(SqliteStatements(connection), "two", two)
    assert connection.execute("SELECT url_id FROM change").fetchall() == [(2,)]  # follower "one" has not confirmed it
    changes.unfollow(SqliteStatements(connection), "one")
    assert connection.execute("SELECT url_id FROM change").fetchall() == []
    assert changes.place_of(SqliteStatements(connection), "one") is None


def test_without_followers_no_change_is_stored(connection):
    put(connection, 1)
    changes.note(SqliteStatements(connection), [1])
    assert connection.execute("SELECT count(*) FROM change").fetchone() == (0,)


def test_waiting_counts_the_remaining_pages(connection):
    put(connection, 1)
    put(connection, 2)
    place = changes.follow(SqliteStatements(connection), "index")
    put(connection, 2)
    assert changes.waiting(SqliteStatements(connection), place) == 3
    _, place = changes.after(SqliteStatements(connection), place, 1)
    assert changes.waiting(SqliteStatements(connection), place) == 2


def test_a_new_follower_starts_after_deleted_changes(connection):
    """Numbers of changes are never reused, so a place stays valid when all earlier changes are deleted."""
    first = changes.follow(SqliteStatements(connection), "first")
    put(connection, 1)
    _, first = seen(connection, first)
    changes.set_position(SqliteStatements(connection), "first", first)
    second = changes.follow(SqliteStatements(connection), "second")
    assert second.seq == first.seq
    put(connection, 1)
    assert seen(connection, first)[0] == [1]
    assert seen(connection, second)[0] == [1, 1]


KILLED = """
import os, sys
from pathlib import Path
from periplus.store import changes
from periplus.store.sqlite import schema
sys.path.insert(0, {tests!r})
from unit.test_changes import put
connection = schema.connect(Path({folder!r}))
statements = 0
def traced(statement):
    global statements
    statements += 1
    if statements == {at}:
        os.kill(os.getpid(), 9)
with connection:
    connection.execute("BEGIN IMMEDIATE")
    connection.set_trace_callback(traced)
    put(connection, 3)
    connection.execute("UPDATE url SET reason = 'not-found' WHERE id = 1")
    connection.execute("COMMIT")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("at", [1, 6, 9, 10, 12, 99])
def test_a_kill_between_statements_leaves_page_and_change_or_neither(folder, at):
    connection = schema.connect(folder)
    put(connection, 1)
    _, place = seen(connection, changes.follow(SqliteStatements(connection), "index"))
    connection.close()
    tests = __file__.rpartition("/unit/")[0]
    subprocess.run([sys.executable, "-c", KILLED.format(tests=tests, folder=str(folder), at=at)], check=False)
    connection = schema.connect(folder)
    stored = {url_id for (url_id,) in connection.execute("SELECT url_id FROM page")}
    gone = connection.execute("SELECT reason FROM url WHERE id = 1").fetchone()[0] == "not-found"
    assert set(seen(connection, place)[0]) == ({3} if 3 in stored else set()) | ({1} if gone else set())
    assert (3 in stored) == gone == (at == 99)
    connection.close()


def test_a_follower_has_the_collections_pages_after_random_changes(connection):
    """A follower that copies each change has the collection's pages, also after interruptions."""
    rng = random.Random(4)
    copy: dict[int, bool] = {}
    for _ in range(120):
        number = rng.randrange(12)
        if rng.random() < 0.6:
            put(connection, number)
        else:
            connection.execute(
                "UPDATE url SET reason = ? WHERE id = ?", (rng.choice(["not-found", "ok", "alias"]), number)
            )
        if rng.random() < 0.3:
            place = changes.follow(SqliteStatements(connection), "copy")
            ids, after = changes.after(SqliteStatements(connection), place, rng.choice([1, 3, 50]))
            for page in ids:
                copy[page] = any(True for _ in SqliteReader(connection).page_blocks([page]))
            if rng.random() < 0.8:  # else it was killed before it could say so
                changes.set_position(SqliteStatements(connection), "copy", after)
    for page in seen(connection, changes.follow(SqliteStatements(connection), "copy"))[0]:
        copy[page] = any(True for _ in SqliteReader(connection).page_blocks([page]))
    there = {page.url_id for page in SqliteReader(connection).site_blocks(1)}
    assert {page for page, is_there in copy.items() if is_there} == there


def test_evidence_is_stored_by_site_and_name(connection):
    assert text_rows.evidence(SqliteReader(connection), 1, "template") is None
    text_rows.write_evidence(SqliteStatements(connection), 1, "template", b"one")
    text_rows.write_evidence(SqliteStatements(connection), 1, "template", b"two")
    text_rows.write_evidence(SqliteStatements(connection), 2, "template", b"three")
    assert text_rows.evidence(SqliteReader(connection), 1, "template") == b"two"


def test_pages_have_their_blocks_and_parts(connection):
    put(connection, 1)
    put(connection, 2, "not-found")
    (page,) = SqliteReader(connection).page_blocks([2, 1, 3])
    assert (page.url_id, page.url, page.blocks, page.parts, page.title) == (
        1,
        "http://a.test/1",
        BLOCKS,
        None,
        "A title",
    )
    parts = [Part.NAVIGATION if block.kind is BlockKind.LINK else Part.CONTENT for block in BLOCKS]
    text_rows.write_parts(SqliteStatements(connection), [(1, page.body_id, parts), (2, 999, parts)])
    assert next(SqliteReader(connection).site_blocks(1)).parts == tuple(parts)
    assert SqliteReader(connection).parts(1) == tuple(parts)
    assert SqliteReader(connection).parts(2) is None
    put(connection, 1)
    assert SqliteReader(connection).parts(1) is None  # another page now
    assert SqliteReader(connection).blocks(1) == BLOCKS


def test_a_newer_schema_version_is_refused(folder, connection):
    connection.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    with pytest.raises(StoreError, match="Use another version"):
        schema.connect(folder)
