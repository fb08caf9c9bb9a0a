"""Streams rows of URLs, links, recent visits and whole tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeVar

from periplus.errors import UsageError
from periplus.model.page import LinkKind, Position
from periplus.model.tables import ALL_URLS, BAD_LINKS, LINKS, Table, any_of
from periplus.model.visit import FETCHED_REASONS, REASONS_OF, Reason, State
from periplus.model.web import Url
from periplus.store.sqlite import page_links
from periplus.store.sqlite.reading import rows
from periplus.store.sqlite.runs import run_records
from periplus.store.sqlite.views import order_by, select, value_of
from periplus.urls.canonical import canonical, url_id
from periplus.values import Row, frozen

Choice = TypeVar("Choice", bound=StrEnum)


@frozen
class PageFilter:
    """Filter of URLs. Empty and -1: any."""

    state: str = ""
    reason: str = ""
    status: str = ""  # "404", or "4xx" for 400 to 499
    media_type: str = ""  # "text/html", or "image/" for all images
    depth: int = -1
    url: str = ""  # part of the URL, or a regular expression
    host: str = ""  # with or without port
    limit: int = -1
    segment: str = ""  # needs segment_of, see reading.name_segments


@frozen
class LinkFilter:
    """Filter of links. Empty, False and -1: any."""

    source: str = ""  # canonical URL
    target: str = ""  # canonical URL; without `source` all links are scanned: 2 s for 10 M links
    kind: str = ""
    position: str = ""
    nofollow: bool = False
    broken: bool = False  # the target is dead
    external: bool = False  # the target is on another site, and is not dead
    limit: int = -1
    segment: str = ""  # segment of the source


def pages(
    connection: sqlite3.Connection, where: PageFilter, columns: Sequence[str] = (), table: Table = ALL_URLS
) -> Iterator[Row]:
    """URLs that match a filter, by depth and URL, those without a depth last.

    columns: of the table, which is SEEN, perhaps with segments; empty: all. Raises UsageError for an invalid filter or
    column.
    """
    conditions, values = page_conditions(where)
    find = f"{select(table, columns, conditions, order_by(table, table.order))} LIMIT ?"
    return rows(connection.execute(find, (*values, where.limit)))


def page_conditions(where: PageFilter) -> tuple[list[str], list[object]]:
    """SQL conditions and their values. Raises UsageError for an invalid filter."""
    parts: list[tuple[str, list[object]]] = []
    if where.state:
        parts.append((f"u.reason IN {any_of(REASONS_OF[choice(State, 'state', where.state)])}", []))
    if where.reason:
        parts.append(("u.reason = ?", [choice(Reason, "reason", where.reason).value]))
    if where.status:
        parts.append(("u.status BETWEEN ? AND ?", list(status_range(where.status))))
    if where.media_type:
        whole = "/" in where.media_type and not where.media_type.endswith("/")
        parts.append(("p.media_type = ?" if whole else "instr(p.media_type, ?) = 1", [where.media_type]))
    if where.depth >= 0:
        parts.append(("u.depth = ?", [where.depth]))
    if where.host:
        parts.append(("(h.key = ? OR substr(h.key, 1, length(?) + 1) = ? || ':')", [where.host] * 3))
    if where.url:
        parts.append(("matches(u.text, ?)", [where.url]))
    if where.segment:
        parts.append(("segment_of(u.id) = ?", [where.segment]))
    return [part for part, _ in parts], [value for _, values in parts for value in values]


def links(
    connection: sqlite3.Connection, where: LinkFilter, columns: Sequence[str] = (), table: Table = LINKS
) -> Iterator[Row]:
    """Links that match a filter, by source and target if one of them is given; else in storage order.

    columns: of the table, which is LINKS, perhaps with segments; empty: all. Raises UsageError for an invalid filter or
    column.
    """
    conditions, values = link_conditions(where)
    order = order_by(table, ("source", "target", "kind", "position")) if where.source or where.target else ""
    find = f"{select(table, columns, conditions, order)} LIMIT ?"
    return rows(connection.execute(find, (*values, where.limit)))


def links_between(connection: sqlite3.Connection, sources: Sequence[int], target: int) -> Iterator[Row]:
    """Rows of LINKS from these URLs to one URL, in the order of the sources."""
    find = select(LINKS, where=("l.source = ?", "l.target = ?"))
    for source in sources:
        yield from connection.execute(find, (source, target))


def link_conditions(where: LinkFilter) -> tuple[list[str], list[object]]:
    """See `page_conditions`."""
    parts: list[tuple[str, list[object]]] = []
    if where.source:
        parts.append(("l.source = ?", [url_id(Url(where.source))]))
    if where.target:
        target = url_id(Url(where.target))
        parts.append((f"l.target = ? AND l.source IN {page_links.PERHAPS_TO.format('?')}", [target, target]))
    if where.kind:
        parts.append(("l.kind = ?", [choice(LinkKind, "kind", where.kind).value]))
    if where.position:
        parts.append(("l.position = ?", [choice(Position, "position", where.position).value]))
    if where.nofollow:
        parts.append(("l.nofollow", []))
    dead = any_of(REASONS_OF[State.FAILED])
    if where.broken:
        # excludes most links before their URLs are looked up
        parts.append((f"l.target IN (SELECT id FROM url WHERE reason IN {dead})", []))
    if where.external:
        parts.append((f"g.site_id <> h.site_id AND b.reason NOT IN {dead}", []))
    if where.segment:
        parts.append(("segment_of(l.source) = ?", [where.segment]))
    return [part for part, _ in parts], [value for _, values in parts for value in values]


def bad_links(connection: sqlite3.Connection, source: str = "", limit: int = -1) -> Iterator[Row]:
    """Rows of BAD_LINKS, grouped by page. source: only of this page."""
    conditions, values = (("b.source = ?",), [url_id(Url(source))]) if source else ((), [])
    return rows(connection.execute(f"{select(BAD_LINKS, where=conditions)} LIMIT ?", (*values, limit)))


def is_known(connection: sqlite3.Connection, url: Url) -> bool:
    return connection.execute("SELECT 1 FROM url WHERE id = ?", (url_id(url),)).fetchone() is not None


def resolve_url(connection: sqlite3.Connection, text: str) -> Url:
    """The URL that a user means. Without a scheme: the known one of https and http, else https.

    A path such as `/a/b.html` is resolved against the start URLs: the first on which it is known. Raises InvalidUrl.
    """
    if "://" in text:
        return canonical(text)
    if text.startswith("/") and not text.startswith("//"):
        starts = dict.fromkeys(start for run in run_records(connection) for start in run.starts)
        urls = [canonical(text, Url(start)) for start in starts]
        if urls:
            return next((url for url in urls if is_known(connection, url)), urls[0])
    secure, plain = canonical(f"https://{text}"), canonical(f"http://{text}")
    return plain if is_known(connection, plain) and not is_known(connection, secure) else secure


def choice(kind: type[Choice], what: str, value: str) -> Choice:
    """Member of an enum by value. Raises UsageError with all values."""
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
        raise UsageError(f"a status must have the form 404 or 4xx, not {text!r}")
    return int(lowest), int(highest)


def whole(connection: sqlite3.Connection, table: Table) -> Iterator[Row]:
    """All rows, in storage order."""
    return _all_links(connection) if table is LINKS else rows(connection.execute(select(table)))


_OF_SOURCE = ("source", "source_site", "first_seen", "last_seen")
_OF_TARGET = ("target", "target_site", "target_state", "target_reason", "target_status")
_SOURCES = (
    "LEFT JOIN url a ON a.id = l.source LEFT JOIN host g ON g.id = a.host_id LEFT JOIN site s ON s.id = g.site_id"
    f" LEFT JOIN freshness f ON f.url_id = l.source AND f.gone_since IS NULL WHERE {LINKS.where}"
)
_TARGETS = (
    "json_each(?) j CROSS JOIN url b ON b.id = j.value"
    " LEFT JOIN host h ON h.id = b.host_id LEFT JOIN site t ON t.id = h.site_id"
)
PAGES_AT_ONCE = 500  # pages whose link targets are looked up together
TARGETS_AT_HAND = 100_000  # cached targets: 40 MB


def _all_links(connection: sqlite3.Connection) -> Iterator[Row]:
    """The same rows as `select` for LINKS, but faster: rows of columns are unpacked here, and targets are looked up
    once for many links.
    """
    of_source = ", ".join(value_of(LINKS, name) for name in _OF_SOURCE)
    of_target = ", ".join(value_of(LINKS, name) for name in _OF_TARGET)
    find = f"SELECT b.id, h.site_id, {of_target} FROM {_TARGETS}"
    nothing = (None,) * (1 + len(_OF_TARGET))
    targets: dict[int, tuple[Any, ...]] = {}
    for block in page_links.in_columns(connection, f"g.site_id, {of_source}", _SOURCES, PAGES_AT_ONCE):
        targets = targets if len(targets) < TARGETS_AT_HAND else {}
        unknown = sorted({target for target in block.targets if target not in targets})
        targets |= dict.fromkeys(unknown, nothing)
        targets |= {row[0]: row[1:] for row in connection.execute(find, (json.dumps(unknown),))}
        yield from _link_rows(block, [targets[target] for target in block.targets])


def _link_rows(block: page_links.LinkColumns, targets: Sequence[tuple[Any, ...]]) -> Iterator[Row]:
    """targets: site number and _OF_TARGET of each link."""
    source_sites, *of_source = (
        list(chain.from_iterable(map(repeat, values, block.many))) for values in zip(*block.pages, strict=True)
    )
    sites, *of_target = zip(*targets, strict=True)
    columns: dict[str, Iterable[object]] = {
        "anchor": block.anchors, "kind": block.kinds, "position": block.positions, "nofollow": block.nofollow,
        "internal": [
            None if site is None or source is None else int(site == source)
            for site, source in zip(sites, source_sites, strict=True)
        ],
        "fragments": [text or None for text in block.fragments], "times": block.times,
    }  # fmt: skip
    columns |= zip(_OF_SOURCE, of_source, strict=True)
    columns |= zip(_OF_TARGET, of_target, strict=True)
    return zip(*(columns[name] for name in LINKS.names), strict=True)


def text_of(connection: sqlite3.Connection, url_id: int) -> str | None:
    row = connection.execute("SELECT text FROM url WHERE id = ?", (url_id,)).fetchone()
    return str(row[0]) if row else None


def statuses_of(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, int]:
    """Last status of the URLs with an HTTP response."""
    find = "SELECT status FROM url WHERE id = ? AND status > 0"
    rows_by_id = {url_id: connection.execute(find, (url_id,)).fetchone() for url_id in ids}
    return {url_id: int(row[0]) for url_id, row in rows_by_id.items() if row}


_ROWS = (
    "SELECT v.id, v.run_id, coalesce(v.text, u.text, ''), v.purpose, v.started, v.took_s, v.outcome, "
    "v.status, v.detail, v.wire_bytes,"
    " coalesce(p.media_type, ''), u.depth FROM visit v LEFT JOIN url u ON u.id = v.url_id LEFT"
    " JOIN page p ON p.url_id = v.url_id"
)


class RecentVisit(NamedTuple):
    """A completed request. media_type: of the stored page, or empty."""

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
    """Id of the last visit before a run, by binary search, since ids grow with runs."""
    low, high = 0, int(connection.execute("SELECT coalesce(max(id), 0) FROM visit").fetchone()[0])
    while low < high:
        middle = (low + high + 1) // 2
        row = connection.execute("SELECT run_id FROM visit WHERE id >= ? ORDER BY id LIMIT 1", (middle,)).fetchone()
        if row[0] < run_id:
            low = middle
        else:
            high = middle - 1
    return low


def visits_after(connection: sqlite3.Connection, after: int, most: int) -> list[RecentVisit]:
    """The next visits, of any run."""
    return [
        RecentVisit._make(row)
        for row in connection.execute(f"{_ROWS} WHERE v.id > ? ORDER BY v.id LIMIT ?", (after, most))
    ]


def newest(connection: sqlite3.Connection, run_id: int, most: int) -> list[RecentVisit]:
    """Latest page requests of a run, last first."""
    find = f"{_ROWS} WHERE v.run_id = ? AND v.purpose = 'page' AND v.outcome <> 'skipped' ORDER BY v.id DESC LIMIT ?"
    return [RecentVisit._make(row) for row in connection.execute(find, (run_id, most))]


def pages_before(connection: sqlite3.Connection, started: float, most: int) -> list[tuple[str, int | None]] | None:
    """(URL, depth) of pages last fetched before a run began; None if the collection has more than `most` URLs."""
    urls_seen = connection.execute("SELECT coalesce(sum(value), 0) FROM tally WHERE name LIKE 'reason:%'").fetchone()[0]
    if urls_seen > most:
        return None
    return connection.execute(
        f"SELECT text, depth FROM url WHERE reason IN {any_of(FETCHED_REASONS)} AND visited < ?", (started,)
    ).fetchall()
