"""Separation of content and navigation, on small pages with known parts."""

import random

import numpy as np
import pytest

from periplus.analyse.content import marking
from periplus.analyse.content.evidence import (
    COMMA,
    DIGIT,
    LOWER,
    MARK,
    SPACE,
    STOP,
    UPPER,
    WIDE,
    Pages,
    SiteEvidence,
    facts,
    traces_of,
)
from periplus.analyse.content.marking import Forest, parts_of, scores_of
from periplus.document.block_counts import FIRST, LAST
from periplus.document.blocks import blocks_of
from periplus.document.reader import read_page
from periplus.model.page import NO_BLOCKS, Block, BlockKind, Blocks, Part

WORDS = (
    "river",
    "stone",
    "winter",
    "bridge",
    "market",
    "letter",
    "harbour",
    "captain",
    "morning",
    "village",
    "silver",
    "garden",
    "window",
    "question",
)
MENU = ("Home", "World news", "Sport", "Culture", "Weather", "About us")


def sentences(rng, count):
    return " ".join(
        " ".join(rng.choices(WORDS, k=rng.randint(7, 16))).capitalize() + ", she said." for _ in range(count)
    )


def made_page(number, *, template="old"):
    """A story between a menu with an active item, a dated line and a footer."""
    rng = random.Random(number)
    menu = "".join(
        f'<li{" class=active" if at == number % 6 else ""}><a href="/{at}">{text}</a></li>'
        for at, text in enumerate(MENU)
    )
    story = "".join(f"<p>{sentences(rng, 4)}</p>" for _ in range(5))
    title = " ".join(rng.choices(WORDS, k=5)).capitalize()
    names = {"old": ("menu", "story", "footer"), "new": ("topbar navigation", "page-body", "bottom")}[template]
    text = (
        f"<title>{title}</title><div class='{names[0]}'><ul>{menu}</ul></div><div "
        f"class='{names[1]}'><h1>{title}</h1>{story}</div>"
        f"<div class='{names[2]}'>Copyright 20{number + 10} The Paper | Page served on 2{number}.11.2026 | <a "
        "href='/imprint'>Imprint</a></div>"
    )
    return blocks_of(read_page(text))


def learnt(pages):
    evidence = SiteEvidence()
    for page in pages:
        evidence.learn(page)
    return evidence


def texts(blocks, parts, part):
    return [block.text for block, found in zip(blocks, parts, strict=True) if found is part]


def test_menu_active_item_and_dated_footer_are_navigation_and_the_story_is_content():
    pages = [made_page(number) for number in range(8)]
    evidence = learnt(pages)
    for blocks in pages:
        parts = parts_of(blocks, evidence)
        navigation, content = texts(blocks, parts, Part.NAVIGATION), texts(blocks, parts, Part.CONTENT)
        assert {text for text in navigation if text in MENU} == set(MENU)
        assert any(text.startswith("Copyright") for text in navigation)
        assert len([text for text in content if text.endswith("she said.")]) == 5


def test_a_single_page_is_marked_without_other_pages():
    blocks = made_page(3)
    content = texts(blocks, parts_of(blocks), Part.CONTENT)
    assert len([text for text in content if text.endswith("she said.")]) == 5
    assert not set(content) & set(MENU)


def test_after_a_redesign_old_counts_do_not_turn_content_into_navigation():
    evidence = learnt([made_page(number) for number in range(12)])
    new = [made_page(number, template="new") for number in range(20, 26)]
    for blocks in new:
        evidence.learn(blocks)
    for blocks in new:
        content = texts(blocks, parts_of(blocks, evidence), Part.CONTENT)
        assert len([text for text in content if text.endswith("she said.")]) == 5
        assert not set(content) & set(MENU)


def test_a_later_page_is_marked_with_the_known_evidence():
    evidence = learnt([made_page(number) for number in range(8)])
    later = made_page(31)
    assert parts_of(later, evidence, learnt=False) == parts_of(
        later, learnt([*(made_page(number) for number in range(8)), later])
    )


def reference(number):
    """A page of a manual without paragraphs: options, each with a few words."""
    rng = random.Random(number)
    menu = "".join(f'<li><a href="/{at}">{text}</a></li>' for at, text in enumerate(MENU))
    options = [f"{first}_{second}" for first in WORDS[:6] for second in WORDS[6:10]]
    listed = "".join(
        f"<dt><code>{name}</code></dt><dd>{' '.join(rng.choices(WORDS, k=3)).capitalize()}</dd>" for name in options
    )
    return blocks_of(
        read_page(
            f"<title>Options of part {number}</title><div id=nav><ul>{menu}</ul></div>"
            f"<div id=body><h1>Options of part {number}</h1><dl>{listed}</dl></div>"
        )
    )


