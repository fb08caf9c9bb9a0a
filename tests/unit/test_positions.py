"""Lines and columns of issues: the position of the tag in the decoded source."""

import inspect
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from audited import table_of
from periplus.analyse.audit import issue_kinds
from periplus.api import positions
from periplus.api.positions import issues_with_positions, locate_issues
from periplus.cli.main import main
from periplus.document import header_checks, html, static_checks
from periplus.document import positions as positions_in_source
from periplus.document.header_checks import HEADER_CODES
from periplus.document.positions import PageSource, positions_of
from periplus.model.audit import Issue, Severity, SharedCause
from periplus.model.web import Url
from periplus.present.issues import gcc, place_of, sarif
from periplus.urls.canonical import resolve, url_id
from stored import page, stored

HOME = Url("https://e.org/a/")
GONE = "https://e.org/gone"


def issue(code, related="", *, detail="", anchor="", position="", cause=""):
    return Issue(code, Severity.ERROR, HOME, detail, related, anchor, position, cause)


def places(source, *issues, media_type="text/html", charset="utf-8"):
    body = source if isinstance(source, bytes) else source.encode()
    return positions_of(PageSource(HOME, body, media_type, charset), issues)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_counts(newline):
    source = newline.join(["<!DOCTYPE html>", "<title>x</title>", "", "\tž𝄞 <a", " href=/gone>y</a>"])
    assert places(source, issue("broken-link", GONE)) == [(4, 5)]


@pytest.mark.parametrize("charset", ["windows-1250", "utf-16-le", "iso-8859-2", "utf-8"])
def test_columns_count_the_characters_of_the_decoded_source(charset):
    mark = b"\xff\xfe" if charset == "utf-16-le" else b""
    source = "<p>\n" + "Příliš žluťoučký kůň úpěl ďábelské ódy. " * 9 + "<img src=/gone>"
    assert places(mark + source.encode(charset), issue("broken-resource", GONE), charset=charset) == [(2, 361)]


def test_a_byte_order_mark_is_not_counted():
    assert places(b"\xef\xbb\xbf<a href=/gone>", issue("broken-link", GONE)) == [(1, 1)]


LINKS = [
    ("<a href=' /gone#x '>", issue("broken-link", GONE)),
    ("<base href=/><a href=gone>", issue("broken-link", GONE)),
    ("<a href=/ok><img srcset='/ok 1x, /gone 2x'>", issue("broken-resource", GONE)),
    ("<svg><a xlink:href=/gone>", issue("broken-link", GONE)),
    ("<meta http-equiv=Refresh content='0; url=/gone'>", issue("broken-link", GONE)),
    ("<p style='background: url(/gone)'>", issue("broken-resource", GONE)),
    ("<link rel=stylesheet href=/gone>", issue("broken-resource", GONE)),
    ("<link rel=canonical href=/gone>", issue("canonical-broken", GONE)),
    ("<link rel=alternate hreflang=cs href=/gone>", issue("hreflang-broken", GONE)),
    ("<form action=/gone>", issue("insecure-form", GONE)),
    ("<a href='http://[x'>", issue("malformed-link", detail="http://[x")),
    ("<a href='mailto:x@'>", issue("bad-mailto", detail="mailto:x@: no host")),
    ("<img src=x>", issue("image-without-alt", detail="images: 1")),
    ("<a href=/ok rel='me nofollow'>", issue("nofollow-inside")),
    ("<h4>x</h4>", issue("heading-skipped")),
    ("<button></button>", issue("button-without-name")),
    ("<meta name=Viewport content='user-scalable=no'>", issue("zoom-forbidden")),
]


@pytest.mark.parametrize(("tags", "one"), LINKS, ids=[tags for tags, _ in LINKS])
def test_the_position_is_that_of_the_tag(tags, one):
    source = f"<html lang=en>\n<title>x</title><h2>y</h2>\n  {tags}"
    [(line, column)] = places(source, one)
    last = tags.rindex("<", 0, -5) if tags.startswith(("<base", "<a href=/ok><img", "<svg")) else 0
    assert (line, column) == (3, 3 + last)


def test_a_missing_element_has_the_position_of_its_parent():
    source = "<!DOCTYPE html>\n<html>\n <head></head>\n  <body>"
    codes = ["title-missing", "viewport-missing", "language-missing", "h1-missing", "main-missing"]
    assert places(source, *map(issue, codes)) == [(3, 2), (3, 2), (2, 1), (4, 3), (4, 3)]
    assert places("<p>x", *map(issue, codes)) == [None] * 5  # elements that are not in the source
    assert places("<h1>x</h1>\n<h1>y</h1>", issue("h1-several")) == [(2, 1)]


def test_the_right_one_of_several_links_to_a_target_is_found():
    source = (
        '<nav><a href="/gone">Menu</a></nav>\n<main><a href="/gone">Text</a>\n<a href="/gone">Other</a>'
        "<article><header><a href=/gone>Head</a></header></article></main>\n<a href=/gone#there>Place</a>"
    )
    asked = [
        issue("broken-link", GONE, anchor="Menu", position="nav"),
        issue("broken-link", GONE, anchor="Text", position="main"),
        issue("broken-link", GONE, anchor="Other", position="main"),
        issue("broken-link", GONE, anchor="Head", position="main"),
        issue("broken-fragment", GONE, anchor="Place", position="body", cause=f"{GONE}#there"),
        issue("broken-fragment", GONE, cause=f"{GONE}#nowhere"),
        issue("broken-link", "https://e.org/other"),
        issue("slow-page"),
    ]
    assert [place and place[0] for place in places(source, *asked)] == [1, 2, 3, 3, 4, None, None, None]


