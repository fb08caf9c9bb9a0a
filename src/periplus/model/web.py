"""Words for places on the web: URLs and hosts as text, and URLs that lead to one page."""

from __future__ import annotations

from typing import NewType, Protocol

from periplus.values import frozen

# The words for places on the web: URLs and hosts as text, with the promise in the type's name.

Url = NewType("Url", str)
"""An absolute URL in canonical form, without fragment: made only by `urls.canonical`."""

UrlId = NewType("UrlId", int)
"""The signed 64-bit xxh3 of a canonical URL's identity (`urls.canonical.identity`):
any process can name a URL without asking another.
"""

HostKey = NewType("HostKey", str)
"""`name:port`, the unit of politeness, as in `example.org:443` or `[::1]:8080`."""

Origin = NewType("Origin", str)
"""`scheme://name:port`, the unit that one robots.txt governs (RFC 9309, 2.3)."""

SiteKey = NewType("SiteKey", str)
"""What is treated as one actor: by default the host name without `www.`,
with the port when it is not a standard one.
"""


# What is known of URLs that lead to one page: what passes between who learns it and who fetches.


@frozen
class AliasTarget:
    """The fetched page that a URL is another address of; the URL itself when it is none.

    findings: by which it is, by name.
    """

    url: Url
    findings: tuple[str, ...] = ()


@frozen
class Retraction:
    """A finding that fell, and the URLs that were skipped because of it: to be offered again.

    The store may know of more.
    """

    finding: str
    urls: tuple[Url, ...]


class AliasDetection(Protocol):
    """Knows which addresses of one site lead to one page. See `schedule.learning`."""

    def target_of(self, url: Url) -> AliasTarget:
        """May be asked any number of times: when a link is found, and when its turn comes."""

    def learn(self, url: Url, text_digest: bytes) -> tuple[Retraction, ...]:
        """Books a fetched page. Returns the findings that fell by it."""
