"""Which portals does a collection have, what did their editors decide, and under which keys were pages shown?"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import NamedTuple

from periplus.model.story import Decisions, EditorVerdict, EntryKey, Portal, Provenance
from periplus.model.tables import HAS_PAGE
from periplus.model.web import SiteKey, Url, UrlId

ENTRIES = "portals/entries.json"  # beside the tables, how stories are described in all portals: api.portal_entries
_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json")


def portals(connection: sqlite3.Connection) -> list[tuple[Portal, float]]:
    """Each with the time when it was last built, 0.0: never; by name."""
    return [
        (Portal(**json.loads(settings)), built)
        for settings, built in connection.execute("SELECT settings, built FROM portal ORDER BY name")
    ]


def store_portal(connection: sqlite3.Connection, portal: Portal) -> None:
    """In place of one of the same name, whose decisions stay. Within a transaction."""
    upsert = (
        "INSERT INTO portal (name, settings) VALUES (?, ?) ON CONFLICT (name) DO UPDATE"
        " SET settings = excluded.settings"
    )
    connection.execute(upsert, (portal.name, json.dumps(asdict(portal))))


def forget_portal(connection: sqlite3.Connection, name: str) -> None:
    """With all that was decided for it. Within a transaction."""
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
    """verdict: None: what was decided is taken back. Within a transaction."""
    if verdict is None:
        connection.execute(
            "DELETE FROM portal_verdict WHERE portal = ? AND of_site = ? AND subject = ?", (portal, of_site, subject)
        )
        return
    connection.execute(
        "INSERT OR REPLACE INTO portal_verdict VALUES (?, ?, ?, ?, ?)", (portal, of_site, subject, verdict.value, now)
    )


def last_decided(connection: sqlite3.Connection, portal: str) -> float:
    """When the editor decided or wrote anything; 0.0: never."""
    columns = (("decided", "portal_verdict"), ("edited", "portal_words"))
    statements = [f"SELECT max({time}) FROM {table} WHERE portal = ?" for time, table in columns]
    return max(float(connection.execute(one, (portal,)).fetchone()[0] or 0) for one in statements)


class EntryWords(NamedTuple):
    """What an editor wrote of an entry, and the picture that stands with it; empty: none."""

    words: str
    picture: bytes
    alt: str


def words_of(connection: sqlite3.Connection, portal: str, picture_bytes: int = 2**31 - 1) -> dict[EntryKey, EntryWords]:
    """picture_bytes: this much of each picture's beginning."""
    words = "SELECT entry, words, coalesce(substr(picture, 1, ?), x''), alt FROM portal_words WHERE portal = ?"
    rows = connection.execute(words, (picture_bytes, portal))
    return {EntryKey(entry): EntryWords(*fields) for entry, *fields in rows}


def store_words(connection: sqlite3.Connection, portal: str, entry: EntryKey, words: EntryWords, now: float) -> None:
    """In place of those before. Within a transaction."""
    connection.execute("INSERT OR REPLACE INTO portal_words VALUES (?, ?, ?, ?, ?, ?)", (portal, entry, *words, now))


def known_pages(connection: sqlite3.Connection, portal: str) -> dict[Url, EntryKey]:
    """The entry that each page was shown under."""
    rows = connection.execute("SELECT url, entry FROM portal_page WHERE portal = ?", (portal,))
    return {Url(url): EntryKey(entry) for url, entry in rows}


def store_known(connection: sqlite3.Connection, portal: str, pages: Mapping[Url, EntryKey]) -> None:
    """Within a transaction."""
    connection.executemany(
        "INSERT OR REPLACE INTO portal_page VALUES (?, ?, ?)", [(portal, url, entry) for url, entry in pages.items()]
    )


def store_built(connection: sqlite3.Connection, portal: str, now: float) -> None:
    """Within a transaction."""
    connection.execute("UPDATE portal SET built = ? WHERE name = ?", (now, portal))


def provenance(connection: sqlite3.Connection, ids: Iterable[UrlId]) -> Iterator[Provenance]:
    """Which run fetched each page last, by the page's time: runs follow one another."""
    spans = connection.execute(
        "SELECT kind || ' ' || id, started FROM run WHERE kind <> 'check' ORDER BY id DESC"
    ).fetchall()
    for url_id in ids:
        row = connection.execute("SELECT fetched FROM page WHERE url_id = ?", (url_id,)).fetchone()
        fetched = float(row[0]) if row else 0.0
        run = next((name for name, started in spans if row and started <= fetched), "")
        yield Provenance(run, fetched)


class Home(NamedTuple):
    """The page of a site that is nearest to its root."""

    url: Url
    title: str


def home_of(connection: sqlite3.Connection, site: SiteKey) -> Home | None:
    """The site's page with the shortest address, of those without a query first; None: nothing of it was read."""
    find = (
        "SELECT u.text, p.title FROM url u JOIN page p ON p.url_id = u.id JOIN host h ON h.id = u.host_id"
        " JOIN site s ON s.id = h.site_id"
        f" WHERE s.key = ? AND {HAS_PAGE} ORDER BY instr(u.text, '?') > 0, length(u.text), u.text LIMIT 1"
    )
    row = connection.execute(find, (site,)).fetchone()
    return Home(Url(row[0]), str(row[1])) if row else None


def feeds_of(connection: sqlite3.Connection, home: UrlId) -> list[Url]:
    """Feeds that a page names by rel=alternate: by their media type where they were fetched,
    else by the words of their address.
    """
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
