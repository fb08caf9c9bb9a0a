"""Author and dates of a page, with their source."""

import json

import pytest

from periplus.document.publication import publication_of
from periplus.document.tree import parse
from periplus.document.understand import understand
from periplus.model.page import NO_PUBLICATION, Publication
from periplus.model.visit import Fetched, Headers
from periplus.model.web import Url

LATER = 4_000_000_000.0
MARKED = '<meta property="og:site_name" content="Town News">'


def of(body: str, url: str = "https://e.org/a", heading: str = "", text: str = "", language: str = "") -> Publication:
    return publication_of(parse(body.encode()), url, heading, text, language, LATER)


def script(value: object) -> str:
    return f'<script type="application/ld+json">{json.dumps(value)}</script>'


ARTICLE = {
    "@type": "NewsArticle",
    "author": [{"@type": "Person", "name": "Ann Lee"}, {"name": "Bo Dee"}],
    "datePublished": "2024-03-01T23:30:00-05:00",
    "dateModified": "2024-03-02T08:00:00Z",
}


def test_json_ld_has_author_and_both_dates_with_time_zone() -> None:
    assert of(script(ARTICLE)) == (
        "Ann Lee; Bo Dee", "json-ld", "2024-03-01T23:30:00-05:00", "json-ld", "2024-03-02T08:00:00Z", "json-ld",
        "NewsArticle; Person",
    )  # fmt: skip


def test_an_author_that_is_referenced_by_id_is_looked_up() -> None:
    graph = [{"@type": "Article", "author": {"@id": "#a"}}, {"@id": "#a", "@type": "Person", "name": "Ann Lee"}]
    assert of(script({"@graph": graph})).author == "Ann Lee"


@pytest.mark.parametrize(
    ("body", "name", "source"),
    [
        ('<meta name="author" content="by Ann Lee">', "Ann Lee", "meta"),
        ('<meta property="article:author" content="https://facebook.com/ann">', "", ""),
        ('<span itemprop="author" itemscope><b itemprop="name">Ann Lee</b></span>', "Ann Lee", "microdata"),
        ('<a rel="author" href="/ann">Ann Lee</a>', "Ann Lee", "rel"),
        ('<p class="byline">von <span class="author">Ann Lee</span> am 3. Mai 2020</p>', "Ann Lee", "class"),
        ('<p class="byline">By Ann Lee and Bo Dee | 3 May 2020</p>', "Ann Lee; Bo Dee", "class"),
        ('<div class="comments"><p class="author">Eve</p></div>', "", ""),
        ('<meta name="author" content="admin">', "", ""),
        ('<meta name="author" content="E"><meta property="og:site_name" content="x">', "", ""),
    ],
)
def test_authors_are_named_without_the_words_around_them(body: str, name: str, source: str) -> None:
    assert of(body)[:2] == (name, source)


def test_the_sites_name_is_the_author_only_without_another_author() -> None:
    site = '<meta property="og:site_name" content="Town News"><meta name="author" content="Town News">'
    assert of(site).author == "Town News"
    assert of(site + '<p class="author">Ann Lee</p>')[:2] == ("Ann Lee", "class")


def test_a_byline_near_the_heading_is_read() -> None:
    text = "Home\nA bridge was opened\nBy Ann Lee\nOn Monday the bridge was opened."
    assert of(MARKED, heading="A bridge was opened", text=text)[:2] == ("Ann Lee", "text")
    assert of(MARKED, heading="A bridge was opened", text=text.replace("By Ann", "Seen by Ann")).author == "Ann Lee"
    for words in ("By train to town", "By Ann Bee Cee Dee Eff Gee Hay Ivy"):  # a name has fewer than eight words
        assert of(MARKED, heading="A bridge was opened", text=text.replace("By Ann Lee", words)).author == ""


