"""Portals of a collection, their editors' decisions, the entry keys of pages; files of results."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from periplus.errors import StoreError
from periplus.files import replace_file
from periplus.model.tables import HAS_PAGE
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store.reader import CollectionReader
from periplus_topics.model import Decisions, EditorVerdict, EntryKey, Portal, Provenance

_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json")


def portals(connection: sqlite3.Connection) -> list[tuple[Portal, float]]:
    """(portal, time of the last build or 0.0), by name."""
    return [
        (Portal(**json.loads(settings)), built)
        for settings, built in connection.execute("SELECT settings, built FROM portal ORDER BY name")
    ]


def store_portal(connection: sqlite3.Connection, portal: Portal) -> None:
    """Creates or updates a portal and keeps its decisions. Call it within a transaction."""
    upsert = "INSERT INTO portal VALUES (?, ?, 0) ON CONFLICT (name) DO UPDATE SET settings = excluded.settings"
    connection.execute(upsert, (portal.name, json.dumps(asdict(portal))))


def forget_portal(connection: sqlite3.Connection, name: str) -> None:
    """Deletes a portal with its decisions. Call it within a transaction."""
    tables = ("portal_verdict", "portal_page", "portal_words")
    for table, column in (("portal", "name"), *((table, "portal") for table in tables)):
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))


def decisions(connection: sqlite3.Connection, portal: str) -> Decisions:
    find = "SELECT of_site, subject, verdict FROM portal_verdict WHERE portal = ? ORDER BY decided, subject"
    rows = connection.execute(find, (portal,)).fetchall()
    entries = {EntryKey(subject): EditorVerdict(verdict) for of_site, subject, verdict in rows if not of_site}
    return Decisions(
        entries, {SiteKey(subject): EditorVerdict(verdict) for of_site, subject, verdict in rows if of_site}
    )


def decide(
    connection: sqlite3.Connection,
    portal: str,
    subject: EntryKey | SiteKey,
    verdict: EditorVerdict | None,
    of_site: bool,
    now: float,
) -> None:
    """Stores a decision. verdict None deletes it. Call it within a transaction."""
    if verdict is None:
        connection.execute(
            "DELETE FROM portal_verdict WHERE portal = ? AND of_site = ? AND subject = ?", (portal, of_site, subject)
        )
        return
    connection.execute(
        "INSERT OR REPLACE INTO portal_verdict VALUES (?, ?, ?, ?, ?)", (portal, of_site, subject, verdict.value, now)
    )


def last_decision_s(connection: sqlite3.Connection, portal: str) -> float:
    """Time of the editor's last decision or text; 0.0 if there is none."""
    columns = (("decided", "portal_verdict"), ("edited", "portal_words"))
    statements = [f"SELECT max({time}) FROM {table} WHERE portal = ?" for time, table in columns]
    return max(float(connection.execute(statement, (portal,)).fetchone()[0] or 0) for statement in statements)


class EntryWords(NamedTuple):
    """An editor's text and picture for an entry; may be empty."""

    words: str
    picture: bytes
    alt: str


def words_of(connection: sqlite3.Connection, portal: str, picture_bytes: int = 2**31 - 1) -> dict[EntryKey, EntryWords]:
    """Editors' texts by entry. picture_bytes: length of the pictures' beginnings to read."""
    words = "SELECT entry, words, coalesce(substr(picture, 1, ?), x''), alt FROM portal_words WHERE portal = ?"
    rows = connection.execute(words, (picture_bytes, portal))
    return {EntryKey(entry): EntryWords(*fields) for entry, *fields in rows}


def store_words(connection: sqlite3.Connection, portal: str, entry: EntryKey, words: EntryWords, now: float) -> None:
    """Replaces the editor's text of an entry. Call it within a transaction."""
    connection.execute("INSERT OR REPLACE INTO portal_words VALUES (?, ?, ?, ?, ?, ?)", (portal, entry, *words, now))


def known_pages(connection: sqlite3.Connection, portal: str) -> dict[Url, EntryKey]:
    """Entry key of each page shown before."""
    rows = connection.execute("SELECT url, entry FROM portal_page WHERE portal = ?", (portal,))
    return {Url(url): EntryKey(entry) for url, entry in rows}


def store_entry_keys(connection: sqlite3.Connection, portal: str, pages: Mapping[Url, EntryKey]) -> None:
    """Stores entry keys of pages. Call it within a transaction."""
    connection.executemany(
        "INSERT OR REPLACE INTO portal_page VALUES (?, ?, ?)", [(portal, url, entry) for url, entry in pages.items()]
    )


def store_build_time(connection: sqlite3.Connection, portal: str, now: float) -> None:
    """Stores the time of a build. Call it within a transaction."""
    connection.execute("UPDATE portal SET built = ? WHERE name = ?", (now, portal))


def provenance(reader: CollectionReader, ids: Iterable[UrlId]) -> Iterator[Provenance]:
    """Run that last fetched each page, from the page's time, since runs do not overlap."""
    spans = [(f"{run.kind} {run.id}", run.started) for run in reversed(reader.runs()) if run.kind != "check"]
    find = f"SELECT p.fetched FROM page p WHERE {reader.statements.dialect.anywhere('p')}p.url_id = ?"
    for url_id in ids:
        rows = reader.statements.rows(find, (url_id,))
        fetched = float(rows[0][0]) if rows else 0.0
        run = next((name for name, started in spans if rows and started <= fetched), "")
        yield Provenance(run, fetched)


class Home(NamedTuple):
    """The page of a site that is closest to its root."""

    url: Url
    title: str


def home_of(reader: CollectionReader, site: SiteKey) -> Home | None:
    """The site's page with the shortest URL, preferably without a query; None if the site has no fetched page."""
    find = (
        "SELECT u.text, p.title FROM url u JOIN page p ON p.url_id = u.id JOIN host h ON h.id = u.host_id"
        " JOIN site s ON s.id = h.site_id"
        f" WHERE s.key = ? AND {HAS_PAGE} ORDER BY instr(u.text, '?') > 0, length(u.text), u.text LIMIT 1"
    )
    return next((Home(Url(url), str(title)) for url, title in reader.stream(find, (site,))), None)


def feeds_of(connection: sqlite3.Connection, home: UrlId) -> list[Url]:
    """Feeds that a page declares by rel=alternate, recognised by media type if fetched, else by words in the URL."""
    find = (
        "SELECT u.text, p.media_type FROM link l JOIN url u ON u.id = l.target LEFT"
        " JOIN page p ON p.url_id = l.target"
        " WHERE l.source = ? AND l.kind = 'alternate' ORDER BY u.text"
    )
    return [Url(text) for text, media_type in connection.execute(find, (home,)) if _is_feed(text, media_type or "")]


def _is_feed(url: str, media_type: str) -> bool:
    if media_type in _FEED_TYPES:
        return True
    named = any(word in url.lower().rpartition("://")[2].partition("/")[2] for word in ("feed", "rss", "atom"))
    return named and media_type in ("", "application/xml", "text/xml", "application/json")


def write_file(file: Path, data: str | bytes) -> Path:
    """Writes a file atomically. Raises StoreError."""
    try:
        file.parent.mkdir(0o700, exist_ok=True)
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
