"""Curves over the runs of a collection, and how many pages of a topical crawl are on its topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TextIO

from periplus.model.results import TrendPoint
from periplus.present.draw import Axes, caption, element, heading, nice, quarters, write_sheet
from periplus.present.wording import number, utc


def write_harvest_svg(topic: str, points: Sequence[tuple[int, int, float]], out: TextIO) -> None:
    """points: (pages, of them relevant, share of the last pages), in order. SVG that needs nothing else. out: UTF-8."""
    pages, relevant, lately = points[-1] if points else (0, 0, 0.0)
    across = nice(max(pages, 1))
    counts = Axes(64, 66, 740, 258, across, across)
    shares = Axes(64, 66, 740, 258, across, 1.0)
    title = f"{number(relevant)} of {number(pages)} pages are on the topic"
    marks = [
        heading(title, "pages on the topic over pages fetched; share of the last 500 at the right"),
        counts.grid(quarters(across), quarters(across)),
        *(caption(shares.right + 8, shares.y(part / 4) + 4, f"{part * 25} %", "soft small") for part in range(5)),
        counts.curve([(0, 0), (across, across)], "grey thin dotted"),
        counts.curve([(0, 0), *((at, among) for at, among, _ in points)], "teal"),
        shares.curve([(at, share) for at, _, share in points], "amber"),
    ]
    if pages:
        ends = [
            (relevant / across, "teal", f"{relevant / pages:.0%} in all"),
            (lately, "amber", f"{lately:.0%} lately"),
        ]
        marks.append(shares.names(ends, shares.right + 46))
    write_sheet(out, (900, 300), f"Harvest of {topic}: {title}", marks)


class RunLine(NamedTuple):
    """A figure over the runs: (seconds since the epoch, value), oldest first. kind: classes of its line."""

    name: str
    kind: str
    points: Sequence[tuple[float, float]]


LINES_SIZE = (360, 190)  # a phone's width: text keeps its size
DAY_S = 86_400.0  # runs of one day have one date


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


TREND_COLUMNS = 2
GRADE_LINES = "Grades, 0 to 100 points"  # title of the chart
_FIELD_KINDS = ("blue", "amber", "teal", "red", "grey")


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
