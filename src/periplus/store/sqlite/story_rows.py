"""What do stories need of a collection beside the pages' blocks: sites, links between them, feeds, when pages were first seen?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from periplus.model.page import LinkKind
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store.sqlite.contents import Contents
from periplus.store.sqlite.reading import rows

_LINKS = ", ".join(f"'{kind.value}'" for kind in (LinkKind.ANCHOR, LinkKind.AREA))
_FEEDS = "('application/rss+xml', 'application/atom+xml', 'application/rdf+xml', 'application/xml', 'text/xml')"
FEEDS_MOST = 5_000  # that are looked at; a site has a handful


class CrossLink(NamedTuple):
    """A link from a page to another site."""

    source: UrlId
    target: UrlId
    position: str
    anchor: str


def sites_with_pages(connection: sqlite3.Connection) -> dict[int, tuple[SiteKey, int]]:
    """By number: the site's key and how many pages of it were fetched; ascending by number."""
    find = (
        "SELECT s.id, s.key, count(*) FROM page p JOIN url u ON u.id = p.url_id JOIN host h ON h.id = u.host_id JOIN site s ON s.id = h.site_id"
        " GROUP BY s.id ORDER BY s.id"
    )
    return {number: (SiteKey(key), pages) for number, key, pages in connection.execute(find)}


def cross_links(connection: sqlite3.Connection) -> Iterator[CrossLink]:
    """Every hyperlink of a fetched page to another site, by source, then target."""
    find = (
        "SELECT l.source, l.target, l.position, l.anchor FROM page p CROSS JOIN url u ON u.id = p.url_id CROSS JOIN host h ON h.id = u.host_id"
        " CROSS JOIN link l ON l.source = u.id JOIN url t ON t.id = l.target JOIN host th ON th.id = t.host_id"
        f" WHERE l.kind IN ({_LINKS}) AND th.site_id <> h.site_id ORDER BY u.id, l.target"
    )
    yield from map(CrossLink._make, rows(connection.execute(find)))


def first_seen(connection: sqlite3.Connection) -> dict[UrlId, float]:
    """When the crawl first met the URL of each page."""
    return dict(connection.execute("SELECT u.id, u.first_seen FROM page p JOIN url u ON u.id = p.url_id"))


def feeds(connection: sqlite3.Connection, contents: Contents) -> Iterator[tuple[Url, bytes]]:
    """Pages that may be feeds, with their bytes."""
    find = f"SELECT u.id, u.text FROM page p JOIN url u ON u.id = p.url_id WHERE p.media_type IN {_FEEDS} ORDER BY u.id LIMIT ?"
    for url_id, url in connection.execute(find, (FEEDS_MOST,)).fetchall():
        body = contents.body(url_id)
        if body:
            yield Url(url), body
