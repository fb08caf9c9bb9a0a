"""Archives, copies and imports are the same for a collection in a folder and in a database."""

import re
import zipfile

import pytest
from click.testing import CliRunner
from warcio.archiveiterator import ArchiveIterator

from made_archives import answer, warc
from periplus.api.collection import Collection
from periplus.cli.main import main
from periplus_postgres.moving import into_database, into_folder, silent
from stored import page, stored

ANSWERS = {
    "https://e.org/": page("Home", "/a", "/b", "/gone"),
    "https://e.org/a": page("A", "/"),
    "https://e.org/b": "/a",
    "https://e.org/gone": 404,
}


def done(*words):
    ended = CliRunner().invoke(main, list(map(str, words)))
    assert ended.exit_code == 0, ended.output
    return ended.output


@pytest.fixture
def places(tmp_path, address, monkeypatch):
    """Command-line names of the collection in a folder and in a database, of which no copy is made."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = stored(tmp_path / "c.periplus", ANSWERS, ["https://e.org/"])
    copy = stored(tmp_path / "copy.periplus", ANSWERS, ["https://e.org/"])
    into_database(copy, address.text, silent)
    yield ("-c", folder), ("-c", address.text)
    assert not (tmp_path / "cache").exists()


def records(path):
    with path.open("rb") as file:
        return [
            (one.rec_type, one.rec_headers.get_header("WARC-Target-URI"), one.content_stream().read())
            for one in ArchiveIterator(file)
            if one.rec_type != "warcinfo"
        ]


def test_a_warc_of_a_database_is_that_of_its_folder(tmp_path, places):
    for number, place in enumerate(places):
        done("export", "warc", *place, "-o", tmp_path / f"{number}.warc.gz")
    one, other = (records(tmp_path / f"{number}.warc.gz") for number in range(2))
    assert one == other and len(one) > 3


def test_a_wacz_of_a_database_is_that_of_its_folder(tmp_path, places):
    pages = []
    for number, place in enumerate(places):
        done("export", "wacz", *place, "-o", tmp_path / f"{number}.wacz")
        with zipfile.ZipFile(tmp_path / f"{number}.wacz") as package:
            pages.append(package.read("pages/pages.jsonl"))
    assert pages[0] == pages[1] and pages[0].count(b"\n") == 3


def test_a_copy_of_a_database_is_that_of_its_folder(tmp_path, places):
    copies = []
    for number, place in enumerate(places):
        target = tmp_path / f"copy{number}"
        done("export", "site", *place, target)
        copies.append({str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*.html")})
    assert copies[0] == copies[1] and "index.html" in copies[0]


def test_an_import_into_a_database_is_that_into_a_folder(tmp_path, address):
    (tmp_path / "x.warc.gz").write_bytes(
        warc(answer("http://e.org/", page("Home", "/a", "/lost")), answer("http://e.org/a", page("A")))
    )
    done("import", "warc", tmp_path / "x.warc.gz", "-o", tmp_path / "c")
    said = done("import", "warc", tmp_path / "x.warc.gz", "-c", address.text)
    assert re.search("2 answers from 2 records", said)
    into_folder(address.text, tmp_path / "back", silent)
    rows = []
    for folder in ("c", "back"):
        with Collection(tmp_path / folder) as collection:
            rows.append({row.url: (row.reason, row.title, row.visited) for row in collection.pages()})
    assert rows[0] == rows[1] and rows[0]["http://e.org/lost"][0] == "not-in-archive"


def test_an_import_has_one_target(tmp_path):
    (tmp_path / "x.warc.gz").write_bytes(warc(answer("http://e.org/", page("Home"))))
    words = ["import", "warc", str(tmp_path / "x.warc.gz"), "-o", str(tmp_path / "c"), "-c", "postgresql://x/y"]
    ended = CliRunner().invoke(main, words)
    assert ended.exit_code and "name only one" in ended.output + str(ended.exception)
