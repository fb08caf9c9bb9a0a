"""WARC files: writing, checked with warcio; reading of other programs' files; damage."""

import gzip
import io

import pytest
import zstandard
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker
from warcio.warcwriter import WARCWriter

from periplus.api.collection import Collection
from periplus.cli.main import main
from periplus.errors import StoreError, UsageError
from periplus.model.collection import Exchange, RunNote
from periplus.model.visit import Headers
from periplus.store.warc import capture_key, decode_chunks, http_answer, original, records_of, warcinfo
from periplus_archives.api import export_warc, import_archives
from periplus_archives.files import ArchiveFile, ArchiveReader
from stored import page, stored

RUN = RunNote(1, 1_000_000.0, "periplus/0", ("https://e.org/",), "{}", True)
GZIPPED = Headers(
    (
        ("content-type", "text/html"),
        ("content-encoding", "gzip"),
        ("content-length", "77"),
        ("transfer-encoding", "chunked"),
    ),
    "HTTP/1.1 200 OK",
)
SITE = {
    "https://e.org/": page("Home", "/a", "/x", "/c", "/d"),
    "https://e.org/a": 404,
    "https://e.org/x": 0,
    "https://e.org/c": page("The same", "/"),
    "https://e.org/d": page("The same", "/"),
}


def exchange(body=b"<p>Hello", headers=GZIPPED, **other):
    values = {
        "visit_id": 1,
        "run_id": 1,
        "url": "https://e.org/",
        "purpose": "page",
        "started": 1_000_000.25,
        "took_s": 0.5,
        "outcome": "fetched",
    }
    values |= {"status": 200, "detail": "", "address": "192.0.2.1", "cut": "", "body_id": 0}
    return Exchange(**(values | other), headers=headers, body=body)


def read(data):
    """The records in these bytes as read by warcio: (type, WARC fields, HTTP fields, payload)."""
    return [
        (r.rec_type, r.rec_headers, r.http_headers, r.content_stream().read())
        for r in ArchiveIterator(io.BytesIO(data), check_digests="raise")
    ]


def written(exchange, known=None):
    records, capture = records_of(exchange, RUN, "<urn:uuid:0>", known)
    return b"".join(record.data for record in records), capture


def checked(path):
    """The exit value of `warcio check`."""

    class Quiet(Checker):
        def __init__(self):
            self.inputs, self.verbose, self.exit_value = [str(path)], False, 0

    checker = Quiet()
    checker.process_all()
    return checker.exit_value


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("warc") / "c", SITE, ["https://e.org/"])


# writing -------------------------------------------------------------------------------------------------------------


def test_iso28500_the_header_of_a_response_matches_its_stored_body():
    answer, request = read(written(exchange())[0])
    kind, fields, http, payload = answer
    assert (kind, payload) == ("response", b"<p>Hello")
    assert http.get_header("content-length") == "8" and http.get_header("content-encoding") is None
    assert (
        http.get_header("X-Crawler-Content-Encoding") == "gzip" and http.get_header("X-Crawler-Content-Length") == "77"
    )
    assert (
        fields.get_header("WARC-Date") == "1970-01-12T13:46:40.250000Z"
        and fields.get_header("WARC-IP-Address") == "192.0.2.1"
    )
    assert request[0] == "request" and request[1].get_header("WARC-Concurrent-To") == fields.get_header(
        "WARC-Record-ID"
    )


def test_iso28500_equal_bodies_are_written_once():
    first, capture = written(exchange(body_id=7))
    again, none = written(exchange(body_id=7, url="https://e.org/copy", visit_id=2), capture)
    kind, fields, _, payload = read(again)[0]
    assert (kind, payload, none) == ("revisit", b"", None)
    assert fields.get_header("WARC-Profile").endswith("/identical-payload-digest")
    assert fields.get_header("WARC-Refers-To-Target-URI") == "https://e.org/"
    assert fields.get_header("WARC-Payload-Digest") == read(first)[0][1].get_header("WARC-Payload-Digest")


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        ("shorter-than-declared", "disconnect"),
        ("time-limit", "time"),
        ("body-limit", "length"),
        ("ratio-limit", "length"),
    ],
)
def test_iso28500_a_truncated_record_has_its_reason(cut, said):
    assert read(written(exchange(cut=cut))[0])[0][1].get_header("WARC-Truncated") == said


def test_a_missing_body_is_marked_as_truncated():
    for length, reason in (("9", "unspecified"), ("0", None)):
        missing = exchange(None, Headers((("content-length", length),)), status=404)
        assert read(written(missing)[0])[0][1].get_header("WARC-Truncated") == reason


