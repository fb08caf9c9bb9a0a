"""The URLs found in an answer, and the reason with which each is stored."""

import copy
from dataclasses import replace

import pytest

from periplus.acquire import discovery as module
from periplus.acquire.discovery import Discovery, Memory, as_part
from periplus.document.sitemaps import read_sitemap
from periplus.document.understand import understand
from periplus.model.frontier import Task
from periplus.model.visit import Cut, Fetched, Headers, Purpose, Reason, Request
from periplus.model.web import UrlId
from periplus.settings import Scope, Settings, settings_from
from periplus.urls.canonical import canonical
from periplus.urls.scope import site_scope

HOME = "http://a.test/"
HTML = Headers((("content-type", "text/html"),))


def discovery(starts=(HOME,), **rules):
    scope = Scope(**rules)
    return Discovery(site_scope([canonical(start) for start in starts], scope), Settings(scope=scope))


def page(*links):
    """A document with these links, each a href or a whole element."""
    html = "".join(link if link.startswith("<") else f'<a href="{link}">x</a>' for link in links)
    return understand(HOME, Fetched(200, HTML, html.encode()))


def candidates(discovery, depth, *links, source=HOME):
    """(URL, reason, depth) of the candidates of a page with these links."""
    return [
        (candidate.url, candidate.reason, candidate.depth)
        for candidate in discovery.of_page(source, page(*links), depth)
    ]


def test_a_links_target_is_one_depth_below_its_page():
    assert candidates(discovery(), 3, "/x") == [(HOME + "x", Reason.WAITING, 4)]
    assert candidates(discovery(), None, "/x") == [(HOME + "x", Reason.WAITING, None)], (
        "a page known from a sitemap only has no depth"
    )


def test_each_url_is_offered_once():
    seen = discovery()
    assert len(candidates(seen, 0, "/x", "/y", "/x#part")) == 2
    assert candidates(seen, 1, "/x", "/y") == []


def test_a_url_found_at_a_smaller_depth_is_offered_again():
    """It was too deep and may be within the limit now."""
    seen = discovery(max_depth=3)
    assert candidates(seen, 5, "/x") == [(HOME + "x", Reason.DEPTH, 6)]
    assert candidates(seen, None, "/x") == []
    assert candidates(seen, 1, "/x") == [(HOME + "x", Reason.WAITING, 2)]
    assert candidates(seen, 1, "/x") == []


def test_candidates_outside_depth_or_scope_name_the_rule():
    seen = discovery(max_depth=1)
    (deep, far) = seen.of_page(HOME, page("/x", "http://b.test/"), 1)
    assert (deep.reason, deep.rule) == (Reason.DEPTH, "max-depth 1")
    assert far.reason is Reason.SCOPE
    assert far.rule
    assert deep.hops == far.hops == 0
    assert (
        seen.of_sitemap(read_sitemap(b"<urlset><url><loc>http://a.test/s</loc></url></urlset>", HOME + "sitemap.xml"))[
            0
        ].reason
        is Reason.DEPTH
    )


@pytest.mark.parametrize(
    ("rules", "path", "depth", "ruled"),
    [
        ({"exclude": ("/old",)}, "old/a", 1, (Reason.SCOPE, "excluded by /old")),
        ({"include": ("/new",)}, "old/a", 1, (Reason.SCOPE, "matches no include expression")),
        ({"max_depth": 2}, "a", 3, (Reason.DEPTH, "max-depth 2")),
        ({"max_depth": 2}, "a", 2, None),
        ({"exclude": (".",)}, "", 0, None),  # starts are always in scope
        ({}, "a", 1, None),
    ],
)
def test_waiting_urls_are_checked_against_the_limits_of_this_run(rules, path, depth, ruled):
    task = Task(1, 1, 1, UrlId(1), Request(canonical(HOME + path), Purpose.PAGE, depth))
    found = discovery(**rules).ruling(task)
    assert (found and (found.reason, found.rule)) == ruled
    assert discovery(**rules).ruling(replace(task, recheck=True)) is None, "a refresh requests known pages"


def test_waiting_pages_of_another_site_are_not_ruled_out():
    task = Task(1, 1, 1, UrlId(1), Request(canonical("https://other.net/"), Purpose.PAGE, 1))
    assert discovery(exclude=("/old",)).ruling(task) is None


