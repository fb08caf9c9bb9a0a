"""Segments: named parts of a collection that a user defines by rules.

Rules are in the table [segments] of periplus.toml: docs/segments.md. The first matching rule applies, so every URL is
in one segment and segment sums add up to those of the collection; URLs without a match are in `other`. Nothing is
stored with pages: a changed rule takes effect at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from periplus.errors import UsageError
from periplus.model.arrays import Ints, Mask
from periplus.model.results import Segmentation, SegmentSum
from periplus.model.tables import ALL_URLS, EMPTY, SEGMENT_OTHER, Column, ColumnKind
from periplus.settings import rules_table
from periplus.urls.parameters import path_pattern, plain_path
from periplus.urls.user_patterns import user_pattern
from periplus.values import frozen, nearest

MOST_RULES = 250  # segment numbers are bytes
MOST_NAME = 60  # characters, so that a legend has space for it
INDEXABLE = "indexable"
_INDEXABLE_OF = ("state", "status", "robots", "canonical", "url")
_RANGE = re.compile(r"(-?[0-9.]*)\.\.(-?[0-9.]*)")
_CLASS = re.compile(r"[1-5]xx", re.IGNORECASE)
_ORIGIN = r"[a-z][a-z0-9+.-]*://[^/]*"
Test = Callable[[Any], bool]  # on one value of a column
_COLUMNS = {column.name: column for column in ALL_URLS.columns} | {
    INDEXABLE: Column(
        INDEXABLE,
        ColumnKind.BOOLEAN,
        "fetched with status 200, without noindex, and no other page is its canonical",
    )
}
SUM_COLUMNS = ("id", "url", "state", "depth", "size", "text_chars")
"""Columns of SEEN that `segment_sums` uses."""


@frozen
class SegmentRule:
    """A URL is in the segment if all tests of at least one set pass. A test is (column, predicate on its value)."""

    name: str
    sets: tuple[tuple[tuple[str, Test], ...], ...]


def segment_rules(text: str, where: str = "periplus.toml") -> tuple[SegmentRule, ...]:
    """Parses the rules of a TOML text, in order; other tables are ignored.

    Raises UsageError, naming the segment.
    """
    table = rules_table(text, "segments", where, 'docs = "/docs"', MOST_RULES)
    return tuple(_rule(name, value, f"{where}, segment {name!r}") for name, value in table.items())


def _rule(name: str, value: Any, where: str) -> SegmentRule:
    if not name.strip() or len(name) > MOST_NAME or name == SEGMENT_OTHER or not name.isprintable() or name[0] in "!~-":
        raise UsageError(
            f"{where}: a name has 1 to {MOST_NAME} letters, does not begin with ! ~ or -, and is not "
            f"{SEGMENT_OTHER!r}, the segment of URLs without a match"
        )
    sets = value if isinstance(value, list) else [value]
    if not sets:
        raise UsageError(f"{where}: the list is empty, so no URL can match")
    return SegmentRule(name, tuple(_set(conditions, where) for conditions in sets))


def _set(value: Any, where: str) -> tuple[tuple[str, Test], ...]:
    if isinstance(value, str):
        return (("url", _path_test(value, where)),)
    if not isinstance(value, dict) or not value:
        raise UsageError(f'{where}: a rule is a path ("/docs") or conditions ({{ status = "4xx" }}), not {value!r}')
    return tuple(_condition(name, condition, where) for name, condition in value.items())


def _condition(name: str, value: Any, where: str) -> tuple[str, Test]:
    """One line of a rule. value: a string, number or boolean, or a list of alternatives."""
    choices = value if isinstance(value, list) else [value]
    if not choices or not all(isinstance(choice, str | int | float) for choice in choices):
        raise UsageError(f"{where}: {name} takes a text, a number, true or false, or a list of them, not {value!r}")
    texts = [{True: "yes", False: "no"}[choice] if isinstance(choice, bool) else str(choice) for choice in choices]
    if name == "path":
        tests = [_path_test(text, where) for text in texts]
    elif name == "pattern":
        tests = [user_pattern(text, where).is_in for text in texts]
    else:
        column = _COLUMNS.get(name)
        if column is None:
            names = ("path", "pattern", *_COLUMNS)
            raise UsageError(
                f"{where}: there is no property {name!r}{nearest(name, names)}: choose among {', '.join(names)}"
            )
        tests = [value_test(column, text, where) for text in texts]
    column_name = "url" if name in ("path", "pattern") else name
    return column_name, tests[0] if len(tests) == 1 else lambda cell: any(test(cell) for test in tests)


def _path_test(text: str, where: str) -> Test:
    """Matches a URL whose path is the folder `/docs` or below it, or matches a pattern with `*` (no slash) or `**`."""
    if not text.startswith("/"):
        raise UsageError(f"{where}: a path begins with a slash, as in /docs or /**/print-*; {text!r} does not")
    if "*" not in text:
        folder = plain_path(text.strip("/"))
        return lambda url: _is_below(url, folder)
    return user_pattern(f"{_ORIGIN}(?:{path_pattern([text]).text})(?:\\?.*)?", where).fits


def _is_below(url: str, folder: str) -> bool:
    """Takes a third of the time of a regular expression. folder: without slashes at the ends; empty: all."""
    start = url.find("/", url.find("//") + 2) + 1
    end = start + len(folder)
    return url.startswith(folder, start) and (not folder or end == len(url) or url[end] in "/?")


def value_test(column: Column, text: str, where: str = "") -> Test:
    """A condition on a column's value, written as in table filters (`store.tables.condition`): `404`, `4xx`,
    `100..200`, `~part`, `-` for no value, `!` for negation. Raises UsageError.
    """
    if text.startswith("!"):
        other = value_test(column, text[1:], where)
        return lambda value: not other(value)
    if text == EMPTY:
        return lambda value: value is None or value == ""
    if column.kind is ColumnKind.BOOLEAN:
        if text not in ("yes", "no"):
            raise UsageError(f"{where}: {column.name} is true or false, not {text!r}")
        return lambda value: value is not None and bool(value) is (text == "yes")
    if column.kind in (ColumnKind.INTEGER, ColumnKind.REAL):
        low, high = _span(column.name, text, where)
        return lambda value: value is not None and low <= value <= high
    if column.kind is ColumnKind.TIME:
        return lambda value: value is not None and value.startswith(text)
    if text.startswith("~"):
        part = text[1:].lower()
        return lambda value: value is not None and part in value.lower()
    return lambda value: bool(value == text)


def _span(name: str, text: str, where: str) -> tuple[float, float]:
    """(minimum, maximum) of `404`, `4xx`, `100..200`, `5..`."""
    try:
        if _CLASS.fullmatch(text):
            return int(text[0]) * 100, int(text[0]) * 100 + 99
        if span := _RANGE.fullmatch(text):
            return float(span[1] or "-inf"), float(span[2] or "inf")
        return float(text), float(text)
    except ValueError:
        raise UsageError(f"{where}: {name} is a number, or a range like 100..200, not {text!r}") from None


def checked_name(name: str, rules: Sequence[SegmentRule]) -> None:
    """Raises UsageError unless name is a segment or empty."""
    names = (*(rule.name for rule in rules), SEGMENT_OTHER)
    if name and name not in names:
        raise UsageError(f"there is no segment {name!r}{nearest(name, names)}: choose among {', '.join(names)}")


def columns_read(rules: Iterable[SegmentRule]) -> tuple[str, ...]:
    """The columns of SEEN that the rules use, `id` first."""
    names = {name for rule in rules for tests in rule.sets for name, _ in tests}
    if INDEXABLE in names:
        names = (names - {INDEXABLE}) | {*_INDEXABLE_OF}
    return ("id", *sorted(names - {"id"}))


def assign_segments(rules: Sequence[SegmentRule], columns: Mapping[str, Sequence[Any]]) -> Segmentation:
    """Assigns URLs to segments. columns: those of `columns_read`, one value per URL, in any order of URLs.

    A test runs once per distinct value, for addresses once per URL: 200,000 URLs and ten rules, seven of them on
    addresses, take 0.4 s of CPU, plus 0.5 s for reading eight columns.
    """
    ids = np.fromiter(columns["id"], np.int64, len(columns["id"]))
    if any(name == INDEXABLE for rule in rules for tests in rule.sets for name, _ in tests):
        columns = {**columns, INDEXABLE: _indexable(*(columns[name] for name in _INDEXABLE_OF))}
    codes = np.full(len(ids), len(rules), np.uint8)
    for place in reversed(range(len(rules))):
        for tests in rules[place].sets:
            fits = np.ones(len(ids), np.bool_)
            for name, test in tests:
                fits &= _fits(test, columns[name], all_differ=name == "url")
            codes[fits] = place
    order = np.argsort(ids)
    return Segmentation((*(rule.name for rule in rules), SEGMENT_OTHER), ids[order], codes[order])


def _fits(test: Test, values: Sequence[Any], *, all_differ: bool) -> Mask:
    if all_differ:
        return np.fromiter(map(test, values), np.bool_, len(values))
    verdicts = {value: test(value) for value in set(values)}
    return np.fromiter(map(verdicts.__getitem__, values), np.bool_, len(values))


def _indexable(*columns: Sequence[Any]) -> list[bool]:
    return [
        state == "fetched" and status == 200 and "noindex" not in (robots or "") and canonical in (None, "", url)
        for state, status, robots, canonical, url in zip(*columns, strict=True)
    ]


def segment_sums(
    segments: Segmentation,
    columns: Mapping[str, Sequence[Any]],
    issues: Mapping[str, Ints],
    examples: int = 3,
) -> tuple[SegmentSum, ...]:
    """The sums of each segment, in the order of the rules.

    columns: those of SUM_COLUMNS. issues: page id of each issue by severity. examples: its first fetched pages by depth
    and URL, or its first URLs if none was fetched.
    """
    ids = np.fromiter(columns["id"], np.int64, len(columns["id"]))
    codes = segments.codes[np.searchsorted(segments.ids, ids)]
    dead = np.array([state == "failed" for state in columns["state"]], np.bool_)
    pages = np.array([size is not None for size in columns["size"]], np.bool_)
    depth, size_bytes, chars = (
        np.array([-1 if value is None else value for value in columns[name]], np.int64)
        for name in ("depth", "size", "text_chars")
    )
    met = {severity: _segment_counts(segments, page_ids) for severity, page_ids in issues.items()}
    sums = []
    for code, name in enumerate(segments.names):
        own = codes == code
        read = own & pages
        reached = depth[read & (depth >= 0)]
        first = np.flatnonzero(read if read.any() else own)
        shown = sorted(first.tolist(), key=lambda row: (depth[row] < 0, depth[row], columns["url"][row]))[:examples]
        sums.append(
            SegmentSum(
                name,
                int(own.sum()),
                int(read.sum()),
                int((own & dead).sum()),
                float(reached.mean()) if len(reached) else 0.0,
                int(reached.max(initial=0)),
                int(chars[read].clip(0).sum()),
                int(size_bytes[read].clip(0).sum()),
                {severity: int(counts[code]) for severity, counts in met.items()},
                tuple(columns["url"][row] for row in shown),
            )
        )
    return tuple(sums)


def _segment_counts(segments: Segmentation, asked: Ints) -> Ints:
    """Number of these URLs in each segment, with repetitions."""
    places = np.searchsorted(segments.ids, asked).clip(0, max(len(segments.ids) - 1, 0))
    there = segments.ids[places] == asked if len(segments.ids) else np.zeros(len(asked), np.bool_)
    return np.bincount(segments.codes[places[there]], minlength=len(segments.names))
