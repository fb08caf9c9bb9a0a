"""What the core needs from outside, as protocols: time and the wire. The store's protocols stand in `model.crawl_store`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from periplus.model.frontier import Candidate, ReadyHost, TrapChanges
from periplus.model.page import Document
from periplus.model.visit import Cause, Cut, Headers, Reason, Request
from periplus.model.web import SiteKey, Url, UrlId


class Clock(Protocol):
    """Time as an argument."""

    def now(self) -> float:
        """Seconds since the epoch, UTC: for records and for what outlives a process."""

    def monotonic(self) -> float:
        """Seconds from an unknown start, never going back: for intervals."""


class Policy(Protocol):
    """Which hosts are worth the next requests. Every crawl is the same engine under another policy."""

    @property
    def patience_s(self) -> float | None:
        """None: it is asked which hosts to lease, and those take turns as they are due. Else it chooses the host of each single request among
        those that may be asked within so many seconds: with 0 nobody is waited for while others are ready."""

    def choose(self, ready: Sequence[ReadyHost], most: int) -> Sequence[int]:
        """The ids of at most `most` of the ready hosts, best first."""

    def told(self, site: SiteKey, document: Document | None, took_s: float) -> None:
        """What came of a page of the site: the document, None where there was none; and how long the exchange took."""


class Territory(Protocol):
    """What belongs to a crawl, and which site each URL is of. See `urls.scope`."""

    @property
    def sites(self) -> frozenset[SiteKey]:
        """Those that are crawled."""

    def decide(self, url: Url) -> Reason | None:
        """None: in scope."""

    def rule_for(self, url: Url) -> str:
        """The rule that decided, in words for users."""

    def refused(self, url: Url) -> str:
        """What the user's own limits say against a URL, wherever it lies, in words; empty: nothing."""

    def site_of(self, url: Url) -> SiteKey: ...


class HostPast(Protocol):
    """What the store can be asked about one host."""

    def texts(self) -> Iterable[tuple[Url, bytes]]:
        """(URL, digest of its text) of the pages that were read, oldest first."""

    def known(self, urls: Sequence[UrlId]) -> frozenset[UrlId]:
        """Those of the URLs that are stored."""


class TrapLesson(Protocol):
    """What one page taught the detector of endless series."""

    @property
    def fresh(self) -> bool:
        """Whether it brought something new."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The page's own, with the word on each whether the page vouches for it."""

    @property
    def vouched_for(self) -> tuple[Url, ...]:
        """URLs known before, as doubtful, that something vouches for now."""


class TrapDetection(Protocol):
    """Knows which URLs of one host belong to endless series. See `schedule.traps`."""

    def admit(self, url: Url, doubt: int) -> str | None:
        """None: may be fetched. Else what is shown to the user: the family, and why it is refused."""

    def learn(self, url: Url, doubt: int, document: Document, candidates: tuple[Candidate, ...]) -> TrapLesson:
        """Books a page that was read."""

    def changes(self) -> TrapChanges:
        """What changed since last asked, for the store."""


@dataclass(frozen=True, slots=True)
class Response:
    """One exchange on the wire, before anything is made of it. status 0: no header arrived."""

    request: Request
    started: float
    took_s: float
    status: int
    headers: Headers
    body: bytes  # as it travelled: content encoding not removed
    cut: Cut
    cause: Cause | None  # None: an answer arrived, whole or cut
    detail: str
    address: str
    first_byte_s: float = 0.0  # from the request's first byte sent to the first byte read; 0.0: none came


class Transport(Protocol):
    """Carries requests out. One hop each: redirects are answers. Raises nothing for what a server or network does."""

    def start(self, request: Request, before: float = math.inf) -> None:
        """before: monotonic time after which it is not sent at all, however far it has come: its host may be another worker's."""

    def wait(self, timeout_s: float) -> Sequence[Response]:
        """Finished exchanges; waits up to timeout_s seconds for the first. With none under way it just waits."""

    @property
    def in_flight(self) -> int: ...

    def close(self) -> None: ...
