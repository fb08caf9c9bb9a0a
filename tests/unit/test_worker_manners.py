"""A worker and hosts that fail, refuse or redirect, with a fake clock and scripted responses."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes import FakeClock, FakeTransport, Scripted, own_turns
from periplus.acquire.choosing import SiteTurns
from periplus.acquire.discovery import Aliases, Discovery
from periplus.acquire.leases import WorkerDeps
from periplus.acquire.worker import Worker
from periplus.model.visit import Cause, Purpose, Request
from periplus.model.web import Url
from periplus.schedule.traps import TrapDetector
from periplus.settings import settings_from
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome, SqliteCrawlStore
from periplus.urls.scope import site_scope

Answers = Callable[[Request], Scripted]


def crawled(
    folder: Path, answers: Answers, *starts: str, clock: FakeClock | None = None, **values: object
) -> tuple[FakeTransport, float]:
    """A crawl from these starts by one worker. Returns its transport and the duration in seconds."""
    clock = clock or FakeClock()
    chosen = settings_from({"sitemaps": False, "trap_window": 0, **values})
    if not schema.exists(folder):
        schema.create(folder)
    urls = [Url(start) for start in starts]
    store = SqliteCrawlStore(
        folder, FolderHome(folder).begin_run("crawl", urls, chosen, clock.now()), chosen.budget, chosen.storage
    )
    scope, transport, began = site_scope(urls, chosen.scope), FakeTransport(clock, answers), clock.now()
    store.offer(Discovery(scope, chosen).of_starts(urls), (), clock.now(), reopen=True)
    addresses, mine = own_turns(chosen.politeness.per_address, 0.5), frozenset(chosen.politeness.mine)
    deps = WorkerDeps(
        store,
        transport,
        clock,
        SiteTurns(50),
        lambda memory, past: TrapDetector(0, 0, memory, past),
        scope,
        mine,
        Aliases(),
        addresses,
    )
    with contextlib.closing(store):
        Worker(deps, chosen).run(lambda: clock.now() - began > 7200)
    return transport, clock.now() - began


def reasons(folder: Path) -> dict[str, str]:
    with contextlib.closing(sqlite3.connect(folder / "collection.db")) as connection:
        return dict(connection.execute("SELECT text, reason FROM url"))


def asked(transport: FakeTransport, url: str) -> list[float]:
    return [at for at, request in transport.started if request.url == url]


def page(*targets: str, text: str = "") -> Scripted:
    return Scripted(
        ("<html><body>" + "".join(f'<a href="{target}">{target}</a>' for target in targets) + f"<p>{text}").encode()
    )


# failures of an origin


PLAIN, SECURE = "http://a.test:8080", "https://a.test:8080"


@pytest.mark.parametrize("cause", [Cause.TLS, Cause.RESET, Cause.TIMEOUT, Cause.CONNECT])
def test_a_scheme_that_fails_on_a_port_loses_no_page_of_the_other_scheme(tmp_path: Path, cause: Cause) -> None:
    """The home page and each page of depth 1 link to the port with the scheme that it does not speak."""

    def answer(request: Request) -> Scripted:
        if request.url.startswith(SECURE):
            return Scripted(cause=cause)
        if request.purpose is Purpose.ROBOTS:
            return Scripted(status=404)
        path = request.url.removeprefix(PLAIN)
        return page(
            *([f"{path}{number}" for number in range(6)] if len(path) < 3 else []), f"{SECURE}{path}x", text=path
        )

    transport, took_s = crawled(tmp_path, answer, PLAIN + "/")
    found = reasons(tmp_path)
    assert {url: reason for url, reason in found.items() if url.startswith(PLAIN) and reason != "ok"} == {}
    assert sum(url.startswith(PLAIN) for url in found) == 1 + 6 + 36
    assert {reason for url, reason in found.items() if url.startswith(SECURE)} <= {
        "tls",
        "host-down",
        "robots-unreachable",
    }
    assert len(asked(transport, SECURE + "/robots.txt")) == 2, (
        "it never answered, so it is given up early and for the whole run"
    )
    assert took_s < 45 * 0.7 + 15


def test_failures_of_a_scheme_accumulate_although_the_other_scheme_answers(tmp_path: Path) -> None:
    """Pages of one scheme are read between failures of the other scheme."""

    def answer(request: Request) -> Scripted:
        if request.purpose is Purpose.ROBOTS:
            return Scripted(status=404)
        if request.url.startswith(SECURE):
            return Scripted(cause=Cause.RESET)
        path = request.url.removeprefix(PLAIN)
        return page(
            *(target for number in range(10) for target in (f"{SECURE}/{number}", f"/{number}") if path == "/"),
            text=path,
        )

    transport, _ = crawled(tmp_path, answer, PLAIN + "/")
    found = reasons(tmp_path)
    assert all(reason == "ok" for url, reason in found.items() if url.startswith(PLAIN))
    assert set(found.values()) == {"ok", "host-down"}
    assert (
        sum(request.url.startswith(SECURE) and request.purpose is Purpose.PAGE for _, request in transport.started) == 4
    ), "host_strikes"


def test_the_longer_crawl_delay_of_two_schemes_applies_to_their_host(tmp_path: Path) -> None:
    def answer(request: Request) -> Scripted:
        if request.purpose is Purpose.ROBOTS:
            delay = 3 if request.url.startswith(PLAIN) else 1
            return Scripted(
                f"User-agent: *\nCrawl-delay: {delay}\n".encode(), headers=(("content-type", "text/plain"),)
            )
        return page(
            *(f"{origin}/{number}" for number in range(3) for origin in (PLAIN, SECURE))
            if request.url == PLAIN + "/"
            else (),
            text=request.url,
        )

    transport, _ = crawled(tmp_path, answer, PLAIN + "/")
    times = [at for at, request in transport.started if request.purpose is Purpose.PAGE]
    assert len(times) == 7 and min(later - earlier for earlier, later in itertools.pairwise(times)) >= 3


def test_a_longer_crawl_delay_counts_from_the_robots_txt_response(tmp_path: Path) -> None:
    """The request for robots.txt started with the shorter delay and took two seconds."""

    def answer(request: Request) -> Scripted:
        if request.purpose is Purpose.ROBOTS:
            return Scripted(b"User-agent: *\nCrawl-delay: 7\n", headers=(("content-type", "text/plain"),), took_s=2.0)
        return page("/a" if request.url == PLAIN + "/" else "/", text=request.url)

    transport, _ = crawled(tmp_path, answer, PLAIN + "/")
    (robots, first, second) = (at for at, _ in transport.started)
    assert first - (robots + 2.0) >= 6.999 and second - first >= 6.999


def test_endless_sitemap_indexes_are_followed_three_levels_deep(tmp_path: Path) -> None:
    def answer(request: Request) -> Scripted:
        if request.purpose is Purpose.ROBOTS:
            return Scripted(b"Sitemap: /0.xml", headers=(("content-type", "text/plain"),))
        if not request.url.endswith(".xml"):
            return page()
        number = int(request.url.removesuffix(".xml").rpartition("/")[2])
        index = f"<sitemapindex><sitemap><loc>{PLAIN}/{number + 1}.xml</loc></sitemap></sitemapindex>"
        return Scripted(index.encode(), headers=(("content-type", "application/xml"),))

    transport, _ = crawled(tmp_path, answer, PLAIN + "/", sitemaps=True)
    asked_for = [request.url for _, request in transport.started if request.purpose is Purpose.SITEMAP]
    assert asked_for == [f"{PLAIN}/{number}.xml" for number in range(4)], (
        "the sitemap in robots.txt and three levels below"
    )


# connections


@pytest.mark.parametrize("lost", ["robots.txt", "page", "all pages"])
def test_a_request_lost_with_a_kept_connection_is_repeated_and_is_no_failure(tmp_path: Path, lost: str) -> None:
    seen: set[str] = set()

    def answer(request: Request) -> Scripted:
        is_robots = request.purpose is Purpose.ROBOTS
        loses = is_robots if lost == "robots.txt" else not is_robots and (lost != "page" or request.url.endswith("/1"))
        if loses and request.url not in seen:
            seen.add(request.url)
            return Scripted(cause=Cause.STALE)
        return Scripted(status=404) if is_robots else page("/1", "/2", text=request.url)

    transport, _ = crawled(tmp_path, answer, "http://a.test/", delay_s=2.0, host_strikes=1, retries=0)
    assert set(reasons(tmp_path).values()) == {"ok"}
    times = [at for at, _ in transport.started]
    assert len(times) == 4 + len(seen)
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) >= 2.0
    with contextlib.closing(sqlite3.connect(tmp_path / "collection.db")) as connection:
        assert connection.execute("SELECT count(*) FROM visit").fetchone() == (4,), "the lost request is not stored"


# requests of a server to wait


def test_a_retry_after_of_a_day_gives_the_host_up(tmp_path: Path) -> None:
    """On robots.txt and on a page. Other hosts continue, and the run does not wait."""
    day = Scripted(status=503, headers=(("retry-after", "86400"),))

    def answer(request: Request) -> Scripted:
        if request.url.startswith("http://shut.test"):
            return day
        if request.purpose is Purpose.ROBOTS:
            return Scripted(status=404)
        if request.url.startswith("http://half.test"):
            return page("/1", "/2", "/3") if request.url.endswith("/") else day
        return page(*(f"/{number}" for number in range(9)), text=request.url)

    transport, took_s = crawled(tmp_path, answer, "http://shut.test/", "http://half.test/", "http://a.test/")
    assert took_s < 10
    asked_of = [request.url for _, request in transport.started if "a.test" not in request.url]
    assert sorted(asked_of) == [
        "http://half.test/",
        "http://half.test/1",
        "http://half.test/robots.txt",
        "http://shut.test/robots.txt",
    ]
    found = reasons(tmp_path)
    assert found.pop("http://shut.test/") == "robots-unreachable"
    assert {url for url, reason in found.items() if reason == "host-down"} == {
        f"http://half.test/{number}" for number in (1, 2, 3)
    }
    assert list(found.values()).count("ok") == 1 + 10


@pytest.mark.parametrize(("times", "wait", "most_s"), [(2, "2", 60.0), (1, "3", 45.0)])
def test_refusals_with_retry_after_do_not_slow_the_host_permanently(
    tmp_path: Path, times: int, wait: str, most_s: float
) -> None:
    """Each of six pages is refused before it is served."""
    seen: dict[str, int] = {}

    def answer(request: Request) -> Scripted:
        seen[request.url] = seen.get(request.url, 0) + 1
        if request.purpose is Purpose.ROBOTS:
            return Scripted(status=404)
        if seen[request.url] <= times:
            return Scripted(status=429, headers=(("retry-after", wait),))
        return page(*(f"/{number}" for number in range(5)), text=request.url)

    transport, took_s = crawled(tmp_path, answer, "http://a.test/")
    assert set(reasons(tmp_path).values()) == {"ok"} and len(transport.started) == 1 + 6 * (times + 1)
    refused = [at for at, request in transport.started if request.purpose is Purpose.PAGE]
    assert min(later - earlier for earlier, later in itertools.pairwise(refused)) >= 0.5
    assert took_s < most_s, took_s


# cookies


def cookie_wall(*cookies: str) -> Scripted:
    return Scripted(status=302, headers=(("location", "/wall"), *(("set-cookie", cookie) for cookie in cookies)))


def test_a_redirect_to_itself_that_sets_cookies_is_followed_once_with_them(tmp_path: Path) -> None:
    def answer(request: Request) -> Scripted:
        if not request.url.endswith("/wall"):
            return Scripted(status=404) if request.purpose is Purpose.ROBOTS else page("/wall", "/other")
        return (
            page(text="through")
            if request.fields
            else cookie_wall("seen=1; Path=/; HttpOnly", "lang=en", "; Path=/", "odd=\xe9")
        )

    transport, _ = crawled(tmp_path, answer, "http://a.test/")
    assert reasons(tmp_path)["http://a.test/wall"] == "ok"
    assert [request.fields for _, request in transport.started if request.url.endswith("/wall")] == [
        (),
        ("Cookie: seen=1; lang=en",),
    ]
    assert not any(request.fields for _, request in transport.started if request.url.endswith("/other")), (
        "it goes to this URL alone"
    )
    times = [at for at, _ in transport.started]
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) >= 0.5
    with contextlib.closing(sqlite3.connect(tmp_path / "collection.db")) as connection:
        assert connection.execute("SELECT count(*) FROM visit WHERE outcome = 'redirected'").fetchone() == (1,)


@pytest.mark.parametrize("cookies", [(), ("seen=1",), ("seen",)])
def test_an_endless_redirect_to_itself_ends(tmp_path: Path, cookies: tuple[str, ...]) -> None:
    def answer(request: Request) -> Scripted:
        return Scripted(status=404) if request.purpose is Purpose.ROBOTS else cookie_wall(*cookies)

    transport, _ = crawled(tmp_path, answer, "http://a.test/wall")
    assert reasons(tmp_path)["http://a.test/wall"] == "bad-answer"
    assert len(transport.started) == 2 + (cookies == ("seen=1",))


# hosts at a shared IP address


def starts_by(transport: FakeTransport, key: Callable[[Request], object]) -> dict[object, list[float]]:
    found: dict[object, list[float]] = {}
    for at, request in transport.started:
        found.setdefault(key(request), []).append(at)
    return found


@pytest.mark.parametrize(
    ("names", "most", "takes_turns"), [(12, 8, True), (3, 1, True), (8, 8, False), (12, 100, False)]
)
def test_many_hosts_at_an_address_take_turns(tmp_path: Path, names: int, most: int, takes_turns: bool) -> None:
    """FakeTransport answers from the same address for all hosts, which is known after the first response."""

    def answer(request: Request) -> Scripted:
        return (
            Scripted(status=404)
            if request.purpose is Purpose.ROBOTS
            else page(*(f"/{n}" for n in range(4)), text=request.url)
        )

    transport, took_s = crawled(tmp_path, answer, *(f"http://s{n}.test/" for n in range(names)), per_address=most)
    assert set(reasons(tmp_path).values()) == {"ok"}
    pages = [(at, request) for at, request in transport.started if request.purpose is Purpose.PAGE]
    gaps = [later - earlier for (earlier, _), (later, _) in itertools.pairwise(pages)]
    assert (min(gaps) >= 0.5 - 1e-6) is takes_turns
    if takes_turns:
        assert took_s < 1.25 * 0.5 * len(pages) + 5, "and none of them is wasted"
        halves = [
            sum(request.url.startswith(f"http://s{n}.test") for _, request in pages[: len(pages) // 2])
            for n in range(names)
        ]
        assert max(halves) - min(halves) <= 2, halves
    else:
        assert took_s < 5 * 0.6 + 3
