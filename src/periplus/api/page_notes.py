"""Notes on a site's pages for its audit: markup, headers, robots.txt for crawlers of language models."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from periplus.acquire.transport import certificate_of
from periplus.analyse.audit_input import NoteColumns
from periplus.api.facts import Start, site_starts
from periplus.api.homes import editing, folder_of
from periplus.api.logins import revealed
from periplus.document import html
from periplus.document.decode import decode
from periplus.document.header_checks import (
    NOTED_FIELDS,
    UNCOMPRESSED,
    page_header_notes,
    part_header_notes,
    undecided_crawlers,
)
from periplus.document.static_checks import StaticNote, static_notes, vitals_notes
from periplus.errors import StoreError
from periplus.model.visit import Certificate
from periplus.model.web import HostKey, SiteKey, Url, UrlId
from periplus.settings import Settings
from periplus.store.sqlite import page_notes, reading, schema
from periplus.store.sqlite.page_rows import Contents
from periplus.urls.canonical import url_id
from periplus.urls.folders import is_folder_host
from periplus.urls.hosts import host_key, origin_of
from periplus.urls.scope import site_key

HEADER_PAGES = 200_000  # whose headers are looked at: 15 us each
UNNOTED_PAGES = 1_000  # whose markup is looked at by who only reads: 0.1 to 1 ms each
CERTIFICATES = 50  # hosts whose certificates are looked at: up to three handshakes each
ENDS_SOON_DAYS = 21  # those who renew by themselves do so 30 days before
AT_ONCE = 200  # pages in one transaction
_NAMED = 5  # crawlers


def take_certificates(place: Path | str, sites: Collection[SiteKey], settings: Settings, now: float) -> None:
    """Looks at the certificate of each own host that has pages by https, and keeps what was seen."""
    with reading.opened(folder_of(place)) as connection:
        pages = [url for url in page_notes.secure_pages(connection, CERTIFICATES) if site_key(url) in sites]
    identity = revealed(settings.identity, Path())
    looks = ((host_key(url), certificate_of(url, identity, settings.limits)) for url in pages)
    seen = [(host, certificate) for host, certificate in looks if certificate is not None]
    if seen:
        with editing(place) as folder, schema.writing(folder) as writer:
            for host, certificate in seen:
                page_notes.store_certificate(writer, host, certificate, now)


def _certificate_notes(host: HostKey, certificate: Certificate, seen: float) -> Iterator[StaticNote]:
    name, days = host.removesuffix(":443"), (certificate.ends - seen) / 86_400
    if certificate.fault:
        yield StaticNote("certificate-fault", words=f"{name}: {certificate.fault}"[:200])
    elif certificate.ends and days < ENDS_SOON_DAYS:
        yield StaticNote("certificate-ends", days, name)
    if certificate.old_tls:
        yield StaticNote("tls-old", words=name)


def take_notes(folder: Path) -> None:
    """Looks at the markup of every page that nobody has looked at yet, and keeps what was noted.

    Where the collection cannot be written, an audit looks at UNNOTED_PAGES by itself, each time.
    """
    with contextlib.suppress(StoreError), reading.opened(folder) as connection:
        for start in site_starts(connection):
            lot = page_notes.unnoted(connection, start.site, AT_ONCE)
            while lot:
                with schema.writing(folder) as writer:
                    page_notes.store_notes(writer, list(_looked_at(connection, lot)))
                # from there on: else each lot would pass over all pages before it
                lot = page_notes.unnoted(connection, start.site, AT_ONCE, lot[-1].url_id)


def _looked_at(
    connection: reading.Connection, lot: list[page_notes.Unnoted]
) -> Iterator[tuple[bytes, list[StaticNote]]]:
    contents = Contents(connection)
    for page in lot:
        body = contents.body(UrlId(page.url_id)) or b""
        text, _ = decode(body, page.charset, page.media_type)
        yield page.md5, static_notes(text, html.parse(text))


def notes_of_site(
    connection: reading.Connection, start: Start, note: Callable[[str], object]
) -> dict[str, NoteColumns]:
    """Everything that is noted of a site's pages, by code of finding, with the pages' ids for their places.

    Within a snapshot. note: is told what was not looked at.
    """
    pages, numbers, words = (defaultdict[str, list[Any]](list) for _ in range(3))
    for page, one in _notes_of_pages(connection, start, note):
        pages[one.code].append(page)
        numbers[one.code].append(one.number)
        words[one.code].append(one.words)
    if not is_folder_host(host_key(start.url)):  # files have no headers: the server will add them
        for some, sizes, notes in _header_notes(connection, start, note):
            for one in notes:
                pages[one.code] += some
                numbers[one.code] += sizes if one.code == UNCOMPRESSED else [one.number] * len(some)
                words[one.code] += [one.words] * len(some)
    return {
        code: NoteColumns(np.array(pages[code], np.int64), np.array(numbers[code], np.float64), words[code])
        for code in pages
    }


def _header_notes(
    connection: reading.Connection, start: Start, note: Callable[[str], object]
) -> list[tuple[list[int], list[int], tuple[StaticNote, ...]]]:
    """(ids of pages, their sizes in bytes, the notes on the header that all of them have)."""
    alike: dict[tuple[StaticNote, ...], tuple[list[int], list[int]]] = {}
    for page in page_notes.answered(connection, start.site, HEADER_PAGES, NOTED_FIELDS):
        ids, sizes = alike.setdefault(page_header_notes(page.url, page.fields, page.media_type, page.size), ([], []))
        ids.append(page.url_id)
        sizes.append(page.size)
    if sum(len(ids) for ids, _ in alike.values()) == HEADER_PAGES:
        note(f"The headers of the first {HEADER_PAGES:,} pages were looked at.")
    return [(ids, sizes, notes) for notes, (ids, sizes) in alike.items()]


def _notes_of_pages(
    connection: reading.Connection, start: Start, note: Callable[[str], object]
) -> Iterator[tuple[int, StaticNote]]:
    """(id, note) of markup, of parts' headers, of certificates and robots.txt."""
    for number, notes in page_notes.notes_of(connection, start.site):
        yield from ((number, one) for one in notes)
    lot = page_notes.unnoted(connection, start.site, UNNOTED_PAGES + 1)
    if len(lot) > UNNOTED_PAGES:
        note(f"The markup of more than {UNNOTED_PAGES:,} pages was not looked at: `periplus check --offline` does.")
    for unnoted, (_, notes) in zip(lot[:UNNOTED_PAGES], _looked_at(connection, lot[:UNNOTED_PAGES]), strict=True):
        yield from ((unnoted.url_id, one) for one in notes)
    for number, paint_s, shift in page_notes.measured(connection, start.site):
        yield from ((number, one) for one in vitals_notes(paint_s, shift))
    if is_folder_host(host_key(start.url)):
        return
    for url, headers in page_notes.part_headers(connection):
        if site_key(url) == start.site:
            yield from ((url_id(url), one) for one in part_header_notes(headers))
    for host, seen, certificate in page_notes.certificates(connection):
        if site_key(Url(f"https://{host}/")) == start.site:
            yield from ((start.home_id, one) for one in _certificate_notes(HostKey(host), certificate, seen))
    robots = page_notes.robots_of(connection, origin_of(start.url))
    if robots is not None and (names := undecided_crawlers(robots)):
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield start.home_id, StaticNote("model-crawlers", len(names), ", ".join(names[:_NAMED]) + more)