@pytest.mark.parametrize("others", [0, 1, 8])
def test_a_page_of_short_similar_blocks_is_still_content(others):
    blocks = reference(0)
    content = texts(blocks, parts_of(blocks, learnt(map(reference, range(1, others + 1))), learnt=False), Part.CONTENT)
    assert len([text for text in content if "_" in text]) >= 22  # of 24 options
    assert not set(content) & set(MENU)


def test_few_other_pages_have_less_weight_than_many(monkeypatch):
    page, other = made_page(3), learnt([made_page(1)])
    alone, beside = scores_of(page), scores_of(page, other, learnt=False)
    monkeypatch.setattr(marking, "SURE_PAGES", 0)
    by_site = scores_of(page, other, learnt=False)
    assert not np.allclose(alone, by_site, atol=1e-3)
    assert (beside >= np.minimum(alone, by_site) - 1e-5).all()
    assert (beside <= np.maximum(alone, by_site) + 1e-5).all()


def test_an_empty_page_has_no_parts():
    assert parts_of(NO_BLOCKS) == ()
    assert parts_of(NO_BLOCKS, SiteEvidence()) == ()


def test_digits_case_and_classes_of_the_active_item_do_not_distinguish_texts():
    first, second = (
        Block(BlockKind.ITEM, "Page 3 of 17", "ul#a/li"),
        Block(BlockKind.ITEM, "page 4 OF 18", "ul#a/li.active"),
    )
    assert traces_of(Blocks.of([first])).digests.tolist() == traces_of(Blocks.of([second])).digests.tolist()
    assert facts("div#post-17/p").key == facts("div#post-18/p").key
    assert facts("div#post/p").key != facts("div#post/ul").key


def test_forgetting_a_page_restores_the_evidence():
    pages = [made_page(number) for number in range(5)]
    evidence = learnt(pages)
    extra = made_page(9)
    before = evidence.to_bytes()
    evidence.learn(extra)
    evidence.forget(extra)
    assert sorted(before) == sorted(evidence.to_bytes())


def test_evidence_is_limited_and_keeps_the_texts_of_every_page(monkeypatch):
    monkeypatch.setattr("periplus.analyse.content.evidence.MOST_TEXTS", 200)
    monkeypatch.setattr("periplus.analyse.content.evidence.MOST_PATHS", 10)
    pages = [made_page(number) for number in range(60)]
    evidence = learnt(pages)
    assert len(evidence.to_bytes()) < 200 * 12 + 10 * 20 + 100
    parts = parts_of(pages[-1], evidence)
    assert set(MENU) <= set(texts(pages[-1], parts, Part.NAVIGATION))


@pytest.mark.parametrize("stored", [b"", b"SE2\n", b"SE1\n" + bytes(24), SiteEvidence().to_bytes() + b"x"])
def test_invalid_evidence_is_refused(stored):
    with pytest.raises(ValueError, match="learn the site's pages again"):
        SiteEvidence.from_bytes(stored)


def test_characters_are_counted_by_class():
    table = traces_of(Blocks.plain("Ab, 1.\n中文|")).counts
    assert [table[0, kind] for kind in (UPPER, LOWER, COMMA, SPACE, DIGIT, STOP)] == [1] * 6
    assert (table[1, WIDE], table[1, MARK]) == (2, 1)
    assert table[:, [FIRST, LAST]].tolist() == [[UPPER, STOP], [WIDE, MARK]]


def test_a_forest_sums_the_leaves_of_a_plain_tree_walk():
    rng = np.random.default_rng(3)
    measures, borders = rng.integers(0, 5, (3, 7)), rng.random((3, 7)).astype(np.float32)
    forest = Forest.of(measures, borders, rng.standard_normal(7 * 8).astype(np.float32), 0.25)
    matrix = rng.random((5, 11)).astype(np.float32)
    for block in range(11):
        odds = 0.25
        for tree in range(7):
            leaf = sum(1 << level for level in range(3) if matrix[measures[level, tree], block] > borders[level, tree])
            odds += forest.leaves[tree * 8 + leaf]
        assert forest.scores(matrix)[block] == pytest.approx(1 / (1 + np.exp(-odds)), rel=1e-5)


