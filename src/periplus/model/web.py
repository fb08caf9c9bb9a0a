"""Types for URLs and hosts as text, and values for aliases."""

from __future__ import annotations

from typing import NewType, Protocol

from periplus.values import frozen

Url = NewType("Url", str)
"""An absolute URL in canonical form, without fragment; created only by `urls.canonical`."""

UrlId = NewType("UrlId", int)
"""The signed 64-bit xxh3 of a canonical URL's identity (`urls.canonical.identity`). Every process computes the same id.
"""

HostKey = NewType("HostKey", str)
"""`name:port`, the unit of politeness, as in `example.org:443` or `[::1]:8080`."""

Origin = NewType("Origin", str)
"""`scheme://name:port`, the unit that one robots.txt governs (RFC 9309, 2.3)."""

SiteKey = NewType("SiteKey", str)
"""A site, treated as one publisher: by default the host name without `www.`, with the port if it is not a default
port.
"""


# Aliases: URLs that lead to the same page.


@frozen
class AliasTarget:
    """The fetched page that a URL is an alias of, or the URL itself.

    findings: names of the learned rules that say so.
    """

    url: Url
    findings: tuple[str, ...] = ()


@frozen
class Retraction:
    """A refuted alias rule, and the URLs skipped because of it, which are to be offered again.

    The store may know more such URLs.
    """

    finding: str
    urls: tuple[Url, ...]


class AliasDetection(Protocol):
    """Learns which URLs of one site are aliases. See `schedule.learning`."""

    def target_of(self, url: Url) -> AliasTarget:
        """Returns the page that a URL leads to. Called when a link is found, and again before the request."""

    def learn(self, url: Url, text_digest: bytes) -> tuple[Retraction, ...]:
        """Updates the rules with a fetched page. Returns the rules that it refutes."""
