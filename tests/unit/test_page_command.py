"""`periplus page` and `Collection.page`: the stored content of a page and its facts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from lxml import etree
from warcio.archiveiterator import ArchiveIterator

from periplus.api.collection import Collection
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.settings import Settings, settings_from
from periplus_archives.api import export_warc
from stored import stored

HOME = '<html lang="cs"><title>Domů</title><nav><a href="/a">Áčko</a></nav><h1>Nadpis</h1><p>Text.<g:plus @x=1></p>'
SITE = {
    "https://e.org/": HOME,
    "https://e.org/a": "<title>A</title><p>Příliš <a href='/'>domů</a>",
    "https://e.org/b": "<title>B</title><p>PRILIS domu",
    "https://e.org/d": 404,
}


def made(folder: Path, settings: Settings | None = None) -> Path:
    return stored(
        folder,
        SITE | {"https://e.org/": HOME + "<a href='/b'>b</a><a href='/d'>d</a>"},
        ["https://e.org/"],
        settings=settings,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("page") / "e.periplus")


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["page", *words, "-c", str(folder)])


def test_the_summary_has_the_facts_of_a_page(folder):
    shown = run(folder, "https://e.org/a").stdout
    assert shown.splitlines()[0] == "https://e.org/a"
    for fact in (
        "title:        A",
        "status:       200",
        "charset:      utf-8: HTTP header",
        "kept:         bytes, text",
    ):
        assert f"  {fact}\n" in shown
    assert "    the same text except diacritics and case: https://e.org/b\n" in shown
    known = json.loads(run(folder, "e.org/a", "--json").stdout)
    assert (known["title"], known["inlinks"], known["outlinks"]) == ("A", 1, 1)
    assert known["duplicates"] == [["https://e.org/b", "folded"]]


def test_a_url_that_was_not_read_has_a_summary_but_no_content(folder):
    assert "status:       404" in run(folder, "https://e.org/d").stdout
    refused = run(folder, "https://e.org/d", "--as", "text")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "was not fetched" in refused.stderr or "there is no text" in refused.stderr


def test_an_unknown_url_is_refused_with_advice(folder):
    refused = run(folder, "https://e.org/zzz")
    assert refused.exit_code == 2
    assert "does not know https://e.org/zzz. `periplus pages --url TEXT`" in refused.stderr
    assert "is no URL" in run(folder, "http://[").stderr


def test_a_page_can_be_shown_in_each_form(folder, tmp_path):
    assert (
        run(folder, "https://e.org/", "--as", "source").stdout_bytes
        == SITE["https://e.org/"].encode() + b"<a href='/b'>b</a><a href='/d'>d</a>"
    )
    assert run(folder, "https://e.org/a", "--as", "text").stdout == "Příliš domů\n"
    root = etree.fromstring(run(folder, "https://e.org/", "--as", "xml").stdout_bytes)
    assert root.findtext(".//{*}h1") == "Nadpis"
    assert "content-type: text/html; charset=utf-8" in run(folder, "https://e.org/", "--as", "headers").stdout
    assert run(folder, "https://e.org/", "--as", "xml", "-o", str(tmp_path / "x.xml")).stdout == ""
    assert etree.parse(tmp_path / "x.xml").getroot().tag == root.tag


def test_blocks_are_shown_with_incoming_links(folder):
    table = run(folder, "https://e.org/", "--as", "blocks").stdout
    assert "heading" in table
    assert "Links to it:" in table
    shown = json.loads(run(folder, "https://e.org/a", "--as", "blocks", "--json").stdout)
    assert [(block["kind"], block["text"]) for block in shown["blocks"]] == [
        ("title", "A"),
        ("paragraph", "Příliš domů"),
    ]
    assert [(link["anchor"], link["source"]) for link in shown["inlinks"]] == [("Áčko", "https://e.org/")]


def test_json_is_refused_for_forms_without_fields(folder):
    assert run(folder, "https://e.org/", "--as", "xml", "--json").exit_code == 2


def test_stored_xml_needs_no_stored_body(tmp_path):
    folder = made(tmp_path / "k.periplus", settings_from({"keep_xml": True, "keep_bodies": False, "keep_text": False}))
    with Collection(folder) as kept:
        page = kept.page("https://e.org/")
        assert page.summary().kept == ("xml",)
        data, media_type = page.xml()
        assert (etree.fromstring(data).findtext(".//{*}h1"), media_type) == ("Nadpis", "application/xhtml+xml")
        with pytest.raises(UsageError, match="is stored: see the setting keep_bodies"):
            page.source()


@pytest.mark.parametrize("keep_bodies", [True, False])
def test_an_archive_has_conversion_records_on_request(tmp_path, keep_bodies):
    folder = made(tmp_path / "w.periplus", settings_from({"keep_xml": not keep_bodies, "keep_bodies": keep_bodies}))
    done = export_warc(folder, tmp_path / "w.warc.gz", with_xml=True)
    with (tmp_path / "w.warc.gz").open("rb") as file:
        records = [(r.rec_headers, r.content_stream().read()) for r in ArchiveIterator(file, check_digests="raise")]
    answers = {
        head.get_header("WARC-Record-ID"): head for head, _ in records if head.get_header("WARC-Type") == "response"
    }
    found = [(head, data) for head, data in records if head.get_header("WARC-Type") == "conversion"]
    assert len(found) == done.conversions == 3
    for head, data in found:
        assert answers[head.get_header("WARC-Refers-To")].get_header("WARC-Target-URI") == head.get_header(
            "WARC-Target-URI"
        )
        assert head.get_header("Content-Type") == "application/xhtml+xml"
        etree.fromstring(data)
    assert export_warc(folder, tmp_path / "n.warc.gz").conversions == 0


def test_control_characters_of_a_page_are_removed(tmp_path):
    """Runs in a terminal, since the output differs from that of a pipe."""
    folder = stored(
        tmp_path / "e.periplus", {"https://e.org/": "<p>one\x1b[2Jtwo\x9b1m\x85\x7f&zwnj;x"}, ["https://e.org/"]
    )
    words = ["page", "https://e.org/", "--as", "text", "-c", str(folder)]
    assert CliRunner().invoke(main, words).output == "one[2Jtwo1m \u200cx\n"
    assert CliRunner().invoke(main, [*words, "-o", str(tmp_path / "text")]).exit_code == 0
    assert (tmp_path / "text").read_text() == "one[2Jtwo1m \u200cx\n"
    child = f"import pty, sys; sys.exit(pty.spawn([sys.executable, '-m', 'periplus', *{words!r}]))"
    ran = subprocess.run(
        [sys.executable, "-c", child], capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=600
    )
    assert b"one[2Jtwo" in ran.stdout and b"\x1b[2J" not in ran.stdout, ran
