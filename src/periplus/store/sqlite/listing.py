"""Rows of URLs, links, latest visits and whole tables, streamed: there may be millions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from periplus.errors import UsageError
from periplus.model.page import LinkKind, Position
from periplus.model.visit import STATE_OF, Reason, State
from periplus.model.web import Url
from periplus.store.sqlite.reading import rows
from periplus.store.sqlite.views import View
from periplus.urls.canonical import canonical, url_id

Choice = TypeVar("Choice", bound=StrEnum)


class PageRow(NamedTuple):
    """What is known of one URL. None: not known, or not fetched. Times are ISO 8601, UTC."""

    url: str
    state: str
    reason: str
    why: str  # the rule, limit or failure behind the reason
    status: int | None
    media_type: str | None
    size: int | None
    depth: int | None
    title: str | None
    language: str | None
    charset: str | None
    charset_source: str | None
    host: str
    site: str
    description: str | None
    h1: str | None
    canonical: str | None
    robots: str | None
    cut: str | None
    text_chars: int | None
    took_s: float | None
    wire_bytes: int | None
    last_modified: str | None
    etag: str | None
    in_sitemap: int
    first_seen: str
    visited: str | None


def utc_time(column: str) -> str:
    return f"strftime('%Y-%m-%dT%H:%M:%SZ', nullif({column}, 0), 'unixepoch')"


_ELSEWHERE = {
    "url": "u.text", "state": "r.state", "reason": "u.reason", "why": "u.rule", "status": "u.status",
    "depth": "u.depth", "host": "h.key",
    "site": "s.key", "in_sitemap": "u.in_sitemap", "first_seen": utc_time("u.first_seen"),
    "visited": utc_time("u.visited"),
    "last_modified": utc_time("p.last_modified"),
}  # fmt: skip
PAGE_COLUMNS = {name: _ELSEWHERE.get(name, f"p.{name}") for name in PageRow._fields}


class LinkRow(NamedTuple):
    """All links from a page to a URL that agree in kind, position and nofollow."""

    source: str
    target: str
    anchor: str
    kind: str
    position: str
    nofollow: int
    times: int
    fragments: str
    target_reason: str
    target_status: int | None


LINK_COLUMNS = {name: f"l.{name}" for name in LinkRow._fields} | {
    "source": "a.text", "target": "b.text", "target_reason": "b.reason", "target_status": "b.status",
}  # fmt: skip


class BadLinkRow(NamedTuple):
    """What stood where a URL belongs, and is none that can be fetched."""

    source: str
    text: str
    why: str
    anchor: str
    kind: str
    position: str


@dataclass(frozen=True, slots=True)
class PageFilter:
    """Which URLs to list. Empty and -1: any."""

    state: str = ""
    reason: str = ""
    status: str = ""  # "404", or "4xx" for all of 400 to 499
    media_type: str = ""  # "text/html", or "image/" for all of them
    depth: int = -1
    url: str = ""  # part of the URL, or a regular expression
    host: str = ""  # with or without port
    limit: int = -1


@dataclass(frozen=True, slots=True)
class LinkFilter:
    """Which links to list. Empty, False and -1: any."""

    source: str = ""  # canonical URL
    target: str = ""  # canonical URL; without `source` every link is looked at: 2 s for 10 M links
    kind: str = ""
    position: str = ""
    nofollow: bool = False
    broken: bool = False  # the target is dead
    external: bool = False  # the target belongs to another site, and is not dead
    limit: int = -1


def pages(
    connection: sqlite3.Connection, wanted: PageFilter, columns: Sequence[str] = PageRow._fields
) -> Iterator[tuple[object, ...]]:
    """The URLs wanted, by depth and URL, those without a depth last.

    Raises UsageError for a filter or column that cannot be.
    """
    unknown = [name for name in columns if name not in PAGE_COLUMNS]
    if unknown:
        raise UsageError(f"pages have no column {', '.join(unknown)}: choose among {', '.join(PAGE_COLUMNS)}")
    where, values = _page_conditions(wanted)
    find = (
        f"SELECT {', '.join(PAGE_COLUMNS[name] for name in columns)} FROM url u JOIN host h ON h.id = u.host_id"
        " JOIN site s ON s.id = h.site_id"
        f" JOIN reason r ON r.name = u.reason LEFT JOIN page p ON p.url_id = u.id WHERE {where}"
        " ORDER BY u.depth IS NULL, u.depth, u.text LIMIT ?"
    )
    return rows(connection.execute(find, (*values, wanted.limit)))


def _page_conditions(wanted: PageFilter) -> tuple[str, list[object]]:
    """A condition in SQL, and its values."""
    parts: list[tuple[str, list[object]]] = [("1", [])]
    if wanted.state:
        parts.append((f"u.reason IN ({names(reasons_of(choice(State, 'state', wanted.state)))})", []))
    if wanted.reason:
        parts.append(("u.reason = ?", [choice(Reason, "reason", wanted.reason).value]))
    if wanted.status:
        parts.append(("u.status BETWEEN ? AND ?", list(status_range(wanted.status))))
    if wanted.media_type:
        whole = "/" in wanted.media_type and not wanted.media_type.endswith("/")
        parts.append(
            ("p.media_type = ?", [wanted.media_type]) if whole else ("instr(p.media_type, ?) = 1", [wanted.media_type])
        )
    if wanted.depth >= 0:
        parts.append(("u.depth = ?", [wanted.depth]))
    if wanted.host:
        parts.append(("(h.key = ? OR substr(h.key, 1, length(?) + 1) = ? || ':')", [wanted.host] * 3))
    if wanted.url:
        parts.append(("matches(u.text, ?)", [wanted.url]))
    return " AND ".join(part for part, _ in parts), [value for _, values in parts for value in values]


def links(
    connection: sqlite3.Connection, wanted: LinkFilter, columns: Sequence[str] = LinkRow._fields
) -> Iterator[tuple[object, ...]]:
    """The links wanted, by source and target where one of them is named; else page by page, as they are stored."""
    unknown = [name for name in columns if name not in LINK_COLUMNS]
    if unknown:
        raise UsageError(f"links have no column {', '.join(unknown)}: choose among {', '.join(LINK_COLUMNS)}")
    where, values = _link_conditions(wanted)
    order = " ORDER BY a.text, b.text, l.kind, l.position" if wanted.source or wanted.target else ""
    find = (
        f"SELECT {', '.join(LINK_COLUMNS[name] for name in columns)} FROM link l CROSS JOIN url a ON a.id = l.source "
        "CROSS JOIN url b ON b.id = l.target"
        f" JOIN host g ON g.id = a.host_id JOIN host h ON h.id = b.host_id WHERE {where}{order} LIMIT ?"
    )
    return rows(connection.execute(find, (*values, wanted.limit)))


def links_between(connection: sqlite3.Connection, sources: Sequence[int], target: int) -> Iterator[tuple[object, ...]]:
    """LinkRow's values of the links from these URLs to one, in the order of the URLs."""
    find = (
        f"SELECT {', '.join(LINK_COLUMNS.values())} FROM link l CROSS JOIN url a ON a.id = l.source CROSS"
        " JOIN url b ON b.id = l.target"
        " WHERE l.source = ? AND l.target = ?"
    )
    for source in sources:
        yield from connection.execute(find, (source, target))


