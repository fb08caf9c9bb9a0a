"""Links in folders and over HTTP: the cases of the fixtures of lychee, with our own pages."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_check import checked, of_links

from periplus.cli.main import main
from testweb import Page, Site, Web, serve
from testweb.wire import Answer

FILES = {
    "harbour.md": (
        "# Harbour\n\n## Pier 1\n\n### `Crane` ``Hours\n\n# Low water\n\n# Low water\n\n# Slow tide\n\n"
        '# Fünf große Böen\n\n##### A keeper\'s hat: être\n\n<a id="by-hand"></a>\n'
    ),
    "depths.md": "# Depths\n\n## Set by hand {#own-name}\n\n#### Pier 1\n",
    "chart.html": '<!doctype html><title>Chart</title><p id="soundings">s<p id="Ober-ÄÖö">o<p id="reef%3A-north">r',
    "pilots/index.html": '<!doctype html><title>Pilots</title><p id="fees">fees',
    "tides.html": (
        "<!doctype html><title>Tides</title><style>.ebb { color: red }</style><script>var neap = 1</script>"
        '<p>The stream turns at noon.</p><p>Wait for the <b>sla</b>ck. <x-mark hour="spring">\n o\n p\n qr'
    ),
    "quays/.keep": "",
    "empty": "",
    "tide.bin": "\0\0\0\0",
}
WRONG = ("broken-link", "broken-fragment", "missing-text")
CASES = {  # a link in home.md (or in home.html, if given): expected issue
    "#pier-1": "",
    "harbour.md#pier-1": "",
    "harbour.md#crane-hours": "",
    "harbour.md#low-water-1": "",
    "harbour.md#SLOW-TIDE": "",
    "harbour.md#fünf-große-böen": "",
    "harbour.md#FÜNF-große-Böen": "",
    "harbour.md#f%C3%BCnf-gro%C3%9Fe-b%C3%B6en": "",
    "harbour.md#a-keepers-hat-être": "",
    "harbour.md#by-hand": "",
    "harbour.md#": "",
    "harbour.md#top": "",
    "depths.md#own-name": "",
    "depths.md#pier-1": "",
    "harbour.md#nowhere": "broken-fragment",
    "depths.md#nowhere": "broken-fragment",
    "#nowhere": "broken-fragment",
    "chart.html#soundings": "",
    "chart.html#Ober-ÄÖö": "",
    "chart.html#Ober-%C3%84%C3%96%C3%B6": "",
    "chart.html#reef%3A-north": "",
    "chart.html#SOUNDINGS": "broken-fragment",  # ids of HTML are case-sensitive
    "chart.html#nowhere": "broken-fragment",
    "tides.html#:~:text=stream": "",
    "tides.html#:~:text=stream%20turns%20at": "",
    "tides.html#:~:text=noon.,Wait": "",
    "tides.html#:~:text=The%20stream-,turns,-at%20noon": "",
    "tides.html#:~:text=the%20slack": "",
    "tides.html#:~:text=o-,p%20qr": "",
    "tides.html#:~:text=flood": "missing-text",
    "tides.html#:~:text=ebb": "missing-text",
    "tides.html#:~:text=neap": "missing-text",
    "tides.html#:~:text=spring": "missing-text",
    "pilots": "",
    "pilots/": "",
    "pilots#fees": "",
    "pilots/#fees": "",
    "pilots#nowhere": "broken-fragment",
    "pilots/#nowhere": "broken-fragment",
    "quays": "",
    "quays#nowhere": "broken-fragment",
    "quays/#nowhere": "broken-fragment",
    "lights/": "broken-link",
    "lights": "broken-link",
    "empty#place": "",
    "tide.bin": "",
    "tide.bin#": "",
    "tide.bin#place": "",
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize("kind", ["md", "html"])
def test_each_link_of_a_folder_has_its_verdict(tmp_path, monkeypatch, kind):
    """Each case is a separate page, so that cases do not hide each other."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "docs", FILES)
    pages = {f"case{number}.{kind}": link for number, link in enumerate(CASES)}
    for name, link in pages.items():
        text = (
            f"# Pier 1\n\n[x]({link})\n"
            if kind == "md"
            else f'<!doctype html><h1 id=pier-1>P</h1><a href="{link}">x</a>'
        )
        write(tmp_path / "docs", {name: text})
    listed = CliRunner().invoke(main, ["check", "docs", "--no-external", "-q", "-f", "csv"]).stdout
    wrong = {Path(row["url"]).name: row["code"] for row in csv.DictReader(listed.splitlines()) if row["code"] in WRONG}
    assert {link: wrong.get(name, "") for name, link in pages.items()} == CASES


