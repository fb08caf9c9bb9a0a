"""Formats an audit's findings with the user's severities, groups them by cause, and decides whether the site passes."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.audit import issue_kinds
from periplus.analyse.audit_input import POSITIONS, AuditInput, IssueColumns
from periplus.analyse.linkgraph import sort_distinct
from periplus.errors import UsageError
from periplus.model.arrays import Ints as Places
from periplus.model.arrays import Mask
from periplus.model.audit import (
    VERDICTS,
    Fault,
    FaultNote,
    Issue,
    IssueKind,
    KindSum,
    Severity,
    SharedCause,
    Verdict,
)
from periplus.model.graph import REASONS
from periplus.model.web import Url
from periplus.urls.hosts import root_of
from periplus.urls.user_patterns import UserPattern, user_pattern
from periplus.values import frozen

_BLOCK = 10_000  # issues formatted per batch: bounds memory
_CAUSES = 1_000  # causes whose first issues are formatted per batch
_OFF = "off"
_NO_LINK = 255
COLUMNS = ("pages", "related", "ends", "positions", "numbers", "words", "anchors", "lines", "columns")
_POSITION_NAMES = [*(position.value for position in POSITIONS), *[""] * (_NO_LINK + 1 - len(POSITIONS))]


@frozen
class AuditRules:
    """The user's changes to the audit."""

    severities: Mapping[str, Severity] = field(default_factory=dict)
    off: frozenset[str] = frozenset()  # codes that are not reported
    # (code, with `*` and `?` as wildcards; pattern for the page or related URL) of issues to leave out
    ignored: tuple[tuple[str, UserPattern], ...] = ()

    def severity(self, code: str) -> Severity:
        return self.severities.get(code, issue_kinds()[code].severity)


def audit_rules(severities: Iterable[str] = (), ignored: Iterable[str] = ()) -> AuditRules:
    """Parses rules. severities: `CODE=error|warning|notice|off`; ignored: `CODE` or `CODE REGEX`. Raises UsageError."""
    chosen: dict[str, Severity] = {}
    off = set()
    for text in severities:
        code, _, severity = (part.strip() for part in text.partition("="))
        if code not in issue_kinds():
            raise UsageError(f"there is no issue {code!r}; the codes are: {', '.join(issue_kinds())}")
        if severity == _OFF:
            off.add(code)
        elif severity in list(Severity):
            chosen[code] = Severity(severity)
        else:
            raise UsageError(f"{text!r}: a severity is {', '.join(Severity)} or {_OFF}")
    return AuditRules(chosen, frozenset(off), tuple(map(_parse_ignore, ignored)))


def _parse_ignore(text: str) -> tuple[str, UserPattern]:
    code, _, pattern = text.strip().partition(" ")
    if not any(fnmatchcase(kind, code) for kind in issue_kinds()):
        raise UsageError(f"no issue has the code {code!r}; the codes are: {', '.join(issue_kinds())}")
    return code, user_pattern(pattern.strip(), "ignore")


@frozen
class Lookups:
    """Data too large for columns, looked up once per kind for the issues concerned."""

    # Anchor texts of links, given places of pages and targets; None: not available
    anchors: Callable[[Places, Places], Iterable[str]] | None = None
    whys: Callable[[Places], Iterable[str]] | None = None  # reasons of verdicts, given places: "it answers 404"
    # by place: the URL that links should use, for targets known only from checks
    better: Mapping[int, Url] = field(default_factory=dict)


@frozen
class KindIssues:
    """k issues of one kind, of one or several sites, as columns. Pages are places among all URLs."""

    kind: IssueKind
    severity: Severity
    limit: float  # threshold that the numbers exceed
    pages: Places
    related: Places  # -1: none
    ends: Places  # end of the related URL's redirects; -1: given by the words, or none
    positions: NDArray[np.uint8]  # indices in POSITIONS; _NO_LINK: not a link
    numbers: NDArray[np.float64]
    words: NDArray[np.object_]  # texts
    anchors: NDArray[np.object_]  # texts; empty: not a link, or without text
    lines: NDArray[np.int32]  # in the source, from 1; 0: unknown
    columns: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.pages)

    def rows(self, rows: Places | Mask) -> KindIssues:
        """The given issues, in the given order."""
        return replace(self, **{name: getattr(self, name)[rows] for name in COLUMNS})

    @property
    def are_links(self) -> bool:
        return bool(len(self)) and int(self.positions[0]) != _NO_LINK


