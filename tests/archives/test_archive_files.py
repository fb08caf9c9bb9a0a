"""Import of ARC and WACZ files, revisit records, and archives of different times as separate runs."""

import gzip
import io
import random
import zipfile

import pytest
from click.testing import CliRunner
from warcio.warcwriter import WARCWriter

from made_archives import IDENTICAL, answer, arc, wacz, warc
from periplus.api.collection import Collection
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus_archives.api import ImportTimes, import_archives
from periplus_archives.files import ArchiveFile, ArchiveReader, archive_files, main_page
from stored import page


def imported(tmp_path, *files, **options):
    paths = []
    for number, data in enumerate(files):
        paths.append(tmp_path / f"{number}.archive")
        paths[-1].write_bytes(data)
    return import_archives(tmp_path / "c", paths, ("http://e.org/",), **options)


def rows(tmp_path, *columns):
    with Collection(tmp_path / "c") as collection:
        return {
            row.url.removeprefix("http://e.org"): tuple(getattr(row, name) for name in columns)
            for row in collection.pages()
        }


def query_rows(tmp_path, question):
    from periplus.api.exporting import run_query

    with run_query(tmp_path / "c", question) as answered:
        return list(answered.rows)


ARCED = (("http://e.org/", page("Home", "/a b")), ("http://e.org/a b", page("With a space")))


@pytest.mark.parametrize("compressed", [False, True])
def test_arc_files_are_imported(tmp_path, compressed):
    parts = arc(*ARCED)
    done = imported(tmp_path, b"".join(map(gzip.compress, parts) if compressed else parts))
    assert (done.state, done.answers, done.left_out, done.damages) == ("done", 2, 0, ())
    assert rows(tmp_path, "reason", "title") == {"/": ("ok", "Home"), "/a%20b": ("ok", "With a space")}
    assert query_rows(tmp_path, "SELECT DISTINCT started, address FROM visits") == [
        ("2001-02-03T04:05:06Z", "192.0.2.7")
    ]


def test_an_arc_file_of_version_2_has_ten_fields_per_record(tmp_path):
    names = "URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length"
    note, data = f"2 0 x\n{names}\n".encode(), b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<title>Two</title>"
    path = tmp_path / "x.arc"
    path.write_bytes(
        b"filedesc://x.arc 0.0.0.0 20010203040506 text/plain %d\n%s\n" % (len(note), note)
        + b"http://e.org/ 192.0.2.7 20010203040506 text/html 200 - - 0 x.arc %d\n%s\n" % (len(data), data)
    )
    with ArchiveReader(ArchiveFile(path), 1 << 20) as reader:
        assert [record.block for record in reader] == [note, data] and not reader.damage


def test_records_before_the_damage_in_an_arc_file_are_imported_and_the_damage_is_reported(tmp_path):
    whole = b"".join(arc(*ARCED))
    done = imported(tmp_path, whole[:-30])
    assert done.answers == 1 and "ends in the middle of a record" in done.damages[0]


def test_the_main_page_of_a_wacz_file_is_the_start(tmp_path):
    path = tmp_path / "x.wacz"
    path.write_bytes(
        wacz(warc(answer("http://e.org/x", page("X")), answer("http://e.org/", page("Home", "/x"))), "http://e.org/x")
    )
    done = import_archives(tmp_path / "c", (path,))
    assert (done.answers, done.starts, done.note) == (2, ("http://e.org/x",), "2 answers from x.wacz")