def test_nofollow_links_and_page_resources_are_recorded_but_not_followed():
    seen = discovery()
    links = ('<a rel=nofollow href="/n">n</a>', '<img src="/i.png">', '<a rel=nofollow href="http://b.test/">b</a>')
    assert sorted(candidates(seen, 0, *links)) == [
        (HOME + "i.png", Reason.RESOURCE, None),
        (HOME + "n", Reason.NOFOLLOW, 1),
        ("http://b.test/", Reason.SCOPE, 1),
    ]
    assert candidates(seen, 0, *links) == []
    assert candidates(seen, 4, "/n", "/i.png") == [
        (HOME + "n", Reason.WAITING, 5),
        (HOME + "i.png", Reason.WAITING, 5),
    ], "a followed link takes precedence"


def test_stored_page_resources_have_the_depth_of_their_page_on_any_host():
    seen = Discovery(site_scope([HOME], Scope()), settings_from({"keep_parts": True}))
    links = ('<img src="http://b.test/i.png">', '<script src="/s.js"></script>', '<video src="/v.mp4"></video>')
    assert sorted(candidates(seen, 2, *links)) == [
        (HOME + "s.js", Reason.WAITING, 2),
        (HOME + "v.mp4", Reason.RESOURCE, None),
        ("http://b.test/i.png", Reason.WAITING, 2),
    ]
    assert candidates(seen, 2, *links) == []


@pytest.mark.parametrize(
    ("media_type", "body", "cut", "kept"),
    [
        ("text/css", b"a{}", Cut.NONE, b"a{}"),
        ("image/svg+xml", b"<svg/>", Cut.NONE, b"<svg/>"),
        ("application/octet-stream", b"wOF2...", Cut.NONE, b"wOF2..."),
        ("image/png", b"half", Cut.SHORT, b""),
        ("image/png", b"", Cut.NOT_WANTED, b""),
        ("text/html", b"<p>", Cut.NONE, None),
        ("application/pdf", b"%PDF-", Cut.NONE, None),
        ("application/octet-stream", b"PK", Cut.NONE, None),
    ],
)
def test_a_page_resource_is_stored_if_it_is_complete_and_not_a_page(media_type, body, cut, kept):
    part = as_part(Fetched(200, Headers((("content-type", media_type),)), body, cut))
    assert (part and (part.body, part.cut)) == (None if kept is None else (kept, Cut.NOT_WANTED))


def test_a_link_from_another_site_gives_no_depth():
    seen = discovery(starts=(HOME, "http://b.test/"))
    assert candidates(seen, 2, "http://b.test/x") == [("http://b.test/x", Reason.WAITING, None)]
    assert candidates(seen, 4, "http://b.test/x", source="http://b.test/") == [("http://b.test/x", Reason.WAITING, 5)]


def test_a_redirects_target_has_the_depth_of_its_source():
    seen = discovery()
    (target,) = seen.of_redirect(HOME, canonical(HOME + "new"), 2, 1)
    assert (target.url, target.depth, target.hops, target.reason) == (HOME + "new", 2, 1, Reason.WAITING)
    assert len(seen.of_redirect(HOME, canonical(HOME + "new"), 2, 1)) == 1, "offered each time, since hops are counted"
    assert candidates(seen, 2, "/new") == []


def test_urls_of_sitemaps_have_no_depth_and_starts_have_depth_0():
    seen = discovery()
    (listed,) = seen.of_sitemap(
        read_sitemap(b"<urlset><url><loc>http://a.test/s</loc></url></urlset>", HOME + "sitemap.xml")
    )
    assert (listed.url, listed.depth, listed.in_sitemap, listed.reason) == (HOME + "s", None, True, Reason.WAITING)
    (start,) = seen.of_starts([canonical(HOME)])
    assert (start.depth, start.site, start.host) == (0, "a.test", "a.test:80")


def test_after_a_lost_lease_everything_is_offered_again():
    seen = discovery()
    first = candidates(seen, 0, "/x", '<img src="/i.png">')
    seen.forget()
    assert candidates(seen, 0, "/x", '<img src="/i.png">') == first


@pytest.mark.parametrize("size", [1, 3, 10])
def test_memory_keeps_between_one_and_two_generations(monkeypatch, size):
    monkeypatch.setattr(module, "GENERATION", size)
    memory = Memory()
    texts = [str(number) for number in range(5 * size)]
    for at, text in enumerate(texts):
        assert memory.is_new(text)
        assert not any(memory.is_new(recent) for recent in texts[max(0, at - size + 1) : at + 1])
        known = [other for other in texts[: at + 1] if not copy.deepcopy(memory).is_new(other)]
        assert len(known) <= 2 * size
