"""Marks blocks of pages as content or navigation during indexing, and learns each site's repeated elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from sys import getsizeof
from typing import NamedTuple

import numpy as np

from periplus.analyse.content.evidence import SiteEvidence, Traces, traces_of
from periplus.analyse.content.marking import PageContext, page_context, parts_of, parts_of_each
from periplus.model.page import Blocks, Part, Publication
from periplus.model.web import Url, UrlId
from periplus.store import text_rows
from periplus.store.crawl_reads import PageBlocks
from periplus.store.reader import CollectionReader

# A page with stored parts is already included in its site's evidence: parts, evidence and the follower's position are
# stored in one transaction. The first pages of a site and of each of its sections are marked with little evidence, and
# marked again when there is more.

# names of stored evidence, and of the ids of early pages
EVIDENCE, EARLY = "content", "marked early"
EARLY_PAGES = 50  # per section of a site: with more pages before them, marks hardly change
MOST_EARLY = 500  # per site: bounds the cost of marking twice
FEW_PAGES = 10  # per section: below this, each page improves the evidence about its menu
OUTGROWN = 1.5  # growth of the evidence after which a page is marked again, above FEW_PAGES
EVIDENCE_BYTES = 64_000_000  # cached evidence; a large site has 8 MB
AT_ONCE = 200
SAMPLE_PAGES = 40  # sampled pages of the site of a requested page: 60 ms, as accurate as all of them

PageParts = tuple[PageBlocks, Sequence[Part]]


def _section(url: Url) -> str:
    """First directory of the URL's path; empty for the root."""
    parts = url.split("/", 4)
    return parts[3] if len(parts) > 4 else ""


def _context(page: PageBlocks, evidence: SiteEvidence, traces: Traces | None = None) -> PageContext:
    return page_context(page.blocks, evidence, traces, publication=_publication(page))


def _publication(page: PageBlocks) -> Publication:
    return Publication(page.author, date_published=page.date_published, date_modified=page.date_modified)


class SiteSample(NamedTuple):
    """Evidence about a site from a sample of its pages."""

    evidence: SiteEvidence
    pages: frozenset[UrlId]


def sample_of(pages: Iterable[tuple[UrlId, Blocks]]) -> SiteSample:
    """Evidence from these pages."""
    evidence = SiteEvidence()
    with_text = [(url_id, blocks) for url_id, blocks in pages if blocks]
    for _, blocks in with_text:
        evidence.learn(blocks)
    return SiteSample(evidence, frozenset(url_id for url_id, _ in with_text))


def parts_beside(reader: CollectionReader, url_id: UrlId, samples: dict[int, SiteSample] | None) -> tuple[Part, ...]:
    """The part of each block of a page without stored marks, from up to LOOKED_AT pages of its site; empty without
    text. Stores nothing. samples: cache by site, which gets the site's sample.
    """
    page = next(reader.page_blocks([url_id]), None)
    if page is None or not page.blocks:
        return ()
    sample = (samples or {}).get(page.site_id)
    if sample is None:
        siblings = reader.site_blocks(page.site_id, SAMPLE_PAGES)
        sample = sample_of((other.url_id, other.blocks) for other in siblings)
        if samples is not None:
            samples[page.site_id] = sample
    return parts_of(page.blocks, sample.evidence, learnt=url_id in sample.pages, publication=_publication(page))


class LearnedPage(NamedTuple):
    """A page that the evidence of its site includes. traces: None if it needs no marks."""

    page: PageBlocks
    traces: Traces | None = None

    @property
    def size_bytes(self) -> int:
        """Approximate size in memory."""
        arrays = self.traces[:-1] if self.traces is not None else ()
        return sum([array.nbytes for array in arrays]) + getsizeof(self.page.blocks.text)


