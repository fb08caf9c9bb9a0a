"""Shows how runs differ: two of them as text and JSON, all of them as curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import NamedTuple, TextIO

from periplus.model.comparison import Comparison, Side
from periplus.model.results import TrendPoint
from periplus.present.draw import Axes, caption, element, nice, quarters, write_sheet
from periplus.present.tables import align, json_text
from periplus.present.wording import count_of, number, utc, visible

SiteDiffs = Sequence[tuple[str, Comparison]]
"""What is different on each of several sites."""

_HEADS = ("site", "new pages", "gone", "changed", "moved", "links", "issues")
LINES_SIZE = (360, 190)  # a phone's width: text keeps its size
DAY_S = 86_400.0  # runs of one day have one date
TREND_COLUMNS = 2
GRADE_LINES = "Grades, 0 to 100 points"  # title of the chart
_FIELD_KINDS = ("blue", "amber", "teal", "red", "grey")


def write_diff_json(sites: SiteDiffs, out: TextIO) -> None:
    """One object with the names of `model.comparison.Comparison`; every list complete. For several sites, `sites` has
    one such object each, with its `site`. out: UTF-8.
    """
    objects = [asdict(diff) for _, diff in sites]
    several = {"sites": [{"site": site} | values for (site, _), values in zip(sites, objects, strict=True)]}
    out.write(json_text(several if len(objects) > 1 else objects[0]))


def _counts(diff: Comparison) -> tuple[str, ...]:
    """What _HEADS name of a site."""
    lists = (diff.added, diff.removed, diff.changed, diff.moves)
    pairs = ((diff.links_added, diff.links_removed), (diff.issues.new, diff.issues.gone))
    signed = (f"+{number(len(more))} \u2212{number(len(less))}" if more or less else "" for more, less in pairs)
    return *(number(len(urls)) if urls else "" for urls in lists), *signed


def sites_lines(sites: SiteDiffs, *, most: int = 20, links: bool = False) -> Iterator[str]:
    """A row a site that differs, then the lines of each. most, links: as in `diff_lines`."""
    differ = [(site, diff) for site, diff in sites if not diff.is_empty]
    first = sites[0][1]
    yield f"Before: {first.before.name}, {utc(first.before.started)}"
    yield f"After:  {first.after.name}, {utc(first.after.started)}"
    yield f"\nSites: {number(len(differ))} of {number(len(sites))} differ; --site NAME shows one"
    rows = [_HEADS] * bool(differ) + [(visible(site), *_counts(diff)) for site, diff in differ]
    yield from (f"  {line}".rstrip() for line in align(rows, range(1, len(_HEADS))))
    for site, diff in differ:
        yield f"\n{visible(site)}"
        yield from islice(diff_lines(diff, most=most, links=links), 2, None)


def diff_lines(diff: Comparison, *, most: int = 20, links: bool = False) -> Iterator[str]:
    """Lines for reading.

    most: entries of each list, -1: all; links: list every link, not only the number of links a page.
    """
    yield f"Before: {_side(diff.before)}"
    yield f"After:  {_side(diff.after)}"
    if diff.is_empty:
        yield f"\nNothing differs: {count_of(diff.unchanged, 'page')} as before."
        return
    came, went, changed = map(number, map(len, (diff.added, diff.removed, diff.changed)))
    yield f"\nPages: {came} added, {went} removed, {changed} changed, {number(diff.unchanged)} as before"
    yield from _cut([f"  + {visible(page.url)}  {visible(page.title)}".rstrip() for page in diff.added], most)
    yield from _cut([f"  - {visible(page.url)}  {visible(page.reason)}".rstrip() for page in diff.removed], most)
    yield from _change_lines(diff, most)
    yield from _links(diff, most, links)
    yield from _moves(diff, most)
    yield from _issues(diff, most)


def _side(side: Side) -> str:
    ended = "" if side.state == "done" else f" ({side.state})"
    depth = f", depth {side.depth}" if side.depth >= 0 else ", no map"
    return (
        f"{side.name}{ended}, {utc(side.started)}: {count_of(side.pages, 'page')}, "
        f"{count_of(side.links, 'link')}{depth}"
    )


def _cut(lines: Sequence[str], most: int) -> Iterator[str]:
    shown = lines if most < 0 else lines[:most]
    yield from shown
    if len(shown) < len(lines):
        yield f"    and {number(len(lines) - len(shown))} more"


def _change_lines(diff: Comparison, most: int) -> Iterator[str]:
    counts = Counter(change.field for page in diff.changed for change in page.changes)
    if counts:
        yield "  changed: " + ", ".join(f"{field} of {number(count)}" for field, count in counts.most_common())
    shown = diff.changed if most < 0 else diff.changed[:most]
    for page in shown:
        yield f"  ~ {visible(page.url)}"
        for change in page.changes:
            yield f"      {change.field}: {_cut_value(change.before)} -> {_cut_value(change.after)}"
    if len(shown) < len(diff.changed):
        yield f"    and {number(len(diff.changed) - len(shown))} more"


def _cut_value(value: str) -> str:
    words = visible(value)
    return (words if len(words) <= 80 else words[:79] + "…") or "nothing"


def _links(diff: Comparison, most: int, every: bool) -> Iterator[str]:
    if not diff.links_added and not diff.links_removed:
        return
    yield f"\nLinks: {number(len(diff.links_added))} added, {number(len(diff.links_removed))} removed"
    if every:
        lines = [
            (note.source, note.target, sign)
            for sign, notes in (("+", diff.links_added), ("-", diff.links_removed))
            for note in notes
        ]
        yield from _cut(
            [f"  {sign} {visible(source)} -> {visible(target)}" for source, target, sign in sorted(lines)], most
        )
        return
    added = Counter(note.source for note in diff.links_added)
    removed = Counter(note.source for note in diff.links_removed)
    by_page = sorted(added.keys() | removed.keys(), key=lambda url: (-added[url] - removed[url], url))
    yield from _cut(
        [f"  {visible(url)}: {number(added[url])} added, {number(removed[url])} removed" for url in by_page], most
    )


def _moves(diff: Comparison, most: int) -> Iterator[str]:
    if diff.branches or diff.moves:
        yield f"\nMap: {count_of(len(diff.moves), 'page')} moved"
    for branch in diff.branches if most < 0 else diff.branches[:most]:
        moved = (
            f"; {number(branch.moved_in)} moved in from other branches, {number(branch.moved_out)} moved out"
            if branch.moved_in or branch.moved_out
            else ""
        )
        yield f"  branch {visible(branch.url)}: {number(branch.before)} -> {count_of(branch.after, 'page')}{moved}"
    lines = []
    for move in diff.moves:
        deeper = f", depth {move.depth_before} -> {move.depth_after}" if move.depth_before != move.depth_after else ""
        with_it = f", with {count_of(move.pages - 1, 'page')} below" if move.pages > 1 else ""
        lines.append(
            f"  > {visible(move.url)}: from {visible(move.parent_before)} to "
            f"{visible(move.parent_after)}{deeper}{with_it}"
        )
    yield from _cut(lines, most)


def _issues(diff: Comparison, most: int) -> Iterator[str]:
    issues = diff.issues
    if issues.new or issues.gone or issues.still:
        yield (
            f"\nIssues: {number(len(issues.new))} new, {number(len(issues.gone))} gone, "
            f"{number(len(issues.still))} still there"
        )
    for sign, group in (("+", issues.new), ("-", issues.gone)):
        lines = [
            f"  {sign} {issue.code}  {visible(issue.url)}{f' -> {visible(issue.related)}' if issue.related else ''}"
            for issue in group
        ]
        yield from _cut(lines, most)


class RunLine(NamedTuple):
    """A figure over the runs: (seconds since the epoch, value), oldest first. kind: classes of its line."""

    name: str
    kind: str
    points: Sequence[tuple[float, float]]


def write_run_lines(lines: Sequence[RunLine], title: str, out: TextIO) -> None:
    """Figures over time, a dot for each run, for a page with the kit's style sheet. lines: each with a point."""
    count = len({when for line in lines for when, _ in line.points})
    write_sheet(out, LINES_SIZE, f"{title} over {count} runs", _run_lines(lines, title), kind="lines", embedded=True)