def test_a_failure_is_a_metadata_record():
    ((kind, _, _, payload),) = read(
        written(exchange(None, Headers(), outcome="failed", status=0, detail="timeout: slow"))[0]
    )
    assert kind == "metadata" and b"detail: timeout: slow\r\n" in payload


def test_ours_an_http2_response_is_written_as_http1():
    data = written(exchange(headers=Headers((), "HTTP/2 200")))[0]
    assert read(data)[0][2].protocol == "HTTP/1.1"


def test_a_value_cannot_contain_a_line_break():
    note = RunNote(1, 0.0, "evil\r\nWARC-Type: response", (), "{}", True)
    ((kind, _, _, payload),) = read(warcinfo(note, "0", "x").data)
    assert kind == "warcinfo" and b"\r\nWARC-Type" not in payload


def test_the_original_header_can_be_restored():
    status, headers, body = http_answer(written(exchange())[0].split(b"\r\n\r\n", 1)[1].split(b"WARC/1.1")[0][:-4])
    assert (status, body) == (200, b"<p>Hello") and set(original(headers).fields) == set(GZIPPED.fields)


def test_an_exported_collection_passes_the_check_of_warcio(folder, tmp_path):
    path, index = tmp_path / "e.warc.gz", tmp_path / "e.cdxj"
    done = export_warc(folder, path, index=index)
    assert (done.responses, done.revisits, done.failures) == (3, 1, 1) and done.size_bytes == path.stat().st_size
    assert checked(path) == 0
    lines = index.read_text().splitlines()
    assert lines == sorted(lines) and [line.split()[0] for line in lines] == [
        "org,e)/",
        "org,e)/a",
        "org,e)/c",
        "org,e)/d",
    ]
    assert not list(tmp_path.glob("*.part"))


def test_each_record_is_at_its_offset_in_the_index(folder, tmp_path):
    import json

    path, index = tmp_path / "e.warc.gz", tmp_path / "e.cdxj"
    export_warc(folder, path, index=index)
    for line in index.read_text().splitlines():
        values = json.loads(line.split(" ", 2)[2])
        member = path.read_bytes()[int(values["offset"]) : int(values["offset"]) + int(values["length"])]
        ((_, fields, _, _),) = read(member)
        assert (
            fields.get_header("WARC-Target-URI") == values["url"]
            and fields.get_header("WARC-Payload-Digest") == values["digest"]
        )


def test_an_archive_is_reproducible(folder, tmp_path):
    export_warc(folder, tmp_path / "e.warc.gz")
    before = (tmp_path / "e.warc.gz").read_bytes()
    export_warc(folder, tmp_path / "e.warc.gz")
    assert (tmp_path / "e.warc.gz").read_bytes() == before


def test_a_long_archive_is_split_into_files(folder, tmp_path):
    done = export_warc(folder, tmp_path / "e.warc.gz", file_bytes=1)
    assert [path.name for path in done.files[:2]] == ["e.warc.gz", "e-00002.warc.gz"] and len(done.files) == 5
    for path in done.files:
        assert checked(path) == 0
        assert read(path.read_bytes())[0][0] == "warcinfo"


def test_a_failed_export_leaves_no_file(folder, tmp_path):
    with pytest.raises(StoreError, match="cannot be written"):
        export_warc(folder, tmp_path / "no" / "e.warc.gz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://www.example.org/A/?b=2&a=1", "org,example)/a?a=1&b=2"),
        ("http://example.org:8080/", "org,example:8080)/"),
        ("https://example.org:443/x/", "org,example)/x"),
        ("http://192.0.2.1/", "1,2,0,192)/"),
        ("http://[::1]:8000/a", "::1:8000)/a"),
        ("http://e.org/a//b/%2E%2e/%7Ec%2Fd%25?q=%C3%BC&x=%26", "org,e)/a/~c/d%25?&q=%c3%bc&x="),
        ("http://e.org/?b=1&PHPSESSID=0123456789abcdef0123456789abcdef&a=2", "org,e)/?a=2&b=1"),
        ("http://e.org/(S(4hqa0555fwsecu455xqckv45))/m.aspx", "org,e)/m.aspx"),
    ],
)
def test_the_key_of_the_index_for_each_url(url, key):
    """The expected keys are the output of cdxj-indexer 1.5."""
    assert capture_key(url) == key


# reading -------------------------------------------------------------------------------------------------------------


def foreign(entries, *, compressed=True, version="1.0"):
    """An archive written by warcio. entries: (url, status line, fields, body)."""
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=compressed, warc_version=version)
    from warcio.statusandheaders import StatusAndHeaders

    for url, line, fields, body in entries:
        http = StatusAndHeaders(line, fields, protocol="HTTP/1.1")
        writer.write_record(
            writer.create_warc_record(url, "response", payload=io.BytesIO(body), length=len(body), http_headers=http)
        )
    return out.getvalue()


