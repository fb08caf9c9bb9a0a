"""Lists of an audit's issues: for people, as JSON, as JUnit XML, and as workflow commands of GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias
from urllib.parse import quote

from periplus.model.audit import Fault, FaultNote, Issue, IssueKind, KindSum, Severity, SharedCause
from periplus.present.markup import attributes, escape_xml
from periplus.present.wording import count_of, iso, visible
from periplus.settings import VERSION

# How what an audit found is listed: for a person the sums by kind, then each cause with its pages; for
# programs one issue a row.

LISTED_ISSUES = 5  # issues of one cause that are listed: enough to find the template they come from
Kinds: TypeAlias = Mapping[str, IssueKind]
"""Kinds of issues by code."""

LISTED_PAGES = 100  # pages of one cause in its case: servers show the text whole
MOST = 10  # annotations of one severity that GitHub shows of one step; it drops further ones without a word
_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTICE: "notice"}
_URI = "/:?#[]@!$&'()*+,;=%~"  # of an address nothing is escaped that is so already
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTICE: "note"}


def issue_row(issue: Issue, kinds: Kinds) -> tuple[str | int | None, ...]:
    """For tables: one value a column of ISSUES."""
    kind = kinds[issue.code]
    row = (issue.url, issue.severity.value, kind.category.value, issue.code, kind.title, issue.detail)
    link = (issue.related or None, issue.anchor or None, issue.position or None)
    return (*row, *link, issue.cause or issue.url, issue.line or None, issue.column or None)


def place_of(issue: Issue) -> str:
    """Its page, and where on it: of a file as editors jump to it, `a/b.html:12:5`."""
    if not issue.line:
        return visible(issue.url)
    if "://" in issue.url:
        return f"{visible(issue.url)} (line {issue.line}, column {issue.column})"
    return f"{visible(issue.url)}:{issue.line}:{issue.column}"


def fault_row(
    fault: Fault, kinds: Kinds, note: FaultNote | None = None, since: float | None = None
) -> tuple[str | int | None, ...]:
    """For tables: one value a column of FAULTS. since: when the first check that saw it began."""
    kind = kinds[fault.code]
    row = (fault.severity.value, kind.title, fault.cause, fault.detail, fault.pages, fault.total, fault.issues[0].url)
    noted = (note.decision.value or None, note.assignee or None, note.words or None) if note else (None,) * 3
    return (*row, kind.category.value, fault.code, None if since is None else iso(since), *noted)


def fault_list(sums: Sequence[KindSum], faults: Iterable[Fault]) -> Iterator[str]:
    """Lines: the sums by kind, then each cause with its pages. faults: gravest first, kind by kind as the sums."""
    for row in sums:
        yield f"{row.causes:>7,}  {row.severity.value:<7}  {row.kind.code}: {row.kind.title}{_page_count(row)}"
    for row, (_, causes) in zip(sums, groupby(faults, key=lambda fault: fault.code), strict=True):
        kind = row.kind
        yield ""
        yield f"{row.severity.value.upper()} {kind.code}: {kind.title} ({row.causes:,}{_page_count(row)})"
        yield f"  {kind.why} {kind.remedy}" + (f" ({kind.source})" if kind.source else "")
        for fault in causes:
            yield from [_line(fault)] if kind.caused_by is SharedCause.PAGE else _add_pages(fault)


def _page_count(row: KindSum) -> str:
    """Number of pages of causes; empty if each cause is a page."""
    return "" if row.kind.caused_by is SharedCause.PAGE else f", on {count_of(row.pages, 'page')}"


def _add_pages(fault: Fault) -> Iterator[str]:
    """A cause and the first of its pages."""
    detail = f"  {visible(fault.detail)}" if fault.detail else ""
    yield f"  {visible(fault.cause)}{detail}  ({count_of(fault.pages, 'page')})"
    for issue in fault.issues[:LISTED_ISSUES]:
        own = f"  {visible(issue.detail)}" if issue.detail and not fault.detail else ""
        place = f"  {issue.position}" if issue.position else ""
        other = f" -> {visible(issue.related)}" if issue.related and issue.url == fault.cause else ""
        yield (
            f"      on {place_of(issue)}{other}{place}" + (f'  "{visible(issue.anchor)}"' if issue.anchor else "") + own
        )
    if fault.total > LISTED_ISSUES:
        yield f"      and {fault.total - LISTED_ISSUES:,} more"


def _line(fault: Fault) -> str:
    issue = fault.issues[0]
    other = f" -> {visible(issue.related)}" if issue.related else ""
    cause = place_of(issue) if fault.cause == issue.url else visible(fault.cause)
    return f"  {cause}{other}" + (f"  {visible(issue.detail)}" if issue.detail else "")


# An audit as JUnit XML, which continuous integration servers read: a test case a cause, failed by its issues.


def junit(faults: Sequence[Fault], kinds: Kinds, *, name: str = "periplus") -> Iterator[str]:
    """The file in pieces.

    A kind is a suite and a cause a case; errors are failures, the rest is skipped cases with their text.

    kinds: by code; one without faults is a suite with one case, which passed. name: of the whole, as the site's
    host. The form is what Jenkins, GitLab and GitHub actions read: they agree on testsuites, testsuite,
    testcase, failure, skipped.
    """
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{attributes([("name", name)])}>\n'
    for code, kind in kinds.items():
        yield from _suite(kind, [fault for fault in faults if fault.code == code])
    yield "</testsuites>\n"


def _suite(kind: IssueKind, faults: Sequence[Fault]) -> Iterator[str]:
    failures = sum(fault.severity is Severity.ERROR for fault in faults)
    counted = [("tests", len(faults) or 1), ("failures", failures), ("errors", 0), ("skipped", len(faults) - failures)]
    yield f"<testsuite{attributes([('name', kind.code), *counted])}>\n"
    if not faults:
        yield f"<testcase{attributes([('classname', kind.code), ('name', kind.title)])}/>\n"
    for fault in faults:
        yield f"<testcase{attributes([('classname', kind.code), ('name', fault.cause)])}>"
        message = f"{kind.title}: {fault.detail}" if fault.detail else kind.title
        message += f", on {count_of(fault.pages, 'page')}" if kind.caused_by is not SharedCause.PAGE else ""
        if fault.severity is Severity.ERROR:
            yield (
                f"<failure{attributes([('message', message), ('type', fault.severity.value)])}>"
                f"{escape_xml(_words(fault, kind))}</failure>"
            )
        else:
            yield f"<skipped{attributes([('message', f'{fault.severity.value}: {message}')])}/>"
        yield "</testcase>\n"
    yield "</testsuite>\n"


def _words(fault: Fault, kind: IssueKind) -> str:
    lines = [f"{kind.why} {kind.remedy}"]
    for issue in fault.issues[:LISTED_PAGES]:
        lines.append(
            f"on {place_of(issue)}"
            + (f' Words of the link: "{issue.anchor}", in {issue.position}.' if issue.position else "")
        )
    return "\n".join(lines + [f"and {fault.total - LISTED_PAGES:,} more"] * (fault.total > LISTED_PAGES))


# An audit as workflow commands of GitHub, which shows them beside a change: one cause a line, printed
# by the step that runs us.


def github(faults: Iterable[Fault], kinds: Kinds) -> Iterator[str]:
    """`::error title=...::message`, in the order given; of each severity the first MOST,
    then a notice of how many are left out.
    """
    free = dict.fromkeys(Severity, MOST)
    free[Severity.NOTICE] -= 1  # for the last line
    left = 0
    for fault in faults:
        if free[fault.severity] > 0:
            free[fault.severity] -= 1
            title = _property(f"{kinds[fault.code].title} ({fault.code})")
            where = _file_of(fault.issues[0])
            yield _command(f"{_COMMAND[fault.severity]} {where}title={title}", _message(fault, kinds[fault.code]))
        else:
            left += 1
    if left:
        yield _command("notice title=More faults", f"{left:,} more: see the full report")


def _file_of(issue: Issue) -> str:
    """Path in the checkout, so that it is shown beside its line."""
    if not issue.line or "://" in issue.url:
        return ""
    return f"file={_property(issue.url)},line={issue.line},col={issue.column},"


def _message(fault: Fault, kind: IssueKind) -> str:
    issue = fault.issues[0]
    words = f' "{issue.anchor}" in {issue.position}' if issue.position else ""
    place = (
        f", on {count_of(fault.pages, 'page')}, as {place_of(issue)}{words}"
        if kind.caused_by is not SharedCause.PAGE
        else ""
    )
    detail = f": {fault.detail}" if fault.detail else ""
    return f"{fault.cause}{detail}{place}. {kind.remedy}"


def _command(command: str, message: str) -> str:
    return f"::{command}::{_data(message)}"


def _data(text: str) -> str:
    """Crawled text may not begin another command. Source: GitHub's toolkit, core/src/command.ts, escapeData."""
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Source: the same, escapeProperty."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# An audit for programs that jump to places in files: a line each, as compilers write them, and SARIF.


