"""Terms of index and query, which agree in every language."""

import random
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.document import words
from periplus.document.words import (
    STEMMERS,
    WORD_CHARS,
    asked_terms,
    fold_form,
    forms,
    is_run,
    plain,
    shown_forms,
    table,
    unit_patterns,
    units,
)
from periplus.model.page import Block, BlockKind, Blocks

TEXTS = st.text(alphabet=st.one_of(st.characters(), st.sampled_from("aáčЁёй東京กำ한_+#' \n-")), max_size=60)
LANGUAGES = st.sampled_from(["", "cs", "ru", "hu", "en", "de", "ja", "tr", "hi", "xx", "cs-CZ"])


def indexed_terms(text, language):
    """The terms of a text in order, separated by blanks, as in the index."""
    return " ".join(map(table(language).__getitem__, forms(text)))


@pytest.mark.parametrize(
    ("language", "asked", "text"),
    [
        ("cs", "prilis", "Příliš žluťoučký kůň"),
        ("cs", "města", "Ve městech"),
        ("cs", "knihovna", "mezi knihovnami"),
        ("ru", "елка", "Ёлки в лесу"),
        ("ru", "ГОРОД", "в городах"),
        ("hu", "könyvtár", "könyvtárakban"),
        ("hu", "orult", "Őrült"),
        ("en", "city", "cities"),
        ("de", "strasse", "Straße"),
        ("fr", "ete", "l’été"),
        ("en", "C++", "in C++11 and C#"),
        ("en", "create_task", "asyncio.create_task()"),
        ("pl", "lodz", "Łódź"),
        ("ja", "京都", "東京都に"),
        ("th", "ไทย", "ภาษาไทยง่าย"),
        ("ko", "한국", "대한한국어"),
        ("en", "ﬁne", "FINE"),
    ],
)
def test_a_word_is_found_in_its_text(language, asked, text):
    terms = indexed_terms(text, language).split()
    wanted = [term for form in forms(asked) for term in asked_terms(form, language)]
    assert any(terms[at : at + len(wanted)] == wanted for at in range(len(terms))), (wanted, terms)


def test_distinct_letters_are_not_folded():
    assert fold_form("мой") == "мой"  # й differs from и
    assert fold_form("हिन्दी") == "हिन्दी"
    assert fold_form("が") == "が"


def test_a_spelling_without_marks_differs_from_a_folded_one():
    assert shown_forms(forms("Příliš prilis")) == {"příliš", "~prilis", "prilis"}


@given(TEXTS, LANGUAGES)
@settings(max_examples=50)
def test_terms_of_a_text_are_the_same_in_index_and_query(text, language):
    indexed = indexed_terms(text, language).split(" ") if forms(text) else []
    place = 0
    for form in forms(text):
        asked = asked_terms(form, language)
        assert indexed[place : place + len(asked)] == asked
        place += len(table(language)[form].split(" "))
    assert place == len(indexed)


@given(TEXTS)
@settings(max_examples=50)
def test_folding_is_idempotent(text):
    assert plain(plain(text)) == plain(text)
    assert fold_form(fold_form(text)) == fold_form(text)
    assert [form for word in forms(text) for form in forms(word)] == forms(text)


@given(TEXTS)
@settings(max_examples=100)
def test_positions_of_units_are_ascending_and_inside_the_text(text):
    end = 0
    for _, start, stop in units(text):
        assert end <= start < stop <= len(text)
        end = stop


def test_every_language_with_a_stemmer_has_terms():
    for language in STEMMERS:
        assert indexed_terms("Testování lieben книгах könyvtárakban", language)


@given(
    st.lists(st.one_of(TEXTS, st.sampled_from(["c++ a+++ #b c# d#e f++g", "_a#_ 9++", "ＡB ①"])), max_size=4).map(
        "\n".join
    )
)
@settings(max_examples=50)
def test_forms_of_lines_equal_those_of_the_whole_text(text):
    word, units, _ = unit_patterns()
    whole = plain(text).replace("_", " ")
    assert forms(text) == [match[0] for match in (units if any(map(is_run, whole)) else word).finditer(whole)]


@given(TEXTS)
@settings(max_examples=100)
def test_spellings_are_each_form_and_its_folded_form(text):
    kept = {form[:WORD_CHARS] for form in forms(text * 8) if not is_run(form)}
    assert shown_forms(forms(text * 8)) == kept | {"~" + fold_form(form) for form in kept if fold_form(form) != form}


