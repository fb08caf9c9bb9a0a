"""Web archives for tests: WARC files of warcio, and ARC and WACZ files of our own."""

import io
import json
import zipfile

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

HTML = [("Content-Type", "text/html")]
IDENTICAL = "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"


def answer(url, body="", date="2020-01-01", *, kind="response", status="200 OK", head=(), **fields):
    return url, kind, status, [*HTML, *head], body.encode(), f"{date}T00:00:00Z", fields


def warc(*answers):
    """A WARC file of these `answer` values, written by warcio. fields: WARC header fields, with `_` for `-`."""
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=True, warc_version="1.0")
    for url, kind, status, head, body, date, fields in answers:
        http = StatusAndHeaders(status, head, protocol="HTTP/1.1") if status else None
        named = {"WARC-Date": date} | {name.replace("_", "-"): value for name, value in fields.items()}
        writer.write_record(
            writer.create_warc_record(
                url, kind, payload=io.BytesIO(body), length=len(body), http_headers=http, warc_headers_dict=named
            )
        )
    return out.getvalue()


def arc(*entries):
    """The parts of an ARC 1.0 file. entries: (URL, body)."""
    note = b"1 0 Made by hand\nURL IP-address Archive-date Content-type Archive-length\n"
    parts = [b"filedesc://x.arc 0.0.0.0 20010203040506 text/plain %d\n%s\n" % (len(note), note)]
    for url, body in entries:
        data = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + body.encode()
        parts.append(b"%s 192.0.2.7 20010203040506 text/html %d\n%s\n" % (url.encode(), len(data), data))
    return parts


def wacz(data, main="", name="archive/data.warc.gz"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as package:
        package.writestr(name, data)
        package.writestr("datapackage.json", json.dumps({"mainPageURL": main} if main else {}))
        pages = [
            '{"format": "json-pages-1.0", "id": "pages"}',
            '{"url": "http://e.org/", "ts": "2020-01-01T00:00:00Z"}',
        ]
        package.writestr("pages/pages.jsonl", "\n".join(pages))
    return out.getvalue()
