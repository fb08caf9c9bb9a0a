"""How is a visit written in an archive? Records of WARC 1.1 as bytes: pure.

Bodies are kept without content and transfer codings. So the fields that spoke of these stand under X-Crawler-Content-Encoding,
X-Crawler-Transfer-Encoding and X-Crawler-Content-Length, and Content-Length says how long the body is here. Nothing is written that
was not observed, with one exception, which the warcinfo record names: requests are rebuilt from the run's settings.
Source: ISO 28500:2017.
"""

from __future__ import annotations

import hashlib
import uuid
from base64 import b32encode
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from periplus.model.archive import Exchange, RunNote
from periplus.model.visit import Cut, Headers

SOFTWARE = "periplus"
CRAWLER = "x-crawler-"
CHANGED = ("content-encoding", "transfer-encoding", "content-length")
REVISIT = "http://netpreserve.org/warc/1.1/revisit/"
RESPONSE_TYPE = "application/http;msgtype=response"
PURPOSE = "Periplus-Purpose"  # field of records of what is no page: robots, sitemap, ...
_TRUNCATED = {
    Cut.SHORT: "disconnect",
    Cut.TIME_LIMIT: "time",
    Cut.BODY_LIMIT: "length",
    Cut.INFLATED_LIMIT: "length",
    Cut.RATIO_LIMIT: "length",
    Cut.BAD_ENCODING: "unspecified",
    Cut.NOT_WANTED: "unspecified",
}
Fields = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Capture:
    """Where bytes were first written, so that a later record need not repeat them."""

    record_id: str
    url: str
    date: str
    payload_digest: str


@dataclass(frozen=True, slots=True)
class Record:
    """One record as bytes, with what an index says of it. payload_digest: empty where nothing is to be replayed."""

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
    """The same for the same parts, so that the same collection makes the same archive."""
    return f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, ' '.join(map(str, parts)))}>"


def warcinfo(note: RunNote, version: str, file_name: str) -> Record:
    """What stands at the head of a file, and again where another run's records begin."""
    lines = {
        "software": f"{SOFTWARE}/{version}",
        "format": "WARC File Format 1.1",
        "conformsTo": "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        "robots": "obey" if note.obeys_robots else "ignore",
        "http-header-user-agent": note.user_agent,
        "description": "request records are rebuilt from the run's settings; bodies stand without content and transfer codings",
        "periplus-starts": " ".join(note.starts),
        "periplus-settings": note.settings,
    }
    block = "".join(f"{name}: {_line(value)}\r\n" for name, value in lines.items()).encode()
    identity, date = record_id("warcinfo", file_name, note.run_id, note.began), date_of(note.began)
    fields = [("WARC-Filename", file_name), ("Content-Type", "application/warc-fields")]
    return Record(identity, "", date, _record("warcinfo", identity, date, fields, block))


def records_of(exchange: Exchange, run: RunNote, info_id: str, known: Capture | None) -> tuple[list[Record], Capture | None]:
    """The records of one visit; and, if it wrote a body in full, where. known: where the same bytes were written before."""
    if exchange.outcome == "failed":
        return [_failure(exchange, info_id)], None
    repeats = known is not None and exchange.body is not None and exchange.purpose == "page"
    answered, capture = answer(exchange, info_id, known if repeats else None)
    return [answered, _request(exchange, run, info_id, answered.record_id)], capture


def conversion(exchange: Exchange, info_id: str, answer_id: str, xml: tuple[bytes, str]) -> Record:
    """A page as canonical XML beside the record of the answer that it was made of. xml: the document and its media type."""
    data, media_type = xml
    identity, date = record_id("conversion", exchange.url, repr(exchange.started), exchange.visit_id), date_of(exchange.started)
    fields = [*_head_fields(exchange, info_id), ("WARC-Refers-To", answer_id), ("Content-Type", media_type)]
    return Record(identity, exchange.url, date, _record("conversion", identity, date, fields, data), media_type)


