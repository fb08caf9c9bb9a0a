"""Notes on the markup of pages, stored by body so that each body is analysed once, and headers of responses."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence

from periplus.document.static_checks import VERSION, StaticNote
from periplus.model.visit import Certificate, Headers
from periplus.model.web import SiteKey, Url
from periplus.store.bodies import header_fields, unpack_headers
from periplus.store.reader import CollectionReader
from periplus.store.site_rows import SITE_OF_URL
from periplus.store.statements import Statements
from periplus.values import Pairs

_HTML = "('text/html', 'application/xhtml+xml')"
_IS_READ = f"{SITE_OF_URL} AND u.reason IN ('ok', 'partial', 'noindex') AND u.status = 200 AND p.media_type IN {_HTML}"
_WRITE_NOTES = (
    "INSERT INTO page_note (digest, version, notes) VALUES (?, ?, ?)"
    " ON CONFLICT (digest) DO UPDATE SET version = excluded.version, notes = excluded.notes"
)
_WRITE_CERTIFICATE = (
    "INSERT INTO certificate (host, seen, ends, old_tls, fault) VALUES (?, ?, ?, ?, ?) ON CONFLICT (host) DO UPDATE SET"
    " seen = excluded.seen, ends = excluded.ends, old_tls = excluded.old_tls, fault = excluded.fault"
)
_OF_SITE = f"FROM url u CROSS JOIN page p ON p.url_id = u.id WHERE {_IS_READ}"


def notes_of(reader: CollectionReader, site: SiteKey) -> Iterator[tuple[int, list[StaticNote]]]:
    """(page, notes) of the site's pages with notes."""
    find = "SELECT u.id, n.notes " + _OF_SITE.replace(
        "WHERE", "JOIN page_note n ON n.digest = p.body_digest WHERE n.notes <> '[]' AND n.version = ? AND", 1
    )
    same: dict[str, list[StaticNote]] = {}  # most pages of a site have the same notes
    for url_id, notes in reader.stream(find, (VERSION, site)):
        if notes not in same:
            same[notes] = [StaticNote(*note) for note in json.loads(notes)]
        yield url_id, same[notes]


def pages_without_notes(
    reader: CollectionReader, site: SiteKey, most: int, after: int = -(1 << 63)
) -> list[tuple[int, bytes, str, str]]:
    """(page, digest of its body, charset, media type) of up to `most` pages of the site whose body is not analysed, by
    id, with ids greater than `after`.
    """
    noted = f" AND NOT EXISTS (SELECT 1 FROM page_note n WHERE n.digest = p.body_digest AND n.version = {VERSION})"
    find = (
        f"SELECT u.id, p.body_digest, p.charset, p.media_type {_OF_SITE} AND p.body_id IS NOT NULL{noted} AND u.id > ?"
    )
    return reader.statements.rows(find + " ORDER BY u.id LIMIT ?", (site, after, most))


def page_sources(reader: CollectionReader, site: SiteKey) -> Iterator[tuple[int, bytes, str, str]]:
    """(page, digest of its body, charset, media type) of the site's pages."""
    yield from reader.stream(f"SELECT u.id, p.body_digest, p.charset, p.media_type {_OF_SITE}", (site,))


def store_notes(statements: Statements, notes: Iterable[tuple[bytes, Sequence[StaticNote]]]) -> None:
    """Stores notes by the digest of the body. Call it within a transaction."""
    rows = ((digest, VERSION, json.dumps(of_page)) for digest, of_page in notes)
    statements.change_rows(_WRITE_NOTES, rows)


def page_headers(
    reader: CollectionReader, site: SiteKey, most: int, names: Collection[str]
) -> Iterator[tuple[int, Url, Pairs, str, int]]:
    """(page, URL, these header fields of its latest response, media type, bytes of its body) of up to `most` HTML pages
    of the site, by id.
    """
    # groups numbers only, since headers would be sorted with them
    last = (
        "SELECT url_id AS page, max(id) AS visit FROM visit WHERE purpose = 'page' AND outcome = 'fetched'"
        " AND url_id <> 0 AND head IS NOT NULL GROUP BY url_id"
    )
    find = (
        f"SELECT u.id, u.text, v.head, p.media_type, p.size FROM ({last}) l CROSS JOIN url u ON u.id = l.page"
        f" CROSS JOIN page p ON p.url_id = u.id CROSS JOIN visit v ON v.id = l.visit WHERE {_IS_READ}"
        " ORDER BY l.page LIMIT ?"
    )
    for url_id, url, head, media_type, size in reader.stream(find, (site, most)):
        yield url_id, Url(url), header_fields(head, names), media_type, size


def part_headers(reader: CollectionReader) -> Iterator[tuple[Url, Headers]]:
    """Headers of the latest successful response to HEAD, for each URL checked by HEAD."""
    find = (
        "SELECT text, head FROM visit WHERE purpose = 'head' AND text IS NOT NULL AND outcome = 'fetched'"
        " AND status = 200 AND head IS NOT NULL ORDER BY id"
    )
    latest: dict[str, bytes] = dict(reader.stream(find))
    return ((Url(url), unpack_headers(head)) for url, head in latest.items())


def rendering_measures(reader: CollectionReader, site: SiteKey) -> Iterator[tuple[int, float | None, float | None]]:
    """(page, largest contentful paint in seconds, cumulative layout shift) of the site's rendered pages."""
    find = f"SELECT g.url_id, g.paint_s, g.shift FROM rendering g JOIN url u ON u.id = g.url_id WHERE {SITE_OF_URL}"
    yield from reader.stream(find, (site,))


def secure_pages(reader: CollectionReader, most: int) -> list[Url]:
    """An https page of each host that has one; at most `most` of them."""
    find = "SELECT min(text) FROM url WHERE reason IN ('ok', 'partial', 'noindex') AND text LIKE 'https://%'"
    return [Url(url) for (url,) in reader.stream(f"{find} GROUP BY host_id ORDER BY 1 LIMIT ?", (most,))]


def store_certificates(statements: Statements, seen: Iterable[tuple[str, Certificate]], now: float) -> None:
    """Replaces the certificates of hosts. Call it within a transaction."""
    rows = ((host, now, certificate.ends, int(certificate.old_tls), certificate.fault) for host, certificate in seen)
    statements.change_rows(_WRITE_CERTIFICATE, rows)


def certificates(reader: CollectionReader) -> list[tuple[str, float, Certificate]]:
    """(host, time of the check, certificate), by host."""
    rows = reader.stream("SELECT host, seen, ends, old_tls, fault FROM certificate ORDER BY host")
    return [(host, seen, Certificate(ends, bool(old), fault)) for host, seen, ends, old, fault in rows]


def robots_of(reader: CollectionReader, origin: str) -> bytes | None:
    """The robots.txt of an origin; empty if it has none; None if unknown."""
    rows = reader.statements.rows("SELECT status, body FROM robots WHERE origin = ?", (origin,))
    row = rows[0] if rows else None
    if row is None or not (200 <= row[0] < 300 or 400 <= row[0] < 500):
        return None
    return bytes(row[1]) if row[0] < 300 else b""
