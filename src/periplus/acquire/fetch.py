"""Turns responses into visits, completions for the store, and follow-up requests of link checks. No I/O."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from xxhash import xxh3_128_digest

from periplus.acquire.inflating import inflate
from periplus.acquire.politeness import may_pass
from periplus.document.blocks import blocks_of
from periplus.document.decode import decode
from periplus.document.headers import bot_wall, sniffed_media_type
from periplus.document.headers import media_type as type_of
from periplus.document.links import anchors, fragment_verdict
from periplus.document.metadata import metadata
from periplus.document.reader import Reader, tree_of
from periplus.errors import InvalidUrl
from periplus.model.audit import FragmentVerdict
from periplus.model.frontier import PRIORITY_CHECK, Completion, Lease, Look, SideRequest, Task
from periplus.model.page import HTML_TYPES, Document
from periplus.model.ports import Response
from periplus.model.visit import (
    Cause,
    Cut,
    Failed,
    Fetched,
    Headers,
    Outcome,
    Purpose,
    Reason,
    Redirected,
    Request,
    Skipped,
    Unchanged,
    Visit,
)
from periplus.model.web import Url, UrlId
from periplus.settings import FetchLimits, Politeness, Settings
from periplus.urls.canonical import resolve, url_id
from periplus.urls.hosts import host_key
from periplus.urls.scope import site_key
from periplus.urls.url_patterns import plain

AGAIN_S = 1.5  # until the second request: a page that shows seconds then differs
MOST_FIRST = 20_000  # first answers kept at a time, some 40 MB; further pages count as changed
MOST_ATTEMPTS = 3  # requests of one page: if its host changes worker, the first answer is lost
_NUMBERS = re.compile(r"(\b\w*\d[\w.,:-]*)")  # numbers, times, tokens; without `\b` a long word takes quadratic time
_FIELDS = 8  # number of stored fields of a page before its link targets

FirstAnswers = dict[UrlId, frozenset[int]]  # by page, hashes of the (index, word) pairs that differ from stored ones

REDIRECTS = frozenset({301, 302, 303, 307, 308})
REFUSALS = frozenset({401, 403, 407, 429, 451, 999})  # 999: LinkedIn and others send it to crawlers
_REASON_OF_CAUSE = {
    "tls": Reason.TLS,
    "not-http": Reason.BAD_ANSWER,
    "header-too-long": Reason.BAD_ANSWER,
    "private-address": Reason.PRIVATE,
    "bug": Reason.BUG,
}
NO_RETRY_WAIT = frozenset({429, 503})  # the whole host waits after these, so the URL need not
LOOK_CHARS = 20_000  # of the text that are kept; error pages rarely have more than 3,000
_THERE = frozenset({FragmentVerdict.FOUND, FragmentVerdict.TOP})


def visit_of(response: Response, limits: FetchLimits) -> Visit:
    """A response as a Visit: redirects resolved, bodies inflated within the limits."""
    outcome = _outcome(response, limits)
    return Visit(
        response.request,
        response.started,
        response.took_s,
        outcome,
        len(response.body),
        response.address,
        response.first_byte_s,
    )


def _outcome(response: Response, limits: FetchLimits) -> Outcome:
    if response.cause is Cause.NOT_ARCHIVED:
        return Skipped(Reason.NOT_ARCHIVED, response.detail)
    if response.cause is not None:
        return Failed(response.cause, response.detail)
    if response.status == 304 and (response.request.etag or response.request.last_modified):
        return Unchanged(response.headers)
    if response.status in REDIRECTS and (redirect := _redirect(response)):
        return redirect
    if response.request.purpose is Purpose.HEAD:  # Content-Encoding and Content-Length describe a body that is not sent
        return Fetched(response.status, response.headers, b"")
    coding = response.headers.get("content-encoding")
    body, inflating = inflate(response.body, coding, limits)
    cut = response.cut if response.cut is not Cut.NONE else inflating
    if cut is not Cut.NOT_WANTED and bot_wall(response.status, response.headers, body):
        cut = Cut.BOT_WALL
    sent = response.body if coding == "gzip" and cut is Cut.NONE else b""
    return Fetched(response.status, response.sent or response.headers, body, cut, sent)


def _redirect(response: Response) -> Redirected | None:
    location = response.headers.get("location")
    with contextlib.suppress(UnicodeError):  # some servers send raw UTF-8, which HTTP libraries decode as latin-1
        location = location.encode("latin-1").decode("utf-8")
    if not location:
        return None
    try:
        target, fragment = resolve(location, response.request.url)
    except InvalidUrl:
        return None
    return Redirected(response.status, response.headers, target, fragment)


def reason_of_status(status: int) -> Reason:
    """The reason for a final status other than success."""
    if status in (404, 410):
        return Reason.NOT_FOUND
    if status in REFUSALS:
        return Reason.REFUSED
    if 400 <= status < 500:
        return Reason.CLIENT_ERROR
    if status >= 500:
        return Reason.SERVER_ERROR
    return Reason.BAD_ANSWER  # 1xx without a final status, 3xx without a target, 304 without a condition


def reason_of(outcome: Outcome) -> Reason:
    """The reason (and so the state) of a URL after this outcome, without regard to retries."""
    match outcome:
        case Fetched(cut=Cut.BOT_WALL):
            return Reason.BOT_WALL
        case Fetched(status=status, cut=cut) if 200 <= status < 300:
            if cut is Cut.NOT_WANTED:
                return Reason.OTHER_MEDIA
            return Reason.OK if cut is Cut.NONE else Reason.TRUNCATED
        case Fetched(status=status):
            return reason_of_status(status)
        case Redirected():
            return Reason.REDIRECT
        case Unchanged():
            return Reason.OK
        case Failed(cause=cause):
            return _REASON_OF_CAUSE.get(cause, Reason.UNREACHABLE)
        case Skipped(reason=reason):
            return reason


def completion_of(read: Completion, politeness: Politeness) -> Completion:
    """Ends a task with its reason, or returns it to the to-do list if a retry may succeed.

    read: the completion as `Discovery.of` returns it, without a reason.
    """
    lease, task, visit, document = read.lease, read.task, read.visit, read.document
    outcome = visit.outcome
    if may_pass(outcome) and task.request.attempt < politeness.retries:
        waits = isinstance(outcome, Fetched) and outcome.status not in NO_RETRY_WAIT
        wait_s = politeness.retry_wait_s * 2**task.request.attempt if waits else 0.0
        return Completion(lease, task, visit, None, retry_in_s=wait_s)
    # the server requires this spelling of the URL: continue with it
    if isinstance(outcome, Redirected) and read.candidates and _is_respelled(task, outcome):
        request = replace(task.request, url=outcome.target, hops=task.request.hops + 1)
        return Completion(lease, replace(task, request=request), visit, None)
    reason, rule = reason_of(outcome), ""
    match outcome:
        case Redirected() if not read.candidates:
            reason, rule = Reason.BAD_ANSWER, "too many redirects"
        case Redirected(target=target):
            rule = target
        case Skipped(rule=decisive, line=line):
            rule = f"robots.txt line {line}: {decisive}" if line else decisive
        case Failed(cause=cause, detail=detail):
            rule = f"{cause.value}: {detail}" if detail else cause.value
        case Fetched(status=status, headers=headers, body=body, cut=Cut.BOT_WALL):
            rule = f"{bot_wall(status, headers, body)}, status {status}"
        case Fetched(cut=cut) if cut:
            rule = cut.value
        case _:
            pass
    if document is not None and reason in (Reason.OK, Reason.TRUNCATED):
        understood, why = _reason_of_document(document)
        reason, rule = reason if reason is Reason.TRUNCATED else understood, "; ".join(filter(None, (rule, why)))
        if document.noindex:
            reason, rule = Reason.NOINDEX, "; ".join(filter(None, ("the page asks not to be indexed", rule)))
    return replace(read, reason=reason, rule=rule)


def _is_respelled(task: Task, redirect: Redirected) -> bool:
    """Whether a URL redirects to another spelling of itself, such as `/%7Eu` to `/~u`."""
    return redirect.target != task.request.url and url_id(redirect.target) == task.url_id


def _reason_of_document(document: Document) -> tuple[Reason, str]:
    """(reason by how much of a page was read, why some of it was not)."""
    why = "; ".join(filter(None, (document.fault, *document.bounds)))
    if document.fault and not document.text and not document.links:
        return Reason.UNREADABLE, why
    if why:
        return Reason.PARTIAL, why
    return (
        (Reason.NEEDS_SCRIPT, "almost no text, and an element that a script fills")
        if document.needs_script
        else (Reason.OK, "")
    )


def with_cookies(visit: Visit) -> Request | None:
    """The request with the cookies of its answer, if that redirects to the same URL and sets cookies.

    None: no such redirect, or the request had header fields already.
    """
    request = visit.request
    match visit.outcome:
        case Redirected(target=target, headers=headers) if target == request.url and not request.fields:
            pairs = [field.partition(";")[0].strip() for field in headers.all("set-cookie")]
            cookies = "; ".join(pair for pair in pairs if "=" in pair[1:] and pair.isascii() and pair.isprintable())
            return replace(request, fields=(f"Cookie: {cookies}",)) if cookies else None
        case _:
            return None


def compare_with_stored(task: Task, visit: Visit) -> Visit:
    """The visit as Unchanged if the body equals the stored one (from a server without validators); else as it is."""
    match visit.outcome:
        case Fetched(status=200, headers=headers, body=body) if task.held and xxh3_128_digest(body) == task.held:
            return replace(visit, outcome=Unchanged(headers, 200))
        case _:
            return visit


def bug(lease: Lease, task: Task, visit: Visit, detail: str) -> Completion:
    """Ends a task with Reason.BUG, after an exception in our code."""
    broken = Visit(
        visit.request, visit.started, visit.took_s, Failed(Cause.BUG, detail), visit.wire_bytes, visit.address
    )
    return Completion(lease, task, broken, Reason.BUG, detail)


# Link checks: HEAD first, if the page is not needed; GET if the answer to HEAD is not a success or redirect, since many
# servers answer HEAD wrongly and their links must not be reported as broken. Redirects are followed by side requests,
# so that robots.txt and delay of the target host apply. `api.audit` repeats failed checks later.


def check_of(lease: Lease, task: Task, visit: Visit, settings: Settings) -> Completion:
    """Ends the task of a link check, with its follow-up request if it needs one."""
    request, limits = task.request, settings.limits
    ended = Completion(lease, task, visit, reason_of(visit.outcome))
    onward: Request | None = None
    match visit.outcome:
        case Redirected(target=target) if request.hops < limits.redirect_hops and target != request.url:
            onward = replace(request, url=target, hops=request.hops + 1, attempt=0)
        case Redirected() | Skipped() | Fetched(cut=Cut.BOT_WALL):
            pass
        case Fetched(status=status) as fetched if 200 <= status < 300:
            if request.purpose is Purpose.CHECK:
                return replace(ended, look=look_at(fetched, request.about.split()))
        case Fetched(status=status) if request.purpose is Purpose.CHECK and status in NO_RETRY_WAIT:
            return completion_of(ended, settings.politeness)  # a retry after the host's wait
        case _ if request.purpose is Purpose.HEAD:
            onward = replace(request, purpose=Purpose.CHECK, attempt=0)
    return replace(ended, side_requests=(check_side_request(onward),)) if onward is not None else ended


def check_side_request(request: Request, in_s: float = 0.0) -> SideRequest:
    """A side request that checks a link's target. request: of purpose HEAD or CHECK; in_s: delay from now, seconds."""
    return SideRequest(host_key(request.url), site_key(request.url), request, PRIORITY_CHECK, in_s)


