"""Queries over all pages of a store: equal texts, canonical pages, anchor texts."""

from __future__ import annotations

import contextlib
import sqlite3

import numpy as np
import pytest

from periplus.api.duplicates import duplicate_groups
from periplus.model.page import LINK_KIND_CODES, LinkKind
from periplus.settings import Settings, Storage
from periplus.store import site_rows, text_rows
from periplus.store.site_rows import LinkBlock
from periplus.store.sqlite import reading
from periplus.store.sqlite.listing import SqliteReader
from periplus.urls.aliases import COPY
from periplus.urls.canonical import url_id
from stored import stored

HOME = "https://e.org/"


def html(text, *links):
    return f"<!DOCTYPE html><title>T</title><p>{text}</p>" + "".join(
        f'<nav><a href="{link}">{words}</a></nav>' for link, words in links
    )


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


def groups(connection, site_id=None):
    """(text number, body number) by path, for each group."""
    return [
        {same.page.url.removeprefix(HOME): (same.text, same.body) for same in pages}
        for pages, _ in text_rows.same_texts(SqliteReader(connection), site_id)
    ]


def test_pages_with_different_links_are_no_duplicates(connection):
    assert [set(pages) for pages in groups(connection)] == [{"copy", "czech"}]


def test_folded_duplicates_differ_in_marks_texts_and_bytes(tmp_path):
    pages = {
        HOME: html("Start", ("a", "a"), ("b/long", "b"), ("c", "c"), ("d", "d"), ("e", "e")),
        HOME + "a": html("Prilis zlutoucky kun"),
        HOME + "b/long": html("Příliš žluťoučký kůň"),
        HOME + "c": html("Prilis <i>zlutoucky</i> kun"),
        HOME + "d": html("Příliš žlutoučký kůň"),
        HOME + "e": html("Prilis zlutoucky kun"),
    }
    connection = reading.connect(stored(tmp_path, pages, [HOME]))
    ((same, is_confirmed),) = text_rows.same_texts(SqliteReader(connection))
    by_path = {row.page.url.removeprefix(HOME): row for row in same}
    assert is_confirmed
    assert {name: row.marks for name, row in by_path.items()} == {"a": 0, "b/long": 9, "c": 0, "d": 8, "e": 0}
    assert by_path["a"].text == by_path["c"].text == by_path["e"].text
    assert len({by_path[name].text for name in ("a", "b/long", "d")}) == 3
    assert by_path["a"].body == by_path["e"].body
    assert len({by_path[name].body for name in ("a", "b/long", "c", "d")}) == 4
    assert len(groups(connection, 1)) == 1
    assert groups(connection, 2) == []
    connection.close()


def test_equal_digests_of_different_texts_are_no_duplicates(connection, tmp_path):
    writer = sqlite3.connect(tmp_path / "collection.db")
    writer.execute("UPDATE page SET folded_digest = x'00'")
    writer.commit()
    writer.close()
    assert [set(pages) for pages in groups(connection)] == [{"copy", "czech"}]


def test_a_copy_can_represent_its_group_among_near_duplicates(tmp_path):
    """The copy has the shorter address, so it represents the group."""
    pages = {HOME: html("Start", *((name, name) for name in ("czech", "b", "alone"))), HOME + "alone": html("Alone")}
    twins = dict.fromkeys((HOME + "czech", HOME + "b"), html("Příliš žluťoučký kůň úpěl ďábelské ódy"))
    folder = stored(tmp_path, pages | twins, [HOME])
    with contextlib.closing(sqlite3.connect(folder / "collection.db")) as connection, connection:
        rule = f"{COPY} {HOME}czech"
        connection.execute("UPDATE url SET reason = 'alias', rule = ? WHERE text = ?", (rule, HOME + "b"))
    with contextlib.closing(reading.connect(folder)) as connection:
        (group,) = duplicate_groups(SqliteReader(connection), None, 0.8)
    assert group.url == HOME + "b"


def test_without_stored_texts_digests_decide(tmp_path):
    pages = {
        HOME: html("Start", ("a", "a"), ("b", "b"), ("c", "c")),
        HOME + "a": html("Příliš žluťoučký kůň"),
        HOME + "b": html("Prilis zlutoucky kun"),
        HOME + "c": html("Prilis <b>zlutoucky</b> kun"),
    }
    connection = reading.connect(stored(tmp_path, pages, [HOME], settings=Settings(storage=Storage(keep_text=False))))
    ((same, is_confirmed),) = text_rows.same_texts(SqliteReader(connection))
    by_path = {row.page.url.removeprefix(HOME): row for row in same}
    assert not is_confirmed
    assert by_path["b"].text == by_path["c"].text != by_path["a"].text
    connection.close()


def test_a_canonical_page_of_another_page_is_marked(tmp_path):
    head = f'<link rel="canonical" href="{HOME}a">'
    pages = {
        HOME: html("Start", ("a", "a"), ("b", "b")),
        HOME + "a": head + html("One"),
        HOME + "b": head + html("Two"),
    }
    connection = reading.connect(stored(tmp_path, pages, [HOME]))
    pages_by_id = text_rows.contenders(SqliteReader(connection))
    assert {page.url.removeprefix(HOME): (page.depth, page.is_named) for page in pages_by_id} == {
        "": (0, False),
        "a": (1, True),
        "b": (1, False),
    }
    assert text_rows.tally(SqliteReader(connection), 1) == (3, 3)
    connection.close()


@pytest.mark.parametrize(("counted_at_once", "pages_at_once", "block_rows"), [(1 << 20, 9, 9), (1, 1, 1), (1, 9, 1)])
def test_anchor_texts_are_folded_and_sorted_by_frequency(
    connection, tmp_path, monkeypatch, counted_at_once, pages_at_once, block_rows
):
    monkeypatch.setattr(text_rows, "LINKS_PER_BATCH", counted_at_once)
    monkeypatch.setattr(text_rows, "PAGES_AT_ONCE", pages_at_once)
    monkeypatch.setattr(site_rows, "BLOCK_ROWS", block_rows)
    targets = np.sort([url_id(HOME + name) for name in ("czech", "loud", "alone", "nowhere")])
    anchors = text_rows.anchors_to(SqliteReader(connection), targets, tmp_path)
    first, second = anchors.of(url_id(HOME + "czech"))
    assert (first.lower() in ("kůň", "kun"), second) == (True, "To czech")
    assert anchors.of(url_id(HOME + "loud")) == ["To loud"]  # without its own link
    assert anchors.of(url_id(HOME + "nowhere")) == anchors.of(url_id(HOME)) == []
    assert anchors.of(url_id(HOME + "czech")) == [first, second]
    only = text_rows.anchors_to(SqliteReader(connection), targets, tmp_path, most=1)
    assert only.of(url_id(HOME + "czech")) == [first]


def links_of(*pairs):
    """Links from page 9, and their anchor texts."""
    targets, texts = zip(*pairs, strict=True)
    zeros = np.zeros(len(targets), np.int64)
    return LinkBlock(zeros + 9, np.array(targets), zeros + LINK_KIND_CODES[LinkKind.ANCHOR], zeros, zeros > 0), texts


def test_anchor_texts_beyond_the_limit_are_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(text_rows, "ANCHOR_CHARS", 5)
    texts = text_rows.AnchorTexts(np.array([1, 2]), tmp_path, most=9)
    texts.add(*links_of((1, "abc"), (2, "defg"), (1, "hi"), (2, "ABC"), (2, "abc")))
    assert (texts.of(1), texts.of(2)) == (["abc"], ["abc", "defg"])
