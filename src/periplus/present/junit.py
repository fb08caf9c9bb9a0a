"""How does a continuous integration server read an audit? As JUnit XML: a test case a kind and page, failed by its issues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from periplus.model.audit import Grade, Issue, IssueKind
from periplus.present.xml_text import attributes, escaped


def junit(issues: Iterable[Issue], kinds: Mapping[str, IssueKind], *, name: str = "periplus") -> Iterator[str]:
    """The file in pieces. A kind is a suite and an issue a case; errors are failures, the others are skipped cases with their words.

    issues: those of one code together. kinds: by code; one without issues is a suite with one case, which passed. name: of the
    whole, as the site's host. The form is what Jenkins, GitLab and GitHub actions read: they agree on testsuites, testsuite, testcase,
    failure, skipped.
    """
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{attributes([("name", name)])}>\n'
    met = set()
    for code, found in groupby(issues, key=lambda issue: issue.code):
        met.add(code)
        yield from _suite(kinds[code], list(found))
    for code, kind in kinds.items():
        if code not in met:
            yield f"<testsuite{attributes([('name', code), ('tests', 1), ('failures', 0), ('errors', 0), ('skipped', 0)])}>"
            yield f"<testcase{attributes([('classname', code), ('name', kind.title)])}/></testsuite>\n"
    yield "</testsuites>\n"


def _suite(kind: IssueKind, found: list[Issue]) -> Iterator[str]:
    failures = sum(issue.grade is Grade.ERROR for issue in found)
    counted = [("tests", len(found)), ("failures", failures), ("errors", 0), ("skipped", len(found) - failures)]
    yield f"<testsuite{attributes([('name', kind.code), *counted])}>\n"
    for issue in found:
        about = f"{issue.url} -> {issue.related}" if issue.related else issue.url
        yield f"<testcase{attributes([('classname', kind.code), ('name', about)])}>"
        message = f"{kind.title}: {issue.detail}" if issue.detail else kind.title
        if issue.grade is Grade.ERROR:
            yield f"<failure{attributes([('message', message), ('type', issue.grade.value)])}>{escaped(_words(issue, kind))}</failure>"
        else:
            yield f"<skipped{attributes([('message', f'{issue.grade.value}: {message}')])}/>"
        yield "</testcase>\n"
    yield "</testsuite>\n"


def _words(issue: Issue, kind: IssueKind) -> str:
    place = f' Words of the link: "{issue.anchor}", in {issue.position}.' if issue.position else ""
    return f"{kind.why} {kind.remedy}{place}"
