"""Links of a page stored in one row: the view, the arrays, and changes of links."""

import random
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from drawn_links import drawn
from periplus.errors import StoreError
from periplus.model.page import LINK_KINDS, POSITIONS, Link, LinkKind, Links
from periplus.model.tables import LINKS
from periplus.store import site_rows
from periplus.store.page_links import LINKS_AT_MOST, drop_links, drop_targets, move_links
from periplus.store.rows import EndedLinks, LinkChanges, NewLinks, PageLink, link_rows
from periplus.store.sqlite import listing, page_links, schema
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.sqlite.schema import SqliteStatements
from periplus.store.statements import SQLITE
from periplus.store.views import select
from periplus.urls.canonical import canonical, url_id

COLUMNS = "source, target, kind, position, nofollow, anchor, fragments, times, first_seen, last_seen"


@pytest.fixture
def folder(tmp_path):
    schema.create(tmp_path)
    return tmp_path


@pytest.fixture
def connection(folder):
    with closing(schema.connect(folder)) as connection:
        yield connection


def enter_links(connection, now, new=(), seen=(), ended=(), run_id=1):
    with connection:
        connection.execute("BEGIN")
        page_links.enter(connection, LinkChanges(run_id, now, new, seen, ended))


def rows_of(connection, table="link"):
    return sorted(connection.execute(f"SELECT {COLUMNS} FROM {table}").fetchall())


def wanted_rows(pages, now):
    return sorted(row[1:] for page in pages for row in link_rows(page, now))


@pytest.mark.parametrize("many", [1, 7, LINKS_AT_MOST - 1, LINKS_AT_MOST, LINKS_AT_MOST + 1, 5 * LINKS_AT_MOST])
def test_the_view_returns_each_stored_link(connection, many):
    pages = [drawn(random.Random(many), source, many) for source in (-(1 << 63), -1, 0, (1 << 63) - 1)]
    enter_links(connection, 2.5, [NewLinks(0, 9, Links(), []), *pages])
    assert rows_of(connection) == wanted_rows(pages, 2.5)
    assert connection.execute("SELECT max(length(kinds)) FROM page_links").fetchone()[0] <= LINKS_AT_MOST
    for page in pages:
        stored = page_links.of_page(connection, page.source)
        assert sorted((page.source, *link) for link in stored.values()) == wanted_rows([page], 2.5)


def test_the_view_works_without_trusted_schema(folder, connection):
    enter_links(connection, 1.0, [drawn(random.Random(1), 1, 9)])
    with closing(sqlite3.connect(folder / schema.DATABASE)) as foreign:
        foreign.execute("PRAGMA trusted_schema = OFF")
        assert rows_of(foreign) == rows_of(connection)


def test_arrays_agree_with_the_view(connection, monkeypatch):
    rng = random.Random(5)
    pages = [drawn(rng, source, rng.choice((1, 30, 250))) for source in range(40)]
    enter_links(connection, 1.0, pages)
    monkeypatch.setattr(site_rows, "BLOCK_ROWS", 500)
    kinds = frozenset({LinkKind.ANCHOR, LinkKind.IMAGE, LinkKind.SITEMAP})
    for chosen in (None, kinds):
        blocks = list(site_rows.link_blocks(SqliteReader(connection), "page_links l ORDER BY l.source", kinds=chosen))
        assert len(blocks) > 1
        links = site_rows.joined_links(block.in_order() for block in blocks)
        names = [
            (source, target, LINK_KINDS[kind].value, POSITIONS[position].value, int(nofollow))
            for source, target, kind, position, nofollow in zip(*(column.tolist() for column in links), strict=True)
        ]
        assert sorted(names) == [row[:5] for row in rows_of(connection) if chosen is None or row[2] in chosen]
        assert np.array_equal(links.sources, np.sort(links.sources))


def test_the_table_of_links_has_the_rows_of_the_view(connection, monkeypatch):
    """The same rows in the same order as with SQL, also with unknown targets, two sites and an unchanged page."""
    rng = random.Random(6)
    with connection:
        connection.execute("INSERT INTO site (id, key) VALUES (1, 'a.test'), (2, 'b.test')")
        connection.execute("INSERT INTO host (id, key, site_id) VALUES (1, 'a.test:80', 1), (2, 'b.test:80', 2)")
        for number in range(120):
            url, reason = canonical(f"http://a.test/{number}"), rng.choice(("ok", "not-found", "waiting"))
            connection.execute(
                "INSERT INTO url (id, text, host_id, reason, status, first_seen) VALUES (?, ?, ?, ?, ?, 1)",
                (url_id(url), url, 1 + number % 2, reason, rng.choice((0, 200, 404))),
            )
    sources = [url_id(canonical(f"http://a.test/{number}")) for number in range(100, 140)]
    enter_links(connection, 1.0, [drawn(rng, source, rng.choice((1, 30, 250))) for source in sources])
    with connection:
        connection.execute("INSERT INTO freshness (url_id, checked, interval_s) VALUES (?, 5e8, 1)", (sources[0],))
    monkeypatch.setattr(listing, "PAGES_AT_ONCE", 7)
    monkeypatch.setattr(listing, "TARGETS_AT_HAND", 50)
    rows = list(listing.whole(connection, LINKS))
    assert rows == connection.execute(select(LINKS)).fetchall()
    assert len({row[LINKS.names.index("internal")] for row in rows}) == 3


