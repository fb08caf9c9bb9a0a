"""Tables of the interface: filters, order, facets, pages and files say the same; the address holds all of it."""

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
from periplus.store.sqlite.tables import BROWSABLE_TABLES, condition
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


def urls(folder: Path, wish: str) -> list[str]:
    return [row["url"] for row in rows(folder, f"pages?{wish}")]


@pytest.mark.parametrize(
    ("wish", "expected"),
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
def test_pages_are_filtered_sorted_and_leafed_by_the_address(folder, wish, expected):
    assert urls(folder, wish) == expected


def test_links_know_where_they_lead(folder):
    assert {row["target"] for row in rows(folder, "external")} == {"https://other.org/x"}
    assert {(row["source"], row["target"]) for row in rows(folder, "links?target_state=failed")} == {
        (HOME, "https://e.org/gone"),
        ("https://e.org/a", "https://e.org/gone"),
    }
    assert {row["source"] for row in rows(folder, "links?target=https://e.org/b&kind=a")} == {HOME, "https://e.org/a"}


def test_facets_count_what_the_filter_leaves(folder):
    found = client(folder).get("/c/e/t/pages?depth=1&format=json").json()
    facets = {facet["name"]: dict(map(tuple, facet["values"])) for facet in found["facets"]}
    assert facets["state"] == {"fetched": 2, "excluded": 2, "failed": 1}
    assert found["count"] == {"rows": 5, "capped": False}


@pytest.mark.parametrize("table", SCREENS)
def test_every_table_is_shown_and_leaves_in_every_form(folder, table):
    asking = client(folder)
    assert asking.get(f"/c/e/t/{table}").status_code == 200
    shown = asking.get(f"/c/e/t/{table}.jsonl").text.splitlines()
    assert len(shown) == len(rows(folder, f"{table}?per=500"))
    assert len(list(csv.reader(io.StringIO(asking.get(f"/c/e/t/{table}.csv").text)))) == len(shown) + 1
    parquet = pyarrow.parquet.read_table(io.BytesIO(asking.get(f"/c/e/t/{table}.parquet").content))
    assert parquet.num_rows == len(shown)
    assert asking.get(f"/c/e/t/{table}.xlsx").content[:2] == b"PK"


def test_a_file_holds_exactly_what_is_filtered_in_its_order(folder):
    wish = "state=fetched&sort=-title"
    lines = client(folder).get(f"/c/e/t/pages.jsonl?{wish}&per=1&at=2").text.splitlines()
    assert [json.loads(line)["url"] for line in lines] == urls(folder, wish)


def test_a_file_that_is_sent_is_not_kept(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert client(folder).get("/c/e/t/pages.csv").status_code == 200
    assert client(folder).get("/c/e/t/pages.csv?status=none").status_code == 400
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wish",
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
def test_what_cannot_be_meant_is_refused_with_a_sentence(folder, wish):
    answer = client(folder).get(f"/c/e/t/pages?{wish}")
    assert answer.status_code == 400
    assert 'class="notice"' in answer.text


def test_an_unknown_table_or_collection_is_missing(folder):
    assert client(folder).get("/c/e/t/nothing").status_code == 404
    assert client(folder).get("/c/none/t/pages").status_code == 404
    assert client(folder).get("/c/e/t/pages.exe").status_code == 400


@pytest.mark.parametrize(
    "text", ["'", "\\", "%", "_", "' OR 1=1 --", "~'", "!'", '"', ";", "\0", "0x10", "١", "nan", "inf"]
)
def test_no_text_in_a_filter_is_more_than_text(folder, text):
    for column in ("url", "title", "status", "visited", "in_sitemap", "q", "size"):
        answer = client(folder).get("/c/e/t/pages", params={column: text})
        assert answer.status_code in (200, 400), (column, text)


def test_bytes_that_are_no_text_are_taken_for_some(folder):
    assert client(folder).get("/c/e/t/pages?q=%ff%ed%a0%bd").status_code == 200
    assert client(folder).get("/c/%ff/live").status_code == 404


def test_the_first_row_that_is_wanted_is_the_same_however_it_is_asked_for(folder):
    browser = Browser()
    for table in BROWSABLE_TABLES:
        whole = browser.page(folder / "e.periplus", table, TableQuery(most=-1)).rows
        parts = [
            browser.page(folder / "e.periplus", table, TableQuery(first=first, most=2)).rows
            for first in range(0, len(whole), 2)
        ]
        assert [row for part in parts for row in part] == list(whole)
    assert {"pages", "issues"} <= set(TABLES)


def test_a_condition_on_a_column_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="choose among"):
        condition(BROWSABLE_TABLES["pages"], "colour", "red")


def test_issues_are_made_once_for_one_state_of_a_collection(folder):
    browser = Browser()
    one = browser.page(folder / "e.periplus", "issues", TableQuery(conditions=(("severity", "error"),)))
    assert len(browser._computed) == 1
    browser.page(folder / "e.periplus", "issues", TableQuery())
    assert len(browser._computed) == 1
    assert {row[0] for row in one.rows} <= {HOME, "https://e.org/a", "https://e.org/b"}


@pytest.mark.parametrize(
    "wish", ["", "internal=no", "target_state=failed", "target_state=!failed", "sort=target", "q=b"]
)
def test_a_large_collection_is_looked_at_less_and_shows_the_same_rows(folder, wish, monkeypatch):
    """Limits so small that this collection passes them."""
    whole = rows(folder, f"links?{wish}&per=500")
    for name, value in (("LARGE", 1), ("FEW", 2), ("SAMPLED", 2), ("COUNTED", 3)):
        monkeypatch.setattr(f"periplus.store.sqlite.tables.{name}", value)
    assert rows(folder, f"links?{wish}&per=500") == whole
    found = client(folder).get(f"/c/e/t/links?{wish}&format=json").json()["count"]
    assert found == ({"rows": len(whole), "capped": False} if len(whole) < 2 else {"rows": 2, "capped": True})
    pages = client(folder).get("/c/e/t/pages?format=json&per=500").json()
    assert pages["count"] == {"rows": 3, "capped": True}
    assert len(pages["rows"]) == 6
    monkeypatch.setattr("periplus.store.sqlite.tables.FEW", 4)  # the first look brings the rows along
    assert [rows(folder, f"links?{wish}&per=2&at={at}") for at in (1, 2, 3)] == [whole[:2], whole[2:4], whole[4:6]]


def test_rows_are_shown_without_facets_where_there_was_no_time_for_them(folder, monkeypatch):
    """The clock of CPU time jumps by three seconds while facets are counted."""
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
    assert again["facets"] == whole["facets"] != [], "the next look may have the time"


def test_a_machine_that_gives_no_cpu_time_stops_no_question(folder, monkeypatch):
    """Whatever wall time goes by."""
    monkeypatch.setattr("periplus.store.sqlite.reading.LIMIT_STEPS", 1)
    monkeypatch.setattr("periplus.api.tables.READ_S", 0.0001)
    monkeypatch.setattr("periplus.api.tables.FACETS_S", 0.0001)
    shown = client(folder, browser=Browser(cpu_s=lambda: 5.0)).get("/c/e/t/links")
    assert shown.status_code == 200 and 'class="facets"' in shown.text


@pytest.mark.parametrize("sign", ["%", "_", "\\", "a%", "_lpha"])
def test_signs_that_match_all_elsewhere_are_only_themselves(folder, sign):
    assert urls(folder, f"q={quote(sign)}") == []


def test_forms_lead_to_the_address_that_one_would_write(folder: Path) -> None:
    asking = client(folder)

    def leads(query: str) -> str:
        return asking.get(f"/c/e/t/pages?{query}").headers.get("location", "")

    assert leads("q=a&where=title&is=~b+c&at=3") == "?q=a&title=~b+c"
    assert leads("where=sort&is=x") == "?"
    assert leads("columns=url&columns=size&status=200") == "?columns=url%2Csize&status=200"
    assert leads("columns=url,size") == ""
    assert asking.get("/c/e/t/pages?where=nothing&is=1", follow_redirects=True).status_code == 400


def test_the_gravest_issues_stand_first(folder: Path) -> None:
    for table in ("faults", "issues"):
        order = [
            ["error", "warning", "notice"].index(row["severity"]) for row in rows(folder, f"{table}?columns=severity")
        ]
        assert order == sorted(order)
        assert len(set(order)) > 1


def test_issues_are_shown_by_cause_and_lead_to_their_pages(folder: Path) -> None:
    [fault] = rows(folder, "faults?code=suspect-link&columns=cause,pages,url")
    assert (fault["cause"], fault["pages"], fault["url"]) == ("https://e.org/gone", 2, HOME)
    query = "code=suspect-link&cause=https%3A%2F%2Fe.org%2Fgone"
    assert f"/c/e/fault?{query}" in client(folder).get("/c/e/t/faults").text.replace("&amp;", "&")
    assert [row["url"] for row in rows(folder, f"issues?{query}")] == [HOME, "https://e.org/a"]
