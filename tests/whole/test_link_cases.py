"""Links of folders and over HTTP: the cases that fixtures of lychee name, with pages of our own."""

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
    "quays/.keep": "",
    "empty": "",
    "tide.bin": "\0\0\0\0",
}
CASES = {  # a link of home.md, or of home.html where that is written before it: what is wrong
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
    "chart.html#SOUNDINGS": "broken-fragment",  # ids of HTML are compared letter by letter
    "chart.html#nowhere": "broken-fragment",
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
    """Each case is a page of its own, so that none hides another."""
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
    wrong = {
        Path(row["url"]).name: row["code"]
        for row in csv.DictReader(listed.splitlines())
        if row["code"].startswith("broken")
    }
    assert {link: wrong.get(name, "") for name, link in pages.items()} == CASES


def only_to_get(asked):
    return (
        Answer(302, b"", headers=(("Location", "/gone"),))
        if asked.method == "HEAD"
        else Answer(200, b"<title>There</title>")
    )


def test_what_only_head_is_led_astray_to_is_not_dead(tmp_path):
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


def test_a_redirect_that_names_a_place_overrules_the_links(tmp_path):
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
