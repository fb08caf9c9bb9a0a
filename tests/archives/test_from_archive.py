"""Crawls from archives: choice of the capture, polite requests to archive servers only."""

import gzip
import json
from itertools import pairwise

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from made_archives import IDENTICAL, answer, arc, wacz, warc
from periplus.acquire.transport import Wire
from periplus.api.collection import Collection
from periplus.api.crawling import CrawlOrder, crawl, refresh, refresh_order
from periplus.errors import UsageError
from periplus.model.ports import Response
from periplus.model.visit import Cause, Cut, Headers, Request
from periplus.settings import Settings, settings_from
from periplus.urls.canonical import canonical
from periplus_archives.api import export_wacz, import_archives, starts_of_archive
from periplus_archives.captures import Capture, FileArchive, by_nearness
from periplus_archives.cdx import captures_of, mementos_of, original_of, resume_key_of
from periplus_archives.replay import ArchiveTransport, FileSource, ServerSource, end_of, place_of
from stored import page
from testweb import Site, Web, serve
from testweb.wire import PORT, Answer

HOME, NEXT = canonical("http://e.org/"), canonical("http://e.org/a")
LIMITS = Settings().limits


def archive(tmp_path, data, name="x.warc.gz", index=""):
    (tmp_path / "archive").mkdir(exist_ok=True)
    (tmp_path / "archive" / name).write_bytes(data)
    if index:
        (tmp_path / "archive" / "index.cdxj").write_text(index)
    return FileArchive([tmp_path / "archive"], LIMITS)


def bodies(files, url, at=float("inf")):
    """(time, body) of each readable capture, the nearest first."""
    ordered = by_nearness(files.captures(url), url, at)
    answers = [files.answer(capture, Request(url)) for capture in ordered]
    return [(response.started, response.body) for response in answers if response is not None]


# on disk

TWO = warc(answer(HOME, "old", "2019-01-01"), answer(NEXT, "a", "2019-01-01"), answer(HOME, "new", "2021-01-01"))


@pytest.mark.parametrize(
    "data",
    [
        TWO,
        gzip.decompress(TWO),
        gzip.compress(gzip.decompress(TWO)),
        zstandard.compress(gzip.decompress(TWO)),
        wacz(TWO),
    ],
    ids=["members", "plain", "one-member", "zstd", "wacz"],
)
def test_a_capture_can_be_read_from_any_place_of_a_file(tmp_path, data):
    with_name = "x.wacz" if data[:2] == b"PK" else "x.warc"
    files = archive(tmp_path, data, with_name)
    assert len(files) == 3
    assert [body for _, body in bodies(files, HOME)] == [b"new", b"old"]
    assert [body for _, body in bodies(files, HOME, end_of("2019-12-31"))] == [b"old", b"new"]
    assert [body for _, body in bodies(files, NEXT)] == [b"a"]
    assert bodies(files, canonical("http://e.org/none")) == []


def test_a_record_can_be_read_from_any_place_of_an_arc_file(tmp_path):
    files = archive(tmp_path, b"".join(arc((HOME, "home"), (NEXT, "a"))), "x.arc")
    assert [body for _, body in bodies(files, NEXT)] == [b"a"]


def test_an_index_gives_the_offset_and_the_record_the_content(tmp_path):
    """A line with the offset of another page's record is ignored; a file without a line is read completely."""
    values = f'"url": "{NEXT}", "status": "200", "digest": "X", "offset": "0"'
    line = f'org,e)/a 20190101000000 {{{values}, "filename": "%s"}}\n'
    files = archive(tmp_path, TWO, index=line % "x.warc.gz")
    assert (len(files), bodies(files, NEXT)) == (1, [])
    files = archive(tmp_path, TWO, index=line % "other.warc.gz")
    assert [body for _, body in bodies(files, NEXT)] == [b"a"]