def _link_conditions(wanted: LinkFilter) -> tuple[str, list[object]]:
    parts: list[tuple[str, list[object]]] = [("1", [])]
    if wanted.source:
        parts.append(("l.source = ?", [url_id(Url(wanted.source))]))
    if wanted.target:
        parts.append(("l.target = ?", [url_id(Url(wanted.target))]))
    if wanted.kind:
        parts.append(("l.kind = ?", [choice(LinkKind, "kind", wanted.kind).value]))
    if wanted.position:
        parts.append(("l.position = ?", [choice(Position, "position", wanted.position).value]))
    if wanted.nofollow:
        parts.append(("l.nofollow", []))
    dead = names(reasons_of(State.INVALID))
    if wanted.broken:
        # rules most links out before their URLs are looked up
        parts.append((f"l.target IN (SELECT id FROM url WHERE reason IN ({dead}))", []))
    if wanted.external:
        parts.append((f"g.site_id <> h.site_id AND b.reason NOT IN ({dead})", []))
    return " AND ".join(part for part, _ in parts), [value for _, values in parts for value in values]


def bad_links(connection: sqlite3.Connection, source: str = "", limit: int = -1) -> Iterator[tuple[object, ...]]:
    """BadLinkRow's values, page by page."""
    where, values = ("b.source = ?", [url_id(Url(source))]) if source else ("1", [])
    find = (
        "SELECT a.text, b.text, b.why, b.anchor, b.kind, b.position FROM bad_link b"
        f" JOIN url a ON a.id = b.source WHERE {where} LIMIT ?"
    )
    return rows(connection.execute(find, (*values, limit)))


def is_known(connection: sqlite3.Connection, url: Url) -> bool:
    return connection.execute("SELECT 1 FROM url WHERE id = ?", (url_id(url),)).fetchone() is not None


def meant(connection: sqlite3.Connection, text: str) -> Url:
    """The URL that a user means: of one written without scheme the spelling that the collection knows, else https.

    Raises InvalidUrl.
    """
    if "://" in text:
        return canonical(text)
    secure, plain = canonical(f"https://{text}"), canonical(f"http://{text}")
    return plain if is_known(connection, plain) and not is_known(connection, secure) else secure


def reasons_of(state: State) -> list[Reason]:
    return [reason for reason in Reason if STATE_OF[reason] is state]


def names(reasons: Iterable[Reason]) -> str:
    """The reasons for an SQL list; our own words, so nothing needs escaping."""
    return ", ".join(f"'{reason.value}'" for reason in reasons)


