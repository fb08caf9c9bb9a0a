"""Several collections that share a web: each crawls its own domains, and hands over what it meets of the others'.

Below the place of the exchange lies a folder for each part with the batches for it, which it takes in their order and
deletes, and the folder `parts` with what each says of itself. See `store.exchange` for what a kill leaves.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from uuid import uuid4

import publicsuffixlist
import zstandard

from periplus.errors import StoreError, UsageError
from periplus.model.frontier import PartState
from periplus.model.ports import CrawlHome, RunStore
from periplus.present.wording import count_of
from periplus.settings import Settings
from periplus.store.exchange import AT_ONCE, IDENTITY, PART
from periplus.store.postgres.address import check_place, noted_place
from periplus.store.segments import ObjectStorage, object_storage
from periplus.urls.parts import WebPart, part_named

log = logging.getLogger(__name__)
TURN_S = 1.0  # how often a crawl looks for batches
FLUSH_S = 5.0  # how long a part that is at work keeps what would not fill a batch
PLACE = "exchange"  # in meta
_BATCH, _STATE, _STATES = ".urls.zst", ".json", "parts"


def check_part(settings: Settings) -> None:
    """Raises UsageError for what a part of a web cannot do: it asks no host that is another part's."""
    asks_others = {
        "--render": settings.rendering.render != "never",
        "--login": bool(settings.identity.login),
        "--from-archive": bool(settings.past.from_archive),
    }
    for flag in (flag for flag, is_given in asks_others.items() if is_given):
        raise UsageError(f"{flag} and --part exclude each other: a part asks no host that is another part's")


def settled_part(home: CrawlHome, part: str, place: str) -> tuple[WebPart, str] | None:
    """Which part of its web a collection is, and where it exchanges URLs; None: it is all of its web.

    part, place: as a user names them, noted in the collection; empty: as they were noted. Raises UsageError where they
    are missing, or say otherwise than the collection is.
    """
    noted = home.note(PART)
    if not (part or noted):
        if place:
            raise UsageError("--exchange needs --part: which of how many collections this one is, such as 2/4")
        return None
    if part and part != noted:
        part = str(part_named(part))
        if noted or any(run.fetched for run in home.runs()):
            this = f"is part {noted}" if noted else "holds pages of all of its web"
            raise UsageError(f"{home} {this}, and cannot become part {part}: `periplus split` makes parts of it")
        home.change_note(IDENTITY, lambda before: before or uuid4().hex)
        home.change_note(PART, lambda before: part)
    place = exchange_place(place)
    place = home.change_note(PLACE, lambda before: place or before)
    if not place:
        raise UsageError(
            f"{home} is part {noted or part} of its web: say where the parts exchange URLs, --exchange PLACE"
        )
    return part_named(noted or part), place


def exchange_place(place: str) -> str:
    """A place of the exchange, as it is noted. Raises UsageError for one that other processes cannot use."""
    check_place("exchange", place)
    return noted_place(place)


class UrlExchange:
    """One part's exchange with the others. Only the process that holds the collection's crawl makes one."""

    def __init__(self, store: RunStore, part: WebPart, place: str) -> None:
        """Raises UsageError where another part was begun anew, or divides the web otherwise; StoreError."""
        self._store, self._part, self._place = store, part, place.rstrip("/")
        self._storages: dict[str, ObjectStorage] = {}
        self._turned = self._flushed = 0.0
        self._before: Mapping[int, PartState] = {}
        self._identity = self._tell(is_at_work=True).identity
        self._others()

    def turn(self) -> None:
        """Once in a while writes what waits for others, and takes what they wrote.

        Where the place is away, the crawl goes on, and this is tried again. Raises UsageError as `__init__`.
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
        """What nothing of the crawl waits for any longer: gives and takes all that there is.

        Returns why the crawl of all parts may go on, in words; empty: no part has anything under way. That holds when
        each says that it is idle with the numbers of what it has sent and taken, these agree, and were the same at the
        look before: whoever gets something to do later gets it by a batch, whose numbers would not agree.
        """
        try:
            self._take()
            self._give(1)
            states = {**self._others(), self._part.number: self._tell(is_at_work=False)}
        except StoreError as error:
            return str(error)
        waits = _waits(states, self._part.of)
        is_same, self._before = states == self._before, states
        return waits if waits or is_same else "looking once more"

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
        """Says how this part stands, where the others look."""
        state = self._store.part_state(time.time())
        state = state._replace(is_idle=state.is_idle and not is_at_work)
        values = {**state._asdict(), "parts": self._part.of, "suffixes": publicsuffixlist.__version__}
        self._at(_STATES).put(f"{self._part.number:05}{_STATE}", json.dumps(values).encode())
        return state

    def _others(self) -> Mapping[int, PartState]:
        """How the other parts stand, as far as they have said. Raises UsageError where they do not fit this one."""
        states = {}
        own = (self._part.of, publicsuffixlist.__version__)
        for name, _ in self._at(_STATES).sizes(_STATE):
            number = int(name.removesuffix(_STATE))
            if number == self._part.number:
                continue
            values = json.loads(_whole(self._at(_STATES), name))
            if (theirs := (values.pop("parts"), values.pop("suffixes"))) != own:
                raise UsageError(
                    f"part {number} divides the web otherwise: (parts, list of public suffixes) are {theirs} there and "
                    f"{own} here. Give all parts the same number, and the same version of publicsuffixlist."
                )
            sent, taken = ({int(part): last for part, last in values.pop(way).items()} for way in ("sent", "taken"))
            states[number] = PartState(**values, sent=sent, taken=taken)
            self._recognise(number, states[number].identity)
        return states

    def _recognise(self, number: int, identity: str) -> None:
        """Raises UsageError where another collection has a part's number than when this one met it first."""
        if self._store.peer(number, identity) != identity:
            raise UsageError(
                f"part {number} was begun anew, and lacks what it was handed before. Begin all parts anew "
                f"(--fresh), with an empty exchange in place of {self._place}."
            )


def _whole(storage: ObjectStorage, name: str) -> bytes:
    """An object as it is now: another may have taken its place since it was listed."""
    with storage.open(name) as file:
        return file.read()


def _waits(states: Mapping[int, PartState], parts: int) -> str:
    """What is under way, in words; empty: nothing."""
    silent = [number for number in range(1, parts + 1) if number not in states]
    busy = [number for number, state in sorted(states.items()) if not state.is_idle]
    pairs = ((one, other) for one in states for other in states if one != other)
    late = sum(states[one].sent.get(other, 0) != states[other].taken.get(one, 0) for one, other in pairs)
    for numbers, what in ((silent, "has not begun"), (busy, "is at work")):
        if numbers:
            return f"part {', '.join(map(str, numbers))} {what}"
    return f"{count_of(late, 'batch', 'batches')} to be taken" if late else ""
