"""Several collections that share a web: each crawls its own domains and sends URLs of other domains to their owners.

The exchange has a folder of URL batches for each part, which reads and deletes them in order, and the folder `parts`
with the state of each part. For recovery after a kill see `store.exchange`.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from uuid import uuid4

import publicsuffixlist
import zstandard

from periplus.api.crawling import CrawlOrder
from periplus.errors import StoreError, UsageError
from periplus.model.frontier import PartState
from periplus.model.ports import CrawlHome, RunStore
from periplus.present.wording import count_of
from periplus.settings import Settings
from periplus.store.part_messages import AT_ONCE, IDENTITY, PART
from periplus.urls.hosts import WebPart, parse_part
from periplus_postgres.address import check_place, noted_place
from periplus_postgres.segments import ObjectStorage, object_storage

log = logging.getLogger(__name__)
TURN_S = 1.0  # interval between two exchanges
FLUSH_S = 5.0  # longest time that a busy part keeps an incomplete batch
PLACE = "exchange"  # in meta
_BATCH, _STATE, _STATES = ".urls.zst", ".json", "parts"


def check_part(settings: Settings) -> None:
    """Raises UsageError for options that need requests to hosts of other parts."""
    asks_others = {
        "--render": settings.rendering.render != "never",
        "--login": bool(settings.identity.login),
        "--from-archive": bool(settings.past.from_archive),
    }
    for flag in (flag for flag, is_given in asks_others.items() if is_given):
        raise UsageError(f"{flag} and --part exclude each other: a part requests only its own hosts")


def settled_part(home: CrawlHome, order: CrawlOrder) -> tuple[str, str]:
    """(part of the web that the collection is, exchange place).

    order: its part and place are stored in the collection; empty: as stored. Raises UsageError if they are missing or
    contradict the stored values, or for options that a part excludes.
    """
    part, place, noted = order.part, order.exchange, home.note(PART)
    if not (part or noted):
        raise UsageError("--exchange needs --part: the number of this collection among all, such as 2/4")
    if part and part != noted:
        part = str(parse_part(part))
        if noted or any(run.fetched for run in home.runs()):
            this = f"is part {noted}" if noted else "has pages of its whole web"
            raise UsageError(f"{home} {this} and cannot become part {part}: use `periplus split`")
        home.change_note(IDENTITY, lambda before: before or uuid4().hex)
        home.change_note(PART, lambda before: part)
    place = exchange_place(place)
    place = home.change_note(PLACE, lambda before: place or before)
    if not place:
        raise UsageError(
            f"{home} is part {noted or part} of its web: name the place where parts exchange URLs with --exchange"
        )
    check_part(order.settings)
    return noted or part, place


def exchange_place(place: str) -> str:
    """A place of the exchange in its stored form. Raises UsageError for a place that other processes cannot use."""
    check_place("exchange", place)
    return noted_place(place)


class UrlExchange:
    """A part's exchange with the others; created only by the process that holds the collection's crawl lock."""

    def __init__(self, store: RunStore, part: WebPart, place: str) -> None:
        """Raises UsageError if another part was restarted or has a different number of parts; StoreError."""
        self._store, self._part, self._place = store, part, place.rstrip("/")
        self._storages: dict[str, ObjectStorage] = {}
        self._turned = self._flushed = 0.0
        self._before: Mapping[int, PartState] = {}
        self._identity = self._tell(is_at_work=True).identity
        self._other_states()

    def turn(self) -> None:
        """Sends waiting URLs and applies received batches, at most once per TURN_S.

        Continues without exchange while the place is unavailable. Raises UsageError as `__init__`.
        """
        now = time.monotonic()
        if now - self._turned < TURN_S:
            return
        is_flush = now - self._flushed >= FLUSH_S
        try:
            self._give(1 if is_flush else AT_ONCE)
            self._take()
        except StoreError as error:
            log.warning("exchange=%s error=%s", self._place, error)
        self._turned = time.monotonic()
        if is_flush:
            self._flushed = self._turned

    def finish(self) -> str:
        """Sends and receives everything, once this part is idle.

        Returns why other parts may still send URLs, or an empty string if all parts are finished. That holds if all
        parts report that they are idle, their counters of sent and applied batches agree, and nothing changed since the
        previous call: new work always arrives in a batch, which makes the counters differ.
        """
        try:
            self._take()
            self._give(1)
            states = {**self._other_states(), self._part.number: self._tell(is_at_work=False)}
        except StoreError as error:
            return str(error)
        waits = _waits(states, self._part.of)
        is_same, self._before = states == self._before, states
        return waits if waits or is_same else "confirming"

    def close(self) -> None:
        for storage in self._storages.values():
            storage.close()

    def _at(self, folder: str) -> ObjectStorage:
        if folder not in self._storages:
            self._storages[folder] = object_storage(f"{self._place}/{folder}")
        return self._storages[folder]

    def _give(self, least: int) -> None:
        for receiver in self._store.receivers(least):
            while (batch := self._store.next_batch(receiver)) is not None:
                data = zstandard.compress("\n".join(batch.messages).encode())
                self._at(str(receiver)).put(f"{self._part.number:05}-{self._identity}-{batch.number:012}{_BATCH}", data)
                self._store.delete_batch(batch)

    def _take(self) -> None:
        here = self._at(str(self._part.number))
        batches = list(here.sizes(_BATCH))
        taken = dict(self._store.part_state(time.time()).taken) if batches else {}
        for name, _ in batches:
            of, identity, count = name.removesuffix(_BATCH).split("-")
            sender, number = int(of), int(count)
            self._recognise(sender, identity)
            if number == taken.get(sender, 0) + 1:
                messages = zstandard.decompress(_whole(here, name)).decode().split("\n")
                self._store.apply_batch(sender, number, messages, time.time())
                taken[sender] = number
            if number <= taken.get(sender, 0):
                here.delete(name)

    def _tell(self, *, is_at_work: bool) -> PartState:
        """Publishes the state of this part for the others."""
        state = self._store.part_state(time.time())
        state = state._replace(is_idle=state.is_idle and not is_at_work)
        values = {**state._asdict(), "parts": self._part.of, "suffixes": publicsuffixlist.__version__}
        self._at(_STATES).put(f"{self._part.number:05}{_STATE}", json.dumps(values).encode())
        return state

    def _other_states(self) -> Mapping[int, PartState]:
        """Published states of the other parts. Raises UsageError if one is incompatible."""
        states = {}
        own = (self._part.of, publicsuffixlist.__version__)
        for name, _ in self._at(_STATES).sizes(_STATE):
            number = int(name.removesuffix(_STATE))
            if number == self._part.number:
                continue
            values = json.loads(_whole(self._at(_STATES), name))
            if (theirs := (values.pop("parts"), values.pop("suffixes"))) != own:
                raise UsageError(
                    f"part {number} divides the web differently: (parts, version of the Public Suffix List) are "
                    f"{theirs} there and {own} here. Use the same number of parts and the same version of "
                    "publicsuffixlist."
                )
            sent, taken = ({int(part): last for part, last in values.pop(way).items()} for way in ("sent", "taken"))
            states[number] = PartState(**values, sent=sent, taken=taken)
            self._recognise(number, states[number].identity)
        return states

    def _recognise(self, number: int, identity: str) -> None:
        """Raises UsageError if a part's collection is not the one first seen under its number."""
        if self._store.peer(number, identity) != identity:
            raise UsageError(
                f"part {number} was restarted and lacks URLs that it had received. Restart all parts "
                f"(--fresh) with an empty exchange instead of {self._place}."
            )


def _whole(storage: ObjectStorage, name: str) -> bytes:
    """Current content of an object, which may have been replaced since it was listed."""
    with storage.open(name) as file:
        return file.read()


def _waits(states: Mapping[int, PartState], parts: int) -> str:
    """What is still in progress, in words; empty: nothing."""
    silent = [number for number in range(1, parts + 1) if number not in states]
    busy = [number for number, state in sorted(states.items()) if not state.is_idle]
    pairs = ((sender, receiver) for sender in states for receiver in states if sender != receiver)
    late = sum(states[sender].sent.get(to, 0) != states[to].taken.get(sender, 0) for sender, to in pairs)
    for numbers, what in ((silent, "has not started"), (busy, "is working")):
        if numbers:
            return f"part {', '.join(map(str, numbers))} {what}"
    return f"{count_of(late, 'batch', 'batches')} to be applied" if late else ""
