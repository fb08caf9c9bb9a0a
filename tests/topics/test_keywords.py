"""Keywords: words and pauses of a text, candidates, published methods, keywords of texts and groups."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus_topics.analyse.keyword_measures import (
    DAMPING,
    GRAPH_WINDOW,
    NAMES,
    is_passage,
    measures,
    page_measures,
    singlerank,
)
from periplus_topics.analyse.keyword_reading import LONG, MOST, NOTHING, candidates, count_texts, read, together
from periplus_topics.analyse.keywords import METHODS, Contrast, keywords_of, keywords_of_all

HARBOUR = (
    "The harbour museum has an old lighthouse. Visitors may climb the old lighthouse in summer; the "
    "harbour museum shows the lens.\n\n"
    "In winter the harbour museum is closed, and nobody climbs."
)
OTHERS = ["The museum of bees shows hives.", "Visitors of the town hall climb in summer.", "A lens of glass."]


def phrases(text, language="en"):
    kept = read(text, language)
    found = candidates(kept)
    return {
        kept.original_words(int(place), int(size))
        for place, size in zip(found.places[found.first], found.sizes, strict=True)
    }


def plain_phrases(words, stops):
    """The slow twin: every run of at most MOST words without a function word at its ends."""
    runs = {
        tuple(words[at : at + size])
        for at in range(len(words))
        for size in range(1, MOST + 1)
        if at + size <= len(words)
    }
    return {" ".join(run) for run in runs if run[0] not in stops and run[-1] not in stops}


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("fast red cars, blue boats", "fast red cars", "cars, blue"),
        ("a state-of-the-art engine", "state-of-the-art engine", "a state"),
        ("He left. Boats came", "Boats", "left. Boats"),
        ("supplying\n web platforms", "supplying web platforms", "supplying\n web platforms"),
        ("The title\nBoats came", "title", "title Boats"),
        ("museum of bees", "museum of bees", "museum of"),
        ("in 1884 ships", "ships", "1884"),
    ],
)
def test_phrases_end_at_a_pause_or_a_function_word(text, inside, outside):
    assert inside in phrases(text)
    assert outside not in phrases(text)


@given(st.lists(st.sampled_from(["ship", "light", "of", "the", "coast", "storm", "and", "lens"]), max_size=12))
@settings(max_examples=40)
def test_candidates_equal_those_of_slow_code(words):
    assert phrases(" ".join(words)) == plain_phrases(words, {"of", "the", "and"})


def test_all_forms_of_a_stem_are_counted():
    found = keywords_of(read("Hrad stojí. Hradu chybí střecha. K hradu vede cesta.", "cs"), NOTHING, 30)
    assert next(keyword.times for keyword in found if keyword.text.lower().startswith("hrad")) == 3


def test_long_phrases_of_long_texts_are_candidates_if_repeated():
    filler = " ".join(f"word{number}, " for number in range(LONG))
    assert "huge old stone bridge" not in phrases(filler + "huge old stone bridge")
    assert "huge old stone bridge" in phrases(filler + "huge old stone bridge. The huge old stone bridge")


def test_ideographs_are_words():
    assert "東京" in phrases("東京は大きい都市です。東京", "ja")


@given(st.text(max_size=200), st.sampled_from(["", "en", "cs", "ru", "ja", "xx"]))
@settings(max_examples=60)
def test_every_method_accepts_any_text(text, language):
    kept = read(text, language)
    for method in METHODS:
        for keyword in keywords_of(kept, NOTHING, 5, method):
            assert keyword.text and keyword.times >= 1 and math.isfinite(keyword.score)


@given(st.text(alphabet="ab ,.\n-é1", max_size=120))
@settings(max_examples=40)
def test_measures_are_finite_numbers(text):
    kept = read(text, "en")
    found = candidates(kept)
    matrix = measures(kept, found, count_texts([kept, kept]))
    assert matrix.shape == (len(NAMES), len(found.keys))
    assert np.isfinite(matrix).all()


@pytest.mark.parametrize("others", [3, 30, 300])
def test_the_rarity_of_a_word_on_one_page_does_not_depend_on_the_collections_size(others):
    kept = read(HARBOUR, "en")
    found = candidates(kept)
    counts = count_texts([kept, *(read(OTHERS[number % 3], "en") for number in range(others))])
    matrix = page_measures(kept, found, counts)
    rarity = dict(zip(found.keys.tolist(), matrix[NAMES.index("idf")].tolist(), strict=True))
    lighthouse, lens = (int(candidates(read(word, "en")).keys[0]) for word in ("lighthouse", "lens"))
    assert rarity[lighthouse] == pytest.approx(1.0, abs=1e-6)
    assert rarity[lens] < 1.0
    assert matrix[-1] == pytest.approx(math.log(others + 2))
    assert np.isfinite(page_measures(kept, found, NOTHING)).all()


def test_counts_are_numbers_of_texts_without_words_of_a_single_text():
    texts = [read(text, "en") for text in (HARBOUR, *OTHERS)]
    counts = count_texts(texts)
    museum, bees = (candidates(read(word, "en")).keys for word in ("museum", "hives"))
    assert counts.texts == 4
    assert counts.of(museum).tolist() == [2]
    assert counts.of(bees).tolist() == [1]
    assert bees[0] not in counts.keys


def test_counts_of_parts_can_be_added():
    texts = [read(text, "en") for text in (HARBOUR, *OTHERS, HARBOUR)]
    museum = candidates(read("visitors", "en")).keys
    both = together(count_texts(texts[:3] + texts[4:]), count_texts(texts[2:3] + texts[2:3]))
    assert both.texts == 6
    assert both.of(museum).tolist() == [5]


def test_singlerank_equals_the_plain_formula():
    text = read(HARBOUR, "en")
    words = [key for key, stop in zip(text.keys.tolist(), text.stops.tolist(), strict=True) if not stop]
    near = Counter(
        pair
        for at, word in enumerate(words)
        for other in words[at + 1 : at + GRAPH_WINDOW]
        for pair in ((word, other), (other, word))
        if word != other
    )
    out, score = Counter(), dict.fromkeys(words, 1 / len(set(words)))
    for (word, _), times in near.items():
        out[word] += times
    for _ in range(200):
        score = {
            to: (1 - DAMPING) / len(score)
            + DAMPING * sum(score[word] * times / out[word] for (word, end), times in near.items() if end == to)
            for to in score
        }
    phrases = candidates(text)
    scores = singlerank(text, phrases, NOTHING)
    ranked = np.flatnonzero(np.isfinite(scores))
    assert len(ranked) > 5
    for at in ranked.tolist():
        place = int(phrases.places[phrases.first[at]])
        keys = text.keys[place : place + int(phrases.sizes[at])].tolist()
        assert scores[at] == pytest.approx(sum(score.get(key, 0.0) for key in keys), abs=1e-5)


def test_singlerank_finds_a_repeated_phrase():
    assert "harbour museum" in [
        keyword.text.lower() for keyword in keywords_of(read(HARBOUR, "en"), NOTHING, 3, "singlerank")
    ]


def test_keywords_of_a_group_distinguish_it_from_the_rest():
    harbours = [read(f"News of the town. The harbour museum opened hall {number}.", "en") for number in "abc"]
    rest = [read(f"News of the town. The bakery sold {bread} bread.", "en") for bread in ("rye", "white", "brown")]
    found = keywords_of_all(harbours, count_texts(harbours + rest), 3, "singlerank", Contrast(count_texts(rest)))
    assert found[0].pages == 3
    assert "museum" in found[0].text or "harbour" in found[0].text
    assert not {"news", "town"} & set(found[0].text.lower().split())


def test_repeated_template_text_of_a_site_is_no_keyword():
    pages = [
        read(f"Signed in. {name} ships sail with {name} ships. Harbour harbour.", "en")
        for name in ("old", "big", "tall", "fast", "red", "wet") * 2
    ]
    found = keywords_of_all(pages[:6] + pages[6:], count_texts(pages), 5, "singlerank", Contrast(framed=True))
    assert "Signed" not in [keyword.text for keyword in found]
    assert found


def test_a_word_in_another_script_has_one_stem_on_pages_of_all_languages():
    half = read("Установка пакета. The packages of the server.", "ru")
    english = read("A package. Установки пакетов.", "en")
    keys = [dict(zip(map(str.lower, text.words), text.keys.tolist(), strict=True)) for text in (half, english)]
    assert keys[0]["packages"] == keys[1]["package"]
    assert keys[0]["пакета"] == keys[1]["пакетов"]
    assert half.stops[half.words.index("The")]


def test_a_word_that_occurs_only_in_a_longer_keyword_is_omitted():
    pages = [read(f"Harbour museum {name}. Harbour museum of {name}. Boats, boats.", "en") for name in "abc"]
    counts = count_texts([*pages, *(read(text, "en") for text in OTHERS[1:])])
    texts = [keyword.text.lower() for keyword in keywords_of_all(pages, counts, 5, "singlerank")]
    assert "harbour museum" in texts
    assert not {"harbour", "museum"} & set(texts)


def test_a_title_of_half_of_a_sites_pages_is_no_keyword():
    names = ("old", "big", "tall", "fast", "red", "wet") * 2
    pages = [
        read(f"{'Seamen handbook. ' if at % 3 else ''}{name} ships and {name} ships. Harbour harbour harbour.", "en")
        for at, name in enumerate(names)
    ]
    texts = [
        keyword.text for keyword in keywords_of_all(pages, count_texts(pages), 9, "singlerank", Contrast(framed=True))
    ]
    assert "Seamen handbook" not in texts
    assert texts


def test_the_default_method_finds_the_subject_of_a_text():
    found = [
        keyword.text.lower()
        for keyword in keywords_of(read(HARBOUR, "en"), count_texts(read(text, "en") for text in (HARBOUR, *OTHERS)), 5)
    ]
    assert {"harbour museum", "lighthouse", "old lighthouse"} & set(found)


def test_an_abstract_is_a_passage_and_a_page_is_not():
    assert is_passage(read("One paragraph of words. " * 20, "en"))
    assert not is_passage(read("Heading\n\nA few words.\n\n" * 20, "en"))
