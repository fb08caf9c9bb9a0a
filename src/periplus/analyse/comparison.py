"""Compares two views of a site: pages added, removed, changed and moved. Pure; works on arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.linkgraph import places_in_sorted, sort_distinct
from periplus.model.arrays import Ints
from periplus.model.audit import Issue
from periplus.model.comparison import (
    BranchChange,
    ChangedPage,
    Comparison,
    FieldChange,
    IssueChanges,
    LinkNote,
    Move,
    PageNote,
    RunView,
    Side,
)
from periplus.model.graph import LinkRows
from periplus.model.results import SiteMap
from periplus.model.web import Url

Texts = NDArray[np.object_]


def compare(before: RunView, after: RunView, texts: Mapping[int, Url]) -> Comparison:
    """All differences. texts: the URL of each id in `changed_links`. O((pages + links) log)."""
    old, new = _common(before.graph.pages, after.graph.pages)
    both = before.graph.fetched[old] & after.graph.fetched[new]
    changed = _changed_pages(before, after, old[both], new[both])
    came, went = changed_links(before.links, after.links)
    moves = _moves(before, after, old, new)
    return Comparison(
        before=side(before),
        after=side(after),
        added=_only(after, before, new[both]),
        removed=_only(before, after, old[both]),
        changed=changed,
        unchanged=int(both.sum()) - len(changed),
        links_added=_notes(came, texts),
        links_removed=_notes(went, texts),
        moves=moves,
        branches=_branches(before, after, old, new),
        issues=issue_changes(before.issues, after.issues),
    )


def side(view: RunView) -> Side:
    depth = view.site_map.max_depth if view.site_map else -1
    return Side(view.name, view.started, view.state, int(view.graph.fetched.sum()), len(view.links.sources), depth)


def issue_changes(before: Iterable[Issue], after: Iterable[Issue]) -> IssueChanges:
    """Compares by `Issue.key`: a different wording or severity does not make an issue new."""
    was = {issue.key: issue for issue in before}
    now = {issue.key: issue for issue in after}
    new = tuple(issue for key, issue in sorted(now.items()) if key not in was)
    gone = tuple(issue for key, issue in sorted(was.items()) if key not in now)
    return IssueChanges(new, gone, tuple(issue for key, issue in sorted(now.items()) if key in was))


def changed_links(before: LinkRows, after: LinkRows) -> tuple[LinkRows, LinkRows]:
    """(added links, removed links), sorted by source and target."""
    ids = sort_distinct(np.concatenate([before.sources, before.targets, after.sources, after.targets]))
    count = max(len(ids), 1)
    was, now = (
        sort_distinct(places_in_sorted(ids, rows.sources) * count + places_in_sorted(ids, rows.targets))
        for rows in (before, after)
    )
    came, went = now[places_in_sorted(was, now) < 0], was[places_in_sorted(now, was) < 0]
    return LinkRows(ids[came // count], ids[came % count]), LinkRows(ids[went // count], ids[went % count])


def _notes(rows: LinkRows, texts: Mapping[int, Url]) -> tuple[LinkNote, ...]:
    pairs = zip(rows.sources.tolist(), rows.targets.tolist(), strict=True)
    notes = [LinkNote(texts[source], texts[target]) for source, target in pairs]
    return tuple(sorted(notes, key=lambda note: (note.source, note.target)))


def _common(before: Sequence[Url], after: Sequence[Url]) -> tuple[Ints, Ints]:
    """(indices in before, indices in after) of the pages in both."""
    place = {url: at for at, url in enumerate(before)}
    pairs = [(place[url], at) for at, url in enumerate(after) if url in place]
    ids = np.array(pairs, np.int64).reshape(-1, 2)
    return ids[:, 0], ids[:, 1]


def _column(values: Sequence[object]) -> Texts:
    column = np.empty(len(values), np.object_)
    column[:] = values
    return column


def _only(view: RunView, other: RunView, shared: Ints) -> tuple[PageNote, ...]:
    """Pages that only view fetched. shared: indices of pages that both fetched."""
    alone = view.graph.fetched.copy()
    alone[shared] = False
    titles, depths = view.fields["title"], view.site_map.depth if view.site_map else np.full(len(alone), -1)
    return tuple(
        PageNote(view.graph.pages[at], str(titles[at]), int(depths[at]), other.reasons.get(view.graph.pages[at], ""))
        for at in np.flatnonzero(alone).tolist()
    )


def _changed_pages(before: RunView, after: RunView, old: Ints, new: Ints) -> tuple[ChangedPage, ...]:
    """Pages fetched in both views whose fields differ; compares the fields that both views have.

    Sorted by URL, pages whose depth is the only change last: one new link can change the depth of a thousand pages.
    """
    changes: dict[int, list[FieldChange]] = {}
    for field in before.fields:
        if field not in after.fields:
            continue
        was, now = _column(before.fields[field])[old], _column(after.fields[field])[new]
        for at in np.flatnonzero(was != now).tolist():
            changes.setdefault(at, []).append(FieldChange(field, str(was[at]), str(now[at])))
    titles = after.fields["title"]
    order = sorted(changes, key=lambda at: (all(change.field == "depth" for change in changes[at]), at))
    return tuple(ChangedPage(after.graph.pages[new[at]], str(titles[new[at]]), tuple(changes[at])) for at in order)


def branch_of(site_map: SiteMap) -> Ints:
    """int64[n]: the ancestor at depth 1 of each page (itself at depth 1, home for home); -1 if unreachable."""
    order = site_map.order.astype(np.int64)
    begins = np.flatnonzero(site_map.depth[order] <= 1)  # in depth-first order a branch directly follows its head
    heads = np.repeat(order[begins], np.diff(np.append(begins, len(order))))
    branch = np.full(len(site_map.depth), -1, np.int64)
    branch[order] = heads
    return branch


def _in_both_maps(before: SiteMap, after: SiteMap, old: Ints, new: Ints) -> tuple[Ints, Ints]:
    """The common pages, below the home page in both maps."""
    placed = (before.depth[old] > 0) & (after.depth[new] > 0)
    return old[placed], new[placed]


def _moves(before: RunView, after: RunView, old: Ints, new: Ints) -> tuple[Move, ...]:
    if before.site_map is None or after.site_map is None:
        return ()
    first, second = before.site_map, after.site_map
    old, new = _in_both_maps(first, second, old, new)
    was, now = _column(before.graph.pages), _column(after.graph.pages)
    above, above_now = was[first.parent[old]], now[second.parent[new]]
    branch, branch_now = was[branch_of(first)[old]], now[branch_of(second)[new]]
    moves = [
        Move(
            now[new[at]], above[at], above_now[at], int(first.depth[old[at]]), int(second.depth[new[at]]),
            branch[at], branch_now[at], int(second.below[new[at]]) + 1,
        )
        for at in np.flatnonzero(above != above_now).tolist()
    ]  # fmt: skip
    return tuple(sorted(moves, key=lambda move: (-move.pages, move.url)))


def _branches(before: RunView, after: RunView, old: Ints, new: Ints) -> tuple[BranchChange, ...]:
    """Branches whose pages changed, by URL.

    Pages that were added or removed altogether count in before and after only.
    """
    if before.site_map is None or after.site_map is None:
        return ()
    was, now = _column(before.graph.pages), _column(after.graph.pages)
    home = {before.graph.pages[before.site_map.home], after.graph.pages[after.site_map.home]}
    totals = [_sizes(view.site_map, view.graph.pages) for view in (before, after) if view.site_map]
    common = _in_both_maps(before.site_map, after.site_map, old, new)
    former, other = was[branch_of(before.site_map)[common[0]]], now[branch_of(after.site_map)[common[1]]]
    moved = former != other
    left, came = Counter(former[moved].tolist()), Counter(other[moved].tolist())
    branches = [
        BranchChange(url, totals[0].get(url, 0), totals[1].get(url, 0), came[url], left[url])
        for url in sorted((totals[0].keys() | totals[1].keys()) - home)
    ]
    return tuple(branch for branch in branches if branch.before != branch.after or branch.moved_in or branch.moved_out)


def _sizes(site_map: SiteMap, pages: Sequence[Url]) -> dict[Url, int]:
    """Pages per branch, including its head."""
    heads = np.flatnonzero(site_map.depth == 1).tolist()
    return {pages[head]: int(site_map.below[head]) + 1 for head in heads}
