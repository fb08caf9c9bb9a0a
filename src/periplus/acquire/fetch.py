"""Turns bytes from the wire into visits, completions for the store, and what a check asks next. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from periplus.acquire.inflating import inflate
from periplus.acquire.politeness import may_pass
from periplus.document.blocks import blocks_of
from periplus.document.decode import decode
from periplus.document.digest import body_digest
from periplus.document.headers import media_type as type_of
from periplus.document.headers import sniffed_media_type
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

AGAIN_S = 1.5  # until the second answer: a clock that shows seconds goes on
MOST_FIRST = 20_000  # first answers kept at a time, some 40 MB; further pages count as changed
MOST_ATTEMPTS = 3  # first answers of a page: a host that changes its worker leaves the former's behind
_NUMBERED = re.compile(r"(\b\w*\d[\w.,:-]*)")  # numbers, times, tokens; without `\b` a long word takes quadratic time
_FIELDS = 8  # of what a page shows, before the targets of its links

FirstAnswers = dict[UrlId, frozenset[int]]  # words of pages that are not stored, as hashes of (place, word)

REDIRECTS = frozenset({301, 302, 303, 307, 308})
REFUSALS = frozenset({401, 403, 407, 429, 451, 999})  # 999: what LinkedIn and its kind answer to programs


def visit_of(response: Response, limits: FetchLimits) -> Visit:
    """One exchange as a Visit: redirects resolved, bodies inflated within limits."""
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
    if response.request.purpose is Purpose.HEAD:  # what the header says of a body does not come
        return Fetched(response.status, response.headers, b"")
    body, inflating = inflate(response.body, response.headers.get("content-encoding"), limits)
    cut = response.cut if response.cut is not Cut.NONE else inflating
    return Fetched(response.status, response.sent or response.headers, body, cut)


def _redirect(response: Response) -> Redirected | None:
    location = _location(response.headers)
    if not location:
        return None
    try:
        target, fragment = resolve(location, response.request.url)
    except InvalidUrl:
        return None
    return Redirected(response.status, response.headers, target, fragment)


def _location(headers: Headers) -> str:
    """The Location field as text. Servers send raw UTF-8 in it, which HTTP libraries hand on as latin-1."""
    location = headers.get("location")
    try:
        return location.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return location


def reason_of_status(status: int) -> Reason:
    """What a final status other than success means for the URL."""
    if status in (404, 410):
        return Reason.NOT_FOUND
    if status in REFUSALS:
        return Reason.REFUSED
    if 400 <= status < 500:
        return Reason.CLIENT_ERROR
    if status >= 500:
        return Reason.SERVER_ERROR
    return Reason.BAD_ANSWER  # 1xx that never ended, 3xx that leads nowhere, 304 nobody asked for


_REASON_OF_CAUSE = {
    "tls": Reason.TLS,
    "not-http": Reason.BAD_ANSWER,
    "header-too-long": Reason.BAD_ANSWER,
    "private-address": Reason.PRIVATE,
    "bug": Reason.BUG,
}


def reason_of(outcome: Outcome) -> Reason:
    """The reason (and so the state) that a URL has after this outcome, retries apart."""
    match outcome:
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


NO_RETRY_WAIT = frozenset({429, 503})  # here the whole host waits, which is enough


def completion_of(read: Completion, politeness: Politeness) -> Completion:
    """The end of one task, or its return to the to-do list when a later attempt may end better.

    read: what was read of the answer, without a reason yet.
    """
    lease, task, visit, document = read.lease, read.task, read.visit, read.document
    outcome = visit.outcome
    if may_pass(outcome) and task.request.attempt < politeness.retries:
        waits = isinstance(outcome, Fetched) and outcome.status not in NO_RETRY_WAIT
        wait_s = politeness.retry_wait_s * 2**task.request.attempt if waits else 0.0
        return Completion(lease, task, visit, None, retry_in_s=wait_s)
    # the server insists on it: so it is asked for from now on
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
        case Fetched(cut=cut) if cut:
            rule = cut.value
        case _:
            pass
    if document is not None and reason in (Reason.OK, Reason.TRUNCATED):
        understood, why = _understood(document)
        reason, rule = reason if reason is Reason.TRUNCATED else understood, "; ".join(filter(None, (rule, why)))
        if document.noindex:
            reason, rule = Reason.NOINDEX, "; ".join(filter(None, ("the page asks not to be indexed", rule)))
    return replace(read, reason=reason, rule=rule)


def _is_respelled(task: Task, redirect: Redirected) -> bool:
    """Whether a URL redirects to another spelling of itself, as from `/%7Eu` to `/~u`."""
    return redirect.target != task.request.url and url_id(redirect.target) == task.url_id


def _understood(document: Document) -> tuple[Reason, str]:
    """(how much of a page was read, and why not all of it)."""
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


def with_its_cookies(visit: Visit) -> Request | None:
    """The request to send once more when a redirect led to its own URL and set cookies: the same, with these; None:
    it did not, or has them.
    """
    request = visit.request
    match visit.outcome:
        case Redirected(target=target, headers=headers) if target == request.url and not request.fields:
            pairs = [field.partition(";")[0].strip() for field in headers.all("set-cookie")]
            cookies = "; ".join(pair for pair in pairs if "=" in pair[1:] and pair.isascii() and pair.isprintable())
            return replace(request, fields=(f"Cookie: {cookies}",)) if cookies else None
        case _:
            return None


def recognised(task: Task, visit: Visit) -> Visit:
    """The visit as Unchanged when a server without validators sent the bytes that we hold:
    nothing is understood twice.
    """
    match visit.outcome:
        case Fetched(status=200, headers=headers, body=body) if task.held and body_digest(body) == task.held:
            return replace(visit, outcome=Unchanged(headers, 200))
        case _:
            return visit


def bug(lease: Lease, task: Task, visit: Visit, detail: str) -> Completion:
    """A failure of ours: recorded as what it is, and the crawl goes on."""
    broken = Visit(
        visit.request, visit.started, visit.took_s, Failed(Cause.BUG, detail), visit.wire_bytes, visit.address
    )
    return Completion(lease, task, broken, Reason.BUG, detail)


# HEAD first, where nobody needs the page; GET when the answer to HEAD is anything but success or a redirect, for many
# servers answer HEAD wrongly and none of them may be called broken for it. Redirects go on as side requests: the other
# host's robots and delay hold for it too. What failed is asked again later by whoever planned the check: see
# `api.audit`.

LOOK_CHARS = 20_000  # of a text that are kept: an error page has rarely more than 3,000


def check_of(lease: Lease, task: Task, visit: Visit, settings: Settings) -> Completion:
    """The end of a check's task, with what is to be asked besides."""
    request, limits = task.request, settings.limits
    ended = Completion(lease, task, visit, reason_of(visit.outcome))
    onward: Request | None = None
    match visit.outcome:
        case Redirected(target=target) if request.hops < limits.redirect_hops and target != request.url:
            onward = replace(request, url=target, hops=request.hops + 1, attempt=0)
        case Redirected() | Skipped():
            pass
        case Fetched(status=status) as fetched if 200 <= status < 300:
            if request.purpose is Purpose.CHECK:
                return replace(ended, look=look_at(fetched, request.about.split()))
        case Fetched(status=status) if request.purpose is Purpose.CHECK and status in NO_RETRY_WAIT:
            return completion_of(ended, settings.politeness)  # the server said when to come again
        case _ if request.purpose is Purpose.HEAD:
            onward = replace(request, purpose=Purpose.CHECK, attempt=0)
    return replace(ended, side_requests=(check_side_request(onward),)) if onward is not None else ended


