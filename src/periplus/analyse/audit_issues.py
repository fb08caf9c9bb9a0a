"""How do findings become issues, under the user's own grades and without what the user ignores?"""

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
from periplus.model.audit import VERDICTS, Grade, Issue, Verdict
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
    return Finding(
        finding.code,
        finding.subjects[rows],
        finding.related[rows] if finding.related is not None else None,
        finding.numbers[rows] if finding.numbers is not None else None,
        finding.links[rows] if finding.links is not None else None,
        finding.words[rows] if finding.words is not None else None,
    )


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
        named = urls.url[third] if third >= 0 else ""
        detail = kind.detail.format(number=float(numbers[row]), limit=limit, also=named, words=words[row])
        yield Issue(kind.code, kind.grade, urls.url[page], detail, urls.url[other] if other >= 0 else "", anchors[row], positions[row])


def _whys(related: Places, known: AuditInput, lookups: Lookups) -> Sequence[str]:
    """Why the related URLs are thought ill of: the judgement's own words, else its name, else the crawl's reason."""
    if lookups.whys:
        return list(lookups.whys(related))
    unchecked = VERDICTS.index(Verdict.UNCHECKED)
    verdicts, reasons = known.urls.verdict[related].tolist(), known.urls.reason[related].tolist()
    return [VERDICTS[verdict].value if verdict != unchecked else REASONS[reason].value for verdict, reason in zip(verdicts, reasons, strict=True)]


def counts(found: Iterable[Issue]) -> Counter[str]:
    """Issues by code, by grade and by category, in one table: no two of these names are alike."""
    by_code = Counter((issue.code, issue.grade) for issue in found)
    table: Counter[str] = Counter()
    for (code, grade), number in by_code.items():
        table.update({code: number})
        table.update({grade.value: number})
        table.update({KINDS_OF_ISSUES[code].category.value: number})
    return table
