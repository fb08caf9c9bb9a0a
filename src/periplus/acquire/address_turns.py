"""Which names lead to one address, and when may the next of them be asked there?

Names are hosts to robots.txt and to the web; to the machine behind them they are one. Where more names of a worker's lead to an address
than may be asked side by side, it is treated as one host would be: one request at a time, and starts the delay apart. The names take
turns in the order in which they come.

A name's address is known when it is first connected to: what must wait then is not sent. Each worker process keeps its own turns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from periplus.model.web import HostKey
from periplus.urls.addresses import special_network

MOST_KNOWN = 65_536  # names, and addresses; what was met first is forgotten first, and learned anew from the next answer
OWN_MACHINE = "loopback"  # its names are taken for those of a test, or of proxies and tunnels


@dataclass(slots=True)
class _Place:
    """One address."""

    names: set[str] = field(default_factory=set)  # up to one more than may be asked side by side
    slots: dict[HostKey, float] = field(default_factory=dict)  # when hosts that wait may come again
    flying: set[HostKey] = field(default_factory=set)
    free_at: float = 0.0  # the delay after the latest start
    next_slot: float = 0.0


class AddressTurns:
    """The addresses that one worker's names lead to. Times on the caller's monotonic clock, in seconds."""

    def __init__(self, most_names: int, gap_s: float, mine: frozenset[str] = frozenset()) -> None:
        """most_names: of one address that are asked side by side. gap_s: between two starts at an address that has more. mine: hosts that
        take no turns, by name, or by name and port."""
        self._most, self._gap_s, self._mine = most_names, gap_s, mine
        self._address: dict[str, str] = {}
        self._places: dict[str, _Place] = {}
        self._flights: dict[HostKey, _Place] = {}

    def ended(self, host: HostKey, address: str) -> None:
        """An exchange with a host is over. address: that answered; empty: none did, or it is unknown."""
        if (place := self._flights.pop(host, None)) is not None:
            place.flying.discard(host)
        self._learn(host.rpartition(":")[0], address)

    def admits(self, host: HostKey, address: str, now: float) -> bool:
        """Whether a host may be asked at this address now, to which it turned out to lead; else `turn` says when."""
        self._learn(host.rpartition(":")[0], address)
        return self.turn(host, now) <= now

    def _learn(self, name: str, address: str) -> None:
        before = self._address.get(name)
        if not address or address == before or special_network(address) == OWN_MACHINE:
            return
        self._forget_first(self._address)
        self._address[name] = address
        if (left := self._places.get(before or "")) is not None:
            left.names.discard(name)
        if address not in self._places:
            self._forget_first(self._places)
            self._places[address] = _Place()
        if len(names := self._places[address].names) <= self._most:
            names.add(name)

    def turn(self, host: HostKey, now: float) -> float:
        """When a host may be asked: now, and it is taken to be asked; or at a later time, which is kept for it."""
        name = host.rpartition(":")[0]
        place = self._places.get(self._address.get(name, ""))
        if place is None or len(place.names) <= self._most or host in place.flying or not self._mine.isdisjoint((host, name)):
            return now
        slot = place.slots.pop(host, place.next_slot)
        if slot <= now and not place.flying and place.free_at <= now:
            place.flying.add(host)
            self._flights[host] = place
            place.free_at = now + self._gap_s
            place.next_slot = max(place.next_slot, place.free_at)
            return now
        if slot <= now:  # one before it came late, or is asked for longer than the delay: then to the end of the line
            slot = max(place.next_slot, now + self._gap_s) if place.flying else place.free_at
        place.slots[host] = slot
        place.next_slot = max(place.next_slot, slot + self._gap_s)
        return slot

    @staticmethod
    def _forget_first(known: dict[str, str] | dict[str, _Place]) -> None:
        if len(known) >= MOST_KNOWN:
            del known[next(iter(known))]
