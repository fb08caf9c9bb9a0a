"""An audit's findings in words, under the user's own grades and grouped by cause, and whether the site passes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import groupby

import numpy as np

from periplus.analyse.audit import IssueColumns, issue_kinds
from periplus.analyse.audit_input import POSITIONS, AuditInput, Places
from periplus.errors import UsageError
from periplus.model.audit import (
    VERDICTS,
    Category,
    CausedBy,
    Fault,
    FaultNote,
    Grade,
    Issue,
    IssueKind,
    Verdict,
)
from periplus.model.graph import REASONS
from periplus.model.web import Url
from periplus.urls.hosts import root_of

_BLOCK = 10_000  # issues put into words at once: bounds memory whatever the number of findings
_OFF = "off"


@dataclass(frozen=True, slots=True)
class AuditRules:
    """What the user wants otherwise."""

    grades: Mapping[str, Grade] = field(default_factory=dict)
    off: frozenset[str] = frozenset()  # codes that are not reported at all
    # (code, with `*` and `?` allowed; a pattern in the page or related URL) of issues that are left out
    ignored: tuple[tuple[str, re.Pattern[str]], ...] = ()

    def grade(self, code: str) -> Grade:
        return self.grades.get(code, issue_kinds()[code].grade)

    def ignores(self, issue: Issue) -> bool:
        return any(
            fnmatchcase(issue.code, code) and (pattern.search(issue.url) or pattern.search(issue.related))
            for code, pattern in self.ignored
        )


def audit_rules(grades: Iterable[str] = (), ignored: Iterable[str] = ()) -> AuditRules:
    """grades: `CODE=error|warning|notice|off`; ignored: `CODE` or `CODE REGEX`. Raises UsageError for what is none."""
    chosen: dict[str, Grade] = {}
    off = set()
    for text in grades:
        code, _, grade = (part.strip() for part in text.partition("="))
        if code not in issue_kinds():
            raise UsageError(f"there is no issue {code!r}; the codes are: {', '.join(issue_kinds())}")
        if grade == _OFF:
            off.add(code)
        elif grade in list(Grade):
            chosen[code] = Grade(grade)
        else:
            raise UsageError(f"{text!r}: a grade is {', '.join(Grade)} or {_OFF}")
    return AuditRules(chosen, frozenset(off), tuple(map(_ignored, ignored)))


def _ignored(text: str) -> tuple[str, re.Pattern[str]]:
    code, _, pattern = text.strip().partition(" ")
    if not any(fnmatchcase(kind, code) for kind in issue_kinds()):
        raise UsageError(f"no issue has the code {code!r}; the codes are: {', '.join(issue_kinds())}")
    try:
        return code, re.compile(pattern.strip())
    except re.error as error:
        raise UsageError(f"{pattern.strip()!r} is no regular expression: {error}") from None


@dataclass(frozen=True, slots=True)
class Lookups:
    """What is too long to keep in columns and is asked for in blocks, for the issues in question only."""

    anchors: Callable[[Places], Iterable[str]] | None = None  # the words of links, given their indices in LinkFacts
    whys: Callable[[Places], Iterable[str]] | None = None  # why a URL has its verdict, given places: "it answers 404"


def issues(
    findings: Mapping[str, IssueColumns],
    site: AuditInput,
    rules: AuditRules | None = None,
    lookups: Lookups | None = None,
) -> Iterator[Issue]:
    """The findings of `audit` one by one, in their order, in words. Bounded memory."""
    rules, lookups = rules or AuditRules(), lookups or Lookups()
    for code, columns in findings.items():
        if code in rules.off:
            continue
        for start in range(0, len(columns), _BLOCK):
            block = columns.rows(np.arange(start, min(start + _BLOCK, len(columns))))
            for issue in _worded(issue_kinds()[code], rules.grade(code), block, site, lookups):
                if not rules.ignores(issue):
                    yield issue


def _worded(
    kind: IssueKind, grade: Grade, columns: IssueColumns, site: AuditInput, lookups: Lookups
) -> Iterator[Issue]:
    count, url, links = len(columns), site.urls.url, columns.links
    related = columns.related if columns.related is not None else np.full(count, -1)
    also = site.ends[related] if kind.code == "link-to-redirect" else related
    anchors, positions = [""] * count, [""] * count
    if links is not None:
        positions = [POSITIONS[place].value for place in site.links.position[links].tolist()]
        anchors = list(lookups.anchors(links)) if lookups.anchors else anchors
    numbers = (columns.numbers if columns.numbers is not None else np.zeros(count)).tolist()
    words = columns.words if columns.words is not None else _whys(related, site, lookups)
    for row, (page, other, end) in enumerate(
        zip(columns.subjects.tolist(), related.tolist(), also.tolist(), strict=True)
    ):
        other_url, end_url = url[other] if other >= 0 else "", url[end] if end >= 0 else ""
        detail = kind.detail.format(number=numbers[row], limit=columns.limit, also=end_url, words=words[row])
        cause = _cause(kind.caused_by, url[page], other_url, words[row])
        yield Issue(kind.code, grade, url[page], detail, other_url, anchors[row], positions[row], cause)


def _whys(related: Places, site: AuditInput, lookups: Lookups) -> Sequence[str]:
    """Why the related URLs are thought ill of: the judgement's own words, else its name, else the crawl's reason."""
    if lookups.whys:
        return list(lookups.whys(related))
    unchecked = VERDICTS.index(Verdict.UNCHECKED)
    verdicts, reasons = site.urls.verdict[related].tolist(), site.urls.reason[related].tolist()
    return [
        VERDICTS[verdict].value if verdict != unchecked else REASONS[reason].value
        for verdict, reason in zip(verdicts, reasons, strict=True)
    ]


def _cause(kind: CausedBy, page: str, related: str, words: str) -> str:
    """What is to be mended once for all issues of one kind with the same cause: a URL or words."""
    match kind:
        case CausedBy.PAGE:
            return page
        case CausedBy.TARGET:
            return related
        case CausedBy.FRAGMENT:
            return f"{related}#{words}"
        case CausedBy.WORDS:
            return words
        case CausedBy.HOST:
            return root_of(Url(page))
        case CausedBy.GROUP:
            # the first of a group names the second, the others name the first
            return min(page, related)


def causes(kind: CausedBy, columns: IssueColumns, url: Sequence[str]) -> Places:
    """int64[k]: the same as a number for each issue; issues of one cause have the same. url: of each place."""
    related = columns.related if columns.related is not None else columns.subjects
    match kind:
        case CausedBy.PAGE:
            return columns.subjects
        case CausedBy.TARGET:
            return related
        case CausedBy.FRAGMENT:
            return _numbered(zip(related.tolist(), columns.words or (), strict=True))
        case CausedBy.WORDS:
            return _numbered(columns.words or ())
        case CausedBy.HOST:
            return _numbered(root_of(Url(url[page])) for page in columns.subjects.tolist())
        case CausedBy.GROUP:
            return np.minimum(columns.subjects, related)


def without(
    findings: Mapping[str, IssueColumns], site: AuditInput, notes: Iterable[FaultNote]
) -> dict[str, IssueColumns]:
    """The findings but for those of causes that were accepted or ignored."""
    closed: dict[str, set[str]] = {}
    for note in notes:
        if note.decision:
            closed.setdefault(note.code, set()).add(note.cause)
    left = {
        code: _without(issue_kinds()[code].caused_by, columns, site, closed[code]) if code in closed else columns
        for code, columns in findings.items()
    }
    return {code: columns for code, columns in left.items() if len(columns)}


def _without(kind: CausedBy, columns: IssueColumns, site: AuditInput, closed: set[str]) -> IssueColumns:
    url = site.urls.url
    related = columns.related.tolist() if columns.related is not None else [-1] * len(columns)
    words = columns.words if columns.words is not None else [""] * len(columns)
    rows = zip(columns.subjects.tolist(), related, words, strict=True)
    texts = (_cause(kind, url[page], url[other] if other >= 0 else "", word) for page, other, word in rows)
    return columns.rows(np.flatnonzero(np.fromiter((text not in closed for text in texts), np.bool_, len(columns))))


def _numbered(values: Iterable[object]) -> Places:
    """The same number for the same value."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)