def gcc(issues: Iterable[Issue], kinds: Kinds) -> Iterator[str]:
    """`FILE:LINE:COLUMN: GRADE: MESSAGE [CODE]`, which editors and their problem matchers read. Without a place in the
    source line and column are 1: the form has no other word for the whole file."""
    for issue in issues:
        severity = "note" if issue.severity is Severity.NOTICE else issue.severity.value
        yield visible(
            f"{issue.url}:{issue.line or 1}:{issue.column or 1}: {severity}: {_sentence(issue, kinds)} [{issue.code}]"
        )


def _sentence(issue: Issue, kinds: Kinds) -> str:
    about = (issue.related, f'"{issue.anchor}"' if issue.anchor else "", issue.detail)
    return ": ".join(filter(None, (kinds[issue.code].title, " ".join(filter(None, about)))))


def sarif(issues: Iterable[Issue], kinds: Kinds) -> Iterator[str]:
    """The file in pieces: SARIF 2.1.0 (OASIS), one result an issue, as GitHub's code scanning and editors read it.

    A region is left out where the place in the source is not known; columns count characters.
    """
    rules = [
        {
            "id": kind.code, "shortDescription": {"text": kind.title},
            "fullDescription": {"text": kind.why}, "help": {"text": kind.remedy},
            "defaultConfiguration": {"level": _LEVELS[kind.severity]}, "properties": {"tags": [kind.category.value]},
        }
        for kind in kinds.values()
    ]  # fmt: skip
    places = {code: place for place, code in enumerate(kinds)}
    tool = json.dumps({"driver": {"name": "Periplus", "version": VERSION, "rules": rules}}, ensure_ascii=False)
    yield '{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": ['
    yield f'{{"tool": {tool}, "columnKind": "unicodeCodePoints", "results": ['
    for number, issue in enumerate(issues):
        place: dict[str, object] = {
            "artifactLocation": {"uri": quote(issue.url, safe=_URI if "://" in issue.url else "/")}
        }
        if issue.line:
            place["region"] = {"startLine": issue.line, "startColumn": issue.column}
        result = {
            "ruleId": issue.code, "ruleIndex": places[issue.code], "level": _LEVELS[issue.severity],
            "message": {"text": _sentence(issue, kinds)}, "locations": [{"physicalLocation": place}],
        }  # fmt: skip
        yield ("," if number else "") + "\n" + json.dumps(result, ensure_ascii=False)
    yield "\n]}]}\n"
