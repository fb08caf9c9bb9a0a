"""Which pages of a site did one template make, and what of each is navigation? Found from the stored pages, by one of several methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.fragmenters import Chains, Fragments, Mask, chains, covered, fragments, source_left
from periplus.analyse.marked_text import marked_blocks, text_of
from periplus.analyse.shorkin import clusters_of, navigation_of
from periplus.api.facts import chosen_start, starts_of
from periplus.document.decode import decode
from periplus.errors import UsageError
from periplus.model.template import PUBLISHED, MarkedBlock, MarkedPage, SiteTemplates, Template, TemplatePage, TemplateRules
from periplus.model.web import SiteKey
from periplus.store.sqlite import graph_rows, reading, runs
from periplus.store.sqlite.contents import Contents
from periplus.store.sqlite.source_rows import SourceRow, source_rows

Watch = Callable[[str, int, int], None]  # (what is being done, pages done, pages in all)


@dataclass(frozen=True, slots=True)
class TemplateOrder:
    """What is wanted. site: its key, where the collection has several."""

    site: str = ""
    method: str = "shorkin"
    rules: TemplateRules = PUBLISHED


@dataclass(frozen=True, slots=True)
class Judged:
    """What a method says of pages. Their sources are not kept: whoever marks a page gives it again."""

    clusters: tuple[tuple[int, ...], ...]  # numbers of pages
    chain_bytes: tuple[int, ...]  # by cluster
    navigation_bytes: Sequence[int]  # by page
    sizes: Sequence[int]  # by page, bytes
    blocks: Callable[[int, str], Iterable[MarkedBlock]]
    left: Callable[[int, str], str]


@dataclass(frozen=True, slots=True)
class Templates:
    """A site's templates, and its pages marked by them as long as the collection is open."""

    found: SiteTemplates
    _order: tuple[tuple[int, int], ...]  # (page, its template): as in found, template after template, then the others
    _pages: Sequence[TemplatePage]
    _judged: Judged
    _source: Callable[[int], str]

    def chosen(self, most: int = -1) -> list[tuple[TemplatePage, int]]:
        """(page, its template): template after template, then those that none took (-1); most: of each, -1: all."""
        return [(self._pages[page], template) for page, template in self._chosen(most)]

    def marked(self, most: int = -1) -> Iterator[MarkedPage]:
        """The same pages in the same order, with their parts told apart."""
        for page, template in self._chosen(most):
            yield MarkedPage(self._pages[page], template, tuple(self._judged.blocks(page, self._source(page))))

    def texts(self) -> Iterator[tuple[TemplatePage, str]]:
        """The text of each page without navigation, a block a line."""
        for page, _ in self._order:
            yield self._pages[page], text_of(self._judged.blocks(page, self._source(page)))

    def sources(self) -> Iterator[tuple[TemplatePage, str]]:
        """The source of each page without navigation."""
        for page, _ in self._order:
            yield self._pages[page], self._judged.left(page, self._source(page))

    def _chosen(self, most: int) -> Iterator[tuple[int, int]]:
        shown: dict[int, int] = {}
        for page, template in self._order:
            shown[template] = shown.get(template, 0) + 1
            if most < 0 or shown[template] <= most:
                yield page, template


def site_templates(connection: reading.Connection, order: TemplateOrder, watch: Watch = lambda what, done, total: None) -> Templates:
    """The templates of a site's HTML pages as they are stored. Raises UsageError for a site or method that is not there."""
    if order.method not in METHODS:
        raise UsageError(f"there is no method {order.method!r}: choose among {', '.join(METHODS)}")
    site = chosen_start(starts_of(runs.run_records(connection), connection, graph_rows.redirects(connection)), order.site).site
    rows = source_rows(connection, site)
    contents = Contents(connection)

    def source(page: int) -> str:
        row = rows[page]
        return decode(contents.body(row.url_id) or b"", row.charset, row.media_type)[0]

    judged = METHODS[order.method](_watched(source, len(rows), watch), order.rules, watch)
    return _templates(site, order, rows, judged, source)


def _watched(source: Callable[[int], str], count: int, watch: Watch) -> Iterator[str]:
    for page in range(count):
        watch("Reading pages", page, count)
        yield source(page)


def _templates(site: SiteKey, order: TemplateOrder, rows: Sequence[SourceRow], judged: Judged, source: Callable[[int], str]) -> Templates:
    pages = [TemplatePage(row.url, row.title, judged.sizes[at], judged.navigation_bytes[at]) for at, row in enumerate(rows)]
    taken = {page for cluster in judged.clusters for page in cluster}
    others = [page for page in range(len(rows)) if page not in taken]
    templates = tuple(_template([pages[page] for page in cluster], size) for cluster, size in zip(judged.clusters, judged.chain_bytes, strict=True))
    places = [(page, at) for at, cluster in enumerate(judged.clusters) for page in cluster] + [(page, -1) for page in others]
    found = SiteTemplates(site, order.method, order.rules, templates, tuple(pages[page] for page in others))
    return Templates(found, tuple(places), pages, judged, source)


def _template(pages: Sequence[TemplatePage], chain_bytes: int) -> Template:
    share = sum(page.navigation_bytes / page.size_bytes for page in pages if page.size_bytes) / len(pages)
    return Template(tuple(pages), chain_bytes, share)


def by_shorkin(sources: Iterable[str], rules: TemplateRules, watch: Watch = lambda what, done, total: None) -> Judged:
    """Shorkin's method; memory: 12 bytes for each tag and text of the site, sources are read once."""
    length = rules.min_fragmenters_chain
    held: list[Chains] = []
    parts: list[NDArray[np.int32]] = []
    for source in sources:
        pieces = fragments(source)
        held.append(chains(pieces, length))
        parts.append(np.fromiter(map(len, pieces.parts), np.int32, len(pieces.parts)))
    found = sorted(clusters_of(held, rules, lambda taken, _: watch("Comparing pages", taken, len(held))), key=lambda cluster: -len(cluster.pages))
    navigation = navigation_of(len(held), found)
    gone = [int(size[covered(one, wanted, length)].sum()) if len(one) else 0 for size, one, wanted in zip(parts, held, navigation, strict=True)]

    def marked(page: int, source: str) -> tuple[Fragments, Mask]:
        pieces = fragments(source)
        return pieces, covered(chains(pieces, length), navigation[page], length)

    return Judged(
        clusters=tuple(cluster.pages for cluster in found),
        chain_bytes=tuple(cluster.chain_bytes for cluster in found),
        navigation_bytes=gone,
        sizes=[int(size.sum()) for size in parts],
        blocks=lambda page, source: marked_blocks(*marked(page, source)),
        left=lambda page, source: source_left(*marked(page, source)),
    )


METHODS: dict[str, Callable[[Iterable[str], TemplateRules, Watch], Judged]] = {"shorkin": by_shorkin}


def shorkin_text(pages: Sequence[str], rules: TemplateRules = PUBLISHED) -> list[str]:
    """The text of each of a site's pages without navigation, by Shorkin's method. pages: sources."""
    judged = by_shorkin(pages, rules)
    return [text_of(judged.blocks(page, source)) for page, source in enumerate(pages)]
