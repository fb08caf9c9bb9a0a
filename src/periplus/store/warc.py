"""Writes web archives: WARC 1.1 (ISO 28500:2017); reads the HTTP messages in their records."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import uuid
from base64 import b32encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from isal import igzip

from periplus.model.collection import Exchange, RunNote
from periplus.model.visit import Cut, Headers
from periplus.values import frozen

# Bodies are stored without content and transfer codings. The fields about codings and length are renamed to
# X-Crawler-Content-Encoding, X-Crawler-Transfer-Encoding and X-Crawler-Content-Length; Content-Length is the length of
# the stored body. Only observed data is written, except that requests are rebuilt from the run's settings, which the
# warcinfo record states. Source: ISO 28500:2017.

SOFTWARE = "periplus"
CRAWLER = "x-crawler-"
CHANGED_FIELDS = ("content-encoding", "transfer-encoding", "content-length")
REVISIT = "http://netpreserve.org/warc/1.1/revisit/"
RESPONSE_TYPE = "application/http;msgtype=response"
PURPOSE = "Periplus-Purpose"  # field of records that are not pages: robots, sitemap, ...
_TRUNCATION_NAMES = {
    Cut.SHORT: "disconnect",
    Cut.TIME_LIMIT: "time",
    Cut.BODY_LIMIT: "length",
    Cut.INFLATED_LIMIT: "length",
    Cut.RATIO_LIMIT: "length",
    Cut.BAD_ENCODING: "unspecified",
    Cut.NOT_WANTED: "unspecified",
}
Fields = list[tuple[str, str]]
_STATUS_LINE = re.compile(r"HTTP/\S*\s+(?P<code>[0-9]{3})(?:\s|$)")
_UNESCAPED_CHARACTERS = (
    "".join(map(chr, range(0x21, 0x7F))).replace("#", "").replace("%", "")
)  # characters that are not escaped
# Session ids in ASP.NET paths and in queries, which the Wayback Machine removes from its keys.
_PATH_SESSION = re.compile(r"/\((?:[0-9a-z]{24}|(?:[a-z]\([0-9a-z]{24}\))+)\)(?=/[^?]+\.aspx)")
_QUERY_SESSION = re.compile(
    r"(?:^|(?<=&))(?:(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]+&cftoken=[^&]+)"
    r"(?:&|$)"
)
FILE_BYTES = 1_000_000_000  # ISO 28500, annex C: files of about 1 GB
LEVEL = 2  # isal's default: 4 times as fast as zlib's level 6, and 8 % larger


@frozen
class FirstRecord:
    """First record with certain bytes, to which later records refer."""

    record_id: str
    url: str
    date: str
    payload_digest: str


@frozen
class WarcRecord:
    """A serialised record with its index fields. payload_digest: empty if it cannot be replayed."""

    record_id: str
    url: str
    date: str
    data: bytes
    media_type: str = ""
    status: int = 0
    payload_digest: str = ""
    is_revisit: bool = False


def sha1(data: bytes) -> str:
    return "sha1:" + b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def date_of(seconds: float) -> str:
    """WARC-Date to the microsecond, which version 1.1 allows."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def record_id(*parts: object) -> str:
    """Deterministic id, so that the same collection produces the same archive."""
    return f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, ' '.join(map(str, parts)))}>"


def warcinfo(note: RunNote, version: str, file_name: str) -> WarcRecord:
    """The header record of a file, repeated before the records of another run."""
    lines = {
        "software": f"{SOFTWARE}/{version}",
        "format": "WARC File Format 1.1",
        "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        "robots": "obey" if note.obeys_robots else "ignore",
        "http-header-user-agent": note.user_agent,
        "description": (
            "request records are rebuilt from the run's settings; bodies are without content and transfer codings"
        ),
        "periplus-starts": " ".join(note.starts),
        "periplus-settings": note.settings,
    }
    block = "".join(f"{name}: {_line(value)}\r\n" for name, value in lines.items()).encode()
    identity, date = record_id("warcinfo", file_name, note.run_id, note.began), date_of(note.began)
    fields = [("WARC-Filename", file_name), ("Content-Type", "application/warc-fields")]
    return WarcRecord(identity, "", date, _record("warcinfo", identity, date, fields, block))


def records_of(
    exchange: Exchange, run: RunNote, info_id: str, earlier: FirstRecord | None
) -> tuple[list[WarcRecord], FirstRecord | None]:
    """Records of one visit, and the FirstRecord if it contains a complete body.

    earlier: record with the same bytes.
    """
    if exchange.outcome == "failed":
        return [_failure(exchange, info_id)], None
    repeats = earlier is not None and exchange.body is not None and exchange.purpose == "page"
    answered, capture = answer(exchange, info_id, earlier if repeats else None)
    return [answered, _request(exchange, run, info_id, answered.record_id)], capture