def look_at(fetched: Fetched, fragments: list[str]) -> Look:
    """The facts about a page that a link check needs. fragments: anchors to look for, percent-encoded."""
    media_type, charset = type_of(fetched.headers)
    media_type = media_type or sniffed_media_type(fetched.body)
    if media_type not in HTML_TYPES or fetched.cut is Cut.NOT_WANTED:
        return Look(media_type, "", "", "", tuple((fragment, FragmentVerdict.UNKNOWN) for fragment in fragments))
    text, _ = decode(fetched.body, charset, media_type)
    tree = tree_of(text)
    page = Reader(tree).read()
    facts, names = metadata(page, fetched.headers), anchors(tree) if fragments else frozenset()
    shown = blocks_of(page).text
    verdicts = tuple(
        (fragment, fragment_verdict(fragment, names, text=shown, media_type=media_type)) for fragment in fragments
    )
    if fetched.cut:  # a missing anchor may be in the part that was cut off
        verdicts = tuple(
            (name, verdict if verdict in _THERE else FragmentVerdict.UNKNOWN) for name, verdict in verdicts
        )
    return Look(media_type, facts.title, facts.h1, shown[:LOOK_CHARS], verdicts)


# If a refresh finds that a page differs only in words with digits, it requests the page a second time. New words that
# both answers share are a change; if they share none, the words are volatile (times, tokens): the page is unchanged.


