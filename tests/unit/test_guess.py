"""Detection of a character encoding from the text."""

from __future__ import annotations

import pytest

from periplus.document.decode import is_contradicted
from periplus.document.guess import encoding_of, guess_encoding, hinted_languages
from periplus.document.utf8 import is_utf_8
from testweb.tongues import ENCODINGS, TEXTS, written

CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy."


@pytest.mark.parametrize("language", TEXTS)
def test_every_encoding_of_a_language_is_detected(language):
    text = "\n".join(TEXTS[language])
    for encoding in ENCODINGS[language]:
        found = guess_encoding(written(text, encoding))
        assert found is not None
        assert found.encoding.text(written(text, encoding)) == text, (encoding, found)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_encodings_are_detected_by_zero_bytes(codec):
    body = CZECH.encode(codec)
    found = guess_encoding(body)
    assert found is not None
    assert found.encoding.text(body) == CZECH


@pytest.mark.parametrize(
    "body",
    [b"", b"plain", b"<p title='\xe9'></p>", bytes(range(256)), b"\x80", b"\xff" * 9999, b"\0" * 50, b"\x1b$\xff"],
)
def test_detection_never_raises(body):
    found = guess_encoding(body)
    assert found is None or isinstance(found.encoding.text(body), str)


def test_markup_scripts_and_entities_are_ignored():
    noise = (
        "<script>var a = 'Привет, как дела? Это не текст страницы.'</script><!-- и это тоже -->&aacute;".encode(
            "cp1251"
        )
        * 20
    )
    found = guess_encoding(noise + b"<p title='x'>" + CZECH.encode("cp1250"))
    assert found is not None
    assert found.encoding.name == "windows-1250"


def test_a_hint_decides_when_there_are_few_letters():
    body = "úspěch".encode("cp852")
    found = guess_encoding(body, "cz")
    assert found is not None
    assert found.encoding.text(body) == "úspěch"


@pytest.mark.parametrize(
    ("body", "top", "languages"),
    [
        (b"", "cz", {"cs"}),
        (b"<html lang='pl'>", "", {"pl"}),
        (b'<HTML class=x LANG="zh-TW">', "hk", {"zh-hant"}),
        (b"<html lang=no>", "no", {"nb"}),
        (b"", "ch", {"de", "fr", "it"}),
        (b"", "", set()),
    ],
)
def test_languages_follow_from_declaration_and_domain(body, top, languages):
    assert {language for language in hinted_languages(body, top) if language} == languages


def contradicted(declared, body, hint=""):
    encoding = encoding_of(declared)
    assert encoding is not None
    return is_contradicted(encoding, body, is_utf_8(body), True, hint)


@pytest.mark.parametrize("language", ["cs", "pl", "ru", "el", "de", "fr", "tr", "ja", "ko", "zh", "he"])
def test_a_correct_declaration_is_not_contradicted(language):
    for paragraph in TEXTS[language]:
        for encoding in ENCODINGS[language]:
            assert not contradicted(encoding, written(paragraph, encoding)), (encoding, paragraph)


@pytest.mark.parametrize(
    ("declared", "body"),
    [
        ("windows-1252", "\n".join(TEXTS["cs"]).encode("cp1250")),
        ("iso-8859-2", "\n".join(TEXTS["ru"]).encode("koi8-r")),
        ("windows-1251", "\n".join(TEXTS["ru"]).encode("koi8-r")),
        ("gbk", "\n".join(TEXTS["ru"]).encode("cp1251")),
        ("shift_jis", TEXTS["ja"][0].encode("euc-jp")),
        ("iso-8859-1", TEXTS["ja"][0].encode("euc-jp")),
        ("iso-8859-1", CZECH.encode()),
        ("utf-16", b"<html><title>plain"),
        ("iso-8859-1", CZECH.encode("utf-16-le")),
        ("iso-8859-3", "\n".join(TEXTS["ru"]).encode("cp866")),
    ],
)
def test_a_wrong_declaration_is_contradicted(declared, body):
    assert contradicted(declared, body)


@pytest.mark.parametrize("body", [b"", b"plain", "café".encode("latin-1"), b"\xff\xfe\xfd", "ŮúňŠ".encode("cp1250")])
def test_few_letters_do_not_contradict_a_declaration(body):
    assert not contradicted("windows-1250", body)


@pytest.mark.parametrize(
    "text",
    [
        "If it is true, we’ll now be able to save the form and tell the reader what came of it, all at once.",
        "The route from the first survey—it took a year—to the last sheet is told in “The Chart Room”, page 9.",
        "He said “I think this is the harbour’s light”, and no one doubted it; the others’ lamps were out by then…",
        "A quotation that opens with the sign that should close it is common, and this one is ’best effort’ at most.",
        "Our tools read Windows® and Mac™ files from the years before the change, and write none of them again.",
        "The two parts can\xa0be sold apart.\xa0 Ask at the desk for the price of each, which changes every month.",
    ],
)
def test_english_with_typographic_characters_is_windows_1252(text: str):
    guess = guess_encoding(text.encode("cp1252"))
    assert guess is not None and guess.encoding.text(text.encode("cp1252")) == text


@pytest.mark.parametrize("codec", ["iso8859-7", "cp1253"])
def test_greek_encodings_that_differ_in_one_letter_are_both_detected(codec: str):
    text = "Άλλοι ήρθαν στο λιμάνι αργά. Άνοιξε η πόρτα του φάρου, και ο φύλακας τους έδειξε τη θάλασσα."
    guess = guess_encoding(text.encode(codec))
    assert guess is not None and guess.encoding.text(text.encode(codec)) == text


def test_a_japanese_page_with_rare_characters_keeps_its_declaration():
    """Most of its characters are rare in every language, but its sentences have Japanese syllables."""
    declared = encoding_of("shift_jis")
    rare = "".join(map(chr, range(0x9E00, 0x9E80)))
    body = ("<p>このページはまれな字をならべたものです。" + rare).encode("cp932", "ignore") + b"</p>"
    assert declared is not None and not is_contradicted(declared, body, False, True, "")
    lie = ("<p>" + "we’ll call it “a day” — she said. " * 9).encode("cp1252")
    assert is_contradicted(declared, lie, False, True, "")
