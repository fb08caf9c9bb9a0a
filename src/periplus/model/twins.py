"""What is known of URLs that lead to one page: what passes between who learns it and who fetches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from periplus.model.web import Url


@dataclass(frozen=True, slots=True)
class Twin:
    """The fetched page that a URL is another address of; the URL itself when it is none. findings: by which it is, by name."""

    url: Url
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retraction:
    """A finding that fell, and the URLs that were skipped because of it: to be offered again. The store may know of more."""

    finding: str
    urls: tuple[Url, ...]


class TwinSense(Protocol):
    """Knows which addresses of one site lead to one page. See `schedule.learning`."""

    def twin_of(self, url: Url) -> Twin:
        """May be asked any number of times: when a link is found, and when its turn comes."""

    def learn(self, url: Url, text_digest: bytes) -> tuple[Retraction, ...]:
        """Books a fetched page. Returns the findings that fell by it."""
