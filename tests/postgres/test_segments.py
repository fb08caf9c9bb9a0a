"""Segments (WARC files of a database collection): durability, torn writes, failing storage, sweeps."""

import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from periplus.errors import StoreError, UsageError
from periplus.model.collection import Exchange, RunNote
from periplus.model.visit import Headers
from periplus_postgres.segments import (
    FolderStorage,
    RecordPlace,
    SegmentReader,
    SegmentWriter,
    members,
    object_storage,
    swept,
)

NOTE = RunNote(1, 1_000_000.0, "test/1", ("https://e.org/",), "{}", True)
HEADERS = Headers(
    (("content-type", "text/html"), ("content-encoding", "gzip"), ("transfer-encoding", "chunked")), "HTTP/1.1 200 OK"
)


def exchange(number, body):
    return Exchange(
        number,
        1,
        f"https://e.org/{number}",
        "page",
        1_000_000.0 + number,
        0.1,
        "fetched",
        200,
        "",
        "127.0.0.1",
        HEADERS,
        body,
        "",
        number,
    )


@pytest.fixture(params=["folder", "file", "memory"])
def place(request, tmp_path):
    return {"folder": str(tmp_path / "s"), "file": f"file://{tmp_path}/s", "memory": f"memory://{tmp_path.name}"}[
        request.param
    ]


def segments_of(place):
    return dict(object_storage(place).sizes())


def test_flushed_records_are_read_back_with_their_original_header(place):
    bodies = [b"", b"one", bytes(range(256)) * 1000, b"7\r\nchunked\r\n0\r\n\r\n"]
    with SegmentWriter(object_storage(place), "w", NOTE) as writer:
        places = []
        for number, body in enumerate(bodies):
            places.append(writer.append(exchange(number, body)))
            writer.flush()
    reader = SegmentReader(object_storage(place))
    assert [reader.body(place) for place in places] == bodies
    assert reader.response(places[1]) == ("https://e.org/1", HEADERS, b"one")


def test_a_segment_is_a_valid_warc_file(place):
    with SegmentWriter(object_storage(place), "w", NOTE) as writer:
        for number in range(3):
            writer.append(exchange(number, b"body %d" % number))
    ((name, size),) = segments_of(place).items()
    with object_storage(place).open(name) as file:
        data = file.read()
    assert len(data) == size and name == "w-00001.warc.gz"
    records = [
        (record.rec_type, record.content_stream().read())
        for record in ArchiveIterator(io.BytesIO(data), check_digests="raise")
    ]
    assert [kind for kind, _ in records] == ["warcinfo", "response", "response", "response"]
    assert [body for _, body in records[1:]] == [b"body 0", b"body 1", b"body 2"]


def test_the_members_of_a_segment_are_the_appended_records(place):
    rng = random.Random(1)
    with SegmentWriter(object_storage(place), "w", NOTE) as writer:
        places = [
            writer.append(exchange(number, rng.randbytes(rng.choice((0, 10, 70_000, 300_000))))) for number in range(20)
        ]
    with object_storage(place).open("w-00001.warc.gz") as file:
        assert [tuple(member) for member in list(members(file))[1:]] == [
            (record.start, record.length) for record in places
        ]


@settings(max_examples=30)
@given(st.integers(0, 2**31))
def test_records_after_a_torn_write_are_not_read(tmp_path_factory, seed):
    folder, rng = tmp_path_factory.mktemp("torn"), random.Random(seed)
    with SegmentWriter(object_storage(str(folder)), "w", NOTE) as writer:
        places = [writer.append(exchange(number, rng.randbytes(rng.randrange(200)))) for number in range(5)]
    path = folder / "w-00001.warc.gz"
    cut = rng.randrange(path.stat().st_size)
    os.truncate(path, cut)
    with path.open("rb") as file:
        assert list(members(file))[1:] == [(one.start, one.length) for one in places if one.start + one.length <= cut]
    reader = SegmentReader(object_storage(str(folder)))
    for number, one in enumerate(places):
        if one.start + one.length <= cut:
            assert reader.response(one)[0] == f"https://e.org/{number}"
        else:
            with pytest.raises(StoreError, match=r"w-00001\.warc\.gz is damaged at byte"):
                reader.body(one)


