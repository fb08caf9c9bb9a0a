"""A site with each text in every encoding of its language: a crawl decodes all texts and finds all duplicates."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from periplus.api.collection import Collection
from periplus.api.duplicates import duplicates
from periplus.cli.main import main
from periplus.document.digest import without_marks
from periplus.errors import UsageError
from periplus.model.duplicates import Ground, Likeness
from periplus.model.page import ALL_PARTS
from periplus.store.sqlite import reading
from periplus.store.sqlite.listing import SqliteReader
from stored import stored
from testweb import serve
from testweb.site import Page, Site, Web
from testweb.tongues import TEXTS, written
from testweb.wire import Answer
from whole.test_encodings import body_of, media_type, variants
from whole.voyage import crawled

IN_ASCII = ("cs", "hu", "de")  # languages that also have a version without diacritics
# languages with a near duplicate: the texts are long enough to be compared
EDITED = ("cs", "hu", "ru", "de", "ja", "el")
HOST = "tongues.test"


def in_ascii(language):
    """The text for terminals with ASCII only."""
    first, *others = map(without_marks, TEXTS[language])
    rest = "".join(f"<p>{paragraph}</p>" for paragraph in others)
    return written(
        (
            "<!doctype html><html><head><meta "
            f"charset=us-ascii><title>{first}</title></head><body><h1>Page</h1>{rest}</body></html>"
        ),
        "ascii",
    )


def edited(language):
    """The text with some additional words at the end."""
    whole = body_of(language, "utf-8", "header").decode()
    return whole.replace("</p></body>", " 1 2 3</p></body>").encode()


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """(the crawled collection's folder, language by URL, the same of pages that are nearly equal)."""
    site, texts, near = Site(HOST), {}, {}
    site.add(Page("/", "Tongues", ("One text in many encodings.",)))
    for language in TEXTS:
        for encoding, declared in variants(language):
            path = f"/{language}-{encoding}-{declared.replace(' ', '-')}.html"
            site.answer(
                path,
                Answer(body=body_of(language, encoding, declared), media_type=media_type(language, encoding, declared)),
            )
            texts[path] = language
    for language in EDITED:
        site.answer(f"/{language}.html", Answer(body=edited(language), media_type="text/html; charset=utf-8"))
        near[f"/{language}.html"] = language
    for language in IN_ASCII:
        site.answer(f"/{language}-plain.html", Answer(body=in_ascii(language), media_type="text/html"))
        texts[f"/{language}-plain.html"] = language
    folder = tmp_path_factory.mktemp("tongues")
    with serve(Web([site])) as server:
        crawled(folder, server, HOST, delay_s=0.0)
        return (
            folder,
            {server.url(HOST, path): language for path, language in texts.items()},
            {server.url(HOST, path): near[path] for path in near},
        )


def test_every_pages_text_is_the_original(kept):
    folder, texts, _ = kept
    wrong = []
    with Collection(folder) as collection:
        for url, language in texts.items():
            text = collection.page(url).text(ALL_PARTS)
            original = "\n".join(["Page", *TEXTS[language][1:]])
            if text != (
                without_marks(original).replace("page", "Page", 1) if url.endswith("-plain.html") else original
            ):
                wrong.append(url)
    assert wrong == []


def test_every_duplicate_is_found_and_nothing_else(kept):
    folder, texts, near = kept
    with Collection(folder) as collection:
        found = collection.duplicates()
    groups = [{group.url, *(page.url for page in group.pages)} for group in found.groups]
    every = texts | near
    assert sorted(map(sorted, groups)) == sorted(
        sorted(url for url in every if every[url] == language) for language in TEXTS
    )
    assert all(group.is_confirmed for group in found.groups)
    assert found.pages == len(every) + 1


def test_the_version_with_diacritics_is_the_representative(kept):
    folder, texts, _ = kept
    with Collection(folder) as collection:
        found = collection.duplicates(near=1.0)
    for group in found.groups:
        language = texts[group.url]
        plain = [page for page in group.pages if page.url.endswith("-plain.html")]
        assert not group.url.endswith("-plain.html")
        assert [page.like for page in plain] == [Likeness.FOLDED] * (language in IN_ASCII)
        assert (Ground.MARKS in group.grounds) == (language in IN_ASCII)
        assert {page.like for page in group.pages if page not in plain} <= {Likeness.BYTES, Likeness.WORDS}


def test_a_page_with_additional_words_is_a_near_duplicate(kept):
    folder, _, near = kept
    with Collection(folder) as collection:
        found = collection.duplicates()
    apart = [(group, page) for group in found.groups for page in group.pages if page.like is Likeness.NEAR]
    assert {page.url for _, page in apart} == set(near)
    for group, page in apart:
        assert 0.8 <= page.similarity < 1
        assert page.contained == pytest.approx(page.similarity)  # it contains all words of the others
        assert Ground.COPIES in group.grounds


def test_the_command_prints_groups_as_text_json_and_rows(kept):
    folder, texts, _ = kept
    run = CliRunner().invoke
    text = run(main, ["duplicates", "-c", str(folder), "--most", "-1"])
    assert text.exit_code == 0
    assert "stands for" in text.output and "most diacritics" in text.output and "[windows-1250]" in text.output
    told = json.loads(run(main, ["duplicates", "-c", str(folder), "--json"]).output)
    assert len(told["groups"]) == len(TEXTS)
    rows = list(
        csv.DictReader(io.StringIO(run(main, ["duplicates", "-c", str(folder), "-f", "csv", "--near", "1"]).output))
    )
    assert sorted(row["url"] for row in rows) == sorted(texts)
    assert sum(row["represents"] == "True" for row in rows) == len(TEXTS)
    assert run(main, ["duplicates", "nowhere.test", "-c", str(folder)]).exit_code == 2


def test_near_duplicate_hits_of_a_search_are_merged(tmp_path):
    paragraphs = [
        f"<p>The lighthouse of harbour {name} stands on a rock, and its light is seen from far away.</p>"
        for name in "abcdefgh"
    ]
    page = "<!doctype html><title>{0}</title><h1>{0}</h1>{1}"
    home = page.format("Home", '<a href="/one">one</a> <a href="/two">two</a> <a href="/other">other</a>')
    pages = {
        "https://e.org/": home,
        "https://e.org/one": page.format("Lighthouses", "".join(paragraphs)),
        "https://e.org/two": page.format("Lighthouses", "".join(paragraphs) + "<p>A line more.</p>"),
        "https://e.org/other": page.format(
            "Harbours", "<p>Another harbour has a lighthouse, and nothing else is said of it here.</p>"
        ),
    }
    with Collection(stored(tmp_path / "c", pages, ["https://e.org/"])) as collection:
        found = collection.search("lighthouse harbour")
    assert found.total == 3
    assert sorted((hit.title, len(hit.near)) for hit in found.hits) == [("Harbours", 0), ("Lighthouses", 1)]
    assert {url for hit in found.hits for url in (hit.url, *hit.near)} == set(pages) - {"https://e.org/"}


def test_without_marks_content_is_computed_for_this_answer_only(tmp_path):
    words = [f"word{number} of{number}" for number in range(60)]
    page = (
        "<!doctype html><title>{0}</title><nav><a href='/one'>one</a> <a "
        "href='/two'>two</a></nav><main><h1>{0}</h1><p>{1}</p></main>"
    )
    pages = {
        "https://e.org/": page.format("Home", "Welcome."),
        "https://e.org/one": page.format("Words", " ".join(words)),
        "https://e.org/two": page.format("Words", " ".join([*words, "more"])),
    }
    folder = stored(tmp_path / "c", pages, ["https://e.org/"])
    connection = reading.connect(folder)
    found = duplicates(SqliteReader(connection), "e.org")
    assert (found.site, found.pages) == ("e.org", 3)
    assert [(group.url, [(page.url, page.like) for page in group.pages]) for group in found.groups] == [
        ("https://e.org/one", [("https://e.org/two", Likeness.NEAR)])
    ]
    assert "3 pages" in found.notes[0]
    assert duplicates(SqliteReader(connection), near=1.0).groups == ()
    with pytest.raises(UsageError, match=r"from 0\.3 to 1"):
        duplicates(SqliteReader(connection), near=0.1)
    connection.close()
    with Collection(folder) as collection:
        again = collection.duplicates("e.org")
    assert (again.groups, again.notes) == (found.groups, ())