def faults(issues: Iterable[Issue]) -> list[Fault]:
    """The issues by their cause: gravest first, then by kind as in the table of kinds, then those on most pages."""
    groups: dict[tuple[str, Grade, str], list[Issue]] = {}
    for issue in issues:
        groups.setdefault((issue.code, issue.grade, issue.cause or issue.url), []).append(issue)
    made = [
        Fault(code, grade, cause, len({issue.url for issue in group}), len(group), tuple(group))
        for (code, grade, cause), group in groups.items()
    ]
    grades, codes = list(Grade), list(issue_kinds())
    return sorted(
        made, key=lambda fault: (grades.index(fault.grade), codes.index(fault.code), -fault.pages, fault.cause)
    )


@dataclass(frozen=True, slots=True)
class KindSum:
    """How many causes of one kind and grade there are, and on how many pages they are met."""

    kind: IssueKind
    grade: Grade
    causes: int
    pages: int


def sums(faults: Sequence[Fault]) -> tuple[KindSum, ...]:
    """By kind, in the order of `faults`."""
    groups = groupby(faults, key=lambda fault: (fault.code, fault.grade))
    made = []
    for (code, grade), causes in groups:
        some = list(causes)
        pages = {issue.url for fault in some for issue in fault.issues}
        made.append(KindSum(issue_kinds()[code], grade, len(some), len(pages)))
    return tuple(made)