def test_a_full_segment_is_followed_by_another(place):
    with SegmentWriter(object_storage(place), "w", NOTE, segment_bytes=2_000) as writer:
        places = [writer.append(exchange(number, random.Random(number).randbytes(900))) for number in range(6)]
    assert len(segments_of(place)) == len({record.segment for record in places}) == 6 // 2 + (6 % 2 > 0)
    assert all(SegmentReader(object_storage(place)).body(record) for record in places)


class FailingStorage:
    """A folder whose writes fail at random, after part of the data or none."""

    def __init__(self, folder, rng):
        self._storage, self._rng, self._folder, self.appends = object_storage(str(folder)), rng, folder, True
        self.failures = 0

    def write(self, name, data, at):
        if self._rng.random() < 0.4:
            self.failures += 1
            with (self._folder / name).open("ab") as file:
                file.write(data[: self._rng.randrange(len(data))])
            raise StoreError("the storage is away")
        self._storage.write(name, data, at)

    def close(self):
        self._storage.close()


@settings(max_examples=20)
@given(st.integers(0, 2**31))
def test_no_committed_page_loses_its_body_on_a_storage_that_fails_at_random(tmp_path_factory, seed):
    folder, rng = tmp_path_factory.mktemp("failing"), random.Random(seed)
    storage, rows = FailingStorage(folder, rng), {}
    with SegmentWriter(storage, "w", NOTE) as writer:
        for number in range(40):
            batch = {
                writer.append(exchange(number, b"%d-%d" % (number, one))): b"%d-%d" % (number, one)
                for one in range(rng.randrange(1, 4))
            }
            try:
                writer.flush()
            except StoreError:
                continue
            rows |= batch
    assert storage.failures
    reader = SegmentReader(object_storage(str(folder)))
    assert {place: reader.body(place) for place in rows} == rows


def test_a_segment_is_closed_after_a_failed_write(tmp_path):
    """It may end in a partial record, so nothing is appended."""

    class Failing(FolderStorage):
        fails = False

        def write(self, name, data, at):
            if self.fails:
                raise StoreError("no space left on device")
            super().write(name, data, at)

    storage = Failing(tmp_path)
    with SegmentWriter(storage, "w", NOTE) as writer:
        places = [writer.append(exchange(1, b"one"))]
        writer.flush()
        places.append(writer.append(exchange(2, b"two")))
        storage.fails = True
        with pytest.raises(StoreError):
            writer.flush()
        storage.fails = False
        places.append(writer.append(exchange(3, b"three")))
        writer.flush()
    assert places[0].segment == places[1].segment != places[2].segment
    assert [SegmentReader(storage).body(places[at]) for at in (0, 2)] == [b"one", b"three"]


def test_two_writers_with_the_same_name_do_not_share_a_segment(tmp_path):
    first, second = (SegmentWriter(object_storage(str(tmp_path)), "w", NOTE) for _ in range(2))
    first.append(exchange(1, b"a"))
    first.flush()
    second.append(exchange(2, b"b"))
    with pytest.raises(StoreError, match="File exists"):
        second.flush()


def test_a_segment_changed_by_another_process_is_not_appended_to(tmp_path):
    with SegmentWriter(object_storage(str(tmp_path)), "w", NOTE) as writer:
        place = writer.append(exchange(1, b"own"))
        writer.flush()
        with (tmp_path / place.segment).open("ab") as file:
            file.write(b"foreign")
        writer.append(exchange(2, b"later"))
        with pytest.raises(StoreError, match="has an unexpected size"):
            writer.flush()
    assert (tmp_path / place.segment).read_bytes().endswith(b"foreign")
    assert SegmentReader(object_storage(str(tmp_path))).body(place) == b"own"