def test_targets_with_similar_ids_are_distinguished(connection):
    ids = [1, -1, 12, 21, 121, -(1 << 63), (1 << 63) - 1, 9_223_372_036_854_775_80, 0]
    link = Link(canonical("http://a.test/"), LinkKind.ANCHOR, POSITIONS[0])
    for source, target in enumerate(ids):
        enter_links(connection, 1.0, [NewLinks(0, source, Links.of([link, link]), [target, 77])])
    for source, target in enumerate(ids):
        listed = connection.execute(f"SELECT * FROM {SQLITE.linking}", (target,)).fetchall()
        assert listed == [(source,)]
        assert connection.execute(f"SELECT source FROM {page_links.TO_TARGET}", (target,)).fetchall() == [(source,)]


def test_kept_links_keep_first_seen_and_ended_links_go_to_history(connection):
    rng = random.Random(3)
    before = drawn(rng, 1, 30)
    links = [link._replace(anchor="another") for link in list(before.links)[10:]] + list(drawn(rng, 1, 10).links)
    after = NewLinks(0, 1, Links.of(links), [url_id(link.target) for link in links])
    stays = before.link_keys() & after.link_keys()
    assert stays
    assert before.link_keys() - stays
    assert after.link_keys() - stays
    enter_links(connection, 10.0, [before])
    connection.execute("INSERT INTO freshness VALUES (1, 15.0, 1.0, NULL)")
    enter_links(connection, 20.0, seen=[after], ended=[EndedLinks(0, 1, "")], run_id=4)
    first_seen = {row[1:5]: row[8:] for row in rows_of(connection)}
    assert first_seen == {key: (10.0 if key in stays else 20.0, 20.0) for key in after.link_keys()}
    anchors = {row[1:5]: row[5:8] for row in rows_of(connection)}
    assert anchors == {row[2:6]: row[6:9] for row in link_rows(after, 20.0)}
    history = connection.execute(
        "SELECT target, kind, position, nofollow, run_id, first_seen, last_seen FROM link_history"
    ).fetchall()
    assert {row[:4]: row[4:] for row in history} == dict.fromkeys(before.link_keys() - stays, (4, 10.0, 15.0))


def test_links_of_a_single_kind_can_be_ended(connection):
    page = drawn(random.Random(8), 1, 60)
    enter_links(connection, 1.0, [page])
    redirect = Links.of([Link(canonical("http://a.test/there"), LinkKind.REDIRECT, POSITIONS[-1])])
    moved = NewLinks(0, 1, redirect, [url_id(redirect.targets[0])])
    enter_links(connection, 2.0, seen=[moved], ended=[EndedLinks(0, 1, "redirect")])
    left = rows_of(connection)
    assert {row[1] for row in left if row[2] == "redirect"} == {moved.ids[0]}
    assert [row for row in left if row[2] != "redirect"] == [
        row for row in wanted_rows([page], 1.0) if row[2] != "redirect"
    ]


def test_a_page_twice_in_a_batch_has_the_links_of_both(connection):
    rng = random.Random(4)
    first, second = drawn(rng, 1, 20), drawn(rng, 1, 20)
    enter_links(connection, 1.0, [first, second])
    by_key = {row[2:6]: row[1:] for page in (first, second) for row in link_rows(page, 1.0)}
    assert rows_of(connection) == sorted(by_key.values())


def test_links_are_deleted_by_key_and_by_target_and_move_with_their_page(connection):
    statements = SqliteStatements(connection)
    page, other = drawn(random.Random(6), 1, 250), drawn(random.Random(7), 2, 20)
    enter_links(connection, 1.0, [page, other])
    keys = sorted(page.link_keys())[:40]
    assert drop_links(statements, [(0, 1, *key) for key in keys] + [(0, 2, 4711, "a", "nav", 0)]) == 40
    assert {row[1:5] for row in rows_of(connection) if row[0] == 1} == page.link_keys() - set(keys)
    drop_targets(statements, {(0, 1): {keys[-1][0]}})
    assert keys[-1][0] not in {row[1] for row in rows_of(connection) if row[0] == 1}
    mine = {row[1:] for row in rows_of(connection) if row[0] == 1}
    own = {row[1:] for row in rows_of(connection) if row[0] == 2}
    move_links(statements, (0, 1), (0, 2))
    both = {row[:4]: row for row in own} | {row[:4]: row for row in mine}
    assert {row[1:] for row in rows_of(connection)} == set(both.values())
    assert {row[0] for row in rows_of(connection)} == {2}


def test_rows_of_links_fill_an_empty_table(connection):
    pages = [drawn(random.Random(source), source, 30) for source in range(5)]
    rows = [(*row[:8], row[0] / 3, row[0] / 3 + row[4]) for row in wanted_rows(pages, 0.0)]
    page_links.fill(connection, rows)
    assert rows_of(connection) == sorted(rows)


@pytest.mark.parametrize("column", ["targets", "kinds", "positions", "words"])
def test_inconsistent_columns_are_reported_as_damage(connection, column):
    enter_links(connection, 1.0, [drawn(random.Random(2), 1, 20)])
    cut = f"UPDATE page_links SET {column} = CAST(substr({column}, 1, length({column}) - 1) AS {{}})"
    connection.execute(cut.format("TEXT" if column == "words" else "BLOB"))
    connection.execute(
        "UPDATE page_links SET targets = substr(targets, 1, 21) || targets WHERE ? = 'targets'", (column,)
    )
    with pytest.raises(StoreError, match="damaged"):
        page_links.of_page(connection, 1)
    with pytest.raises(StoreError, match="damaged"):
        list(listing.whole(connection, LINKS))
    if column != "words":  # the arrays do not read words
        with pytest.raises(StoreError, match="damaged"):
            list(site_rows.link_blocks(SqliteReader(connection), "page_links l"))


def test_a_stored_link_has_a_key():
    link = PageLink(1, "a", "nav", 0, "words", "", 1, 1.0, 2.0)
    assert link.key == (1, "a", "nav", 0)
