"""What goes out of a collection for engines that compute over all of it? Its tables block by block, with numbers in place of ids."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from periplus.model.dataset import Block, Coded
from periplus.model.freshness import READ
from periplus.model.page import BlockKind, LinkKind, Part, Position
from periplus.model.visit import STATE_OF, Reason
from periplus.store.number_sort import in_order
from periplus.store.sqlite.contents import Contents
from periplus.store.sqlite.graph_rows import redirects
from periplus.store.sqlite.number_rows import number_blocks
from periplus.store.structure import unpack_parts

TEXT_ROWS = 20_000  # of a block with texts
PAGE_ROWS = 500  # of a block with whole pages' texts
KINDS, POSITIONS = tuple(LinkKind), tuple(Position)
_APART = (BlockKind.TITLE, BlockKind.ALT)  # not of a page's running text
_READ = ", ".join(f"'{reason.value}'" for reason in sorted(READ))


class Numbers:
    """The numbers of URLs, by id. 16 bytes a URL."""

    def __init__(self, ids: NDArray[np.int64]) -> None:
        """ids: in the order of the URLs' texts."""
        self._numbers = np.argsort(ids)
        self._ids = ids[self._numbers]

    def __len__(self) -> int:
        return len(self._ids)

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """-1 for what is not known."""
        if not len(self._ids):
            return np.full(len(ids), -1)
        places = np.searchsorted(self._ids, ids).clip(max=len(self._ids) - 1)
        return np.where(self._ids[places] == ids, self._numbers[places], -1)


def hosts(connection: sqlite3.Connection) -> tuple[Block, dict[int, tuple[int, int]]]:
    """(the whole table, by a host's id its number and its site's)."""
    found = connection.execute("SELECT h.id, h.key, s.key FROM host h JOIN site s ON s.id = h.site_id ORDER BY h.key").fetchall()
    sites = {key: number for number, key in enumerate(sorted({site for _, _, site in found}))}
    by_id = {host_id: (number, sites[site]) for number, (host_id, _, site) in enumerate(found)}
    block = (np.arange(len(found)), [name for _, name, _ in found], np.array([sites[site] for _, _, site in found], np.int64), [site for _, _, site in found])
    return block, by_id


def urls(connection: sqlite3.Connection, host_numbers: dict[int, tuple[int, int]], ids: list[NDArray[np.int64]]) -> Iterator[Block]:
    """The table of URLs; ids receives theirs, block by block. To be read to its end before `Numbers` are made of them."""
    states = {reason.value: STATE_OF[reason].value for reason in Reason}
    find = (
        "SELECT u.id, u.text, u.host_id, u.reason, u.layer, nullif(u.status, 0), u.in_sitemap, s.url_id IS NOT NULL,"
        f" {_millis('u.first_seen')}, {_millis('u.visited')} FROM url u LEFT JOIN start s ON s.url_id = u.id ORDER BY u.text"
    )
    count = 0
    for rows in _blocks(connection.execute(find), TEXT_ROWS):
        these, texts, host_ids, reasons, *others = zip(*rows, strict=True)
        ids.append(np.array(these, np.int64))
        of_hosts = np.array([host_numbers[host_id] for host_id in host_ids], np.int64)
        numbers = np.arange(count, count + len(these))
        count += len(these)
        yield (numbers, ids[-1], texts, of_hosts[:, 0], of_hosts[:, 1], [states[reason] for reason in reasons], reasons, *others)


def leads(connection: sqlite3.Connection, numbers: Numbers) -> Block:
    """The table of redirects and aliases, whole."""
    found = redirects(connection)
    sources, targets = numbers.of(found.sources), numbers.of(found.targets)
    known = (sources >= 0) & (targets >= 0)
    order = np.argsort(sources[known])
    return sources[known][order], targets[known][order]


