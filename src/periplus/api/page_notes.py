"""Audit notes on a site's pages: markup, headers, certificates, and robots.txt rules for AI crawlers."""

from __future__ import annotations

import contextlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from periplus.analyse.audit_input import NoteColumns
from periplus.api.facts import Start, site_starts
from periplus.api.homes import home_of, open_reader, settle_files
from periplus.api.secrets import resolve_secrets
from periplus.document import html
from periplus.document.decode import decode
from periplus.document.header_checks import (
    NO_COMPRESSION,
    NOTED_FIELDS,
    page_header_notes,
    part_header_notes,
    undecided_crawlers,
)
from periplus.document.positions import note_positions
from periplus.document.static_checks import StaticNote, noted_elements, vitals_notes
from periplus.errors import StoreError
from periplus.model.visit import Certificate
from periplus.model.web import HostKey, SiteKey, Url, UrlId
from periplus.settings import Settings
from periplus.store import page_notes
from periplus.store.reader import CollectionReader
from periplus.urls.canonical import url_id
from periplus.urls.folders import is_folder_host
from periplus.urls.hosts import host_key, origin_of
from periplus.urls.scope import site_key
from periplus.values import Place

HEADER_PAGES = 200_000  # limit for headers: 15 us each
UNNOTED_PAGES = 1_000  # limit for markup in a read-only collection: 0.1 to 1 ms each
CERTIFICATES = 50  # limit of hosts: up to three handshakes each
ENDS_SOON_DAYS = 21  # automatic renewal happens 30 days before
AT_ONCE = 200  # pages in one transaction
FACT_CHARS = 20_000_000  # of anchors that are remembered for an audit; other pages are parsed again
_MOST_NAMES = 5  # crawlers named in a note


def take_certificates(place: Place, sites: Collection[SiteKey], settings: Settings, now: float) -> None:
    """Inspects the certificate of each own host with https pages, and stores the result."""
    from periplus.acquire.transport import certificate_of  # imports libcurl

    with open_reader(place) as reader:
        pages = [url for url in page_notes.secure_pages(reader, CERTIFICATES) if site_key(url) in sites]
    identity = resolve_secrets(settings.identity, Path())
    looks = ((host_key(url), certificate_of(url, identity, settings.limits)) for url in pages)
    seen = [(host, certificate) for host, certificate in looks if certificate is not None]
    if seen:
        home_of(place).change(lambda statements: page_notes.store_certificates(statements, seen, now))


def _certificate_notes(host: HostKey, certificate: Certificate, seen: float) -> Iterator[StaticNote]:
    name, days = host.removesuffix(":443"), (certificate.ends - seen) / 86_400
    if certificate.fault:
        yield StaticNote("certificate-fault", words=f"{name}: {certificate.fault}"[:200])
    elif certificate.ends and days < ENDS_SOON_DAYS:
        yield StaticNote("certificate-ends", days, name)
    if certificate.old_tls:
        yield StaticNote("tls-old", words=name)


class SourceFacts:
    """Anchors and positions of the pages that `take_notes` has parsed, so that the audit after it parses none again."""

    def __init__(self) -> None:
        self._pages: dict[int, tuple[object, str | None, tuple[str, ...], array[int]]] = {}
        self._codes: dict[tuple[str, ...], tuple[str, ...]] = {}  # shared by pages with the same issues
        self._room = FACT_CHARS

    def add(self, page: int, source: object, anchors: set[str], positions: Mapping[str, tuple[int, int]]) -> None:
        """source: what the page was parsed from: the digest of its body, charset, media type."""
        names = "\0".join(sorted(anchors))
        self._room -= len(names)
        codes = self._codes.setdefault(tuple(positions), tuple(positions))
        self._pages[page] = (
            source, names if self._room >= 0 else None, codes, array("i", chain.from_iterable(positions.values()))
        )  # fmt: skip

    def __bool__(self) -> bool:
        return bool(self._pages)

    def confirm(self, reader: CollectionReader, sites: Iterable[SiteKey]) -> None:
        """Forgets the pages that were replaced since. Call within the snapshot of the audit."""
        if self._pages:
            now = {page: source for site in sites for page, *source in page_notes.page_sources(reader, site)}
            self._pages = {page: facts for page, facts in self._pages.items() if now.get(page) == facts[0]}

    def anchors(self, page: int) -> frozenset[str] | None:
        """The anchors of a page; None if they are unknown."""
        names = self._pages[page][1] if page in self._pages else None
        return None if names is None else frozenset(names.split("\0") if names else ())

    def positions(self, page: int) -> Mapping[str, tuple[int, int]] | None:
        """Line and column of its issues that are not of links, by code; None if they are unknown."""
        if page not in self._pages:
            return None
        _, _, codes, numbers = self._pages[page]
        return dict(zip(codes, zip(numbers[::2], numbers[1::2], strict=True), strict=True))


NO_FACTS = SourceFacts()


