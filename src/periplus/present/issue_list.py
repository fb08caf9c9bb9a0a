"""How what an audit found is listed: for a person the sums by kind, then each cause with its pages; for programs one issue a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from periplus.model.audit import CausedBy, Fault, Grade, Issue, IssueKind
from periplus.model.table import Column, ColumnKind
from periplus.present.lines import visible
from periplus.present.wording import count_of

FOLDED = 5  # issues of one cause that are listed: enough to find the template they come from
COLUMNS = (
    Column("url", ColumnKind.TEXT, "the page to mend"),
    Column("severity", ColumnKind.TEXT, "its grade: error, warning or notice"),
    Column("category", ColumnKind.TEXT, "links, redirects, titles, indexing, ..."),
    Column("code", ColumnKind.TEXT, "the kind of issue; stable"),
    Column("message", ColumnKind.TEXT, "the kind of issue in a few words"),
    Column("detail", ColumnKind.TEXT, "this issue in words"),
    Column("related_url", ColumnKind.TEXT, "the other URL that it is about: a link's target, the page with the same title"),
    Column("anchor_text", ColumnKind.TEXT, "of a link: its words"),
    Column("position", ColumnKind.TEXT, "of a link: the part of the page that it stands in"),
    Column("cause", ColumnKind.TEXT, "what is to be mended once for all issues of one code with the same cause: a URL or words"),
)
FAULT_COLUMNS = (
    Column("severity", ColumnKind.TEXT, "its grade: error, warning or notice"),
    Column("message", ColumnKind.TEXT, "the kind of issue in a few words"),
    Column("cause", ColumnKind.TEXT, "what is to be mended: a URL or words"),
    Column("detail", ColumnKind.TEXT, "what all of its issues say"),
    Column("pages", ColumnKind.INTEGER, "pages on which it is met"),
    Column("issues", ColumnKind.INTEGER, "issues of this cause: a page may have several"),
    Column("url", ColumnKind.TEXT, "the first of these pages"),
    Column("category", ColumnKind.TEXT, "links, redirects, titles, indexing, ..."),
    Column("code", ColumnKind.TEXT, "the kind of issue; stable"),
)


def issue_row(issue: Issue, kinds: Mapping[str, IssueKind]) -> tuple[str | None, ...]:
    """For tables: one value a column of COLUMNS."""
    kind = kinds[issue.code]
    row = (issue.url, issue.grade.value, kind.category.value, issue.code, kind.title, issue.detail)
    return (*row, issue.related or None, issue.anchor or None, issue.position or None, issue.cause or issue.url)


def fault_row(fault: Fault, kinds: Mapping[str, IssueKind]) -> tuple[str | int | None, ...]:
    """For tables: one value a column of FAULT_COLUMNS."""
    kind = kinds[fault.code]
    row = (fault.grade.value, kind.title, fault.cause, fault.detail, fault.pages, fault.total, fault.issues[0].url)
    return (*row, kind.category.value, fault.code)


def ordered(issues: Iterable[Issue], kinds: Mapping[str, IssueKind]) -> list[Issue]:
    """Gravest first, then by kind as in the table of kinds; a target's pages together."""
    grades, codes = list(Grade), list(kinds)
    return sorted(
        issues, key=lambda one: (grades.index(one.grade), codes.index(one.code), one.related if one.position else "", one.url, one.related, one.anchor)
    )


def fault_list(faults: Sequence[Fault], kinds: Mapping[str, IssueKind]) -> Iterator[str]:
    """Lines: the sums by kind, then each cause with its pages. faults: gravest first, those of one kind together."""
    groups = [(kinds[code], grade, list(found)) for (code, grade), found in groupby(faults, key=lambda fault: (fault.code, fault.grade))]
    for kind, grade, found in groups:
        yield f"{len(found):>7,}  {grade.value:<7}  {kind.code}: {kind.title}{_on_pages(kind, found)}"
    for kind, grade, found in groups:
        yield ""
        yield f"{grade.value.upper()} {kind.code}: {kind.title} ({len(found):,}{_on_pages(kind, found)})"
        yield f"  {kind.why} {kind.remedy}"
        for fault in found:
            yield from [_line(fault)] if kind.caused_by is CausedBy.PAGE else _with_pages(fault)


def _on_pages(kind: IssueKind, faults: Sequence[Fault]) -> str:
    """On how many pages several faults are met; nothing where each is a page."""
    if kind.caused_by is CausedBy.PAGE:
        return ""
    return f", on {count_of(len({issue.url for fault in faults for issue in fault.issues}), 'page')}"


def _with_pages(fault: Fault) -> Iterator[str]:
    """A cause, and the first of the pages that it is met on."""
    detail = f"  {visible(fault.detail)}" if fault.detail else ""
    yield f"  {visible(fault.cause)}{detail}  ({count_of(fault.pages, 'page')})"
    for issue in fault.issues[:FOLDED]:
        own = f"  {visible(issue.detail)}" if issue.detail and not fault.detail else ""
        place = f"  {issue.position}" if issue.position else ""
        yield f"      on {visible(issue.url)}{place}" + (f'  "{visible(issue.anchor)}"' if issue.anchor else "") + own
    if fault.total > FOLDED:
        yield f"      and {fault.total - FOLDED:,} more"


def _line(fault: Fault) -> str:
    issue = fault.issues[0]
    other = f" -> {visible(issue.related)}" if issue.related else ""
    return f"  {visible(fault.cause)}{other}" + (f"  {visible(issue.detail)}" if issue.detail else "")
