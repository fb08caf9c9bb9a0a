"""Sizes of embedded files, requested by a check, compared with a web of known sizes."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from voyage import Collection, settings_for

from periplus.api.checking import CheckOrder, check
from periplus.api.crawling import CrawlOrder
from periplus.api.facts import RankOrder
from periplus.api.report import report_data
from periplus.api.site import site_of
from periplus.store.sqlite import reading
from periplus.store.sqlite.listing import SqliteReader
from periplus.urls.canonical import canonical
from testweb import Page, Site, Web, serve
from testweb.wire import Answer

HOME = """<!DOCTYPE html><title>Gallery</title><link rel=stylesheet href=/a.css><link rel=stylesheet href={far}far.css><script src=/a.js></script>
<img src=/one.png alt=""><img src=/two.png alt=""><img src=/moved.png alt=""><img src=/gone.png alt="">
<img src=/secret/three.png alt=""><img src=/endless.png alt="">
<p><a href=/other.html>Other</a> <a href=/paper.pdf>Paper</a></p>"""  # noqa: E501
OTHER = (
    "<!DOCTYPE html><title>Other</title><link rel=stylesheet href=/a.css><img src=/one.png "
    'alt=""><p><a href=/>Home</a></p>'
)


def part(size: int, media_type: str, **more: object) -> Answer:
    return Answer(200, b"x" * size, media_type, gzip=False, **more)


def refusing_head(size: int, media_type: str, status: int):
    return lambda asked: Answer(status, b"") if asked.method == "HEAD" else part(size, media_type)


def silent_to_head(size: int, media_type: str):
    """HEAD succeeds without a length; GET has it."""
    return lambda asked: part(0, media_type, chunked=True) if asked.method == "HEAD" else part(size, media_type)


def gallery() -> Web:
    site, far = Site("a.test"), Site("b.test")
    site.add(Page("/", "Gallery", html=HOME.format(far=far.url("/"))))
    site.add(Page("/other.html", "Other", html=OTHER))
    answers = {
        "/a.css": refusing_head(300, "text/css", 405),
        "/a.js": refusing_head(70, "text/javascript", 501),
        "/one.png": part(2000, "image/png"),
        "/two.png": silent_to_head(5000, "image/png"),
        "/moved.png": Answer(301, b"", "", (("Location", "/new/moved.png"),)),
        "/new/moved.png": silent_to_head(900, "image/png"),
        "/secret/three.png": part(7, "image/png"),
        "/endless.png": part(40, "image/png", chunked=True),
        "/paper.pdf": part(60_000, "application/pdf"),
        "/robots.txt": Answer(200, b"User-agent: *\nDisallow: /secret/\n", "text/plain"),
    }
    for path, answer in answers.items():
        site.answer(path, answer, linked_from=None)
    far.answer("/far.css", part(11, "text/css"), linked_from=None)
    return Web([site, far])


def checked(folder, server, *, external=True, **values):
    settings = settings_for(server, recheck_wait_s=0.1, sitemaps=False, **values)
    end = check(
        CheckOrder(CrawlOrder(folder, (canonical(server.url("a.test")),), settings), external), lambda progress: False
    )
    assert end.state == "done"


@contextlib.contextmanager
def read(folder):
    with contextlib.closing(reading.connect(folder)) as connection:
        yield connection


def whole_site(folder):
    """{class: (bytes, URLs, of unknown size)} of the report."""
    with read(folder) as connection:
        return {
            one.kind.value: (one.size_bytes, one.urls, one.unsized)
            for one in report_data(SqliteReader(connection), "", 0.0).sizes
        }


def linked(folder):
    """Sizes linked from each page in the map, by path."""
    with read(folder) as connection:
        out = io.StringIO()
        site_of(SqliteReader(connection), "", RankOrder(), 0.0).write_json(out, values=("linked",))
    pages, waiting = {}, [json.loads(out.getvalue())]
    while waiting:
        one = waiting.pop()
        waiting += [
            value for value in (one.values() if isinstance(one, dict) else one) if isinstance(value, (dict, list))
        ]
        if isinstance(one, dict) and "url" in one and "linked" in one:
            pages[one["url"].rpartition("/")[2]] = one["linked"]
    return pages


def sizes_of_pages(folder) -> dict[str, int]:
    return {
        url.rpartition("/")[2]: size
        for url, size in Collection(folder).ask("SELECT u.text, p.size FROM page p JOIN url u ON u.id = p.url_id")
    }


def test_totals_are_exact_and_each_part_is_requested_once(tmp_path):
    """A refused HEAD, or one without a length, is followed by GET; broken, disallowed and undeclared sizes stay
    unknown.
    """
    with serve(gallery()) as server:
        checked(tmp_path, server, part_sizes="head")
        asked = [(entry.method, entry.target) for entry in [*server.log.of("a.test"), *server.log.of("b.test")]]
    own = sizes_of_pages(tmp_path)
    assert whole_site(tmp_path) == {
        "pages": (own[""] + own["other.html"], 2, 0),
        "images": (2000 + 5000 + 900, 3, 3),
        "styles": (300 + 11, 2, 0),
        "scripts": (70, 1, 0),
        "documents": (60_000, 1, 0),
    }
    assert [row for row in asked if row[1] == "/one.png"] == [("HEAD", "/one.png")]
    assert [row for row in asked if row[1] == "/two.png"] == [("HEAD", "/two.png"), ("GET", "/two.png")]
    assert [row for row in asked if row[1] == "/new/moved.png"] == [
        ("HEAD", "/new/moved.png"),
        ("GET", "/new/moved.png"),
    ]
    assert [row for row in asked if row[1] == "/a.css"] == [("HEAD", "/a.css"), ("GET", "/a.css")]
    assert [row for row in asked if row[1] == "/endless.png"] == [("HEAD", "/endless.png"), ("GET", "/endless.png")]
    assert not [row for row in asked if "/secret/" in row[1]]
    assert not Collection(tmp_path).sane()


def test_the_size_of_each_page_includes_its_parts_and_is_in_the_map(tmp_path):
    with serve(gallery()) as server:
        checked(tmp_path, server, part_sizes="head")
    own = sizes_of_pages(tmp_path)
    with read(tmp_path) as connection:
        heaviest = {
            page.url.rpartition("/")[2]: page for page in report_data(SqliteReader(connection), "", 0.0).heaviest
        }
    parts = 2000 + 5000 + 900 + 300 + 11 + 70
    assert (sum(heaviest[""].pulled), heaviest[""].unsized) == (own[""] + parts, 3)
    assert (sum(heaviest["other.html"].pulled), heaviest["other.html"].unsized) == (own["other.html"] + 2300, 0)
    behind = linked(tmp_path)
    assert behind[""] == {
        "pages": own["other.html"],
        "documents": 60_000,
        "images": 7900,
        "styles": 311,
        "scripts": 70,
        "unsized": 3,
    }
    assert behind["other.html"] == {"pages": own[""], "images": 2000, "styles": 300}


@pytest.mark.parametrize("values", [{}, {"part_sizes": "none"}])
def test_a_check_changes_no_sizes_by_default(tmp_path, values):
    with serve(gallery()) as server:
        checked(tmp_path, server, **values)
        assert [entry.method for entry in server.log.of("a.test") if entry.target == "/two.png"] == ["HEAD"]
    assert whole_site(tmp_path)["images"] == (0, 0, 6)
    assert set(linked(tmp_path)[""]) == {"pages", "documents"}


def test_parts_of_other_sites_can_be_skipped(tmp_path):
    with serve(gallery()) as server:
        checked(tmp_path, server, part_sizes="head", external=False)
        assert not server.log.of("b.test")
    assert whole_site(tmp_path)["styles"] == (300, 1, 1)