def conversion(exchange: Exchange, info_id: str, answer_id: str, xml: tuple[bytes, str]) -> WarcRecord:
    """A conversion record: canonical XML of a page, referring to its response record.

    xml: (document, media type).
    """
    data, media_type = xml
    fields = [("WARC-Refers-To", answer_id), ("Content-Type", media_type)]
    return _of_visit("conversion", exchange, info_id, fields, data, media_type)


def answer(exchange: Exchange, info_id: str, capture: FirstRecord | None) -> tuple[WarcRecord, FirstRecord | None]:
    """Record of a visit with a response, and the FirstRecord if it contains a complete body.

    capture: record with the same bytes.
    """
    payload = exchange.body or b""
    fields: Fields = []
    digest = capture.payload_digest if capture else sha1(payload)
    kind, block = "response", _http_head(exchange, len(payload))
    if capture is not None:
        kind = "revisit"
        fields += [("WARC-Profile", REVISIT + "identical-payload-digest"), ("WARC-Refers-To", capture.record_id)]
        fields += [("WARC-Refers-To-Target-URI", capture.url), ("WARC-Refers-To-Date", capture.date)]
    elif exchange.outcome == "unchanged":
        kind = "revisit"
        fields += [("WARC-Profile", REVISIT + "server-not-modified"), ("WARC-Refers-To-Target-URI", exchange.url)]
    else:
        block += payload
    if truncated := _truncation(exchange):
        fields.append(("WARC-Truncated", truncated))
    fields += [("WARC-Payload-Digest", digest), ("Content-Type", RESPONSE_TYPE)]
    media_type = exchange.headers.get("content-type").partition(";")[0].strip().lower()
    # pages without bytes are not indexed, since they cannot be replayed
    is_shown = exchange.outcome == "redirected" or exchange.body is not None or not 200 <= exchange.status < 300
    indexed = digest if is_shown and exchange.purpose == "page" and exchange.outcome != "unchanged" else ""
    record = replace(
        _of_visit(kind, exchange, info_id, fields, block, media_type),
        status=exchange.status,
        payload_digest=indexed,
        is_revisit=kind == "revisit",
    )
    if exchange.body is None or kind == "revisit":
        return record, None
    return record, FirstRecord(record.record_id, record.url, record.date, digest)


def _head_fields(exchange: Exchange, info_id: str) -> Fields:
    fields = [("WARC-Target-URI", exchange.url), ("WARC-Warcinfo-ID", info_id)]
    if exchange.address:
        fields.append(("WARC-IP-Address", exchange.address))
    if exchange.purpose != "page":
        fields.append((PURPOSE, exchange.purpose))
    return fields


def _truncation(exchange: Exchange) -> str:
    """Why the body is truncated, or empty."""
    if exchange.cut and not (exchange.cut == Cut.NOT_WANTED and exchange.body):  # a stored part is complete
        return _TRUNCATION_NAMES.get(Cut(exchange.cut), "unspecified")
    return (
        "unspecified"
        if exchange.body is None and exchange.outcome != "unchanged" and exchange.headers.get("content-length") != "0"
        else ""
    )


def _http_head(exchange: Exchange, length: int) -> bytes:
    """Status line and headers. HTTP/2 and HTTP/3 responses are written as HTTP/1.1, as WARC requires."""
    line = exchange.headers.status_line
    if not line.startswith("HTTP/1."):
        line = f"HTTP/1.1 {exchange.status} "
    fields = [(CRAWLER + name if name in CHANGED_FIELDS else name, value) for name, value in exchange.headers.fields]
    lines = [line, *(f"{name}: {_line(value)}" for name, value in fields), f"content-length: {length}", "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace")


def _request(exchange: Exchange, run: RunNote, info_id: str, answer_id: str) -> WarcRecord:
    parts = urlsplit(exchange.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    method = "HEAD" if exchange.purpose == "head" else "GET"
    block = f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: {_line(run.user_agent)}\r\n\r\n".encode(
        "latin-1", "replace"
    )
    fields = [("WARC-Concurrent-To", answer_id), ("Content-Type", "application/http;msgtype=request")]
    return _of_visit("request", exchange, info_id, fields, block)


def _failure(exchange: Exchange, info_id: str) -> WarcRecord:
    """Metadata record with the error of a failed visit."""
    block = (
        f"outcome: failed\r\ndetail: {_line(exchange.detail)}\r\nfetchTimeMs: {exchange.took_s * 1000:.0f}\r\n".encode()
    )
    return _of_visit("metadata", exchange, info_id, [("Content-Type", "application/warc-fields")], block)


