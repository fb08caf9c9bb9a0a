"""What does an exchange mean? From bytes on the wire to a Visit: pure, and total on whatever came."""

from __future__ import annotations

from periplus.acquire.inflate import inflate
from periplus.errors import InvalidUrl
from periplus.model.ports import Response
from periplus.model.visit import Cut, Failed, Fetched, Headers, Outcome, Purpose, Reason, Redirected, Skipped, Unchanged, Visit
from periplus.settings import FetchLimits
from periplus.urls.canonical import resolve

REDIRECTS = frozenset({301, 302, 303, 307, 308})
REFUSALS = frozenset({401, 403, 407, 429, 451, 999})  # 999: what LinkedIn and its kind answer to programs


def visit_of(response: Response, limits: FetchLimits) -> Visit:
    """One exchange as a Visit: redirects resolved, bodies inflated within limits."""
    outcome = _outcome(response, limits)
    return Visit(response.request, response.started, response.took_s, outcome, len(response.body), response.address, response.first_byte_s)


def _outcome(response: Response, limits: FetchLimits) -> Outcome:
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
    return Fetched(response.status, response.headers, body, cut)


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
