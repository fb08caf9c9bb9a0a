"""What is done with whole collections, as values: web archives and deletions."""

from __future__ import annotations

from periplus.model.visit import Headers
from periplus.model.web import SiteKey, Url, UrlId
from periplus.values import frozen

# What passes between a collection and a web archive: exchanges with their bytes, and what an archive says of itself.


@frozen
class Exchange:
    """One visit as an archive keeps it. body None: it was not kept."""

    visit_id: int
    run_id: int
    url: Url
    purpose: str
    started: float  # seconds since the epoch, UTC
    took_s: float
    outcome: str  # fetched, redirected, unchanged, failed
    status: int  # 0: no answer
    detail: str  # of a failure: `cause: words`
    address: str
    headers: Headers
    body: bytes | None  # content codings removed
    cut: str  # why it is not the whole body: the value of a Cut
    body_id: int  # equal for equal bytes, 0 where nothing is known


@frozen
class RunNote:
    """What an archive says of the run that its records come from."""

    run_id: int
    began: float
    user_agent: str
    starts: tuple[str, ...]
    settings: str  # JSON
    obeys_robots: bool


@frozen
class ArchiveRecord:
    """One record of an archive that was read.

    fields: its named fields, names in lower case; block: its bytes, perhaps cut.
    """

    kind: str
    fields: dict[str, str]
    block: bytes
    is_cut: bool  # the block was longer than what was read of it


@frozen
class SegmentState:
    """One segment of pages' bytes beside what the database says of it.

    Orphans are whole records that no page points at.
    """

    name: str
    size_bytes: int  # 0: it is not there
    records: int  # whole ones, the head's apart
    orphans: int
    orphan_bytes: int
    torn_bytes: int  # behind the last whole record
    lost: int  # pages whose bytes should be here and are not

    @property
    def is_unused(self) -> bool:
        """Whether no page points into it."""
        return self.size_bytes > 0 and self.orphans == self.records and not self.lost


@frozen
class Deletion:
    """A wish to delete: pages, all of a site, or a run; several together are one wish.

    Other addresses of a page go with it.

    links_to: whether other pages' links to what is deleted go too, and the addresses with them; else those
    that are linked stay known. again: such addresses wait to be fetched; else they are left alone until a
    crawl names them as starts.
    run_pages: whether pages that only this run fetched go with it.
    """

    pages: tuple[UrlId, ...] = ()
    site: SiteKey | None = None
    run: int = 0  # 0: none
    links_to: bool = False
    again: bool = False
    run_pages: bool = True


@frozen
class DeletionPlan:
    """What a deletion takes from a collection: rows of each kind,
    and bytes of what they hold (the file itself keeps its size for new ones).
    """

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
