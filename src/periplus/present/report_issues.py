"""What is to be repaired first, and what was found of each kind? The report's parts on issues."""

from __future__ import annotations

from collections.abc import Sequence

from periplus.model.audit import CausedBy, Fault, Grade
from periplus.model.report import IssueGroup
from periplus.present.markup import Html, link, text
from periplus.present.paged import Column, PagedTable, at_home, paged
from periplus.present.wording import count_of, number

FIRST = 5  # kinds of issues named on the first page
EXAMPLES = 3  # causes named with each, and pages with each cause
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
    faults = "".join(f"<li>{_said(fault, group, origin)}</li>" for fault in group.faults[:EXAMPLES])
    more = group.total - EXAMPLES
    rest = f'<li><a href="#issue-{kind.code}">and {number(more)} more</a></li>' if more > 0 else ""
    return (
        f'<li class="{group.grade}"><h3><a href="#issue-{kind.code}">{text(kind.title)}</a> <span class="chip {group.grade}">{_counted(group)}</span></h3>'
        f"<p>{text(kind.why)} <b>{text(kind.remedy)}</b></p><ul>{faults}{rest}</ul></li>\n"
    )


def _said(fault: Fault, group: IssueGroup, origin: str) -> Html:
    """One cause on one line: what is at fault, how, and on which pages."""
    detail = f" <small>{text(_short(fault.detail, origin))}</small>" if fault.detail else ""
    named = _cause(fault, origin) + detail
    if group.kind.caused_by is CausedBy.PAGE:
        return named
    pages = list(dict.fromkeys(issue.url for issue in fault.issues))[:EXAMPLES]
    holders = ", ".join(link(url, at_home(url, origin)) for url in pages)
    return f"{named} <small>on {count_of(fault.pages, 'page')}: {holders}{', …' if fault.pages > len(pages) else ''}</small>"


def _cause(fault: Fault, origin: str) -> Html:
    return link(fault.cause, at_home(fault.cause, origin)) if is_url(fault.cause) else text(fault.cause)


def is_url(cause: str) -> bool:
    """Whether a cause can be opened; others are words."""
    return cause.startswith(("http://", "https://"))


def _short(detail: str, origin: str) -> str:
    """A detail whose URLs of the site itself are shown by their path."""
    return detail.replace(origin + "/", "/") if origin else detail


def all_issues(groups: Sequence[IssueGroup], origin: str) -> Html:
    """Every kind in a <details>, the errors open."""
    return "\n".join(_group(group, origin) for group in groups)


def _group(group: IssueGroup, origin: str) -> Html:
    kind, several = group.kind, group.kind.caused_by is not CausedBy.PAGE
    detailed, worded = any(fault.detail for fault in group.faults), several and any(fault.issues[0].anchor for fault in group.faults)
    columns = [Column("cause" if several else "page", "text" if kind.caused_by is CausedBy.WORDS else "link")] + [Column("what")] * detailed
    columns += [Column("pages", "n"), Column("the first of them", "link")] * several + [Column("words of the link", wide=True)] * worded
    rows = [_cells(fault, kind.caused_by, detailed, worded, origin) for fault in group.faults]
    table = paged(PagedTable(f"rows-{kind.code}", columns, rows, group.total, origin, "`periplus check` lists all."))
    return (
        f'<details class="issue" id="issue-{kind.code}"{" open" if group.grade is Grade.ERROR else ""}><summary><span class="name">{text(kind.title)} '
        f'<small>{text(kind.code)}</small></span><span class="chip {group.grade}">{_counted(group)}</span></summary>'
        f'<p class="note">{text(kind.why)} {text(kind.remedy)}</p>{table}</details>'
    )


def _counted(group: IssueGroup) -> Html:
    """How many causes, and on how many pages they are met."""
    return number(group.total) + (f" on {count_of(group.pages, 'page')}" if group.pages != group.total else "")


def _cells(fault: Fault, caused_by: CausedBy, detailed: bool, worded: bool, origin: str) -> list[str | int | tuple[str, str]]:
    cells: list[str | int | tuple[str, str]] = [fault.cause if caused_by is CausedBy.WORDS else (fault.cause, "")]
    cells += [_short(fault.detail, origin)] if detailed else []
    if caused_by is not CausedBy.PAGE:  # of pages that are alike the cause is one: another is named beside it
        first = next((issue.url for issue in fault.issues if issue.url != fault.cause), fault.cause)
        cells += [fault.pages, (first, "")]
    return cells + ([fault.issues[0].anchor] if worded else [])
