"""The book of a collection's links says what its tables say, also when they went on since."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from periplus.analyse.ego import Grouping, NeighbourhoodQuery, neighbourhood, web_of
from periplus.api import inlink_index
from periplus.api.collection import Collection
from periplus.api.deleting import delete, ids_of
from periplus.api.inlink_index import InlinkIndexes, make
from periplus.api.tables import Browser, TableQuery
from periplus.model.collection import Deletion
from periplus.model.graph import NAV, PART, place_of_ends
from periplus.store.sqlite import inlinks, reading
from periplus.store.sqlite.listing import SqliteReader
from periplus.urls.canonical import canonical, url_id
from stored import page, stored

HOME = "https://e.org/"
MENU = '<nav><a href="/">home</a><a href="/a">a</a></nav>'
SITE = {
    HOME: page("Home", "/a", "/d/b", "/gone", head='<link rel=stylesheet href="/style.css">'),
    "https://e.org/a": page("Alpha", "/d/b", "https://other.org/x"),
    "https://e.org/d/b": page("Beta", "/", "/d/c") + MENU,
    "https://e.org/d/c": page("Beta", "/", "/d/c") + MENU,
    "https://e.org/gone": 404,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return stored(tmp_path / "e.periplus", SITE, [HOME])


def linking_plainly(connection: sqlite3.Connection, target: int) -> set[int]:
    return {
        source
        for (source,) in connection.execute(
            "SELECT source FROM link WHERE target = ? AND source <> ?", (target, target)
        )
    }


def read(folder: Path) -> inlinks.StoredInlinkIndex:
    with contextlib.closing(reading.connect(folder)) as connection:
        return inlinks.read(connection)


def assert_as_the_tables_say(folder: Path, book: inlinks.StoredInlinkIndex) -> None:
    with contextlib.closing(reading.connect(folder)) as connection:
        for identity, text in connection.execute("SELECT id, text FROM url").fetchall():
            many, sources = book.linking(SqliteReader(connection), identity, 100)
            assert (many, set(sources)) == (len(sources), linking_plainly(connection, identity)), text
            visits = connection.execute(
                "SELECT id FROM visit WHERE url_id = ? OR text = ? ORDER BY id", (identity, text)
            ).fetchall()
            assert book.visits_of(SqliteReader(connection), text) == [number for (number,) in visits], text


def test_it_tells_what_the_tables_tell(folder: Path) -> None:
    assert_as_the_tables_say(folder, read(folder))


def test_what_is_visited_later_counts_too(folder: Path) -> None:
    book = read(folder)
    stored(
        folder,
        {"https://new.org/": page("New", HOME, "https://e.org/a"), HOME: page("Home", "/a")},
        ["https://new.org/"],
    )
    with contextlib.closing(reading.connect(folder)) as connection:
        assert inlinks.still_holds(connection, book.moment)
        assert inlinks.moment_of(connection) != book.moment
    assert_as_the_tables_say(folder, book)


def test_a_book_does_not_outlive_what_it_knew(folder: Path) -> None:
    book = read(folder)
    with contextlib.closing(sqlite3.connect(folder / "collection.db")) as connection, connection:
        # as after a deletion and another run, under the same numbers
        connection.execute("UPDATE visit SET started = started + 1")
        assert not inlinks.still_holds(connection, book.moment)


def test_a_book_does_not_outlive_a_deletion(folder: Path) -> None:
    book = read(folder)
    delete(folder, Deletion(ids_of(folder, [canonical("https://e.org/a")])))
    with contextlib.closing(reading.connect(folder)) as connection:
        assert not inlinks.still_holds(connection, book.moment)
    assert_as_the_tables_say(folder, read(folder))


def test_a_book_is_used_no_longer_when_too_much_was_visited_since(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the visit: what is newer is read from the tables at each question, and that must stay little."""
    make(folder)
    monkeypatch.setattr(inlink_index, "SMALL_LINKS", 1)
    new = {"https://new.org/": page("New", HOME, "/b"), "https://new.org/b": page("B", HOME)}
    stored(folder, new, list(new))
    with contextlib.closing(reading.connect(folder)) as connection:
        kept = inlinks.opened(folder)
        newer = inlinks.moment_of(connection).visit - kept.moment.visit
        assert newer > 1
        monkeypatch.setattr(inlinks, "NEWER_MOST", newer)
        assert inlinks.still_holds(connection, kept.moment)
        monkeypatch.setattr(inlinks, "NEWER_MOST", newer - 1)
        assert not inlinks.still_holds(connection, kept.moment)
        books = InlinkIndexes()
        assert books.of(folder, connection) is None, "a new one is being made"
        books.finish()
        assert books.of(folder, connection).moment == inlinks.moment_of(connection)


def test_links_of_menus_and_parts_are_marked(folder: Path) -> None:
    links = read(folder).links
    place = {int(identity): at for at, identity in enumerate(links.ids)}
    for url, target, mark in (
        (HOME, "/style.css", PART),
        (HOME, "/a", 0),
        ("https://e.org/d/b", "/a", NAV),
        ("https://e.org/d/b", "/", 0),
    ):
        at, end = place[url_id(canonical(url))], place[url_id(canonical(target, canonical(HOME)))]
        ends = links.out_ends[links.out_offsets[at] : links.out_offsets[at + 1]]
        assert int(ends[place_of_ends(ends) == end][0]) & 3 == mark, (url, target)


