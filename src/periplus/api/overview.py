"""Summary of a collection: its most severe faults, the changes of the last run, and its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from periplus.analyse.audit import issue_kinds
from periplus.analyse.issues import first_to_repair
from periplus.api.comparison import compare_runs
from periplus.api.homes import open_reader
from periplus.errors import UsageError
from periplus.model.audit import Fault, FieldGrade, Issue, KindSum, Severity
from periplus.model.comparison import Comparison
from periplus.model.results import TrendPoint
from periplus.values import Place, frozen

BROKEN_LINK = "broken-link"
REPAIR = 3  # causes shown
COMPARED_URLS = 50_000  # above this, runs are compared only on request: it reads all links of both


@frozen
class Repair:
    """A cause to fix: what is wrong, on how many pages, and how to fix it."""

    severity: Severity
    code: str
    title: str
    cause: str
    detail: str
    pages: int
    remedy: str


@frozen
class FaultSums:
    """Summary of an audit. causes: number by severity; kinds: most severe first; repair: what to fix first."""

    causes: dict[Severity, int]
    kinds: tuple[KindSum, ...]
    repair: tuple[Repair, ...]


@frozen
class RunChanges:
    """Changes of the last run against the run before. added, removed, changed: pages; broken, repaired: linked URLs."""

    before: str
    after: str
    added: int
    removed: int
    changed: int
    broken: int
    repaired: int


@frozen
class Overview:
    """history: oldest run first. changes: None with only one run, or for a large collection. with_errors: number of
    pages with an error by host (`e.org/`) and by first folder (`e.org/docs/`).
    """

    faults: FaultSums
    history: tuple[TrendPoint, ...]
    changes: RunChanges | None
    grades: tuple[FieldGrade, ...] = ()  # by field
    with_errors: Mapping[str, int] = field(default_factory=dict)


def fault_sums(sums: Sequence[KindSum], faults: Iterable[Fault]) -> FaultSums:
    """faults: at least the first REPAIR of each kind, in the order of `sums`."""
    counts, kinds = Counter[Severity](), issue_kinds()
    for kind_sum in sums:
        counts[kind_sum.severity] += kind_sum.causes
    repair = tuple(
        Repair(
            fault.severity,
            fault.code,
            kinds[fault.code].title,
            fault.cause,
            fault.detail,
            fault.pages,
            kinds[fault.code].remedy,
        )
        for fault in first_to_repair(faults, REPAIR)
    )
    return FaultSums({severity: counts[severity] for severity in Severity}, tuple(sums), repair)


def count_by_folder(urls: Iterable[str]) -> Counter[str]:
    """Number of URLs by host (`e.org/`) and by first folder (`e.org/docs/`)."""
    parts = (url.partition("?")[0].split("/")[2:-1] for url in urls)
    return Counter("/".join(path[:end]) + "/" for path in parts for end in range(1, min(len(path), 2) + 1))


def last_changes(place: Place) -> RunChanges | None:
    """Changes of the last run; None with fewer than two runs or a large collection."""
    with open_reader(place) as reader:
        if reader.count_urls() > COMPARED_URLS or len(reader.runs()) < 2:
            return None
    try:
        return changes_of(compare_runs(place))
    except UsageError:  # several sites, or no map: the Compare screen explains which
        return None


def changes_of(made: Comparison) -> RunChanges:
    """Counts of a comparison."""
    return RunChanges(
        made.before.name,
        made.after.name,
        len(made.added),
        len(made.removed),
        len(made.changed),
        _broken_urls(made.issues.new),
        _broken_urls(made.issues.gone),
    )


def _broken_urls(issues: Iterable[Issue]) -> int:
    return len({issue.related for issue in issues if issue.code == BROKEN_LINK})
