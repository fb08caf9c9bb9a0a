"""A collection beside its earlier runs: grades now and at the end of each, and issues that a run did not have."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from itertools import chain

import numpy as np

from periplus.analyse.audit import issue_kinds
from periplus.analyse.grades import field_grades
from periplus.analyse.issues import Causes, IssueTable
from periplus.analyse.linkgraph import places
from periplus.api.facts import site_starts
from periplus.api.homes import home_of, open_reader
from periplus.errors import UsageError
from periplus.model.arrays import Ints
from periplus.model.audit import FieldGrade, GradedField, KindSum, Severity
from periplus.model.ports import CHECK
from periplus.model.results import TrendPoint
from periplus.model.visit import STATE_OF, Reason, State, urls_by_state
from periplus.store import checks, past_states
from periplus.store.crawl_reads import state_tallies
from periplus.store.notes import count_change
from periplus.store.reader import CollectionReader
from periplus.store.statements import Statements
from periplus.urls.folders import is_folder_host
from periplus.urls.hosts import host_key
from periplus.values import Place

READ_S = 60.0
SERVER_FIELDS = frozenset({GradedField.SECURITY, GradedField.PERFORMANCE})  # not measurable for local folders


def ungradable_fields(reader: CollectionReader) -> frozenset[GradedField]:
    """Fields that cannot be graded: server-dependent ones, if all starts are local folders."""
    starts = site_starts(reader)
    local = bool(starts) and all(is_folder_host(host_key(start.url)) for start in starts)
    return SERVER_FIELDS if local else frozenset()


def grades_now(place: Place, sums: Iterable[KindSum]) -> tuple[FieldGrade, ...]:
    """Grades of a collection. sums: of all its issues, with the user's severities. Raises NoCollection."""
    pages_with = {(kind_sum.kind.code, kind_sum.severity): kind_sum.pages for kind_sum in sums}
    with open_reader(place) as reader:
        tallies = state_tallies(reader.statements, None)
        pages = urls_by_state(tallies)[State.FETCHED]
        return field_grades(pages_with, pages, ungradable_fields(reader))


def trends(place: Place) -> tuple[TrendPoint, ...]:
    """State of the collection at the end of each run, oldest first. Raises NoCollection, StoreError."""
    with open_reader(place, READ_S) as reader:
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


def store_issues(place: Place, run_id: int, issues: IssueTable) -> None:
    """Stores the issues of a run for later comparison. place: a folder or a database address."""

    def store(statements: Statements) -> None:
        for kind in issues.kinds:
            keys = zip(issues.ids_of(kind.pages).tolist(), issues.ids_of(kind.related).tolist(), strict=True)
            checks.store_issues(statements, run_id, ((kind.kind.code, page, related) for page, related in keys))
        count_change(statements)

    home_of(place).change(store)


def baseline_run(place: Place, name: str) -> int:
    """The run named by `--baseline`: a number, or `last` for the latest finished check. Raises UsageError."""
    with open_reader(place) as reader:
        ended = [run.id for run in reader.runs() if run.kind == CHECK and run.state == "done"]
    if name == "last" and ended:
        return ended[-1]
    if name.isascii() and name.isdigit() and int(name) in ended:
        return int(name)
    choices = f"finished checks are the runs {', '.join(map(str, ended))}" if ended else "no check has finished yet"
    raise UsageError(f"no check {name!r} to compare with: {choices}")


def new_since(place: Place, issues: IssueTable, run_id: int) -> IssueTable:
    """Issues that the run did not have. A different wording or severity does not make an issue new."""
    with open_reader(place) as reader:
        return issues.of(
            kind.rows(~np.isin(pair_keys(issues, kind.pages, kind.related), before))
            for kind in issues.kinds
            for before in [stored_keys(issues, checks.issues_of(reader, run_id, kind.kind.code))]
        )


def seen_since(reader: CollectionReader, issues: IssueTable, causes: Causes) -> Causes:
    """Adds to each cause the start time of the first check that saw one of its issues."""
    kind, since = causes.issues, np.full(len(causes.issues), np.inf)
    keys = pair_keys(issues, kind.pages, kind.related)
    for run, started in checks.runs_with(reader, kind.kind.code):  # latest first
        since[np.isin(keys, stored_keys(issues, checks.issues_of(reader, run, kind.kind.code)))] = started
    first = np.minimum.reduceat(since, causes.starts[:-1]) if len(causes) else since
    return dataclasses.replace(causes, since=np.where(np.isinf(first), np.nan, first))


def pair_keys(issues: IssueTable, pages: Ints, related: Ints) -> Ints:
    """int64[pairs]: a key for each pair of URL indices. related -1: no URL. Key -1: a URL outside the collection."""
    keys: Ints = pages * (len(issues.url) + 1) + related + 1
    return np.where((pages < 0) | (related < -1), -1, keys)


def stored_keys(issues: IssueTable, rows: Iterable[tuple[int, int]]) -> Ints:
    """Keys, as from `pair_keys`, of the pairs of ids that `store_issues` stored."""
    pages, related = np.fromiter(chain.from_iterable(rows), np.int64).reshape(-1, 2).T
    other = places(issues.ids, related)
    return pair_keys(issues, places(issues.ids, pages), np.where(related == 0, -1, np.where(other < 0, -2, other)))
