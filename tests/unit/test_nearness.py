"""Near duplicates."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.analyse.duplicates import (
    BINS,
    FOUND_LEAST,
    SHINGLES_LEAST,
    band_bins,
    jaccard,
    near_groups,
    shingles,
    sketch,
    sketches,
)

WORDS = [f"word{number}" for number in range(3000)]


def essay(seed, count=300):
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def edited(text, seed, edits):
    rng, parts = random.Random(seed), text.split()
    for _ in range(edits):
        parts[rng.randrange(len(parts))] = rng.choice(WORDS)
    return " ".join(parts)


def groups(texts, threshold=0.8):
    found = [shingles(text) for text in texts]
    return near_groups(sketches(map(shingles, texts)), found.__getitem__, threshold=threshold)


def twin_shingles(text):
    parts = text.lower().split()
    return {tuple(parts[place : place + 5]) for place in range(len(parts) - 4)}


def twin_groups(texts, threshold):
    """The slow twin: compares each page with every earlier leader."""
    sets, leaders, members = [twin_shingles(text) for text in texts], [], {}
    for page, mine in enumerate(sets):
        near = (
            [(len(mine & sets[other]) / len(mine | sets[other]), -other) for other in leaders]
            if len(mine) >= SHINGLES_LEAST
            else []
        )
        best = max(near, default=(0.0, 0))
        if best[0] >= threshold:
            members.setdefault(-best[1], []).append((page, best[0]))
        else:
            leaders.append(page)
    return members


def test_an_edited_page_is_a_near_duplicate_and_a_different_one_is_not():
    base = essay(1)
    texts = [essay(2), base, edited(base, 3, 3), essay(4), edited(base, 5, 2)]
    (group,) = groups(texts)
    assert (group.leader, group.members) == (1, (2, 4))
    assert group.similarity == tuple(pytest.approx(jaccard(shingles(base), shingles(texts[page]))) for page in (2, 4))


def test_short_texts_have_no_near_duplicates():
    assert groups(["the same few words on each page"] * 3) == []
    assert groups(["", "", "one"]) == []


def test_case_and_white_space_are_ignored():
    assert shingles("A b\nC d  E f").tolist() == shingles("a b c d e F").tolist()


def test_a_script_without_spaces_is_compared_by_characters():
    assert len(shingles("春眠不覺曉處處聞啼鳥夜來風雨聲花落知多少")) == 16


def test_thousands_of_similar_pages_are_grouped_in_near_linear_time():
    base, asked = essay(1), []
    texts = [base if place % 2 else essay(place + 10, 60) for place in range(3000)]
    known = sketches(map(shingles, texts))

    def shingles_of(page):
        asked.append(page)
        return shingles(texts[page])

    (group,) = near_groups(known, shingles_of)
    assert len(group.members) == 1499
    assert len(asked) < 3100


def test_bins_estimate_the_similarity():
    base = essay(1, 2000)
    for edits in (20, 60, 150):
        one, other = shingles(base), shingles(edited(base, edits, edits))
        assert abs((sketch(one) == sketch(other)).mean() - jaccard(one, other)) < 0.13
    assert sketch(shingles(essay(3, 30))).shape == (BINS,)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    edits=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 25)), max_size=12),
    threshold=st.sampled_from([0.75, 0.8, 0.9]),
)
def test_groups_equal_those_of_slow_code(seed, edits, threshold):
    """Similarities are exact, and missed pairs are close to the threshold."""
    bases = [essay(seed + place, 200) for place in range(4)]
    texts = [edited(bases[base], seed + place, count) for place, (base, count) in enumerate(edits)]
    sets = [twin_shingles(text) for text in texts]
    found = groups(texts, threshold)
    grouped = [page for group in found for page in (group.leader, *group.members)]
    assert len(grouped) == len(set(grouped))
    for group in found:
        for page, value in zip(group.members, group.similarity, strict=True):
            assert page > group.leader
            assert value >= threshold
            assert value == pytest.approx(len(sets[page] & sets[group.leader]) / len(sets[page] | sets[group.leader]))
    members = {page for group in found for page in group.members}
    assert all(
        page in members or value < threshold + 0.1
        for near in twin_groups(texts, threshold).values()
        for page, value in near
    )


def test_without_pages_there_are_no_groups():
    assert near_groups(sketches([]), lambda page: np.zeros(0, np.uint64)) == []


@pytest.mark.parametrize(("threshold", "bins"), [(0.3, 2), (0.5, 3), (0.8, 6), (0.95, 14)])
def test_the_width_of_bands_follows_from_the_threshold(threshold, bins):
    assert band_bins(threshold) == bins
    assert 1 - (1 - threshold**bins) ** (BINS // bins) >= FOUND_LEAST


def test_less_similar_pages_are_found_with_a_low_threshold():
    texts = [text for seed in range(60) for text in (essay(seed), edited(essay(seed), seed, 30))]
    pairs = [jaccard(shingles(texts[place]), shingles(texts[place + 1])) for place in range(0, 120, 2)]
    wanted = sum(value >= 0.4 for value in pairs)
    assert wanted > 30
    assert sum(len(group.members) for group in groups(texts, 0.4)) == wanted
