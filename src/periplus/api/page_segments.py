"""Segments of a collection: reads and writes the rules, assigns URLs, and sums up each segment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from periplus.api.homes import home_of, open_reader
from periplus.errors import UsageError
from periplus.features import is_address
from periplus.files import read_rules, replace_file
from periplus.model.tables import ALL_URLS, FAULTS, SEGMENT_OTHER, TEXT, Column, Table
from periplus.model.web import SiteKey, Url
from periplus.settings import (
    SETTINGS_FILE,
    edited_toml,
    segments_written,
    toml_document,
)
from periplus.store.reader import CollectionReader
from periplus.urls.canonical import url_id
from periplus.values import Place, Row, frozen

if TYPE_CHECKING:  # imports NumPy
    import numpy as np
    from numpy.typing import NDArray
    from tomlkit import TOMLDocument

    from periplus.analyse.issues import IssueTable
    from periplus.analyse.segments import SegmentRule
    from periplus.model.results import Segmentation, SegmentSum

NO_RULES = (
    'no segments are defined: write rules into {}, table [segments], for example docs = "/docs"; see docs/segments.md'
)
_SEGMENT_COLUMNS = {
    "urls": ("u.id",), "pages": ("u.id",), "links": ("l.source", "l.target"), "bad": ("b.source",),
    "redirects": ("u.id",), "visits": ("v.url_id",),
}  # fmt: skip
"""SQL expressions of the page ids in each row, for tables with pages."""
_SEGMENT = Column("segment", TEXT, "first segment of periplus.toml that matches the page, else other", facet=True)
_TARGET_SEGMENT = replace(_SEGMENT, name="target_segment", sentence="segment of the target")


def rules_file(place: Place) -> Path:
    """File with the segment rules of a collection: in its folder; for a database, periplus.toml in the current
    directory, which overrides the rules in the database.
    """
    return Path(SETTINGS_FILE) if is_address(str(place)) else Path(place) / SETTINGS_FILE


def rules_mtime_ns(place: Place) -> int:
    """mtime of the rules in ns, 0 without rules: invalidates results that depend on them."""
    path = rules_file(place)
    return path.stat().st_mtime_ns if path.is_file() else 0


def applied_rules(place: Place) -> str:
    """Text of the periplus.toml that applies to a collection; empty without one.

    For a database it is that of the current directory, with the segments of the database if it defines none; without
    such a file, the rules stored in the database. Raises UsageError, NoCollection, StoreError.
    """
    path = rules_file(place)
    text = read_rules(path)
    if not is_address(str(place)) or segments_written(text):
        return text
    stored = home_of(place).rules_text()
    return f"{text}\n\n{segments_written(stored)}" if path.is_file() else stored


def rules_at(place: Place) -> tuple[SegmentRule, ...]:
    """Segment rules of a collection, or (). Raises UsageError for invalid rules."""
    text = applied_rules(place)
    if "segments" not in text:  # avoids importing NumPy
        return ()
    from periplus.analyse.segments import segment_rules

    return segment_rules(text, str(rules_file(place)))


def with_segment_rules(text: str, rules: str) -> str:
    """Replaces the table [segments] in the text of a periplus.toml; the rest stays unchanged.

    rules: with or without the line [segments]; empty: removes the table. Raises UsageError if it is not such a table.
    """
    lines = rules.replace("\r\n", "\n").strip()
    lines = lines if lines.startswith("[") else f"[segments]\n{lines}"

    given = toml_document(lines, "the table [segments]")
    if given.keys() != {"segments"}:
        raise UsageError('invalid segment rules: write lines like docs = "/docs", and no other table')

    def edit(document: TOMLDocument) -> None:
        document.pop("segments", None)
        if rules.strip():
            document.update(given)

    return edited_toml(text, edit)


def write_rules(place: Place, rules: str) -> None:
    """Replaces the segment rules in a collection's periplus.toml or database. rules: lines as in `with_segment_rules`.
    Raises UsageError if they are invalid or cannot be written.
    """

    def new_text(text: str) -> str:
        from periplus.analyse.segments import segment_rules

        made = with_segment_rules(text, rules)
        segment_rules(made)
        return made

    path = rules_file(place)
    text = read_rules(path)
    if not is_address(str(place)):
        replace_text(path, new_text(text))
        return
    if segments_written(text):
        raise UsageError(f"{path.resolve()} defines segments for all collections read here: change them there")
    home_of(place).change_note("rules_text", new_text)


def replace_text(path: Path, text: str) -> None:
    """Replaces a text file atomically. Raises UsageError on failure."""
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def require_segment(place: Place, name: str) -> None:
    """Raises UsageError if no rules exist, or none with this name."""
    if not (rules := rules_at(place)):
        raise UsageError(NO_RULES.format(rules_file(place)))
    from periplus.analyse.segments import checked_name

    checked_name(name, rules)


def segments_of(reader: CollectionReader, rules: Sequence[SegmentRule]) -> Segmentation:
    """Segments of a collection, at present."""
    from periplus.analyse.segments import assign_segments, columns_read

    return assign_segments(rules, _read(reader, columns_read(rules)))


def _table(names: Sequence[str]) -> Table:
    return Table(ALL_URLS.name, ALL_URLS.sentence, ALL_URLS.select(names), ALL_URLS.source)


def _columns(names: Sequence[str], rows: Iterator[Sequence[Any]]) -> dict[str, Sequence[Any]]:
    values = list(zip(*rows, strict=True)) or [()] * len(names)
    return dict(zip(names, values, strict=True))


def _read(reader: CollectionReader, names: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Columns of SEEN."""
    return _columns(names, reader.whole(_table(names)))