def _of_visit(
    kind: str, exchange: Exchange, info_id: str, fields: Fields, block: bytes, media_type: str = ""
) -> WarcRecord:
    """A record of a visit that is not indexed."""
    identity, date = record_id(kind, exchange.url, repr(exchange.started), exchange.visit_id), date_of(exchange.started)
    data = _record(kind, identity, date, [*_head_fields(exchange, info_id), *fields], block)
    return WarcRecord(identity, exchange.url, date, data, media_type)


def _record(kind: str, identity: str, date: str, fields: Fields, block: bytes) -> bytes:
    every = [("WARC-Type", kind), ("WARC-Record-ID", identity), ("WARC-Date", date), *fields]
    every += [("WARC-Block-Digest", sha1(block)), ("Content-Length", str(len(block)))]
    head = "WARC/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in every) + "\r\n"
    return head.encode() + block + b"\r\n\r\n"


def _line(value: str) -> str:
    """The value without line breaks."""
    return value.replace("\r", " ").replace("\n", " ")


def original(headers: Headers) -> Headers:
    """Restores the headers as sent by the server."""
    if not any(name.startswith(CRAWLER) for name, _ in headers.fields):
        return headers
    fields = ((name.removeprefix(CRAWLER), value) for name, value in headers.fields if name != "content-length")
    return Headers(tuple(fields), headers.status_line)


@frozen
class WarcTarget:
    """Configuration of an archive. path: of the first file, NAME.warc.gz; the next is NAME-00002.warc.gz."""

    path: Path
    runs: Mapping[int, RunNote]
    version: str  # of the program
    shared_bodies: frozenset[int]  # ids of bodies shared by several pages; only their positions are remembered
    file_bytes: int = FILE_BYTES  # 0: one file
    # returns (XML, media type) of a page; None: no conversion records
    xml_of: Callable[[Exchange], tuple[bytes, str] | None] | None = None


@frozen
class WarcStatistics:
    """Statistics of a written archive."""

    files: tuple[Path, ...]
    responses: int
    revisits: int
    failures: int
    conversions: int
    size_bytes: int


class WarcFiles:
    """The files of one archive. opened: creates and opens a file."""

    def __init__(self, archive: WarcTarget, opened: Callable[[Path], BinaryIO]) -> None:
        self._archive, self._opened = archive, opened
        self._stem = re.sub(r"\.warc(\.gz)?$", "", archive.path.name)
        self.paths: list[Path] = []
        self._file: BinaryIO | None = None
        self.offset = self.total = 0

    @property
    def is_full(self) -> bool:
        return self._file is None or (self._archive.file_bytes > 0 and self.offset >= self._archive.file_bytes)

    def begin(self) -> str:
        """Begins the next file; returns its name."""
        self.end()
        number = len(self.paths) + 1
        name = self._archive.path.name if number == 1 else f"{self._stem}-{number:05}.warc.gz"
        self.paths.append(self._archive.path.with_name(name))
        self._file, self.offset = self._opened(self.paths[-1]), 0
        return name

    def write(self, data: bytes) -> tuple[int, int]:
        """Writes a gzip member; returns (offset, length)."""
        assert self._file is not None
        member = igzip.compress(data, LEVEL, mtime=0)
        at = self.offset
        self._file.write(member)
        self.offset += len(member)
        self.total += len(member)
        return at, len(member)

    def end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def draft_of(path: Path) -> Path:
    """Temporary path of a file until it is complete."""
    return path.with_name(path.name + ".part")


def write_archive(archive: WarcTarget, exchanges: Iterable[Exchange], index: Path | None = None) -> WarcStatistics:
    """Writes the exchanges in order.

    index: path of a CDXJ file. Raises OSError; then no file has its final name.
    """
    files = WarcFiles(archive, lambda path: draft_of(path).open("wb"))
    with closing(IndexLines()) as lines:
        try:
            written = write_records(archive, exchanges, files, lines if index else None)
            for path in files.paths:
                draft_of(path).replace(path)
        finally:
            files.end()
            for path in files.paths:
                draft_of(path).unlink(missing_ok=True)
        if index:
            with index.open("w", encoding="utf-8", newline="\n") as out:
                out.writelines(lines.sort())
    return written


