"""CDXJ indexes of web archives: for each capture its key, its time and where it stands."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

from periplus.urls.captures import capture_key


def cdxj_line(url: str, stamp: str, values: dict[str, str]) -> str:
    """One line of an index. stamp: 14 digits, UTC; values: field names as pywb's."""
    return f"{capture_key(url)} {stamp} {json.dumps({'url': url} | values)}\n"


class IndexLines:
    """Lines of an index, sorted on disk: there may be millions."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("")
        self._connection.execute("CREATE TABLE line (text TEXT NOT NULL)")

    def add(self, line: str) -> None:
        self._connection.execute("INSERT INTO line VALUES (?)", (line,))

    def sorted(self) -> Iterator[str]:
        return (line for (line,) in self._connection.execute("SELECT text FROM line ORDER BY text"))

    def close(self) -> None:
        self._connection.close()
