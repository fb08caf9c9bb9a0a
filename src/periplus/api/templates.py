"""Separates navigation from content: finds page templates by Shorkin's method or from stored marks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import xxhash

from periplus.analyse.marked_text import marked_blocks, text_of
from periplus.analyse.shorkin import (
    ChainCluster,
    Chains,
    Fragments,
    chains,
    clusters_of,
    fragments,
    is_covered,
    navigation_of,
    source_left,
)
from periplus.api.facts import chosen_start, site_starts
from periplus.document.decode import decode
from periplus.errors import UsageError
from periplus.model.arrays import Ints32, Mask
from periplus.model.duplicates import (
    PUBLISHED_RULES,
    MarkedBlock,
    MarkedPage,
    SiteTemplates,
    Template,
    TemplatePage,
    TemplateRules,
    TextRun,
)
from periplus.model.page import Block, Part
from periplus.store.reader import CollectionReader
from periplus.store.text_rows import SourceRow, source_rows
from periplus.values import Watch, frozen


@frozen
class TemplateMarks:
    """A method's result for pages, by page number.

    Sources and texts are not held; they are read again on demand.
    """

    clusters: Sequence[ChainCluster]  # largest first
    navigation_bytes: Sequence[int]  # by page
    sizes: Sequence[int]  # by page, bytes
    blocks: Callable[[int], Iterable[MarkedBlock]]
    source_left: Callable[[int], str]


def shorkin_marks(source: Callable[[int], str], count: int, rules: TemplateRules, watch: Watch) -> TemplateMarks:
    """Shorkin's method. source: source of a page by number. Memory: 12 bytes per tag and text of the site."""
    length = rules.min_fragmenters_chain
    held: list[Chains] = []
    parts: list[Ints32] = []
    for page in range(count):
        watch("Reading pages", page, count)
        pieces = fragments(source(page))
        held.append(chains(pieces, length))
        parts.append(np.fromiter(map(len, pieces.parts), np.int32, len(pieces.parts)))
    clusters = _clusters(held, rules, watch)
    navigation = navigation_of(count, clusters)
    gone = [
        int(size[is_covered(page_chains, picked, length)].sum()) if len(page_chains) else 0
        for size, page_chains, picked in zip(parts, held, navigation, strict=True)
    ]

    def mark_page(page: int) -> tuple[Fragments, Mask]:
        pieces = fragments(source(page))
        return pieces, is_covered(chains(pieces, length), navigation[page], length)

    sizes = [int(size.sum()) for size in parts]
    return TemplateMarks(
        clusters, gone, sizes, lambda page: marked_blocks(*mark_page(page)), lambda page: source_left(*mark_page(page))
    )


def _clusters(held: Sequence[Chains], rules: TemplateRules, watch: Watch) -> list[ChainCluster]:
    clusters = clusters_of(held, rules, lambda taken, _: watch("Comparing pages", taken, len(held)))
    return sorted(clusters, key=lambda cluster: -len(cluster.pages))


def sampled_sources(
    reader: CollectionReader, rows: Sequence[SourceRow], rules: TemplateRules, watch: Watch
) -> TemplateMarks:
    """Shorkin's method on stored pages."""
    contents = reader

    def source(page: int) -> str:
        row = rows[page]
        return decode(contents.body(row.url_id) or b"", row.charset, row.media_type)[0]

    return shorkin_marks(source, len(rows), rules, watch)


def template_marks(
    reader: CollectionReader, rows: Sequence[SourceRow], rules: TemplateRules, watch: Watch
) -> TemplateMarks:
    """Templates from the stored marks, by the same rules, with navigation blocks in place of chains.

    Blocks are complete and their white space is folded, so no runs of blocks need to agree. Identical pages also share
    a template.
    """

    def blocks_with_parts(page: int) -> Iterator[tuple[Block, Part]]:
        for page_blocks in reader.page_blocks([rows[page].url_id]):
            parts = (part if part is Part.NAVIGATION else Part.CONTENT for part in page_blocks.parts or ())
            yield from zip(page_blocks.blocks, parts, strict=False)

    held: list[Chains] = []
    sizes: list[int] = []
    for page in range(len(rows)):
        watch("Reading pages", page, len(rows))
        blocks = list(blocks_with_parts(page))
        held.append(np.array([_chain(block) for block, part in blocks if part is Part.NAVIGATION], np.uint64))
        sizes.append(sum(_bytes(block) for block, _ in blocks))
    alike = replace(rules, duplicates=100)
    gone = [int((chain & np.uint64(0xFFFFFFFF)).sum()) for chain in held]
    return TemplateMarks(
        _clusters(held, alike, watch),
        gone,
        sizes,
        lambda page: (
            MarkedBlock(block.kind, block.level, (TextRun(block.text, part),))
            for block, part in blocks_with_parts(page)
        ),
        _no_source,
    )


