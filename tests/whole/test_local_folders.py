"""`crawl` and `check` on local folders and files."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

import periplus
from periplus.cli.main import main
from periplus.errors import UsageError


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "docs"
    (folder / "guide").mkdir(parents=True)
    (folder / "index.md").write_text(
        "# Home\n\n[guide](guide/start.md#first-steps) [again](guide/start.md#first-steps-1) "
        "[mkdocs](guide/start.md#first-steps_1) [own](guide/start.md#mine) [no place](guide/start.md#nowhere) "
        "[dead](guide/gone.md) [case](guide/Start.md) ![picture](picture.png)\n"
    )
    (folder / "guide" / "start.md").write_text(
        "# Start\n\n## First steps\n\na\n\n## First steps\n\nb\n\n## Set by hand {#mine}\n\n[home](../index.md)\n"
    )
    return folder


def run(*words: str) -> tuple[int, str]:
    ran = CliRunner().invoke(main, list(words))
    return ran.exit_code, ran.stdout


def codes(text: str) -> list[tuple[str, str, str]]:
    return [(row["code"], row["url"], row["related_url"]) for row in csv.DictReader(text.splitlines())]


def test_a_folder_of_markdown_is_checked_by_its_paths(docs):
    code, text = run("check", "./docs", "--no-external", "-q", "-f", "csv", "--fail-on", "broken")
    assert code == 5 and "http://" not in text
    assert {(issue, related) for issue, url, related in codes(text) if url == "docs/index.md"} >= {
        ("broken-link", "docs/guide/gone.md"),
        ("broken-link", "docs/guide/Start.md"),
        ("broken-resource", "docs/picture.png"),
        ("broken-fragment", "docs/guide/start.md"),
    }
    fragments = [row["detail"] for row in csv.DictReader(text.splitlines()) if row["code"] == "broken-fragment"]
    assert len(fragments) == 1 and "nowhere" in fragments[0]


def test_a_second_check_reads_the_files_again(docs):
    assert run("check", "./docs", "--no-external", "-q", "--fail-on", "broken")[0] == 5
    (docs / "guide" / "gone.md").write_text("# Back\n")
    (docs / "index.md").write_text("# Home\n\n[back](guide/gone.md) [gone](guide/later.md)\n")
    _, text = run("check", "./docs", "--no-external", "-q", "-f", "csv")
    assert [(issue, related) for issue, _, related in codes(text) if issue.startswith("broken")] == [
        ("broken-link", "docs/guide/later.md")
    ]
    assert (Path("docs.periplus") / "collection.db").exists()


def test_a_single_file_is_checked_without_the_rest(docs):
    _, text = run("check", "docs/guide/start.md", "--no-external", "-q", "-f", "csv")
    assert codes(text) == []
    _, text = run("check", "docs/index.md", "--no-external", "-q", "-f", "csv")
    assert {related for issue, _, related in codes(text) if issue == "broken-link"} == {
        "docs/guide/gone.md", "docs/guide/Start.md",
    }  # fmt: skip


def test_markdown_may_link_within_the_working_directory_and_html_within_its_folder(docs):
    (docs.parent / "README.md").write_text("[missing](missing.md)\n")
    (docs / "index.md").write_text("[up](../README.md) [none](../NONE.md)\n")
    _, text = run("check", "./docs", "--no-external", "-q", "-f", "csv")
    assert [row for row in codes(text) if row[0] == "broken-link"] == [("broken-link", "docs/index.md", "NONE.md")]
    (docs / "index.html").write_text("<html lang=en><title>Home</title><h1>Home</h1><a href='/index.md'>root</a>")
    _, text = run("check", "./docs", "--no-external", "-q", "-f", "csv", "-c", "site.periplus")
    assert "docs/NONE.md" in text and "broken-link,,,docs/index.html" not in text


def test_maps_reports_and_search_work_over_a_folder(docs):
    assert run("crawl", "docs", "-q")[0] == 0
    code, text = run("map", "-c", "docs.periplus")
    assert code == 0 and "docs.alt: 4 pages, 4 fetched, depth 2" in text
    assert "start.md" in run("search", "steps", "-c", "docs.periplus")[1]
    assert run("report", "-c", "docs.periplus")[0] == 0
    page = (Path("docs.periplus") / "report.html").read_text()
    assert (docs / "guide" / "gone.md").as_uri() in page and "docs.alt" not in page


def test_lists_print_and_accept_paths_of_files(docs):
    assert run("crawl", "docs", "-q")[0] == 0
    at = ("-c", "docs.periplus")
    for words in (
        ("pages",),
        ("links",),
        ("links", "--to", "docs/guide/start.md"),
        ("page", "docs/guide/start.md"),
        ("search", "steps"),
    ):
        code, text = run(*words, *at)
        assert code == 0 and "docs/guide/start.md" in text and ".alt" not in text, words
    assert "http://docs.alt/docs/guide/start.md" in run("pages", *at, "-f", "csv")[1]  # the key of other tables
    code, text = run("map", *at, "-f", "xhtml")
    assert (docs / "guide" / "start.md").as_uri() in text and "http://docs.alt" not in text


def test_the_package_reads_folders_too(docs):
    result = periplus.check("./docs", "c.periplus", external=False)
    assert {issue.code for issue in result.issues} >= {"broken-link", "broken-fragment"}
    with pytest.raises(UsageError, match="there is no such file or folder"):
        periplus.crawl("./missing")
