"""Reading of integer columns in blocks."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from periplus.store import site_rows


@pytest.mark.parametrize("rows", [0, 1, 6, 7])
def test_blocks_have_every_row_in_order(monkeypatch, rows):
    monkeypatch.setattr(site_rows, "BLOCK_ROWS", 3)
    connection = sqlite3.connect(":memory:")
    made = [(2**62 + row, -row, row % 2) for row in range(rows)]
    connection.execute("CREATE TABLE made (a, b, c)")
    connection.executemany("INSERT INTO made VALUES (?, ?, ?)", made)
    blocks = list(site_rows.number_blocks(connection.execute("SELECT a, b, c FROM made ORDER BY rowid"), 3))
    assert [tuple(row) for block in blocks for row in block.tolist()] == made
    assert all(block.dtype == np.int64 and len(block) <= 3 for block in blocks)
