"""Groups of duplicate pages and their representative."""

import json
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from periplus.analyse.duplicates import (
    Head,
    NearHeads,
    best_first,
    group_duplicates,
    is_in_full,
    near_heads,
    shingles,
    sketches,
)
from periplus.document.digest import digests, fold_whitespace, without_marks
from periplus.document.guess import encoding_of
from periplus.model.duplicates import Contender, Duplicates, Ground, Likeness, SameText
from periplus.model.web import Url, UrlId
from periplus.present.text import duplicate_lines, duplicate_rows, write_duplicate_json
from testweb.tongues import ENCODINGS, TEXTS, written


def page(name, *, depth=1, named=False):
    return Contender(UrlId(sum(map(ord, name))), Url(f"https://h/{name}"), "utf-8", depth, named)


def same(name, marks=0, text=0, body=0, **other):
    return SameText(page(name, **other), marks, text, body)


def names(pages):
    return [same.page.url.removeprefix("https://h/") for same in pages]


@pytest.mark.parametrize(
    ("first", "other", "ground"),
    [
        (same("long/name", marks=5, depth=3), same("b", named=True), Ground.MARKS),
        (same("long/name", named=True, depth=3), same("b"), Ground.NAMED),
        (same("long/name", depth=0), same("b"), Ground.CLICKS),
        (same("z"), same("aa"), Ground.LENGTH),
        (same("a"), same("b"), Ground.ORDER),
    ],
)
def test_ours_the_representative_has_diacritics_is_canonical_or_has_the_shortest_path(first, other, ground):
    ordered = best_first([other, first])
    (group,) = group_duplicates([(ordered, True)], ())
    assert (group.url, group.grounds) == (first.page.url, (ground,))


def test_each_page_has_its_degree_of_similarity():
    pages = best_first(
        [same("a", marks=3), same("bb", marks=3), same("cc", marks=3, body=1), same("dd", text=1, body=2)]
    )
    (group,) = group_duplicates([(pages, True)], ())
    assert [page.like for page in group.pages] == [Likeness.BYTES, Likeness.WORDS, Likeness.FOLDED]
    assert group.grounds == (Ground.MARKS, Ground.LENGTH)


def near(heads, texts, threshold=0.8):
    found = [shingles(text) for text in texts]
    return near_heads(heads, sketches(map(shingles, texts)), found.__getitem__, threshold)


ESSAY = " ".join(f"word{number % 83} of{number}" for number in range(150))


def test_near_duplicates_join_the_best_page_with_its_own_duplicates():
    heads = [Head(page("long"), False, 0), Head(page("b"), False, 1), Head(page("far"), False, 0)]
    texts = [ESSAY + " and some more words here", ESSAY, "another text altogether " * 20]
    (found,) = near(heads, texts)
    assert found.first.page.url == "https://h/b"
    twins = best_first([same("b"), same("copy")])
    (group,) = group_duplicates([(twins, True)], [found])
    assert [(member.url, member.like, member.text) for member in group.pages] == [
        ("https://h/copy", Likeness.BYTES, 0),
        ("https://h/long", Likeness.NEAR, 1),
    ]
    one, other = shingles(texts[1]), shingles(texts[0])
    both = len(set(one.tolist()) & set(other.tolist()))
    assert group.pages[1].similarity == pytest.approx(both / len(set(one.tolist()) | set(other.tolist())))
    assert group.pages[1].contained == pytest.approx(both / len(other))
    assert group.grounds == (Ground.COPIES, Ground.LENGTH)


def test_a_near_duplicate_with_diacritics_is_the_representative():
    heads = [Head(page("a"), False, 5), Head(page("bb"), True, 0)]
    (found,) = near(heads, [ESSAY, ESSAY + " more"])
    assert found.first.page.url == "https://h/bb"
    (group,) = group_duplicates([], [found])
    assert group.grounds == (Ground.MARKS,)


def test_a_page_is_in_one_group_and_large_groups_come_first():
    first, second = best_first([same("a"), same("b"), same("c")]), best_first([same("x"), same("y")])
    found = group_duplicates([(second, False), (first, True)], [NearHeads(Head(first[0].page, False, 2), [])])
    assert [(group.url, len(group.pages), group.is_confirmed) for group in found] == [
        ("https://h/a", 2, True),
        ("https://h/x", 1, False),
    ]


def test_texts_with_full_diacritics_are_recognized():
    # without Dutch, which has few diacritics and is at the limit
    full = {language: is_in_full("\n".join(paragraphs)) for language, paragraphs in TEXTS.items() if language != "nl"}
    assert [language for language, is_full in full.items() if not is_full] == ["en"]
    assert not any(is_in_full(without_marks("\n".join(TEXTS[language]))) for language in ("cs", "hu", "de", "fr"))
    assert not is_in_full("")


@given(language=st.sampled_from(sorted(TEXTS)), data=st.data())
def test_digests_do_not_depend_on_the_encoding(language, data):
    """Two encodings of a text give the same text digest, and without diacritics the same folded digest."""
    lines = data.draw(st.lists(st.sampled_from(TEXTS[language]), min_size=1, max_size=4))
    text = fold_whitespace("\n".join(lines))
    encodings = st.sampled_from(["utf-8", *ENCODINGS[language]])
    found = []
    for encoding in (data.draw(encodings), data.draw(encodings)):
        body = written(text, encoding)
        read = encoding_of(encoding).text(body)
        found.append((body, digests(body, fold_whitespace(read).encode())))
    (one_body, one), (other_body, other) = found
    assert (one.text, one.folded) == (other.text, other.folded)
    assert (one.body == other.body) == (one_body == other_body)
    assert digests(b"", without_marks(text).encode()).folded == one.folded


def test_lines_rows_and_json_contain_every_page():
    groups = group_duplicates(
        [(best_first([same("a", marks=2), same("b", text=1, body=1), same("c", text=1, body=1)]), True)], ()
    )
    found = Duplicates("h", 0.8, 9, tuple(groups), ("a note",))
    lines = list(duplicate_lines(found, most=1))
    assert lines[0] == "2 of 9 pages of h duplicate 1 other page: 2 the same except diacritics and case."
    assert lines[1] == "Note: a note"
    assert lines[3:] == [
        "https://h/a",
        "  stands for 2 others: most diacritics",
        "  same letters    https://h/b",
        "  and 1 more: 1 same letters; --most -1 names all",
    ]
    assert [(row[1], row[2]) for row in duplicate_rows(found)] == [
        ("https://h/a", True),
        ("https://h/b", False),
        ("https://h/c", False),
    ]
    out = StringIO()
    write_duplicate_json(found, out)
    assert [one["url"] for one in json.loads(out.getvalue())["groups"][0]["pages"]] == ["https://h/b", "https://h/c"]
    assert list(duplicate_lines(Duplicates("", 1.0, 1, (), ()))) == ["No two of 1 page have the same content."]
