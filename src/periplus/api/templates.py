"""Which pages of a site did one template make, and what of each is navigation? Found from the stored pages, by one of several methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from periplus.analyse.marked_text import text_of
from periplus.api.facts import chosen_start, starts_of
from periplus.api.template_methods import METHODS, Judged, Watch, are_marked, by_shorkin
from periplus.errors import UsageError
from periplus.model.template import PUBLISHED, MarkedPage, SiteTemplates, Template, TemplatePage, TemplateRules
from periplus.store.sqlite import graph_rows, reading, runs
from periplus.store.sqlite.source_rows import source_rows


@dataclass(frozen=True, slots=True)
class TemplateOrder:
    """What is wanted. site: its key, where the collection has several. method: of METHODS; empty: `site` where pages are marked, else `shorkin`."""

    site: str = ""
    method: str = ""
    rules: TemplateRules = PUBLISHED


@dataclass(frozen=True, slots=True)
class Templates:
    """A site's templates, and its pages marked by them as long as the collection is open."""

    found: SiteTemplates
    _pages: Sequence[TemplatePage]
    _judged: Judged

    def chosen(self, most: int = -1) -> list[tuple[TemplatePage, int]]:
        """(page, its template): template after template, then those that none took (-1); most: of each, -1: all."""
        return [(self._pages[page], template) for page, template in self._places(most)]

    def marked(self, most: int = -1) -> Iterator[MarkedPage]:
        """The same pages in the same order, with their parts told apart."""
        for page, template in self._places(most):
            yield MarkedPage(self._pages[page], template, tuple(self._judged.blocks(page)))

    def texts(self) -> Iterator[tuple[TemplatePage, str]]:
        """The text of each page without navigation, a block a line."""
        for page, _ in self._places():
            yield self._pages[page], text_of(self._judged.blocks(page))

    def sources(self) -> Iterator[tuple[TemplatePage, str]]:
        """The source of each page without navigation. Raises UsageError for a method that does not judge sources."""
        for page, _ in self._places():
            yield self._pages[page], self._judged.source_left(page)

    def _places(self, most: int = -1) -> list[tuple[int, int]]:
        """(number of a page, its template), at most so many of each template."""
        taken = {page for cluster in self._judged.clusters for page in cluster.pages}
        groups = [(at, cluster.pages) for at, cluster in enumerate(self._judged.clusters)]
        groups.append((-1, tuple(page for page in range(len(self._pages)) if page not in taken)))
        return [(page, at) for at, pages in groups for page in (pages if most < 0 else pages[:most])]


def site_templates(connection: reading.Connection, order: TemplateOrder, watch: Watch = lambda what, done, total: None) -> Templates:
    """The templates of a site's HTML pages as they are stored. Raises UsageError for a site or a method that is not there."""
    if order.method and order.method not in METHODS:
        raise UsageError(f"there is no method {order.method!r}: choose among {', '.join(METHODS)}")
    site = chosen_start(starts_of(runs.run_records(connection), connection, graph_rows.redirects(connection)), order.site).site
    rows = source_rows(connection, site)
    marked = order.method != "shorkin" and are_marked(connection, rows)
    if order.method == "site" and rows and not marked:
        raise UsageError(f"no page of {site} is marked yet: take --method shorkin")
    method = order.method or ("site" if marked else "shorkin")
    judged = METHODS[method](connection, rows, order.rules, watch)
    pages = [TemplatePage(row.url, row.title, judged.sizes[at], judged.navigation_bytes[at]) for at, row in enumerate(rows)]
    taken = {page for cluster in judged.clusters for page in cluster.pages}
    templates = tuple(_template([pages[page] for page in cluster.pages], cluster.chain_bytes) for cluster in judged.clusters)
    others = tuple(page for at, page in enumerate(pages) if at not in taken)
    return Templates(SiteTemplates(site, method, order.rules, templates, others), pages, judged)


def _template(pages: Sequence[TemplatePage], chain_bytes: int) -> Template:
    share = sum(page.navigation_bytes / page.size_bytes for page in pages if page.size_bytes) / len(pages)
    return Template(tuple(pages), chain_bytes, share)


def shorkin_text(pages: Sequence[str], rules: TemplateRules = PUBLISHED) -> list[str]:
    """The text of each of a site's pages without navigation, by Shorkin's method. pages: sources."""
    judged = by_shorkin(pages.__getitem__, len(pages), rules, lambda what, done, total: None)
    return [text_of(judged.blocks(page)) for page in range(len(pages))]
