"""Marks the blocks of pages, navigation or content, as they come, and learns their sites from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from periplus.analyse.content.evidence import SiteEvidence, Traces, traces_of
from periplus.analyse.content.marking import PageContext, page_context, parts_of, parts_of_each
from periplus.model.page import Blocks, Part, Publication
from periplus.model.web import Url, UrlId
from periplus.store.crawl_reads import PageBlocks
from periplus.store.sqlite import changes, reading, text_rows

# A page that has its parts was learned by its site's evidence already: parts, evidence and the follower's place
# are stored in one transaction. The first pages of a site and of each of its sections are marked while little is known
# of them, and once more when there is more to know.

# names under which a site's evidence, and the ids of its first pages, are stored
EVIDENCE, EARLY = "content", "marked early"
EARLY_PAGES = 50  # of a site's section: with more behind them, marks hardly change any more
MOST_EARLY = 500  # of a site of many small sections: what they cost twice is bounded
FEW_PAGES = 10  # of a section: each more tells of its menu
OUTGROWN = 1.5  # times as many pages as a page was marked by, where these were not few
EVIDENCE_BYTES = 64_000_000  # of sites that wait in memory for their next pages; a site of many texts has 8 MB
AT_ONCE = 200
LOOKED_AT = 40  # pages of the site of one that is asked for: 60 ms; as good as all of them

Marked = tuple[PageBlocks, Sequence[Part]]


def _section(url: Url) -> str:
    """The first folder of its path; empty in the site's root."""
    parts = url.split("/", 4)
    return parts[3] if len(parts) > 4 else ""


def _context(page: PageBlocks, evidence: SiteEvidence, traces: Traces | None = None) -> PageContext:
    return page_context(page.blocks, evidence, traces, publication=_publication(page))


def _publication(page: PageBlocks) -> Publication:
    return Publication(page.author, date_published=page.date_published, date_modified=page.date_modified)


class SiteSample(NamedTuple):
    """What is known of a site by some of its pages."""

    evidence: SiteEvidence
    pages: frozenset[UrlId]


def sample_of(pages: Iterable[tuple[UrlId, Blocks]]) -> SiteSample:
    """What these pages tell of their site."""
    evidence = SiteEvidence()
    with_text = [(url_id, blocks) for url_id, blocks in pages if blocks]
    for _, blocks in with_text:
        evidence.learn(blocks)
    return SiteSample(evidence, frozenset(url_id for url_id, _ in with_text))


def parts_by(sample: SiteSample, url_id: UrlId, blocks: Blocks, publication: Publication) -> tuple[Part, ...]:
    """One part for each block of a page of the site."""
    return parts_of(blocks, sample.evidence, learnt=url_id in sample.pages, publication=publication)


def parts_beside(
    connection: reading.Connection, url_id: UrlId, samples: dict[int, SiteSample] | None
) -> tuple[Part, ...]:
    """One part for each block of a page that is not marked, by up to LOOKED_AT pages of its site; none for a page
    without text. Nothing is stored. samples: by site, those made so far, to which its own is added.
    """
    page = next(text_rows.pages_of(connection, [url_id]), None)
    if page is None or not page.blocks:
        return ()
    sample = (samples or {}).get(page.site_id)
    if sample is None:
        some = text_rows.pages_of_site(connection, page.site_id, LOOKED_AT)
        sample = sample_of((other.url_id, other.blocks) for other in some)
        if samples is not None:
            samples[page.site_id] = sample
    return parts_by(sample, url_id, page.blocks, _publication(page))


