"""Differences between two runs, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from periplus.model.audit import Issue
from periplus.model.graph import LinkGraph, LinkRows
from periplus.model.results import SiteMap
from periplus.model.web import Url
from periplus.values import frozen

FIELDS = (
    "title",
    "status",
    "reason",
    "type",
    "size",
    "text",
    "canonical",
    "description",
    "h1",
    "language",
    "robots",
    "depth",
)
"""Compared properties of a page. text: its length and a part of its digest."""


@frozen
class RunView:
    """State of one site at the end of a run."""

    name: str  # name of the run
    started: float  # seconds since the epoch, UTC
    state: str  # done, stopped, ...
    graph: LinkGraph
    site_map: SiteMap | None  # None: the home page was not fetched
    # by FIELDS, one value per page in the order of graph.pages; valid only for fetched pages
    fields: Mapping[str, Sequence[object]]
    links: LinkRows  # links as written from fetched pages to pages of any site, each pair once
    issues: Sequence[Issue]
    reasons: Mapping[Url, str]  # reasons of all URLs of the site, also of those that are not pages


@frozen
class PageNote:
    """A page that was added or removed. reason: its reason in the other run; empty if unknown there."""

    url: Url
    title: str
    depth: int  # current or last depth; -1: no link leads there
    reason: str = ""


@frozen
class FieldChange:
    """One value of a page, before and after."""

    field: str
    before: str
    after: str


@frozen
class ChangedPage:
    """A page that both runs fetched, with its differences."""

    url: Url
    title: str
    changes: tuple[FieldChange, ...]


@frozen
class LinkNote:
    """A link that was added or removed."""

    source: Url
    target: Url


@frozen
class Move:
    """A page with another parent in the site map. Its descendants move with it and are not listed."""

    url: Url
    parent_before: Url
    parent_after: Url
    depth_before: int
    depth_after: int
    branch_before: Url  # its ancestor at depth 1, or the page itself
    branch_after: Url
    pages: int  # the page and its descendants after the move


@frozen
class BranchChange:
    """A page of depth 1 with its branch. moved_in, moved_out: pages that are in another branch in the other run."""

    url: Url
    before: int
    after: int
    moved_in: int
    moved_out: int


@frozen
class IssueChanges:
    """Issues matched by code, page and related URL."""

    new: tuple[Issue, ...]
    gone: tuple[Issue, ...]
    still: tuple[Issue, ...]


@frozen
class Side:
    """One of the two compared runs."""

    name: str
    started: float
    state: str
    pages: int  # fetched
    links: int
    depth: int  # -1: no site map


@frozen
class Comparison:
    """Differences of the later run from the earlier run.

    Lists are sorted by URL. changed: pages that differ only in depth come last; moves: most pages first.
    """

    before: Side
    after: Side
    added: tuple[PageNote, ...]
    removed: tuple[PageNote, ...]
    changed: tuple[ChangedPage, ...]
    unchanged: int
    links_added: tuple[LinkNote, ...]
    links_removed: tuple[LinkNote, ...]
    moves: tuple[Move, ...]
    branches: tuple[BranchChange, ...]
    issues: IssueChanges

    @property
    def is_empty(self) -> bool:
        """Whether the runs are equal."""
        parts = (
            self.added,
            self.removed,
            self.changed,
            self.links_added,
            self.links_removed,
            self.moves,
            self.issues.new,
            self.issues.gone,
        )
        return not any(parts)
