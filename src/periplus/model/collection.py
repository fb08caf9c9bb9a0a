"""Values for operations on whole collections: web archives and deletions."""

from __future__ import annotations

from periplus.model.visit import Headers
from periplus.model.web import SiteKey, Url, UrlId
from periplus.values import frozen

# Values exchanged between a collection and a web archive.


@frozen
class Exchange:
    """One visit as stored in an archive. body is None if it was not stored."""

    visit_id: int
    run_id: int
    url: Url
    purpose: str
    started: float  # seconds since the epoch, UTC
    took_s: float
    outcome: str  # fetched, redirected, unchanged, failed
    status: int  # 0: no answer
    detail: str  # for a failure: `cause: message`
    address: str
    headers: Headers
    body: bytes | None  # content codings removed
    cut: str  # why the body is incomplete: the value of a Cut
    body_id: int  # equal for equal bytes; 0 if unknown


@frozen
class RunNote:
    """The run that an archive's records come from."""

    run_id: int
    began: float
    user_agent: str
    starts: tuple[str, ...]
    settings: str  # JSON
    obeys_robots: bool


@frozen
class ArchiveRecord:
    """One record read from an archive.

    fields: named fields, names in lower case; block: the content, perhaps truncated.
    """

    kind: str
    fields: dict[str, str]
    block: bytes
    is_cut: bool  # the block was truncated when read


@frozen
class SegmentState:
    """State of one segment file, compared with the database.

    Orphans are complete records that no page refers to.
    """

    name: str
    size_bytes: int  # 0: the file is missing
    records: int  # complete records, without the header record
    orphans: int
    orphan_bytes: int
    torn_bytes: int  # after the last complete record
    lost: int  # pages whose bytes are missing from the segment

    @property
    def is_unused(self) -> bool:
        """Whether no page refers to a record of it."""
        return self.size_bytes > 0 and self.orphans == self.records and not self.lost


@frozen
class Deletion:
    """A request to delete pages, all of a site, or a run. If several are set, all of them are deleted.

    Aliases of a page are deleted with it.

    links_to: also delete other pages' links to deleted URLs, and the URLs themselves; otherwise linked URLs stay
    known. again: those URLs are queued again; otherwise they are not fetched until a crawl names them as starts.
    run_pages: also delete pages that only this run fetched.
    """

    pages: tuple[UrlId, ...] = ()
    site: SiteKey | None = None
    run: int = 0  # 0: none
    links_to: bool = False
    again: bool = False
    run_pages: bool = True


@frozen
class DeletionPlan:
    """What a deletion removes: rows of each kind, and the bytes that they hold. The file keeps its size and reuses
    the space.
    """

    urls: int  # selected URLs, with the aliases of pages
    pages: int
    forgotten: int  # URLs that nothing refers to any longer, including orphans
    orphans: int  # never requested, and known only from deleted pages
    staying: int  # URLs that remaining pages or a sitemap refer to
    visits: int
    links_from: int
    links_to: int  # from other pages
    bodies: int  # not shared with another page
    texts: int  # with blocks
    marks: int  # pages whose blocks are classified as content or navigation
    indexed: int  # pages that the search index may hold
    past: int  # history rows
    size_bytes: int
    batches: int  # transactions

    @property
    def is_empty(self) -> bool:
        return not (self.urls or self.visits or self.past)