@pytest.mark.parametrize("written", ["b", "b%20c", "é", "b c"])
def test_links_with_fragments_are_found_however_the_fragment_is_written(written):
    """Only fragments that resolving may change are resolved."""
    source = f'<a href="/gone#a">A</a><a href="/gone">None</a>\n<a href=" /gone#{written} ">B</a>'
    fragment = resolve(f"#{written}", Url(GONE))[1]
    asked = issue("broken-fragment", GONE, cause=f"{GONE}#{fragment}")
    assert places(source, asked) == [(2, 1)]


def test_links_in_css_and_markdown_have_positions():
    sheet = "/* url(/ok) */\nbody { background: url('/gone') }"
    assert places(sheet, issue("broken-resource", GONE), media_type="text/css") == [(2, 25)]
    text = "# Title\n\nGo [there](/gone-away) or [here](/gone).\n"
    assert places(text, issue("broken-link", GONE), media_type="text/markdown") == [(3, 34)]
    assert places("x", issue("broken-link", GONE), media_type="application/pdf") == [None]


@given(st.text(alphabet="<a b=\"'/>\n\r\tž𝄞!-&;ph1titlescript", max_size=120))
def test_every_position_is_that_of_a_tag(text):
    lines = re.split(r"\r\n|\r|\n", text)
    for element in html.select(html.parse_with_positions(text), "*"):
        if place := html.position(element):
            assert lines[place[0] - 1][place[1] - 1 :].lower().startswith("<" + html.tag_of(element)[:1].lower())


@pytest.fixture
def folder(tmp_path):
    site = {HOME: page("Home", "/gone", "/a/b"), "https://e.org/a/b": page("B", "/gone"), GONE: 404}
    return stored(tmp_path / "e.periplus", site, [HOME])


def test_positions_of_stored_pages_are_in_every_output_format(folder):
    lists = {}
    for form in ("jsonl", "gcc", "sarif", "table"):
        run = CliRunner().invoke(main, ["check", "--offline", "-q", "-c", str(folder), "-f", form])
        assert run.exit_code == 0, run.output
        lists[form] = run.output
    rows = [json.loads(line) for line in lists["jsonl"].splitlines()]
    [row] = [row for row in rows if row["code"] == "suspect-link" and row["url"] == HOME]
    source = page("Home", "/gone", "/a/b")
    line, column = row["line"], row["column"]
    assert re.split("\n", source)[line - 1][column - 1 :].startswith("<a")
    assert f"{HOME}:{line}:{column}: note: Uncertain links: {GONE}" in lists["gcc"]
    assert f"on {HOME} (line {line}, column {column})" in lists["table"]
    run = json.loads(lists["sarif"])["runs"][0]
    assert run["columnKind"] == "unicodeCodePoints"
    regions = [
        result["locations"][0]["physicalLocation"]["region"]
        for result in run["results"]
        if result["ruleId"] == "suspect-link"
    ]
    assert {"startLine": line, "startColumn": column} in regions
    assert all(run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"] for one in run["results"])


def test_a_page_is_read_once_for_all_its_issues(monkeypatch):
    monkeypatch.setattr(positions, "PAGES_AT_ONCE", 1)
    read, pages = [], [HOME, "https://e.org/a/b"]
    reader = SimpleNamespace(body=read.append, pages_with_body=set)
    issues = [Issue(code, Severity.NOTICE, page) for code in ("title-missing", "description-missing") for page in pages]
    located = list(locate_issues(reader, table_of(issues)))
    assert located == [replace(issue, cause=issue.url) for issue in issues]
    assert read == list(map(url_id, pages))


def test_a_page_with_issues_of_its_header_only_is_not_read():
    assert set(re.findall(r'StaticNote\("([a-z-]+)"', inspect.getsource(header_checks))) == HEADER_CODES
    issues = [issue(code) for code in sorted(HEADER_CODES)]
    found = locate_issues(None, table_of(issues))
    assert sorted((issue.code, issue.line) for issue in found) == [(issue.code, 0) for issue in issues]


def test_kinds_of_issues_of_whole_pages_have_no_position():
    noted = set(re.findall(r'"([a-z-]+)"', inspect.getsource(static_checks)))
    assert not positions.WHOLE_PAGE_CODES & (noted | positions_in_source.ISSUE_SELECTORS.keys())
    of_links = {code for code in positions.WHOLE_PAGE_CODES if issue_kinds()[code].caused_by is SharedCause.TARGET}
    assert of_links == {"near-duplicate"}, "its other page need not be linked"


def test_pages_that_are_not_stored_have_no_positions(folder):
    gone = Issue("broken-link", Severity.ERROR, "https://e.org/never", related=GONE)
    assert issues_with_positions(folder, [gone]) == [gone]


def test_positions_are_written_in_formats_of_editors():
    one = Issue("title-long", Severity.NOTICE, "a b/é#.html", "70 characters", line=3, column=9)
    assert place_of(one) == "a b/é#.html:3:9"
    assert list(gcc([one], issue_kinds())) == ["a b/é#.html:3:9: note: Long titles: 70 characters [title-long]"]
    place = json.loads("".join(sarif([one], issue_kinds())))["runs"][0]["results"][0]["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "a%20b/%C3%A9%23.html"
