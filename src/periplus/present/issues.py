"""Lists of an audit's issues: for people, as JSON, as JUnit XML, and as workflow commands of GitHub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from periplus.model.audit import CausedBy, Fault, FaultNote, Grade, Issue, IssueKind
from periplus.present.markup import attributes, escaped
from periplus.present.wording import count_of, iso, visible

# How what an audit found is listed: for a person the sums by kind, then each cause with its pages; for
# programs one issue a row.

FOLDED = 5  # issues of one cause that are listed: enough to find the template they come from


def issue_row(issue: Issue, kinds: Mapping[str, IssueKind]) -> tuple[str | None, ...]:
    """For tables: one value a column of ISSUES."""
    kind = kinds[issue.code]
    row = (issue.url, issue.grade.value, kind.category.value, issue.code, kind.title, issue.detail)
    return (*row, issue.related or None, issue.anchor or None, issue.position or None, issue.cause or issue.url)


def fault_row(
    fault: Fault, kinds: Mapping[str, IssueKind], note: FaultNote | None = None, since: float | None = None
) -> tuple[str | int | None, ...]:
    """For tables: one value a column of FAULTS. since: when the first check that saw it began."""
    kind = kinds[fault.code]
    row = (fault.grade.value, kind.title, fault.cause, fault.detail, fault.pages, fault.total, fault.issues[0].url)
    noted = (note.decision.value or None, note.assignee or None, note.words or None) if note else (None,) * 3
    return (*row, kind.category.value, fault.code, None if since is None else iso(since), *noted)


def fault_list(faults: Sequence[Fault], kinds: Mapping[str, IssueKind]) -> Iterator[str]:
    """Lines: the sums by kind, then each cause with its pages. faults: gravest first, those of one kind together."""
    groups = [
        (kinds[code], grade, list(causes))
        for (code, grade), causes in groupby(faults, key=lambda fault: (fault.code, fault.grade))
    ]
    for kind, grade, causes in groups:
        yield f"{len(causes):>7,}  {grade.value:<7}  {kind.code}: {kind.title}{_on_pages(kind, causes)}"
    for kind, grade, causes in groups:
        yield ""
        yield f"{grade.value.upper()} {kind.code}: {kind.title} ({len(causes):,}{_on_pages(kind, causes)})"
        yield f"  {kind.why} {kind.remedy}" + (f" ({kind.source})" if kind.source else "")
        for fault in causes:
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


# An audit as JUnit XML, which continuous integration servers read: a test case a cause, failed by its issues.

NAMED = 100  # pages of one cause in its case: servers show the text whole


def junit(faults: Sequence[Fault], kinds: Mapping[str, IssueKind], *, name: str = "periplus") -> Iterator[str]:
    """The file in pieces.

    A kind is a suite and a cause a case; errors are failures, the others are skipped cases with their words.

    kinds: by code; one without faults is a suite with one case, which passed. name: of the whole, as the site's
    host. The form is what Jenkins, GitLab and GitHub actions read: they agree on testsuites, testsuite,
    testcase, failure, skipped.
    """
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{attributes([("name", name)])}>\n'
    for code, kind in kinds.items():
        causes = [fault for fault in faults if fault.code == code]
        if causes:
            yield from _suite(kind, causes)
        else:
            yield (
                "<testsuite"
                f"{attributes([('name', code), ('tests', 1), ('failures', 0), ('errors', 0), ('skipped', 0)])}>"
            )
            yield f"<testcase{attributes([('classname', code), ('name', kind.title)])}/></testsuite>\n"
    yield "</testsuites>\n"


def _suite(kind: IssueKind, faults: Sequence[Fault]) -> Iterator[str]:
    failures = sum(fault.grade is Grade.ERROR for fault in faults)
    counted = [("tests", len(faults)), ("failures", failures), ("errors", 0), ("skipped", len(faults) - failures)]
    yield f"<testsuite{attributes([('name', kind.code), *counted])}>\n"
    for fault in faults:
        yield f"<testcase{attributes([('classname', kind.code), ('name', fault.cause)])}>"
        message = f"{kind.title}: {fault.detail}" if fault.detail else kind.title
        message += f", on {count_of(fault.pages, 'page')}" if kind.caused_by is not CausedBy.PAGE else ""
        if fault.grade is Grade.ERROR:
            yield (
                f"<failure{attributes([('message', message), ('type', fault.grade.value)])}>"
                f"{escaped(_words(fault, kind))}</failure>"
            )
        else:
            yield f"<skipped{attributes([('message', f'{fault.grade.value}: {message}')])}/>"
        yield "</testcase>\n"
    yield "</testsuite>\n"


def _words(fault: Fault, kind: IssueKind) -> str:
    lines = [f"{kind.why} {kind.remedy}"]
    for issue in fault.issues[:NAMED]:
        lines.append(
            f"on {issue.url}"
            + (f' Words of the link: "{issue.anchor}", in {issue.position}.' if issue.position else "")
        )
    return "\n".join(lines + [f"and {fault.total - NAMED:,} more"] * (fault.total > NAMED))


# An audit as workflow commands of GitHub, which shows them beside a change: one cause a line, printed
# by the step that runs us.

MOST = 10  # annotations of one grade that GitHub shows of one step; it drops further ones without a word
_COMMAND = {Grade.ERROR: "error", Grade.WARNING: "warning", Grade.NOTICE: "notice"}


def github(faults: Iterable[Fault], kinds: Mapping[str, IssueKind], *, most: int = MOST) -> Iterator[str]:
    """`::error title=...::message`, in the order given; of each grade the first `most`,
    then a notice of how many are left out.
    """
    free = dict.fromkeys(Grade, most)
    free[Grade.NOTICE] -= 1  # for the last line
    left = 0
    for fault in faults:
        if free[fault.grade] > 0:
            free[fault.grade] -= 1
            yield _command(
                _COMMAND[fault.grade], f"{kinds[fault.code].title} ({fault.code})", _message(fault, kinds[fault.code])
            )
        else:
            left += 1
    if left:
        yield _command("notice", "More faults", f"{left:,} more: see the full report")


def _message(fault: Fault, kind: IssueKind) -> str:
    issue = fault.issues[0]
    words = f' "{issue.anchor}" in {issue.position}' if issue.position else ""
    place = (
        f", on {count_of(fault.pages, 'page')}, as {issue.url}{words}" if kind.caused_by is not CausedBy.PAGE else ""
    )
    detail = f": {fault.detail}" if fault.detail else ""
    return f"{fault.cause}{detail}{place}. {kind.remedy}"


def _command(name: str, title: str, message: str) -> str:
    return f"::{name} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """Crawled text may not begin another command. Source: GitHub's toolkit, core/src/command.ts, escapeData."""
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Source: the same, escapeProperty."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
