"""When should a page be asked for again? The rule, as figures and one function; the store keeps what it yields."""

from __future__ import annotations

from enum import StrEnum

from periplus.model.visit import FETCHED, STATE_OF, Reason, State

FIRST_INTERVAL_S = 86_400.0  # what people expect of a refresh that repeats by itself, and what the first figures are corrected from
SHORTEST_INTERVAL_S = 3_600.0  # a page that changes more often is a stream, and nobody's map shows it
LONGEST_INTERVAL_S = 30 * 86_400.0  # Nutch's default interval; beyond it what vanished would stay in the map for too long
GROWTH = 1.5  # unchanged pages are asked ever more seldom: seven steps from a day to two weeks and a half
SHRINKING = 0.5  # a changed page's interval falls faster than it grew: being late costs the reader, being early one 304
EARLY_SHARE = 0.1  # of the interval: a run every 24 hours must not pass over what is due a minute later


class Finding(StrEnum):
    """What a run found out about a page, compared with what was known before."""

    NEW = "new"  # fetched for the first time
    UNCHANGED = "unchanged"
    CHANGED = "changed"
    GONE = "gone"  # was fetched before, and cannot be now
    BACK = "back"  # the other way round
    UNREACHED = "unreached"  # not asked for: its host was given up before its turn


READ = FETCHED
ASKED_AGAIN = (
    READ
    | {reason for reason in Reason if STATE_OF[reason] is State.INVALID}
    | {Reason.REFUSED, Reason.REDIRECT, Reason.ROBOTS, Reason.ROBOTS_UNREACHABLE, Reason.HOST_DOWN, Reason.ALIVE}
)
"""What a refresh asks for: what was fetched, and what could not be. Aliases and what is out of scope are left aside."""


def next_interval_s(interval_s: float, finding: Finding) -> float:
    """Seconds until a page should be asked for again. interval_s: as it was until now."""
    if finding is Finding.UNCHANGED:
        return min(interval_s * GROWTH, LONGEST_INTERVAL_S)
    return max(interval_s * SHRINKING, SHORTEST_INTERVAL_S)


def finding_of(before: Reason, after: Reason, changed: bool) -> Finding:
    """changed: the content did, or the rule behind the reason."""
    if before in READ and after not in READ:
        return Finding.GONE
    if after in READ and before not in READ:
        return Finding.BACK
    return Finding.CHANGED if changed or before is not after else Finding.UNCHANGED
