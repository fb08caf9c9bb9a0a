"""When may a host be asked again? Pure: given what happened and the time, the host's next Pace.

Promises, over any history: a request starts no sooner than the host's delay after the one before it started; a wait that the server asked
for (Retry-After) is kept, and where it is longer than the limit the host is given up; each refusal for load (429, 503) halves the rate,
though to no longer gaps than the server asked for, each good answer gives a tenth of it back; a failure of the server as a whole
suspends it for a time that doubles, until it answers or is given up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime

from periplus.model.visit import Cause, Failed, Fetched, Outcome, Visit
from periplus.settings import DELAY_FLOOR_S, Manners

RATE_FLOOR = 1 / 64  # six refusals in a row; slower than that a host is as good as suspended
UNPACED_S = 0.1  # the delay that a refused rate is halved from where none was set (hosts of one's own)
STRIKES_IF_NEVER_SEEN = 2  # a host that never answered is most likely a wrong name: no long siege
_HOST_FAILURES = frozenset({Cause.NAME, Cause.CONNECT, Cause.TLS, Cause.TIMEOUT, Cause.FIRST_BYTE, Cause.RESET, Cause.PROXY})


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast one host may be asked. Times in seconds; `not_before` on the clock that the caller uses throughout."""

    delay_s: float
    rate: float = 1.0  # share of the full rate, RATE_FLOOR to 1
    not_before: float = 0.0
    strikes: int = 0  # failures of the host in a row
    answered: bool = False  # whether the host ever answered
    waits_for: str = ""  # what a user is told while it waits

    @property
    def gap_s(self) -> float:
        """Seconds between two starts at the present rate."""
        if self.rate >= 1:
            return self.delay_s
        return max(self.delay_s, UNPACED_S) / self.rate

    def with_delay(self, delay_s: float) -> Pace:
        return replace(self, delay_s=delay_s)


def delay_for(manners: Manners, mine: bool, crawl_delay_s: float | None) -> float:
    """The seconds between starts that a host gets: ours or its robots.txt's, whichever is longer, never under the floor."""
    asked = 0.0 if crawl_delay_s is None or (mine and manners.ignore_robots) else crawl_delay_s
    delay = max(manners.delay_s, asked)
    return delay if mine else max(delay, DELAY_FLOOR_S)


def retry_after_s(value: str, now: float) -> float | None:
    """Seconds to wait by a Retry-After field (RFC 9110, 10.2.3: seconds or a date); None when it says nothing usable.

    now: seconds since the epoch. A date that has passed gives 0.
    """
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:  # asctime's form names no zone, and is GMT (RFC 9110, 5.6.7): never the zone of this machine
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def started(pace: Pace, now: float) -> Pace:
    """After a request was started at `now`."""
    return replace(pace, not_before=max(pace.not_before, now + pace.gap_s), waits_for="delay")


def finished(pace: Pace, visit: Visit, manners: Manners, now: float) -> Pace:
    """After a request ended at `now` (on the caller's clock) with this visit."""
    match visit.outcome:
        case Fetched(status=429 | 503 as status, headers=headers):
            return _refused(pace, status, retry_after_s(headers.get("retry-after"), visit.started + visit.took_s), manners, now)
        case Failed(cause=cause) if cause in _HOST_FAILURES:
            return struck(pace, cause.value, manners, now)
        case Failed():
            return pace
        case _:
            better = replace(pace, rate=min(1.0, pace.rate + 0.1), strikes=0, answered=True)
            return replace(better, not_before=max(pace.not_before, _heard_at(visit, now) + better.gap_s))


def _refused(pace: Pace, status: int, asked_s: float | None, manners: Manners, now: float) -> Pace:
    """After a refusal for load. asked_s: the server's Retry-After, which says how slow is slow enough: 6 pages that each refused twice
    with 2 s took 342 s while every refusal halved the rate."""
    most_s, why = manners.max_retry_after_s, f"{status}"
    enough = max(pace.delay_s, UNPACED_S) / asked_s if asked_s else 0.0
    slower = replace(pace, rate=max(RATE_FLOOR, pace.rate / 2, min(pace.rate, enough)), answered=True)
    if asked_s is None:
        asked_s, slower = manners.retry_wait_s * 2 ** min(pace.strikes, 16), replace(slower, strikes=pace.strikes + 1)
    elif asked_s > most_s:
        slower, why = replace(slower, strikes=manners.host_strikes), f"{status}, Retry-After {asked_s:g} s is longer than max-retry-after-s {most_s:g}"
    return replace(slower, not_before=max(pace.not_before, now + max(slower.gap_s, min(asked_s, most_s))), waits_for=why)


def _heard_at(visit: Visit, now: float) -> float:
    """When the answer's first byte came, for an exchange that ended at `now`.

    The delay counts from there: a request reaches the server some time after we started it (a new connection takes longer
    than a kept one), and only an answer proves that it is there. Counted from the start, the server saw gaps up to a tenth too short.
    """
    return now - max(0.0, visit.took_s - visit.first_byte_s)


def suspended(pace: Pace, until: float, why: str) -> Pace:
    """A pace that waits until then at least, for a reason that is shown."""
    return replace(pace, not_before=max(pace.not_before, until), waits_for=why)


def struck(pace: Pace, why: str, manners: Manners, now: float) -> Pace:
    """After a failure of the host as a whole: a wait that doubles with each in a row, as often as it takes to give the host up (where others' robots.txt
    lead to it, it is asked further)."""
    wait = manners.retry_wait_s * 2 ** min(pace.strikes, manners.host_strikes, 16)
    return suspended(replace(pace, strikes=pace.strikes + 1), now + wait, why)


def given_up(pace: Pace, manners: Manners) -> bool:
    """Whether the host has failed so often in a row that this run leaves it."""
    return pace.strikes >= (manners.host_strikes if pace.answered else min(STRIKES_IF_NEVER_SEEN, manners.host_strikes))


def may_pass(outcome: Outcome) -> bool:
    """Whether a later attempt may end better: throttling, server errors, lost connections."""
    match outcome:
        case Fetched(status=status):
            return status in (408, 425, 429) or 500 <= status < 600  # 999 and its kind are refusals
        case Failed(cause=cause):
            return cause in _HOST_FAILURES and cause is not Cause.TLS
        case _:
            return False