def pages(connection: sqlite3.Connection, numbers: Numbers) -> Iterator[Block]:
    """The table of pages that were read."""
    find = (
        "SELECT u.id, p.media_type, p.size, nullif(p.charset, ''), coalesce(nullif(p.language, ''), nullif(p.language_found, '')), nullif(p.title, ''),"
        " nullif(p.h1, ''), nullif(p.canonical, ''), p.text_chars, lower(hex(p.body_md5)), lower(hex(p.text_md5)), lower(hex(p.folded_md5)),"
        f" {_millis('p.fetched')}, {_millis('nullif(p.last_modified, 0)')}"
        f" FROM page p JOIN url u ON u.id = p.url_id WHERE u.reason IN ({_READ}) ORDER BY u.text"
    )
    for rows in _blocks(connection.execute(find), TEXT_ROWS):
        these, *others = zip(*rows, strict=True)
        yield (numbers.of(np.array(these, np.int64)), *others)


def links(connection: sqlite3.Connection, numbers: Numbers, folder: Path) -> Iterator[Block]:
    """The table of links. folder: for temporary files."""
    seen = "max(l.last_seen, coalesce(f.checked, 0))"  # of pages that were asked and had not changed: docs/decisions/0003
    find = (
        f"SELECT l.source, l.target, {_code('l.kind', KINDS)}, {_code('l.position', POSITIONS)}, l.nofollow, l.times,"
        f" {_millis('l.first_seen')}, {_millis(seen)}"
        " FROM link l LEFT JOIN freshness f ON f.url_id = l.source AND f.gone_since IS NULL"
    )
    for rows in in_order(_numbered(number_blocks(connection.execute(find), 8), numbers), (0, 1, 2, 3, 4), folder):
        columns = rows.T
        kinds, positions = (Coded(columns[at].astype(np.int8), names) for at, names in ((2, KINDS), (3, POSITIONS)))
        yield (columns[0], columns[1], kinds, positions, columns[4], columns[5], columns[6], columns[7])


def _numbered(blocks: Iterator[NDArray[np.int64]], numbers: Numbers) -> Iterator[NDArray[np.int64]]:
    for block in blocks:
        block[:, 0], block[:, 1] = numbers.of(block[:, 0]), numbers.of(block[:, 1])
        yield block[(block[:, 0] >= 0) & (block[:, 1] >= 0)]


def texts(connection: sqlite3.Connection, numbers: Numbers) -> Iterator[Block]:
    """The table of texts, of pages whose text was kept."""
    contents = Contents(connection)
    find = (
        "SELECT u.id, b.text, b.blocks, p.parts FROM page p JOIN url u ON u.id = p.url_id JOIN body b ON b.id = p.body_id"
        f" WHERE b.text IS NOT NULL AND u.reason IN ({_READ}) ORDER BY u.text"
    )
    for rows in _blocks(connection.execute(find), PAGE_ROWS):
        these = numbers.of(np.array([row[0] for row in rows], np.int64))
        said = [_said(contents, *row[1:]) for row in rows]
        yield these, [text for text, _ in said], [content for _, content in said]


def _said(contents: Contents, packed_text: bytes, packed_blocks: bytes | None, packed_parts: bytes | None) -> tuple[str, str | None]:
    """(text, its content; None: not told apart yet)."""
    text = contents.codec.unpack(packed_text, None).decode()
    if packed_parts is None:
        return text, None
    marked = zip(contents.blocks_of(packed_text, packed_blocks), unpack_parts(packed_parts), strict=True)
    return text, "\n".join(block.text for block, part in marked if part is Part.CONTENT and block.kind not in _APART)


def _millis(expression: str) -> str:
    return f"CAST(round({expression} * 1000) AS INTEGER)"


def _code(column: str, names: Sequence[str]) -> str:
    """A text's place among names, in SQL."""
    return f"CASE {column} " + " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(names)) + " END"


def _blocks(cursor: sqlite3.Cursor, most: int) -> Iterator[list[Any]]:
    while rows := cursor.fetchmany(most):
        yield rows
