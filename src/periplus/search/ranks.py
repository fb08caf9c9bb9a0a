"""How much does a page count among its site's? A file beside the index, so that a new rank has no page indexed again.

Pages' ids, ascending, then as many scores of 0 to 255: what `link_score` says, stretched. It is written whole, and may be missing.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from periplus.model.web import UrlId
from periplus.search.index import FOLDER

FILE = "ranks"
_ENTRY_BYTES = 9
_MOST = 255


class Ranks:
    """Of the pages of a collection; what is not known has the least."""

    def __init__(self, folder: Path) -> None:
        self._ids: array[int] = array("q")
        self._scores = b""
        try:
            content = (folder / FOLDER / FILE).read_bytes()
        except OSError:
            return
        count, rest = divmod(len(content), _ENTRY_BYTES)
        if not rest:
            self._ids.frombytes(content[: 8 * count])
            self._scores = content[8 * count :]
            if sys.byteorder == "big":
                self._ids.byteswap()

    def of(self, ids: Sequence[UrlId]) -> list[float]:
        """Of each page, 0 to 1."""
        return [self._of(url_id) / _MOST for url_id in ids]

    def _of(self, url_id: int) -> int:
        place = bisect_left(self._ids, url_id)
        return self._scores[place] if place < len(self._ids) and self._ids[place] == url_id else 0


def write_ranks(folder: Path, ids: Sequence[int], scores: Sequence[float]) -> None:
    """ids: ascending; scores: 0 to 1."""
    written = array("q", ids)
    if sys.byteorder == "big":
        written.byteswap()
    draft = folder / FOLDER / f"{FILE}.new"
    draft.write_bytes(written.tobytes() + bytes(round(_MOST * score) for score in scores))
    draft.replace(folder / FOLDER / FILE)
