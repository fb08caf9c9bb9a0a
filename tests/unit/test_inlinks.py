"""The index of incoming links agrees with the tables, also after further visits."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from periplus.analyse.ego import Grouping, neighbourhood, web_of
from periplus.api import inlink_index
from periplus.api.collection import Collection
from periplus.api.deleting import delete, ids_of
from periplus.api.inlink_index import InlinkIndexes, make
from periplus.api.tables import Browser, TableQuery
from periplus.model.collection import Deletion
from periplus.model.graph import NAV, PART, place_of_ends
from periplus.store import inlinks
from periplus.store.sqlite import reading
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
        return inlinks.read(SqliteReader(connection))


def assert_agrees_with_tables(folder: Path, book: inlinks.StoredInlinkIndex) -> None:
    with contextlib.closing(reading.connect(folder)) as connection:
        for identity, text in connection.execute("SELECT id, text FROM url").fetchall():
            many, sources = book.linking(SqliteReader(connection), identity, 100)
            assert (many, set(sources)) == (len(sources), linking_plainly(connection, identity)), text
            visits = connection.execute(
                "SELECT id FROM visit WHERE url_id = ? OR text = ? ORDER BY id", (identity, text)
            ).fetchall()
            assert book.visits_of(SqliteReader(connection), text) == [number for (number,) in visits], text


def test_the_index_agrees_with_the_tables(folder: Path) -> None:
    assert_agrees_with_tables(folder, read(folder))


def test_later_visits_are_included(folder: Path) -> None:
    book = read(folder)
    stored(
        folder,
        {"https://new.org/": page("New", HOME, "https://e.org/a"), HOME: page("Home", "/a")},
        ["https://new.org/"],
    )
    with contextlib.closing(reading.connect(folder)) as connection:
        assert inlinks.still_holds(SqliteReader(connection), book.moment)
        assert inlinks.moment_of(SqliteReader(connection)) != book.moment
    assert_agrees_with_tables(folder, book)


def test_an_index_is_invalid_after_changes_with_the_same_numbers(folder: Path) -> None:
    book = read(folder)
    with contextlib.closing(sqlite3.connect(folder / "collection.db")) as connection, connection:
        # as after a deletion and another run that reuses the numbers
        connection.execute("UPDATE visit SET started = started + 1")
        assert not inlinks.still_holds(SqliteReader(connection), book.moment)


def test_an_index_is_invalid_after_a_deletion(folder: Path) -> None:
    book = read(folder)
    delete(folder, Deletion(ids_of(folder, [canonical("https://e.org/a")])))
    with contextlib.closing(reading.connect(folder)) as connection:
        assert not inlinks.still_holds(SqliteReader(connection), book.moment)
    assert_agrees_with_tables(folder, read(folder))


def test_an_index_is_not_used_after_too_many_later_visits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is exact. Each query reads later visits from the tables, so there must be few."""
    make(folder)
    monkeypatch.setattr(inlink_index, "SMALL_LINKS", 1)
    new = {"https://new.org/": page("New", HOME, "/b"), "https://new.org/b": page("B", HOME)}
    stored(folder, new, list(new))
    with contextlib.closing(reading.connect(folder)) as connection:
        kept = inlinks.open_index(folder)
        newer = inlinks.moment_of(SqliteReader(connection)).visit - kept.moment.visit
        assert newer > 1
        monkeypatch.setattr(inlinks, "NEWER_MOST", newer)
        assert inlinks.still_holds(SqliteReader(connection), kept.moment)
        monkeypatch.setattr(inlinks, "NEWER_MOST", newer - 1)
        assert not inlinks.still_holds(SqliteReader(connection), kept.moment)
        indexes = InlinkIndexes()
        assert indexes.of(folder, SqliteReader(connection)) is None, "a new one is being made"
        indexes.finish()
        assert indexes.of(folder, SqliteReader(connection)).moment == inlinks.moment_of(SqliteReader(connection))


def test_links_of_menus_and_to_resources_are_marked(folder: Path) -> None:
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


def test_the_file_has_the_whole_index(folder: Path) -> None:
    make(folder)
    kept, fresh = inlinks.open_index(folder), read(folder)
    assert kept is not None
    assert kept.moment == fresh.moment
    for part in ("ids", "sites", "directories", "fetched", "out_offsets", "out_ends", "in_offsets", "in_ends"):
        assert np.array_equal(getattr(kept.links, part), getattr(fresh.links, part)), part
    assert kept.links.rank.sum() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("spoilt", [b"", b"{}\n", b'{"version": 0}\n', b"no book"])
def test_an_invalid_file_is_ignored(folder: Path, spoilt: bytes) -> None:
    (folder / inlinks.FILE).write_bytes(spoilt)
    assert inlinks.open_index(folder) is None


def test_a_truncated_file_is_ignored(folder: Path) -> None:
    make(folder)
    whole = (folder / inlinks.FILE).read_bytes()
    (folder / inlinks.FILE).write_bytes(whole[: len(whole) // 2])
    assert inlinks.open_index(folder) is None


def test_the_index_of_a_large_collection_is_made_in_the_background(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inlink_index, "SMALL_LINKS", 1)
    indexes = InlinkIndexes()
    with contextlib.closing(reading.connect(folder)) as connection:
        assert indexes.of(folder, SqliteReader(connection)) is None, "callers do not wait for it"
        indexes.finish()
        book = indexes.of(folder, SqliteReader(connection))
    assert book is not None
    assert_agrees_with_tables(folder, book)


@pytest.mark.parametrize("wanted", [("links", "target"), ("visits", "url")])
def test_tables_are_the_same_with_and_without_an_index(
    folder: Path, wanted: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, column = wanted
    for url in (*SITE, "https://other.org/x"):
        wish = TableQuery(((column, url),), sort=(column, "source") if table == "links" else ("id",))
        with_index = Browser().page(folder, table, wish)
        with monkeypatch.context() as patched:
            patched.setattr(InlinkIndexes, "of", lambda *_: None)
            without = Browser().page(folder, table, wish)
        assert with_index == without, url
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
def test_a_neighbourhood_equals_that_of_slow_code(
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
    found = neighbourhood(web, int(web.groups[at]), steps)
    assert {key(number[node.place]): node.step for node in found.nodes} == expected
    assert (found.neighbours, found.bounded) == (len(expected) - 1, False)
    shown = [key(number[node.place]) for node in found.nodes]
    counted = {(shown[a], shown[b]): many for a, b, many in found.links}
    for (a, b), many in counted.items():
        assert many == sum((key(x), key(y)) == (a, b) for x, y in pairs)
    assert set(counted) == {(key(a), key(b)) for a, b in pairs if key(a) != key(b) and {key(a), key(b)} <= set(shown)}
    few = neighbourhood(web, int(web.groups[at]), steps, most=2)
    assert few.nodes == found.nodes[:3]
    assert few.neighbours == found.neighbours


def test_links_of_menus_can_be_omitted(folder: Path) -> None:
    book = read(folder).links
    place = {int(identity): at for at, identity in enumerate(book.ids)}
    b = place[url_id(canonical("https://e.org/d/b"))]
    targets = {}
    for menus in (True, False):
        web = web_of(book, Grouping.PAGE, menus=menus)
        targets[menus] = {int(end) for end in web.links(np.array([b]), False)[1]}
    assert targets[True] - targets[False] == {place[url_id(canonical("https://e.org/a"))]}