@frozen
class IssueTable:
    """All issues of a collection by kind, as columns of about 70 bytes per issue; iterating formats them."""

    kinds: tuple[KindIssues, ...]
    url: Sequence[Url]  # by place
    ids: Places

    def __len__(self) -> int:
        return sum(map(len, self.kinds))

    def __iter__(self) -> Iterator[Issue]:
        for kind in self.kinds:
            yield from format_issues(kind, self.url)

    def of(self, kinds: Iterable[KindIssues]) -> IssueTable:
        """A copy with other issues; empty kinds are left out."""
        return replace(self, kinds=tuple(kind for kind in kinds if len(kind)))

    def sort(self) -> IssueTable:
        """A copy with each kind once, most severe first."""
        return self.of(sort_kinds(self.kinds))

    def causes(self) -> Iterator[Causes]:
        """The causes of each kind, in the order of kinds."""
        return (causes_of(kind, self.url) for kind in self.kinds)

    def faults(self, most: int) -> Iterator[Fault]:
        """Issues grouped by cause, each with its first issues, at most `most`.

        In the order of kinds, causes on most pages first.
        """
        return chain.from_iterable(faults(causes, most, self.words) for causes in self.causes())

    def words(self, kind: KindIssues) -> Iterator[Issue]:
        return format_issues(kind, self.url)

    def sums(self) -> tuple[KindSum, ...]:
        """Sums per kind, in order."""
        return tuple(kind_sum(kind, self.url) for kind in self.kinds)

    def pages(self) -> int:
        """Number of distinct pages with an issue."""
        return len(sort_distinct(np.concatenate([np.zeros(0, np.int64), *(kind.pages for kind in self.kinds)])))

    def ids_of(self, places: Places) -> Places:
        """int64[k]: the ids of URLs; 0 if unknown."""
        return np.where(places >= 0, self.ids[places], 0) if len(self.ids) else places


def kind_issues(
    findings: Mapping[str, IssueColumns],
    site: AuditInput,
    rules: AuditRules | None = None,
    lookups: Lookups | None = None,
) -> Iterator[KindIssues]:
    """The findings of `audit` in order, with all data needed to format them."""
    rules, lookups = rules or AuditRules(), lookups or Lookups()
    for code, columns in findings.items():
        if code in rules.off:
            continue
        kind = issue_kinds()[code]
        issues = _with_words(kind, rules.severity(code), columns, site, lookups)
        ignored = [pattern for name, pattern in rules.ignored if fnmatchcase(code, name)]
        if ignored:
            issues = issues.rows(~(_matches(ignored, issues.pages, site) | _matches(ignored, issues.related, site)))
        yield issues


def _matches(patterns: Sequence[UserPattern], places: Places, site: AuditInput) -> Mask:
    """bool[k]: whether a pattern matches the URL; for -1 the text is empty."""
    distinct, row = np.unique(places, return_inverse=True)
    texts = (site.urls.url[place] if place >= 0 else "" for place in distinct.tolist())
    return np.fromiter((any(pattern.is_in(text) for pattern in patterns) for text in texts), np.bool_, len(distinct))[
        row
    ]


def _with_words(
    kind: IssueKind, severity: Severity, columns: IssueColumns, site: AuditInput, lookups: Lookups
) -> KindIssues:
    count, links = len(columns), columns.links
    related = columns.related if columns.related is not None else np.full(count, -1)
    ends, words = related, columns.words
    if words is None and ("{words" in kind.detail or kind.caused_by in (SharedCause.WORDS, SharedCause.FRAGMENT)):
        words = list(_whys(related, site, lookups))
    column = texts(words, count)
    if kind.code == "link-to-redirect":
        ends = site.ends[related]
        for row in np.flatnonzero(np.isin(related, list(lookups.better))).tolist():
            ends[row], column[row] = -1, lookups.better[int(related[row])]
    return KindIssues(
        kind,
        severity,
        columns.limit,
        columns.subjects,
        related,
        ends,
        np.full(count, _NO_LINK, np.uint8) if links is None else site.links.position[links],
        columns.numbers if columns.numbers is not None else np.zeros(count),
        column,
        texts(lookups.anchors(columns.subjects, related) if links is not None and lookups.anchors else None, count),
        np.zeros(count, np.int32),
        np.zeros(count, np.int32),
    )


