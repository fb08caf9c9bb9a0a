"""What did each page of a survey bring, in the order in which pages were asked for?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from periplus.model.page import LinkKind
from periplus.model.web import SiteKey, Url, UrlId

_FETCHED = "v.outcome = 'fetched' AND v.status BETWEEN 200 AND 299"


class PageVisit(NamedTuple):
    """One attempt at a page, or its being passed over."""

    id: int  # of the visit
    url_id: UrlId
    url: Url
    layer: int | None
    took_s: float
    asked: bool  # a request was made
    read: bool  # and a page came
    redirect: str  # where it led; empty: nowhere


class SeenLink(NamedTuple):
    """A link of a page, as far as an order of pages asks."""

    target: Url
    kind: str
    position: str
    anchor: str
    nofollow: bool


def page_visits(connection: sqlite3.Connection, after: int = 0) -> Iterator[PageVisit]:
    """Oldest first. after: those of a greater id."""
    find = (
        f"SELECT v.id, v.url_id, u.text, u.layer, v.took_s, v.outcome <> 'skipped', {_FETCHED}, iif(v.outcome = 'redirected', v.detail, '')"
        " FROM visit v JOIN url u ON u.id = v.url_id WHERE v.id > ? AND v.purpose = 'page' AND v.url_id <> 0 ORDER BY v.id"
    )
    for visit, url_id, url, layer, took_s, asked, read, redirect in connection.execute(find, (after,)):
        yield PageVisit(visit, UrlId(url_id), Url(url), layer, took_s, bool(asked), bool(read), redirect)


def links_of(connection: sqlite3.Connection, page: UrlId) -> list[SeenLink]:
    """All links that the page holds, by target."""
    find = "SELECT u.text, l.kind, l.position, l.anchor, l.nofollow FROM link l JOIN url u ON u.id = l.target WHERE l.source = ? AND l.kind <> ?"
    return [SeenLink(Url(row[0]), row[1], row[2], row[3], bool(row[4])) for row in connection.execute(find, (page, LinkKind.REDIRECT.value))]


def waiting_by_site(connection: sqlite3.Connection) -> dict[SiteKey, int]:
    """Entries of the to-do lists of each site that has any."""
    find = "SELECT s.key, sum(h.pending) FROM host h JOIN site s ON s.id = h.site_id WHERE h.pending > 0 GROUP BY s.id"
    return {SiteKey(key): pending for key, pending in connection.execute(find)}


def standings(connection: sqlite3.Connection, ids: list[UrlId]) -> dict[int, tuple[str, str]]:
    """(reason, rule) of those of the URLs that are known."""
    found = {}
    for url_id in ids:
        row = connection.execute("SELECT reason, rule FROM url WHERE id = ?", (url_id,)).fetchone()
        if row:
            found[int(url_id)] = (row[0], row[1])
    return found
