"""How does somebody ask a collection a question of his own, without being able to harm it?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from periplus.store.sqlite import reading
from periplus.store.sqlite.questions import Answer, ask


@contextlib.contextmanager
def asked(folder: Path, question: str, time_limit_s: float = 10.0, most: int = -1) -> Iterator[Answer]:
    """The answer to one SQL statement, to be read within. most: rows, -1: all; time_limit_s: 0: none. Raises UsageError, StoreError."""
    with contextlib.closing(reading.connect(folder)) as connection:
        answer = ask(connection, question, time_limit_s, most)
        with contextlib.closing(answer.rows):  # type: ignore[type-var]  # a generator, closed so that its limit ends before the connection
            yield answer
