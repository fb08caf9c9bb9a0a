"""When does each address leave, and which addresses are known from nothing but links of what is deleted? By one pass through those links."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from periplus.store.sqlite.number_rows import number_blocks

Numbers = NDArray[np.int64]


def fill(connection: sqlite3.Connection, tables: Iterable[str]) -> None:
    """Sets `leaves` of each row of doomed: its own batch, or the last one of a page that links to it, else the link would lead to nothing meanwhile.
    Puts what else those pages link to into orphan, with the last of their batches. tables: of links, by source and target."""
    doomed = np.concatenate([np.zeros((0, 2), np.int64), *number_blocks(connection.execute("SELECT id, batch FROM doomed ORDER BY id"), 2)])
    ids, leaves = doomed[:, 0].copy(), doomed[:, 1].copy()
    outside = [np.zeros((0, 2), np.int64)]
    for table in tables if len(ids) else ():
        links = connection.execute(f"SELECT l.target, d.batch FROM doomed d CROSS JOIN {table} l ON l.source = d.id")
        for block in number_blocks(links, 2):
            target, batch = block[:, 0], block[:, 1]
            place = np.minimum(np.searchsorted(ids, target), len(ids) - 1)
            goes = ids[place] == target
            np.maximum.at(leaves, place[goes], batch[goes])
            outside.append(_latest(block[~goes]))
    late = leaves > doomed[:, 1]
    connection.executemany("UPDATE doomed SET leaves = ? WHERE id = ?", zip(leaves[late].tolist(), ids[late].tolist(), strict=True))
    connection.executemany("INSERT INTO orphan VALUES (?, ?)", _latest(np.concatenate(outside)).tolist())


def _latest(rows: Numbers) -> Numbers:
    """(target, batch): each target once, with its greatest batch."""
    ordered = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    last = np.ones(len(ordered), bool)
    last[:-1] = ordered[1:, 0] != ordered[:-1, 0]
    return ordered[last]
