"""How do records become files? One gzip member a record, a new file at a size, whole or not at all; and an index beside them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from isal import igzip

from periplus.model.archive import Exchange, RunNote
from periplus.store.warc.records import Capture, Record, conversion, records_of, warcinfo

FILE_BYTES = 1_000_000_000  # ISO 28500, annex C: files of about 1 GB
LEVEL = 2  # isal's usual one: 4 times as fast as zlib's level 6, and 8 % longer


@dataclass(frozen=True, slots=True)
class Archive:
    """What to write and where. path: of the first file, NAME.warc.gz; later ones are NAME-00002.warc.gz and so on."""

    path: Path
    runs: Mapping[int, RunNote]
    version: str  # of the program
    shared_bodies: frozenset[int]  # bodies that several pages have: only of these it is remembered where they stand
    file_bytes: int = FILE_BYTES  # 0: one file
    xml_of: Callable[[Exchange], tuple[bytes, str] | None] | None = None  # a page as XML, with the media type of that; None: no conversions


@dataclass(frozen=True, slots=True)
class Written:
    """What was written."""

    files: tuple[Path, ...]
    responses: int
    revisits: int
    failures: int
    conversions: int
    size_bytes: int


class _Files:
    """The files of one archive. They get their names when all of them are whole."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._stem = re.sub(r"\.warc(\.gz)?$", "", archive.path.name)
        self.paths: list[Path] = []
        self._file: BinaryIO | None = None
        self.offset = self.total = 0

    @property
    def is_full(self) -> bool:
        return self._file is None or (self._archive.file_bytes > 0 and self.offset >= self._archive.file_bytes)

    def begin(self) -> str:
        """The next file; returns its name."""
        self._end()
        number = len(self.paths) + 1
        name = self._archive.path.name if number == 1 else f"{self._stem}-{number:05}.warc.gz"
        self.paths.append(self._archive.path.with_name(name))
        self._file, self.offset = _draft(self.paths[-1]).open("wb"), 0
        return name

    def write(self, data: bytes) -> tuple[int, int]:
        """(offset, length) of the member."""
        assert self._file is not None
        member = igzip.compress(data, LEVEL, mtime=0)
        at = self.offset
        self._file.write(member)
        self.offset += len(member)
        self.total += len(member)
        return at, len(member)

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def name_all(self) -> None:
        self._end()
        for path in self.paths:
            _draft(path).replace(path)

    def drop_drafts(self) -> None:
        self._end()
        for path in self.paths:
            _draft(path).unlink(missing_ok=True)


def _draft(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def write_archive(archive: Archive, exchanges: Iterable[Exchange], index: Path | None = None) -> Written:
    """Writes the exchanges, in their order. index: a CDXJ file beside them. Raises OSError; then no file has its name."""
    with ExitStack() as stack:
        files = _Files(archive)
        stack.callback(files.drop_drafts)
        lines = stack.enter_context(closing(_Index())) if index else None
        counts = _write_all(archive, exchanges, files, lines)
        files.name_all()
        if lines and index:
            with index.open("w", encoding="utf-8", newline="\n") as out:
                out.writelines(lines.sorted())
    return Written(tuple(files.paths), *counts, files.total)


def _write_all(archive: Archive, exchanges: Iterable[Exchange], files: _Files, lines: _Index | None) -> tuple[int, int, int, int]:
    captures: dict[int, Capture] = {}
    responses = revisits = failures = conversions = run_id = 0
    info_id = file_name = ""
    for exchange in exchanges:
        if files.is_full or exchange.run_id != run_id:
            file_name = files.begin() if files.is_full else file_name
            info = warcinfo(archive.runs[exchange.run_id], archive.version, file_name)
            run_id, info_id = exchange.run_id, info.record_id
            files.write(info.data)
        records, capture = records_of(exchange, archive.runs[run_id], info_id, captures.get(exchange.body_id))
        if capture and exchange.body_id in archive.shared_bodies:
            captures[exchange.body_id] = capture
        if archive.xml_of and exchange.body_id and not records[0].is_revisit and (xml := archive.xml_of(exchange)):
            records.append(conversion(exchange, info_id, records[0].record_id, xml))
            conversions += 1
        for record in records:
            place = files.write(record.data)
            if lines and record.payload_digest:
                lines.add(record, file_name, *place)
        failures += exchange.outcome == "failed"
        revisits += records[0].is_revisit
        responses += exchange.outcome != "failed" and not records[0].is_revisit
    if not files.paths:
        files.begin()
    return responses, revisits, failures, conversions


class _Index:
    """Lines of a CDXJ index, sorted on disk: there may be millions. Field names as pywb's."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("")
        self._connection.execute("CREATE TABLE line (text TEXT NOT NULL)")

    def add(self, record: Record, file_name: str, offset: int, length: int) -> None:
        values = {"url": record.url, "mime": "warc/revisit" if record.is_revisit else record.media_type or "unk", "status": str(record.status)}
        values |= {"digest": record.payload_digest, "length": str(length), "offset": str(offset), "filename": file_name}
        stamp = re.sub(r"\D", "", record.date)[:14]
        self._connection.execute("INSERT INTO line VALUES (?)", (f"{url_key(record.url)} {stamp} {json.dumps(values)}\n",))

    def sorted(self) -> Iterator[str]:
        return (line for (line,) in self._connection.execute("SELECT text FROM line ORDER BY text"))

    def close(self) -> None:
        self._connection.close()


def url_key(url: str) -> str:
    """The URL as CDXJ sorts it: `org,example)/path?a=1&b=2`. Lower case, www. and the scheme's port dropped, the query sorted."""
    parts = urlsplit(url.lower())
    host = re.sub(r"^www\d*\.", "", parts.hostname or "")
    place = host if ":" in host or host.replace(".", "").isdigit() else ",".join(reversed(host.split(".")))
    port = f":{parts.port}" if parts.port and parts.port != {"http": 80, "https": 443}.get(parts.scheme) else ""
    path = parts.path.rstrip("/") or "/"
    query = "?" + "&".join(sorted(parts.query.split("&"))) if parts.query else ""
    return f"{place}{port}){path}{query}"
