"""What shall be deleted, and what goes with it?"""

from __future__ import annotations

from dataclasses import dataclass

from periplus.model.web import SiteKey, UrlId


@dataclass(frozen=True, slots=True)
class Deletion:
    """A wish to delete: pages, all of a site, or a run; several together are one wish. Other addresses of a page go with it.

    links_to: whether other pages' links to what is deleted go too, and the addresses with them; else those that are linked stay known.
    again: such addresses wait to be fetched; else they are left alone until a crawl names them as starts.
    run_pages: whether pages that only this run fetched go with it.
    """

    pages: tuple[UrlId, ...] = ()
    site: SiteKey | None = None
    run: int = 0  # 0: none
    links_to: bool = False
    again: bool = False
    run_pages: bool = True


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """What a deletion takes from a collection: rows of each kind, and bytes of what they hold (the file itself keeps its size for new ones)."""

    urls: int  # chosen, with other addresses of the pages
    pages: int
    forgotten: int  # addresses that nothing names any longer, orphans among them
    orphans: int  # addresses never asked for, of which only deleted pages knew
    staying: int  # addresses that others link to, or a sitemap names
    visits: int
    links_from: int
    links_to: int  # of other pages
    bodies: int  # that no other page has
    texts: int  # with their blocks
    marks: int  # pages whose content was told from navigation
    indexed: int  # pages that the search index may hold
    past: int  # rows of history
    size_bytes: int
    batches: int  # transactions

    @property
    def is_empty(self) -> bool:
        return not (self.urls or self.visits or self.past)
