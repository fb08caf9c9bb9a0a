"""Messages between the parts of a split crawl, in numbered batches.

URLs of another part's hosts are inserted into `outbox` by the transaction that discovers them. `next_batch` assigns
rows to the next batch and gives it a number; `delete_batch` deletes them once the batch is delivered. The receiver
applies batches in the order of their numbers, in the transaction that stores their content (`is_next`). Every step is
idempotent: after a crash it is repeated, and each message is applied exactly once.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeVar

from periplus.model.frontier import Candidate, HandedBatch, PartState, SideRequest, StoredRobots
from periplus.model.visit import Purpose, Reason, Request
from periplus.model.web import HostKey, Origin, SiteKey, Url
from periplus.store.notes import note, put_note
from periplus.store.statements import Statements
from periplus.urls.canonical import url_id
from periplus.urls.hosts import WebPart, parse_part

T = TypeVar("T")
LEFT_ASIDE: Final = frozenset({Reason.SCOPE, Reason.RESOURCE})  # not sent, as no part fetches them
AT_ONCE = 2_000  # messages per batch, which is one transaction: as many as a merge of PostgreSQL's inbox
PART, IDENTITY = "part", "exchange-id"  # in meta: number of this part; identity, new if the part is created again
# in meta, followed by a part's number: last batch sent to it, last batch applied from it, and its first seen identity
_SENT, _TAKEN, _PEER = "sent:", "taken:", "peer:"


# Messages.


def of_candidate(candidate: Candidate) -> str:
    values = (
        candidate.host,
        candidate.site,
        candidate.reason,
        candidate.depth,
        candidate.rule,
        candidate.hops,
        candidate.in_sitemap,
        candidate.page,
        candidate.learned,
    )
    return json.dumps(["url", candidate.url, *values, candidate.vouched])


def of_side_request(side_request: SideRequest) -> str:
    request = side_request.request
    values = (request.url, request.purpose, request.depth, request.hops, request.attempt, request.about)
    return json.dumps(["ask", side_request.host, side_request.site, values, side_request.priority, side_request.in_s])


def of_robots(answer: StoredRobots) -> str:
    return json.dumps(["robots", *astuple(answer)], default=lambda body: b64encode(body).decode())


class Messages(NamedTuple):
    """Parsed messages, by kind, in order."""

    candidates: tuple[Candidate, ...]
    side_requests: tuple[SideRequest, ...]
    robots: tuple[StoredRobots, ...]


def messages_read(lines: Iterable[str]) -> Messages:
    candidates, side_requests, robots = [], [], []
    for kind, *values in map(json.loads, lines):
        match kind:
            case "url":
                url, host, site, reason, *others = values
                place = (Url(url), url_id(Url(url)), HostKey(host), SiteKey(site))
                candidates.append(Candidate(*place, Reason(reason), *others))
            case "ask":
                host, site, (url, purpose, *others), priority, in_s = values
                request = Request(Url(url), Purpose(purpose), *others)
                side_requests.append(SideRequest(HostKey(host), SiteKey(site), request, priority, in_s))
            case _:
                origin, status, cause, body, *times = values
                robots.append(StoredRobots(Origin(origin), status, cause, b64decode(body), *times))
    return Messages(tuple(candidates), tuple(side_requests), tuple(robots))


# Operations on a collection, all within the caller's transaction.


def part_in(statements: Statements) -> WebPart | None:
    """The part of a split crawl that the collection is, or None if the crawl is not split."""
    text = note(statements, PART)
    return parse_part(text) if text else None


def peer(statements: Statements, part: int, identity: str) -> str:
    """First identity seen of another part; stores the given one if there is none."""
    before = note(statements, f"{_PEER}{part}")
    if not before:
        put_note(statements, f"{_PEER}{part}", identity)
    return before or identity


def receivers(statements: Statements, least: int) -> list[int]:
    """Parts with at least `least` unsent messages or an unfinished batch."""
    find = "SELECT part FROM outbox GROUP BY part HAVING count(*) >= ? OR max(number) IS NOT NULL ORDER BY part"
    return [int(part) for (part,) in statements.rows(find, (least,))]


def next_batch(statements: Statements, receiver: int) -> HandedBatch | None:
    """Next unsent batch for a part, or None."""
    rows = statements.rows
    first = rows("SELECT min(number) FROM outbox WHERE part = ?", (receiver,))[0][0]
    if first is None:
        if not rows("SELECT 1 FROM outbox WHERE part = ? LIMIT 1", (receiver,)):
            return None
        first = _last(statements, _SENT, receiver) + 1
        put_note(statements, f"{_SENT}{receiver}", str(first))
        unsent = f"SELECT id FROM outbox WHERE part = ? ORDER BY id LIMIT {AT_ONCE}"
        statements.change(f"UPDATE outbox SET number = ? WHERE id IN ({unsent})", (first, receiver))
    find = "SELECT message FROM outbox WHERE part = ? AND number = ? ORDER BY id"
    return HandedBatch(receiver, int(first), tuple(message for (message,) in rows(find, (receiver, first))))


def delete_batch(statements: Statements, batch: HandedBatch) -> None:
    """Deletes the messages of a delivered batch."""
    statements.change("DELETE FROM outbox WHERE part = ? AND number = ?", (batch.part, batch.number))


def is_next(statements: Statements, sender: int, number: int) -> bool:
    """Returns whether this batch is the sender's next; if so, marks it as applied."""
    if _last(statements, _TAKEN, sender) + 1 != number:
        return False
    put_note(statements, f"{_TAKEN}{sender}", str(number))
    return True


def state_of(statements: Statements, *, is_idle: bool) -> PartState:
    """State of the exchange. is_idle: read before, since only a batch applied after that can add URLs."""
    is_handed_over = not statements.rows("SELECT 1 FROM outbox LIMIT 1")
    numbers: dict[str, dict[int, int]] = {_SENT: {}, _TAKEN: {}}
    for name, value in statements.rows("SELECT name, value FROM meta WHERE name LIKE 'sent:%' OR name LIKE 'taken:%'"):
        kind, colon, part = name.rpartition(":")
        numbers[kind + colon][int(part)] = int(value)
    identity = note(statements, IDENTITY)
    return PartState(identity, is_idle and is_handed_over, numbers[_SENT], numbers[_TAKEN])


def _last(statements: Statements, kind: str, part: int) -> int:
    """Number of the last batch, locked within this transaction."""
    return int(note(statements, f"{kind}{part}", for_update=True) or 0)


class PartStore(Protocol):
    """The part of `model.ports.RunStore` for split crawls."""

    @abstractmethod
    def change(self, action: Callable[[Statements], T]) -> T:
        """Runs an idempotent action in one transaction and returns its result. Raises StoreError."""

    @abstractmethod
    def idle(self, now: float) -> bool: ...

    def receivers(self, least: int) -> Sequence[int]:
        return self.change(partial(receivers, least=least))

    def next_batch(self, receiver: int) -> HandedBatch | None:
        return self.change(partial(next_batch, receiver=receiver))

    def delete_batch(self, batch: HandedBatch) -> None:
        self.change(partial(delete_batch, batch=batch))

    def peer(self, part: int, identity: str) -> str:
        return self.change(partial(peer, part=part, identity=identity))

    def part_state(self, now: float) -> PartState:
        is_idle = self.idle(now)
        return self.change(partial(state_of, is_idle=is_idle))