def test_a_revisit_has_the_body_of_its_original(tmp_path):
    fields = {"WARC_Payload_Digest": "sha1:AAA"}
    again = answer(HOME, "", "2021-01-01", kind="revisit", WARC_Profile=IDENTICAL, **fields)
    lost = answer(NEXT, "", "2021-01-01", kind="revisit", WARC_Profile=IDENTICAL, WARC_Payload_Digest="sha1:BBB")
    files = archive(tmp_path, warc(answer(HOME, "same", "2019-01-01", **fields), again, lost))
    assert [body for _, body in bodies(files, HOME)] == [b"same", b"same"]
    assert bodies(files, NEXT) == [], "its original is missing"


def test_a_304_capture_is_no_page(tmp_path):
    """The archive's crawler sent If-None-Match, so the response has no body."""
    unchanged = answer(HOME, "", "2021-01-01", status="304 Not Modified")
    files = archive(tmp_path, warc(answer(HOME, "old", "2019-01-01"), unchanged, answer(NEXT, "", status="304 x")))
    assert [body for _, body in bodies(files, HOME)] == [b"old"]
    assert bodies(files, NEXT) == []


def test_a_folder_without_archives_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no WARC, ARC or WACZ"):
        FileArchive([tmp_path], LIMITS)


# which capture

S = [
    Capture("http://e.org/", 10.0, 200, ""),
    Capture("http://e.org/", 20.0, 503, ""),
    Capture("https://e.org/", 21.0, 200, ""),
]


@pytest.mark.parametrize(("at", "first"), [(0.0, 0), (20.0, 0), (float("inf"), 0)])
def test_an_archived_failure_is_used_only_without_another_capture(at, first):
    assert by_nearness(S, HOME, at)[0] == S[first]
    assert by_nearness(S[1:2], HOME, at) == [S[1]]


def test_a_url_without_capture_is_answered_by_another_spelling(tmp_path):
    moved = answer("http://e.org/", "", "2019-01-01", status="301 Moved", head=[("Location", "https://e.org/")])
    files = archive(tmp_path, warc(moved, answer("http://www.e.org/", "home", "2020-01-01")))
    source = FileSource(files, float("inf"), Wire(LIMITS, Settings().identity, 1), Ticking())
    transport = ArchiveTransport(NoTransport(), source, Settings().politeness, Ticking())
    for url in ("https://e.org/", "http://e.org/", "http://e.org/none"):
        transport.start(Request(canonical(url)))
    home, moved_home, none = transport.wait(0.0)
    assert (home.status, home.body) == (200, b"home"), "not the redirect, since it leads to the requested URL"
    assert moved_home.status == 301
    assert none.cause is Cause.NOT_ARCHIVED


@pytest.mark.parametrize("date", ["2019-13-01", "yesterday", "1.1.2019"])
def test_an_invalid_date_is_refused(date):
    with pytest.raises(UsageError):
        end_of(date)


@pytest.mark.parametrize(
    "text", ["/no/such/file", "https://archive.test/cdx", "cdx:https://archive.test/index", "cdx:x:"]
)
def test_an_invalid_archive_address_is_refused(text):
    with pytest.raises(UsageError):
        place_of(text, "")


# servers


class Ticking:
    """A clock that advances only when its time is set."""

    def __init__(self):
        self.time = 100.0

    def monotonic(self):
        return self.time

    def now(self):
        return 1_600_000_000.0 + self.time


class NoTransport:
    """A transport that must not be used."""

    def start(self, request, before=0.0):
        raise AssertionError(f"{request.url} was requested")

    def wait(self, timeout_s):
        return ()


class Served:
    """A transport with responses by path, each given once. It records the requests with their times."""

    def __init__(self, clock, answers):
        self.clock, self.answers, self.asked, self.ready = clock, answers, [], []

    def start(self, request, before=0.0):
        self.asked.append((self.clock.time, request.url, request.fields))
        path = request.url.partition("archive.test")[2]
        status, body, headers = self.answers.pop(path, (404, "", {}))
        fields = Headers(tuple(headers.items()))
        self.ready.append(Response(request, 0.0, 0.0, status, fields, body.encode(), Cut.NONE, None, "", ""))

    def wait(self, timeout_s):
        if not self.ready:
            self.clock.time += timeout_s
        ready, self.ready = self.ready, []
        return ready


