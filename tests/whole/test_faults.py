"""Results of URLs of misbehaving servers: one host per fault, crawled together; some faults need their own crawl."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from voyage import Collection, Served, command, crawled, environment, flags_for, served_apart, told

from periplus.acquire import discovery
from periplus.model.visit import Reason
from periplus.store.sqlite import schema
from testweb import Page, Reset, Server, Site, Web, content, faults, serve
from testweb.wire import Answer, head, raw

AWAY = Site("elsewhere.test")
AWAY.add(Page("/", "Elsewhere", ("Another harbour.",)))
GONE_PORT = 1  # closed port


def _silent(site: Site, path: str) -> str:
    return faults.silent(site, path, 30.0)


def _status(code: int) -> Callable[[Site, str], str]:
    return lambda site, path: faults.status(site, path, code)


def _early_cut(site: Site, path: str) -> str:
    """The connection ends after a complete header, without a byte of the body."""
    return site.answer(path, raw(head(200, ("Content-Length", "5000")), status=200), Reason.TRUNCATED)


def _bad_status_line(site: Site, path: str) -> str:
    return site.answer(path, raw(b"HTTP/1.1 abc What\r\nContent-Length: 0\r\n\r\n"), Reason.BAD_ANSWER)


def _wrong_type(site: Site, path: str) -> str:
    return site.answer(path, Answer(body=b"GIF89a" + bytes(100), media_type="text/html"), Reason.OK)


def _no_type(site: Site, path: str) -> str:
    return site.answer(path, Answer(body=b"<!doctype html><title>Untyped</title><p>Html.", media_type=""), Reason.OK)


def _many_members(site: Site, path: str) -> str:
    return site.answer(
        path,
        Answer(200, b"\x1f\x8b" * 5000, headers=(("Content-Encoding", "gzip, gzip, gzip, gzip, gzip"),), gzip=False),
        Reason.TRUNCATED,
    )


# path -> (fault, reason, part of the rule)
PLANTS: dict[str, tuple[Callable[[Site, str], str], Reason, str]] = {
    "always-500": (_status(500), Reason.SERVER_ERROR, ""),
    "502": (_status(502), Reason.SERVER_ERROR, ""),
    "404": (_status(404), Reason.NOT_FOUND, ""),
    "410": (_status(410), Reason.NOT_FOUND, ""),
    "400": (_status(400), Reason.CLIENT_ERROR, ""),
    "401": (_status(401), Reason.REFUSED, ""),
    "403": (_status(403), Reason.REFUSED, ""),
    "451": (_status(451), Reason.REFUSED, ""),
    "999": (_status(999), Reason.REFUSED, ""),
    "always-429": (_status(429), Reason.REFUSED, ""),
    "login": (faults.login, Reason.REFUSED, ""),
    "flaky-500": (lambda site, path: faults.passing(site, path, 500, 2), Reason.OK, ""),
    "flaky-503": (lambda site, path: faults.passing(site, path, 503, 1), Reason.OK, ""),
    "truncated": (faults.truncated, Reason.TRUNCATED, "shorter-than-declared"),
    "truncated-chunks": (faults.truncated_chunks, Reason.TRUNCATED, "shorter-than-declared"),
    "truncated-gzip": (faults.truncated_gzip, Reason.TRUNCATED, "shorter-than-declared"),
    "wrong-encoding": (faults.wrong_encoding, Reason.TRUNCATED, "bad-content-encoding"),
    "many-encodings": (_many_members, Reason.TRUNCATED, "bad-content-encoding"),
    "early-cut": (_early_cut, Reason.TRUNCATED, "shorter-than-declared"),
    "torn": (faults.reset_within, Reason.TRUNCATED, "shorter-than-declared"),
    "long-header": (faults.long_header, Reason.BAD_ANSWER, "header-too-long"),
    "many-headers": (faults.many_headers, Reason.BAD_ANSWER, "header-too-long"),
    "not-http": (faults.not_http, Reason.BAD_ANSWER, "not-http"),
    "bad-status-line": (_bad_status_line, Reason.BAD_ANSWER, "not-http"),
    "no-location": (lambda site, path: faults.redirect_badly(site, path, None), Reason.BAD_ANSWER, ""),
    "bad-location": (lambda site, path: faults.redirect_badly(site, path, "http://["), Reason.BAD_ANSWER, ""),
    "reset": (faults.reset, Reason.UNREACHABLE, "connection-lost"),
    "empty-reply": (faults.empty_reply, Reason.UNREACHABLE, "connection-lost"),
    "silent": (_silent, Reason.UNREACHABLE, "no-first-byte"),
    "slow": (lambda site, path: faults.slow(site, path, 0.2), Reason.OK, ""),
    "drip": (lambda site, path: faults.drip(site, path, 0.05), Reason.TRUNCATED, "time-limit"),
    "flood": (faults.flood, Reason.TRUNCATED, "body-limit"),
    "wrong-type": (_wrong_type, Reason.UNREADABLE, "image/gif, sent as text/html"),
    "no-type": (_no_type, Reason.OK, ""),
    "zip": (lambda site, path: content.big_binary(site, path, 8), Reason.OTHER_MEDIA, "media-type-not-read"),
    "wreck": (content.broken_html, Reason.OK, ""),
    "self": (lambda site, path: faults.redirect_loop(site, path, 1), Reason.BAD_ANSWER, ""),
    "away": (lambda site, path: faults.redirect_away(site, path, AWAY), Reason.REDIRECT, "http://elsewhere.test"),
}
# requests
RETRIED = {
    "always-500": 3,
    "502": 3,
    "always-429": 3,
    "flaky-500": 3,
    "flaky-503": 2,
    "reset": 3,
    "empty-reply": 3,
    "silent": 3,
}


def fault_web() -> Web:
    web = Web([AWAY])
    for name, (plant, _, _) in PLANTS.items():
        site = web.site(f"{name}.test")
        site.add(Page("/", f"Home of {name}", ("One link here leads to trouble.",)))
        site.add(Page("/good.html", f"A quiet page of {name}", ("Nothing is wrong here.",)), "/")
        plant(site, f"/{name}")
    return web


LIMITS = {
    "body_bytes": 300_000,
    "first_byte_timeout_s": 0.6,
    "total_timeout_s": 1.0,
    "host_strikes": 9,
    "sitemaps": False,
}


@pytest.fixture(scope="module")
def harm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Collection]]:
    """All faults, crawled at once."""
    with serve(fault_web()) as server:
        collection, _ = crawled(tmp_path_factory.mktemp("harm"), server, *(f"{name}.test" for name in PLANTS), **LIMITS)
        yield server, collection


@pytest.mark.parametrize("name", PLANTS)
def test_a_fault_has_its_reason(harm: tuple[Server, Collection], name: str) -> None:
    server, collection = harm
    _, reason, rule = PLANTS[name]
    row = collection.urls[server.url(f"{name}.test", f"/{name}")]
    assert (row.reason, rule in row.rule) == (reason, True), row
    assert collection.reasons[server.url(f"{name}.test", "/good.html")] is Reason.OK, "the host's other page"
    assert len(collection.visits(row.url)) == RETRIED.get(name, 1)
    # one is logged only at its end; for the others libcurl repeats the request on reused connections
    if name not in ("silent", "reset", "empty-reply"):
        assert server.log.count(f"/{name}") == RETRIED.get(name, 1)


def test_faults_leave_the_collection_consistent(harm: tuple[Server, Collection]) -> None:
    assert harm[1].sane() == []
    assert Reason.BUG not in harm[1].reasons.values()
    assert Reason.WAITING not in harm[1].reasons.values()


def test_an_unwanted_body_is_not_read(harm: tuple[Server, Collection]) -> None:
    """Of 8 MiB the server sends only what fits into buffers."""
    server, _ = harm
    assert max(entry.body_bytes for entry in server.log.of("zip.test") if entry.target == "/zip") < 4 << 20


def test_other_sites_are_recorded_and_not_requested(harm: tuple[Server, Collection]) -> None:
    server, collection = harm
    assert server.log.of("elsewhere.test") == []
    assert collection.reasons[server.url("elsewhere.test")] is Reason.SCOPE


def redirecting() -> Site:
    site = Site("a.test")
    site.add(Page("/", "Crossroads", ("Signposts.",)))
    site.add(Page("/end.html", "The end", ("All roads lead here.",)))
    faults.redirect_chain(site, "/chain", 3, "/end.html", 301)
    faults.redirect_loop(site, "/loop", 3)
    faults.redirect_without_end(site, "/r")
    return site


def test_redirects_chain_loop_and_endless(tmp_path: Path) -> None:
    with serve(redirecting()) as server:
        collection, _ = crawled(tmp_path, server, "a.test", redirect_hops=5, delay_s=0.005)
        reasons, depths = collection.reasons, collection.depths
        assert [reasons[server.url("a.test", path)] for path in ("/chain", "/chain/1", "/chain/2", "/end.html")] == [
            Reason.REDIRECT
        ] * 3 + [Reason.OK]
        assert depths[server.url("a.test", "/end.html")] == 1, "a redirect is no click"
        assert [server.log.count(path) for path in ("/loop", "/loop/1", "/loop/2")] == [1, 1, 1]
        assert [server.log.count(f"/r?n={n}") for n in range(1, 8)] == [1, 1, 1, 1, 1, 0, 0]
        assert reasons[server.url("a.test", "/r?n=5")] is Reason.BAD_ANSWER
        assert ("redirect" in {row[2] for row in collection.links}) is True


def test_a_url_that_redirects_to_another_spelling_is_fetched_with_it(tmp_path: Path) -> None:
    site = Site("a.test")
    site.add(Page("/", "Crossroads", ("Signposts.",)))
    site.add(Page("/~u.html", "The user", ("At home.",)))
    faults.redirect_chain(site, "/%7Eu.html", 1, "/~u.html", 301)
    faults.redirect_chain(site, "/%7Ecircle", 1, "/~circle")
    faults.redirect_chain(site, "/~circle", 1, "/%7Ecircle")
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test", redirect_hops=4, delay_s=0.005)
        url = server.url("a.test", "/~u.html")
        assert (collection.reasons[url], server.url("a.test", "/%7Eu.html") in collection.reasons) == (Reason.OK, False)
        assert (server.log.count("/%7Eu.html"), server.log.count("/~u.html")) == (1, 1)
        assert server.log.count("/%7Ecircle") + server.log.count("/~circle") == 5, (
            "as many as there may be hops, and the first"
        )
        assert {reason for url, reason in collection.reasons.items() if "circle" in url} == {Reason.BAD_ANSWER}


@pytest.mark.parametrize("form", ["1", "date+2"])
@pytest.mark.parametrize("code", [429, 503])
def test_rfc9110_retry_after_is_waited_for(tmp_path: Path, code: int, form: str) -> None:
    """Seconds and dates, checked in the server log; the whole host waits, and all its pages are fetched in the end."""
    site = Site("a.test")
    site.add(Page("/", "Busy", ("Come back later.",)))
    faults.passing(site, "/busy", code, 1, form)
    site.add(Page("/other.html", "Another", ("Another page.",)), "/")
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test", sitemaps=False)
        entries = server.log.of("a.test")
        at = next(number for number, entry in enumerate(entries) if entry.status == code)
        wait = entries[at + 1].arrived - entries[at].arrived
        assert 0.97 <= wait < 3.5  # a date has whole seconds: two may be little more than one
        assert set(collection.reasons.values()) == {Reason.OK}


def test_a_dead_host_is_suspended_and_given_up_while_others_continue(tmp_path: Path) -> None:
    """Gaps between attempts grow; its pages are not reported as broken."""
    web = Web([Site("a.test"), Site("dies.test")])
    web.sites["a.test"].add(Page("/", "Alive", ("Well.",)))
    for number in range(20):
        web.sites["a.test"].add(Page(f"/{number}.html", f"Well {number}", (f"All is well at {number}.",)), "/")
    dying = web.sites["dies.test"]
    dying.add(Page("/", "Dying", ("Farewell.",)))
    for number in range(6):
        faults.reset(dying, f"/{number}")
    with serve(web) as server:
        collection, _ = crawled(tmp_path, server, "a.test", "dies.test", retry_wait_s=0.1, sitemaps=False)
        gaps = server.log.gaps("dies.test")[2:]
        assert all(later > 1.6 * earlier for earlier, later in itertools.pairwise(gaps)), gaps
        rest = {row.reason for url, row in collection.urls.items() if "dies.test" in url and not url.endswith("/")}
        assert rest <= {Reason.HOST_DOWN, Reason.UNREACHABLE} and Reason.HOST_DOWN in rest
        assert all(row.rule for row in collection.urls.values() if row.reason is Reason.HOST_DOWN)
        last_of_a = server.log.of("a.test")[-1].arrived
        assert len(server.log.of("a.test")) == 22 and last_of_a < server.log.of("dies.test")[-1].arrived


def test_a_recovered_host_is_crawled(tmp_path: Path) -> None:
    site = Site("a.test")
    site.add(Page("/", "Home", ("Home.",)))
    for number in range(4):
        site.add(Page(f"/{number}.html", f"Page {number}", (f"Page {number}.",)), "/")
    plain = dict(site.routes.exact)
    down: set[int] = set()

    def flicker(path: str) -> Callable[[object], object]:
        def reply(asked: object) -> object:
            if len(down) < 3:
                down.add(asked.serial)
                return raw(Reset())
            return plain[path](asked)

        return reply

    for number in range(4):
        site.routes.exact[f"/{number}.html"] = flicker(f"/{number}.html")
    with serve(site) as server:
        collection, end = crawled(tmp_path, server, "a.test")
        assert end.state == "done" and set(collection.reasons.values()) == {Reason.OK}


def test_missing_name_and_closed_port(tmp_path: Path) -> None:
    """A missing name and a closed port: given up soon, and requested again by the next run."""
    with serve(Site("a.test")) as server:
        starts = ("http://no-such-name.invalid/", f"http://127.0.0.1:{GONE_PORT}/")
        schema.create(tmp_path)  # a collection that a crawl creates and cannot fill is deleted
        collection, end = crawled(tmp_path, server, *starts)
        assert end.state == "failed" and end.note
        assert [(row.reason, bool(row.rule)) for row in collection.urls.values()] == [(Reason.HOST_DOWN, True)] * 2
        before = len(collection.visits())
        crawled(tmp_path, server, *starts)
        assert len(collection.visits()) > before


def test_private_addresses_are_refused_unless_allowed(tmp_path: Path) -> None:
    """Without retries, which would take an hour; requested when a later run allows them."""
    site = Site("a.test")
    site.add(Page("/", "Inside", ("Behind the wall.",)))
    with serve(site) as server:
        schema.create(tmp_path)  # a collection that a crawl creates and cannot fill is deleted
        collection, end = crawled(tmp_path, server, "a.test", allow_private=False, retry_wait_s=3_600.0)
        assert (end.state, collection.reasons[server.url("a.test")]) == ("failed", Reason.PRIVATE)
        assert server.log.of("a.test") == []
        crawled(tmp_path, server, "a.test")
        assert collection.reasons[server.url("a.test")] is Reason.OK


def test_a_false_charset_does_no_harm(tmp_path: Path) -> None:
    site = Site("a.test")
    site.add(Page("/", "Liars", ("Some pages lie.",)))
    content.charset_lie(site)
    site.answer(
        "/unknown", Answer(body="<title>Unknown ř</title>".encode(), media_type="text/html; charset=klingon"), Reason.OK
    )
    site.answer("/utf16", Answer(body="<title>Wide</title>".encode("utf-16"), media_type="text/html"), Reason.OK)
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test")
        assert set(collection.reasons.values()) == {Reason.OK}
        assert collection.titles[server.url("a.test", "/utf16")] == "Wide"
        assert (
            "lže" in collection.titles[server.url("a.test", "/liar.html")]
            or "�" in collection.titles[server.url("a.test", "/liar.html")]
        )


def test_a_bug_costs_one_page_and_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is recorded as our bug; nothing is lost except links that only this page has."""
    site = Site("a.test")
    site.add(Page("/", "Home", ("Home.",)))
    for number in range(5):
        site.add(Page(f"/{number}.html", f"Page {number}", (f"Page {number}.",)), "/")
    site.link("/2.html", "/4.html", "four")
    honest = discovery.understand

    def broken(url: str, fetched: object, **more: object) -> object:
        if url.endswith("/2.html"):
            raise ZeroDivisionError("planted")
        return honest(url, fetched, **more)

    monkeypatch.setattr(discovery, "understand", broken)
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test")
        row = collection.urls[server.url("a.test", "/2.html")]
        assert (row.reason, row.rule) == (Reason.BUG, "ZeroDivisionError: planted")
        assert [reason for reason in collection.reasons.values() if reason is not Reason.OK] == [Reason.BUG]
        assert collection.sane() == []