def only_to_get(asked):
    return (
        Answer(302, b"", headers=(("Location", "/gone"),))
        if asked.method == "HEAD"
        else Answer(200, b"<title>There</title>")
    )


def test_a_link_broken_only_for_head_is_not_dead(tmp_path):
    """Some servers redirect HEAD to an error page and answer GET."""
    near, far = Site("a.test"), Site("b.test")
    near.add(Page("/", "Near"))
    far.add(Page("/", "Far"))
    far.answer("/astray", only_to_get)
    far.answer("/lost", Answer(302, b"", headers=(("Location", "/gone"),)))
    for path in ("/astray", "/lost"):
        near.link("/", far.url(path), path, target=far.url(path))
    with serve(Web([near, far])) as server:
        _, issues = checked(tmp_path, server, "a.test")
        assert of_links(issues) == {("broken-link", "lost")}
        asked = [entry.target for entry in server.log.of("b.test") if entry.method == "HEAD"]
        assert "/astray" in asked


def test_the_fragment_of_a_redirect_overrides_that_of_the_link(tmp_path):
    site = Site("a.test")
    site.add(Page("/", "Home"))
    site.answer("/new", Answer(200, b"<!doctype html><title>New</title><p id=here>h"), linked_from=None)
    site.answer("/old", Answer(301, b"", headers=(("Location", "/new"),)), linked_from=None)
    site.answer("/led", Answer(301, b"", headers=(("Location", "/new#here"),)), linked_from=None)
    for link in ("/old#here", "/old#nowhere", "/led#nowhere"):
        site.link("/", link, link)
    with serve(site) as server:
        _, issues = checked(tmp_path, server, "a.test")
    assert of_links(issues) == {("broken-fragment", "old#nowhere")}


WIKI = {
    "Anchorage.md": "# Good ground\n\n## Holding: what's best?\n",
    "Deep water.md": "# Depths\n",
    "north/Far-Light.md": "# Light\n",
    "north/Low_Rock.md": "# Rock\n",
    "north/Anchorage.md": "# Another\n",
    "chart.png": "png",
    "guides/index.html": "<!doctype html><title>Guides</title><p>g",
    "guides.md": "# Guides\n\n## Pilots\n",
}
WIKI_CASES = {  # by `[[...]]` in home.md, whose heading is `Own heading`
    "[[Anchorage]]": "",
    "[[anchorage.md]]": "",
    "[[Anchorage|a label]]": "",
    "[[Anchorage#Good ground]]": "",
    "[[Anchorage#Holding: what's best?|label]]": "",
    "[[Anchorage#Good ground#Holding: what's best?]]": "",
    "[[Anchorage#^block-1]]": "",
    "[[Anchorage#Nowhere]]": "broken-fragment",
    "[[Deep water#Depths|label]]": "",
    "[[deep-water]]": "",
    "[[Far Light#Light]]": "",
    "[[Low rock]]": "",
    "[[north/Far-Light]]": "",
    "![[chart.png]]": "",
    "[[guides#Pilots]]": "",
    "[[#Own heading]]": "",
    "[[#Nowhere]]": "broken-fragment",
    "[[Nowhere]]": "broken-link",
    "[[Nowhere.md]]": "broken-link",
    "[[Now_here|Anchorage]]": "broken-link",
    "`[[Nowhere]]`": "",
    "[[_TOC_]]": "",
    "[[]]": "",
    "| a |\n|---|\n| [[Nowhere\\|label]] |": "broken-link",
    "[x](Anchorage.md)": "",
    "[x](Deep.md)": "broken-link",
}


