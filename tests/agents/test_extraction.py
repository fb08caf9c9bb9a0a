"""Columns of pages by extraction rules of the user: CSS, XPath, regular expressions, JSONPath."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from periplus.api.collection import Collection
from periplus.api.exporting import export_rows, exported_columns
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus_agents.extraction import VALUE_CHARS, extract_rules, extract_values
from periplus_postgres.moving import move
from stored import page, stored

PAGE = """<!DOCTYPE html><title>Lamp</title><p class=price data-sku="L-1">€ <b>12.50</b></p><ul><li>a<li> b  c<li></ul>
<a href="/de" rel=alternate>de</a><script type="application/ld+json">{"offers": [{"price": 12.5}, {"price": 9}],
"x": {"a": "ö"}}</script>
<script type="application/json">{"sku": "L-1"}</script><script type="application/json">{broken</script>"""


def value(rule, body=PAGE, media_type="text/html"):
    lines = "\n".join(f"{name} = {json.dumps(part)}" for name, part in rule.items()) if isinstance(rule, dict) else ""
    text = f"[extract.v]\n{lines}" if lines else f"[extract]\nv = {json.dumps(rule)}"
    (made,) = extract_values(extract_rules(text), body.encode(), "utf-8", media_type)
    return made


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("p.price", "€ 12.50"),
        ("p.price b", "12.50"),
        ("li", "a"),
        ({"css": "li", "all": True}, "a\nb c"),
        ("p::attr(data-sku)", "L-1"),
        ("p.price b::html", "<b>12.50</b>"),
        ("p.price b::text", "12.50"),
        (".missing", None),
        ({"xpath": "//p[@class='price']/b"}, "12.50"),
        ({"xpath": "//a/@href"}, "/de"),
        ({"xpath": "count(//li)"}, "3"),
        ({"xpath": "boolean(//nav)"}, "no"),
        ({"xpath": "string(//li[2])"}, "b c"),
        ({"xpath": "//li/text()", "all": True}, "a\nb c"),
        ({"regex": r"data-sku=.([A-Z]-\d)"}, "L-1"),
        ({"regex": r"\d+\.\d+"}, "12.50"),
        ({"regex": r"<li>\s*(\w)", "all": True}, "a\nb"),
    ],
)
def test_each_kind_of_rule_extracts_its_value(rule, expected):
    assert value(rule) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("$.offers[0].price", "12.5"),
        ("$..price", "12.5"),
        ("$.offers[?@.price < 10].price", "9"),
        ("$.sku", "L-1"),
        ("$.x", '{"a": "ö"}'),
        ("$.nothing", None),
    ],
)
def test_json_in_a_page_is_read_with_jsonpath(rule, expected):
    pytest.importorskip("jsonpath")
    assert value({"jsonpath": rule}) == expected
    assert value({"jsonpath": "$.a"}, '{"a": [1]}', "application/json") == "[1]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('price = "p["', "[extract] price: invalid CSS"),
        ('price = { xpath = "//p[" }', "[extract] price: '//p[' is not an XPath"),
        ('price = { xpath = "foo(//p)" }', "unknown function"),
        ('price = { regex = "(" }', "[extract] price: '(' is not a regular expression"),
        ('price = { csss = "p" }', "there is no 'csss'"),
        ('price = { css = "p", regex = "x" }', "choose one of css, xpath, regex, jsonpath"),
        ("price = { all = true }", "choose one of"),
        ('price = { css = "p", all = "yes" }', "all is true or false"),
        ("price = 3", "not 3"),
        ('Price = "p"', "a name has"),
        ('"a-b" = "p"', "a name has"),
        ('price = ""', "choose one of"),
    ],
)
def test_errors_name_the_rule(text, words):
    with pytest.raises(UsageError) as error:
        extract_rules(f"[extract]\n{text}", "e/periplus.toml")
    assert "e/periplus.toml" in str(error.value) and words in str(error.value)


def test_an_invalid_jsonpath_and_a_missing_package_are_named(monkeypatch):
    pytest.importorskip("jsonpath")
    with pytest.raises(UsageError, match=r"\[extract\] price: '\$\[' is not a JSONPath"):
        extract_rules('[extract]\nprice = { jsonpath = "$[" }')
    monkeypatch.setitem(__import__("sys").modules, "jsonpath", None)
    with pytest.raises(UsageError, match=r"pip install 'periplus\[jsonpath\]'"):
        extract_rules('[extract]\nprice = { jsonpath = "$.a" }')


RULES = extract_rules(
    '[extract]\na = "p"\nb = { xpath = "//p/@class", all = true }\nc = { regex = "<(.)", all = true }'
)


@given(body=st.binary(max_size=300), media_type=st.sampled_from(["text/html", "application/json", "image/png", ""]))
def test_any_bytes_give_values_or_none(body, media_type):
    assert all(value is None or isinstance(value, str) for value in extract_values(RULES, body, "utf-8", media_type))


def test_values_have_a_limited_length():
    many = "<p class=x>" + "y" * 50 + "</p>"
    assert all(
        len(value) <= VALUE_CHARS for value in extract_values(RULES, (many * 5_000).encode(), "utf-8", "text/html")
    )


SITE = {
    "https://e.org/": page("Home", "/a", "/b", head="<meta name=sku content=H-1>"),
    "https://e.org/a": page("A", "/"),
    "https://e.org/b": "/a",
}
TOML = """[extract]
sku = "meta[name=sku]::attr(content)"
links = { xpath = "count(//a)" }

[segments]
deep = "/a"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = stored(tmp_path_factory.mktemp("extraction") / "c", SITE, ["https://e.org/"])
    (folder / "periplus.toml").write_text(TOML, "utf-8")
    return folder


EXPECTED = {"https://e.org/": ("H-1", "2"), "https://e.org/a": (None, "1"), "https://e.org/b": (None, None)}


def run(*words):
    return CliRunner().invoke(main, [*words], catch_exceptions=False)


def test_rules_are_columns_of_lists_and_exports(folder):
    with Collection(folder) as collection:
        rows = collection.pages(columns=("x:sku", "url", "x:links", "segment"))
        assert rows.columns == ("x:sku", "url", "x:links", "segment")
        assert {row.url: (row.x_sku, row.x_links) for row in rows} == EXPECTED
        assert [column.name for column in exported_columns(folder, "pages")][-3:] == ["segment", "x:sku", "x:links"]
        assert {row.url: (row.x_sku, row.x_links) for row in collection.table("pages")} == EXPECTED
        assert "x:sku" in collection.pages().columns
    text = run("pages", "--columns", "url,x:sku", "-f", "csv", "-n", "1", "-c", str(folder)).stdout
    assert list(csv.reader(io.StringIO(text))) == [["url", "x:sku"], ["https://e.org/", "H-1"]]
    assert (
        run("export", "pages", "--no-rank", "-c", str(folder)).stdout.splitlines()[0].endswith("segment,x:sku,x:links")
    )
    assert "choose among" in run("pages", "--columns", "x:other", "-c", str(folder)).output


def test_rules_check_shows_the_values_of_a_stored_page(folder):
    assert run("rules", "check", "https://e.org/", "-c", str(folder)).stdout.splitlines()[-2:] == [
        "  x:sku = H-1",
        "  x:links = 2",
    ]
    assert "x:sku: nothing on this page" in run("rules", "check", "https://e.org/a", "-c", str(folder)).stdout
    assert "x:" not in run("rules", "check", "https://e.org/new", "-c", str(folder)).stdout


def test_an_invalid_rule_is_refused_by_name(tmp_path):
    folder = stored(tmp_path / "c", SITE, ["https://e.org/"])
    (folder / "periplus.toml").write_text('[extract]\nprice = "p["\n', "utf-8")
    ended = run("pages", "-c", str(folder))
    assert ended.exit_code != 0 and "[extract] price" in ended.output


def test_a_database_has_the_same_columns(folder, address, tmp_path, monkeypatch):
    move(str(folder), str(address))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "periplus.toml").write_text(TOML.partition("[segments]")[0], "utf-8")
    with export_rows(str(address), "pages", ranks=False) as (table, table_rows):
        at = [table.names.index(name) for name in ("url", "x:sku", "x:links")]
        assert {row[at[0]]: (row[at[1]], row[at[2]]) for row in table_rows} == EXPECTED