ODD_TEXTS = (
    "",
    "Hoping for HOPE: hopes_hoped",
    "C++ c+++ c++11 C# c#x x# # ++ a++#",
    "line one\nPříliš žluťoučký kůň\nlines three — ’quoted’ ¶",
    "soft\u00adhyphen\nand after\n",
    "中文 text\n\ntext " + "long" * 40 + " " + "ab" * 31 + "++ " + "ab" * 32 + "#",
    "\x01\x02 a\x01b \ud800 end",
)


# characters inside and outside the tables: marks, letters that fold to two characters, final forms, digits, symbols
LETTERS = (
    "aBc9 +#_.\n\t\x01\x02\u00e9\u00b6\u00df\u2014\u00ad\u0130\u4e2d-xyzZ+#"
    "ÄöŠжЁёΣσςάאש٣ع²ªŉǅǆ·÷\u0301\u0345\u05b4\u0640\u0f0b\u1e9e\u212b\ufb01"
)


@pytest.mark.parametrize("language", ["en", "", "cs", "de", "ru", "el"])
def test_the_cutter_gives_the_terms_and_spellings_of_blocks(language):
    cutter, rng = words.TextCutter("between"), random.Random(8)
    between = words.table(language)["between"]
    kinds = [BlockKind.PARAGRAPH] * 3 + [BlockKind.TITLE, BlockKind.ALT, BlockKind.CODE]
    for _ in range(300):
        texts = [
            "".join(rng.choices(LETTERS.replace(" ", "    "), k=rng.randint(1, 40))) for _ in range(rng.randint(0, 9))
        ]
        blocks = Blocks.of([Block(rng.choice(kinds), text, "p") for text in texts])
        groups = bytes(rng.choices((0, 1, 2), k=len(blocks)))
        places, of_block = words.BlockTexts(blocks), blocks.texts()
        assert [places(number) for number in range(len(blocks))] == of_block
        cutter.begin_page()
        for group in (1, 2):
            own = [forms(text) for text, one in zip(of_block, groups, strict=True) if one == group]
            terms = [" ".join(map(words.table(language).__getitem__, read)) for read in own]
            cut = cutter.block_terms(places, groups, group, language, spelled=group == 1)
            assert cut.split() == f" {between} ".join(terms).split()
            if group == 1:
                spelled = words.shown_forms([form for read in own for form in read])
        assert sorted(cutter.spellings("").split()) == sorted(spelled)


@pytest.mark.parametrize("language", ["en", "", "cs", "de", "ru", "el"])
def test_the_cutter_gives_the_terms_and_spellings_of_pages(language):
    cutter, rng = words.TextCutter(), random.Random(7)
    letters = LETTERS
    made = ["".join(rng.choices(letters, k=rng.randint(0, 30))) for _ in range(2_000)]
    for text in (*ODD_TEXTS, *made, "\n".join(ODD_TEXTS), " ".join(made)):
        read = forms(text)
        cutter.begin_page()
        assert cutter.terms(text, language).split() == " ".join(map(words.table(language).__getitem__, read)).split()
        assert sorted(cutter.spellings("of").split()) == sorted(words.shown_forms(read) - {"of"})
        cutter.terms(text, language, spelled=False)
        assert cutter.spellings("of") == ""


def test_the_cache_of_words_is_limited(monkeypatch):
    monkeypatch.setattr(words, "KEPT_WORDS", 50)
    cutter = words.TextCutter()
    for number in range(30):
        text = " ".join(f"words{number}x{place} hoping" for place in range(20))
        cutter.begin_page()
        assert cutter.terms(text, "en").split() == [words.table("en")[form] for form in forms(text)]


def test_every_combining_mark_is_part_of_a_character():
    _, _, character = words.unit_patterns()
    marks = [chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code))[0] == "M"]
    assert character.fullmatch("a" + "".join(marks))


def test_two_forms_with_the_same_folded_spelling_list_it_once():
    cutter = words.TextCutter()
    cutter.begin_page()
    cutter.terms("Où va-t-on, oú, ou où ?", "fr")
    assert sorted(cutter.spellings("").split()) == sorted(["on", "ou", "oú", "où", "t", "va", "~ou"])