def take_notes(place: Place) -> SourceFacts:
    """Inspects the markup of all pages not inspected yet, and stores the notes. Returns what else was seen on them.

    In a read-only collection, each audit inspects up to UNNOTED_PAGES itself.
    """
    facts = SourceFacts()
    with contextlib.suppress(StoreError), open_reader(place) as reader:
        for start in site_starts(reader):
            lot = page_notes.pages_without_notes(reader, start.site, AT_ONCE)
            while lot:
                home_of(place).change(partial(page_notes.store_notes, notes=list(_inspect(reader, lot, facts))))
                # continue after the last page: otherwise each query would scan all pages before it
                lot = page_notes.pages_without_notes(reader, start.site, AT_ONCE, lot[-1][0])
    if facts and isinstance(place, Path):
        with contextlib.suppress(StoreError):  # of a folder that can only be read
            settle_files(place)
    return facts


def _inspect(
    reader: CollectionReader, lot: list[tuple[int, bytes, str, str]], facts: SourceFacts | None = None
) -> Iterator[tuple[bytes, list[StaticNote]]]:
    for page, digest, charset, media_type in lot:
        text, _ = decode(reader.body(UrlId(page)) or b"", charset, media_type)
        tree = html.parse_with_positions(text)
        notes = noted_elements(text, tree)
        if facts is not None:
            facts.add(page, [digest, charset, media_type], html.anchors(tree), note_positions(tree, notes))
        yield digest, [note for note, _ in notes]


def notes_of_site(reader: CollectionReader, start: Start, note: Callable[[str], object]) -> dict[str, NoteColumns]:
    """All notes on a site's pages by issue code, with page ids as places.

    Call within a snapshot. note: called with a sentence for each skipped part.
    """
    pages, numbers, words = (defaultdict[str, list[Any]](list) for _ in range(3))
    for page, fact in _notes_of_pages(reader, start, note):
        pages[fact.code].append(page)
        numbers[fact.code].append(fact.number)
        words[fact.code].append(fact.words)
    if not is_folder_host(host_key(start.url)):  # local files have no headers
        for ids, sizes, notes in _header_notes(reader, start, note):
            for fact in notes:
                pages[fact.code] += ids
                numbers[fact.code] += sizes if fact.code == NO_COMPRESSION else [fact.number] * len(ids)
                words[fact.code] += [fact.words] * len(ids)
    return {
        code: NoteColumns(np.array(pages[code], np.int64), np.array(numbers[code], np.float64), words[code])
        for code in pages
    }


def _header_notes(
    reader: CollectionReader, start: Start, note: Callable[[str], object]
) -> list[tuple[list[int], list[int], tuple[StaticNote, ...]]]:
    """(page ids, their sizes in bytes, notes on the headers that these pages share)."""
    alike: dict[tuple[StaticNote, ...], tuple[list[int], list[int]]] = {}
    headers = page_notes.page_headers(reader, start.site, HEADER_PAGES, NOTED_FIELDS)
    for page, url, fields, media_type, size in headers:
        ids, sizes = alike.setdefault(page_header_notes(url, fields, media_type, size), ([], []))
        ids.append(page)
        sizes.append(size)
    if sum(len(ids) for ids, _ in alike.values()) == HEADER_PAGES:
        note(f"Headers were checked on the first {HEADER_PAGES:,} pages only.")
    return [(ids, sizes, notes) for notes, (ids, sizes) in alike.items()]


def _notes_of_pages(
    reader: CollectionReader, start: Start, note: Callable[[str], object]
) -> Iterator[tuple[int, StaticNote]]:
    """(page id, note) on markup, headers of resources, certificates and robots.txt."""
    for number, notes in page_notes.notes_of(reader, start.site):
        yield from ((number, fact) for fact in notes)
    lot = page_notes.pages_without_notes(reader, start.site, UNNOTED_PAGES + 1)
    if len(lot) > UNNOTED_PAGES:
        note(f"Markup was checked on {UNNOTED_PAGES:,} pages only: `periplus check --offline` checks all.")
    for unnoted, (_, notes) in zip(lot[:UNNOTED_PAGES], _inspect(reader, lot[:UNNOTED_PAGES]), strict=True):
        yield from ((unnoted[0], fact) for fact in notes)
    for number, paint_s, shift in page_notes.rendering_measures(reader, start.site):
        yield from ((number, fact) for fact in vitals_notes(paint_s, shift))
    if is_folder_host(host_key(start.url)):
        return
    for url, headers in page_notes.part_headers(reader):
        if site_key(url) == start.site:
            yield from ((url_id(url), fact) for fact in part_header_notes(headers))
    for host, seen, certificate in page_notes.certificates(reader):
        if site_key(Url(f"https://{host}/")) == start.site:
            yield from ((start.home_id, fact) for fact in _certificate_notes(HostKey(host), certificate, seen))
    robots = page_notes.robots_of(reader, origin_of(start.url))
    if robots is not None and (names := undecided_crawlers(robots)):
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        yield start.home_id, StaticNote("model-crawlers", len(names), ", ".join(names[:_MOST_NAMES]) + more)
