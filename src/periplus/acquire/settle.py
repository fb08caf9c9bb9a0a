"""What became of a task? From its visit to the completion that the store takes: pure."""

from __future__ import annotations

from dataclasses import replace

from periplus.acquire.fetch import reason_of
from periplus.acquire.politeness import may_pass
from periplus.document.digest import body_digest
from periplus.model.frontier import Candidate, Completion, Lease, Task
from periplus.model.page import Document
from periplus.model.visit import Cause, Failed, Fetched, Reason, Redirected, Request, Skipped, Unchanged, Visit
from periplus.settings import Manners
from periplus.urls.canonical import url_id

NO_RETRY_WAIT = frozenset({429, 503})  # here the whole host waits, which is enough


def completion_of(
    lease: Lease, task: Task, visit: Visit, manners: Manners, document: Document | None = None, candidates: tuple[Candidate, ...] = ()
) -> Completion:
    """The end of one task, or its return to the to-do list when a later attempt may end better."""
    outcome = visit.outcome
    if may_pass(outcome) and task.request.attempt < manners.retries:
        waits = isinstance(outcome, Fetched) and outcome.status not in NO_RETRY_WAIT
        return Completion(lease, task, visit, None, retry_in_s=manners.retry_wait_s * 2**task.request.attempt if waits else 0.0)
    if isinstance(outcome, Redirected) and candidates and _is_respelled(task, outcome):  # the server insists on it: so it is asked for from now on
        return Completion(lease, replace(task, request=replace(task.request, url=outcome.target, hops=task.request.hops + 1)), visit, None)
    reason, rule = reason_of(outcome), ""
    match outcome:
        case Redirected() if not candidates:
            reason, rule = Reason.BAD_ANSWER, "too many redirects"
        case Redirected(target=target):
            rule = target
        case Skipped(rule=said, line=line):
            rule = f"robots.txt line {line}: {said}" if line else said
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
    return Completion(lease, task, visit, reason, rule, document, candidates)


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
    return (Reason.NEEDS_SCRIPT, "almost no text, and an element that a script fills") if document.needs_script else (Reason.OK, "")


def with_its_cookies(visit: Visit) -> Request | None:
    """The request to send once more when a redirect led to its own URL and set cookies: the same, with these; None: it did not, or has them."""
    request = visit.request
    match visit.outcome:
        case Redirected(target=target, headers=headers) if target == request.url and not request.fields:
            pairs = [field.partition(";")[0].strip() for field in headers.all("set-cookie")]
            cookies = "; ".join(pair for pair in pairs if "=" in pair[1:] and pair.isascii() and pair.isprintable())
            return replace(request, fields=(f"Cookie: {cookies}",)) if cookies else None
        case _:
            return None


def recognised(task: Task, visit: Visit) -> Visit:
    """The visit as Unchanged when a server without validators sent the bytes that we hold: nothing is understood twice."""
    match visit.outcome:
        case Fetched(status=200, headers=headers, body=body) if task.held and body_digest(body) == task.held:
            return replace(visit, outcome=Unchanged(headers, 200))
        case _:
            return visit


def bug(lease: Lease, task: Task, visit: Visit, detail: str) -> Completion:
    """A failure of ours: recorded as what it is, and the crawl goes on."""
    broken = Visit(visit.request, visit.started, visit.took_s, Failed(Cause.BUG, detail), visit.wire_bytes, visit.address)
    return Completion(lease, task, broken, Reason.BUG, detail)
