"""The changes of a transaction, computed in memory from loaded rows, for every database.

A store loads the rows that a batch concerns into a `Ledger`, applies the batch, and writes the changes in bulk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from periplus.model.frontier import (
    FIRST_INTERVAL_S,
    PRIORITY_WITHOUT_DEPTH,
    READ,
    Batch,
    Candidate,
    Completion,
    Look,
    RefreshFinding,
    SideRequest,
    StoredRobots,
    finding_of,
    next_interval_s,
)
from periplus.model.page import LinkKind
from periplus.model.visit import BESIDE, CHECKS, Purpose, Reason, Redirected, Request, Skipped, Unchanged
from periplus.model.web import HostKey, SiteKey, Url
from periplus.store import part_messages, rows
from periplus.store.url_state import FIELDS, RECHECK, UrlState, is_another, updated_state
from periplus.urls.hosts import WebPart, part_of


class HostRef(NamedTuple):
    """A host locked by the transaction. shard: 0 if the database has no shards."""

    shard: int
    id: int


@dataclass(slots=True)
class UrlRow:
    """A row of `url` within the transaction."""

    shard: int
    id: int
    text: str
    host_id: int
    reason: str
    depth: int | None
    rule: str
    status: int | None
    in_sitemap: int
    first_seen: float
    visited: float | None
    is_new: bool = False
    is_touched: bool = False

    @property
    def host(self) -> HostRef:
        return HostRef(self.shard, self.host_id)


class QueueEntry(NamedTuple):
    """A row of `queue`. text: None for pages, whose text is in `url`."""

    shard: int
    host_id: int
    priority: int
    url_id: int
    text: str | None
    purpose: str
    about: str
    hops: int
    attempt: int
    not_before: float


class AliasRow(NamedTuple):
    """A row of `alias`, as inserted by a crawl."""

    shard: int
    url_id: int
    page_id: int | None
    rule: str
    learned: int
    was: str = Reason.WAITING.value


class FreshnessRow(NamedTuple):
    """A row of `freshness`."""

    shard: int
    url_id: int
    checked: float
    interval_s: float
    gone_since: float | None


class NewVisit(NamedTuple):
    """A visit to insert. look: data of a checked link target."""

    shard: int
    row: rows.VisitRow
    look: Look | None = None


class Validator(NamedTuple):
    """A new validator for conditional requests, in one column of `page`."""

    shard: int
    url_id: int
    column: str
    value: str


class PageKey(NamedTuple):
    """Key of a page."""

    shard: int
    url_id: int


@dataclass(slots=True)
class Sums:
    """Changes of counters. They are written last, once per transaction."""

    pending: Counter[HostRef] = field(default_factory=Counter)  # queue entries
    fetched: Counter[HostRef] = field(default_factory=Counter)  # requested pages
    tallies: Counter[str] = field(default_factory=Counter)  # of the collection: `known`, `reason:...`
    counts: Counter[str] = field(default_factory=Counter)  # of the run: `fetched`, `wire_bytes`, and by RefreshFinding


def brings_content(completion: Completion) -> bool:
    """Whether a completion has a page or a redirect to store. False for an unchanged page."""
    if completion.reason is None or not completion.task.url_id or isinstance(completion.visit.outcome, Unchanged):
        return False
    return completion.document is not None or isinstance(completion.visit.outcome, Redirected)


class Ledger:
    """The changes of one transaction. The caller loads rows, applies the changes, then writes them."""

    def __init__(self, run_id: int, now: float, sums: Sums, part: WebPart | None = None) -> None:
        """part: this collection's part of a split crawl."""
        self.run_id, self.now, self.sums, self._part = run_id, now, sums, part
        # loaded
        self.hosts: dict[HostKey, HostRef] = {}  # changes for other hosts go to `outgoing`
        self.urls: dict[int, UrlRow] = {}
        self.taken: set[tuple[int, int, int]] = set()  # (host, priority, seq) of entries removed from the queue
        self.listed: set[tuple[int, int, str, str, str]] = set()  # keys of queued side requests, see `send`
        self.checked: set[tuple[str, str]] = set()  # (URL, purpose) requested by the current check
        self.pages: dict[int, tuple[object, ...]] = {}  # the FIELDS of stored pages
        self.linked: set[int] = set()  # pages that may have stored links
        self.links: dict[int, dict[rows.LinkKey, float]] = {}  # with last_seen; only for pages with unchanged text
        self.freshness: dict[int, tuple[float, float | None]] = {}  # (interval_s, gone_since)
        # changes, besides those in `urls`
        self.aliases: list[AliasRow] = []
        self.vouched: list[PageKey] = []  # known URLs that are no longer in doubt
        self.respelled: list[tuple[PageKey, Url]] = []  # URLs that redirect to another spelling of themselves
        self.entries: list[QueueEntry] = []
        self.visits: list[NewVisit] = []
        self.new_pages: list[tuple[int, dict[str, object]]] = []  # (shard, page)
        self.replaced: list[PageKey] = []  # the new pages that replace a stored page
        self.past_pages: list[tuple[PageKey, tuple[object, ...]]] = []  # previous fields of changed pages
        self.new_links: list[rows.NewLinks] = []
        self.seen_links: list[rows.NewLinks] = []  # links of pages that may have stored links
        self.ended_links: list[rows.EndedLinks] = []
        self.bad_links: list[rows.LinkValues] = []
        self.renderings: list[tuple[object, ...]] = []
        self.validators: list[Validator] = []
        self.fresh: list[FreshnessRow] = []
        self.robots: Sequence[StoredRobots] = ()
        self.outgoing: list[Candidate | SideRequest] = []  # for hosts that another worker may hold
        self.handed_over: list[tuple[int, str]] = []  # (part, message) for other parts of a split crawl
        self.refuted: Sequence[tuple[SiteKey, str]] = ()  # refuted alias rules, each with its site

    # completions -----------------------------------------------------------------------------------------------------

    def complete(self, completion: Completion, shard: int, body_id: int | None) -> None:
        """Applies the completion of one task. body_id: of the stored body, or None."""
        task, visit = completion.task, completion.visit
        host = HostRef(shard, task.host_id)
        is_asked = not isinstance(visit.outcome, Skipped)
        if is_asked and (task.url_id or task.request.purpose in CHECKS):
            self.sums.counts["fetched"] += 1
            self.sums.counts["wire_bytes"] += visit.wire_bytes
            if (headers := getattr(visit.outcome, "headers", None)) and headers.status_line.startswith("HTTP/2"):
                self.sums.counts["http2"] += 1
            self.sums.fetched[host] += 1
        is_news = not isinstance(visit.outcome, Unchanged)
        if completion.reason is not None and task.url_id:
            is_news = self._store_result(completion, completion.reason, shard, body_id)
        elif completion.reason is None and (task.host_id, task.priority, task.seq) in self.taken:
            self._requeue(completion, host)
        is_call = task.request.purpose in BESIDE  # a placeholder that only made a worker lease the host
        if is_news and not is_call and (is_asked or completion.reason is not None):  # else only postponed
            self.enter_visit(shard, rows.visit_row(self.run_id, task.url_id, visit), completion.look)
        for candidate in completion.candidates:
            self.offer(candidate)

    def take(self, host: HostRef, priority: int, seq: int) -> None:
        """Records that an entry was removed from the queue."""
        self.taken.add((host.id, priority, seq))
        self.sums.pending[host] -= 1

    def _requeue(self, completion: Completion, host: HostRef) -> None:
        """Queues the task again, to be retried later."""
        task = completion.task
        is_respelled = task.request.url != completion.visit.request.url
        if task.url_id and is_respelled:
            self.respelled.append((PageKey(host.shard, task.url_id), task.request.url))
        is_attempt = not is_respelled and not isinstance(completion.visit.outcome, Skipped)
        request = replace(task.request, attempt=task.request.attempt + is_attempt, etag="", last_modified="")
        priority = task.priority if completion.retry_priority is None else completion.retry_priority
        purpose = RECHECK if task.recheck else request.purpose.value
        self._enqueue(host, priority, task.url_id, request, self.now + completion.retry_in_s, purpose)

    def _store_result(self, completion: Completion, reason: Reason, shard: int, body_id: int | None) -> bool:
        """Stores the result for a URL. False: a refresh found it unchanged, which is not stored as a visit."""
        task, outcome = completion.task, completion.visit.outcome
        if isinstance(outcome, Unchanged):
            self._renew_validators(shard, task.url_id, outcome)
            self._note(shard, task.url_id, RefreshFinding.UNCHANGED)
            return False
        url = self.urls[task.url_id]
        before, rule = Reason(url.reason), url.rule
        self._set_result(url, completion, reason)
        is_changed = brings_content(completion) and self._store_content(completion, shard, body_id)
        if not task.recheck:
            if reason in READ:
                self._note(shard, task.url_id, RefreshFinding.NEW)
            return True
        finding = finding_of(before, reason, is_changed or rule != completion.rule)
        self._note(shard, task.url_id, finding)
        return finding is not RefreshFinding.UNCHANGED

    def _set_result(self, url: UrlRow, completion: Completion, reason: Reason) -> None:
        """Sets the URL's reason. It was `waiting`, except in a refresh or if its host was given up in the meantime."""
        outcome = completion.visit.outcome
        self.restate(url, reason, completion.rule)
        url.status = getattr(outcome, "status", None)
        if not isinstance(outcome, Skipped):
            url.visited = completion.visit.started

    def _renew_validators(self, shard: int, url_id: int, unchanged: Unchanged) -> None:
        """Stores the validators for the next request. A 304 contains only the changed ones (RFC 9110, 15.4.5), a 200
        all of them.
        """
        for column, name in (("etag", "etag"), ("last_modified_field", "last-modified")):
            value = unchanged.headers.get(name)
            if value or unchanged.status == 200:
                self.validators.append(Validator(shard, url_id, column, value))

    def _store_content(self, completion: Completion, shard: int, body_id: int | None) -> bool:
        """Stores the page and its links. Replaced rows go to the history.

        Returns True if the page is new, or its text, fields or links changed.
        """
        source, document, outcome = completion.task.url_id, completion.document, completion.visit.outcome
        if document is None:
            assert isinstance(outcome, Redirected)
            link = rows.redirect_link(shard, source, outcome)
            self._store_links(link, LinkKind.REDIRECT.value if completion.task.recheck else None)
            return False
        page = rows.page_row(completion, document, body_id)
        before = self.pages.get(source)
        is_changed = before is None or is_another(before, [page[name] for name in FIELDS])
        self.new_pages.append((shard, page))
        if before is not None:
            self.replaced.append(PageKey(shard, source))
            if is_changed:
                self.past_pages.append((PageKey(shard, source), before))
        self.bad_links += rows.bad_link_rows(shard, source, document)
        if completion.rendering is not None:
            self.renderings.append(rows.rendering_row(shard, source, completion.rendering))
        return self._store_links(rows.page_links(shard, source, document), "") or is_changed

    def _store_links(self, page: rows.NewLinks, ending: str | None) -> bool:
        """Stores the page's links, keeping `first_seen` of existing links.

        ending: close unseen links of this kind ('' for all kinds, None for none).
        Returns whether links were added or closed; False for a page with another text, whose links are not loaded.
        """
        if page.source not in self.linked:
            self.new_links.append(page)
            return False
        self.seen_links.append(page)
        stored = self.links.get(page.source)
        keys = page.link_keys() if stored else set()
        may_end = stored is None or any(last_seen < self.now for key, last_seen in stored.items() if key not in keys)
        if may_end and ending is not None:
            self.ended_links.append(rows.EndedLinks(page.shard, page.source, ending))
        return stored is not None and (may_end or not keys <= stored.keys())

    def _note(self, shard: int, url_id: int, finding: RefreshFinding) -> None:
        """Counts the result of a refresh and schedules the next refresh of the URL."""
        self.sums.counts[finding.value] += 1
        if finding is RefreshFinding.NEW:
            return
        interval_s, gone_since = self.freshness.get(url_id, (FIRST_INTERVAL_S, None))
        if finding is RefreshFinding.GONE:
            gone_since = self.now
        elif finding is RefreshFinding.BACK:
            gone_since = None
        self.fresh.append(FreshnessRow(shard, url_id, self.now, next_interval_s(interval_s, finding), gone_since))

    def enter_visit(self, shard: int, row: rows.VisitRow, look: Look | None = None) -> None:
        self.visits.append(NewVisit(shard, row, look))
        if row.text is not None:
            self.checked.add((row.text, row.purpose))

    # URLs and lists --------------------------------------------------------------------------------------------------

    def offer(self, candidate: Candidate, *, reopen: bool = False) -> bool:
        """Inserts a new URL, or updates a known one if this link is better. Returns whether it is newly waiting."""
        host = self.hosts.get(candidate.host)
        if host is None:
            self.outgoing.append(candidate)
            return False
        if owner := self._other_part(candidate.host):
            self._offer_to_other_part(owner, host, candidate, reopen=reopen)
            return False
        url, reason = self.urls.get(candidate.url_id), candidate.reason
        is_alias = reason is Reason.ALIAS or reason is Reason.RULE
        if url is None:
            url = self._register(host, candidate)
            enters = reason is Reason.WAITING
        elif is_alias:  # a known URL keeps its state
            enters = False
        else:
            enters = self._update_url(url, candidate, reopen=reopen)
        if is_alias and url.reason == reason:
            alias = (candidate.page, candidate.rule, int(candidate.learned))
            self.aliases.append(AliasRow(host.shard, candidate.url_id, *alias))
        if enters:
            self._enqueue_page(url, host, candidate.hops)
        return enters

    def _register(self, host: HostRef, candidate: Candidate) -> UrlRow:
        reason = candidate.reason.value
        url = UrlRow(
            host.shard, candidate.url_id, candidate.url, host.id, reason, candidate.depth, candidate.rule, None,
            int(candidate.in_sitemap), self.now, None, is_new=True,
        )  # fmt: skip
        self.urls[candidate.url_id] = url
        self.sums.tallies["known"] += 1
        self.sums.tallies["reason:" + reason] += 1
        return url

    def _update_url(self, url: UrlRow, candidate: Candidate, *, reopen: bool) -> bool:
        """Updates a known URL. Returns whether it is to be queued."""
        before = UrlState(url.reason, url.depth, bool(url.in_sitemap))
        after, enters = updated_state(before, candidate, reopen=reopen)
        if candidate.vouched and not reopen:
            self.vouched.append(PageKey(url.shard, url.id))
        if after.reason != before.reason:
            self.restate(url, after.reason, "")
        if after != before:
            url.depth, url.in_sitemap, url.is_touched = after.depth, int(after.in_sitemap), True
        return enters

    def _other_part(self, host: HostKey) -> int:
        """The part that crawls a host; 0 for this one."""
        if self._part is None:
            return 0
        owner = part_of(host, self._part.of)
        return 0 if owner == self._part.number else owner

    def _offer_to_other_part(self, owner: int, host: HostRef, candidate: Candidate, *, reopen: bool) -> None:
        """Inserts or updates a URL of another part, and sends it there if that part can learn something from it.

        The local row is based on local links only. URLs that are not to be fetched are not sent.
        """
        url = self.urls.get(candidate.url_id)
        if url is None:
            url = self._register(host, candidate)
            after = UrlState(candidate.reason, candidate.depth, candidate.in_sitemap)
        else:
            reason = url.rule if url.reason == Reason.OTHER_PART else url.reason
            before = UrlState(reason, url.depth, bool(url.in_sitemap))
            after, _ = updated_state(before, candidate, reopen=reopen)
            if after == before:
                return
            url.depth, url.in_sitemap, url.is_touched = after.depth, int(after.in_sitemap), True
        if after.reason not in part_messages.LEFT_ASIDE:
            self.restate(url, Reason.OTHER_PART, str(after.reason))
            self.handed_over.append((owner, part_messages.of_candidate(candidate)))

    def restate(self, url: UrlRow, reason: str, rule: str) -> None:
        """Sets a URL's reason. The caller updates its queue entry."""
        self.sums.tallies["reason:" + url.reason] -= 1
        self.sums.tallies["reason:" + reason] += 1
        url.reason, url.rule, url.is_touched = str(reason), rule, True

    def await_again(self, url: UrlRow) -> None:
        """Queues a waiting URL that has no queue entry."""
        self._enqueue_page(url, url.host, 0)

    def _enqueue_page(self, url: UrlRow, host: HostRef, hops: int) -> None:
        priority = PRIORITY_WITHOUT_DEPTH if url.depth is None else url.depth
        page = Purpose.PAGE.value
        self.entries.append(QueueEntry(host.shard, host.id, priority, url.id, None, page, "", hops, 0, 0.0))
        self.sums.pending[host] += 1

    def send(self, side_request: SideRequest) -> None:
        """Queues a side request for its host, unless it is queued already, or is a redirect to a URL that was checked
        before.
        """
        host, request = self.hosts.get(side_request.host), side_request.request
        if host is None:
            self.outgoing.append(side_request)
            return
        if owner := self._other_part(side_request.host):
            self.handed_over.append((owner, part_messages.of_side_request(side_request)))
            return
        place = (host.id, side_request.priority, request.url, request.about, request.purpose.value)
        if place in self.listed or (request.hops and request.purpose in CHECKS and self._was_checked(request)):
            return
        self.listed.add(place)
        not_before = self.now + side_request.in_s if side_request.in_s else 0.0
        self._enqueue(host, side_request.priority, 0, request, not_before, request.purpose.value)

    def _was_checked(self, request: Request) -> bool:
        """Whether the current check requested the URL: by GET, if the request is a GET."""
        purposes = (Purpose.CHECK,) if request.purpose is Purpose.CHECK else CHECKS
        return any((request.url, purpose.value) in self.checked for purpose in purposes)

    def _enqueue(
        self, host: HostRef, priority: int, url_id: int, request: Request, not_before: float, purpose: str
    ) -> None:
        text = None if url_id else request.url
        entry = QueueEntry(
            host.shard, host.id, priority, url_id, text, purpose, request.about, request.hops, request.attempt,
            not_before,
        )  # fmt: skip
        self.entries.append(entry)
        self.sums.pending[host] += 1

    def record(self, batch: Batch, shards: Sequence[int]) -> None:
        """Stores the batch's other content: robots.txt, side requests for any host, refuted alias rules.

        shards: of the batch's visits.
        """
        for shard, visit in zip(shards, batch.visits, strict=True):
            self.enter_visit(shard, rows.visit_row(self.run_id, 0, visit))
        self.refuted = batch.refuted
        self.enter_robots(batch.robots)
        for side_request in batch.side_requests:
            self.send(side_request)

    def enter_robots(self, answers: Sequence[StoredRobots]) -> None:
        """Stores robots.txt results; sends those of another part's origin, whose robots.txt redirects here, to it."""
        owners = [self._other_part(HostKey(answer.origin.partition("://")[2])) for answer in answers]
        self.robots = [answer for owner, answer in zip(owners, answers, strict=True) if not owner]
        of_others = [(owner, answer) for owner, answer in zip(owners, answers, strict=True) if owner]
        self.handed_over += [(owner, part_messages.of_robots(answer)) for owner, answer in of_others]
