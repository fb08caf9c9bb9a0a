"""Captures in web archives on disk: lists them from indexes or from the records, and reads them."""

from __future__ import annotations

import gzip
import io
import json
import math
import sqlite3
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from periplus.errors import InvalidUrl, UsageError
from periplus.model.collection import ArchiveRecord
from periplus.model.ports import Response
from periplus.model.visit import Cut, Request
from periplus.model.web import Url
from periplus.settings import FetchLimits
from periplus.store.warc import PURPOSE, capture_key, http_answer, original
from periplus.urls.canonical import canonical
from periplus_archives.files import CUTS, RECORDS, ArchiveFile, ArchiveReader, MemberPlace, archive_files, seconds_of

# Positions of records are taken from an index if it lists the file; contents are always taken from the record itself.
# Files that no index lists are scanned once.

HEAD_BYTES = 65_536  # of a record, enough to read its status
HEADER_BYTES = 65_536  # of headers before a body
MOST_TWINS = 8  # records with the digest of a revisit to try
_INDEXES = (".cdxj", ".cdx", ".cdxj.gz", ".cdx.gz")
# positions of (offset, file) in CDX lines with 11 and 9 fields
_CDX_PLACES = {11: (9, 10), 9: (7, 8)}
_INSERT = "INSERT INTO capture VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_TABLE = """CREATE TABLE capture (
    key TEXT NOT NULL, url TEXT NOT NULL, taken REAL NOT NULL, status INTEGER NOT NULL, digest TEXT NOT NULL,
    is_revisit INTEGER NOT NULL, file INTEGER NOT NULL, member INTEGER NOT NULL, skip INTEGER NOT NULL
)"""


class Capture(NamedTuple):
    """A line of an archive's index. taken: seconds since the epoch, UTC; status: 0 if unknown, as for revisits; place:
    the location of its bytes, in the format of the source.
    """

    url: str
    taken: float
    status: int
    place: str


def by_nearness(captures: Iterable[Capture], url: Url, at: float) -> list[Capture]:
    """The captures of a URL, nearest to a time first. at: seconds since the epoch; infinity: latest first.

    Captures of other URLs with the same key (http for https, with or without www.) come last. Within both groups
    refusals and server errors (429, 5xx) come last.
    """
    return sorted(
        captures,
        key=lambda capture: (
            not _is_of(capture, url),
            capture.status == 429 or capture.status >= 500,
            abs(capture.taken - at) if at < math.inf else -capture.taken,
        ),
    )


def _is_of(capture: Capture, url: Url) -> bool:
    try:
        return capture.url == url or canonical(capture.url) == url
    except InvalidUrl:
        return False


class _Line(NamedTuple):
    """A record in an index. name: of its file, without folders."""

    url: str
    taken: float
    status: int
    digest: str
    is_revisit: bool
    name: str
    offset: int


class FileArchive:
    """Captures in archive files. The index is a temporary file, since there may be millions."""

    def __init__(self, places: Sequence[Path], limits: FetchLimits) -> None:
        """places: WARC, ARC and WACZ files, and folders of them.

        Raises UsageError if a place does not exist or contains no archive.
        """
        self._limits = limits
        self._connection = sqlite3.connect("")
        self._connection.execute(_TABLE)
        self._files: list[ArchiveFile] = []
        self.damages: list[str] = []  # one message per truncated or damaged file
        indexes: list[Callable[[ExitStack], BinaryIO]] = []
        for place in places:
            self._collect_files(place, indexes)
        if not self._files:
            raise UsageError(f"{', '.join(map(str, places))}: there is no WARC, ARC or WACZ file")
        listed = self._read_indexes(indexes)
        for number, file in enumerate(self._files):
            if number not in listed:
                self._read(number, file)
        for column in ("key", "digest"):
            self._connection.execute(f"CREATE INDEX capture_{column} ON capture ({column})")

    def __len__(self) -> int:
        """Number of captures."""
        return int(self._connection.execute("SELECT count(*) FROM capture").fetchone()[0])

    def close(self) -> None:
        self._connection.close()

    def captures(self, url: str) -> list[Capture]:
        """Captures with the same key as a URL, unsorted."""
        find = "SELECT url, taken, status, rowid FROM capture WHERE key = ?"
        rows = self._connection.execute(find, (capture_key(url),))
        return [Capture(text, taken, status, str(row)) for text, taken, status, row in rows]

    def answer(self, capture: Capture, request: Request) -> Response | None:
        """Response of a capture, as the response to a request. None if the record is not a response, or repeats one
        that is in none of the files.
        """
        record = self._record(int(capture.place))
        if record is None or _target(record) != capture.url:
            return None
        answer = http_answer(record.block)
        source = record
        if record.kind == "revisit":
            twin = self._original_of(int(capture.place), record)
            earlier = http_answer(twin.block) if twin is not None else None
            if twin is None or earlier is None:
                return None
            status, headers = answer[:2] if answer else earlier[:2]
            answer, source = (status, headers, earlier[2]), twin
        if answer is None or answer[0] == 304:  # 304: the response to a conditional request
            return None
        status, headers, body = answer
        cut = CUTS.get(source.fields.get("warc-truncated", ""), Cut.NONE)
        if source.is_cut or len(body) > self._limits.body_bytes:
            body, cut = body[: self._limits.body_bytes], Cut.BODY_LIMIT
        address = record.fields.get("warc-ip-address", "")
        sent = original(headers)
        return Response(
            request,
            seconds_of(record.fields.get("warc-date", "")) or capture.taken,
            0.0,
            status,
            headers,
            body,
            cut,
            None,
            "",
            address,
            sent=None if sent is headers else sent,
        )

    def _record(self, row: int) -> ArchiveRecord | None:
        find = "SELECT file, member, skip FROM capture WHERE rowid = ?"
        file, member, skip = self._connection.execute(find, (row,)).fetchone()
        with suppress(UsageError):
            most = self._limits.body_bytes + HEADER_BYTES
            with ArchiveReader(self._files[file], most, MemberPlace(member, skip)) as reader:
                return next(iter(reader), None)
        return None

    def _original_of(self, row: int, record: ArchiveRecord) -> ArchiveRecord | None:
        """The record that a revisit refers to: found by digest, else by URL and date."""
        if "identical-payload-digest" not in record.fields.get("warc-profile", ""):
            return None
        digest = _bare(record.fields.get("warc-payload-digest", ""))
        source = record.fields.get("warc-refers-to-target-uri", "").strip("<>")
        rows = []
        if digest:
            find = "SELECT rowid FROM capture WHERE digest = ? AND NOT is_revisit ORDER BY url = ? DESC LIMIT ?"
            rows = self._connection.execute(find, (digest, source, MOST_TWINS)).fetchall()
        date = seconds_of(record.fields.get("warc-refers-to-date", ""))
        if not rows and source and date is not None:
            find = "SELECT rowid FROM capture WHERE key = ? AND abs(taken - ?) < 1 AND NOT is_revisit LIMIT ?"
            rows = self._connection.execute(find, (capture_key(source), date, MOST_TWINS)).fetchall()
        for (twin,) in rows:
            original_record = self._record(twin)
            if twin != row and original_record is not None and original_record.kind == "response":
                return original_record
        return None

    # the index -------------------------------------------------------------------------------------------------------

    def _collect_files(self, place: Path, indexes: list[Callable[[ExitStack], BinaryIO]]) -> None:
        """Collects the archive files and indexes of a place."""
        if not place.exists():
            raise UsageError(f"the archive {place} does not exist")
        paths = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
        for path in paths:
            if path.name.endswith(_INDEXES):
                indexes.append(lambda stack, path=path: stack.enter_context(path.open("rb")))  # type: ignore[misc]
            elif path is place or RECORDS.search(path.name) or path.suffix == ".wacz":
                files = archive_files(path)
                self._files += files
                if any(file.inner for file in files):
                    with zipfile.ZipFile(path) as package:
                        names = [name for name in package.namelist() if name.endswith(_INDEXES)]
                    indexes += [ArchiveFile(path, (name,)).open for name in names]

    def _read_indexes(self, indexes: Sequence[Callable[[ExitStack], BinaryIO]]) -> set[int]:
        """Reads the indexes; returns the numbers of the files that they list."""
        numbers = {PurePosixPath(str(file)).name: number for number, file in enumerate(self._files)}
        listed: set[int] = set()
        if len(numbers) < len(self._files):  # several files with the same name: index lines are ambiguous
            return listed
        for opened in indexes:
            with ExitStack() as stack, suppress(OSError, EOFError, zipfile.BadZipFile):
                for line in _lines(opened(stack)):
                    number = numbers.get(line.name)
                    if number is not None:
                        listed.add(number)
                        digest = _bare(line.digest)
                        self._add(
                            line, digest, is_revisit=line.is_revisit, number=number, place=MemberPlace(line.offset)
                        )
        return listed

    def _add(self, entry: Capture | _Line, digest: str, *, is_revisit: bool, number: int, place: MemberPlace) -> None:
        with suppress(ValueError):  # URL without a host
            row = (
                capture_key(entry.url),
                entry.url,
                entry.taken,
                entry.status,
                digest,
                int(is_revisit),
                number,
                *place,
            )
            self._connection.execute(_INSERT, row)

    def _read(self, number: int, file: ArchiveFile) -> None:
        """Lists the captures of a file by scanning it."""
        with ArchiveReader(file, HEAD_BYTES) as reader:
            for record in reader:
                taken, url = seconds_of(record.fields.get("warc-date", "")), _target(record)
                is_answer = record.kind in ("response", "revisit") and PURPOSE.lower() not in record.fields
                if not is_answer or taken is None or not url.startswith(("http://", "https://")):
                    continue
                answer = http_answer(record.block)
                is_revisit = record.kind == "revisit"
                if answer is None and not is_revisit:
                    continue
                digest = _bare(record.fields.get("warc-payload-digest", ""))
                capture = Capture(url, taken, answer[0] if answer else 0, "")
                self._add(capture, digest, is_revisit=is_revisit, number=number, place=reader.place)
            if reader.damage:
                self.damages.append(reader.damage)


def _target(record: ArchiveRecord) -> str:
    """Canonical URL of a record, or empty."""
    with suppress(InvalidUrl):
        return canonical(record.fields.get("warc-target-uri", "").strip("<>"))
    return ""


def _bare(digest: str) -> str:
    """The digest without the name of the algorithm, which indexes omit."""
    return digest.rpartition(":")[2].upper()


def _lines(file: BinaryIO) -> Iterator[_Line]:
    """Reads an index: CDXJ or CDX, plain or gzip. Invalid lines are skipped."""
    buffered = io.BufferedReader(file) if isinstance(file, io.RawIOBase) else file
    start = buffered.read(2)
    buffered.seek(0)
    for line in gzip.GzipFile(fileobj=buffered) if start == b"\x1f\x8b" else buffered:
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            if (entry := _line(line.decode("utf-8", "replace").strip())) is not None:
                yield entry


def _line(line: str) -> _Line | None:
    """Parses an index line. Raises ValueError, KeyError, TypeError, AttributeError."""
    before, brace, rest = line.partition(" {")
    if brace:
        values = json.loads("{" + rest)
        words = before.split()
        url, mime, status, digest = values["url"], values.get("mime", ""), values.get("status", ""), values["digest"]
        offset, name, stamp = values["offset"], values["filename"], words[1]
    else:
        words = line.split()
        if len(words) not in _CDX_PLACES:
            return None
        _, stamp, url, mime, status, digest = words[:6]
        offset, name = (words[place] for place in _CDX_PLACES[len(words)])
    taken = datetime.strptime(stamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    number = int(status) if str(status).isdigit() else 0
    return _Line(
        canonical(url), taken, number, str(digest), mime == "warc/revisit", PurePosixPath(name).name, int(offset)
    )
