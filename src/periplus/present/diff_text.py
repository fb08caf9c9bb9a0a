"""How is a comparison of two runs told on a terminal, as plain text?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from periplus.model.comparison import Comparison, Side
from periplus.present.lines import visible
from periplus.present.wording import count_of, number, utc


def diff_lines(found: Comparison, *, most: int = 20, links: bool = False) -> Iterator[str]:
    """Lines for reading. most: entries of each list, -1: all; links: every link by itself, not only how many a page has."""
    yield f"Before: {_side(found.before)}"
    yield f"After:  {_side(found.after)}"
    if found.is_empty:
        yield f"\nNothing differs: {count_of(found.unchanged, 'page')} as before."
        return
    came, went, changed = map(number, map(len, (found.added, found.removed, found.changed)))
    yield f"\nPages: {came} added, {went} removed, {changed} changed, {number(found.unchanged)} as before"
    yield from _cut([f"  + {visible(page.url)}  {visible(page.title)}".rstrip() for page in found.added], most)
    yield from _cut([f"  - {visible(page.url)}  {visible(page.reason)}".rstrip() for page in found.removed], most)
    yield from _changed(found, most)
    yield from _links(found, most, links)
    yield from _moves(found, most)
    yield from _issues(found, most)


def _side(side: Side) -> str:
    ended = "" if side.state == "done" else f" ({side.state})"
    depth = f", depth {side.depth}" if side.depth >= 0 else ", no map"
    return f"{side.name}{ended}, {utc(side.started)}: {count_of(side.pages, 'page')}, {count_of(side.links, 'link')}{depth}"


def _cut(lines: Sequence[str], most: int) -> Iterator[str]:
    shown = lines if most < 0 else lines[:most]
    yield from shown
    if len(shown) < len(lines):
        yield f"    and {number(len(lines) - len(shown))} more"


def _changed(found: Comparison, most: int) -> Iterator[str]:
    counts = Counter(change.field for page in found.changed for change in page.changes)
    if counts:
        yield "  changed: " + ", ".join(f"{field} of {number(count)}" for field, count in counts.most_common())
    shown = found.changed if most < 0 else found.changed[:most]
    for page in shown:
        yield f"  ~ {visible(page.url)}"
        for change in page.changes:
            yield f"      {change.field}: {_said(change.before)} -> {_said(change.after)}"
    if len(shown) < len(found.changed):
        yield f"    and {number(len(found.changed) - len(shown))} more"


def _said(value: str) -> str:
    text = visible(value)
    return (text if len(text) <= 80 else text[:79] + "…") or "nothing"


def _links(found: Comparison, most: int, every: bool) -> Iterator[str]:
    if not found.links_added and not found.links_removed:
        return
    yield f"\nLinks: {number(len(found.links_added))} added, {number(len(found.links_removed))} removed"
    if every:
        lines = [(note.source, note.target, sign) for sign, notes in (("+", found.links_added), ("-", found.links_removed)) for note in notes]
        yield from _cut([f"  {sign} {visible(source)} -> {visible(target)}" for source, target, sign in sorted(lines)], most)
        return
    added = Counter(note.source for note in found.links_added)
    removed = Counter(note.source for note in found.links_removed)
    by_page = sorted(added.keys() | removed.keys(), key=lambda url: (-added[url] - removed[url], url))
    yield from _cut([f"  {visible(url)}: {number(added[url])} added, {number(removed[url])} removed" for url in by_page], most)


def _moves(found: Comparison, most: int) -> Iterator[str]:
    if found.branches or found.moves:
        yield f"\nMap: {count_of(len(found.moves), 'page')} moved"
    for branch in found.branches if most < 0 else found.branches[:most]:
        moved = f"; {number(branch.came)} came from other branches, {number(branch.left)} left for them" if branch.came or branch.left else ""
        yield f"  branch {visible(branch.url)}: {number(branch.before)} -> {count_of(branch.after, 'page')}{moved}"
    lines = []
    for move in found.moves:
        deeper = f", layer {move.layer_before} -> {move.layer_after}" if move.layer_before != move.layer_after else ""
        with_it = f", with {count_of(move.pages - 1, 'page')} below" if move.pages > 1 else ""
        lines.append(f"  > {visible(move.url)}: from {visible(move.parent_before)} to {visible(move.parent_after)}{deeper}{with_it}")
    yield from _cut(lines, most)


def _issues(found: Comparison, most: int) -> Iterator[str]:
    issues = found.issues
    if issues.new or issues.gone or issues.still:
        yield f"\nIssues: {number(len(issues.new))} new, {number(len(issues.gone))} gone, {number(len(issues.still))} still there"
    for sign, group in (("+", issues.new), ("-", issues.gone)):
        lines = [f"  {sign} {issue.code}  {visible(issue.url)}{f' -> {visible(issue.related)}' if issue.related else ''}" for issue in group]
        yield from _cut(lines, most)
