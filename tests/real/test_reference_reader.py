"""Tests of the independent reader and of the comparison, on a site of ten pages."""

import dataclasses

import pytest
from comparison import compared, crawl
from manuals import served
from oracle import absolute, normal, read_site

PAGES = {
    "index.html": (
        "<a href=one.html>1</a> <a href='folder/'>2</a> <a href=gone.html>gone</a> <area href='map.html#there'> <a "
        "href='mailto:a@b.example'>m</a>"
    ),
    "one.html": (
        "<h1 id=top-of-it>One</h1><a href='index.html#nowhere'>up</a> <a "
        "href='two.html#a%20place'>on</a> <a href='#own'>here</a>"
    ),
    "two.html": (
        "<a name='a place'>Two</a> <a href='ONE.html'>no</a> <a href='folder'>moved</a> <link rel=next href=three.html>"
    ),
    "three.html": (
        "<base href=/folder/><a href='deep.html'>deep</a> <script>'<a href=/never.html>'</script> "
        "<!-- <a href=/never.html> -->"
    ),
    "map.html": (
        "<p id=there>A map.</p><iframe src='frame.html'></iframe> <a href='caf%c3%a9.html'>c</a> <a "
        "href='caf&eacute;.html'>c</a>"
    ),
    "frame.html": "<meta http-equiv=refresh content='3; url=one.html'>",
    "café.html": "<p>Coffee",
    "folder/index.html": "<a href='../one.html#top-of-it'>One</a> <a href='.././one.html?x=1'>with a query</a>",
    "folder/deep.html": "<a href='//elsewhere.example/'>out</a> <a rel=nofollow href=/unfollowed.html>no</a>",
    "unfollowed.html": "<p>Not reachable.",
}


@pytest.fixture(params=["nginx", "python"])
def site(tmp_path, request, monkeypatch):
    """The pages, served by each of the servers."""
    if request.param == "python":
        monkeypatch.setattr("manuals.shutil.which", lambda *given, **more: None)
    folder = tmp_path / "site"
    for name, text in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"<!doctype html><meta charset=utf-8><title>{name}</title>{text}", "utf-8")
    with served(folder, "ten.test", tmp_path / "server") as found:
        yield found


def test_the_reader_finds_pages_links_and_faults(site):
    sight = read_site(site.root, "/index.html", site.port)
    short = {url.removeprefix(site.root): depth for url, depth in sight.depths.items()}
    assert short == {
        "/index.html": 0, "/one.html": 1, "/folder/": 1, "/map.html": 1, "/two.html": 2, "/one.html?x=1": 2,
        "/frame.html": 2, "/caf%C3%A9.html": 2,
        "/three.html": None, "/folder/deep.html": None,
    }  # fmt: skip
    assert {tuple(url.removeprefix(site.root) for url in pair) for pair in sight.dead} == {
        ("/index.html", "/gone.html"),
        ("/two.html", "/ONE.html"),
    }
    places = {(*(url.removeprefix(site.root) for url in row[:2]), row[2]) for row in sight.fragments}
    assert places == {
        ("/one.html", "/index.html", "nowhere"),
        ("/one.html", "/one.html", "own"),
        ("/one.html?x=1", "/index.html", "nowhere"),
        ("/one.html?x=1", "/one.html?x=1", "own"),
    }


def test_periplus_finds_the_same_complete_and_interrupted(site, tmp_path):
    sight = read_site(site.root, "/index.html", site.port)
    flags = ("--mine", site.host, "--delay", "0.05", "--retry-wait", "0.1")
    for folder, after in (("whole", 0), ("interrupted", 2)):
        crawled = crawl(f"{site.root}/index.html", site, tmp_path / folder, flags, interrupt_after=after)
        result = compared(folder, sight, crawled)
        assert result.agrees, str(result)


def test_every_difference_is_reported(site, tmp_path):
    sight = read_site(site.root, "/index.html", site.port)
    crawled = crawl(
        f"{site.root}/index.html",
        site,
        tmp_path / "cut",
        ("--mine", site.host, "--delay", "0", "--max-depth", "3", "--exclude", "frame"),
    )
    result = compared("cut", sight, crawled)
    assert not result.agrees
    assert result.lost == {"depth": 1, "scope": 1, "no link to it known": 1}
    more = dataclasses.replace(
        crawled,
        sight=dataclasses.replace(sight, dead=frozenset(), fragments=frozenset([*sight.fragments, ("a", "b", "c")])),
    )
    told = compared("altered", sight, more).differences
    assert len(told["dead missed"]) == 2
    assert not told["fragment invented"], "not on a page of the site"


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("b", "http://h:1/d/b"), ("./b/../c", "http://h:1/d/c"), ("/x//y", "http://h:1/x//y"),
        ("?q", "http://h:1/d/e?q"), ("", "http://h:1/d/e?f=g"),
        (" b\n", "http://h:1/d/b"), ("HTTP://Other/x", "http://other/x"), ("//other", "http://other/"), ("a:b", None),
        ("a b", "http://h:1/d/a%20b"),
        ("..", "http://h:1/"), ("%2e%2E/x", "http://h:1/x"), ("x\\y", "http://h:1/d/x/y"),
        ("http://h:80/", "http://h/"), ("http:b?c", "http://h:1/d/b?c"),
    ],
)  # fmt: skip
def test_references_are_resolved_as_browsers_do(href, url):
    found = absolute(href, "http://h:1/d/e?f=g")
    assert (found and found[0]) == url


def test_equivalent_spellings_are_normalised():
    assert normal("http://h/%7eb%c3%a9%2F") == "http://h/~b%C3%A9%2F"