def test_a_bug_that_loses_links_does_not_hide_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links of the page were already processed when it failed; links of another page to the same URLs count."""
    from periplus.schedule import traps

    site = Site("a.test")
    site.add(Page("/", "Home", ("Home.",)))
    site.add(Page("/1.html", "One", ("One.",)), "/")
    site.add(Page("/2.html", "Two", ("Two.",)), "/")
    site.add(Page("/child.html", "Child", ("A child.",)), "/1.html")
    site.link("/2.html", "/child.html", "the same child")
    honest = traps.TrapDetector.learn

    def broken(self: object, url: str, *more: object) -> object:
        if url.endswith("/1.html"):
            raise ZeroDivisionError("planted")
        return honest(self, url, *more)

    monkeypatch.setattr(traps.TrapDetector, "learn", broken)
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test")
        assert collection.reasons[server.url("a.test", "/1.html")] is Reason.BUG
        assert collection.reasons[server.url("a.test", "/child.html")] is Reason.OK


def peak_kib(web: Served, host: str, folder: Path) -> int:
    """The largest resident size of a crawl of that host by the real command, in KiB."""
    flags = flags_for(web.resolve, sitemaps=False)
    words = command("crawl", web.url(host), "-o", folder, "-q", *flags)
    crawl = subprocess.Popen(words, stderr=subprocess.DEVNULL, env=environment())
    _, status, used = os.wait4(crawl.pid, 0)
    crawl.returncode = os.waitstatus_to_exitcode(status)
    assert crawl.returncode == 0
    return used.ru_maxrss


def test_a_gzip_bomb_costs_less_than_64_mb(tmp_path: Path) -> None:
    """0.8 MB that decompress to 800 MB, compared with the same site without it."""
    program = tmp_path / "bomb.py"
    program.write_text(_BOMB_SERVER, "utf-8")
    with served_apart("bomb", tmp_path, program=[str(program)]) as web:
        calm = peak_kib(web, "calm.test", tmp_path / "calm")
        bombed = peak_kib(web, "bomb.test", tmp_path / "bomb")
        row = Collection(tmp_path / "bomb").urls[web.url("bomb.test", "/bomb")]
        assert (row.reason, row.rule) == (Reason.TRUNCATED, "ratio-limit")
        assert bombed - calm <= 64 * 1024, f"{calm} KiB, with the bomb {bombed}"


_BOMB_SERVER = """
import sys
from testweb import Page, Site, Web, faults, recipes
def web():
    made = Web([Site("calm.test"), Site("bomb.test")])
    for site in made.sites.values():
        site.add(Page("/", "Home", ("Home.",)))
    faults.gzip_bomb(made.sites["bomb.test"], "/bomb", 800)
    return made
recipes.RECIPES["bomb"] = web
import runpy
sys.argv = ["testweb", *sys.argv[1:]]
runpy.run_module("testweb", run_name="__main__")
"""


def test_no_fault_ever_shows_a_traceback(tmp_path: Path) -> None:
    """The real command over the faulty site prints its end, and nothing else."""
    with served_apart("faults", tmp_path) as web:
        flags = flags_for(web.resolve, **{**LIMITS, "delay_s": 0.005, "host_strikes": 50, "retry_wait_s": 0.01})
        ran = told("crawl", web.url("faults.test"), "-o", "c", *flags, cwd=tmp_path)
        assert "Traceback" not in ran.stderr and ran.stdout == ""
        reasons = Collection(tmp_path / "c").reasons
        either = set(web.truth["either"])
        expected = {
            url: Reason(reason) for url, reason in web.truth["reasons"].items() if url not in either and url in reasons
        }
        assert {url: reasons[url] for url in expected} == expected
