"""What was kept of a page: its bytes and its text, as they were?"""

from __future__ import annotations

import sqlite3

from periplus.model.page import Block, Part
from periplus.model.web import UrlId
from periplus.store.bodies import BodyCodec
from periplus.store.damage import told
from periplus.store.structure import blocks_of, unpack_parts

_OF_PAGE = "FROM page p JOIN body b ON b.id = p.body_id WHERE p.url_id = ?"


class Contents:
    """Reads bodies over one connection; the sites' dictionaries are loaded as they are met. What is damaged raises StoreError."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._run = connection.execute
        self.codec = BodyCodec()

    def body(self, url_id: UrlId) -> bytes | None:
        """The page's bytes, content codings removed; None if none were kept."""
        row = self._run(f"SELECT b.data, b.dictionary_id {_OF_PAGE}", (url_id,)).fetchone()
        return self.restore(*row) if row and row[0] else None

    def text(self, url_id: UrlId) -> str | None:
        """The page's text; None if it was not kept, or there is none."""
        row = self._run(f"SELECT b.text {_OF_PAGE}", (url_id,)).fetchone()
        return self._decoded(row[0]) if row and row[0] is not None else None

    def _decoded(self, packed_text: bytes) -> str:
        with told():
            return self.codec.unpack(packed_text, None).decode()

    def blocks(self, url_id: UrlId) -> tuple[Block, ...]:
        """The page's blocks. Of a page whose text alone was kept each line is one; none: there is no text, or it was not kept."""
        row = self._run(f"SELECT b.text, b.blocks {_OF_PAGE}", (url_id,)).fetchone()
        return self.blocks_of(*row) if row else ()

    def blocks_of(self, packed_text: bytes | None, packed_blocks: bytes | None) -> tuple[Block, ...]:
        """Blocks from the columns `text` and `blocks` of a body."""
        return blocks_of("" if packed_text is None else self._decoded(packed_text), packed_blocks)

    def parts(self, url_id: UrlId) -> tuple[Part, ...] | None:
        """One part for each of the page's blocks; None: they are not marked yet."""
        row = self._run("SELECT parts FROM page WHERE url_id = ?", (url_id,)).fetchone()
        return unpack_parts(row[0]) if row and row[0] is not None else None

    def xml(self, url_id: UrlId) -> tuple[bytes, str] | None:
        """The page's canonical XML and the media type of that, if it was kept."""
        row = self._run("SELECT x.data, x.media_type FROM page p JOIN xml x ON x.body_id = p.body_id WHERE p.url_id = ?", (url_id,)).fetchone()
        return (self.codec.unpack(row[0], None), row[1]) if row else None

    def restore(self, data: bytes, dictionary_id: int | None) -> bytes:
        """A stored body as it was."""
        if dictionary_id is not None:
            self.learn(dictionary_id)
        return self.codec.unpack(data, dictionary_id)

    def learn(self, dictionary_id: int) -> None:
        """Makes a stored dictionary known to the codec."""
        if not self.codec.knows(dictionary_id):
            row = self._run("SELECT data FROM dictionary WHERE id = ?", (dictionary_id,)).fetchone()
            self.codec.add(dictionary_id, row[0] if row else b"")