class Marks:
    """Marks pages by what was learned of their sites, and learns from them."""

    def __init__(self, connection: reading.Connection) -> None:
        self._connection = connection
        self._evidence: dict[int, SiteEvidence] = {}
        self._early: dict[int, list[UrlId]] = {}
        self._learned: Counter[tuple[int, str]] = Counter()  # pages since this began, by site and section
        # of early pages that were marked since this began: the section, and how many pages of it were learned then
        self._marked_by: dict[UrlId, tuple[tuple[int, str], int]] = {}
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
        self._note_early([page for page, _ in new])
        parts = parts_of_each(_context(page, self._evidence[page.site_id], traces) for page, traces in new)
        parts_of_page = {page.url_id: of_page for (page, _), of_page in zip(new, parts, strict=True)}
        return [parts_of_page.get(page.url_id, page.parts or ()) for page in pages]

    def _note_early(self, pages: Sequence[PageBlocks]) -> None:
        """Sections have menus of their own, as the languages of a site: pages of each are early as long as few of it
        are learned, these with them.
        """
        sections = [(page.site_id, _section(page.url)) for page in pages]
        self._learned.update(sections)
        for page, section in zip(pages, sections, strict=True):
            early, learned = self._early[page.site_id], self._learned[section]
            if learned <= EARLY_PAGES and len(early) < MOST_EARLY:
                early.append(page.url_id)
                self._marked_by[page.url_id] = section, learned

    def _is_outgrown(self, page: UrlId) -> bool:
        """Whether so much more is learned of an early page's section by now that it may be marked otherwise."""
        section, learned = self._marked_by.pop(page, ((0, ""), -1))
        return self._learned[section] > (learned if learned < FEW_PAGES else OUTGROWN * learned)

    def _learn(self, page: PageBlocks, traces: Traces) -> None:
        self._load(page.site_id)
        self._evidence[page.site_id].learn(page.blocks, traces)
        self._changed.add(page.site_id)

    def _load(self, site_id: int) -> None:
        if site_id in self._evidence:
            return
        early = changes.evidence(self._connection, site_id, EARLY)
        self._evidence[site_id] = self._stored(site_id)
        self._early[site_id] = [UrlId(page) for page in np.frombuffer(early or b"", "<i8").tolist()]

    def _stored(self, site_id: int) -> SiteEvidence:
        """What was learned of a site; learned anew where another version stored it."""
        stored = changes.evidence(self._connection, site_id, EVIDENCE)
        if not stored:
            return SiteEvidence()
        try:
            return SiteEvidence.from_bytes(stored)
        except ValueError:
            evidence = SiteEvidence()
            for page in text_rows.pages_of_site(self._connection, site_id):
                if page.parts is not None and page.blocks:
                    evidence.learn(page.blocks)
            return evidence

    def store(self, marked: Iterable[Marked]) -> None:
        """Keeps the parts of pages, and what was learned of their sites. Within a transaction."""
        text_rows.write_parts(
            self._connection,
            [(page.url_id, page.body_id, parts) for page, parts in marked if parts and parts != page.parts],
        )
        for site_id in self._changed:
            changes.write_evidence(self._connection, site_id, EVIDENCE, self._evidence[site_id].to_bytes())
            changes.write_evidence(self._connection, site_id, EARLY, np.array(self._early[site_id], "<i8").tobytes())
        self._changed.clear()
        size = sum(evidence.size_bytes for evidence in self._evidence.values())
        while size > EVIDENCE_BYTES:  # the one that came first; it is read again when it is asked for
            size -= self._forget(next(iter(self._evidence)))

    def _forget(self, site_id: int) -> int:
        del self._early[site_id]
        return self._evidence.pop(site_id).size_bytes

    def again(self, site_id: int) -> Iterator[Marked]:
        """The site's pages that were marked early and are marked otherwise now.

        They are early no longer, once `store` was called.
        """
        if site_id not in self._evidence and not changes.evidence(self._connection, site_id, EARLY):
            return
        self._load(site_id)
        evidence, early = self._evidence[site_id], self._early[site_id]
        if not early:
            return
        outgrown = [page for page in early if self._is_outgrown(page)]
        for some in [outgrown[start : start + AT_ONCE] for start in range(0, len(outgrown), AT_ONCE)]:
            pages = [
                page for page in text_rows.pages_of(self._connection, some) if page.parts is not None and page.blocks
            ]
            marks = parts_of_each(_context(page, evidence) for page in pages)
            yield from [(page, parts) for page, parts in zip(pages, marks, strict=True) if parts != page.parts]
        early.clear()
        self._changed.add(site_id)