def test_a_damaged_record_is_no_page(tmp_path):
    with SegmentWriter(object_storage(str(tmp_path)), "w", NOTE) as writer:
        place = writer.append(exchange(1, b"a" * 1000))
    data = bytearray((tmp_path / place.segment).read_bytes())
    data[place.start + place.length // 2] ^= 255
    (tmp_path / place.segment).write_bytes(data)
    reader = SegmentReader(object_storage(str(tmp_path)))
    with pytest.raises(StoreError, match="is damaged at byte"):
        reader.body(place)
    for strange in (RecordPlace(place.segment, 0, place.start), RecordPlace(place.segment, 7, 9)):
        with pytest.raises(StoreError, match="is damaged at byte"):
            reader.body(strange)
    with pytest.raises(StoreError, match="No such file"):
        reader.body(RecordPlace("none.warc.gz", 0, 9))


def test_any_exception_of_an_unreachable_storage_is_translated(tmp_path, monkeypatch):
    class Away(Exception):
        """Like botocore's errors, which are no OSError."""

    monkeypatch.setitem(sys.modules, "botocore.exceptions", types.SimpleNamespace(BotoCoreError=Away))
    storage = object_storage(f"memory://{tmp_path.name}-away")
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", lambda *_: (_ for _ in ()).throw(Away("could not connect")))
    writer = SegmentWriter(storage, "w", NOTE)
    writer.append(exchange(1, b"a"))
    with pytest.raises(
        StoreError,
        match=r"w-00001\.warc\.gz cannot be read or written: could not connect\. Is the disk full, the storage",
    ):
        writer.flush()


def test_an_unknown_storage_is_refused():
    with pytest.raises(UsageError, match="cannot store segments on nowhere://"):
        object_storage("nowhere://x")


KILLED = """
import json, random, sys
sys.path.insert(0, sys.argv[2])
from test_segments import NOTE, exchange
from periplus_postgres.segments import SegmentWriter, object_storage
with SegmentWriter(object_storage(sys.argv[1]), "killed", NOTE) as writer:
    for number in range(1_000_000):
        body = random.Random(number).randbytes(50_000)
        place = writer.append(exchange(number, body))
        writer.flush()
        print(json.dumps(place), flush=True)
"""


def test_after_a_kill_every_confirmed_record_exists(tmp_path):
    rng = random.Random(7)
    for number in range(4):
        folder = tmp_path / str(number)
        here = Path(__file__).parent
        with subprocess.Popen([sys.executable, "-c", KILLED, folder, here], stdout=subprocess.PIPE) as process:
            said = [process.stdout.readline() for _ in range(rng.randrange(1, 12))]
            process.send_signal(signal.SIGKILL)
            said += process.stdout.readlines()
        rows = [RecordPlace(*json.loads(line)) for line in said if line.endswith(b"\n")]
        reader = SegmentReader(object_storage(str(folder)))
        assert rows and all(reader.body(place) == random.Random(at).randbytes(50_000) for at, place in enumerate(rows))
        with (folder / rows[0].segment).open("rb") as file:
            assert set(members(file)) >= {(place.start, place.length) for place in rows}


def test_gzip_itself_reads_a_segment(tmp_path):
    with SegmentWriter(object_storage(str(tmp_path)), "w", NOTE) as writer:
        writer.append(exchange(1, b"needle"))
    assert b"needle" in gzip.decompress((tmp_path / "w-00001.warc.gz").read_bytes())


def test_a_sweep_finds_orphans_torn_tails_lost_bytes_and_unused_segments(tmp_path):
    storage = object_storage(str(tmp_path))
    with SegmentWriter(storage, "a", NOTE) as writer:
        kept, dropped = writer.append(exchange(1, b"kept")), writer.append(exchange(2, b"never entered"))
    with SegmentWriter(storage, "b", NOTE) as writer:
        writer.append(exchange(3, b"the worker was killed before it entered this"))
    with (tmp_path / kept.segment).open("ab") as file:
        file.write(b"\x1f\x8btorn")
    claimed = [kept, RecordPlace("a-00001.warc.gz", 9_999_999, 5), RecordPlace("gone.warc.gz", 0, 5)]
    first, second, third = swept(storage, claimed)
    assert (first.records, first.orphans, first.orphan_bytes, first.torn_bytes, first.lost) == (
        2,
        1,
        dropped.length,
        6,
        1,
    )
    assert second.is_unused and not first.is_unused and (second.records, second.orphans) == (1, 1)
    assert (third.name, third.size_bytes, third.lost, third.is_unused) == ("gone.warc.gz", 0, 1, False)


def test_a_storage_error_in_the_middle_of_a_segment_is_translated(tmp_path, monkeypatch):
    """Object storage fails at the read of an open file, not when it is opened."""

    class Refusing(io.RawIOBase):
        def read(self, size=-1):
            raise PermissionError("Access Denied")

    storage = FolderStorage(tmp_path)
    (tmp_path / "a-00001.warc.gz").write_bytes(b"x")
    monkeypatch.setattr(FolderStorage, "open", lambda storage, name: Refusing())
    with pytest.raises(StoreError, match=r"a-00001\.warc\.gz cannot be read or written: Access Denied\. Is the disk"):
        list(swept(storage, ()))