def wiki_check(folder: Path, *flags: str) -> dict[str, dict[str, str]]:
    """The issue of each case, in a separate page."""
    write(folder / "wiki", WIKI | {f"case{n}.md": f"# Own heading\n\n{case}\n" for n, case in enumerate(WIKI_CASES)})
    listed = CliRunner().invoke(main, ["check", "wiki", "--no-external", "-q", "-f", "csv", *flags])
    cases = list(WIKI_CASES)
    return {
        cases[int(Path(row["url"]).stem[4:])]: row
        for row in csv.DictReader(listed.stdout.splitlines())
        if Path(row["url"]).stem.startswith("case") and row["category"] in ("links", "redirects")
    }


def test_wiki_links_lead_to_the_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = wiki_check(tmp_path, "--wiki-links")
    assert {case: wrong[case]["code"] if case in wrong else "" for case in WIKI_CASES} == WIKI_CASES
    assert (wrong["[[Nowhere]]"]["line"], wrong["[[Anchorage#Nowhere]]"]["line"]) == ("3", "3")


def test_without_the_option_wiki_links_are_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert list(wiki_check(tmp_path)) == ["[x](Deep.md)"]


FEED = """<?xml version="1.0"?><rss version="2.0"><channel><title>Log</title><link>/</link>
<item><title>Out</title><link>/log/out/</link><guid>/log/out/</guid><description>{text}</description></item>
</channel></rss>"""


def test_relative_links_in_feed_items_resolve_against_the_item(tmp_path):
    """As in feeds of Hugo: the text of each page with its relative links."""
    text = '&lt;a href="map/"&gt;m&lt;/a&gt;&lt;a href="../in/"&gt;i&lt;/a&gt;&lt;a href="lost/"&gt;l&lt;/a&gt;'
    site = Site("a.test")
    site.add(Page("/", "Home"))
    for path in ("/log/out/", "/log/out/map/", "/log/in/"):
        site.add(Page(path, f"The page {path}"))
    site.answer("/index.xml", Answer(200, FEED.format(text=text).encode(), "application/rss+xml"))
    with serve(site) as server:
        _, issues = checked(tmp_path, server, "a.test")
    assert of_links(issues) == {("broken-link", "log/out/lost/")}


def test_each_link_over_http_has_its_verdict(tmp_path):
    """The cases of a folder, on a server that sends Markdown and redirects folders to the path with a slash."""
    site = Site("a.test")
    links = {link: f"/case{number}.html" for number, link in enumerate(CASES)}
    listed = "".join(f'<a href="{path}">{path}</a>' for path in links.values())
    site.answer("/", Answer(200, f"<!doctype html><title>Home</title>{listed}".encode()), linked_from=None)
    for link, path in links.items():
        text = f'<!doctype html><title>{path}</title><h1 id="pier-1">P</h1><a href="{link}">x</a>'
        site.answer(path, Answer(200, text.encode()), linked_from=None)
    kinds = {".md": "text/markdown; charset=utf-8", ".html": "text/html; charset=utf-8"}
    for name, text in FILES.items():
        answer = Answer(200, text.encode(), kinds.get(Path(name).suffix, "application/octet-stream"))
        site.answer("/" + name.removesuffix("index.html").removesuffix(".keep"), answer, linked_from=None)
    site.answer("/quays/", Answer(200, b"<!doctype html><title>Quays</title>"), linked_from=None)
    for folder in ("pilots", "quays"):
        site.answer(f"/{folder}", Answer(301, b"", headers=(("Location", f"/{folder}/"),)), linked_from=None)
    with serve(site) as server:
        _, issues = checked(tmp_path, server, "a.test")
    wrong = {"/" + issue.url.rpartition("/")[2]: issue.code for issue in issues if issue.code in WRONG}
    assert {link: wrong.get(path, "") for link, path in links.items()} == CASES
