"""WACZ files: requirements of the specification, and the index."""

import gzip
import hashlib
import io
import json
import zipfile

import pytest
from click.testing import CliRunner
from warcio.archiveiterator import ArchiveIterator

from periplus.cli.main import main
from periplus.errors import StoreError
from periplus_archives.api import export_wacz
from stored import page, stored

SITE = {
    "https://e.org/": page("Home", "/a", "/moved", "/c", "/d"),
    "https://e.org/a": 404,
    "https://e.org/moved": "/c",
    "https://e.org/c": page("The same", "/"),
    "https://e.org/d": page("The same", "/"),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wacz")
    export_wacz(stored(folder / "c", SITE, ["https://e.org/"]), folder / "c.wacz", 1_000_000_000.0)
    return folder / "c.wacz"


@pytest.fixture
def package(path):
    with zipfile.ZipFile(path) as package:
        assert package.testzip() is None
        yield package


def index_of(package):
    lines = gzip.decompress(package.read("indexes/index.cdx.gz")).decode().splitlines()
    assert lines == sorted(lines)
    return [(key, stamp, json.loads(values)) for key, stamp, values in (line.split(" ", 2) for line in lines)]


def test_wacz_compressed_entries_are_stored(package):
    stored_names = {info.filename for info in package.infolist() if info.compress_type == zipfile.ZIP_STORED}
    assert stored_names == {"archive/data.warc.gz", "indexes/index.cdx.gz"}


def test_zip_entries_have_the_same_extra_field_in_both_headers(package):
    """ReplayWeb.page 2.5 assumes that the local header is as long as the central one."""
    for info in package.infolist():
        assert info.extra[:4] == b"UT\5\0", info.filename


def test_wacz_the_manifest_has_length_and_digest_of_each_entry(package):
    manifest = json.loads(package.read("datapackage.json"))
    assert (manifest["profile"], manifest["wacz_version"]) == ("data-package", "1.1.1")
    assert (manifest["created"], manifest["mainPageUrl"]) == ("2001-09-09T01:46:40Z", "https://e.org/")
    listed = {item["path"]: (item["bytes"], item["hash"], item["name"]) for item in manifest["resources"]}
    for name in set(package.namelist()) - {"datapackage.json", "datapackage-digest.json"}:
        data = package.read(name)
        assert listed.pop(name) == (len(data), "sha256:" + hashlib.sha256(data).hexdigest(), name.rpartition("/")[2])
    assert listed == {}
    digest = json.loads(package.read("datapackage-digest.json"))
    data = package.read("datapackage.json")
    assert digest == {"path": "datapackage.json", "hash": "sha256:" + hashlib.sha256(data).hexdigest()}


def test_each_line_of_the_index_has_the_offset_of_its_record(package):
    lines = index_of(package)
    assert [(key, values["status"], values["mime"]) for key, _, values in lines] == [
        ("org,e)/", "200", "text/html"),
        ("org,e)/a", "404", "text/html"),
        ("org,e)/c", "200", "text/html"),
        ("org,e)/d", "200", "warc/revisit"),
        ("org,e)/moved", "301", "unk"),
    ]
    for _, stamp, values in lines:
        data = package.read("archive/" + values["filename"])
        place = int(values["offset"])
        member = io.BytesIO(data[place : place + int(values["length"])])
        (record,) = ArchiveIterator(member, check_digests="raise")
        fields = record.rec_headers
        assert (fields.get_header("WARC-Target-URI"), fields.get_header("WARC-Payload-Digest")) == (
            values["url"],
            values["digest"],
        )
        assert stamp == "".join(sign for sign in fields.get_header("WARC-Date") if sign.isdigit())[:14]


def test_blocks_of_the_index_have_the_offsets_of_the_second_index(package):
    head, *places = package.read("indexes/index.idx").decode().splitlines()
    assert head == '!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}'
    data, lines = package.read("indexes/index.cdx.gz"), []
    for line in places:
        first, _, values = line.partition(" {")
        place = json.loads("{" + values)
        block = data[place["offset"] : place["offset"] + place["length"]]
        assert place["digest"] == "sha256:" + hashlib.sha256(block).hexdigest()
        text = gzip.decompress(block).decode()
        assert text.startswith(first)
        lines += text.splitlines()
    assert len(lines) == 5


def test_wacz_pages_have_url_time_title_and_text(package):
    head, *pages = map(json.loads, package.read("pages/pages.jsonl").decode().splitlines())
    assert (head["format"], head["id"], head["hasText"]) == ("json-pages-1.0", "pages", True)
    assert [(page["url"], page["title"]) for page in pages] == [
        ("https://e.org/", "Home"),
        ("https://e.org/c", "The same"),
        ("https://e.org/d", "The same"),
    ]
    assert all(page["text"].startswith(page["title"]) and page["ts"].startswith("1970-01-12T13:4") for page in pages)
    assert len({page["id"] for page in pages}) == 3


def test_an_index_of_many_lines_has_many_blocks(tmp_path):
    pages = {f"https://e.org/{number}": page(f"Page {number}") for number in range(700)}
    pages["https://e.org/"] = page("Home", *(f"/{number}" for number in range(700)))
    export_wacz(stored(tmp_path / "c", pages, ["https://e.org/"]), tmp_path / "c.wacz", 1e9)
    with zipfile.ZipFile(tmp_path / "c.wacz") as package:
        assert len(package.read("indexes/index.idx").splitlines()) == 1 + 3
        assert len(index_of(package)) == 701


def test_a_file_that_cannot_be_written_leaves_nothing(path, tmp_path):
    with pytest.raises(StoreError, match="cannot be written"):
        export_wacz(path.parent / "c", tmp_path / "no" / "c.wacz", 1e9)
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_wacz_file(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(main, ["export", "wacz", "-c", str(path.parent / "c")])
    assert ended.exit_code == 0 and "Written to c.wacz: 4 responses, 1 repeated, " in ended.output
    assert zipfile.is_zipfile("c.wacz")
