"""Which blocks of a page are content, as far as its site is known by now?"""

from __future__ import annotations

from collections.abc import Sequence

from periplus.model.page import Part
from periplus.store.sqlite import block_rows, reading
from periplus.store.sqlite.block_rows import PageBlocks


class Marks:
    """Marks pages by what was learned of their sites, and learns from them."""

    def __init__(self, connection: reading.Connection) -> None:
        self._connection = connection

    def of(self, pages: Sequence[PageBlocks]) -> list[Sequence[Part]]:
        """One part for each block of each page; none for a page that is not marked."""
        return [page.parts or () for page in pages]

    def store(self, marked: Sequence[tuple[PageBlocks, Sequence[Part]]]) -> None:
        """Keeps the parts of pages, and what was learned of their sites. Within a transaction."""
        block_rows.write_parts(self._connection, [(page.url_id, page.body_id, parts) for page, parts in marked if parts and parts != page.parts])