def segments_at(place: Place) -> Segmentation | None:
    """Segments of a collection in a folder or a database; None without rules.

    Raises UsageError, NoCollection, StoreError.
    """
    if not (rules := rules_at(place)):
        return None
    with open_reader(place) as reader:
        return segments_of(reader, rules)


def needed_segments(place: Place) -> Segmentation:
    """Like `segments_at`. Raises UsageError without rules."""
    segments = segments_at(place)
    if segments is None:
        raise UsageError(NO_RULES.format(rules_file(place)))
    return segments


def issues_within(place: Place, name: str, issues: IssueTable) -> IssueTable:
    """The issues on pages of a segment. Raises as `needed_segments`."""
    segments = needed_segments(place)
    return issues.of(kind.rows(pages_within(segments, name, issues.ids[kind.pages])) for kind in issues.kinds)


def pages_within(segments: Segmentation, name: str, pages: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[pages]: whether a page is in the segment; unknown URLs are in SEGMENT_OTHER. pages: ids."""
    import numpy as np

    return np.fromiter(((segments.of(page) or SEGMENT_OTHER) == name for page in pages.tolist()), np.bool_, len(pages))


def sums_of(place: Place, examples: int = 3) -> tuple[SegmentSum, ...]:
    """Sums for each segment of a collection. Raises as `needed_segments`."""
    from periplus.analyse.segments import SUM_COLUMNS, segment_sums

    segments = needed_segments(place)
    with open_reader(place) as reader:
        return segment_sums(segments, _read(reader, SUM_COLUMNS), {}, examples)


def site_sums(
    reader: CollectionReader, rules: Sequence[SegmentRule], site: SiteKey, issues: Mapping[str, NDArray[np.int64]]
) -> tuple[SegmentSum, ...]:
    """Sums for each segment of one site of a collection.

    issues: page id of each issue, by severity.
    """
    from periplus.analyse.segments import SUM_COLUMNS, segment_sums

    names = (*SUM_COLUMNS, "site")
    rows = (row for row in reader.whole(_table(names)) if row[-1] == site)
    return segment_sums(segments_of(reader, rules), _columns(names, rows), issues)


def with_segments(table: Table) -> Table:
    """Returns the table with a column for the segment of each row's page, and for links also that of the target.
    Tables without a page per row are returned unchanged. Stores compute the columns with an SQL function
    segment_of(id).
    """
    ids = _SEGMENT_COLUMNS.get(table.name, ("",) * ("url" in table.names)) if table.name != FAULTS.name else ()
    columns = (
        replace(column, sql=f"segment_of({expression})" if table.source else "")
        for column, expression in zip((_SEGMENT, _TARGET_SEGMENT), ids, strict=False)
    )
    return table.with_columns(columns) if ids else table


@frozen
class SegmentedRows:
    """Extends table rows by the segments of their pages, found by URL."""

    table: Table
    segments: Segmentation | None

    @property
    def full_table(self) -> Table:
        """The table with segment columns; unchanged without rules."""
        return with_segments(self.table) if self.segments else self.table

    def rows(self, rows: Iterator[Row], only: str = "") -> Iterator[Row]:
        """only: keep the rows of this segment. Raises UsageError for a table without page URLs."""
        names = self.table.names
        added = len(self.full_table.columns) - len(names)
        places = [names.index(name) for name in ("url", "source", "target") if name in names][:added]
        if self.segments is None or not places:
            if only:
                raise UsageError(f"the table {self.table.name} has no pages, so it has no segments")
            yield from rows
            return
        of = self.segments.of
        for row in rows:
            own = tuple(of(url_id(Url(str(row[place])))) if row[place] else None for place in places)
            if not only or own[0] == only:
                yield (*row, *own)
