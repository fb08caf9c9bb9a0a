"""What differs between two runs, as values."""

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
"""What is compared of a page. text: how long it is, and a part of its digest."""


@frozen
class RunView:
    """One site as one run left it."""

    name: str  # the run's, in its collection
    started: float  # seconds since the epoch, UTC
    state: str  # done, stopped, ...
    graph: LinkGraph
    site_map: SiteMap | None  # None: the home page was not fetched
    # by FIELDS, one value a page in the order of graph.pages; only those of fetched pages count
    fields: Mapping[str, Sequence[object]]
    links: LinkRows  # from fetched pages to pages of any site, as written, each pair once
    issues: Sequence[Issue]
    reasons: Mapping[Url, str]  # of every URL of the site, those that are no pages too


@frozen
class PageNote:
    """A page that came or went. reason: how it stands in the other run; empty: not known there."""

    url: Url
    title: str
    depth: int  # where it is, or was; -1: no link leads there
    reason: str = ""


@frozen
class FieldChange:
    """One value of a page, before and after."""

    field: str
    before: str
    after: str


@frozen
class ChangedPage:
    """A page that both runs fetched, with what differs."""

    url: Url
    title: str
    changes: tuple[FieldChange, ...]


@frozen
class LinkNote:
    """A link that came or went."""

    source: Url
    target: Url


@frozen
class Move:
    """A page that hangs elsewhere in the map. What hangs below it moves with it and is not named."""

    url: Url
    parent_before: Url
    parent_after: Url
    depth_before: int
    depth_after: int
    branch_before: Url  # the page of depth 1 that it stands under, or itself
    branch_after: Url
    pages: int  # with it, those below it after


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
    """Issues by what makes them the same: code, page, related URL."""

    new: tuple[Issue, ...]
    gone: tuple[Issue, ...]
    still: tuple[Issue, ...]


@frozen
class Side:
    """One of the two runs, for the head of a comparison."""

    name: str
    started: float
    state: str
    pages: int  # fetched
    links: int
    depth: int  # -1: no map


@frozen
class Comparison:
    """What is different after, seen from before.

    Lists by URL; changed: other depths alone last; moves: most pages first.
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
        """Nothing differs."""
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