def write_records(
    archive: WarcTarget, exchanges: Iterable[Exchange], files: WarcFiles, lines: IndexLines | None
) -> WarcStatistics:
    """Writes the records of the exchanges and closes the last file. lines: receives the index."""
    captures: dict[int, FirstRecord] = {}
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
                lines.add(_line_of(record, file_name, *place))
        failures += exchange.outcome == "failed"
        revisits += records[0].is_revisit
        responses += exchange.outcome != "failed" and not records[0].is_revisit
    if not files.paths:
        files.begin()
    files.end()
    return WarcStatistics(tuple(files.paths), responses, revisits, failures, conversions, files.total)


def _line_of(record: WarcRecord, file_name: str, offset: int, length: int) -> str:
    """CDXJ index line of a record, with the field names of pywb."""
    values = {"mime": "warc/revisit" if record.is_revisit else record.media_type or "unk"}
    values |= {"status": str(record.status), "digest": record.payload_digest}
    values |= {"length": str(length), "offset": str(offset), "filename": file_name}
    return cdxj_line(record.url, re.sub(r"\D", "", record.date)[:14], values)


def cdxj_line(url: str, stamp: str, values: dict[str, str]) -> str:
    """A line of an index. stamp: 14 digits, UTC; values: with the field names of pywb."""
    return f"{capture_key(url)} {stamp} {json.dumps({'url': url} | values)}\n"


class IndexLines:
    """Index lines, sorted on disk since there may be millions."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("")
        self._connection.execute("CREATE TABLE line (text TEXT NOT NULL)")

    def add(self, line: str) -> None:
        self._connection.execute("INSERT INTO line VALUES (?)", (line,))

    def sort(self) -> Iterator[str]:
        return (line for (line,) in self._connection.execute("SELECT text FROM line ORDER BY text"))

    def close(self) -> None:
        self._connection.close()


def http_answer(block: bytes) -> tuple[int, Headers, bytes] | None:
    """(status, headers, body without chunks) of a response block; None if it is not HTTP. Never raises."""
    for mark in (b"\r\n\r\n", b"\n\n"):
        head, end, body = block.partition(mark)
        if end:
            break
    else:
        head, body = block, b""
    line, _, rest = head.decode("latin-1").partition("\n")
    status_line = _STATUS_LINE.match(line)
    if status_line is None:
        return None
    fields = [
        (name.strip().lower(), value.strip())
        for name, colon, value in (item.partition(":") for item in rest.split("\n"))
        if colon
    ]
    headers = Headers(tuple(fields), line.strip())
    if "chunked" in headers.get("transfer-encoding").lower():
        body = decode_chunks(body)
    return int(status_line["code"]), headers, body


def decode_chunks(body: bytes) -> bytes:
    """Decodes a chunked body (RFC 9112, 7.1). A body that is not chunked is returned unchanged, since many archives
    store chunked responses decoded.
    """
    parts: list[bytes] = []
    place = 0
    while place < len(body):
        end = body.find(b"\r\n", place, place + 1024)
        size = body[place:end].split(b";")[0].strip() if end >= 0 else b""
        if not size or len(size) > 15 or any(sign not in b"0123456789abcdefABCDEF" for sign in size):
            return b"".join(parts) if parts else body
        length = int(size, 16)
        if not length:
            break
        parts.append(body[end + 2 : end + 2 + length])
        place = end + 2 + length + 2
    return b"".join(parts)


def capture_key(url: str) -> str:
    """The URL's sort key (SURT) in CDXJ: `org,example)/path?a=1&b=2`.

    In lower case and escaped again, without www., session ids, scheme and default port, with a sorted query: equal to
    the keys of the Wayback Machine, pywb and cdxj-indexer. Never raises for canonical http and https URLs.
    """
    parts = urlsplit(url)
    host = re.sub(r"^www\d*\.", "", (parts.hostname or "").rstrip("."))
    place = host if ":" in host else ",".join(reversed(host.split(".")))
    port = f":{parts.port}" if parts.port and parts.port != {"http": 80, "https": 443}.get(parts.scheme) else ""
    path = _PATH_SESSION.sub("", _resolve_dots(_escape(parts.path))).rstrip("/") or "/"
    query = _QUERY_SESSION.sub("", _escape(parts.query))
    return f"{place}{port}){path}{'?' + '&'.join(sorted(query.split('&'))) if query else ''}"


def _escape(text: str) -> str:
    """Unescapes until nothing changes, then escapes once, in lower case."""
    data = text.encode("utf-8", "replace")
    while (bare := unquote_to_bytes(data)) != data:
        data = bare
    return quote_from_bytes(data, _UNESCAPED_CHARACTERS).lower()


def _resolve_dots(path: str) -> str:
    """A path without dot segments and double slashes."""
    places: list[str] = []
    for place in path.split("/"):
        if place == ".." and places:
            places.pop()
        elif place not in ("", ".", ".."):
            places.append(place)
    return "/" + "/".join(places)
