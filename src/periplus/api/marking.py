"""Which blocks of a page are content, as far as its site is known by now?

A page that has its parts was learned by its site's evidence already: parts, evidence and the follower's place are stored in one transaction.
The first pages of a site are marked while little is known of it, and once more when there is more to know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from periplus.analyse.content.evidence import SiteEvidence, Traces, traces_of
from periplus.analyse.content.marking import known, parts_of_each
from periplus.model.page import Part
from periplus.model.web import UrlId
from periplus.store.sqlite import block_rows, changes, reading
from periplus.store.sqlite.block_rows import PageBlocks

EVIDENCE, EARLY = "content", "marked early"  # names under which a site's evidence, and the ids of its first pages, are stored
EARLY_PAGES = 50  # of a site: with more behind them, marks hardly change any more
AT_ONCE = 200

Marked = tuple[PageBlocks, Sequence[Part]]


class Marks:
    """Marks pages by what was learned of their sites, and learns from them."""

    def __init__(self, connection: reading.Connection) -> None:
        self._connection = connection
        self._evidence: dict[int, SiteEvidence] = {}
        self._early: dict[int, list[UrlId]] = {}
        self._changed: set[int] = set()

    @property
    def changed(self) -> bool:
        """Whether there is something to store."""
        return bool(self._changed)

    def of(self, pages: Sequence[PageBlocks]) -> list[Sequence[Part]]:
        """One part for each block of each page; none for a page without text."""
        new = [(page, traces_of(page.blocks)) for page in pages if page.parts is None and page.blocks]
        for page, traces in new:
            self._learn(page, traces)
        parts = parts_of_each(known(page.blocks, self._evidence[page.site_id], traces) for page, traces in new)
        found = {page.url_id: of_page for (page, _), of_page in zip(new, parts, strict=True)}
        return [found.get(page.url_id, page.parts or ()) for page in pages]

    def _learn(self, page: PageBlocks, traces: Traces) -> None:
        self._load(page.site_id)
        evidence, early = self._evidence[page.site_id], self._early[page.site_id]
        if evidence.pages < EARLY_PAGES:
            early.append(page.url_id)
        evidence.learn(page.blocks, traces)
        self._changed.add(page.site_id)

    def _load(self, site_id: int) -> None:
        if site_id in self._evidence:
            return
        stored = changes.evidence(self._connection, site_id, EVIDENCE)
        early = changes.evidence(self._connection, site_id, EARLY)
        self._evidence[site_id] = SiteEvidence.from_bytes(stored) if stored else SiteEvidence()
        self._early[site_id] = [UrlId(page) for page in np.frombuffer(early or b"", "<i8").tolist()]

    def store(self, marked: Iterable[Marked]) -> None:
        """Keeps the parts of pages, and what was learned of their sites. Within a transaction."""
        block_rows.write_parts(self._connection, [(page.url_id, page.body_id, parts) for page, parts in marked if parts and parts != page.parts])
        for site_id in self._changed:
            changes.write_evidence(self._connection, site_id, EVIDENCE, self._evidence[site_id].to_bytes())
            changes.write_evidence(self._connection, site_id, EARLY, np.array(self._early[site_id], "<i8").tobytes())
        self._changed.clear()

    def again(self, site_id: int) -> Iterator[Marked]:
        """The site's pages that were marked early and are marked otherwise now. They are early no longer, once `store` was called."""
        self._load(site_id)
        evidence, early = self._evidence[site_id], self._early[site_id]
        if not early:
            return
        for some in [early[start : start + AT_ONCE] for start in range(0, len(early), AT_ONCE)]:
            pages = [page for page in block_rows.pages_of(self._connection, some) if page.parts is not None and page.blocks]
            found = parts_of_each(known(page.blocks, evidence) for page in pages)
            yield from [(page, parts) for page, parts in zip(pages, found, strict=True) if parts != page.parts]
        early.clear()
        self._changed.add(site_id)
