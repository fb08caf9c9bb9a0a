"""Writes WACZ 1.1.1: a zip file of WARC files, their index and the list of pages."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TextIO, cast

from periplus.model.collection import Exchange
from periplus.model.visit import Cut
from periplus.store.warc import IndexLines, WarcFiles, WarcStatistics, WarcTarget, draft_of, record_id, write_records
from periplus.values import frozen

# Source: https://specs.webrecorder.net/wacz/1.1.1/. Compressed files are stored without deflate, so that readers can
# fetch any part of them; the others are deflated.

LINES_OF_BLOCK = 300  # index lines per gzip member, as in cdxj-indexer
COPIED_BYTES = 1 << 16  # at a time
_TIMESTAMP_FIELD = 0x5455  # Info-ZIP extra field with seconds since the epoch: extrafld.txt


@frozen
class WaczNote:
    """Metadata of a WACZ file. created: seconds since the epoch, UTC; main_page: a URL."""

    title: str
    created: float
    main_page: str
    page_of: Callable[[Exchange], tuple[str, str]]  # returns title and text of a page, each may be empty


def write_wacz(archive: WarcTarget, exchanges: Iterable[Exchange], note: WaczNote) -> WarcStatistics:
    """Writes the exchanges in order as one WACZ file, which is renamed when it is complete.

    archive.path: of the WACZ file. Raises OSError; then the file does not exist.
    """
    draft = draft_of(archive.path)
    try:
        with zipfile.ZipFile(draft, "w", allowZip64=True) as package:
            written = _write_entries(_Package(package, note.created), archive, exchanges, note)
        draft.replace(archive.path)
    finally:
        draft.unlink(missing_ok=True)
    return replace(written, files=(archive.path,), size_bytes=archive.path.stat().st_size)


def _write_entries(
    package: _Package, archive: WarcTarget, exchanges: Iterable[Exchange], note: WaczNote
) -> WarcStatistics:
    inner = replace(archive, path=Path("data.warc.gz"))
    files = WarcFiles(inner, lambda path: package.entry(f"archive/{path.name}", zipfile.ZIP_STORED))
    with closing(IndexLines()) as lines, tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as pages:
        try:
            written = write_records(inner, _list_pages(exchanges, note, pages), files, lines)
        finally:
            files.end()  # an open entry would hide the original error
        _write_index(package, lines.sort())
        pages.seek(0)
        with package.entry("pages/pages.jsonl", zipfile.ZIP_DEFLATED) as out:
            head = {"format": "json-pages-1.0", "id": "pages", "title": "Pages", "hasText": True}
            out.write(json.dumps(head).encode() + b"\n")
            while text := pages.read(COPIED_BYTES):
                out.write(text.encode())
    package.end(note, archive.version)
    return written


def _list_pages(exchanges: Iterable[Exchange], note: WaczNote, out: TextIO) -> Iterator[Exchange]:
    """Yields the exchanges and writes those that are pages with bytes to pages.jsonl."""
    for exchange in exchanges:
        is_page = exchange.purpose == "page" and exchange.outcome == "fetched" and exchange.cut != Cut.NOT_WANTED
        if is_page and exchange.body is not None:
            title, text = note.page_of(exchange)
            identity = record_id("page", exchange.url, exchange.visit_id).removeprefix("<urn:uuid:").rstrip(">")
            line: dict[str, str | int] = {"id": identity, "url": exchange.url, "ts": _rfc3339(exchange.started)}
            line |= {"title": title, "text": text, "size": len(exchange.body)}
            out.write(json.dumps({name: value for name, value in line.items() if value != ""}) + "\n")
        yield exchange


def _write_index(package: _Package, lines: Iterator[str]) -> None:
    """Writes the lines in gzip members of LINES_OF_BLOCK, and the position of each, so that readers fetch only one."""
    name = "index.cdx.gz"
    places = ["!meta 0 " + json.dumps({"format": "cdxj-gzip-1.0", "filename": name}) + "\n"]
    offset = 0
    with package.entry(f"indexes/{name}", zipfile.ZIP_STORED) as out:
        while block := list(islice(lines, LINES_OF_BLOCK)):
            deflater = zlib.compressobj(wbits=31)
            member = deflater.compress("".join(block).encode()) + deflater.flush()
            out.write(member)
            place = {"offset": offset, "length": len(member), "digest": _sha256(member)}
            places.append(f"{block[0].partition(' {')[0]} {json.dumps(place)}\n")
            offset += len(member)
    with package.entry("indexes/index.idx", zipfile.ZIP_DEFLATED) as out:
        out.write("".join(places).encode())


class _Package:
    """The zip file, and the entries of its manifest."""

    def __init__(self, package: zipfile.ZipFile, created: float) -> None:
        self._package, self._created = package, created
        self._resources: list[dict[str, str | int]] = []

    def entry(self, path: str, compression: int) -> BinaryIO:
        """Opens a new entry for writing. Close it before the next."""
        info = zipfile.ZipInfo(path, time.gmtime(self._created)[:6])
        info.compress_type = compression
        # The size of an entry is unknown, so its local header has a field for 64-bit sizes; the central directory has
        # none. ReplayWeb.page 2.5 reads the local header only if the central directory has an extra field.
        info.extra = struct.pack("<HHBI", _TIMESTAMP_FIELD, 5, 1, int(self._created) & 0xFFFFFFFF)
        return cast(BinaryIO, _Entry(self._package.open(info, "w", force_zip64=True), path, self._resources))

    def end(self, note: WaczNote, version: str) -> None:
        """Writes the manifest and its digest."""
        manifest: dict[str, Any] = {
            "profile": "data-package",
            "wacz_version": "1.1.1",
            "title": note.title,
            "created": _rfc3339(note.created),
            "software": f"periplus {version}",
            "mainPageUrl": note.main_page,
            "resources": list(self._resources),
        }
        data = json.dumps(manifest, indent=2).encode()
        digest = {"path": "datapackage.json", "hash": _sha256(data)}
        for path, content in (("datapackage.json", data), ("datapackage-digest.json", json.dumps(digest).encode())):
            with self.entry(path, zipfile.ZIP_DEFLATED) as out:
                out.write(content)


class _Entry(io.RawIOBase):
    """An entry being written. When closed, its name, length and digest are added to the manifest."""

    def __init__(self, file: Any, path: str, resources: list[dict[str, str | int]]) -> None:
        self._file, self._path, self._resources = file, path, resources
        self._digest, self._length = hashlib.sha256(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(data)
        self._digest.update(data)
        self._length += len(data)
        return len(data)

    def close(self) -> None:
        if self.closed:
            return
        self._file.close()
        super().close()
        name, digest = PurePosixPath(self._path).name, f"sha256:{self._digest.hexdigest()}"
        self._resources.append({"name": name, "path": self._path, "hash": digest, "bytes": self._length})


def _sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
