"""SQL views agree with their description, and header fields are read back."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from periplus.model.tables import VIEWS
from periplus.model.visit import Headers
from periplus.store.bodies import pack_headers, unpack_headers
from periplus.store.sqlite import schema
from stored import page, stored

SITE = {
    "https://e.org/": page("Home", "/a", "/b", "https://x.org/"),
    "https://e.org/a": 404,
    "https://e.org/b": "/c",
    "https://e.org/c": page("C", "/"),
}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    folder = stored(tmp_path_factory.mktemp("views"), SITE, ["https://e.org/"])
    connection = sqlite3.connect(folder / schema.DATABASE)  # plain SQLite, as in any other program
    connection.execute(
        "INSERT INTO rendering SELECT id, 0.5, 2, 1, '{}', '', '', 0.25, 0.0, x'00', 9, x'', NULL FROM url LIMIT 1"
    )
    connection.commit()
    yield connection
    connection.close()


@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
def test_a_view_has_the_described_columns(database, view):
    cursor = database.execute(f"SELECT * FROM {view.name}")
    assert [column[0] for column in cursor.description] == [column.name for column in view.columns]
    kinds = {"text": str, "time": str, "integer": int, "boolean": int, "real": float}
    rows = cursor.fetchall()
    assert rows
    for row in rows:
        for value, column in zip(row, view.columns, strict=True):
            assert value is None or type(value) is kinds[column.kind], column.name


def test_the_view_of_pages_has_requested_urls(database):
    found = {row[0]: row[1:] for row in database.execute("SELECT url, state, status, reason, rule, title FROM pages")}
    assert found == {
        "https://e.org/": ("fetched", 200, "ok", None, "Home"),
        "https://e.org/a": ("failed", 404, "not-found", None, None),
        "https://e.org/b": ("excluded", 301, "redirect", "https://e.org/c", None),
        "https://e.org/c": ("fetched", 200, "ok", None, "C"),
    }


def test_the_view_of_sites_has_totals(database):
    found = database.execute("SELECT name, pages_total, pages_fetched, pages_failed FROM sites ORDER BY id").fetchall()
    assert found == [("e.org", 3, 2, 1), ("x.org", 0, 0, 0)]


NAMES = st.text(st.characters(codec="ascii", exclude_characters=":\n\r \0"), min_size=1, max_size=12)
VALUES = st.text(st.characters(codec="latin-1", exclude_characters="\n\r\0"), max_size=40)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=8), VALUES)
def test_header_fields_are_read_back(fields, line):
    headers = Headers(tuple(fields), line)
    assert unpack_headers(pack_headers(headers)) == headers


def test_common_header_fields_are_stored_compactly():
    fields = (
        ("server", "nginx"),
        ("date", "Sat, 21 Nov 2026 02:40:11 GMT"),
        ("content-type", "text/html; charset=utf-8"),
        ("content-encoding", "gzip"),
    )
    headers = Headers((*fields, ("vary", "Accept-Encoding"), ("connection", "keep-alive")), "HTTP/1.1 200 OK")
    assert len(pack_headers(headers)) < 50
