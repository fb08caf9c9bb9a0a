"""Spellings of pages on the command line, and forms in which pages are shown."""

from __future__ import annotations

import sqlite3

import pytest
from click.testing import CliRunner

from periplus.cli.main import main
from periplus.model.page import Block, BlockKind
from periplus.store.sqlite.job_file import folder_queue, remove_empty_file
from periplus_agents.markdown import markdown_of_blocks
from stored import page, stored

START = "https://e.org/docs/"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pages = {START: page("Words of the start", "/library/a.html"), "https://e.org/library/a.html": page("Words of A")}
    return stored(tmp_path_factory.mktemp("spelled") / "c", pages, [START])


def answer(*words):
    ran = CliRunner().invoke(main, [str(word) for word in words])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


@pytest.mark.parametrize("text", ["/library/a.html", "e.org/library/a.html", "HTTPS://E.org/library/../library/a.html"])
def test_a_page_is_found_by_every_spelling(folder, text):
    assert "Words of A" in answer("page", text, "--as", "text", "-c", folder)


@pytest.mark.parametrize("form", ["text", "markdown", "xml", "blocks", "source"])
def test_each_form_has_a_flag(folder, form):
    assert answer("page", "/docs/", f"--{form}", "-c", folder) == answer("page", "/docs/", "--as", form, "-c", folder)


def test_a_page_is_written_without_menus_without_an_index(tmp_path):
    """Its navigation is recognized on request, by comparison with other pages of its site."""
    menu = "".join(f'<li><a href="/{word}.html">{word}</a></li>' for word in ("home", "news", "shop", "imprint"))
    words = [f"Sentence {at} of the page tells, in a dozen words or so, what it is for." for at in range(6)]
    pages = {
        f"https://e.org/{name}.html": f"<title>{name}</title><div id=nav><ul>{menu}</ul></div><h1>All about {name}</h1>"
        + "".join(f"<p>{name}: {sentence}</p>" for sentence in words)
        for name in ("one", "two", "three")
    }
    folder = stored(tmp_path / "c", pages, ["https://e.org/one.html"])
    url, texts = "https://e.org/one.html", [f"one: {sentence}" for sentence in words]
    text = answer("page", url, "--as", "text", "-c", folder)
    assert text == "\n".join(["All about one", *texts]) + "\n"
    assert answer("page", url, "--as", "markdown", "-c", folder) == "\n\n".join(["# All about one", *texts]) + "\n"
    whole = answer("page", url, "--as", "text", "--whole", "-c", folder)
    assert whole == "\n".join(["home", "news", "shop", "imprint", "All about one", *texts]) + "\n"
    assert answer("page", url, "--as", "text", "--parts", "headline", "-c", folder) == "All about one\n"
    menu = answer("page", url, "--as", "markdown", "--parts", "navigation", "-c", folder)
    assert menu.startswith("- [home](https://e.org/home.html)")
    answer("export", "markdown", tmp_path / "md", "-c", folder)
    assert "imprint" not in (tmp_path / "md" / "e.org" / "one.html.md").read_text("utf-8")
    answer("export", "chunks", "-o", tmp_path / "c.jsonl", "--parts", "headline,navigation", "-c", folder)
    assert "Sentence" not in (tmp_path / "c.jsonl").read_text("utf-8")


def test_blocks_become_escaped_markdown():
    blocks = [
        Block(BlockKind.TITLE, "Title", "p"),
        Block(BlockKind.LINK, "Menu", "p"),
        Block(BlockKind.HEADING, "Part *one*", "p", level=2),
        Block(BlockKind.PARAGRAPH, "1. is no item, nor is # a heading", "p"),
        Block(BlockKind.ITEM, "first", "p"),
        Block(BlockKind.ITEM, "second", "p"),
        Block(BlockKind.CODE, "a = `b`\n``` c", "p"),
    ]
    assert markdown_of_blocks(blocks, [True, False, *[True] * 5], "Title") == (
        "# Title\n\n## Part \\*one\\*\n\n1\\. is no item, nor is # a heading\n\n- first\n- second\n\n"
        "````\na = `b`\n``` c\n````\n"
    )
    assert "Menu" in markdown_of_blocks(blocks, None)
    assert markdown_of_blocks([], None) == "\n"


def test_an_unused_queue_file_is_deleted_and_a_used_one_kept(tmp_path):
    folder_queue(tmp_path).close()
    path = tmp_path / "jobs.db"
    assert path.exists()
    other = sqlite3.connect(path)
    other.execute("SELECT count(*) FROM job").fetchone()
    remove_empty_file(path)
    assert path.exists(), "another process has it open"
    other.close()
    remove_empty_file(path)
    assert list(tmp_path.iterdir()) == []
    remove_empty_file(path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (1)")
    remove_empty_file(path)
    assert path.exists()
