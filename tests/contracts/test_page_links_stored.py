"""Links in PostgreSQL equal those in a folder, and the former rows."""

import random
from contextlib import closing

from drawn_links import drawn
from periplus.model.page import Link, LinkKind, Links, Position
from periplus.store.page_links import HISTORY_COLUMNS, LINKS_AT_MOST
from periplus.store.rows import LINK_COLUMNS, EndedLinks, LinkChanges, NewLinks
from periplus.store.sqlite import page_links as page_links_of_folders
from periplus.store.sqlite import schema as schema_of_folders
from periplus.urls.canonical import canonical
from periplus_postgres.connection import connect
from periplus_postgres.statements import PostgresStatements


def test_links_in_columns_equal_links_in_rows_and_in_a_folder(address, tmp_path):
    """Found once, found again, ended, deleted."""
    rng, ask = random.Random(5), f"SELECT {LINK_COLUMNS} FROM link ORDER BY 1, 2, 3, 4, 5"
    past = f"SELECT {HISTORY_COLUMNS} FROM link_history ORDER BY 1, 2, 3, 4, 5"
    pages = [drawn(rng, source, many) for source, many in enumerate((1, 99, 250, 20, 0), -2)]
    again = [drawn(rng, pages[at].source, 30) for at in (1, 2)]
    commits = [
        LinkChanges(1, 1.0, pages, (), ()),
        LinkChanges(2, 2.0, (), [*again, pages[3]], [EndedLinks(0, again[0].source, ""), EndedLinks(0, 0, "a")]),
    ]
    schema_of_folders.create(tmp_path)
    with connect(address) as database, closing(schema_of_folders.connect(tmp_path)) as folder:
        for changes in commits:
            with database.transaction():
                PostgresStatements(database).enter_links(changes)
            with folder:
                page_links_of_folders.enter(folder, changes)
            assert database.execute(ask).fetchall() == folder.execute(ask).fetchall()
            assert database.execute(past).fetchall() == folder.execute(past).fetchall()
        with database.transaction():
            assert set(PostgresStatements(database).delete("link", "source", [(0, -1), (0, 4711)])) == {(0, -1)}
        rows = database.execute(ask).fetchall()
        assert rows == [row for row in folder.execute(ask).fetchall() if row[0] != -1]
        assert database.execute("SELECT max(length(kinds)) FROM page_links").fetchone()[0] <= LINKS_AT_MOST


def test_an_anchor_with_characters_that_the_server_cannot_store_is_read(address):
    words = ("nul\0inside", "a \\u0000 that is none")
    link = Link(canonical("http://a.test/"), LinkKind.ANCHOR, Position.MAIN)
    links = Links.of([link._replace(anchor=anchor, nofollow=at > 0) for at, anchor in enumerate(words)])
    with connect(address) as database:
        PostgresStatements(database).enter_links(LinkChanges(1, 1.0, [NewLinks(0, 1, links, [1, 1])], (), ()))
        anchors = database.execute("SELECT anchor FROM link ORDER BY nofollow").fetchall()
    assert anchors == [("nul\ufffdinside",), (words[1],)]