def texts(texts: Iterable[str] | None, count: int) -> NDArray[np.object_]:
    """Texts as a column, equal texts as one object; None: empty texts."""
    column = np.full(count, "", np.object_)
    if texts is not None:
        same: dict[str, str] = {}
        column[:] = [same.setdefault(text, text) for text in texts]
    return column


def _whys(related: Places, site: AuditInput, lookups: Lookups) -> Iterable[str]:
    """Reasons for the verdicts of related URLs: from the judgement, else the verdict's name, else the
    crawl's reason.
    """
    if lookups.whys:
        return lookups.whys(related)
    unchecked = VERDICTS.index(Verdict.UNCHECKED)
    verdicts, reasons = site.urls.verdict[related].tolist(), site.urls.reason[related].tolist()
    return [
        VERDICTS[verdict].value if verdict != unchecked else REASONS[reason].value
        for verdict, reason in zip(verdicts, reasons, strict=True)
    ]


def blocks(kind: KindIssues) -> Iterator[KindIssues]:
    """The issues in batches."""
    return (kind.rows(np.arange(start, min(start + _BLOCK, len(kind)))) for start in range(0, len(kind), _BLOCK))


class WordColumns(NamedTuple):
    """The texts of issues of one kind, in lists of equal length; '' if there is none."""

    url: list[Url]
    detail: list[str]
    related: list[str]
    anchor: list[str]
    position: list[str]
    cause: list[str]
    line: list[int]
    column: list[int]


def words_of(kind: KindIssues, url: Sequence[Url]) -> WordColumns:
    """url: by place."""
    pages, related = [url[place] for place in kind.pages.tolist()], _urls(kind.related, url)
    return WordColumns(
        pages,
        _details(kind, url),
        related,
        kind.anchors.tolist(),
        [_POSITION_NAMES[place] for place in kind.positions.tolist()],
        _cause_texts(kind, pages, related),
        kind.lines.tolist(),
        kind.columns.tolist(),
    )


def format_issues(kind: KindIssues, url: Sequence[Url]) -> Iterator[Issue]:
    """Formats the issues of one kind one by one."""
    for block in blocks(kind):
        for row in zip(*words_of(block, url), strict=True):
            yield Issue(kind.kind.code, kind.severity, *row)


def _urls(places: Places, url: Sequence[Url]) -> list[str]:
    if not (places >= 0).any():
        return [""] * len(places)
    return [url[place] if place >= 0 else "" for place in places.tolist()]


def _details(kind: KindIssues, url: Sequence[Url]) -> list[str]:
    """The detail sentence of each issue."""
    template = kind.kind.detail
    if template == "{words}":
        return list(kind.words.tolist())
    if "{" not in template:
        return [template] * len(kind)
    sentences: dict[tuple[float, int, str], str] = {}
    details = []
    for row in zip(kind.numbers.tolist(), kind.ends.tolist(), kind.words.tolist(), strict=True):
        if (text := sentences.get(row)) is None:
            number, end, words = row
            also = url[end] if end >= 0 else words
            text = sentences[row] = template.format(number=number, limit=kind.limit, also=also, words=words)
        details.append(text)
    return details


def _cause_texts(kind: KindIssues, pages: Sequence[Url], related: Sequence[str]) -> list[str]:
    """The cause of each issue, the thing to fix once: a URL or words."""
    match kind.kind.caused_by:
        case SharedCause.PAGE:
            return list(pages)
        case SharedCause.TARGET:
            return list(related)
        case SharedCause.FRAGMENT:
            return [f"{target}#{words}" for target, words in zip(related, kind.words.tolist(), strict=True)]
        case SharedCause.WORDS | SharedCause.FOLDER:
            return [words or page for words, page in zip(kind.words.tolist(), pages, strict=True)]
        case SharedCause.HOST:
            return list(map(root_of, pages))
        case SharedCause.GROUP:
            # For the first of a group the related page is the second, for the rest it is the first
            return list(map(min, pages, related))