HTML = [("Content-Type", "text/html")]
ENTRIES = [
    ("http://e.org/robots.txt", "200 OK", [("Content-Type", "text/plain")], b"User-agent: *\nDisallow: /"),
    ("http://e.org/b", "200 OK", HTML, b"<title>B</title><a href=/c>c</a>"),
    (
        "http://e.org/",
        "200 OK",
        [*HTML, ("Transfer-Encoding", "chunked")],
        b"14\r\n<title>Home</title><\r\n1a\r\na href=/a>a</a><a href=/b>\r\n0\r\n\r\n",
    ),
    ("http://e.org/a", "301 Moved", [("Location", "/b")], b""),
    ("http://e.org/z", "200 OK", [*HTML, ("Content-Encoding", "gzip")], gzip.compress(b"<title>Z</title>")),
    ("http://e.org/gone", "410 Gone", HTML, b""),
    ("http://e.org/p.png", "200 OK", [("Content-Type", "image/png")], b"\x89PNG"),
    ("ftp://e.org/f", "200 OK", HTML, b""),
]


def imported(tmp_path, data, name="x.warc.gz", **order):
    path = tmp_path / name
    path.write_bytes(data)
    done = import_archives(tmp_path / "i", (path,), **order)
    with Collection(tmp_path / "i") as kept:
        return done, {row.url.removeprefix("http://e.org"): row for row in kept.pages()}


@pytest.mark.parametrize("compressed", [True, False])
def test_an_archive_of_another_program_is_imported(tmp_path, compressed):
    done, rows = imported(tmp_path, foreign(ENTRIES, compressed=compressed), starts=("http://e.org/",))
    assert (done.state, done.answers, done.left_out, done.damages) == ("done", 6, 1, ())
    pages = {url: (row.reason, row.depth, row.title) for url, row in rows.items()}
    assert pages == {
        "/": ("ok", 0, "Home"),
        "/a": ("redirect", 1, None),
        "/b": ("ok", 1, "B"),
        "/c": ("not-in-archive", 2, None),
        "/z": ("ok", None, "Z"),
        "/gone": ("not-found", None, None),
        "/p.png": ("other-media", None, None),
    }


def test_the_start_is_the_first_page_unless_given(tmp_path):
    done, rows = imported(tmp_path, foreign(ENTRIES))
    assert done.starts == ("http://e.org/b",) and rows["/b"].depth == 0


def test_settings_in_an_archive_are_validated():
    from periplus.settings import Settings
    from periplus_archives.api import _settings

    found = _settings(
        '{"scope": "domain", "max_depth": 3, "body_bytes": 4294967296, "include": ["(a+)+$"], '
        '"mine": ["e.org"], "unheard": 1}'
    )
    assert (found.scope.scope, found.scope.max_depth, found.scope.include) == (
        "domain",
        3,
        (),
    ) and found.limits == Settings().limits
    for text in ("", "[]", "{", '"x"', '{"scope": 7}', '{"max_depth": "x"}', "null"):
        assert _settings(text) is None