def test_several_wacz_files_in_a_zip_file_are_imported(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as package:
        for name in "ab":
            package.writestr(f"{name}.wacz", wacz(warc(answer(f"http://e.org/{name}", page(name)))))
    assert import_archives(tmp_path / "c", (path,), ("http://e.org/a",)).answers == 2


def test_without_a_main_page_the_first_listed_page_of_a_wacz_file_is_used(tmp_path):
    (tmp_path / "x").write_bytes(wacz(b""))
    (tmp_path / "y").write_bytes(wacz(b"")[:-9])
    assert [main_page(tmp_path / name) for name in "xy"] == ["http://e.org/", ""]


@pytest.mark.parametrize("data", [wacz(b"", name="notes.txt"), wacz(b"").replace(b"PK\x01\x02", b"PK\x01\x01", 1)])
def test_a_zip_file_without_records_is_refused(tmp_path, data):
    (tmp_path / "x.wacz").write_bytes(data)
    with pytest.raises(UsageError, match=r"x\.wacz is a (zip file but not a WACZ file|damaged zip file)"):
        archive_files(tmp_path / "x.wacz")


def test_records_before_a_damaged_entry_of_a_wacz_file_are_imported(tmp_path):
    noise = random.Random(1).randbytes(30_000).hex()
    data = warc(answer("http://e.org/", page("Home")), answer("http://e.org/a", page(noise)))
    package = bytearray(wacz(data))
    place = package.index(data) + len(data) - 20
    package[place] ^= 0xFF
    done = imported(tmp_path, bytes(package))
    assert done.answers == 1 and "0.archive/archive/data.warc.gz" in done.damages[0]


# revisits


def revisit(url, of, digest="", date="2020-01-02", **fields):
    named = {"WARC_Profile": IDENTICAL} | ({"WARC_Payload_Digest": digest} if digest else {})
    return answer(url, "", date, kind="revisit", **(named | ({"WARC_Refers_To_Target_URI": of} if of else {}) | fields))


HOME = answer("http://e.org/", page("Home"), WARC_Payload_Digest="sha1:H")
COPY_OF_HOME = "same bytes and links as http://e.org/"  # only a revisit with a resolved body is merged with the page


def test_a_revisit_is_resolved_by_its_digest(tmp_path):
    done = imported(tmp_path, warc(HOME, revisit("http://e.org/copy", "", "sha1:H")))
    assert done.left_out == 0 and rows(tmp_path, "rule")["/copy"] == (COPY_OF_HOME,)


def test_a_revisit_without_http_header_takes_the_header_of_the_original(tmp_path):
    done = imported(tmp_path, warc(HOME, revisit("http://e.org/copy", "http://e.org/", "sha1:H", status="")))
    assert done.left_out == 0 and rows(tmp_path, "status", "rule")["/copy"] == (200, COPY_OF_HOME)


def test_a_revisit_with_another_kind_of_digest_is_resolved_by_url_and_date(tmp_path):
    """ArchiveWeb.page writes such records: sha-256 in the revisit, another digest in the response."""
    of = {"of": "http://e.org/", "digest": "sha-256:h"}
    right = revisit("http://e.org/right", **of, WARC_Refers_To_Date="2020-01-01T00:00:00Z")
    wrong = revisit("http://e.org/wrong", **of, WARC_Refers_To_Date="2019-01-01T00:00:00Z")
    done = imported(tmp_path, warc(HOME, wrong, right))
    assert done.left_out == 1 and rows(tmp_path, "rule") == {"/": (None,), "/right": (COPY_OF_HOME,)}


def test_a_revisit_of_a_replaced_body_is_skipped(tmp_path):
    """The later body is not the one that the revisit refers to."""
    later = answer("http://e.org/", page("Later"), "2020-01-02", WARC_Payload_Digest="sha1:L")
    done = imported(tmp_path, warc(HOME, later, revisit("http://e.org/copy", "http://e.org/", "sha1:H")))
    assert done.left_out == 1 and rows(tmp_path, "title") == {"/": ("Later",)}


@pytest.mark.parametrize("kind", ["revisit", "response"])
def test_a_304_keeps_the_page_and_is_skipped_without_one(tmp_path, kind):
    fields = (
        {"WARC_Profile": "http://netpreserve.org/warc/1.0/revisit/server-not-modified"} if kind == "revisit" else {}
    )
    same = answer("http://e.org/", "", "2021-01-01", kind=kind, status="304 Not Modified", **fields)
    unknown = answer("http://e.org/never", "", "2021-01-01", kind=kind, status="304 Not Modified", **fields)
    done = imported(tmp_path, warc(HOME), warc(same, unknown))
    assert (done.runs, done.answers, done.left_out) == (2, 2, 1)
    assert rows(tmp_path, "reason", "title") == {"/": ("ok", "Home")}


# runs

FIRST = (
    answer("http://e.org/", page("Home", "/a", "/b")),
    answer("http://e.org/a", page("A", "/")),
    answer("http://e.org/b", page("B")),
)
SECOND = (
    answer("http://e.org/", page("Home", "/a", "/c"), "2022-05-06"),
    answer("http://e.org/a", page("A", "/"), "2022-05-06"),
    answer("http://e.org/b", page("Gone"), "2022-05-06", status="404 Not Found"),
    answer("http://e.org/c", page("C"), "2022-05-06"),
)


def test_archives_of_different_times_become_runs_in_order_of_date(tmp_path):
    """The order of the files does not matter, and `diff` shows the changes between the runs."""
    done = imported(tmp_path, warc(*SECOND), warc(*FIRST))
    assert (done.state, done.runs, done.answers) == ("done", 2, 7)
    assert query_rows(tmp_path, "SELECT id, kind, started, ended, state FROM runs ORDER BY id") == [
        (1, "import", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "done"),
        (2, "import", "2022-05-06T00:00:00Z", "2022-05-06T00:00:00Z", "done"),
    ]
    with Collection(tmp_path / "c") as collection:
        changes = collection.diff()
    assert [change.url for change in changes.added] == ["http://e.org/c"]
    assert [one.url for one in changes.removed] == ["http://e.org/b"]
    assert [one.target for one in changes.links_added] == ["http://e.org/c"]


def test_archives_within_the_gap_are_one_run(tmp_path):
    halves = warc(*FIRST[:1]), warc(*FIRST[1:])
    assert imported(tmp_path, *halves).runs == 1
    (tmp_path / "d").mkdir()
    assert imported(tmp_path / "d", warc(*FIRST), warc(*SECOND), times=ImportTimes(1e9)).runs == 1


def test_a_file_without_responses_is_imported_with_the_last_run(tmp_path):
    """Its failure records and damage are still reported."""
    info = io.BytesIO()
    writer = WARCWriter(info, gzip=False)
    writer.write_record(writer.create_warcinfo_record("x.warc", {"software": "other"}))
    done = imported(tmp_path, warc(*FIRST), info.getvalue() + b"WARC/1.0\r\nWARC-Type: resp", warc(*SECOND))
    assert (done.runs, done.answers, len(done.damages)) == (2, 7, 1)
    assert "1.archive" in done.damages[0] and "1.archive" in done.note.split("; ")[1]


def test_records_after_the_time_limit_are_ignored(tmp_path):
    done = imported(tmp_path, warc(*FIRST, *SECOND), times=ImportTimes(until=1_600_000_000.0))  # September 2020
    assert (done.answers, done.left_out) == (3, 0)
    assert rows(tmp_path, "reason")["/b"] == ("ok",) and "/c" not in rows(tmp_path, "reason")
    (tmp_path / "d").mkdir()
    assert imported(tmp_path / "d", warc(*SECOND), warc(*FIRST), times=ImportTimes(until=1_600_000_000.0)).runs == 1


@pytest.mark.parametrize(
    ("at", "query_rows"),
    [("2020-01-01", "3 answers"), ("2019-12-31", "no page was read"), ("May", "'May' is not a date")],
)
def test_the_date_of_the_command_includes_the_whole_day(tmp_path, at, query_rows):
    (tmp_path / "x.warc.gz").write_bytes(warc(*FIRST, *SECOND))
    words = ["import", "warc", str(tmp_path / "x.warc.gz"), "-o", str(tmp_path / "c"), "--at", at]
    ended = CliRunner().invoke(main, words)
    assert query_rows in ended.output + str(ended.exception)


def test_a_date_in_the_future_is_replaced_by_now(tmp_path):
    """A run of the year 2999 would postpone waiting URLs."""
    imported(tmp_path, warc(answer("http://e.org/", page("Home"), "2999-01-01")))
    assert query_rows(tmp_path, "SELECT started < '2990', ended < '2990' FROM runs") == [(1, 1)]