def _bytes(block: Block) -> int:
    return len(block.text.encode("utf-8", "replace"))


def _chain(block: Block) -> int:
    """Name of a block in the form of `shorkin.chains`: 32 bits of hash, 32 bits of length."""
    return xxhash.xxh32_intdigest(f"{block.kind} {block.text}".encode("utf-8", "replace")) << 32 | _bytes(block)


def _no_source(page: int) -> str:
    raise UsageError("marks apply to a page's text, not to its source: use --text or --method shorkin")


def are_marked(reader: CollectionReader, rows: Sequence[SourceRow]) -> bool:
    """Whether pages have marks, judged by a sample spread over all."""
    sample = rows[:: max(1, len(rows) // 50)]
    return any(page.parts is not None for page in reader.page_blocks([row.url_id for row in sample]))


METHODS: dict[str, Callable[[CollectionReader, Sequence[SourceRow], TemplateRules, Watch], TemplateMarks]] = {
    "site": template_marks,
    "shorkin": sampled_sources,
}


@frozen
class Templates:
    """A site's templates and its marked pages; usable while the collection is open."""

    found: SiteTemplates
    _pages: Sequence[TemplatePage]
    _judged: TemplateMarks

    def numbered_pages(self, most: int = -1) -> list[tuple[TemplatePage, int]]:
        """(page, template number), by template, then pages without template (-1). most: per template; -1: all."""
        return [(self._pages[page], template) for page, template in self._places(most)]

    def marked_pages(self, most: int = -1) -> Iterator[MarkedPage]:
        """The same pages in the same order, with content and navigation marked."""
        for page, template in self._places(most):
            yield MarkedPage(self._pages[page], template, tuple(self._judged.blocks(page)))

    def texts(self) -> Iterator[tuple[TemplatePage, str]]:
        """Text of each page without navigation, one block per line."""
        for page, _ in self._places():
            yield self._pages[page], text_of(self._judged.blocks(page))

    def sources(self) -> Iterator[tuple[TemplatePage, str]]:
        """Source of each page without navigation. Raises UsageError for a method that works on text only."""
        for page, _ in self._places():
            yield self._pages[page], self._judged.source_left(page)

    def _places(self, most: int = -1) -> list[tuple[int, int]]:
        """(page number, template number), at most `most` pages per template."""
        taken = {page for cluster in self._judged.clusters for page in cluster.pages}
        groups = [(at, cluster.pages) for at, cluster in enumerate(self._judged.clusters)]
        groups.append((-1, tuple(page for page in range(len(self._pages)) if page not in taken)))
        return [(page, at) for at, pages in groups for page in (pages if most < 0 else pages[:most])]


def site_templates(
    reader: CollectionReader,
    name: str = "",
    *,
    method: str = "",
    rules: TemplateRules = PUBLISHED_RULES,
    watch: Watch = lambda what, done, total: None,
) -> Templates:
    """Templates of a site's stored HTML pages.

    name: the site's key, if the collection has several. method: from METHODS; empty: `site` if pages are marked, else
    `shorkin`. Raises UsageError for an unknown site or method.
    """
    if method and method not in METHODS:
        raise UsageError(f"unknown method {method!r}: choose among {', '.join(METHODS)}")
    site = chosen_start(site_starts(reader), name).site
    rows = source_rows(reader, site)
    marked = method != "shorkin" and are_marked(reader, rows)
    if method == "site" and rows and not marked:
        raise UsageError(f"no page of {site} is marked yet: use --method shorkin")
    method = method or ("site" if marked else "shorkin")
    judged = METHODS[method](reader, rows, rules, watch)
    pages = [
        TemplatePage(row.url, row.title, judged.sizes[at], judged.navigation_bytes[at]) for at, row in enumerate(rows)
    ]
    taken = {page for cluster in judged.clusters for page in cluster.pages}
    templates = tuple(
        _template([pages[page] for page in cluster.pages], cluster.chain_bytes) for cluster in judged.clusters
    )
    others = tuple(page for at, page in enumerate(pages) if at not in taken)
    return Templates(SiteTemplates(site, method, rules, templates, others), pages, judged)


def _template(pages: Sequence[TemplatePage], chain_bytes: int) -> Template:
    share = sum(page.navigation_bytes / page.size_bytes for page in pages if page.size_bytes) / len(pages)
    return Template(tuple(pages), chain_bytes, share)