def _cause_numbers(kind: KindIssues, url: Sequence[Url]) -> tuple[Places, bool]:
    """(int64[k]: equal numbers for issues with the same cause; whether these numbers are in the order of the texts)."""
    pages, related = kind.pages, np.where(kind.related >= 0, kind.related, kind.pages)
    match kind.kind.caused_by:
        case SharedCause.PAGE:
            return pages, True
        case SharedCause.TARGET:
            return related, True
        case SharedCause.GROUP:
            return np.minimum(pages, related), True
        case SharedCause.FRAGMENT:
            return _text_numbers(kind.words) * len(url) + related, False
        case SharedCause.WORDS | SharedCause.FOLDER:
            numbers = _text_numbers(kind.words)
            return np.where(kind.words == "", pages + len(kind), numbers), False
        case SharedCause.HOST:
            return _host_numbers(pages, url), True


@frozen
class Causes:
    """The c causes of the issues of one kind, causes on most pages first."""

    issues: KindIssues  # grouped by cause, in the order of the causes
    starts: Places  # c + 1: the issues of cause i are starts[i] to starts[i + 1]
    pages: Places  # c: distinct pages with such an issue
    alike: Mask  # c: whether all of its issues have the same text
    since: NDArray[np.float64]  # c: start of the first check that saw it, seconds since the epoch; NaN: never seen

    def __len__(self) -> int:
        return len(self.pages)

    def within(self, chosen: Mask, url: Sequence[Url]) -> Causes:
        """The causes of the chosen issues (bool[k]), in the same order."""
        if chosen.all():
            return self
        totals = np.diff(np.concatenate([[0], np.cumsum(chosen)])[self.starts])
        left = totals > 0
        issues, starts = self.issues.rows(chosen), _starts(totals[left])
        pages = _pages(np.repeat(np.arange(len(starts) - 1), totals[left]), issues, url)
        return Causes(issues, starts, pages, _alike(issues, starts, url), self.since[left])

    def texts(self, url: Sequence[Url]) -> list[str]:
        """The text of each cause."""
        return words_of(self.issues.rows(self.starts[:-1]), url).cause

    def rows(self, first: int, last: int, most: int) -> Places:
        """Indices of the issues of causes first to last, at most `most` per cause."""
        starts = self.starts[first:last]
        taken = np.minimum(self.starts[first + 1 : last + 1] - starts, most)
        ends = np.cumsum(taken)
        places: Places = np.arange(int(taken.sum())) + np.repeat(starts - (ends - taken), taken)
        return places


def causes_of(kind: KindIssues, url: Sequence[Url]) -> Causes:
    """Groups issues by cause. O(k log k)."""
    numbers, are_ordered = _cause_numbers(kind, url)
    distinct, first, cause, totals = np.unique(numbers, return_index=True, return_inverse=True, return_counts=True)
    pages = _pages(cause, kind, url)
    text_order = distinct
    if not are_ordered:
        texts = words_of(kind.rows(first), url).cause
        text_order = np.argsort(np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64))
    order = np.lexsort((text_order, -pages))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    issues = kind.rows(np.argsort(rank[cause], kind="stable"))
    starts = _starts(totals[order])
    return Causes(issues, starts, pages[order], _alike(issues, starts, url), np.full(len(order), np.nan))


def _starts(totals: Places) -> Places:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(totals)])


