"""Which language a text is in."""

from __future__ import annotations

import pytest

from periplus.document.language import language_of, page_language
from testweb.tongues import TEXTS


@pytest.mark.parametrize("language", TEXTS)
def test_each_paragraph_is_known(language):
    assert {language_of(paragraph) for paragraph in TEXTS[language]} == {language.partition("-")[0]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\x00\ud800",
        "OK",
        "12. 3. 2004, 100 %",
        "x" * 10_000,
        "f yyrtn n gny tenqb dhr cbe cnerpre nznqnf qrwnein gur vafgnyy",
    ],
)
def test_what_is_in_no_language_has_none(text):
    assert language_of(text) == ""


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Այս փարոսը կանգնած է ժայռի եզրին", "hy"),
        ("ეს შუქურა კლდის პირას დგას", "ka"),
        ("यह प्रकाशस्तंभ चट्टान के किनारे है", "hi"),
    ],
)
def test_a_script_of_its_own_tells_the_language(text, language):
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("declared", "language", "told"),
    [
        ("cs", "cs", "cs"),
        ("cs-CZ", "cs", "cs"),
        ("en", "cs", "cs"),  # copied from a template
        ("", "pl", "pl"),
        ("english", "ru", "ru"),
        ("cz", "cs", "cs"),
        ("nb-NO", "no", "no"),
        ("zh-Hant-TW", "zh-hant", "zh"),
        ("sr", "ru", "ru"),
    ],
)
def test_the_text_is_believed_where_it_tells_plainly(declared, language, told):
    assert page_language(declared, "\n".join(TEXTS[language])) == told


@pytest.mark.parametrize(
    ("declared", "text", "told"),
    [("cs", "OK", "cs"), ("", "OK", ""), ("eo", "x y z", "eo"), ("xx_YY", "", "xx"), ("!", "", "")],
)
def test_the_declaration_is_believed_where_the_text_is_too_short(declared, text, told):
    assert page_language(declared, text) == told
