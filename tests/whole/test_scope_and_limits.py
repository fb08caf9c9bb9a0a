"""Crawls obey scope and limits, and survive traps."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from voyage import Collection, crawled, flags_for, told

from periplus.model.page import FOLLOWED_KINDS
from periplus.model.visit import Reason
from periplus.settings import Settings
from testweb import (
    GraphRecipe,
    Page,
    PageLink,
    Server,
    Site,
    Web,
    content,
    graph_site,
    identity,
    linked_sites,
    serve,
    traps,
    words,
)

NOT_PAGES = ("/robots.txt", "/sitemap.xml")


def chain(length: int, host: str = "a.test") -> Site:
    """/ -> /1.html -> /2.html ..."""
    site = Site(host)
    site.add(Page("/", "The beginning", ("Here the row begins.",)))
    for number in range(1, length):
        text = words.paragraph(random.Random(number), f"Step {number}")
        site.add(Page(f"/{number}.html", f"Step {number}", (text,)), "/" if number == 1 else f"/{number - 1}.html")
    return site


def pages(server: Server, host: str = "a.test") -> list[str]:
    return [target for target in server.log.targets(host) if not target.startswith(NOT_PAGES)]


def test_max_depth_and_a_second_run_that_goes_deeper(tmp_path: Path) -> None:
    """Deeper pages are registered, and fetched when allowed; nothing is fetched twice."""
    with serve(chain(8)) as server:
        collection, end = crawled(tmp_path, server, "a.test", max_depth=2)
        assert end.state == "done" and pages(server) == ["/", "/1.html", "/2.html"]
        row = collection.urls[server.url("a.test", "/3.html")]
        assert (row.reason, row.state, row.rule, row.depth) == (Reason.DEPTH, "discovered", "max-depth 2", 3)
        crawled(tmp_path, server, "a.test", max_depth=4)
        assert pages(server) == ["/", "/1.html", "/2.html", "/3.html", "/4.html"]
        crawled(tmp_path, server, "a.test")
        assert pages(server) == ["/"] + [f"/{number}.html" for number in range(1, 8)]
        assert collection.depths == {server.url("a.test", path): depth for depth, path in enumerate(pages(server))}


@pytest.mark.parametrize("workers", [1, 2])
def test_max_pages_is_exact_and_the_rest_waits(tmp_path: Path, workers: int) -> None:
    web = linked_sites(seed=1, sites=3, pages=30, links_between=5, links_per_page=9)
    with serve(web) as server:
        for run in (1, 2):
            collection, end = crawled(
                tmp_path,
                server,
                *web.sites,
                mine=tuple(web.sites),
                max_pages=37,
                workers=workers,
                delay_s=0.005,
                per_host=3,
            )
            assert sum(len(pages(server, host)) for host in web.sites) == 37 * run
            assert (end.state, end.note, end.counts.fetched) == ("stopped", "max-pages 37 reached", 37)
        assert collection.sane() == []
        assert Reason.WAITING in collection.reasons.values()


def test_max_time(tmp_path: Path) -> None:
    with serve(graph_site(GraphRecipe(seed=1, pages=200, page_bytes=500))) as server:
        began = time.monotonic()
        collection, end = crawled(tmp_path, server, "a.test", max_time_s=3.0, delay_s=0.2)
        assert time.monotonic() - began >= 3.0
        assert (end.state, end.note) == ("stopped", "max-time 3 s is over")
        assert 0 < len(pages(server)) < 40 and collection.sane() == []
        assert len(pages(server)) == end.counts.fetched


def test_include_and_exclude(tmp_path: Path) -> None:
    """The start is fetched although it matches neither; excluded URLs have their rule."""
    site = chain(1)
    for path in ("/docs/1.html", "/docs/2.html", "/docs/old/3.html", "/blog/4.html"):
        site.add(Page(path, path, (f"The page {path}.",)), "/")
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test", include=("/docs/",), exclude=("/old/",))
        assert pages(server) == ["/", "/docs/1.html", "/docs/2.html"]
        rows = collection.urls
        assert rows[server.url("a.test", "/docs/old/3.html")].rule == "excluded by /old/"
        assert rows[server.url("a.test", "/blog/4.html")].reason is Reason.SCOPE


def test_several_starts_from_a_file_and_other_sites_only_recorded(tmp_path: Path) -> None:
    web = linked_sites(seed=2, sites=3, pages=6, links_between=6, links_per_page=4)
    with serve(web) as server:
        (tmp_path / "starts.txt").write_text(
            f"# two of three\n{server.url('a.test')}\n\n  {server.url('b.test')}  \n", "utf-8"
        )
        ran = told("crawl", "-i", "starts.txt", "-o", "c", *flags_for(server.resolve), cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        collection = Collection(tmp_path / "c")
        assert (len(pages(server, "a.test")), len(pages(server, "b.test")), server.log.of("c.test")) == (6, 6, [])
        others = {row.reason for url, row in collection.urls.items() if "//c.test" in url}
        assert others == {Reason.SCOPE}
        assert {url: depth for url, depth in collection.depths.items() if "//c.test" not in url} == {
            url: depth for url, depth in server.truth.depths.items() if "//c.test" not in url
        }


def test_scopes_prefix_domain_and_any(tmp_path: Path) -> None:
    web = Web([Site("www.shop.test"), Site("help.shop.test"), Site("else.test")])
    www, helped, other = web.sites.values()
    for site in web.sites.values():
        site.add(Page("/", f"Home of {site.host}", (f"This is {site.host}.",)))
    www.add(Page("/docs/", "Manual", ("The manual.",)), "/")
    www.add(Page("/docs/1.html", "Manual, 1", ("Chapter one.",)), "/docs/")
    www.link("/docs/", "/", "home")
    www.link("/docs/", helped.url("/"), "help", target=helped.url("/"))
    helped.link("/", other.url("/"), "else", target=other.url("/"))
    with serve(web) as server:
        found = {}
        for scope in ("prefix", "site", "domain", "any"):
            collection, _ = crawled(tmp_path / scope, server, "www.shop.test/docs/", scope=scope)
            found[scope] = {
                url.split("/", 2)[2].replace(f":{server.port}", "")
                for url, reason in collection.reasons.items()
                if reason is Reason.OK
            }
        assert found["prefix"] == {"www.shop.test/docs/", "www.shop.test/docs/1.html"}
        assert found["site"] == found["prefix"] | {"www.shop.test/"}
        assert found["domain"] == found["site"] | {"help.shop.test/"}
        assert found["any"] == found["domain"] | {"else.test/"}


def test_www_and_the_bare_name_are_one_site_depth_by_depth(tmp_path: Path) -> None:
    web = Web([chain(3), chain(1, "www.a.test")])
    bare, www = web.sites.values()
    bare.link("/1.html", www.url("/"), "the other name", target=www.url("/"))
    www.link("/", bare.url("/2.html"), "two", target=bare.url("/2.html"))
    with serve(web) as server:
        collection, _ = crawled(tmp_path, server, "a.test")
        assert collection.depths[server.url("www.a.test")] == 2
        assert collection.reasons[server.url("www.a.test")] is Reason.OK
        assert len(collection.ask("SELECT 1 FROM site")) == 1


def test_orphans_of_the_sitemap_have_no_depth(tmp_path: Path) -> None:
    """They are fetched last; a page reachable by links has its depth, also if it is in the sitemap."""
    site = chain(4)
    content.sitemaps(site, orphans=("/orphan.html", "/late.html"))
    site.add(Page("/child.html", "An orphan's child", ("Below the orphan.",)), "/orphan.html")
    site.link("/3.html", "/late.html", "found late")
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test")
        rows = collection.urls
        assert [
            (rows[server.url("a.test", path)].depth, rows[server.url("a.test", path)].in_sitemap)
            for path in ("/3.html", "/late.html", "/orphan.html")
        ] == [
            (3, True),
            (4, True),
            (None, True),
        ]
        assert rows[server.url("a.test", "/child.html")].depth is None
        assert set(collection.reasons.values()) == {Reason.OK}
        assert pages(server)[-2:] == ["/orphan.html", "/child.html"]
        crawled(tmp_path / "without", server, "a.test", sitemaps=False)
        assert server.log.count("/sitemap.xml") == 1 and server.log.count("/orphan.html") == 1


def test_a_link_from_a_newly_found_page_gives_an_orphan_its_depth(tmp_path: Path) -> None:
    """With a depth limit the page of the sitemap is left out; once a link to it is found, it has a depth."""
    site = chain(4)
    content.sitemaps(site, orphans=("/orphan.html",))
    site.link("/3.html", "/orphan.html", "at last")
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test", max_depth=2)
        assert (
            collection.reasons[server.url("a.test", "/orphan.html")],
            collection.depths[server.url("a.test", "/orphan.html")],
        ) == (Reason.DEPTH, None)
        crawled(tmp_path, server, "a.test", max_depth=6)
        assert (
            collection.reasons[server.url("a.test", "/orphan.html")],
            collection.depths[server.url("a.test", "/orphan.html")],
        ) == (Reason.OK, 4)


def test_nofollow_only_targets_are_registered_until_a_followed_link_comes(tmp_path: Path) -> None:
    """Depth counts followed links only, even if a nofollow link is shorter."""
    site = chain(4)
    site.link("/", "/secret.html", "hush", rel="nofollow")
    site.link("/", "/known.html", "hush", rel="nofollow")
    site.add(Page("/secret.html", "Secret", ("Not for us.",)))
    site.add(Page("/known.html", "Known", ("Known in the end.",)), "/3.html")
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test")
        assert collection.reasons[server.url("a.test", "/secret.html")] is Reason.NOFOLLOW
        assert (
            collection.reasons[server.url("a.test", "/known.html")],
            collection.depths[server.url("a.test", "/known.html")],
        ) == (Reason.OK, 4)


@pytest.mark.parametrize(
    "names", [("calendar",), ("tree",), ("facets",), ("sessions",), ("calendar", "tree", "facets", "sessions")]
)
def test_traps_cost_no_page_and_at_most_ten_windows_each(tmp_path: Path, names: tuple[str, ...]) -> None:
    """The crawl ends on its own; completeness has priority over cost."""
    site = graph_site(GraphRecipe(seed=1, pages=75 * (1 + len(names)), page_bytes=1500, host="traps.test"))
    for name in names:
        getattr(traps, name)(site)
    for path, page in site.pages.items():
        # pages of the recipe differ in numbers only, like those of a calendar: these have unique text
        if path.startswith(("/shop", "/session")):
            page.paragraphs = (words.paragraph(random.Random(path), path),)
    with serve(site) as server:
        collection, end = crawled(tmp_path, server, "traps.test", delay_s=0.001)
        assert end.state == "done"
        real = set(server.truth.pages)
        fetched = {url for url, row in collection.urls.items() if row.status == 200}
        paths = {url.partition("?")[0] for url in fetched}
        assert real - paths == set(), "real pages lost"
        spent = len(pages(server, "traps.test")) - len(real)
        print(f"{'+'.join(names)}: {spent} fetches beside {len(real)} real pages")
        assert spent <= 10 * Settings().scope.trap_window * len(names)
        trapped = [row for row in collection.urls.values() if row.reason is Reason.TRAP]
        assert trapped and all(row.rule for row in trapped)


def test_the_sixteen_hrefs(tmp_path: Path) -> None:
    """No page lost, none fetched twice, as in the URL Living Standard."""
    with serve(identity.identity_site()) as server:
        collection, _ = crawled(tmp_path, server, "identity.test", sitemaps=False)
        fetched = pages(server, "identity.test")
        assert len(fetched) == len(set(fetched)) == 1 + identity.FETCHES_MOST
        assert len(set(collection.ask("SELECT text_digest FROM page"))) == 1 + identity.CONTENTS
        assert set(collection.titles.values()) >= {page.title for page in server.truth.pages.values()}


def test_twenty_nine_kinds_of_links(tmp_path: Path) -> None:
    """All are found with the right kind; links to pages are followed, page resources recorded; no others."""
    with serve(identity.kinds_site()) as server:
        collection, _ = crawled(tmp_path, server, "kinds.test", sitemaps=False)
        home = server.url("kinds.test")
        found = {(row[1], row[2]) for row in collection.links if row[0] == home}
        assert found == {(server.url("kinds.test", f"/kinds/{kind.name}"), kind.kind.value) for kind in identity.KINDS}
        for kind in identity.KINDS:
            expected = Reason.OK if kind.kind in FOLLOWED_KINDS else Reason.RESOURCE
            assert collection.reasons[server.url("kinds.test", f"/kinds/{kind.name}")] is expected, kind.name
        asked = set(pages(server, "kinds.test"))
        assert asked == {"/"} | {f"/kinds/{kind.name}" for kind in identity.KINDS if kind.kind in FOLLOWED_KINDS}


def test_frames_refresh_and_base_are_followed(tmp_path: Path) -> None:
    site = chain(1)
    site.add(
        Page(
            "/frames.html",
            "F",
            html='<html><frameset cols="1,1"><frame src="/f1.html"><frame src="f2.html"></frameset></html>',
        ),
        "/",
    )
    site.add(
        Page(
            "/base.html",
            "B",
            html='<html><head><base href="/deep/er/"></head><body><a href="../b.html">b</a></body></html>',
        ),
        "/",
    )
    site.add(
        Page(
            "/refresh.html",
            "R",
            html='<html><head><meta http-equiv="Refresh" content="0;URL=\'/r.html\'"></head></html>',
        ),
        "/",
    )
    for path in ("/f1.html", "/f2.html", "/deep/b.html", "/r.html"):
        site.add(Page(path, f"At {path}", (f"The page {path}.",), [PageLink("/", "home")]))
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test")
        assert {
            url.split(str(server.port))[1] for url, reason in collection.reasons.items() if reason is Reason.OK
        } == {page.path for page in site.pages.values()}
        assert collection.depths[server.url("a.test", "/deep/b.html")] == 2


def test_unusual_links_are_kept_with_their_kind(tmp_path: Path) -> None:
    """mailto, javascript, malformed: notes on the page, not URLs; a fragment is not a separate page; a long URL is out
    of scope.
    """
    site = chain(1)
    html = (
        '<a href="mailto:a@b.test">m</a><a href="javascript:void(0)">j</a><a href="http://[">bad</a><a '
        'href="#x">x</a><a href="">self</a>'
        f'<a href="/{"l" * 5000}">long</a><a href="//b.test/x">b</a><a href="\n /sp ace.html\t">s</a>'
    )
    site.add(Page("/odd.html", "Odd", html=f"<!doctype html><title>Odd</title>{html}"), "/")
    with serve(site) as server:
        collection, _ = crawled(tmp_path, server, "a.test")
        assert {row[0] for row in collection.ask("SELECT why FROM bad_link")} == {"mailto", "javascript", "malformed"}
        rules = {row.reason: row.rule for row in collection.urls.values()}
        assert set(rules) == {Reason.OK, Reason.SCOPE, Reason.NOT_FOUND}
        assert any("longer than" in row.rule for row in collection.urls.values())
        assert server.log.count("/sp%20ace.html") == 1
