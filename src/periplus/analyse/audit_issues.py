"""Turns findings into issues, under the user's own grades and without what the user ignores, and groups issues by cause."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np

from periplus.analyse.audit_input import POSITIONS, AuditInput, Finding, Places
from periplus.analyse.audit_links import redirect_ends
from periplus.analyse.audit_table import KINDS_OF_ISSUES
from periplus.errors import UsageError
from periplus.model.audit import VERDICTS, CausedBy, Fault, Grade, Issue, Verdict
from periplus.model.graph import REASONS

_BLOCK = 10_000  # issues put into words at once: bounds memory whatever the number of findings
_LIMITS = {
    "title-long": "title_chars",
    "description-long": "description_chars",
    "slow-page": "slow_s",
    "heavy-page": "heavy_bytes",
    "deep-page": "deep_clicks",
    "url-too-long": "url_chars",
}
_OFF = "off"


@dataclass(frozen=True, slots=True)
class Ignore:
    """Issues of a code (`*` and `?` allowed) whose page or related URL the pattern is found in."""

    code: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class AuditRules:
    """What the user wants otherwise."""

    grades: Mapping[str, Grade] = field(default_factory=dict)
    off: frozenset[str] = frozenset()  # codes that are not reported at all
    ignored: tuple[Ignore, ...] = ()

    def grade(self, code: str) -> Grade:
        return self.grades.get(code, KINDS_OF_ISSUES[code].grade)

    def ignores(self, issue: Issue) -> bool:
        return any(fnmatchcase(issue.code, rule.code) and (rule.pattern.search(issue.url) or rule.pattern.search(issue.related)) for rule in self.ignored)


def audit_rules(grades: Iterable[str] = (), ignored: Iterable[str] = ()) -> AuditRules:
    """grades: `CODE=error|warning|notice|off`; ignored: `CODE` or `CODE REGEX`. Raises UsageError for what is none."""
    chosen: dict[str, Grade] = {}
    off = set()
    for text in grades:
        code, _, grade = (part.strip() for part in text.partition("="))
        if code not in KINDS_OF_ISSUES:
            raise UsageError(f"there is no issue {code!r}; the codes are: {', '.join(KINDS_OF_ISSUES)}")
        if grade == _OFF:
            off.add(code)
        elif grade in list(Grade):
            chosen[code] = Grade(grade)
        else:
            raise UsageError(f"{text!r}: a grade is {', '.join(Grade)} or {_OFF}")
    return AuditRules(chosen, frozenset(off), tuple(map(_ignore, ignored)))


def _ignore(text: str) -> Ignore:
    code, _, pattern = text.strip().partition(" ")
    if not any(fnmatchcase(known, code) for known in KINDS_OF_ISSUES):
        raise UsageError(f"no issue has the code {code!r}; the codes are: {', '.join(KINDS_OF_ISSUES)}")
    try:
        return Ignore(code, re.compile(pattern.strip()))
    except re.error as error:
        raise UsageError(f"{pattern.strip()!r} is no regular expression: {error}") from None


@dataclass(frozen=True, slots=True)
class Lookups:
    """What is too long to keep in columns and is asked for in blocks, for the issues in question only."""

    anchors: Callable[[Places], Iterable[str]] | None = None  # the words of links, given their indices in LinkFacts
    whys: Callable[[Places], Iterable[str]] | None = None  # why a URL has its verdict, given places: "it answers 404"


def issues(findings: Iterable[Finding], known: AuditInput, rules: AuditRules | None = None, lookups: Lookups | None = None) -> Iterator[Issue]:
    """The findings one by one, in their order, in words. Bounded memory."""
    rules, lookups = rules or AuditRules(), lookups or Lookups()
    ends = redirect_ends(known)
    for finding in findings:
        if finding.code in rules.off:
            continue
        for start in range(0, len(finding), _BLOCK):
            block = _part(finding, slice(start, start + _BLOCK))
            for issue in _worded(block, known, ends, lookups):
                graded = dataclasses.replace(issue, grade=rules.grade(issue.code))
                if not rules.ignores(graded):
                    yield graded


def _part(finding: Finding, rows: slice) -> Finding:
    """Some rows of a finding."""
    return rows_of(finding, np.arange(len(finding))[rows])


def rows_of(finding: Finding, rows: Places) -> Finding:
    """Some rows of a finding, in the order given."""
    return Finding(
        finding.code,
        finding.subjects[rows],
        finding.related[rows] if finding.related is not None else None,
        finding.numbers[rows] if finding.numbers is not None else None,
        finding.links[rows] if finding.links is not None else None,
        [finding.words[row] for row in rows.tolist()] if finding.words is not None else None,
    )


def causes(finding: Finding) -> Places:
    """int64[k]: a number for the cause of each row; rows of one cause have the same."""
    related = finding.related if finding.related is not None else finding.subjects
    match KINDS_OF_ISSUES[finding.code].caused_by:
        case CausedBy.PAGE:
            return finding.subjects
        case CausedBy.TARGET:
            return related
        case CausedBy.FRAGMENT:
            return _numbered(zip(related.tolist(), finding.words or (), strict=True))
        case CausedBy.WORDS:
            return _numbered(finding.words or ())
        case CausedBy.GROUP:
            return np.minimum(finding.subjects, related)  # the first of a group names the second, the others name the first


def _numbered(values: Iterable[object]) -> Places:
    """The same number for the same value."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)


