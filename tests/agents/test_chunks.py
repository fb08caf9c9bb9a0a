"""Exports of pages as Markdown files, llms.txt and chunks: content, boundaries, refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.model.tables import CHUNKS
from periplus_agents.chunks import chunks, count_words, parts
from periplus_agents.texts import export_chunks, export_llms, export_markdown
from stored import page, stored

ABOUT = '<meta name=description content="All of it">'
A = '<title>A: "quoted"</title><h1>A</h1><p>One two. Three four.</p><h2>Sub</h2><p>Five</p>'
SITE = {
    "https://e.org/": page("Home [x]", "/docs/a.html", "/docs/b", "/copy", head=ABOUT),
    "https://e.org/docs/a.html": A,
    "https://e.org/docs/b": page("B"),
    "https://e.org/copy": page("B"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("chunks") / "e.periplus", SITE, ["https://e.org/"])


def test_each_distinct_text_is_a_file_with_front_matter(folder, tmp_path):
    done = export_markdown(folder, tmp_path / "md")
    files = {path.relative_to(tmp_path / "md").as_posix(): path.read_text("utf-8") for path in tmp_path.rglob("*.md")}
    assert set(files) == {"e.org/index.md", "e.org/docs/a.html.md", "e.org/copy.md"}
    assert (done.pages, done.same) == (3, 1)
    head, _, body = files["e.org/docs/a.html.md"].removeprefix("---\n").partition("---\n\n")
    facts = {name: json.loads(value) for name, value in (line.split(": ", 1) for line in head.splitlines())}
    assert facts["url"] == "https://e.org/docs/a.html"
    assert facts["title"] == 'A: "quoted"'
    assert body == "# A\n\nOne two. Three four.\n\n## Sub\n\nFive\n"
    with pytest.raises(UsageError, match="already exists"):
        export_markdown(folder, tmp_path / "md")


def test_llms_txt_has_a_title_a_summary_and_sections_of_links(folder, tmp_path):
    export_llms(folder, tmp_path)
    text = (tmp_path / "llms.txt").read_text("utf-8")
    assert text.startswith(
        r"# Home \[x\]" + "\n\n> All of it\n\n## Pages\n\n- [Home \\[x\\]](https://e.org/): All of it\n"
    )
    assert re.findall(r"^- \[.*?\]\((.*?)\)", text, re.M) == [
        "https://e.org/", "https://e.org/copy", "https://e.org/docs/a.html",
    ]  # fmt: skip
    full = (tmp_path / "llms-full.txt").read_text("utf-8")
    assert "Source: https://e.org/docs/a.html\n\n# A\n\nOne two." in full
    with pytest.raises(UsageError, match="already exists"):
        export_llms(folder, tmp_path)


def test_chunks_can_be_written_in_every_table_format(folder, tmp_path):
    export_chunks(folder, tmp_path / "c.jsonl", words=20)
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text("utf-8").splitlines()]
    assert set(rows[0]) == set(CHUNKS.names)
    of_a = [row for row in rows if row["url"] == "https://e.org/docs/a.html"]
    assert [(row["headings"], row["text"]) for row in of_a] == [
        ("A", "# A\n\nOne two. Three four."), ("A > Sub", "## Sub\n\nFive"),
    ]  # fmt: skip
    assert len({row["chunk"] for row in rows}) == len(rows)
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    export_chunks(folder, tmp_path / "c.parquet", words=20)
    assert parquet.read_table(tmp_path / "c.parquet").num_rows == len(rows)


def test_the_export_commands_write_their_files(folder, tmp_path):
    for words in (("markdown", "md"), ("llms", "llms"), ("chunks", "-o", "c.jsonl", "--words", "50")):
        named = [str(tmp_path / word) if word in ("md", "llms", "c.jsonl") else word for word in words[1:]]
        ran = CliRunner().invoke(main, ["export", words[0], *named, "-c", str(folder)])
        assert ran.exit_code == 0, ran.output
        assert "3 pages" in ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.jsonl", "llms", "md"]


def test_sentences_code_lines_items_and_rows_are_not_split_if_they_fit():
    text = "One two three. Four five six! Seven eight nine? Ten."
    assert parts(text, 6) == ["One two three. Four five six!", "Seven eight nine? Ten."]
    assert parts("```py\na b c\nd e f\ng\n```", 7) == ["```py\na b c\n```", "```py\nd e f\ng\n```"]
    assert parts("- a b\n- c d\n- e", 6) == ["- a b\n- c d", "- e"]
    table = "| H |\n| --- |\n" + "\n".join(f"| {n} |" for n in range(9))
    assert all(part.startswith("| H |\n| --- |\n| ") for part in parts(table, 12))
    assert "| a b" in parts("| a b |\n| --- |", 3), "a table without rows keeps its head"
    assert parts("一二三。四五六。", 2) == ["一二三。", "四五六。"]


LINES = st.lists(
    st.sampled_from(["word", "Two words.", "# H", "## Sub", "- a\n- b", "```\nx y\n```", "a. B c! D", "語" * 9])
)


@given(LINES, st.integers(5, 12))
def test_chunks_lose_no_text_and_keep_the_limit(pieces, most):
    made = list(chunks(pieces, most))
    letters = [re.sub(r"[\s`]", "", text) for text in ("".join(pieces), "".join(chunk.text for chunk in made))]
    assert letters[0] == letters[1]
    assert all(chunk.words <= most for chunk in made)
    assert [chunk.first for chunk in made] == sorted(chunk.first for chunk in made)
    assert all(chunk.words == count_words(chunk.text) for chunk in made)
