"""Metadata of a page, from its markup and HTTP headers."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from periplus.document import headers
from periplus.document.metadata import Metadata, metadata
from periplus.document.reader import read_page
from periplus.model.page import LinkKind
from periplus.model.visit import Headers

A_DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
A_DATE_S = 784111777.0


def read(markup: str, *fields: tuple[str, str]) -> Metadata:
    return metadata(read_page(markup), Headers(fields))


def test_title_description_and_h1_are_read():
    page = read(
        "<svg><title>No</title></svg><title> A\n title </title><meta name=Description content=' Two  words "
        "'><h1></h1><h1>Big <i>word</i></h1>"
    )
    assert (page.title, page.description, page.h1) == ("A title", "Two words", "Big word")


def test_a_page_without_metadata_has_empty_values():
    assert read("<p>x") == Metadata()


@pytest.mark.parametrize(
    ("markup", "header", "language"),
    [
        ("<html lang=CS>", "de", "cs"),
        ("<html xml:lang=pt_BR>", "", "pt-br"),
        ("<html><body lang=el>", "de", "el"),
        ("<html lang=cs><body lang=el>", "", "cs"),
        ("<meta http-equiv=content-language content=sk>", "de", "sk"),
        ("<p>", "de", "de"),
        ("<p>", "de, en", ""),
    ],
)
def test_the_language_of_the_page_precedes_the_header(markup, header, language):
    assert read(markup, ("content-language", header)).language == language


def test_meta_dates_precede_header_dates():
    assert read("<p>", ("last-modified", A_DATE)).last_modified == A_DATE_S
    page = read(
        f"<meta http-equiv=last-modified content='{A_DATE}'><meta http-equiv=Expires content='{A_DATE}'>",
        ("last-modified", "x"),
        ("expires", "0"),
    )
    assert (page.last_modified, page.expires) == (A_DATE_S, A_DATE_S)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (A_DATE, A_DATE_S),
        ("Sunday, 06-Nov-94 08:49:37 GMT", A_DATE_S),
        ("Sun Nov  6 08:49:37 1994", A_DATE_S),
        ("Sun, 06 Nov 1994 09:49:37 +0100", A_DATE_S),
        ("0", 0.0),
        ("-1", 0.0),
        ("", 0.0),
        ("Thu, 99 Foo 99999 99:99:99 GMT", 0.0),
        ("Mon, 01 Jan 1900 00:00:00 GMT", 0.0),
    ],
)
def test_rfc9110_dates_are_parsed(text, seconds):
    assert headers.date_s(text) == seconds


@given(st.datetimes(datetime(1970, 1, 1), datetime(2999, 12, 31)).map(lambda moment: moment.replace(microsecond=0)))
def test_a_date_in_the_preferred_format_is_read_like_the_standard_library(moment):
    text = format_datetime(moment.replace(tzinfo=UTC), usegmt=True)
    assert headers.date_s(text) == parsedate_to_datetime(text).timestamp()
    assert headers.date_s(text.replace("GMT", "+0000")) == headers.date_s(text)


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=x", "x"),
        ("0; URL='x y'", "x y"),
        ('5;url="x"y', "x"),
        ("5, url = x ", "x"),
        ("5 x", "x"),
        ("0.5;URL=x;y=1", "x;y=1"),
        ("5; 'x", "x"),
        ("5", None),
        ("5;", None),
        ("5; url=", None),
        ("url=x", None),
        ("", None),
    ],
)
def test_the_target_of_a_refresh_is_read(content, target):
    assert headers.refresh_target(content) == target


@pytest.mark.parametrize(
    ("rel", "kinds"),
    [
        ("stylesheet alternate", {LinkKind.STYLE}),
        ("shortcut icon", {LinkKind.ICON}),
        ("alternate nofollow", {LinkKind.ALTERNATE}),
        ("canonical alternate", {LinkKind.CANONICAL, LinkKind.ALTERNATE}),
        ("pingback", {LinkKind.OBJECT}),
        ("schema.DC", {LinkKind.CITE}),
        ("dns-prefetch", set()),
        ("", set()),
        ("glossary", {LinkKind.RELATED}),
    ],
)
def test_rel_values_have_link_kinds(rel, kinds):
    assert set(headers.kinds_of_rel(rel)) == kinds


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ('<x>; rel="next"', [("x", LinkKind.RELATED)]),
        ("<x>;REL=alternate;hreflang=cs, <y> ; rel='canonical'", [("x", LinkKind.ALTERNATE), ("y", LinkKind.RELATED)]),
        ('<x,y>; title="a, <b>; rel=no"; rel=canonical', [("x,y", LinkKind.CANONICAL)]),
        ('<x>; rel=next; anchor="#a"', []),
        ("x; rel=next", []),
        ("<x; rel=next", []),
    ],
)
def test_rfc8288_link_headers_are_parsed(value, found):
    assert list(headers.links(Headers((("link", value),)))) == found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('Text/HTML; Charset="Windows-1250"', ("text/html", "Windows-1250")),
        ("text/html;charset='utf-8';x=y", ("text/html", "utf-8")),
        ("text/html", ("text/html", "")),
        ("", ("", "")),
        (";", ("", "")),
    ],
)
def test_the_media_type_is_normalized(value, expected):
    assert headers.media_type(Headers((("content-type", value),))) == expected


def test_h1s_and_images_without_alt_are_counted():
    page = read("<h1>A</h1><h1></h1><img src=a><img src=b alt=''><img src=c alt=words>")
    assert (page.h1s, page.images_without_alt) == (2, 1)
