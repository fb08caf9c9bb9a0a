"""How did a site stand when a run had ended? The present rows, with what history holds of the runs after it laid over them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from periplus.model.graph import REASONS, LinkRows, UrlRows
from periplus.model.page import FOLLOWED_KINDS
from periplus.model.visit import Reason
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store.sqlite.reading import SITE_OF_URL, rows
from periplus.urls.canonical import url_id

FOREVER = 1e99
PAST_FIELDS = ("title", "media_type", "size", "text_chars", "text_md5", "canonical", "description", "h1", "language", "robots")
_FOLLOWED = ", ".join(f"'{kind.value}'" for kind in sorted(FOLLOWED_KINDS))
_CODE = {reason.value: code for code, reason in enumerate(REASONS)}
_PAIR = np.dtype([("first", np.int64), ("second", np.int64)])


@dataclass(frozen=True, slots=True)
class Moment:
    """The end of a run. until: what was first seen from then on was not known."""

    run_id: int
    until: float  # the next run's start, seconds since the epoch

    @classmethod
    def after(cls, connection: sqlite3.Connection, run_id: int) -> Moment:
        found = connection.execute("SELECT min(started) FROM run WHERE id > ?", (run_id,)).fetchone()[0]
        return cls(run_id, FOREVER if found is None else found)


@dataclass(frozen=True, slots=True)
class PastUrls:
    """The URLs of one site at a moment. statuses: 0: no answer."""

    rows: UrlRows
    statuses: NDArray[np.int16]


UrlPast = dict[int, tuple[str, str, int]]  # id: reason, rule, status


def url_past(connection: sqlite3.Connection, moment: Moment) -> UrlPast:
    """The URLs that stood otherwise then: of several later rows the earliest tells."""
    find = "SELECT url_id, reason, rule, coalesce(status, 0), min(run_id) FROM url_history WHERE run_id > ? GROUP BY url_id"
    return {row[0]: row[1:4] for row in connection.execute(find, (moment.run_id,))}


def site_urls(connection: sqlite3.Connection, site: SiteKey, moment: Moment, past: UrlPast) -> PastUrls:
    find = f"SELECT u.id, u.text, u.reason, coalesce(u.layer, -1), coalesce(u.status, 0) FROM url u WHERE {SITE_OF_URL} AND u.first_seen < ?"
    ids: list[int] = []
    texts: list[Url] = []
    codes, layers, statuses = bytearray(), list[int](), list[int]()
    for identity, text, now, layer, status_now in connection.execute(find, (site, moment.until)):
        reason, _, status = past.get(identity, (now, "", status_now))
        ids.append(identity)
        texts.append(Url(text))
        codes.append(_CODE[reason])
        layers.append(layer)
        statuses.append(min(status, 999))
    found = UrlRows(np.array(ids, np.int64), texts, np.frombuffer(bytes(codes), np.uint8), np.array(layers, np.int32))
    return PastUrls(found, np.array(statuses, np.int16))


def redirects(connection: sqlite3.Connection, moment: Moment, past: UrlPast) -> LinkRows:
    """Where each URL that redirected led, and which page each alias is an address of, as the rules now say."""
    found: dict[int, str] = dict(connection.execute("SELECT id, rule FROM url WHERE reason = 'redirect' AND first_seen < ?", (moment.until,)))
    for identity, (reason, rule, _) in past.items():
        found.pop(identity, None)
        if reason == Reason.REDIRECT:
            found[identity] = rule
    ends = {identity: url_id(Url(rule)) for identity, rule in found.items() if rule}
    aliases = "SELECT a.url_id, a.page_id FROM alias a JOIN url u ON u.id = a.url_id WHERE u.reason = 'alias' AND a.page_id IS NOT NULL"
    ends |= {alias: page for alias, page in connection.execute(aliases) if alias not in past}
    return LinkRows(np.fromiter(ends.keys(), np.int64, len(ends)), np.fromiter(ends.values(), np.int64, len(ends)))


def page_links(connection: sqlite3.Connection, site: SiteKey, moment: Moment) -> LinkRows:
    """The site's links to pages, whatever became of their sources; pairs may be twice."""
    of_site = f"{SITE_OF_URL} AND l.kind IN ({_FOLLOWED}) AND l.kind <> 'redirect'"
    find = (
        f"SELECT l.source, l.target FROM url u CROSS JOIN link l ON l.source = u.id WHERE {of_site} AND l.first_seen < ?"
        f" UNION ALL SELECT l.source, l.target FROM link_history l JOIN url u ON u.id = l.source WHERE l.run_id > ? AND l.first_seen < ? AND {of_site}"
    )
    found = np.fromiter(rows(connection.execute(find, (site, moment.until, moment.run_id, moment.until, site))), dtype=_PAIR)
    return LinkRows(np.ascontiguousarray(found["first"]), np.ascontiguousarray(found["second"]))


def site_pages(connection: sqlite3.Connection, site: SiteKey, moment: Moment) -> dict[int, tuple[object, ...]]:
    """PAST_FIELDS of the site's pages, by id."""
    now = f"SELECT u.id, {', '.join(f'p.{name}' for name in PAST_FIELDS)} FROM url u CROSS JOIN page p ON p.url_id = u.id WHERE {SITE_OF_URL}"
    then = f"SELECT h.url_id, {', '.join(f'h.{name}' for name in PAST_FIELDS)}, min(h.run_id) FROM page_history h WHERE h.run_id > ? GROUP BY h.url_id"
    found: dict[int, tuple[object, ...]] = {row[0]: row[1:] for row in connection.execute(now, (site,))}
    return found | {row[0]: row[1:-1] for row in connection.execute(then, (moment.run_id,)) if row[0] in found}


def ids_at(connection: sqlite3.Connection, reasons: Iterable[Reason], past: UrlPast) -> NDArray[np.int64]:
    """The URLs, of any site, that stood at one of the reasons; ascending."""
    wanted = frozenset(reason.value for reason in reasons)
    marks = ", ".join("?" * len(wanted))
    now = {identity for (identity,) in connection.execute(f"SELECT id FROM url WHERE reason IN ({marks})", sorted(wanted))}
    then = (now - past.keys()) | {identity for identity, row in past.items() if row[0] in wanted}
    return np.array(sorted(then), np.int64)


def texts_of(connection: sqlite3.Connection, ids: Iterable[int]) -> Iterator[tuple[UrlId, Url]]:
    """(id, URL) of those that are known."""
    for identity in ids:
        if (found := connection.execute("SELECT text FROM url WHERE id = ?", (identity,)).fetchone()) is not None:
            yield UrlId(identity), Url(found[0])
