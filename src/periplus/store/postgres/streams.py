"""How do rows leave PostgreSQL in bounded memory: by a cursor of the server's, or as numbers by COPY?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import TupleRow

from periplus.store.postgres.connection import Connection

NUMBERS_AT_ONCE = 100_000  # rows of numbers turned into an array at once
_HEAD_BYTES = 19  # of COPY's binary form: signature, flags, length of an extension that we never have


def row_blocks(connection: Connection, find: str, most: int) -> Iterator[Sequence[TupleRow]]:
    """A question's rows, `most` at once. Within a transaction, and read to the end before the next question."""
    cursor: Any = connection.cursor(name="blocks")
    with cursor:
        cursor.execute(find)
        while rows := cursor.fetchmany(most):
            yield rows


def number_blocks(connection: Connection, find: str, width: int) -> Iterator[NDArray[np.int64]]:
    """A question's rows of whole numbers, none missing, as int64[rows, width]. In COPY's binary form a row has always the same length, and an
    array reads it without a Python object a number."""
    values = ", ".join(f"c{place}::bigint" for place in range(width))
    names = ", ".join(f"c{place}" for place in range(width))
    row = np.dtype([("count", ">i2"), ("values", [("length", ">i4"), ("value", ">i8")], (width,))])
    with connection.cursor() as cursor, cursor.copy(f"COPY (SELECT {values} FROM ({find}) t ({names})) TO STDOUT (FORMAT BINARY)".encode()) as copy:
        messages = (bytes(message) for message in copy)
        rest = next(messages)[_HEAD_BYTES:]
        while block := rest + b"".join(islice(messages, NUMBERS_AT_ONCE)):
            rest = b""
            rows = np.frombuffer(block, row, len(block) // row.itemsize)["values"]
            assert (rows["length"] == 8).all(), "a number is missing"
            if len(rows):  # behind the last one stands a mark of the end
                yield rows["value"].astype(np.int64)