@pytest.mark.parametrize(
    ("body", "date", "source"),
    [
        ('<meta property="article:published_time" content="2024-03-01T10:00:00+01:00">', "2024-03-01T10:00:00+01:00",
         "meta"),
        ('<time itemprop="datePublished" datetime="2024-03-01">x</time>', "2024-03-01", "microdata"),
        ('<span property="dc:date" content="2024-03-01">x</span>', "2024-03-01", "microdata"),
        ('<article><time datetime="2024-03-01 10:00">x</time></article>', "2024-03-01T10:00:00", "time"),
        ('<p class="post-date">1. März 2024</p>', "2024-03-01", "class"),
        ('<p class="date">1.3.24</p>', "2024-03-01", "class"),
        ('<aside><p class="date">1.3.2024</p></aside>', "", ""),
        ('<footer><p class="date">1.3.2024</p></footer>', "", ""),
        ('<article><footer><p class="date">1.3.2024</p></footer></article>', "2024-03-01", "class"),
        ("".join(f'<p class="date">{day}.3.2024</p>' for day in range(1, 8)), "", ""),
        ('<meta name="date" content="2099-01-01">', "", ""),
        ('<meta name="date" content="1970-01-01">', "", ""),
    ],
)  # fmt: skip
def test_the_date_of_publication_has_its_source(body: str, date: str, source: str) -> None:
    page = publication_of(parse(body.encode()), "https://e.org/a", "", "", "de", 1_800_000_000.0)
    assert page[2:4] == (date, source)


def test_ours_the_day_in_the_url_precedes_machine_readable_dates() -> None:
    """Machine-readable dates of pages published around midnight often have the UTC day."""
    body = '<meta property="article:published_time" content="2024-03-02T01:30:00+00:00">'
    assert of(body, "https://e.org/2024/03/01/a")[2:4] == ("2024-03-01", "url")
    assert of(body, "https://e.org/2024/03/02/a")[2:4] == ("2024-03-02T01:30:00Z", "meta")


@pytest.mark.parametrize(
    ("text", "published", "modified"),
    [
        ("A heading of the page\n1 March 2024\nText.", "2024-03-01", ""),
        ("A heading of the page\nText.\nLast updated: 2 March 2024", "", "2024-03-02"),
        ("A heading of the page\nText.\nLetzte Änderung:\n2.3.2024", "", "2024-03-02"),
        ("A heading of the page\nText.\nCopyright 1 March 2024 Some Company", "", ""),
        ("A heading of the page\n" + "It was said in the spring of that year, on 1 March 2024, " * 9, "", ""),
    ],
)
def test_labels_in_the_text_distinguish_published_and_modified(text: str, published: str, modified: str) -> None:
    page = of(MARKED, heading="A heading of the page", text=text, language="de")
    assert (page.date_published, page.date_modified) == (published, modified)


def test_ours_the_text_of_a_page_without_markup_is_not_searched() -> None:
    """Manuals are full of years, and 97 % of their pages have no such markup."""
    assert of("<p>x", heading="A heading of the page", text="A heading of the page\n1 March 2024") == NO_PUBLICATION


def test_types_of_described_items_are_listed_once_without_vocabulary() -> None:
    """On a page with nothing else, and beside author and dates."""
    items = '<div itemscope itemtype="http://schema.org/Product"><b itemscope itemtype="https://schema.org/Offer">1</b></div>'
    assert of(items) == Publication(types="Product; Offer")
    things = {"@graph": [ARTICLE | {"@type": ["NewsArticle", "schema:Report"]}, {"@type": "Person"}]}
    page = of(script(things) + items)
    assert (page.author, page.types) == ("Ann Lee; Bo Dee", "NewsArticle; Report; Person; Product; Offer")


@pytest.mark.parametrize("body", ["", "<p>x", '<script type="application/ld+json">[[[', "<time>", "<p class=date>20"])
def test_a_page_without_markup_has_no_publication(body: str) -> None:
    assert of(body) == NO_PUBLICATION


def test_dates_after_the_response_are_ignored_and_last_modified_is_not_used() -> None:
    fields = (("content-type", "text/html"), ("date", "Fri, 01 Mar 2024 10:00:00 GMT"))
    changed = ("last-modified", "Thu, 01 Feb 2024 10:00:00 GMT")
    for content, expected in (("2024-03-02", "2024-03-02"), ("2024-03-09", "")):
        body = f'<meta name="date" content="{content}"><p>Text'.encode()
        page = understand(Url("https://e.org/a"), Fetched(200, Headers((*fields, changed)), body))
        assert (page.publication.date_published, page.publication.date_modified) == (expected, "")