def second_look(read: Completion, stored: Sequence[str], first: FirstAnswers) -> Completion:
    """The completion of a refresh, as `Unchanged` if only volatile words differ; with retry_in_s if a second request
    must decide.

    stored: see `CrawlStore.shown`. first: kept in memory by the caller; after a kill the page is requested again.
    """
    page, shown = read.document, ["", getattr(read.visit.outcome, "target", "")]
    if page is not None:
        fields = page.media_type, page.language, page.title, page.description, page.h1, page.canonical, page.robots
        shown = [*fields, page.text, *sorted(set(page.links.targets))]
    before, now = (_NUMBERS.split("\n".join(parts)) for parts in (stored, shown))
    once = first.pop(read.task.url_id, None)
    words = frozenset(map(hash, {*enumerate(now)} - {*enumerate(before)}))
    is_last = len(first) >= MOST_FIRST or read.task.request.attempt > MOST_ATTEMPTS
    if not words or before[::2] != now[::2] or (words & once if once else is_last):
        return read
    if not once:
        first[read.task.url_id] = words
    visit = replace(read.visit, outcome=Unchanged(getattr(read.visit.outcome, "headers", Headers()), 200))
    return replace(read, visit=visit, document=None, candidates=(), retry_in_s=0.0 if once else AGAIN_S)


def with_stored_sessions(read: Completion, stored: Sequence[str], is_twin: Callable[[Url], object]) -> Completion:
    """Replaces links that differ from stored ones only in a session id by the stored ones, so they add no new URLs.

    is_twin: whether trap detection knows that the page was read under another session id.
    """
    if (page := read.document) is None or not (twins := set(filter(is_twin, page.links.targets))):
        return read
    former = {plain(Url(target)).url: Url(target) for target in stored[_FIELDS:]}
    targets = tuple(former.get(plain(url).url, url) if url in twins else url for url in page.links.targets)
    candidates = tuple(new for new in read.candidates if new.url in targets or new.url not in twins)
    return replace(
        read,
        document=replace(page, links=replace(page.links, targets=targets, ids=memoryview(b""))),
        candidates=candidates,
    )
