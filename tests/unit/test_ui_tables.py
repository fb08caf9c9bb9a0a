"""Tables of the interface: filters, order, facets, paging and files. The URL has the whole state."""

from __future__ import annotations

import csv
import io
import json
from itertools import chain, repeat
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet
import pytest

from interface import client
from periplus.api.tables import FACETS_S, TABLES, Browser, TableQuery
from periplus.errors import UsageError
from periplus.store.tables import BROWSABLE_TABLES, condition
from periplus.ui.tables import SCREENS
from stored import page, stored

HOME = "https://e.org/"
SITE = {
    HOME: page("Home", "/a", "/b", "/gone", "https://other.org/x", "/moved"),
    "https://e.org/a": page("Alpha", "/b", "/gone"),
    "https://e.org/b": page("Beta <b>", "/", head='<meta name="description" content="of beta">'),
    "https://e.org/gone": 404,
    "https://e.org/moved": "/b",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    stored(folder / "e.periplus", SITE, [HOME])
    return folder


def rows(folder: Path, address: str) -> list[dict]:
    answer = client(folder).get(f"/c/e/t/{address}", headers={"accept": "application/json"})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    names = [column["name"] for column in found["columns"]]
    return [dict(zip(names, row, strict=True)) for row in found["rows"]]


def urls(folder: Path, query: str) -> list[str]:
    return [row["url"] for row in rows(folder, f"pages?{query}")]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("state=fetched", [HOME, "https://e.org/a", "https://e.org/b"]),
        ("state=!fetched", ["https://e.org/gone", "https://e.org/moved", "https://other.org/x"]),
        ("status=4xx", ["https://e.org/gone"]),
        ("status=404", ["https://e.org/gone"]),
        ("status=300..399", ["https://e.org/moved"]),
        ("status=-", ["https://other.org/x"]),
        ("title=Alpha", ["https://e.org/a"]),
        ("title=~ALPH", ["https://e.org/a"]),
        ("title=-&state=fetched", []),
        ("q=beta", ["https://e.org/b"]),
        ("q=ALPHA", ["https://e.org/a"]),
        ("description=~beta&depth=1", ["https://e.org/b"]),
        ("site=other.org", ["https://other.org/x"]),
        ("depth=0", [HOME]),
        ("in_sitemap=yes", []),
        ("visited=1970-01&depth=0..0", [HOME]),
        ("visited=2026", []),
        ("state=fetched&sort=-title", ["https://e.org/", "https://e.org/b", "https://e.org/a"]),
        ("state=fetched&sort=title&per=2", ["https://e.org/a", "https://e.org/b"]),
        ("state=fetched&sort=title&per=2&at=2", [HOME]),
        ("state=fetched&at=2", []),
    ],
)
def test_pages_are_filtered_sorted_and_paged_by_the_url(folder, query, expected):
    assert urls(folder, query) == expected


def test_links_are_filtered_by_their_targets(folder):
    assert {row["target"] for row in rows(folder, "external")} == {"https://other.org/x"}
    assert {(row["source"], row["target"]) for row in rows(folder, "links?target_state=failed")} == {
        (HOME, "https://e.org/gone"),
        ("https://e.org/a", "https://e.org/gone"),
    }
    assert {row["source"] for row in rows(folder, "links?target=https://e.org/b&kind=a")} == {HOME, "https://e.org/a"}


def test_facets_count_the_filtered_rows(folder):
    found = client(folder).get("/c/e/t/pages?depth=1&format=json").json()
    facets = {facet["name"]: dict(map(tuple, facet["values"])) for facet in found["facets"]}
    assert facets["state"] == {"fetched": 2, "excluded": 2, "failed": 1}
    assert found["count"] == {"rows": 5, "capped": False}


@pytest.mark.parametrize("table", SCREENS)
def test_every_table_is_shown_and_can_be_downloaded_in_every_format(folder, table):
    asking = client(folder)
    assert asking.get(f"/c/e/t/{table}").status_code == 200
    shown = asking.get(f"/c/e/t/{table}.jsonl").text.splitlines()
    assert len(shown) == len(rows(folder, f"{table}?per=500"))
    assert len(list(csv.reader(io.StringIO(asking.get(f"/c/e/t/{table}.csv").text)))) == len(shown) + 1
    parquet = pyarrow.parquet.read_table(io.BytesIO(asking.get(f"/c/e/t/{table}.parquet").content))
    assert parquet.num_rows == len(shown)
    assert asking.get(f"/c/e/t/{table}.xlsx").content[:2] == b"PK"


