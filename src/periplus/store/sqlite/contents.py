"""What was kept of a page: its bytes and its text, as they were?"""

from __future__ import annotations

import sqlite3

from periplus.model.web import UrlId
from periplus.store.bodies import BodyCodec


class Contents:
    """Reads bodies over one connection; the sites' dictionaries are loaded as they are met."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.codec = BodyCodec()

    def body(self, url_id: UrlId) -> bytes | None:
        """The page's bytes, content codings removed; None if none were kept."""
        row = self._row(url_id, "b.data, b.dictionary_id")
        return self.restore(*row) if row and row[0] else None

    def text(self, url_id: UrlId) -> str | None:
        """The page's text; None if it was not kept, or there is none."""
        row = self._row(url_id, "b.text")
        return self.codec.unpack(row[0], None).decode() if row and row[0] is not None else None

    def _row(self, url_id: UrlId, columns: str) -> tuple[bytes, int | None] | None:
        find = f"SELECT {columns} FROM page p JOIN body b ON b.id = p.body_id WHERE p.url_id = ?"
        row: tuple[bytes, int | None] | None = self._connection.execute(find, (url_id,)).fetchone()
        return row

    def restore(self, data: bytes, dictionary_id: int | None) -> bytes:
        """A stored body as it was."""
        if dictionary_id is not None:
            self.learn(dictionary_id)
        return self.codec.unpack(data, dictionary_id)

    def learn(self, dictionary_id: int) -> None:
        """Makes a stored dictionary known to the codec."""
        if not self.codec.knows(dictionary_id):
            self.codec.add(dictionary_id, self._connection.execute("SELECT data FROM dictionary WHERE id = ?", (dictionary_id,)).fetchone()[0])
