"""What one collection of a web hands over to the others that share it: messages, in numbered batches.

What is met of another part's hosts stands in `outbox`, entered by the transaction that met it. `bundled` fixes the rows
of the next batch and its number; `written` takes them out once the batch lies where its reader finds it. The reader
takes batches by number, in the transaction that enters what they say (`is_next`). So whoever is killed, wherever, does
the last step again, and no message is lost or taken twice.
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
from periplus.store.dialect import Statements
from periplus.store.notes import note, put_note
from periplus.urls.canonical import url_id
from periplus.urls.parts import WebPart, part_named

T = TypeVar("T")
LEFT_ASIDE: Final = frozenset({Reason.SCOPE, Reason.RESOURCE})  # what no part fetches is known where it was met
AT_ONCE = 2_000  # messages of a batch, which is taken in one transaction: as many as PostgreSQL's inbox merges in one
PART, IDENTITY = "part", "exchange-id"  # in meta: which part this is, and which of those that had its number so far
# in meta, before a part's number: the last batch to it, and from it; the identity by which it was met first
_SENT, _TAKEN, _PEER = "sent:", "taken:", "peer:"


# Messages.


def of_candidate(one: Candidate) -> str:
    values = (one.host, one.site, one.reason, one.depth, one.rule, one.hops, one.in_sitemap, one.page, one.learned)
    return json.dumps(["url", one.url, *values, one.vouched])


def of_side_request(one: SideRequest) -> str:
    ask = one.request
    values = (ask.url, ask.purpose, ask.depth, ask.hops, ask.attempt, ask.about)
    return json.dumps(["ask", one.host, one.site, values, one.priority, one.in_s])


def of_robots(one: StoredRobots) -> str:
    return json.dumps(["robots", *astuple(one)], default=lambda body: b64encode(body).decode())


class Messages(NamedTuple):
    """What messages say, each kind in order."""

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


# A collection's side of the exchange. All within the caller's transaction.


def part_in(statements: Statements) -> WebPart | None:
    """Which part of a web the collection is; None: it is all of its web."""
    text = note(statements, PART)
    return part_named(text) if text else None


def peer(statements: Statements, part: int, identity: str) -> str:
    """The identity by which a part was met first: this one, if it never was."""
    before = note(statements, f"{_PEER}{part}")
    if not before:
        put_note(statements, f"{_PEER}{part}", identity)
    return before or identity


def receivers(statements: Statements, least: int) -> list[int]:
    """The parts for which so many messages wait, or a batch that was begun."""
    find = "SELECT part FROM outbox GROUP BY part HAVING count(*) >= ? OR max(number) IS NOT NULL ORDER BY part"
    return [int(part) for (part,) in statements.rows(find, (least,))]


def bundled(statements: Statements, receiver: int) -> HandedBatch | None:
    """The first batch for a part that is not written yet; None: there is nothing for it."""
    rows = statements.rows
    first = rows("SELECT min(number) FROM outbox WHERE part = ?", (receiver,))[0][0]
    if first is None:
        if not rows("SELECT 1 FROM outbox WHERE part = ? LIMIT 1", (receiver,)):
            return None
        first = _last(statements, _SENT, receiver) + 1
        put_note(statements, f"{_SENT}{receiver}", str(first))
        some = f"SELECT id FROM outbox WHERE part = ? ORDER BY id LIMIT {AT_ONCE}"
        statements.change(f"UPDATE outbox SET number = ? WHERE id IN ({some})", (first, receiver))
    find = "SELECT message FROM outbox WHERE part = ? AND number = ? ORDER BY id"
    return HandedBatch(receiver, int(first), tuple(message for (message,) in rows(find, (receiver, first))))


def written(statements: Statements, batch: HandedBatch) -> None:
    """The batch lies where its reader finds it."""
    statements.change("DELETE FROM outbox WHERE part = ? AND number = ?", (batch.part, batch.number))


def is_next(statements: Statements, sender: int, number: int) -> bool:
    """Whether this batch of a sender is the next; counted as taken, if so."""
    if _last(statements, _TAKEN, sender) + 1 != number:
        return False
    put_note(statements, f"{_TAKEN}{sender}", str(number))
    return True


def state_of(statements: Statements, *, is_idle: bool) -> PartState:
    """How the exchange stands. is_idle: as it was before: what is met later, a batch that was taken since brings."""
    is_handed_over = not statements.rows("SELECT 1 FROM outbox LIMIT 1")
    numbers: dict[str, dict[int, int]] = {_SENT: {}, _TAKEN: {}}
    for name, value in statements.rows("SELECT name, value FROM meta WHERE name LIKE 'sent:%' OR name LIKE 'taken:%'"):
        kind, colon, part = name.rpartition(":")
        numbers[kind + colon][int(part)] = int(value)
    identity = note(statements, IDENTITY)
    return PartState(identity, is_idle and is_handed_over, numbers[_SENT], numbers[_TAKEN])


def _last(statements: Statements, kind: str, part: int) -> int:
    """The number of the last batch; nobody else counts it up within this transaction."""
    return int(note(statements, f"{kind}{part}", for_update=True) or 0)


class PartStore(Protocol):
    """The part of `model.ports.RunStore` by which parts of a web exchange URLs."""

    @abstractmethod
    def change(self, action: Callable[[Statements], T]) -> T:
        """The action's result, in one transaction. It must bear to be done twice. Raises StoreError."""

    @abstractmethod
    def idle(self, now: float) -> bool: ...

    def receivers(self, least: int) -> Sequence[int]:
        return self.change(partial(receivers, least=least))

    def next_batch(self, receiver: int) -> HandedBatch | None:
        return self.change(partial(bundled, receiver=receiver))

    def batch_written(self, batch: HandedBatch) -> None:
        self.change(partial(written, batch=batch))

    def peer(self, part: int, identity: str) -> str:
        return self.change(partial(peer, part=part, identity=identity))

    def part_state(self, now: float) -> PartState:
        is_idle = self.idle(now)
        return self.change(partial(state_of, is_idle=is_idle))