def _pages(cause: Places, kind: KindIssues, url: Sequence[Url]) -> Places:
    """int64[c]: distinct pages of each cause. cause: int64[k], from 0."""
    return np.bincount(sort_distinct(cause * (len(url) + 1) + kind.pages) // (len(url) + 1))


def _alike(kind: KindIssues, starts: Places, url: Sequence[Url]) -> Mask:
    if len(starts) == len(kind) + 1 or "{" not in kind.kind.detail:
        return np.ones(len(starts) - 1, np.bool_)
    numbers = _text_numbers(texts(chain.from_iterable(_details(block, url) for block in blocks(kind)), len(kind)))
    least, most = np.minimum.reduceat(numbers, starts[:-1]), np.maximum.reduceat(numbers, starts[:-1])
    return np.asarray(least == most)


def faults(causes: Causes, most: int, words: Callable[[KindIssues], Iterator[Issue]]) -> Iterator[Fault]:
    """The causes in order, each with its first issues, at most `most`. words: as `format_issues`."""
    kind = causes.issues
    for start in range(0, len(causes), _CAUSES):
        end = min(start + _CAUSES, len(causes))
        issues = words(kind.rows(causes.rows(start, end, most)))
        columns = (np.diff(causes.starts[start : end + 1]), causes.pages[start:end], causes.alike[start:end])
        for total, pages, is_alike in zip(*(column.tolist() for column in columns), strict=True):
            examples = tuple(islice(issues, min(total, most)))
            detail = examples[0].detail if is_alike else ""
            yield Fault(kind.kind.code, kind.severity, examples[0].cause, pages, total, examples, detail)


def without(
    findings: Mapping[str, IssueColumns], site: AuditInput, notes: Iterable[FaultNote]
) -> dict[str, IssueColumns]:
    """The findings without those of causes that were accepted or ignored."""
    closed: dict[str, set[str]] = {}
    for note in notes:
        if note.decision:
            closed.setdefault(note.code, set()).add(note.cause)
    left = {
        code: _without(issue_kinds()[code], columns, site, closed[code]) if code in closed else columns
        for code, columns in findings.items()
    }
    return {code: columns for code, columns in left.items() if len(columns)}


def _without(kind: IssueKind, columns: IssueColumns, site: AuditInput, closed: set[str]) -> IssueColumns:
    issues = _with_words(kind, kind.severity, columns, site, Lookups())
    texts = (text for block in blocks(issues) for text in words_of(block, site.urls.url).cause)
    return columns.rows(np.flatnonzero(np.fromiter((text not in closed for text in texts), np.bool_, len(columns))))


def _text_numbers(column: NDArray[np.object_]) -> Places:
    """Equal numbers for equal texts, below k. Most equal texts are the same object, so few are compared."""
    _, first, row = np.unique(
        np.fromiter(map(id, column.tolist()), np.int64, len(column)), return_index=True, return_inverse=True
    )
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(text, len(numbers)) for text in column[first].tolist()], np.int64)[row]


def _host_numbers(pages: Places, url: Sequence[Url]) -> Places:
    """Equal numbers for pages of one server, in the order of server names.

    URLs are sorted, so pages of one server are adjacent.
    """
    ends, rest = list[int](), sort_distinct(pages)
    while len(rest):
        ends.append(bisect_left(url, root_of(url[rest[0]])[:-1] + chr(ord("/") + 1)))
        rest = rest[np.searchsorted(rest, ends[-1]) :]
    return np.searchsorted(np.array(ends, np.int64), pages, side="right")


def kind_sum(kind: KindIssues, url: Sequence[Url]) -> KindSum:
    causes, pages = (len(sort_distinct(column)) for column in (_cause_numbers(kind, url)[0], kind.pages))
    return KindSum(kind.kind, kind.severity, causes, pages)


def first_to_repair(faults: Iterable[Fault], most: int) -> tuple[Fault, ...]:
    """The most severe causes, those on most pages first; at most one per kind while other kinds are equally severe.

    No notices if there is anything more severe.
    """
    severities = list(Severity)
    order = sorted(faults, key=lambda fault: (severities.index(fault.severity), -fault.pages))
    grave = [fault for fault in order if fault.severity is not Severity.NOTICE] or order
    rank: Counter[tuple[str, Severity]] = Counter()
    ranked = []
    for fault in grave:
        rank[fault.code, fault.severity] += 1
        ranked.append((severities.index(fault.severity), rank[fault.code, fault.severity] > 1, fault))
    return tuple(fault for _, _, fault in sorted(ranked, key=lambda row: row[:2])[:most])


def sort_kinds(kinds: Iterable[KindIssues]) -> list[KindIssues]:
    """Most severe first, then in the order of kinds; issues with the same target together. kinds: as from
    `by_severity`.
    """
    # Places are sorted by URL text
    return [
        group.rows(np.lexsort((group.related, group.pages, group.related if group.are_links else group.pages)))
        for group in by_severity(kinds)
    ]


def by_severity(kinds: Iterable[KindIssues]) -> list[KindIssues]:
    """Most severe first, then in the order of kinds.

    kinds: of the sites of one collection; those with the same code are merged, in the given order.
    """
    groups: dict[str, list[KindIssues]] = {}
    for kind in kinds:
        groups.setdefault(kind.kind.code, []).append(kind)
    severities, codes = list(Severity), list(issue_kinds())
    return sorted(
        map(_concatenate, groups.values()),
        key=lambda group: (severities.index(group.severity), codes.index(group.kind.code)),
    )


def _concatenate(kinds: Sequence[KindIssues]) -> KindIssues:
    if len(kinds) == 1:
        return kinds[0]
    columns: dict[str, Any] = {name: np.concatenate([getattr(group, name) for group in kinds]) for name in COLUMNS}
    return replace(kinds[0], **columns)