def _cause(kind: CausedBy, page: str, related: str, words: str) -> str:
    """The same as text."""
    match kind:
        case CausedBy.PAGE:
            return page
        case CausedBy.TARGET:
            return related
        case CausedBy.FRAGMENT:
            return f"{related}#{words}"
        case CausedBy.WORDS:
            return words
        case CausedBy.GROUP:
            return min(page, related)


def _worded(finding: Finding, known: AuditInput, ends: Places, lookups: Lookups) -> Iterator[Issue]:
    """ends: where each URL leads by redirects."""
    kind, urls, count = KINDS_OF_ISSUES[finding.code], known.urls, len(finding)
    related = finding.related if finding.related is not None else np.full(count, -1)
    also = ends[related] if finding.code == "link-to-redirect" else related
    anchors = list(lookups.anchors(finding.links)) if finding.links is not None and lookups.anchors else [""] * count
    positions = [POSITIONS[place].value for place in known.links.position[finding.links].tolist()] if finding.links is not None else [""] * count
    numbers = finding.numbers if finding.numbers is not None else np.zeros(count)
    limit = float(getattr(known.limits, _LIMITS[finding.code])) if finding.code in _LIMITS else 0.0
    words = finding.words if finding.words is not None else _whys(related, known, lookups)
    for row, (page, other, third) in enumerate(zip(finding.subjects.tolist(), related.tolist(), also.tolist(), strict=True)):
        named, about = urls.url[third] if third >= 0 else "", urls.url[other] if other >= 0 else ""
        detail = kind.detail.format(number=float(numbers[row]), limit=limit, also=named, words=words[row])
        cause = _cause(kind.caused_by, urls.url[page], about, words[row])
        yield Issue(kind.code, kind.grade, urls.url[page], detail, about, anchors[row], positions[row], cause)


def _whys(related: Places, known: AuditInput, lookups: Lookups) -> Sequence[str]:
    """Why the related URLs are thought ill of: the judgement's own words, else its name, else the crawl's reason."""
    if lookups.whys:
        return list(lookups.whys(related))
    unchecked = VERDICTS.index(Verdict.UNCHECKED)
    verdicts, reasons = known.urls.verdict[related].tolist(), known.urls.reason[related].tolist()
    return [VERDICTS[verdict].value if verdict != unchecked else REASONS[reason].value for verdict, reason in zip(verdicts, reasons, strict=True)]


def faults(found: Iterable[Issue]) -> list[Fault]:
    """The issues by their cause: gravest first, then by kind as in the table of kinds, then those on most pages."""
    groups: dict[tuple[str, Grade, str], list[Issue]] = {}
    for issue in found:
        groups.setdefault((issue.code, issue.grade, issue.cause or issue.url), []).append(issue)
    made = [Fault(code, grade, cause, len({issue.url for issue in issues}), len(issues), tuple(issues)) for (code, grade, cause), issues in groups.items()]
    grades, codes = list(Grade), {code: place for place, code in enumerate(KINDS_OF_ISSUES)}
    return sorted(made, key=lambda fault: (grades.index(fault.grade), codes[fault.code], -fault.pages, fault.cause))


def counts(found: Iterable[Fault]) -> Counter[str]:
    """Faults by code, by grade and by category, in one table: no two of these names are alike."""
    table: Counter[str] = Counter()
    for fault in found:
        table.update((fault.code, fault.grade.value, KINDS_OF_ISSUES[fault.code].category.value))
    return table
