"""Grades of a collection, now and at the end of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from periplus.analyse.audit import issue_kinds
from periplus.analyse.grades import field_grades
from periplus.api.facts import site_starts
from periplus.api.homes import open_reader
from periplus.model.audit import FieldGrade, GradedField, KindSum, Severity
from periplus.model.ports import CHECK
from periplus.model.results import TrendPoint
from periplus.model.visit import STATE_OF, Reason, State, urls_by_state
from periplus.store import checks, past_states
from periplus.store.crawl_reads import state_tallies
from periplus.store.reader import CollectionReader
from periplus.urls.folders import is_folder_host
from periplus.urls.hosts import host_key

READ_S = 60.0
SERVER_FIELDS = frozenset({GradedField.SECURITY, GradedField.PERFORMANCE})  # not measurable for local folders


def ungradable_fields(reader: CollectionReader) -> frozenset[GradedField]:
    """Fields that cannot be graded: server-dependent ones, if all starts are local folders."""
    starts = site_starts(reader)
    local = bool(starts) and all(is_folder_host(host_key(start.url)) for start in starts)
    return SERVER_FIELDS if local else frozenset()


def grades_now(folder: Path, sums: Iterable[KindSum]) -> tuple[FieldGrade, ...]:
    """Grades of a collection. sums: of all its issues, with the user's severities. Raises NoCollection."""
    pages_with = {(kind_sum.kind.code, kind_sum.severity): kind_sum.pages for kind_sum in sums}
    with open_reader(folder) as reader:
        tallies = state_tallies(reader.statements, None)
        pages = urls_by_state(tallies)[State.FETCHED]
        return field_grades(pages_with, pages, ungradable_fields(reader))


def trends(folder: Path) -> tuple[TrendPoint, ...]:
    """State of the collection at the end of each run, oldest first. Raises NoCollection, StoreError."""
    with open_reader(folder, READ_S) as reader:
        return trend_points(reader)


def trend_points(reader: CollectionReader) -> tuple[TrendPoint, ...]:
    """Like `trends`; grades use the issues stored by each check, with default severities."""
    ends, by_run = past_states.reasons_at_ends(reader), checks.pages_by_code(reader)
    blank, kinds, points = ungradable_fields(reader), issue_kinds(), []
    errors = [code for code, kind in kinds.items() if kind.severity is Severity.ERROR]
    faulty, answers = checks.pages_with(reader, errors), past_states.answers_by_run(reader)
    for run in reader.runs():
        states = Counter[State]()
        for reason, urls in ends[run.id].items():
            states[STATE_OF[Reason(reason)]] += urls
        is_check = run.kind == CHECK and run.state == "done"
        pages = states[State.FETCHED]
        counts = {(code, kinds[code].severity): n for code, n in by_run.get(run.id, {}).items() if code in kinds}
        depth, response_s = answers.get(run.id, (None, None))
        points.append(
            TrendPoint(
                run.id,
                run.kind,
                run.started,
                pages,
                states[State.FAILED],
                states.total(),
                run.fetched,
                run.wire_bytes,
                depth,
                response_s,
                faulty.get(run.id, 0) if is_check else None,
                field_grades(counts, pages, blank) if is_check else (),
            )
        )
    return tuple(points)
