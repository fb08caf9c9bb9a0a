"""What is to be repaired first, and what was found of each kind? The report's parts on issues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from periplus.model.audit import Grade, Issue
from periplus.model.report import IssueGroup
from periplus.present.markup import Html, link, text
from periplus.present.paged import Column, PagedTable, at_home, paged
from periplus.present.wording import count_of, number

FIRST = 5  # kinds of issues named on the first page
EXAMPLES = 3  # pages named with each
_GRADES = list(Grade)
GRADE_WORDS = {Grade.ERROR: "errors", Grade.WARNING: "warnings", Grade.NOTICE: "notices"}


def repair_first(groups: Sequence[IssueGroup], origin: str) -> Html:
    """The gravest kinds, of equal ones those on most pages; notices only where there is nothing else.

    origin: scheme://host of the site, which its URLs are shown without.
    """
    grave = [group for group in groups if group.grade is not Grade.NOTICE] or list(groups)
    first = sorted(grave, key=lambda group: (_GRADES.index(group.grade), -group.pages))[:FIRST]
    if not first:
        return '<p class="soft">Nothing was found that wants repair.</p>'
    return f'<ol class="actions">{"".join(_action(group, origin) for group in first)}</ol>'


def _action(group: IssueGroup, origin: str) -> Html:
    kind = group.kind
    pages = "".join(f"<li>{_said(issue, origin)}</li>" for issue in group.issues[:EXAMPLES])
    more = group.total - EXAMPLES
    rest = f'<li><a href="#issue-{kind.code}">and {number(more)} more</a></li>' if more > 0 else ""
    counted = count_of(group.pages, "page") if group.pages != group.total else ""
    return (
        f'<li class="{group.grade}"><h3><a href="#issue-{kind.code}">{text(kind.title)}</a> <span class="chip {group.grade}">{number(group.total)}'
        f"{f' on {counted}' if counted else ''}</span></h3><p>{text(kind.why)} <b>{text(kind.remedy)}</b></p><ul>{pages}{rest}</ul></li>\n"
    )


def _said(issue: Issue, origin: str) -> Html:
    """One issue on one line: the page, what it is about, and how."""
    about = f" → {link(issue.related, at_home(issue.related, origin))}" if issue.related else ""
    words = f" <q>{text(issue.anchor)}</q>" if issue.anchor else ""
    detail = f" <small>{text(_short(issue.detail, origin))}</small>" if issue.detail else ""
    return f"{link(issue.url, at_home(issue.url, origin))}{words}{about}{detail}"


def _short(detail: str, origin: str) -> str:
    """A detail whose URLs of the site itself are shown by their path."""
    return detail.replace(origin + "/", "/") if origin else detail


def all_issues(groups: Sequence[IssueGroup], origin: str) -> Html:
    """Every kind in a <details>, the errors open."""
    return "\n".join(_group(group, origin) for group in groups)


def _group(group: IssueGroup, origin: str) -> Html:
    kind, some = group.kind, group.issues
    related, worded = any(issue.related for issue in some), any(issue.anchor for issue in some)
    detailed = any(issue.detail for issue in some)
    columns = [Column("page", "link")]
    columns += [Column("words of the link", wide=True)] * worded + [Column("about", "link")] * related + [Column("what")] * detailed
    rows = [_cells(replace(issue, detail=_short(issue.detail, origin)), worded, related, detailed) for issue in some]
    table = paged(PagedTable(f"rows-{kind.code}", columns, rows, group.total, origin, "`periplus check` lists all."))
    return (
        f'<details class="issue" id="issue-{kind.code}"{" open" if group.grade is Grade.ERROR else ""}><summary><span class="name">{text(kind.title)} '
        f'<small>{text(kind.code)}</small></span><span class="chip {group.grade}">{number(group.total)}</span></summary>'
        f'<p class="note">{text(kind.why)} {text(kind.remedy)}</p>{table}</details>'
    )


def _cells(issue: Issue, worded: bool, related: bool, detailed: bool) -> list[str | int | tuple[str, str]]:
    cells: list[str | int | tuple[str, str]] = [(issue.url, "")]
    cells += [issue.anchor] if worded else []
    cells += [(issue.related, "")] if related else []
    return cells + ([issue.detail] if detailed else [])
