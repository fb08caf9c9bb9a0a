"""Text exports are the same for a collection in a folder and in a database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from periplus.api.collection import Collection
from periplus.cli.export import export
from periplus.errors import UsageError
from periplus.model.page import ALL_PARTS
from periplus.settings import settings_from
from periplus_postgres.address import Address
from periplus_postgres.collection import DatabaseCollection
from periplus_postgres.moving import move
from stored import page, stored

TABLE = (
    "<h1>Tides</h1><p>A <b>table</b> of <a href='/a'>tides</a></p><table><tr><th>day<th>high<tr><td>1<td>4 m</table>"
)
SITE = {
    "https://e.org/": page("Home", "/a", "/b", "/docs/tides.html", "/text", "/gone"),
    "https://e.org/a": page("Příliš žluťoučký", "/b", head='<meta name="description" content="of horses">'),
    "https://e.org/b": page("Příliš žluťoučký", "/b", head='<meta name="description" content="of horses">'),
    "https://e.org/docs/tides.html": f"<title>Tides</title>{TABLE}",
    "https://e.org/text": "<title>Text</title><pre>code = 1\n</pre>",
    "https://e.org/gone": 404,
}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


EXPORTS = (
    ("markdown", "pages"), ("llms", "llms"),
    ("chunks", "-o", "c.jsonl", "--words", "20"), ("chunks", "-o", "c.parquet"),
)  # fmt: skip
SETTINGS = {"bodies": {}, "texts alone": {"keep_bodies": False}, "xml": {"keep_xml": True}}


def written(place: list[str], target: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    monkeypatch.chdir(target)
    for words in EXPORTS:
        done = CliRunner().invoke(export, [*words, *place], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    return files(target)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("has_segments", [False, True], ids=["rows", "segments"])
def test_a_folder_and_a_database_give_the_same_files(tmp_path, address: Address, settings, has_segments, monkeypatch):
    folder = stored(tmp_path / "e.periplus", SITE, ["https://e.org/"], settings=settings_from(SETTINGS[settings]))
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    here = written(["-c", str(folder)], tmp_path / "here", monkeypatch)
    with Collection(folder) as collection:
        tides = collection.page("/docs/tides.html")
        texts = tides.text(), tides.markdown(), tides.markdown(ALL_PARTS)
    text = Address(address.dsn, address.collection, str(tmp_path / "segments") if has_segments else "").text
    move(str(folder), text)
    assert written(["-c", text], tmp_path / "there", monkeypatch) == here
    assert "pages/e.org/docs/tides.html.md" in here
    with DatabaseCollection(text) as there:
        page_there = there.page("/docs/tides.html")
        assert (page_there.text(), page_there.markdown(), page_there.markdown(ALL_PARTS)) == texts
        assert there.page("https://e.org/gone").row.status == 404
        with pytest.raises(UsageError, match="its text cannot be shown"):
            there.page("https://e.org/gone").markdown()
        with pytest.raises(UsageError, match="does not know"):
            there.page("https://e.org/never")


def test_a_collection_without_texts_is_refused(tmp_path, address: Address):
    folder = stored(tmp_path / "e.periplus", {"https://e.org/": 404}, ["https://e.org/"])
    move(str(folder), address.text)
    for place in (["-c", str(folder)], ["-c", address.text]):
        done = CliRunner().invoke(export, ["chunks", "-o", str(tmp_path / "c.jsonl"), *place])
        assert isinstance(done.exception, UsageError)
        assert "no page with text" in str(done.exception)


def test_chunks_identify_their_pages_like_vectors(tmp_path):
    from periplus.retrieval.vectors import page_of
    from periplus.urls.canonical import canonical, url_id

    folder = stored(tmp_path / "e.periplus", SITE, ["https://e.org/"])
    CliRunner().invoke(export, ["chunks", "-c", str(folder), "-o", str(tmp_path / "c.jsonl")], catch_exceptions=False)
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text("utf-8").splitlines()]
    assert rows
    assert all(page_of(row["chunk"]) == page_of(row["url"]) == url_id(canonical(row["url"])) for row in rows)
