"""Archived copies of dead links: every CDX response format is read, the nearest copy wins, requests are polite."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audited import table_of
from periplus.errors import PeriplusError
from periplus.model.audit import Issue, Severity
from periplus.model.ports import Response
from periplus.model.visit import Cause, Cut, Headers
from periplus.settings import settings_from
from periplus_archives.cdx import CdxServer, copies_of, query_url, replay_url, with_copies
from stored import page, stored
from testweb import Site, Web, serve
from testweb.wire import Answer

WAYBACK = "https://archive.test/cdx/search/cdx"
HEAD = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
ROW = ["org,e)/a", "20190301120000", "http://e.org/a", "text/html", "200", "X", "9"]
COPY = ("20190301120000", "http://e.org/a", "200")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([HEAD, ROW]),
        json.dumps({"urlkey": "k", "timestamp": ROW[1], "url": ROW[2], "status": "200"}),
        f"org,e)/a {ROW[1]} " + json.dumps({"url": ROW[2], "status": "200"}),
        " ".join(ROW),
    ],
)
def test_each_cdx_format_is_read(text):
    assert list(copies_of(text.encode())) == [COPY]


@pytest.mark.parametrize("text", ["", "[]", "[[]]", '[["a"], 5]', "{", "{}", "no such thing", "a 1 {]", "[" * 99])
def test_an_invalid_cdx_response_has_no_copies(text):
    assert list(copies_of(text.encode())) == []


@given(st.binary(max_size=80))
def test_reading_a_cdx_response_never_raises(body):
    list(copies_of(body))


def test_the_query_url_escapes_the_link():
    assert query_url(WAYBACK, "http://e.org/a?b=1&c=ž", 1_000_000_000.0) == (
        WAYBACK + "?url=http%3A%2F%2Fe.org%2Fa%3Fb%3D1%26c%3D%C5%BE"
        "&closest=20010909014640&sort=closest&limit=10&output=json"
    )


@pytest.mark.parametrize(
    ("server", "shown"),
    [
        (WAYBACK, "https://archive.test/web/2019/http://e.org/"),
        ("https://archive.test/all/cdx", "https://archive.test/all/2019/http://e.org/"),
        ("https://archive.test/all-cdx", "https://archive.test/all/2019/http://e.org/"),
        ("https://archive.test/index", ""),
    ],
)
def test_the_url_of_a_copy_for_each_kind_of_server(server, shown):
    assert replay_url(server, "2019", "http://e.org/") == shown


class Answers:
    """A transport with these responses in order, and a clock that advances while it waits."""

    def __init__(self, *answers):
        self.answers, self.asked, self.time, self.ready = list(answers), [], 100.0, []

    def start(self, request, before=0.0):
        self.asked.append((self.time, request.url))
        status, body, cause = self.answers.pop(0)
        body = body.encode()
        self.ready = [Response(request, 0.0, 0.0, status, Headers(), body, Cut.NONE, cause, "", "")]

    def wait(self, timeout_s):
        if not self.ready:
            self.time += timeout_s
        ready, self.ready = self.ready, []
        return ready

    def monotonic(self):
        return self.time

    def now(self):
        return self.time


def lines(*rows):
    return "\n".join(json.dumps({"timestamp": stamp, "url": url, "status": status}) for stamp, url, status in rows)


def test_the_nearest_copy_with_status_200_is_used():
    rows = [
        ("20200101000000", "u", "301"),
        ("20150101000000", "u", "200"),
        ("20210101000000", "u", "200"),
        ("x", "u", "200"),
    ]
    answers = Answers((200, lines(*rows), None))
    copy = CdxServer(WAYBACK, answers, answers, 0.5).nearest("http://e.org/", 1_580_000_000.0)  # January 2020
    assert (copy.taken, copy.address) == (1_609_459_200.0, "https://archive.test/web/20210101000000/u")


def test_queries_keep_the_delay_and_failures_return_their_cause():
    answers = Answers((200, "", None), (404, "", None), (429, "", None), (0, "", Cause.TIMEOUT))
    server = CdxServer(WAYBACK, answers, answers, 2.0)
    assert [server.nearest("http://e.org/", 0.0) for _ in range(4)] == [None, None, "status 429", "timeout"]
    times = [time for time, _ in answers.asked]
    assert [later - earlier for earlier, later in pairwise(times)] == [2.0, 2.0, 2.0]


# with a server on loopback

DEAD = Issue(
    "broken-link", Severity.ERROR, "https://e.org/", "404", "https://e.org/gone", "words", "main", "https://e.org/gone"
)
LEFT = replace(DEAD, related="https://e.org/never", cause="https://e.org/never")
OTHER = Issue("title-missing", Severity.WARNING, "https://e.org/", "", "https://e.org/gone", cause="https://e.org/")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    answers = {"https://e.org/": page("Home", "/gone", "/never"), "https://e.org/gone": 404, "https://e.org/never": 404}
    return stored(tmp_path_factory.mktemp("copies") / "c", answers, ["https://e.org/"])


def archive(answer):
    site = Site("archive.test")
    site.routes.exact["/all/cdx"] = answer
    return Web([site])


def settings_at(server, **more):
    return settings_from(
        {"allow_private": True, "resolve": tuple(server.resolve), "mine": ("archive.test",), "delay_s": 0.01} | more
    )


def test_a_dead_link_gets_its_archived_copy(folder):
    def answer(asked):
        there = "gone" in asked.target
        return Answer(
            body=lines(("20190301120000", "https://e.org/gone", "200")).encode() if there else b"", gzip=False
        )

    with serve(archive(answer)) as server:
        address = server.url("archive.test", "/all/cdx")
        done = with_copies(folder, table_of([DEAD, LEFT, OTHER]), address, settings_at(server))
        targets = server.log.targets("archive.test")
    where = address.removesuffix("/cdx") + "/20190301120000/https://e.org/gone"
    assert list(done.issues) == [replace(DEAD, detail=f"404; archived 1 March 2019, 12:00 UTC: {where}"), LEFT, OTHER]
    assert (done.asked, done.copies, done.left, done.fault) == (2, 1, 0, "")
    assert len(targets) == 2 and "closest=19700112134640" in targets[0], "when the link was first seen"


def test_an_archive_that_refuses_is_not_asked_again(folder):
    many = [DEAD, LEFT]
    with serve(archive(lambda asked: Answer(429, b"", gzip=False))) as server:
        done = with_copies(folder, table_of(many), server.url("archive.test", "/all/cdx"), settings_at(server))
    assert (list(done.issues), done.copies) == (many, 0)
    assert "429" in done.fault


def test_a_cdx_server_at_a_private_address_needs_permission(folder):
    done = with_copies(folder, table_of([DEAD]), "http://127.0.0.1:9/cdx", settings_from({}))
    assert done.copies == 0 and "private-address" in done.fault


def test_a_cdx_address_that_is_not_http_is_refused(folder):
    with pytest.raises(PeriplusError):
        with_copies(folder, table_of([DEAD]), "mailto:x@e.org", settings_from({}))
