"""Web archives in one zip file (WACZ 1.1.1): WARC files with their index and the list of their pages."""

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
from periplus.store.warc import IndexLines, WarcFiles, WarcTarget, Written, draft_of, record_id, write_records
from periplus.values import frozen

# Source: https://specs.webrecorder.net/wacz/1.1.1/. Files that are compressed already are stored, so that a reader can
# fetch any part of them; the others are deflated.

LINES_OF_BLOCK = 300  # lines of the index in one gzip member: as cdxj-indexer has it
COPIED_BYTES = 1 << 16  # at a time
_TIMESTAMP_FIELD = 0x5455  # seconds since the epoch, of Info-ZIP: extrafld.txt


@frozen
class WaczNote:
    """What a WACZ file says of itself. created: seconds since the epoch, UTC; main_page: its URL."""

    title: str
    created: float
    main_page: str
    page_of: Callable[[Exchange], tuple[str, str]]  # title and text of a page; empty: none


def write_wacz(archive: WarcTarget, exchanges: Iterable[Exchange], note: WaczNote) -> Written:
    """Writes the exchanges in their order as one WACZ file, which gets its name once it is whole.

    archive.path: of the WACZ. Raises OSError; then no file has its name.
    """
    draft = draft_of(archive.path)
    try:
        with zipfile.ZipFile(draft, "w", allowZip64=True) as package:
            written = _write_entries(_Package(package, note.created), archive, exchanges, note)
        draft.replace(archive.path)
    finally:
        draft.unlink(missing_ok=True)
    return replace(written, files=(archive.path,), size_bytes=archive.path.stat().st_size)


def _write_entries(package: _Package, archive: WarcTarget, exchanges: Iterable[Exchange], note: WaczNote) -> Written:
    inner = replace(archive, path=Path("data.warc.gz"))
    files = WarcFiles(inner, lambda path: package.entry(f"archive/{path.name}", zipfile.ZIP_STORED))
    with closing(IndexLines()) as lines, tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as pages:
        try:
            written = write_records(inner, _listed(exchanges, note, pages), files, lines)
        finally:
            files.end()  # an entry left open would hide the error that left it so
        _write_index(package, lines.sorted())
        pages.seek(0)
        with package.entry("pages/pages.jsonl", zipfile.ZIP_DEFLATED) as out:
            head = {"format": "json-pages-1.0", "id": "pages", "title": "Pages", "hasText": True}
            out.write(json.dumps(head).encode() + b"\n")
            while text := pages.read(COPIED_BYTES):
                out.write(text.encode())
    package.end(note, archive.version)
    return written


def _listed(exchanges: Iterable[Exchange], note: WaczNote, out: TextIO) -> Iterator[Exchange]:
    """The exchanges; what of them is a page with its bytes is written as lines of pages.jsonl."""
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
    """The lines as gzip members of LINES_OF_BLOCK, and beside them where each block stands: a reader fetches one."""
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
    """The zip file, and what its manifest says of each entry."""

    def __init__(self, package: zipfile.ZipFile, created: float) -> None:
        self._package, self._created = package, created
        self._resources: list[dict[str, str | int]] = []

    def entry(self, path: str, compression: int) -> BinaryIO:
        """A new entry to write to; it is closed before the next is begun."""
        info = zipfile.ZipInfo(path, time.gmtime(self._created)[:6])
        info.compress_type = compression
        # How long an entry will be is not known, so its own head has a field for lengths of 64 bits; the list at the
        # end of the file has not. ReplayWeb.page 2.5 looks into an entry's head only where the list has a field at all.
        info.extra = struct.pack("<HHBI", _TIMESTAMP_FIELD, 5, 1, int(self._created) & 0xFFFFFFFF)
        return cast(BinaryIO, _Entry(self._package.open(info, "w", force_zip64=True), path, self._resources))

    def end(self, note: WaczNote, version: str) -> None:
        """Writes the manifest, and its digest."""
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
    """An entry of the zip file that is written to; once closed its name, length and digest stand in the manifest."""

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
