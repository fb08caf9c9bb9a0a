"""Exports: the same rows in every format, safe for spreadsheets."""

import csv
import io
import json
import sys
import zipfile

import pytest
from click.testing import CliRunner

from periplus.api.exporting import export_rows
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.model.tables import EXPORTS, Column, ColumnKind
from periplus.present.writers import write_parquet, write_xlsx, writers
from stored import page, stored

SITE = {
    "https://e.org/": page("Home", "/a", "/b", "https://x.org/"),
    "https://e.org/a": 404,
    "https://e.org/b": "/c",
    "https://e.org/c": "/d",
    "https://e.org/d": page("=cmd|' /C calc'!A0", "/", "/e"),
    "https://e.org/e": "/f",
    "https://e.org/f": "/e",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("exports") / "c", SITE, ["https://e.org/"])


def rows_of(folder, name, **options):
    with export_rows(folder, name, **options) as (table, table_rows):
        return [dict(zip(table.names, row, strict=True)) for row in table_rows]


@pytest.mark.parametrize("name", EXPORTS)
def test_every_table_has_the_documented_columns(folder, name):
    kinds = {"text": str, "time": str, "integer": int, "boolean": int, "real": float}
    for row in rows_of(folder, name):
        for column in EXPORTS[name].columns:
            assert row[column.name] is None or type(row[column.name]) is kinds[column.kind], column


def test_pages_have_their_rank_and_the_end_of_their_redirects(folder):
    found = {row["url"]: row for row in rows_of(folder, "pages")}
    assert found["https://e.org/b"]["final_url"] == "https://e.org/d"
    assert found["https://e.org/e"]["final_url"] is None  # a redirect loop
    home, deep = found["https://e.org/"], found["https://e.org/d"]
    assert home["final_url"] == home["url"] and home["inlinks"] == 1 and home["outlinks"] == 1
    assert home["rank"] + deep["rank"] == pytest.approx(1) and 0 <= home["score"] <= 100
    assert found["https://e.org/a"]["rank"] is None and found["https://e.org/a"]["reason"] == "not-found"
    assert "rank" not in rows_of(folder, "pages", ranks=False)[0]


def test_redirects_are_listed_hop_by_hop(folder):
    chains = {}
    for row in rows_of(folder, "redirects"):
        chains.setdefault(row["chain_id"], []).append(
            (row["order"], row["url"].removeprefix("https://e.org"), row["status"], row["role"])
        )
    assert [(0, "/b", 301, "requested"), (1, "/c", 301, "intermediate"), (2, "/d", 200, "final")] in chains.values()
    assert any(chain[-1][3] == "loop" for chain in chains.values())


def test_issues_name_the_page_to_repair(folder):
    broken = [row for row in rows_of(folder, "issues") if row["related_url"] == "https://e.org/a"]
    assert broken and all(
        row["url"] == "https://e.org/" and row["severity"] and row["message"] and row["category"] == "links"
        for row in broken
    )


def test_csv_and_json_lines_have_the_same_rows(folder):
    run = CliRunner().invoke
    lines = run(main, ["export", "links", "-c", str(folder), "-f", "jsonl"]).stdout.splitlines()
    text = run(main, ["export", "links", "-c", str(folder)]).stdout
    found = list(csv.DictReader(io.StringIO(text)))
    assert [row["target"] for row in found] == [json.loads(line)["target"] for line in lines] and found
    pages = run(main, ["export", "pages", "-c", str(folder)]).stdout
    assert ",'=cmd|' /C calc'!A0," in pages


def test_parquet_keeps_the_column_types(folder, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "pages.parquet"
    ended = CliRunner().invoke(main, ["export", "pages", "-c", str(folder), "-o", str(path)])
    assert ended.exit_code == 0 and "7 rows" in ended.output
    found = pq.read_table(path)
    assert found.column_names == list(EXPORTS["pages"].names)
    assert (
        str(found.schema.field("visited").type) == "timestamp[ms, tz=UTC]"
        and str(found.schema.field("in_sitemap").type) == "bool"
    )
    assert found.schema.field("url").metadata[b"description"]
    assert found.column("url").to_pylist() == [row["url"] for row in rows_of(folder, "pages")]


def test_parquet_without_pyarrow_says_what_to_install(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install 'periplus\[parquet\]'"):
        write_parquet(EXPORTS["runs"].columns, [], tmp_path / "x.parquet")


COLUMNS = (Column("a", ColumnKind.TEXT, ""), Column("n", ColumnKind.INTEGER, ""), Column("b", ColumnKind.BOOLEAN, ""))


def cells(path, sheet=1):
    return zipfile.ZipFile(path).read(f"xl/worksheets/sheet{sheet}.xml").decode()


def test_excel_files_have_no_formulas_and_no_links(tmp_path):
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "https://e.org/", "0123", "{=1}", "a\x01b", "\ud800"]
    assert write_xlsx("pages", COLUMNS, [(text, 1, 1) for text in texts], tmp_path / "x.xlsx") == 1
    content = cells(tmp_path / "x.xlsx")
    assert "<f>" not in content and "<hyperlink" not in content and "=1+1" in content and 't="b"' in content


def test_rows_beyond_the_limit_of_a_sheet_go_to_the_next_sheet(tmp_path):
    rows = [(f"text {number}", number, None) for number in range(25)]
    assert write_xlsx("links", COLUMNS, iter(rows), tmp_path / "x.xlsx", sheet_rows=11) == 3
    assert [cells(tmp_path / "x.xlsx", sheet).count("<row") for sheet in (1, 2, 3)] == [11, 11, 6]
    assert write_xlsx("links", COLUMNS, iter(rows[:10]), tmp_path / "y.xlsx", sheet_rows=11) == 1
    assert write_xlsx("links", COLUMNS, iter(()), tmp_path / "z.xlsx") == 1


def test_excel_cuts_long_texts_and_keeps_long_numbers(tmp_path):
    write_xlsx("x", COLUMNS, [("x" * 40_000, 2**62, None)], tmp_path / "x.xlsx")
    content = cells(tmp_path / "x.xlsx")
    assert str(2**62) in content and "x" * 32_766 + "…" in content and "x" * 32_767 not in content


def test_an_export_that_cannot_be_written_is_refused(folder, tmp_path):
    run = CliRunner().invoke
    assert "needs a name" in run(main, ["export", "pages", "-c", str(folder), "-f", "xlsx"]).output
    refused = run(main, ["export", "pages", "-c", str(folder), "-o", str(tmp_path / "out.foo")])
    assert refused.exit_code == 2 and "no format is called 'foo'" in refused.output
    for format in writers():
        ended = run(main, ["export", "runs", "-c", str(folder), "-f", format, "-o", str(tmp_path / "no" / "x")])
        assert ended.exit_code == 2 and "cannot be written" in ended.output, ended.output