def check_side_request(request: Request, in_s: float = 0.0) -> SideRequest:
    """The wish that a link's target be checked; request: of purpose HEAD or CHECK.

    in_s: not before so many seconds from now.
    """
    return SideRequest(host_key(request.url), site_key(request.url), request, PRIORITY_CHECK, in_s)


def look_at(fetched: Fetched, fragments: list[str]) -> Look:
    """What was fetched, as far as a check needs it. fragments: to be looked for, percent-encoded."""
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
    if fetched.cut:  # what is not in a part may be in the rest
        verdicts = tuple(
            (name, verdict if verdict in _THERE else FragmentVerdict.UNKNOWN) for name, verdict in verdicts
        )
    return Look(media_type, facts.title, facts.h1, shown[:LOOK_CHARS], verdicts)


_THERE = frozenset({FragmentVerdict.FOUND, FragmentVerdict.TOP})

# A second look: a refresh that finds a page as it was but for words with digits asks for it once more. The page is
# unchanged when the two answers share none of the words that are not stored: what both show has changed.


def second_look(read: Completion, stored: Sequence[str], first: FirstAnswers) -> Completion:
    """The answer of a refresh, as `Unchanged` where it is volatile; with a wait where it must be asked once more.

    stored: see `CrawlStore.shown`. first: kept by the caller; a kill costs the request alone.
    """
    page, shown = read.document, ["", getattr(read.visit.outcome, "target", "")]
    if page is not None:
        fields = page.media_type, page.language, page.title, page.description, page.h1, page.canonical, page.robots
        shown = [*fields, page.text, *sorted(set(page.links.targets))]
    before, now = (_NUMBERED.split("\n".join(parts)) for parts in (stored, shown))
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
    """Links that differ from stored ones in a session id alone, as they are stored: they make no new addresses.

    is_twin: whether the detector of traps knows that the page was read under another session id.
    """
    if (page := read.document) is None or not (twins := set(filter(is_twin, page.links.targets))):
        return read
    former = {plain(Url(target)).url: Url(target) for target in stored[_FIELDS:]}
    targets = tuple(former.get(plain(one).url, one) if one in twins else one for one in page.links.targets)
    candidates = tuple(one for one in read.candidates if one.url in targets or one.url not in twins)
    return replace(read, document=replace(page, links=replace(page.links, targets=targets)), candidates=candidates)