def test_scores_are_between_0_and_1():
    scores = scores_of(made_page(1))
    assert scores.min() >= 0 and scores.max() <= 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("many", "words"), [(20_000, 40), (3_000, 2_000)])
def test_every_measure_of_a_long_page_is_finite(many, words):
    """A float32 sum exceeded the total here, so the number of words after a block was negative."""
    texts = ["river " * (words + at % 7) if at < many - 3 else "a" for at in range(many)]
    blocks = Blocks.of([Block(BlockKind.PARAGRAPH, text, "div/p") for text in texts])
    found = marking.measures_of(Pages([blocks], [traces_of(blocks)]), np.full(many, 0.9, dtype=np.float32))
    assert np.isfinite(found).all()


def test_a_table_and_a_list_of_definitions_keep_their_heads_and_keys():
    """Heads and keys are short or links; each list is one part, content or not."""
    rng = random.Random(5)
    story = "".join(f"<p>{sentences(rng, 4)}</p>" for _ in range(3))
    rows = "".join(
        f"<tr><td><a href='/{word}'>{word}</a><td>{number}<td>{sentences(rng, 1)}" for number, word in enumerate(WORDS)
    )
    terms = "".join(f"<dt><a href='/{word}'>{word}</a><dd>{sentences(rng, 1)}" for word in WORDS)
    table = f"<table><tr><th>package<th><a href='#s'>size</a><th>description</tr>{rows}</table>"
    blocks = blocks_of(read_page(f"<title>A page</title><div class=text>{story}{table}<p>x</p><dl>{terms}</dl></div>"))
    parts = parts_of(blocks)
    for name in ("table", "dl"):
        inside = [part for block, part in zip(blocks, parts, strict=True) if f"/{name}" in block.path]
        assert set(inside) == {Part.CONTENT}


def test_what_a_table_repeats_on_most_pages_is_not_drawn_in_by_the_rest(monkeypatch):
    def scores(batch, _pages):
        return np.array([len(text) > 20 for page in batch for text in page.blocks.texts()], np.float32)

    monkeypatch.setattr(marking, "_scores", scores)
    rng = random.Random(11)
    names = ("anna", "bert", "cleo", "dora", "emil", "fina")
    pages = []
    for _ in range(8):
        rows = "".join(f"<tr><td><p>{name}<p>Posts: 309<td><p>{sentences(rng, 4)}" for name in rng.sample(names, 3))
        pages.append(blocks_of(read_page(f"<title>{sentences(rng, 1)}</title><div><table>{rows}</table></div>")))
    evidence = learnt(pages)
    content = [text for blocks in pages for text in texts(blocks, parts_of(blocks, evidence), Part.CONTENT)]
    assert len([text for text in content if len(text) > 20]) >= 24
    assert "Posts: 309" not in content


def test_a_page_whose_blocks_were_all_left_out_keeps_its_long_ones(monkeypatch):
    """But neither comments, links nor short blocks."""
    text = sentences(random.Random(3), 3)
    page = (
        f"<title>A thread</title><h1>A thread</h1><p>short</p><div class=thread><p>{text}</p></div>"
        f"<div class=comments><p>{text} again</p></div><nav><p>{text} menu</p></nav><p><a href=/a>{text} link</a></p>"
    )
    blocks = blocks_of(read_page(page))
    monkeypatch.setattr(
        marking, "_scores", lambda batch, _pages: np.zeros(sum(len(one.blocks) for one in batch), np.float32)
    )
    assert texts(blocks, parts_of(blocks), Part.CONTENT) == [text]
    few = f"{page}<div class=other><p>{'word ' * 9}</p></div>"
    assert texts(blocks_of(read_page(few)), parts_of(blocks_of(read_page(few))), Part.CONTENT) == [text]


def test_a_row_of_links_above_a_chapter_is_navigation_with_the_chapters_name():
    row = (
        "<div class=navheader><table><tr><th colspan=3>3. Paint Tools and how to use them well</tr><tr>"
        "<td><a href=a><img src=p.png alt=Prev></a><td>&nbsp;<td><a href=b><img src=n.png alt=Next></a></table></div>"
    )
    story = "".join(f"<p>{sentences(random.Random(7), 4)}</p>" for _ in range(3))
    blocks = blocks_of(read_page(f"<title>3.1. Pencil</title>{row}<h2>3.1. Pencil</h2>{story}"))
    inside = {part for block, part in zip(blocks, parts_of(blocks), strict=True) if "navheader" in block.path}
    assert inside == {Part.NAVIGATION}
