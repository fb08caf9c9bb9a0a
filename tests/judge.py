"""Checks that a crawl was complete and polite, from the server's log and the crawl's tables, not from its own output.

Each function returns the faults as lines for the message of a failed test.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from testweb.log import Entry, Log

# A request arrives later than it starts, so a gap between arrivals may be shorter than the gap between starts.
LATENESS_S = 0.02
SIDE = ("/robots.txt",)  # requested when needed; not a page

Ask = Callable[[str], list[tuple]]  # runs one SELECT on a crawl's database


def early_starts(log: Log, delay_s: float, lateness_s: float = LATENESS_S) -> list[str]:
    """Requests that arrived less than the delay after the previous request to their host arrived."""
    wrong = []
    for host in sorted(log.hosts()):
        for earlier, later in itertools.pairwise(log.of(host)):
            if (gap := later.arrived - earlier.arrived) < delay_s - lateness_s:
                wrong.append(f"{host}: {earlier.target} and {later.target} {gap:.3f} s apart, not {delay_s:g}")
    return wrong


def meetings(log: Log) -> list[str]:
    """Requests that arrived during another request to their host. A killed or frozen client may cause one."""
    return [f"{entry.host}: {entry.target} was number {entry.at_once} at once" for entry in log if entry.at_once > 1]


def overlaps(log: Log, delay_s: float, lateness_s: float = LATENESS_S) -> list[str]:
    """Requests that arrived before the previous request to their host had ended and the delay had passed.
    Allowed only where the process of the previous request was killed.
    """
    wrong = []
    for host in sorted(log.hosts()):
        for earlier, later in itertools.pairwise(log.of(host)):
            if later.arrived < max(earlier.ended, earlier.arrived + delay_s) - lateness_s:
                wrong.append(
                    f"{host}: {later.target} came {earlier.ended - later.arrived:.3f} s before {earlier.target} ended"
                )
    return wrong


def pages_of(entries: Iterable[Entry]) -> Counter[tuple[str, str]]:
    """Number of requests per (host, target), without robots.txt."""
    return Counter((entry.host, entry.target) for entry in entries if entry.target not in SIDE)


def repeats(log: Log) -> int:
    """Number of requests for pages that had already been requested."""
    asked = pages_of(log)
    return asked.total() - len(asked)


def never_asked(log: Log, pages: Collection[tuple[str, str]]) -> list[str]:
    """The (host, target) that were never requested."""
    asked = pages_of(log)
    return [f"{host}{target}" for host, target in sorted(pages) if (host, target) not in asked]


def longest_pause(log: Log, host: str, since: float, until: float) -> float:
    """The longest time without a request to the host, between since and until (monotonic)."""
    times = [since, *(entry.arrived for entry in log.of(host) if since < entry.arrived < until), until]
    return max(later - earlier for earlier, later in itertools.pairwise(times))


@dataclass(frozen=True, slots=True)
class Question:
    """A fault that the tables of a crawl must not have. The SQL runs on SQLite and PostgreSQL."""

    what: str
    select: str  # each row is one fault


ALWAYS = (  # at any moment between two transactions
    Question(
        "pending is not the number of entries",
        "SELECT id, pending FROM host h WHERE pending <> (SELECT count(*) FROM queue q WHERE q.host_id = h.id)",
    ),
    Question(
        "waiting without an entry",
        "SELECT id FROM url u WHERE reason = 'waiting' AND NOT EXISTS (SELECT 1 FROM queue q WHERE q.url_id = u.id)",
    ),
    Question(
        "an entry of nothing",
        "SELECT q.url_id FROM queue q WHERE q.url_id <> 0 AND NOT EXISTS (SELECT 1 FROM url u WHERE u.id = q.url_id)",
    ),
    Question(
        "a link to nothing",
        ("SELECT l.target FROM link l WHERE NOT EXISTS (SELECT 1 FROM url u WHERE u.id = l.target)"),
    ),
    Question(
        "a link from no page",
        "SELECT l.source FROM link l WHERE NOT EXISTS (SELECT 1 FROM visit v WHERE v.url_id = l.source)",
    ),
    Question(
        "a page without a visit",
        "SELECT p.url_id FROM page p WHERE NOT EXISTS (SELECT 1 FROM visit v WHERE v.url_id = p.url_id)",
    ),
    Question(
        "read, and no page",
        "SELECT id FROM url u WHERE reason = 'ok' AND NOT EXISTS (SELECT 1 FROM page p WHERE p.url_id = u.id)",
    ),
)
AT_THE_END = (  # when a crawl ended without being killed
    Question("a lease left", "SELECT id FROM host WHERE lease_by IS NOT NULL"),
    Question("a worker left", "SELECT name FROM worker"),
    Question("work left", "SELECT id FROM host WHERE pending > 0"),
    Question("a run that never ended", "SELECT id FROM run WHERE state = 'running'"),
)


def unsound(ask: Ask, questions: Iterable[Question] = (*ALWAYS, *AT_THE_END)) -> list[str]:
    """The faults in the tables."""
    found = [(question.what, ask(question.select)) for question in questions]
    return [f"{what}: {len(rows)}, first {rows[0]}" for what, rows in found if rows]
