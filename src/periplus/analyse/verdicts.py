"""What is to be thought of a link's target, after all that was seen of it?

Refused is not broken, one failure is no alarm, and what was not asked for is not judged. In this order:
what cannot be asked at all; what was not asked; the latest attempt, if it brought an answer that settles the matter; two
failures far enough apart; else suspect, with the time of the next attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from periplus.model.audit import FragmentVerdict, Verdict
from periplus.model.visit import Cause, Cut, Reason

PERMANENT = frozenset({301, 308})
REFUSALS = frozenset({401, 402, 403, 405, 406, 407, 429, 451, 999})  # 405 and 406 to a plain GET are walls against robots
REDIRECTS = frozenset({301, 302, 303, 307, 308})
PASSING = frozenset({408, 421, 425})  # 4xx that speak of this exchange, not of the page
LONG_CHAIN = 5  # hops; crawlers for search engines give up after 5 to 10 (RFC 9309 2.3.1.2 asks for at least five)
NET_HOSTS = 3  # of other sites: one or two that are silent are more often gone than a sign of our own net
NET_SHARE = 0.9  # of them silent: on a machine without a net one mirror of dozens still answered
SILENT = frozenset({Cause.NAME, Cause.CONNECT, Cause.TIMEOUT})
_GONE = {Cause.NAME: "there is no host of that name", Cause.CONNECT: "nothing answers at that host and port"}
_FAILING = {
    Cause.TIMEOUT: "it did not answer in time",
    Cause.FIRST_BYTE: "it took the question and sent nothing",
    Cause.RESET: "the connection was lost",
    Cause.NOT_HTTP: "what it sends is not HTTP",
    Cause.HEADER_LIMIT: "its header is endless",
}
_OURS = {Cause.PRIVATE: "a private address, not asked", Cause.PROXY: "the proxy failed", Cause.CANCELLED: "we stopped", Cause.BUG: "a fault of ours"}
_CUT_SHORT = {
    Cut.SHORT: "the body ended before its declared length",
    Cut.BAD_ENCODING: "the body cannot be decompressed",
    Cut.RATIO_LIMIT: "the body swells beyond all measure when decompressed",
    Cut.TIME_LIMIT: "the body did not end in time",
}
_NOT_ASKED = {
    Reason.ROBOTS_UNREACHABLE: "robots.txt is out of reach, which forbids everything",
    Reason.HOST_DOWN: "its host was given up before its turn came",
    Reason.PRIVATE: "a private address, not asked",
    Reason.BUG: "a fault of ours",
    Reason.SCHEME: "no crawler fetches this scheme",
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One GET of the target, or of what its redirects lead to. A failure of its host (no such name) counts as one."""

    at: float  # seconds since the epoch, UTC
    status: int  # of the last answer; 0: none came
    cause: Cause | None = None  # why none came
    cut: Cut = Cut.NONE


