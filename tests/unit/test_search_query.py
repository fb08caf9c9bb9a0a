"""Parsing of search queries."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.errors import UsageError
from periplus.retrieval.query import (
    All,
    Among,
    Any,
    During,
    Not,
    Only,
    Phrase,
    Query,
    Word,
    parse,
    resolve_conditions,
    span_of,
)

CASES = [
    ("old harbour", All((Word("old"), Word("harbour")))),
    ("old AND harbour", All((Word("old"), Word("harbour")))),
    ("a OR b c | d", Any((Word("a"), All((Word("b"), Word("c"))), Word("d")))),
    ("(a OR b) c", All((Any((Word("a"), Word("b"))), Word("c")))),
    ('"old harbour" -storm', All((Phrase("old harbour"), Not(Word("storm"))))),
    ("NOT (a b)", Not(All((Word("a"), Word("b"))))),
    ("-NOT a", Word("a")),
    ("+cities", Word("cities", exact=True)),
    ("harb*", Word("harb", prefix=True)),
    (
        "site:example.org lang:CS type:pdf",
        All((Only("site", "example.org"), Only("language", "cs"), Only("type", "pdf"))),
    ),
    ('intitle:"old harbour" inurl:docs', All((Phrase("old harbour", "title"), Word("docs", within="url")))),
    ("after:2024-02 before:2025", During()),
    ("http://example.org/x", Word("http://example.org/x")),
    (
        "intext:a inheading:b inmenu:c",
        All((Word("a", within="text"), Word("b", within="heading"), Word("c", within="navigation"))),
    ),
    ("Depth:..2 segment:Docs", All((Only("depth", "..2"), Only("segment", "Docs")))),
    ("size::max", Word("size::max")),
    ("12:30 std::sort", All((Word("12:30"), Word("std::sort")))),
    ("x-ray", Word("x-ray")),
    ("ORDER", Word("ORDER")),
    ("„staré majáky“", Phrase("staré majáky")),
    ("", None),
]


@pytest.mark.parametrize(("text", "meant"), [case for case in CASES if not case[0].startswith("after")])
def test_a_query_is_parsed(text, meant):
    assert parse(text) == Query(meant, ())


def test_dates_can_be_days_months_or_years():
    february, march = span_of("2024-02")
    assert parse("after:2024-02 before:2025").root == All(
        (During(after=february), During(before=span_of("2025-01-01")[0]))
    )
    assert parse("date:2024-02").root == During(february, march)
    assert (march - february) / 86_400 == 29
    assert span_of("2023-12")[1] == span_of("2024-01-01")[0] == span_of("2023")[1]
    assert span_of("1970-01-02") == (86_400, 2 * 86_400)
    assert span_of("2024-13") is None and span_of("9999") is None


def test_a_query_can_filter_by_columns_of_pages():
    query = parse('lights status:4xx -author:"Jane Doe" size:many')
    asked = []

    def pages_with(column, value):
        asked.append((column, value))
        if value == "many":
            raise UsageError("size is a number")
        return [1, 2]

    assert resolve_conditions(query, pages_with) == Query(
        All((Word("lights"), Among((1, 2)), Not(Among((1, 2))))), ("size:many was ignored: size is a number",)
    )
    assert asked == [("status", "4xx"), ("author", "Jane Doe"), ("size", "many")]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("a)", "closing parenthesis"),
        ("(a", "not closed"),
        ('"a b', "a quote is not closed"),
        ("after:soon a", "not a date"),
        ("a -", "ignored"),
        ("OR a", "nothing before it"),
        ('"" a', "empty phrase"),
        ("site: a", ""),
        ("(" * 50 + "a", "deeper than"),
        (" ".join(["a"] * 200), "first 64"),
    ],
)
def test_ignored_parts_of_a_query_are_noted(text, note):
    assert any(note in line for line in parse(text).notes) or not note


PIECES = st.sampled_from(
    [
        "a",
        "město",
        '"',
        "(",
        ")",
        "-",
        "+",
        "OR",
        "AND",
        "NOT",
        "|",
        "*",
        ":",
        "site:",
        "after:",
        "2024",
        "intitle:",
        " ",
        "\x00",
        "東",
    ]
)


@given(st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=90).map("".join)))
@settings(max_examples=66)
def test_parsing_never_raises(text):
    assert isinstance(parse(text), Query)
