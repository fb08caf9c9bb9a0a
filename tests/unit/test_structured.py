"""Structured data: a common form of JSON-LD, microdata, RDFa and others, and what search engines require."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from periplus.api.collection import Collection
from periplus.api.exporting import export_rows
from periplus.api.positions import issues_of
from periplus.cli.main import main
from periplus.document import html
from periplus.document import structured_data as structured
from periplus.document.language import LANGUAGES, REGIONS, is_language
from periplus.model.web import Url
from periplus.settings import Settings
from periplus_postgres.moving import move
from stored import page, stored

HERE = Url("https://e.org/a/")


def script(data):
    return f'<script type="application/ld+json">{data if isinstance(data, str) else json.dumps(data)}</script>'


def article(**more):
    return {"@context": "https://schema.org", "@type": "Article", **more}


def rows(markup):
    return [tuple(row) for row in structured.values_of(html.parse(markup), HERE)]


def paths(markup):
    return [(row[2], row[3], row[4]) for row in rows(markup)]


def lacks(markup):
    return structured.lacks_of(structured.items_of(html.parse(markup), HERE))


def faults(markup):
    return [fault for _, fault in structured.json_faults(html.parse(markup))]


PRODUCT = [
    ("Product", "type", "Product"),
    ("Product", "name", "Lamp"),
    ("Offer", "offers.type", "Offer"),
    ("Offer", "offers.price", "12.50"),
]


@pytest.mark.parametrize(
    ("syntax", "markup"),
    [
        (
            "json-ld",
            script(
                {
                    "@context": "https://schema.org/",
                    "@type": "Product",
                    "name": " Lamp ",
                    "offers": {"@type": "http://schema.org/Offer", "price": "12.50"},
                }
            ),
        ),
        (
            "microdata",
            '<div itemscope itemtype="https://schema.org/Product"><b itemprop=name> Lamp </b>'
            '<p itemprop=offers itemscope itemtype="http://schema.org/Offer"><meta itemprop=price content=12.50></div>',
        ),
        (
            "rdfa",
            '<div vocab="https://schema.org/" typeof=Product><b property=name> Lamp </b>'
            '<p property=offers typeof=Offer><meta property=price content="12.50"></div>',
        ),
    ],
)
def test_three_syntaxes_give_the_same_values(syntax, markup):
    assert paths(markup) == PRODUCT
    assert {row[:2] for row in rows(markup)} == {(syntax, 1)}


def test_open_graph_twitter_cards_and_translations_are_one_item_each():
    markup = (
        '<base href="/b/"><meta property="og:type" content=article><meta property="og:title" content="T  t">'
        '<meta property="article:tag" content=x><meta property="article:tag" content=y>'
        '<meta name="twitter:card" content=summary>'
        '<meta name=viewport content="width=1"><meta property="og:url">'
        '<link rel=alternate hreflang=de href=de><link rel="alternate" type="application/rss+xml" href=feed>'
        '<link rel=alternate hreflang=x-default href="http://[bad">'
    )
    assert rows(markup) == [
        ("opengraph", 1, "article", "og:type", "article"),
        ("opengraph", 1, "article", "og:title", "T t"),
        ("opengraph", 1, "article", "article:tag", "x"),
        ("opengraph", 1, "article", "article:tag", "y"),
        ("twitter", 2, "summary", "twitter:card", "summary"),
        ("hreflang", 3, "", "de", "https://e.org/b/de"),
        ("hreflang", 3, "", "x-default", "http://[bad"),
    ]


def test_graphs_lists_values_and_references_in_json_ld_are_read():
    data = {
        "@context": ["https://schema.org", {"x": "y"}],
        "@graph": [
            article(headline=["a", "b"], wordCount=3, isAccessibleForFree=True, nothing=None, author={"@id": "#me"}),
            {"@id": "#me", "@type": ["Person", "https://e.org/Author"], "name": {"@value": "M", "@language": "en"}},
            {"@type": "ItemList", "itemListElement": {"@list": [{"name": "1"}, {"name": "2"}]}},
            "stray",
        ],
    }
    assert paths(script(data)) == [
        ("Article", "type", "Article"),
        ("Article", "headline", "a"),
        ("Article", "headline", "b"),
        ("Article", "wordCount", "3"),
        ("Article", "isAccessibleForFree", "true"),
        ("Article", "author.id", "#me"),
        ("Person, https://e.org/Author", "type", "Person, https://e.org/Author"),
        ("Person, https://e.org/Author", "id", "#me"),
        ("Person, https://e.org/Author", "name", "M"),
        ("ItemList", "type", "ItemList"),
        ("ItemList", "itemListElement[1].name", "1"),
        ("ItemList", "itemListElement[2].name", "2"),
    ]


@pytest.mark.parametrize(
    ("text", "words", "values"),
    [
        ('{"@context": "https://schema.org", "@type": "Thing"}', [], 1),
        ('<!-- {"@context": "https://schema.org", "@type": "Thing"} -->', [], 1),
        ('//<![CDATA[\n{"@context": "https://schema.org", "@type": "Thing"}\n//]]>', [], 1),
        ("", [], 0),
        ('{"@type": "Thing",}', ["line 1: "], 0),
        ('{"@context": "https://schema.org",\n"@type": "Thing" // no\n}', ["line 2: "], 0),
        ('{"@context": "https://schema.org", "@type": "Thing", "name": "a\nb"}', ["line 1: Invalid control"], 2),
        ('{"@type": "Thing"}', ["no @context"], 1),
        ('{"a":' * 100_000, ["nested too deep"], 0),
        ("[" + "9" * 5_000 + "]", ["a number is too long"], 0),
    ],
)
def test_invalid_json_is_reported_with_its_line(text, words, values):
    markup = script(text)
    assert len(faults(markup)) == len(words) and all(map(str.startswith, faults(markup), words))
    assert len(rows(markup)) == values


@pytest.mark.parametrize(
    ("data", "required"),
    [
        (article(), ()),
        ({"@type": "Product", "name": "x", "review": {"@type": "Review"}},
         ("Review without author, reviewRating",)),
        ({"@type": "Product"}, ("Product without name, offers or review or aggregateRating",)),
        ({"@type": "Product", "name": "x", "offers": {"@type": "Offer"}},
         ("Offer without price or priceSpecification",)),
        ({"@type": "Offer"}, ()),  # required only as part of a product
        ({"@type": "Review", "author": "A", "reviewRating": {"@type": "Rating"}},
         ("Review without reviewRating.ratingValue, itemReviewed",)),
        ({"@type": "MusicEvent", "name": "x", "startDate": "2026-01-01", "location": "Town hall"}, ()),
        ({"@type": "MusicEvent", "name": "x", "startDate": "2026-01-01", "location": {"@type": "Place", "name": "T"}},
         ("MusicEvent without location.address or location.url",)),
        ({"@type": "BreadcrumbList", "itemListElement": [{"@type": "ListItem", "position": 1, "item": {"name": "A"}},
                                                         {"@type": "ListItem", "name": "B"}]},
         ("ListItem without position",)),
        ({"@type": "FAQPage", "mainEntity": [{"@type": "Question", "name": "q", "acceptedAnswer": {"@id": "/q"}}]},
         ()),
        ({"@type": "FAQPage", "mainEntity": [{"@type": "Question", "name": "q", "acceptedAnswer": {"url": "x"}}]},
         ("Question without acceptedAnswer.text",)),
        ({"@type": "JobPosting", "title": "x", "description": "y", "datePosted": "2026-01-01",
          "hiringOrganization": "z"},
         ("JobPosting without jobLocation or applicantLocationRequirements",)),
        ({"@type": "VideoObject", "name": "x", "thumbnailUrl": "", "uploadDate": "2026-01-01"},
         ("VideoObject without thumbnailUrl",)),
        ({"@type": "Recipe"}, ("Recipe without name, image",)),
        ({"@type": "Thing"}, ()),
    ],
)  # fmt: skip
def test_missing_required_properties_are_listed(data, required):
    assert lacks(script({"@context": "https://schema.org", **data}))["structured-incomplete"] == required


def test_a_referenced_part_of_an_item_is_looked_up():
    review = {"@type": "Review", "author": "A", "itemReviewed": "x", "reviewRating": {"@id": "#r"}}
    both = [review, {"@id": "#r", "@type": "Rating", "ratingValue": 5}]
    assert lacks(script({"@context": "https://schema.org", "@graph": both}))["structured-incomplete"] == ()
    both[1].pop("ratingValue")
    both[1]["bestRating"] = 5
    assert lacks(script({"@context": "https://schema.org", "@graph": both}))["structured-incomplete"]
    assert (
        lacks(script({"@context": "https://schema.org", "@graph": [review]}))["structured-incomplete"] == ()
    )  # it may be on another page


def test_types_of_other_vocabularies_have_no_requirements():
    for context in ({"@context": "https://other.example/"}, {}):
        assert lacks(script({**context, "@type": "Product", "price": "a lot"})) == dict.fromkeys(
            ("structured-incomplete", "structured-sparse", "structured-value"), ()
        )
    assert not any(lacks('<div itemscope itemtype="https://other.example/Product"><b itemprop=x>y</b></div>').values())
    assert lacks("<div itemscope itemtype='https://schema.org/Recipe'></div>")["structured-incomplete"] == (
        "Recipe without name, image",
    )


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        *(("datePublished", value, True) for value in ("2026", "2026-05", "2026-05-03", "2026-05-03T10:00:00+02:00",
                                                       "2026-05-03T10:00Z", "2026-05-03 10:00:00",
                                                       "2026-05-03T10:00:00.123Z")),
        *(("datePublished", value, False) for value in ("3. May 2026", "05/03/2026", "2026-5-3", "2026-05-03T10")),
        *(("price", value, True) for value in ("12", "12.50", "0")),
        *(("price", value, False) for value in ("12,50", "1.200,00", "$12", "free")),
        *(("totalTime", value, True) for value in ("PT1H", "P1D", "P1DT2H30M", "PT90S")),
        *(("totalTime", value, False) for value in ("1 hour", "P", "PT", "1:30")),
        ("ratingValue", "80%", True),
    ],
)  # fmt: skip
def test_values_in_an_unreadable_format_are_listed(name, value, right):
    assert (lacks(script(article(**{name: value})))["structured-value"] == ()) is right


@pytest.mark.parametrize(
    ("element", "value"),
    [
        ('<span itemprop="p" content="1000.00">$1,000.00</span>', "1000.00"),
        ('<span itemprop="p" content="USD">$</span>', "USD"),
        ('<time itemprop="p" datetime="2024-03-01">1 year ago</time>', "2024-03-01"),
        ('<a itemprop="p" href="../b#c">here</a>', "https://e.org/b#c"),
        ('<img itemprop="p" src="x.png">', "https://e.org/a/x.png"),
        ('<object itemprop="p" data="/o"></object>', "https://e.org/o"),
        ('<data itemprop="p" value="7">seven</data>', "7"),
        ('<link itemprop="p" href="https://schema.org/InStock">', "https://schema.org/InStock"),
        ('<b itemprop="p">plain <i>text</i></b>', "plain text"),
    ],
)
def test_w3c_values_of_microdata_are_those_for_machines(element, value):
    markup = f'<div itemscope itemtype="https://schema.org/Offer">{element}</div>'
    assert ("Offer", "p", value) in paths(markup)


def test_w3c_an_item_has_the_properties_that_itemref_names_and_none_of_inner_items():
    markup = """<div itemscope itemtype="https://schema.org/Product" itemref="more"><b itemprop="name">Lamp</b>
        <p itemprop="offers" itemscope itemtype="https://schema.org/Offer"><b itemprop="price">12.50</b></p></div>
        <div id="more"><b itemprop="color">red</b></div>"""
    assert paths(markup) == [*PRODUCT, ("Product", "color", "red")]


def test_an_item_that_refers_to_itself_ends():
    assert len(rows('<div id="a" itemscope itemprop="p" itemref="a"><i itemprop="q">x</i></div>')) < 100


@pytest.mark.parametrize(
    "markup",
    [
        """<div itemscope itemtype="https://schema.org/Product"><b itemprop="name">Anvil</b>
        <img itemprop="image" src="a.jpg">
        <div itemprop="offers" itemscope itemtype="https://schema.org/Offer">
        <span itemprop="priceCurrency" content="USD">$</span>
        <span itemprop="price" content="1000.00">1,000.00</span><link itemprop="availability" href="https://schema.org/InStock">
        <time itemprop="priceValidUntil" datetime="2026-11-05">5 November</time></div></div>""",
        script(
            {
                "@context": "https://schema.org", "@type": "Invoice", "description": "January",
                "referencesOrder": {"@type": "Order", "orderedItem": {"@type": "Product", "name": "Anvil"}},
                "provider": {"@type": "LocalBusiness", "name": "A Firm"},
            }
        ),
        script(article(contentRating={"@type": "Rating", "bestRating": "A", "worstRating": "G"}, headline="A",
                       author="B", image="c.png", datePublished="2024-03-01")),
    ],
)  # fmt: skip
def test_forms_that_search_engines_publish_have_no_finding(markup):
    """A price for machines beside one for people; a product and a firm that are only mentioned; grades as letters."""
    assert lacks(markup) == {"structured-incomplete": (), "structured-sparse": (), "structured-value": ()}


def test_recommended_properties_apply_to_top_level_items():
    publisher = {"@type": "Organization", "name": "P"}
    complete = article(headline="h", author="a", datePublished="2026", image="i", publisher=publisher)
    assert lacks(script(complete))["structured-sparse"] == ()
    assert lacks(script({"@context": "https://schema.org", **publisher}))["structured-sparse"] == (
        "Organization without url, logo",
    )


HOSTILE = {
    "microdata": "<div itemscope itemprop=a itemtype=x>" * 20_000,
    "outer": "<div itemscope>" * 20_000,
    "rdfa": "<div vocab='https://schema.org/' typeof=A property=x>" * 20_000,
    "objects": script('{"@type":"x","a":' * 900 + "1" + "}" * 900),
    "lists": script('{"@type":"x","a":' + "[" * 900 + "1" + "]" * 900 + "}"),
    "circle": "<div itemscope id=q itemref='q r'></div><div id=r itemprop=z itemscope itemref=r>x</div>",
    "references": f"<div itemscope itemref='{' '.join(f'i{n}' for n in range(2_000))}'></div>" * 10
    + "".join(f"<p id=i{n} itemprop=k>v" for n in range(2_000)),
    "many": script([{"@type": "x", "a": 1}] * 60_000),
    "metas": "<meta property=og:x content=y>" * 50_000,
    "long": script(article(headline="x" * 1_000_000)),
}


@pytest.mark.parametrize("markup", HOSTILE.values(), ids=list(HOSTILE))
def test_values_of_hostile_pages_are_limited(markup):
    values = rows(markup)
    assert len(values) <= structured.VALUES_MOST
    assert all(len(row[4]) <= structured.VALUE_CHARS for row in values)
    assert len(lacks(markup)["structured-incomplete"]) <= 5 and isinstance(faults(markup), list)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["@type", "@id", "@graph", "@context", "@value", "@list", "offers", "author", "x"]),
            inner | st.sampled_from(["Product", "https://schema.org", "Review"]),
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(data=JSON)
def test_any_json_gives_values_or_none(data):
    markup = script(json.dumps(data).replace("<", "\\u003c"))
    for syntax, item, _, path, value in rows(markup):
        assert syntax == "json-ld" and item >= 1 and path and isinstance(value, str)
    lacks(markup), faults(markup)


def test_each_type_has_one_rule_per_context():
    names = [(rule.type, rule.within) for rule in structured.RULES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z.| ]*", " ".join(rule)) for rule in structured.RULES)


def test_language_codes_follow_the_standards():
    assert len(LANGUAGES) == 184 and len(REGIONS) == 249
    assert [is_language(code) for code in ("cs-CZ", "zh-Hant-HK", "jp", "cz", "en-XX", "gr", "en-uk")] == [
        True, True, False, False, False, False, False
    ]  # fmt: skip


BAD = (
    script(article(datePublished="May")) + script('{"@context": "https://schema.org", "@type": "Recipe"}') + script("{")
)
SITE = {
    "https://e.org/": page("Home", "/a", "/b", head=script(article(headline="Héllo"))),
    "https://e.org/a": page("A", "/", head=BAD),
    "https://e.org/b": page("B", "/"),
    "https://e.org/c": 404,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("structured") / "c", SITE, ["https://e.org/"])


def test_the_table_can_be_exported_and_queried(folder):
    text = CliRunner().invoke(main, ["export", "structured", "-c", str(folder)]).stdout
    table = list(csv.DictReader(io.StringIO(text)))
    assert [(row["url"], row["path"], row["value"]) for row in table] == [
        ("https://e.org/", "type", "Article"),
        ("https://e.org/", "headline", "Héllo"),
        ("https://e.org/a", "type", "Article"),
        ("https://e.org/a", "datePublished", "May"),
        ("https://e.org/a", "type", "Recipe"),
    ]
    with Collection(folder) as collection:
        assert [row.value for row in collection.table("structured")] == [row["value"] for row in table]


def test_faults_of_structured_data_are_issues_with_their_line(folder):
    issues = [issue for issue in issues_of(folder, Settings()) if issue.code.startswith("structured")]
    assert {(issue.code, issue.url, issue.detail) for issue in issues} == {
        ("structured-sparse", "https://e.org/", "Article without author, datePublished, image"),
        ("structured-syntax", "https://e.org/a", "line 1: Expecting property name enclosed in double quotes"),
        ("structured-incomplete", "https://e.org/a", "Recipe without name, image"),
        ("structured-sparse", "https://e.org/a", "Article without headline, author, image; "
         "Recipe without recipeIngredient, recipeInstructions, totalTime or cookTime"),
        ("structured-value", "https://e.org/a", "datePublished: May"),
    }  # fmt: skip
    with export_rows(folder, "issues") as (table, table_rows):
        at = {name: place for place, name in enumerate(table.names)}
        lines = {row[at["code"]]: row[at["line"]] for row in table_rows}
    assert lines["structured-syntax"] == 1


def test_a_database_returns_the_same_rows(folder, address, tmp_path):
    with export_rows(folder, "structured") as (_, table_rows):
        here = list(table_rows)
    move(str(folder), str(address))
    with export_rows(str(address), "structured") as (_, table_rows):
        assert list(table_rows) == here and here