def first_to_repair(faults: Iterable[Fault], most: int) -> tuple[Fault, ...]:
    """The gravest causes on most pages, of one kind only while no other kind is as grave; no notices beside graver."""
    grades = list(Grade)
    order = sorted(faults, key=lambda fault: (grades.index(fault.grade), -fault.pages))
    grave = [fault for fault in order if fault.grade is not Grade.NOTICE] or order
    rank: Counter[tuple[str, Grade]] = Counter()
    ranked = []
    for fault in grave:
        rank[fault.code, fault.grade] += 1
        ranked.append((grades.index(fault.grade), rank[fault.code, fault.grade] > 1, fault))
    return tuple(fault for _, _, fault in sorted(ranked, key=lambda row: row[:2])[:most])


def ordered(issues: Iterable[Issue]) -> list[Issue]:
    """Gravest first, then by kind as in the table of kinds; a target's pages together."""
    grades, codes = list(Grade), list(issue_kinds())
    return sorted(
        issues,
        key=lambda issue: (
            grades.index(issue.grade),
            codes.index(issue.code),
            issue.related if issue.position else "",
            issue.url,
            issue.related,
            issue.anchor,
        ),
    )


def counts(faults: Iterable[Fault]) -> Counter[str]:
    """Faults by code, by grade and by category, in one table: no two of these names are alike."""
    table: Counter[str] = Counter()
    for fault in faults:
        table.update((fault.code, fault.grade.value, issue_kinds()[fault.code].category.value))
    return table


# Names of conditions beside codes, grades and categories: verdicts on links, and plurals
ALIASES = {
    "broken": "broken-link",
    "refused": "refused-link",
    "looks-missing": "soft-404",
    "moved": "link-to-redirect",
    "suspect": "suspect-link",
    "errors": "error",
    "warnings": "warning",
    "notices": "notice",
}
_CONDITION = re.compile(r"([a-z0-9-]+)\s*(?:(>=?)\s*([0-9]{1,12}))?")


@dataclass(frozen=True, slots=True)
class Condition:
    """The audit fails when there are more than `most` issues of this name: a code, a grade or a category."""

    name: str
    most: int


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether the audit failed, and why, in a sentence."""

    failed: bool
    sentence: str


def fail_on(text: str) -> tuple[Condition, ...]:
    """`broken>0,server-error>5` as conditions, any of which fails the audit; a bare name means `>0`, `>=1` the same.

    Empty: none. Raises UsageError, and nothing else, for what is none.
    """
    return tuple(_condition(part.strip()) for part in text.split(",") if part.strip())


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if not match:
        raise UsageError(f"{text!r} is no condition: write NAME or NAME>NUMBER, as in broken>0,server-error>5")
    name, sign, number = match.groups()
    names = {*issue_kinds(), *Grade, *Category, *ALIASES}
    if name not in names:
        raise UsageError(f"nothing is called {name!r}; choose among {', '.join(sorted(names))}")
    most = int(number or 0) - (sign == ">=")
    if most < 0:
        raise UsageError(f"{text!r} fails always: there are never fewer than 0")
    return Condition(ALIASES.get(name, name), most)


def gate(conditions: Iterable[Condition], counted: Mapping[str, int], *, baseline: str = "") -> GateResult:
    """counted: issues by code, grade and category, from `audit.counts`, of new issues only where there is a baseline.

    baseline: its name for the sentence; empty: none.
    """
    over = [
        (condition, counted.get(condition.name, 0))
        for condition in conditions
        if counted.get(condition.name, 0) > condition.most
    ]
    since = f", counting what is new since {baseline}" if baseline else ""
    if not over:
        return GateResult(False, f"passed{since}")
    reasons = "; ".join(
        f"{number:,} {condition.name}, {f'at most {condition.most:,}' if condition.most else 'none'} allowed"
        for condition, number in over
    )
    return GateResult(True, f"failed: {reasons}{since}")
