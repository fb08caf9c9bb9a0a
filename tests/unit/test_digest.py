"""Digests of bytes, text and text without diacritics; folding of text and white space."""

from __future__ import annotations

import unicodedata

import pytest
from xxhash import xxh3_128_digest

from periplus.document.digest import digests, without_marks


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Plain TEXT", "plain text"),
        ("Příliš ŽLUŤOUČKÝ kůň", "prilis zlutoucky kun"),
        ("cafe\u0301", "cafe"),
        ("Straße Ærø Łódź", "strasse aero lodz"),
        ("„Ano“ – ‘ne’ …", "\"ano\" - 'ne' ..."),
        ("Ёлка Йод", "елка иод"),
        ("Ελλάδα", "ελλαδα"),
        ("ﬁn Ａ", "fin a"),
        ("中文 日本", "中文 日本"),
    ],
)
def test_case_and_marks_are_removed(text, plain):
    assert without_marks(text) == plain


def test_texts_with_many_distinct_characters_give_the_same_result():
    letters = "".join(
        char
        for code in range(0x80, 0x2000)
        if (char := chr(code)).isalpha() and char == unicodedata.normalize("NFC", char)
    )
    assert without_marks(letters) == "".join(map(without_marks, letters))


def test_digests_are_xxh3_of_the_body_and_both_texts():
    found = digests(b"body", "Kůň".encode())
    assert (found.body, found.text, found.folded) == (
        xxh3_128_digest(b"body"),
        xxh3_128_digest("Kůň".encode()),
        xxh3_128_digest(b"kun"),
    )


def test_without_text_the_digest_of_the_body_is_used():
    found = digests(b"body", b"")
    assert found.body == found.text == found.folded == xxh3_128_digest(b"body")


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Příliš ŽLUŤOUČKÝ", "prilis zlutoucky"),
        ("Árvíztűrő TÜKÖRFÚRÓGÉP", "arvizturo tukorfurogep"),
        ("Ещё ЁЛКА", "еще елка"),
        ("Ελλάς ΆΛΦΑ", "ελλασ αλφα"),
        ("İSTANBUL Işık ağaç", "istanbul isik agac"),
        ("e\u0301 \u00e9", "e e"),
    ],
)
def test_diacritics_of_many_languages_are_removed(text, folded):
    assert without_marks(text) == folded
