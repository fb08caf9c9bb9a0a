"""Grades a site from its issues: discoverability, accessibility, security, performance, maintenance."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from periplus.analyse.audit import issue_kinds
from periplus.errors import UsageError
from periplus.model.audit import Category, FieldGrade, GradedField, GradePart, Severity

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
# Ours: points that one kind of issue takes on every page, and the least that it takes where it is there at all. Five
# kinds of missing headers on each page, none of them an error, leave a C; one dead link in a large site leaves an A.
WEIGHTS = {Severity.ERROR: (40.0, 4.0), Severity.WARNING: (16.0, 1.5), Severity.NOTICE: (6.0, 0.5)}
LETTERS = ((90, "A"), (80, "B"), (70, "C"), (60, "D"), (50, "E"), (0, "F"))


def field_of(code: str) -> GradedField:
    """The field that a kind of issue counts for."""
    return _ELSEWHERE.get(code) or _FIELDS[issue_kinds()[code].category]


def letter_of(score: float) -> str:
    return next(letter for least, letter in LETTERS if score >= least)


def graded(
    pages_with: Mapping[tuple[str, Severity], int], pages: int, unmeasured: Collection[GradedField] = ()
) -> tuple[FieldGrade, ...]:
    """The grade of each field: 100 without what its kinds of issues take, by the share of pages that have them.

    pages_with: pages by kind of issue, as the user grades it; pages: of the site. No field is graded where there are no
    pages, and none of the unmeasured.
    """
    if not pages:
        return ()
    parts: dict[GradedField, list[GradePart]] = {field: [] for field in GradedField if field not in unmeasured}
    for (code, severity), count in pages_with.items():
        if count and code in issue_kinds() and (field := field_of(code)) in parts:
            weight, least = WEIGHTS[severity]
            points = max(least, weight * min(count / pages, 1.0))
            parts[field].append(GradePart(code, issue_kinds()[code].title, severity, count, round(points, 1)))
    made = []
    for field, rows in parts.items():
        rows.sort(key=lambda part: (-part.points, part.code))
        score = max(0, round(100 - sum(part.points for part in rows)))
        made.append(FieldGrade(field, score, letter_of(score), tuple(rows)))
    return tuple(made)


def grade_line(grades: Iterable[FieldGrade]) -> str:
    """`discoverability A 93, accessibility B 84, ...`; empty where nothing is graded."""
    return ", ".join(f"{one.field} {one.letter} {one.score}" for one in grades)


def least_grades(text: str) -> dict[GradedField, int]:
    """`security=B,accessibility=75` as the least score of each field: of a letter the least that has it. Empty: none.

    Raises UsageError, and nothing else, for what is none.
    """
    least: dict[GradedField, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (word.strip() for word in part.partition("="))
        scores = {letter: score for score, letter in LETTERS}
        score = scores.get(value.upper(), int(value) if value.isascii() and value.isdigit() and len(value) < 4 else -1)
        if name not in list(GradedField) or not 0 <= score <= 100:
            raise UsageError(
                f"{part!r} is no grade limit: write FIELD=LETTER or FIELD=POINTS, as in security=B,accessibility=75; "
                f"the fields are {', '.join(GradedField)}, the letters A to F"
            )
        least[GradedField(name)] = score
    return least


def below(grades: Iterable[FieldGrade], least: Mapping[GradedField, int]) -> list[str]:
    """What is worse than it should be, in words. A field that was not graded fails nothing."""
    return [
        f"{one.field} is {one.letter} ({one.score}), below {least[one.field]}"
        for one in grades
        if one.field in least and one.score < least[one.field]
    ]
