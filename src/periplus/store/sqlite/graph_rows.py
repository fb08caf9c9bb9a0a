"""What do analyses need of a site: its URLs, links, redirects and pages as arrays?

Tables are read in the order in which they lie on disk (URLs by id, links by source), so that each is read once, in sequence.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from periplus.model.freshness import READ
from periplus.model.graph import REASONS, LinkRows, PageRows, UrlFacts, UrlRows
from periplus.model.page import FOLLOWED_KINDS
from periplus.model.results import Tally
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url
from periplus.store.sqlite.number_rows import number_blocks
from periplus.store.sqlite.reading import SITE_OF_URL

_FOLLOWED = ", ".join(f"'{kind.value}'" for kind in sorted(FOLLOWED_KINDS))
_READ = ", ".join(f"'{reason.value}'" for reason in sorted(READ))
_CODE = {reason.value: code for code, reason in enumerate(REASONS)}


def _pairs(connection: sqlite3.Connection, find: str, values: Sequence[object] = ()) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two columns of whole numbers."""
    none = np.zeros((0, 2), np.int64)
    found = [none, *number_blocks(connection.execute(find, values), 2)]
    return np.concatenate([block[:, 0] for block in found]), np.concatenate([block[:, 1] for block in found])


def redirects(connection: sqlite3.Connection) -> LinkRows:
    """Where each URL that redirects leads, as last seen, and which page each alias is an address of: one link a URL."""
    last = (
        "SELECT source, target FROM (SELECT l.source AS source, l.target AS target, max(l.last_seen) FROM url u CROSS JOIN link l ON l.source = u.id"
        " WHERE u.reason = 'redirect' AND l.kind = 'redirect' GROUP BY l.source)"
        " UNION ALL SELECT a.url_id, a.page_id FROM alias a JOIN url u ON u.id = a.url_id WHERE u.reason = 'alias' AND a.page_id IS NOT NULL"
    )
    return LinkRows(*_pairs(connection, last))


def site_urls(connection: sqlite3.Connection, site: SiteKey) -> UrlRows:
    """Every URL of the site that was ever seen."""
    ids: list[int] = []
    texts: list[Url] = []
    codes = bytearray()
    layers: list[int] = []
    find = f"SELECT u.id, u.text, u.reason, coalesce(u.layer, -1) FROM url u WHERE {SITE_OF_URL}"
    cursor = connection.execute(find, (site,))
    while block := cursor.fetchmany(10_000):
        some_ids, some_texts, reasons, some_layers = zip(*block, strict=True)
        ids += some_ids
        texts += some_texts
        codes += bytes(map(_CODE.__getitem__, reasons))
        layers += some_layers
    return UrlRows(np.array(ids, np.int64), texts, np.frombuffer(bytes(codes), np.uint8), np.array(layers, np.int32))


def page_links(connection: sqlite3.Connection, site: SiteKey) -> LinkRows:
    """The site's links to pages, of its own or not, each pair once."""
    find = (
        f"SELECT l.source, l.target FROM url u CROSS JOIN link l ON l.source = u.id WHERE {SITE_OF_URL} AND l.kind IN ({_FOLLOWED})"
        " AND u.reason NOT IN ('redirect', 'alias', 'rule') ORDER BY u.id, l.target"  # as they lie; DISTINCT would build a tree of all pairs
    )
    sources, targets = _pairs(connection, find, (site,))
    first = np.ones(len(sources), np.bool_)
    first[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    return LinkRows(sources[first], targets[first])


def site_pages(connection: sqlite3.Connection, site: SiteKey) -> PageRows:
    """The pages of the site whose content is known."""
    find = f"SELECT u.id, p.title, p.media_type, p.size FROM url u CROSS JOIN page p ON p.url_id = u.id WHERE {SITE_OF_URL}"
    ids: list[int] = []
    titles: list[str] = []
    media_types: list[str] = []
    sizes: list[int] = []
    cursor = connection.execute(find, (site,))
    while block := cursor.fetchmany(10_000):
        some_ids, some_titles, types, some_sizes = zip(*block, strict=True)
        ids += some_ids
        titles += some_titles
        media_types += map(sys.intern, types)  # a few names, a million times
        sizes += some_sizes
    return PageRows(np.array(ids, np.int64), titles, media_types, np.array(sizes, np.int64))


def statuses(connection: sqlite3.Connection, site: SiteKey) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(ids, statuses) of the site's URLs that were answered."""
    return _pairs(connection, f"SELECT u.id, u.status FROM url u WHERE {SITE_OF_URL} AND u.status > 0", (site,))


def sites_of_urls(connection: sqlite3.Connection) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(ids of all URLs, the numbers of their sites)."""
    return _pairs(connection, "SELECT u.id, h.site_id FROM url u CROSS JOIN host h ON h.id = u.host_id")


def site_names(connection: sqlite3.Connection) -> dict[int, SiteKey]:
    return {number: SiteKey(key) for number, key in connection.execute("SELECT id, key FROM site")}


def sites_read(connection: sqlite3.Connection) -> list[SiteKey]:
    """Sites with a page that was read; most sites that a crawl knows are only linked to."""
    read = f"SELECT h.site_id FROM host h WHERE h.id IN (SELECT host_id FROM url WHERE reason IN ({_READ}))"
    return [SiteKey(key) for (key,) in connection.execute(f"SELECT key FROM site WHERE id IN ({read}) ORDER BY id")]


def site_of(connection: sqlite3.Connection, url_id: int) -> SiteKey | None:
    """The site of a known URL."""
    find = "SELECT s.key FROM url u JOIN host h ON h.id = u.host_id JOIN site s ON s.id = h.site_id WHERE u.id = ?"
    found = connection.execute(find, (url_id,)).fetchone()
    return SiteKey(found[0]) if found else None


def url_facts(connection: sqlite3.Connection, url_id: int) -> UrlFacts | None:
    found = connection.execute("SELECT text, reason, status, rule FROM url WHERE id = ?", (url_id,)).fetchone()
    return UrlFacts(Url(found[0]), Reason(found[1]), found[2] or 0, found[3]) if found else None


def title_of(connection: sqlite3.Connection, url_id: int) -> str:
    """A page's title; empty where none is known."""
    found = connection.execute("SELECT title FROM page WHERE url_id = ?", (url_id,)).fetchone()
    return str(found[0]) if found else ""


_TALLIED = {"host": "h.key", "media_type": "p.media_type", "charset": "p.charset", "language": "p.language"}


def tallies(connection: sqlite3.Connection, site: SiteKey, by: str) -> tuple[Tally, ...]:
    """How many fetched pages of the site, and how many bytes, share a host, media_type, charset or language; most pages first."""
    find = (
        f"SELECT {_TALLIED[by]}, count(*), sum(p.size) FROM url u CROSS JOIN page p ON p.url_id = u.id JOIN host h ON h.id = u.host_id"
        f" WHERE {SITE_OF_URL} AND u.reason IN ({_READ}) GROUP BY 1 ORDER BY 2 DESC, 1"
    )
    return tuple(Tally(*row) for row in connection.execute(find, (site,)))