def test_zstd_archives_are_read_with_and_without_a_dictionary(tmp_path):
    plain = foreign(ENTRIES, compressed=False)
    members = [b"WARC/1.0" + part for part in plain.split(b"WARC/1.0")[1:]]
    dictionary = zstandard.ZstdCompressionDict(plain[:2000], dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packer = zstandard.ZstdCompressor(dict_data=dictionary)
    head = b"\x5d\x2a\x4d\x18" + len(dictionary.as_bytes()).to_bytes(4, "little") + dictionary.as_bytes()
    forms = [b"".join(map(zstandard.ZstdCompressor().compress, members))]
    forms.append(head + b"".join(map(packer.compress, members)))
    for number, data in enumerate(forms):
        path = tmp_path / f"{number}.warc.zst"
        path.write_bytes(data)
        with ArchiveReader(ArchiveFile(path), 1 << 20) as reader:
            assert [record.kind for record in reader] == ["response"] * len(ENTRIES) and not reader.damage


def test_the_records_before_the_end_of_a_truncated_file_are_read(tmp_path):
    data = foreign(ENTRIES)
    path = tmp_path / "x.warc.gz"
    counts = []
    for length in range(40, len(data), 37):
        path.write_bytes(data[:length])
        try:
            with ArchiveReader(ArchiveFile(path), 1 << 20) as reader:
                counts.append(len(list(reader)))
                assert reader.damage or data[length:].startswith(b"\x1f\x8b"), (
                    "only between two members nothing is missing"
                )
        except UsageError:
            assert not counts
    assert counts == sorted(counts) and counts[-1] >= len(ENTRIES) - 1


def test_the_readable_part_of_a_truncated_file_is_imported(tmp_path):
    data = foreign(ENTRIES)
    done, rows = imported(tmp_path, data[: len(data) - 500], starts=("http://e.org/",))
    assert len(done.damages) == 1 and "ends in the middle of a record" in done.note and done.state == "done"
    assert rows["/"].title == "Home"


def test_reading_stops_at_damage_in_the_middle(tmp_path):
    data = bytearray(foreign(ENTRIES))
    data[len(data) // 2] ^= 0xFF
    path = tmp_path / "x.warc.gz"
    path.write_bytes(data)
    with ArchiveReader(ArchiveFile(path), 1 << 20) as reader:
        assert 0 < len(list(reader)) < len(ENTRIES) and "damaged" in reader.damage


HUGE = (
    b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + b"\x01\x00\x00"
)  # a frame with a declared size of a terabyte
NO_ARCHIVES = [
    *(
        b"",
        b"no archive",
        gzip.compress(b"no archive", mtime=0),
        b"\x1f\x8bxx",
        b"\x28\xb5\x2f\xfdxx",
        b"filedesc://x.arc 0.0.0.0\n",
    ),
    # found by fuzzing: dictionaries
    *(b"]*M\x18", b"]*M\x18\x01", b"]*M\x18\xff\xff\xff\xffx", b"]*M\x18" + len(HUGE).to_bytes(4, "little") + HUGE),
]


@pytest.mark.parametrize("data", NO_ARCHIVES)
def test_an_invalid_archive_is_refused_without_creating_a_collection(tmp_path, data):
    with pytest.raises(UsageError, match=r"not a WARC, ARC or WACZ file|not a web archive|no page with status 200"):
        imported(tmp_path, data)
    assert not (tmp_path / "i").exists()


def test_an_archive_without_pages_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no start"):
        imported(tmp_path, foreign(ENTRIES[:1]))


def test_a_long_block_is_cut_and_the_next_record_read(tmp_path):
    path = tmp_path / "x.warc"
    path.write_bytes(foreign([("http://e.org/", "200 OK", HTML, b"x" * 5_000_000), *ENTRIES[1:2]], compressed=False))
    with ArchiveReader(ArchiveFile(path), 1000) as reader:
        assert [(len(record.block) < 1000, record.is_cut) for record in reader] == [(False, True), (True, False)]


def test_the_latest_response_counts_in_any_order(tmp_path):
    entries = [
        ("http://e.org/", "200 OK", HTML, b"<title>New</title>"),
        ("http://e.org/", "200 OK", HTML, b"<title>Old</title>"),
    ]
    new, old = (foreign([entry], compressed=False) for entry in entries)
    import re

    old = re.sub(rb"WARC-Date: \d{4}", b"WARC-Date: 2001", old)
    _, rows = imported(tmp_path, new + old, "x.warc")
    assert rows["/"].title == "New"


def test_importing_into_a_collection_is_refused(tmp_path):
    stored(tmp_path / "i", SITE, ["https://e.org/"])
    with pytest.raises(StoreError, match="holds a collection already"):
        imported(tmp_path, foreign(ENTRIES))


def test_the_commands_export_and_import_an_archive(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    ended = run(main, ["export", "warc", "-c", str(folder), "-o", "e.warc.gz", "--cdxj"])
    assert (
        ended.exit_code == 0
        and "3 responses, 1 repeated, 1 without an answer" in ended.output
        and (tmp_path / "e.cdxj").exists()
    )
    ended = run(main, ["import", "warc", "e.warc.gz"])
    assert ended.exit_code == 0 and "e.org.periplus: 4 answers" in ended.output
    assert run(main, ["map", "-c", "e.org.periplus"]).exit_code == 0


@given(st.binary(max_size=200))
def test_reading_a_response_never_raises(block):
    http_answer(block)
    http_answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + block)


@pytest.mark.parametrize(
    "line", ["HTTP/1.1 \xb200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1", "ICY 200 OK", "HTTP/1.1\n200 OK"]
)
def test_a_status_line_without_three_digits_is_no_http_answer(line):
    """Superscript digits are not digits: found by fuzzing."""
    assert http_answer(line.encode("latin-1") + b"\r\n\r\nbody") is None


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=5))
def test_rfc9112_chunks_are_joined(parts):
    body = b"".join(b"%x;a=b\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    assert decode_chunks(body) == b"".join(parts)


def test_a_body_without_chunks_is_unchanged():
    assert decode_chunks(b"<p>no chunks") == b"<p>no chunks"