def test_a_file_has_the_filtered_rows_in_order(folder):
    query = "state=fetched&sort=-title"
    lines = client(folder).get(f"/c/e/t/pages.jsonl?{query}&per=1&at=2").text.splitlines()
    assert [json.loads(line)["url"] for line in lines] == urls(folder, query)


def test_a_downloaded_file_is_deleted_on_the_server(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert client(folder).get("/c/e/t/pages.csv").status_code == 200
    assert client(folder).get("/c/e/t/pages.csv?status=none").status_code == 400
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "query",
    [
        "colour=red",
        "sort=colour",
        "columns=colour",
        "status=abc",
        "status=1..x",
        "at=0",
        "at=x",
        "per=100000",
        "in_sitemap=maybe",
        "at=99999999",
    ],
)
def test_an_invalid_query_is_refused_with_a_message(folder, query):
    answer = client(folder).get(f"/c/e/t/pages?{query}")
    assert answer.status_code == 400
    assert 'class="notice"' in answer.text


def test_an_unknown_table_or_collection_is_missing(folder):
    assert client(folder).get("/c/e/t/nothing").status_code == 404
    assert client(folder).get("/c/none/t/pages").status_code == 404
    assert client(folder).get("/c/e/t/pages.exe").status_code == 400


@pytest.mark.parametrize(
    "text", ["'", "\\", "%", "_", "' OR 1=1 --", "~'", "!'", '"', ";", "\0", "0x10", "١", "nan", "inf"]
)
def test_any_text_in_a_filter_is_safe(folder, text):
    for column in ("url", "title", "status", "visited", "in_sitemap", "q", "size"):
        answer = client(folder).get("/c/e/t/pages", params={column: text})
        assert answer.status_code in (200, 400), (column, text)


def test_invalid_utf_8_in_a_url_is_accepted(folder):
    assert client(folder).get("/c/e/t/pages?q=%ff%ed%a0%bd").status_code == 200
    assert client(folder).get("/c/%ff/live").status_code == 404


def test_rows_are_the_same_for_every_page_size(folder):
    browser = Browser()
    for table in BROWSABLE_TABLES:
        whole = browser.page(folder / "e.periplus", table, TableQuery(most=-1)).rows
        parts = [
            browser.page(folder / "e.periplus", table, TableQuery(first=first, most=2)).rows
            for first in range(0, len(whole), 2)
        ]
        assert [row for part in parts for row in part] == list(whole)
    assert {"pages", "issues"} <= set(TABLES)


def test_a_condition_on_an_unknown_column_is_refused():
    with pytest.raises(UsageError, match="choose among"):
        condition(BROWSABLE_TABLES["pages"], "colour", "red")


def test_issues_are_computed_once_per_state_of_a_collection(folder):
    browser = Browser()
    one = browser.page(folder / "e.periplus", "issues", TableQuery(conditions=(("severity", "error"),)))
    assert len(browser._computed) == 1
    browser.page(folder / "e.periplus", "issues", TableQuery())
    assert len(browser._computed) == 1
    assert {row[0] for row in one.rows} <= {HOME, "https://e.org/a", "https://e.org/b"}


@pytest.mark.parametrize(
    "query", ["", "internal=no", "target_state=failed", "target_state=!failed", "sort=target", "q=b"]
)
def test_a_large_collection_shows_the_same_rows(folder, query, monkeypatch):
    """The limits are so small that this collection exceeds them."""
    whole = rows(folder, f"links?{query}&per=500")
    for name, value in (("LARGE", 1), ("FEW", 2), ("SAMPLE_ROWS", 2), ("MOST_COUNTED_ROWS", 3)):
        monkeypatch.setattr(f"periplus.store.tables.{name}", value)
    assert rows(folder, f"links?{query}&per=500") == whole
    found = client(folder).get(f"/c/e/t/links?{query}&format=json").json()["count"]
    assert found == ({"rows": len(whole), "capped": False} if len(whole) < 2 else {"rows": 2, "capped": True})
    pages = client(folder).get("/c/e/t/pages?format=json&per=500").json()
    assert pages["count"] == {"rows": 3, "capped": True}
    assert len(pages["rows"]) == 6
    monkeypatch.setattr("periplus.store.tables.FEW", 4)  # the first query also returns the rows
    assert [rows(folder, f"links?{query}&per=2&at={at}") for at in (1, 2, 3)] == [whole[:2], whole[2:4], whole[4:6]]


