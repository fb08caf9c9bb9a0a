"""Equal texts, anchors: what the store tells of pages together."""

from __future__ import annotations

import sqlite3

import pytest

from periplus.model.page import Position
from periplus.store.sqlite import block_rows, duplicate_rows, reading
from periplus.urls.canonical import url_id
from stored import stored

HOME = "https://e.org/"


def html(text, *links):
    return f"<!DOCTYPE html><title>T</title><p>{text}</p>" + "".join(f'<nav><a href="{link}">{words}</a></nav>' for link, words in links)


@pytest.fixture
def connection(tmp_path):
    pages = {
        HOME: html("Start", *((name, f"To {name}") for name in ("czech", "ascii", "loud", "copy", "alone", "gone"))),
        HOME + "czech": html("Příliš žluťoučký kůň"),
        HOME + "ascii": html("Prilis zlutoucky kun", ("czech", "Kůň"), ("czech", "KUN")),
        HOME + "loud": html("PŘÍLIŠ ŽLUŤOUČKÝ KŮŇ", ("czech", "kun"), ("loud", "itself")),
        HOME + "copy": html("<b>Příliš</b>\n\nžluťoučký kůň") + '<p><a href="czech"> </a></p>',
        HOME + "alone": html("Nobody else says this"),
        HOME + "gone": 404,
    }
    connection = reading.connect(stored(tmp_path, pages, [HOME]))
    yield connection
    connection.close()


def test_pages_with_links_of_their_own_differ(connection):
    assert [page.url for twins in duplicate_rows.equal_texts(connection) for page in twins.pages] == [HOME + "copy", HOME + "czech"]


def test_of_folded_duplicates_the_one_with_diacritics_stays(tmp_path):
    pages = {
        HOME: html("Start", ("a", "a"), ("b/long", "b"), ("c", "c"), ("d", "d")),
        HOME + "a": html("Prilis zlutoucky kun"),
        HOME + "b/long": html("Příliš žluťoučký kůň"),
        HOME + "c": html("PRILIS zlutoucky kun"),
        HOME + "d": html("Příliš žlutoučký kůň"),
    }
    connection = reading.connect(stored(tmp_path, pages, [HOME]))
    (twins,) = duplicate_rows.equal_but_marks(connection)
    assert [page.url for page in twins.pages] == [HOME + "b/long", HOME + "d", HOME + "a", HOME + "c"]
    assert twins.is_confirmed
    assert list(duplicate_rows.equal_texts(connection)) == []
    assert len(list(duplicate_rows.equal_but_marks(connection, 1))) == 1
    assert list(duplicate_rows.equal_but_marks(connection, 2)) == []
    connection.close()


def test_equal_digests_of_different_texts_are_no_duplicates(connection, tmp_path):
    writer = sqlite3.connect(tmp_path / "collection.db")
    writer.execute("UPDATE page SET text_md5 = x'00'")
    writer.commit()
    writer.close()
    assert [[page.url for page in twins.pages] for twins in duplicate_rows.equal_texts(connection)] == [[HOME + "copy", HOME + "czech"]]


def test_anchors_are_folded_and_counted(connection):
    found = block_rows.anchors_to(connection, [url_id(HOME + name) for name in ("czech", "loud", "alone", "nowhere")])
    first, second = found[url_id(HOME + "czech")]
    assert (first.text.lower() in ("kůň", "kun"), first.position, first.pages) == (True, Position.NAV, 2)
    assert (second.text, second.pages, second.source) == ("To czech", 1, url_id(HOME))
    assert [anchor.text for anchor in found[url_id(HOME + "loud")]] == ["To loud"]  # not its own
    assert url_id(HOME + "nowhere") not in found
    assert len(block_rows.anchors_to(connection, [url_id(HOME + "czech")], most=1)[url_id(HOME + "czech")]) == 1


def test_anchors_by_source_are_the_same(connection):
    rows = list(block_rows.anchors_from(connection, [url_id(HOME + "loud"), url_id(HOME)]))
    assert (url_id(HOME + "czech"), url_id(HOME + "loud"), "kun", Position.NAV) in rows
    assert len(rows) == 7
