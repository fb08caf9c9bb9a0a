"""What did the checks of a collection find, and what of it is new since an earlier one?"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from periplus.analyse.audit_issues import AuditRules, audit_rules
from periplus.analyse.audit_table import KINDS_OF_ISSUES
from periplus.api.facts import chosen_start, starts_of
from periplus.api.site_audit import CHECK, audited
from periplus.errors import UsageError
from periplus.model.audit import Issue
from periplus.model.web import Url
from periplus.present.issue_list import ordered
from periplus.settings import Settings
from periplus.store.sqlite import checks, graph_rows, reading, runs, schema
from periplus.urls.canonical import url_id


@dataclass(frozen=True, slots=True)
class ResultOrder:
    """Which issues are wanted. site: its key; empty: of all sites that were crawled."""

    site: str = ""
    fragments: bool = True
    near: bool | None = None  # pages of nearly one text; None: where the site is not too large for it


def found_issues(folder: Path, settings: Settings, order: ResultOrder, note: Callable[[str], object] = lambda sentence: None) -> list[Issue]:
    """All issues by what is stored, gravest first, under the user's grades and without what the user ignores. Raises UsageError.

    note: is told what was not looked at, a sentence each.
    """
    rules = _rules(settings, order)
    with contextlib.closing(reading.connect(folder)) as connection, reading.snapshot(connection):
        starts = starts_of(runs.run_records(connection), connection, graph_rows.redirects(connection))
        chosen = [chosen_start(starts, order.site)] if order.site or not starts else starts
        found: list[Issue] = []
        for start in chosen:
            audit = audited(connection, start, near=order.near)
            found += audit.issues(connection, rules)
            for sentence in audit.notes:
                note(sentence)
    return ordered(found, KINDS_OF_ISSUES)


def _rules(settings: Settings, order: ResultOrder) -> AuditRules:
    rules = audit_rules(settings.auditing.grade, settings.auditing.ignore)
    return rules if order.fragments else dataclasses.replace(rules, off=rules.off | {"broken-fragment", "missing-text"})


def check_rules(settings: Settings) -> None:
    """Raises UsageError for grades and ignored issues that cannot be: better before a check than after it."""
    audit_rules(settings.auditing.grade, settings.auditing.ignore)


def keep_issues(folder: Path, run_id: int, issues: Iterable[Issue]) -> None:
    """Remembers what a run found, so that a later one can tell what is new."""
    keys = [_key(issue) for issue in issues]
    with schema.writing(folder) as connection:
        checks.store_issues(connection, run_id, keys)


def _key(issue: Issue) -> tuple[str, int, int]:
    return issue.code, url_id(Url(issue.url)), url_id(Url(issue.related)) if issue.related else 0


def baseline_run(folder: Path, named: str) -> int:
    """The run that `--baseline` names: its number, or `last` for the latest check that ended. Raises UsageError."""
    with contextlib.closing(reading.connect(folder)) as connection:
        ended = [record.id for record in runs.run_records(connection) if record.kind == CHECK and record.state == "done"]
    if named == "last" and ended:
        return ended[-1]
    if named.isascii() and named.isdigit() and int(named) in ended:
        return int(named)
    known = f"the checks that ended are the runs {', '.join(map(str, ended))}" if ended else "no check has ended yet"
    raise UsageError(f"there is no check {named!r} to compare with: {known}")


def new_since(folder: Path, issues: Iterable[Issue], run_id: int) -> list[Issue]:
    """Those that the run's own lack. Wording and grade make no issue new."""
    with contextlib.closing(reading.connect(folder)) as connection:
        before = checks.issues_of(connection, run_id)
    return [issue for issue in issues if _key(issue) not in before]
