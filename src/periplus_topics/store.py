"""Portals of a collection, their editors' decisions, the entry keys of pages; files of results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from periplus.errors import StoreError
from periplus.files import replace_file
from periplus.model.tables import HAS_PAGE
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store.reader import CollectionReader
from periplus.store.statements import Statements
from periplus_topics.model import Decisions, EditorVerdict, EntryKey, Portal, Provenance

_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json")


def portals(statements: Statements) -> list[tuple[Portal, float]]:
    """(portal, time of the last build or 0.0), by name."""
    find = f"SELECT settings, built FROM portal ORDER BY name{statements.dialect.text_order}"
    return [(Portal(**json.loads(settings)), built) for settings, built in statements.rows(find)]


def store_portal(statements: Statements, portal: Portal) -> None:
    """Creates or updates a portal and keeps its decisions. Call it within a transaction."""
    settings = json.dumps(asdict(portal))
    if not statements.change("UPDATE portal SET settings = ? WHERE name = ?", (settings, portal.name)):
        statements.change("INSERT INTO portal VALUES (?, ?, 0)", (portal.name, settings))


def forget_portal(statements: Statements, name: str) -> None:
    """Deletes a portal with its decisions. Call it within a transaction."""
    tables = ("portal_verdict", "portal_page", "portal_words")
    for table, column in (("portal", "name"), *((table, "portal") for table in tables)):
        statements.change(f"DELETE FROM {table} WHERE {column} = ?", (name,))


def decisions(statements: Statements, portal: str) -> Decisions:
    order = f"ORDER BY decided, subject{statements.dialect.text_order}"
    rows = statements.rows(f"SELECT of_site, subject, verdict FROM portal_verdict WHERE portal = ? {order}", (portal,))
    entries = {EntryKey(subject): EditorVerdict(verdict) for of_site, subject, verdict in rows if not of_site}
    return Decisions(
        entries, {SiteKey(subject): EditorVerdict(verdict) for of_site, subject, verdict in rows if of_site}
    )


def decide(
    statements: Statements,
    portal: str,
    subject: EntryKey | SiteKey,
    verdict: EditorVerdict | None,
    of_site: bool,
    now: float,
) -> None:
    """Stores a decision. verdict None deletes it. Call it within a transaction."""
    key = (portal, int(of_site), subject)
    statements.change("DELETE FROM portal_verdict WHERE portal = ? AND of_site = ? AND subject = ?", key)
    if verdict is not None:
        statements.change("INSERT INTO portal_verdict VALUES (?, ?, ?, ?, ?)", (*key, verdict.value, now))


def last_decision_s(statements: Statements, portal: str) -> float:
    """Time of the editor's last decision or text; 0.0 if there is none."""
    columns = (("decided", "portal_verdict"), ("edited", "portal_words"))
    finds = [f"SELECT max({time}) FROM {table} WHERE portal = ?" for time, table in columns]
    return max(float(statements.rows(find, (portal,))[0][0] or 0) for find in finds)


class EntryWords(NamedTuple):
    """An editor's text and picture for an entry; may be empty."""

    words: str
    picture: bytes
    alt: str


def words_of(statements: Statements, portal: str, picture_bytes: int = 2**31 - 1) -> dict[EntryKey, EntryWords]:
    """Editors' texts by entry. picture_bytes: length of the pictures' beginnings to read."""
    find = "SELECT entry, words, substr(picture, 1, ?), alt FROM portal_words WHERE portal = ?"
    rows = statements.rows(find, (picture_bytes, portal))
    return {EntryKey(entry): EntryWords(words, picture or b"", alt) for entry, words, picture, alt in rows}


def store_words(statements: Statements, portal: str, entry: EntryKey, words: EntryWords, now: float) -> None:
    """Replaces the editor's text of an entry. Call it within a transaction."""
    statements.change("DELETE FROM portal_words WHERE portal = ? AND entry = ?", (portal, entry))
    statements.change("INSERT INTO portal_words VALUES (?, ?, ?, ?, ?, ?)", (portal, entry, *words, now))