def test_rows_are_shown_without_facets_if_there_is_no_time_for_them(folder, monkeypatch):
    """The CPU clock jumps by three seconds while facets are counted."""
    monkeypatch.setattr("periplus.store.sqlite.reading.LIMIT_STEPS", 1)
    whole = client(folder).get("/c/e/t/links?format=json").json()
    for address in ("links", "links?per=2", "links?q=b", "pages?at=2&per=2", "pages?sort=-title"):
        times = chain((0.0, 0.0), repeat(FACETS_S + 1))
        answer = client(folder, browser=Browser(cpu_s=times.__next__)).get(f"/c/e/t/{address}")
        assert answer.status_code == 200 and "counting took too long" in answer.text, address
        assert 'class="facet-grid"' not in answer.text and '<tbody id="rows"' in answer.text
    times = chain((0.0, 0.0), repeat(FACETS_S + 1))
    browser = Browser(cpu_s=times.__next__)
    found = client(folder, browser=browser).get("/c/e/t/links?format=json").json()
    assert (found["rows"], found["facets"], found["count"]) == (whole["rows"], [], whole["count"])
    again = client(folder, browser=browser).get("/c/e/t/links?format=json").json()
    assert again["facets"] == whole["facets"] != [], "the next request may have the time"


def test_a_query_that_gets_no_cpu_time_is_not_stopped(folder, monkeypatch):
    """Wall-clock time does not count."""
    monkeypatch.setattr("periplus.store.sqlite.reading.LIMIT_STEPS", 1)
    monkeypatch.setattr("periplus.api.tables.READ_S", 0.0001)
    monkeypatch.setattr("periplus.api.tables.FACETS_S", 0.0001)
    shown = client(folder, browser=Browser(cpu_s=lambda: 5.0)).get("/c/e/t/links")
    assert shown.status_code == 200 and 'class="facets"' in shown.text


@pytest.mark.parametrize("sign", ["%", "_", "\\", "a%", "_lpha"])
def test_wildcards_of_sql_are_plain_characters(folder, sign):
    assert urls(folder, f"q={quote(sign)}") == []


def test_forms_redirect_to_a_short_url(folder: Path) -> None:
    asking = client(folder)

    def leads(query: str) -> str:
        return asking.get(f"/c/e/t/pages?{query}").headers.get("location", "")

    assert leads("q=a&where=title&is=~b+c&at=3") == "?q=a&title=~b+c"
    assert leads("where=sort&is=x") == "?"
    assert leads("columns=url&columns=size&status=200") == "?columns=url%2Csize&status=200"
    assert leads("columns=url,size") == ""
    assert asking.get("/c/e/t/pages?where=nothing&is=1", follow_redirects=True).status_code == 400


def test_the_most_severe_issues_come_first(folder: Path) -> None:
    for table in ("faults", "issues"):
        order = [
            ["error", "warning", "notice"].index(row["severity"]) for row in rows(folder, f"{table}?columns=severity")
        ]
        assert order == sorted(order)
        assert len(set(order)) > 1


def test_issues_are_grouped_by_cause_with_links_to_their_pages(folder: Path) -> None:
    [fault] = rows(folder, "faults?code=suspect-link&columns=cause,pages,url")
    assert (fault["cause"], fault["pages"], fault["url"]) == ("https://e.org/gone", 2, HOME)
    query = "code=suspect-link&cause=https%3A%2F%2Fe.org%2Fgone"
    assert f"/c/e/fault?{query}" in client(folder).get("/c/e/t/faults").text.replace("&amp;", "&")
    assert [row["url"] for row in rows(folder, f"issues?{query}")] == [HOME, "https://e.org/a"]