def test_the_file_holds_what_was_read(folder: Path) -> None:
    make(folder)
    kept, fresh = inlinks.opened(folder), read(folder)
    assert kept is not None
    assert kept.moment == fresh.moment
    for part in ("ids", "sites", "directories", "fetched", "out_offsets", "out_ends", "in_offsets", "in_ends"):
        assert np.array_equal(getattr(kept.links, part), getattr(fresh.links, part)), part
    assert kept.links.rank.sum() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("spoilt", [b"", b"{}\n", b'{"version": 0}\n', b"no book"])
def test_a_file_that_is_none_is_none(folder: Path, spoilt: bytes) -> None:
    (folder / inlinks.FILE).write_bytes(spoilt)
    assert inlinks.opened(folder) is None


def test_a_file_that_was_cut_short_is_none(folder: Path) -> None:
    make(folder)
    whole = (folder / inlinks.FILE).read_bytes()
    (folder / inlinks.FILE).write_bytes(whole[: len(whole) // 2])
    assert inlinks.opened(folder) is None


def test_a_large_collection_has_its_book_made_beside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inlink_index, "SMALL_LINKS", 1)
    books = InlinkIndexes()
    with contextlib.closing(reading.connect(folder)) as connection:
        assert books.of(folder, connection) is None, "nobody waits for it"
        books.finish()
        book = books.of(folder, connection)
    assert book is not None
    assert_as_the_tables_say(folder, book)


@pytest.mark.parametrize("wanted", [("links", "target"), ("visits", "url")])
def test_tables_and_pages_are_the_same_with_a_book_and_without(
    folder: Path, wanted: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, column = wanted
    for url in (*SITE, "https://other.org/x"):
        wish = TableQuery(((column, url),), sort=(column, "source") if table == "links" else ("id",))
        with_book = Browser().page(folder, table, wish)
        with monkeypatch.context() as patched:
            patched.setattr(InlinkIndexes, "of", lambda *_: None)
            without = Browser().page(folder, table, wish)
        assert with_book == without, url
        with Collection(folder) as kept:
            one, other = kept.page(url, InlinkIndexes()), kept.page(url)
            assert one.summary() == other.summary(), url
            assert set(one.inlinks(50)) == {link for link in other.inlinks(50) if link.source != url}, url


def near_plainly(edges: set[tuple[int, int]], middle: int, steps: int) -> dict[int, int]:
    found = {middle: 0}
    for step in range(1, steps + 1):
        near = {b for a, b in edges if a in found} | {a for a, b in edges if b in found}
        found |= {node: step for node in near if node not in found}
    return found


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20),
    st.integers(0, 7),
    st.integers(1, 2),
    st.sampled_from(Grouping),
)
def test_a_neighbourhood_is_that_of_its_slow_twin(
    tmp_path_factory: pytest.TempPathFactory, pairs, middle, steps, grouping
) -> None:
    names = [f"https://{'ab'[n % 2]}.org/{'cd'[n // 4]}/{n}" for n in range(8)]
    answers = {name: page(name, *(names[b] for a, b in sorted(pairs) if a == n)) for n, name in enumerate(names)}
    book = read(stored(tmp_path_factory.mktemp("ego") / "x.periplus", answers, names)).links
    keys = {Grouping.PAGE: lambda n: n, Grouping.DIRECTORY: lambda n: (n % 2, n // 4), Grouping.SITE: lambda n: n % 2}
    key = keys[grouping]
    expected = near_plainly({(key(a), key(b)) for a, b in pairs if key(a) != key(b)}, key(middle), steps)
    place = {int(identity): at for at, identity in enumerate(book.ids)}
    number = {place[url_id(canonical(name))]: n for n, name in enumerate(names)}
    web = web_of(book, grouping, menus=True)
    at = next(at for at, n in number.items() if n == middle)
    found = neighbourhood(web, NeighbourhoodQuery(int(web.groups[at]), steps))
    assert {key(number[node.place]): node.step for node in found.nodes} == expected
    assert (found.neighbours, found.bounded) == (len(expected) - 1, False)
    shown = [key(number[node.place]) for node in found.nodes]
    counted = {(shown[a], shown[b]): many for a, b, many in found.links}
    for (a, b), many in counted.items():
        assert many == sum((key(x), key(y)) == (a, b) for x, y in pairs)
    assert set(counted) == {(key(a), key(b)) for a, b in pairs if key(a) != key(b) and {key(a), key(b)} <= set(shown)}
    few = neighbourhood(web, NeighbourhoodQuery(int(web.groups[at]), steps, most=2))
    assert few.nodes == found.nodes[:3]
    assert few.neighbours == found.neighbours


def test_menus_can_be_left_out(folder: Path) -> None:
    book = read(folder).links
    place = {int(identity): at for at, identity in enumerate(book.ids)}
    b = place[url_id(canonical("https://e.org/d/b"))]
    targets = {}
    for menus in (True, False):
        web = web_of(book, Grouping.PAGE, menus=menus)
        targets[menus] = {int(end) for end in web.links(np.array([b]), False)[1]}
    assert targets[True] - targets[False] == {place[url_id(canonical("https://e.org/a"))]}