@dataclass(frozen=True, slots=True)
class Hop:
    """One redirect on the way, and where it leads."""

    status: int
    target: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of one link's target."""

    reason: Reason = Reason.OK  # of the URL, in the collection
    attempts: Sequence[Attempt] = ()  # oldest first
    hops: Sequence[Hop] = ()  # redirects of the latest attempt, in order
    circle: bool = False  # these come back to where they were: the status of such an attempt is that of its last redirect
    looks_missing: str = ""  # why it seems an error page, from `analyse.soft404`
    problem: str = ""  # why it can never work: no URL, a mail address that is none
    fragment: FragmentVerdict = FragmentVerdict.TOP


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, and why, as half a sentence."""

    verdict: Verdict
    why: str
    ask_again_at: float = 0.0  # seconds since the epoch: not settled before a further attempt then; 0.0: settled
    better: str = ""  # MOVED: what the link should name


def net_seems_down(hosts: int, silent: int) -> bool:
    """Whether so many silent hosts of other sites speak against our own net. A probe decides: see `api.checking`."""
    return hosts >= NET_HOSTS and silent >= NET_SHARE * hosts


def judged(evidence: Evidence, *, spacing_s: float) -> Judgement:
    """The verdict on a target. spacing_s: between two failures that shall make one verdict."""
    if evidence.problem:
        return Judgement(Verdict.BROKEN, evidence.problem)
    if evidence.reason is Reason.ROBOTS:
        return Judgement(Verdict.REFUSED, "robots.txt disallows it")
    if not evidence.attempts:
        return Judgement(Verdict.UNCHECKED, _NOT_ASKED.get(evidence.reason, "not asked for"))
    attempts = [attempt for attempt in evidence.attempts if attempt.cause not in _OURS]
    if not attempts:
        return Judgement(Verdict.UNCHECKED, _OURS[evidence.attempts[-1].cause or Cause.BUG])
    latest = _of_attempt(attempts[-1])
    if latest.verdict is Verdict.REFUSED:
        return latest
    if latest.verdict is Verdict.OK:
        return _alive(evidence, latest.why)
    if evidence.circle:
        latest = Judgement(Verdict.BROKEN, "its redirects lead in a circle")
    return _confirmed(attempts, latest, spacing_s)


def _of_attempt(attempt: Attempt) -> Judgement:
    """What one attempt says by itself."""
    status, cause = attempt.status, attempt.cause
    if cause in _GONE:
        return Judgement(Verdict.BROKEN, _GONE[cause])
    if cause is Cause.TLS:
        return Judgement(Verdict.SUSPECT, "its certificate or encryption does not hold")
    if cause in _FAILING:
        return Judgement(Verdict.SERVER_ERROR, _FAILING[cause])
    if status in REFUSALS:
        return Judgement(Verdict.REFUSED, f"it answers {status}: refused to us, perhaps not to others")
    if status in PASSING or 500 <= status < 600:
        return Judgement(Verdict.SERVER_ERROR, f"it answers {status}")
    if 400 <= status < 500:
        return Judgement(Verdict.BROKEN, f"it answers {status}")
    if status in REDIRECTS:
        return Judgement(Verdict.BROKEN, f"it answers {status} and leads nowhere")
    if attempt.cut in _CUT_SHORT:
        return Judgement(Verdict.SUSPECT, _CUT_SHORT[attempt.cut])
    if 200 <= status < 400:
        return Judgement(Verdict.OK, f"it answers {status}")
    return Judgement(Verdict.SUSPECT, f"it answers {status}, which is no answer" if status else "no answer is recorded")


def _confirmed(attempts: Sequence[Attempt], latest: Judgement, spacing_s: float) -> Judgement:
    """A failure stands when there was another at least spacing_s before it, and no answer between them."""
    last = since = attempts[-1].at
    for attempt in reversed(attempts):
        if _of_attempt(attempt).verdict in (Verdict.OK, Verdict.REFUSED):
            break
        since = min(since, attempt.at)
    if since < last and last - since >= spacing_s:
        return latest
    return Judgement(Verdict.SUSPECT, f"{latest.why}; to be asked again", ask_again_at=since + spacing_s)


def _alive(evidence: Evidence, why: str) -> Judgement:
    """An answer came: is it the page, and where the link says?"""
    if evidence.looks_missing:
        return Judgement(Verdict.MISSING, evidence.looks_missing)
    if evidence.fragment is FragmentVerdict.MISSING:
        return Judgement(Verdict.BROKEN, "the page is there, the place on it is not")
    hops = len(evidence.hops)
    if hops >= LONG_CHAIN:
        why += f" after {hops} redirects, where many programs give up"
    better = _moved_to(evidence.hops)
    if better:
        return Judgement(Verdict.MOVED, f"moved for good; {why}", better=better)
    return Judgement(Verdict.OK, why)


def _moved_to(hops: Sequence[Hop]) -> str:
    """How far the redirects are permanent from the first on; empty: not at all. What a temporary one hides is not to be linked to."""
    place = ""
    for hop in hops:
        if hop.status not in PERMANENT:
            break
        place = hop.target
    return place