def known_pages(statements: Statements, portal: str) -> dict[Url, EntryKey]:
    """Entry key of each page shown before."""
    rows = statements.rows("SELECT url, entry FROM portal_page WHERE portal = ?", (portal,))
    return {Url(url): EntryKey(entry) for url, entry in rows}


def store_entry_keys(statements: Statements, portal: str, pages: Mapping[Url, EntryKey]) -> None:
    """Stores entry keys of pages. Call it within a transaction."""
    dialect = statements.dialect
    statements.change(
        f"DELETE FROM portal_page WHERE portal = ? AND url {dialect.among}", (portal, dialect.list_value(pages))
    )
    rows = [(portal, url, entry) for url, entry in pages.items()]
    statements.change_rows("INSERT INTO portal_page VALUES (?, ?, ?)", rows)


def store_build_time(statements: Statements, portal: str, now: float) -> None:
    """Stores the time of a build. Call it within a transaction."""
    statements.change("UPDATE portal SET built = ? WHERE name = ?", (now, portal))


def provenance(reader: CollectionReader, ids: Sequence[UrlId]) -> Iterator[Provenance]:
    """Run that last fetched each page, from the page's time, since runs do not overlap."""
    spans = [(f"{run.kind} {run.id}", run.started) for run in reversed(reader.runs()) if run.kind != "check"]
    dialect = reader.statements.dialect
    find = f"SELECT p.url_id, p.fetched FROM page p WHERE {dialect.anywhere('p')}p.url_id {dialect.among}"
    times: dict[UrlId, float] = dict(reader.statements.rows(find, (dialect.list_value(ids),)))
    for url_id in ids:
        fetched = times.get(url_id, 0.0)
        run = next((name for name, started in spans if url_id in times and started <= fetched), "")
        yield Provenance(run, fetched)


class Home(NamedTuple):
    """The page of a site that is closest to its root."""

    url: Url
    title: str


def home_of(reader: CollectionReader, site: SiteKey) -> Home | None:
    """The site's page with the shortest URL, preferably without a query; None if the site has no fetched page."""
    dialect = reader.statements.dialect
    find = (
        f"SELECT u.text, p.title FROM url u JOIN page p ON {dialect.beside('p', 'u')}p.url_id = u.id"
        f" WHERE {reader.of_site(site)} AND {HAS_PAGE}"
        f" ORDER BY {dialect.position}(u.text, ?) > 0, length(u.text), u.text{dialect.text_order} LIMIT 1"
    )
    return next((Home(Url(url), str(title)) for url, title in reader.statements.rows(find, ("?",))), None)


def feeds_of(reader: CollectionReader, home: UrlId) -> list[Url]:
    """Feeds that a page declares by rel=alternate, recognised by media type if fetched, else by words in the URL."""
    find = f"SELECT DISTINCT l.target FROM link l WHERE {reader.statements.dialect.anywhere('l')}l.source = ?"
    rows = reader.statements.rows(f"{find} AND l.kind = 'alternate'", (home,))
    pages = reader.briefs([target for (target,) in rows])
    return sorted(Url(page.url) for page in pages if _is_feed(page.url, page.media_type))


def _is_feed(url: str, media_type: str) -> bool:
    if media_type in _FEED_TYPES:
        return True
    named = any(word in url.lower().rpartition("://")[2].partition("/")[2] for word in ("feed", "rss", "atom"))
    return named and media_type in ("", "application/xml", "text/xml", "application/json")


def write_file(file: Path, data: str | bytes) -> Path:
    """Writes a file atomically. Raises StoreError."""
    try:
        file.parent.mkdir(0o700, parents=True, exist_ok=True)
        replace_file(file, data.encode("utf-8", "replace") if isinstance(data, str) else data)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}") from None
    return file


def when_stored(file: Path) -> float:
    """Time when a result was stored, in seconds since the epoch; 0.0: never."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
