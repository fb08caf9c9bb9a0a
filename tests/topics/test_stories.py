"""Grouping of articles into stories: copies, citations, digests, and the order of a story's pages."""

import random
from itertools import compress

import numpy as np

from periplus.model.page import Block, BlockKind, Blocks, DateOrigin, PageDate, Part, Position
from periplus.model.web import SiteKey, Url
from periplus_topics.analyse.articles import (
    Article,
    RaggedColumn,
    Texts,
    candidate_texts,
    ordered_story,
    own_places,
    own_titles,
    shingles_of,
    words_of,
)
from periplus_topics.analyse.stories import find_stories
from periplus_topics.model import Order, Story

DAY = 86_400.0
NOON = 1_710_000_000.0 // DAY * DAY + DAY / 2
RNG = random.Random(4)
VOCABULARY = ["".join(RNG.choice("bcdfgklmnprst") + RNG.choice("aeiou") for _ in range(3)) for _ in range(900)]


def telling(seed: int, words: int = 200) -> str:
    rng = random.Random(seed)
    own = rng.sample(VOCABULARY, 60)
    return " ".join(rng.choice(own) for _ in range(words))


def article(
    site: str,
    text: str,
    when: float = NOON,
    *,
    source: DateOrigin = DateOrigin.META,
    title: str = "",
    path: str = "/a",
    day: bool = False,
) -> Article:
    words, counts = words_of(title, [text])
    date = PageDate(when // DAY * DAY if day else when, source, day)
    return Article(
        Url(f"https://{site}{path}"),
        SiteKey(site),
        title or text[:20],
        "en",
        date,
        NOON + 90 * DAY,
        shingles_of([text]),
        words,
        counts,
    )


def noise(count: int = 12) -> list[Article]:
    """Unrelated pages, so that words have a rarity."""
    return [article(f"n{place}.org", telling(100 + place)) for place in range(count)]


def urls(story: Story) -> set[str]:
    return {str(page.site) for page in story.pages}


def test_cut_and_edited_reprints_are_one_story() -> None:
    text = telling(1)
    half = " ".join(text.split()[:100]) + " " + telling(2, 40)
    rng = random.Random(3)
    edited = " ".join(rng.choice(VOCABULARY) if rng.random() < 0.1 else word for word in text.split())
    found = find_stories(
        [
            *noise(),
            article("a.org", text),
            article("b.org", half, NOON + DAY),
            article("c.org", edited, NOON + 2 * DAY),
        ],
        [],
    )
    assert [urls(story) for story in found.stories] == [{"a.org", "b.org", "c.org"}]
    assert [page.site for page in found.stories[0].pages] == ["a.org", "b.org", "c.org"]
    assert {(later, earlier) for later, earlier, _ in found.stories[0].near} >= {(1, 0), (2, 0)}


def test_the_same_words_weeks_later_are_another_story_unless_the_title_agrees() -> None:
    text = telling(1)
    pages = [
        *noise(),
        article("a.org", text, title="Bridge opened in town"),
        article("b.org", text, NOON + 45 * DAY, title="Quite something else"),
    ]
    assert find_stories(pages, []).stories == ()
    pages[-1] = article("b.org", text, NOON + 45 * DAY, title="Bridge opened in the town")
    assert len(find_stories(pages, []).stories) == 1


def retold(*days: float, undated: int = -1) -> list[Article]:
    """The same text and title on several sites, each on one of these days. undated: index of a page whose date is known
    only from the crawl.
    """
    return [
        article(
            f"s{place}.org",
            telling(1),
            NOON + day * DAY,
            title="Prices rose",
            source=DateOrigin.FIRST_SEEN if place == undated else DateOrigin.META,
        )
        for place, day in enumerate(days)
    ]


def sites_of_stories(*articles: Article, links: tuple[tuple[int, int], ...] = ()) -> set[frozenset[str]]:
    return {frozenset(urls(story)) for story in find_stories([*articles, *noise()], links).stories}


def test_a_gap_of_two_months_separates_stories() -> None:
    earlier, later = frozenset(("s0.org", "s1.org")), frozenset(("s2.org", "s3.org"))
    assert sites_of_stories(*retold(0, 59, 120, 140)) == {earlier, later}
    assert sites_of_stories(*retold(0, 59, 118, 140)) == {earlier | later}
    assert sites_of_stories(*retold(0, 900)) == set()  # each has a single site
    # links across the gap join nothing
    assert sites_of_stories(*retold(0, 59, 120, 140), links=((2, 1), (3, 0))) == {earlier, later}


def test_a_story_ends_a_year_after_its_first_page() -> None:
    monthly = retold(*range(0, 900, 30))
    stories = find_stories([*monthly, *noise()], []).stories
    assert [len(story.pages) for story in stories] == [13, 13, 4]
    for story in stories:
        assert story.pages[-1].date.when - story.pages[0].date.when <= 365 * DAY


def test_a_page_without_a_date_does_not_join_two_stories() -> None:
    stories = sites_of_stories(*retold(0, 10, 800, 810, 400, undated=4))
    assert len(stories) == 2
    assert sum("s4.org" in sites for sites in stories) == 1


def test_a_licence_note_on_many_pages_is_no_story() -> None:
    note = telling(9, 30)
    pages = [article(f"n{place}.org", telling(100 + place, 120) + " " + note) for place in range(30)]
    assert find_stories(pages, []).stories == ()


def test_a_page_that_cites_a_story_joins_it() -> None:
    text = telling(1)
    comment = " ".join(text.split()[::4]) + " " + telling(5, 40)
    found = find_stories([*noise(12), article("a.org", text), article("b.org", comment, NOON + DAY)], [(13, 12)])
    assert urls(found.stories[0]) == {"a.org", "b.org"}
    assert found.stories[0].links == ((1, 0),)


def test_a_link_to_a_later_or_unrelated_page_joins_nothing() -> None:
    text = telling(1)
    comment = " ".join(text.split()[::4]) + " " + telling(5, 40)
    assert (
        find_stories(
            [*noise(12), article("a.org", text, NOON + 9 * DAY), article("b.org", comment)], [(13, 12)]
        ).stories
        == ()
    )
    rng = random.Random(6)
    strange = " ".join("".join(rng.choice("xyzqw") for _ in range(5)) for _ in range(80))
    assert (
        find_stories([*noise(12), article("a.org", text), article("b.org", strange, NOON + DAY)], [(13, 12)]).stories
        == ()
    )


def test_a_follow_up_that_links_to_the_earlier_story_is_separate() -> None:
    first, second = telling(1), telling(2)
    pages = [
        *noise(12),
        article("a.org", first),
        article("b.org", first),
        article("c.org", second, NOON + DAY),
        article("d.org", second, NOON + DAY),
    ]
    found = find_stories(pages, [(14, 12)])
    assert sorted(map(sorted, map(urls, found.stories))) == [["a.org", "b.org"], ["c.org", "d.org"]]


def test_digests_do_not_join_stories_by_text_or_links() -> None:
    texts = [telling(seed) for seed in range(1, 6)]
    pages = [*noise(10), *(article(f"{name}{place}.org", text) for place, text in enumerate(texts) for name in "ab")]
    weekly = " ".join(" ".join(text.split()[:40]) for text in texts)
    pages += [article("digest.org", weekly, NOON + DAY), article("list.org", telling(77, 60), NOON + DAY)]
    links = [(len(pages) - 1, place) for place in range(10, 20, 2)]
    found = find_stories(pages, links)
    assert sorted(map(sorted, map(urls, found.stories))) == [[f"a{place}.org", f"b{place}.org"] for place in range(5)]
    assert found.digests == ("https://digest.org/a", "https://list.org/a")


def test_pages_of_a_single_site_are_no_story() -> None:
    text = telling(1)
    assert find_stories([*noise(), article("a.org", text), article("a.org", text, path="/print")], []).stories == ()


def test_the_result_does_not_depend_on_the_order_of_pages() -> None:
    texts = [telling(seed) for seed in range(1, 4)]
    pages = [
        *noise(6),
        *(
            article(f"{name}{place}.org", text, NOON + shift)
            for place, text in enumerate(texts)
            for shift, name in enumerate("abc")
        ),
    ]
    first = find_stories(pages, [])
    shuffled = list(pages)
    random.Random(2).shuffle(shuffled)
    assert find_stories(shuffled, []).stories == first.stories


def test_without_pages_there_are_no_stories() -> None:
    assert find_stories([], []).stories == ()


def order_of(pages: list[Article], links: list[tuple[int, int]]) -> list[tuple[str, Order]]:
    return [(str(page.site), page.order) for page in ordered_story(pages, links, {}).pages]


def test_pages_are_ordered_by_date_then_links_then_first_visit() -> None:
    a, b = article("a", telling(1), NOON + 60), article("b", telling(1))
    assert order_of([a, b], [(1, 0)]) == [("b", Order.DATES), ("a", Order.DATES)]  # the link contradicts the dates
    assert ordered_story([a, b], [(1, 0)], {}).disordered == 1
    day = [article("a", telling(1), day=True), article("b", telling(1), day=True)]
    assert order_of(day, [(0, 1)]) == [("b", Order.LINKS), ("a", Order.LINKS)]
    unknown = article("u", telling(1), NOON + 90 * DAY, source=DateOrigin.FIRST_SEEN)
    assert order_of([a, unknown], [(0, 1)]) == [("u", Order.LINKS), ("a", Order.DATES)]
    assert order_of([a, unknown], []) == [("a", Order.DATES), ("u", Order.FIRST_SEEN)]
    assert ordered_story([a, unknown], [], {}).order is Order.FIRST_SEEN


def test_circular_links_have_an_order() -> None:
    pages = [article(name, telling(1), day=True) for name in "abc"]
    assert [site for site, _ in order_of(pages, [(0, 1), (1, 2), (2, 0)])] == ["a", "c", "b"]


def test_the_site_name_is_removed_from_titles() -> None:
    assert own_titles(["Bridge opened | Town News", "Mayor speaks | Town News", "Alone"]) == [
        "Bridge opened",
        "Mayor speaks",
        "Alone",
    ]
    assert own_titles(["Daily: a - Bridge", "Daily - Mayor", "Daily - Bridge - new"])[1:] == ["Mayor", "Bridge - new"]
    assert own_titles(["A - B", "C - D"]) == ["A - B", "C - D"]


def test_texts_in_a_column_are_read_back() -> None:
    texts = ["", "Příliš", "\ud800 alone", ""]
    column = Texts(texts)
    assert [column[place] for place in range(len(column))] == texts


def own_texts(pages: list[tuple[Blocks, tuple[Part, ...] | None]]) -> list[tuple[str, ...]]:
    candidates = [candidate_texts(blocks, parts) for blocks, parts in pages]
    marks = RaggedColumn.of([marks for _, marks in candidates], np.uint64)
    places = RaggedColumn(marks.offsets, own_places(marks))
    return [tuple(compress(texts, places[page])) for page, (texts, _) in enumerate(candidates)]


def test_own_text_excludes_menus_and_repeated_text() -> None:
    menu = Block(BlockKind.ITEM, "Home", "nav", position=Position.NAV)
    pages = [
        (
            Blocks.of(
                [menu, Block(BlockKind.PARAGRAPH, "About us", "p"), Block(BlockKind.PARAGRAPH, f"Text {place}", "p")]
            ),
            None,
        )
        for place in range(10)
    ]
    assert own_texts(pages)[3] == ("Text 3",)
    assert own_texts(pages[:3])[0] == ("About us", "Text 0")
    marked = (
        Blocks.of([Block(BlockKind.PARAGRAPH, "x", "p"), Block(BlockKind.PARAGRAPH, "y", "p")]),
        (Part.NAVIGATION, Part.CONTENT),
    )
    assert own_texts([marked]) == [("y",)]
