"""An audit as JUnit XML, which continuous integration servers read: a test case a cause, failed by its issues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from periplus.model.audit import CausedBy, Fault, Grade, IssueKind
from periplus.present.wording import count_of
from periplus.present.xml_text import attributes, escaped

NAMED = 100  # pages of one cause in its case: servers show the text whole


def junit(faults: Sequence[Fault], kinds: Mapping[str, IssueKind], *, name: str = "periplus") -> Iterator[str]:
    """The file in pieces. A kind is a suite and a cause a case; errors are failures, the others are skipped cases with their words.

    kinds: by code; one without faults is a suite with one case, which passed. name: of the whole, as the site's host. The form
    is what Jenkins, GitLab and GitHub actions read: they agree on testsuites, testsuite, testcase, failure, skipped.
    """
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{attributes([("name", name)])}>\n'
    for code, kind in kinds.items():
        found = [fault for fault in faults if fault.code == code]
        if found:
            yield from _suite(kind, found)
        else:
            yield f"<testsuite{attributes([('name', code), ('tests', 1), ('failures', 0), ('errors', 0), ('skipped', 0)])}>"
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
            yield f"<failure{attributes([('message', message), ('type', fault.grade.value)])}>{escaped(_words(fault, kind))}</failure>"
        else:
            yield f"<skipped{attributes([('message', f'{fault.grade.value}: {message}')])}/>"
        yield "</testcase>\n"
    yield "</testsuite>\n"


def _words(fault: Fault, kind: IssueKind) -> str:
    lines = [f"{kind.why} {kind.remedy}"]
    for issue in fault.issues[:NAMED]:
        lines.append(f"on {issue.url}" + (f' Words of the link: "{issue.anchor}", in {issue.position}.' if issue.position else ""))
    return "\n".join(lines + [f"and {fault.total - NAMED:,} more"] * (fault.total > NAMED))
