"""What goes out of a collection in a folder for engines that compute over all of it? `model.dataset.WholeRows`."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from periplus.model.crawl_home import RunRecord
from periplus.model.freshness import READ
from periplus.model.graph import LinkRows
from periplus.store.dataset_blocks import KINDS, PAGE_ROWS, POSITIONS, TEXT_ROWS
from periplus.store.sqlite import graph_rows, reading, runs
from periplus.store.sqlite.number_rows import number_blocks

_READ = ", ".join(f"'{reason.value}'" for reason in sorted(READ))


class FolderRows:
    """One collection in a folder, within a snapshot. See the protocol."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def runs(self) -> Sequence[RunRecord]:
        return runs.run_records(self._connection)

    def hosts(self) -> Sequence[tuple[int, str, str]]:
        return self._connection.execute("SELECT h.id, h.key, s.key FROM host h JOIN site s ON s.id = h.site_id ORDER BY h.key").fetchall()

    def urls(self) -> Iterator[Sequence[tuple[object, ...]]]:
        find = (
            "SELECT u.id, u.text, u.host_id, u.reason, u.layer, nullif(u.status, 0), u.in_sitemap, s.url_id IS NOT NULL,"
            f" {_millis('u.first_seen')}, {_millis('u.visited')} FROM url u LEFT JOIN start s ON s.url_id = u.id ORDER BY u.text"
        )
        return self._blocks(find, TEXT_ROWS)

    def redirects(self) -> LinkRows:
        return graph_rows.redirects(self._connection)

    def pages(self) -> Iterator[Sequence[tuple[object, ...]]]:
        find = (
            "SELECT u.id, p.media_type, p.size, nullif(p.charset, ''), coalesce(nullif(p.language, ''), nullif(p.language_found, '')), nullif(p.title, ''),"
            " nullif(p.h1, ''), nullif(p.canonical, ''), p.text_chars, lower(hex(p.body_md5)), lower(hex(p.text_md5)), lower(hex(p.folded_md5)),"
            f" {_millis('p.fetched')}, {_millis('nullif(p.last_modified, 0)')}"
            f" FROM page p JOIN url u ON u.id = p.url_id WHERE u.reason IN ({_READ}) ORDER BY u.text"
        )
        return self._blocks(find, TEXT_ROWS)

    def first_sources(self, most: int) -> NDArray[np.int64]:
        found = number_blocks(self._connection.execute("SELECT source FROM link ORDER BY source LIMIT ?", (most,)), 1)
        return np.concatenate([np.zeros(0, np.int64), *(block[:, 0] for block in found)])

    def links(self) -> Iterator[NDArray[np.int64]]:
        seen = "max(l.last_seen, coalesce(f.checked, 0))"  # of pages that were asked and had not changed: docs/decisions/0003
        find = (
            f"SELECT l.source, l.target, {_code('l.kind', KINDS)}, {_code('l.position', POSITIONS)}, l.nofollow, l.times,"
            f" {_millis('l.first_seen')}, {_millis(seen)}"
            " FROM link l LEFT JOIN freshness f ON f.url_id = l.source AND f.gone_since IS NULL"
        )
        return number_blocks(self._connection.execute(find), 8)

    def texts(self) -> Iterator[Sequence[tuple[object, ...]]]:
        find = (
            "SELECT u.id, b.text, b.blocks, p.parts FROM page p JOIN url u ON u.id = p.url_id JOIN body b ON b.id = p.body_id"
            f" WHERE b.text IS NOT NULL AND u.reason IN ({_READ}) ORDER BY u.text"
        )
        return self._blocks(find, PAGE_ROWS)

    def _blocks(self, find: str, most: int) -> Iterator[Sequence[tuple[object, ...]]]:
        cursor = self._connection.execute(find)
        while rows := cursor.fetchmany(most):
            yield rows


@contextlib.contextmanager
def whole(folder: Path) -> Iterator[FolderRows]:
    """The collection as it stands now. Raises NoCollection, StoreError."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading(), reading.snapshot(connection):
        yield FolderRows(connection)


def _millis(expression: str) -> str:
    return f"CAST(round({expression} * 1000) AS INTEGER)"


def _code(column: str, names: Sequence[str]) -> str:
    """A text's place among names, in SQL."""
    return f"CASE {column} " + " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(names)) + " END"
