"""Sizes of page resources from the visits of checks."""

import contextlib
import sqlite3

import pytest

from periplus.model.visit import Headers
from periplus.model.web import Url
from periplus.store import site_rows
from periplus.store.bodies import pack_headers
from periplus.store.sqlite import schema
from periplus.store.sqlite.listing import SqliteReader
from periplus.urls.canonical import url_id

A, B = "http://h/a.png", "http://h/b.png"
NOT_READ = "media-type-not-read"


def png(length: str = "", status: int = 200, purpose: str = "head", url: str = A, **more):
    fields = (("content-type", "image/png; q=1"), *((("content-length", length),) if length else ()))
    return {
        "url": url,
        "purpose": purpose,
        "outcome": "fetched",
        "status": status,
        "detail": "",
        "wire": 0,
        "fields": fields,
        **more,
    }


def moved(target: str, url: str = A):
    return {
        "url": url,
        "purpose": "head",
        "outcome": "redirected",
        "status": 301,
        "detail": target,
        "wire": 0,
        "fields": (),
    }


def resources(folder, *visits):
    """(media type, bytes) by URL."""
    schema.create(folder)
    with contextlib.closing(sqlite3.connect(folder / schema.DATABASE)) as connection:
        for one in visits:
            row = (
                one["url"],
                one["purpose"],
                one["outcome"],
                one["status"],
                one["detail"],
                one["wire"],
                pack_headers(Headers(one["fields"])),
            )
            connection.execute(
                "INSERT INTO visit (run_id, url_id, text, purpose, started, took_s, outcome, status, "
                "detail, wire_bytes, address, head)"
                " VALUES (1, 0, ?, ?, 0, 0, ?, ?, ?, ?, '', ?)",
                row,
            )
        found = site_rows.part_sizes(SqliteReader(connection))
    names = {url_id(Url(url)): url[-5] for url in (A, B)}
    return {names[url]: (one.media_type, one.size_bytes) for url, one in found.items()}


@pytest.mark.parametrize(
    ("length", "size"), [("70", 70), ("", 0), ("0", 0), ("-7", 0), ("7e3", 0), ("²", 0), ("9" * 30, 10**18 - 1)]
)
def test_the_content_length_is_used_if_it_is_a_number(tmp_path, length, size):
    assert resources(tmp_path, png(length)) == {"a": ("image/png", size)}


def test_only_a_complete_body_gives_its_length(tmp_path):
    visits = png(purpose="check", wire=33), png(purpose="check", wire=16_384, detail=NOT_READ, url=B)
    assert resources(tmp_path, *visits) == {"a": ("image/png", 33), "b": ("image/png", 0)}


def test_the_latest_answer_counts_and_a_failed_head_is_ignored(tmp_path):
    assert resources(tmp_path, png("70"), png("80"), png("5", 405), png("9", url=B), png("5", 404, "check", B)) == {
        "a": ("image/png", 80)
    }


def test_a_redirect_has_the_size_of_its_end_and_a_loop_has_none(tmp_path):
    assert resources(tmp_path, moved(B), png("12", url=B)) == {"a": ("image/png", 12), "b": ("image/png", 12)}
    (tmp_path / "circle").mkdir()
    assert resources(tmp_path / "circle", png("3"), moved(B), moved(A, url=B)) == {}
