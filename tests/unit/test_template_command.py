"""`periplus template` on small collections."""

import json

import pytest
from click.testing import CliRunner

from periplus.analyse.marked_text import text_of
from periplus.api.collection import Collection
from periplus.api.templates import shorkin_marks
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.model.duplicates import PUBLISHED_RULES
from periplus.model.page import Part
from periplus.model.web import SiteKey
from periplus.store.sqlite import schema
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.sqlite.schema import SqliteStatements
from periplus.store.text_rows import source_rows, write_parts
from stored import stored

HOME = "https://e.org/"


def made(number):
    menu = "".join(f"<li><a href='/s{at}'>Section {at}</a></li>" for at in range(6))
    own = "".join(f"<p>page{number} says {at}</p>" for at in range(8))
    return (
        f"<!DOCTYPE html><html><head><title>Page {number}</title></head><body><ul>{menu}</ul>{own}<p><a "
        "href='/f'>Foot</a><i>end</i></p></body></html>"
    )


@pytest.fixture
def folder(tmp_path):
    pages = {f"{HOME}p{at}": made(at) for at in range(6)}
    home = "<title>Home</title>" + "".join(f'<a href="{url}">x</a>' for url in pages)
    return stored(tmp_path / "e.periplus", {HOME: home, **pages}, [HOME])


def run(*arguments):
    return CliRunner().invoke(main, ["template", *map(str, arguments)])


def test_templates_are_listed_with_sizes_and_a_page(folder):
    result = run("-c", folder)
    assert result.exit_code == 0, result.output
    assert "e.org: 1 template for 6 of 7 pages, by Shorkin's rules" in result.stdout
    assert "https://e.org/p0" in result.stdout
    assert "Pages without a template: 1" in result.stdout


def test_json_names_every_page_and_the_rules(folder):
    value = json.loads(run("-c", folder, "--json").stdout)
    assert [member["url"] for member in value["templates"][0]["members"]] == [f"{HOME}p{at}" for at in range(6)]
    assert [page["url"] for page in value["others"]] == [HOME]
    assert value["rules"]["min_nav_length"] == 80
    assert 0.2 < value["templates"][0]["navigation_share"] < 0.9


def test_rules_are_flags(folder):
    assert json.loads(run("-c", folder, "--json", "--cluster-pages", 7).stdout)["templates"] == []


def test_a_threshold_that_cannot_fall_is_refused(folder):
    assert run("-c", folder, "--min-nav-length", 30).exit_code == 2


def test_pages_are_written_coloured_with_an_index(folder, tmp_path):
    look = tmp_path / "look"
    assert run("-c", folder, "--html", look, "--pages", 2).exit_code == 0
    names = sorted(path.name for path in look.iterdir())
    assert names == ["0001-p0.html", "0002-p1.html", "0003-home.html", "index.html"]
    assert all(name in (look / "index.html").read_text() for name in names[:3])
    assert "<span>Section 3</span>" in (look / "0001-p0.html").read_text()


def test_text_and_source_can_be_written_without_navigation(folder, tmp_path):
    plain, bare = tmp_path / "plain", tmp_path / "bare"
    assert run("-c", folder, "--text", plain, "--remove", bare).exit_code == 0
    assert (plain / "0003-p2.txt").read_text().split() == " ".join(f"page2 says {at}" for at in range(8)).split()
    assert "Section" not in (bare / "0003-p2.html").read_text()
    assert "<p>page2 says 3</p>" in (bare / "0003-p2.html").read_text()
    assert (plain / "pages.tsv").read_text().splitlines()[3] == f"0003-p2.txt\t{HOME}p2"


def test_existing_files_are_not_overwritten(folder, tmp_path):
    (tmp_path / "kept").write_text("x")
    result = run("-c", folder, "--html", tmp_path)
    assert result.exit_code == 2
    assert "is not empty" in result.output
    assert run("-c", folder, "--html", tmp_path / "kept").exit_code == 2
    assert run("-c", folder, "--html", tmp_path / "a", "--text", tmp_path / "a").exit_code == 2


def test_an_unknown_site_or_method_is_refused(folder):
    assert "The collection has 1 site:\n  e.org" in run("nowhere.org", "-c", folder).output
    with Collection(folder) as kept, pytest.raises(UsageError, match="choose among site, shorkin"):
        kept.templates(method="luck")


def shorkin_text(pages):
    judged = shorkin_marks(pages.__getitem__, len(pages), PUBLISHED_RULES, lambda what, done, total: None)
    return [text_of(judged.blocks(page)) for page in range(len(pages))]


def test_navigation_is_removed_from_pages_in_memory():
    assert shorkin_text([made(at) for at in range(5)])[4].splitlines() == [f"page4 says {at}" for at in range(8)]
    assert shorkin_text(["", "<p>a"]) == ["", "a"]


def mark(folder):
    """Stores marks as the pipeline does, with lists and the footer as navigation."""
    connection = schema.connect(folder)
    with connection:
        rows = source_rows(SqliteReader(connection), SiteKey("e.org"))
        marked = [
            (
                page.url_id,
                page.body_id,
                [Part.CONTENT if "says" in block.text else Part.NAVIGATION for block in page.blocks],
            )
            for page in SqliteReader(connection).page_blocks([row.url_id for row in rows])
        ]
        write_parts(SqliteStatements(connection), marked)
    connection.close()


def test_stored_marks_are_used_if_there_are_any(folder, tmp_path):
    assert "no page of e.org is marked yet" in run("-c", folder, "--method", "site").output
    mark(folder)
    result = run("-c", folder, "--html", tmp_path / "look", "--text", tmp_path / "plain")
    assert "e.org: 1 template for 6 of 7 pages, by the marks stored with the pages" in result.stdout
    assert "<span>Section 3</span>" in (tmp_path / "look" / "0001-p0.html").read_text()
    assert (tmp_path / "plain" / "0003-p2.txt").read_text().splitlines() == [f"page2 says {at}" for at in range(8)]


def test_stored_marks_apply_to_text_and_shorkins_rules_to_source(folder, tmp_path):
    mark(folder)
    assert "by Shorkin's rules" in run("-c", folder, "--remove", tmp_path / "bare").stdout
    refused = run("-c", folder, "--remove", tmp_path / "more", "--method", "site")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert not (tmp_path / "more").exists()