def answer(exchange: Exchange, info_id: str, known: Capture | None) -> tuple[Record, Capture | None]:
    """The record of a visit that was answered; and, if it wrote a body in full, where. known: where the same bytes were written before."""
    payload = exchange.body or b""
    fields, digest = _head_fields(exchange, info_id), known.payload_digest if known else sha1(payload)
    kind, block = "response", _http_head(exchange, len(payload))
    if known is not None:
        kind = "revisit"
        fields += [("WARC-Profile", REVISIT + "identical-payload-digest"), ("WARC-Refers-To", known.record_id)]
        fields += [("WARC-Refers-To-Target-URI", known.url), ("WARC-Refers-To-Date", known.date)]
    elif exchange.outcome == "unchanged":
        kind = "revisit"
        fields += [("WARC-Profile", REVISIT + "server-not-modified"), ("WARC-Refers-To-Target-URI", exchange.url)]
    else:
        block += payload
    if truncated := _truncated(exchange):
        fields.append(("WARC-Truncated", truncated))
    fields += [("WARC-Payload-Digest", digest), ("Content-Type", RESPONSE_TYPE)]
    identity, date = record_id(kind, exchange.url, repr(exchange.started), exchange.visit_id), date_of(exchange.started)
    data = _record(kind, identity, date, fields, block)
    media_type = exchange.headers.get("content-type").partition(";")[0].strip().lower()
    indexed = digest if exchange.purpose == "page" and exchange.outcome != "unchanged" else ""
    found = Record(identity, exchange.url, date, data, media_type, exchange.status, indexed, kind == "revisit")
    return found, Capture(identity, exchange.url, date, digest) if exchange.body is not None and kind == "response" else None


def _head_fields(exchange: Exchange, info_id: str) -> Fields:
    fields = [("WARC-Target-URI", exchange.url), ("WARC-Warcinfo-ID", info_id)]
    if exchange.address:
        fields.append(("WARC-IP-Address", exchange.address))
    if exchange.purpose != "page":
        fields.append((PURPOSE, exchange.purpose))
    return fields


def _truncated(exchange: Exchange) -> str:
    """Why the body is not whole here; empty when it is, as far as is known."""
    if exchange.cut:
        return _TRUNCATED.get(Cut(exchange.cut), "unspecified")
    return "unspecified" if exchange.body is None and exchange.outcome != "unchanged" and exchange.headers.get("content-length") != "0" else ""


def _http_head(exchange: Exchange, length: int) -> bytes:
    """Status line and fields. An answer over HTTP/2 or 3 is written as HTTP/1.1, the only form that archives know."""
    line = exchange.headers.status_line
    if not line.startswith("HTTP/1."):
        line = f"HTTP/1.1 {exchange.status} "
    fields = [(CRAWLER + name if name in CHANGED else name, value) for name, value in exchange.headers.fields]
    lines = [line, *(f"{name}: {_line(value)}" for name, value in fields), f"content-length: {length}", "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace")


def _request(exchange: Exchange, run: RunNote, info_id: str, answer_id: str) -> Record:
    parts = urlsplit(exchange.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    method = "HEAD" if exchange.purpose == "head" else "GET"
    block = f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: {_line(run.user_agent)}\r\n\r\n".encode("latin-1", "replace")
    identity, date = record_id("request", exchange.url, repr(exchange.started), exchange.visit_id), date_of(exchange.started)
    fields = [*_head_fields(exchange, info_id), ("WARC-Concurrent-To", answer_id), ("Content-Type", "application/http;msgtype=request")]
    return Record(identity, exchange.url, date, _record("request", identity, date, fields, block))


def _failure(exchange: Exchange, info_id: str) -> Record:
    """A visit without an answer: a metadata record that says why."""
    block = f"outcome: failed\r\ndetail: {_line(exchange.detail)}\r\nfetchTimeMs: {exchange.took_s * 1000:.0f}\r\n".encode()
    identity, date = record_id("metadata", exchange.url, repr(exchange.started), exchange.visit_id), date_of(exchange.started)
    fields = [*_head_fields(exchange, info_id), ("Content-Type", "application/warc-fields")]
    return Record(identity, exchange.url, date, _record("metadata", identity, date, fields, block))


def _record(kind: str, identity: str, date: str, fields: Fields, block: bytes) -> bytes:
    every = [("WARC-Type", kind), ("WARC-Record-ID", identity), ("WARC-Date", date), *fields]
    every += [("WARC-Block-Digest", sha1(block)), ("Content-Length", str(len(block)))]
    head = "WARC/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in every) + "\r\n"
    return head.encode() + block + b"\r\n\r\n"


def _line(value: str) -> str:
    """A value that cannot end its line."""
    return value.replace("\r", " ").replace("\n", " ")


def original(headers: Headers) -> Headers:
    """The fields as the server sent them, of an answer that was written here."""
    if not any(name.startswith(CRAWLER) for name, _ in headers.fields):
        return headers
    kept = ((name.removeprefix(CRAWLER), value) for name, value in headers.fields if name != "content-length")
    return Headers(tuple(kept), headers.status_line)
