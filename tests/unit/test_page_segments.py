"""Segments of pages: rules, precedence, and filters and colours by segment."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import time

import pytest
from click.testing import CliRunner

from interface import client, token_of
from periplus import open as open_collection
from periplus.analyse.segments import assign_segments, columns_read, segment_rules, value_test
from periplus.api.exporting import export_rows
from periplus.api.page_segments import segments_at, sums_of, with_segments
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.model.tables import ALL_URLS, EXPORTS, Column, ColumnKind
from periplus.store.tables import computed_database, condition
from periplus.urls.canonical import url_id
from periplus_postgres.moving import move
from stored import page, stored

HOME = "https://e.org/"
SITE = {
    HOME: page("Home", "/docs/", "/docs/a", "/blog/1", "/gone", "https://other.org/x"),
    "https://e.org/docs/": page("Docs", "/docs/a", "/gone"),
    "https://e.org/docs/a": page("A", "/blog/1", head='<meta name="robots" content="noindex">'),
    "https://e.org/docs-old": page("Old"),
    "https://e.org/blog/1": page("One", "/", "/docs-old?page=2", "/gone"),
    "https://e.org/docs-old?page=2": page("Old 2", "/docs-old"),
    "https://e.org/gone": 404,
}
RULES = """
[segments]
hidden = { indexable = false, status = 200 }
docs = "/docs"
blog = ["/blog/*"]
gone = [{ status = [404, 410] }, { status = "5xx" }]
"""
OF = {
    HOME: "other",
    "https://e.org/docs/": "docs",
    "https://e.org/docs/a": "hidden",
    "https://e.org/docs-old": "other",
    "https://e.org/blog/1": "blog",
    "https://e.org/gone": "gone",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = stored(tmp_path_factory.mktemp("segments") / "e.periplus", SITE, [HOME])
    (folder / "periplus.toml").write_text(RULES, "utf-8")
    return folder


def run(*words):
    return CliRunner().invoke(main, list(map(str, words)))


def rows(*words):
    result = run(*words, "-f", "csv")
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_the_first_matching_rule_decides_and_other_pages_are_other(folder):
    found = {row["url"]: row["segment"] for row in rows("pages", "-c", folder, "--columns", "url,segment")}
    assert {url: found[url] for url in OF} == OF
    sums = {row.name: row for row in sums_of(folder)}
    assert list(sums) == ["hidden", "docs", "blog", "gone", "other"]
    assert sum(one.urls for one in sums.values()) == len(found), "each URL is in one segment"
    assert (sums["gone"].pages, sums["gone"].failed, sums["docs"].pages, sums["docs"].deepest) == (0, 1, 1, 1)
    assert sums["docs"].examples == ("https://e.org/docs/",) and sums["docs"].size_bytes > 50


@pytest.mark.parametrize(
    ("rule", "inside", "outside"),
    [
        ('"/docs"', "/docs /docs/ /docs/a/b /docs?x=1 /docs/a?y", "/docs-old / /x/docs"),
        ('"/docs/"', "/docs /docs/ /docs/a", "/docs-old"),
        ('"/"', "/ /a /a/b?c", ""),
        ('"/docs/*"', "/docs/a /docs/a?b", "/docs /docs/a/b"),
        ('"/**/print-*"', "/a/print-1 /a/b/print-2?x", "/a/print /print/1"),
        ('"/a b"', "/a%20b /a%20b/c", "/a"),
        ('{ pattern = "[?&]page=[0-9]+$" }', "/a?page=2 /a?b=1&page=33", "/a?page=x /page=2"),
        ('["/a", { path = "/b" }]', "/a /b/c", "/c"),
        ('{ path = ["/a", "/b"], pattern = "x" }', "/a/x /b?x", "/a/y /c/x"),
    ],
)
def test_rules_match_paths_and_patterns(rule, inside, outside):
    rules = segment_rules(f"[segments]\nit = {rule}\n")
    assert columns_read(rules) == ("id", "url")
    for words, name in ((inside, "it"), (outside, "other")):
        urls = [f"https://e.org:8000{path}" for path in words.split()]
        found = assign_segments(rules, {"id": list(map(url_id, urls)), "url": urls})
        assert {found.of(url_id(url)) for url in urls} <= {name}, words
    assert assign_segments(rules, {"id": [], "url": []}).of(3) is None


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("docs = { statsu = 404 }", r"segment 'docs': there is no property 'statsu' \(is it status\?\)"),
        ('docs = { status = "old" }', r"segment 'docs': status is a number, or a range like 100\.\.200, not 'old'"),
        ('docs = { pattern = "(" }', r"segment 'docs': '\(' is not a regular expression"),
        ('docs = "docs"', "a path begins with a slash"),
        ("docs = 3", r"a rule is a path \(\"/docs\"\) or conditions"),
        ("docs = []", "the list is empty"),
        ("docs = {}", "a rule is a path"),
        ("docs = { status = [] }", "status takes a text, a number"),
        ("docs = { in_sitemap = 3 }", "in_sitemap is true or false, not '3'"),
        ('other = "/a"', "is not 'other'"),
        ('"" = "/a"', "a name has 1 to 60 letters"),
        ('"-" = "/a"', "does not begin with ! ~ or -"),
    ],
)
def test_an_invalid_rule_is_refused_with_advice(toml, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        segment_rules(f"[segments]\n{toml}\n", str(tmp_path / "periplus.toml"))
    with pytest.raises(UsageError, match=r"write rules below a line \[segments\]"):
        segment_rules("segments = 3")


def test_an_unknown_segment_is_refused_with_a_suggestion(folder, tmp_path):
    for command in (("pages",), ("links",), ("check", "--offline"), ("export", "pages")):
        result = run(*command, "-c", folder, "--segment", "dosc")
        assert result.exit_code == 2 and "no segment 'dosc' (is it docs?)" in result.output, command
    bare = stored(tmp_path / "bare", {HOME: page("Home")}, [HOME])
    for words in (("pages", "--segment", "docs"), ("pages", "--columns", "segment"), ("rules", "segments")):
        result = run(*words, "-c", bare)
        assert result.exit_code == 2 and "no segments are defined: write rules into" in result.output, words
    assert "segment" not in run("pages", "-c", bare, "--columns", "all").stdout, "without rules there is no column"


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (ColumnKind.TEXT, ["de", "~D", "!de", "-", "!-", "~x", "!~d"]),
        (ColumnKind.INTEGER, ["404", "4xx", "400..410", "..300", "5..", "!4xx", "-"]),
        (ColumnKind.BOOLEAN, ["yes", "no", "!yes", "-"]),
        (ColumnKind.REAL, ["0.5", "0.1..1"]),
    ],
)
def test_conditions_of_rules_equal_those_of_filters(kind, texts):
    """The Python test of a value and the SQL condition agree."""
    table = with_segments(ALL_URLS).__class__("it", "", (Column("value", kind, ""),))
    values = {
        ColumnKind.TEXT: ["de", "de-AT", "en", None],
        ColumnKind.INTEGER: [200, 404, 410, 503, None],
        ColumnKind.BOOLEAN: [0, 1, None],
        ColumnKind.REAL: [0.0, 0.5, 2.0, None],
    }[kind]
    connection = computed_database((table, [(value,) for value in values])).connection
    for text in texts:
        where, given = condition(table, "value", text)
        found = [value for (value,) in connection.execute(f"SELECT value FROM it WHERE {where}", given)]
        assert found == [value for value in values if value_test(table.columns[0], text)(value)], text


def test_links_issues_and_exports_have_segments_and_filters(folder):
    links = rows("links", "-c", folder, "--segment", "docs", "--columns", "source,target,segment,target_segment")
    assert {(row["target"], row["target_segment"]) for row in links} == {
        ("https://e.org/docs/a", "hidden"),
        ("https://e.org/gone", "gone"),
    }
    assert {row["source"] for row in links} == {"https://e.org/docs/"}
    issues = json.loads(run("check", "--offline", "-c", folder, "--segment", "blog", "-f", "json", "-q").stdout)
    assert {issue["url"] for issue in issues} == {"https://e.org/blog/1"}
    for name, table in EXPORTS.items():
        with export_rows(folder, name) as (exported, table_rows):
            assert exported.names == with_segments(table).names
            assert all(len(row) == len(exported.columns) for row in table_rows), name
    assert {row["url"] for row in rows("export", "pages", "-c", folder, "--segment", "gone")} == {"https://e.org/gone"}
    assert "has no pages" in run("export", "hosts", "-c", folder, "--segment", "gone").output
    with open_collection(folder) as collection:
        assert [row.segment for row in collection.pages(segment="blog")] == ["blog"]
        assert {row.segment for row in collection.table("pages")} == {*OF.values()} - {"docs"} | {"docs"}


def test_both_stores_give_the_same_segments(folder, address, tmp_path, monkeypatch):
    def urls(place):
        with export_rows(place, "urls") as (table, table_rows):
            names = table.names
            return {row[names.index("url")]: row[names.index("segment")] for row in table_rows}

    def sums(place):
        return [(row.name, row.urls, row.pages, row.failed, row.size_bytes) for row in sums_of(place)]

    here = urls(folder), sums(folder)
    move(str(folder), address.text)
    monkeypatch.chdir(tmp_path)
    assert (urls(address.text), sums(address.text)) == here, "segments move with their collection"
    (tmp_path / "periplus.toml").write_text('[segments]\nall = "/"\n', "utf-8")
    assert set(urls(address.text).values()) == {"all"}, "those beside the command come before"
    (tmp_path / "periplus.toml").unlink()
    result = run("rules", "segments", "-c", address.text)
    assert result.exit_code == 0 and "docs" in result.stdout


def test_screens_filter_by_segment_and_apply_a_changed_rule_immediately(folder):
    asking = client(folder.parent)

    def asked(address):
        answer = asking.get(f"/c/e/t/{address}", headers={"accept": "application/json"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    facets = {facet["name"]: dict(facet["values"]) for facet in asked("pages")["facets"]}
    assert facets["segment"]["docs"] == 1 and facets["segment"]["gone"] == 1
    assert [row[0] for row in asked("pages?segment=blog&columns=url")["rows"]] == ["https://e.org/blog/1"]
    assert {row[0] for row in asked("issues?segment=docs&columns=url")["rows"]} == {"https://e.org/docs/"}
    every = {row[0]: row[1] for row in asked("faults?columns=message,pages")["rows"]}
    some = {row[0]: row[1] for row in asked("faults?segment=docs&columns=message,pages")["rows"]}
    assert some.items() <= {**every, **some}.items() and sum(some.values()) < sum(every.values())
    facets = {facet["name"]: dict(facet["values"]) for facet in asked("faults")["facets"]}
    assert facets["segment"]["docs"] == len(some)
    assert "segment" in asking.get("/c/e/t/pages").text
    (folder / "periplus.toml").write_text('[segments]\nall = "/"\n', "utf-8")
    os.utime(folder / "periplus.toml", (1.0, 1.0))  # a different modification time on any machine
    assert {row[0] for row in asked("pages?columns=segment")["rows"]} == {"all"}
    (folder / "periplus.toml").write_text("[segments]\nall = 3\n", "utf-8")
    answer = asking.get("/c/e/t/pages")
    assert answer.status_code == 400 and "segment &#39;all&#39;" in answer.text
    (folder / "periplus.toml").write_text(RULES, "utf-8")


def test_rules_can_be_edited_in_the_browser_without_changing_other_settings(tmp_path):
    stored(tmp_path / "e.periplus", SITE, [HOME])
    path = tmp_path / "e.periplus" / "periplus.toml"
    path.write_text('# ours\n[settings]\nretries = 1\n[segments]\nold = "/"\n\n[[site]]\nsort = true\n', "utf-8")
    asking = client(tmp_path)
    assert "old = &#34;/&#34;" in asking.get("/c/e/settings").text
    form = {"csrf_token": token_of(asking, "/c/e/settings"), "rules": 'docs = "/docs"\r\n'}
    answer = asking.post("/c/e/segments", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/c/e/settings#segments")
    text = path.read_text("utf-8")
    assert text == '# ours\n[settings]\nretries = 1\n[[site]]\nsort = true\n\n[segments]\ndocs = "/docs"\n'
    assert 'href="t/pages?segment=docs">docs 2</a>' in asking.get("/c/e/settings").text
    for rules, message in (
        ('docs = "docs"', "a path begins with a slash"),
        ("docs = { statsu = 1 }", "is it status?"),
        ("[settings]\nretries = 9", "and no other table"),
        ("[segments]\n[settings]\n", "and no other table"),
        ("docs =", "is not valid TOML"),
    ):
        answer = asking.post("/c/e/segments", data=form | {"rules": rules})
        assert answer.status_code == 400 and message in answer.text, rules
        assert path.read_text("utf-8") == text
    assert asking.post("/c/e/segments", data=form | {"rules": " "}).status_code == 303
    assert "segments" not in path.read_text("utf-8") and segments_at(tmp_path / "e.periplus") is None


def test_maps_and_the_report_show_segments(folder, tmp_path):
    asking = client(folder.parent)
    screen = asking.get("/c/e/map?colour=segment").text
    assert "coloured by segment" in screen and re.search(r"picture\.svg\?[^\"]*colour=segment", screen)
    assert "fetched in other segments" in asking.get("/c/e/picture.svg?colour=segment").text
    assert asking.get("/c/e/picture.svg?colour=taste").status_code == 400
    result = run("map", "-c", folder, "-f", "svg", "--colour", "segment")
    assert result.exit_code == 0 and ">blog</text>" in result.stdout
    with open_collection(folder) as collection:
        site = collection.map()
        shown = dict(zip(site.facts.url, dict(site.facts.further)["segment"], strict=True))
        assert {url: shown[url] for url in OF if url in shown} == {url: OF[url] for url in OF if url in shown}
        report = collection.report(tmp_path / "report.html").read_text("utf-8")
    table = report.partition('id="segments"')[2].partition("</section>")[0]
    cells = [re.findall(r"<t[dh][^>]*>([^<]*)</t", row) for row in table.split("<tr>")]
    rows_by_name = {row[0]: row for row in cells if row}
    assert rows_by_name["docs"][1:3] == ["1", "0"] and rows_by_name["gone"][1:3] == ["0", "1"]
    assert int(rows_by_name["blog"][-3]) > 0, "a broken link is an error on its page"


def test_segments_of_a_large_collection_are_computed_within_seconds():
    """200,000 URLs and ten rules on paths took 0.7 s of CPU when measured."""
    urls = [f"https://e.org/part{number % 97}/page{number}" for number in range(200_000)]
    rules = segment_rules("[segments]\n" + "".join(f'p{n} = "/part{n}"\n' for n in range(10)))
    began = time.process_time()
    found = assign_segments(rules, {"id": range(len(urls)), "url": urls})
    assert time.process_time() - began < 20
    assert (found.of(3), found.of(96), found.of(200_000)) == ("p3", "other", None)
