"""What was a page indexed with, so that it is neither read nor cut into words again when only the words of links to it are new?

While a crawl goes on, pages are indexed before most links to them are known; nearly each of a manual's gets some at the end. Until then what
was made of it lies in a file without a name, which ends with the process: whoever comes after reads such a page from the collection.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path

import zstandard

from periplus.model.web import UrlId
from periplus.search.fields import Draft

MOST_BYTES = 1 << 30  # some 100,000 pages of 4,000 words; of a larger crawl the last pages are read again
LEVEL = 1  # 0.1 ms a page of a manual, a third of its size


class Drafts:
    """Drafts by page."""

    def __init__(self, folder: Path) -> None:
        """folder: on whose disk there is room."""
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # ended by `close`
        self._end = 0
        self._places: dict[UrlId, tuple[int, int]] = {}
        self._writer, self._reader = zstandard.ZstdCompressor(level=LEVEL), zstandard.ZstdDecompressor()

    def close(self) -> None:
        self._file.close()

    def keep(self, draft: Draft) -> None:
        """In place of the page's earlier one. Without room nothing is kept."""
        self.forget(draft.url_id)
        data = self._writer.compress(json.dumps(draft).encode())
        if self._end + len(data) > MOST_BYTES:
            return
        with contextlib.suppress(OSError):  # the disk is full: this is a saving, not a duty
            self._file.seek(self._end)
            self._file.write(data)
            self._file.flush()
            self._places[draft.url_id] = (self._end, len(data))
            self._end += len(data)

    def forget(self, url_id: UrlId) -> None:
        self._places.pop(url_id, None)

    def find(self, url_id: UrlId) -> Draft | None:
        """The page's draft; None: it was not kept."""
        place = self._places.get(url_id)
        if place is None:
            return None
        self._file.seek(place[0])
        return Draft(*json.loads(self._reader.decompress(self._file.read(place[1]))))
