"""The words for places on the web: URLs and hosts as text, with the promise in the type's name."""

from __future__ import annotations

from typing import NewType

Url = NewType("Url", str)
"""An absolute URL in canonical form, without fragment: made only by `urls.canonical`."""

UrlId = NewType("UrlId", int)
"""The signed 64-bit xxh3 of a canonical URL's identity (`urls.canonical.identity`): any process can name a URL without asking another."""

HostKey = NewType("HostKey", str)
"""`name:port`, the unit of politeness, as in `example.org:443` or `[::1]:8080`."""

Origin = NewType("Origin", str)
"""`scheme://name:port`, the unit that one robots.txt governs (RFC 9309, 2.3)."""

SiteKey = NewType("SiteKey", str)
"""What is treated as one actor: by default the host name without `www.`, with the port when it is not a standard one."""
