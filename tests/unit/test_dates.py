"""Date of a page: sources, their order of precedence, and dates in many languages."""

from datetime import UTC, datetime

import pytest

from periplus.document.dates import feed_dates, written_dates
from periplus.document.digest import without_marks
from periplus.document.publication import DateEvidence, page_date
from periplus.model.page import DateOrigin, PageDate
from periplus.model.web import Url

SEEN = datetime(2026, 5, 1, tzinfo=UTC).timestamp()
JSON_LD = '<script type="application/ld+json">%s</script>'


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def dated(source: str = "", url: str = "https://e.org/a", **known: object) -> PageDate:
    return page_date(DateEvidence(Url(url), source, first_seen=SEEN, **known))  # type: ignore[arg-type]


def test_sources_of_a_date_have_the_documented_order() -> None:
    """Without the best source the next one is used."""
    parts = [
        (
            DateOrigin.JSON_LD,
            JSON_LD % '{"@type": "NewsArticle", "datePublished": "2024-03-01T10:00:00+01:00"}',
            "2024-03-01T09:00",
        ),
        (
            DateOrigin.META,
            '<meta property="article:published_time" content="2024-03-02T10:00:00Z">',
            "2024-03-02T10:00",
        ),
        (DateOrigin.TIME, '<article><time datetime="2024-03-03 10:00">x</time></article>', "2024-03-03T10:00"),
    ]
    rest = {
        "url": "https://e.org/2024/03/05/a",
        "texts": ("Published 6 March 2024",),
        "feed": at("2024-03-04T10:00"),
        "last_modified": at("2024-03-07T10:00"),
    }
    for place, (source, _, when) in enumerate(parts):
        found = dated("".join(html for _, html, _ in parts[place:]), **rest)  # type: ignore[arg-type]
        assert (found.source, found.when) == (source, at(when))
    for name, source, when in (
        ("feed", DateOrigin.FEED, "2024-03-04T10:00"),
        ("url", DateOrigin.URL, "2024-03-05"),
        ("texts", DateOrigin.TEXT, "2024-03-06"),
        ("last_modified", DateOrigin.LAST_MODIFIED, "2024-03-07T10:00"),
    ):
        found = dated(**rest)  # type: ignore[arg-type]
        assert (found.source, found.when) == (source, at(when))
        del rest[name]
    assert dated() == PageDate(SEEN, DateOrigin.FIRST_SEEN)


@pytest.mark.parametrize(
    "text",
    [
        "17 March 2024", "March 17th, 2024", "17-Mar-2024", "17. März 2024", "17 mars 2024", "17 de marzo de 2024",
        "17 marzo 2024", "17 de março de 2024",
        "17 maart 2024", "17. března 2024", "17. marca 2024", "17 marca 2024", "17 марта 2024 г.", "17 березня 2024",
        "2024. március 17.", "17 Μαρτίου 2024",
        "17 Mart 2024", "17 martie 2024", "2024年3月17日", "17.3.2024", "17. 3. 2024", "17/3/2024", "3/17/2024",
        "2024-03-17", "2024/03/17", "2024.03.17",
    ],
)  # fmt: skip
def test_a_day_is_read_in_many_languages(text: str) -> None:
    assert next(written_dates(without_marks(text)))[:2] == (at("2024-03-17"), True)


def test_an_hour_after_the_day_is_read() -> None:
    assert next(written_dates("17. brezna 2024 v 8:05"))[:2] == (at("2024-03-17T08:05"), False)
    assert next(written_dates("march 17, 2024, 10:49 p.m."))[:2] == (at("2024-03-17T22:49"), False)
    assert next(written_dates("march 17, 2024 at 12:30am"))[:2] == (at("2024-03-17T00:30"), False)


@pytest.mark.parametrize(
    ("language", "when"), [("en-us", "2024-03-04"), ("en-gb", "2024-04-03"), ("fr", "2024-04-03"), ("en", ""), ("", "")]
)
def test_ours_the_order_of_day_and_month_depends_on_the_language(language: str, when: str) -> None:
    assert [date.when for date in written_dates("3/4/2024", language)] == ([at(when)] if when else [])


@pytest.mark.parametrize(
    "text", ["31 February 2024", "2024", "version 2.4.2024.1", "12/2024", "", "may 2024", "99.99.2024"]
)
def test_a_text_without_a_valid_day_is_no_date(text: str) -> None:
    assert list(written_dates(text)) == []


def test_dates_after_the_first_visit_or_before_the_web_are_ignored() -> None:
    assert dated('<meta name="date" content="2031-01-01">').source is DateOrigin.FIRST_SEEN
    assert dated('<meta name="date" content="1918-11-11"><meta name="dc.date" content="2020-01-01">').when == at(
        "2020-01-01"
    )


