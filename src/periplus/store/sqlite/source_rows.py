"""Which pages of a site have a source that can be read again: HTML that was kept?"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from periplus.model.web import SiteKey, Url, UrlId
from periplus.store.sqlite.reading import SITE_OF_URL


class SourceRow(NamedTuple):
    """One page and what is needed to decode its body."""

    url_id: UrlId
    url: Url
    title: str
    charset: str
    media_type: str


def source_rows(connection: sqlite3.Connection, site: SiteKey) -> list[SourceRow]:
    """The site's HTML pages that answered 200 and whose bytes were kept, by URL."""
    find = (
        f"SELECT u.id, u.text, p.title, p.charset, p.media_type FROM url u CROSS JOIN page p ON p.url_id = u.id WHERE {SITE_OF_URL}"
        " AND u.reason IN ('ok', 'partial', 'noindex') AND u.status = 200 AND p.media_type IN ('text/html', 'application/xhtml+xml')"
        " AND p.body_id IS NOT NULL ORDER BY u.text"
    )
    return list(map(SourceRow._make, connection.execute(find, (site,)).fetchall()))
