"""The rows that a visit brings, whatever the database."""

from __future__ import annotations

from periplus.document.understand import understand
from periplus.model.visit import Fetched, Headers
from periplus.store.rows import link_rows

HOME = "http://a.test/"
HTML = Headers((("content-type", "text/html"),))


def test_rows_of_links_hold_what_sqlite_takes_without_an_adapter():
    """A bool, or a member of an enumeration, costs four times as much to bind as an int, and a page has hundreds."""
    page = (
        b'<main><a href="/a#top">words</a><a href="/b" '
        b'rel="nofollow">more</a></main><footer><img src="/c" alt="c"></footer>'
    )
    rows = link_rows(1, understand(HOME, Fetched(200, HTML, page)), 2.0)
    assert {type(value) for row in rows for value in row} == {int, str, float}
    assert [row[2:8] for row in rows] == [
        ("a", "main", 0, "words", "top", 1),
        ("a", "main", 1, "more", "", 1),
        ("image", "footer", 0, "c", "", 1),
    ]