def _run_lines(lines: Sequence[RunLine], title: str) -> list[str]:
    times = [when for line in lines for when, _ in line.points]
    first, last = min(times), max(times)
    most = max(value for line in lines for _, value in line.points)
    axes = Axes(48, 34, 250, 150, max(last - first, 1.0), nice(max(most, 4.0)))
    marks = [caption(6, 18, title, "strong"), axes.grid((), quarters(axes.up))]
    marks += [caption(axes.left, 172, utc(first, "%d %b %Y"), "soft small")]
    if last - first > DAY_S:
        marks.append(caption(axes.right, 172, utc(last, "%d %b %Y"), "soft small end"))
    for line in lines:
        marks.append(axes.curve([(when - first, value) for when, value in line.points], line.kind))
        for when, value in line.points:
            hint = f"{line.name}: {number(round(value))}, {utc(when, '%d %b %Y %H:%M')}"
            place = {"cx": axes.x(when - first), "cy": axes.y(value), "r": 3.0}
            marks.append(element("circle", f"dot {line.kind}", "", hint, **place))
    marks.append(axes.names((line.points[-1][1], line.kind, line.name) for line in lines))
    return marks


def trend_lines(points: Sequence[TrendPoint]) -> list[tuple[str, list[RunLine]]]:
    """(title, its lines) of what changed over the runs: size, health, traffic, answers, depth, grades.

    A figure that fewer than two runs have is left out.
    """
    figures: list[tuple[str, list[tuple[str, str, Callable[[TrendPoint], float | None]]]]] = [
        ("Pages read", [("pages", "teal", lambda point: point.pages)]),
        ("Failed URLs, pages with an error", [
            ("failed", "red", lambda point: point.failed),
            ("with an error", "amber", lambda point: point.pages_with_errors),
        ]),
        ("Kilobytes received", [("kB", "blue", lambda point: point.bytes / 1000)]),
        ("Milliseconds of an answer, mean", [("ms", "teal", lambda point: _times_1000(point.response_s))]),
        ("Clicks to the deepest page", [("clicks", "blue", lambda point: point.depth)]),
    ]  # fmt: skip
    charts = [(title, [_run_line(points, *row) for row in rows]) for title, rows in figures]
    fields = dict.fromkeys(grade.field for point in points for grade in point.grades)
    scores = [
        RunLine(
            field.value,
            kind,
            [(point.started, grade.score) for point in points for grade in point.grades if grade.field is field],
        )
        for field, kind in zip(fields, _FIELD_KINDS, strict=False)
    ]
    charts.append((GRADE_LINES, scores))
    drawn = [(title, [line for line in lines if len(line.points) > 1]) for title, lines in charts]
    return [(title, lines) for title, lines in drawn if lines]


def _run_line(
    points: Sequence[TrendPoint], name: str, kind: str, value: Callable[[TrendPoint], float | None]
) -> RunLine:
    return RunLine(name, kind, [(point.started, number) for point in points if (number := value(point)) is not None])


def _times_1000(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def write_trends(points: Sequence[TrendPoint], name: str, out: TextIO) -> None:
    """All of `trend_lines` on one sheet of SVG, two a row. points: oldest first. out: UTF-8."""
    charts, (wide, high) = trend_lines(points), LINES_SIZE
    marks = []
    for place, (title, lines) in enumerate(charts):
        x, y = place % TREND_COLUMNS * wide, place // TREND_COLUMNS * high
        marks.append(element("g", "lines", "".join(_run_lines(lines, title)), transform=f"translate({x} {y})"))
    if not charts:
        marks.append(caption(6, 18, "Lines need two runs.", "soft"))
    rows = max(1, -(-len(charts) // TREND_COLUMNS))
    write_sheet(out, (wide * TREND_COLUMNS, high * rows), f"{name} over its runs", marks)
