"""State changes of a known URL that is found again, comparison of page versions, and choice of tasks, for every
database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from periplus.model.frontier import ASKED_AGAIN, PRIORITY_WITHOUT_DEPTH, READ, Candidate, Task
from periplus.model.visit import Cut, Purpose, Reason, Request
from periplus.model.web import Url, UrlId

FIELDS = (
    "media_type", "size", "charset", "language", "title", "description", "h1", "canonical", "robots", "cut", "etag",
    "last_modified_field",
    "text_chars", "body_digest", "text_digest", "body_id",
)  # fmt: skip
# a page counts as changed if one of these differs
COMPARED_FIELDS = frozenset(
    {"media_type", "language", "title", "description", "h1", "canonical", "robots", "text_digest"}
)
UNREAD = COMPARED_FIELDS | {"size", "etag", "last_modified_field"}  # if there is no text to compare
# pages with a complete body, which can be compared with others
MERGEABLE_REASONS = frozenset({Reason.OK, Reason.PARTIAL, Reason.NEEDS_SCRIPT, Reason.NOINDEX})
HAS_TEXT = "p.text_chars > 0 AND u.reason <> 'needs-script'"  # the bytes contain the page's text
# condition on a visit `v`: a later attempt may succeed, see `acquire.politeness.may_pass`
MAY_PASS = "(v.outcome = 'failed' OR v.status IN (408, 425, 429) OR v.status BETWEEN 500 AND 599)"
UNFOLLOWED_REASONS = frozenset({Reason.NOFOLLOW, Reason.RESOURCE})  # known only from links that are not followed
RAISABLE_REASONS = UNFOLLOWED_REASONS | {Reason.DEPTH}  # queued as soon as a better link is found
UNREQUESTED_REASONS = {
    Reason.NOT_ARCHIVED,
    Reason.SCOPE,
    Reason.TRAP,
    Reason.HOST_DOWN,
    Reason.BOT_WALL,
    Reason.ROBOTS,
    Reason.ROBOTS_UNREACHABLE,
    Reason.TLS,
    Reason.PRIVATE,
}
# a new run may queue these; DELETED only if named as a start
REOPENABLE_REASONS = RAISABLE_REASONS | UNREQUESTED_REASONS | {Reason.DELETED, Reason.ALIVE}
RECHECK = "recheck"  # purpose of a refresh, instead of `page`: the URL keeps its reason until the response
# a site whose hosts all fail or wait longer than this (Crawl-delay) does not block other sites
RIVAL_WAIT_S = 2.0
UNKNOWN_DEPTH = "found before its site belonged to the survey: its depth is not known yet"  # rules of URLs
SITE_REMOVED_RULE = "its site was removed from the survey"
BARRIER_POLL_S = 0.2  # poll interval of a host that waits until its site's current depth is finished on other hosts
# the same bytes would be truncated again
LASTING_CUTS = frozenset({Cut.NONE, Cut.BODY_LIMIT, Cut.INFLATED_LIMIT, Cut.RATIO_LIMIT, Cut.NOT_WANTED})


def is_another(before: Sequence[object], after: Sequence[object]) -> bool:
    """Whether a page has changed. before, after: the values of FIELDS, in order."""
    compared = COMPARED_FIELDS if after[FIELDS.index("text_chars")] else UNREAD
    return any(name in compared and was != now for name, was, now in zip(FIELDS, before, after, strict=True))


class UrlState(NamedTuple):
    """State of a URL. depth: clicks from the start; None if no link leads there."""

    reason: str
    depth: int | None
    in_sitemap: bool


def updated_state(before: UrlState, candidate: Candidate, *, reopen: bool) -> tuple[UrlState, bool]:
    """Updates a known URL that is found again. Returns its state, and whether it is to be queued."""
    reason, depth, in_sitemap = before
    in_sitemap = in_sitemap or candidate.in_sitemap
    unfollowed = reason in UNFOLLOWED_REASONS
    if candidate.reason in UNFOLLOWED_REASONS and not unfollowed:
        return UrlState(reason, depth, in_sitemap), False  # depth counts only followed links
    nearer = candidate.depth is not None and (depth is None or candidate.depth < depth)
    now_depth = candidate.depth if nearer else depth
    if candidate.reason is not Reason.WAITING:
        return UrlState(reason, now_depth, in_sitemap), False
    if reason in (REOPENABLE_REASONS if reopen else RAISABLE_REASONS) or (reason == Reason.TRAP and candidate.vouched):
        return UrlState(Reason.WAITING.value, candidate.depth if unfollowed else now_depth, in_sitemap), True
    return UrlState(reason, now_depth, in_sitemap), nearer and reason == Reason.WAITING and depth is None


class TaskRow(NamedTuple):
    """A queue entry joined with its URL. clicks, reason: of the URL; None for robots.txt and sitemaps."""

    priority: int
    seq: int
    url_id: int
    text: str
    purpose: str
    about: str
    hops: int
    attempt: int
    not_before: float
    clicks: int | None
    reason: str | None
    doubt: int


class Choice(NamedTuple):
    """Tasks chosen from a queue.

    stale: (priority, seq) of entries whose URL is completed; soonest: when the next postponed entry is due.
    """

    tasks: list[Task]
    stale: list[tuple[int, int]]
    soonest: float | None

    def answer(self, in_hand: bool, now: float) -> tuple[Sequence[Task], float | None]:
        """(tasks, seconds until there may be one): see `model.ports.CrawlStore.take`."""
        if self.tasks:
            return self.tasks, None
        if self.soonest is not None:
            return (), self.soonest - now
        return (), 0.0 if self.stale and not in_hand else None


class TaskQuery(NamedTuple):
    """A worker's request for tasks of a host.

    in_hand: (priority, seq) of the tasks in progress; twins: URLs in progress through another entry.
    """

    host_id: int
    most: int
    in_hand: frozenset[tuple[int, int]]
    twins: set[int]
    now: float


StoredVersion = tuple[bytes, str, str]  # (digest, ETag, Last-Modified) of the stored body


def choose_tasks(query: TaskQuery, entries: Iterable[TaskRow], held: Callable[[int, str], StoredVersion]) -> Choice:
    """Chooses up to `most` entries of one priority, in order. held: called for entries of a refresh."""
    choice, twins = Choice([], [], None), set(query.twins)
    soonest: float | None = None
    for entry in entries:
        if (entry.priority, entry.seq) in query.in_hand or entry.url_id in twins:
            continue
        recheck = entry.purpose == RECHECK
        if (entry.purpose == "page" and entry.reason != Reason.WAITING) or (
            recheck and entry.reason not in ASKED_AGAIN
        ):
            choice.stale.append((entry.priority, entry.seq))
        elif entry.not_before > query.now:
            soonest = min(soonest or entry.not_before, entry.not_before)
        elif len(choice.tasks) < query.most:
            digest, etag, modified = held(entry.url_id, entry.reason or "") if recheck else (b"", "", "")
            purpose = Purpose.PAGE if recheck else Purpose(entry.purpose)
            request = Request(
                Url(entry.text), purpose, entry.clicks, entry.hops, entry.attempt, entry.about, etag, modified
            )
            choice.tasks.append(
                Task(
                    query.host_id, entry.priority, entry.seq, UrlId(entry.url_id), request, recheck, digest, entry.doubt
                )
            )
            if entry.priority >= PRIORITY_WITHOUT_DEPTH and entry.url_id:
                twins.add(entry.url_id)
    return choice._replace(soonest=soonest)


def held_body(reason: str, row: tuple[bytes, str, str, str] | None) -> StoredVersion:
    """Validators for a conditional request. row: (digest, ETag, Last-Modified, cut) of the page.

    Empty if a 304 would be useless: the page is gone, or was truncated by accident.
    """
    if row is None or reason not in READ or row[3] not in LASTING_CUTS:
        return b"", "", ""
    return b"" if row[3] == Cut.NOT_WANTED else row[0], row[1], row[2]
