"""Recognition of headline, byline, date, captions and comments."""

import pytest

from periplus.analyse.content.evidence import SiteEvidence
from periplus.analyse.content.marking import parts_of
from periplus.document.blocks import blocks_of
from periplus.document.reader import read_page
from periplus.model.page import NO_PUBLICATION, PART_CHOICES, PARTS, TEXT_PARTS, BlockKind, Part, Publication
from periplus.store.bodies import pack_parts, unpack_parts

STORY = "<p>The river rose in the night, and the people of the village carried sand to the old bridge.</p>" * 6
WRITTEN = Publication("Ann Miller; Bo", "class", "2024-03-01", "time", "2024-04-02T10:00:00Z", "time")


def named(html, *, publication=NO_PUBLICATION, others=()):
    """(text, part) of each block, marked with the evidence of other pages."""
    evidence = SiteEvidence()
    for other in others:
        evidence.learn(blocks_of(read_page(other)))
    blocks = blocks_of(read_page(html))
    parts = parts_of(blocks, evidence, learnt=False, publication=publication)
    apart = (BlockKind.TITLE, BlockKind.ALT)
    return [(block.text, part) for block, part in zip(blocks, parts, strict=True) if block.kind not in apart]


def texts(parts, *chosen):
    return [text for text, part in parts if part in chosen]


@pytest.mark.parametrize(
    ("title", "headings", "headline"),
    [
        ("The flood | The Paper", "<h1>The Paper</h1><h2>The flood</h2>", "The flood"),
        ("The flood - The Paper", "<h1>The flood</h1><h2>News</h2>", "The flood"),
        ("The Paper :: The great flood", "<h1>The great flood</h1>", "The great flood"),
        ("The Paper", "<h1>Water over the bridge</h1>", "Water over the bridge"),
        ("", "<h1>Water over the bridge</h1>", "Water over the bridge"),
        ("The Paper: Water over the bridge", "<h2>More</h2><p>Water over the bridge</p>", "Water over the bridge"),
    ],
)
def test_the_headline_is_the_heading_that_occurs_in_the_title(title, headings, headline):
    parts = named(f"<title>{title}</title><article>{headings}{STORY}</article>")
    assert texts(parts, Part.HEADLINE) == [headline]


def test_a_heading_of_every_page_is_no_headline():
    page = "<title>{0}</title><div id=banner><h1>The Paper</h1></div><div id=text><h2>{0}</h2>" + STORY + "</div>"
    names = ["The Paper", "A fire", "A fair", "A ship", "A wedding"]
    parts = named(page.format("The flood"), others=map(page.format, names))
    assert texts(parts, Part.HEADLINE) == ["The flood"]


def test_a_repeated_headline_outside_the_article_is_navigation():
    parts = named(f"<title>The flood</title><article><p>The flood</p><h1>The flood</h1>{STORY}</article>")
    assert [part for text, part in parts if text == "The flood"] == [Part.NAVIGATION, Part.HEADLINE]


def test_byline_and_dates_match_the_known_author_and_dates():
    html = (
        "<title>The flood</title><article><h1>The flood</h1><div class=byline>By Ann Miller</div>"
        "<div class=date>1 March 2024</div><div>Updated 2024-04-02, 12:00</div><div>5 May 2019</div>"
        f"{STORY}<p>Ann Miller lives in the village.</p></article>"
    )
    parts = named(html, publication=WRITTEN)
    assert texts(parts, Part.BYLINE, Part.OUTER_BYLINE) == ["By Ann Miller"]
    assert texts(parts, Part.DATE, Part.OUTER_DATE) == ["1 March 2024", "Updated 2024-04-02, 12:00"]
    assert not texts(named(html), Part.BYLINE, Part.OUTER_BYLINE, Part.DATE, Part.OUTER_DATE)


def test_a_byline_above_the_headline_counts_if_none_is_below():
    above = "<title>The flood</title><article><p>Ann Miller</p><h1>The flood</h1>{}" + STORY + "</article>"
    parts = named(above.format(""), publication=WRITTEN)
    assert texts(parts, Part.BYLINE, Part.OUTER_BYLINE) == ["Ann Miller"]
    parts = named(above.format("<p>By Ann Miller and Bo</p>"), publication=WRITTEN)
    assert texts(parts, Part.BYLINE, Part.OUTER_BYLINE) == ["By Ann Miller and Bo"]


def test_dates_are_read_in_european_and_us_order():
    written = Publication(date_published="2024-03-04")
    for date in ("4.3.2024", "03/04/2024", "4. März 2024"):
        parts = named(f"<title>T</title><h1>The flood</h1><p>{date}</p>{STORY}", publication=written)
        assert texts(parts, Part.DATE, Part.OUTER_DATE) == [date]


@pytest.mark.parametrize(
    "caption",
    [
        "<figure><img src=a.png><figcaption>{}</figcaption></figure>",
        "<div class='wp-caption alignleft'><img src=a.png><p class=wp-caption-text>{}</p></div>",
        "<div class=imageCaption>{}</div>",
        "<table><caption>{}</caption><tr><td>1</td><td>2</td></tr></table>",
    ],
)
def test_captions_inside_the_content_are_recognized(caption):
    inner, outer = caption.format("The bridge at noon"), caption.format("Most read stories")
    parts = named(f"<article><h1>The flood</h1>{STORY}{inner}{STORY}</article><footer>{outer}</footer>")
    assert texts(parts, Part.CAPTIONS, Part.OUTER_CAPTIONS) == ["The bridge at noon"]


def test_a_gallery_of_captions_is_content():
    pictures = "".join(f"<figure><figcaption>{number}: {STORY}</figcaption></figure>" for number in range(4))
    assert not texts(named(f"<h1>Pictures</h1>{pictures}"), Part.CAPTIONS, Part.OUTER_CAPTIONS)


COMMENTS = (
    "<div id=comments><h3>2 comments</h3><ol class=commentlist>"
    "<li class=comment><cite>Tom</cite><p>I was there, and the water stood at my door.</p><a href=/r>Reply</a></li>"
    "<li class=comment><cite>Eva</cite><p>My mother remembers the flood of the other year.</p><a href=/r>Reply</a></li>"
    "</ol><div id=respond><form><p>Your address will not be published.</p></form></div></div>"
)


def test_comments_are_a_part_and_their_controls_are_navigation():
    parts = named(f"<article><h1>The flood</h1>{STORY}</article>{COMMENTS}")
    assert texts(parts, Part.COMMENTS) == [
        "2 comments",
        "Tom",
        "I was there, and the water stood at my door.",
        "Eva",
        "My mother remembers the flood of the other year.",
    ]
    assert {"Reply", "Your address will not be published."} <= set(texts(parts, Part.NAVIGATION))


def test_a_thread_of_comments_alone_is_the_content():
    thread = "".join(f"<div class=comment><p>{number} says: {STORY}</p></div>" for number in range(5))
    parts = named(f"<title>A question</title><h1>A question</h1><div class=comments>{thread}</div>")
    assert not texts(parts, Part.COMMENTS)


@pytest.mark.parametrize("name", ["recent-comments", "comment-count", "most-commented", "deprecation-comment"])
def test_an_element_with_a_similar_name_has_no_comments(name):
    parts = named(f"<article><h1>The flood</h1>{STORY}<div class={name}><p>A word on it, by one.</p></div></article>")
    assert not texts(parts, Part.COMMENTS)


def test_every_part_can_be_stored_and_selected():
    assert unpack_parts(pack_parts(PARTS)) == PARTS
    assert {part for parts in PART_CHOICES.values() for part in parts} == set(Part) >= TEXT_PARTS