class Marks:
    """Marks pages by their site's evidence, and adds them to it."""

    def __init__(self, reader: CollectionReader, records: CollectionReader | None = None) -> None:
        """records: stores marks and evidence; by default the collection."""
        self._reader, self._records = reader, records or reader
        self._evidence: dict[int, SiteEvidence] = {}
        self._early: dict[int, list[UrlId]] = {}
        self._learned: Counter[tuple[int, str]] = Counter()  # pages learned in this session, by site and section
        # early pages marked in this session: their section, and how many of its pages were learned by then
        self._marked_by: dict[UrlId, tuple[tuple[int, str], int]] = {}
        self._changed: set[int] = set()

    @property
    def has_changes(self) -> bool:
        """Whether unstored changes exist."""
        return bool(self._changed)

    def learn(self, pages: Iterable[PageBlocks]) -> list[LearnedPage]:
        """Adds pages without marks to the evidence of their sites."""
        learned = []
        for page in pages:
            traces = traces_of(page.blocks) if page.parts is None and page.blocks else None
            if traces is not None:
                self._load(page.site_id)
                self._evidence[page.site_id].learn(page.blocks, traces)
                self._changed.add(page.site_id)
            learned.append(LearnedPage(page, traces))
        return learned

    def forget(self, learned: LearnedPage) -> None:
        """Reverts `learn` of a page that was not marked yet."""
        if learned.traces is not None:
            self._evidence[learned.page.site_id].forget(learned.page.blocks)

    def of(self, pages: Sequence[LearnedPage]) -> list[Sequence[Part]]:
        """The part of each block of each page; empty for a page without text."""
        new = [(page, traces) for page, traces in pages if traces is not None]
        self._note_early([page for page, _ in new])
        parts = parts_of_each(_context(page, self._evidence[page.site_id], traces) for page, traces in new)
        parts_of_page = {page.url_id: of_page for (page, _), of_page in zip(new, parts, strict=True)}
        return [parts_of_page.get(page.url_id, page.parts or ()) for page, _ in pages]

    def _note_early(self, pages: Sequence[PageBlocks]) -> None:
        """Notes which of the pages are early. Sections such as languages have their own menus, so the first pages of
        each section are early.
        """
        sections = [(page.site_id, _section(page.url)) for page in pages]
        self._learned.update(sections)
        for page, section in zip(pages, sections, strict=True):
            early, learned = self._early[page.site_id], self._learned[section]
            if learned <= EARLY_PAGES and len(early) < MOST_EARLY:
                early.append(page.url_id)
                self._marked_by[page.url_id] = section, learned

    def _is_outgrown(self, page: UrlId) -> bool:
        """Whether so many more pages of an early page's section are learned by now that its marks may change."""
        section, learned = self._marked_by.pop(page, ((0, ""), -1))
        return self._learned[section] > (learned if learned < FEW_PAGES else OUTGROWN * learned)

    def _load(self, site_id: int) -> None:
        if site_id in self._evidence:
            return
        early = text_rows.evidence(self._records, site_id, EARLY)
        self._evidence[site_id] = self._stored_evidence(site_id)
        self._early[site_id] = [UrlId(page) for page in np.frombuffer(early or b"", "<i8").tolist()]

    def _stored_evidence(self, site_id: int) -> SiteEvidence:
        """Stored evidence of a site; rebuilt if another version stored it."""
        stored = text_rows.evidence(self._records, site_id, EVIDENCE)
        if not stored:
            return SiteEvidence()
        try:
            return SiteEvidence.from_bytes(stored)
        except ValueError:
            evidence = SiteEvidence()
            for page in self._reader.site_blocks(site_id):
                if page.parts is not None and page.blocks:
                    evidence.learn(page.blocks)
            return evidence

    def store(self, marked: Iterable[PageParts]) -> None:
        """Stores marks of pages and evidence of sites. Call within a transaction."""
        text_rows.write_parts(
            self._records.statements,
            [(page.url_id, page.body_id, parts) for page, parts in marked if parts and parts != page.parts],
        )
        for site_id in self._changed:
            text_rows.write_evidence(self._records.statements, site_id, EVIDENCE, self._evidence[site_id].to_bytes())
            text_rows.write_evidence(
                self._records.statements, site_id, EARLY, np.array(self._early[site_id], "<i8").tobytes()
            )
        self._changed.clear()
        size = sum(evidence.size_bytes for evidence in self._evidence.values())
        while size > EVIDENCE_BYTES:  # evict the oldest; it is read again on demand
            size -= self._forget(next(iter(self._evidence)))

    def _forget(self, site_id: int) -> int:
        del self._early[site_id]
        return self._evidence.pop(site_id).size_bytes

    def again(self, site_id: int) -> Iterator[PageParts]:
        """Yields early pages of the site whose marks have changed. `store` then clears their status as early."""
        if site_id not in self._evidence and not text_rows.evidence(self._records, site_id, EARLY):
            return
        self._load(site_id)
        evidence, early = self._evidence[site_id], self._early[site_id]
        if not early:
            return
        outgrown = [page for page in early if self._is_outgrown(page)]
        for batch in [outgrown[start : start + AT_ONCE] for start in range(0, len(outgrown), AT_ONCE)]:
            pages = [page for page in self._reader.page_blocks(batch) if page.parts is not None and page.blocks]
            marks = parts_of_each(_context(page, evidence) for page in pages)
            yield from [(page, parts) for page, parts in zip(pages, marks, strict=True) if parts != page.parts]
        early.clear()
        self._changed.add(site_id)
