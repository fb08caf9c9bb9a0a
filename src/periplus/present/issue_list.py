"""How is what an audit found listed? For a person kind by kind, gravest first, of a link's target every page that holds it; for programs as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from periplus.model.audit import Grade, Issue, IssueKind
from periplus.model.table import Column, ColumnKind
from periplus.present.lines import visible

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
)


def issue_row(issue: Issue, kinds: Mapping[str, IssueKind]) -> tuple[str | None, ...]:
    """For tables: one value a column of COLUMNS."""
    kind = kinds[issue.code]
    row = (issue.url, issue.grade.value, kind.category.value, issue.code, kind.title, issue.detail)
    return (*row, issue.related or None, issue.anchor or None, issue.position or None)


def ordered(issues: Iterable[Issue], kinds: Mapping[str, IssueKind]) -> list[Issue]:
    """Gravest first, then by kind as in the table of kinds; a target's pages together."""
    grades, codes = list(Grade), list(kinds)
    return sorted(
        issues, key=lambda one: (grades.index(one.grade), codes.index(one.code), one.related if one.position else "", one.url, one.related, one.anchor)
    )


def issue_list(issues: Sequence[Issue], kinds: Mapping[str, IssueKind]) -> Iterator[str]:
    """Lines. issues: as `ordered` leaves them."""
    for (code, grade), found in groupby(issues, key=lambda issue: (issue.code, issue.grade)):
        these, kind = list(found), kinds[code]
        yield f"{grade.value.upper()} {code}: {kind.title} ({len(these):,})"
        yield f"  {kind.why} {kind.remedy}"
        yield from _links(these) if these[0].position else map(_line, these)
        yield ""


def _links(issues: Iterable[Issue]) -> Iterator[str]:
    """By target."""
    for (target, detail), held in groupby(issues, key=lambda issue: (issue.related, issue.detail)):
        yield f"  {visible(target)}" + (f"  {visible(detail)}" if detail else "")
        for issue in held:
            yield f"      on {visible(issue.url)}  {issue.position}" + (f'  "{visible(issue.anchor)}"' if issue.anchor else "")


def _line(issue: Issue) -> str:
    other = f" -> {visible(issue.related)}" if issue.related else ""
    return f"  {visible(issue.url)}{other}" + (f"  {visible(issue.detail)}" if issue.detail else "")