@pytest.mark.parametrize(
    ("html", "when"),
    [
        (
            (
                '{"@graph": [{"@type": "Comment", "datePublished": "2024-01-09"}, {"@type": ["BlogPosting"], '
                '"datePublished": "2024-01-02"}]}'
            ),
            "2024-01-02",
        ),
        (
            (
                '[{"@type": "Organization", "datePublished": "2001-01-01"}, {"@type": "WebPage", '
                '"datePublished": "2024-01-02T00:00Z"}]'
            ),
            "2024-01-02",
        ),
        ('{"@type": "NewsArticle", "datePublished": "Tue, 02 Jan 2024 00:00:00 GMT"}', "2024-01-02"),
        ('<!-- {"@type": "Article", "DatePublished": "20240102"} -->', "2024-01-02"),
    ],
)
def test_the_json_ld_date_of_the_article_counts_and_not_that_of_its_parts(html: str, when: str) -> None:
    assert (dated(JSON_LD % html).source, dated(JSON_LD % html).when) == (DateOrigin.JSON_LD, at(when))


@pytest.mark.parametrize(
    "html", ["{", "[" * 50_000, '{"datePublished": 7}', '{"@type": "Article", "datePublished": "soon"}', "null"]
)
def test_invalid_json_ld_is_ignored(html: str) -> None:
    assert dated(JSON_LD % html).source is DateOrigin.FIRST_SEEN


def test_times_in_comments_sidebars_and_lists_are_ignored() -> None:
    aside = (
        '<aside><time datetime="2024-01-01">x</time></aside><div class="comments"><time '
        'datetime="2024-02-02">y</time></div>'
    )
    assert dated(aside).source is DateOrigin.FIRST_SEEN
    many = "".join(f'<li><time datetime="2024-01-0{day}">x</time></li>' for day in range(1, 7))
    assert dated(many).source is DateOrigin.FIRST_SEEN
    assert dated(many + '<time class="entry-date" datetime="2024-03-03">x</time>').when == at("2024-03-03")


@pytest.mark.parametrize("path", ["2024/03/17/a", "2024-03-17-a", "a-20240317.html", "2024/mar/17/a", "a/2024.03.17"])
def test_a_day_in_the_url_is_read(path: str) -> None:
    assert dated(url=f"https://e.org/{path}") == PageDate(at("2024-03-17"), DateOrigin.URL, True)


@pytest.mark.parametrize("path", ["2024/03/a", "item/20241317", "id/120240317", "v/2024.3.177"])
def test_other_numbers_in_the_url_are_no_dates(path: str) -> None:
    assert dated(url=f"https://e.org/{path}").source is DateOrigin.FIRST_SEEN


def test_in_text_only_bylines_and_datelines_count_and_labelled_ones_first() -> None:
    history = (
        "In the village the bridge that everybody knows was opened by the old mayor and his guests on 3 May 1999, "
        + "and so on " * 20
    )
    assert dated(texts=(history,)).source is DateOrigin.FIRST_SEEN
    assert dated(texts=("4 April 2024", history, "Vydáno 5. dubna 2024")).when == at("2024-04-05")
    assert dated(texts=("PRAGUE, 6 April 2024 - " + history,)).when == at("2024-04-06")


def test_a_byline_near_the_heading_precedes_dates_of_other_articles() -> None:
    boxes = ["5 May 2025", "Another thing entirely"] * 20
    texts = (*boxes, "A bridge was opened in town", "4 April 2024", "Text of it.")
    assert dated(texts=texts, title="A bridge was opened in town | Town News").when == at("2024-04-04")
    assert dated(texts=texts).when == at("2025-05-05")


def test_feeds_have_the_dates_of_their_entries() -> None:
    rss = (
        b"<rss><channel><item><link>/a</link><pubDate>Sun, 17 Mar 2024 10:00:00 "
        b"GMT</pubDate></item><item><link>/b</link></item></channel></rss>"
    )
    assert feed_dates(rss, Url("https://e.org/feed")) == {"https://e.org/a": at("2024-03-17T10:00")}
    atom = (
        b'<feed><entry><link href="/a"/><updated>2024-05-17T00:00:00Z</updated><published>'
        b"2024-03-17T10:00:00Z</published></entry></feed>"
    )
    assert feed_dates(atom, Url("https://e.org/feed")) == {"https://e.org/a": at("2024-03-17T10:00")}
    assert (
        feed_dates(b"<urlset><url><loc>/a</loc><lastmod>2024-01-01</lastmod></url></urlset>", Url("https://e.org/s"))
        == {}
    )


@pytest.mark.parametrize(
    ("known", "when"),
    [
        ({"feed": at("2022-02-10T00:00")}, "2022-02-10"),
        ({"source": '<meta property="article:published_time" content="2022-02-10T00:00:00-05:00">'}, "2022-02-10"),
        ({"source": '<meta property="article:published_time" content="2022-02-10T00:00:01Z">'}, ""),
    ],
)
def test_midnight_to_the_second_is_a_day_without_an_hour(known: dict[str, object], when: str) -> None:
    found = dated(**known)  # type: ignore[arg-type]
    assert found.whole_day == bool(when)
    assert not when or found.when == at(when)
