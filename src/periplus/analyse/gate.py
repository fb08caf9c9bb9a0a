"""Does an audit pass, by the user's own measure? For scripts and continuous integration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from periplus.analyse.audit_table import KINDS_OF_ISSUES
from periplus.errors import UsageError
from periplus.model.audit import Category, Grade, Issue

# Verdicts as they are said of links, beside codes, grades and categories
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
NAMES = frozenset({*KINDS_OF_ISSUES, *Grade, *Category, *ALIASES})
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
    if name not in NAMES:
        raise UsageError(f"nothing is called {name!r}; choose among {', '.join(sorted(NAMES))}")
    most = int(number or 0) - (sign == ">=")
    if most < 0:
        raise UsageError(f"{text!r} fails always: there are never fewer than 0")
    return Condition(ALIASES.get(name, name), most)


def new_issues(found: Iterable[Issue], baseline: Set[tuple[str, str, str]]) -> list[Issue]:
    """Those that the baseline, the keys of an earlier run's issues, lacks. Wording and grade make no issue new."""
    return [issue for issue in found if issue.key not in baseline]


def gate(conditions: Iterable[Condition], counted: Mapping[str, int], *, baseline: str = "") -> GateResult:
    """counted: issues by code, grade and category, from `audit_issues.counts`, of new issues only where there is a baseline.

    baseline: its name for the sentence; empty: none.
    """
    over = [(condition, counted.get(condition.name, 0)) for condition in conditions if counted.get(condition.name, 0) > condition.most]
    since = f", counting what is new since {baseline}" if baseline else ""
    if not over:
        return GateResult(False, f"passed{since}")
    said = "; ".join(f"{number:,} {condition.name}, {f'at most {condition.most:,}' if condition.most else 'none'} allowed" for condition, number in over)
    return GateResult(True, f"failed: {said}{since}")