def asked(place, answers, *urls, at="", **settings):
    """(responses for the URLs, requests to the archive, failure)."""
    clock = Ticking()
    served, politeness = Served(clock, dict(answers)), settings_from(settings).politeness
    wire = Wire(LIMITS, Settings().identity, 1)
    transport = ArchiveTransport(served, ServerSource(place_of(place, at), politeness, wire, clock), politeness, clock)
    for url in urls:
        transport.start(Request(canonical(url)))
    got = []
    for _ in range(500):
        got += transport.wait(0.25)
        if not transport.in_flight:
            break
    return got, served.asked, transport.failure


CDX = "cdx:http://archive.test/web/cdx"
LIST = "/web/cdx?url=e.org&matchType=host&limit=5000&output=json&showResumeKey=true"
ROWS = [["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]]
ROWS += [["org,e)/", stamp, HOME, "text/html", "200", "X", "9"] for stamp in ("20190101000000", "20210101000000")]
MEMENTO = {"memento-datetime": "Fri, 01 Jan 2021 00:00:00 GMT"}


def test_a_host_is_listed_once_and_a_page_needs_one_request():
    answers = {
        LIST: (200, json.dumps(ROWS), {}),
        f"/web/20210101000000id_/{HOME}": (
            200,
            "home",
            MEMENTO | {"x-archive-orig-server": "Old", "content-type": "text/html"},
        ),
    }
    (home, none), requests, failure = asked(CDX, answers, HOME, NEXT)
    assert (home.body, home.started, failure) == (b"home", 1_609_459_200.0, "")
    assert home.sent.fields == (("server", "Old"), ("content-type", "text/html"))
    assert none.cause is Cause.NOT_ARCHIVED
    assert [url.partition("archive.test")[2] for _, url, _ in requests] == ["/robots.txt", *answers]
    assert all(later - earlier >= 0.5 for earlier, later in pairwise(time for time, _, _ in requests)), "the delay"


def test_a_list_continues_with_its_resume_key():
    more = [*ROWS[:1], ["org,e)/a", "20200101000000", NEXT, "text/html", "200", "X", "9"]]
    answers = {
        LIST: (200, json.dumps([*ROWS, [], ["org,e)/ 2021"]]), {}),
        LIST + "&resumeKey=org%2Ce%29%2F%202021": (200, json.dumps(more), {}),
        f"/web/20200101000000id_/{NEXT}": (200, "a", MEMENTO),
    }
    (found,), _, _ = asked(CDX, answers, NEXT)
    assert found.body == b"a"


def test_an_archived_redirect_leads_to_its_original_target():
    answers = {
        LIST: (200, json.dumps(ROWS), {}),
        f"/web/20190101000000id_/{HOME}": (302, "", MEMENTO | {"location": "/web/20190101000000id_/http://e.org/en"}),
    }
    (moved,), _, _ = asked(CDX, answers, HOME, at="2019-01-01")
    assert (moved.status, moved.headers.get("location")) == (302, "http://e.org/en")


@pytest.mark.parametrize(
    ("robots", "why"),
    [("User-agent: *\nDisallow: /web/", "robots.txt line 2"), ("User-agent: *\nDisallow: /", "robots.txt line 2")],
)
def test_an_archive_that_disallows_robots_is_not_used(robots, why):
    got, requests, failure = asked(CDX, {"/robots.txt": (200, robots, {})}, HOME, NEXT)
    assert [response.cause for response in got] == [Cause.CANCELLED] * 2
    assert (why in failure, len(requests)) == (True, 1)


def test_an_archive_that_refuses_is_retried_and_finally_given_up():
    busy = {LIST: (429, "", {"retry-after": "7"})}
    (first,), requests, _ = asked(CDX, busy, HOME)
    assert first.cause is Cause.NOT_ARCHIVED and requests[2][0] - requests[1][0] >= 7.0
    (first,), requests, failure = asked(CDX, {LIST: (503, "", {})}, HOME, retries=0)
    assert (first.cause, len(requests)) == (Cause.CANCELLED, 2)
    assert failure == "the archive archive.test:80 does not answer: status 503"


def test_no_host_other_than_the_archive_is_requested():
    answers = {LIST: (302, "", {"location": "http://e.org/"})}
    (first,), requests, failure = asked(CDX, answers, HOME)
    assert first.cause is Cause.CANCELLED and "another host, e.org" in failure
    assert all("//archive.test/" in url for _, url, _ in requests)


GATE = "memento:http://archive.test/gate"
LINKS = (
    '<http://e.org/>; rel="original", <http://archive.test/web/20190101000000/http://e.org/>; rel="first memento"; '
    'datetime="Tue, 01 Jan 2019 00:00:00 GMT",\n <http://archive.test/web/20210101000000mp_/http://e.org/>; '
    'rel="last memento"; datetime="Fri, 01 Jan 2021 00:00:00 GMT"'
)


@pytest.mark.parametrize(
    "gate",
    [
        (302, "", {"location": f"http://archive.test/web/20190101000000/{HOME}"}),
        (200, "", {"content-location": f"http://archive.test/web/20190101000000mp_/{HOME}"}),
        (200, "", {"link": LINKS}),
        (200, LINKS, {"content-type": "application/link-format"}),
    ],
    ids=["redirect", "content-location", "link", "timemap"],
)
def test_a_timegate_or_timemap_leads_to_the_nearest_capture(gate):
    answers = {f"/gate/{HOME}": gate, f"/web/20190101000000id_/{HOME}": (200, "old", {"memento-datetime": "x"})}
    (found,), requests, _ = asked(GATE, answers, HOME, at="2019-03-01")
    assert found.body == b"old"
    assert requests[1][2] == ("Accept-Datetime: Fri, 01 Mar 2019 23:59:59 GMT",)


@given(st.text(max_size=80), st.binary(max_size=80))
def test_reading_a_servers_response_never_raises(links, body):
    mementos_of(links, HOME)
    captures_of(body)
    resume_key_of(body)
    original_of(links)


# whole crawls


def crawled(folder, archive, *starts, **values):
    settings = settings_from({"from_archive": str(archive), "index": False} | values)
    return crawl(CrawlOrder(folder, tuple(map(canonical, starts)), settings), lambda progress: False)


def states(folder):
    with Collection(folder) as collection:
        return {row.url: (row.state, row.reason, row.status, row.depth, row.title) for row in collection.pages()}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    records = warc(
        answer(HOME, page("Home", "/a", "/gone", "/moved", "/lost"), "2019-01-01"),
        answer(NEXT, page("A then", "/"), "2019-01-01"),
        answer("http://e.org/gone", "no", "2019-01-01", status="404 Not Found"),
        answer("http://e.org/moved", "", "2019-01-01", status="301 Moved", head=[("Location", "/a?x=1")]),
        answer("http://e.org/a?x=1", page("X"), "2019-01-01"),
        answer("http://e.org/down", page("X"), "2019-01-01", status="503 Busy", head=[("Retry-After", "600")]),
        answer(NEXT, page("A now", "/down"), "2021-06-01"),
    )
    path = tmp_path_factory.mktemp("package") / "e.wacz"
    path.write_bytes(wacz(records, HOME))
    return path


def test_a_crawl_from_an_archive_equals_an_import(tmp_path, package):
    assert starts_of_archive(str(package)) == (HOME,)
    import_archives(tmp_path / "imported", [package])
    end = crawled(tmp_path / "c", package, HOME)
    assert (end.state, end.counts.waiting) == ("done", 0)
    assert states(tmp_path / "c") == states(tmp_path / "imported")
    assert states(tmp_path / "c")["http://e.org/lost"][1] == "not-in-archive"


def test_a_date_selects_the_capture_and_pages_have_its_time(tmp_path, package):
    crawled(tmp_path / "c", package, HOME, at="2020-01-01")
    with Collection(tmp_path / "c") as collection:
        rows = {row.url: row for row in collection.pages()}
    assert rows[NEXT].title == "A then"
    assert rows[NEXT].visited == "2019-01-01T00:00:00Z"
    assert "http://e.org/down" not in rows


def test_a_crawl_from_an_archive_can_be_resumed(tmp_path, package):
    crawled(tmp_path / "c", package, HOME, max_pages=2)
    assert crawled(tmp_path / "c", package, HOME).went_on
    crawled(tmp_path / "whole", package, HOME)
    assert states(tmp_path / "c") == states(tmp_path / "whole")


def test_a_refresh_with_a_later_date_reads_later_captures(tmp_path, package):
    crawled(tmp_path / "c", package, HOME, at="2019-06-01")
    end = refresh(refresh_order(tmp_path / "c", {"at": "2022-01-01"}), lambda progress: False)
    assert end.end.state == "done"
    assert {finding.value: count for finding, count in end.findings.items() if count} == {"changed": 1, "unchanged": 4}
    assert states(tmp_path / "c")[NEXT][4] == "A now"


def test_the_live_site_is_not_requested(tmp_path):
    """The live site gets no request, and pages that the archive lacks stay unknown."""
    site = Site("a.test")
    site.routes.exact["/"] = lambda request: Answer(body=page("Home", "/b").encode())
    site.routes.exact["/b"] = lambda request: Answer(body=page("B").encode())
    with serve(Web([site])) as server:
        home = server.url("a.test", "/")
        (tmp_path / "x.warc.gz").write_bytes(warc(answer(home, page("Then", "/b", "/c"))))
        live = {"allow_private": True, "resolve": tuple(server.resolve)}
        end = crawled(tmp_path / "c", tmp_path / "x.warc.gz", home, **live)
        assert (end.state, len(server.log)) == ("done", 0)
    reasons = {url: row[1] for url, row in states(tmp_path / "c").items()}
    assert reasons == {home: "ok", home + "b": "not-in-archive", home + "c": "not-in-archive"}


def test_a_start_missing_from_the_archive_fails_with_a_message(tmp_path, package):
    end = crawled(tmp_path / "c", package, "http://other.org/")
    assert (end.state, "not in the archive" in end.note) == ("failed", True)


def test_an_exported_archive_can_be_crawled_from_a_server(tmp_path, package):
    """A CDX server like pywb on loopback: one list, one request per page, no other host."""
    crawled(tmp_path / "c", package, HOME)
    export_wacz(tmp_path / "c", tmp_path / "ours.wacz", 1_700_000_000.0)
    files = FileArchive([tmp_path / "ours.wacz"], LIMITS)
    urls = [HOME, NEXT, *(f"http://e.org/{path}" for path in ("gone", "moved", "a?x=1", "down"))]
    stored = {url: files.answer(files.captures(url)[0], Request(url)) for url in urls}

    def index(request):
        stamp = "20190101000000"
        lines = [json.dumps({"timestamp": stamp, "url": url, "status": "200"}) for url in urls]
        return Answer(body="\n".join(lines).encode(), gzip=False)

    def shown(request):
        one = stored[request.target.partition("id_/")[2]]
        fields = {"Memento-Datetime": "Tue, 01 Jan 2019 00:00:00 GMT"}
        if one.headers.get("location"):
            fields["Location"] = f"http://archive.test:{PORT}/all/20190101000000id_/" + "http://e.org/a?x=1"
        return Answer(one.status, one.body, headers=tuple(fields.items()), gzip=False)

    site = Site("archive.test")
    site.routes.exact["/all/cdx"] = index
    site.routes.prefixes["/all/2019"] = shown
    with serve(Web([site])) as server:
        live = {"allow_private": True, "resolve": tuple(server.resolve), "mine": ("archive.test",), "delay_s": 0.01}
        end = crawled(tmp_path / "again", "cdx:" + server.url("archive.test", "/all/cdx"), HOME, **live)
        assert {entry.host for entry in server.log} == {"archive.test"}
    assert end.state == "done"
    assert states(tmp_path / "again") == states(tmp_path / "c")
