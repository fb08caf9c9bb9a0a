"""Was a crawl whole and polite, whatever was done to it?

Judged from the server's log of arrivals and ends, and from the tables.

Never by what a worker says of itself. Each function returns what is wrong, as lines that a failed test can
show; nothing, one hopes.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from testweb.log import Entry, Log

# an arrival is later than its start by what the way takes: a gap may look shorter than it was, by so much at most
LATENESS_S = 0.02
SIDE = ("/robots.txt",)  # asked for by whoever needs it, and no page

Ask = Callable[[str], list[tuple]]  # runs one SELECT on a crawl's database


def early_starts(log: Log, delay_s: float, lateness_s: float = LATENESS_S) -> list[str]:
    """Requests that arrived sooner than the delay after the previous one of their host had arrived."""
    wrong = []
    for host in sorted(log.hosts()):
        for earlier, later in itertools.pairwise(log.of(host)):
            if (gap := later.arrived - earlier.arrived) < delay_s - lateness_s:
                wrong.append(f"{host}: {earlier.target} and {later.target} {gap:.3f} s apart, not {delay_s:g}")
    return wrong


def meetings(log: Log) -> list[str]:
    """Requests that arrived while another of their host was under way.

    Of a client killed, frozen or cut off one may still be on the wire.
    """
    return [f"{entry.host}: {entry.target} was number {entry.at_once} at once" for entry in log if entry.at_once > 1]


def overlaps(log: Log, delay_s: float, lateness_s: float = LATENESS_S) -> list[str]:
    """Requests that arrived sooner than the delay after the previous one of their host had ended:
    allowed only for one whose process was gone.
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
    """How often each (host, target) was asked for, robots.txt aside."""
    return Counter((entry.host, entry.target) for entry in entries if entry.target not in SIDE)


def repeats(log: Log) -> int:
    """Requests for pages that had been asked for before."""
    asked = pages_of(log)
    return asked.total() - len(asked)


def never_asked(log: Log, pages: Collection[tuple[str, str]]) -> list[str]:
    """Which of the (host, target) the server never saw."""
    asked = pages_of(log)
    return [f"{host}{target}" for host, target in sorted(pages) if (host, target) not in asked]


def longest_pause(log: Log, host: str, since: float, until: float) -> float:
    """The longest time between since and until (monotonic) in which nothing of the host arrived."""
    times = [since, *(entry.arrived for entry in log.of(host) if since < entry.arrived < until), until]
    return max(later - earlier for earlier, later in itertools.pairwise(times))


@dataclass(frozen=True, slots=True)
class Question:
    """Something that no crawl's tables may show. Plain SQL: every database that keeps crawls understands it."""

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
        "a page that nobody visited",
        "SELECT p.url_id FROM page p WHERE NOT EXISTS (SELECT 1 FROM visit v WHERE v.url_id = p.url_id)",
    ),
    Question(
        "read, and no page",
        "SELECT id FROM url u WHERE reason = 'ok' AND NOT EXISTS (SELECT 1 FROM page p WHERE p.url_id = u.id)",
    ),
)
AT_THE_END = (  # when a crawl ended by itself
    Question("a lease left", "SELECT id FROM host WHERE lease_by IS NOT NULL"),
    Question("a worker left", "SELECT name FROM worker"),
    Question("work left", "SELECT id FROM host WHERE pending > 0"),
    Question("a run that never ended", "SELECT id FROM run WHERE state = 'running'"),
)


def unsound(ask: Ask, questions: Iterable[Question] = (*ALWAYS, *AT_THE_END)) -> list[str]:
    """What is wrong in the tables."""
    found = [(question.what, ask(question.select)) for question in questions]
    return [f"{what}: {len(rows)}, such as {rows[0]}" for what, rows in found if rows]
