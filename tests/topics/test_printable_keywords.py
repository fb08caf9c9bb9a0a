"""Keywords that are fit for display."""

import json
from importlib.resources import files

import pytest

from periplus_topics.analyse.keyword_reading import frame_texts, is_heading, is_printable


@pytest.mark.parametrize(
    ("keyword", "language"),
    [
        ("Monday", "en"),
        ("Tuesday morning", "en"),
        ("latest", "en"),
        ("Latest news", "en"),
        ("read more", "en"),
        ("14 May", "en"),
        ("six bicycles", "en"),
        ("eleven and seventy-nine", "en"),
        ("ferry Margit carries sixty passengers", "en"),
        ("Smondet pointed", "en"),
        ("updated to reflect", "en"),
        ("said", "en"),
        ("stood still and nobody came near it", "en"),
        ("Dienstag", "de"),
        ("Weiterlesen", "de"),
        ("drei Häuser", "de"),
        ("pondělí", "cs"),
        ("osm stupňů", "cs"),
        ("15. června", "cs"),
        ("dernière semaine", "fr"),
        ("lire la suite", "fr"),
        ("jueves", "es"),
        ("giovedì", "it"),
        ("segunda-feira", "pt"),
        ("piątek", "pl"),
        ("vrijdag", "nl"),
        ("csütörtökön", "hu"),
        ("štvrtok", "sk"),
        ("понедельник", "ru"),
        ("п'ятниця", "uk"),
        ("Sunday", ""),
    ],
)
def test_dates_counts_and_template_words_are_not_printable(keyword, language):
    assert not is_printable(keyword, language)


@pytest.mark.parametrize(
    ("keyword", "language"),
    [
        ("bell buoy", "en"),
        ("Grey Skerry", "en"),
        ("Four Seasons", "en"),
        ("Bank of England", "en"),
        ("tables for May", "en"),
        ("LED", "cs"),
        ("Hochwasser", "de"),
        ("новый мост", "ru"),
        ("灯台", "ja"),
    ],
)
def test_meaningful_keywords_are_printable(keyword, language):
    assert is_printable(keyword, language)


def test_every_language_with_function_words_has_unprintable_words():
    folder = files("periplus_topics.analyse")
    lists = [
        json.loads((folder / name).read_text("utf-8")) for name in ("function_words.json", "unprintable_words.json")
    ]
    assert lists[0].keys() == lists[1].keys()


def test_texts_of_half_of_the_pages_are_template_texts():
    pages = [["Home", "one", "By us"], ["Home", "two", "By us"], ["Home", "three"], ["four", "four"]]
    assert frame_texts(pages) == {"Home", "By us"}
    assert frame_texts(pages[:2]) == frozenset()


@pytest.mark.parametrize(
    ("keyword", "language", "heading"),
    [
        ("Chapter", "en", True),
        ("Figure 3", "en", True),
        ("Chapitre", "fr", True),
        ("Главы", "ru", True),
        ("Kapitola 2", "cs", True),
        ("chapter house", "en", False),
        ("figure skating", "en", False),
    ],
)
def test_names_of_parts_of_a_document_are_headings(keyword, language, heading):
    assert is_heading(keyword, language) == heading
