"""Judges a site by its issues: conditions that fail a check, and grades.

Graded are discoverability, accessibility, security, performance and maintenance.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from periplus.analyse.audit import issue_kinds
from periplus.errors import UsageError
from periplus.model.audit import Category, FieldGrade, GradedField, GradePart, KindSum, Severity
from periplus.values import frozen

_FIELDS = {
    Category.TITLES: GradedField.DISCOVERABILITY,
    Category.INDEXING: GradedField.DISCOVERABILITY,
    Category.STRUCTURE: GradedField.DISCOVERABILITY,
    Category.ACCESSIBILITY: GradedField.ACCESSIBILITY,
    Category.LANGUAGES: GradedField.ACCESSIBILITY,
    Category.SECURITY: GradedField.SECURITY,
    Category.PERFORMANCE: GradedField.PERFORMANCE,
    Category.LINKS: GradedField.MAINTENANCE,
    Category.REDIRECTS: GradedField.MAINTENANCE,
    Category.CONTENT: GradedField.MAINTENANCE,
}
_ELSEWHERE = {
    "image-without-alt": GradedField.ACCESSIBILITY,
    "preview-incomplete": GradedField.DISCOVERABILITY,
    "needs-script": GradedField.DISCOVERABILITY,
}
# Our choice: points deducted if a kind of issue is on every page, and the minimum if it is on any. Five kinds of
# missing headers on each page, none of them an error, result in a C; one dead link in a large site keeps an A.
WEIGHTS = {Severity.ERROR: (40.0, 4.0), Severity.WARNING: (16.0, 1.5), Severity.NOTICE: (6.0, 0.5)}
# Aliases for conditions, besides codes, severities and categories: verdicts on links, and plurals
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
LETTERS = ((90, "A"), (80, "B"), (70, "C"), (60, "D"), (50, "E"), (0, "F"))


def field_of(code: str) -> GradedField:
    """The field to which a kind of issue belongs."""
    return _ELSEWHERE.get(code) or _FIELDS[issue_kinds()[code].category]


def letter_of(score: float) -> str:
    return next(letter for least, letter in LETTERS if score >= least)


def field_grades(
    pages_with: Mapping[tuple[str, Severity], int], pages: int, unmeasured: Collection[GradedField] = ()
) -> tuple[FieldGrade, ...]:
    """The grade of each field: 100 minus points for each kind of issue, by the share of affected pages.

    pages_with: affected pages by kind of issue, with the user's severities. pages: of the site. Without pages nothing
    is graded; unmeasured fields are left out.
    """
    if not pages:
        return ()
    parts: dict[GradedField, list[GradePart]] = {field: [] for field in GradedField if field not in unmeasured}
    for (code, severity), count in pages_with.items():
        if count and code in issue_kinds() and (field := field_of(code)) in parts:
            weight, least = WEIGHTS[severity]
            points = max(least, weight * min(count / pages, 1.0))
            parts[field].append(GradePart(code, issue_kinds()[code].title, severity, count, round(points, 1)))
    grades = []
    for field, rows in parts.items():
        rows.sort(key=lambda part: (-part.points, part.code))
        score = max(0, round(100 - sum(part.points for part in rows)))
        grades.append(FieldGrade(field, score, letter_of(score), tuple(rows)))
    return tuple(grades)


def grade_line(grades: Iterable[FieldGrade]) -> str:
    """`discoverability A 93, accessibility B 84, ...`; '' if nothing is graded."""
    return ", ".join(f"{grade.field} {grade.letter} {grade.score}" for grade in grades)


def least_grades(text: str) -> dict[GradedField, int]:
    """Parses `security=B,accessibility=75` to the least score of each field; a letter means its lowest score.

    '' gives {}.

    Raises only UsageError.
    """
    least: dict[GradedField, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (word.strip() for word in part.partition("="))
        scores = {letter: score for score, letter in LETTERS}
        score = scores.get(value.upper(), int(value) if value.isascii() and value.isdigit() and len(value) < 4 else -1)
        if name not in list(GradedField) or not 0 <= score <= 100:
            raise UsageError(
                f"{part!r} is not a grade limit: write FIELD=LETTER or FIELD=POINTS, as in "
                f"security=B,accessibility=75; the fields are {', '.join(GradedField)}, the letters A to F"
            )
        least[GradedField(name)] = score
    return least


def below(grades: Iterable[FieldGrade], least: Mapping[GradedField, int]) -> list[str]:
    """The grades below their limit, as text. Fields that were not graded pass."""
    return [
        f"{grade.field} is {grade.letter} ({grade.score}), below {least[grade.field]}"
        for grade in grades
        if grade.field in least and grade.score < least[grade.field]
    ]


def counts(sums: Iterable[KindSum]) -> Counter[str]:
    """Number of causes by code, by severity and by category, in one table: these names are all distinct."""
    table: Counter[str] = Counter()
    for group in sums:
        table.update(
            {group.kind.code: group.causes, group.severity.value: group.causes, group.kind.category.value: group.causes}
        )
    return table


@frozen
class Condition:
    """The audit fails if there are more than `most` issues with this code, severity or category."""

    name: str
    most: int


@frozen
class GateResult:
    """Whether the audit failed, and a sentence with the reason."""

    failed: bool
    sentence: str


def fail_on(text: str) -> tuple[Condition, ...]:
    """Parses `broken>0,server-error>5`; each condition can fail the audit. A bare name means `>0`, as does `>=1`.

    '' gives no conditions. Raises only UsageError.
    """
    return tuple(_condition(part.strip()) for part in text.split(",") if part.strip())


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if not match:
        raise UsageError(f"{text!r} is not a condition: write NAME or NAME>NUMBER, as in broken>0,server-error>5")
    name, sign, number = match.groups()
    names = {*issue_kinds(), *Severity, *Category, *ALIASES}
    if name not in names:
        raise UsageError(f"unknown name {name!r}; choose among {', '.join(sorted(names))}")
    most = int(number or 0) - (sign == ">=")
    if most < 0:
        raise UsageError(f"{text!r} always fails: a number is never below 0")
    return Condition(ALIASES.get(name, name), most)


def gate(conditions: Iterable[Condition], counted: Mapping[str, int], *, baseline: str = "") -> GateResult:
    """Evaluates the conditions. counted: from `audit.counts`, of new issues only if there is a baseline.

    baseline: its name, for the sentence; empty: none.
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