def choice(kind: type[Choice], what: str, value: str) -> Choice:
    """The member of kind with this value. Raises UsageError, naming them all."""
    try:
        return kind(value)
    except ValueError:
        raise UsageError(
            f"there is no {what} {value!r}: choose among {', '.join(member.value for member in kind)}"
        ) from None


def status_range(text: str) -> tuple[int, int]:
    """(first, last) status of `404` or `4xx`. Raises UsageError."""
    lowest, highest = text.lower().replace("x", "0"), text.lower().replace("x", "9")
    if len(text) != 3 or not (lowest.isascii() and lowest.isdigit()):
        raise UsageError(f"a status is written like 404 or 4xx, not {text!r}")
    return int(lowest), int(highest)


def whole(connection: sqlite3.Connection, view: View) -> Iterator[tuple[object, ...]]:
    """Every row of a view, in the order in which the table behind it lies on disk."""
    return rows(connection.execute(f"SELECT * FROM {view.name}"))


def redirect_hops(connection: sqlite3.Connection) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int16]]:
    """(sources, targets, statuses) of all redirects as last seen, one a source."""
    find = (
        "SELECT l.source, l.target, coalesce(u.status, 0), max(l.last_seen) FROM url u CROSS"
        " JOIN link l ON l.source = u.id"
        " WHERE u.reason = 'redirect' AND l.kind = 'redirect' GROUP BY l.source"
    )
    found = connection.execute(find).fetchall()
    sources, targets, statuses, _ = zip(*found, strict=True) if found else ((), (), (), ())
    return (
        np.array(sources, np.int64),
        np.array(targets, np.int64),
        np.array(statuses, np.int64).clip(0, 999).astype(np.int16),
    )


def text_of(connection: sqlite3.Connection, url_id: int) -> str | None:
    found = connection.execute("SELECT text FROM url WHERE id = ?", (url_id,)).fetchone()
    return str(found[0]) if found else None


def statuses_of(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, int]:
    """The last status of those of the URLs that answered."""
    find = "SELECT status FROM url WHERE id = ? AND status > 0"
    found = {url_id: connection.execute(find, (url_id,)).fetchone() for url_id in ids}
    return {url_id: int(row[0]) for url_id, row in found.items() if row}


_FETCHED = names(reasons_of(State.INDEXED))
_ROWS = (
    "SELECT v.id, v.run_id, coalesce(v.text, u.text, ''), v.purpose, v.started, v.took_s, v.outcome, "
    "v.status, v.detail, v.wire_bytes,"
    " coalesce(p.media_type, ''), u.depth FROM visit v LEFT JOIN url u ON u.id = v.url_id LEFT"
    " JOIN page p ON p.url_id = v.url_id"
)


class VisitRow(NamedTuple):
    """One request's end. media_type: of the page that is kept now, empty where none is."""

    id: int
    run_id: int
    url: str
    purpose: str
    started: float
    took_s: float
    outcome: str
    status: int
    detail: str
    wire_bytes: int
    media_type: str
    depth: int | None


def before_run(connection: sqlite3.Connection, run_id: int) -> int:
    """The last visit's number before a run began: numbers grow with runs, so halving finds it."""
    low, high = 0, int(connection.execute("SELECT coalesce(max(id), 0) FROM visit").fetchone()[0])
    while low < high:
        middle = (low + high + 1) // 2
        row = connection.execute("SELECT run_id FROM visit WHERE id >= ? ORDER BY id LIMIT 1", (middle,)).fetchone()
        if row[0] < run_id:
            low = middle
        else:
            high = middle - 1
    return low


def visits_after(connection: sqlite3.Connection, after: int, most: int) -> list[VisitRow]:
    """The next visits, of whatever run."""
    return [
        VisitRow._make(row)
        for row in connection.execute(f"{_ROWS} WHERE v.id > ? ORDER BY v.id LIMIT ?", (after, most))
    ]


def newest(connection: sqlite3.Connection, run_id: int, most: int) -> list[VisitRow]:
    """A run's latest requests for pages, the last first."""
    find = f"{_ROWS} WHERE v.run_id = ? AND v.purpose = 'page' AND v.outcome <> 'skipped' ORDER BY v.id DESC LIMIT ?"
    return [VisitRow._make(row) for row in connection.execute(find, (run_id, most))]


def pages_before(connection: sqlite3.Connection, started: float, most: int) -> list[tuple[str, int | None]] | None:
    """(URL, depth) of the pages that were fetched before a run began and not in it; None:
    there are more URLs than `most`.
    """
    known = connection.execute("SELECT coalesce(sum(value), 0) FROM tally WHERE name LIKE 'reason:%'").fetchone()[0]
    if known > most:
        return None
    return connection.execute(
        f"SELECT text, depth FROM url WHERE reason IN ({_FETCHED}) AND visited < ?", (started,)
    ).fetchall()
